"""What a model agent can do, one file a kind of tool."""
