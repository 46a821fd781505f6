"""The prompts we ship: complete, short, and with no placeholder that nobody fills."""

from __future__ import annotations

import re

import pytest

from mimikit.config import asset_folder
from mimikit.errors import BadSettings
from mimikit.protocol.files import Files
from mimikit.roles.prompts import Prompts
from mimikit.testing.memory_disk import MemoryDisk

KNOWN = {"tools", "workspace", "now", "timezone"}
NAMES = ("teller", "planner", "worker")


def template(name: str) -> str:
    return (asset_folder("prompts") / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_template_names_only_placeholders_that_are_filled(name: str) -> None:
    text = template(name)
    found = re.findall(r"\{\{\s*(.*?)\s*\}\}", text)
    assert set(found) <= KNOWN
    assert {"now", "timezone", "workspace"} <= set(found)
    assert text.count("{{") == text.count("}}") == len(found)


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_short_plain_english(name: str) -> None:
    text = template(name)
    assert 200 < len(text.split()) < 700
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize("name", NAMES)
def test_a_template_says_that_what_is_shown_is_data(name: str) -> None:
    assert re.search(r"\bdata\b", template(name))


@pytest.mark.parametrize("name", ["teller", "planner"])
def test_a_role_with_tools_is_told_of_them(name: str) -> None:
    assert "{{tools}}" in template(name)


@pytest.mark.parametrize("name", ["daily-summary", "monthly-summary", "llm-eval-batch"])
def test_an_override_without_its_data_is_refused(name: str) -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    files.write(f"prompts/{name}.md", b"Sum up {{period}}.")
    with pytest.raises(BadSettings, match=rf"prompts/{name}\.md: expected \{{\{{\w+\}}\}} where"):
        Prompts(files)
    files.write(f"prompts/{name}.md", b"Sum up: {{ messages }} {{statements}}")
    assert Prompts(files).fill(name, {"messages": "m", "statements": "s"}) == "Sum up: m s"
