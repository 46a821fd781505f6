"""Why a trigger did or did not fire, in both languages."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.language.phrases import TABLE
from mimikit.protocol.triggers import (
    Condition,
    FileExists,
    FileExistsParameters,
    LlmEvalCondition,
    LlmEvalParameters,
    NodeVerdict,
    Schedule,
    Trigger,
    TriggerState,
)
from mimikit.triggers import conditions, explain
from mimikit.triggers.conditions import Standing
from mimikit.triggers.explain import Explanation, ExplanationContext
from tests.properties.test_conditions import TREES

NOW = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
HERE = ExplanationContext(
    now=NOW, zone=ZoneInfo("Asia/Shanghai"), title_of=lambda id_: f"title of {id_}"
)
EXISTS = FileExists(params=FileExistsParameters(path="a"))
CHINESE = re.compile(r"[\u4e00-\u9fff]")
WHY = {
    key.removeprefix("why_"): (said, TABLE["zh"][key])
    for key, said in TABLE["en"].items()
    if key.startswith("why_")
}
"""Reason of a node → how it is said in English and in Chinese."""


def timed(**fields: Any) -> Trigger:
    base = {"id": "g", "prompt": "p", "created_at": NOW, "trace_id": "t", "type": "recurring"}
    return Trigger.model_validate({**base, "schedule": Schedule(interval=3600), **fields})


def waiting(condition: Condition = EXISTS, **fields: Any) -> Trigger:
    return timed(type="conditional", schedule=None, condition=condition, **fields)


def told(
    trigger: Trigger | None,
    state: TriggerState | None = None,
    broken: str | None = None,
    **here: Any,
) -> Explanation:
    situation = dataclasses.replace(HERE, **here)
    return explain.explain(trigger, state or TriggerState(), broken, situation)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


# ---- the headline


@pytest.mark.parametrize(
    ("trigger", "state", "broken", "kind", "en", "zh"),
    [
        (timed(), {"next_run_at": at(90)}, None, "waits", "Next at 17:31:30, 1 minute 30",
         "下一次：17:31:30，还有 1 分钟 30 秒"),
        (timed(), {"next_run_at": at(-1)}, None, "due", "Due since 17:29:59", "现已到时间"),
        (timed(enabled=False), {"next_run_at": at(-1)}, None, "paused", "Paused", "已暂停"),
        (timed(), {}, "line 3: bad", "broken", "line 3: bad", "line 3: bad"),
        (waiting(), {"initialized": True}, None, "waits", "Waits until a exists.",
         "等待：a 存在。"),
        (waiting(), {}, None, "waits", "not been evaluated", "还没有被处理"),
        (waiting(), {"blocked_by": "x"}, None, "blocked", "“title of x”", "「title of x」"),
        (waiting(cooldown=60), {"last_triggered_at": at(-10)}, None, "cooling",
         "Cooling down until 17:30:50", "冷却中，到 17:30:50"),
        (waiting(), {"last_verdict": "overlap"}, None, "running", "waits until",
         "等上一次执行结束"),
        (None, {}, "line 1: bad", "broken", "never good: line 1: bad", "从未有过可用版本"),
        (None, {}, None, "unknown", "No trigger of this id", "没有这个编号"),
    ],
)  # fmt: skip
def test_the_headline_has_the_current_state(
    trigger: Trigger | None, state: dict[str, Any], broken: str | None, kind: str, en: str, zh: str
) -> None:
    found = told(trigger, TriggerState.model_validate(state), broken)
    assert found.state == kind
    assert en in found.headline["en"]
    assert zh in found.headline["zh"]
    if trigger is not None:
        assert explain.headline(trigger, TriggerState.model_validate(state), broken, HERE)[1] == (
            found.headline
        )


def slot(seconds: float, state: str = "ran", **facts: Any) -> dict[str, Any]:
    time = at(seconds).isoformat()
    task = {"taskId": f"task{seconds}"} if state == "ran" else {}
    return {"event": "slot", "id": "g", "at": time, "slot": time, "state": state, **task, **facts}


def test_a_trigger_that_is_gone_is_explained_from_its_slots() -> None:
    gone = told(None, slots=[slot(-60)])
    assert gone.state == "gone"
    assert "fired at 17:29:00 and is gone" in gone.headline["en"]
    assert "17:29:00 触发，之后移除" in gone.headline["zh"]
    removed = told(None, slots=[{"event": "trigger_created", "at": NOW.isoformat()}])
    assert (removed.state, "had never fired" in removed.headline["en"]) == ("gone", True)


# ---- what happened last


@pytest.mark.parametrize(
    ("slots", "en", "zh"),
    [
        ([], "It has not fired yet.", "还没有触发过。"),
        ([slot(-60)], "It fired last at 17:29:00.", "上次触发：17:29:00。"),
        (
            [slot(-60, plannedAt=at(-3660).isoformat())],
            "17:29:00, 1 hour late: mimikit was not running or the machine slept.",
            "晚了 1 小时",
        ),
        (
            [slot(-60, "skipped", reason="overlap")],
            "Its last slot, 17:29:00, was skipped: the previous run had not ended.",
            "上一个时点 17:29:00 被跳过：上一次执行还没有结束。",
        ),
        ([slot(-60, "missed")], "was missed.", "17:29:00 错过。"),
        ([slot(-60, missed=7)], "7 later slots had passed", "当时还有 7 个时点"),
    ],
)  # fmt: skip
def test_the_last_slot_is_explained(slots: list[dict[str, Any]], en: str, zh: str) -> None:
    lines = told(timed(), slots=slots).lines
    assert any(en in line["en"] for line in lines), lines
    assert any(zh in line["zh"] for line in lines), lines


def test_slots_come_newest_first_and_not_without_end() -> None:
    slots = [slot(-1000 + number) for number in range(explain.MAX_SLOTS + 20)]
    found = told(timed(), slots=[*slots, {"event": "trigger_removed", "at": NOW.isoformat()}])
    assert [one.at for one in found.slots] == [
        one["at"] for one in slots[::-1][: explain.MAX_SLOTS]
    ]


@pytest.mark.parametrize(
    ("fields", "here", "en", "zh"),
    [
        ({}, {"consumer_up": False}, "mimikit is not running", "mimikit 没有运行"),
        ({"last_task_id": "x"}, {"is_live": lambda _: True}, "Its last run, x, has not ended", "x"),
        ({"failure_streak": 3}, {}, "Its last 3 runs failed.", "最近 3 次执行都失败了"),
        (
            {"fire_count": 1, "request_count": 2},
            {"slots": [slot(-1)]},
            "by itself: 1; on request: 2",
            "自动触发 1 次，应要求执行 2 次",
        ),
    ],
)
def test_obstacles_are_explained(
    fields: dict[str, Any], here: dict[str, Any], en: str, zh: str
) -> None:
    lines = told(timed(), TriggerState.model_validate(fields), **here).lines
    assert any(en in line["en"] and zh in line["zh"] for line in lines), lines


def test_a_missing_model_is_reported_for_model_conditions() -> None:
    asks = LlmEvalCondition(params=LlmEvalParameters(prompt="?"))
    said = [line["en"] for line in told(waiting(asks), model_missing="no key").lines]
    assert "No model can be asked: no key." in said
    assert not any("asked" in line["en"] for line in told(waiting(), model_missing="no key").lines)


# ---- the nodes


def codes_of_conditions() -> set[str]:
    """Every reason of a node in the source of conditions.py."""
    source = ast.parse(inspect.getsource(conditions))
    given: set[str] = set(get_args(Standing))
    for call in ast.walk(source):
        if isinstance(call, ast.Call):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            name = call.func.id if isinstance(call.func, ast.Name) else name
            if name == "Node" and len(call.args) > 3:
                given |= strings(call.args[3])
            if name == "_level" and len(call.args) > 3:
                given |= strings(call.args[3])
            given |= {
                text for word in call.keywords if word.arg == "why" for text in strings(word.value)
            }
    return given


def strings(node: ast.expr) -> set[str]:
    if isinstance(node, ast.IfExp):
        return strings(node.body) | strings(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def test_every_reason_of_a_node_has_a_text_in_both_languages() -> None:
    codes = codes_of_conditions()
    assert {"ended", "used", "changed", "to_ask", "joined", "live", "too_many"} <= codes
    assert codes <= set(WHY)
    for en, zh in WHY.values():
        assert not CHINESE.search(en)
        assert CHINESE.search(zh)
        assert set(re.findall(r"\{\w+\}", en)) == set(re.findall(r"\{\w+\}", zh))


def test_a_node_without_verdict_is_not_evaluated_yet() -> None:
    (node,) = told(waiting()).nodes
    assert (node.holds, node.why["en"], node.at) == (None, "not evaluated yet", None)


@pytest.mark.parametrize(
    ("why", "facts", "en", "zh"),
    [
        (
            "ended",
            {"taskId": "r1", "subject": "t"},
            "“title of r1” ended so",
            "“title of r1” 已如此",
        ),
        ("changed", {"changed": 7, "names": ["a", "b"]}, "7 changed: a, b", "7 个有变化：a, b"),
        ("unchanged", {"files": 4}, "none of 4 files has changed", "4 个文件都没有变化"),
    ],
)
def test_the_facts_stand_in_the_words(why: str, facts: dict[str, Any], en: str, zh: str) -> None:
    verdict = NodeVerdict(holds=True, why=why, facts=facts, at=NOW)
    (node,) = told(waiting(), TriggerState(verdicts={"$": verdict})).nodes
    assert en in node.why["en"]
    assert zh in node.why["zh"]
    assert node.model_dump(by_alias=True)["at"] == "2026-11-22T09:30:00.000Z"


# ---- whatever lies there


MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2199, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - naive by hypothesis' wish
TIMES = st.none() | MOMENTS
JUNK = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.lists(st.integers())
LINES = st.lists(
    st.fixed_dictionaries(
        {"event": st.sampled_from(["slot", "ordered", "trigger_created", "x"])},
        optional={
            "at": JUNK | st.just(NOW.isoformat()) | st.just("2026-01-01T00:00:00"),
            "slot": JUNK,
            "state": JUNK | st.sampled_from(["ran", "skipped", "missed"]),
            "reason": JUNK | st.sampled_from(["overlap", "paused"]),
            "taskId": JUNK,
            "missed": JUNK,
            "plannedAt": JUNK | st.just(NOW.isoformat()),
        },
    ),
    max_size=4,
)
VERDICTS = st.dictionaries(
    st.sampled_from(["$", "$.0", "$.1"]),
    st.builds(
        lambda why, facts, holds: NodeVerdict(holds=holds, why=why, facts=facts, at=NOW),
        st.sampled_from([*WHY, "nonsense", ""]),
        st.dictionaries(
            st.sampled_from(["names", "files", "changed", "true", "of", "taskId", "subject"]), JUNK
        ),
        st.none() | st.booleans(),
    ),
)
STATES = st.builds(
    lambda times, texts, verdicts, counts: TriggerState.model_validate(
        {
            "next_run_at": times[0], "last_triggered_at": times[1], "last_run_at": times[2],
            "last_verdict": texts[0], "blocked_by": texts[1], "last_task_id": texts[2],
            "verdicts": verdicts, "fire_count": counts[0], "failure_streak": counts[1],
            "initialized": bool(counts[1] % 2),
        }
    ),
    st.tuples(TIMES, TIMES, TIMES),
    st.tuples(*[st.none() | st.sampled_from(["overlap", "ran", "x1"])] * 3),
    VERDICTS,
    st.tuples(st.integers(0, 9), st.integers(0, 3)),
)  # fmt: skip
PLANS = st.one_of(
    st.integers(1, 10**7).map(lambda n: Schedule(interval=n)),
    MOMENTS.map(lambda time: Schedule(run_at=time)),
    st.sampled_from(["0 9 * * *", "*/7 1 * 2 5L"]).map(lambda line: Schedule(cron=line)),
)


@settings(max_examples=500)
@given(
    st.none() | TREES | PLANS,
    STATES,
    st.none() | st.text(max_size=9),
    LINES,
    st.tuples(st.booleans(), st.sampled_from([None, 0.0, 366 * 86400.0]), st.booleans()),
    st.datetimes(timezones=st.just(UTC)),
    st.sampled_from(["Asia/Shanghai", "America/Lima", "UTC"]),
)
def test_any_stored_state_can_be_explained(
    plan: Any,
    state: TriggerState,
    broken: str | None,
    lines: list[dict[str, Any]],
    flags: tuple[bool, float | None, bool],
    now: datetime,
    zone: str,
) -> None:
    enabled, cooldown, live = flags
    trigger = None
    if isinstance(plan, Schedule):
        trigger = timed(schedule=plan, enabled=enabled)
    elif plan is not None:
        trigger = waiting(conditions.read(plan), enabled=enabled, cooldown=cooldown)
    found = told(
        trigger, state, broken, slots=lines, now=now, zone=ZoneInfo(zone),
        is_live=lambda _: live, consumer_up=live, model_missing="m" if live else None,
    )  # fmt: skip
    for said in (found.headline, *found.lines, *(node.why for node in found.nodes)):
        assert set(said) == {"en", "zh"}
        assert all(said.values()) or said["en"] == said["zh"]
    if trigger is not None:
        explain.headline(trigger, state, broken, HERE)
    assert found.model_dump(mode="json")["state"] in get_args(explain.State)
