"""Views of the state files: complete, and without changing a file."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from mimikit.conversation import inbox, turns
from mimikit.conversation.history import HistoryStore
from mimikit.log import ChangeFeed
from mimikit.protocol import ids, paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Command, EngineStatus, InboxItem, Message, Question, Task, Usage
from mimikit.protocol.results import TaskResult
from mimikit.protocol.runtime import Health, LockHolder, RuntimeState
from mimikit.protocol.triggers import PlanResult, Schedule, Trigger, TriggerState
from mimikit.tasks import queue
from mimikit.tasks.ledger import Ledger
from mimikit.triggers import registry
from mimikit.views import tasks as shown_tasks
from mimikit.views.messages import group_by_trigger
from mimikit.views.status import read_consumer
from tests.web.conftest import START, live_run


def say(web, text: str, role: Any = "agent", **facts: Any) -> Message:
    number = web.clock.monotonic()
    web.clock.advance(1)
    message = Message(
        id=f"msg-{int(number)}", role=role, text=text, created_at=web.clock.now(), **facts
    )
    HistoryStore(web.files).add([message])
    return message


def put(web, task_id: str, **facts: Any) -> Task:
    task = Task(id=task_id, prompt="the prompt", created_at=web.clock.now(), trace_id=task_id)
    task = task.but(**facts)
    queue.submit(web.files, task)
    return task


def end(web, task: Task, status: Any = "done", text: str = "**well**", **facts: Any) -> None:
    """Finish a Worker's task, as the consumer does."""
    web.clock.advance(5)
    result = TaskResult(
        id=task.id,
        status=status,
        result={"text": text},
        attempts=1,
        trace_id=task.trace_id,
        started_at=web.clock.now() - timedelta(seconds=2),
        completed_at=web.clock.now(),
    ).but(**facts)
    web.files.move(paths.queued("worker", task.id), paths.running("worker", task.id))
    queue.finish(web.files, result)
    ended = {"status": status, "seat": "worker", "traceId": task.trace_id}
    Ledger(web.files).write("ended", task.id, result.completed_at, **ended)
    queue.leave_running(web.files, "worker", task.id)


# ---- the snapshot ---------------------------------------------------------------------------


def test_an_empty_folder_makes_a_whole_snapshot(web) -> None:
    found = web.get("/api/snapshot")
    assert set(found) == {
        *("cursor", "version", "now", "timezone", "messages", "before", "inbox", "question"),
        *("draft", "jobs", "totals", "triggers", "status"),
    }
    assert found["now"] == "2026-03-01T12:00:00.000Z"
    assert found["status"]["consumer"] == "down"
    assert found["messages"] == found["jobs"] == found["triggers"] == found["inbox"] == []


def test_messages_except_the_users_have_html(web) -> None:
    say(web, "**hi** <b>", "user")
    say(web, "**hi** <b>", usage=Usage(input_tokens=5, output_tokens=2), engine="x")
    say(web, "_told_", "system", task_ids=["task-1"])
    mine, theirs, told = web.get("/api/snapshot")["messages"]
    assert (mine["text"], mine["html"]) == ("**hi** <b>", None)
    assert theirs["html"] == '<p dir="auto"><strong>hi</strong> &lt;b&gt;</p>\n'
    assert theirs["usage"]["inputTokens"] == 5
    assert told["taskIds"] == ["task-1"]


def test_older_messages_come_in_pages_without_gap_or_double(web) -> None:
    for number in range(130):
        say(web, str(number))
        if number % 40 == 0:
            web.clock.advance(86400)
    found = web.get("/api/snapshot")
    texts = [m["text"] for m in found["messages"]]
    assert len(texts) == 20
    before = found["before"]
    while before is not None:
        page = web.get("/api/messages", before=before, limit="20")
        texts = [m["text"] for m in page["messages"]] + texts
        before = page["before"]
    assert texts == [str(number) for number in range(130)]


