"""A request is accepted once and whole, or refused with its reason."""

from __future__ import annotations

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from mimikit.conversation import inbox
from mimikit.conversation.history import HistoryStore
from mimikit.protocol import paths
from mimikit.protocol.models import (
    MAX_TEXT,
    Command,
    CommandResult,
    InboxItem,
    Message,
    Question,
    Task,
)
from mimikit.protocol.triggers import Schedule, Trigger
from mimikit.tasks import queue
from mimikit.triggers import registry
from mimikit.web.api import conversation
from tests.support.reading import cond, unanswered
from tests.web.conftest import START, error_of, live_run

GOOD_INPUT = {"id": "msg-1", "text": "hello"}
GOOD_TASK = {"prompt": "do it"}
GOOD_TRIGGER = {"prompt": "do it", "schedule": {"interval": 60}}
GOOD_ANSWER = {"id": "msg-1", "questionId": "q-1", "text": "yes"}


def open_question(web, **facts: Any) -> None:
    question = Question(
        question_id="q-1",
        question="which?",
        created_at=web.clock.now(),
        expires_at=web.clock.now() + timedelta(hours=1),
    )
    web.files.save(paths.PENDING_QUESTION, question.but(**facts))


def put_task(web, task_id: str = "task-0", **facts: Any) -> None:
    task = Task(id=task_id, prompt="x", created_at=START, trace_id=task_id)
    queue.submit(web.files, task.but(**facts))


def put_trigger(web, trigger_id: str = "trig-0") -> None:
    registry.create(
        web.files,
        Trigger(id=trigger_id, type="recurring", prompt="x", created_at=START, trace_id=trigger_id),
    )


# ---- one message ----------------------------------------------------------------------------


def test_a_message_is_in_the_inbox_before_it_is_acknowledged(web) -> None:
    body = {
        "id": "msg-1",
        "text": "你好\n",
        "quote": "before",
        "timezone": "Asia/Shanghai",
        "locale": "zh-CN",
    }
    response = web.ask("POST", "/api/input", body)
    assert response.status_code == 202
    assert response.get_json() == {"id": "msg-1", "state": "queued"}
    item = web.files.peek(paths.inbox("msg-1"), InboxItem)
    assert item == InboxItem(
        id="msg-1",
        text="你好\n",
        quote="before",
        timezone="Asia/Shanghai",
        locale="zh-CN",
        created_at=START,
    )


def test_an_acknowledged_message_survives_a_power_cut(web) -> None:
    web.ask("POST", "/api/input", GOOD_INPUT)
    images = list(web.disk.after_power_loss())
    assert images
    assert all(image.stat(paths.inbox("msg-1")) is not None for image in images)


def test_sent_twice_it_is_one_message(web) -> None:
    answers = [web.ask("POST", "/api/input", GOOD_INPUT) for _ in range(3)]
    assert [a.status_code for a in answers] == [202, 202, 202]
    assert len({a.get_data() for a in answers}) == 1
    assert web.files.names(paths.INBOX) == ["msg-1.json"]


def test_sent_again_after_it_was_answered_it_is_still_one_message(web) -> None:
    web.ask("POST", "/api/input", GOOD_INPUT)
    item = unanswered(web.files)[0]
    message = Message(id=item.id, role="user", text=item.text, created_at=item.created_at)
    HistoryStore(web.files).add([message])
    inbox.remove(web.files, item.id)
    web.clock.advance(86400 * 3)
    assert web.ask("POST", "/api/input", GOOD_INPUT).status_code == 202
    assert web.files.names(paths.INBOX) == []


