"""The default notification of a run, its description, and the records of the channels. Pure."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field

from mimikit.language.phrases import Language, Words, say_both
from mimikit.protocol.models import REMINDER, Id, Instant, Notify, Origin, Record
from mimikit.protocol.triggers import Schedule, Trigger

CONVERSATION: frozenset[Origin] = frozenset({"teller", "planner", "builtin"})
"""Origins of work that was asked for in the conversation."""
OFTEN_S = 3600
"""Triggers with a shorter interval notify only of changes."""
_BY_CODE = frozenset({"command", REMINDER})


def default_notify(
    profile: str, origin: Origin, *, schedule: Schedule | None = None, is_standing: bool = False
) -> Notify:
    """The default for a profile, an origin and a schedule."""
    if schedule is not None and profile != REMINDER and _is_often(schedule):
        return "change"
    if profile in _BY_CODE:
        return "message"
    return "teller" if is_standing or origin in CONVERSATION else "message"


def notify_of(trigger: Trigger) -> Notify:
    """The trigger's own setting, else the default; a reminder always sends a message."""
    if trigger.profile == REMINDER:
        return "message"
    return trigger.notify or default_notify(
        trigger.profile, trigger.origin, schedule=trigger.schedule, is_standing=is_standing(trigger)
    )


def is_standing(trigger: Trigger) -> bool:
    """Whether it fires every time its condition becomes true."""
    return trigger.condition is not None and not trigger.once


def with_default_notify(trigger: Trigger) -> Trigger:
    return trigger.but(notify=notify_of(trigger), notify_given=trigger.notify is not None)


def notify_words(trigger: Trigger) -> Words:
    """A sentence such as `I'll tell you when the output changes`."""
    if trigger.profile == REMINDER:
        return say_both("notify_reminder")
    times = "once" if trigger.type == "scheduled" or trigger.once else "each"
    return words(notify_of(trigger), "gathered" if is_standing(trigger) else times)


def words(notify: Notify, times: Literal["once", "each", "gathered"]) -> Words:
    is_always = notify in ("teller", "message")
    return say_both(f"notify_{times if is_always else notify}")


def _is_often(schedule: Schedule) -> bool:
    if schedule.cron is not None:
        # One minute of the hour: two slots are an hour apart or more. Several: they are not.
        return not schedule.cron.strip().partition(" ")[0].isdigit()
    return schedule.interval is not None and schedule.interval < OFTEN_S


# ---- notifications outside the chat

NoticeKind: TypeAlias = Literal["question", "reminder", "failed", "canceled", "breaker", "done"]
"""breaker: the failure at which a trigger was paused."""
PERSONAL: frozenset[NoticeKind] = frozenset({"question", "reminder"})
"""Sent alone, and in quiet hours too."""


class Notice(Record):
    """One event that is to be sent."""

    id: Id
    """Of the task or the question."""
    kind: NoticeKind
    at: Instant
    title: str
    text: str = ""
    language: Language = "en"


class ChannelQueue(Record):
    """What one channel still has to send."""

    waiting: list[Notice] = Field(default_factory=list[Notice])
    in_flight: list[Id] = Field(default_factory=list[str])
    """Being sent, or sent with an unknown outcome: then they are sent again, and marked so."""
    sent_at: Instant | None = None
    failures: int = 0
    """In a row."""
    failing_since: Instant | None = None
    retry_at: Instant | None = None
    error: str = ""

    @property
    def sending(self) -> list[Notice]:
        """What is being sent, or may have been."""
        return [one for one in self.waiting if one.id in self.in_flight]


class SentNotice(Record):
    """What became of one message to a channel."""

    at: Instant
    channel: str
    title: str
    outcome: Literal["sent", "failed", "unknown"]
    """unknown: it may have been sent, and is sent again."""
    again: bool = False
    """It may have been sent twice."""
    error: str = ""


class NotificationState(Record):
    """`notifications.json`: how far the events were read, and what waits to be sent."""

    schema_version: int = 1
    ledger_file: str = ""
    ledger_offset: int = 0
    question_id: str | None = None
    """The last question that was seen."""
    channels: dict[str, ChannelQueue] = Field(default_factory=dict[str, ChannelQueue])
    sent: list[SentNotice] = Field(default_factory=list[SentNotice])
    """The last ones, the newest last."""

    def with_channel(self, name: str, channel: ChannelQueue) -> NotificationState:
        return self.model_copy(update={"channels": {**self.channels, name: channel}})
