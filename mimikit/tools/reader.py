"""Reads tasks, history and memory for tools and prompts, in bounded answers."""

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
from mimikit.protocol.models import ForgottenNote, Hit, Message, QueueName, time_text
from mimikit.protocol.runtime import RuntimeState
from mimikit.protocol.triggers import Trigger
from mimikit.tasks import ledger, queue
from mimikit.tools import world
from mimikit.triggers import registry
from mimikit.triggers.explain import ExplanationContext

MAX_LINES = 20
MAX_CHARACTERS = 20_000
"""Characters of one answer."""
MAX_LONG_TERM_BYTES = 2**16
MAX_MESSAGES = 200
_MESSAGE_CHARACTERS = 2000
_HIT_CHARACTERS = 1000
_MAX_LISTED = 100
_MAX_NAMED = 10


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
        """`trace_size`: tasks of a trace so far; `upcoming`: task files in queue order."""
        self._clock, self._zone = clock or SystemClock(), zone
        self._files, self._searcher, self.trace_size = files, searcher, trace_size
        self._upcoming = upcoming or self._by_name

    def tasks(self, scope: str) -> list[TaskLine]:
        """By the scopes of `list_tasks`."""
        context, lines = self._context(), list[TaskLine]()
        if scope in ("all", "running", "queue"):
            wanted = {"running": {"running"}, "queue": {"queued"}}.get(scope)
            live = queue.live(self._files, self._upcoming, MAX_LINES)[:MAX_LINES]
            lines += [
                world.task_line(v, context) for v in live if wanted is None or v.state in wanted
            ]
        if scope in ("all", "triggers"):
            most = MAX_LINES if scope == "all" else _MAX_LISTED
            newest = reversed(registry.ids(self._files)[-most:])
            found = (world.trigger_line(self._files, id_, context) for id_ in newest)
            lines += [line for line in found if line is not None]
        if scope in ("all", "recent", "failed"):
            only = ["failed"] if scope == "failed" else ledger.ENDED
            runs: dict[str, queue.TaskSnapshot] = {}
            for view in queue.recent(self._files, 40, only):
                if view.seat == "worker" or view.state != "done":  # a plan shows in its tasks
                    trigger = view.task.source_trigger_id if scope == "all" else None
                    runs.setdefault(trigger or view.task.id, view)
            for line in lines:
                runs.pop(line.id, None)  # of a trigger, it stands for its runs
            shown = list(runs.values())[: 5 if scope == "all" else 20]
            lines += [world.task_line(view, context) for view in shown]
        return lines

    def _context(self) -> ExplanationContext:
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
        """The newest messages, oldest first; of those not by code at most `most`."""
        messages, first = list[Message](), 0
        for count in (2 * most, MAX_MESSAGES):
            messages = history.page(self._files, limit=count).messages
            counted = [n for n, message in enumerate(messages) if not message.is_by_code]
            first = counted[-most] if len(counted) >= most else 0
            if first or len(messages) < count:
                break
        return [message for message in messages[first:] if not message.withheld]

    def history_between(self, after: datetime, before: datetime | None) -> list[Message]:
        """The newest, at most MAX_MESSAGES."""
        found: list[Message] = []
        cursor: str | None = None
        while len(found) < MAX_MESSAGES:
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
        return found[-MAX_MESSAGES:]

    def search(
        self, query: str, limit: int, after: datetime | None = None, before: datetime | None = None
    ) -> list[Hit]:
        """Best first."""
        return self._searcher.find(query, limit=limit, after=after, before=before)

    def recall(self, query: str, recent: Sequence[str], limit: int, budget: int) -> list[Hit]:
        """Memory hits for a prompt, within `budget` tokens."""
        found = self._searcher.recall(query, recent, limit=limit, budget=budget)
        return [hit.but(text=hit.snippet) for hit in found]

    def long_term(self) -> str:
        """The newest notes of `memory.md`."""
        stat = self._files.stat(paths.MEMORY)
        if stat is None or stat.kind != "file":
            return ""
        begin = max(0, stat.size - MAX_LONG_TERM_BYTES)
        text = self._files.part(paths.MEMORY, begin, MAX_LONG_TERM_BYTES).decode("utf-8", "replace")
        return text.partition("\n")[2] if begin else text.removeprefix("\ufeff")

    def notes(self, what: str) -> list[ForgottenNote]:
        return notes.find_notes(self._files, what)

    def places(self, what: str, removed: Sequence[str]) -> list[str]:
        return places_of(self._searcher, what, removed)

    def backlog(self) -> str:
        note = notes.read(self._files, paths.BACKLOG)
        return note.text if note else ""

    def exists(self, id_: str) -> bool:
        if not is_id(id_):
            return False
        known = queue.find(self._files, id_) is not None or self._files.exists(paths.trigger(id_))
        return known or bool(ledger.slots_of(self._files, id_, 1))

    def may_be_command(self, id_: str) -> bool:
        """Whether a live task or trigger runs a command; True if it cannot be read."""
        found = queue.find(self._files, id_)
        if found is not None and found.where != "ended" and found.task.profile == "command":
            return True
        if not self._files.exists(paths.trigger(id_)):
            return False
        trigger, broken = registry.read(self._files, id_)
        return trigger is None or broken is not None or trigger.profile == "command"

    def trigger(self, trigger_id: str) -> Trigger | None:
        return registry.active(self._files, trigger_id)[0] if is_id(trigger_id) else None