@pytest.mark.parametrize("left", [b"", b'{"id":"other"}\n', None])
def test_a_message_missing_from_a_restored_transcript_is_accepted_again(
    web, left: bytes | None
) -> None:
    web.ask("POST", "/api/input", GOOD_INPUT)
    item = unanswered(web.files)[0]
    message = Message(id=item.id, role="user", text=item.text, created_at=item.created_at)
    HistoryStore(web.files).add([message])
    inbox.remove(web.files, item.id)
    assert web.ask("POST", "/api/input", GOOD_INPUT).status_code == 202
    assert web.files.names(paths.INBOX) == []
    day = paths.transcript(item.created_at.date())
    if left is None:
        web.files.remove(day)
    else:
        web.files.write(day, left)
    assert web.ask("POST", "/api/input", GOOD_INPUT).status_code == 202
    assert web.files.names(paths.INBOX) == ["msg-1.json"]


@pytest.mark.parametrize("other", [{"text": "bye"}, {"quote": "of something else"}])
@pytest.mark.parametrize("when", ["waiting", "said", "set aside"])
def test_another_text_under_a_known_id_is_refused(web, other: dict[str, str], when: str) -> None:
    web.ask("POST", "/api/input", GOOD_INPUT)
    (item,) = unanswered(web.files)
    if when == "said":
        message = Message(id=item.id, role="user", text=item.text, created_at=item.created_at)
        HistoryStore(web.files).add([message])
        inbox.remove(web.files, item.id)
        web.clock.advance(86400 * 12)
    elif when == "set aside":  # soon
        web.files.write(paths.inbox(item.id), b"no JSON")
    open_question(web)
    for address, body in (
        ("/api/input", GOOD_INPUT | other),
        ("/api/answer", GOOD_ANSWER | {"text": "bye"}),
    ):
        response = web.ask("POST", address, body)
        assert (response.status_code, error_of(response)["field"]) == (409, "id")
        assert "'msg-1'" in error_of(response)["message"]
    same = web.ask("POST", "/api/input", GOOD_INPUT)
    assert same.status_code == (409 if when == "set aside" else 202)
    assert web.files.names(paths.INBOX) == ([] if when == "said" else ["msg-1.json"])


@pytest.mark.parametrize("pages", [1, 2])
def test_of_concurrent_messages_with_one_id_one_is_accepted(
    make_web, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    web = other = make_web(web={"inputs_per_minute": 1000})
    if pages == 2:  # of one state: what a process holds keeps no other one back
        monkeypatch.setattr(conversation, "_LOCKS", [contextlib.nullcontext()])
        other = make_web(disk=web.disk, web={"inputs_per_minute": 1000})
    codes: dict[str, int] = {}

    def send(number: int) -> None:
        text = f"text {number}"
        page = web if number % 2 else other
        codes[text] = page.ask("POST", "/api/input", {"id": "msg-1", "text": text}).status_code

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(send, range(20)))
    (item,) = unanswered(web.files)
    assert {text for text, code in codes.items() if code == 202} == {item.text}
    assert sorted(codes.values()) == [202] + [409] * 19


