"""The engine `opencode`: one `opencode serve` for every role, whose only tools are ours."""
