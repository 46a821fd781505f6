"""Conditions: validation, blocking, and memory after an edit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import BadInput
from mimikit.protocol.triggers import Condition
from mimikit.triggers import conditions
from mimikit.triggers.conditions import MAX_DEPTH, Standing, evaluate
from tests.triggers.naive_condition import World


def one(kind: str, **params: Any) -> Condition:
    return conditions.read({"type": kind, "params": params})


def many(kind: str, *parts: Condition) -> Condition:
    return one(kind, conditions=[part.to_dict() for part in parts])


def denied(part: Condition) -> Condition:
    return one("not", condition=part.to_dict())


def done(subject: str) -> Condition:
    return one("task_done", taskId=subject)


def failed(subject: str) -> Condition:
    return one("task_failed", taskId=subject)


A, B = one("file_exists", path="a"), one("file_exists", path="b")
ASK = one("llm_eval", prompt="does it rain?")


# ---- what may be defined


@pytest.mark.parametrize(
    "condition",
    [
        one("file_changed", path="src/**/*.py"),
        one("file_changed", path="src", fireOnInit=True),
        done("task-1"),
        many("and", A, many("or", B, done("t"))),
        denied(many("or", A, denied(ASK))),
    ],
    ids=str,
)
def test_valid_conditions_are_accepted(condition: Condition) -> None:
    conditions.check(condition)


@pytest.mark.parametrize(
    ("condition", "field", "words"),
    [
        (one("file_gone", path="a"), "condition.type", "expected one of file_changed, file_exists"),
        (one("file_exists"), "condition.params.path", "expected a value, got none"),
        (one("file_exists", path="../x"), "condition.params.path", "without `..`"),
        (one("file_changed", path="a", fireOnInit="yes"), "condition.params.fireOnInit", "boolean"),
        (one("file_changed", path="a", fire_on_init=True), "condition.params.fire_on_init", ""),
        (one("task_done", taskId="../x"), "condition.params.taskId", ""),
        (one("llm_eval", prompt="x" * 2001), "condition.params.prompt", ""),
        (one("and", conditions=[]), "condition.params.conditions", ""),
        (one("or", conditions=[5]), "condition.params.conditions.0", ""),
        (one("and", condition={"type": "file_exists"}), "condition.params.conditions", ""),
        (one("not", condition={"type": "x"}), "condition.params.condition.type", "one of"),
        (
            many("and", A, many("or", B, one("file_exists", path="/../b"))),
            "condition.params.conditions.1.params.conditions.1.params.path",
            "without `..`",
        ),
        (
            denied(one("file_exists", path="[c-a]")),
            "condition.params.condition.params.path",
            "a glob",
        ),
        (denied(done("t")), "condition", "task_done, which is an event"),
        (
            many("and", A, denied(many("or", A, one("file_changed", path="a")))),
            "condition.params.conditions.1",
            "file_changed, which is an event",
        ),
        (denied(denied(failed("t"))), "condition.params.condition", "task_failed"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_invalid_condition_is_refused_with_its_field(
    condition: Condition, field: str, words: str
) -> None:
    with pytest.raises(BadInput) as caught:
        conditions.check(condition)
    assert caught.value.field == field
    assert str(caught.value).startswith(field)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


def test_only_so_many_levels_may_be_nested() -> None:
    deep = A
    for _ in range(MAX_DEPTH - 1):
        deep = denied(deep)
    conditions.check(deep)
    with pytest.raises(BadInput, match=f"at most {MAX_DEPTH} levels"):
        conditions.check(denied(deep))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("file_exists"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "params", "conditions", "condition", "path", "taskId", "x"]),
            inner,
            max_size=4,
        )
        | st.builds(
            lambda kind, params: {"type": kind, "params": params},
            st.sampled_from(["and", "or", "not", "file_exists", "task_done", "llm_eval", ""]),
            st.dictionaries(
                st.sampled_from(["conditions", "condition", "path", "taskId", "prompt"]), inner
            ),
        )
    ),
    max_leaves=12,
)


@settings(max_examples=400)
@given(
    st.sampled_from(
        ["and", "or", "not", "file_exists", "file_changed", "task_done", "llm_eval", "é"]
    ),
    st.dictionaries(
        st.sampled_from(["conditions", "condition", "path", "taskId", "prompt", "fireOnInit"]),
        JUNK,
        max_size=3,
    ),
)
def test_any_params_are_refused_or_can_be_evaluated(kind: str, params: dict[str, Any]) -> None:
    condition = one(kind, **params)
    try:
        conditions.check(condition)
    except BadInput as error:
        assert (error.field or "").startswith("condition")
        return
    verdict = evaluate(condition, World(), {})
    assert set(verdict.nodes) == {path for path, _ in conditions.walk(condition)}


def test_a_model_condition_has_a_cooldown_of_a_day_by_default() -> None:
    assert conditions.cooldown_of(A, None) == 0
    assert conditions.cooldown_of(many("or", A, denied(ASK)), None) == 86_400
    assert conditions.cooldown_of(ASK, 0) == 0
    assert conditions.cooldown_of(A, 5) == 5


# ---- edits


def test_an_edit_keeps_the_memory_of_nodes_that_are_as_they_were() -> None:
    old = many("and", done("t"), one("file_changed", path="a"), A)
    seen = {"$.0": "r1", "$.1": {"a": [1, 1]}, "$.2": True}
    assert conditions.still_valid(old, old, seen) == seen
    new = many("and", done("t"), one("file_changed", path="b"), A)
    assert conditions.still_valid(old, new, seen) == {"$.0": "r1", "$.2": True}
    assert conditions.still_valid(old, many("or", done("t")), seen) == {"$.0": "r1"}
    assert conditions.still_valid(old, done("t"), seen) == {"$": "r1"}
    assert conditions.still_valid(done("t"), many("and", A, done("t")), {"$": "r1"}) == {
        "$.1": "r1"
    }
    assert conditions.still_valid(old, done("u"), seen) == {}
    assert conditions.still_valid(None, old, seen) == {}


# ---- what can never hold


@pytest.mark.parametrize(
    ("condition", "standings", "blocked_by"),
    [
        (done("t"), {"t": "live"}, None),
        (done("t"), {"t": "failed"}, "t"),
        (done("t"), {"t": "unknown"}, "t"),
        (failed("t"), {"t": "done"}, "t"),
        (failed("t"), {"t": "canceled"}, "t"),
        (many("and", done("t"), A), {"t": "failed"}, "t"),
        (many("or", done("t"), failed("u")), {"t": "failed", "u": "done"}, "t"),
        (many("and", A, many("or", done("t"), done("u"))), {"t": "failed", "u": "failed"}, "t"),
        (many("and", ASK, done("t")), {"t": "unknown"}, "t"),
        (denied(A), {}, None),
    ],
    ids=str,
)
def test_a_condition_is_blocked_by_an_event_that_cannot_happen(
    condition: Condition, standings: dict[str, Standing], blocked_by: str | None
) -> None:
    world = World(standings=standings)
    verdict = evaluate(condition, world, {})
    assert verdict.blocked_by == blocked_by
    if blocked_by:
        assert not verdict.open_questions  # a question whose answer changes nothing costs money


def test_a_used_event_does_not_block() -> None:
    world = World(standings={"t": "done"})
    world.ended["t", "done"] = ["t"]
    assert evaluate(done("t"), world, {}).blocked_by is None
    used = evaluate(done("t"), world, {"$": "t"})
    assert (used.blocked_by, used.root.holds, used.root.why) == (None, False, "used")


# ---- how they fire: one example of each rule


def test_a_firing_names_the_results_it_is_about() -> None:
    world = World(disk={"a": [1, 1]})
    world.ended["x", "done"], world.ended["y", "failed"] = ["x"], ["y2"]
    tree = many("and", done("x"), A, failed("y"))
    assert evaluate(tree, world, {}).root.upstream == ("x", "y2")


def test_a_model_is_not_asked_when_its_answer_does_not_matter() -> None:
    world, many_files = World(flooded=True), one("file_changed", path="*")
    hidden = many("and", many_files, ASK)
    assert not evaluate(many("or", many_files, hidden), world, {}).open_questions
    assert not evaluate(hidden, world, {}).open_questions
    assert evaluate(many("or", many_files, ASK), world, {}).open_questions == ("$.1",)
