"""Jobs over HTTP: in the snapshot, in pages, alone, in messages, and as they move."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from mimikit.conversation.history import HistoryStore
from mimikit.protocol import paths
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import Command, Message, time_text
from mimikit.protocol.triggers import Trigger
from mimikit.tasks import queue
from mimikit.triggers import registry
from tests.web.conftest import START, error_of, live_run
from tests.web.test_shown import end, put


def ledger_of(web: Any, number: int, **facts: object) -> None:
    """So many tasks that ended, of which only the ledger still tells."""
    lines: list[bytes] = []
    for n in range(number):
        at, id_ = time_text(START + timedelta(seconds=n)), f"task-{n:06}"
        line = {"at": at, "event": "ended", "id": id_, "status": "done", "seat": "worker"}
        told = {"traceId": id_, "title": f"Title {n}"} | facts
        lines.append(dump_line(line | told))
    web.files.write("tasks/2026-03.jsonl", b"".join(lines))


def pages(web: Any, **query: str) -> list[dict[str, Any]]:
    found = [web.get("/api/jobs", **query)]
    while before := found[-1]["before"]:
        found.append(web.get("/api/jobs", before=before, **query))
    return found


def ids_of(answers: list[dict[str, Any]]) -> list[str]:
    return [job["id"] for answer in answers for job in answer["jobs"]]


def test_all_jobs_are_reached_page_by_page_those_at_work_first(web) -> None:
    ledger_of(web, 25)
    for number in range(12):
        put(web, f"live-{number:02}")
        web.clock.advance(1)
    found = pages(web, limit="10")
    assert ids_of(found) == [
        *(f"live-{n:02}" for n in range(12)), *(f"task-{n:06}" for n in range(24, -1, -1))
    ]  # fmt: skip
    assert {answer["total"] for answer in found} == {37}
    assert [len(answer["jobs"]) for answer in found] == [10, 10, 10, 7]


@pytest.mark.parametrize("limit", ["4", "12", "13", "100"])
def test_no_page_repeats_or_leaves_out(web, limit: str) -> None:
    ledger_of(web, 13)
    for number in range(12):
        put(web, f"live-{number:02}")
    found = ids_of(pages(web, limit=limit))
    assert len(found) == len(set(found)) == 25


def test_what_ends_between_two_pages_is_not_met_again(web) -> None:
    ledger_of(web, 10)
    first = web.get("/api/jobs", limit="5")
    end(web, put(web, "late"))
    rest = web.get("/api/jobs", limit="50", before=first["before"])
    assert [job["id"] for job in rest["jobs"]] == [f"task-{n:06}" for n in range(4, -1, -1)]
    assert rest["total"] == 11


def test_one_at_work_that_ends_between_two_pages_has_the_next_leave_out_none(web) -> None:
    live = [put(web, f"live-{number:02}") for number in range(6)]
    first = web.get("/api/jobs", limit="3")
    assert ids_of([first]) == ["live-00", "live-01", "live-02"]
    end(web, live[0])
    end(web, live[2])  # the very one to which the cursor reached
    rest = web.get("/api/jobs", limit="3", before=first["before"])
    assert ids_of([rest]) == ["live-03", "live-04", "live-05"]
    assert ids_of([web.get("/api/jobs", before=rest["before"])]) == ["live-02", "live-00"]


def test_one_at_work_that_comes_between_two_pages_has_the_next_repeat_none(web) -> None:
    for number in range(6):
        put(web, f"live-{number:02}")
    first = web.get("/api/jobs", limit="3")
    put(web, "urgent", priority=9)
    rest = web.get("/api/jobs", before=first["before"])
    assert ids_of([rest]) == ["live-03", "live-04", "live-05"]


def test_filters_count_what_fits_them(web) -> None:
    ledger_of(web, 30)
    end(web, put(web, "bad", title="Backup"), "failed", error="disk full")
    put(web, "next", title="backup again")
    by_state = web.get("/api/jobs", state="failed")
    assert (by_state["total"], ids_of([by_state])) == (1, ["bad"])
    assert by_state["jobs"][0]["error"] == "disk full"
    assert by_state["counts"]["done"] == 30
    assert ids_of([web.get("/api/jobs", q="BACKUP")]) == ["next", "bad"]
    assert ids_of([web.get("/api/jobs", state="live")]) == ["next"]
    assert web.get("/api/jobs", state="ended")["total"] == 31
    assert web.get("/api/jobs", q="title 2")["total"] == 11
    assert web.get("/api/status")["jobs"] == by_state["counts"]


def test_a_plan_that_began_no_work_is_listed_only_where_it_went_wrong(web) -> None:
    ledger_of(web, 1, seat="planner")
    plan = put(web, "plan", role="planner", title="A trigger")
    assert ids_of([web.get("/api/jobs")]) == ["plan"]
    end(web, plan)
    assert web.get("/api/jobs") == {
        "jobs": [], "before": None, "total": 0, "counts": web.get("/api/status")["jobs"]
    }  # fmt: skip
    assert web.get("/api/jobs/plan")["state"] == "done"
    end(web, put(web, "broken", role="planner"), "failed", error="no")
    end(web, put(web, "first", role="planner", trace_id="whole"))
    assert ids_of([web.get("/api/jobs")]) == ["broken"]
    end(web, put(web, "second", trace_id="whole"))
    found = web.get("/api/jobs")
    assert ids_of([found]) == ["whole", "broken"]
    assert (found["counts"]["done"], found["counts"]["failed"]) == (1, 1)


def test_of_very_many_each_page_reads_few_files(make_web) -> None:
    web = make_web()
    ledger_of(web, 5000)
    web.get("/api/jobs", limit="1")
    reads: list[str] = []
    plain_read = web.disk.read

    def counted(path: str, **where: Any) -> bytes:
        reads.append(path)
        return plain_read(path, **where)

    web.disk.read = counted  # pyright: ignore[reportAttributeAccessIssue]
    found = web.get("/api/jobs", limit="10", before="e20")
    assert (len(found["jobs"]), found["total"]) == (10, 5000)
    assert not [path for path in reads if path.startswith(f"{paths.LEDGER}/")]


def test_firings_are_counted_and_listed_alone(web) -> None:
    ledger_of(web, 30, sourceTriggerId="trig-1", firing=True, traceId="t")
    whole = web.get("/api/jobs/trig-1")
    assert (whole["kind"], whole["total"], whole["steps"]) == ("trigger", 30, [])
    assert web.get("/api/jobs")["total"] == 1
    found = pages(web, trigger="trig-1", limit="7")
    assert ids_of(found) == [f"task-{n:06}" for n in range(29, -1, -1)]
    assert {answer["total"] for answer in found} == {30}
    assert pages(web, trigger="trig-1", state="failed")[0]["jobs"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"before": "x"}, "before"),
        ({"before": "e" + "9" * 40}, "before"),
        ({"before": "l3"}, "before"),
        ({"before": "l1~5~1~"}, "before"),
        ({"before": "e5", "trigger": "trig-1"}, "before"),
        ({"before": "2026-03.jsonl@5"}, "before"),
        ({"trigger": "../x"}, "trigger"),
        ({"trigger": "trig-1", "q": "x"}, "q"),
        ({"state": "odd"}, "state"),
        ({"limit": "0"}, "limit"),
        ({"q": "x" * 201}, "q"),
    ],
)
def test_a_question_that_can_not_be_answered_names_its_field(web, query: Any, field: str) -> None:
    response = web.ask("GET", "/api/jobs", query=query)
    assert response.status_code == 422
    assert error_of(response)["field"] == field


def test_a_place_in_a_ledger_that_is_gone_gives_no_more(web) -> None:
    ledger_of(web, 3, sourceTriggerId="trig-1", firing=True)
    answer = web.get("/api/jobs", trigger="trig-1", before="2026-01.jsonl@77")
    assert (answer["jobs"], answer["before"], answer["total"]) == ([], None, 3)


def test_one_job_is_found_by_its_id_and_by_that_of_a_task_in_it(web) -> None:
    put(web, "task-1", trace_id="t")
    put(web, "task-2", trace_id="t", retry_of="task-1")
    found = web.get("/api/jobs/t")
    assert [step["id"] for step in found["steps"]] == ["task-2"]
    assert web.get("/api/jobs/task-2") == found
    assert web.ask("GET", "/api/jobs/none").status_code == 404


def test_a_long_job_shows_its_last_steps_and_says_how_many_there_are(web) -> None:
    for number in range(30):
        put(web, f"task-{number:02}", trace_id="t")
        web.clock.advance(1)
    listed = web.get("/api/jobs")["jobs"][0]
    assert (listed["total"], len(listed["steps"]), listed["counts"]["queued"]) == (30, 20, 30)
    assert listed["steps"][-1]["id"] == "task-29"
    assert len(web.get("/api/jobs/t")["steps"]) == 30


def test_of_a_job_of_very_many_tasks_few_are_read(make_web) -> None:
    web = make_web()
    ledger_of(web, 600, traceId="t")
    reads: list[str] = []
    plain_stat = web.disk.stat

    def counted(path: str) -> Any:
        reads.append(path)
        return plain_stat(path)

    web.disk.stat = counted  # pyright: ignore[reportAttributeAccessIssue]
    (job,) = web.get("/api/jobs")["jobs"]
    assert (job["total"], job["title"], job["counts"]["done"]) == (600, "Title 0", 600)
    assert [step["title"] for step in job["steps"]] == [f"Title {n}" for n in range(580, 600)]
    assert len({path for path in reads if "worker" in path}) < 600


def test_a_message_names_its_job_and_the_answer_brings_it(web) -> None:
    put(web, "task-1", trace_id="t")
    said = Message(id="msg-1", role="agent", text="ok", created_at=START, task_ids=["task-1"])
    reminder = said.but(id="msg-2", reminder="tea", created_at=START + timedelta(seconds=1))
    HistoryStore(web.files).add([said, reminder])
    page = web.get("/api/messages")
    assert [message["jobId"] for message in page["messages"]] == ["t", None]
    assert [job["id"] for job in page["jobs"]] == ["t"]
    assert web.get("/api/snapshot")["messages"][0]["jobId"] == "t"


def test_a_job_that_a_message_names_is_in_the_snapshot_however_old_it_is(web) -> None:
    end(web, put(web, "old", trace_id="t"))
    said = Message(id="msg-1", role="agent", text="ok", created_at=START, task_ids=["old"])
    HistoryStore(web.files).add([said])
    for number in range(40):
        end(web, put(web, f"task-{number:02}"))
    jobs = web.get("/api/snapshot")["jobs"]
    assert jobs[-1]["id"] == "t"
    assert len(jobs) < 20


def test_a_snapshot_stays_small_however_much_work_there_is(make_web) -> None:
    web = make_web()
    for number in range(500):
        end(web, put(web, f"done-{number:021}", title="Look through the reports of the week " * 2))
        put(web, f"task-{number:021}", prompt="x" * 5000, title="Look through all the reports " * 2)
    found = web.get("/api/snapshot")
    assert found["status"]["jobs"]["done"] == found["status"]["jobs"]["waiting"] == 500
    assert len(json.dumps(found, separators=(",", ":"))) <= 40 * 1024


def test_what_a_run_writes_moves_its_job(web) -> None:
    web.feed.tell("status")
    put(web, "task-1", trace_id="t")
    web.files.move(paths.queued("worker", "task-1"), paths.running("worker", "task-1"))
    web.beat(live=[live_run("task-1", "worker", headline="counts")])
    since = web.get("/api/snapshot")["cursor"]
    for number, text in enumerate(("one\ntwo", " and a half\n\n", "three\x1b[31m\nfour " * 60)):
        line = {"at": time_text(START), "type": "output", "text": text, "stream": "stdout"}
        web.files.append(paths.run_output("task-1"), line, sync=False)
        if number == 1:
            web.feed.tell("job", id="task-1")
            (change,) = jobs_since(web, since)
            assert (change["state"], change["headline"]) == ("running", "counts")
            assert change["lines"] == ["one", "two and a half"]
    lines = web.get("/api/jobs/t")["lines"]
    assert len(lines) == 3
    assert all(len(line) <= 200 and "\x1b" not in line for line in lines)


def test_several_moves_of_one_job_are_told_once(web) -> None:
    web.feed.tell("status")
    since = web.get("/api/snapshot")["cursor"]
    for number in range(5):
        put(web, f"task-{number}", trace_id="t")
        web.feed.tell("task", id=f"task-{number}")
    (job,) = jobs_since(web, since)
    assert job["total"] == 5


def test_a_step_that_is_removed_before_it_ran_ends_its_job(web) -> None:
    web.feed.tell("status")
    end(web, put(web, "task-1", trace_id="t"))
    after = {"type": "task_done", "params": {"taskId": "task-1"}}
    step = Trigger.model_validate(
        {"id": "trig-1", "type": "conditional", "prompt": "then", "once": True,
         "createdAt": START, "traceId": "t", "condition": after}
    )  # fmt: skip
    registry.create(web.files, step)
    snapshot = web.get("/api/snapshot")
    assert [(job["state"], job["total"]) for job in snapshot["jobs"]] == [("waiting", 2)]
    assert snapshot["status"]["jobs"]["waiting"] == 1
    registry.remove(web.files, "trig-1")
    web.feed.tell("trigger", id="trig-1")
    (job,) = jobs_since(web, snapshot["cursor"])
    assert (job["state"], job["total"]) == ("done", 1)


def jobs_since(web: Any, since: str) -> list[dict[str, Any]]:
    events = web.get("/api/changes", since=since)["events"]
    return [event["job"] for event in events if event["kind"] == "job"]


def test_a_queue_that_grew_at_once_is_counted_whole_and_read_bit_by_bit(make_web) -> None:
    web = make_web()
    for number in range(700):
        put(web, f"task-{number:04}", trace_id=f"trace-{number % 350}")
    counts = [web.get("/api/status")["jobs"]["waiting"] for _ in range(2)]
    assert counts[1] == 350 < counts[0] <= 700


def test_records_of_an_earlier_version_are_put_together_as_well_as_can_be(web) -> None:
    ledger_of(web, 3, sourceTriggerId="gone-step", traceId="t")
    found = web.get("/api/jobs")
    assert [(job["kind"], job["id"], job["total"]) for job in found["jobs"]] == [
        ("request", "t", 3)
    ]


def test_a_broken_line_of_the_ledger_is_passed_over(web) -> None:
    ledger_of(web, 2)
    odd = [
        {"event": "ended"},
        {"event": "ended", "id": 5, "status": "done"},
        {"event": "ended", "id": "x", "status": "odd", "at": "y"},
        {"event": "ended", "id": "x", "status": "done", "at": "not a time"},
        {"event": "ended", "id": "y", "status": "done", "at": time_text(START), "title": 5},
    ]
    for line in odd:
        web.files.append("tasks/2026-03.jsonl", line)
    assert ids_of([web.get("/api/jobs")]) == ["y", "task-000001", "task-000000"]


def test_one_that_moves_while_it_is_looked_for_is_not_lost(web) -> None:
    task = put(web, "task-1")
    files = web.site.state.files
    plain_names = files.names

    def moves(path: str, suffix: str = ".json") -> Any:
        found = plain_names(path, suffix=suffix)
        if path == "worker/queue" and queue.where(web.files, "worker", "task-1") == "queued":
            web.files.move(paths.queued("worker", task.id), paths.running("worker", task.id))
        return found

    files.names = moves
    assert ids_of([web.get("/api/jobs")]) == ["task-1"]


def test_a_job_is_canceled_by_its_own_id_and_one_that_never_was_is_said(web) -> None:
    put(web, "task-1", trace_id="the-whole")
    put(web, "task-2", trace_id="the-whole")
    given = {"id": "cmd-whole"}
    answer = web.ask("POST", "/api/jobs/task-2/cancel", given)
    assert (answer.status_code, answer.get_json()) == (202, {"command": "cmd-whole"})
    kept = web.files.load(paths.command("cmd-whole"), Command)
    assert (kept.action, kept.target) == ("cancel_job", "the-whole")
    assert error_of(web.ask("POST", "/api/jobs/never/cancel", {}))["field"] == "id"
