"""The words of times, in English and Chinese: what each means, and the patterns of their forms.

First spans of fixed length ("every 10 seconds", 「每隔两小时」), which are read here; then days and
times of day, for `times`. Patterns expect folded text (`fold`); every repetition in them is
possessive or short, so that a hostile text of any length is read in one go. Pure.
"""

from __future__ import annotations

import re
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from mimikit.language.phrases import MONTHS_EN

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _meanings(table: str) -> dict[str, int]:
    """Each word of a table of the file, with what it means."""
    return {word: int(number) for number, words in _FILE[table].items() for word in words}


_NUMBER_WORDS = _meanings("numbers")
_UNITS, _ADVERBS = _meanings("units"), _meanings("adverbs")
AHEAD = _meanings("ahead")
WEEKDAYS = _meanings("weekdays")

_ODD_LETTERS, _LETTERS = "ſıİK", "siIK"
"""Letters that patterns which ignore case take for these, and that `lower` would not make so."""
_FOLD = str.maketrans(
    _FILE["fold"]["full_width"] + _FILE["fold"]["traditional"] + _ODD_LETTERS,
    _FILE["fold"]["half_width"] + _FILE["fold"]["simplified"] + _LETTERS,
)

MIN_INTERVAL_S = 1
MAX_INTERVAL_S = 366 * 86400


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

_PERIOD = re.compile(
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


class FoundInterval(NamedTuple):
    """An interval that was read, and where it stood. Units: seconds, to the millisecond."""

    seconds: float
    start: int
    end: int
    adverb: bool
    """Whether it is a word such as `daily`, which may as well be an argument of a command."""


def period_at(plain: str, start: int) -> FoundInterval | None:
    match = _PERIOD.match(plain, start)
    return _period(match) if match else None


def span_at(plain: str, start: int) -> FoundInterval | None:
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


def _period(match: re.Match[str]) -> FoundInterval:
    seconds = round(_total(match.groupdict()), 3)
    number = int(seconds) if seconds.denominator == 1 else float(seconds)
    adverb = match.groupdict().get("adverb") is not None
    return FoundInterval(number, match.start(), match.end(), adverb)


def _total(parts: dict[str, str | None]) -> Fraction:
    adverb, amounts = parts.get("adverb"), parts["amounts"] or parts["amounts_zh"]
    if adverb:
        return Fraction(_ADVERBS[adverb.lower()])
    if not amounts:
        factor = Fraction(1, 2) if parts["half"] else Fraction(1)
        unit = parts["unit"] or parts.get("per") or ""
        return factor * (2 if parts.get("other") else 1) * _UNITS[unit.lower()]
    total, unit = Fraction(0), 0
    for one in _AMOUNT.finditer(amounts):
        unit = _UNITS[(one["unit"] or one["unit_zh"]).lower()]
        half = Fraction(1, 2) if one["half"] else Fraction(0)
        number = one["number"] or one["number_zh"]  # where none stands: one, except before a half
        total += unit * (half + (number_of(number) if number else Fraction(0 if half else 1)))
    return total + (Fraction(unit, 2) if parts.get("and_half") else 0)


# ---- days and times of day


class DayPart(NamedTuple):
    """A part of the day: the hour it means alone, and what each hour said in it is in 24."""

    default: int | None
    hours: dict[int, int]


def _same(*hours: int) -> dict[int, int]:
    return {hour: hour for hour in hours}


ALL_HOURS = _same(*range(25))
HALVES = {
    "a": {12: 0, **_same(*range(1, 12))},
    "p": {12: 12, **{hour: hour + 12 for hour in range(1, 12)}},
}
_NIGHT = {
    **dict.fromkeys((0, 12, 24), 24),
    **{hour: hour + 24 for hour in range(1, 5)},
    **{hour: hour + 12 for hour in range(5, 12)},
    **_same(*range(17, 24)),
}
PARTS = {
    word: part
    for part, words in (
        (DayPart(None, {12: 0, **_same(*range(7))}), "凌晨"),
        (DayPart(9, _same(*range(12))), "morning 清晨 早晨 早上 上午 早"),
        (DayPart(12, {**_same(11, 12, 13, 14), 1: 13, 2: 14}), "中午"),
        (DayPart(15, {**HALVES["p"], **_same(*range(13, 19))}), "afternoon 下午"),
        (DayPart(18, {**_same(16, 17, 18, 19, 20), **{h: h + 12 for h in range(4, 9)}}), "傍晚"),
        (DayPart(20, _NIGHT), "evening night 晚上 晚间 夜晚 晚 夜"),
        (DayPart(None, _NIGHT), "夜里 半夜 深夜"),
    )
    for word in words.split()
}
NOON = 12
NAMED = {"noon": 720, "midday": 720, "正午": 720, "midnight": 1440, "午夜": 1440, "零点": 0}
WEEKS = {"": None, "coming": None, "this": 0, "这": 0, "本": 0, "next": 1, "下": 1, "下下": 2}
WEEK_SETS = {
    "all": frozenset(range(7)),
    "work": frozenset(range(5)),
    "rest": frozenset((5, 6)),
}
"""Days of the week, Monday is 0, by the group of `SETS` that names them."""
MONTHS = {name[:3].lower(): number for number, name in enumerate(MONTHS_EN, 1)}

# ---- patterns


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_GAP = r"[\s,]*+"
_END = r"(?![A-Za-z])"
_WHOLE_EN = rf"(?:\d{{1,2}}+|{NUMBER_WORD_EN})"
_WHOLE_ZH = rf"(?:\d{{1,2}}+|{NUMBER_WORD_ZH})"
_YEAR = r"(?:19|20|21)\d\d"
_NTH = r"\d{1,2}+(?:st|nd|rd|th)?(?!:?\d|[A-Za-z_])"
_NTHS = rf"{_NTH}(?:(?:\s*+,|\s++and)\s++(?:the\s++)?{_NTH}){{0,9}}"
_MONTH_FORMS = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS_EN)
_MONTH = rf"(?:{_MONTH_FORMS}|sept){_END}\.?"
_DAY_EN = "(?:" + "|".join(word for word in WEEKDAYS if word.isascii()) + ")"
_DAY_ZH = "[一二三四五六日天]"
_WEEK_ZH = r"(?:周|星期|礼拜)"
_PART_WORD = "(?P<part>" + "|".join(sorted(PARTS, key=len, reverse=True)) + rf"){_END}"
_SOME_PART = r"(?:morning|afternoon|evening|night)(?![A-Za-z])"

