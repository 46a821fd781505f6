"""The engine `opencode`: one `opencode serve` for every role, with only our tools."""
