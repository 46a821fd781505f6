"""The HTTP API: one module an area, each with a blueprint called `routes`."""
