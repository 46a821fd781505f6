"""What tools and prompts read of the state, in bounded answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from mimikit.clock import Clock, SystemClock
from mimikit.conversation import history
from mimikit.engines.base import TaskLine
from mimikit.errors import BadInput
from mimikit.language.plain_text import indented
from mimikit.memory import notes
from mimikit.memory.notes import Action, BacklogEntry, plain_item
from mimikit.memory.search import MemorySearch
from mimikit.memory.terms import folded
from mimikit.memory.tokens import cut
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import Hit, Message, QueueName, time_text
from mimikit.protocol.runtime import RuntimeState
from mimikit.protocol.triggers import Trigger
from mimikit.tasks import ledger, queue
from mimikit.tools import world
from mimikit.triggers import registry
from mimikit.triggers.explain import ExplanationContext

MOST_LINES = 20
MOST_ANSWERED = 20_000
"""Characters of one answer."""
MOST_LONG_TERM = 2**16
"""Bytes of `memory.md` that are read."""
MOST_BETWEEN = 200
"""Messages of one call."""
_MESSAGE = 2000
_HIT = 1000
_MOST_LISTED = 100
_MOST_NAMED = 10


class RoleReader:
    """Read-only; thread-safe."""

    def __init__(
        self,
        files: Files,
        searcher: MemorySearch,
        trace_size: Callable[[str], int] = lambda _trace: 0,
        upcoming: queue.Upcoming | None = None,
        *,
        clock: Clock | None = None,
        zone: Callable[[], ZoneInfo] = lambda: ZoneInfo("UTC"),
    ) -> None:
        """`trace_size`: tasks of a trace so far; `upcoming`: triggers by their next run."""
        self._clock, self._zone = clock or SystemClock(), zone
        self._files, self._searcher, self._trace_size = files, searcher, trace_size
        self._upcoming = upcoming or self._by_name

    def tasks(self, scope: str) -> list[TaskLine]:
        """By the scopes of `list_tasks`."""
        here, lines = self._here(), list[TaskLine]()
        if scope in ("all", "running", "queue"):
            wanted = {"running": {"running"}, "queue": {"queued"}}.get(scope)
            live = queue.live(self._files, self._upcoming, MOST_LINES)[:MOST_LINES]
            lines += [world.task_line(v, here) for v in live if wanted is None or v.state in wanted]
        if scope in ("all", "triggers"):
            most = MOST_LINES if scope == "all" else _MOST_LISTED
            newest = reversed(registry.ids(self._files)[-most:])
            found = (world.trigger_line(self._files, id_, here) for id_ in newest)
            lines += [line for line in found if line is not None]
        if scope in ("all", "recent", "failed"):
            only = ["failed"] if scope == "failed" else ledger.ENDED
            ended = queue.recent(self._files, 10 if scope == "all" else 40, only)
            # A plan that succeeded shows in its tasks.
            shown = [v for v in ended if v.seat == "worker" or v.state != "done"]
            lines += [world.task_line(v, here) for v in shown[: 5 if scope == "all" else 20]]
        return lines

    def _here(self) -> ExplanationContext:
        runtime = self._files.peek(paths.RUNTIME, RuntimeState)
        paused = runtime is not None and runtime.paused
        return world.situation(self._files, now=self._clock.now(), zone=self._zone(), paused=paused)

    def _by_name(self, seat: QueueName, most: int) -> list[str]:
        return self._files.names(f"{seat}/queue")[:most]

    def history(self, count: int, offset: int) -> list[Message]:
        """Oldest first."""
        messages = history.page(self._files, limit=count + offset).messages
        return messages[: max(0, len(messages) - offset)][-count:]

    def conversation(self, most: int) -> list[Message]:
        """The newest messages, oldest first, `most` of them not written by code."""
        messages, first = list[Message](), 0
        for count in (2 * most, MOST_BETWEEN):
            messages = history.page(self._files, limit=count).messages
            said = [n for n, message in enumerate(messages) if not message.is_by_code]
            first = said[-most] if len(said) >= most else 0
            if first or len(messages) < count:
                break
        return messages[first:]

    def history_between(self, after: datetime, before: datetime | None) -> list[Message]:
        """The newest of them, at most MOST_BETWEEN."""
        found: list[Message] = []
        cursor: str | None = None
        while len(found) < MOST_BETWEEN:
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
        return found[-MOST_BETWEEN:]

    def search(
        self, query: str, limit: int, after: datetime | None = None, before: datetime | None = None
    ) -> list[Hit]:
        """Best first."""
        return self._searcher.find(query, limit=limit, after=after, before=before)

    def recall(self, asked: str, recent: Sequence[str], limit: int, budget: int) -> list[Hit]:
        """Memory hits for a prompt, within `budget` tokens."""
        found = self._searcher.recall(asked, recent, limit=limit, budget=budget)
        return [hit.but(text=hit.snippet) for hit in found]

    def long_term(self) -> str:
        """The newest notes of `memory.md`."""
        stat = self._files.stat(paths.MEMORY)
        if stat is None or stat.kind != "file":
            return ""
        begin = max(0, stat.size - MOST_LONG_TERM)
        text = self._files.part(paths.MEMORY, begin, MOST_LONG_TERM).decode("utf-8", "replace")
        return text.partition("\n")[2] if begin else text.removeprefix("\ufeff")

    def backlog(self) -> str:
        note = notes.read(self._files, paths.BACKLOG)
        return note.text if note else ""

    def exists(self, id_: str) -> bool:
        """Whether a task or trigger of that id is or was known."""
        if not is_id(id_):
            return False
        there = queue.find(self._files, id_) is not None or self._files.exists(paths.trigger(id_))
        return there or bool(ledger.slots_of(self._files, id_, 1))

    def may_be_command(self, id_: str) -> bool:
        """Whether a live task or trigger runs a command, or cannot be read."""
        found = queue.find(self._files, id_)
        if found is not None and found.where != "ended" and found.task.profile == "command":
            return True
        if not self._files.exists(paths.trigger(id_)):
            return False
        trigger, broken = registry.read(self._files, id_)
        return trigger is None or broken is not None or trigger.profile == "command"

    def trigger(self, trigger_id: str) -> Trigger | None:
        return registry.active(self._files, trigger_id)[0] if is_id(trigger_id) else None

    def trace_size(self, trace_id: str) -> int:
        return self._trace_size(trace_id)


# ---- in words; pure


def recent_text(messages: list[Message], count: int, offset: int) -> str:
    shown = _newest_that_fit(messages)
    older = len(messages) - len(shown)
    next_ = f"count={count - len(shown)}, offset={offset + len(shown)}"
    return _told(shown, f"{older} older left out: call again with {next_}" if older else "")


def between_text(messages: list[Message]) -> str:
    shown = _newest_that_fit(messages)
    if len(shown) == len(messages) < MOST_BETWEEN:
        return _told(shown, "")
    before = time_text(shown[0].created_at)
    return _told(shown, f"older ones left out: call again with before={before}")


def hits_text(hits: list[Hit]) -> str:
    lines = [f"[{hit.source}] {indented(cut(hit.text, _HIT))}" for hit in hits]
    kept = _that_fit(lines)
    if left_out := len(lines) - len(kept):
        kept = [*kept, f"({left_out} more left out: ask for fewer, or in other words)"]
    return "\n".join(kept) or "nothing found"


def _newest_that_fit(messages: list[Message]) -> list[Message]:
    """Never splits messages of the same time."""
    first = len(messages) - len(_that_fit([_line(message) for message in reversed(messages)]))
    if first == 0:
        return messages
    rest = messages[first - 1].created_at
    later = (n for n in range(first, len(messages)) if messages[n].created_at > rest)
    return messages[next(later, first) :]


def _that_fit(lines: list[str]) -> list[str]:
    left = MOST_ANSWERED
    for number, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            return lines[:number]
    return lines


def _told(messages: list[Message], more: str) -> str:
    lines = [f"({more})"] if more else []
    return "\n".join([*lines, *map(_line, messages)]) or "none"


def _line(message: Message) -> str:
    at = time_text(message.created_at)
    return f"{at} {message.role}: {indented(cut(message.text, _MESSAGE))}"


# ---- the backlog


def backlog_lines(known: Sequence[BacklogEntry]) -> str:
    """Open items first."""
    ordered = [item for item in known if not item.done] + [item for item in known if item.done]
    lines = [f"- [{'x' if item.done else ' '}] {item.text}" for item in ordered[:_MOST_LISTED]]
    if len(ordered) > _MOST_LISTED:
        lines.append(f"- … and {len(ordered) - _MOST_LISTED} more")
    return "\n".join(lines) or "nothing"


def backlog_item(known: Sequence[BacklogEntry], given: str, action: Action) -> str:
    """An item by its text or a unique part of it, folded.

    Raises BadInput if none or several fit.
    """
    name = folded(plain_item(given))
    texts = list(dict.fromkeys(item.text for item in known))
    same = [text for text in texts if text == plain_item(given)]
    alike = [text for text in texts if folded(text) == name]
    holding = [text for text in texts if name and name in folded(text)]
    found = same or alike or holding
    if len(found) > 1 and action in ("done", "undone"):
        changing = {item.text for item in known if item.done == (action == "undone")}
        found = [text for text in found if text in changing] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(f"item: expected one, got {given!r}, which fits {_some(found)}")
    raise BadInput(f"item: expected one of the backlog ({_some(texts)}), got {given!r}")


def _some(texts: Sequence[str]) -> str:
    named = "; ".join(texts[:_MOST_NAMED])
    return (f"{named}; and more" if len(texts) > _MOST_NAMED else named) or "it is empty"