def test_the_inbox_has_queued_and_answering_items_without_known_messages(web) -> None:
    kinds: dict[str, Any] = {"msg-a": "user_input", "res-task-1": "task_result", "msg-b": "answer"}
    for id_, kind in kinds.items():
        inbox.put(web.files, InboxItem(id=id_, kind=kind, text=id_, created_at=START))
    say(web, "already there", "user")
    shown_message = web.get("/api/snapshot")["messages"][0]["id"]
    inbox.put(web.files, InboxItem(id=shown_message, text="x", created_at=START))
    turns.start(web.files, "turn-1", 1, ["msg-b"], START)
    found = web.get("/api/snapshot")["inbox"]
    assert [(i["id"], i["kind"], i["state"]) for i in found] == [
        ("msg-a", "user_input", "queued"),
        ("msg-b", "answer", "answering"),
    ]


def test_an_item_answered_while_the_snapshot_is_made_is_not_missed(web) -> None:
    inbox.put(web.files, InboxItem(id="msg-a", text="x", created_at=START))
    conversation = web.site.state.conversation
    page = conversation.page

    def answered_after(*args: Any) -> dict[str, Any]:
        found = page(*args)
        message = Message(id="msg-a", role="user", text="x", created_at=START)
        HistoryStore(web.files).add([message])
        inbox.remove(web.files, "msg-a")
        return found

    conversation.page = answered_after
    found = web.get("/api/snapshot")
    assert [item["id"] for item in found["inbox"] + found["messages"]] == ["msg-a"]


def test_the_open_question_is_shown(web) -> None:
    question = Question(
        question_id="q-1",
        question="which?",
        options=["a", "b"],
        default="a",
        created_at=START,
        expires_at=START + timedelta(hours=1),
    )
    web.files.save(paths.PENDING_QUESTION, question)
    found = web.get("/api/snapshot")
    assert found["question"]["options"] == ["a", "b"]
    assert found["question"]["expiresAt"] == "2026-03-01T13:00:00.000Z"
    assert found["status"]["question"] is True


def test_the_cursor_is_older_than_what_is_shown(web) -> None:
    ChangeFeed(web.files, web.clock).publish("status")
    at = web.get("/api/changes")["cursor"]
    assert web.get("/api/snapshot")["cursor"] == at


# ---- status ---------------------------------------------------------------------------------


def health(**facts: Any) -> Health:
    return Health(pid=1, version="0", started_at=START, beat_at=START).but(**facts)


@pytest.mark.parametrize(
    ("found", "after_s", "state"),
    [
        (None, 0, "down"),
        (health(), 0, "ok"),
        (health(), 15, "ok"),
        (health(), 15.1, "down"),
        (health(), -16, "down"),
        (health(tick_age_s=10), 1, "ok"),
        (health(tick_age_s=10.1), 1, "hung"),
        (health(tick_age_s=99), 16, "down"),
    ],
)
def test_the_consumer_of_another_machine_is_judged_by_its_heartbeat(
    web, found: Health | None, after_s: float, state: str
) -> None:
    web.files.remove(paths.HEALTH)
    if found is not None:
        web.files.save(paths.HEALTH, found)
    assert read_consumer(web.files, START + timedelta(seconds=after_s)).page_state == state


@pytest.mark.parametrize(
    ("pid", "after_s", "state", "page_state"),
    [(None, 1, "running", "ok"), (None, 16, "stuck", "hung"), (2**22 + 1, 1, "down", "down")],
)
def test_the_consumer_of_this_machine_is_judged_by_its_process_alike_on_page_and_terminal(
    web, pid: int | None, after_s: float, state: str, page_state: str
) -> None:
    pid = pid or os.getpid()
    holder = LockHolder(
        pid=pid,
        process_started=ids.own_start_time(),
        boot_id=ids.boot_id(),
        host=socket.gethostname(),
        started_at=START,
    )
    web.files.save(paths.CONSUMER_HOLDER, holder)
    web.files.save(paths.HEALTH, health(pid=pid))
    found = read_consumer(web.files, START + timedelta(seconds=after_s))
    assert (found.state, found.page_state) == (state, page_state)


@pytest.mark.parametrize(("facts", "code"), [({}, 200), ({"tick_age_s": 11}, 503)])
def test_healthz_needs_no_login_and_says_little(web, facts: dict[str, Any], code: int) -> None:
    web.beat(**facts)
    response = web.ask("GET", "/healthz", login=False)
    assert response.status_code == code
    assert set(response.get_json()) == {"ok", "consumer", "disk"}
    assert response.get_json()["ok"] == (code == 200)


