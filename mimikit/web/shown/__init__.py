"""State files as the page is shown them: records in, plain JSON data out. Knows no HTTP."""
