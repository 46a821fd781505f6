"""What each role is told, and what its answer means."""
