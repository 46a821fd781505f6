"""Who has the web: by what is installed and set, made when it is first offered, told by doctor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mimikit import providers
from mimikit.cli.tool_checks import web_tools
from mimikit.config import Settings
from mimikit.extras import install_line
from mimikit.log import EventLog
from mimikit.protocol.files import Files
from mimikit.providers import tool_providers
from mimikit.state import State
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock
from mimikit.tools.provider import ToolProvider, ToolRun
from tests.support.product import START

WORKER = ToolRun("r", "worker", "standard")


def state(**internet: Any) -> State:
    files, clock = Files(MemoryDisk()), FakeClock(START)
    files.make_folders()
    settings = Settings.model_validate({"internet": internet})
    return State(Path("/nowhere"), Path("/"), files, settings, clock, EventLog(files, clock))


def of_the_web(state: State) -> list[ToolProvider]:
    return [one for one in tool_providers(state) if one.name == "web"]


def test_where_the_extra_is_installed_it_is_there() -> None:
    (provider,) = of_the_web(state())
    assert [spec.name for spec in provider.specs(WORKER)] == ["web_search", "web_fetch"]
    assert provider.specs(WORKER) == provider.specs(WORKER)


def test_turned_off_or_not_installed_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_the_web(state(enabled=False)) == []
    monkeypatch.setattr(providers, "WEB_PACKAGES", ("httpx", "no_such_package"))
    assert of_the_web(state()) == []


def test_nothing_of_the_extra_is_imported_before_a_run_is_offered_it() -> None:
    line = (
        "import sys, types\n"
        "from mimikit.config import Settings\n"
        "from mimikit.providers import tool_providers\n"
        "state = types.SimpleNamespace(settings=Settings(), files=None)\n"
        "assert 'web' in [one.name for one in tool_providers(state)]\n"
        "heavy = {'httpx', 'httpcore', 'trafilatura', 'lxml', 'pypdf', 'ddgs', 'primp'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "import mimikit.internet.web_tools\n"
        "heavy -= {'httpx', 'httpcore'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", line], check=True)


@pytest.mark.parametrize(
    ("given", "level", "said"),
    [
        ({}, "ok", "for Planner, Worker: search by ddgs, pages of public addresses alone"),
        ({"search": "off", "allow": ["a.org"]}, "ok", "no search, pages of a.org alone"),
        ({"enabled": False}, "note", "off by `internet.enabled`"),
    ],
)
def test_the_doctor_says_what_there_is(given: dict[str, Any], level: str, said: str) -> None:
    (finding,) = web_tools(Settings.model_validate({"internet": given}))
    assert (finding.level, finding.area) == (level, "web tools")
    assert said in finding.text


def test_the_doctor_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mimikit.cli.tool_checks.missing_for_web", lambda: ["ddgs"])
    (finding,) = web_tools(Settings())
    assert finding.level == "note"
    assert "ddgs not installed" in finding.text
    assert finding.mend
    assert install_line("web") in finding.mend