def test_healthz_says_that_the_disk_is_full(web, monkeypatch: pytest.MonkeyPatch) -> None:
    web.beat()
    monkeypatch.setattr(type(web.files.fs), "is_full", lambda _disk: True)
    response = web.ask("GET", "/healthz", login=False)
    assert response.status_code == 503
    assert response.get_json() == {"ok": False, "consumer": "ok", "disk": "full"}


@pytest.mark.parametrize("body", [{"id": "cmd-2", "engine": "codex"}, {"id": "cmd-2"}])
def test_a_waiting_engine_can_be_retried_now(web, body: dict[str, str]) -> None:
    answer = web.ask("POST", "/api/engines/try", body)
    assert (answer.status_code, answer.get_json()) == (202, {"command": "cmd-2"})
    command = web.files.load(paths.command("cmd-2"), Command)
    assert (command.action, command.target) == ("engine_try", body.get("engine", ""))
    for odd in ({"engine": ""}, {"engine": 5}, {"use": "codex"}):
        assert web.ask("POST", "/api/engines/try", odd).status_code in (400, 422)


def test_live_runs_are_counted_by_role(web) -> None:
    runs = [
        live_run("turn-1", "teller", headline="thinking"),
        live_run("task-1", "planner"),
        live_run("task-2", "worker"),
        live_run("task-3", "worker"),
    ]
    web.beat(
        live=runs,
        queued={"worker": 4},
        engines={"teller": EngineStatus(engine="builtin")},
        paused=True,
    )
    found = web.get("/api/status")
    assert found["teller"] == {
        "state": "replying",
        "since": "2026-03-01T12:00:00.000Z",
        "headline": "thinking",
        "turnId": "turn-1",
    }
    assert found["planner"]["state"] == "planning"
    assert found["workers"] == {"busy": 2, "seats": 3}
    assert found["queues"] == {"planner": 0, "worker": 4}
    assert (found["engines"]["teller"]["engine"], found["paused"]) == ("builtin", True)


def test_live_runs_of_a_dead_consumer_are_ignored(web) -> None:
    web.beat(live=[live_run("turn-1", "teller")], queued={"worker": 9}, paused=False)
    put(web, "task-1")
    web.files.save(paths.RUNTIME, RuntimeState(paused=True))
    web.clock.advance(60)
    found = web.get("/api/status")
    assert found["consumer"] == "down"
    assert found["beatAgeS"] == 60.0
    assert found["teller"]["state"] == "idle"
    assert found["queues"]["worker"] == 1
    assert found["paused"] is True


# ---- tasks ----------------------------------------------------------------------------------


def test_a_waiting_a_running_and_an_ended_task(web) -> None:
    put(web, "task-a", title="Wait", priority=7)
    running = put(web, "task-b", prompt="\n\nrun this\nnow")
    web.files.move(paths.queued("worker", "task-b"), paths.running("worker", "task-b"))
    web.clock.advance(3)
    web.beat(live=[live_run("task-b", "worker", headline="reading").but(started_at=START)])
    done = put(web, "task-c")
    end(web, done)
    found = {t["id"]: t for t in web.get("/api/tasks")["tasks"]}
    assert list(found) == ["task-b", "task-a", "task-c"]
    waits, runs, ended = found["task-a"], found["task-b"], found["task-c"]
    assert (waits["state"], waits["title"], waits["waitMs"]) == ("queued", "Wait", None)
    assert (runs["state"], runs["title"], runs["headline"]) == ("running", "run this", "reading")
    assert (runs["attempts"], runs["startedAt"]) == (1, "2026-03-01T12:00:00.000Z")
    assert (ended["state"], ended["waitMs"], ended["runMs"]) == ("done", 3000, 2000)
    assert running.attempts == 0


def test_a_running_task_began_when_its_output_did(web) -> None:
    put(web, "task-b")
    web.files.move(paths.queued("worker", "task-b"), paths.running("worker", "task-b"))
    line = {"at": "2026-03-01T12:00:01.000Z", "type": "started"}
    web.files.append(paths.run_output("task-b"), line)
    assert web.get("/api/tasks/task-b")["task"]["startedAt"] == "2026-03-01T12:00:01.000Z"


