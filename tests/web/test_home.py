"""Home over HTTP: what needs its user, the last hours as bars, the log, what is taken away."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from mimikit.conversation.history import HistoryStore
from mimikit.log import EventLog
from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, Message, Question, Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.runtime import BudgetStatus
from mimikit.protocol.triggers import Schedule, Trigger, TriggerState
from mimikit.tasks.recent import MOST_RUNS
from mimikit.views.timeline import MOST_BARS
from mimikit.web.api.home import dismissal_id
from tests.web.conftest import START, Web, live_run


def ended(web: Web, id_: str, minutes_ago: float, status: str = "done", **facts: Any) -> None:
    """The ledger's line of a run that waited for 30 seconds and ran for a minute."""
    at = START - timedelta(minutes=minutes_ago)
    line = {
        "at": time_text(at),
        "event": "ended",
        "id": id_,
        "seat": "worker",
        "status": status,
        "traceId": f"trace-{id_}",
        "title": f"title of {id_}",
        "createdAt": time_text(at - timedelta(seconds=90)),
        "startedAt": time_text(at - timedelta(seconds=60)),
    }
    given = {key: value for key, value in (line | facts).items() if value is not None}
    web.files.append(paths.ledger(START), given)


def told(web: Web, kind: str) -> list[dict[str, Any]]:
    return [need for need in web.get("/api/home")["needs"] if need["kind"] == kind]


def task_that_failed(web: Web, id_: str, error: str = "exit 1") -> None:
    task = Task(id=id_, prompt="do it", created_at=START, trace_id=f"trace-{id_}")
    web.files.save(paths.ended("worker", id_), task)
    result = TaskResult.of(
        task, "failed", attempts=1, started_at=START, completed_at=START, error=error,
        failure_reason="error",
    )  # fmt: skip
    web.files.save(paths.result("worker", id_), result)
    ended(web, id_, 0, "failed", failureReason="error")


def trigger(web: Web, id_: str, next_in: float, **facts: Any) -> None:
    """A trigger whose next time is so many seconds away."""
    made = Trigger(
        id=id_, type="recurring", title=f"title of {id_}", prompt="do", created_at=START,
        trace_id=f"trace-{id_}", schedule=Schedule(interval=3600), **facts,
    )  # fmt: skip
    web.files.save(paths.trigger(id_), made)
    state = TriggerState(next_run_at=START + timedelta(seconds=next_in))
    web.files.save(paths.trigger_state(id_), state)


# ---- home


def test_an_empty_folder_needs_a_consumer_and_nothing_else(web) -> None:
    found = web.get("/api/home")
    assert [need["kind"] for need in found["needs"]] == ["consumer"]
    assert (found["running"], found["next"], found["health"]["consumer"]) == ([], [], "down")
    web.beat()
    found = web.get("/api/home")
    assert found["needs"] == []
    assert (found["health"]["consumer"], found["health"]["seats"]) == ("ok", 3)


def test_a_failure_is_told_until_it_is_looked_at(web) -> None:
    task_that_failed(web, "t1", "no such file\nmore")
    (need,) = told(web, "failure")
    assert (need["taskId"], need["title"]) == ("t1", "title of t1")
    assert (need["error"], need["failureReason"]) == ("no such file", "error")
    response = web.ask("POST", "/api/tasks/t1/dismiss")
    assert response.status_code == 202  # no consumer: it is kept, and counts at once
    assert told(web, "failure") == []
    web.files.move(paths.command(dismissal_id("t1")), paths.command_done(dismissal_id("t1")))
    assert told(web, "failure") == []


def test_what_code_says_of_a_failure_is_told_in_each_language(web) -> None:
    task_that_failed(web, "t1", "exit code 3\nno such file")
    task_that_failed(web, "t2", "no such file")
    found = {need["taskId"]: need for need in told(web, "failure")}
    assert found["t1"]["error"] == "exit code 3"
    assert found["t1"]["why"] == {"en": "exit code 3", "zh": "退出码 3"}
    assert found["t2"]["why"] is None
    assert web.get("/api/tasks/t1")["task"]["why"]["zh"] == "退出码 3\nno such file"


