"""The order of the waiting files, in memory: two heaps and a table. Knows no file and no lock.

`ready` holds what may be taken now, `due` what waits for its time. Changed and removed names leave
their old heap items behind; those are dropped when they come up.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime
from typing import Any, NamedTuple


class Ticket(NamedTuple):
    """What the storage knows of a waiting file without knowing what it holds."""

    order: Any
    """Its place, smaller first: any values of one kind that can be compared."""
    ready_at: float | None = None
    """Not to be taken before; seconds since 1970. None: at once."""
    fill: bytes | None = None
    """What shall lie in `running/` in place of the file's own bytes, where those are not whole."""


class Waiting(NamedTuple):
    """A waiting file: its name, its ticket, and when it was first seen."""

    name: str
    ticket: Ticket
    seen_at: datetime


NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""`seen_at` where it does not matter, since the file says itself when it was made."""


class QueueIndex:
    """Which file is next. The caller holds a lock. Units: seconds since 1970.

    It is made for 100,000 names: what is kept for each is small, and mostly nothing the garbage
    collector has to walk through again and again.
    """

    def __init__(self) -> None:
        """Empty."""
        self._tickets: dict[str, Ticket] = {}
        self._seen: dict[str, datetime] = {}
        self._ready: list[tuple[Any, str]] = []
        self._due: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._tickets)

    def __contains__(self, name: str) -> bool:
        return name in self._tickets

    def tickets(self) -> dict[str, Ticket]:
        """Every ticket by its name; a copy."""
        return dict(self._tickets)

    def seen_at(self, name: str) -> datetime:
        """When a name was first seen; NEVER where that does not matter."""
        return self._seen.get(name, NEVER)

    def add(self, waiting: Waiting) -> None:
        """Put a file in its place; a name that is known moves to the new one."""
        name, ticket, seen_at = waiting
        known = self._tickets.get(name)
        self._tickets[name] = ticket
        if seen_at is not NEVER:
            self._seen[name] = seen_at
        if known is not None and known[:2] == ticket[:2]:
            return
        if ticket.ready_at is None:
            heapq.heappush(self._ready, (ticket.order, name))
        else:
            heapq.heappush(self._due, (ticket.ready_at, name))

    def discard(self, name: str, *, only: Ticket | None = None) -> None:
        """Forget a name; with `only`, unless it has another ticket by now."""
        if only is None or self._tickets.get(name) is only:
            self._tickets.pop(name, None)
            self._seen.pop(name, None)

    def first(self, now: float) -> Waiting | None:
        """The first that may go at `now`, left in its place."""
        if self._due:
            self._promote(now)
        while self._ready:
            order, name = self._ready[0]
            ticket = self._tickets.get(name)
            if ticket is not None and ticket.order == order:
                if ticket.ready_at is None or ticket.ready_at <= now:
                    return Waiting(name, ticket, self.seen_at(name))
                # It was put off, or the clock set back, after it had come up.
                heapq.heappush(self._due, (ticket.ready_at, name))
            heapq.heappop(self._ready)
        return None

    def pop(self, now: float) -> Waiting | None:
        """Take the first that may go at `now`; None when none may."""
        waiting = self.first(now)
        if waiting is not None:
            heapq.heappop(self._ready)
            self.discard(waiting.name)
        return waiting

    def next_due(self) -> float | None:
        """When the earliest of those that wait for their time may go."""
        while self._due:
            ready_at, name = self._due[0]
            ticket = self._tickets.get(name)
            if ticket is not None and ticket.ready_at == ready_at:
                return ready_at
            heapq.heappop(self._due)
        return None

    def _promote(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            ready_at, name = heapq.heappop(self._due)
            ticket = self._tickets.get(name)
            if ticket is not None and ticket.ready_at == ready_at:
                heapq.heappush(self._ready, (ticket.order, name))
