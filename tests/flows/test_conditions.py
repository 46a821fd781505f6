"""Conditional triggers, chains and edits: fire once for what happened, say why, lose nothing."""

from __future__ import annotations

import json
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mimikit.engines.base import Done
from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.triggers.explain import ExplanationContext, explain
from tests.crash.driver import Client
from tests.support.reading import at, cond, fired, loaded, results, slots, transcript


def state(client: Client, trigger_id: str = "g1") -> dict[str, Any]:
    return loaded(client.files, paths.trigger_state(trigger_id))


def runs_of(client: Client, trigger_id: str) -> list[Task]:
    tasks = (
        queue.read(client.files, "worker", f"worker/ended/{name}")
        for name in client.files.names("worker/ended")
    )
    return [task for task in tasks if task and task.source_trigger_id == trigger_id]


def test_of_a_chain_that_has_ended_each_step_can_be_repeated_by_itself(judged: Client) -> None:
    judged.when("g1", "two", cond("task_done", taskId="t1"), once=True)
    judged.when("g2", "three", cond("task_done", taskId="g1"), once=True)
    judged.submit("t1", "bad", max_attempts=1)
    judged.product.idle()
    judged.product.mind.heals = True
    steps = [run.id for trigger_id in ("g1", "g2") for run in runs_of(judged, trigger_id)]
    for number, step in enumerate(["t1", *steps]):
        judged.order(f"o{number}", "retry", step)
        judged.product.idle()
    ends = sorted(results(judged.files).values())
    assert ends == ["canceled", "canceled", "done", "done", "done", "failed"]
    assert fired(judged) == fired(judged, "g2") == 0


def test_changes_while_the_run_before_is_not_over_become_one_run_after_it(judged: Client) -> None:
    judged.when("g1", "build", cond("file_changed", path="src/*"))
    judged.product.idle()
    judged.order("o1", "pause")
    judged.touch("src/a")
    judged.product.idle()
    for action in (1, 2, 3):
        judged.action = action
        judged.touch("src/b")
        judged.product.idle()
    assert fired(judged) == 1
    assert state(judged)["lastVerdict"] == "overlap"
    judged.order("o2", "resume")
    judged.product.idle()
    assert fired(judged) == 2
    assert len(results(judged.files)) == 2


def test_files_of_which_nobody_tells_are_looked_at_now_and_then(judged: Client) -> None:
    judged.product.workspace.blind = True
    judged.when("g1", "build", cond("file_changed", path="a"))
    judged.product.idle()
    judged.touch("a")
    at(judged, 3)
    assert fired(judged) == 1
    judged.action = 1
    judged.touch("a")
    at(judged, 6)
    assert fired(judged) == 2


def write(client: Client, name: str, size: int) -> None:
    """Write to a file now, as a copy in progress does."""
    client.product.workspace.write(name, int(client.now.timestamp() * 1e9), size)


@pytest.mark.parametrize("kind", ["file_exists", "file_changed"])
def test_a_file_counts_once_it_has_rested(judged: Client, kind: str) -> None:
    judged.when("g1", "import", cond(kind, path="in/data"))
    judged.product.idle()
    for second in range(10):  # a copy of ten seconds
        at(judged, second)
        write(judged, "in/data", second)
        judged.product.idle()
        assert fired(judged) == 0
    at(judged, 10.5)
    assert fired(judged) == 0
    at(judged, 12)
    assert fired(judged) == 1
    at(judged, 60)
    assert fired(judged) == 1


def test_an_edit_changes_what_it_names_keeps_the_rest_and_what_was_seen(judged: Client) -> None:
    judged.submit("t1", "one")
    judged.when("g1", "two", cond("task_done", taskId="t1"))
    judged.product.idle()
    judged.order("o1", "trigger_edit", "g1", title="Two", prompt="three")
    judged.product.idle()
    assert fired(judged) == 1, "the same result again"
    definition = loaded(judged.files, paths.trigger("g1"))
    assert (definition["title"], definition["prompt"]) == ("Two", "three")
    assert definition["createdAt"]
    judged.order("o2", "trigger_edit", "g1", schedule={"interval": 60})
    judged.product.idle()
    at(judged, 61)
    definition = loaded(judged.files, paths.trigger("g1"))
    assert (definition["type"], definition["condition"]) == ("recurring", None)
    assert fired(judged) == 2


def test_a_chain_planned_at_once_runs_in_order_and_hands_results_on(judged: Client) -> None:
    prompts: list[str] = []
    worker = judged.product.mind._worker
    judged.product.mind._worker = lambda request: (
        prompts.append(request.prompt), worker(request),
    )[1]  # fmt: skip
    judged.say("m1", "chain: one > two > three")
    judged.product.idle()
    assert [prompt.splitlines()[0] for prompt in prompts] == ["one", "two", "three"]
    assert "## Upstream results" in prompts[1]
    assert "did one" in prompts[1]
    assert "did two" in prompts[2]
    tasks = [
        json.loads(judged.files.read(f"worker/ended/{name}") or b"")
        for name in judged.files.names("worker/ended")
    ]
    assert len({task["traceId"] for task in tasks}) == 1
    assert judged.files.names("triggers") == []