IN = _compiled(r"(?P<tells>(?:in|after)\s++|再?[过等]\s*+)|[在再]\s*+")
FROM_NOW = _compiled(rf"\s++(?:from\s++now|later){_END}|\s*+[之以]?后")
ON = _compiled(rf"(?:on\s++(?:the\s++)?|the\s++(?=day)|at\s++(?={_YEAR}[-/.]\d)|[在于到]\s*+)")
PART = _compiled(rf"{_GAP}的?\s*+(?:in\s++the\s++)?{_PART_WORD}")
LATE_PART = _compiled(rf"\s++(?:in\s++the\s++|at\s++)?{_PART_WORD}")

_HOUR_FORMS = rf"""(?:
  (?P<name>noon|midday|midnight|正午|午夜|零点(?!\s*+[\d零一二三四五半整])){_END}
| (?P<near>half\s++past|quarter\s++(?:past|to))\s++(?P<near_hour>{_WHOLE_EN})
| (?P<full>\d{{1,2}}+):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:\.\d{{1,9}}+)?+)?+
  (?:\s*+(?P<full_half>[ap]\.?m){_END}\.?)?+
  (?:\s?+(?P<offset>(?:Z|UTC){_END}|[+-](?:0\d|1[0-4]):?+[0-5]\d))?+(?!:?\d|[A-Za-z_/%])
| (?P<hour>{_WHOLE_EN})\s*+(?:(?P<half>[ap]\.?m){_END}\.?|o['’]?clock{_END})
| (?P<hour_zh>{_WHOLE_ZH}|零)\s*+(?:点钟?|时)(?![间候刻])(?:\s*+(?:
    整|(?P<half_zh>半)|(?P<quarter>[一三])刻
  | [过零]?\s*+(?P<minute_zh>{_WHOLE_ZH})\s*+分(?!钟?[之以]?后)
  | 零?(?P<more_zh>[0-5]\d(?!\d)|[二三四五]?十[一二三四五六七八九]?|(?<=零)[一二三四五六七八九])
  ))?+
| (?:(?<=at\s)|(?<=@))(?P<at_hour>{_WHOLE_EN})(?!:?\d|[-A-Za-z_./%])
| (?P<in_hour>{_WHOLE_EN})(?=\s++in\s++the\s++{_SOME_PART})
)"""
HOURS_SAID = ("full", "hour", "hour_zh", "at_hour", "in_hour", "near_hour")
HOUR = _compiled(rf"(?:(?<=\d)T|{_GAP}的?\s*+(?:at\s++|@\s*+)?){_HOUR_FORMS}")
NEXT_HOUR = _compiled(
    rf"\s*+(?:,|、|[和及与&]|,?\s*+and{_END})\s*+(?:at\s++)?(?:{_PART_WORD})?+\s*+{_HOUR_FORMS}"
)
HOURLY = _compiled(rf"""
  (?:every\s++hour|hourly)\s++(?:on\s++the\s++hour{_END}|at\s++(?:
      (?::|minute\s++)(?P<minute>[0-5]\d)(?!:?\d)
    | (?P<past>[0-5]?\d)\s++(?:minutes?\s++)?past(?:\s++the\s++hour)?{_END}))
| 每个?(?:小时|钟头)的?\s*+(?:(?P<minute_zh>{_WHOLE_ZH})\s*+分(?!钟)|整点)
| 每[个逢]?整点""")

