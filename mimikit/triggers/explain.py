"""Why a trigger did or did not fire, in English and Chinese. Pure: says what the records say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from mimikit.language.phrases import UNITS, local_time
from mimikit.protocol.models import (
    Condition,
    Instant,
    NodeVerdict,
    Trigger,
    TriggerState,
    to_utc,
)
from mimikit.triggers import conditions, words
from mimikit.triggers.schedule import MOST_COUNTED
from mimikit.triggers.words import TitleOf, Words

State = Literal[
    "waits", "due", "paused", "blocked", "cooling", "running", "broken", "gone", "unknown"
]


@dataclass(frozen=True, slots=True)
class ExplanationContext:
    """What an explanation is made from."""

    now: datetime
    zone: ZoneInfo
    title_of: TitleOf = str
    consumer_up: bool = True
    queues_paused: bool = False
    slots: Sequence[dict[str, Any]] = ()
    """The trigger's lines in the ledger, oldest first."""
    is_live: Callable[[str], bool] = lambda _task_id: False
    """Whether a task waits or runs."""
    model_missing: str | None = None


class _Shown(BaseModel):
    """Keys are camelCase where it is shown."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class NodeExplanation(_Shown):
    """One node of a condition with its last verdict."""

    path: str
    depth: int
    type: str
    words: Words
    holds: bool | None
    why: Words
    at: Instant | None


class SlotExplanation(_Shown):
    """One line of the ledger; a user may have had a hand in it."""

    at: str
    slot: str | None = None
    state: str | None = None
    task_id: str | None = None
    planned_at: str | None = None
    reason: Words | None = None
    missed: int | None = None


class Explanation(_Shown):
    """What a trigger does now and why, what it did before."""

    state: State
    headline: Words
    lines: list[Words] = []
    nodes: list[NodeExplanation] = []
    slots: list[SlotExplanation] = []


MAX_SLOTS = 50
_TOLD = frozenset({"slot", "ordered"})


def explain(
    trigger: Trigger | None, state: TriggerState, broken: str | None, here: ExplanationContext
) -> Explanation:
    """Everything there is to say about one trigger.

    Args:
        trigger: the definition in force; None when there is none.
        state: what the consumer knows of it.
        broken: what is wrong with its file.
        here: the rest of the world.
    """
    told = [line for line in here.slots if line.get("event") in _TOLD and _time(line.get("at"))]
    slots = [row for line in told[::-1] for row in _rows(line)][:MAX_SLOTS]
    if trigger is None:
        kind, headline = _without_definition(broken, slots, here)
        return Explanation(state=kind, headline=headline, slots=slots)
    kind, headline = _now(trigger, state, broken, here)
    return Explanation(
        state=kind,
        headline=headline,
        lines=[
            _say("runs", when=words.of_trigger(trigger, here.title_of)),
            *_about_last(state, slots, here),
            *_hindrances(trigger, state, broken, here),
        ],
        nodes=_nodes(trigger.condition, state, here) if trigger.condition else [],
        slots=slots,
    )


def headline(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> Words:
    """What it waits for or does, in one line."""
    return _now(trigger, state, broken, here)[1]


def _without_definition(
    broken: str | None, slots: list[SlotExplanation], here: ExplanationContext
) -> tuple[State, Words]:
    if broken is not None:
        return "broken", _say("never_good", broken=broken)
    ran = next((slot for slot in slots if slot.task_id), None)
    if ran is not None:
        return "gone", _say("fired_and_gone", at=_at(ran.at, here), task=ran.task_id)
    if any(line.get("event") in ("trigger_created", "trigger_removed") for line in here.slots):
        return "gone", _say("removed")
    return "unknown", _say("no_such")


def _now(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> tuple[State, Words]:
    if not trigger.enabled:
        return "paused", _say("is_paused")
    if broken is not None:
        return "broken", _say("was_good", broken=broken)
    if state.blocked_by is not None:
        return "blocked", _say("is_blocked", title=here.title_of(state.blocked_by))
    if trigger.schedule is not None:
        due = state.next_run_at or trigger.schedule.run_at
        if due is None:
            return "waits", _say("not_yet")
        if due <= here.now:
            return "due", _say("due", at=_when(due, here))
        return "waits", _say("next", at=_when(due, here), left=_span(due - here.now))
    if trigger.condition is not None:
        return _by_condition(trigger, trigger.condition, state, here)
    return "waits", _say("never")


def _by_condition(
    trigger: Trigger, condition: Condition, state: TriggerState, here: ExplanationContext
) -> tuple[State, Words]:
    cooldown = conditions.cooldown_of(condition, trigger.cooldown)
    if cooldown and state.last_triggered_at is not None:
        until = _later(state.last_triggered_at, cooldown)
        if until > here.now:
            return "cooling", _say("cooling", until=_when(until, here))
    if state.last_verdict == "overlap":
        return "running", _say("kept_until_over")
    if not state.initialized:
        return "waits", _say("not_yet")
    inner = words.of_condition(condition, here.title_of)
    return "waits", _say("waits_until", inner={"en": inner["en"], "zh": inner["zh"].strip()})


def _about_last(
    state: TriggerState, slots: list[SlotExplanation], here: ExplanationContext
) -> list[Words]:
    if not slots:
        return [_say("not_fired")]
    last = slots[0]
    at, task = _at(last.at, here), last.task_id
    if last.reason == _SAYS_WHY_NOT["ordered"]:
        lines = [_say("ran_on_request", at=at, task=task)]
    elif last.state == "ran":
        planned = _time(last.planned_at)
        late = (_time(last.at) or here.now) - planned if planned else timedelta()
        is_late = late >= timedelta(seconds=60)
        how_late = _say("late", late=_span(late)) if is_late else ""
        lines = [_say("fired_last", at=at, task=task, late=how_late)]
    else:
        was = {"en": str(last.state), "zh": "错过" if last.state == "missed" else "被跳过"}
        why = _say("because", why=last.reason) if last.reason else ""
        lines = [_say("last_slot", at=at, was=was, why=why)]
    if last.missed:
        more = "+" if last.missed >= MOST_COUNTED else ""
        lines.append(_say("missed_then", n=f"{last.missed}{more}", s=_s(last.missed)))
    return [*lines, _say("times_fired", n=state.fire_count, s=_s(state.fire_count))]


def _hindrances(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> list[Words]:
    lines: list[Words] = []
    if not here.consumer_up:
        lines.append(_say("no_consumer"))
    if here.queues_paused:
        lines.append(_say("queues_paused"))
    live = state.last_task_id is not None and here.is_live(state.last_task_id)
    if live and trigger.overlap == "skip":
        lines.append(_say("last_not_over", task=state.last_task_id))
    if n := state.failure_streak:
        lines.append(_say("last_failed", n=n, runs="run" if n == 1 else f"{n} runs"))
    asks = trigger.condition is not None and conditions.questions(trigger.condition)
    if asks and here.model_missing:
        lines.append(_say("nobody_to_ask", why=here.model_missing))
    if broken is not None and not trigger.enabled:
        lines.append(_say("is_broken", broken=broken))
    return lines


def _nodes(
    condition: Condition, state: TriggerState, here: ExplanationContext
) -> list[NodeExplanation]:
    found: list[NodeExplanation] = []
    for path, depth, node in conditions.walk(condition):
        verdict = state.verdicts.get(path)
        is_joint = node.type in ("and", "or", "not")
        found.append(
            NodeExplanation(
                path=path,
                depth=depth,
                type=node.type,
                words=_say(node.type) if is_joint else words.of_condition(node, here.title_of),
                holds=verdict.holds if verdict else None,
                why=_why(verdict, here) if verdict else _say("no_look"),
                at=verdict.at if verdict else None,
            )
        )
    return found


def _say(key: str, **facts: object) -> Words:
    """What the table says; a fact may be `Words` itself."""
    return {
        language: said.format(
            **{
                name: cast("Words", fact)[language] if isinstance(fact, dict) else fact
                for name, fact in facts.items()
            }
        )
        for language, said in zip(("en", "zh"), _SAYS[key], strict=True)
    }


_SAYS: dict[str, tuple[str, str]] = {
    "runs": ("It runs {when}.", "运行时间：{when}。"),
    "never": ("It has neither a time nor a condition.", "它既没有时间也没有条件。"),
    "not_yet": ("It has not been looked at yet.", "还没有被处理。"),
    "due": ("Due since {at}.", "应于 {at} 触发，现已到时间。"),
    "next": ("Next at {at}, {left} from now.", "下一次：{at}，还有 {left}。"),
    "waits_until": ("Waits until {inner}.", "等待：{inner}。"),
    "cooling": (
        "Cooling down until {until}; what happens meanwhile is kept.",
        "冷却中，到 {until}；期间发生的变化会保留。",
    ),
    "kept_until_over": (
        "A change is kept until the run before is over.",
        "有变化，等上一次执行结束后触发。",
    ),
    "is_paused": ("Paused: it does not fire until it is resumed.", "已暂停，恢复后才会触发。"),
    "is_blocked": (
        "Blocked: it waits for “{title}”, which can not come any more.",
        "已阻塞：它等待的「{title}」不会再发生。",
    ),
    "is_broken": ("Its file is broken: {broken}", "文件有误：{broken}"),
    "was_good": (
        "Its file is broken; the last good version stays in force. {broken}",
        "文件有误，最后一个可用版本仍然有效。{broken}",
    ),
    "never_good": (
        "Its file is broken and was never good: {broken}",
        "文件有误，从未有过可用版本：{broken}",
    ),
    "no_such": ("No trigger of this id is known.", "没有这个编号的触发器。"),
    "removed": ("It was removed and had never fired.", "它已被移除，从未触发过。"),
    "fired_and_gone": (
        "It fired at {at} as task {task} and is gone.",
        "它已于 {at} 触发，任务 {task}，之后移除。",
    ),
    "not_fired": ("It has not fired yet.", "还没有触发过。"),
    "times_fired": ("It has fired {n} time{s}.", "共触发 {n} 次。"),
    "fired_last": (
        "It fired last at {at} as task {task}{late}.",
        "上次触发：{at}，任务 {task}{late}。",
    ),
    "late": (
        ", {late} late: mimikit was not running or the machine slept",
        "，晚了 {late}：当时 mimikit 没有运行，或机器在休眠",
    ),
    "ran_on_request": (
        "It ran last at {at}, on request, as task {task}.",
        "上次执行：{at}，应要求，任务 {task}。",
    ),
    "last_slot": ("Its last slot, {at}, was {was}{why}.", "上一个时点 {at} {was}{why}。"),
    "because": (": {why}", "：{why}"),
    "missed_then": (
        "{n} later slot{s} had passed by then; missed runs are not made up.",
        "当时还有 {n} 个时点已经错过；错过的不补。",
    ),
    "no_consumer": (
        "The consumer is not running: nothing fires until `mimikit up` or `mimikit consumer` is "
        "started.",
        "消费者没有运行：启动 `mimikit up` 或 `mimikit consumer` 之前什么也不会触发。",
    ),
    "queues_paused": (
        "The queues are paused: what fires waits for `mimikit resume`.",
        "队列已暂停：触发的任务要等 `mimikit resume`。",
    ),
    "last_not_over": (
        "Its last run, {task}, is not over; until then it does not pile up.",
        "上一次执行 {task} 还没有结束；结束之前不会堆积。",
    ),
    "last_failed": ("Its last {runs} failed.", "最近 {n} 次执行都失败了。"),
    "nobody_to_ask": ("Nobody can be asked: {why}.", "没有模型可问：{why}。"),
    "and": ("all of these", "以下全部成立"),
    "or": ("any of these", "以下任一成立"),
    "not": ("not this", "以下不成立"),
    "no_look": ("not looked at yet", "还没有查看"),
}
_SAYS_WHY_NOT: dict[str, Words] = {
    "overlap": {"en": "the run before was not over", "zh": "上一次执行还没有结束"},
    "paused": {"en": "the trigger was paused", "zh": "触发器已暂停"},
    "ordered": {"en": "run now, on request", "zh": "应要求立即执行"},
    "missed": {
        "en": "mimikit was not running, or the machine slept or was too busy",
        "zh": "mimikit 没有运行，或机器在休眠、过于繁忙",
    },
}
"""Why a slot had no run of its own."""

_WHY: dict[str, tuple[str, str]] = {
    "ended": ("{task} ended so", "{task} 已如此结束"),
    "used": ("{task} ended so and was answered by a run", "{task} 已如此结束，并已触发过"),
    "awaited": ("it has not ended so yet", "尚未如此结束"),
    "live": ("it is waiting or running", "正在等待或执行"),
    "done": ("it is done", "它已完成"),
    "failed": ("it failed", "它失败了"),
    "canceled": ("it was canceled", "它被取消了"),
    "unknown": ("no task or trigger of this id is known", "没有这个编号的任务或触发器"),
    "blocked": ("it is blocked itself", "它自己也被阻塞"),
    "first_look": ("{files} files noted; later changes count", "已记下 {files} 个文件，之后算变化"),
    "unchanged": ("none of {files} files has changed", "{files} 个文件都没有变化"),
    "changed": ("{changed} changed: {names}", "{changed} 个有变化：{names}"),
    "too_many": ("more files than can be watched; narrow the pattern", "文件太多，请缩小范围"),
    "exists": ("it is there", "存在"),
    "missing": ("it is not there", "不存在"),
    "turned": ("the opposite of what stands below", "与下面相反"),
    "joined": ("{true} of {of} hold", "{of} 个中有 {true} 个成立"),
    "said_yes": ("the model said yes", "模型回答：是"),
    "said_no": ("the model said no", "模型回答：否"),
    "to_ask": ("to be asked", "等待询问"),
    "not_needed": ("not asked: the others decide", "无需询问，其余条件已能决定"),
}  # fmt: skip


def _why(verdict: NodeVerdict, here: ExplanationContext) -> Words:
    en, zh = _WHY.get(verdict.why, (verdict.why, verdict.why))
    facts = dict(verdict.facts)
    try:
        facts["names"] = ", ".join(facts.get("names", []))
        if "taskId" in facts:
            facts["task"] = f"“{here.title_of(facts['taskId'])}”"
        return {"en": en.format(**facts), "zh": zh.format(**facts)}
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return {"en": verdict.why, "zh": verdict.why}


def _rows(line: dict[str, Any]) -> list[SlotExplanation]:
    """A line of the ledger as it is shown; the slots missed meanwhile are a row of their own."""

    def text(name: str) -> str | None:
        return value if isinstance(value := line.get(name), str) else None

    ordered = line.get("event") == "ordered"
    missed, why = line.get("missed"), "ordered" if ordered else text("reason")
    shown = SlotExplanation(
        at=line["at"],
        slot=str(line.get("at")) if ordered else text("slot"),
        state="ran" if ordered else text("state"),
        task_id=text("taskId"),
        planned_at=text("plannedAt"),
        reason=_SAYS_WHY_NOT.get(why, {"en": why, "zh": why}) if why is not None else None,
        missed=missed if isinstance(missed, int) else None,
    )
    if not shown.missed or line.get("reason") == "paused":
        return [shown]
    lost = {
        "state": "missed",
        "reason": _SAYS_WHY_NOT["missed"],
        "task_id": None,
        "planned_at": None,
    }
    return [shown, shown.model_copy(update=lost)]


def _time(text: object) -> datetime | None:
    """The time that stands in a ledger line; None where none does."""
    try:
        return to_utc(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except ValueError:
        return None


def _later(time: datetime, seconds: float) -> datetime:
    """That much later, at most at the end of the calendar."""
    try:
        return time + timedelta(seconds=seconds)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _at(text: str, here: ExplanationContext) -> str:
    return _when(_time(text) or here.now, here)


def _when(time: datetime, here: ExplanationContext) -> str:
    local, today = local_time(time, here.zone), local_time(here.now, here.zone).date()
    return f"{local:%H:%M:%S}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def _span(span: timedelta) -> Words:
    """A span by its one or two greatest units."""
    left = max(1, round(span.total_seconds()))
    en: list[str] = []
    zh: list[str] = []
    for size, name, zh_name in UNITS[1:]:
        count, left = divmod(left, size)
        if count:
            en.append(f"{count} {name}{_s(count)}")
            zh.append(f"{count} {zh_name}")
        if len(en) == 2 or (en and not count):
            break
    return {"en": " ".join(en), "zh": " ".join(zh)}
