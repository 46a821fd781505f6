"""Views: models for page, terminal and API, made from the state files. Knows no HTTP."""
