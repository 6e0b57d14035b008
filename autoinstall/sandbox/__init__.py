"""Sandboxes: the contract, the Docker implementation, the scripted fake, base images and the reaper."""
