"""How an endpoint is: one state for all its runs, with a rest that grows while it refuses them."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from mimikit.clock import Clock
from mimikit.engines.base import EngineAbsence
from mimikit.engines.openai.endpoint import EndpointError, Trouble
from mimikit.protocol.models import EngineWant

_REST_S, _MOST_REST_S = 5.0, 300.0
_WANTS: dict[Trouble, EngineWant] = {"logged_out": "logged_out", "limited": "limited"}


class EndpointHealth:
    """Whether the endpoint turns requests away, and when the next may try."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._reason: EngineAbsence | None = None
        self._until: datetime | None = None
        self._key: str | None = None
        self._times, self._trying = 0, 0

    def reason(self, key: str | None) -> EngineAbsence | None:
        """Why it rests; None once it may be tried, as with another key than the one refused."""
        with self._lock:
            if self._reason is None or self._until is None:
                return None
            if self._reason.want == "logged_out" and key != self._key:
                return None
            return self._reason if self._clock.now() < self._until else None

    def until(self) -> datetime:
        with self._lock:
            soon = self._clock.now() + timedelta(seconds=_REST_S)
            return self._until if self._until and self._until > self._clock.now() else soon

    def begin(self) -> bool:
        """Enter a run; False while another tries whether it answers again."""
        with self._lock:
            if self._reason is not None and self._trying:
                return False
            self._trying += 1
            return True

    def end(self) -> None:
        with self._lock:
            self._trying = max(0, self._trying - 1)

    def well(self) -> None:
        with self._lock:
            self._reason, self._until, self._times = None, None, 0

    def wake(self) -> None:
        with self._lock:
            self._until = self._clock.now()

    def ill(self, error: EndpointError, said: str, key: str | None) -> datetime:
        """Note that it turned a request away; gives when the next may try."""
        with self._lock:
            rest_s = min(_REST_S * 2 ** min(self._times, 10), _MOST_REST_S)
            self._times += 1
            now = self._clock.now()
            known = error.until if error.until and error.until > now else None
            self._until = known or now + timedelta(seconds=rest_s)
            self._reason = EngineAbsence(said, _WANTS.get(error.trouble, "unready"))
            self._key = key
            return self._until
