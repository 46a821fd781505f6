"""What is to be told outside of the page, and what came of it: kept so that each is told once.

An event is a file of `new/` until each of its channels is done with it, then of `done/`. Before a
notification is sent a mark is written; afterwards a line, and the mark goes. A mark without a line
is found at the start: its notification may have arrived. It is sent again, and the line of that
says so; where that was cut short again and again, it is left at that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mimikit.notifications import rules
from mimikit.notifications.events import words_of
from mimikit.notifications.rules import ChannelHistory
from mimikit.notify_settings import NotifySettings
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import derived_id
from mimikit.protocol.json import Json
from mimikit.protocol.models import time_text
from mimikit.protocol.notifications import (
    NotificationEvent,
    NotificationLine,
    NotificationSend,
    SendOutcome,
)

_READ = timedelta(days=3)
"""Lines older than this say nothing of what still waits for a channel that works."""


@dataclass
class NotificationLedger:
    """The folder `notifications/` and what is kept of it in memory; the supervisor's thread alone.

    settings: those in force; what is changed while the consumer runs is put here.
    """

    files: Files
    settings: NotifySettings
    waiting: dict[str, NotificationEvent] = field(default_factory=dict[str, NotificationEvent])
    """Events that some channel is not done with."""
    changes: int = 0
    """Goes up with whatever may let something be sent, or be done with."""
    _over: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """(event, channel) that are done with each other."""
    _doubted: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """(event, channel) of which one may have arrived, and the next try failed."""
    _histories: dict[str, ChannelHistory] = field(default_factory=dict[str, ChannelHistory])

    def load(self, now: datetime) -> list[NotificationSend]:
        """Read what waits; gives the sends that were cut short, of which nobody knows more.

        Crash: it only finishes what a line says already.
        """
        events = self.files.load_all(paths.NOTIFICATIONS_NEW, NotificationEvent)
        marks = self.files.load_all(paths.NOTIFICATIONS_SENDING, NotificationSend)
        self.waiting = {event.id: event for event in events}
        self._over, self._doubted, self._histories = set(), set(), {}
        known: set[str] = set()
        if self.settings.channels or events or marks:
            # Of a clock that was set back, lines of days to come count as well.
            oldest = min([now, *(event.created_at for event in events)]) - _READ
            for line in read_lines(self.files, oldest):
                self._take_in(line)
                if line.outcome != "failed":
                    known.add(line.send)
        for mark in marks:
            if mark.id in known:
                self.files.remove(paths.notification_sending(mark.id))
        self._put_aside(list(self.waiting))
        return [mark for mark in marks if mark.id not in known]

    def add(self, event: NotificationEvent | None) -> None:
        """Have something told, unless it is known already.

        Crash: whoever adds it does so again, and finds it.
        """
        if event is None or event.id in self.waiting:
            return
        if self.files.exists(paths.notification_done(event.id)):
            return
        if not self.files.save_new(paths.notification_new(event.id), event):
            event = self.files.load(paths.notification_new(event.id), NotificationEvent) or event
        self.waiting[event.id] = event
        self.changes += 1

    def history(self, channel: str) -> ChannelHistory:
        return self._histories.get(channel, ChannelHistory())

    def waiting_for(self, channel: str) -> list[NotificationEvent]:
        """What a channel is not done with, oldest first."""
        found = [
            event
            for event in self.waiting.values()
            if channel in event.channels and (event.id, channel) not in self._over
        ]
        return sorted(found, key=lambda event: (event.created_at, event.id))

    def new_send(
        self, channel: str, events: Sequence[NotificationEvent], now: datetime
    ) -> NotificationSend:
        """One notification of these events; nothing is written yet."""
        title, text = words_of(events)
        ids = [event.id for event in events]
        return NotificationSend(
            id=derived_id("send", channel, time_text(now), *ids),
            channel=channel,
            events=ids,
            title=title,
            text=text,
            began_at=now,
            attempt=2 if any((id_, channel) in self._doubted for id_ in ids) else 1,
        )

    def settle(
        self, send: NotificationSend, outcome: SendOutcome, now: datetime, error: str | None = None
    ) -> None:
        """Write down what came of a send, and be done with it; it may be repeated.

        Crash: the line is there before the mark goes; a mark with a line only has to go.
        """
        line = NotificationLine(
            send=send.id,
            channel=send.channel,
            outcome=outcome,
            events=send.events if outcome != "failed" or send.doubtful else [],
            at=now,
            doubtful=send.doubtful,
            error=error,
        )
        self.files.append(paths.notification_lines(now), line.to_dict())
        self.changes += 1
        self._take_in(line)
        self.files.remove(paths.notification_sending(send.id))
        self._put_aside(send.events)

    def is_marked(self, send: NotificationSend) -> bool:
        """Whether an earlier attempt of it began, of which nothing is known."""
        return self.files.exists(paths.notification_sending(send.id))

    def drop(self, event_id: str) -> None:
        """Be done with an event that need not be told any more."""
        if (event := self.waiting.get(event_id)) is not None:
            self._set_aside(event)

    def drop_unreachable(self) -> None:
        """Be done with events whose channels are gone."""
        self._put_aside(list(self.waiting))

    def _put_aside(self, event_ids: Iterable[str]) -> None:
        for event_id in event_ids:
            event = self.waiting.get(event_id)
            left = [it for it in (event.channels if event else ()) if it in self.settings.channels]
            if event is not None and all((event_id, channel) in self._over for channel in left):
                self._set_aside(event)

    def _set_aside(self, event: NotificationEvent) -> None:
        """Crash: it waits still, and is found to be over again."""
        self.files.move(paths.notification_new(event.id), paths.notification_done(event.id))
        del self.waiting[event.id]
        for channel in event.channels:
            self._over.discard((event.id, channel))
            self._doubted.discard((event.id, channel))

    def note_try(self, channel: str, at: datetime, error: str | None) -> None:
        """A send has ended; `error`: why it did not arrive, as far as is known."""
        self._histories[channel] = rules.after_send(self.history(channel), at, error)
        self.changes += 1

    def _take_in(self, line: NotificationLine) -> None:
        named = {(event_id, line.channel) for event_id in line.events if event_id in self.waiting}
        if line.outcome == "failed":
            self._doubted |= named
        else:
            self._over |= named
        if line.outcome in ("sent", "failed"):
            error = None if line.outcome == "sent" else line.error or ""
            self.note_try(line.channel, line.at, error)


def read_lines(files: Files, since: datetime) -> list[NotificationLine]:
    """The lines of that day and later ones, oldest first; what is none of ours is passed over."""
    first = paths.notification_lines(since).rpartition("/")[2]
    found: list[NotificationLine] = []
    for name in files.names(paths.NOTIFICATIONS, suffix=".jsonl"):
        if name >= first:
            lines = files.lines(f"{paths.NOTIFICATIONS}/{name}")
            found += [line for _, value in lines if (line := _line(value)) is not None]
    return found


def _line(value: dict[str, Json]) -> NotificationLine | None:
    try:
        return NotificationLine.model_validate(value, strict=False)
    except ValueError:
        return None
