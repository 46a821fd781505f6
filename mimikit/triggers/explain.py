"""Why a trigger did or did not fire, in English and Chinese. Pure: says what the records say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from mimikit.language.time_words import UNITS, local_time
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
    when = words.of_trigger(trigger, here.title_of)
    return Explanation(
        state=kind,
        headline=headline,
        lines=[
            _w(f"It runs {when['en']}.", f"运行时间：{when['zh']}。"),
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


def reason(code: str | None) -> Words | None:
    """Why a slot had no run of its own."""
    if code is None:
        return None
    known = {
        "overlap": _w("the run before was not over", "上一次执行还没有结束"),
        "paused": _w("the trigger was paused", "触发器已暂停"),
        "ordered": _w("run now, on request", "应要求立即执行"),
        "missed": _w(
            "mimikit was not running, or the machine slept or was too busy",
            "mimikit 没有运行，或机器在休眠、过于繁忙",
        ),
    }
    return known.get(code, _w(code, code))


def _without_definition(
    broken: str | None, slots: list[SlotExplanation], here: ExplanationContext
) -> tuple[State, Words]:
    if broken is not None:
        return "broken", _w(
            f"Its file is broken and was never good: {broken}",
            f"文件有误，从未有过可用版本：{broken}",
        )
    ran = next((slot for slot in slots if slot.task_id), None)
    if ran is not None:
        at = _at(ran.at, here)
        return "gone", _w(
            f"It fired at {at} as task {ran.task_id} and is gone.",
            f"它已于 {at} 触发，任务 {ran.task_id}，之后移除。",
        )
    if any(line.get("event") in ("trigger_created", "trigger_removed") for line in here.slots):
        return "gone", _w("It was removed and had never fired.", "它已被移除，从未触发过。")
    return "unknown", _w("No trigger of this id is known.", "没有这个编号的触发器。")


def _now(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> tuple[State, Words]:
    if not trigger.enabled:
        return "paused", _w(
            "Paused: it does not fire until it is resumed.", "已暂停，恢复后才会触发。"
        )
    if broken is not None:
        return "broken", _w(
            f"Its file is broken; the last good version stays in force. {broken}",
            f"文件有误，最后一个可用版本仍然有效。{broken}",
        )
    if state.blocked_by is not None:
        title = here.title_of(state.blocked_by)
        return "blocked", _w(
            f"Blocked: it waits for “{title}”, which can not come any more.",
            f"已阻塞：它等待的「{title}」不会再发生。",
        )
    if trigger.schedule is not None:
        return _by_clock(trigger, state, here)
    if trigger.condition is not None:
        return _by_condition(trigger, trigger.condition, state, here)
    return "waits", _w("It has neither a time nor a condition.", "它既没有时间也没有条件。")


def _by_clock(
    trigger: Trigger, state: TriggerState, here: ExplanationContext
) -> tuple[State, Words]:
    due = state.next_run_at
    if due is None and trigger.schedule is not None:
        due = trigger.schedule.run_at
    if due is None:
        return "waits", _w("It has not been looked at yet.", "还没有被处理。")
    if due <= here.now:
        return "due", _w(
            f"Due since {_when(due, here)}.", f"应于 {_when(due, here)} 触发，现已到时间。"
        )
    return "waits", _w(
        f"Next at {_when(due, here)}, {_span(due - here.now, 'en')} from now.",
        f"下一次：{_when(due, here)}，还有 {_span(due - here.now, 'zh')}。",
    )


def _by_condition(
    trigger: Trigger, condition: Condition, state: TriggerState, here: ExplanationContext
) -> tuple[State, Words]:
    cooldown = conditions.cooldown_of(condition, trigger.cooldown)
    if cooldown and state.last_triggered_at is not None:
        until = _later(state.last_triggered_at, cooldown)
        if until > here.now:
            return "cooling", _w(
                f"Cooling down until {_when(until, here)}; what happens meanwhile is kept.",
                f"冷却中，到 {_when(until, here)}；期间发生的变化会保留。",
            )
    if state.last_verdict == "overlap":
        return "running", _w(
            "A change is kept until the run before is over.", "有变化，等上一次执行结束后触发。"
        )
    if not state.initialized:
        return "waits", _w("It has not been looked at yet.", "还没有被处理。")
    inner = words.of_condition(condition, here.title_of)
    return "waits", _w(f"Waits until {inner['en']}.", f"等待：{inner['zh'].strip()}。")


def _about_last(
    state: TriggerState, slots: list[SlotExplanation], here: ExplanationContext
) -> list[Words]:
    if not slots:
        return [_w("It has not fired yet.", "还没有触发过。")]
    last = slots[0]
    at, task = _at(last.at, here), last.task_id
    if last.reason == reason("ordered"):
        said = _w(
            f"It ran last at {at}, on request, as task {task}.",
            f"上次执行：{at}，应要求，任务 {task}。",
        )
    elif last.state == "ran":
        late = _late(last, here)
        said = _w(
            f"It fired last at {at} as task {task}{late['en']}.",
            f"上次触发：{at}，任务 {task}{late['zh']}。",
        )
    else:
        why = _w(f": {last.reason['en']}", f"：{last.reason['zh']}") if last.reason else _w("", "")
        said = _w(
            f"Its last slot, {at}, was {last.state}{why['en']}.",
            f"上一个时点 {at} {'错过' if last.state == 'missed' else '被跳过'}{why['zh']}。",
        )
    lines = [said]
    if last.missed:
        n, more = last.missed, "+" if last.missed >= MOST_COUNTED else ""
        lines.append(
            _w(
                f"{n}{more} later slot{_s(n)} had passed by then; missed runs are not made up.",
                f"当时还有 {n}{more} 个时点已经错过；错过的不补。",
            )
        )
    fired = state.fire_count
    return [*lines, _w(f"It has fired {fired} time{_s(fired)}.", f"共触发 {fired} 次。")]


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _late(slot: SlotExplanation, here: ExplanationContext) -> Words:
    at, planned = _time(slot.at), _time(slot.planned_at)
    late = at - planned if at and planned else timedelta()
    if late < timedelta(seconds=60):
        return _w("", "")
    return _w(
        f", {_span(late, 'en')} late: mimikit was not running or the machine slept",
        f"，晚了 {_span(late, 'zh')}：当时 mimikit 没有运行，或机器在休眠",
    )


def _hindrances(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> list[Words]:
    lines: list[Words] = []
    if not here.consumer_up:
        lines.append(
            _w(
                "The consumer is not running: nothing fires until `mimikit up` or "
                "`mimikit consumer` is started.",
                "消费者没有运行：启动 `mimikit up` 或 `mimikit consumer` 之前什么也不会触发。",
            )
        )
    if here.queues_paused:
        lines.append(
            _w(
                "The queues are paused: what fires waits for `mimikit resume`.",
                "队列已暂停：触发的任务要等 `mimikit resume`。",
            )
        )
    live = state.last_task_id is not None and here.is_live(state.last_task_id)
    if live and trigger.overlap == "skip":
        lines.append(
            _w(
                f"Its last run, {state.last_task_id}, is not over; until then it does not pile up.",
                f"上一次执行 {state.last_task_id} 还没有结束；结束之前不会堆积。",
            )
        )
    if state.failure_streak:
        n = state.failure_streak
        runs = "run" if n == 1 else f"{n} runs"
        lines.append(_w(f"Its last {runs} failed.", f"最近 {n} 次执行都失败了。"))
    asks = trigger.condition is not None and conditions.questions(trigger.condition)
    if asks and here.model_missing:
        lines.append(
            _w(
                f"Nobody can be asked: {here.model_missing}.",
                f"没有模型可问：{here.model_missing}。",
            )
        )
    if broken is not None and not trigger.enabled:
        lines.append(_w(f"Its file is broken: {broken}", f"文件有误：{broken}"))
    return lines


def _nodes(
    condition: Condition, state: TriggerState, here: ExplanationContext
) -> list[NodeExplanation]:
    found: list[NodeExplanation] = []
    for path, depth, node in conditions.walk(condition):
        verdict = state.verdicts.get(path)
        found.append(
            NodeExplanation(
                path=path,
                depth=depth,
                type=node.type,
                words=_JOINT.get(node.type) or words.of_condition(node, here.title_of),
                holds=verdict.holds if verdict else None,
                why=_why(verdict, here) if verdict else _w("not looked at yet", "还没有查看"),
                at=verdict.at if verdict else None,
            )
        )
    return found


_JOINT: dict[str, Words] = {
    "and": {"en": "all of these", "zh": "以下全部成立"},
    "or": {"en": "any of these", "zh": "以下任一成立"},
    "not": {"en": "not this", "zh": "以下不成立"},
}

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
        return _w(en.format(**facts), zh.format(**facts))
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return _w(verdict.why, verdict.why)


def _rows(line: dict[str, Any]) -> list[SlotExplanation]:
    """A line of the ledger as it is shown; the slots missed meanwhile are a row of their own."""

    def text(name: str) -> str | None:
        return value if isinstance(value := line.get(name), str) else None

    ordered = line.get("event") == "ordered"
    missed = line.get("missed")
    shown = SlotExplanation(
        at=line["at"],
        slot=str(line.get("at")) if ordered else text("slot"),
        state="ran" if ordered else text("state"),
        task_id=text("taskId"),
        planned_at=text("plannedAt"),
        reason=reason("ordered" if ordered else text("reason")),
        missed=missed if isinstance(missed, int) else None,
    )
    if not shown.missed or line.get("reason") == "paused":
        return [shown]
    lost = {"state": "missed", "reason": reason("missed"), "task_id": None, "planned_at": None}
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


def _w(en: str, zh: str) -> Words:
    return {"en": en, "zh": zh}


def _at(text: str, here: ExplanationContext) -> str:
    return _when(_time(text) or here.now, here)


def _when(time: datetime, here: ExplanationContext) -> str:
    local, today = local_time(time, here.zone), local_time(here.now, here.zone).date()
    return f"{local:%H:%M:%S}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def _span(span: timedelta, language: str) -> str:
    """A span by its one or two greatest units."""
    left = max(1, round(span.total_seconds()))
    parts: list[str] = []
    for size, en, zh in UNITS[1:]:
        count, left = divmod(left, size)
        if count:
            parts.append(
                f"{count} {zh}" if language == "zh" else f"{count} {en}{'s' * (count > 1)}"
            )
        elif parts:
            break
        if len(parts) == 2:
            break
    return " ".join(parts)
