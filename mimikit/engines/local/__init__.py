"""A small model on this machine, in a process of its own: the basic mode."""
