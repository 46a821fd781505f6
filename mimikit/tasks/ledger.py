"""The ledger of every task event, and the index of how tasks ended that is read from it.

`tasks/YYYY-MM.jsonl` is the truth; `task_status.json` is a checkpoint with its position in it, so
that finishing a task costs one appended line, however many there were before.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import (
    EndStatus,
    FailureReason,
    Seat,
    StatusCheckpoint,
    StatusEntry,
    time_text,
    to_utc,
)

CHECKPOINT_EVENTS = 1000
_TAIL_BYTES = 64 * 1024


class End(NamedTuple):
    """How a task ended."""

    status: EndStatus
    completed_at: datetime
    failure_reason: FailureReason | None
    source_trigger_id: str | None
    trace_id: str
    seat: Seat


class Ledger:
    """Appends events and knows every end. The supervisor's alone."""

    def __init__(self, files: Files) -> None:
        """Nothing is read before `load`."""
        self._files = files
        self._ends: dict[str, End] = {}
        self._queued: dict[str, str] = {}
        """Trace of each task that was queued and has not ended, as far as the lines read tell."""
        self._file = ""
        self._offset = 0
        self._since_checkpoint = 0
        self._in_doubt = False

    def load(self) -> None:
        """Read the checkpoint and the lines after it."""
        checkpoint = self._files.load(paths.TASK_STATUS, StatusCheckpoint) or StatusCheckpoint()
        self._ends = {key: _end(entry) for key, entry in checkpoint.entries.items()}
        for name, offset, line in lines(
            self._files, checkpoint.ledger_file, checkpoint.ledger_offset
        ):
            self._file, self._offset = name, offset
            self._learn(line)
            self._since_checkpoint += 1

    def end_of(self, task_id: str) -> End | None:
        """How a task ended; None while it has not, or is unknown."""
        self._catch_up()
        return self._ends.get(task_id)

    def trace_size(self, trace_id: str) -> int:
        """How many tasks of a trace were queued or have ended, runs of triggers apart."""
        ended = {
            task_id
            for task_id, end in list(self._ends.items())
            if end.trace_id == trace_id and not end.source_trigger_id
        }
        queued = {task_id for task_id, trace in list(self._queued.items()) if trace == trace_id}
        return len(ended | queued)

    def __len__(self) -> int:
        """How many ends are known."""
        return len(self._ends)

    def write(self, event: str, task_id: str, now: datetime, **facts: object) -> None:
        """One event of a task or a trigger's slot.

        Crash: the whole line or a torn one, which counts as none.
        """
        line: dict[str, Any] = {"at": time_text(now), "event": event, "id": task_id}
        line |= {
            key: time_text(value) if isinstance(value, datetime) else value
            for key, value in facts.items()
            if value is not None
        }
        self._catch_up()
        # A clock that went back goes on in the newest file: the position only ever grows.
        self._file = max(self._file, paths.ledger(now).rpartition("/")[2])
        try:
            self._offset = self._files.append(f"{paths.LEDGER}/{self._file}", line)
        except StorageError:
            self._in_doubt = True
            raise
        self._learn(line)
        self._since_checkpoint += 1
        if self._since_checkpoint >= max(CHECKPOINT_EVENTS, len(self._ends) // 10):
            self.checkpoint()

    def checkpoint(self) -> None:
        """Save the index with the position it stands for.

        The position is the start of the last line written: reading that line again is harmless.
        """
        if not self._since_checkpoint:
            return
        entries = {
            task_id: StatusEntry(
                id=task_id,
                status=end.status,
                completed_at=end.completed_at,
                result_id=task_id,
                source_trigger_id=end.source_trigger_id,
                failure_reason=end.failure_reason,
                trace_id=end.trace_id,
                seat=end.seat,
            )
            for task_id, end in self._ends.items()
        }
        self._files.save(
            paths.TASK_STATUS,
            StatusCheckpoint(ledger_file=self._file, ledger_offset=self._offset, entries=entries),
        )
        self._since_checkpoint = 0

    def _catch_up(self) -> None:
        """Look whether a line whose writing failed is there after all (only its flush failed)."""
        if self._in_doubt:
            for _, _, line in lines(self._files, self._file, self._offset):
                self._learn(line)
            self._in_doubt = False

    def _learn(self, line: dict[str, Any]) -> None:
        if line.get("event") == "queued":
            self._queued[str(line.get("id"))] = str(line.get("traceId"))
        if line.get("event") != "ended":
            return
        self._queued.pop(str(line.get("id")), None)
        try:
            self._ends[line["id"]] = End(
                line["status"],
                to_utc(datetime.fromisoformat(line["at"])),
                line.get("failureReason"),
                line.get("sourceTriggerId"),
                line.get("traceId") or line["id"],
                line.get("seat") or "worker",
            )
        except (KeyError, ValueError, TypeError):
            return


def lines(
    files: Files, from_file: str = "", from_offset: int = 0
) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Ledger lines in order: file name, end offset, line."""
    for name in files.names(paths.LEDGER, suffix=".jsonl"):
        if name < from_file:
            continue
        start = from_offset if name == from_file else 0
        for offset, line in files.lines(f"{paths.LEDGER}/{name}", offset=start):
            yield name, offset, line


def last_ended(files: Files, limit: int) -> list[str]:
    """Ids of the tasks that ended last, newest first; reads little more of the ledger than that."""
    found: dict[str, None] = {}
    for name in reversed(files.names(paths.LEDGER, suffix=".jsonl")):
        path = f"{paths.LEDGER}/{name}"
        stat = files.stat(path)
        size, tail = (stat.size if stat else 0), _TAIL_BYTES
        before = dict(found)
        while len(found) < limit:
            # A tail may begin inside a line, which is then no line; a longer one has it whole.
            lines_ = [line for _, line in files.lines(path, offset=max(0, size - tail))]
            ends = [str(line.get("id")) for line in lines_ if line.get("event") == "ended"]
            found = {**before, **dict.fromkeys(reversed(ends))}
            if tail >= size:
                break
            tail *= 4
        if len(found) >= limit:
            break
    return list(found)[:limit]


def events_of(files: Files, task_id: str) -> list[dict[str, Any]]:
    """Every ledger line about one task, oldest first."""
    return [line for _, _, line in lines(files) if line.get("id") == task_id]


def _end(entry: StatusEntry) -> End:
    return End(
        entry.status,
        entry.completed_at,
        entry.failure_reason,
        entry.source_trigger_id,
        entry.trace_id,
        entry.seat,
    )
