"""The append-only ledger of task events, and the index of end states built from it.

`tasks/YYYY-MM.jsonl` is the truth; `task_status.json` is a checkpoint of the index and its position
in the ledger, so finishing a task costs one appended line. The index is bounded: it has the newest
ends of each trigger, and of all other tasks.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeAlias, cast

from mimikit.errors import BadRecord, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import is_id
from mimikit.protocol.json import Json, dump_line
from mimikit.protocol.models import EndStatus, FailureReason, QueueName, time_text
from mimikit.protocol.results import StatusCheckpoint, StatusEntry

CHECKPOINT_EVENTS = 1000
CHECKPOINT_EVERY = timedelta(seconds=10)
MOST_RESULTS = 100
"""Ends that are indexed of each trigger."""
MOST_ENDS = 10_000
"""Ends that are indexed of tasks that no trigger made."""
MOST_TRACES = 10_000
"""Traces without a queued task that are counted: the newest."""
_MOST_SAVED = 64_000
"""Entries of a checkpoint: as many as one record may have."""
ENDED: frozenset[EndStatus] = frozenset({"done", "failed", "canceled"})
Line: TypeAlias = "dict[str, Json]"
_OF_TRIGGERS = frozenset({"slot", "ordered", "trigger_created", "trigger_removed", "trigger_ended"})
_SLOT_SCAN_BYTES = 2**18
"""How far back to scan for a slot that a crash left half done."""
_SCAN_BYTES = 4 * 2**20
"""How far back to scan for the slots of a trigger; twice as far for other ends and traces."""


class Ledger:
    """Appends events and indexes end states. Not thread-safe: for the supervisor's thread only."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._ends: dict[str, StatusEntry] = {}
        self._queued: dict[str, str] = {}
        """Task → trace, of tasks that a turn, plan or command queued and that have not ended."""
        self._sizes: dict[str, int] = {}
        """Trace → number of its tasks, without runs of triggers; the newest trace last."""
        self._originals: dict[str, str] = {}
        """Retry → the first task of its chain of retries."""
        self._ended_for: dict[str, deque[str]] = {}
        """Trigger or retried task → the newest tasks that ended for it; "" → all others."""
        self._running_for: dict[str, str] = {}
        """Trigger or retried task → its newest task, until it ends."""
        self._manual_runs: dict[str, str] = {}
        """Trigger → its newest run started by a command, among the lines read."""
        self._slots: dict[str, str] = {}
        """Trigger → its newest slot, among the lines read."""
        self._file = ""
        self._offset = 0
        self._since_checkpoint = 0
        self._checkpoint_at: datetime | None = None
        self._must_reread = False

    def load(self) -> int:
        """Read checkpoint and ledger; returns the schema version of the checkpoint."""
        checkpoint = self._files.load(paths.TASK_STATUS, StatusCheckpoint) or StatusCheckpoint()
        for entry in checkpoint.entries.values():
            self._index_end(entry)
        self._running_for, self._queued = dict(checkpoint.at_it), dict(checkpoint.queued)
        for trace, size in checkpoint.traces.items():
            self._count(trace, size)
        first, offset = checkpoint.ledger_file, checkpoint.ledger_offset
        unread = lines(self._files, first, offset)
        for name, offset, line in unread:
            self._file, self._offset = name, offset
            self._index_line(line)
            self._since_checkpoint += 1
        return checkpoint.schema_version

    def end_of(self, task_id: str) -> StatusEntry | None:
        """How a task ended; None: not yet, or unknown."""
        self._reread_last_line()
        return self._ends.get(task_id)

    def results_of(self, subject: str) -> list[str]:
        """The newest tasks that ended for a task (itself, its retries) or trigger, oldest first."""
        self._reread_last_line()
        own = [subject] if subject in self._ends else []
        return [*own, *self._ended_for.get(subject, ())]

    def running_for(self, subject: str) -> str | None:
        """The unfinished run of a trigger, or retry of a task."""
        return self._running_for.get(subject)

    def subjects_of(self, task_id: str) -> tuple[str, ...]:
        """Ids that stand for a task in conditions: its own, its trigger's, the retried task's."""
        end = self._ends.get(task_id)
        others = (end and end.source_trigger_id, self._originals.get(task_id))
        return (task_id, *filter(None, others))

    def newest_slot(self, trigger_id: str) -> str | None:
        """The newest slot of a trigger; None: no recent line has one."""
        self._reread_last_line()
        if trigger_id not in self._slots:
            # It may stand before the checkpoint, from where the lines were read.
            recent = _newest_first(self._files, _needle(trigger_id), _SLOT_SCAN_BYTES)
            mine = (n for n in recent if (n.get("event"), n.get("id")) == ("slot", trigger_id))
            self._slots[trigger_id] = next((str(line.get("slot")) for line in mine), "")
        return self._slots[trigger_id] or None

    def newest_order(self, trigger_id: str) -> str | None:
        self._reread_last_line()
        return self._manual_runs.get(trigger_id)

    def is_known(self, task_id: str) -> bool:
        return task_id in self._queued or self.end_of(task_id) is not None

    def trace_size(self, trace_id: str) -> int:
        """How many tasks of a trace were queued or have ended, without runs of triggers."""
        return self._sizes.get(trace_id, 0)

    def open_of(self, trace_id: str) -> list[str]:
        """Unfinished tasks of a trace, including plans that wait for an answer."""
        return [task_id for task_id, trace in self._queued.items() if trace == trace_id]

    def __len__(self) -> int:
        return len(self._ends)

    def write(self, event: str, task_id: str, now: datetime, **facts: object) -> None:
        """Append one event of a task, or of a trigger's slot.

        Crash: the whole line, or a torn one, which readers skip.
        """
        line: dict[str, object] = {
            key: time_text(value) if isinstance(value, datetime) else value
            for key, value in {"at": now, "event": event, "id": task_id, **facts}.items()
            if value is not None
        }
        self._reread_last_line()
        # The position only grows, even when the clock is set back.
        self._file = max(self._file, paths.ledger(now).rpartition("/")[2])
        try:
            self._offset = self._files.append(f"{paths.LEDGER}/{self._file}", line)
        except StorageError:
            self._must_reread = True
            raise
        self._index_line(line)
        self._since_checkpoint += 1
        if self._since_checkpoint >= max(CHECKPOINT_EVENTS, len(self._ends) // 10):
            with contextlib.suppress(BadRecord):  # too large for one file: the lines are enough
                self.checkpoint()

    def checkpoint(self) -> None:
        """Save the index and its position: the start of the last line, which is then read twice."""
        if not self._since_checkpoint:
            return
        checkpoint = StatusCheckpoint(
            ledger_file=self._file,
            ledger_offset=self._offset,
            entries=dict([*self._ends.items()][-_MOST_SAVED:]),
            at_it=self._running_for,
            queued=self._queued,
            traces=self._sizes,
        )
        self._files.save(paths.TASK_STATUS, checkpoint)
        self._since_checkpoint = 0

    def keep_up(self, now: datetime) -> bool:
        """Save the index from time to time, if it changed; returns False."""
        last = self._checkpoint_at
        # It takes longer with its size.
        every = max(CHECKPOINT_EVERY, timedelta(milliseconds=len(self._ends)))
        if self._since_checkpoint and (last is None or abs(now - last) >= every):
            self._checkpoint_at = now
            self.checkpoint()
        return False

    def _reread_last_line(self) -> None:
        """Index a line that is on disk although its append failed (only the flush did)."""
        if self._must_reread:
            for _, _, line in lines(self._files, self._file, self._offset):
                self._index_line(line)
            self._must_reread = False

    def _index_line(self, line: Mapping[str, object]) -> None:
        match line.get("event"):
            case "queued":
                task_id, trace = str(line.get("id")), str(line.get("traceId"))
                if task_id not in self._queued and task_id not in self._ends:  # no line read again
                    self._count(trace, 1)
                self._queued[task_id] = trace
                if isinstance(original := line.get("retryOf"), str):
                    self._mark_running(self._originals.get(original, original), line.get("id"))
            case "ordered":
                self._manual_runs[str(line.get("id"))] = str(line.get("taskId"))
                self._mark_running(str(line.get("id")), line.get("taskId"))
            case "slot":
                self._slots[str(line.get("id"))] = str(line.get("slot"))
                self._mark_running(str(line.get("id")), line.get("taskId"))
            case "ended":
                counted = self._queued.pop(str(line.get("id")), None) is not None
                if entry := _entry(line):
                    if entry.id not in self._ends:
                        self._count(entry.trace_id, (entry.source_trigger_id is None) - counted)
                    self._index_end(entry)
            case _:
                pass

    def _count(self, trace: str, more: int) -> None:
        size = self._sizes.pop(trace, 0) + more
        if size > 0:
            self._sizes[trace] = size
        if len(self._sizes) > len(self._queued) + 2 * MOST_TRACES:
            live = set(self._queued.values())
            for old in list(self._sizes)[:-MOST_TRACES]:
                if old not in live:
                    del self._sizes[old]

    def _mark_running(self, subject: str, task_id: object) -> None:
        if isinstance(task_id, str) and task_id not in self._ends:
            self._running_for[subject] = task_id

    def _index_end(self, entry: StatusEntry) -> None:
        task_id = entry.id
        is_new = task_id not in self._ends
        if entry.retry_of is not None:
            original = self._originals.get(entry.retry_of, entry.retry_of)
            self._originals[task_id] = original
            entry = replace(entry, retry_of=original)
        self._ends[task_id] = entry
        for subject in self.subjects_of(task_id)[1:] or ("",):
            ended = self._ended_for.setdefault(subject, deque())
            if is_new:
                ended.append(task_id)
            if len(ended) > (MOST_RESULTS if subject else MOST_ENDS):
                self._forget(ended.popleft())
            if self._running_for.get(subject) == task_id:
                del self._running_for[subject]

    def _forget(self, task_id: str) -> None:
        """Drop an end from the index, unless another subject refers to it."""
        if not any(task_id in self._ended_for[s] for s in self.subjects_of(task_id)[1:]):
            self._ends.pop(task_id, None)
            self._originals.pop(task_id, None)


def lines(
    files: Files, from_file: str = "", from_offset: int = 0
) -> Iterator[tuple[str, int, Line]]:
    """Lines in order, each with its file's name and its end offset."""
    for name in files.names(paths.LEDGER, suffix=".jsonl"):
        if name < from_file:
            continue
        start = from_offset if name == from_file else 0
        for offset, line in files.lines(f"{paths.LEDGER}/{name}", offset=start):
            yield name, offset, line


def end(files: Files) -> tuple[str, int]:
    name = next(reversed(files.names(paths.LEDGER, suffix=".jsonl")), "")
    stat = files.stat(f"{paths.LEDGER}/{name}") if name else None
    return name, stat.size if stat else 0


def ended_ids(files: Files, limit: int, states: Iterable[str] = ENDED) -> list[str]:
    """Ids of the tasks that ended in one of these states, newest first."""
    wanted = frozenset(states)
    found: dict[str, None] = {}
    for line in _newest_first(files, b'"ended"', 2 * _SCAN_BYTES):
        if len(found) >= limit:
            break
        if line.get("event") == "ended" and line.get("status") in wanted:
            found[str(line.get("id"))] = None
    return list(found)


def trace_ids(files: Files, trace_id: str) -> Iterator[str]:
    """Ids of the tasks of a trace, newest line first, with repeats."""
    for line in _newest_first(files, trace_id.encode(), 2 * _SCAN_BYTES):
        id_ = str(line.get("id"))
        if line.get("traceId") == trace_id and is_id(id_):
            yield id_


def lines_since(files: Files, since: datetime, holding: bytes) -> Iterator[Line]:
    """The lines from an instant on that contain `holding`, newest first."""
    newest = _newest_first(files, holding, 2 * _SCAN_BYTES)
    return takewhile(lambda line: str(line.get("at")) >= time_text(since), newest)


def runs_of(files: Files, trigger_id: str) -> Iterator[Line]:
    """The lines of the ended runs of a trigger, newest first."""
    for line in _newest_first(files, trigger_id.encode(), sys.maxsize):
        if line.get("event") == "ended" and line.get("sourceTriggerId") == trigger_id:
            yield line


def trigger_ids(files: Files) -> Iterator[str]:
    """Ids of triggers that fired, were created or removed, newest first, with repeats."""
    for line in _newest_first(files, b'"event"', 2 * _SCAN_BYTES):
        if line.get("event") in _OF_TRIGGERS:
            yield str(line.get("id"))


def slots_of(files: Files, trigger_id: str, limit: int) -> list[Line]:
    """The lines about one trigger since its last `limit` slots, oldest first, without repeats."""
    found: list[Line] = []
    slots = 0
    for line in _newest_first(files, _needle(trigger_id), _SCAN_BYTES):
        if slots >= limit:
            break
        is_slot = line.get("event") in ("slot", "ordered")
        if line.get("id") == trigger_id and not (is_slot and found and _is_same(line, found[-1])):
            found.append(line)
            slots += is_slot
    return found[::-1]


def _is_same(line: Line, other: Line) -> bool:
    """Whether both are the line of one slot, which a crash had written twice."""
    return all(line.get(key) == other.get(key) for key in ("event", "slot", "state", "taskId"))


def _needle(id_: str) -> bytes:
    return dump_line({"id": id_})[1:-2]


def events_of(files: Files, id_: str, *, since: datetime | None = None) -> list[Line]:
    """The lines about one task or trigger, oldest first, from the month of `since` on."""
    first = paths.ledger(since).rpartition("/")[2] if since else ""
    newest = _newest_first(files, id_.encode(), sys.maxsize, first)
    return [line for line in newest if line.get("id") == id_][::-1]


def _newest_first(
    files: Files, needle: bytes, max_bytes: int, first_file: str = ""
) -> Iterator[Line]:
    """The lines that contain `needle`, newest first, back to `first_file`."""
    names = files.names(paths.LEDGER, suffix=".jsonl")
    for name in reversed([name for name in names if name >= first_file]):
        path = f"{paths.LEDGER}/{name}"
        stat = files.stat(path)
        for _, line in files.lines_back(path, holding=needle, max_bytes=max_bytes):
            yield line
        max_bytes -= stat.size if stat else 0


def _entry(line: Mapping[str, object]) -> StatusEntry | None:
    """The end state in a line; None: it is not valid."""
    try:
        return StatusEntry(
            id=str(line["id"]),
            status=cast("EndStatus", line["status"]),
            completed_at=datetime.fromisoformat(str(line["at"])),
            result_id=str(line["id"]),
            source_trigger_id=cast("str | None", line.get("sourceTriggerId")),
            failure_reason=cast("FailureReason | None", line.get("failureReason")),
            trace_id=str(line.get("traceId") or line["id"]),
            seat=cast("QueueName", line.get("seat") or "worker"),
            retry_of=cast("str | None", line.get("retryOf")),
        )
    except (KeyError, ValueError, TypeError):
        return None