def test_a_failure_is_made_good_by_a_retry_or_by_its_trigger_s_next_run(web) -> None:
    ended(web, "a", 30, "failed")
    ended(web, "b", 20, "failed", sourceTriggerId="g1")
    ended(web, "c", 10, "failed", sourceTriggerId="g1")
    ended(web, "d", 9, "failed", failureReason="upstream")
    ended(web, "e", 8, "failed", internal=True)
    ended(web, "f", 25 * 60, "failed")
    assert [(need["taskId"], need["count"]) for need in told(web, "failure")] == [
        ("c", 2),
        ("a", 1),
    ]
    web.files.append(
        paths.ledger(START),
        {"at": time_text(START), "event": "queued", "id": "a2", "retryOf": "a", "traceId": "x"},
    )
    ended(web, "g", 1, sourceTriggerId="g1")
    assert told(web, "failure") == []


def test_a_question_an_engine_and_a_budget_that_wait_are_told(web) -> None:
    limited = EngineStatus(engine="codex", state="waiting", want="limited", until=START, tasks=3)
    idle = EngineStatus(engine="other", state="waiting", want="missing")
    budget = BudgetStatus(daily_tokens=1, used=2, until=START + timedelta(hours=3), messages=1)
    web.beat(minds={"codex": limited, "other": idle}, budget=budget)
    asked = Question(
        question_id="q1", question="Which?", options=["a", "b"], created_at=START, expires_at=START
    )
    web.files.save(paths.PENDING_QUESTION, asked)
    found = web.get("/api/home")["needs"]
    assert [need["kind"] for need in found] == ["question", "engine", "budget"]
    assert found[0]["question"]["options"] == ["a", "b"]
    assert (found[1]["engine"]["engine"], found[1]["engine"]["tasks"]) == ("codex", 3)


@pytest.mark.fault("complaint 2")
def test_triggers_that_are_late_or_paused_for_their_failures_are_told_and_the_next_five(
    web,
) -> None:
    web.beat()
    for number in range(7):
        trigger(web, f"g{number}", 60 * (7 - number))
    trigger(web, "late", -300)
    trigger(web, "due", -30)
    trigger(web, "off", 60, enabled=False)
    web.files.save(paths.trigger_state("off"), TriggerState(paused_by="breaker", failure_streak=3))
    ended(web, "x", 5, "failed", sourceTriggerId="off")
    found = web.get("/api/home")
    assert [(need["kind"], need["triggerId"]) for need in found["needs"]] == [
        ("late", "late"),
        ("breaker", "off"),
    ]
    assert [one["triggerId"] for one in found["next"]] == ["g6", "g5", "g4", "g3", "g2"]
    assert found["moreNext"] == 2
    web.beat(paused=True)  # what is late then is late for that
    assert next((need["kind"], need["count"]) for need in web.get("/api/home")["needs"]) == (
        "paused",
        1,
    )


def test_a_file_of_the_ledger_that_is_another_than_before_is_read_anew(web) -> None:
    ended(web, "a", 30, "failed")
    ended(web, "b", 20, "failed")
    assert len(told(web, "failure")) == 2
    web.files.remove(paths.ledger(START))
    ended(web, "c", 10, "failed")
    assert [need["taskId"] for need in told(web, "failure")] == ["c"]


def test_lines_that_a_hand_has_damaged_stop_nothing(web) -> None:
    ended(web, "a", 30, "failed", at="soon")
    ended(web, "b", 20, "failed", createdAt=7, startedAt="9999-99-99")
    ended(web, "c", 10, "unheard of", title=["x"], traceId=None)
    assert [need["taskId"] for need in told(web, "failure")] == ["b"]
    bars = web.get("/api/timeline")["rows"][0]["bars"]
    assert next((bar["taskId"], bar["startedAt"]) for bar in bars) == ("b", None)


