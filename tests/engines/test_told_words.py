"""Notify clauses in sentences ("only tell me if it fails")."""

from __future__ import annotations

import pytest

from mimikit.engines.builtin import grammar, intents, notify
from mimikit.engines.builtin.intents import EveryIntent, RunIntent, SwitchIntent

EVERY = "every 10 minutes run: date"


@pytest.mark.parametrize(
    ("clause", "told"),
    [
        ("only tell me if it changes", "change"),
        ("only tell me when it fails", "failure"),
        ("but don't tell me", "none"),
        ("tell me every time", "message"),
        ("有变化才告诉我", "change"),
        ("不用告诉我", "none"),
    ],
)
def test_a_notify_clause_is_read_before_and_after_a_command(clause: str, told: str) -> None:
    for sentence in (f"{EVERY}, {clause}", f"{EVERY}；{clause}", f"{EVERY}. {clause}"):
        assert grammar.parse(sentence) == EveryIntent(600, "date", told)  # pyright: ignore[reportArgumentType]
    bare = clause.removeprefix("and ").removeprefix("but ").removesuffix(".")
    if not bare.endswith(("please", "了")):
        assert grammar.parse(f"{bare}: {EVERY}") == EveryIntent(600, "date", told)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "sentence",
    [
        "每 10 分钟运行 `date` 有变化才告诉我",
        "有变化才告诉我：每 10 分钟运行：date",
        "only tell me if it changes: every 10 minutes run date",
    ],
)
def test_a_notify_clause_may_stand_anywhere(sentence: str) -> None:
    intent = grammar.parse(sentence, lambda word: word == "date")
    assert intent == EveryIntent(600, "date", "change")


@pytest.mark.parametrize(
    "command", ["echo tell me if it fails", "say 'it changes'", "grep -r 有变化才告诉我的 ."]
)
def test_notify_words_inside_a_command_are_kept(command: str) -> None:
    assert grammar.parse(f"run: {command}") == RunIntent(command)
    assert notify.split(f"run: `{command}`") == (f"run: `{command}`", None)


def test_talk_is_no_notify_clause() -> None:
    for text in ("don't tell me", "只有失败才告诉我"):
        assert isinstance(grammar.parse(text), intents.PlainSentence)
    note = "the tests, only tell me if it changes"
    assert grammar.parse(f"remember: {note}") == intents.RememberIntent(note)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("resume trig-1", SwitchIntent("resume", "trig-1")),
        ("暂停 备份", SwitchIntent("pause", "备份")),
    ],
)
def test_a_trigger_is_paused_and_resumed_by_name(text: str, intent: SwitchIntent) -> None:
    assert grammar.parse(text) == intent
