"""The commands: they parse, call a flow or the domain, and print."""
