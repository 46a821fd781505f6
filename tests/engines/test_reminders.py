"""Sentences that create or snooze a reminder, in English and Chinese."""

from __future__ import annotations

import re
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.engines.base import Outcome, TurnInput
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.builtin.grammar import parse, parse_answer
from mimikit.engines.builtin.intents import BadSentence, CancelIntent, PlainSentence, ShowIntent
from mimikit.engines.builtin.reminders import NoticedIntent, RemindIntent, SnoozeIntent
from mimikit.language import phrases
from mimikit.language.times import parse_when
from mimikit.protocol.models import Message
from tests.support.engine_requests import NOW, Desk, inputs, make_request, task

ENGINE = BuiltinEngine({"date"}.__contains__)
ZONE = "Asia/Shanghai"


@pytest.mark.parametrize(
    ("text", "when", "words"),
    [
        ("remind me tomorrow at 9 to call mum", "tomorrow at 9", "call mum"),
        ("remind me tomorrow to be at the station at 9", "tomorrow at 9", "be at the station"),
        ("remind me every day to drink water at 10", "every day at 10", "drink water"),
        ("set a reminder for tomorrow 9am to call mum", "tomorrow 9am", "call mum"),
        ("remind me at 9: to be or not, please", "at 9", "to be or not, please"),
        ("remind me tomorrow: 9:00 meeting", "tomorrow", "9:00 meeting"),
        ("remind me at 9: 5 - 3\n\n  - **x**  `y`", "at 9", "5 - 3\n\n  - **x**  `y`"),
        ("明天提醒我早上9点开会", "明天早上9点", "开会"),
        ("3天后提醒我：9点开会", "3天后", "9点开会"),
        ("明天早上 9 點提醒我給媽媽打電話", "明天早上 9 點", "給媽媽打電話"),
    ],
)
def test_a_reminder_is_understood_and_keeps_its_words(text: str, when: str, words: str) -> None:
    assert parse(text) == RemindIntent(when, words)
    assert parse_when(when, now=NOW, zone=ZoneInfo(ZONE)) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("remind me to call mum", "reminding_none"),
        ("remind me 5 minutes before the meeting to leave", "reminding_none"),
        ("提醒我下班买菜", "reminding_none"),
        ("remind me every 0.1 seconds to breathe", "too_often"),
    ],
)
def test_a_reminder_without_a_valid_time_is_refused(text: str, reason: str) -> None:
    assert parse(text) == BadSentence(reason, text)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "text",
    [
        "remind me what I said about tea", "remind me how this works", "提醒我什么时候交的房租",
        "reminders are nice", "he reminds me of you", "下班前提醒他买菜", "done", "later", "好了",
        "in 10 minutes", "10 分钟后",
    ],
)  # fmt: skip
def test_talk_is_no_reminder(text: str) -> None:
    assert isinstance(parse(text), PlainSentence)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("in 10 minutes", "in 10 minutes"), ("10 minutes", "in 10 minutes"),
        ("tomorrow at 9", "tomorrow at 9"), ("later", ""), ("Snooze", ""), ("not now", ""),
        ("snooze for 20 minutes", "in 20 minutes"), ("snooze until tomorrow", "tomorrow"),
        ("过会儿", ""), ("過會兒", ""), ("等会再说", ""), ("稍后提醒我", ""), ("待会儿", ""),
        ("半小时", "半小时后"), ("再过5分钟", "再过5分钟"), ("推迟10分钟", "10分钟后"),
        ("10 分鐘後再說", "10 分鐘後"),
    ],
)  # fmt: skip
def test_an_answer_snoozes_a_reminder(text: str, when: str) -> None:
    assert parse_answer(text) == SnoozeIntent(when)


@pytest.mark.parametrize("text", ["remind me again in 10 minutes", "10分钟后再提醒我", "remind me"])
def test_to_be_reminded_again_needs_no_words(text: str) -> None:
    assert isinstance(parse(text), SnoozeIntent)


@pytest.mark.parametrize(
    "text",
    ["done", "Done!", "ok", "Okay.", "got it", "好了", "知道了", "做完了", "已经办好了", "完成了"],
)
def test_an_answer_acknowledges_a_reminder(text: str) -> None:
    assert parse_answer(text) == NoticedIntent()


@pytest.mark.parametrize(
    "text", ["", "done with you", "every hour", "tasks", "run: date", "好吃吗"]
)
def test_anything_else_is_no_answer(text: str) -> None:
    assert parse_answer(text) is None


@pytest.mark.parametrize(
    "text", ["reminders", "my reminders", "what reminders do I have", "提醒", "我有哪些提醒"]
)
def test_they_can_be_listed(text: str) -> None:
    assert parse(text) == ShowIntent("reminders")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cancel the reminder to drink water", "drink water"),
        ("cancel drink water reminder", "drink water"),
        ("stop reminding me to drink water", "drink water"),
        ("don't remind me to drink water any more", "drink water"),
        ("取消喝水的提醒", "喝水"), ("别再提醒我喝水了", "喝水"), ("不要提醒我喝水", "喝水"),
        ("停止提醒我", ""),
    ],
)  # fmt: skip
def test_a_reminder_is_canceled_by_its_words(text: str, words: str) -> None:
    assert parse(text) == CancelIntent(words)


