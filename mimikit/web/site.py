"""What the routes of one app share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from flask import current_app

from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.log import EventLog
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.views.memory import MemoryReader
from mimikit.views.messages import KnownIds
from mimikit.views.snapshot import StateReader
from mimikit.web.api.routing import Endpoint
from mimikit.web.feed import Feed
from mimikit.web.guard import Guard, RateLimit

if TYPE_CHECKING:
    from mimikit.memory.search import MemorySearch

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
    state: StateReader
    feed: Feed
    inputs: RateLimit
    known_ids: KnownIds
    library: MemoryReader
    search: Callable[[], MemorySearch]
    routes: Sequence[Endpoint]
    is_local: bool
    """Whether only this machine can reach the page."""


def site() -> Site:
    """The site of the request that is being answered."""
    return cast("Site", current_app.extensions[EXTENSION])
