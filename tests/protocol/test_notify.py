"""Who is told of a run when nobody said so, and the words for it."""

from __future__ import annotations

from typing import Any

import pytest

from mimikit.protocol.notify import default_notify, notify_of, notify_words, with_default_notify
from mimikit.protocol.triggers import Trigger
from mimikit.triggers import registry
from tests.support.product import START

HOUR, MINUTE = {"interval": 3600}, {"interval": 60}
CHANGED = {"type": "file_changed", "params": {"path": "a.txt"}}


def trigger(**fields: Any) -> Trigger:
    base: dict[str, Any] = {
        "id": "g1",
        "prompt": "date",
        "createdAt": START.isoformat(),
        "traceId": "r",
    }
    given: dict[str, Any] = {**base, **fields}
    plan = given.get("schedule", {})
    type_ = "conditional" if "condition" in given else "recurring"
    given.setdefault("type", "scheduled" if plan.get("runAt") else type_)
    return Trigger.model_validate(given, strict=False)


@pytest.mark.parametrize(
    ("profile", "origin", "told"),
    [
        ("standard", "planner", "teller"),
        ("command", "builtin", "message"),
        ("reminder", "planner", "message"),
        ("standard", "cli", "message"),
        ("command", "cli", "message"),
    ],
)
def test_who_is_told_of_work_that_is_done_once(profile: str, origin: Any, told: str) -> None:
    assert default_notify(profile, origin) == told
    once = trigger(profile=profile, origin=origin, schedule={"runAt": "2026-12-01T09:00:00Z"})
    assert notify_of(once) == told
    step = trigger(profile=profile, origin=origin, condition=CHANGED, once=True)
    assert notify_of(step) == told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"schedule": HOUR, "origin": "planner"}, "teller"),
        ({"schedule": HOUR, "origin": "planner", "profile": "command"}, "message"),
        ({"schedule": {"interval": 3599}, "origin": "planner"}, "change"),
        ({"schedule": MINUTE, "profile": "command"}, "change"),
        ({"schedule": MINUTE, "profile": "reminder"}, "message"),
        ({"schedule": {"cron": "0 9 * * 1-5"}, "origin": "planner"}, "teller"),
        ({"schedule": {"cron": "*/10 9 * * *"}, "origin": "planner"}, "change"),
        ({"condition": CHANGED, "origin": "cli"}, "teller"),
        ({"condition": CHANGED, "profile": "command"}, "message"),
        ({"condition": CHANGED, "profile": "reminder"}, "message"),
        ({"schedule": MINUTE, "notify": "message"}, "message"),
        ({"schedule": HOUR, "notify": "none"}, "none"),
    ],
)
def test_who_is_told_of_a_triggers_runs(fields: dict[str, Any], told: str) -> None:
    assert notify_of(trigger(**fields)) == told


@pytest.mark.parametrize(
    ("fields", "en"),
    [
        ({"schedule": HOUR}, "I'll tell you each time it has run."),
        ({"schedule": MINUTE}, "I'll tell you when the output changes, and when it fails."),
        ({"condition": CHANGED, "once": True}, "I'll tell you when it is done."),
        ({"condition": CHANGED}, "I'll tell you each time, at most once a minute."),
        ({"schedule": HOUR, "notify": "failure"}, "I'll tell you only if it fails."),
        (
            {"schedule": HOUR, "profile": "reminder", "notify": "none"},
            "I'll tell you just these words.",
        ),
        ({"schedule": HOUR, "notify": "none"}, "I won't tell you how it goes."),
    ],
)
def test_the_words_for_who_is_told(fields: dict[str, Any], en: str) -> None:
    words = notify_words(trigger(**fields))
    assert words["en"] == en
    assert words["zh"]


def test_what_is_usual_follows_a_new_schedule_and_what_was_asked_for_stays() -> None:
    usual = with_default_notify(trigger(schedule=HOUR))
    assert (usual.notify, usual.notify_given) == ("message", False)
    often = registry.edited(usual, {"schedule": MINUTE})
    assert (often.notify, often.notify_given) == ("change", False)
    asked = registry.edited(often, {"notify": "failure"})
    assert (asked.notify, asked.notify_given) == ("failure", True)
    assert registry.edited(asked, {"schedule": HOUR}).notify == "failure"
    again = registry.edited(asked, {"notify": None})
    assert (again.notify, again.notify_given) == ("change", False)
