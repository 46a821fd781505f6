"""The vocabulary for parsing times, in English and Chinese: words and patterns. Pure.

Intervals ("every 10 seconds", 「每隔两小时」) are parsed here; days and times of day in `times`.
Patterns are in the .toml file, and expect folded text (`fold`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple

from mimikit.language.phrases import MONTHS_EN

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _meanings(table: str) -> dict[str, int]:
    return {word: int(number) for number, words in _FILE[table].items() for word in words}


_NUMBER_WORDS = _meanings("numbers")
_UNITS, _ADVERBS = _meanings("units"), _meanings("adverbs")
AHEAD = _meanings("ahead")
WEEKDAYS = _meanings("weekdays")
ORDINALS = _meanings("ordinals")
ADVERBS = frozenset(_ADVERBS)

_ODD_LETTERS, _LETTERS = "ſıİK", "siIK"
"""Letters that match these in case-insensitive patterns, but not by `lower`."""
_FOLD = str.maketrans(
    _FILE["fold"]["full_width"] + _FILE["fold"]["traditional"] + _ODD_LETTERS,
    _FILE["fold"]["half_width"] + _FILE["fold"]["simplified"] + _LETTERS,
)

MIN_INTERVAL_S = 1
MAX_INTERVAL_S = 366 * 86400


def fold(text: str) -> str:
    """Convert to half-width signs, simplified characters and plain letters, 1:1."""
    return text.translate(_FOLD)


class FoundInterval(NamedTuple):
    """A parsed interval and its end in the text. Unit: seconds, to the millisecond."""

    seconds: float
    end: int


def ordinal_of(word: str) -> int:
    """Parse `first`, `2nd`, `31st`; `last` is 0."""
    word = word.lower()
    return 0 if word == "last" else ORDINALS.get(word) or int(word.rstrip("stndrh"))


def number_of(word: str) -> Fraction:
    """Parse a number in digits or words; more than 15 digits become 15 nines."""
    word = word.lower()
    if word in _NUMBER_WORDS:
        return Fraction(_NUMBER_WORDS[word])
    tens, ten, ones = word.partition("十")
    if ten:
        return Fraction(10 * _NUMBER_WORDS.get(tens, 1) + _NUMBER_WORDS.get(ones, 0))
    whole, _, part = word.partition(".")
    return Fraction(f"{whole if len(whole) <= 15 else '9' * 15}.{part[:9] or '0'}")


def interval_at(kind: Literal["period", "span"], plain: str, start: int) -> FoundInterval | None:
    """Parse a period (`every 10 minutes`, `daily`) or a span (`half an hour`, 「两小时」)."""
    match = PATTERNS[kind].match(plain, start)
    if match is None:
        return None
    parts = match.groupdict()
    adverb, amounts = parts.get("adverb"), parts["amounts"] or parts["amounts_zh"]
    total, unit = Fraction(0), 0
    if adverb:
        total = Fraction(_ADVERBS[adverb.lower()])
    elif not amounts:
        factor = Fraction(2 if parts.get("other") else 1, 2 if parts["half"] else 1)
        total = factor * _UNITS[(parts["unit"] or parts["per"]).lower()]
    for one in PATTERNS["amount"].finditer(amounts or ""):
        unit = _UNITS[(one["unit"] or one["unit_zh"]).lower()]
        half = Fraction(1, 2) if one["half"] else Fraction(0)
        number = one["number"] or one["number_zh"]  # without a number: one, or none before a half
        total += unit * (half + (number_of(number) if number else Fraction(0 if half else 1)))
    if parts.get("and_half"):
        total += Fraction(unit, 2)
    seconds = round(total, 3)
    number = int(seconds) if seconds.denominator == 1 else float(seconds)
    return FoundInterval(number, match.end())


# ---- days and times of day


class DayPart(NamedTuple):
    """A part of the day: its default hour, and each hour named in it on the 24-hour clock."""

    default: int | None
    hours: dict[int, int]


def _hours(spans: Iterable[tuple[int, int, int]]) -> dict[int, int]:
    """Hours of spans (first, last, how much is added) on the 24-hour clock."""
    return {hour: hour + more for first, last, more in spans for hour in range(first, last + 1)}


ALL_HOURS = _hours([(0, 24, 0)])
HALVES = {"a": _hours([(1, 11, 0), (12, 12, -12)]), "p": _hours([(1, 11, 12), (12, 12, 0)])}
PARTS = {
    word: DayPart(part.get("default"), _hours(part["hours"]))
    for part in _FILE["day_parts"]
    for word in part["words"]
}
NOON = 12
NAMED = {"noon": 720, "midday": 720, "正午": 720, "midnight": 1440, "午夜": 1440, "零点": 0}
NEAR = {"half past": 30, "quarter past": 15, "quarter to": -15}
WEEKS = {"": None, "coming": None, "this": 0, "这": 0, "本": 0, "next": 1, "下": 1, "下下": 2}
WEEK_SETS = {"all": frozenset(range(7)), "work": frozenset(range(5)), "rest": frozenset((5, 6))}
"""Sets of weekdays, Monday is 0, by the group of `sets` that names them."""

# ---- patterns


def filled(pattern: str, parts: Mapping[str, str]) -> str:
    """Replace each `{name}` in a pattern, recursively."""
    return re.sub(r"\{([a-z_]+)\}", lambda name: filled(parts[name[1]], parts), pattern)


def _either(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_PARTS: dict[str, str] = {
    **_FILE["parts"],
    "number_en": rf"(?:{_either(filter(str.isascii, _NUMBER_WORDS))})(?![A-Za-z])",
    "unit_en": rf"(?:{_either(filter(str.isascii, _UNITS))})(?![A-Za-z])",
    "unit_zh": rf"(?:{_either(word for word in _UNITS if not word.isascii())})",
    "adverbs": "|".join(_ADVERBS),
    "ordinal_words": "|".join(ORDINALS),
    "month_names": "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS_EN),
    "day_en": rf"(?:{'|'.join(filter(str.isascii, WEEKDAYS))})",
    "day_zh": f"[{''.join(word for word in WEEKDAYS if not word.isascii())}]",
    "part_names": _either(PARTS),
    "part_names_en": "|".join(filter(str.isascii, PARTS)),
}


PATTERNS = {
    name: re.compile(filled(pattern, _PARTS), re.IGNORECASE | re.VERBOSE)
    for name, pattern in _FILE["patterns"].items()
}
"""The patterns by their names in the file."""
HOUR_GROUPS = ("full", "hour", "hour_zh", "at_hour", "in_hour", "near_hour")
"""The groups of `hour` that may contain the hour."""


def unknown_time(text: str) -> str:
    """The first words of a folded text that belong to a time rather than to the text; or none."""
    if match := PATTERNS["bound"].search(text):
        return match[0]
    for match in PATTERNS["moment"].finditer(text):
        before = text[max(0, match.start() - 40) : match.start()]
        goes_on = PATTERNS["goes_on"].match(text, match.end())
        if not (goes_on or PATTERNS["in_phrase"].search(before)):
            return match[0]
    return ""
