"""The runs that live in this process: who they are, what they do now, and how to stop them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime

from mimikit.engines.base import CancelToken
from mimikit.protocol.models import LiveRun, Role


@dataclass
class _Live:
    run: LiveRun
    cancel: CancelToken = field(default_factory=CancelToken)


class LiveRuns:
    """Live runs by id. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: dict[str, _Live] = {}
        self._early: dict[str, str] = {}
        self._stopping: str | None = None

    def start(self, run_id: str, role: Role, title: str, now: datetime) -> CancelToken:
        """Enter a run; its token may already be canceled when the cancel came first."""
        live = _Live(LiveRun(id=run_id, role=role, title=title[:200], started_at=now))
        with self._lock:
            self._live[run_id] = live
            reason = self._early.pop(run_id, None) or self._stopping
        if reason:
            live.cancel.cancel(reason)
        return live.cancel

    def headline(self, run_id: str, text: str) -> None:
        """Say in one line what the run does now."""
        with self._lock:
            if live := self._live.get(run_id):
                live.run = live.run.but(headline=text[:200])

    def end(self, run_id: str) -> None:
        with self._lock:
            self._live.pop(run_id, None)

    def cancel(self, run_id: str, reason: str = "canceled") -> bool:
        """Stop a run; False when it is not live here (then `expect` may be what you want)."""
        with self._lock:
            live = self._live.get(run_id)
        return live is not None and (live.cancel.cancel(reason) or True)

    def expect(self, run_id: str, reason: str = "canceled") -> None:
        """Stop a run that is about to start: claimed, but not entered yet."""
        with self._lock:
            live = self._live.get(run_id)
            if live is None:
                self._early[run_id] = reason
        if live is not None:
            live.cancel.cancel(reason)

    def stop_all(self, reason: str = "killed") -> None:
        """Stop every run, and each one that still enters."""
        with self._lock:
            self._stopping = reason
            tokens = [live.cancel for live in self._live.values()]
        for token in tokens:
            token.cancel(reason)

    def list(self) -> list[LiveRun]:
        """Every live run, oldest first."""
        with self._lock:
            runs = [live.run for live in self._live.values()]
        return sorted(runs, key=lambda run: run.started_at)
