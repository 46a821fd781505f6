"""The only writer of `config.toml`: applies the commands that change settings.

The consumer applies them in order; while none is running, the terminal does it under the consumer's
lock. So no update is lost.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from mimikit import config
from mimikit.config import Settings, TokenCapSettings
from mimikit.engines import setup
from mimikit.engines.registry import CODE
from mimikit.errors import BadInput, BadSettings, Refused
from mimikit.permission import variable_refusal
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, CommandResult
from mimikit.tasks import queue

_KEYS = {
    "budget": frozenset(TokenCapSettings.model_fields),
    "retention": frozenset({"days"}),
    "notify": frozenset({"quiet"}),
    "self_awake": frozenset({"enabled"}),
}
"""By table, what the action `TABLE_set` may change: nothing that runs a command."""
ACTIONS = frozenset({"engine_use", "engine_set", "engine_remove", *(f"{one}_set" for one in _KEYS)})


class SettingsChange(NamedTuple):
    settings: Settings
    message: str


def apply(files: Files, command: Command) -> SettingsChange:
    """Apply one command. Idempotent.

    Raises:
        BadInput: the command, or the resulting settings, are not valid.
        Refused: its origin may not do this.
    """
    try:
        text = setup.settings_text(files)
        new = _changed(text, command)
        settings = config.parsed(new, Path(paths.CONFIG))
    except BadSettings as error:
        raise BadInput(str(error)) from None
    if new != text:
        files.write(paths.CONFIG, new.encode())
    if command.action in ("engine_set", "engine_remove"):
        _forget(files, command.target, settings)
    return SettingsChange(settings, _message(command, settings))


def apply_waiting(files: Files, now: datetime) -> None:
    for command in queue.waiting_commands(files):
        if command.action in ACTIONS and queue.command_result(files, command.id) is None:
            try:
                ok, message = True, apply(files, command).message
            except (BadInput, Refused) as error:
                ok, message = False, str(error)
            result = CommandResult(command=command, ok=ok, message=message, applied_at=now)
            queue.settle_command(files, result)


def _changed(text: str, command: Command) -> str:
    target, args = command.target, command.args
    match command.action:
        case "engine_use":
            return _with_order(text, target.split(), args.get("seat"), bool(args.get("first")))
        case "engine_set":
            if "api_key_env" in args and (refusal := variable_refusal(remote=command.remote)):
                raise Refused(refusal)
            return setup.with_endpoint(text, setup.checked_name(target), args)
        case "engine_remove":
            return setup.without_endpoint(text, setup.checked_name(target))
        case action:
            table = action.removesuffix("_set")
            if unknown := args.keys() - _KEYS[table]:
                known = ", ".join(sorted(_KEYS[table]))
                raise BadInput(f"{table}: expected some of {known}; got {min(unknown)[:60]!r}")
            return setup.with_values(text, table, args)


def _with_order(text: str, names: list[str], seat: str | None, first: bool) -> str:
    """`first`: put the names before the current order."""
    setup.check_seat(seat)
    if not names:
        return text
    if seat is None and (override := os.environ.get("MIMIKIT_ENGINE")) is not None:
        raise BadInput(f"expected no MIMIKIT_ENGINE, got {override!r}; change that instead")
    if first:
        order = config.parsed(text, Path(paths.CONFIG)).engine_order
        names = [*names, *(name for name in order if name not in names)]
    return setup.with_order(text, names, seat)


def _forget(files: Files, name: str, settings: Settings) -> None:
    """Remove the key of an endpoint when nothing names it any more."""
    endpoint = settings.engines.get(name)
    if endpoint is None or endpoint.api_key_file != setup.key_file(name):
        files.remove(f"{paths.SECRETS}/{setup.key_file(name)}")


def _message(command: Command, settings: Settings) -> str:
    if command.action == "engine_set":
        return f"set up {command.target}"
    if command.action == "engine_remove":
        return f"removed {command.target}"
    if command.action == "self_awake_set":
        return f"self-awake is {'on' if settings.self_awake.enabled else 'off'}"
    if command.action == "budget_set":
        caps = [f"{k}: {'no cap' if v is None else f'{v:,}'}" for k, v in command.args.items()]
        return f"{', '.join(caps)} from now on"
    if command.action in ("retention_set", "notify_set"):
        return "the settings were changed"
    if seat := command.args.get("seat"):
        return f"{seat}: {', then '.join(command.target.split())} from now on"
    first, *then = ["no model" if name == CODE else name for name in settings.engine_order]
    order = ", then ".join([f"{first} is used from now on", *then])
    own = setup.orders(settings)
    del own["all"]
    others = ", ".join(f"{seat} ({', '.join(names)})" for seat, names in own.items())
    return f"{order}; the settings give others to {others}" if others else order
