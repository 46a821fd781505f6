"""The runs that live in this process: who they are, what they do now, and how to stop them."""

from __future__ import annotations

import threading
from datetime import datetime

from mimikit.engines.base import CancelToken
from mimikit.protocol.models import LiveRun, Role


class LiveRuns:
    """Live runs by id. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, LiveRun] = {}
        self._tokens: dict[str, CancelToken] = {}
        self._canceled_early: set[str] = set()
        self._stopping = False

    def start(self, run_id: str, role: Role, title: str, now: datetime) -> CancelToken:
        """Enter a run; its token may already be canceled when the cancel came first."""
        run, token = LiveRun(id=run_id, role=role, title=title[:200], started_at=now), CancelToken()
        with self._lock:
            self._runs[run_id], self._tokens[run_id] = run, token
            canceled, stopping = run_id in self._canceled_early, self._stopping
            self._canceled_early.discard(run_id)
        if canceled or stopping:
            token.cancel("canceled" if canceled else "killed")
        return token

    def headline(self, run_id: str, text: str) -> None:
        """Say in one line what the run does now."""
        with self._lock:
            if run := self._runs.get(run_id):
                self._runs[run_id] = run.but(headline=text[:200])

    def end(self, run_id: str) -> None:
        with self._lock:
            self._runs.pop(run_id, None)
            self._tokens.pop(run_id, None)

    def cancel(self, run_id: str, *, early: bool = False) -> bool:
        """Stop a run; False when it is not live here.

        early: then stop it when it enters, as it is claimed already.
        """
        with self._lock:
            token = self._tokens.get(run_id)
            if token is None and early:
                self._canceled_early.add(run_id)
        if token is not None:
            token.cancel("canceled")
        return token is not None

    def stop_all(self) -> None:
        """Stop every run, and each one that still enters."""
        with self._lock:
            self._stopping = True
            tokens = list(self._tokens.values())
        for token in tokens:
            token.cancel("killed")

    def list(self) -> list[LiveRun]:
        """Every live run, oldest first."""
        with self._lock:
            runs = [*self._runs.values()]
        return sorted(runs, key=lambda run: run.started_at)