def test_a_new_time_begins_now_and_fires_for_nothing_that_has_passed(judged: Client) -> None:
    cron = {"cron": "*/30 * * * *", "timezone": "UTC"}
    judged.make("g1", "tick", type="recurring", schedule=cron)
    at(judged, 30 * 60)
    at(judged, 50 * 60)
    assert fired(judged) == 1
    judged.order("o1", "trigger_edit", "g1", schedule={"cron": "40 * * * *", "timezone": "UTC"})
    judged.product.idle()
    assert fired(judged) == 1
    assert state(judged)["nextRunAt"] == "2026-12-01T10:40:00.000Z"
    judged.order("o2", "trigger_edit", "g1", schedule={"interval": 60})
    judged.product.idle()
    assert (fired(judged), state(judged)["nextRunAt"]) == (1, "2026-12-01T09:51:00.000Z")


# ---- what a run changes itself, and loops


def writing(client: Client, writes: dict[str, list[str]]) -> None:
    """Let each run write its trigger's files while it runs: file names by trigger."""
    sizes = iter(range(1, 10_000))

    def run(request: Any) -> Done:
        client.product.clock.advance(1)
        task = request.input.task
        for name in writes.get(task.source_trigger_id or "", []):
            write(client, name, next(sizes))
        client.product.clock.advance(1)
        return Done("written")

    client.product.mind._worker = run


def test_what_a_run_writes_itself_does_not_fire_its_trigger(judged: Client) -> None:
    writing(judged, {"g1": ["log/a", "log/new"]})
    write(judged, "log/a", 0)
    judged.when("g1", "log", cond("file_changed", path="log/*"))
    judged.product.idle()
    at(judged, 10)
    write(judged, "log/b", 1)
    at(judged, 15)
    at(judged, 200)
    assert fired(judged) == 1
    write(judged, "log/b", 2)
    at(judged, 300)
    assert fired(judged) == 2


def test_what_a_run_deletes_itself_does_not_fire_its_trigger(judged: Client) -> None:
    judged.when("g1", "move", cond("file_changed", path="in/*"))
    judged.product.idle()

    def run(_request: Any) -> Done:
        judged.product.workspace.remove("in/a")
        return Done("moved")

    judged.product.mind._worker = run
    write(judged, "in/a", 1)
    at(judged, 10)
    assert fired(judged) == 1
    write(judged, "in/b", 1)
    at(judged, 20)
    assert fired(judged) == 2
    judged.product.workspace.remove("in/b")  # by the user, later
    at(judged, 30)
    assert fired(judged) == 3


def explained(client: Client, trigger_id: str = "g1") -> str:
    trigger, broken = registry.active(client.files, trigger_id)
    here = ExplanationContext(client.now, ZoneInfo("UTC"))
    state = registry.state(client.files, trigger_id)
    return explain(trigger, state, broken, here).headline["en"]


def events_of(client: Client) -> list[str]:
    return [str(audit["event"]) for audit in client.product.log.audits]


def test_changes_that_never_end_pause_it_and_are_told_once_with_the_files(judged: Client) -> None:
    judged.when("g1", "log", cond("file_changed", path="log/*"))
    judged.product.idle()
    for number in range(30):
        at(judged, 10 * number + 10)
        judged.product.clock.advance(1)
        write(judged, f"log/{number % 2}", number)
    at(judged, 400)
    assert fired(judged) == 20
    assert events_of(judged).count("circuit_broken") == 1
    assert state(judged)["pausedBy"] == "breaker"
    assert loaded(judged.files, paths.trigger("g1"))["enabled"] is False
    assert slots(judged.files, "g1")[-1]["reason"] == "loop"
    texts = [text for _, text in transcript(judged.files)]
    (said,) = [text for text in texts if "changes of files alone" in text]
    assert "log/0" in said
    assert "again and again" in explained(judged)
    judged.order("o1", "trigger_resume", "g1")
    at(judged, 410)
    write(judged, "log/0", 99)
    at(judged, 420)
    assert slots(judged.files, "g1")[-1]["state"] == "ran"


def test_triggers_that_fire_each_other_count_together(judged: Client) -> None:
    writing(judged, {"g1": ["b/x"], "g2": ["a/x"]})
    judged.when("g1", "one", cond("file_changed", path="a/*"))
    judged.when("g2", "two", cond("file_changed", path="b/*"))
    judged.product.idle()
    at(judged, 10)
    write(judged, "a/x", 1)
    for _ in range(100):
        judged.product.clock.advance(3)
        judged.product.idle()
    assert fired(judged, "g1") + fired(judged, "g2") == 20
    assert events_of(judged).count("circuit_broken") == 1
