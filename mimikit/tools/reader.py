"""What tools and inputs are made from: tasks, history, memory, read from the state folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from mimikit.conversation import history
from mimikit.engines.base import TaskLine
from mimikit.memory import notes
from mimikit.memory.search import MemorySearch
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import Hit, Message, Trigger
from mimikit.tasks import ledger, queue
from mimikit.triggers import registry

MOST_LINES = 20


class RoleReader:
    """Reads only; safe from any thread."""

    def __init__(
        self,
        files: Files,
        searcher: MemorySearch,
        trace_size: Callable[[str], int] = lambda _trace: 0,
    ) -> None:
        """`trace_size` counts the tasks a trace has had."""
        self._files = files
        self._searcher = searcher
        self._trace_size = trace_size

    def tasks(self, scope: str) -> list[TaskLine]:
        """Running and queued tasks, triggers and recent ends, as the scope says."""
        lines: list[TaskLine] = []
        if scope in ("all", "running", "queue"):
            wanted = {"running": {"running"}, "queue": {"queued"}}.get(scope)
            live = queue.live(self._files)[:MOST_LINES]
            lines += [_line(v) for v in live if wanted is None or v.state in wanted]
        if scope in ("all", "triggers"):
            lines += self._triggers()
        if scope in ("all", "recent"):
            ended = queue.recent(self._files, 10 if scope == "all" else 40)
            # A plan that went well shows in its tasks.
            shown = [v for v in ended if v.seat == "worker" or v.state != "done"]
            lines += [_line(v) for v in shown[: 5 if scope == "all" else 20]]
        return lines

    def history(self, count: int, offset: int) -> list[Message]:
        """The last messages, oldest first."""
        messages = history.page(self._files, limit=count + offset).messages
        return messages[: max(0, len(messages) - offset)][-count:]

    def history_between(self, after: datetime, before: datetime | None) -> list[Message]:
        """At most 200 messages between two times, the newest of them."""
        found: list[Message] = []
        cursor: str | None = None
        while len(found) < 200:
            page = history.page(self._files, cursor, 100)
            inside = [
                m
                for m in page.messages
                if m.created_at >= after and (before is None or m.created_at < before)
            ]
            found = inside + found
            cursor = page.before
            if cursor is None or page.messages[0].created_at < after:
                break
        return found[-200:]

    def search(
        self,
        query: str,
        limit: int,
        after: datetime | None = None,
        before: datetime | None = None,
    ) -> list[Hit]:
        """What was said, remembered or found on it, best first."""
        return self._searcher.find(query, limit=limit, after=after, before=before)

    def recall(self, asked: str, recent: Sequence[str], limit: int) -> list[Hit]:
        """What memory has on what is asked, as it is quoted."""
        found = self._searcher.recall(asked, recent, limit=limit)
        return [hit.but(text=hit.snippet) for hit in found]

    def backlog(self) -> str:
        note = notes.read(self._files, paths.BACKLOG)
        return note.text if note else ""

    def exists(self, id_: str) -> bool:
        """Whether a task or trigger of that id is known, be it gone."""
        if not is_id(id_):
            return False
        there = queue.find(self._files, id_) is not None or self._files.exists(paths.trigger(id_))
        return there or bool(ledger.slots_of(self._files, id_, 1))

    def trigger(self, trigger_id: str) -> Trigger | None:
        return registry.active(self._files, trigger_id)[0] if is_id(trigger_id) else None

    def trace_size(self, trace_id: str) -> int:
        return self._trace_size(trace_id)

    def _triggers(self) -> list[TaskLine]:
        lines: list[TaskLine] = []
        for trigger_id in registry.ids(self._files)[:MOST_LINES]:
            trigger, _ = registry.read(self._files, trigger_id)
            if trigger is not None:
                state = "trigger" if trigger.enabled else "trigger, paused"
                title = trigger.title or trigger.prompt[:60]
                lines.append(TaskLine(trigger.id, title, state, "trigger", trigger.created_at))
        return lines


def _line(view: queue.TaskSnapshot) -> TaskLine:
    task = view.task
    return TaskLine(task.id, task.title or task.prompt[:60], view.state, view.seat, task.created_at)
