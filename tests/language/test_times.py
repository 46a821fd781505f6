"""Plain times: a corpus with its traps, how doubts are settled, and what holds for every text."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.errors import BadInput
from mimikit.language.day_times import PastTime
from mimikit.language.phrases import NO_LIMITS, cron_words, moment_words
from mimikit.language.time_vocabulary import fold
from mimikit.language.times import (
    CronTime,
    InstantTime,
    RepeatTime,
    When,
    parse_when,
    time_at,
    time_at_end,
    when_of,
    when_words,
)

SHANGHAI = ZoneInfo("Asia/Shanghai")
NEW_YORK = ZoneInfo("America/New_York")
NOW = datetime(2026, 11, 25, 10, 0, tzinfo=SHANGHAI)
"""A Wednesday."""
END = re.compile(r"\Z")


def read(text: str, now: datetime = NOW, zone: ZoneInfo = SHANGHAI) -> When | None:
    return parse_when(text, now=now, zone=zone)


def local(text: str, now: datetime = NOW, zone: ZoneInfo = SHANGHAI) -> str:
    """The moment a text means, in local time."""
    when = read(text, now, zone)
    assert isinstance(when, InstantTime)
    assert when.at.tzinfo is UTC
    return f"{when.at.astimezone(zone):%Y-%m-%d %H:%M}"


MOMENTS = [
    # A length of time from now.
    ("in 10m", "2026-11-25 10:10"),
    ("10m", "2026-11-25 10:10"),
    ("10 minutes", "2026-11-25 10:10"),
    ("in 2 hours and 5 minutes", "2026-11-25 12:05"),
    ("in half an hour", "2026-11-25 10:30"),
    ("in an hour and a half", "2026-11-25 11:30"),
    ("in a day", "2026-11-26 10:00"),
    ("in 1.5 hours", "2026-11-25 11:30"),
    ("an hour from now", "2026-11-25 11:00"),
    ("2 hours later", "2026-11-25 12:00"),
    ("after 10 minutes", "2026-11-25 10:10"),
    ("10 分钟后", "2026-11-25 10:10"),
    ("10分鐘後", "2026-11-25 10:10"),
    ("１０分钟之后", "2026-11-25 10:10"),
    ("在 10 分钟以后", "2026-11-25 10:10"),
    ("半小时后", "2026-11-25 10:30"),
    ("一个半小时后", "2026-11-25 11:30"),
    ("两小时零五分钟后", "2026-11-25 12:05"),
    ("一刻钟后", "2026-11-25 10:15"),
    ("过十分钟", "2026-11-25 10:10"),
    ("再等十分钟", "2026-11-25 10:10"),
    ("再过半小时", "2026-11-25 10:30"),
    ("in 3 days at 9:00", "2026-11-28 09:00"),
    ("3 天后 9 点", "2026-11-28 09:00"),
    ("两天后下午三点", "2026-11-27 15:00"),
    # A time of day: the next such.
    ("at 9:00", "2026-11-25 21:00"),
    ("at 09:00", "2026-11-26 09:00"),
    ("9:00", "2026-11-26 09:00"),
    ("at 11", "2026-11-25 11:00"),
    ("at nine", "2026-11-25 21:00"),
    ("at 9am", "2026-11-26 09:00"),
    ("早上九点", "2026-11-26 09:00"),
    ("9pm", "2026-11-25 21:00"),
    ("9 p.m.", "2026-11-25 21:00"),
    ("12am", "2026-11-26 00:00"),
    ("12pm", "2026-11-25 12:00"),
    ("10:00", "2026-11-26 10:00"),
    ("10:01", "2026-11-25 10:01"),
    ("8 o'clock", "2026-11-25 20:00"),
    ("half past nine", "2026-11-25 21:30"),
    ("at quarter to 11", "2026-11-25 10:45"),
    ("quarter to 0 today", "2026-11-25 23:45"),
    ("quarter to 12 tonight", "2026-11-25 23:45"),
    ("noon", "2026-11-25 12:00"),
    ("midnight", "2026-11-26 00:00"),
    ("24:00", "2026-11-26 00:00"),
    ("9 in the evening", "2026-11-25 21:00"),
    ("9 点半", "2026-11-25 21:30"),
    ("下午三点一刻", "2026-11-25 15:15"),
    ("下午三點三刻", "2026-11-25 15:45"),
    ("两点二十", "2026-11-25 14:20"),
    ("九点零五", "2026-11-25 21:05"),
    ("九点五分", "2026-11-25 21:05"),
    ("9 点 05 分", "2026-11-25 21:05"),
    ("9：30", "2026-11-26 09:30"),
    ("11 时 15 分", "2026-11-25 11:15"),
    ("二十三点", "2026-11-25 23:00"),
    ("十二点整", "2026-11-25 12:00"),
    ("零点", "2026-11-26 00:00"),
    ("零点三十分", "2026-11-26 00:30"),
    ("中午", "2026-11-25 12:00"),
    ("中午一点", "2026-11-25 13:00"),
    ("凌晨 2 点", "2026-11-26 02:00"),
    ("傍晚 6 点", "2026-11-25 18:00"),
    ("晚上 12 点", "2026-11-26 00:00"),
    ("晚上 20:30", "2026-11-25 20:30"),
    # A day and a time of day.
    ("tomorrow 9:00", "2026-11-26 09:00"),
    ("tomorrow at 9am", "2026-11-26 09:00"),
    ("tomorrow, at 9", "2026-11-26 09:00"),
    ("Tomorrow at 9:00.", "2026-11-26 09:00"),
    ("at 9:00 tomorrow", "2026-11-26 09:00"),
    ("noon tomorrow", "2026-11-26 12:00"),
    ("tomorrow night at 8", "2026-11-26 20:00"),
    ("tomorrow at 8 in the evening", "2026-11-26 20:00"),
    ("the day after tomorrow at 9", "2026-11-27 09:00"),
    ("today 18:30", "2026-11-25 18:30"),
    ("tonight at 8", "2026-11-25 20:00"),
    ("at 8 tonight", "2026-11-25 20:00"),
    ("this evening at 7", "2026-11-25 19:00"),
    ("明天 9:00", "2026-11-26 09:00"),
    ("明天早上 9 点", "2026-11-26 09:00"),
    ("明早八点", "2026-11-26 08:00"),
    ("明晚十点", "2026-11-26 22:00"),
    ("后天下午三点半", "2026-11-27 15:30"),
    ("後天下午三點半", "2026-11-27 15:30"),
    ("大后天 9 点", "2026-11-28 09:00"),
    ("今晚 8 点", "2026-11-25 20:00"),
    ("今天下午 3 点", "2026-11-25 15:00"),
    # Weekdays.
    ("Monday 9:00", "2026-11-30 09:00"),
    ("monday at 9", "2026-11-30 09:00"),
    ("next Monday at 9", "2026-11-30 09:00"),
    ("Fri 17:00", "2026-11-27 17:00"),
    ("9:00 on Friday", "2026-11-27 09:00"),
    ("Wednesday 9:00", "2026-12-02 09:00"),
    ("Wednesday 11:00", "2026-11-25 11:00"),
    ("this Friday at 9", "2026-11-27 09:00"),
    ("next Friday at 9", "2026-12-04 09:00"),
    ("周五下午 5 点", "2026-11-27 17:00"),
    ("週五下午 5 點", "2026-11-27 17:00"),
    ("下周一上午 9 点", "2026-11-30 09:00"),
    ("下个星期五 9 点", "2026-12-04 09:00"),
    ("下下周三 8 点", "2026-12-09 08:00"),
    ("这周日 10 点", "2026-11-29 10:00"),
    ("星期天 10 点", "2026-11-29 10:00"),
    # Dates.
    ("2026-12-01 09:00", "2026-12-01 09:00"),
    ("2026/12/1 9:00", "2026-12-01 09:00"),
    ("on 2026-12-01 at 9pm", "2026-12-01 21:00"),
    ("2026-12-01T09:00", "2026-12-01 09:00"),
    ("2026-12-01T09:00:00Z", "2026-12-01 17:00"),
    ("2026-12-01T09:00:00.000Z", "2026-12-01 17:00"),
    ("2026-12-01T09:00+09:00", "2026-12-01 08:00"),
    ("2026-12-01 09:00 UTC", "2026-12-01 17:00"),
    ("Dec 1 at 9:00", "2026-12-01 09:00"),
    ("December 1st, 2026 at 9:00", "2026-12-01 09:00"),
    ("1 December 2026 9:00", "2026-12-01 09:00"),
    ("on the 1st of December at 9:00", "2026-12-01 09:00"),
    ("12 月 1 日 9 点", "2026-12-01 09:00"),
    ("十二月一号九点", "2026-12-01 09:00"),
    ("2027年1月2日下午3点", "2027-01-02 15:00"),
    ("Jan 2 9:00", "2027-01-02 09:00"),
    ("2 月 29 日 9 点", "2028-02-29 09:00"),
    # A day alone, or a part of it.
    ("tomorrow", "2026-11-26 09:00"),
    ("on Friday", "2026-11-27 09:00"),
    ("2026-12-01", "2026-12-01 09:00"),
    ("tomorrow morning", "2026-11-26 09:00"),
    ("明天下午", "2026-11-26 15:00"),
    ("tonight", "2026-11-25 20:00"),
    # Midnight ends the day it is named with; the hours after it belong to that night.
    ("tonight at midnight", "2026-11-26 00:00"),
    ("Friday at midnight", "2026-11-28 00:00"),
    ("tomorrow 24:00", "2026-11-27 00:00"),
    ("tomorrow 0:00", "2026-11-26 00:00"),
    ("tomorrow at 12am", "2026-11-26 00:00"),
    ("tonight at 2", "2026-11-26 02:00"),
    ("今晚 12 点", "2026-11-26 00:00"),
    ("明天晚上 12 点", "2026-11-27 00:00"),
    ("今晚 1 点", "2026-11-26 01:00"),
    ("明天凌晨 1 点", "2026-11-26 01:00"),
    ("明天零点", "2026-11-26 00:00"),
]

REPEATS: list[tuple[str, When]] = [
    ("every 10 minutes", RepeatTime(600)),
    ("每 10 分钟", RepeatTime(600)),
    ("每小时", RepeatTime(3600)),
    ("每隔一个半小时", RepeatTime(5400)),
    ("every day", RepeatTime(86400)),
    ("daily", RepeatTime(86400)),
    ("每天", RepeatTime(86400)),
    ("every day at 9:00", CronTime("0 9 * * *")),
    ("daily at 9", CronTime("0 9 * * *")),
    ("at 9 every day", CronTime("0 9 * * *")),
    ("every morning at 8", CronTime("0 8 * * *")),
    ("every morning", CronTime("0 9 * * *")),
    ("every night at 11:30", CronTime("30 23 * * *")),
    ("every day at midnight", CronTime("0 0 * * *")),
    ("every day at noon", CronTime("0 12 * * *")),
    ("every day at 9:00 and 18:00", CronTime("0 9,18 * * *")),
    ("every weekday at 9:00", CronTime("0 9 * * 1-5")),
    ("weekdays at 9", CronTime("0 9 * * 1-5")),
    ("every weekend at 10", CronTime("0 10 * * 0,6")),
    ("every Monday and Thursday at 18:30", CronTime("30 18 * * 1,4")),
    ("every Monday, Wednesday and Friday at 9:00", CronTime("0 9 * * 1,3,5")),
    ("Mon-Fri at 9", CronTime("0 9 * * 1-5")),
    ("Friday to Monday at 9:00", CronTime("0 9 * * 0,1,5,6")),
    ("on Mondays at 9", CronTime("0 9 * * 1")),
    ("weekly on Sunday at 9", CronTime("0 9 * * 0")),
    ("every Monday", CronTime("0 9 * * 1")),
    ("every Friday at midnight", CronTime("0 0 * * 6")),
    ("every month on the 1st at 9:00", CronTime("0 9 1 * *")),
    ("monthly on the 1st and 15th at 9:00", CronTime("0 9 1,15 * *")),
    ("on the 1st of every month at 9", CronTime("0 9 1 * *")),
    ("every year on Dec 1 at 9", CronTime("0 9 1 12 *")),
    ("every hour at :15", CronTime("15 * * * *")),
    ("every hour at 5 past", CronTime("5 * * * *")),
    ("every hour on the hour", CronTime("0 * * * *")),
    ("每天早上 9 点", CronTime("0 9 * * *")),
    ("每天 9:30", CronTime("30 9 * * *")),
    ("每日九点半", CronTime("30 9 * * *")),
    ("每晚十一点", CronTime("0 23 * * *")),
    ("每天晚上 12 点", CronTime("0 0 * * *")),
    ("每天 9 点和 18 点", CronTime("0 9,18 * * *")),
    ("每天上午九点半和下午六点半", CronTime("30 9,18 * * *")),
    ("every day at 9am and 6pm", CronTime("0 9,18 * * *")),
    ("每逢周一 9 点", CronTime("0 9 * * 1")),
    ("每个工作日 9 点", CronTime("0 9 * * 1-5")),
    ("工作日早上 9 点", CronTime("0 9 * * 1-5")),
    ("每周末 10 点", CronTime("0 10 * * 0,6")),
    ("每周一和周四 18:30", CronTime("30 18 * * 1,4")),
    ("每周一三五 9 点", CronTime("0 9 * * 1,3,5")),
    ("每周一到周五 9 点", CronTime("0 9 * * 1-5")),
    ("周一至周五每天 9 点", CronTime("0 9 * * 1-5")),
    ("每週一十點", CronTime("0 10 * * 1")),
    ("每周一三点", CronTime("0 3 * * 1")),
    ("每周五晚上 12 点", CronTime("0 0 * * 6")),
    ("每个星期天 9 点", CronTime("0 9 * * 0")),
    ("每月 1 号 9 点", CronTime("0 9 1 * *")),
    ("每月 1 号和 15 号 9 点", CronTime("0 9 1,15 * *")),
    ("每年 12 月 1 日 9 点", CronTime("0 9 1 12 *")),
    ("每小时 15 分", CronTime("15 * * * *")),
    ("每小时整点", CronTime("0 * * * *")),
]

NO_TIME = [
    "",
    "   ",
    "hello",
    "9",
    "nine",
    "morning",
    "早上",
    "凌晨",
    "25:00",
    "9:60",
    "at 9:5",
    "24:30",
    "13pm",
    "0am",
    "9.5 点",
    "早上 15 点",
    "下午 25 点",
    "9 点 75 分",
    "Feb 30",
    "2026-02-30 9:00",
    "2026-13-01",
    "12/1",
    "13 月 1 日",
    "in a while",
    "in 9999 days",
    "in " + "9" * 500 + " s",
    "tomorrow at 9 run it",
    "at 9 and 10",
    "every month",
    "每月",
    "every day until 5pm",
    "every hour at 9",
    "at 9 until Friday",
    "every day except holidays",
    "3 times a day",
    "每隔三天",
    "每天三次",
    "every second Monday at 9",
    "every day at 25:00",
    "every day at 9:00:30",
    "every day at 9:00 and 10:30",
    "every day at 9:00Z",
    "every month on the 32nd",
    "every month on the 1st at midnight",
    "每月 1 号晚上 12 点",
    "每周一天",
    "每周一次",
    "第一分钟",
    "下周",
]


@pytest.mark.parametrize(("text", "expected"), MOMENTS, ids=[text for text, _ in MOMENTS])
def test_a_moment_is_read(text: str, expected: str) -> None:
    assert local(text) == expected


@pytest.mark.parametrize(("text", "expected"), REPEATS, ids=[text for text, _ in REPEATS])
def test_what_comes_again_is_read(text: str, expected: When) -> None:
    assert read(text) == expected


@pytest.mark.parametrize("text", NO_TIME, ids=lambda text: text[:20])
def test_what_is_no_time_is_none(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01 9:00",
        "2026-11-25 09:59",
        "2026-11-25T01:00:00Z",
        "today 9:00",
        "this morning at 8",
        "今天早上 9 点",
        "this Monday at 9",
        "本周一 9 点",
        "Nov 25 at 9:00",
        "today 10:00",
    ],
)
def test_a_named_day_that_has_passed_is_refused_with_its_time(text: str) -> None:
    with pytest.raises(PastTime, match=r"got one on \w+, 20\d\d-\d\d-\d\d at ") as caught:
        read(text)
    assert isinstance(caught.value, BadInput)
    assert caught.value.at <= NOW


def test_a_time_that_does_not_exist_moves_forward_over_the_gap() -> None:
    before = datetime(2026, 3, 7, 12, tzinfo=NEW_YORK)
    assert local("tomorrow at 2:30am", before, NEW_YORK) == "2026-03-08 03:30"


def test_of_a_time_that_exists_twice_the_first_counts() -> None:
    before = datetime(2026, 10, 31, 12, tzinfo=NEW_YORK)
    when = read("tomorrow at 1:30am", before, NEW_YORK)
    assert when == InstantTime(datetime(2026, 11, 1, 5, 30, tzinfo=UTC))


@pytest.mark.parametrize("text", ["in 7 days", "in a week", "七天后"])
def test_days_ahead_keep_the_time_of_day_when_the_clocks_change(text: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    when = parse_when(text, now=datetime(2026, 10, 21, 14, 27, tzinfo=berlin), zone=berlin)
    assert when == InstantTime(datetime(2026, 10, 28, 13, 27, tzinfo=UTC))


def test_the_day_is_the_zones_not_utcs() -> None:
    late = datetime(2026, 11, 24, 18, tzinfo=UTC)
    assert local("today at 9:00", late) == "2026-11-25 09:00"
    assert local("tomorrow at 9:00", late, NEW_YORK) == "2026-11-25 09:00"


def test_a_time_inside_a_text_tells_where_it_ends() -> None:
    plain = fold("请在明天 9 点运行：date")
    found = time_at(plain, 1)
    assert found is not None
    at = when_of(found.time, now=NOW, zone=SHANGHAI)
    assert (at, found.end) == (
        InstantTime(datetime(2026, 11, 26, 1, tzinfo=UTC)),
        plain.index("运行"),
    )
    assert time_at(plain, 0) is None


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("run ls tomorrow at 9:00", 7),
        ("run ls at 9:00 tomorrow", 7),
        ("run ls every weekday at 9", 7),
        ("run ls in 5 minutes", 7),
        ("执行 ls 10 分钟后", 6),
        ("执行 ls，每天早上 9 点", 6),
        ("run ls 9:00", None),
        ("run sleep 10m", None),
        ("run date 2026-12-01", None),
        ("run ls tomorrow at 9:00 for fun", None),
        ("run ./at 9:00", None),
    ],
)
def test_a_time_at_the_end_begins_with_a_word_for_it(text: str, start: int | None) -> None:

    found = time_at_end(fold(text), END, 120)
    assert (found.start if found else None) == start


PIECES = """
    in at on every each next this today tomorrow tonight noon midnight morning night the day after
    Monday Fri and to weekday daily Dec 1st 2026 2026-12-01 T 9 9:00 :15 10 am pm half past hour
    minutes Z +08:00 , ， 每 天 周 一 日 十 二 零 半 点 分 刻 时 月 号 年 今 明 后 早上 晚上 晚 中午
    小时 下 个 工作日 过 和 到 在 前
