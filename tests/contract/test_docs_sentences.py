"""Every sentence that the documentation shows as one the assistant understands is understood."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimikit.engines.builtin import grammar
from mimikit.engines.builtin.intents import BadSentence, PlainSentence

REPO = Path(__file__).parents[2]
PAGES = (
    *("README.md", "README.zh.md", "docs/quick-start.md", "docs/zh/quick-start.md"),
    *("docs/sentences.md", "docs/zh/sentences.md", "docs/zh/reminders.md", "docs/recipes.md"),
    *("docs/zh/recipes.md", "docs/zh/webhooks.md", "docs/zh/faq.md"),
)
HEADS = ("you write", "write", "你写")
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def shown() -> list[tuple[str, str]]:
    """Each sentence of a table whose first column says that one writes it, with its page."""
    found: list[tuple[str, str]] = []
    for name in PAGES:
        is_said = False
        for line in (REPO / name).read_text().splitlines():
            if line.startswith("|--"):
                continue
            first = line.replace(r"\|", "\0").split("|")[1].strip() if line.startswith("| ") else ""
            is_said = bool(first) and (is_said or first in HEADS)
            if is_said and first not in HEADS:
                cells = re.findall(r"`([^`]+)`", first)
                assert cells, f"{name}: {first!r} is no sentence in code marks"
                found += [(name, cell.replace("\0", "|")) for cell in cells]
    return found


@pytest.mark.parametrize(("page", "sentence"), shown())
def test_a_shown_sentence_is_understood(page: str, sentence: str) -> None:
    intent = grammar.parse(sentence, lambda word: word in {"date", "df", "ls", "make", "uptime"})
    assert not isinstance(intent, PlainSentence | BadSentence), (page, intent)


def test_each_page_shows_some_in_its_language() -> None:
    for page in PAGES:
        own = [sentence for name, sentence in shown() if name == page]
        assert own, page
        assert not page.startswith("docs/zh") or any(re.search("[一-鿿]", one) for one in own)