# ---- formatting; pure


def recent_text(messages: list[Message], count: int, offset: int) -> str:
    shown = _newest_fitting(messages)
    older = len(messages) - len(shown)
    next_ = f"count={count - len(shown)}, offset={offset + len(shown)}"
    return _message_lines(
        shown, f"{older} older ones are omitted: call again with {next_}" if older else ""
    )


def between_text(messages: list[Message]) -> str:
    shown = _newest_fitting(messages)
    if len(shown) == len(messages) < MAX_MESSAGES:
        return _message_lines(shown, "")
    before = time_text(shown[0].created_at)
    return _message_lines(shown, f"older ones left out: call again with before={before}")


def hits_text(hits: list[Hit]) -> str:
    lines = [f"[{hit.source}] {indented(cut(hit.text, _HIT_CHARACTERS))}" for hit in hits]
    shown = _fitting(lines)
    if left_out := len(lines) - len(shown):
        shown = [*shown, f"({left_out} more left out: ask for fewer, or in other words)"]
    return "\n".join(shown) or "nothing found"


def _newest_fitting(messages: list[Message]) -> list[Message]:
    first = len(messages) - len(_fitting([_line(message) for message in reversed(messages)]))
    if first == 0:
        return messages
    rest = messages[first - 1].created_at
    later = (n for n in range(first, len(messages)) if messages[n].created_at > rest)
    return messages[next(later, first) :]


def _fitting(lines: list[str]) -> list[str]:
    left = MAX_CHARACTERS
    for number, line in enumerate(lines):
        left -= len(line) + 1
        if left < 0:
            return lines[:number]
    return lines


def _message_lines(messages: list[Message], more: str) -> str:
    lines = [f"({more})"] if more else []
    return "\n".join([*lines, *map(_line, messages)]) or "none"


def _line(message: Message) -> str:
    at = time_text(message.created_at)
    return f"{at} {message.role}: {indented(cut(message.text, _MESSAGE_CHARACTERS))}"


def places_of(searcher: MemorySearch, what: str, removed: Sequence[str]) -> list[str]:
    """Where the words of removed notes stand besides: conversation, archive, results."""
    hits = (hit for text in {what, *removed} for hit in searcher.find(text, limit=_MAX_NAMED))
    said = [hit for hit in hits if hit.kind != "docs" and hit.text not in removed]
    return sorted({hit.source for hit in said if any(notes.mentions(hit.text, t) for t in removed)})


# ---- the backlog


def backlog_lines(known: Sequence[BacklogEntry]) -> str:
    """Open items first."""
    ordered = [item for item in known if not item.done] + [item for item in known if item.done]
    lines = [f"- [{'x' if item.done else ' '}] {item.text}" for item in ordered[:_MAX_LISTED]]
    if len(ordered) > _MAX_LISTED:
        lines.append(f"- … and {len(ordered) - _MAX_LISTED} more")
    return "\n".join(lines) or "nothing"


def backlog_item(known: Sequence[BacklogEntry], wanted: str, action: Action) -> str:
    """An item by its text or a unique part of it. Raises BadInput if none or several match."""
    name = folded(plain_item(wanted))
    texts = list(dict.fromkeys(item.text for item in known))
    exact = [text for text in texts if text == plain_item(wanted)]
    same = [text for text in texts if folded(text) == name]
    containing = [text for text in texts if name and name in folded(text)]
    found = exact or same or containing
    if len(found) > 1 and action in ("done", "undone"):
        changing = {item.text for item in known if item.done == (action == "undone")}
        found = [text for text in found if text in changing] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(f"item: expected one, got {wanted!r}, which matches {_some(found)}")
    raise BadInput(f"item: expected one of the backlog ({_some(texts)}), got {wanted!r}")


def _some(texts: Sequence[str]) -> str:
    named = "; ".join(texts[:_MAX_NAMED])
    return (f"{named}; and more" if len(texts) > _MAX_NAMED else named) or "it is empty"
