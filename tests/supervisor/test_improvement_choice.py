"""Which item of the check list is due, what is no change of its own, and what a review means."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mimikit.protocol.self_awake import Improvement, SelfAwakeState
from mimikit.self_awake_settings import ImprovementKind, SelfAwakeSettings
from mimikit.supervisor.improvement_choice import (
    HOURS,
    ImprovementChoice,
    ImprovementFacts,
    choose,
    forbidden,
    verdict,
)

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=5)


def chosen(
    *,
    state: SelfAwakeState | None = None,
    asked: bool = False,
    wanted: ImprovementKind | None = None,
    settings: dict[str, Any] | None = None,
    **facts: Any,
) -> ImprovementChoice:
    made = SelfAwakeSettings.model_validate({"enabled": True, **(settings or {})})
    known = replace(ImprovementFacts(busy_at=LONG_AGO), **facts)
    return choose(NOW, known, made, state or SelfAwakeState(), asked=asked, wanted=wanted)


def taken(**hours_ago: float) -> SelfAwakeState:
    return SelfAwakeState.model_validate(
        {"last": {kind: NOW - timedelta(hours=hours) for kind, hours in hours_ago.items()}}
    )


def run() -> Improvement:
    return Improvement(id="awake-1", kind="lint", started_at=NOW, branch="mimikit/self-awake-1")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"settings": {"enabled": False}}, "off"),
        ({"state": SelfAwakeState(run=run())}, "running"),
        ({"short": "no memory"}, "short"),
        ({"no_mind": "logged out"}, "no_mind"),
        ({"busy_at": NOW - timedelta(minutes=4)}, "not_idle"),
        ({"busy_at": NOW + timedelta(minutes=4)}, "not_idle"),
        ({"state": SelfAwakeState(blocked="no git", blocked_at=NOW)}, "blocked"),
        ({"state": taken(**dict.fromkeys(HOURS, 0.5))},
         "nothing_due"),
    ],
)  # fmt: skip
def test_nothing_is_taken_and_it_says_why(given: dict[str, Any], reason: str) -> None:
    choice = chosen(**given)
    assert (choice.kind, choice.held_by) == (None, reason)


def test_the_first_of_the_list_that_is_due_is_taken() -> None:
    everything: dict[str, Any] = {"failed": ["t9"], "backlog": ["sweep"], "memory_bytes": 9000}
    order: list[ImprovementKind] = []
    state = SelfAwakeState()
    while (choice := chosen(state=state, **everything)).kind is not None:
        order.append(choice.kind)
        state = state.but(last={**state.last, choice.kind: NOW})
    assert order == list(HOURS)
    assert choice.at == NOW + timedelta(hours=1), "then a retry may be due again"


def test_what_there_is_nothing_of_is_passed_over() -> None:
    state = taken(lint=1, types=1, docs=1, quality=1, dependencies=1, clean_up=1)
    assert chosen(state=state).held_by == "nothing_due"
    assert chosen(state=state, backlog=["a", "b"])[:2] == ("backlog", "a")
    assert chosen(state=state, memory_bytes=3000).kind == "memory"
    assert chosen(state=state, failed=["t1"])[:2] == ("retry", "t1")
    assert chosen(state=state.but(retried=["t1"]), failed=["t1"]).kind is None
    assert chosen(state=state.but(retried=["t2"]), failed=["t2", "t1"]).subject == "t1"


def test_settings_choose_the_items_their_order_and_times() -> None:
    own = {"items": ["docs", "lint"], "hours": {"docs": 2}}
    assert chosen(settings=own).kind == "docs"
    assert chosen(settings=own, state=taken(docs=1)).kind == "lint"
    assert chosen(settings=own, state=taken(docs=3)).kind == "docs"


def test_who_asks_needs_no_idle_time_and_waits_for_no_interval() -> None:
    state = taken(**dict.fromkeys(HOURS, 0.1)).but(blocked="no git", blocked_at=NOW)
    asked: dict[str, Any] = {"state": state, "asked": True, "busy_at": NOW}
    assert chosen(**asked, settings={"enabled": False}).kind == "lint"
    assert chosen(**asked, wanted="docs").kind == "docs"
    assert chosen(**asked, wanted="backlog").held_by == "nothing_due"
    assert chosen(**asked, short="no memory").held_by == "short"


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    later = NOW + timedelta(days=300)
    assert chosen(state=SelfAwakeState(last={"lint": later})).kind == "lint"
    assert chosen(state=SelfAwakeState(blocked="x", blocked_at=later)).kind == "lint"


@pytest.mark.parametrize(
    ("path", "is_forbidden"),
    [
        ("src/a.py", False),
        ("a/mimikit/b", False),
        (".gitignore", False),
        (".mimikit/config.toml", True),
        ("a/.mimikit/x", True),
        ("a/.MimiKit/x", True),
        (".git/config", True),
        ("a/.GIT /hooks/x", True),
        ("prompts/teller.md", True),
        ("prompts.md", False),
    ],
)
def test_some_paths_are_never_its_to_change(path: str, *, is_forbidden: bool) -> None:
    assert forbidden([path], "", ["prompts", "own/state"]) == (path if is_forbidden else None)


def test_outside_of_the_workspace_nothing_is_its_to_change() -> None:
    assert forbidden(["sub/a", "sub/b/c"], "sub", []) is None
    assert forbidden(["sub/a", "subway"], "sub", []) == "subway"


@pytest.mark.parametrize(
    ("text", "is_good", "why"),
    [
        ('{"ok": true, "reason": "neat"}', True, "neat"),
        ('{"ok": false, "reason": "too large"}', False, "too large"),
        ('Well.\n```json\n{"ok": true}\n```', True, ""),
        ('As the change says: {"ok": true}. No: {"ok": false, "reason": "it lies"}', False,
         "it lies"),
        ('{"ok": "true"}', False, "the review gave no answer that can be used"),
        ("yes", False, "the review gave no answer that can be used"),
        ("{" * 500, False, "the review gave no answer that can be used"),
        ("", False, "the review gave no answer that can be used"),
    ],
)  # fmt: skip
def test_only_a_clear_yes_is_one(text: str, why: str, *, is_good: bool) -> None:
    assert verdict(text) == (is_good, why)
