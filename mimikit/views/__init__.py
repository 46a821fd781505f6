"""State files as people are shown them: records in, plain JSON data out. Knows no HTTP."""
