"""Agents that need no model: they read evidence as an engineer would, plan per ecosystem and repair what fails."""
