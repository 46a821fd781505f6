"""Each link between the documents leads to a file and a heading that are there."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import pytest

from tests.contract.test_docs_commands import REPO, documents

PAGES = [*documents(), REPO / "CHANGELOG.md"]
IN_CHINESE = sorted((REPO / "docs/zh").glob("*.md"))
_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_ELSEWHERE = re.compile(r"[a-z]+:")


def links_of(page: Path) -> list[str]:
    """The relative links of a page, as they are written."""
    found = _LINK.findall(_CODE.sub("", page.read_text()))
    return [link for link in found if not _ELSEWHERE.match(link)]


@functools.cache
def headings_of(page: Path) -> frozenset[str]:
    """What its headings are called in links: as GitHub makes them."""
    lines = _FENCE.sub("", page.read_text()).splitlines()
    titles = [line.lstrip("#").strip() for line in lines if re.match("#{1,6} ", line)]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles]
    return frozenset(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain)


def target_of(page: Path, link: str) -> Path:
    path = link.partition("#")[0]
    return Path(os.path.normpath(page.parent / path)) if path else page


def targets_of(page: Path) -> list[Path]:
    return [target_of(page, link) for link in links_of(page)]


@pytest.mark.parametrize("place", PAGES, ids=lambda place: place.relative_to(REPO).as_posix())
def test_its_links_lead_somewhere(place: Path) -> None:
    for link in links_of(place):
        target, heading = target_of(place, link), link.partition("#")[2]
        assert target.exists(), f"{link} leads to no file"
        assert not heading or heading in headings_of(target), f"{link} leads to no heading"


@pytest.mark.parametrize("chinese", IN_CHINESE, ids=lambda chinese: chinese.name)
def test_a_chinese_page_is_linked_with_its_english_one(chinese: Path) -> None:
    assert chinese in targets_of(REPO / "README.zh.md")
    english = REPO / "docs" / chinese.name
    if english.exists():  # reminders are a section of another page
        assert chinese in targets_of(english)
        assert english in targets_of(chinese)


def test_a_link_to_nowhere_would_be_noticed() -> None:
    assert "no-such-heading" not in headings_of(REPO / "README.md")
    assert "extras" in headings_of(REPO / "docs/install.md")
    assert "接一个服务" in headings_of(REPO / "docs/zh/engines.md")
