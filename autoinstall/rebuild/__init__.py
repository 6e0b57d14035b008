"""Building an accepted environment a second time, from the Dockerfile that is made of what its attempt did."""
