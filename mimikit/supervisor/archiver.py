"""Archives messages into memory files and summarises old files, as `memory.archive` decides.

A message is marked as archived only once it is in a memory file. Recent days are copied, a batch at
a time; older ones are summarised by internal runs. Their sources are kept.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import Counter, deque
from collections.abc import Generator, Sequence
from datetime import date, datetime, timedelta

from mimikit.errors import StorageError, UnsafeFile
from mimikit.memory import archive, markdown, notes
from mimikit.memory.archive import ArchiveRules, Kind, MessageGroup, SummaryInput, SummaryTarget
from mimikit.protocol import paths
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
MAX_TARGETS_PER_STEP = 10
_MAX_ATTEMPTS = 1000


class Archiver:
    """Archives messages that are due; flushes them verbatim if too many are blocked."""

    def __init__(
        self, store: Store, context: RunContext, rules: ArchiveRules = archive.RULES
    ) -> None:
        self._store, self._rules = store, rules
        self.summaries = SummaryScheduler(store, context, every=rules.every)
        self._groups: list[MessageGroup] = []
        self._todo: deque[MessageGroup] = deque()
        self._is_flush = False
        """Whether the pass copies all messages, regardless of age."""
        self._is_over_limit = False

    def recover(self, now: datetime) -> None:
        """Reset pending messages after a crash, unless a live or ended run covers them."""
        conversation = self._store.conversation
        tasks = [m.archive_task for m in conversation.messages if m.archived == "pending"]
        for task_id in filter(None, dict.fromkeys(tasks)):
            self._apply_ended_run(task_id, now)
        lost = [
            message
            for message in conversation.messages
            if message.archived == "pending"
            and not (message.archive_task and self.summaries.is_alive(message.archive_task))
        ]
        self._change(lost, archived=False, archive_task=None)

    def step(self, now: datetime) -> bool:
        if self._todo:
            self._do_next_group(now)
            return True
        store, rules = self._store, self._rules
        trimmed = store.conversation.trim()
        groups = self._begin(now)
        self._is_flush = not groups
        if not groups:  # if too many messages wait, copy them verbatim
            messages, last = store.conversation.messages, store.runtime.last_flush_at
            groups = archive.plan_flush(messages, now, store.settings.zone, last, rules=rules)
        self._groups, self._todo = groups, deque(groups)
        return bool(groups) or self.summaries.step(now) or trimmed

    # ---- a pass

    def _begin(self, now: datetime) -> list[MessageGroup]:
        """Mark due messages as pending; returns their groups."""
        store, rules = self._store, self._rules
        messages, last = store.conversation.messages, store.runtime.last_archive_at
        is_over = store.conversation.is_over()
        if is_over and not self._is_over_limit:
            store.log.write("error", "history_overflow", messages=len(messages))
        self._is_over_limit = is_over
        # A conversation above its caps is archived at once.
        is_due = is_over or len(messages) > store.conversation.caps.soft
        if not is_due and not archive.is_due(messages, now, last, rules=rules):
            return []
        zone, available = store.settings.zone, self.summaries.available()
        groups = archive.plan_archive(messages, now, zone, rules=rules, summaries=available)
        changes: dict[str, dict[str, object]] = {}
        for group in groups:
            task_id = None if group.kind == "raw" else _task_id(group)
            mark: dict[str, object] = {"archived": "pending", "archive_task": task_id}
            changes |= dict.fromkeys((m.id for m in group.messages), mark)
        store.conversation.change(changes)
        return groups

    def _do_next_group(self, now: datetime) -> None:
        """Write the next group, or queue its summary; a failed group does not block the others.

        Crash: `recover` resets pending messages without a run; those already written are
        recognised by their ids.
        """
        group = self._todo[0]
        try:
            if group.kind == "raw":
                self._write_raw(group)
            else:
                self._queue_summary(group, now)
        except (UnsafeFile, ValueError) as error:
            self._failed(group.messages, now, str(error))
        if len(self._todo) == 1:  # the last one of the pass
            counts = Counter({"raw": 0, "day": 0, "month": 0})
            for done in self._groups:
                counts[done.kind] += len(done.messages)
            if self._is_flush:
                self._store.save_runtime(last_flush_at=now)
                self._store.log.write("audit", "flush", messages=counts.total())
            else:
                self._store.save_runtime(last_archive_at=now)
                self._store.log.write("audit", "archive", **counts)
                self.summaries.ring()
        self._todo.popleft()

    # ---- raw files

    def _write_raw(self, group: MessageGroup) -> None:
        """Copy messages of one day to a raw file, then mark them.

        Crash: messages already in a file of the day are only marked.
        """
        files, zone = self._store.files, self._store.settings.zone
        day = date.fromisoformat(group.name)
        sizes, have = self._raw_of(day, group.messages)
        missing = [message for message in group.messages if message.id not in have]
        if missing:
            path = paths.memory_file(markdown.raw_name(day, missing, sizes, flush=self._is_flush))
            # Skip names taken by a link or folder.
            while (stat := files.stat(path)) is not None and stat.kind != "file":
                sizes[path.rpartition("/")[2]] = -1
                path = paths.memory_file(markdown.raw_name(day, missing, sizes))
            notes.amend(files, path, lambda text: markdown.extended(text, day, missing, zone))
            self._store.feed.publish("memory", path=path)
        self._change(group.messages, archived=True, archive_task=None)

    def _raw_of(self, day: date, messages: Sequence[Message]) -> tuple[dict[str, int], set[str]]:
        """The raw files of a day with their sizes (-1: no messages), and the ids they contain."""
        files, ids = self._store.files, set[str]()
        sizes: dict[str, int] = {}
        for name in files.names(paths.MEMORY_FOLDER, suffix=".md"):
            path = paths.memory_file(name)
            stat = files.stat(path) if name.startswith(day.isoformat()) else None
            if stat is None:
                continue
            data = b""
            with contextlib.suppress(UnsafeFile):  # links are not followed
                data = files.read(path, max_bytes=MAX_RECORD_BYTES) or b""
            own = markdown.ids(data.decode("utf-8", "replace"))
            sizes[name] = stat.size if own else -1
            ids |= own
        return sizes, ids & {message.id for message in messages}

    def _change(self, messages: Sequence[Message], **fields: object) -> None:
        self._store.conversation.change({message.id: fields for message in messages})

    def _failed(self, messages: Sequence[Message], now: datetime, error: str) -> None:
        if not messages:
            return
        changes = {message.id: archive.failed(message, now) for message in messages}
        self._store.conversation.change(changes)
        attempts = max(message.archive_attempts + 1 for message in messages)
        facts = {"messages": len(messages), "attempts": attempts, "error": error}
        self._store.log.write("audit", "archive_failed", **facts)
        if attempts >= archive.BACKLOG_AT:
            self._store.log.write("error", "archive_backlog", **facts)

    # ---- summaries

    def _queue_summary(self, group: MessageGroup, now: datetime) -> None:
        """Queue the run that summarises a group; messages already in memory are only marked."""
        zone = self._store.settings.zone
        have = set(self.summaries.covered(group.name))
        for day in {archive.day_of(message, zone) for message in group.messages}:
            have |= self._raw_of(day, group.messages)[1]
            with self.summaries.skip_unreadable(f"{day}"):
                have |= self.summaries.covered(f"{day}")
        if known := [message for message in group.messages if message.id in have]:
            self._change(known, archived=True, archive_task=None)
            left = tuple(message for message in group.messages if message.id not in have)
            if not left:
                return
            group = MessageGroup(group.kind, group.name, left)
            self._change(left, archive_task=_task_id(group))
        pieces = [archive.piece_of(message, zone) for message in group.messages]
        task_id = self.summaries.submit(group.kind, group.name, pieces, group.attempt, now)
        self._apply_ended_run(task_id, now)

    def _apply_ended_run(self, task_id: str, now: datetime) -> None:
        """Apply the result of a run that has already ended, if any."""
        files = self._store.files
        if queue.where(files, "worker", task_id) != "ended":
            return
        found = queue.find(files, task_id, seats=("worker",))
        result = files.load(paths.result("worker", task_id), TaskResult)
        if found is not None and found.task.covers is not None and result is not None:
            self.apply_summary(found.task, result)
        else:
            self._failed(self._waiting_for(task_id), now, "the result of the summary run was lost")

    def apply_summary(self, task: Task, result: TaskResult) -> None:
        """Write the summary of a run, then mark its messages; after a failure reset them.

        Crash: the run ends after this; a part already in its file is not written again.
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
            short = summary[:SUMMARY_CHARACTERS]
            return markdown.extended_summary(text, covers.name, task.id, covers.sources, short)

        try:
            self.summaries.covered(covers.name)  # an unreadable file must not be changed
            notes.amend(self._store.files, path, with_part)
        except (UnsafeFile, ValueError) as error:
            self._failed(waiting, result.completed_at, str(error))
            return
        self._change(waiting, archived=True, archive_task=None)
        self._store.feed.publish("memory", path=path)
        self._store.log.write(
            "audit", "summary", taskId=task.id, summary=covers.name, sources=len(covers.sources)
        )

    def _waiting_for(self, task_id: str) -> list[Message]:
        return [
            message
            for message in self._store.conversation.messages
            if message.archived == "pending" and message.archive_task == task_id
        ]


