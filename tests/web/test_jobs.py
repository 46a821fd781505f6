"""Jobs: one for each request and each trigger, whatever came of it, with totals that are true."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mimikit.conversation.history import HistoryStore
from mimikit.protocol import paths
from mimikit.protocol.models import LiveRun, Message, Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import Schedule, Trigger, TriggerState
from mimikit.tasks import queue
from mimikit.tasks.ledger import Ledger
from mimikit.tasks.queue import TaskSnapshot
from mimikit.triggers import registry
from mimikit.views import jobs
from tests.web.conftest import START, Web, live_run


def at(second: int) -> str:
    return time_text(START + timedelta(seconds=second))


def ended(id_: str, second: int, status: str = "done", **facts: object) -> dict[str, Any]:
    line = {"at": at(second), "event": "ended", "id": id_, "traceId": "t", "title": id_}
    return line | {"status": status, "seat": "worker"} | facts


def fired(id_: str, second: int) -> dict[str, Any]:
    return {"at": at(second), "event": "slot", "id": "g", "taskId": id_, "title": "date"}


PLAN = {"seat": "planner"}
ASKED = [{"at": at(0), "event": "queued", "id": "p", "traceId": "t", "messageId": "msg-1"}]
PLANNED = [*ASKED, ended("p", 1, **PLAN)]
OF_G = {"sourceTriggerId": "g"}
STEP = {"at": at(1), "event": "trigger_created", "id": "g", "title": "last", "stepOf": "t"}


def alive(id_: str, state: Any, role: Any = "worker", **facts: Any) -> TaskSnapshot:
    task = Task(id=id_, prompt=id_, role=role, created_at=START, trace_id="t")
    return TaskSnapshot(task.but(**facts), role, state)


@pytest.mark.parametrize(
    ("lines", "live", "expected"),
    [
        (ASKED, [alive("p", "queued", "planner")], ("asked", "p", [])),
        (ASKED, [alive("p", "running", "planner")], ("planning", "p", [])),
        (ASKED, [alive("p", "asking", "planner")], ("waiting", "p", [])),
        (ASKED, [alive("p", "running", "planner"), alive("a", "queued")], ("planning", "p", ["a"])),
        (PLANNED, [alive("a", "queued")], ("waiting", "a", ["a"])),
        (PLANNED, [alive("a", "running"), alive("b", "queued")], ("running", "a", ["a", "b"])),
        ([*PLANNED, ended("a", 2)], [alive("b", "queued")], ("waiting", "b", ["a", "b"])),
        ([*PLANNED, ended("a", 2)], [], ("done", "a", ["a"])),
        ([*PLANNED, ended("a", 2)], [alive("a", "running")], ("done", "a", ["a"])),
        ([*PLANNED, ended("a", 2, "failed"), ended("b", 3)], [], ("failed", "a", ["a", "b"])),
        (
            [*PLANNED, ended("a", 2, "failed"), ended("b", 3, retryOf="a")],
            [],
            ("done", "b", ["a", "b"]),
        ),
        ([*PLANNED, ended("a", 2, "canceled")], [], ("canceled", "a", ["a"])),
        ([*ASKED, ended("p", 1, "failed", **PLAN)], [], ("failed", "p", ["p"])),
        (PLANNED, [], None),
        ([fired("a", 1), ended("a", 2, **OF_G)], [], ("done", "a", ["a"])),
        (
            [fired("a", 1), ended("a", 2, "failed", **OF_G), fired("b", 3)],
            [alive("b", "running", source_trigger_id="g")],
            ("running", "b", ["a", "b"]),
        ),
        ([*PLANNED, STEP], [alive("a", "running")], ("running", "a", ["a", "g"])),
        ([*PLANNED, STEP, ended("a", 2)], [], ("waiting", "a", ["a", "g"])),
        (
            [*PLANNED, STEP, ended("a", 2), fired("b", 3)],
            [alive("b", "running", source_trigger_id="g")],
            ("running", "b", ["a", "b"]),
        ),
        (
            [*PLANNED, STEP, ended("a", 2), fired("b", 3), ended("b", 4, **OF_G)],
            [],
            ("done", "b", ["a", "b"]),
        ),
        (
            [*PLANNED, STEP, ended("a", 2), {"event": "trigger_removed", "id": "g", "at": at(3)}],
            [],
            ("done", "a", ["a"]),
        ),
        ([{"at": "soon", "event": "ended"}, ended("a", 1, "?"), {"event": "slot"}], [], None),
    ],
)
def test_the_state_of_a_job(lines: Any, live: Any, expected: Any) -> None:
    known: dict[str, jobs.Job] = {}
    for line in lines:
        jobs.fold(known, line)
    found = jobs.in_order(jobs.with_live(known, live).values())
    assert len(found) == (expected is not None)
    for job in found:
        assert job.main is not None
        assert (job.state, job.main.id, [step.id for step in job.shown]) == expected
        assert (job.message_id == "msg-1") == (job.kind == "request")


def test_runs_of_a_trigger_are_one_job_whatever_their_number() -> None:
    known: dict[str, jobs.Job] = {}
    for number in range(360):
        status = "failed" if number % 100 == 7 else "done"
        line = fired(f"r{number}", number)
        for each in (line, line, ended(f"r{number}", number, status, **OF_G)):
            jobs.fold(known, each)
    (job,) = known.values()
    assert (job.kind, job.runs, job.failures, jobs.title_of(job)) == ("trigger", 360, 4, "date")
    assert [*job.steps] == ["r359"]
    assert [step.id for step in job.recent] == [f"r{number}" for number in range(348, 360)]
    assert jobs.totals(known.values())["done"] == 1


def lay(web: Web, id_: str, status: Any = "done", **facts: Any) -> None:
    """A task that has ended, with its records."""
    task = Task(id=id_, prompt=id_, created_at=START, trace_id=f"t-{id_}")
    task = task.but(**facts)
    web.clock.advance(1)
    now = web.clock.now()
    result = TaskResult(id=id_, status=status, trace_id=task.trace_id, started_at=now,
                        completed_at=now)  # fmt: skip
    if status == "failed":
        result = result.but(
            result={"text": "out\nwhy"}, error="exit code 3\nwhy", exit_code=3,
            failure_reason="error",
        )  # fmt: skip
    web.files.save(paths.ended("worker", id_), task)
    queue.finish(web.files, result.but(result=result.result or {"text": f"**{id_}**"}))
    line = {"status": status, "seat": "worker", "traceId": task.trace_id, "title": id_}
    source = task.source_trigger_id
    Ledger(web.files).write("ended", id_, now, **line, sourceTriggerId=source)


def test_totals_count_all_and_pages_lead_to_the_very_first(web: Web) -> None:
    for number in range(120):
        lay(web, f"task-{number:03}", "failed" if number % 10 == 0 else "done")
    web.files.save(paths.queued("worker", "w"), Task(id="w", prompt="w", created_at=START,
                                                     trace_id="t-w"))  # fmt: skip
    page = web.get("/api/jobs")
    found = [job["taskId"] for job in page["jobs"]]
    while page["before"] is not None:
        page = web.get("/api/jobs", before=page["before"])
        found += [job["taskId"] for job in page["jobs"]]
    assert found == ["w", *(f"task-{number:03}" for number in reversed(range(120)))]
    assert page["totals"] == dict.fromkeys(jobs.STATES, 0) | {
        "waiting": 1, "done": 108, "failed": 12,
    }  # fmt: skip
    assert web.get("/api/snapshot")["totals"] == page["totals"]
    for query, count in (
        *(({"q": "TASK-01"}, 10), ({"state": "failed"}, 12), ({"state": "live"}, 1)),
        *(({"state": "ended", "q": "01 task"}, 12), ({"kind": "trigger"}, 0)),
    ):
        assert web.get("/api/jobs", **query)["found"] == count, query
    assert web.ask("GET", "/api/jobs?state=lost").status_code == 422


def test_a_failure_is_said_once_with_its_exit_code(web: Web) -> None:
    lay(web, "task-1", "failed", profile="command")
    job = web.get("/api/jobs/t-task-1")
    assert job["outcome"] == {
        "taskId": "task-1", "state": "failed",
        "text": "out\nwhy", "cut": 0, "error": "", "exitCode": 3,
        "html": '<pre data-lang="text"><code>out\nwhy\n</code></pre>\n',
        "failureReason": "error",
    }  # fmt: skip
    lay(web, "task-2")
    assert "<strong>task-2" in web.get("/api/jobs/t-task-2")["outcome"]["html"]
    assert web.ask("GET", "/api/jobs/t-none").status_code == 404


def test_a_running_job_shows_its_last_lines(web: Web) -> None:
    task = Task(id="task-1", prompt="x", created_at=START, trace_id="t", profile="command")
    web.files.save(paths.running("worker", "task-1"), task)
    for number in range(9):
        line = {"at": at(number), "type": "output", "text": f"step {number}\n"}
        web.files.append(paths.run_output("task-1"), line)
    run: LiveRun = live_run("task-1", "worker", headline="at it")
    web.beat(live=[run])
    job = web.get("/api/jobs/t")
    assert (job["state"], job["headline"]) == ("running", "at it")
    assert job["tail"] == "step 5\nstep 6\nstep 7\nstep 8"


def test_messages_bring_the_jobs_and_triggers_they_are_about(web: Web) -> None:
    Ledger(web.files).write("queued", "task-1", START, traceId="t-task-1", messageId="msg-1")
    lay(web, "task-1")
    lay(web, "task-2", source_trigger_id="g")
    lay(web, "task-3", source_trigger_id="g")
    lay(web, "task-4")
    registry.save_state(web.files, "g", TriggerState(changes=3))
    HistoryStore(web.files).add(
        [
            Message(id="msg-1", role="user", text="do", created_at=START),
            Message(id="msg-2", role="system", text="x", created_at=START, trigger_id="g"),
        ]
    )
    for found in (web.get("/api/messages"), web.get("/api/snapshot")):
        assert {job["id"] for job in found["jobs"]} == {"t-task-1", "g"}
    trigger = next(job for job in found["jobs"] if job["id"] == "g")
    assert (trigger["changes"], trigger["taskId"]) == (3, "task-3")
    first = web.get("/api/jobs", trigger="g", limit="1")
    (second,) = web.get("/api/jobs", trigger="g", before=first["before"])["jobs"]
    assert (first["jobs"][0]["taskId"], second["taskId"]) == ("task-3", "task-2")


def test_an_hour_of_a_ten_second_trigger_is_one_line_with_its_last_result(web: Web) -> None:
    registry.create(web.files, Trigger(id="g", type="recurring", prompt="date", created_at=START,
                                       trace_id="t-g", schedule=Schedule(interval=10)))  # fmt: skip
    history = HistoryStore(web.files)
    for number in range(360):
        lay(web, f"r{number}", "failed" if number == 358 else "done", source_trigger_id="g")
        told = Message(id=f"m{number}", role="system", text="x", created_at=web.clock.now())
        history.add([told.but(trigger_id="g", task_ids=[f"r{number}"])])
        web.clock.advance(9)
    live = Task(id="r360", prompt="r", created_at=START, trace_id="t-g", source_trigger_id="g")
    web.files.save(paths.running("worker", "r360"), live)
    (line,) = web.get("/api/messages")["messages"]
    assert line["id"] == "m359"
    (job,) = web.get("/api/jobs", kind="trigger")["jobs"]
    assert (job["taskId"], job["state"], job["failures"]) == ("r360", "running", 1)
    assert (job["outcome"]["taskId"], job["outcome"]["text"]) == ("r359", "**r359**")
    (trigger,) = web.get("/api/snapshot")["triggers"]
    assert [run["state"] for run in trigger["recent"]] == [
        *["done"] * 9,
        "failed",
        "done",
        "running",
    ]
    assert web.get("/api/triggers/g")["job"]["outcome"] == job["outcome"]


def test_the_snapshot_is_small_whatever_was_done(web: Web) -> None:
    history, ledger = HistoryStore(web.files), Ledger(web.files)
    for number in range(1000):
        id_ = f"task-{number:04}"
        if number >= 960:
            asked = Message(id=f"msg-{id_}", role="user", text="run: make", created_at=START)
            text = f"`{id_}` is done.\n\n```text\n14:09:01 up 10:37, load average: 1.30\n```"
            told = asked.but(id=f"res-{id_}", role="system", text=text, task_ids=[id_])
            history.add([asked, told])
            ledger.write("queued", id_, START, traceId=f"t-{id_}", messageId=asked.id)
        lay(web, id_, "failed" if number % 10 == 0 else "done", profile="command")
        if number < 100:
            task = Task(id=f"w{number}", prompt="wait", created_at=START, trace_id=f"w{number}")
            web.files.save(paths.queued("worker", task.id), task)
    found = web.get("/api/snapshot")
    assert (len(found["messages"]), len(found["jobs"])) == (20, 20 + 10)
    assert len(web.ask("GET", "/api/snapshot").get_data()) < 40_000
