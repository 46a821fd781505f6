"""The engine `codex`: the codex CLI, its command lines, its events, one run of it."""