def _task_id(group: MessageGroup) -> str:
    sources = [message.id for message in group.messages]
    return archive.summary_task_id(group.kind, group.name, sources, group.attempt)


class SummaryScheduler:
    """Queues summary runs: for the archiver, and for memory files that have become old.

    The summary files list what they cover; the fields here are caches.
    """

    def __init__(self, store: Store, context: RunContext, *, every: timedelta) -> None:
        self._store, self._context, self._every = store, context, every
        self._requested = threading.Event()
        self._requested.set()
        self._targets: deque[SummaryTarget] = deque()
        self._scan_at: datetime | None = None
        """Time of the next scan; None: on `ring`."""
        self._live_runs: set[str] = set()

    def ring(self) -> None:
        """Request a scan of memory; from any thread."""
        self._requested.set()

    def ended(self, task_id: str) -> None:
        """Free the slot of a run, and rescan for summaries that waited for it."""
        self._live_runs.discard(task_id)
        self._requested.set()

    def available(self) -> bool:
        return self._context.engines.for_role("worker", PROFILE).waiting is None

    def is_alive(self, task_id: str) -> bool:
        return queue.where(self._store.files, "worker", task_id) in ("queued", "running")

    def covered(self, name: str) -> frozenset[str]:
        return markdown.covered(self._text(paths.summary(name)))

    def submit(
        self, kind: Kind, name: str, pieces: list[SummaryInput], attempt: int, now: datetime
    ) -> str:
        """Queue the run that summarises the pieces, once; returns its id."""
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
        self._store.feed.publish("task", id=task_id, seat="worker")
        return task_id

    def step(self, now: datetime) -> bool:
        if not self._targets:
            return self._scan(now)
        for target in list(itertools.islice(self._targets, MAX_TARGETS_PER_STEP)):
            with self.skip_unreadable(target.name):
                for pack in archive.packed(self._unsummarised(target)):
                    self._submit_if_due(target, pack, now)
            self._targets.popleft()
        return True

    def _scan(self, now: datetime) -> bool:
        """Scan for files that have become old, if it is time; returns whether there are any."""
        scan_at = self._scan_at
        # Later than it is ever set: the clock was set back since.
        is_later = scan_at is not None and now < scan_at <= now + self._every
        if is_later and not self._requested.is_set():
            return False
        self._requested.clear()
        if not self.available():
            self._scan_at = now + archive.BACK_OFF[0]
            return False
        self._scan_at = now + self._every
        files, zone = self._store.files, self._store.settings.zone
        try:
            self._live_runs = {task_id for task_id in self._live_runs if self.is_alive(task_id)}
            raw = files.names(paths.MEMORY_FOLDER, suffix=".md")
            daily = files.names(paths.SUMMARIES, suffix=".md")
        except StorageError:
            self._requested.set()  # retry as soon as the disk is back
            raise
        self._targets.extend(archive.targets(raw, daily, now.astimezone(zone).date()))
        return bool(self._targets)

    def _submit_if_due(
        self, target: SummaryTarget, pack: list[SummaryInput], now: datetime
    ) -> None:
        """Queue the run for a pack, unless one is in progress or in back-off."""
        files = self._store.files
        sources = [piece.source for piece in pack]
        for attempt in range(_MAX_ATTEMPTS):
            task_id = archive.summary_task_id(target.kind, target.name, sources, attempt)
            where = queue.where(files, "worker", task_id)
            if where is None and len(self._live_runs) < MAX_LIVE_RUNS:
                self._live_runs.add(self.submit(target.kind, target.name, pack, attempt, now))
            elif where in ("queued", "running"):
                self._live_runs.add(task_id)
            if where != "ended":
                return
            result = files.load(paths.result("worker", task_id), TaskResult)
            if result is not None:
                again_at = result.completed_at + archive.delay_after(attempt + 1)
                if now < again_at <= now + archive.BACK_OFF[-1]:
                    self._scan_at = min(self._scan_at or again_at, again_at)
                    return

    def _unsummarised(self, target: SummaryTarget) -> list[SummaryInput]:
        zone = self._store.settings.zone
        have = self.covered(target.name)
        pieces: list[SummaryInput] = []
        for name in target.raw:
            day, path = date.fromisoformat(name[:10]), paths.memory_file(name)
            with self.skip_unreadable(target.name):
                known = self.covered(f"{day}")
                found = archive.pieces_of_raw(path, day, self._text(path), zone)
                pieces += [piece for piece in found if piece.source not in known]
        for name in target.daily:
            day, path = date.fromisoformat(name[:10]), f"{paths.SUMMARIES}/{name}"
            with self.skip_unreadable(target.name):
                pieces += archive.pieces_of_summary(path, day, self._text(path))
        return [piece for piece in pieces if piece.source not in have]

    @contextlib.contextmanager
    def skip_unreadable(self, summary: str) -> Generator[None]:
        """Skip a file that cannot be read, with its reason in the log; the others go on."""
        try:
            yield
        except (UnsafeFile, ValueError) as error:
            self._store.log.write("audit", "archive_failed", summary=summary, error=str(error))

    def _text(self, path: str) -> str:
        note = notes.read(self._store.files, path)
        return note.text if note else ""
