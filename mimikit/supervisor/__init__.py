"""Built-in operations: pure code that routes, fires, applies, recovers."""
