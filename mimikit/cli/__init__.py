"""The commands of the terminal, one module per group."""
