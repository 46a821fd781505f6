"""The engine `codex`: runs the codex CLI."""