def test_a_message_answered_while_its_repeat_is_checked_is_not_accepted_twice(
    make_web, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = make_web()
    looking, go_on = threading.Event(), threading.Event()
    search = conversation.sent_message

    def slow_once(*arguments: Any) -> Any:
        found = search(*arguments)
        if not looking.is_set():
            looking.set()
            go_on.wait(10)
        return found

    monkeypatch.setattr(conversation, "sent_message", slow_once)
    send = [threading.Thread(target=web.ask, args=("POST", "/api/input", GOOD_INPUT)) for _ in "ab"]
    send[0].start()
    assert looking.wait(10)
    send[1].start()
    send[1].join(0.3)  # ends only where nothing keeps it from overtaking
    for item in unanswered(web.files):
        message = Message(id=item.id, role="user", text=item.text, created_at=item.created_at)
        HistoryStore(web.files).add([message])
        inbox.remove(web.files, item.id)
    go_on.set()
    for thread in send:
        thread.join()
    assert sum(step.operation == "create" and "inbox" in step.path for step in web.disk.log) == 1


def test_a_message_with_an_unknown_time_zone_is_accepted(web) -> None:
    web.ask("POST", "/api/input", GOOD_INPUT | {"timezone": "Mars/Olympus"})
    assert unanswered(web.files)[0].timezone is None


def test_thirty_messages_a_minute(web) -> None:
    codes = [
        web.ask("POST", "/api/input", GOOD_INPUT | {"id": f"msg-{i}"}).status_code
        for i in range(31)
    ]
    assert codes == [202] * 30 + [429]
    assert web.ask("POST", "/api/input", GOOD_INPUT | {"id": "msg-3"}).status_code == 202
    web.clock.advance(60)
    assert web.ask("POST", "/api/input", GOOD_INPUT | {"id": "msg-31"}).status_code == 202


# ---- answers --------------------------------------------------------------------------------


def test_an_answer_is_taken_while_its_question_is_open(web) -> None:
    open_question(web)
    assert web.ask("POST", "/api/answer", GOOD_ANSWER).status_code == 202
    item = unanswered(web.files)[0]
    assert (item.kind, item.question_id, item.text) == ("answer", "q-1", "yes")


def test_an_answer_sent_again_is_taken_though_the_question_is_closed(web) -> None:
    open_question(web)
    web.ask("POST", "/api/answer", GOOD_ANSWER)
    web.files.remove(paths.PENDING_QUESTION)
    assert web.ask("POST", "/api/answer", GOOD_ANSWER).status_code == 202


@pytest.mark.parametrize(
    "facts", [None, {"question_id": "q-2"}, {"expires_at": START}], ids=["none", "other", "late"]
)
def test_an_answer_to_no_open_question_is_a_conflict(web, facts: dict[str, Any] | None) -> None:
    if facts is not None:
        open_question(web, **facts)
    response = web.ask("POST", "/api/answer", GOOD_ANSWER)
    assert response.status_code == 409
    assert error_of(response)["field"] == "questionId"
    assert web.files.names(paths.INBOX) == []


# ---- tasks ----------------------------------------------------------------------------------


def test_a_task_is_in_the_queue_as_asked(web) -> None:
    body = {
        "prompt": "make",
        "id": "task-9",
        "title": "Make",
        "profile": "command",
        "priority": 9,
        "timeout": 60,
        "maxAttempts": 3,
    }
    response = web.ask("POST", "/api/tasks", body)
    assert (response.status_code, response.get_json()) == (202, {"id": "task-9"})
    task = web.files.peek(paths.queued("worker", "task-9"), Task)
    assert (task.profile, task.priority, task.timeout) == ("command", 9, 60)
    assert (task.max_attempts, task.origin, task.trace_id) == (3, "http", "task-9")


@pytest.mark.parametrize("other", [{"prompt": "do that"}, {"profile": "command"}, {"timeout": 9}])
@pytest.mark.parametrize("where", ["queue", "running", "ended"])
def test_another_task_under_a_known_id_is_refused(web, other: dict[str, Any], where: str) -> None:
    asked = GOOD_TASK | {"id": "task-9"}
    web.ask("POST", "/api/tasks", asked)
    if where != "queue":
        web.files.move("worker/queue/task-9.json", f"worker/{where}/task-9.json")
    response = web.ask("POST", "/api/tasks", asked | other)
    assert (response.status_code, error_of(response)["field"]) == (409, "id")
    assert web.ask("POST", "/api/tasks", asked).status_code == 202
    assert web.files.names(f"worker/{where}") == ["task-9.json"]


@pytest.mark.parametrize("is_applied", [False, True])
def test_another_order_under_a_known_id_is_refused(web, is_applied: bool) -> None:
    put_task(web)
    put_task(web, "task-1")
    assert web.ask("POST", "/api/tasks/task-0/cancel", {"id": "cmd-1"}).status_code == 202
    if is_applied:
        order = web.files.peek(paths.command("cmd-1"), Command)
        done = CommandResult(command=order, ok=True, message="done", applied_at=START)
        queue.settle_command(web.files, done)
    for other in ("task-0/retry", "task-1/cancel"):
        response = web.ask("POST", f"/api/tasks/{other}", {"id": "cmd-1"})
        assert (response.status_code, error_of(response)["field"]) == (409, "id")
    again = web.ask("POST", "/api/tasks/task-0/cancel", {"id": "cmd-1"})
    assert again.status_code == (200 if is_applied else 202)


def test_a_task_without_an_id_gets_one(web) -> None:
    id_ = web.ask("POST", "/api/tasks", GOOD_TASK).get_json()["id"]
    assert web.files.names("worker/queue") == [f"{id_}.json"]


@pytest.mark.parametrize(
    ("is_local", "allow", "code"), [(True, False, 202), (False, False, 403), (False, True, 202)]
)
def test_commands_are_taken_from_this_machine_unless_allowed(
    make_web, is_local: bool, allow: bool, code: int
) -> None:
    web = make_web(is_local=is_local, web={"allow_commands": allow})
    body = GOOD_TASK | {"profile": "command"}
    assert web.ask("POST", "/api/tasks", body).status_code == code
    assert len(web.files.names("worker/queue")) == (code == 202)


@pytest.mark.parametrize(
    ("is_local", "allow", "remote"),
    [(True, False, False), (False, False, True), (False, True, False)],
)
def test_an_input_records_whether_commands_were_allowed(
    make_web, is_local: bool, allow: bool, remote: bool
) -> None:
    web = make_web(is_local=is_local, web={"allow_commands": allow})
    assert web.ask("POST", "/api/input", GOOD_INPUT).status_code == 202
    item = web.files.peek(paths.inbox("msg-1"), InboxItem)
    assert item.remote is remote
    open_question(web)
    assert web.ask("POST", "/api/answer", GOOD_ANSWER | {"id": "msg-2"}).status_code == 202
    answered = web.files.peek(paths.inbox("msg-2"), InboxItem)
    assert answered.remote is remote


# ---- orders ---------------------------------------------------------------------------------

ORDERS: dict[str, Any] = {
    "/api/tasks/task-0/cancel": "cancel",
    "/api/tasks/task-0/retry": "retry",
    "/api/triggers/trig-0/pause": "trigger_pause",
    "/api/triggers/trig-0/resume": "trigger_resume",
    "/api/triggers/trig-0/run": "trigger_run",
    "/api/triggers/trig-0": "trigger_remove",
}


@pytest.mark.parametrize("address", ORDERS)
def test_a_command_is_a_file_for_the_consumer_and_its_outcome_an_answer(web, address: str) -> None:
    action, target = ORDERS[address], address.split("/")[3]
    method = "DELETE" if action == "trigger_remove" else "POST"
    assert web.ask(method, address, {}).status_code == 404, "an unknown target"
    assert web.files.names(paths.COMMANDS) == []
    put_task(web)
    put_trigger(web)
    response = web.ask(method, address, {"id": "cmd-1"})
    assert (response.status_code, response.get_json()) == (202, {"command": "cmd-1"})
    command = web.files.peek(paths.command("cmd-1"), Command)
    assert (command.action, command.target, command.origin) == (action, target, "http")
    web.beat()
    outcome = CommandResult(
        command=command, ok=True, message="done so", result_id="task-1", applied_at=START
    )
    queue.settle_command(web.files, outcome)
    response = web.ask(method, address, {"id": "cmd-1"})
    assert response.status_code == 200
    told = {"ok": True, "message": "done so", "resultId": "task-1", "code": None, "params": None}
    assert response.get_json() == told
    assert web.files.names(paths.COMMANDS) == []


def test_a_turn_in_progress_can_be_stopped(web) -> None:
    web.beat(live=[live_run("turn-1", "teller")])
    web.clock.advance(0)
    order = Command(id="cmd-1", action="cancel", target="turn-1", created_at=START)
    queue.settle_command(
        web.files, CommandResult(command=order, ok=True, message="", applied_at=START)
    )
    assert web.ask("POST", "/api/tasks/turn-1/cancel", {"id": "cmd-1"}).status_code == 200


# ---- bad inputs -----------------------------------------------------------------------------

DEEP = b'{"id":"msg-1","text":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
NOT_JSON = {
    "a list": b"[]",
    "bytes": b"\xff\xfe{}",
    "deep": DEEP,
    "a key twice": b'{"id":"msg-1","id":"msg-2","text":"x"}',
    "half a surrogate": b'{"id":"msg-1","text":"\\ud800"}',
    "a surrogate in a key": b'{"id":"msg-1","text":"x","\\udfff":1}',
}
WITH_A_BODY = [
    *("/api/login", "/api/input", "/api/answer", "/api/tasks"),
    *("/api/triggers", "/api/triggers/preview"),
]


@pytest.mark.parametrize("address", WITH_A_BODY)
@pytest.mark.parametrize("name", NOT_JSON)
def test_a_body_that_is_no_json_object_is_400(web, address: str, name: str) -> None:
    response = web.ask("POST", address, data=NOT_JSON[name])
    assert response.status_code == 400
    error_of(response)
    assert web.files.names(paths.INBOX) == []


def test_a_message_without_an_id_gets_one(web) -> None:
    first, again = (web.ask("POST", "/api/input", {"text": "hi"}) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    ids = [response.get_json()["id"] for response in (first, again)]
    assert len(set(ids)) == 2, "nobody said that the second is the first again"
    assert sorted(web.files.names(paths.INBOX)) == sorted(f"{id_}.json" for id_ in ids)


BAD_VALUES: list[tuple[str, dict[str, Any], str]] = [
    ("/api/input", {"id": "msg-1"}, "text"),
    ("/api/input", GOOD_INPUT | {"text": " \n\t　"}, "text"),
    ("/api/input", GOOD_INPUT | {"id": "res-task-1"}, "id"),
    ("/api/input", GOOD_INPUT | {"id": "msg-../../x"}, "id"),
    ("/api/input", GOOD_INPUT | {"quote": "x" * 20_001}, "quote"),
    ("/api/input", GOOD_INPUT | {"timezone": "../../etc/passwd"}, "timezone"),
    ("/api/input", GOOD_INPUT | {"createdAt": "2020-01-01T00:00:00Z"}, "createdAt"),
    ("/api/input", GOOD_INPUT | {"kind": "task_result"}, "kind"),
    ("/api/answer", {"id": "msg-1", "text": "x"}, "questionId"),
    ("/api/tasks", {}, "prompt"),
    ("/api/tasks", GOOD_TASK | {"profile": "root"}, "profile"),
    ("/api/tasks", GOOD_TASK | {"role": "planner"}, "role"),
    ("/api/triggers", {"schedule": {"interval": 60}}, "prompt"),
    ("/api/triggers", GOOD_TRIGGER | {"allowTriggers": True}, "allowTriggers"),
    ("/api/backlog", {"action": "add"}, "item"),
    ("/api/backlog", {"action": "burn", "item": "a"}, "action"),
    ("/api/backlog", {"action": "add", "item": "<!-- only this -->"}, "item"),
    ("/api/backlog", {"action": "add", "item": "a", "hash": "x"}, "hash"),
    ("/api/backlog", {"action": "done", "item": "nobody's"}, "item"),
    ("/api/tasks/task-0/cancel", {"id": "a b"}, "id"),
]


@pytest.mark.parametrize(
    ("address", "body", "field"),
    BAD_VALUES,
    ids=[f"{address} {json.dumps(body)[:60]}" for address, body, _ in BAD_VALUES],
)
def test_a_bad_value_is_refused_with_its_field(
    web, address: str, body: dict[str, Any], field: str
) -> None:
    open_question(web)
    put_task(web)
    put_trigger(web)
    before = web.contents()
    response = web.ask("POST", address, body)
    assert response.status_code == 422
    told = error_of(response)
    assert told["field"] == field
    assert "Traceback" not in told["message"]
    assert web.contents() == before


def nested(levels: int) -> dict[str, Any]:
    inner = cond("file_exists", path="a")
    for _ in range(levels):
        inner = cond("not", condition=inner)
    return inner


BAD_TIMINGS: list[tuple[dict[str, Any], str]] = [
    ({}, "schedule"),
    ({"schedule": {"interval": 60}, "when": "in 10m"}, "schedule"),
    ({"schedule": {"interval": 60}, "condition": cond("file_exists", path="a")}, "schedule"),
    ({"schedule": {"cron": "0 9 * * *"}, "timezone": "Mars/Olympus"}, "timezone"),
    ({"schedule": {"every": 5}}, "schedule.every"),
    ({"when": "when I feel like it"}, "when"),
    ({"when": "in 10m", "cooldown": 10**9}, "cooldown"),
    ({"condition": {"type": "file_exists", "params": []}}, "condition.params"),
    ({"condition": cond("task_done", taskId="task-404")}, "condition"),
    (
        {"condition": cond("or", conditions=[cond("file_exists", path="a"), cond("odd")])},
        "condition.params.conditions.1.type",
    ),
    ({"condition": cond("not", condition=cond("task_done", taskId="task-0"))}, "condition"),
]


@pytest.mark.parametrize("address", ["/api/triggers", "/api/triggers/preview", "PATCH"])
@pytest.mark.parametrize(
    ("timing", "field"), BAD_TIMINGS, ids=[json.dumps(t)[:75] for t, _ in BAD_TIMINGS]
)
def test_a_bad_timing_is_refused_with_its_field(
    web, address: str, timing: dict[str, Any], field: str
) -> None:
    put_task(web)
    good = Trigger(id="trig-0", type="recurring", prompt="x", created_at=START, trace_id="t")
    registry.create(web.files, good.but(schedule=Schedule(interval=60)))
    before = web.contents()
    if address == "PATCH":
        response = web.ask("PATCH", "/api/triggers/trig-0", timing)
        field = field if timing else ""
    else:
        more = {"prompt": "x"} if address == "/api/triggers" else {}
        response = web.ask("POST", address, timing | more)
    assert response.status_code == 422, response.get_data(as_text=True)
    found = error_of(response)["field"] or ""
    assert found == field or (field == "condition" and found.startswith("condition")), found
    assert web.contents() == before


@pytest.mark.parametrize("levels", [10, 40])
def test_a_condition_nested_too_deep_is_refused(web, levels: int) -> None:
    body = GOOD_TRIGGER | {"schedule": None, "condition": nested(levels)}
    response = web.ask("POST", "/api/triggers", body)
    # Beyond what is taken as JSON at all, it is malformed.
    assert response.status_code == (422 if levels == 10 else 400)
    assert web.files.names(paths.TRIGGERS) == []


BAD_QUERIES = [
    ("/api/messages", {"limit": "0"}, "limit"),
    ("/api/messages", {"before": "2026-01-01:x"}, "before"),
    ("/api/tasks", {"state": "asleep"}, "state"),
    ("/api/tasks/task-0/output", {"offset": "-1"}, "offset"),
    ("/api/changes", {"since": "x" * 201}, "since"),
    ("/api/usage", {"since": "soon"}, "since"),
    ("/api/search", {}, "q"),
    ("/api/search", {"q": "x" * 1_001}, "q"),
    ("/api/search", {"q": "x", "scope": "everything"}, "scope"),
    ("/api/search", {"q": "x", "before": "9999-12-31T23:59:59-12:00"}, "before"),
]


@pytest.mark.parametrize(("address", "query", "field"), BAD_QUERIES, ids=str)
def test_a_bad_query_is_refused_with_its_field(
    web, address: str, query: dict[str, str], field: str
) -> None:
    put_task(web)
    response = web.ask("GET", address, query=query)
    assert response.status_code == 422
    assert error_of(response)["field"] == field


def test_a_query_names_each_thing_once(web) -> None:
    response = web.ask("GET", "/api/messages?limit=1&limit=2")
    assert response.status_code == 422
    assert error_of(response)["field"] == "limit"


@pytest.mark.parametrize("id_", ["..", "%2e%2e", ".hidden", "a%20b", "x" * 129, "%00", "é"])
@pytest.mark.parametrize(
    "address", ["tasks/{}", "tasks/{}/output", "triggers/{}", "traces/{}", "turns/{}"]
)
def test_an_invalid_id_in_a_path_is_refused(web, address: str, id_: str) -> None:
    response = web.ask("GET", "/api/" + address.format(id_))
    assert response.status_code in (404, 422)
    error_of(response)


def test_a_large_body_is_refused(web) -> None:
    body = GOOD_INPUT | {"text": "x" * 2**20}
    response = web.ask("POST", "/api/input", body)
    assert response.status_code == 413
    assert "1024 KiB" in error_of(response)["message"]


@pytest.mark.parametrize("letter", ["字", "🙂"])
def test_the_largest_text_is_taken(web, letter: str) -> None:
    body = GOOD_INPUT | {"text": letter * MAX_TEXT, "quote": letter * 20_000}
    assert web.ask("POST", "/api/input", body).status_code == 202
    (waiting,) = unanswered(web.files)
    assert waiting.text == letter * MAX_TEXT


@pytest.mark.parametrize(
    ("number", "code"),
    [(28, 507), (122, 507), (5, 503), (30, 503), (24, 503), (13, 503)],
    ids=["ENOSPC", "EDQUOT", "EIO", "EROFS", "EMFILE", "EACCES"],
)
@pytest.mark.parametrize("address", ["/api/input", "/api/answer", "/api/tasks", "/api/triggers"])
def test_a_failing_disk_is_reported_and_nothing_is_written(
    web, address: str, number: int, code: int
) -> None:
    open_question(web)
    body: dict[str, Any] = {
        "/api/input": GOOD_INPUT,
        "/api/answer": GOOD_ANSWER,
        "/api/tasks": GOOD_TASK,
        "/api/triggers": GOOD_TRIGGER,
    }[address]
    before = web.contents()
    web.disk.fail = lambda _number, _step: OSError(number, "no")
    response = web.ask("POST", address, body)
    assert response.status_code == code
    assert "nothing was changed" in error_of(response)["message"] or code == 503
    web.disk.fail = None
    assert web.contents() == before
    assert web.ask("POST", address, body).status_code == 202


@pytest.mark.parametrize("number", range(6))
def test_an_unacknowledged_message_can_be_sent_again_whichever_write_failed(
    web, number: int
) -> None:
    begun = len(web.disk.log)
    web.disk.fail = lambda at, _step: OSError(28, "full") if at == begun + number else None
    first = web.ask("POST", "/api/input", GOOD_INPUT)
    web.disk.fail = None
    assert first.status_code in (202, 507)
    assert web.ask("POST", "/api/input", GOOD_INPUT).status_code == 202
    assert web.files.names(paths.INBOX) == ["msg-1.json"]
    assert len(unanswered(web.files)) == 1


def test_an_internal_error_is_logged_and_reported_without_details(make_web) -> None:
    web = make_web()

    def broken() -> None:
        raise ZeroDivisionError("a-token-long-enough-for-an-operator")

    web.app.view_functions["status.status"] = broken
    response = web.ask("GET", "/api/status")
    assert response.status_code == 503
    assert "the log has the details" in error_of(response)["message"]
    assert "ZeroDivision" not in response.get_data(as_text=True)
    log = {line["event"]: line for line in web.log_lines()}
    assert log["web_failed"]["path"] == "/api/status"
    assert "ZeroDivisionError" in log["web_trace"]["trace"]
    assert "a-token-long-enough" not in json.dumps(log)
