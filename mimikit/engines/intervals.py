"""Intervals in sentences: reads "every 10 seconds" and 「每隔两小时」, and writes them. Pure.

Knows spans of fixed length only: no time of day, no month. Patterns expect the folded text of
`command_lines.View`. Every repetition in them is possessive, so that a hostile text of any length
is read in one go.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Literal, NamedTuple

Language = Literal["en", "zh"]

MIN_INTERVAL_S = 1
MAX_INTERVAL_S = 366 * 86400

_NUMBER_WORDS = {
    word: number
    for number, words in {
        1: "one 一",
        2: "two 二 两",
        3: "three 三",
        4: "four 四",
        5: "five 五",
        6: "six 六",
        7: "seven 七",
        8: "eight 八",
        9: "nine 九",
        10: "ten",
        11: "eleven",
        12: "twelve",
        15: "fifteen",
        20: "twenty",
        30: "thirty",
        45: "forty-five",
        60: "sixty",
        90: "ninety",
    }.items()
    for word in words.split()
}
_UNITS = {
    word: seconds
    for seconds, words in {
        1: "seconds second secs sec s 秒钟 秒",
        60: "minutes minute mins min m 分钟 分",
        900: "刻钟",
        3600: "hours hour hrs hr h 小时 钟头",
        86400: "days day d 天 日",
        604800: "weeks week w 星期 礼拜 周",
    }.items()
    for word in words.split()
}
_ADVERBS = {"hourly": 3600, "daily": 86400, "weekly": 604800}
_WRITTEN = (
    (604800, "week", "周"),
    (86400, "day", "天"),
    (3600, "hour", "小时"),
    (60, "minute", "分钟"),
    (1, "second", "秒"),
)


def _either(words: dict[str, int], *, latin: bool) -> str:
    """An alternation of the words of one script, longest first."""
    chosen = sorted((word for word in words if word.isascii() == latin), key=len, reverse=True)
    return "|".join(chosen)


_DIGITS = r"\d++(?:\.\d++)?"
_UNIT_EN = rf"(?:{_either(_UNITS, latin=True)})(?![A-Za-z])"
_UNIT_ZH = rf"(?:{_either(_UNITS, latin=False)})"
_NUMBER_EN = rf"(?:{_DIGITS}|(?:{_either(_NUMBER_WORDS, latin=True)})(?![A-Za-z]))"
_NUMBER_ZH = rf"(?:{_DIGITS}|[二三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
_AMOUNT = rf"{_NUMBER_EN}\s*+-?{_UNIT_EN}"

PERIOD = re.compile(
    r"(?:once\s++)?(?:every|each)\s++(?:"
    rf"(?P<amounts>{_AMOUNT}(?:\s*+(?:,\s*+)?(?:and\s++)?{_AMOUNT}){{0,3}})"
    rf"|(?P<half>half(?:\s++an?\s++|-|\s++))?(?P<other>other\s++)?(?P<unit>{_UNIT_EN}))"
    rf"|once\s++(?:an?|per)\s++(?P<per>{_UNIT_EN})"
    r"|(?P<adverb>hourly|daily|weekly)(?![\w-])"
    rf"|每隔?\s*+(?P<number>{_NUMBER_ZH})?\s*+个?(?P<half_zh>半)?个?\s*+(?P<unit_zh>{_UNIT_ZH})"
    r"(?:来?一次)?",
    re.IGNORECASE,
)
_ONE_AMOUNT = re.compile(rf"(?P<number>{_NUMBER_EN})\s*+-?(?P<unit>{_UNIT_EN})", re.IGNORECASE)


class Period(NamedTuple):
    """An interval that was read, and where it stood. Units: seconds, to the millisecond."""

    seconds: float
    start: int
    end: int
    adverb: bool
    """Whether it is a word such as `daily`, which may as well be an argument of a command."""


def period_at(plain: str, start: int) -> Period | None:
    """The interval that begins at `start`."""
    match = PERIOD.match(plain, start)
    return _period(match) if match else None


def period_at_end(plain: str, ending: re.Pattern[str], tail: int) -> Period | None:
    """The interval near the end of a text, with nothing after it but what `ending` matches."""
    for match in PERIOD.finditer(plain, max(0, len(plain) - tail)):
        before = plain[match.start() - 1 : match.start()] if match.start() else ""
        own_word = match["unit_zh"] or not before or before in " \t\n,`」』”’\"'"
        if own_word and ending.match(plain, match.end()):
            return _period(match)
    return None


def interval_words(seconds: float, language: Language = "en") -> str:
    """An interval as it is said, and read again: `every 10 seconds`, `每 10 秒`."""
    size, en, zh = next(unit for unit in _WRITTEN if seconds % unit[0] == 0 or unit[0] == 1)
    count = f"{seconds / size:.3f}".rstrip("0").rstrip(".")
    if language == "zh":
        return f"每{zh}" if count == "1" else f"每 {count} {zh}"
    return f"every {en}" if count == "1" else f"every {count} {en}s"


def _period(match: re.Match[str]) -> Period:
    seconds = round(_total(match), 3)
    number = int(seconds) if seconds.denominator == 1 else float(seconds)
    return Period(number, match.start(), match.end(), match["adverb"] is not None)


def _total(match: re.Match[str]) -> Fraction:
    if match["adverb"]:
        return Fraction(_ADVERBS[match["adverb"].lower()])
    if match["amounts"]:
        parts = _ONE_AMOUNT.finditer(match["amounts"])
        return sum((_number(part["number"]) * _unit(part["unit"]) for part in parts), Fraction(0))
    if match["unit_zh"]:
        half = Fraction(1, 2) if match["half_zh"] else Fraction(0)
        whole = _number(match["number"]) if match["number"] else Fraction(0 if half else 1)
        return (whole + half) * _unit(match["unit_zh"])
    factor = Fraction(1, 2) if match["half"] else Fraction(1)
    return factor * (2 if match["other"] else 1) * _unit(match["unit"] or match["per"])


def _unit(word: str) -> int:
    return _UNITS[word.lower()]


def _number(word: str) -> Fraction:
    """A number in digits or words; one of absurd length becomes merely too large."""
    word = word.lower()
    if word in _NUMBER_WORDS:
        return Fraction(_NUMBER_WORDS[word])
    tens, ten, ones = word.partition("十")
    if ten:
        return Fraction(10 * _NUMBER_WORDS.get(tens, 1) + _NUMBER_WORDS.get(ones, 0))
    whole, _, part = word.partition(".")
    return Fraction(f"{whole if len(whole) <= 15 else '9' * 15}.{part[:9] or '0'}")
