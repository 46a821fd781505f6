"""The engines: adapters that execute a run and return its outcome."""
