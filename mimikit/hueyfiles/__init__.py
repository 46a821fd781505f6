"""A Huey storage on plain files, usable by any Huey program; knows nothing of mimikit."""
