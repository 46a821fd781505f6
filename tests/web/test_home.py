"""The home page: what needs the user first, then what runs, what comes, and the last day."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus, Question
from mimikit.protocol.triggers import Schedule, Trigger, TriggerState
from mimikit.tasks.ledger import Ledger
from mimikit.triggers import registry
from mimikit.views.home import MAX_FIRINGS, open_failures, sampled
from tests.web.conftest import live_run
from tests.web.test_shown import end, put


def line(id_: str, status: str = "failed", trigger: str | None = None, title: str = "x") -> Any:
    return {"id": id_, "status": status, "sourceTriggerId": trigger, "title": title}


@pytest.mark.parametrize(
    ("newest_first", "retried", "paused", "expected"),
    [
        (
            [line("a"), line("b"), line("c", "done"), line("d", "canceled")],
            "",
            "",
            {"a": 1, "b": 1},
        ),
        ([line("a"), line("a")], "", "", {"a": 1}),
        ([line("b"), line("a")], "a", "", {"b": 1}),
        ([line("c", trigger="g"), line("b", trigger="g")], "", "", {"c": 2}),
        ([line("c", "done", "g"), line("b", trigger="g")], "", "", {}),
        ([line("c", "canceled", "g"), line("b", trigger="g")], "", "", {"b": 1}),
        ([line("c", trigger="g"), line("b", trigger="g")], "c", "", {}),
        ([line("c", "done", "g", "y"), line("b", trigger="g")], "", "", {"b": 1}),
        ([line("c", trigger="g"), line("b", trigger="h")], "", "g", {"b": 1}),
    ],
)
def test_failures_that_need_the_user(
    newest_first: list[Any], retried: str, paused: str, expected: dict[str, int]
) -> None:
    assert open_failures(newest_first, set(retried), set(paused)) == expected


def test_runs_of_one_trigger_leave_room_for_others_in_the_last_day() -> None:
    ends = [  # one each ten seconds, for 15 minutes
        line(f"{status}-{second}", status, trigger)
        | {"at": f"2026-03-01T12:{second // 6:02}:{second % 6}0.000Z"}
        for second in reversed(range(90))
        for status, trigger in (("done", "g"), ("failed", "g"), ("failed", None))
        if trigger or second == 7
    ]
    shown = ["done-89", "failed-89", "done-59", "failed-59", "failed-7"]
    assert [end["id"] for end in sampled(ends)] == shown


def test_home_has_runs_failures_and_firings(web) -> None:
    assert web.get("/api/home")["timeline"] == []
    end(web, put(web, "gone", prompt="old"), "failed")
    web.clock.advance(86_400)
    end(web, put(web, "well", title="Backup"))
    end(web, put(web, "inner", internal=True), "failed")
    failed = put(web, "bad", prompt="make it\nnow")
    end(web, failed, "failed", error="no disk\nat all", failure_reason="error")
    running = put(web, "busy")
    web.files.move(paths.queued("worker", running.id), paths.running("worker", running.id))
    run = live_run("busy", "worker", headline="reads")
    engine = EngineStatus(engine="codex", state="waiting", tasks=1)
    web.beat(live=[run], by_engine={"codex": engine, "mine": EngineStatus(engine="mine")})
    for number in range(MAX_FIRINGS + 2):
        plan = Schedule(interval=600)
        made = Trigger(
            id=f"trig-{number}", type="recurring", prompt="look", trace_id="t", schedule=plan,
            created_at=web.clock.now(), enabled=number > 0,
        )  # fmt: skip
        web.files.save(paths.trigger(made.id), made)
        due = web.clock.now() + timedelta(minutes=9 - number)
        state = TriggerState(next_run_at=due, paused_by=None if number else "breaker")
        registry.save_state(web.files, made.id, state)
    asked = Question(
        question_id="q", question="Which?", created_at=web.clock.now(), expires_at=web.clock.now()
    )
    web.files.save(paths.PENDING_QUESTION, asked)

    web.get("/api/home")
    home = web.get("/api/home")  # from what is known
    assert [run["id"] for run in home["timeline"]] == ["busy", "bad", "well"]
    needs = home["needs"]
    assert needs["question"]["questionId"] == "q"
    told = [(it["id"], it["title"], it["error"], it["count"]) for it in needs["failures"]]
    assert told == [("bad", "make it", "no disk", 1)]
    assert [trigger["id"] for trigger in needs["triggers"]] == ["trig-0"]
    assert [it["engine"] for it in needs["engines"]] == ["codex"]
    assert [run["headline"] for run in home["running"]] == ["reads"]
    assert [it["id"] for it in home["next"]] == [f"trig-{n}" for n in (6, 5, 4, 3, 2)]
    assert home["moreRuns"] is False

    Ledger(web.files).write("queued", "again", web.clock.now(), retryOf=failed.id)
    assert web.get("/api/home")["needs"]["failures"] == []
