"""The box in which Workers run: an allowlist around bubblewrap, its git rule, its canary."""
