"""Everything together: the snapshot a page starts from, and the changes that keep it fresh."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

from mimikit import __version__
from mimikit.clock import Clock
from mimikit.config import Settings
from mimikit.log import read_changes
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.ids import is_id
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import messages, tasks, triggers
from mimikit.views import status as status_view
from mimikit.views.base import Render
from mimikit.views.messages import Conversation, Usage
from mimikit.views.status import Vitals

Event = dict[str, Any]


class Shown:
    """The state folder as the page sees it now."""

    def __init__(
        self, files: ReadOnlyFiles, settings: Settings, clock: Clock, render: Render
    ) -> None:
        """Reads only when asked."""
        self.files = files
        self.render = render
        self.conversation = Conversation(files, render)
        self._settings = settings
        self._clock = clock
        self._usage = Usage(files)
        self._changes: dict[str, Callable[[Event], Event | None]] = {
            "message": self._message,
            "inbox": self._inbox,
            "task": self._task,
            "trigger": self._trigger,
            "question": lambda _: {"question": messages.question(files)},
            "status": lambda _: {"status": self.status()},
            "turn": self._turn,
            "delta": self._delta,
        }

    def now(self) -> datetime:
        """The time of this answer."""
        return self._clock.now()

    def vitals(self) -> Vitals:
        """The consumer's heartbeat."""
        return status_view.take_vitals(self.files, self.now())

    def status(self, vitals: Vitals | None = None) -> dict[str, Any]:
        """How it goes."""
        usage = self._usage.today(self.now())
        return status_view.status(self.files, vitals or self.vitals(), usage)

    def situation(self, vitals: Vitals | None = None) -> ExplanationContext:
        """What triggers are explained by."""
        vitals = vitals or self.vitals()
        return triggers.situation(
            self.files,
            now=self.now(),
            zone=self._settings.zone,
            consumer_up=vitals.state != "down",
            health=vitals.health,
            paused=status_view.is_paused(self.files, vitals),
        )

    def snapshot(self) -> dict[str, Any]:
        """All a page needs; its cursor is older than what is in it, so that no change is missed."""
        cursor = read_changes(self.files, None).cursor
        vitals = self.vitals()
        # The inbox before the messages: an item that moves meanwhile is in both, not in neither.
        waiting = messages.waiting(self.files)
        page = self.conversation.page(None, 50)
        seen = {message["id"] for message in page["messages"]}
        return {
            "cursor": cursor,
            "version": __version__,
            "now": status_view.time_text(self.now()),
            "timezone": str(self._settings.zone),
            **page,
            "inbox": [item for item in waiting if item["id"] not in seen],
            "question": messages.question(self.files),
            "tasks": tasks.listed(self.files, vitals.live, None, 0),
            "triggers": triggers.listed(self.files, self.situation(vitals)),
            "status": self.status(vitals),
        }

    def change(self, event: Event) -> Event | None:
        """A hint of the consumer's made whole from the state files; None when it says nothing."""
        kind = event.get("kind")
        make = self._changes.get(kind) if isinstance(kind, str) else None
        facts = make(event) if make is not None else None
        return None if facts is None else {"kind": kind, **facts}

    def _message(self, event: Event) -> Event | None:
        message = self.conversation.find(str(event.get("id")))
        return None if message is None else {"message": message}

    def _inbox(self, event: Event) -> Event | None:
        id_ = _id(event)
        if id_ is None:
            return None
        concerns, item = messages.waiting_item(self.files, id_)
        if not concerns:
            return None
        return {"id": id_, "item": item, **({} if item else {"gone": True})}

    def _task(self, event: Event) -> Event | None:
        id_ = _id(event)
        task = tasks.find(self.files, id_, self.vitals().live) if id_ else None
        return None if task is None else {"task": task}

    def _trigger(self, event: Event) -> Event | None:
        id_ = _id(event)
        if id_ is None:
            return None
        return {"id": id_, "trigger": triggers.find(self.files, id_, self.situation())}

    def _turn(self, event: Event) -> Event | None:
        turn_id, state = event.get("turnId"), event.get("state")
        if not isinstance(turn_id, str) or state not in ("started", "ended"):
            return None
        given = event.get("inputs")
        inputs = cast("list[object]", given) if isinstance(given, list) else []
        run = self.vitals().live.get(turn_id)
        return {
            "state": state,
            "turnId": turn_id,
            "headline": run.headline if run else "",
            "inputs": [str(id_) for id_ in inputs],
        }

    def _delta(self, event: Event) -> Event | None:
        turn_id, text = event.get("turnId"), event.get("text")
        if not isinstance(turn_id, str) or not isinstance(text, str):
            return None
        return {"turnId": turn_id, "text": text}


def _id(event: Event) -> str | None:
    id_ = event.get("id")
    return id_ if isinstance(id_, str) and is_id(id_) else None
