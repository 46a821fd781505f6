"""The memory files, archiving, and the search."""
