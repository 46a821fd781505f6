"""The engine `local`: a small model in its own process, for the basic mode."""