# ---- timeline


def test_waiting_is_told_apart_from_running(web) -> None:
    ended(web, "a", 10)
    found = web.get("/api/timeline")
    (row,) = found["rows"]
    (bar,) = row["bars"]
    assert (row["kind"], row["runs"], bar["state"]) == ("request", 1, "done")
    assert (bar["waitMs"], bar["runMs"]) == (30_000, 60_000)
    assert bar["createdAt"] == "2026-03-01T11:48:30.000Z"
    assert (found["since"], found["until"]) == (
        "2026-02-28T12:00:00.000Z",
        "2026-03-01T12:00:00.000Z",
    )


def test_rows_are_requests_triggers_by_title_and_upkeep(web) -> None:
    trigger(web, "g1", 60)
    ended(web, "a", 50, sourceTriggerId="g1")
    ended(web, "b", 40, internal=True)
    ended(web, "c", 30, "failed")
    ended(web, "d", 20, sourceTriggerId="gone")
    rows = web.get("/api/timeline")["rows"]
    assert [(row["kind"], row["title"], row["failed"]) for row in rows] == [
        ("request", "", 1),
        ("trigger", "gone", 0),
        ("trigger", "title of g1", 0),
        ("internal", "", 0),
    ]


def test_what_waits_and_what_runs_reaches_to_now(web) -> None:
    for id_, place in (("w", paths.queued), ("r", paths.running)):
        created = START - timedelta(minutes=5)
        task = Task(id=id_, prompt=f"do {id_}", created_at=created, trace_id="t")
        web.files.save(place("worker", id_), task)
    later = Task(
        id="later", prompt="x", created_at=START, trace_id="t", not_before=START + timedelta(1)
    )
    web.files.save(paths.queued("worker", "later"), later)
    web.beat(live=[live_run("r", "worker")])
    bars = web.get("/api/timeline")["rows"][0]["bars"]
    assert {(bar["taskId"], bar["state"], bar["endedAt"]) for bar in bars} == {
        ("w", "queued", None),
        ("r", "running", None),
    }


def test_a_day_of_a_ten_second_trigger_is_some_hundred_bars_that_count_every_run(web) -> None:
    for number in range(8640):
        state = "failed" if number % 1000 == 7 else "done"
        ended(web, f"t{number}", 1440 - number / 6, state, sourceTriggerId="g1")
    ended(web, "mine", 5)
    found = web.get("/api/timeline")
    rows = {row["kind"]: row for row in found["rows"]}
    bars = rows["trigger"]["bars"]
    assert len(bars) <= MOST_BARS
    assert sum(bar["count"] for bar in bars) == rows["trigger"]["runs"] == 8640
    assert {bar["failed"] for bar in bars if bar["state"] == "failed"} == {1}
    assert sum(bar["failed"] for bar in bars) == rows["trigger"]["failed"] == 9
    assert len(rows["request"]["bars"]) == 1
    assert found["whole"] is True


def test_of_very_many_runs_the_newest_are_known_and_that_is_told(web) -> None:
    for number in range(MOST_RUNS + 10):
        ended(web, f"t{number}", 60 - number / 500)
    found = web.get("/api/timeline", hours="2")
    assert (found["runs"], found["whole"]) == (MOST_RUNS, False)
    assert sum(len(row["bars"]) for row in found["rows"]) <= MOST_BARS


