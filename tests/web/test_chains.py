"""Chains of tasks and triggers: each step below its upstream, with a limited number of steps."""

from __future__ import annotations

from typing import Any

from mimikit.protocol.triggers import TriggerState
from mimikit.triggers import registry
from mimikit.views import chains
from mimikit.views.tasks import TaskView
from tests.web.conftest import START, Web
from tests.web.test_shown import end, put, trigger


def done(*ids: str) -> dict[str, Any]:
    parts = [{"type": "task_done", "params": {"taskId": id_}} for id_ in ids]
    return parts[0] if len(parts) == 1 else {"type": "and", "params": {"conditions": parts}}


def after(web: Web, trigger_id: str, *ids: str, **facts: Any) -> None:
    shape: dict[str, Any] = {"type": "conditional", "schedule": None, "condition": done(*ids)}
    more = {"trace_id": "t-1", "title": trigger_id.upper(), "created_at": web.clock.now()}
    registry.create(web.files, trigger(id=trigger_id, **shape, **{**more, **facts}))
    web.clock.advance(1)


def steps(chain: list[dict[str, Any]]) -> dict[str, tuple[str, int]]:
    return {step["id"]: (step["state"], step["depth"]) for step in chain}


def links(chain: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    return {
        (link["id"], step["id"], link["words"]["en"]) for step in chain for link in step["after"]
    }


def test_three_definitions_are_one_chain_before_anything_ran(web) -> None:
    put(web, "task-a", trace_id="t-1", title="A")
    after(web, "trig-b", "task-a")
    after(web, "trig-c", "trig-b", enabled=False)
    found = web.get("/api/tasks/task-a")["chain"]
    words = {"en": "when done", "zh": "当完成时"}
    after_a = [{"id": "task-a", "title": "A", "words": words}]
    after_b = [{"id": "trig-b", "title": "TRIG-B", "words": words}]
    assert [tuple(step.values()) for step in found] == [
        ("task-a", "task", "A", "queued", 0, []),
        ("trig-b", "trigger", "TRIG-B", "waiting", 1, after_a),
        ("trig-c", "trigger", "TRIG-C", "paused", 2, after_b),
    ]
    assert web.get("/api/traces/t-1")["chain"] == found
    assert web.get("/api/triggers/trig-c")["chain"] == found


def test_a_run_follows_its_trigger(web) -> None:
    first = put(web, "task-a", trace_id="t-1")
    end(web, first)
    after(web, "trig-b", "task-a")
    facts = {"trace_id": "t-1", "upstream": ["task-a"], "parent_task_id": "task-a"}
    put(web, "task-b", source_trigger_id="trig-b", **facts)
    after(web, "trig-c", "trig-b")
    facts = {"trace_id": "t-1", "upstream": ["task-b"], "parent_task_id": "task-b"}
    put(web, "task-c", source_trigger_id="trig-c", **facts)
    found = web.get("/api/tasks/task-b")["chain"]
    assert links(found) == {
        ("task-a", "trig-b", "when done"),
        ("trig-b", "task-b", "starts"),
        ("trig-b", "trig-c", "when done"),
        ("trig-c", "task-c", "starts"),
    }
    assert steps(found) == {
        "task-a": ("done", 0),
        "trig-b": ("waiting", 1),
        "task-b": ("queued", 2),
        "trig-c": ("waiting", 2),
        "task-c": ("queued", 3),
    }


def test_a_plan_is_linked_to_the_tasks_and_triggers_it_created(web) -> None:
    put(web, "task-p", role="planner", trace_id="t-1")
    put(web, "task-w", trace_id="t-1", parent_task_id="task-p")
    registry.create(web.files, trigger(id="trig-1", trace_id="t-1", parent_task_id="task-p"))
    put(web, "task-r", trace_id="t-1", source_trigger_id="trig-1", parent_task_id="task-p")
    end(web, put(web, "task-f", trace_id="t-1", parent_task_id="task-w"), "failed")
    put(web, "task-f2", trace_id="t-1", parent_task_id="task-w", retry_of="task-f")
    found = web.get("/api/traces/t-1")
    assert links(found["chain"]) == {
        ("task-p", "task-w", "planned"),
        ("task-p", "trig-1", "planned"),
        ("trig-1", "task-r", "starts"),
        ("task-w", "task-f", "then"),
        ("task-f", "task-f2", "tried again"),
    }
    assert [t["id"] for t in found["triggers"]] == ["trig-1"]
    assert {t["id"] for t in found["tasks"]} == {"task-p", "task-w", "task-r", "task-f", "task-f2"}


def test_a_waiting_trigger_of_another_trace_is_listed(web) -> None:
    put(web, "task-a", trace_id="t-1")
    put(web, "task-z", trace_id="t-2")
    after(web, "trig-b", "task-a", "task-z", trace_id="t-3")
    registry.save_state(web.files, "trig-b", TriggerState(blocked_by="task-z"))
    registry.create(web.files, trigger(id="trig-other"))
    found = web.get("/api/tasks/task-a")["chain"]
    assert steps(found) == {"task-a": ("queued", 0), "trig-b": ("blocked", 1)}
    listed = web.get("/api/traces/t-1")
    assert [t["id"] for t in listed["tasks"]] == ["task-a"]


def test_the_last_five_runs_and_the_requested_one_are_listed(web) -> None:
    registry.create(web.files, trigger(trace_id="t-1"))
    for number in range(9):
        web.clock.advance(10)
        put(web, f"task-{number}", trace_id="t-1", source_trigger_id="trig-1")
    whole = {"trig-1", *(f"task-{number}" for number in range(4, 9))}
    assert steps(web.get("/api/triggers/trig-1")["chain"]).keys() == whole
    assert steps(web.get("/api/tasks/task-1")["chain"]).keys() == whole | {"task-1"}


# ---- the order, pure ------------------------------------------------------------------------


def task(id_: str, upstream: list[str] | None = None) -> TaskView:
    return TaskView(
        id=id_, seat="worker", state="done", title=id_, prompt=id_, profile="standard", priority=5,
        origin="cli", created_at=START, started_at=None, completed_at=None, not_before=None,
        waits_for=None, attempts=1, max_attempts=1, failure_reason=None, error=None, trace_id=id_,
        parent_task_id=None, source_trigger_id=None, retry_of=None, upstream=upstream or [],
        internal=False, headline="", wait_ms=None, run_ms=None,
    )  # fmt: skip


def listed(*tasks: TaskView) -> list[tuple[str, int]]:
    chain = chains.Chain({one.id: one for one in tasks})
    return [(step.id, step.depth) for step in chains.steps_of(chain)]


def test_a_step_is_listed_after_all_that_lead_to_it() -> None:
    found = listed(
        task("a"),
        task("b", upstream=["a"]),
        task("c", upstream=["a"]),
        task("d", upstream=["b", "c"]),
        task("e"),
    )
    assert found == [("a", 0), ("b", 1), ("c", 1), ("d", 2), ("e", 0)]


def test_a_cycle_in_files_written_by_hand_is_listed() -> None:
    circle = (task("a", upstream=["c"]), task("b", upstream=["a"]), task("c", upstream=["b"]))
    assert listed(*circle) == [("a", 0), ("b", 1), ("c", 2)]
    assert listed(task("a", upstream=["a"])) == [("a", 0)]
