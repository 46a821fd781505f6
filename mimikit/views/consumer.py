"""Whether the consumer lives and works: one rule, for page, terminal and API."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from mimikit.protocol import ids, paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Health, LiveRun, LockHolder

ConsumerState = Literal["running", "starting", "stuck", "down"]
PageState = Literal["ok", "hung", "down"]
"""The same in the words of the page: one that starts serves nobody yet."""
BEAT_LATE = timedelta(seconds=15)
TICK_LATE_S = 10.0
_ON_PAGE: dict[ConsumerState, PageState] = {
    "running": "ok",
    "starting": "down",
    "stuck": "hung",
    "down": "down",
}


@dataclass(frozen=True, slots=True)
class Consumer:
    """The consumer's process, and its heartbeat. Units: seconds."""

    state: ConsumerState
    holder: LockHolder | None
    health: Health | None
    """The last one, whoever wrote it."""
    age_s: float | None

    @property
    def is_there(self) -> bool:
        return self.state != "down"

    @property
    def on_page(self) -> PageState:
        return _ON_PAGE[self.state]

    @property
    def who(self) -> str:
        if self.holder is None:
            return "another process"
        here = self.holder.host == socket.gethostname()
        return f"process {self.holder.pid} on {'this machine' if here else self.holder.host}"

    @property
    def current(self) -> Health | None:
        """What it says; None when it is down."""
        return self.health if self.is_there else None

    @property
    def live(self) -> dict[str, LiveRun]:
        """Live runs by id; none when it is down."""
        return {run.id: run for run in self.current.live} if self.current else {}


def look_at_consumer(files: Files, now: datetime) -> Consumer:
    """Find out without touching its lock: a lock taken to look could keep a starting one out.

    On this machine its process tells; from elsewhere the heartbeat does, and one from the future
    counts as a late one.
    """
    holder = files.peek(paths.CONSUMER_HOLDER, LockHolder)
    health = files.peek(paths.HEALTH, Health)
    age = now - health.beat_at if health else None
    if holder is not None and holder.host == socket.gethostname():
        lives = ids.is_alive(holder.pid, holder.process_started, holder.boot_id)
    else:
        lives = age is not None and abs(age) <= BEAT_LATE
    state: ConsumerState = "running"
    if not lives:
        state = "down"
    elif age is None or health is None or (holder is not None and health.pid != holder.pid):
        state = "starting"
    elif age > BEAT_LATE or health.tick_age_s > TICK_LATE_S:
        state = "stuck"
    return Consumer(state, holder, health, age.total_seconds() if age is not None else None)