def test_many_triggers_keep_the_rows_that_ran_last(web) -> None:
    for number in range(20):
        ended(web, f"t{number}", 100 - number, sourceTriggerId=f"g{number:02}")
    found = web.get("/api/timeline")
    assert [row["id"] for row in found["rows"]] == [f"g{number:02}" for number in range(8, 20)]
    assert found["moreRows"] == 8


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("/api/timeline", "hours", "0"),
        ("/api/timeline", "hours", "49"),
        ("/api/timeline", "hours", "day"),
        ("/api/logs", "limit", "501"),
        ("/api/logs", "before", "log.jsonl:1"),
        ("/api/logs", "after", "../secrets:1"),
        ("/api/logs", "id", "../x"),
        ("/api/logs", "q", "x" * 201),
        ("/api/export", "what", "secrets"),
        ("/api/export", "format", "exe"),
        ("/api/home", "hours", "1"),
    ],
)
def test_what_can_not_be_used_is_refused_with_the_field(web, path, name, value) -> None:
    response = web.ask("GET", path, query={name: value})
    assert response.status_code == 422
    assert response.get_json()["error"]["field"] == name


# ---- log


def write_log(web: Web, at: datetime, event: str, **facts: Any) -> None:
    line = {"timestamp": time_text(at), "type": "task", "event": event, **facts}
    web.files.append(paths.LOG, line)


def events(page: dict[str, Any]) -> list[str]:
    return [line["event"] for line in page["lines"]]


def test_the_log_is_paged_back_over_files_that_were_moved_and_packed(web) -> None:
    log = EventLog(web.files, web.clock, packs=False)
    for number in range(6):
        write_log(web, START - timedelta(days=2, minutes=9 - number), f"old{number}")
    web.files.move(paths.LOG, "log.2026-02-27.jsonl")
    log.pack()
    assert web.files.exists("log.2026-02-27.jsonl.gz")
    for number in range(4):
        write_log(web, START - timedelta(days=1, minutes=9 - number), f"mid{number}")
    first = web.get("/api/logs", limit="3")
    assert events(first) == ["mid1", "mid2", "mid3"]
    web.files.move(paths.LOG, "log.2026-02-28.jsonl")  # meanwhile a day began
    write_log(web, START, "new")
    found, before = [], first["before"]
    while before:
        page = web.get("/api/logs", limit="4", before=before)
        found, before = events(page) + found, page["before"]
    assert found == [f"old{number}" for number in range(6)] + ["mid0"]


@pytest.mark.fault(59)
def test_the_log_is_followed_over_a_new_file(web) -> None:
    write_log(web, START - timedelta(days=1), "a")
    page = web.get("/api/logs")
    assert events(page) == ["a"]
    write_log(web, START - timedelta(days=1), "b")
    web.files.move(paths.LOG, "log.2026-02-28.jsonl")
    write_log(web, START, "c")
    page = web.get("/api/logs", after=page["after"])
    assert events(page) == ["b", "c"]
    assert events(web.get("/api/logs", after=page["after"])) == []
    write_log(web, START, "d")
    assert events(web.get("/api/logs", after=page["after"])) == ["d"]


def test_following_goes_on_where_a_limit_ended_it(web) -> None:
    page = web.get("/api/logs")
    for number in range(7):
        write_log(web, START, f"e{number}")
    found: list[str] = []
    while new := events(page := web.get("/api/logs", after=page["after"], limit="3")):
        found += new
    assert found == [f"e{number}" for number in range(7)]


def test_the_log_is_filtered_by_type_text_and_task(web) -> None:
    write_log(web, START, "ended", taskId="t1", title="Backup Öl")
    write_log(web, START, "ended", taskId="t2", error="\u202edisk FULL")
    web.site.log.write("error", "worker_failed", taskId="t2")
    assert len(web.get("/api/logs", id="t2")["lines"]) == 2
    assert events(web.get("/api/logs", type="error")) == ["worker_failed"]
    assert len(web.get("/api/logs", q="backup ö")["lines"]) == 1
    (line,) = web.get("/api/logs", q="disk full")["lines"]
    assert line["facts"] == {"taskId": "t2", "error": "disk FULL"}  # nothing turns it around
    assert web.get("/api/home")["health"]["lastError"]["event"] == "worker_failed"


