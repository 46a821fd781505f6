"""The messages of mimikit, in English and Chinese, and descriptions of times.

`phrases.toml` has each message by id in both languages, with `{placeholders}`. Foreign text is put
in a code fence or span that it cannot close. Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from mimikit.language.plain_text import plain, without_printed

Language = Literal["en", "zh"]

Words: TypeAlias = dict[str, str]

# Characters of one result, and of all results in a message.
MAX_OUTPUT, MAX_OUTPUTS = 2000, 12_000

_CATALOGUE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
TABLE: dict[Language, dict[str, str]] = {
    "en": {key: both["en"] for key, both in _CATALOGUE.items()},
    "zh": {key: both["zh"] for key, both in _CATALOGUE.items()},
}

HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_EXIT_CODE = re.compile(r"exit code (\d+)(?:\n|\Z)")
_WORD = re.compile(r"[A-Za-z]+")
_SAMPLE = 4000


def say(key: str, language: str, /, **values: object) -> str:
    """Format a message; an unknown language means English."""
    # No control characters (text direction, escapes) in foreign values.
    own = {
        name: plain(value) if isinstance(value, str) else value for name, value in values.items()
    }
    return TABLE["zh" if language == "zh" else "en"][key].format(**own)


def say_both(key: str, /, **values: str | float | Words | None) -> Words:
    """Format a message in each language; a value may be `Words` too."""
    words: Words = {}
    for language in TABLE:
        own = {n: v[language] if isinstance(v, dict) else v for n, v in values.items()}
        words[language] = say(key, language, **own)
    return words


def language(text: str, locale: str = "en") -> Language:
    """Detect the language by the share of Chinese; when unclear, the locale's."""
    by_locale: Language = "zh" if locale.lower().startswith("zh") else "en"
    read = text[:_SAMPLE]
    han, words = len(HAN.findall(read)), len(_WORD.findall(read))
    if not han + words or _KANA_OR_HANGUL.search(read):
        return by_locale
    share = han / (han + words)
    if share >= 0.5:
        return "zh"
    return "en" if share <= 0.15 else by_locale


def fence(text: str, info: str = "text", *, least: int = 3) -> str:
    """A code fence of at least `least` backticks, and more than any run in the text."""
    ticks = "`" * max(least, _longest_ticks(text) + 1)
    return f"{ticks}{info}\n{text}\n{ticks}"


