"""The words of times, in English and Chinese: what each means, and the patterns of their forms.

For `when_reading`. Patterns expect folded text (`intervals.fold`); every repetition in them is
possessive or short, so that a hostile text of any length is read in one go.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mimikit.engines.intervals import NUMBER_WORD_EN, NUMBER_WORD_ZH


class Part(NamedTuple):
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
        (Part(None, {12: 0, **_same(*range(7))}), "凌晨"),
        (Part(9, _same(*range(12))), "morning 清晨 早晨 早上 上午 早"),
        (Part(12, {**_same(11, 12, 13, 14), 1: 13, 2: 14}), "中午"),
        (Part(15, {**HALVES["p"], **_same(*range(13, 19))}), "afternoon 下午"),
        (Part(18, {**_same(16, 17, 18, 19, 20), **{h: h + 12 for h in range(4, 9)}}), "傍晚"),
        (Part(20, _NIGHT), "evening night 晚上 晚间 夜晚 晚 夜"),
        (Part(None, _NIGHT), "夜里 半夜 深夜"),
    )
    for word in words.split()
}
NOON = 12
NAMED = {"noon": 720, "midday": 720, "正午": 720, "midnight": 1440, "午夜": 1440, "零点": 0}
AHEAD = {
    word: days
    for days, words in (
        (0, "today,to,this,今天,今日,今"),
        (1, "tomorrow,明天,明日,明"),
        (2, "day after tomorrow,后天,后日"),
        (3, "大后天"),
    )
    for word in words.split(",")
}
WEEKS = {"": None, "coming": None, "this": 0, "这": 0, "本": 0, "next": 1, "下": 1, "下下": 2}
WEEKDAY_NAMES = (
    "monday mon 一",
    "tuesday tues tue 二",
    "wednesday wed 三",
    "thursday thurs thur thu 四",
    "friday fri 五",
    "saturday sat 六",
    "sunday sun 日 天",
)
WEEKDAYS = {word: day for day, words in enumerate(WEEKDAY_NAMES) for word in words.split()}
WEEK_SETS = {
    "all": frozenset(range(7)),
    "work": frozenset(range(5)),
    "rest": frozenset((5, 6)),
}
"""Days of the week, Monday is 0, by the group of `SETS` that names them."""
_MONTHS_EN = "January February March April May June July August September October November December"
MONTH_NAMES = tuple(_MONTHS_EN.split(" "))
MONTHS = {name[:3].lower(): number for number, name in enumerate(MONTH_NAMES, 1)}

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
_MONTH_FORMS = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTH_NAMES)
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