def test_what_code_says_of_a_trouble_is_told_in_each_language(web) -> None:
    write_log(web, START, "denied", reason="no login")
    write_log(web, START, "failed", error="exit code 2", title="no login")
    denied, failed = web.get("/api/logs")["lines"]
    assert denied["words"] == {"reason": {"en": "no login", "zh": "没有登录"}}
    assert failed["words"] == {"error": {"en": "exit code 2", "zh": "退出码 2"}}
    web.files.write(paths.trigger("daily"), b'{"prompt": "x", "schedule": {"interval": 0}}')
    told = "第 1 行：schedule.interval：应不小于 1，实际是 0"
    (need,) = (one for one in web.get("/api/home")["needs"] if one["kind"] == "broken")
    assert (need["error"].startswith("line 1:"), need["why"]["zh"]) == (True, told)
    trigger = web.get("/api/triggers/daily")["trigger"]
    assert (trigger["brokenWords"]["zh"], told in trigger["headline"]["zh"]) == (told, True)
    both = {"en": "canceled", "zh": "canceled"}  # as an earlier version wrote it
    own = Message(id="m1", role="user", text="x", created_at=START, ended="failed", why=both)
    HistoryStore(web.files).add([own])
    (message,) = web.get("/api/messages")["messages"]
    assert message["why"] == {"en": "canceled", "zh": "已取消"}


def test_a_search_that_finds_nothing_near_can_be_taken_further(web, monkeypatch) -> None:
    monkeypatch.setattr("mimikit.views.logs._READ_BYTES", 500)
    write_log(web, START, "wanted")
    for number in range(30):
        write_log(web, START, f"e{number}")
    page, asked = web.get("/api/logs", q="wanted"), 1
    assert page["lines"] == []
    while not page["lines"]:
        page, asked = web.get("/api/logs", q="wanted", before=page["before"]), asked + 1
    assert events(page) == ["wanted"]
    assert asked > 3


# ---- what is taken away


def test_the_conversation_is_taken_as_markdown_and_as_json(web) -> None:
    for message in (
        Message(id="m0", role="user", text="hello", created_at=START),
        Message(id="m1", role="agent", text="**hi**", created_at=START + timedelta(days=1)),
    ):
        web.files.append(paths.transcript(message.created_at.date()), message.to_dict())
    response = web.ask("GET", "/api/export")
    assert "attachment" in response.headers["Content-Disposition"]
    text = response.get_data(as_text=True)
    assert text.index("## 2026-03-01") < text.index("hello") < text.index("## 2026-03-02")
    assert "**hi**" in text
    given = json.loads(web.ask("GET", "/api/export", query={"format": "json"}).data)
    assert [message["text"] for message in given] == ["hello", "**hi**"]


def test_what_waits_for_its_answer_is_taken_once(web) -> None:
    def texts() -> list[str]:
        given = json.loads(web.ask("GET", "/api/export", query={"format": "json"}).data)
        return [message["text"] for message in given]

    assert web.ask("POST", "/api/input", {"id": "msg-waits", "text": "and now?"}).status_code < 300
    assert texts() == ["and now?"]
    said = Message(id="msg-waits", role="user", text="and now?", created_at=START)
    web.files.append(paths.transcript(START.date()), said.to_dict())
    assert texts() == ["and now?"]


def test_nothing_said_is_an_empty_list(web) -> None:
    assert json.loads(web.ask("GET", "/api/export", query={"format": "json"}).data) == []


def test_a_trace_is_taken_with_prompts_and_results(web) -> None:
    task_that_failed(web, "t1", "it broke")
    query = {"what": "trace", "id": "trace-t1"}
    text = web.ask("GET", "/api/export", query=query).get_data(as_text=True)
    assert "do it" in text
    assert "it broke" in text
    given = json.loads(web.ask("GET", "/api/export", query=query | {"format": "json"}).data)
    assert given["tasks"][0]["outcome"]["error"] == "it broke"
    assert web.ask("GET", "/api/export", query={"what": "trace"}).status_code == 422
    missing = web.ask("GET", "/api/export", query={"what": "trace", "id": "none"})
    assert missing.status_code == 404
