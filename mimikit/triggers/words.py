"""Schedules and conditions in words, in English and Chinese. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias
from zoneinfo import ZoneInfo

from mimikit.language.phrases import Language, cron_words, interval_words, moment_words
from mimikit.protocol.models import (
    AndCondition,
    BrokenCondition,
    Condition,
    FileChanged,
    FileExists,
    LlmEvalCondition,
    NotCondition,
    OrCondition,
    Schedule,
    TaskDone,
    TaskFailed,
    Trigger,
)
from mimikit.triggers import conditions

Words: TypeAlias = dict[str, str]
"""The same in each language: `{"en": …, "zh": …}`."""

TitleOf: TypeAlias = Callable[[str], str]
"""The title of a task or trigger, by its id."""

_MOST_PROMPT = 80


def of_trigger(trigger: Trigger, title_of: TitleOf = str) -> Words:
    """When a trigger makes a task."""
    if trigger.schedule is not None:
        return of_schedule(trigger.schedule)
    if trigger.condition is not None:
        inner = of_condition(trigger.condition, title_of)
        once = trigger.once
        return {
            "en": f"when {inner['en']}{', once' if once else ''}",
            "zh": f"当{inner['zh']}时{'，只一次' if once else ''}",
        }
    return {"en": "never", "zh": "从不"}


def of_schedule(schedule: Schedule) -> Words:
    """A schedule: `every 10 seconds`, 「每周一 09:00（Asia/Shanghai）」."""
    if schedule.interval is not None:
        seconds = schedule.interval
        return _both(lambda language: interval_words(seconds, language))
    if schedule.cron is not None:
        line, named = schedule.cron, schedule.timezone
        said = _both(lambda language: cron_words(line, language))
        if named is None:
            return said
        return {"en": f"{said['en']} ({named})", "zh": f"{said['zh']}（{named}）"}
    if schedule.run_at is not None:
        at, zone = schedule.run_at, ZoneInfo(schedule.timezone or "UTC")
        zh = f"{moment_words(at, zone, 'zh')}，一次"
        return {"en": f"once {moment_words(at, zone)}", "zh": zh}
    return {"en": "never", "zh": "从不"}


def _both(say: Callable[[Language], str]) -> Words:
    return {"en": say("en"), "zh": say("zh")}


def of_condition(condition: Condition, title_of: TitleOf = str) -> Words:
    """A condition as a clause: `src/**/*.py changes and “build” is done`."""
    match condition:
        case AndCondition() | OrCondition():
            return _joined(condition, title_of)
        case NotCondition():
            inner = of_condition(condition.params.condition, title_of)
            return {"en": f"not: {inner['en']}", "zh": f"并非{inner['zh']}"}
        case FileChanged():
            path = condition.params.path
            return {"en": f"{path} changes", "zh": f" {path} 变化"}
        case FileExists():
            path = condition.params.path
            return {"en": f"{path} exists", "zh": f" {path} 存在"}
        case TaskDone():
            title = title_of(condition.params.task_id)
            return {"en": f"“{title}” is done", "zh": f"「{title}」完成"}
        case TaskFailed():
            title = title_of(condition.params.task_id)
            return {"en": f"“{title}” has failed", "zh": f"「{title}」失败"}
        case LlmEvalCondition():
            prompt = " ".join(condition.params.prompt.split())
            cut = prompt if len(prompt) <= _MOST_PROMPT else prompt[: _MOST_PROMPT - 1] + "…"
            return {"en": f"a model finds true: {cut}", "zh": f"模型判断成立：{cut}"}
        case BrokenCondition():
            return {"en": condition.type, "zh": condition.type}


def _joined(condition: AndCondition | OrCondition, title_of: TitleOf) -> Words:
    en, zh = (" and ", "且") if isinstance(condition, AndCondition) else (" or ", "或")
    inner = condition.params.conditions
    bracket = len(inner) > 1 and any(child.type in ("and", "or") for child in inner)
    shape = "({})" if bracket else "{}"
    parts = [of_condition(child, title_of) for child in inner]
    return {
        "en": en.join(shape.format(part["en"]) for part in parts),
        "zh": zh.join(shape.format(part["zh"]) for part in parts),
    }


def notes(trigger: Trigger, *, asked_every_s: float) -> list[Words]:
    """What whoever makes this trigger should know: what it may cost."""
    questions = conditions.questions(trigger.condition) if trigger.condition else {}
    if not questions:
        return []
    most = round(86400 / asked_every_s)
    least = round(86400 / max(asked_every_s, 3600))
    return [
        {
            "en": f"Asks a model up to {most} times a day, about {least} times while the answer "
            "stays no and nothing happens; all such conditions share one call.",
            "zh": f"每天最多询问模型 {most} 次；答案一直为否且没有动静时约 {least} 次。"
            "所有这类条件合并为一次调用。",
        }
    ]
