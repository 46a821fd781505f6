"""Summaries of memory: the runs that make them, and when memory ages into them.

Old days become daily summaries, old daily summaries monthly ones; what they were made from stays.
Which file is how old is decided in `memory.archive`; what a summary has already stands in the
summary itself, so that nothing is kept here but hints. The runs are internal: nobody is told of
them. What comes of one is taken in by `archiver`.
"""

from __future__ import annotations

import threading
from collections import deque
from datetime import date, datetime, timedelta

from mimikit.errors import StorageError, UnsafeFile
from mimikit.memory import archive, markdown, notes
from mimikit.memory.archive import SummaryInput, SummaryTarget
from mimikit.protocol import paths
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import SummaryScope, Task, TaskResult
from mimikit.roles.run import RunContext
from mimikit.supervisor.store import Store
from mimikit.tasks import queue

PROFILE = "standard"
PRIORITY = 2
"""Below what a user asks for."""
TIMEOUT_S = 900.0
_TEMPLATES = {"day": "daily-summary", "month": "monthly-summary"}
LIVE_RUNS = 10
"""So many runs that let memory age are under way at once."""
SETTLED_AT_ONCE = 50
"""So many summaries that lack nothing are passed over at one step."""
_MOST_ATTEMPTS = 1000


class SummaryRuns:
    """Asks the context's Worker for summaries."""

    def __init__(self, store: Store, context: RunContext) -> None:
        self._store, self._context = store, context

    def available(self) -> bool:
        """Whether somebody is there; while a model is down, what needs it waits unmarked."""
        return self._context.engines.for_role("worker", PROFILE).waiting is None

    def ask(
        self,
        task_id: str,
        kind: archive.Kind,
        name: str,
        pieces: list[SummaryInput],
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
            prompt=self._context.prompts.fill(template, values),
            priority=PRIORITY,
            created_at=now,
            trace_id=derived_id("trace", task_id),
            timeout=TIMEOUT_S,
            internal=True,
            notify="none",
            origin="supervisor",
            covers=SummaryScope(
                kind="month" if kind == "month" else "day",
                name=name,
                sources=list(dict.fromkeys(piece.source for piece in pieces)),
                attempt=attempt,
            ),
        )
        queue.submit(self._store.files, task)
        self._store.feed.tell("task", id=task_id, seat="worker")

    def is_alive(self, task_id: str) -> bool:
        """Whether a run waits or goes on; one that has ended was taken in."""
        return queue.where(self._store.files, "worker", task_id) in ("queued", "running")

    def text(self, path: str) -> str:
        """A file of memory; empty when there is none."""
        note = notes.read(self._store.files, path)
        return note.text if note else ""


