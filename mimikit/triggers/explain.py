"""Explains triggers: when they run, why they did or did not fire, how runs ended. Pure.

Texts come from the catalogue in English and Chinese (`language/phrases.toml`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from mimikit.language.phrases import (
    TABLE,
    UNITS,
    Words,
    cron_words,
    interval_words,
    limited_words,
    local_time,
    moment_words,
    named_zone,
    say_both,
    without_zone,
)
from mimikit.protocol.models import REMINDER, EndStatus, FailureReason, Instant, parse_time
from mimikit.protocol.triggers import (
    AndCondition,
    BrokenCondition,
    Condition,
    FileChanged,
    FileExists,
    LlmEvalCondition,
    NodeVerdict,
    NotCondition,
    OrCondition,
    Schedule,
    TaskDone,
    TaskFailed,
    Trigger,
    TriggerState,
)
from mimikit.triggers import conditions, schedule

TitleOf: TypeAlias = Callable[[str], str]

MAX_SLOTS = 50
_MAX_PROMPT = 80
_LATE = timedelta(seconds=60)


# ---- schedules and conditions as text


def trigger_words(trigger: Trigger, here: ExplanationContext | None = None) -> Words:
    if trigger.schedule is not None:
        return schedule_words(trigger.schedule, here)
    if trigger.condition is not None:
        inner = condition_words(trigger.condition, here.title_of if here else str)
        return say_both("trigger_when_once" if trigger.once else "trigger_when", inner=inner)
    return say_both("trigger_never")


def schedule_words(plan: Schedule, here: ExplanationContext | None = None) -> Words:
    """A schedule as text: `every 10 seconds`, 「每周一 09:00（Asia/Shanghai）」."""
    reader = here.reader if here else None
    own = plan.timezone or (here.zone.key if here and reader else None)
    zone = reader or named_zone(plan.timezone) or ZoneInfo("UTC")
    if plan.interval is not None:
        words = {language: interval_words(plan.interval, language) for language in TABLE}
    elif plan.cron is not None:
        words = {it: cron_words(plan.cron, it, own, plan.limits) for it in TABLE}
    elif plan.run_at is not None:
        moment = {it: moment_words(plan.run_at, zone, it) for it in TABLE}
        words = say_both("trigger_once", moment=moment)
    else:
        return say_both("trigger_never")
    words = {it: limited_words(words[it], plan.limits, zone, it) for it in TABLE}
    return without_zone(words, reader)


def condition_words(condition: Condition, title_of: TitleOf = str) -> Words:
    """A condition as text: `src/**/*.py changes and “build” is done`."""
    key = f"condition_{condition.type}"
    match condition:
        case AndCondition() | OrCondition():
            inner = condition.params.conditions
            is_mixed = len(inner) > 1 and any(child.type in ("and", "or") for child in inner)
            shape = "({})" if is_mixed else "{}"
            parts = [condition_words(child, title_of) for child in inner]
            return {
                language: between.join(shape.format(part[language]) for part in parts)
                for language, between in say_both(key).items()
            }
        case NotCondition():
            return say_both(key, inner=condition_words(condition.params.condition, title_of))
        case FileChanged() | FileExists():
            return say_both(key, path=condition.params.path)
        case TaskDone() | TaskFailed():
            return say_both(key, title=title_of(condition.params.task_id))
        case LlmEvalCondition():
            prompt = " ".join(condition.params.prompt.split())
            cut = prompt if len(prompt) <= _MAX_PROMPT else prompt[: _MAX_PROMPT - 1] + "…"
            return say_both(key, prompt=cut)
        case BrokenCondition():
            return {"en": condition.type, "zh": condition.type}


def notes(trigger: Trigger, *, asked_every_s: float) -> list[Words]:
    """The cost of a new trigger's model calls per day, if any."""
    if trigger.condition is None or not conditions.questions(trigger.condition):
        return []
    most = round(86400 / asked_every_s)
    least = round(86400 / max(asked_every_s, 3600))
    return [say_both("condition_costs", most=most, least=least)]


# ---- explanations

