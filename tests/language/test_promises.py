"""Promises of later work are recognized, and little else."""

from __future__ import annotations

import pytest

from mimikit.language.promises import has_promise


@pytest.mark.parametrize(
    "text",
    [
        "Sure! I'll remind you tomorrow at 9.", "I will remind you to call mum.",
        "I’ll check the logs tonight and report back.", "I will let you know when it is done.",
        "Tomorrow I'll send the summary.", "I'll definitely remind you.",
        "I'm going to run the backup every day.", "I will get back to you once the build is over.",
        "好的，我会提醒你。", "我会在明天早上提醒您开会。", "明天我帮你检查。",
        "稍后我会告诉你结果。",
        "10 分钟后我再提醒你。", "我明天会帮你整理。", "我將提醒你。", "好，我会每天检查一次日志。",
    ],
)  # fmt: skip
def test_promises(text: str) -> None:
    assert has_promise(text)


@pytest.mark.parametrize(
    "text",
    [
        "I will explain tomorrow's schedule.", "I'll explain: tomorrow is Sunday.",
        "You will be reminded by the trigger `tea` tomorrow.", "I'll do my best.",
        "If you like, I'll remind you tomorrow.", "Shall I remind you tomorrow?",
        "I'll remind you that water boils at 100 °C.", "I can remind you tomorrow.",
        'Say "I will remind you tomorrow" to it.', "I won't remind you.", "I will be 3 tomorrow.",
        "It is already set: I'll remind you at 9.", "I'll write it in English.",
        "Your meeting is tomorrow; I'll keep it short.", "The job will run every day at 9.",
        "> I'll remind you tomorrow\nsaid the note.", "```\nI'll check it tomorrow\n```",
        "需要我提醒你吗？", "如果你愿意，我会提醒你。", "你会收到提醒。",
        "已经设置好了，明天会提醒你。",
        "我不会提醒你。", "明天是周日，我帮你算了一下。", "我来帮你解释。", "明天天气不错。",
    ],
)  # fmt: skip
def test_other_sentences(text: str) -> None:
    assert not has_promise(text)
