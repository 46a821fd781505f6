"""Texts are cut to a token budget, fast for any length."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.memory import tokens
from mimikit.memory.tokens import TokenCounter
from mimikit.protocol.models import Message

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
MARK = "… [truncated]"


def message(number: int, text: str, role: Literal["user", "agent"] = "user") -> Message:
    return Message(
        id=f"msg-{number}", role=role, text=text, created_at=NOW + timedelta(seconds=number)
    )


def by_characters(text: str) -> int:
    return len(text)


@pytest.fixture(scope="module")
def exact() -> TokenCounter:
    counter = TokenCounter()
    assert counter.load(), counter.failure
    return counter


# ---- cutting one text


@given(st.text(max_size=2000), st.integers(0, 500))
def test_a_cut_text_is_within_its_budget_and_a_beginning(text: str, most: int) -> None:
    kept = tokens.cut_tokens(text, most, by_characters)
    if len(text) <= most:
        assert kept == text
    else:
        body = kept.removesuffix(MARK)
        assert kept.endswith(MARK)
        assert text.startswith(body)
        assert len(body) <= most


@pytest.mark.parametrize(
    "piece", ["word ", "a", " ", "天", "測", "=-", "😀"], ids=["words", "a", "spaces", *"天測=😀"]
)
def test_a_cut_by_real_tokens_is_within_budget_and_quick(exact: TokenCounter, piece: str) -> None:
    text = piece * (2_000_000 // len(piece))

    def cost() -> float:
        started = time.thread_time()
        kept = tokens.cut_tokens(text, 8000, exact.count)
        spent = time.thread_time() - started
        parts = (kept[at : at + 10_000] for at in range(0, len(kept), 10_000))
        assert sum(map(exact.count, parts)) <= 8000 + len(MARK)
        return spent

    assert min(cost(), cost()) < 0.5


# ---- the conversation


@pytest.fixture
def _counted_by_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "count", by_characters)


@pytest.mark.usefixtures("_counted_by_characters")
def test_the_newest_messages_are_kept_oldest_first() -> None:
    said = [message(n, "x" * 100) for n in range(30)]
    kept = tokens.fit(said, 1000)
    assert [m.id for m in kept] == [f"msg-{n}" for n in range(20, 30)]


@pytest.mark.usefixtures("_counted_by_characters")
def test_at_most_twenty_and_at_least_five_stay_whatever_the_budget() -> None:
    said = [message(n, "x") for n in range(30)]
    assert len(tokens.fit(said, 10**9)) == 20
    assert [m.id for m in tokens.fit(said, 0)] == [f"msg-{n}" for n in range(25, 30)]


@pytest.mark.usefixtures("_counted_by_characters")
def test_long_messages_are_cut_and_over_budget_the_agents_first() -> None:
    said = [message(1, "u" * 900), message(2, "a" * 900, "agent")]
    roomy = tokens.fit(said, 5000)
    assert [len(m.text) for m in roomy] == [500 + len(MARK)] * 2
    tight = tokens.fit(said, 800)
    assert [len(m.text) for m in tight] == [500 + len(MARK), 200 + len(MARK)]


# ---- parts


def test_parts_are_kept_while_they_fit_and_the_first_is_cut_if_it_must() -> None:
    assert tokens.fit_parts(["a" * 4, "b" * 4, "c"], 9, by_characters) == ["a" * 4, "b" * 4, "c"]
    assert tokens.fit_parts(["a" * 4, "b" * 6, "c"], 9, by_characters) == ["a" * 4]
    assert tokens.fit_parts(["a" * 40], 10, by_characters) == ["a" * 10 + MARK]
    assert tokens.fit_parts([], 10, by_characters) == []


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=12), st.integers(1000, 4000))
def test_texts_are_whole_if_they_fit_together(sizes: list[int], most: int) -> None:
    texts = [(chr(97 + n) * size, f" (all of it: t/{n})") for n, size in enumerate(sizes)]
    kept = tokens.fit_together(texts, most, len)
    assert sum(map(len, kept)) <= most
    if sum(sizes) <= most:
        assert kept == [text for text, _ in texts]
    for (text, note), part in zip(texts, kept, strict=True):
        assert part == text or (
            part.endswith(MARK + note) and text.startswith(part.partition("…")[0])
        )
        assert len(text) > most // len(texts) or part == text, (
            "a short one is never cut for long ones"
        )