def code(text: str) -> str:
    line = " ".join(plain(text).split())
    ticks = "`" * (_longest_ticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def _longest_ticks(text: str) -> int:
    return max((len(ticks) for ticks in re.findall("`+", text)), default=0)


def paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def state(name: str, language: str) -> str:
    """The name of a task's or trigger's state; an unknown one unchanged."""
    key = "state_" + name.replace(", ", "_")
    return say(key, language) if key in TABLE["en"] else name


def role(name: str, language: str = "en") -> str:
    """What a role or profile is called: `assistant`, 「规划」; an unknown one unchanged."""
    return say(f"role_{name}", language) if f"role_{name}" in TABLE["en"] else name


# ---- tasks that ended


@dataclass(frozen=True, slots=True)
class ResultNotice:
    """A finished task, for the message that reports it."""

    title: str
    prompt: str
    seat: Literal["planner", "worker"]
    status: str
    text: str
    error: str | None
    failure_reason: str | None
    task_id: str
    trigger_id: str | None = None
    steps: tuple[str, ...] = ()
    """Titles of the chain steps that are skipped."""
    paused: int = 0
    """The number of failures after which its trigger was paused; 0: it was not."""
    reminder: ReminderNotice | None = None


@dataclass(frozen=True, slots=True)
class ReminderNotice:
    """The facts for a reminder's message, beside its text."""

    zone: str | None = None
    """The zone of its time; None: the workspace's."""
    planned_at: datetime | None = None
    """The planned time, if it is late."""
    missed: int = 0
    """Number of later slots that have passed since."""


def reminder(text: str, notice: ReminderNotice, language: Language, zone: ZoneInfo) -> str:
    """A reminder's message; a late one states its planned time."""
    space = "" if language == "zh" else " "
    if notice.planned_at is None:
        return f"{say('reminder', language)}{space}{text}"
    when = moment_words(notice.planned_at, named_zone(notice.zone) or zone, language)
    key = "reminder_late_missed" if notice.missed else "reminder_late"
    return f"{say(key, language, when=when, missed=notice.missed)}{space}{text}"


def named_zone(name: str | None) -> ZoneInfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return None


def results(ended: Sequence[ResultNotice], language: str) -> str:
    limit = min(MAX_OUTPUT, MAX_OUTPUTS // max(1, len(ended)))
    return "\n\n".join(_result(result, language, limit) for result in ended)


def _result(result: ResultNotice, language: str, limit: int) -> str:
    title = code(result.title or result.task_id)
    text = result.text.strip("\n")

    def cut(text: str, *, fenced: bool = True, end: bool = False) -> str:
        """The start of a long text, or its end, where errors are."""
        if not text.strip():
            return ""
        hidden = len(text) - limit
        if hidden <= 0:
            return fence(text) if fenced else text
        shown, key = (text[-limit:], "cut_start") if end else (text[:limit], "cut_end")
        note = say(key, language, hidden=f"{hidden:,}", id=result.task_id)
        return paragraphs(fence(shown) if fenced else f"{shown}…", note)

    if result.status == "done":
        key = "result_done" if text.strip() else "result_done_silent"
        head = say(key, language, title=title)
        return paragraphs(head, cut(text, fenced=result.seat != "planner"))
    if result.status == "failed":
        why = say(f"reason_{result.failure_reason or 'unknown'}", language)
        error = without_printed((result.error or "").strip(), text[-limit:])
        output = "" if text.strip() == error else text
        if code_ := _EXIT_CODE.match(error):
            why = say("reason_exit_code", language, code=code_[1])
            error = error[code_.end() :].strip()
        head = say("result_failed", language, title=title, reason=why)
        return paragraphs(head, cut(error), cut(output, end=True), _consequences(result, language))
    if result.status == "canceled":
        head = say("result_canceled", language, title=title)
        return paragraphs(head, _consequences(result, language))
    return say("result_other", language, title=title, status=result.status)


def _consequences(result: ResultNotice, language: str) -> str:
    parts: list[str] = []
    if result.steps:
        steps = ("、" if language == "zh" else ", ").join(map(code, result.steps))
        parts.append(say("result_steps", language, steps=steps))
    if result.paused:
        id_ = result.trigger_id
        parts.append(say("result_paused", language, count=result.paused, id=id_))
    return paragraphs(*parts)


# ---- times in words

UNITS = (
    (604800, "week", "周"),
    (86400, "day", "天"),
    (3600, "hour", "小时"),
    (60, "minute", "分钟"),
    (1, "second", "秒"),
)
MONTHS_EN = TABLE["en"]["month_names"].split(", ")
MONTHS = {name[:3].lower(): number for number, name in enumerate(MONTHS_EN, 1)}
_DAY_SETS = {
    frozenset(range(7)): "every_day",
    frozenset(range(5)): "every_weekday",
    frozenset({5, 6}): "every_weekend",
}
_NUMBERS = r"\d{1,2}(?:-\d{1,2})?(?:,\d{1,2}(?:-\d{1,2})?)*"
_COMMON_CRON = re.compile(
    rf"(?P<minute>\d{{1,2}})\s+(?P<hours>\*|{_NUMBERS})\s+(?P<days>\*|LW?|{_NUMBERS})\s+"
    rf"(?P<month>\*|\*/[2346]|\d{{1,2}})\s+(?P<weekdays>\*|\d(?:L|#\d)|{_NUMBERS})"
)
_DAILY_CRON = re.compile(
    rf"(?P<minute>\d{{1,2}}) (?P<hours>{_NUMBERS}) \* \* (?P<weekdays>\*|{_NUMBERS})"
)
_WINDOW_CRON = re.compile(rf"\*/(\d{{1,2}}) (\d{{1,2}})(?:-(\d{{1,2}}))? \* \* (\*|{_NUMBERS})")
_EVERY_MINUTES = re.compile(r"\*(?:/(?P<step>\d{1,2}))? \* \* \* \*")


def interval_words(seconds: float, language: Language = "en") -> str:
    """An interval in words: `every 10 seconds`, `每 10 秒`."""
    count, en, zh = _counted(seconds)
    key = "every_one" if count == "1" else "every_some"
    return say(key, language, count=count, unit=zh if language == "zh" else en)


def _amount_words(seconds: float, language: Language) -> str:
    count, en, zh = _counted(seconds)
    return f"{count} {zh}" if language == "zh" else f"{count} {en}{'' if count == '1' else 's'}"


def _counted(seconds: float) -> tuple[str, str, str]:
    """The number of its largest whole unit, and the unit in both languages."""
    size, en, zh = next(unit for unit in UNITS if seconds % unit[0] == 0 or unit[0] == 1)
    return f"{seconds / size:.3f}".rstrip("0").rstrip("."), en, zh


@dataclass(frozen=True, slots=True)
class Limits:
    """Which slots of a recurring schedule count; `protocol.triggers.Schedule` has the same."""

    starting: datetime | None = None
    until: datetime | None = None
    times: int | None = None
    lateness: float | None = None
    every_days: int | None = None
    every_weeks: int | None = None


NO_LIMITS = Limits()


def limited_words(words: str, limits: Limits, zone: ZoneInfo, language: Language = "en") -> str:
    """A schedule in words with its limits: `…, until on Friday, 2026-11-27 at 23:59 (UTC)`."""
    facts: dict[str, object] = {}
    is_stepped = limits.every_days is not None or limits.every_weeks is not None
    for name, at in (("starting", limits.starting), ("until", limits.until)):
        if at is not None and not (is_stepped and name == "starting"):
            facts[name] = moment_words(at, zone, language).removeprefix("on ")
    if limits.times is not None:
        facts["times" if limits.times > 1 else "one_time"] = limits.times
    if limits.lateness is not None:
        facts["lateness"] = _amount_words(limits.lateness, language)
    parts = [say(f"limit_{name}", language, fact=fact) for name, fact in facts.items()]
    return ("，" if language == "zh" else ", ").join([words, *parts])


def moment_words(at: datetime, zone: ZoneInfo, language: Language = "en") -> str:
    """An instant in words: `on Tuesday, 2026-12-01 at 09:00 (Asia/Shanghai)`."""
    local = local_time(at, zone)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    day, weekday = local.date(), _name("weekday_names", local.weekday(), language)
    if language == "zh":
        return f"{day}（{weekday}）{clock}（{zone_name(zone.key)}）"
    return f"on {weekday}, {day} at {clock} ({zone_name(zone.key)})"


def zone_name(key: str) -> str:
    return "UTC" if key == "Etc/UTC" else key


def without_zone(words: Words, zone: ZoneInfo | None) -> Words:
    """For a reader in that zone, to whom it is not named."""
    if zone is None:
        return words
    en, zh = f" ({zone_name(zone.key)})", f"（{zone_name(zone.key)}）"
    return {it: text.replace(en, "").replace(zh, "") for it, text in words.items()}


def local_time(at: datetime, zone: ZoneInfo) -> datetime:
    """Convert to a zone; unchanged at the ends of the calendar."""
    try:
        return at.astimezone(zone)
    except (OverflowError, ValueError):
        return at


def cron_words(expression: str, language: Language, zone: str | None, limits: Limits) -> str:
    """A cron line, of every so many days or weeks, in words if it is a common one."""
    line = " ".join(expression.split())
    words = _cron_words(line, language)
    if count := limits.every_days or limits.every_weeks:
        unit, daily = "days" if limits.every_days else "weeks", _DAILY_CRON.fullmatch(line)
        if daily and (unit == "weeks" or daily["weekdays"] == "*"):
            clocks = _clocks(daily["hours"], daily["minute"], language)
            words = _on_weekdays(daily["weekdays"], clocks, language, f"every_some_{unit}", count)
        else:
            nth = _nth(count) if language == "en" else count
            words = say(f"only_every_{unit}", language, words=words, nth=nth)
    if zone is None:
        return words
    return f"{words}（{zone_name(zone)}）" if language == "zh" else f"{words} ({zone_name(zone)})"


def _cron_words(line: str, language: Language) -> str:
    step, match = _EVERY_MINUTES.fullmatch(line), _COMMON_CRON.fullmatch(line)
    minutes = int(step["step"] or 1) if step else 0
    window = _WINDOW_CRON.fullmatch(line)
    if minutes and 60 % minutes == 0:
        words = interval_words(minutes * 60, language)
    elif window and 60 % int(window[1]) == 0:
        first, last = int(window[2]), int(window[3] or window[2])
        clocks = f"{first:02}:00–{last:02}:{60 - int(window[1]):02}"
        every = interval_words(int(window[1]) * 60, language)
        comma = "，" if language == "zh" else ", "
        words = f"{_on_weekdays(window[4], clocks, language)}{comma}{every}"
    else:
        words = _common(language=language, **match.groupdict()) if match else None
    return words or say("cron_line", language, line=line)


def _common(
    *, minute: str, hours: str, days: str, month: str, weekdays: str, language: Language
) -> str | None:
    if hours == "*":
        every_hour = (days, month, weekdays) == ("*", "*", "*")
        return say("every_hour_at", language, minute=minute) if every_hour else None
    clocks = _clocks(hours, minute, language)
    every_month = "every_month" if month == "*" else "every_some_months"
    if (days[0] == "L" or weekdays[-1] == "L" or "#" in weekdays) and "*" in (days, weekdays):
        part = _month_part(days, weekdays, language)
        if month[0] != "*":
            return None
        return say(every_month, language, count=month[2:], days=part, clocks=clocks)
    if days == "*" and month == "*":
        return _on_weekdays(weekdays, clocks, language)
    if days == "*" or weekdays != "*":
        return None
    if month[0] == "*":
        numbers = [f"{day} 号" if language == "zh" else _nth(day) for day in _numbers(days)]
        of_month = _and(numbers, language)
        return say(every_month, language, count=month[2:], days=of_month, clocks=clocks)
    if days.isdigit() and 1 <= int(month) <= len(MONTHS_EN):
        name = _name("month_names", int(month) - 1, language)
        return say("every_year", language, month=name, day=int(days), clocks=clocks)
    return None


def _month_part(days: str, weekdays: str, language: Language) -> str:
    """`last day`, `first Friday`, 「最后一个周五」."""
    if days != "*":
        return say("last_working_day" if days == "LW" else "last_day", language)
    nth = 0 if weekdays[1] == "L" else int(weekdays[2])
    name = _name("weekday_names", (int(weekdays[0]) - 1) % 7, language)
    return f"{_name('nth_names', nth, language)}{'' if language == 'zh' else ' '}{name}"


def _clocks(hours: str, minute: str, language: Language) -> str:
    return _and([f"{hour:02}:{minute:0>2}" for hour in _numbers(hours)], language)


def _on_weekdays(
    weekdays: str, clocks: str, language: Language, key: str = "", count: int = 1
) -> str:
    week = sorted({(day - 1) % 7 for day in _numbers(weekdays)})
    names = [_name("weekday_names", day, language) for day in week]
    key = key or _DAY_SETS.get(frozenset(week), "every_such_day")
    return say(key, language, days=_and(names, language), clocks=clocks, count=count)


def _name(key: str, number: int, language: Language) -> str:
    """An item of a comma-separated message; `number` from 0."""
    return say(key, language).split(", ")[number]


def _numbers(field: str) -> list[int]:
    numbers: list[int] = []
    for piece in field.replace("*", "0-6").split(","):
        first, _, last = piece.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _nth(number: int) -> str:
    ending = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _and(parts: list[str], language: Language) -> str:
    *before, last = parts
    if not before:
        return last
    if language == "en":
        return f"{', '.join(before)} and {last}"
    left, right = (" " if sign.isascii() else "" for sign in (before[-1][-1], last[0]))
    return f"{'、'.join(before)}{left}和{right}{last}"
