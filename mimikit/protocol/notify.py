"""Who is told of a run when nobody said so: one table. Pure. Source: spec 0, who is told what."""

from __future__ import annotations

from typing import Literal

from mimikit.language.phrases import Words, say_both
from mimikit.protocol.models import REMINDER, Notify, Origin
from mimikit.protocol.triggers import Schedule, Trigger

CONVERSATION: frozenset[Origin] = frozenset({"teller", "planner", "builtin"})
"""Origins of work that somebody asked for in the conversation."""
OFTEN_S = 3600
"""Runs that are less than this apart are told only when something changed."""
_BY_CODE = frozenset({"command", REMINDER})


def usual(
    profile: str, origin: Origin, *, schedule: Schedule | None = None, is_standing: bool = False
) -> Notify:
    """Who is told of work of this kind: done once, again and again, or at each edge."""
    if schedule is not None and profile != REMINDER and _is_often(schedule):
        return "change"
    if profile in _BY_CODE:
        return "message"
    return "teller" if is_standing or origin in CONVERSATION else "message"


def notify_of(trigger: Trigger) -> Notify:
    """Who is told of a trigger's runs: what was asked for, else what is usual for its kind."""
    if trigger.profile == REMINDER:
        return "message"  # always, whatever somebody said
    return trigger.notify or usual(
        trigger.profile,
        trigger.origin,
        schedule=trigger.schedule,
        is_standing=is_standing(trigger),
    )


def is_standing(trigger: Trigger) -> bool:
    """Whether it fires at each edge of a condition."""
    return trigger.condition is not None and not trigger.once


def settled(trigger: Trigger) -> Trigger:
    """A new trigger, or one of another kind than before, with who is told written in it."""
    given = trigger.notify is not None
    return trigger.but(notify=notify_of(trigger), notify_given=given)


def told_words(trigger: Trigger) -> Words:
    """The same for whoever makes it: `I'll tell you when the output changes …`."""
    if trigger.profile == REMINDER:
        return say_both("notify_reminder")
    times = "once" if trigger.type == "scheduled" or trigger.once else "each"
    return words(notify_of(trigger), "gathered" if is_standing(trigger) else times)


def words(told: Notify, times: Literal["once", "each", "gathered"]) -> Words:
    """Who is told of work that is done so many times: at each edge it is gathered."""
    by_kind = told in ("teller", "message")
    return say_both(f"notify_{times if by_kind else told}")


def _is_often(schedule: Schedule) -> bool:
    if schedule.cron is not None:
        # One minute of the hour: two slots are an hour apart or more. Several: they are not.
        return not schedule.cron.strip().partition(" ")[0].isdigit()
    return schedule.interval is not None and schedule.interval < OFTEN_S
