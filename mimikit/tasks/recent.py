"""The runs that ended in the last hours, read from the ledger's end and kept up with its lines."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import to_utc
from mimikit.tasks import ledger
from mimikit.tasks.ledger import Line

KEPT = timedelta(hours=48)
MOST_RUNS = 10_000
"""So many are held; of a machine that does more in two days the newest."""
_LOOK_BACK_BYTES = 8 * 2**20
_EVENT = b'"event"'


class EndedRun(NamedTuple):
    """A task that has ended, as its line of the ledger tells; times that no line tells are None."""

    id: str
    seat: str
    status: str
    failure_reason: str | None
    title: str
    trace_id: str
    trigger_id: str | None
    """The trigger whose firing it is; a step of a chain is none."""
    internal: bool
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime


class RecentLedger(NamedTuple):
    runs: list[EndedRun]
    """Oldest end first."""
    retried: frozenset[str]
    """Tasks that were tried again."""
    is_whole: bool
    """Whether the runs are all there are of the time."""


class RecentRuns:
    """Reads each line once. Thread-safe."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._file, self._offset = "", 0
        """What was read ends here."""
        self._runs: dict[str, EndedRun] = {}
        self._retried: dict[str, datetime] = {}
        """By the task that was tried again: when that was."""

    def look(self, now: datetime, span: timedelta) -> RecentLedger:
        """What there is of the `span` before `now`, which is at most KEPT."""
        with self._lock:
            self._read(now - KEPT)
            runs = [run for run in self._runs.values() if run.ended_at >= now - span]
            runs.sort(key=lambda run: run.ended_at)
            return RecentLedger(runs, frozenset(self._retried), len(self._runs) < MOST_RUNS)

    def _read(self, oldest: datetime) -> None:
        stat = self._files.stat(f"{paths.LEDGER}/{self._file}") if self._file else None
        if stat is None or stat.size < self._offset:  # nothing read yet, or of another folder
            self._begin(oldest)
        for name, offset, line in ledger.lines(self._files, self._file, self._offset):
            self._file, self._offset = name, offset
            self._learn(line)
        for id_, run in list(self._runs.items()):
            if len(self._runs) <= MOST_RUNS and run.ended_at >= oldest:
                break
            del self._runs[id_]
        self._retried = {id_: at for id_, at in self._retried.items() if at >= oldest}

    def _begin(self, oldest: datetime) -> None:
        """Read the lines from the end back; those that come meanwhile are read after it."""
        self._runs, self._retried = {}, {}
        names = self._files.names(paths.LEDGER, suffix=".jsonl")
        self._file = names[-1] if names else ""
        stat = self._files.stat(f"{paths.LEDGER}/{self._file}") if self._file else None
        self._offset = stat.size if stat else 0
        found: list[Line] = []
        for line in ledger.newest_first(self._files, _EVENT, _LOOK_BACK_BYTES):
            is_end, at = line.get("event") == "ended", _time(line, "at")
            if len(found) >= MOST_RUNS or (is_end and at is not None and at < oldest):
                break
            if is_end or "retryOf" in line:
                found.append(line)
        for line in reversed(found):
            self._learn(line)

    def _learn(self, line: Line) -> None:
        at, original = _time(line, "at"), line.get("retryOf")
        if at is None:
            return
        if isinstance(original, str):
            self._retried[original] = at
        if line.get("event") != "ended":
            return
        id_, is_firing = _text(line, "id"), line.get("firing") is not False
        self._runs.pop(id_, None)  # a line that a crash had written twice
        self._runs[id_] = EndedRun(
            id=id_,
            seat=_text(line, "seat"),
            status=_text(line, "status"),
            failure_reason=_text(line, "failureReason") or None,
            title=_text(line, "title"),
            trace_id=_text(line, "traceId") or id_,
            trigger_id=_text(line, "sourceTriggerId") or None if is_firing else None,
            internal=line.get("internal") is True,
            created_at=_time(line, "createdAt"),
            started_at=_time(line, "startedAt"),
            ended_at=at,
        )


def _text(line: Mapping[str, object], key: str) -> str:
    value = line.get(key)
    return value if isinstance(value, str) else ""


def _time(line: Mapping[str, object], key: str) -> datetime | None:
    """None where there is none, or hands and disks damaged it."""
    try:
        return to_utc(datetime.fromisoformat(_text(line, key)))
    except (ValueError, OverflowError):
        return None