class SummaryScheduler:
    """Looks through memory when rung and from time to time, and asks for what is lacking."""

    def __init__(self, store: Store, summaries: SummaryRuns, *, every: timedelta) -> None:
        self._store, self._summaries, self._every = store, summaries, every
        self._rung = threading.Event()
        self._rung.set()
        self._targets: deque[SummaryTarget] = deque()
        self._look_at: datetime | None = None
        """When memory is looked through again for what has become old; None: when rung."""
        self._rolling: set[str] = set()
        """Runs that were asked for and have not ended, as far as they were met."""
        self._settled: dict[tuple[str, str], tuple[object, ...]] = {}
        """Summaries that have all they are to have, with the state of their files."""

    def ring(self) -> None:
        """Something may have become old; any thread may say so."""
        self._rung.set()

    def ended(self, task_id: str) -> None:
        """A run of a summary has ended: there may be more, for which there was no room."""
        self._rolling.discard(task_id)
        self._rung.set()

    def step(self, now: datetime) -> bool:
        """Have what has become old summed up, one summary at a look."""
        if not self._targets and not self._is_time_to_look(now):
            return False
        if not self._targets:
            return self._look(now)
        for _ in range(SETTLED_AT_ONCE):
            if self._targets and self._is_settled(self._targets[0]):
                self._targets.popleft()
        if self._targets:
            self._tend(self._targets[0], now)
            self._targets.popleft()
        return True

    def _look(self, now: datetime) -> bool:
        """See which files are old by now."""
        self._rung.clear()
        if not self._summaries.available():
            self._look_at = now + archive.BACK_OFF[0]
            return False
        self._look_at = now + self._every
        files, zone = self._store.files, self._store.settings.zone
        try:
            self._rolling = {
                task_id for task_id in self._rolling if self._summaries.is_alive(task_id)
            }
            raw = files.names(paths.MEMORY_FOLDER, suffix=".md")
            daily = files.names(paths.SUMMARIES, suffix=".md")
        except StorageError:
            self._rung.set()  # as soon as the disk is back
            raise
        self._targets.extend(archive.targets(raw, daily, now.astimezone(zone).date()))
        return bool(self._targets)

    def _is_time_to_look(self, now: datetime) -> bool:
        look = self._look_at
        # Further away than ever set: the clock was set back since.
        return self._rung.is_set() or look is None or not now < look <= now + self._every

    def _is_settled(self, target: SummaryTarget) -> bool:
        return self._settled.get((target.kind, target.name)) == self._state_of(target)

    def _tend(self, target: SummaryTarget, now: datetime) -> None:
        """Queue the runs that one summary still lacks; a file that can not be read is left."""
        state = self._state_of(target)
        try:
            pieces = self._lacking(target)
        except UnsafeFile as error:
            self._store.log.write("audit", "archive_failed", summary=target.name, error=str(error))
            pieces = []
        for pack in archive.packed(pieces):
            self._ask(target, pack, now)
        if not pieces:
            self._settled[(target.kind, target.name)] = state

    def _ask(self, target: SummaryTarget, pack: list[SummaryInput], now: datetime) -> None:
        """Queue the run for a pack, unless one goes on, or has failed a short while ago."""
        files = self._store.files
        sources = [piece.source for piece in pack]
        for attempt in range(_MOST_ATTEMPTS):
            task_id = archive.summary_task_id(target.kind, target.name, sources, attempt)
            where = queue.where(files, "worker", task_id)
            if where is None and len(self._rolling) < LIVE_RUNS:
                self._summaries.ask(task_id, target.kind, target.name, pack, attempt, now)
                self._rolling.add(task_id)
            elif where in ("queued", "running"):
                self._rolling.add(task_id)
            if where != "ended":
                return
            result = files.load(paths.result("worker", task_id), TaskResult)
            if result is not None:
                again_at = result.completed_at + archive.delay_after(attempt + 1)
                if now < again_at <= now + archive.BACK_OFF[-1]:
                    self._look_at = min(self._look_at or again_at, again_at)
                    return

    def _state_of(self, target: SummaryTarget) -> tuple[object, ...]:
        """What would be another if one of its files had changed."""
        files = self._store.files
        names = [*map(paths.memory_file, target.raw), paths.summary(target.name)]
        names += [f"{paths.SUMMARIES}/{name}" for name in target.daily]
        stats = [(name, files.stat(name)) for name in names]
        return tuple((name, stat and (stat.mtime_ns, stat.size)) for name, stat in stats)

    def _lacking(self, target: SummaryTarget) -> list[SummaryInput]:
        """What the files of a target hold that no summary has yet."""
        zone = self._store.settings.zone
        have = markdown.covered(self._summaries.text(paths.summary(target.name)))
        pieces: list[SummaryInput] = []
        for name in target.raw:
            day, path = _day(name), paths.memory_file(name)
            known = have | markdown.covered(self._summaries.text(paths.summary(f"{day}")))
            found = archive.pieces_of_raw(path, day, self._summaries.text(path), zone)
            pieces += [piece for piece in found if piece.source not in known]
        for name in target.daily:
            path = f"{paths.SUMMARIES}/{name}"
            found = archive.pieces_of_summary(path, _day(name), self._summaries.text(path))
            pieces += [piece for piece in found if piece.source not in have]
        return pieces


def _day(name: str) -> date:
    day = markdown.date_of(name)
    if day is None:
        raise ValueError(f"expected a name that begins with a day, got {name!r}")
    return day
