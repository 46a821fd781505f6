"""Commands from outside (cancel, retry, pause…): a file each, applied once, kept with its outcome.

Applying them is the supervisor's (`supervisor/commands.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, CommandResult

WAIT_S = 2.0
"""How long an outcome is waited for."""


def give(files: Files, command: Command) -> bool:
    """Hand a command to the supervisor; False when this id was given before."""
    if files.exists(paths.command_done(command.id)):
        return False
    return files.save_new(paths.command(command.id), command)


def give_and_wait(
    files: Files,
    command: Command,
    *,
    is_served: bool,
    pause: Callable[[float], object] = lambda most_s: time.sleep(min(most_s, 0.02)),
    timeout_s: float = WAIT_S,
) -> CommandResult | None:
    """Give a command and wait a moment for what comes of it.

    None: nothing did in time; the command is kept. Where nobody is there to apply it (`is_served`)
    nothing is waited for. `pause` may return as soon as something has changed.
    """
    give(files, command)
    deadline = time.monotonic() + (timeout_s if is_served else 0.0)
    while (found := outcome(files, command.id)) is None:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return None
        pause(left_s)
    return found


def waiting(files: Files) -> list[Command]:
    """Commands not applied yet, oldest first."""
    return sorted(files.load_all(paths.COMMANDS, Command), key=lambda o: (o.created_at, o.id))


def outcome(files: Files, command_id: str) -> CommandResult | None:
    """What came of a command; None while it waits."""
    return files.load(paths.command_done(command_id), CommandResult)


def settle(files: Files, result: CommandResult) -> None:
    """Record the outcome, then drop the command.

    Crash: a command with an outcome is dropped at the next look, not applied again.
    """
    files.save_new(paths.command_done(result.command.id), result)
    files.remove(paths.command(result.command.id))
