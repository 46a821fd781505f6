"""How often something may happen in a minute. Kept in memory: there is one web process."""

from __future__ import annotations

import threading
from collections import deque

from mimikit.clock import Clock

WINDOW_S = 60.0
_MAX_KEYS = 1000


class RateLimit:
    """At most so many events a minute for each key, and so many for all keys together."""

    def __init__(self, clock: Clock, per_key: int, overall: int | None = None) -> None:
        """Without `overall` only the keys are limited."""
        self._clock = clock
        self._per_key = per_key
        self._overall = overall
        self._lock = threading.Lock()
        self._events: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()

    def take(self, key: str) -> bool:
        """Count one event; False, and not counted, when there were too many."""
        with self._lock:
            if self._wait_s(key) > 0:
                return False
            self._note(key)
            return True

    def note(self, key: str) -> None:
        """Count one event whatever there was before."""
        with self._lock:
            self._note(key)

    def wait_s(self, key: str) -> float:
        """Seconds until the next event is allowed; 0 when it is now."""
        with self._lock:
            return self._wait_s(key)

    def _wait_s(self, key: str) -> float:
        now = self._clock.monotonic()
        mine = self._events.get(key, deque[float]())
        for events in (mine, self._all):
            while events and events[0] <= now - WINDOW_S:
                events.popleft()
        waits = [0.0]
        if len(mine) >= self._per_key:
            waits.append(mine[-self._per_key] + WINDOW_S - now)
        if self._overall is not None and len(self._all) >= self._overall:
            waits.append(self._all[-self._overall] + WINDOW_S - now)
        return max(waits)

    def _note(self, key: str) -> None:
        if len(self._events) >= _MAX_KEYS and key not in self._events:
            self._forget_idle()
        now = self._clock.monotonic()
        self._events.setdefault(key, deque(maxlen=self._per_key)).append(now)
        if self._overall is not None:
            self._all.append(now)

    def _forget_idle(self) -> None:
        horizon = self._clock.monotonic() - WINDOW_S
        self._events = {k: e for k, e in self._events.items() if e and e[-1] > horizon}
        while len(self._events) >= _MAX_KEYS:
            del self._events[next(iter(self._events))]