State = Literal[
    "waits", "due", "paused", "blocked", "cooling", "running", "broken", "gone", "unknown"
]


@dataclass(frozen=True, slots=True)
class ExplanationContext:
    now: datetime
    zone: ZoneInfo
    """The workspace's."""
    reader: ZoneInfo | None = None
    """The zone of who reads it: moments are said in it, and it is not named."""
    title_of: TitleOf = str
    consumer_up: bool = True
    queues_paused: bool = False
    slots: Sequence[dict[str, Any]] = ()
    """The trigger's ledger lines, oldest first."""
    is_live: Callable[[str], bool] = lambda _task_id: False
    model_missing: str | None = None
    """Why no model can answer llm_eval conditions."""
    runs_of: Callable[[str], Sequence[object]] = lambda _trigger_id: ()


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)


class NodeExplanation(_Shown):
    path: str
    depth: int
    type: str
    words: Words
    holds: bool | None
    why: Words
    at: Instant | None


class SlotExplanation(_Shown):
    """A past slot, from the ledger. Times are unparsed: a user may have edited the file."""

    at: str
    slot: str | None = None
    state: str | None = None
    task_id: str | None = None
    planned_at: str | None = None
    reason: Words | None = None
    missed: int | None = None


class Explanation(_Shown):
    """The current state of a trigger with its reasons, and its past slots."""

    state: State
    headline: Words
    lines: list[Words] = []
    nodes: list[NodeExplanation] = []
    slots: list[SlotExplanation] = []


def explain(
    trigger: Trigger | None, state: TriggerState, broken: str | None, here: ExplanationContext
) -> Explanation:
    """`trigger`: the definition in effect, if any. `broken`: the error in its file."""
    lines = [
        line
        for line in reversed(here.slots)
        if line.get("event") in ("slot", "ordered") and parse_time(line.get("at"))
    ]
    slots = [row for line in lines for row in _rows(line)][:MAX_SLOTS]
    kind, title = headline(trigger, state, broken, here, slots)
    if trigger is None:
        return Explanation(state=kind, headline=title, slots=slots)
    runs = "trigger_reminds" if trigger.profile == REMINDER else "trigger_runs"
    return Explanation(
        state=kind,
        headline=title,
        lines=[
            say_both(runs, when=trigger_words(trigger, here)),
            *_last_slot(state, slots, here),
            *_obstacles(trigger, state, broken, here),
        ],
        nodes=_nodes(trigger.condition, state, here) if trigger.condition else [],
        slots=slots,
    )


def headline(
    trigger: Trigger | None,
    state: TriggerState,
    broken: str | None,
    here: ExplanationContext,
    slots: Sequence[SlotExplanation] = (),
) -> tuple[State, Words]:
    """The state of a trigger in one line; of a removed one how it ended."""
    if trigger is not None:
        return _current(trigger, state, broken, here)
    if broken is not None:
        return "broken", say_both("trigger_never_good", broken=broken)
    if slots and slots[0].state == "missed" and slots[0].reason == _reason("late"):
        return "gone", say_both("trigger_missed_and_gone", at=_when(parse_time(slots[0].at), here))
    ran = next((slot for slot in slots if slot.task_id), None)
    if ran is not None:
        at = _when(parse_time(ran.at), here)
        return "gone", say_both("trigger_fired_and_gone", at=at)
    if any(line.get("event", "").startswith("trigger_") for line in here.slots):
        return "gone", say_both("trigger_removed")
    return "unknown", say_both("trigger_no_such")


