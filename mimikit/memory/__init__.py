"""What is known: the memory files and the search in them."""
