"""Giving an order to the supervisor, and waiting a moment for what comes of it."""

from __future__ import annotations

from typing import Any, Literal

from flask import Response

from mimikit.protocol.ids import new_id
from mimikit.protocol.models import Command
from mimikit.tasks import commands
from mimikit.web.api.asked import Asked, ClientId, body
from mimikit.web.site import Site, answer

Action = Literal[
    "cancel",
    "retry",
    "trigger_pause",
    "trigger_resume",
    "trigger_remove",
    "trigger_run",
    "trigger_edit",
]


class CommandRequest(Asked):
    """The client may name its order, so that sending it twice is one order."""

    id: ClientId | None = None


def named() -> str | None:
    """The id that the client gave its order, in a body of nothing else."""
    return body(CommandRequest, may_be_empty=True).id


def give(
    here: Site,
    action: Action,
    target: str,
    *,
    order_id: str | None,
    args: dict[str, Any] | None = None,
) -> Response:
    """Hand over the order: its outcome if that comes at once, else its id."""
    now = here.clock.now()
    order = Command(
        id=order_id or new_id("cmd", now),
        action=action,
        target=target,
        args=args or {},
        created_at=now,
        origin="http",
    )
    outcome = commands.give_and_wait(
        here.files, order, is_served=lambda: here.shown.vitals().state != "down"
    )
    if outcome is None:
        return answer({"command": order.id}, 202)
    return answer({"ok": outcome.ok, "message": outcome.message, "resultId": outcome.result_id})
