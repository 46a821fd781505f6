"""Who may have a shell command run, and from where."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mimikit.config import Settings, WebSettings
from mimikit.protocol.models import Origin, PageAddress, Task
from mimikit.roles.dispatcher import task_refusal

NOW = datetime(2026, 12, 1, tzinfo=UTC)
HOME = PageAddress(host="127.0.0.1", port=8787, local=True, started_at=NOW)
ABROAD = PageAddress(host="192.0.2.1", port=8787, local=False, started_at=NOW)
OWNERS: tuple[Origin, ...] = ("cli", "file", "http", "builtin")


def task(origin: Origin, trigger_origin: Origin | None = None) -> Task:
    return Task(
        id="t",
        prompt="date",
        profile="command",
        created_at=NOW,
        trace_id="t",
        origin=origin,
        trigger_origin=trigger_origin,
    )


@pytest.mark.parametrize("origin", OWNERS)
@pytest.mark.parametrize("served", [None, HOME])
def test_the_owner_may_at_home(origin: Origin, served: PageAddress | None) -> None:
    assert task_refusal(task(origin), Settings(), served) is None
    assert task_refusal(task("trigger", origin), Settings(), served) is None


@pytest.mark.parametrize("origin", ["teller", "planner", "self_awake", "trigger"])
def test_a_mind_may_not_unless_allowed(origin: Origin) -> None:
    assert task_refusal(task(origin), Settings(), HOME)
    assert task_refusal(task(origin), Settings(allow_llm_commands=True), HOME) is None


@pytest.mark.parametrize("origin", ["http", "builtin", "planner", "teller"])
@pytest.mark.parametrize(
    ("settings", "served"),
    [
        (Settings(), ABROAD),
        (Settings(allow_llm_commands=True), ABROAD),
        (Settings(web=WebSettings(host="0.0.0.0")), HOME),  # noqa: S104 - the case in question
    ],
    ids=["really abroad", "abroad and minds allowed", "abroad by the settings"],
)
def test_nobody_from_afar(origin: Origin, settings: Settings, served: PageAddress) -> None:
    assert task_refusal(task(origin), settings, served)
    assert task_refusal(task("trigger", origin), settings, served)


def test_from_afar_when_the_owner_says_so_and_always_at_the_machine() -> None:
    open_web = Settings(web=WebSettings(allow_commands=True))
    assert task_refusal(task("http"), open_web, ABROAD) is None
    assert task_refusal(task("cli"), Settings(), ABROAD) is None
    assert task_refusal(task("file"), Settings(), ABROAD) is None