DAY = _compiled(rf"""{_GAP}(?:on\s++|the\s++(?=day))?(?:
  (?P<ahead>(?:day\s++after\s++tomorrow|tomorrow|today|to(?=night)){"(?=night|[^A-Za-z]|$)"}
    |this(?=\s++{_SOME_PART})|大后天|后[天日]|[今明][天日]|今(?=[早晚夜])|明(?=[早晚]))
| (?:(?P<which>next|this|coming|下下个?|[下这本]个?)\s*+)?
  (?:(?P<weekday_en>{_DAY_EN}){_END}|{_WEEK_ZH}(?P<weekday_zh>{_DAY_ZH}))
| (?P<y_iso>{_YEAR})(?P<sep>[-/.])(?P<m_iso>\d{{1,2}}+)(?P=sep)(?P<d_iso>\d{{1,2}}+)(?![-/.]?\d)
| (?:(?P<y_zh>{_YEAR})\s*+年\s*+)?(?P<m_zh>{_WHOLE_ZH})\s*+月\s*+(?P<d_zh>{_WHOLE_ZH})\s*+[日号]
| (?P<mon_mdy>{_MONTH})\s*+(?P<d_mdy>\d{{1,2}}+)(?:st|nd|rd|th)?(?!:?\d|[A-Za-z])
  (?:\s*+,?\s*+(?P<y_mdy>{_YEAR})(?!:?\d))?+
| (?P<d_dmy>\d{{1,2}}+)(?:st|nd|rd|th)?\s++(?:of\s++)?(?P<mon_dmy>{_MONTH})
  (?:\s*+,?\s*+(?P<y_dmy>{_YEAR})(?!:?\d))?+
)""")
YEARLY = _compiled(rf"{_GAP}(?:(?:(?:every|each)\s++year|yearly|annually)\s++on|每年的?)\s*+")
MONTHLY = _compiled(rf"""{_GAP}(?:
  (?:(?:every|each)\s++month|monthly)\s++on\s++(?:the\s++|day\s++)?
    (?P<en>{_NTHS})
| (?:the\s++)?(?P<en_of>{_NTHS})\s++of\s++(?:every|each)\s++month{_END}
| 每个?月的?\s*+(?P<zh>{_WHOLE_ZH}\s*+[日号](?:\s*+[和、,及]?\s*+{_WHOLE_ZH}\s*+[日号]){{0,9}})
)""")
SETS = _compiled(rf"""{_GAP}(?:
  (?P<all>(?:every|each)\s++(?:day{_END}|(?={_SOME_PART}))|daily{_END}
    |每[天日]|天天|每个?(?=[早晚]|上午|中午|下午|凌晨|清晨|傍晚|夜里|半夜|深夜))
| (?P<work>(?:(?:every|each)\s++(?:week|work)[\s-]?day|(?:on\s++)?(?:week|work)days){_END}
    |每个?(?:工作日|平日)|工作日(?:的?每天)?)
| (?P<rest>(?:(?:every|each)\s++weekend|(?:on\s++)?weekends){_END}|每个?周末)
)""")
LISTS = _compiled(rf"""{_GAP}(?:
  (?P<every>(?:(?:(?:every|each)\s++week|weekly)\s++on|every|each)\s++)?(?:on\s++)?
    (?P<en>{_DAY_EN}s?{_END}
      (?:(?:\s*+,\s*+(?:and\s++)?|\s++(?:and|to|through|thru|till)\s++|\s*+[-–&]\s*+)
        {_DAY_EN}s?{_END}){{0,6}})
| (?P<every_zh>每[个逢]?)?{_WEEK_ZH}
    (?P<zh>{_DAY_ZH}(?:\s*+[和、,及与跟到至~–-]?\s*+{_WEEK_ZH}{_DAY_ZH}
      |\s*+[和、,及与跟到至~–-]?\s*+[一二三四五六日](?!\s*+[点时十刻分]|[次天个])){{0,6}})(?:的?每天)?
)""")
IN_LIST = _compiled(
    rf"(?P<day>{_DAY_EN}|{_DAY_ZH})|(?P<to>to|through|thru|till|[-–~到至])|(?P<plural>s)"
)
NUMBER = _compiled(_WHOLE_ZH)
INTRODUCED = _compiled(rf"""
  (?<![^\s,`」』”’"'])(?:in|at|on|every|each|once|hourly|daily|weekly|monthly|yearly|weekdays?|today
    |tonight|tomorrow|next|this|the\s++day|{_DAY_EN}s?){_END}
| (?<![^\s,`」』”’"'])(?:\d++|{NUMBER_WORD_ZH}|半)\s*+(?:个|半|秒|分|小时|天|周|刻|点|月)
| (?<![^\s,`」』”’"'])(?:\d++|{NUMBER_WORD_EN}|an?)\s++
    (?:second|minute|hour|day|week)s?\s++(?:from|later){_END}
| 每|今[天日早晚夜]|明[天日早晚]|后天|大后天|[下这本]|{_WEEK_ZH}|工作日|再?过
| 凌晨|清晨|早[上晨]|上午|中午|正午|下午|傍晚|晚上|夜里|半夜|深夜|午夜""")
