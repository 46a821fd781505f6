"""Steps of a chain that wait stand in the order in which they will come."""

from __future__ import annotations

from datetime import timedelta

from mimikit.protocol.triggers import Trigger
from mimikit.views.waiting_steps import in_turn
from tests.web.conftest import START


def step(id_: str, *after: str, minute: int = 0) -> Trigger:
    """A step of a plan that waits for others, made at its minute."""
    conditions = [{"type": "task_done", "params": {"taskId": one}} for one in after]
    return Trigger.model_validate(
        {
            "id": id_,
            "type": "conditional",
            "prompt": id_,
            "traceId": "trace-1",
            "createdAt": START + timedelta(minutes=minute),
            "once": True,
            "condition": {"type": "and", "params": {"conditions": conditions}},
        }
    )


def ids(*steps: Trigger) -> list[str]:
    return [one.id for one in in_turn(list(steps))]


def test_a_step_stands_behind_those_it_waits_for_whatever_their_names_are() -> None:
    copy, check = step("trig-a", "trig-b", "trig-c"), step("trig-b", "trig-c")
    assert ids(copy, check, step("trig-c", "task-begun")) == ["trig-c", "trig-b", "trig-a"]


def test_of_steps_side_by_side_the_older_comes_first() -> None:
    late, early = step("trig-a", "task-x", minute=2), step("trig-b", "task-x", minute=1)
    assert ids(late, early) == ["trig-b", "trig-a"]


def test_a_circle_that_hands_made_comes_last_and_is_all_there() -> None:
    circle = step("trig-a", "trig-b"), step("trig-b", "trig-a")
    assert ids(*circle, step("trig-c", "task-x")) == ["trig-c", "trig-a", "trig-b"]
    assert ids(step("trig-a", "trig-a")) == ["trig-a"]
