"""What a role is told, and what its answer means."""
