"""The default notification of a run, and its description. Pure."""

from __future__ import annotations

from typing import Literal

from mimikit.language.phrases import Words, say_both
from mimikit.protocol.models import REMINDER, Notify, Origin
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
    """The trigger with its notification filled in."""
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
