"""What is told outside of the page, when, and what of it together: spec 6, line by line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from mimikit.notifications import rules
from mimikit.notifications.events import (
    MOST_LISTED,
    event_of_end,
    event_of_question,
    kind_of_end,
    words_of,
)
from mimikit.notifications.rules import ChannelHistory, SendDecision, after_send, quiet_until
from mimikit.notify_settings import EVENT_KINDS, ChannelSettings, NotifySettings
from mimikit.protocol.models import Question, Task
from mimikit.protocol.notifications import NotificationEvent
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import EndIntent, PlanResult

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
UTC_ZONE, SHANGHAI = ZoneInfo("UTC"), ZoneInfo("Asia/Shanghai")
PHONE = NotifySettings(channels={"phone": ChannelSettings(url_file="notify-phone.url")})
TOLD = EndIntent(told="message")


def s(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def a_task(**changes: Any) -> Task:
    return Task(id="t", prompt="make it so", created_at=NOW, trace_id="r", **changes)


def ended(task: Task, status: Any, took_s: float = 1, **facts: Any) -> TaskResult:
    result = TaskResult.of(
        task, status, attempts=1, started_at=NOW - s(took_s), completed_at=NOW, **facts
    )
    return result.but(result={"text": "first line\nsecond line"})


def event(number: int, kind: Any = "failed", ago_s: float = 0, **more: Any) -> NotificationEvent:
    return NotificationEvent(
        id=f"note-{number}",
        kind=kind,
        title=f"thing {number}",
        channels=["phone"],
        created_at=NOW - s(ago_s),
        **more,
    )


FRESH = ChannelHistory()


def decide(
    events: list[NotificationEvent],
    history: ChannelHistory = FRESH,
    settings: NotifySettings = PHONE,
    zone: ZoneInfo = UTC_ZONE,
    now: datetime = NOW,
) -> SendDecision:
    return rules.decide(events, history, settings, now, zone)


# ---- which ends are told


@pytest.mark.parametrize(
    ("changes", "status", "took_s", "end", "kind"),
    [
        ({}, "failed", 1, TOLD, "failed"),
        ({"profile": "deferred"}, "failed", 1, TOLD, "failed"),
        ({}, "canceled", 1, TOLD, "canceled"),
        ({}, "done", 59.9, TOLD, None),
        ({}, "done", 60, TOLD, "done"),
        ({"profile": "specialist"}, "done", 1, TOLD, "done"),
        ({"profile": "deferred"}, "done", 3600, TOLD, None),
        ({"internal": True, "profile": "specialist"}, "done", 3600, TOLD, None),
        ({"internal": True}, "failed", 1, TOLD, None),
        ({"profile": "reminder"}, "done", 0, TOLD, "reminder"),
        ({"profile": "reminder"}, "canceled", 0, TOLD, "canceled"),
        ({}, "failed", 1, EndIntent(told="message", trips=True), "breaker"),
        ({}, "failed", 1, EndIntent(told=None), None),
        ({"profile": "specialist"}, "done", 1, EndIntent(told=None), None),
    ],
)
def test_what_an_end_is_told_as(
    changes: dict[str, Any], status: str, took_s: float, end: EndIntent, kind: str | None
) -> None:
    task = a_task(**changes)
    assert kind_of_end(task, ended(task, status, took_s), end, PHONE) == kind


def test_a_plan_that_failed_is_told_and_one_that_asks_is_told_as_its_question() -> None:
    task = a_task(role="planner")
    at: dict[str, Any] = {"attempts": 1, "started_at": NOW, "completed_at": NOW}
    failed = PlanResult.of(task, "failed", error="no way", **at)
    found = event_of_end(task, failed, EndIntent(told="teller"), PHONE, UTC_ZONE)
    assert found is not None
    assert (found.kind, found.text) == ("failed", "no way")
    asking = failed.but(status="needs_input")
    assert event_of_end(task, asking, EndIntent(told="teller"), PHONE, UTC_ZONE) is None


def test_the_same_end_has_the_same_id_and_goes_to_the_channels_that_are_for_it() -> None:
    channels = {
        "phone": ChannelSettings(url_file="a"),
        "desk": ChannelSettings(url_file="b", events=["done"]),
    }
    task, settings = a_task(), NotifySettings(channels=channels)
    one, same = (
        event_of_end(task, ended(task, "failed"), TOLD, settings, UTC_ZONE) for _ in range(2)
    )
    assert one is not None
    assert one == same
    assert one.channels == ["phone"]
    assert event_of_end(task, ended(task, "failed"), TOLD, NotifySettings(), UTC_ZONE) is None


def test_words_are_in_the_language_of_the_request_and_only_a_first_line_goes_out() -> None:
    task = a_task(title="nightly tests")
    found = event_of_end(task, ended(task, "done", 60), TOLD, PHONE, UTC_ZONE)
    assert found is not None
    assert (found.title, found.text) == ("Done: nightly tests", "first line")
    chinese = Task(id="t", prompt="跑测试", created_at=NOW, trace_id="r")
    failed = ended(chinese, "failed", error="坏了")
    found = event_of_end(chinese, failed, TOLD, PHONE, UTC_ZONE)
    assert found is not None
    assert (found.title, found.text) == ("失败：跑测试", "坏了")


def test_what_turns_text_around_or_is_not_seen_does_not_go_out() -> None:
    task = a_task(title="a\u202eb\u0007c")
    found = event_of_end(
        task, ended(task, "failed", error="\u202ex\x1b[31my"), TOLD, PHONE, UTC_ZONE
    )
    assert found is not None
    assert (found.title, found.text) == ("Failed: abc", "xy")


def test_without_details_titles_go_out_alone_but_reminders_keep_their_words() -> None:
    settings = PHONE.model_copy(update={"details": False})
    task, reminder = a_task(title="x"), a_task(profile="reminder")
    found = event_of_end(task, ended(task, "failed", error="e"), TOLD, settings, UTC_ZONE)
    told = event_of_end(reminder, ended(reminder, "done"), TOLD, settings, UTC_ZONE)
    assert found is not None
    assert told is not None
    assert (found.text, told.text) == ("", "make it so")


def test_a_late_reminder_says_when_it_was_meant_for() -> None:
    task = a_task(profile="reminder", timezone="Asia/Shanghai")
    late = ended(task, "done").but(result={"text": "x", "plannedAt": "2026-12-01T01:00:00.000Z"})
    found = event_of_end(task, late, TOLD, PHONE, UTC_ZONE)
    assert found is not None
    assert found.title.startswith("Reminder that was meant for you")
    assert "09:00" in found.title
    odd = late.but(result={"plannedAt": "no time"})
    told = event_of_end(task, odd, TOLD, PHONE, UTC_ZONE)
    assert told is not None
    assert told.title == "Reminder"


def test_a_question_goes_with_its_options() -> None:
    question = Question(
        question_id="q", question="颜色？", options=["红", "蓝"], created_at=NOW, expires_at=NOW
    )
    found = event_of_question(question, PHONE)
    assert found is not None
    assert (found.title, found.text) == ("有个问题要问你", "颜色？\n- 红\n- 蓝")
    assert event_of_question(question, NotifySettings()) is None


def test_several_are_one_with_what_is_urgent_first_and_of_many_the_number() -> None:
    few = [event(1, "done", text="fine"), event(2, "question", text="which?")]
    assert words_of(few) == ("2 things to tell you", "• thing 2: which?\n• thing 1: fine")
    title, text = words_of([event(number) for number in range(MOST_LISTED + 5)])
    assert title == "25 things to tell you"
    assert len(text.splitlines()) == MOST_LISTED + 1
    assert text.endswith("… and 5 more")


# ---- when


@pytest.mark.parametrize("kind", sorted(set(EVENT_KINDS) - {"done"}))
def test_all_but_success_goes_at_once(kind: str) -> None:
    assert decide([event(1, kind)]).events == (event(1, kind),)


def test_successes_within_five_seconds_are_one() -> None:
    first, second, third = event(1, "done", 4.9), event(2, "done", 1), event(3, "done", 5)
    assert decide([first, second]) == SendDecision((), NOW + s(0.1))
    assert decide([third, first, second]).events == (third, first, second)


def test_a_failure_does_not_wait_for_a_success_nor_take_it_along() -> None:
    assert decide([event(1, "done", 1), event(2)]).events == (event(2),)


def test_two_are_a_second_and_a_half_apart_and_what_waits_goes_as_one() -> None:
    history = after_send(ChannelHistory(), NOW - s(1), None)
    assert decide([event(1), event(2)], history) == SendDecision((), NOW + s(0.5))
    assert decide([event(1), event(2)], history, now=NOW + s(0.5)).events == (event(1), event(2))


def test_more_than_an_hour_allows_are_gathered_but_questions_and_reminders_go() -> None:
    settings, history = PHONE.model_copy(update={"per_hour": 4}), ChannelHistory()
    for ago in (30, 20):
        history = after_send(history, NOW - s(ago), None)
    assert decide([event(1)], history, settings).due_at == NOW + s(1780)
    for kind in ("question", "reminder"):
        both = [event(1), event(2, kind)]
        assert decide(both, history, settings).events == tuple(both)


@given(st.lists(st.floats(0, 7200), max_size=200), st.integers(2, 40))
def test_no_hour_sees_more_than_it_allows(times: list[float], per_hour: int) -> None:
    settings = PHONE.model_copy(update={"per_hour": per_hour})
    history, waiting, sent = ChannelHistory(), list[NotificationEvent](), list[datetime]()
    now = NOW
    for number, at in enumerate([*sorted(times), 20000.0]):
        until = NOW + s(at)
        while (
            waiting
            and (due := decide(waiting, history, settings, now=now))
            and (due.events or (due.due_at and due.due_at <= until))
        ):
            if due.events:
                sent.append(now)
                history, waiting = after_send(history, now, None), []
            else:
                assert due.due_at is not None
                now = due.due_at
        now = max(now, until)
        waiting.append(event(number).but(created_at=now))
    for at in sent:
        assert sum(at - rules.AN_HOUR < it <= at for it in sent) <= per_hour


def test_what_is_gathered_of_a_trigger_waits_until_its_minute_is_over_and_no_longer() -> None:
    gathered = event(1, not_before=NOW + s(30))
    assert decide([gathered]) == SendDecision((), NOW + s(30))
    assert decide([event(1, not_before=NOW + s(3600))]).events


def test_in_quiet_hours_only_what_is_allowed_goes_and_the_rest_as_one_at_their_end() -> None:
    settings = PHONE.model_copy(
        update={"quiet": "22:30-08:00", "quiet_events": ["reminder", "question"]}
    )
    night = datetime(2026, 12, 1, 15, tzinfo=UTC)  # 23:00 in Shanghai
    morning = datetime(2026, 12, 2, 0, tzinfo=UTC)
    held = [event(1).but(created_at=night), event(2, "done").but(created_at=night)]
    reminder = event(3, "reminder").but(created_at=night)
    found = decide([*held, reminder], settings=settings, zone=SHANGHAI, now=night)
    assert found.events == (reminder,)
    assert decide(held, settings=settings, zone=SHANGHAI, now=night).due_at == morning
    found = decide(held, settings=settings, zone=SHANGHAI, now=morning)
    assert found.events == tuple(held)


@pytest.mark.parametrize(
    ("quiet", "local", "until"),
    [
        ("22:30-08:00", "22:29", None),
        ("22:30-08:00", "22:30", "2026-12-02 08:00"),
        ("22:30-08:00", "07:59", "2026-12-01 08:00"),
        ("22:30-08:00", "08:00", None),
        ("13:00-14:00", "13:30", "2026-12-01 14:00"),
        ("13:00-14:00", "14:00", None),
        ("", "03:00", None),
    ],
)
def test_quiet_hours_end_when_they_say(quiet: str, local: str, until: str | None) -> None:
    now = datetime.fromisoformat(f"2026-12-01 {local}").replace(tzinfo=SHANGHAI)
    found = quiet_until(PHONE.model_copy(update={"quiet": quiet}), now, SHANGHAI)
    assert (found and f"{found.astimezone(SHANGHAI):%Y-%m-%d %H:%M}") == until


@pytest.mark.parametrize("quiet", ["25:00-08:00", "22:30", "22:30-22:30", "10pm-8am"])
def test_quiet_hours_that_are_none_are_refused(quiet: str) -> None:
    with pytest.raises(ValidationError, match="expected two different times"):
        NotifySettings(quiet=quiet)


# ---- a channel that fails


def test_a_failing_channel_is_tried_ever_less_often_and_given_up_after_a_day() -> None:
    history, waits = ChannelHistory(), list[float]()
    for _ in range(9):
        history = after_send(history, NOW, "down")
        due = decide([event(1)], history).due_at
        assert due is not None
        waits.append((due - NOW).total_seconds())
    assert waits == [30, 60, 120, 240, 480, 960, 1800, 1800, 1800]
    old, new = event(1, ago_s=3600), event(2, ago_s=-1)
    later = NOW + s(86400)
    assert decide([old, new], history, now=later - s(1)).given_up == ()
    assert decide([old, new], history, now=later) == SendDecision((new,), later, (old,))
    assert decide([new], history, now=later + s(1)).given_up == (new,)


def test_what_is_old_already_is_not_given_up_for_one_failure() -> None:
    history = after_send(ChannelHistory(), NOW, "down")
    old = event(1, ago_s=10 * 86400)
    assert decide([old], history) == SendDecision(due_at=NOW + s(30))


def test_what_waited_while_nothing_ran_is_told_however_old_it_is() -> None:
    assert decide([event(1, ago_s=10 * 86400)]).events


def test_a_channel_that_works_again_has_no_failures() -> None:
    down = after_send(after_send(ChannelHistory(), NOW, "down"), NOW + s(30), "down")
    assert (down.failures, down.failing_since) == (2, NOW)
    up = after_send(down, NOW + s(90), None)
    assert (up.failures, up.failing_since, up.error) == (0, None, "down")
    assert (up.sent_at, up.failed_at) == (NOW + s(90), NOW + s(30))


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    history = after_send(ChannelHistory(), NOW + s(7200), None)
    ahead = [event(1, ago_s=-3600), event(2, "done", -3600)]
    assert decide(ahead, history).events == (ahead[0],)
    assert decide(ahead, history, now=NOW + s(3605)).events == (ahead[0], ahead[1])
