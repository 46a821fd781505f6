"""Summaries by rule: important sentences with their dates, of limited length."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.memory import archive
from mimikit.memory.archive import MAX_CHARACTERS, DatedText, inputs_in, summarise
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message
from mimikit.roles.prompts import Prompts
from tests.support.memory_disk import MemoryDisk

AT = "2026-01-20 09:30"


def chat(*texts: str, role: str = "user") -> list[DatedText]:
    return [DatedText(AT, role, text) for text in texts]


def test_facts_stay_and_politeness_goes() -> None:
    text = summarise(
        chat(
            "Hello! How are you? Thanks a lot for your help.",
            "The staging database moved to db7.example.com:5433 on 14 January.",
            "Okay. Yes. Sure.",
            "Deploys are frozen until 2 February because the audit is running.",
        )
    )
    assert "db7.example.com:5433" in text
    assert "frozen until 2 February" in text
    assert not re.search(r"Hello|Okay|Sure|Thanks", text)
    assert all(line.startswith(f"- {AT} user: ") for line in text.split("\n"))


def test_chinese_is_cut_into_sentences_and_weighed() -> None:
    text = summarise(
        chat(
            "好的，谢谢。",
            "生产环境的数据库密码每九十天轮换一次。下次轮换在三月十五日！请提前通知张伟。",
            "嗯。",
            "我們決定改用東京的伺服器，因為延遲只有 34 毫秒。",
        )
    )
    assert "下次轮换在三月十五日！" in text
    assert "東京的伺服器" in text
    assert "谢谢" not in text
    assert "嗯" not in text


def test_repeated_sentences_are_kept_once_in_order() -> None:
    said = [
        DatedText("2026-01-20 09:00", "user", "The invoice number 7781 goes to Acme."),
        DatedText("2026-01-21 10:00", "agent", "The invoice number 7781 goes to Acme!"),
        DatedText("2026-01-22 11:00", "user", "The second invoice 7782 goes to Globex instead."),
    ]
    lines = summarise(said).split("\n")
    assert len(lines) == 2
    assert lines[0].startswith("- 2026-01-20 09:00")
    assert lines[1].startswith("- 2026-01-22 11:00")


def test_other_numbers_are_other_facts() -> None:
    text = summarise(chat("Deployed version 4.1 to server1.", "Deployed version 4.2 to server1.",
                          "部署了版本 1。", "部署了版本 2。"))  # fmt: skip
    assert len(text.split("\n")) == 4


def test_daily_summaries_sum_up_with_their_dates() -> None:
    said = [
        DatedText(
            "2026-01-20", "summary", "- 2026-01-20 09:00 user: The printer is called Hedwig.\n"
        ),
        DatedText("2026-01-21", "summary", "- The router moved to the cellar."),
    ]
    assert summarise(said).split("\n") == [
        "- 2026-01-20 09:00 user: The printer is called Hedwig.",
        "- 2026-01-21 The router moved to the cellar.",
    ]


def test_a_long_day_is_kept_short_and_its_subject_stays() -> None:
    filler = [f"We looked at item {n} of list {n * 7} and went on." for n in range(400)]
    facts = ["The migration to Postgres 17 failed.", "The Postgres migration is tried on Friday."]
    text = summarise(chat(*filler[:200], *facts, *filler[200:]))
    assert len(text) <= MAX_CHARACTERS * 1.2
    assert "Postgres" in text


@given(st.lists(st.text(max_size=400), max_size=10))
def test_any_text_gives_a_bounded_summary_in_lines(texts: list[str]) -> None:
    text = summarise(chat(*texts))
    assert len(text) <= MAX_CHARACTERS * 1.2
    assert all(line.startswith("- ") for line in text.split("\n") if text)


def test_code_and_comments_are_no_sentences() -> None:
    text = summarise(chat("The script is short.\n```py\nsecret_function(1)\n```\n<!-- x -->"))
    assert text == f"- {AT} user: The script is short."
    assert summarise([]) == summarise(chat("", "???", "...")) == ""


# ---- prompts


def filled(name: str, texts: list[str]) -> str:
    files = Files(MemoryDisk())
    files.make_folders()
    pieces = [
        archive.piece_of(
            Message(
                id=f"msg-{n}", role="user", text=t, created_at=datetime(2026, 1, 20, tzinfo=UTC)
            ),
            UTC,
        )
        for n, t in enumerate(texts)
    ]
    values = {"period": "2026-01-20", "messages": archive.fenced(pieces)}
    return Prompts(files).fill(name, values)


@pytest.mark.parametrize("name", ["daily-summary", "monthly-summary"])
@given(texts=st.lists(st.text(max_size=60), max_size=4))
def test_the_inputs_of_a_prompt_are_parsed_again(name: str, texts: list[str]) -> None:
    prompt = filled(name, texts)
    assert [said.text for said in inputs_in(prompt)] == texts
    assert "{{" not in prompt.replace("".join(texts), "") or any("{" in text for text in texts)