def _current(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> tuple[State, Words]:
    if not trigger.enabled:
        cause = "_loop" if state.last_verdict == "loop" else "_failing"
        return "paused", say_both(f"trigger_is_paused{cause if state.paused_by else ''}")
    if broken is not None:
        return "broken", say_both("trigger_was_good", broken=broken)
    if state.blocked_by is not None:
        return "blocked", say_both("trigger_is_blocked", title=here.title_of(state.blocked_by))
    if trigger.schedule is not None:
        due = state.next_run_at or trigger.schedule.run_at
        if due is None:
            return "waits", say_both("trigger_not_yet")
        if due <= here.now:
            return "due", say_both("trigger_due", at=_when(due, here))
        return "waits", say_both("trigger_next", at=_when(due, here), left=_span(due - here.now))
    if trigger.condition is None:
        return "waits", say_both("trigger_neither")
    cooldown = conditions.cooldown_of(trigger.condition, trigger.cooldown)
    until = conditions.cooldown_end(cooldown, state.last_triggered_at)
    if until is not None and until > here.now:
        return "cooling", say_both("trigger_cooling", until=_when(until, here))
    if state.last_verdict == "overlap":
        return "running", say_both("trigger_kept_until_over")
    if not state.initialized:
        return "waits", say_both("trigger_not_yet")
    inner = condition_words(trigger.condition, here.title_of)
    return "waits", say_both("trigger_waits_until", inner={**inner, "zh": inner["zh"].strip()})


def _last_slot(
    state: TriggerState, slots: list[SlotExplanation], here: ExplanationContext
) -> list[Words]:
    if not slots:
        return [say_both("trigger_not_fired")]
    last = slots[0]
    at = _when(parse_time(last.at), here)
    if last.reason == _reason("ordered"):
        lines = [say_both("trigger_ran_on_request", at=at)]
    elif last.state == "ran":
        planned = parse_time(last.planned_at)
        late = (parse_time(last.at) or here.now) - planned if planned else timedelta()
        key = "fired_late" if late >= _LATE else "fired_last"
        lines = [say_both(f"trigger_{key}", at=at, late=_span(late))]
    else:
        was = say_both("slot_missed" if last.state == "missed" else "slot_skipped")
        key = "last_slot_why" if last.reason else "last_slot"
        lines = [say_both(f"trigger_{key}", at=at, was=was, why=last.reason)]
    if last.missed:
        more = "+" if last.missed >= schedule.MAX_COUNTED else ""
        key = "missed_then_one" if last.missed == 1 else "missed_then"
        lines.append(say_both(f"trigger_{key}", n=f"{last.missed}{more}"))
    return [*lines, say_both("trigger_times", fired=state.fire_count, asked=state.request_count)]


def _obstacles(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> list[Words]:
    lines: list[Words] = []
    if not here.consumer_up:
        lines.append(say_both("trigger_no_consumer"))
    if here.queues_paused:
        lines.append(say_both("trigger_queues_paused"))
    is_live = state.last_task_id is not None and here.is_live(state.last_task_id)
    if is_live and trigger.overlap == "skip":
        lines.append(say_both("trigger_last_not_over", task=state.last_task_id))
    if n := state.failure_streak:
        lines.append(say_both("trigger_last_failed_one" if n == 1 else "trigger_last_failed", n=n))
    asks = trigger.condition is not None and conditions.questions(trigger.condition)
    if asks and here.model_missing:
        lines.append(say_both("trigger_nobody_to_ask", why=here.model_missing))
    if broken is not None and not trigger.enabled:
        lines.append(say_both("trigger_is_broken", broken=broken))
    return lines


def _nodes(
    condition: Condition, state: TriggerState, here: ExplanationContext
) -> list[NodeExplanation]:
    nodes: list[NodeExplanation] = []
    for path, node in conditions.walk(condition):
        verdict = state.verdicts.get(path)
        is_joint = node.type in ("and", "or", "not")
        words = say_both(f"node_{node.type}") if is_joint else condition_words(node, here.title_of)
        shown = NodeExplanation(
            path=path,
            depth=path.count("."),
            type=node.type,
            words=words,
            holds=verdict.holds if verdict else None,
            why=_why(verdict, here) if verdict else say_both("why_no_look"),
            at=verdict.at if verdict else None,
        )
        nodes.append(shown)
    return nodes


def _why(verdict: NodeVerdict, here: ExplanationContext) -> Words:
    facts = dict(verdict.facts)
    try:
        facts["names"] = ", ".join(facts.get("names", []))
        if "taskId" in facts:
            facts["task"] = f"“{here.title_of(facts['taskId'])}”"
        return say_both(f"why_{verdict.why}", **facts)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        return {"en": verdict.why, "zh": verdict.why}


def _rows(line: dict[str, Any]) -> list[SlotExplanation]:
    """A ledger line as shown; slots missed after it get a separate row."""

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
        reason=_reason(why) if why is not None else None,
        missed=missed if isinstance(missed, int) else None,
    )
    if not shown.missed or line.get("reason") == "paused":
        return [shown]
    lost = SlotExplanation(
        at=shown.at, slot=shown.slot, state="missed", reason=_reason("missed"), missed=shown.missed
    )
    return [shown, lost]


def _reason(code: str) -> Words:
    key = f"slot_reason_{code}"
    return say_both(key) if key in TABLE["en"] else {"en": code, "zh": code}


def _when(time: datetime | None, here: ExplanationContext) -> str:
    zone = here.reader or here.zone
    local, today = local_time(time or here.now, zone), local_time(here.now, zone).date()
    return f"{local:%H:%M:%S}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def _span(span: timedelta) -> Words:
    left = max(1, round(span.total_seconds()))
    en: list[str] = []
    zh: list[str] = []
    for size, name, zh_name in UNITS[1:]:
        count, left = divmod(left, size)
        if count:
            en.append(f"{count} {name}{'' if count == 1 else 's'}")
            zh.append(f"{count} {zh_name}")
        if len(en) == 2 or (en and not count):
            break
    return {"en": " ".join(en), "zh": " ".join(zh)}


# ---- reports


@dataclass(frozen=True, slots=True)
class TriggerReport:
    """A short status of a trigger, for prompts, tools, the chat, the page and the terminal."""

    words: Words
    next_at: datetime | None
    next: Words | None
    last: Words | None
    waits: Words | None
    """What prevents it from firing, or the run in progress."""
    headline: Words


def report(
    trigger: Trigger, state: TriggerState, broken: str | None, here: ExplanationContext
) -> TriggerReport:
    kind, title = headline(trigger, state, broken, here)
    next_at = _next_run(trigger, state, here)
    upcoming = None
    if next_at is not None and trigger.enabled and state.blocked_by is None:
        upcoming = say_both("fact_next", moment=_moment(next_at, here))
    end, last = state.last_end, None
    if end is not None:
        last = end_words("fact_last", end.status, end.failure_reason, end.error, end.at, here)
    elif state.last_task_id is None:
        last = say_both("fact_never")
    waits = None if kind in ("waits", "due") else title
    task_id = state.last_task_id
    is_open = task_id is not None and (end is None or end.task_id != task_id)
    if waits is None and is_open and task_id is not None and here.is_live(task_id):
        waits = say_both("fact_under_way")
    return TriggerReport(trigger_words(trigger, here), next_at, upcoming, last, waits, title)


def _next_run(trigger: Trigger, state: TriggerState, here: ExplanationContext) -> datetime | None:
    """The next slot; computed where the consumer has not seen the trigger yet."""
    if trigger.schedule is None or state.next_run_at is not None:
        return state.next_run_at
    return schedule.slot_to_wait_for(
        trigger.schedule,
        now=here.now,
        recorded=None,
        last_run_at=state.last_run_at,
        created_at=trigger.created_at,
        zone=here.zone,
    )


def end_words(
    key: str,
    status: EndStatus,
    reason: FailureReason | None,
    error: str | None,
    at: datetime,
    here: ExplanationContext,
) -> Words:
    """How and when a run ended; `key`: the prefix of the phrases."""
    moment = _moment(at, here)
    if status != "failed":
        return say_both(f"{key}_{status}", moment=moment)
    why = say_both(f"reason_{reason or 'unknown'}")
    if error:
        why = say_both("fact_why", reason=why, error=error)
    return say_both(f"{key}_failed", moment=moment, why=why)


def not_before_words(at: datetime, here: ExplanationContext) -> Words:
    return say_both("fact_not_before", moment=_moment(at, here))


def _moment(at: datetime, here: ExplanationContext) -> Words:
    zone = here.reader or here.zone
    return without_zone({it: moment_words(at, zone, it) for it in TABLE}, here.reader)
