"""The conversation with the inbox laid over it, and the open question."""

from __future__ import annotations

import threading
from datetime import date, datetime, timedelta
from typing import Any

from pydantic import ValidationError

from mimikit.conversation import history, questions
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.json import Json
from mimikit.protocol.models import InboxItem, Message, Question, TurnStarted, time_text
from mimikit.views.base import Render
from mimikit.views.hits import Counts

_TAILS = (2**16, 2**20, 2**24)
_DAYS_SEARCHED = 3
_MAX_WAITING = 500
_RESULTS = paths.result_inbox_id("")


class Conversation:
    """Messages as the page shows them."""

    def __init__(self, files: ReadOnlyFiles, render: Render) -> None:
        """Nothing is read before it is asked for."""
        self._files = files
        self._render = render
        self._hits = Counts(files)

    def page(self, before: str | None, limit: int) -> dict[str, Any]:
        """Some messages, oldest first, and the cursor of those before them."""
        found = history.page(self._files, before, limit)
        return {"messages": [self.shown(m) for m in found.messages], "before": found.before}

    def shown(self, message: Message) -> dict[str, Any]:
        """One message; what a user wrote is text, not markdown."""
        return {
            "id": message.id,
            "role": message.role,
            "text": message.text,
            "html": None if message.role == "user" else self._render(message.text),
            "createdAt": time_text(message.created_at),
            "turnId": message.turn_id,
            "inReplyTo": message.in_reply_to,
            "taskIds": message.task_ids,
            "usage": message.usage.to_dict() if message.usage else None,
            "durationMs": message.duration_ms,
            "quote": message.quote,
            "engine": message.engine,
            "memory": self._hits.of(message.turn_id) if message.role == "agent" else 0,
        }

    def find(self, message_id: str) -> dict[str, Any] | None:
        """A message by its id, looked for from the newest on."""
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")[-_DAYS_SEARCHED:]
        for limit in _TAILS:
            for name in reversed(names):
                for line in reversed(self._files.tail(f"{paths.TRANSCRIPT}/{name}", limit)):
                    if line.get("id") == message_id:
                        return self._parsed(line)
        return None

    def _parsed(self, line: dict[str, Json]) -> dict[str, Any] | None:
        try:
            return self.shown(Message.model_validate(line, strict=False))
        except ValidationError:
            return None


def waiting(files: ReadOnlyFiles) -> list[dict[str, Any]]:
    """What the user sent and no message shows yet, oldest first."""
    frozen = being_answered(files)
    mine = [name for name in files.names(paths.INBOX) if not name.startswith(_RESULTS)]
    found: list[InboxItem] = []
    for name in mine[:_MAX_WAITING]:
        item = files.peek(f"{paths.INBOX}/{name}", InboxItem)
        if item is not None and item.kind != "task_result":
            found.append(item)
    found.sort(key=lambda item: (item.created_at, item.id))
    return [_item(item, frozen) for item in found]


def waiting_item(files: ReadOnlyFiles, item_id: str) -> tuple[bool, dict[str, Any] | None]:
    """Whether an inbox entry concerns the page, and the entry if it is still there."""
    if item_id.startswith(_RESULTS):
        return False, None
    item = files.peek(paths.inbox(item_id), InboxItem)
    if item is None:
        return True, None
    return True, _item(item, being_answered(files))


def being_answered(files: ReadOnlyFiles) -> frozenset[str]:
    """Inbox ids that a turn in progress has frozen."""
    frozen: set[str] = set()
    for name in files.names(paths.TURNS, suffix=".started"):
        mark = files.peek(f"{paths.TURNS}/{name}", TurnStarted)
        if mark is not None:
            frozen.update(mark.inputs)
    return frozenset(frozen)


def _item(item: InboxItem, frozen: frozenset[str]) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "text": item.text,
        "createdAt": time_text(item.created_at),
        "quote": item.quote,
        "state": "answering" if item.id in frozen else "queued",
    }


def question(files: Files) -> dict[str, Any] | None:
    """The question that waits for an answer."""
    found = questions.pending(files)
    return None if found is None else _question(found)


def _question(question: Question) -> dict[str, Any]:
    return {
        "questionId": question.question_id,
        "question": question.question,
        "options": question.options,
        "default": question.default,
        "createdAt": time_text(question.created_at),
        "expiresAt": time_text(question.expires_at),
    }


class Usage:
    """Tokens of the conversation today; reads each line of the transcript once."""

    def __init__(self, files: ReadOnlyFiles) -> None:
        """Nothing counted yet."""
        self._files = files
        self._lock = threading.Lock()
        self._day = date.min
        self._offset = 0
        self._sum = {"inputTokens": 0, "outputTokens": 0}

    def today(self, now: datetime) -> dict[str, int]:
        """Tokens used since midnight UTC."""
        with self._lock:
            if now.date() != self._day:
                self._day, self._offset = now.date(), 0
                self._sum = dict.fromkeys(self._sum, 0)
            for end, line in self._files.lines(paths.transcript(self._day), offset=self._offset):
                self._offset = end
                usage = line.get("usage")
                if isinstance(usage, dict):
                    self._add(usage)
            return dict(self._sum)

    def _add(self, usage: dict[str, Json]) -> None:
        for key in self._sum:
            amount = usage.get(key)
            self._sum[key] += amount if isinstance(amount, int) else 0


class KnownIds:
    """Ids of messages of the last days, so that one sent twice is taken once."""

    def __init__(self, files: ReadOnlyFiles, days: int = 14) -> None:
        """Nothing is read before the first question."""
        self._files = files
        self._lock = threading.Lock()
        self._days = timedelta(days=days)
        self._read: dict[str, int] = {}
        self._ids: dict[str, set[str]] = {}

    def has(self, message_id: str, now: datetime) -> bool:
        """Whether the transcript holds a message with this id."""
        oldest = (now - self._days).date().isoformat()
        names = self._files.names(paths.TRANSCRIPT, suffix=".jsonl")
        with self._lock:
            for name in names:
                if name >= oldest:
                    self._learn(name)
            for name in [name for name in self._ids if name < oldest]:
                del self._ids[name], self._read[name]
            return any(message_id in ids for ids in self._ids.values())

    def _learn(self, name: str) -> None:
        path = f"{paths.TRANSCRIPT}/{name}"
        ids, offset = self._ids.setdefault(name, set()), self._read.get(name, 0)
        stat = self._files.stat(path)
        if stat is None or stat.size <= offset:
            return
        for end, line in self._files.lines(path, offset=offset):
            ids.add(str(line.get("id")))
            offset = end
        self._read[name] = offset
