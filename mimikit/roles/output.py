"""The live output of a run: one line an event in `runs/{id}.jsonl`, capped."""

from __future__ import annotations

import threading
from typing import Any

from mimikit.clock import Clock
from mimikit.engines.base import EventKind
from mimikit.errors import StorageError
from mimikit.language.plain_text import plain
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import RunEvent
from mimikit.runs import LiveRuns

MAX_EVENT_CHARACTERS = 20_000


class RunOutput:
    """Where a run's events go: its file, its headline, and for a Teller's words the page.

    Output is for following, not for keeping: a disk that refuses a line never ends the run.
    """

    def __init__(
        self,
        files: Files,
        clock: Clock,
        feed: ChangeFeed,
        live: LiveRuns,
        run_id: str,
        *,
        cap_bytes: int,
        is_turn: bool = False,
    ) -> None:
        """Events of `run_id`; `is_turn` streams its deltas to the page as they come."""
        self._files, self._clock, self._feed, self._live = files, clock, feed, live
        self._run_id = run_id
        self._left = cap_bytes
        self._is_turn = is_turn
        self._lock = threading.Lock()

    def event(self, kind: EventKind, text: str, data: dict[str, Any]) -> None:
        """One event of the engine."""
        if kind == "delta" and self._is_turn:
            self._feed.tell("delta", turnId=self._run_id, text=text)
        if kind in ("command", "tool", "note", "file"):
            self._live.headline(self._run_id, plain(text))
        self.write(kind, text, data)

    def write(self, kind: str, text: str, data: dict[str, Any] | None = None) -> None:
        """Append one line; beyond the cap, one last note."""
        facts = dict(data or {})
        record = RunEvent.model_validate(
            {
                "at": self._clock.now(),
                "type": kind,
                "text": plain(text)[:MAX_EVENT_CHARACTERS],
                "stream": facts.pop("stream", None),
                "data": facts,
            }
        )
        with self._lock:
            if self._left <= 0:
                return
            self._left -= len(record.text) + 200
            if self._left <= 0:
                record = record.but(type="note", text="more output is not shown here", data={})
            try:
                self._files.append(paths.run_output(self._run_id), record.to_dict(), sync=False)
            except StorageError:
                self._left = 0
