"""Who is told of a run when nobody said so: one table. Pure. Source: spec 0, who is told what."""

from __future__ import annotations

from mimikit.language.phrases import Words, say_both
from mimikit.protocol.models import REMINDER, Notify, Origin
from mimikit.protocol.triggers import Schedule, Trigger

CONVERSATION: frozenset[Origin] = frozenset({"teller", "planner", "builtin"})
"""Origins of work that somebody asked for in the conversation."""
OFTEN_S = 3600
"""Runs that are less than this apart are told only when something changed."""
_BY_CODE = frozenset({"command", REMINDER})


def notify_of_run(profile: str, origin: Origin) -> Notify:
    """Who is told of work that is done once."""
    return "teller" if origin in CONVERSATION and profile not in _BY_CODE else "message"


def notify_of(trigger: Trigger) -> Notify:
    """Who is told of a trigger's runs: what was asked for, else what is usual for its kind."""
    if trigger.profile == REMINDER:
        return "message"  # always, whatever was asked for
    if trigger.notify is not None:
        return trigger.notify
    if trigger.schedule is not None and _is_often(trigger.schedule):
        return "change"
    if trigger.condition is not None and not trigger.once:
        return "message" if trigger.profile in _BY_CODE else "teller"
    return notify_of_run(trigger.profile, trigger.origin)


def settled(trigger: Trigger) -> Trigger:
    """A new trigger, or one of another kind than before, with who is told written in it."""
    given = trigger.notify is not None
    return trigger.but(notify=notify_of(trigger), notify_given=given)


def told_words(trigger: Trigger) -> Words:
    """The same for whoever makes it: `I'll tell you when the output changes …`."""
    told = notify_of(trigger)
    if trigger.profile == REMINDER:
        return say_both("notify_reminder")
    if told not in ("teller", "message"):
        return say_both(f"notify_{told}")
    if trigger.type == "conditional" and not trigger.once:
        return say_both("notify_gathered")
    return say_both("notify_each" if trigger.type == "recurring" else "notify_once")


def _is_often(schedule: Schedule) -> bool:
    if schedule.cron is not None:
        # One minute of the hour: two slots are an hour apart or more. Several: they are not.
        return not schedule.cron.strip().partition(" ")[0].isdigit()
    return schedule.interval is not None and schedule.interval < OFTEN_S
