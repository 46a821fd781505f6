"""Reminders: told by code, at their time, always, once, and by nobody else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mimikit.config import Settings
from mimikit.conversation import history
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message, time_text
from tests.crash.driver import Client
from tests.support.product import START
from tests.support.reading import at, loaded, results, slots
from tests.support.state import start_client


def told(files: Files) -> list[Message]:
    return [m for m in history.page(files, limit=1000).messages if m.reminder is not None]


def texts(files: Files) -> list[str]:
    return [message.text for message in told(files)]


def once(client: Client, id_: str, text: str, seconds: float, **more: str) -> None:
    """Store a reminder that is told once, `seconds` after the start."""
    run_at = time_text(START + timedelta(seconds=seconds))
    schedule = {"runAt": run_at, **more}
    client.make(id_, text, type="scheduled", profile="reminder", schedule=schedule)


@pytest.mark.parametrize("notify", ["message", "change", "none", "failure", "teller"])
def test_equal_words_are_told_each_time_by_no_engine(judged: Client, notify: str) -> None:
    judged.trigger("g1", 60, "drink water", profile="reminder", notify=notify)
    for seconds in (60, 120, 180):
        at(judged, seconds)
    assert texts(judged.files) == ["Reminder: drink water"] * 3
    assert [message.role for message in told(judged.files)] == ["system"] * 3
    assert len({message.id for message in told(judged.files)}) == 3
    assert judged.oracle.runs == []
    assert set(results(judged.files).values()) == {"done"}
    assert [line["state"] for line in slots(judged.files, "g1")] == ["ran"] * 3


def test_it_is_told_at_its_time_while_everything_else_is_paused(judged: Client) -> None:
    judged.order("o1", "pause")
    once(judged, "g1", "turn off the oven", 60)
    at(judged, 59)
    assert texts(judged.files) == []
    at(judged, 60)
    assert texts(judged.files) == ["Reminder: turn off the oven"]
    assert loaded(judged.files, "triggers/g1.json") is None


def test_reminders_of_one_moment_are_a_message_each(judged: Client) -> None:
    once(judged, "g1", "call mum", 60)
    once(judged, "g2", "给妈妈打电话", 60)
    at(judged, 60)
    assert sorted(texts(judged.files)) == ["Reminder: call mum", "提醒：给妈妈打电话"]
    assert all(len(message.task_ids) == 1 for message in told(judged.files))


def test_one_that_was_due_while_the_machine_was_off_is_told_once_with_its_time(
    judged: Client,
) -> None:
    once(judged, "g1", "call mum", 60, timezone="Asia/Shanghai")
    judged.product.idle()
    judged.stop()
    judged.at(7200)
    judged.restart()
    judged.product.idle()
    judged.restart()
    judged.product.idle()
    assert texts(judged.files) == [
        "Reminder that was meant for you on Tuesday, 2026-12-01 at 17:01 (Asia/Shanghai): call mum"
    ]


def test_of_many_that_were_missed_one_is_told_and_the_others_are_counted(judged: Client) -> None:
    judged.trigger("g1", 600, "喝水", profile="reminder")
    judged.product.idle()
    judged.stop()
    judged.at(3600)
    judged.restart()
    judged.product.idle()
    assert texts(judged.files) == [
        "迟到的提醒，原定 2026-12-01（周二）09:10（UTC），此后又错过 5 次：喝水"
    ]


def test_a_daily_one_follows_its_zone_over_the_change_of_clocks(judged: Client) -> None:
    day = 86400
    at(judged, 116 * day)  # 2027-03-27 at 09:00 UTC; in Berlin it is summer from the 28th on
    cron = {"cron": "30 10 * * *", "timezone": "Europe/Berlin"}
    judged.make("g1", "tea", type="recurring", profile="reminder", schedule=cron)
    for seconds in (116 * day + 1800, 117 * day - 1801, 117 * day - 1800):
        at(judged, seconds)
    assert [line["slot"] for line in slots(judged.files, "g1")] == [
        "2027-03-27T09:30:00.000Z",
        "2027-03-28T08:30:00.000Z",
    ]
    assert texts(judged.files) == ["Reminder: tea"] * 2


def test_its_words_stay_as_they_are_whatever_is_in_them(judged: Client) -> None:
    text = "5 - 3 at 09:13.  The **rest**\n- `x`\n\n    done"
    once(judged, "g1", text, 60)
    at(judged, 60)
    (message,) = told(judged.files)
    assert message.reminder == text
    assert message.text == f"Reminder: {text}"


# ---- in the user's own language, without a model


@pytest.fixture
def talk(files: Files) -> Client:
    """A client of a product that is served by code alone."""
    settings = Settings(timezone="Asia/Shanghai")
    return start_client(
        files, lambda _: BuiltinEngine(is_program=lambda _: False), settings=settings
    )


@pytest.mark.parametrize(
    ("asked", "reminder", "put_off", "agreed"),
    [
        (
            "remind me in 20 minutes to turn off the **oven**",
            "Reminder: turn off the **oven**",
            "in 10 minutes",
            "I'll remind you in 10 minutes",
        ),
        ("20 分钟后提醒我关火", "提醒：关火", "过会儿", "好，10 分钟后提醒你"),
        ("20 分鐘後提醒我關火", "提醒：關火", "半小時後", "好，半小時後提醒你"),
    ],
)
def test_it_is_asked_for_told_and_put_off_in_plain_words(
    talk: Client, asked: str, reminder: str, put_off: str, agreed: str
) -> None:
    talk.say("m1", asked)
    talk.product.idle()
    at(talk, 1199)
    assert texts(talk.files) == []
    at(talk, 1200)
    assert texts(talk.files) == [reminder]
    talk.say("m2", put_off)
    talk.product.idle()
    (answer,) = [
        m for m in history.page(talk.files, limit=1000).messages if m.in_reply_to == ["m2"]
    ]
    assert agreed in answer.text
    for minutes in (10, 30):
        at(talk, 1200 + minutes * 60)
    assert texts(talk.files) == [reminder] * 2
    assert talk.files.names("triggers") == []


def test_one_that_comes_again_is_seen_among_the_tasks_and_can_be_ended(talk: Client) -> None:
    talk.say("m1", "every 2 hours remind me to drink water")
    talk.product.idle()
    for hours in (2, 4, 6):
        at(talk, hours * 3600)
    assert texts(talk.files) == ["Reminder: drink water"] * 3
    talk.say("m2", "tasks")
    talk.product.idle()
    listed = history.page(talk.files, limit=1000).messages[-1].text
    assert "`drink water` — reminds you" in listed
    talk.say("m3", "my reminders")
    talk.product.idle()
    listed = history.page(talk.files, limit=1000).messages[-1].text
    assert "every 2 hours" in listed
    talk.say("m4", "stop reminding me to drink water")
    talk.product.idle()
    assert talk.files.names("triggers") == []
