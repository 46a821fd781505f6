"""Notifications as they lie on disk: what is to be told, what is on its way, what came of it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from mimikit.notify_settings import ChannelName, EventKind
from mimikit.protocol.models import Id, Instant, Record

MOST_EVENTS = 5000
"""Of one notification."""
MOST_ATTEMPTS = 4
"""A notification that was cut short so often may have arrived, and is left at that."""


class NotificationEvent(Record):
    """`notifications/new/{id}.json`, then `done/`: something to be told outside of the page.

    Its id follows from what it tells of, so that it is told once however often that begins anew.
    """

    id: Id
    kind: EventKind
    title: Annotated[str, StringConstraints(max_length=400)]
    """In words: `Failed: nightly tests`."""
    text: Annotated[str, StringConstraints(max_length=2000)] = ""
    language: Literal["en", "zh"] = "en"
    channels: Annotated[list[ChannelName], Field(min_length=1)]
    """Those that it is for."""
    created_at: Instant
    not_before: Instant | None = None
    """Until then it is gathered with what else comes of its trigger."""
    task_id: Id | None = None
    question_id: Id | None = None


class NotificationSend(Record):
    """`notifications/sending/{id}.json`: the mark that one notification is being sent.

    One that is found at the start with no line about it may have arrived, or not.
    """

    id: Id
    channel: ChannelName
    events: Annotated[list[Id], Field(max_length=MOST_EVENTS)]
    title: str
    text: str
    began_at: Instant
    attempt: Annotated[int, Field(ge=1)] = 1
    """After each one that was cut short the next: it may have arrived before."""

    @property
    def doubtful(self) -> bool:
        """Whether it may arrive twice."""
        return self.attempt > 1


SendOutcome: TypeAlias = Literal["sent", "failed", "given_up", "unknown"]
"""given_up: its channel failed for a day. unknown: cut short too often; it may have arrived."""


class NotificationLine(Record):
    """A line of `notifications/YYYY-MM-DD.jsonl`: what came of one send."""

    send: Id
    channel: ChannelName
    outcome: SendOutcome
    events: list[Id] = Field(default_factory=list[str])
    """Those that this brought to their end for the channel; of a failure those in doubt."""
    at: Instant
    doubtful: bool = False
    """It may have arrived twice."""
    error: str | None = None
    """Without the channel's address, or a part of it."""
