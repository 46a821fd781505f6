"""Parses reminders: the text, and the time before, after or around it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mimikit.engines.builtin.shell_lines import SIGNS, FoldedText, without_end
from mimikit.language.phrases import HAN
from mimikit.language.time_vocabulary import PATTERNS, fold, interval_at
from mimikit.language.times import DayTime, SpanAhead, time_at


@dataclass(frozen=True, slots=True)
class RemindIntent:
    when: str
    """For `times.parse_when`; may be empty."""
    text: str
    is_verbatim: bool = field(default=False, compare=False)
    """Whether the text came after a colon."""


@dataclass(frozen=True, slots=True)
class SnoozeIntent:
    """Repeat the reminder that was just sent."""

    when: str
    """May be empty."""


@dataclass(frozen=True, slots=True)
class NoticedIntent:
    """The user acknowledges a reminder."""


def read_reminder(rest: FoldedText, lead: str | None = None) -> RemindIntent | SnoozeIntent | None:
    """Parses what follows "remind me"; `lead`: the time before it. None for a question."""
    if SIGNS["reminder_asks"].match(rest.plain):
        return None
    if lead is not None and rest.plain.startswith(":"):
        return _reminder(lead, rest.after(":"), verbatim=True)
    rest = rest.cut(_end_of(SIGNS["before_time"], rest))
    when, end = _time_at_start(lead, rest)
    rest = rest.cut(end)
    joint = SIGNS["joint"].match(rest.plain)
    rest = rest.cut(joint.end() if joint else 0)
    if joint and joint["colon"] and when is not None:
        return _reminder(when, rest, verbatim=True)
    rest = without_end(rest, SIGNS["reminder_courtesy"])
    for opening in PATTERNS["introduced"].finditer(rest.plain, max(0, len(rest.plain) - _TAIL)):
        before, words = (
            rest.plain[: opening.start()],
            SIGNS["reminder_end"].sub("", rest.cut(opening.start()).raw),
        )
        whole = _whole_time(words) if when is None else _joined(when, words)
        if whole is not None and _is_complete(before):
            return _reminder(whole, rest.cut(0, len(before.rstrip(" ,\t\n"))))
    return _reminder(when, rest)


def _time_at_start(lead: str | None, rest: FoldedText) -> tuple[str | None, int]:
    """The time before the text, joined with the one before the verb, and its end."""
    found = time_at(rest.plain, 0)
    if lead is None:
        return (rest.cut(0, found.end).raw, found.end) if found else (None, 0)
    both = lead + _between(lead, rest.raw)
    longer = time_at(fold(both) + rest.plain, 0)
    if longer is not None and longer.end > len(both):
        end = longer.end - len(both)
        return both + rest.raw[:end], end
    joined = _joined(lead, rest.cut(0, found.end).raw) if found else None
    return (joined, found.end) if found and joined else (lead, 0)


def read_snooze(rest: FoldedText) -> SnoozeIntent | None:
    """A time alone: `in 10 minutes`, 「半小时后」."""
    plain = rest.plain.rstrip(" .。!")
    raw, found = rest.raw[: len(plain)], time_at(plain, 0)
    span = interval_at("span", plain, 0)
    if found is not None and found.end == len(plain):
        return SnoozeIntent(raw) if isinstance(found.time, DayTime | SpanAhead) else None
    if span is None or span.end < len(plain):
        return None
    return SnoozeIntent(f"{raw}后" if HAN.search(raw) else f"in {raw}")


def _reminder(
    when: str | None, text: FoldedText, *, verbatim: bool = False
) -> RemindIntent | SnoozeIntent | None:
    if not text.raw or (not verbatim and SIGNS["pointing"].fullmatch(text.plain)):
        return SnoozeIntent(when or "")
    return RemindIntent(when or "", text.raw, verbatim) if "\0" not in text.raw else None


def _joined(one: str, other: str) -> str | None:
    between = _between(one, other)
    return _whole_time(f"{one}{between}{other}") or _whole_time(f"{other}{between}{one}")


def _between(one: str, other: str) -> str:
    return "" if HAN.search(one + other) else " "


def _whole_time(text: str) -> str | None:
    found = time_at(fold(text), 0)
    return text if found is not None and found.end == len(text) else None


def _is_complete(before: str) -> bool:
    """Whether the time after it is no part of the text, as in "get ready for tomorrow"."""
    return before[-1:] in {" ", ",", ""} and not SIGNS["dangling"].search(before)


def _end_of(pattern: re.Pattern[str], view: FoldedText) -> int:
    match = pattern.match(view.plain)
    return match.end() if match else 0


_TAIL = 120
