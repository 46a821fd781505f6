"""The web for Planner and Workers: what may be reached, how it is read, what is searched by."""
