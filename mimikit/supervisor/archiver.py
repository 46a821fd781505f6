"""Moves the conversation into memory, and rolls memory up: decided in `memory.archive`, done here.

A message is marked as archived only once it is in a file of memory. Young days are written by code,
in batches; older ones are summarised by internal runs. The originals stay.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import threading
from collections import Counter, deque
from collections.abc import Generator, Sequence
from datetime import date, datetime, timedelta

from mimikit.errors import StorageError, UnsafeFile
from mimikit.memory import archive, markdown, notes
from mimikit.memory.archive import ArchiveRules, Kind, MessageGroup, SummaryInput, SummaryTarget
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Message, SummaryScope, Task
from mimikit.protocol.records import MAX_RECORD_BYTES
from mimikit.protocol.results import TaskResult
from mimikit.roles.run import RunContext
from mimikit.supervisor.store import Store
from mimikit.tasks import queue

SUMMARY_CHARACTERS = 20_000
PROFILE = "standard"
MAX_LIVE_RUNS = 10
"""Summary runs of aging files at a time."""
UP_TO_DATE_PER_STEP = 50
"""Summaries that lack nothing and are skipped in one step."""
_MAX_ATTEMPTS = 1000


class Archiver:
    """Archives what is due, flushes what is blocked, then has memory rolled up."""

    def __init__(
        self, store: Store, context: RunContext, rules: ArchiveRules = archive.RULES
    ) -> None:
        self._store, self._rules = store, rules
        self.summaries = SummaryScheduler(store, context, every=rules.every)
        self._groups: list[MessageGroup] = []
        """Of the current pass, or the last one."""
        self._todo: deque[MessageGroup] = deque()
        self._is_flush = False
        """Of the pass: its groups go to the file of their day, whatever their age."""
        self._is_over = False
        self._known: dict[str, tuple[FileStat, frozenset[str]]] = {}
        """The raw files of the day that was written last: their stats and message ids."""

    def recover(self, now: datetime) -> None:
        """Return what a crash left pending, unless a live or ended run covers it."""
        conversation = self._store.conversation
        tasks = [m.archive_task for m in conversation.messages if m.archived == "pending"]
        for task_id in filter(None, dict.fromkeys(tasks)):
            self._settle(task_id, now)
        lost = [
            message
            for message in conversation.messages
            if message.archived == "pending"
            and not (message.archive_task and self.summaries.is_live(message.archive_task))
        ]
        self._change(lost, archived=False, archive_task=None)

    def step(self, now: datetime) -> bool:
        if self._todo:
            self._apply_next(now)
            return True
        store, rules = self._store, self._rules
        trimmed = store.conversation.trim()
        groups = self._plan(now)
        self._is_flush = not groups
        if not groups:
            messages, last = store.conversation.messages, store.runtime.last_flush_at
            groups = archive.plan_flush(messages, now, store.settings.zone, last, rules=rules)
        self._groups, self._todo = groups, deque(groups)
        return bool(groups) or self.summaries.step(now) or trimmed

    # ---- a pass --------------------------------------------------------------------------

    def _plan(self, now: datetime) -> list[MessageGroup]:
        """What is due, in groups; its messages are marked as pending."""
        store, rules = self._store, self._rules
        messages, last = store.conversation.messages, store.runtime.last_archive_at
        is_over = store.conversation.is_over()
        if is_over and not self._is_over:
            store.log.write("error", "history_overflow", messages=len(messages))
        self._is_over = is_over
        forced = is_over or len(messages) > store.conversation.caps.soft
        if not forced and not archive.is_due(messages, now, last, rules=rules):
            return []
        zone, available = store.settings.zone, self.summaries.is_available()
        groups = archive.plan_archive(
            messages, now, zone, last, rules=rules, forced=forced, summaries=available
        )
        changes: dict[str, dict[str, object]] = {}
        for group in groups:
            task_id = None if group.kind == "raw" else _task_id(group)
            mark: dict[str, object] = {"archived": "pending", "archive_task": task_id}
            changes |= dict.fromkeys((m.id for m in group.messages), mark)
        store.conversation.change(changes)
        return groups

    def _apply_next(self, now: datetime) -> None:
        """Write the next group, or have it summarised. A failure costs only this group.

        Crash: `recover` returns what is pending and covered by no run; what was written already is
        found by its ids.
        """
        group = self._todo[0]
        try:
            if group.kind == "raw":
                self._write_raw(group)
            else:
                self._summarise(group, now)
        except (UnsafeFile, ValueError) as error:
            self._failed(group.messages, now, str(error))
        if len(self._todo) == 1:
            self._finish_pass(now)
        self._todo.popleft()

    def _finish_pass(self, now: datetime) -> None:
        counts = Counter({"raw": 0, "day": 0, "month": 0})
        for group in self._groups:
            counts[group.kind] += len(group.messages)
        if self._is_flush:
            self._store.save_runtime(last_flush_at=now)
            self._store.log.write("audit", "flush", messages=counts.total())
        else:
            self._store.save_runtime(last_archive_at=now)
            self._store.log.write("audit", "archive", **counts)
            self.summaries.ring()  # memory is rolled up by the same pass

    # ---- raw files -----------------------------------------------------------------------

    def _write_raw(self, group: MessageGroup) -> None:
        """Write messages of one day as they are, then mark them.

        Crash: what is in a file of the day already is found by its id, and only marked.
        """
        files, zone = self._store.files, self._store.settings.zone
        day = date.fromisoformat(group.name)
        sizes, written = self._raw_files(day)
        missing = [message for message in group.messages if message.id not in written]
        if missing:
            path = paths.memory_file(markdown.raw_name(day, missing, sizes, flush=self._is_flush))
            # A link or folder of that name is not ours: the next free name.
            while (stat := files.stat(path)) is not None and stat.kind != "file":
                sizes[path.rpartition("/")[2]] = -1
                path = paths.memory_file(markdown.raw_name(day, missing, sizes))
            notes.amend(files, path, lambda text: markdown.extended(text, day, missing, zone))
            self._store.feed.tell("memory", path=path)
        self._mark(group.messages)

    def _raw_files(self, day: date) -> tuple[dict[str, int], frozenset[str]]:
        """The raw files of a day by size (-1: not ours to extend), and the message ids in them."""
        files, before = self._store.files, self._known
        self._known = {}
        sizes: dict[str, int] = {}
        for name in files.names(paths.MEMORY_FOLDER, suffix=".md"):
            path = paths.memory_file(name)
            stat = files.stat(path) if name.startswith(day.isoformat()) else None
            if stat is None:
                continue
            known = before.get(name)
            if known is None or known[0] != stat:
                known = stat, self._ids_in(path)
            self._known[name] = known
            sizes[name] = stat.size if known[1] else -1
        return sizes, frozenset().union(*(ids for _, ids in self._known.values()))

    def _ids_in(self, path: str) -> frozenset[str]:
        try:
            with _bad_sector_as_value_error():
                data = self._store.files.read(path, most=MAX_RECORD_BYTES) or b""
        except UnsafeFile:  # a link of the user's
            return frozenset()
        return markdown.ids(data.decode("utf-8", "replace"))

    def _mark(self, messages: Sequence[Message]) -> None:
        self._change(messages, archived=True, archive_task=None)

    def _change(self, messages: Sequence[Message], **fields: object) -> None:
        self._store.conversation.change({message.id: fields for message in messages})

    def _failed(self, messages: Sequence[Message], now: datetime, error: str) -> None:
        """Return messages, to be tried again later."""
        if not messages:
            return
        changes = {message.id: archive.failed(message, now) for message in messages}
        self._store.conversation.change(changes)
        attempts = max(message.archive_attempts + 1 for message in messages)
        facts = {"messages": len(messages), "attempts": attempts, "error": error}
        self._store.log.write("audit", "archive_failed", **facts)
        if attempts >= archive.BACKLOG_AT:
            self._store.log.write("error", "archive_backlog", **facts)

    # ---- summaries -----------------------------------------------------------------------

    def _summarise(self, group: MessageGroup, now: datetime) -> None:
        """Queue the run that summarises a group; what is in memory already is only marked."""
        zone = self._store.settings.zone
        written = set(self.summaries.covered(group.name))
        for day in {archive.day_of(message, zone) for message in group.messages}:
            written |= self._raw_files(day)[1] | self.summaries.covered(f"{day}")
        if known := [message for message in group.messages if message.id in written]:
            self._mark(known)
            left = tuple(message for message in group.messages if message.id not in written)
            if not left:
                return
            group = MessageGroup(group.kind, group.name, left)
            self._change(left, archive_task=_task_id(group))
        pieces = [archive.piece_of(message, zone) for message in group.messages]
        task_id = self.summaries.submit(group.kind, group.name, pieces, group.attempt, now)
        self._settle(task_id, now)

    def _settle(self, task_id: str, now: datetime) -> None:
        """Apply, once more, the outcome of a run that has ended; a crash may have lost it."""
        files = self._store.files
        if queue.where(files, "worker", task_id) != "ended":
            return
        found = queue.find(files, task_id, seats=("worker",))
        result = files.load(paths.result("worker", task_id), TaskResult)
        if found is not None and found.task.covers is not None and result is not None:
            self.take_in(found.task, result)
        else:
            self._failed(self._waiting_for(task_id), now, "the summary is gone")

    def take_in(self, task: Task, result: TaskResult) -> None:
        """Write the summary that a run made, then mark its messages; or return them.

        Crash: the run is ended after this; a part that is in its file is not written again.
        """
        if task.covers is None:
            return
        covers, waiting = task.covers, self._waiting_for(task.id)
        self.summaries.ended(task.id)
        summary = result.text.strip() if result.status == "done" else ""
        if not summary:
            error = result.error or "the summary is empty"
            if waiting:
                self._failed(waiting, result.completed_at, error)
            elif covers.attempt + 1 >= archive.BACKLOG_AT:
                facts = {"summary": covers.name, "attempts": covers.attempt + 1, "error": error}
                self._store.log.write("error", "archive_backlog", **facts)
            return
        path = paths.summary(covers.name)

        def with_part(text: str) -> str:
            if markdown.covered(text) >= set(covers.sources):
                return text
            part = summary[:SUMMARY_CHARACTERS]
            return markdown.extended_summary(text, covers.name, task.id, covers.sources, part)

        try:
            self.summaries.covered(covers.name)  # what cannot be read is not amended either
            notes.amend(self._store.files, path, with_part)
        except (UnsafeFile, ValueError) as error:
            self._failed(waiting, result.completed_at, str(error))
            return
        self._mark(waiting)
        self._store.feed.tell("memory", path=path)
        self._store.log.write(
            "audit", "summary", taskId=task.id, summary=covers.name, sources=len(covers.sources)
        )

    def _waiting_for(self, task_id: str) -> list[Message]:
        return [
            message
            for message in self._store.conversation.messages
            if message.archived == "pending" and message.archive_task == task_id
        ]


@contextlib.contextmanager
def _bad_sector_as_value_error() -> Generator[None]:
    """One unreadable file (EIO) fails its own group; any other refusal of the disk stops all."""
    try:
        yield
    except StorageError as error:
        if getattr(error.__cause__, "errno", None) != errno.EIO:
            raise
        raise ValueError(str(error)) from error


def _task_id(group: MessageGroup) -> str:
    sources = [message.id for message in group.messages]
    return archive.summary_task_id(group.kind, group.name, sources, group.attempt)


class SummaryScheduler:
    """Queues summary runs: those the archiver asks for, and those that aging files need.

    What a summary covers is recorded in the summary itself; the state here is only a cache.
    """

    def __init__(self, store: Store, context: RunContext, *, every: timedelta) -> None:
        """`every`: how often memory is scanned without a ring."""
        self._store, self._context, self._every = store, context, every
        self._rung = threading.Event()
        self._rung.set()
        self._targets: deque[SummaryTarget] = deque()
        self._scan_at: datetime | None = None
        """When memory is scanned again for files that have aged; None: when rung."""
        self._live: set[str] = set()
        """Runs that have not ended."""
        self._up_to_date: dict[tuple[str, str], tuple[object, ...]] = {}
        """Summaries that lack nothing, with the state of their files."""

    def ring(self) -> None:
        """Files may have aged; any thread may call this."""
        self._rung.set()

    def ended(self, task_id: str) -> None:
        self._live.discard(task_id)
        self._rung.set()

    def is_available(self) -> bool:
        """Whether an engine can summarise now; while none can, messages wait unmarked."""
        return self._context.engines.for_role("worker", PROFILE).waiting is None

    def is_live(self, task_id: str) -> bool:
        return queue.where(self._store.files, "worker", task_id) in ("queued", "running")

    def covered(self, name: str) -> frozenset[str]:
        """What the summary of a day or month was made from."""
        return markdown.covered(self._text(paths.summary(name)))

    def submit(
        self, kind: Kind, name: str, pieces: list[SummaryInput], attempt: int, now: datetime
    ) -> str:
        """Queue the run that summarises these pieces, once; gives its id."""
        sources = [piece.source for piece in pieces]
        task_id = archive.summary_task_id(kind, name, sources, attempt)
        is_month = kind == "month"
        template = "monthly-summary" if is_month else "daily-summary"
        values = {"period": name, "messages": archive.fenced(pieces)}
        task = Task(
            id=task_id,
            profile=PROFILE,
            title=f"Summary of {name}",
            prompt=self._context.prompts.fill(template, values),
            priority=2,  # below what a user asks for
            created_at=now,
            trace_id=derived_id("trace", task_id),
            timeout=900.0,
            internal=True,
            notify="none",
            origin="supervisor",
            covers=SummaryScope(
                kind="month" if is_month else "day",
                name=name,
                sources=list(dict.fromkeys(sources)),
                attempt=attempt,
            ),
        )
        queue.submit(self._store.files, task)
        self._store.feed.tell("task", id=task_id, seat="worker")
        return task_id

    def step(self, now: datetime) -> bool:
        """Have aged files summarised, one summary a step."""
        if not self._targets:
            return self._scan(now)
        for target in list(itertools.islice(self._targets, UP_TO_DATE_PER_STEP)):
            key, state = (target.kind, target.name), self._state_of(target)
            is_up_to_date = self._up_to_date.get(key) == state
            if not is_up_to_date and self._submit_missing(target, now):
                self._up_to_date[key] = state
            self._targets.popleft()
            if not is_up_to_date:
                break
        return True

    def _submit_missing(self, target: SummaryTarget, now: datetime) -> bool:
        """Queue runs for what a summary lacks; gives whether it lacks nothing."""
        try:
            pieces = self._missing(target)
        except (UnsafeFile, ValueError) as error:
            facts = {"summary": target.name, "error": str(error)}
            self._store.log.write("audit", "archive_failed", **facts)
            if isinstance(error, ValueError):  # the disk may recover
                self._scan_by(now + archive.BACK_OFF[0])
                return False
            return True
        for pack in archive.packed(pieces):
            self._submit_if_due(target, pack, now)
        return not pieces

    def _scan(self, now: datetime) -> bool:
        """List the files that have aged, if it is time; gives whether there are any."""
        at = self._scan_at
        # A time further away than is ever set: the clock was set back since.
        if at is not None and now < at <= now + self._every and not self._rung.is_set():
            return False
        self._rung.clear()
        if not self.is_available():
            self._scan_at = now + archive.BACK_OFF[0]
            return False
        self._scan_at = now + self._every
        files, zone = self._store.files, self._store.settings.zone
        try:
            self._live = {task_id for task_id in self._live if self.is_live(task_id)}
            raw = files.names(paths.MEMORY_FOLDER, suffix=".md")
            daily = files.names(paths.SUMMARIES, suffix=".md")
        except StorageError:
            self._rung.set()  # as soon as the disk is back
            raise
        self._targets.extend(archive.targets(raw, daily, now.astimezone(zone).date()))
        return bool(self._targets)

    def _scan_by(self, at: datetime) -> None:
        self._scan_at = min(self._scan_at or at, at)

    def _submit_if_due(
        self, target: SummaryTarget, pack: list[SummaryInput], now: datetime
    ) -> None:
        """Queue the run for a pack, unless one is live or its back-off is not over."""
        files = self._store.files
        sources = [piece.source for piece in pack]
        for attempt in range(_MAX_ATTEMPTS):
            task_id = archive.summary_task_id(target.kind, target.name, sources, attempt)
            where = queue.where(files, "worker", task_id)
            if where is None and len(self._live) < MAX_LIVE_RUNS:
                self._live.add(self.submit(target.kind, target.name, pack, attempt, now))
            elif where in ("queued", "running"):
                self._live.add(task_id)
            if where != "ended":
                return
            result = files.load(paths.result("worker", task_id), TaskResult)
            if result is not None:
                again_at = result.completed_at + archive.delay_after(attempt + 1)
                if now < again_at <= now + archive.BACK_OFF[-1]:
                    self._scan_by(again_at)
                    return

    def _state_of(self, target: SummaryTarget) -> tuple[object, ...]:
        """Changes when one of its files does."""
        names = [*map(paths.memory_file, target.raw), paths.summary(target.name)]
        names += [f"{paths.SUMMARIES}/{name}" for name in target.daily]
        stats = [(name, self._store.files.stat(name)) for name in names]
        return tuple((name, stat and (stat.mtime_ns, stat.size)) for name, stat in stats)

    def _missing(self, target: SummaryTarget) -> list[SummaryInput]:
        """What the files of a target contain that no summary covers yet."""
        zone = self._store.settings.zone
        covered = self.covered(target.name)
        pieces: list[SummaryInput] = []
        for name in target.raw:
            day, path = date.fromisoformat(name[:10]), paths.memory_file(name)
            known = covered | self.covered(f"{day}")
            found = archive.pieces_of_raw(path, day, self._text(path), zone)
            pieces += [piece for piece in found if piece.source not in known]
        for name in target.daily:
            day, path = date.fromisoformat(name[:10]), f"{paths.SUMMARIES}/{name}"
            found = archive.pieces_of_summary(path, day, self._text(path))
            pieces += [piece for piece in found if piece.source not in covered]
        return pieces

    def _text(self, path: str) -> str:
        with _bad_sector_as_value_error():
            note = notes.read(self._store.files, path)
        return note.text if note else ""