def test_one_task_with_its_result_events_and_trace(web) -> None:
    first = put(web, "task-1", trace_id="t-1")
    Ledger(web.files).write("queued", "task-1", START, traceId="t-1")
    Ledger(web.files).write("queued", "task-12", START, traceId="t-2")
    end(web, first, exit_code=0)
    put(web, "task-2", trace_id="t-1", parent_task_id="task-1")
    put(web, "task-3", trace_id="t-other")
    found = web.get("/api/tasks/task-1")
    assert found["result"]["html"] == '<p dir="auto"><strong>well</strong></p>\n'
    assert (found["result"]["text"], found["result"]["exitCode"]) == ("**well**", 0)
    assert [(e["type"], e["id"]) for e in found["events"]] == [
        ("queued", "task-1"),
        ("ended", "task-1"),
    ]
    assert [t["id"] for t in found["trace"]] == ["task-1", "task-2"]


def test_the_output_of_a_command_is_not_rendered(web) -> None:
    end(web, put(web, "task-1", profile="command"), text="\x1b[31m# not a title\x1b[0m")
    result = web.get("/api/tasks/task-1")["result"]
    assert result["html"] is None
    assert result["text"] == "# not a title"


def test_a_failed_task_has_its_reason(web) -> None:
    facts: dict[str, Any] = {"error": "it broke", "failure_reason": "timeout", "result": {}}
    end(web, put(web, "task-1"), "failed", **facts)
    found = web.get("/api/tasks/task-1")
    assert (found["task"]["failureReason"], found["task"]["error"]) == ("timeout", "it broke")
    assert found["result"]["text"] == "it broke"


def test_a_plan_waiting_for_an_answer_is_asking(web) -> None:
    put(web, "task-1", role="planner")
    web.files.move(paths.queued("planner", "task-1"), paths.ended("planner", "task-1"))
    plan = PlanResult(
        id="task-1",
        status="needs_input",
        question="which?",
        turn_id="task-1",
        trace_id="task-1",
        started_at=START,
        completed_at=START,
    )
    queue.finish(web.files, plan)
    (found,) = web.get("/api/tasks")["tasks"]
    assert (found["seat"], found["state"], found["completedAt"]) == ("planner", "asking", None)
    (found,) = web.get("/api/tasks", state="asking")["tasks"]
    assert found["id"] == "task-1"
    assert web.get("/api/tasks", state="running")["tasks"] == []
    queue.leave_running(web.files, "planner", "task-1")
    web.files.save(paths.plan_done("task-1"), plan.but(status="done", summary="# all"))
    web.files.remove(paths.result("planner", "task-1"))
    found = web.get("/api/tasks/task-1")
    assert found["task"]["state"] == "done"
    assert found["result"]["html"] == '<h1 dir="auto">all</h1>\n'


class MovingFiles(ReadOnlyFiles):
    """Files that move a task right after a folder was listed."""

    moves: dict[str, Callable[[], None]]

    def names(self, folder: str, *, suffix: str = ".json") -> list[str]:
        found = super().names(folder, suffix=suffix)
        self.moves.pop(folder, lambda: None)()
        return found


QUEUED, RUNNING = paths.queued("worker", "t1"), paths.running("worker", "t1")


@pytest.mark.parametrize("folder", ["worker/queue", "worker/running", "planner/results"])
@pytest.mark.parametrize("way", ["claimed", "released", "ended"])
def test_a_task_is_listed_once_whatever_moves_meanwhile(web, folder: str, way: str) -> None:
    task = put(web, "t1")
    if way != "claimed":
        web.files.move(QUEUED, RUNNING)

    def move() -> None:
        if way == "claimed":
            web.files.move(QUEUED, RUNNING)
        elif way == "released":
            web.files.move(RUNNING, QUEUED)
        else:
            web.files.move(RUNNING, QUEUED)
            end(web, task)

    files = MovingFiles(web.files)
    files.moves = {folder: move}
    found = shown_tasks.listed(files, {}, None, 50)
    assert [task.id for task in found] == ["t1"]
    if way == "ended":
        assert found[0].state == "done"


# ---- output ---------------------------------------------------------------------------------


