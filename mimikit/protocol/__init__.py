"""What lies on disk: records, names, and the one room that writes them."""
