"""Who serves what, found out beside the supervisor: an engine may start programs to say it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from mimikit.errors import MimikitError
from mimikit.protocol.models import EngineStatus
from mimikit.protocol.watch import BoundedThread

_MOMENT_S, _FIRST_S = 0.05, 1.0
"""So long the answer is waited for: it is mostly remembered. At the first look none is known."""


class StatusWatch:
    """Of one caller at a time; what it knows may be read by any thread."""

    def __init__(self, find_out: Callable[[], dict[str, EngineStatus]]) -> None:
        self._find_out = find_out
        self._thread: BoundedThread | None = None
        self.known: dict[str, EngineStatus] = {}
        """By role or profile, as it was found last."""

    def look(self) -> dict[str, EngineStatus]:
        """Have it found out anew, and give what is known by now."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = BoundedThread(self._look, "engine status")
            try:
                self._thread.start()
            except (RuntimeError, MemoryError):  # no thread: the next look tries
                self._thread = None
                return self.known
        self._thread.join(_MOMENT_S if self.known else _FIRST_S)
        return self.known

    def _look(self) -> None:
        with contextlib.suppress(MimikitError, OSError, MemoryError):  # it stands as it was known
            self.known = self._find_out()