@given(st.text(max_size=60))
def test_the_words_after_a_colon_are_verbatim(words: str) -> None:
    bare = words.strip()
    read = parse(f"remind me in 10 minutes: {words}")
    if "\0" not in words:
        assert read == (
            RemindIntent("in 10 minutes", bare) if bare else SnoozeIntent("in 10 minutes")
        )


# ---- what the assistant does


def told(text: str, words: str | None = None, role: Any = "system") -> Message:
    return Message(id="msg-1", role=role, text=text, created_at=NOW, reminder=words)


def tell(text: str, *conversation: Message, quote: str | None = None) -> tuple[str, Desk]:
    desk = Desk()
    turn_input = TurnInput(
        now=NOW, timezone=ZONE, inputs=inputs(text, quote=quote), conversation=conversation
    )
    outcome = ENGINE.run(make_request("teller", turn_input, desk))
    return outcome.text, desk


def plan(prompt: str) -> tuple[Outcome, Desk]:
    desk = Desk()
    own = task(prompt, role="planner")
    turn_input = TurnInput(now=NOW, timezone=ZONE, task=own)
    return ENGINE.run(make_request("planner", turn_input, desk)), desk


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        (
            "remind me tomorrow at 9 to call mum",
            "I'll remind you tomorrow at 9, that is on Sunday, 2026-11-22 at 09:00 "
            "(Asia/Shanghai): call mum",
        ),
        (
            "remind me every day at 10 to drink water",
            "I'll remind you every day at 10:00 (Asia/Shanghai): drink water",
        ),
        ("每两小时提醒我喝水", "好，每 2 小时提醒你：喝水"),
        (
            "明天早上 9 點提醒我給媽媽打電話",
            "好，明天早上 9 點提醒你，即 2026-11-22（周日）09:00（Asia/Shanghai）：給媽媽打電話",
        ),
    ],
)
def test_the_reply_says_when_in_the_users_words(text: str, reply: str) -> None:
    said, desk = tell(text)
    assert said == reply
    [(tool, arguments)] = desk.calls
    assert (tool, arguments["prompt"]) == ("delegate", text)


def test_the_planner_schedules_the_words_as_a_reminder() -> None:
    _, desk = plan("remind me every day at 10 to drink  water")
    assert desk.calls == [
        (
            "schedule",
            {
                "prompt": "drink  water", "title": "drink water", "profile": "reminder",
                "type": "recurring", "cron": "0 10 * * *", "timezone": ZONE,
            },
        )
    ]  # fmt: skip


def test_a_time_in_the_past_is_reported_and_nothing_is_planned() -> None:
    said, desk = tell("remind me today at 0:01 to sleep")
    assert "has passed" in said
    assert "remind me tomorrow at 9" in said
    assert desk.calls == []


@pytest.mark.parametrize(
    ("answer", "said", "delegated"),
    [
        ("in 10 minutes", "I'll remind you in 10 minutes", "remind me in 10 minutes: "),
        ("过会儿", "10 分钟后提醒你", "10 分钟后提醒我："),
        ("remind me again tomorrow", "I'll remind you tomorrow", "remind me tomorrow: "),
    ],
)
def test_an_answer_after_a_reminder_snoozes_its_words(
    answer: str, said: str, delegated: str
) -> None:
    words = "9:00 **call**  mum, please"
    text, desk = tell(answer, told("hi", role="user"), told(f"Reminder: {words}", words))
    assert said in text
    [(tool, arguments)] = desk.calls
    assert (tool, arguments["prompt"]) == ("delegate", delegated + words)
    _, desk = plan(arguments["prompt"])
    assert desk.calls[0][1]["prompt"] == words


def test_a_quoted_reminder_is_snoozed() -> None:
    said = [told("Reminder: tea", "tea"), told("Reminder: cake", "cake"), told("x", role="user")]
    _, desk = tell("in 10 minutes", *said, quote="Reminder: tea")
    assert desk.calls[0][1]["prompt"] == "remind me in 10 minutes: tea"


@pytest.mark.parametrize(("answer", "reply"), [("done", "All right."), ("好了", "好的。")])
def test_a_done_answer_is_acknowledged(answer: str, reply: str) -> None:
    text, desk = tell(answer, told("Reminder: tea", "tea"))
    assert (text, desk.calls) == (reply, [])


def test_without_a_recent_reminder_there_is_nothing_to_snooze() -> None:
    said = told("Reminder: tea", "tea"), told("x", role="user"), told("y", role="agent")
    text, desk = tell("in 10 minutes", *said)
    assert "no language model" in text
    text, _ = tell("remind me again in 10 minutes", *said)
    assert text == phrases.say("reminding_none", "en")
    assert desk.calls == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("key", ["reminding_none", "reminding_passed"])
def test_suggested_sentences_are_understood(key: str, language: phrases.Language) -> None:
    quoted = re.findall(r"`([^`]+)`|「([^」]+)」", phrases.TABLE[language][key])
    sentences = [one for pair in quoted for one in pair if one]
    assert sentences
    assert all(isinstance(parse(one), RemindIntent) for one in sentences)
