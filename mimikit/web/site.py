"""What the routes of one app share, and how they answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from flask import Response, current_app

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.log import EventLog
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.views.memory import Library
from mimikit.views.messages import KnownIds
from mimikit.views.snapshot import Shown
from mimikit.web.feed import Feed
from mimikit.web.guard import Guard
from mimikit.web.limits import RateLimit

if TYPE_CHECKING:
    from mimikit.memory.search import Search

EXTENSION = "mimikit"


@dataclass(frozen=True, slots=True)
class Site:
    """One web process's things. Built by `app.build_web`, found by `site()`."""

    files: ReadOnlyFiles
    settings: Settings
    workspace: Path
    clock: Clock
    log: EventLog
    guard: Guard
    shown: Shown
    feed: Feed
    inputs: RateLimit
    known_ids: KnownIds
    library: Library
    search: Callable[[], Search]
    is_local: bool
    """Whether only this machine can reach the page."""


def site() -> Site:
    """The site of the request that is being answered."""
    return cast("Site", current_app.extensions[EXTENSION])


def answer(data: object, status: int = 200) -> Response:
    """Data as JSON."""
    body = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Response(body.encode("utf-8", "replace"), status, mimetype="application/json")


def error_answer(status: int, message: str, field: str | None = None) -> Response:
    """An error as every route tells it."""
    return answer({"error": error_dict(message, field)}, status)


def error_dict(message: str, field: str | None) -> dict[str, str | None]:
    """The error itself, for an answer that says more."""
    return {"message": message, "field": field}
