"""The runs that make summaries of memory: whether one can be had, and how it is asked for.

They are internal: nobody is told of them. What comes of one is taken in by `archiving`.
"""

from __future__ import annotations

from datetime import datetime

from mimikit.memory import archive, notes
from mimikit.memory.archive import Piece
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Covers, Task
from mimikit.roles.run import Office
from mimikit.supervisor.books import Books
from mimikit.tasks import queue

PROFILE = "standard"
PRIORITY = 2
"""Below what a user asks for."""
TIMEOUT_S = 900.0
_TEMPLATES = {"day": "daily-summary", "month": "monthly-summary"}


class Summaries:
    """Asks the office's Worker for summaries."""

    def __init__(self, books: Books, office: Office) -> None:
        """Nothing is asked before `ask`."""
        self._books, self._office = books, office

    def available(self) -> bool:
        """Whether somebody is there; while a model is down, what needs it waits unmarked."""
        return self._office.rack.for_role("worker", PROFILE).waiting is None

    def ask(
        self,
        task_id: str,
        kind: archive.Kind,
        name: str,
        pieces: list[Piece],
        attempt: int,
        now: datetime,
    ) -> None:
        """Queue the run that summarises these pieces, once."""
        template = _TEMPLATES[kind]
        values = {"period": name, "messages": archive.fenced(pieces)}
        task = Task(
            id=task_id,
            profile=PROFILE,
            title=f"Summary of {name}",
            prompt=self._office.prompts.fill(template, values),
            priority=PRIORITY,
            created_at=now,
            trace_id=derived_id("trace", task_id),
            timeout=TIMEOUT_S,
            internal=True,
            notify="none",
            origin="supervisor",
            covers=Covers(
                kind="month" if kind == "month" else "day",
                name=name,
                sources=list(dict.fromkeys(piece.source for piece in pieces)),
                attempt=attempt,
            ),
        )
        queue.submit(self._books.files, task)
        self._books.feed.tell("task", id=task_id, seat="worker")

    def is_alive(self, task_id: str) -> bool:
        """Whether a run waits or goes on; one that has ended was taken in."""
        return queue.where(self._books.files, "worker", task_id) in ("queued", "running")

    def text(self, path: str) -> str:
        """A file of memory; empty when there is none."""
        note = notes.read(self._books.files, path)
        return note.text if note else ""