def test_output_is_read_on_from_where_it_was_left(web) -> None:
    task = put(web, "task-1")
    for number in range(3):
        line = {"at": "x", "type": "output", "text": f"\x1b[1m{number}\n", "stream": "stdout"}
        web.files.append(paths.run_output("task-1"), line)
    first = web.get("/api/tasks/task-1/output")
    assert [e["text"] for e in first["events"]] == ["0\n", "1\n", "2\n"]
    assert {e["stream"] for e in first["events"]} == {"stdout"}
    assert first["ended"] is False
    again = web.get("/api/tasks/task-1/output", offset=first["offset"])
    assert (again["events"], again["offset"]) == ([], first["offset"])
    web.files.append(paths.run_output("task-1"), {"at": "x", "type": "ended"})
    web.files.append(paths.run_output("task-1"), {"at": "x", "type": "process", "data": {"pid": 1}})
    end(web, task)
    last = web.get("/api/tasks/task-1/output", offset=first["offset"])
    assert [e["type"] for e in last["events"]] == ["ended"]
    assert last["ended"] is True


def test_long_output_is_paged_and_a_huge_line_is_skipped(
    web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown_tasks, "_OUTPUT_PART", 100)
    monkeypatch.setattr(shown_tasks, "_OUTPUT_LINE", 1600)
    put(web, "task-1")
    sizes = [10, 10, 300, 5, 4000, 7]
    for size in sizes:
        line = {"at": "x", "type": "output", "text": "y" * size}
        web.files.append(paths.run_output("task-1"), line)
    offset, seen = "0", list[int]()
    for _ in range(40):
        part = web.get("/api/tasks/task-1/output", offset=offset)
        seen += [len(event["text"]) for event in part["events"]]
        offset = part["offset"]
    assert seen == [10, 10, 300, 5, 7]


# ---- triggers -------------------------------------------------------------------------------


def trigger(**facts: Any) -> Trigger:
    base = Trigger(
        id="trig-1",
        type="recurring",
        title="Tick",
        prompt="x",
        created_at=START,
        trace_id="trig-1",
        schedule=Schedule(interval=10),
    )
    return base.but(**facts)


def test_a_trigger_in_words_with_its_times(web) -> None:
    registry.create(web.files, trigger())
    state = TriggerState(last_run_at=START, next_run_at=START, fire_count=3, last_task_id="task-1")
    registry.save_state(web.files, "trig-1", state)
    (found,) = web.get("/api/triggers")["triggers"]
    assert found["words"] == {"en": "every 10 seconds", "zh": "每 10 秒"}
    assert (found["fireCount"], found["lastTaskId"]) == (3, "task-1")
    assert found["nextRunAt"] == "2026-03-01T12:00:00.000Z"


def test_a_broken_trigger_shows_its_last_valid_definition(web) -> None:
    registry.save_state(web.files, "trig-1", TriggerState(last_good=trigger().to_dict()))
    web.files.write(paths.trigger("trig-1"), b"{")
    (found,) = web.get("/api/triggers")["triggers"]
    assert (found["title"], found["type"]) == ("Tick", "recurring")
    assert found["broken"]


# ---- whatever lies there --------------------------------------------------------------------

EVERY_FILE = [
    paths.inbox("msg-1"),
    paths.PENDING_QUESTION,
    paths.HISTORY,
    paths.HEALTH,
    paths.RUNTIME,
    paths.EVENTS,
    paths.queued("worker", "task-1"),
    paths.queued("planner", "task-1"),
    paths.running("worker", "task-1"),
    paths.ended("worker", "task-1"),
    paths.ended("planner", "task-1"),
    paths.result("worker", "task-1"),
    paths.result("planner", "task-1"),
    paths.plan_done("task-1"),
    paths.trigger("trig-1"),
    paths.trigger_state("trig-1"),
    paths.command("cmd-1"),
    paths.command_done("cmd-1"),
    paths.turn_started("turn-1", 1),
    paths.transcript(START.date()),
    paths.ledger(START),
    paths.run_output("task-1"),
    paths.TASK_STATUS,
]
DAMAGE = {
    "empty": b"",
    "cut": b'{"id": "task-1", "prompt": "x", "creat',
    "bits": b'{"id": "task-1", \xff\xfe"prompt": 7}\n',
    "other JSON": b'{"what": [1, 2, {"a": null}], "id": 5, "kind": ["x"], "usage": 3}\n',
    "list": b"[1, 2]\n",
    "newer": b'{"schemaVersion": 99, "id": "task-1", "messages": "later", "segment": 9}\n',
    "deep": b"[" * 5000 + b"\n",
}


