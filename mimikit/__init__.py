"""An assistant that lives on your machine, and a durable job runner on plain files under it."""

__version__ = "0.1.0"
