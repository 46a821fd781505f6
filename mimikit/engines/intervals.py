"""Intervals in sentences: reads "every 10 seconds" and 「每隔两小时」, and writes them. Pure.

Knows spans of fixed length only: no time of day, no month. Holds the words of numbers and units for
whoever reads times. Patterns expect folded text (`fold`). Every repetition in them is possessive or
short, so that a hostile text of any length is read in one go.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

_FULL_WIDTH = "：，？！；．１２３４５６７８９０＃　"
_HALF_WIDTH = ":,?!;.1234567890# "
_TRADITIONAL = (
    "務麼麽幫狀態運執記關於請謝鐘時個兩週禮對會現終嗎還煩給馬裡這條錄說觸發號"
    "點後變當結過畢間無動檔夾創辦將刪劃標為進寫單項從憶尋瞭選"
)
_SIMPLIFIED = (
    "务么么帮状态运执记关于请谢钟时个两周礼对会现终吗还烦给马里这条录说触发号"
    "点后变当结过毕间无动档夹创办将删划标为进写单项从忆寻了选"
)
_ODD_LETTERS, _LETTERS = "ſıİK", "siIK"
"""Letters that patterns which ignore case take for these, and that `lower` would not make so."""
_FOLD = str.maketrans(
    _FULL_WIDTH + _TRADITIONAL + _ODD_LETTERS, _HALF_WIDTH + _SIMPLIFIED + _LETTERS
)

MIN_INTERVAL_S = 1
MAX_INTERVAL_S = 366 * 86400

_NUMBER_WORDS = {
    word: number
    for number, words in {
        0: "零",
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


def fold(text: str) -> str:
    """The text with full-width signs, traditional characters and odd letters replaced, 1:1."""
    return text.translate(_FOLD)


def _either(words: dict[str, int], *, latin: bool) -> str:
    """An alternation of the words of one script, longest first."""
    chosen = sorted((word for word in words if word.isascii() == latin), key=len, reverse=True)
    return "|".join(chosen)


NUMBER_WORD_EN = rf"(?:{_either(_NUMBER_WORDS, latin=True)})(?![A-Za-z])"
NUMBER_WORD_ZH = r"(?:[二三四五六七八九]?十[一二三四五六七八九]?|[一二两三四五六七八九])"
_DIGITS = r"\d++(?:\.\d++)?"
_UNIT_EN = rf"(?:{_either(_UNITS, latin=True)})(?![A-Za-z])"
_UNIT_ZH = rf"(?:{_either(_UNITS, latin=False)})"
_AMOUNT_EN = rf"(?:{_DIGITS}|{NUMBER_WORD_EN})\s*+-?{_UNIT_EN}"
_MORE_EN = rf"(?:\s*+(?:,\s*+)?(?:and\s++)?{_AMOUNT_EN}){{0,3}}"
_AMOUNT_ZH = rf"(?:{_DIGITS}|{NUMBER_WORD_ZH})\s*+个?半?个?\s*+{_UNIT_ZH}"
_MORE_ZH = rf"(?:\s*+[零又和]?\s*+{_AMOUNT_ZH}){{0,3}}"
_HALF = r"half(?:\s++an?\s++|-|\s++)"

PERIOD = re.compile(
    r"(?:once\s++)?(?:every|each)\s++(?:"
    rf"(?P<amounts>{_AMOUNT_EN}{_MORE_EN})"
    rf"|(?P<half>{_HALF})?(?P<other>other\s++)?(?P<unit>{_UNIT_EN}))"
    rf"|once\s++(?:an?|per)\s++(?P<per>{_UNIT_EN})"
    r"|(?P<adverb>hourly|daily|weekly)(?![\w-])"
    rf"|每隔?\s*+(?P<amounts_zh>{_AMOUNT_ZH}{_MORE_ZH}|个?半?个?\s*+{_UNIT_ZH})(?:来?一次)?",
    re.IGNORECASE,
)
_SPAN = re.compile(
    rf"(?P<amounts>(?:an?\s++{_UNIT_EN}|{_AMOUNT_EN}){_MORE_EN})(?P<and_half>\s++and\s++a\s++half)?"
    rf"|(?P<half>{_HALF})(?P<unit>{_UNIT_EN})"
    rf"|(?P<amounts_zh>{_AMOUNT_ZH}{_MORE_ZH}|半个?\s*+{_UNIT_ZH})",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    rf"(?:an?\s++|(?P<number>{_DIGITS}|{NUMBER_WORD_EN})\s*+-?)(?P<unit>{_UNIT_EN})"
    rf"|(?P<number_zh>{_DIGITS}|{NUMBER_WORD_ZH})?\s*+个?(?P<half>半)?个?\s*+(?P<unit_zh>{_UNIT_ZH})",
    re.IGNORECASE,
)


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


def span_at(plain: str, start: int) -> Period | None:
    """The bare length of time that begins at `start`: `10 minutes`, `half an hour`, 「两小时」."""
    match = _SPAN.match(plain, start)
    return _period(match) if match else None


def number_of(word: str) -> Fraction:
    """A number in digits or words; one of absurd length becomes merely too large."""
    word = word.lower()
    if word in _NUMBER_WORDS:
        return Fraction(_NUMBER_WORDS[word])
    tens, ten, ones = word.partition("十")
    if ten:
        return Fraction(10 * _NUMBER_WORDS.get(tens, 1) + _NUMBER_WORDS.get(ones, 0))
    whole, _, part = word.partition(".")
    return Fraction(f"{whole if len(whole) <= 15 else '9' * 15}.{part[:9] or '0'}")


def _period(match: re.Match[str]) -> Period:
    seconds = round(_total(match.groupdict()), 3)
    number = int(seconds) if seconds.denominator == 1 else float(seconds)
    adverb = match.groupdict().get("adverb") is not None
    return Period(number, match.start(), match.end(), adverb)


def _total(parts: dict[str, str | None]) -> Fraction:
    adverb, amounts = parts.get("adverb"), parts["amounts"] or parts["amounts_zh"]
    if adverb:
        return Fraction(_ADVERBS[adverb.lower()])
    if not amounts:
        factor = Fraction(1, 2) if parts["half"] else Fraction(1)
        unit = parts["unit"] or parts.get("per") or ""
        return factor * (2 if parts.get("other") else 1) * _unit(unit)
    found = [
        (_count(one), _unit(one["unit"] or one["unit_zh"])) for one in _AMOUNT.finditer(amounts)
    ]
    half = Fraction(found[-1][1], 2) if parts.get("and_half") else Fraction(0)
    return sum((count * unit for count, unit in found), half)


def _count(match: re.Match[str]) -> Fraction:
    """How many units: one where no number stands, except before a half."""
    half = Fraction(1, 2) if match["half"] else Fraction(0)
    number = match["number"] or match["number_zh"]
    return (number_of(number) if number else Fraction(0 if half else 1)) + half


def _unit(word: str) -> int:
    return _UNITS[word.lower()]