@pytest.mark.parametrize("path", EVERY_FILE)
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_left_alone_and_the_rest_is_shown(web, path: str, kind: str) -> None:
    say(web, "still here")
    put(web, "task-9")
    web.files.write(path, DAMAGE[kind])
    before = web.contents()
    found = web.get("/api/snapshot")
    assert "task-9" in [job["taskId"] for job in found["jobs"]]
    if path != paths.transcript(START.date()):
        assert [m["text"] for m in found["messages"]] == ["still here"]
    for name in ("tasks", "jobs", "status", "triggers", "messages", "changes"):
        web.get(f"/api/{name}")
    for address in (
        *("/api/tasks/task-1", "/api/tasks/task-1/output", "/api/tasks/task-9"),
        *("/api/triggers/trig-1", "/api/traces/task-1", "/api/traces/task-9"),
    ):
        assert web.ask("GET", address).status_code in (200, 404)
    web.get("/api/changes", since="seg-1:0")
    assert web.contents() == before


@pytest.mark.parametrize("path", EVERY_FILE)
def test_a_folder_instead_of_a_file_breaks_nothing_else(web, path: str) -> None:
    web.disk.make_dir(path)
    web.get("/api/status")
    assert web.ask("GET", "/api/snapshot").status_code == 200
    for address in ("/api/tasks/task-1", "/api/triggers/trig-1", "/api/traces/task-1"):
        assert web.ask("GET", address).status_code in (200, 404)


# ---- messages of one trigger


def of_trigger(id_: str, trigger: str | None = None, role: Any = "system") -> Message:
    at = START + timedelta(seconds=ord(id_[0]))
    return Message(id=id_, role=role, text=id_, created_at=at, trigger_id=trigger)


def grouped(*messages: Message) -> list[list[str]]:
    return [[one.id for one in line] for line in group_by_trigger(messages)]


def test_messages_of_one_trigger_are_grouped_at_the_newest() -> None:
    assert grouped(
        of_trigger("a", "g1"),
        of_trigger("b"),
        of_trigger("c", "g2"),
        of_trigger("d", "g1"),
        of_trigger("e", "g1"),
    ) == [["b"], ["c"], ["a", "d", "e"]]


def test_a_message_of_the_user_starts_a_new_group_of_what_a_model_said() -> None:
    said = of_trigger("a", "g1", "agent"), of_trigger("b", role="user"), of_trigger("c", "g1")
    assert grouped(*said) == [["a"], ["b"], ["c"]]
    told = of_trigger("a", "g1"), *said[1:]
    assert grouped(*told) == [["b"], ["a", "c"]]


def test_many_messages_of_one_trigger_push_no_other_off_the_page(web: Any) -> None:
    HistoryStore(web.files).add([of_trigger("a", role="user")])
    HistoryStore(web.files).add([of_trigger(f"b{n}", "g1") for n in range(360)])
    page = web.ask("GET", "/api/messages?limit=2").get_json()
    assert [(line["id"], len(line["repeats"])) for line in page["messages"]] == [
        ("a", 0),
        ("b359", 359),
    ]
    assert page["before"] is None


def test_the_api_counts_them_and_the_transcript_keeps_each(web: Any) -> None:
    HistoryStore(web.files).add([of_trigger(id_, "g1") for id_ in "abc"])
    (shown,) = web.ask("GET", "/api/messages").get_json()["messages"]
    assert (shown["id"], shown["repeats"], shown["triggerId"]) == ("c", ["a", "b"], "g1")
    assert shown["since"].startswith("2026-03-01T12:01:37")
    snapshot = web.ask("GET", "/api/snapshot").get_json()
    assert [line["id"] for line in snapshot["messages"]] == ["c"]
    (day,) = web.files.names("history", suffix=".jsonl")
    assert [line["id"] for _, line in web.files.lines(f"history/{day}")] == ["a", "b", "c"]
