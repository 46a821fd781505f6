"""The commit record of a turn: attempts, committed turns, applied turns.

Turns are applied by `supervisor/commit_applier.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import TurnRecord
from mimikit.protocol.runtime import TurnAttempt

MAX_ATTEMPTS = 2


def turn_id(input_ids: list[str]) -> str:
    """The id of a turn, derived from its inputs."""
    return derived_id("turn", *sorted(input_ids))


def start(files: Files, id_: str, attempt: int, inputs: list[str], now: datetime) -> TurnAttempt:
    """Record that an attempt begins, before its engine does.

    Crash: the mark stays, so that a poison input is not retried forever.
    """
    mark = TurnAttempt.own(now, turn_id=id_, attempt=attempt, inputs=inputs)
    files.save_new(paths.turn_started(id_, attempt), mark)
    return mark


def forget_attempt(files: Files, mark: TurnAttempt) -> None:
    """Remove the mark of an attempt that did not start (engine unavailable or rate-limited)."""
    files.remove(paths.turn_started(mark.turn_id, mark.attempt))


def excuse_attempt(files: Files, mark: TurnAttempt) -> None:
    """Mark an attempt interrupted by a stop: its number is used, but does not count."""
    files.save(paths.turn_started(mark.turn_id, mark.attempt), mark.but(stopped=True))


class OpenTurn(NamedTuple):
    id: str
    inputs: list[str]
    attempts: int
    excused: int = 0
    """Attempts that do not count."""


def open_turns(files: Files) -> list[OpenTurn]:
    """Uncommitted turns, oldest first; marks of committed ones are removed."""
    marks = files.load_all(paths.TURNS, TurnAttempt, files.names(paths.TURNS, suffix=".started"))
    by_turn: dict[str, list[TurnAttempt]] = {}
    for mark in sorted(marks, key=lambda m: m.started_at):
        by_turn.setdefault(mark.turn_id, []).append(mark)
    found: list[OpenTurn] = []
    for id_, group in by_turn.items():
        if is_committed(files, id_):
            drop_marks(files, id_)
        else:
            made, excused = max(m.attempt for m in group), sum(m.stopped for m in group)
            found.append(OpenTurn(id_, group[0].inputs, made, excused))
    return found


def commit(files: Files, record: TurnRecord) -> bool:
    """Write the record of a turn, once; False: it is committed already."""
    is_applied = files.exists(paths.turn_done(record.id))
    return not is_applied and files.save_new(paths.turn_new(record.id), record)


def is_committed(files: Files, id_: str) -> bool:
    return files.exists(paths.turn_new(id_)) or files.exists(paths.turn_done(id_))


def unapplied(files: Files) -> list[TurnRecord]:
    """Committed turns not yet applied, in the order they were completed."""
    records = files.load_all(paths.TURNS_NEW, TurnRecord)
    return sorted(records, key=lambda r: (r.completed_at, r.id))


def mark_applied(files: Files, id_: str) -> None:
    files.move(paths.turn_new(id_), paths.turn_done(id_))
    drop_marks(files, id_)


def drop_marks(files: Files, id_: str) -> None:
    for name in files.names(paths.TURNS, suffix=".started"):
        if name.removesuffix(".started").rpartition(".")[0] == id_:
            files.remove(f"{paths.TURNS}/{name}")
