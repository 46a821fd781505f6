"""The prompts we ship: complete, short, and with no placeholder that nobody fills."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimikit.config import asset_folder
from mimikit.engines.base import TurnInput
from mimikit.errors import BadSettings
from mimikit.protocol.files import Files
from mimikit.roles.prompts import Prompts
from mimikit.tools.planning import PlannerSession
from mimikit.tools.session import TellerSession, ToolSession
from tests.support.memory_disk import MemoryDisk

KNOWN = {"tools", "workspace", "now", "timezone"}
NAMES = ("teller", "planner", "worker")


def template(name: str) -> str:
    return (asset_folder("prompts") / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_template_names_only_placeholders_that_are_filled(name: str) -> None:
    text = template(name)
    found = re.findall(r"\{\{\s*(.*?)\s*\}\}", text)
    assert set(found) <= KNOWN
    assert set(found) <= {"workspace"}, (
        "what changes from turn to turn stands in the prompt, at its end"
    )
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


@pytest.mark.parametrize(
    ("name", "session"), [("teller", TellerSession), ("planner", PlannerSession)]
)
def test_a_template_names_only_tools_of_its_role_and_describes_none_again(
    name: str, session: type[ToolSession]
) -> None:
    text = template(name)
    others = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text))
    words = {"needs_input"} if name == "planner" else set[str]()
    assert others - words - {"llm_eval"} <= {spec.name for spec in session.specs()}
    assert not [spec.name for spec in session.specs() if spec.description in text]


def test_a_template_of_ones_own_may_name_what_ours_no_longer_do() -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    files.write("prompts/teller.md", b"{{now}} {{timezone}} {{workspace}} {{tools}}")
    now = datetime(2026, 12, 1, 9, tzinfo=UTC)
    told = Prompts(files).instructions(
        "teller", TurnInput(now, "Asia/Shanghai"), TellerSession.specs()[:1], Path("/work")
    )
    assert told.startswith("2026-12-01T09:00:00.000Z Asia/Shanghai /work - `reply`: Send several")


@pytest.mark.parametrize("name", ["daily-summary", "monthly-summary", "llm-eval-batch"])
def test_an_override_without_its_data_is_refused(name: str) -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    files.write(f"prompts/{name}.md", b"Sum up {{period}}.")
    with pytest.raises(BadSettings, match=rf"prompts/{name}\.md: expected \{{\{{\w+\}}\}} where"):
        Prompts(files)
    files.write(f"prompts/{name}.md", b"Sum up: {{ messages }} {{statements}}")
    assert Prompts(files).fill(name, {"messages": "m", "statements": "s"}) == "Sum up: m s"
