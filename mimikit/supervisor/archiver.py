"""Moves what was said into memory: decided in `memory.archive`, done here.

Nothing is marked as archived before it stands in a file of memory. Young days are written by code,
some messages at a time; older ones go to internal runs, whose summaries are taken in here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from datetime import date, datetime

from mimikit.errors import UnsafeFile
from mimikit.memory import archive, markdown, notes
from mimikit.memory.archive import ArchiveRules, MessageGroup
from mimikit.protocol import paths
from mimikit.protocol.models import Message, SummaryScope, Task, TaskResult
from mimikit.roles.run import RunContext
from mimikit.supervisor.store import Store
from mimikit.supervisor.summaries import SummaryRuns, SummaryScheduler
from mimikit.tasks import queue

SUMMARY_CHARACTERS = 20_000


class Archiver:
    """Archives what is due, flushes what is blocked, then lets memory age."""

    def __init__(
        self, store: Store, context: RunContext, rules: ArchiveRules = archive.RULES
    ) -> None:
        self._store, self._rules = store, rules
        self._summaries = SummaryRuns(store, context)
        self._aging = SummaryScheduler(store, self._summaries, every=rules.every)
        self._todo: deque[MessageGroup] = deque()
        self._is_flush = False
        """Of the groups to do: they go to the file of their day, whatever their age."""
        self._finish: Callable[[datetime], None] = lambda now: None
        """What ends the pass under way."""
        self._is_over = False

    def ring(self) -> None:
        """It may be time; any thread may say so."""
        self._aging.ring()

    def recover(self, now: datetime) -> None:
        """Give back what a crash left pending, unless a run that lives or has ended covers it."""
        pending = [m for m in self._store.conversation.messages if m.archived == "pending"]
        for task_id in dict.fromkeys(m.archive_task for m in pending if m.archive_task):
            self._settle(task_id, now)
        lost = [
            message.id
            for message in self._store.conversation.messages
            if message.archived == "pending"
            and not (message.archive_task and self._summaries.is_alive(message.archive_task))
        ]
        back: dict[str, object] = {"archived": False, "archive_task": None}
        self._store.conversation.change(dict.fromkeys(lost, back))

    def step(self, now: datetime) -> bool:
        if self._todo:
            self._go_on(now)
            return True
        trimmed = self._store.conversation.trim()
        return self._begin(now) or self._flush(now) or self._aging.step(now) or trimmed

    # ---- a pass --------------------------------------------------------------------------

    def _begin(self, now: datetime) -> bool:
        """Mark what is due as pending; what is written where stands in the groups to do."""
        store = self._store
        messages, last = store.conversation.messages, store.runtime.last_archive_at
        forced = self._must()
        if not forced and not archive.is_due(messages, now, last, rules=self._rules):
            return False
        groups = archive.plan_archive(
            messages,
            now,
            store.settings.zone,
            last,
            rules=self._rules,
            forced=forced,
            summaries=self._summaries.available(),
        )
        if not groups:
            return False
        changes: dict[str, dict[str, object]] = {}
        for group in groups:
            task_id = None if group.kind == "raw" else _task_id(group)
            mark: dict[str, object] = {"archived": "pending", "archive_task": task_id}
            changes |= dict.fromkeys((m.id for m in group.messages), mark)
        store.conversation.change(changes)
        self._todo.extend(groups)
        self._is_flush = False
        self._finish = lambda at: self._end_pass(groups, at)
        return True

    def _must(self) -> bool:
        """Whether the working set has outgrown its caps, so that neither time nor number count."""
        conversation = self._store.conversation
        is_over = conversation.is_over()
        if is_over and not self._is_over:
            self._store.log.write("error", "history_overflow", messages=len(conversation.messages))
        self._is_over = is_over
        return is_over or len(conversation.messages) > conversation.caps.soft

    def _go_on(self, now: datetime) -> None:
        """Write the next group, or hand it on. One that can not be written costs only itself.

        Crash: what is pending and covered by no run is given back at the start, and found where it
        was written by its ids.
        """
        group = self._todo[0]
        try:
            if group.kind == "raw":
                self._write_raw(group)
            else:
                self._hand_on(group, now)
        except (UnsafeFile, ValueError) as error:
            self._failed(group.messages, now, str(error))
        if len(self._todo) == 1:
            self._finish(now)
        self._todo.popleft()

    def _end_pass(self, groups: list[MessageGroup], now: datetime) -> None:
        counts = {"raw": 0, "day": 0, "month": 0}
        for group in groups:
            counts[group.kind] += len(group.messages)
        self._store.save_runtime(last_archive_at=now)
        self._store.log.write("audit", "archive", **counts)
        self._aging.ring()  # memory ages in the same pass

    # ---- raw files -----------------------------------------------------------------------

    def _write_raw(self, group: MessageGroup) -> None:
        """Write messages of one day as they are, then mark them.

        Crash: what stands in a file of the day is found by its id and only marked.
        """
        files, zone = self._store.files, self._store.settings.zone
        day = date.fromisoformat(group.name)
        sizes, have = self._raw_of(day)
        missing = [message for message in group.messages if message.id not in have]
        if missing:
            path = self._raw_path(day, missing, sizes)
            notes.amend(files, path, lambda text: markdown.extended(text, day, missing, zone))
            self._store.feed.tell("memory", path=path)
        self._mark(group.messages)

    def _raw_of(self, day: date) -> tuple[dict[str, int], set[str]]:
        """The raw files of a day with their sizes (-1: not ours), and the messages in them."""
        files = self._store.files
        sizes: dict[str, int] = {}
        have: set[str] = set()
        for name in files.names(paths.MEMORY_FOLDER, suffix=".md"):
            if name.startswith(day.isoformat()):
                try:
                    data = files.read(paths.memory_file(name)) or b""
                except UnsafeFile:
                    data = b""  # a link of the user's: not ours to follow, and in nobody's way
                ids = markdown.ids(data.decode("utf-8", "replace"))
                have |= ids
                sizes[name] = len(data) if ids else -1
        return sizes, have

    def _raw_path(self, day: date, messages: list[Message], sizes: dict[str, int]) -> str:
        """Where messages of a day are written; past a link or folder that has the name."""
        name = markdown.raw_name(day, messages, sizes, flush=self._is_flush)
        while not self._is_free(name):
            sizes[name] = -1
            name = markdown.raw_name(day, messages, sizes)
        return paths.memory_file(name)

    def _is_free(self, name: str) -> bool:
        """Whether a plain file stands there, or nothing."""
        stat = self._store.files.stat(paths.memory_file(name))
        return stat is None or stat.kind == "file"

    def _mark(self, messages: tuple[Message, ...] | list[Message]) -> None:
        done: dict[str, object] = {"archived": True, "archive_task": None}
        self._store.conversation.change({message.id: done for message in messages})

    def _failed(
        self, messages: tuple[Message, ...] | list[Message], now: datetime, error: str
    ) -> None:
        """Give messages back, to be tried again later."""
        if not messages:
            return
        changes = {message.id: archive.failed(message, now) for message in messages}
        self._store.conversation.change(changes)
        attempts = max(message.archive_attempts + 1 for message in messages)
        self._store.log.write(
            "audit", "archive_failed", messages=len(messages), attempts=attempts, error=error
        )
        if attempts >= archive.BACKLOG_AT:
            self._store.log.write(
                "error", "archive_backlog", messages=len(messages), attempts=attempts, error=error
            )

    # ---- summaries -----------------------------------------------------------------------

    def _hand_on(self, group: MessageGroup, now: datetime) -> None:
        """Queue the run that summarises a group; what stands in memory already is only marked."""
        have = self._in_memory(group)
        if any(message.id in have for message in group.messages):
            self._mark([message for message in group.messages if message.id in have])
            left = tuple(message for message in group.messages if message.id not in have)
            if not left:
                return
            group = MessageGroup(group.kind, group.name, left)
            mark: dict[str, object] = {"archive_task": _task_id(group)}
            self._store.conversation.change({message.id: mark for message in left})
        task_id = _task_id(group)
        zone = self._store.settings.zone
        pieces = [archive.piece_of(message, zone) for message in group.messages]
        self._summaries.ask(task_id, group.kind, group.name, pieces, group.attempt, now)
        self._settle(task_id, now)

    def _in_memory(self, group: MessageGroup) -> frozenset[str]:
        """The messages of a group that a file of memory has already."""
        zone = self._store.settings.zone
        have = markdown.covered(self._summaries.text(paths.summary(group.name)))
        for day in {archive.day_of(message, zone) for message in group.messages}:
            have |= self._raw_of(day)[1] | markdown.covered(
                self._summaries.text(paths.summary(f"{day}"))
            )
        return have

    def _settle(self, task_id: str, now: datetime) -> None:
        """Take in, once more, the outcome of a run that ended before; it may have been lost."""
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
        """Write down what a run has made, then mark what it was made from; or give that back.

        Crash: the run is ended after this; a part that stands in its file is not written again.
        """
        if task.covers is None:
            return
        covers, waiting = task.covers, self._waiting_for(task.id)
        self._aging.ended(task.id)
        said = result.text.strip() if result.status == "done" else ""
        if not said:
            error = result.error or "the summary is empty"
            if waiting:
                self._failed(waiting, result.completed_at, error)
            elif covers.attempt + 1 >= archive.BACKLOG_AT:
                self._store.log.write(
                    "error", "archive_backlog", summary=covers.name, attempts=covers.attempt + 1,
                    error=error,
                )  # fmt: skip
            return
        path = paths.summary(covers.name)
        try:
            notes.amend(
                self._store.files, path, lambda text: _extended(text, task.id, covers, said)
            )
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

    # ---- flush ---------------------------------------------------------------------------

    def _flush(self, now: datetime) -> bool:
        """Let out what waits, as it is, when there is too much of it."""
        store = self._store
        groups = archive.plan_flush(
            store.conversation.messages,
            now,
            store.settings.zone,
            store.runtime.last_flush_at,
            rules=self._rules,
        )
        if not groups:
            return False
        self._todo.extend(groups)
        self._is_flush = True
        self._finish = lambda at: self._end_flush(groups, at)
        return True

    def _end_flush(self, groups: list[MessageGroup], now: datetime) -> None:
        self._store.save_runtime(last_flush_at=now)
        messages = sum(len(group.messages) for group in groups)
        self._store.log.write("audit", "flush", messages=messages)


def _task_id(group: MessageGroup) -> str:
    sources = [message.id for message in group.messages]
    return archive.summary_task_id(group.kind, group.name, sources, group.attempt)


def _extended(text: str, task_id: str, covers: SummaryScope, said: str) -> str:
    if markdown.covered(text) >= set(covers.sources):
        return text
    short = said[:SUMMARY_CHARACTERS]
    return markdown.extended_summary(text, covers.name, task_id, covers.sources, short)
