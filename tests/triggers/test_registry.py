"""Trigger files written by hand: defaults, errors with their line, cycles."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import BadInput, BadRecord
from mimikit.protocol.triggers import FileExists, FileExistsParameters, Schedule, Trigger
from mimikit.triggers import registry
from mimikit.triggers.registry import edited, find_cycle, parse

SEEN_AT = datetime(2026, 11, 22, 3, tzinfo=UTC)


def parsed(text: str | dict[str, Any], trigger_id: str = "morning") -> Trigger:
    data = text if isinstance(text, str) else json.dumps(text)
    return parse(trigger_id, data.encode(), SEEN_AT)


# ---- what is left out is filled in


@pytest.mark.parametrize(
    ("given_", "kind"),
    [
        ({"schedule": {"interval": 60}}, "recurring"),
        ({"schedule": {"cron": "0 9 * * *"}}, "recurring"),
        ({"schedule": {"runAt": "2026-12-01T09:00:00Z"}}, "scheduled"),
        ({"condition": {"type": "file_exists", "params": {"path": "x"}}}, "conditional"),
    ],
)
def test_prompt_and_plan_are_enough(given_: dict[str, Any], kind: str) -> None:
    trigger = parsed({"prompt": "date", **given_})
    assert (trigger.id, trigger.type) == ("morning", kind)
    assert (trigger.created_at, trigger.origin) == (SEEN_AT, "file")
    assert trigger.trace_id == parsed({"prompt": "other", **given_}).trace_id
    assert trigger.trace_id != parsed({"prompt": "date", **given_}, "evening").trace_id
    assert trigger.enabled
    assert parse("morning", trigger.to_json(), SEEN_AT) == trigger


# ---- what can not fire is refused, with its line


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['{"prompt": "p",', '"schedule": {', '"interval": 0.5}}'], "schedule.interval"),
        (['{"prompt": "p",', '"schedule": {"interval": 5,', '"cron": "0 9 * * *"}}'], "one of"),
        (['{', '', '"prompt": "  ",', '"schedule": {"interval": 5}}'], "only blanks"),
        (['{"id": "evening",', '"prompt": "p", "schedule": {"interval": 5}}'], "'morning'"),
        (['{"prompt": "p", "schedule": {"interval": 5},', '"type": "scheduled"}'], "recurring"),
        (
            [
                '{"prompt": "p", "condition": {"type": "and", "params": {"conditions": [',
                '{"type": "file_exists", "params": {"path": "a"}},',
                '{"type": "file_exists", "params": {',
                '"path": "../b"}}]}}}',
            ],
            "without `..`",
        ),
        (
            ['{"prompt": "p",', '"condition": {', '"type": "file_gone", "params": {}}}'],
            "file_changed",
        ),
        (
            ['{"prompt": "p",', '"schedule": {"interval": 5},', '"condition": {"type": "x"}}'],
            "got both",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)  # fmt: skip
def test_an_error_says_what_is_wrong(lines: list[str], words: str) -> None:
    for end in ("\n", "\r\n"):
        with pytest.raises(BadRecord) as caught:
            parsed(end.join(lines))
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "expected a JSON object"),
        ('{"prompt": "p",\n "schedule": }', "line 2"),
        ('{"schedule": {"interval": 5}}', "prompt: expected a value, got none"),
        ('{"prompt": "p", "prompt": "q"}', "twice"),
        ('{"prompt": "\\ud800", "schedule": {"interval": 5}}', "surrogate"),
        ('{"prompt": "p", "schedule": {"interval": 1e999}}', "finite"),
        ('{"id": 5, "prompt": "p", "schedule": {"interval": 5}}', "in the file's name"),
    ],
)
def test_an_invalid_trigger_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadRecord) as caught:
        parsed(text)
    assert words in str(caught.value)


def test_a_file_with_a_name_that_is_no_id_is_refused() -> None:
    with pytest.raises(BadInput):
        parsed({"prompt": "p", "schedule": {"interval": 5}}, trigger_id="-x")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
FIELDS = [
    "id", "type", "title", "prompt", "profile", "priority", "createdAt", "origin", "timeout",
    "maxAttempts", "traceId", "enabled", "overlap", "once", "role", "notify", "schedule",
    "condition", "cooldown",
]  # fmt: skip


@settings(max_examples=400)
@given(
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3),
    st.dictionaries(st.sampled_from(["interval", "cron", "timezone", "runAt"]), VALUES, max_size=2),
)
def test_no_content_raises_anything_but_a_reason(
    fields: dict[str, Any], plan: dict[str, Any]
) -> None:
    text = json.dumps({"prompt": "p", "schedule": {"interval": 60} | plan} | fields)
    try:
        trigger = parsed(text)
    except BadRecord as error:
        assert str(error)
    else:
        registry.check(trigger)


# ---- edits


def made() -> Trigger:
    return parsed({"prompt": "p", "schedule": {"interval": 60}, "origin": "cli"})


def test_an_edit_replaces_what_it_names_and_nothing_else() -> None:
    new = edited(made(), {"title": "t", "priority": 1})
    assert new == made().but(title="t", priority=1)


def test_a_schedule_replaces_a_condition_and_the_other_way_round() -> None:
    condition = {"type": "file_exists", "params": {"path": "a"}}
    conditional = edited(made(), {"condition": condition, "once": True})
    assert (conditional.type, conditional.schedule) == ("conditional", None)
    assert conditional.condition == FileExists(params=FileExistsParameters(path="a"))
    scheduled = edited(conditional, {"schedule": {"runAt": "2026-12-01T09:00:00Z"}})
    assert (scheduled.type, scheduled.condition) == ("scheduled", None)
    again = edited(scheduled, {"schedule": {"cron": "0 9 * * *", "timezone": "Asia/Shanghai"}})
    assert again.type == "recurring"
    assert again.schedule == Schedule(cron="0 9 * * *", timezone="Asia/Shanghai")


def test_an_edit_never_changes_what_a_trigger_is() -> None:
    new = edited(
        made(),
        {
            "id": "x", "createdAt": "2000-01-01T00:00:00Z", "origin": "http", "traceId": "y",
            "parentTaskId": "z", "type": "conditional",
        },
    )  # fmt: skip
    assert new == made()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prompt": None}, "prompt"),
        ({"priority": 99}, "priority"),
        ({"schedule": {"interval": 0}}, "schedule.interval"),
        ({"schedule": None}, "schedule"),
        ({"condition": {"type": "x"}}, "condition.type"),
        ({"cooldown": float("nan")}, None),
        ({"title": "\ud800"}, None),
    ],
    ids=str,
)
def test_an_edit_that_can_not_fire_is_refused(changes: dict[str, Any], field: str | None) -> None:
    with pytest.raises(BadInput) as caught:
        edited(made(), changes)
    assert field is None or caught.value.field == field


# ---- circles


def naive_cycle(start: str, graph: dict[str, list[str]]) -> bool:
    """Whether a cycle exists, by walking every path."""

    def walk(here: str, walked: frozenset[str]) -> bool:
        return any(
            to == start or (to not in walked and walk(to, walked | {to}))
            for to in graph.get(here, [])
        )

    return walk(start, frozenset())


NAMES = [f"g{number}" for number in range(6)]
GRAPHS = st.dictionaries(
    st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=3, unique=True)
)


@settings(max_examples=500)
@given(GRAPHS, st.sampled_from(NAMES))
def test_cycles_are_found_exactly_where_they_exist(graph: dict[str, list[str]], start: str) -> None:
    way = find_cycle(start, graph.get(start, []), lambda name: graph.get(name, []))
    assert (way is not None) == naive_cycle(start, graph)
    if way is not None:
        assert way[0] == way[-1] == start
        assert len(set(way)) == len(way) - 1
        assert all(to in graph[here] for here, to in itertools.pairwise(way))
