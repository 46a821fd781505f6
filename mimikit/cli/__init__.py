"""The commands of the terminal, one module a group."""
