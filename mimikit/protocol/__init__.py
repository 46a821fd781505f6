"""The files on disk: records, paths, and the only module that writes them."""
