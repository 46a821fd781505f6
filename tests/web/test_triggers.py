"""Triggers over HTTP: create, preview, edit, explain, also after deletion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.protocol.models import Command, EngineStatus, Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import Schedule, Trigger, TriggerState
from mimikit.tasks import queue
from mimikit.tasks.ledger import Ledger
from mimikit.triggers import registry
from tests.support.reading import cond
from tests.web.conftest import START, MakeWeb, Web, error_of
from tests.web.test_shown import put, trigger

HOURLY = {"prompt": "look", "schedule": {"interval": 3600}}


DONE = cond("task_done", taskId="task-1")
ASK = cond("llm_eval", prompt="is it so?")


def stored(web: Web, trigger_id: str) -> Trigger:
    found, broken = registry.read(web.files, trigger_id)
    assert broken is None
    assert found is not None
    return found


def slot(web: Web, trigger_id: str, **facts: Any) -> None:
    Ledger(web.files).write(
        "slot", trigger_id, web.clock.now(), **{"slot": time_text(web.clock.now()), **facts}
    )


# ---- preview --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "english", "coming"),
    [
        (
            {"schedule": {"interval": 600}},
            "every 10 minutes",
            ["2026-03-01T12:10:00", "2026-03-01T12:20:00", "2026-03-01T12:30:00"],
        ),
        (
            {"schedule": {"cron": "0 9 * * 1-5"}, "timezone": "Asia/Shanghai"},
            "every weekday at 09:00 (Asia/Shanghai)",
            ["2026-03-02T01:00:00", "2026-03-03T01:00:00", "2026-03-04T01:00:00"],
        ),
        (
            {"schedule": {"cron": "0 9 * * *", "everyDays": 2, "until": "2026-03-04"}},
            "every 2 days at 09:00, until Wednesday, 2026-03-04 at 00:00 (UTC)",
            ["2026-03-02T09:00:00"],
        ),
        (
            {"schedule": {"runAt": "2026-12-01T09:00", "timezone": "Asia/Shanghai"}},
            "once on Tuesday, 2026-12-01 at 09:00 (Asia/Shanghai)",
            ["2026-12-01T01:00:00"],
        ),
        (
            {"when": "tomorrow 9:00", "timezone": "America/New_York"},
            "once on Monday, 2026-03-02 at 09:00 (America/New_York)",
            ["2026-03-02T14:00:00"],
        ),
        ({"condition": cond("file_exists", path="a.md")}, "when a.md exists", []),
    ],
)
def test_a_preview_has_a_description_and_the_next_times(
    web, asked: dict[str, Any], english: str, coming: list[str]
) -> None:
    before = web.contents()
    response = web.ask("POST", "/api/triggers/preview", asked)
    assert response.status_code == 200, response.get_data(as_text=True)
    found = response.get_json()
    assert set(found) == {"type", "schedule", "condition", "cooldown", "words", "next", "notes"}
    assert found["words"]["en"] == english
    assert found["words"]["zh"]
    assert [text.removesuffix(".000Z") for text in found["next"]] == coming
    assert (found["schedule"] is None) == (found["condition"] is not None)
    assert web.contents() == before


DAILY, ZONE = Schedule(cron="0 9 * * *"), "Asia/Shanghai"
ONCE = Schedule(run_at=datetime(2026, 3, 2, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("plan", "zone", "words"),
    [
        (DAILY, ZONE, "every day at 09:00 (UTC)"),
        (DAILY.but(timezone=ZONE), ZONE, "every day at 09:00"),
        (ONCE, ZONE, "once on Monday, 2026-03-02 at 09:00"),
        (ONCE, "no/zone", "once on Monday, 2026-03-02 at 01:00 (UTC)"),
    ],
)
def test_times_are_in_the_zone_of_the_reader(web, plan: Schedule, zone: str, words: str) -> None:
    kind = "recurring" if plan.cron else "scheduled"
    registry.create(web.files, trigger(type=kind, schedule=plan))
    (listed,) = web.ask("GET", "/api/snapshot", headers={"X-Mimikit-Zone": zone}).json["triggers"]
    assert listed["words"]["en"] == words


def test_a_model_condition_reports_its_cost_and_a_missing_model(web) -> None:
    asked = {"condition": ASK}
    found = web.ask("POST", "/api/triggers/preview", asked).get_json()
    assert found["cooldown"] == 86400
    assert "up to 288 times a day" in found["notes"][0]["en"]
    assert len(found["notes"]) == 1
    web.beat(engines={"standard": EngineStatus(engine="builtin", reason="codex: not logged in")})
    found = web.ask("POST", "/api/triggers/preview", asked).get_json()
    assert "no language model is connected" in found["notes"][1]["en"]


def test_a_time_in_the_past_is_noted(web) -> None:
    asked = {"schedule": {"runAt": "2026-01-01T00:00:00Z"}}
    found = web.ask("POST", "/api/triggers/preview", asked).get_json()
    assert "it runs at once" in found["notes"][0]["en"]
    assert found["next"] == [time_text(START)]


# ---- making ---------------------------------------------------------------------------------


def test_a_trigger_is_on_disk_as_asked_before_it_is_acknowledged(web) -> None:
    put(web, "task-1", trace_id="trace-1")
    body = {
        "id": "trig-9", "title": "Then", "prompt": "go on", "profile": "command", "priority": 8,
        "timeout": 60, "maxAttempts": 3, "overlap": "queue", "once": True, "notify": "failure",
        "cooldown": 30, "condition": DONE,
    }  # fmt: skip
    response = web.ask("POST", "/api/triggers", body)
    told = {"en": "I'll tell you only if it fails.", "zh": "只有失败时我才会告诉你。"}
    assert (response.status_code, response.get_json()) == (
        202,
        {"id": "trig-9", "told": told, "notes": []},
    )
    made = stored(web, "trig-9").to_dict()
    assert {name: made[name] for name in body} == body
    assert (made["type"], made["origin"], made["traceId"]) == ("conditional", "http", "trace-1")
    images = list(web.disk.after_power_loss())
    assert all(image.stat(paths.trigger("trig-9")) is not None for image in images)


@pytest.mark.parametrize(
    "timing",
    [{"schedule": {"interval": 60}}, {"when": "in 10m"}, {"when": "每天 9 点"}, {"condition": ASK}],
)
def test_the_same_sent_again_later_is_the_same_trigger(web, timing: dict[str, Any]) -> None:
    body = {"id": "trig-9", "prompt": "x"} | timing
    first = web.ask("POST", "/api/triggers", body)
    made = stored(web, "trig-9")
    web.clock.advance(300)
    web.files.save(paths.trigger(made.id), made.but(enabled=False))
    again = web.ask("POST", "/api/triggers", body)
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.get_data() == again.get_data()
    assert stored(web, "trig-9") == made.but(enabled=False)


@pytest.mark.parametrize("change", [{"prompt": "y"}, {"once": True}, {"schedule": {"interval": 2}}])
def test_another_trigger_under_the_same_id_is_a_conflict(web, change: dict[str, Any]) -> None:
    web.ask("POST", "/api/triggers", HOURLY | {"id": "trig-9"})
    before = web.contents()
    response = web.ask("POST", "/api/triggers", HOURLY | {"id": "trig-9"} | change)
    assert (response.status_code, error_of(response)["field"]) == (409, "id")
    assert web.contents() == before


def test_concurrent_requests_with_one_id_create_one_trigger(web) -> None:
    codes: list[int] = []

    def send(prompt: str) -> None:
        body = HOURLY | {"id": "trig-9", "prompt": prompt}
        codes.append(web.ask("POST", "/api/triggers", body).status_code)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, "abababab"))
    assert sorted(codes) == [202] * 4 + [409] * 4
    assert len(web.files.names(paths.TRIGGERS)) == 1


def test_a_repeated_request_after_firing_creates_no_second_trigger(web) -> None:
    body = {"id": "trig-9", "prompt": "x", "when": "in 10m"}
    web.ask("POST", "/api/triggers", body)
    web.clock.advance(900)
    put(web, "task-r", prompt="x", source_trigger_id="trig-9")
    slot(web, "trig-9", state="ran", taskId="task-r")
    registry.remove(web.files, "trig-9")
    assert web.ask("POST", "/api/triggers", body).status_code == 202
    assert web.files.names(paths.TRIGGERS) == []
    other = web.ask("POST", "/api/triggers", body | {"prompt": "y"})
    assert other.status_code == 409
    assert web.files.names(paths.TRIGGERS) == []


@pytest.mark.parametrize(
    ("is_local", "allow", "code"), [(True, False, 202), (False, False, 403), (False, True, 202)]
)
def test_commands_are_taken_from_this_machine_unless_allowed(
    make_web, is_local: bool, allow: bool, code: int
) -> None:
    web = make_web(is_local=is_local, web={"allow_commands": allow})
    registry.create(web.files, trigger(id="trig-c", profile="command"))
    registry.create(web.files, trigger(id="trig-s"))
    body = HOURLY | {"profile": "command"}
    assert web.ask("POST", "/api/triggers", body).status_code == code
    for id_, change in (("trig-c", {"prompt": "rm"}), ("trig-s", {"profile": "command"})):
        assert web.ask("PATCH", f"/api/triggers/{id_}", change).status_code == code
    # What runs already may be timed anew and renamed.
    assert web.ask("PATCH", "/api/triggers/trig-c", {"when": "in 10m"}).status_code == 202
    assert len(web.files.names(paths.TRIGGERS)) == 2 + (code == 202)


def test_a_cycle_is_refused_with_its_path(web) -> None:
    put(web, "task-1")
    for id_, named in (("trig-a", "task-1"), ("trig-b", "trig-a"), ("trig-c", "trig-b")):
        body = {"id": id_, "prompt": "x", "condition": cond("task_done", taskId=named)}
        assert web.ask("POST", "/api/triggers", body).status_code == 202
    before = web.contents()
    change = {"condition": cond("or", conditions=[cond("task_failed", taskId="trig-c"), ASK])}
    response = web.ask("PATCH", "/api/triggers/trig-a", change)
    told = error_of(response)
    assert (response.status_code, told["field"]) == (409, "condition")
    assert "trig-a → trig-c → trig-b → trig-a" in told["message"]
    itself = {"id": "trig-z", "prompt": "x", "condition": cond("task_done", taskId="trig-z")}
    assert web.ask("POST", "/api/triggers", itself).status_code == 409
    assert web.contents() == before


# ---- editing --------------------------------------------------------------------------------


SOON = "2026-03-01T12:10:00.000Z"
UNSET: dict[str, Any] = dict.fromkeys(("interval", "cron", "timezone", "runAt"))
PLAIN = {"maxAttempts": 2, "overlap": "queue", "once": False, "notify": "none", "priority": 1}


@pytest.mark.parametrize(
    ("change", "args"),
    [
        (PLAIN, PLAIN),
        (
            {"schedule": {"cron": "0 9 * * *"}, "timezone": ZONE},
            {"schedule": UNSET | {"cron": "0 9 * * *", "timezone": ZONE}},
        ),
        (
            {"when": "in 10m", "prompt": "z"},
            {"prompt": "z", "schedule": UNSET | {"timezone": "Etc/UTC", "runAt": SOON}},
        ),
        ({"condition": ASK}, {"condition": ASK}),
    ],
)
def test_an_edit_is_a_command_with_the_new_fields(
    make_web, change: dict[str, Any], args: dict[str, Any]
) -> None:
    web = make_web(timezone="Etc/UTC")
    registry.create(web.files, trigger())
    response = web.ask("PATCH", "/api/triggers/trig-1", change | {"id": "cmd-1"})
    assert (response.status_code, response.get_json()) == (202, {"command": "cmd-1"})
    order = web.files.peek(paths.command("cmd-1"), Command)
    assert (order.action, order.target, order.origin) == ("trigger_edit", "trig-1", "http")
    assert order.args == args


def test_an_edit_of_the_time_keeps_the_limits_that_it_does_not_name(web) -> None:
    plan = Schedule(cron="0 9 * * *", times=3, lateness=60, starting=START, every_days=2)
    registry.create(web.files, trigger(schedule=plan))
    change = {"schedule": {"cron": "0 8 * * *", "times": None}}
    assert web.ask("PATCH", "/api/triggers/trig-1", change).status_code == 202
    (order,) = queue.waiting_commands(web.files)
    assert order.args["schedule"]["cron"] == "0 8 * * *"
    assert {"lateness", "starting", "everyDays"} <= order.args["schedule"].keys()
    assert "times" not in order.args["schedule"]


def test_a_zone_alone_moves_the_schedule_there(web) -> None:
    registry.create(web.files, trigger(schedule=Schedule(cron="0 9 * * *")))
    registry.create(web.files, trigger(id="trig-2"))
    change = {"timezone": "Asia/Shanghai"}
    assert web.ask("PATCH", "/api/triggers/trig-1", change).status_code == 202
    (order,) = queue.waiting_commands(web.files)
    assert order.args["schedule"]["cron"] == "0 9 * * *"
    assert order.args["schedule"]["timezone"] == "Asia/Shanghai"
    response = web.ask("PATCH", "/api/triggers/trig-2", change)
    assert (response.status_code, error_of(response)["field"]) == (422, "timezone")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, None),
        ({"prompt": " "}, "prompt"),
        ({"enabled": False}, "enabled"),
        ({"title": "x", "id": "../x"}, "id"),
    ],
)
def test_an_invalid_edit_creates_no_command(web, change: dict[str, Any], field: str | None) -> None:
    registry.create(web.files, trigger())
    before = web.contents()
    response = web.ask("PATCH", "/api/triggers/trig-1", change)
    assert (response.status_code, error_of(response)["field"]) == (422, field)
    assert web.contents() == before


def test_a_broken_or_unknown_trigger_cannot_be_edited(web) -> None:
    web.files.write(paths.trigger("trig-1"), b"{")
    broken = web.ask("PATCH", "/api/triggers/trig-1", {"title": "x"})
    assert broken.status_code == 409
    assert "fix it there" in error_of(broken)["message"]
    assert web.ask("PATCH", "/api/triggers/trig-2", {"title": "x"}).status_code == 404
    assert web.files.names(paths.COMMANDS) == []


# ---- one, explained -------------------------------------------------------------------------


def test_a_trigger_view_has_its_definition_and_next_time(web) -> None:
    registry.create(web.files, trigger(condition=None, cooldown=5, overlap="queue", timeout=9))
    registry.save_state(
        web.files, "trig-1", TriggerState(next_run_at=START + timedelta(seconds=90), fire_count=1)
    )
    found = web.get("/api/triggers/trig-1")["trigger"]
    assert found == web.get("/api/triggers")["triggers"][0]
    assert found == web.get("/api/snapshot")["triggers"][0]
    assert set(found) == {
        *("id", "title", "prompt", "profile", "priority", "type", "words", "enabled", "createdAt"),
        *("lastRunAt", "nextRunAt", "fireCount", "requestCount", "lastTaskId", "lastVerdict"),
        *(
            "failureStreak",
            "blockedBy",
            "schedule",
            "condition",
            "cooldown",
            "once",
            "overlap",
            "notify",
        ),
        *("notifyGiven", "told", "pausedBy"),
        *("timeout", "maxAttempts", "origin", "traceId", "broken", "headline", "last", "recent"),
    }
    assert found["schedule"] == {"interval": 10, "cron": None, "timezone": None, "runAt": None}
    assert found["headline"] == {
        "en": "Next at 12:01:30, 1 minute 30 seconds from now.",
        "zh": "下一次：12:01:30，还有 1 分钟 30 秒。",
    }


def test_a_trigger_deleted_after_firing_is_still_explained(web) -> None:
    put(web, "task-0", trace_id="t-1")
    run = put(web, "task-r", trace_id="t-1", source_trigger_id="trig-1", parent_task_id="task-0")
    slot(web, "trig-1", state="ran", taskId=run.id)
    found = web.get("/api/triggers/trig-1")
    assert found["trigger"] is None
    assert found["explanation"]["state"] == "gone"
    assert "and is gone" in found["explanation"]["headline"]["en"]
    assert [s["taskId"] for s in found["explanation"]["slots"]] == ["task-r"]
    assert {step["id"] for step in found["chain"]} == {"task-0", "task-r"}


def test_a_removed_trigger_is_explained_and_an_unknown_one_is_404(web) -> None:
    Ledger(web.files).write("trigger_created", "trig-1", START)
    Ledger(web.files).write("trigger_removed", "trig-1", START)
    found = web.get("/api/triggers/trig-1")
    assert (found["trigger"], found["explanation"]["state"]) == (None, "gone")
    assert web.ask("GET", "/api/triggers/trig-2").status_code == 404


def test_a_broken_trigger_is_explained_with_its_field(web) -> None:
    web.files.write(paths.trigger("trig-1"), b'{"prompt": "x",\n "schedule": {"interval": 0}}')
    found = web.get("/api/triggers/trig-1")
    assert (found["trigger"]["type"], found["explanation"]["state"]) == ("broken", "broken")
    assert "schedule.interval" in found["explanation"]["headline"]["en"]
    assert [step["state"] for step in found["chain"]] == ["blocked"]


def test_a_deleted_trigger_is_named_by_its_title(web) -> None:
    slot(web, "trig-0", state="ran", taskId="task-r", title="Build")
    waits = cond("task_done", taskId="trig-0")
    registry.create(web.files, trigger(type="conditional", schedule=None, condition=waits))
    (found,) = web.get("/api/triggers")["triggers"]
    assert found["words"]["en"] == "when “Build” is done"


# ---- reminders ------------------------------------------------------------------------------

REMIND = {"prompt": "call mum", "profile": "reminder", "when": "tomorrow 9:00"}


def told_reminder(web: Web, task_id: str, profile: str = "reminder") -> None:
    """Store a reminder that was delivered."""
    at, text = web.clock.now(), "5 - 3,  **mum**"
    task = Task(id=task_id, prompt=text, profile=profile, created_at=at, trace_id="trace-1")
    end = TaskResult.of(task, "done", attempts=1, started_at=at, completed_at=at)
    web.files.save_new(paths.ended("worker", task_id), task)
    web.files.save_new(paths.result("worker", task_id), end)


def test_a_reminder_is_created_where_commands_are_not_allowed(make_web: MakeWeb) -> None:
    web = make_web(is_local=False)
    assert web.ask("POST", "/api/triggers", {**REMIND, "profile": "command"}).status_code == 403
    answer = web.ask("POST", "/api/triggers", REMIND)
    assert answer.status_code == 202, answer.get_data(as_text=True)
    made = stored(web, answer.get_json()["id"])
    assert (made.profile, made.prompt, made.notify) == ("reminder", "call mum", "message")
    assert answer.get_json()["told"]["en"] == "I'll tell you just these words."


def test_a_delivered_reminder_can_be_snoozed(web: Web) -> None:
    told_reminder(web, "task-1")
    asked = {"id": "again-1", "when": "in 20 minutes"}
    for _ in range(2):
        answer = web.ask("POST", "/api/tasks/task-1/snooze", asked)
        assert answer.status_code == 202, answer.get_data(as_text=True)
        assert answer.get_json()["id"] == "again-1"
    made = stored(web, "again-1")
    assert (made.profile, made.prompt) == ("reminder", "5 - 3,  **mum**")
    assert made.schedule is not None
    assert made.schedule.run_at == web.clock.now() + timedelta(minutes=20)
    assert len(registry.ids(web.files)) == 1
    answer = web.ask("POST", "/api/tasks/task-1/snooze")
    plan = stored(web, answer.get_json()["id"]).schedule
    assert plan is not None
    assert plan.run_at == web.clock.now() + timedelta(minutes=10)


def test_only_reminders_can_be_snoozed_to_a_single_time(web: Web) -> None:
    told_reminder(web, "task-1")
    told_reminder(web, "task-2", profile="standard")
    assert web.ask("POST", "/api/tasks/task-2/snooze").status_code == 404
    assert web.ask("POST", "/api/tasks/none/snooze").status_code == 404
    for when in ("every hour", "whenever"):
        answer = web.ask("POST", "/api/tasks/task-1/snooze", {"when": when})
        assert (answer.status_code, error_of(answer)["field"]) == (422, "when")
    assert registry.ids(web.files) == []


# ---- what is given is taken -----------------------------------------------------------------


def post(web: Web, body: dict[str, Any]) -> str:
    answer = web.ask("POST", "/api/triggers", body)
    assert answer.status_code == 202, answer.get_data(as_text=True)
    return answer.get_json()["id"]


def as_shown(web: Web) -> dict[str, Any]:
    (found,) = web.get("/api/triggers")["triggers"]
    return found


DEFINITION: dict[str, Any] = {
    "prompt": "- a", "title": "False", "profile": "specialist", "priority": 0, "timeout": 1.5,
    "maxAttempts": 5, "notify": "change", "overlap": "queue", "cooldown": 0.5, "enabled": False,
}  # fmt: skip


@pytest.mark.parametrize("definition", [{"prompt": "早上"}, DEFINITION])
@pytest.mark.parametrize(
    "times",
    [
        {"schedule": {"cron": "*/5 9 * * 1-5", "timezone": "Asia/Shanghai"}},
        {"condition": cond("file_exists", path="a.txt"), "once": True},
        {"condition": cond("and", conditions=[cond("file_changed", path="*.md"), ASK])},
    ],
)
def test_post_accepts_the_result_of_get(
    web: Web, definition: dict[str, Any], times: dict[str, Any]
) -> None:
    post(web, {"id": "trig-1"} | definition | times)
    shown = as_shown(web)
    assert post(web, shown) == "trig-1", "the same again is the same"
    assert as_shown(web) == shown
    web.files.remove(paths.trigger("trig-1"))
    post(web, shown)
    assert as_shown(web) == shown
    changed = web.ask("POST", "/api/triggers", shown | {"prompt": "something else"})
    assert changed.status_code == 409


def test_the_origin_of_a_trigger_is_not_taken_from_the_request(web: Web) -> None:
    post(web, HOURLY | {"id": "trig-1", "origin": "cli"})
    assert stored(web, "trig-1").origin == "http"