"""
WORDS = st.sampled_from(PIECES.split())
TEXTS = (
    st.text() | st.lists(WORDS, max_size=8).map(" ".join) | st.lists(WORDS, max_size=8).map("".join)
)
MOMENTS_OF_TIME = st.datetimes(datetime(1990, 1, 1), datetime(2150, 1, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=UTC)
)
ZONES = st.sampled_from(["UTC", "Asia/Shanghai", "America/New_York", "Pacific/Apia"]).map(ZoneInfo)


@given(TEXTS, MOMENTS_OF_TIME, ZONES)
def test_any_text_at_any_time_gives_a_time_to_come_or_none(text, now, zone) -> None:
    try:
        when = parse_when(text, now=now, zone=zone)
    except PastTime as past:
        assert past.at <= now
        return
    if isinstance(when, InstantTime):
        assert when.at >= now
    if isinstance(when, CronTime):
        assert len(when.expression.split()) == 5


@given(TEXTS)
def test_what_a_text_means_does_not_hang_on_where_it_stands(text: str) -> None:
    plain = fold(text.strip())
    found, shifted = time_at(plain, 0), time_at("·" + plain, 1)
    assert (found and found.time) == (shifted and shifted.time)
    if found and shifted:
        assert found.end + 1 == shifted.end


# ---- said again


@given(st.datetimes(datetime(2027, 1, 1), datetime(2099, 1, 1)), ZONES)  # noqa: DTZ001
def test_a_moment_is_said_in_local_time(moment: datetime, zone: ZoneInfo) -> None:
    at = moment.replace(second=0, microsecond=0, tzinfo=UTC)
    day = f"{at.astimezone(zone):%Y-%m-%d}"
    for language in ("en", "zh"):
        said = moment_words(at, zone, language)
        assert day in said
        assert f"{at.astimezone(zone):%H:%M}" in said
        assert zone.key in said


HOURS = st.sets(st.integers(0, 23), min_size=1, max_size=4)
LINES = (
    st.tuples(st.integers(0, 59), HOURS, st.just("day"), st.none())
    | st.tuples(st.integers(0, 59), HOURS, st.just("week"), st.sets(st.integers(0, 6), min_size=1))
    | st.tuples(
        st.integers(0, 59),
        HOURS,
        st.just("month"),
        st.sets(st.integers(1, 31), min_size=1, max_size=9),
    )
    | st.tuples(
        st.integers(0, 59),
        HOURS,
        st.just("year"),
        st.dates(date(2000, 1, 1), date(2000, 12, 31)),
    )
    | st.tuples(st.integers(0, 59), st.none(), st.none(), st.none())
)


def expanded(expression: str) -> list[set[int]]:
    """The numbers of each field."""

    def numbers(field: str) -> set[int]:
        found: set[int] = set()
        for piece in field.split(",") if field != "*" else []:
            first, _, last = piece.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
        return found

    fields = [numbers(field) for field in expression.split()]
    return fields[:4] + ([set()] if len(fields[4]) == 7 else [fields[4]])


def listed(numbers: set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


@given(LINES, st.sampled_from(["en", "zh"]))
def test_every_cron_line_is_said_in_words_that_mean_it(line, language) -> None:
    minute, hours, kind, days = line
    expression = f"{minute} {listed(hours) if hours else '*'} * * *"
    if kind == "week":
        expression = expression[:-1] + listed(days)
    elif kind == "month":
        expression = expression[:-5] + f"{listed(days)} * *"
    elif kind == "year":
        expression = expression[:-5] + f"{days.day} {days.month} *"
    again = read(cron_words(expression, language, None, NO_LIMITS))
    assert isinstance(again, CronTime)
    assert expanded(again.expression) == expanded(expression)


@pytest.mark.parametrize(
    ("when", "en", "zh"),
    [
        (RepeatTime(600), "every 10 minutes", "每 10 分钟"),
        (
            CronTime("0 9 * * 1-5"),
            "every weekday at 09:00 (Asia/Shanghai)",
            "每个工作日 09:00（Asia/Shanghai）",
        ),
        (
            CronTime("30 18 * * 0,4"),
            "every Thursday and Sunday at 18:30 (Asia/Shanghai)",
            "每周四和周日 18:30（Asia/Shanghai）",
        ),
        (
            CronTime("5 9 1,22 * *"),
            "every month on the 1st and 22nd at 09:05 (Asia/Shanghai)",
            "每月 1 号和 22 号 09:05（Asia/Shanghai）",
        ),
        (
            InstantTime(NOW + timedelta(seconds=90)),
            "on Wednesday, 2026-11-25 at 10:01:30 (Asia/Shanghai)",
            "2026-11-25（周三）10:01:30（Asia/Shanghai）",
        ),
    ],
)
def test_a_when_is_said_in_both_languages(when: When, en: str, zh: str) -> None:
    assert when_words(when, SHANGHAI) == en
    assert when_words(when, SHANGHAI, "zh") == zh
