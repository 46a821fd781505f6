"""The roles Teller, Planner and Worker: their prompts, runs and results."""
