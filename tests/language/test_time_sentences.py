"""Sentences about time: understood whole, with the right next times, or asked about."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest

from mimikit.engines.builtin.grammar import parse
from mimikit.engines.builtin.intents import (
    AtIntent,
    BadSentence,
    EveryIntent,
    PlainSentence,
    RunIntent,
)
from mimikit.engines.builtin.planner import bad_sentence
from mimikit.engines.builtin.reminders import RemindIntent
from mimikit.tools.requests import schedule_of
from mimikit.triggers import schedule
from mimikit.triggers.explain import schedule_words

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 10, 21, 14, 27, tzinfo=BERLIN)
"""A Wednesday; the clocks go back in the night to Sunday."""
MONDAY = date(2026, 10, 26)


class DayWords(NamedTuple):
    en: str
    zh: str
    fits: Callable[[date], bool]
    step_days: int = 1
    step_weeks: int = 1


class Limit(NamedTuple):
    en: str
    zh: str
    starting: date = NOW.date()
    until: datetime = datetime.max.replace(tzinfo=BERLIN)
    times: int = 3


def end_of(day: date) -> datetime:
    return datetime.combine(day, time(23, 59, 59), BERLIN)


def is_last(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


DAYS = [
    DayWords("every day", "每天", lambda _day: True),
    DayWords("every weekday", "每个工作日", lambda day: day.weekday() < 5),
    DayWords("every Monday and Friday", "每周一和周五", lambda day: day.weekday() in (0, 4)),
    DayWords("every day except Sunday", "每天除了周日", lambda day: day.weekday() != 6),
    DayWords("every weekday except Friday", "除周五外每个工作日", lambda day: day.weekday() < 4),
    DayWords("every other day", "每隔一天", lambda _day: True, step_days=2),
    DayWords("every third day", "每3天", lambda _day: True, step_days=3),
    DayWords("every 2 weeks on Monday", "每两周的周一", lambda d: d.weekday() == 0, step_weeks=2),
    DayWords("every month on the 15th", "每月15号", lambda day: day.day == 15),
    DayWords("on the last day of every month", "每月最后一天", is_last),
    DayWords(
        "on the first Friday of the month", "每月第一个周五",
        lambda day: day.weekday() == 4 and day.day <= 7,
    ),
    DayWords(
        "on the last Friday of every month", "每月最后一个周五",
        lambda day: day.weekday() == 4 and (day + timedelta(days=7)).month != day.month,
    ),
]  # fmt: skip
CLOCKS = [
    ("at 8", "早上8点", [time(8)]),
    ("at 17:30", "17:30", [time(17, 30)]),
    ("at 9 and 21", "9点和21点", [time(9), time(21)]),
    ("at 9pm", "晚上九点", [time(21)]),
]
LIMITS = [
    Limit("", ""),
    Limit("until Friday", "直到周五", until=end_of(date(2026, 10, 23))),
    Limit("until 2026-12-24", "直到2026-12-24", until=end_of(date(2026, 12, 24))),
    Limit("2 times", "共2次", times=2),
    Limit("starting Monday", "从下周一开始", starting=MONDAY),
    Limit("for two weeks", "持续两周", until=NOW.astimezone(BERLIN) + timedelta(days=14)),
    Limit(
        "from Monday until 2026-11-30", "从下周一开始直到2026-11-30",
        starting=MONDAY, until=end_of(date(2026, 11, 30)),
    ),
]  # fmt: skip
SHAPES_EN = [
    "remind me {days} {clock} {limit} to water the plants",
    "remind me to water the plants {days} {clock} {limit}",
    "{days} {clock} {limit} remind me to water the plants",
    "remind me {clock} {days} to water the plants, {limit}",
    "remind me {limit} {days} {clock} to water the plants",
    "{days} {clock} {limit}: run date",
    "run date {days} {clock} {limit}",
]
SHAPES_ZH = [
    "{days}{clock}{limit}提醒我浇花",
    "提醒我{days}{clock}{limit}浇花",
    "提醒我浇花，{days}{clock}{limit}",
    "{days}{clock}提醒我浇花，{limit}",
    "{limit}{days}{clock}提醒我浇花",
    "{days}{clock}{limit}运行：date",
]


def oracle(days: DayWords, clocks: list[time], limit: Limit) -> list[datetime]:
    """The next times, day by day."""
    found: list[datetime] = []
    first: date | None = None
    for number in range(400):
        day = limit.starting + timedelta(days=number)
        slots = [datetime.combine(day, clock, BERLIN) for clock in clocks]
        slots = [slot for slot in slots if NOW < slot <= limit.until]
        if not days.fits(day) or not slots:
            continue
        first = first or day
        weeks = (day - first).days // 7 if days.step_weeks > 1 else 0
        if (day - first).days % days.step_days == 0 and weeks % days.step_weeks == 0:
            found += slots
    return found[: limit.times]


def sentences() -> Iterator[tuple[str, str, list[datetime]]]:
    """Sentence, what is left of it without its time, and its next times."""
    shapes = itertools.cycle(zip(SHAPES_EN * 6, SHAPES_ZH * 7, strict=True))
    for days, (en, zh, clocks), limit in itertools.product(DAYS, CLOCKS, LIMITS):
        expected = oracle(days, clocks, limit)
        for shape, own, clock, limit_words in zip(
            next(shapes), (days.en, days.zh), (en, zh), (limit.en, limit.zh), strict=True
        ):
            sentence = shape.format(days=own, clock=clock, limit=limit_words)
            yield " ".join(sentence.split()).strip(" ,，"), shape, expected


def is_program(word: str) -> bool:
    return word == "date"


def test_a_sentence_of_days_times_and_limits_is_understood_whole() -> None:
    generated = list(sentences())
    assert len({sentence for sentence, _, _ in generated}) > 600
    for sentence, shape, expected in generated:
        intent = parse(sentence.replace(" :", ":"), is_program)
        assert isinstance(intent, RemindIntent | AtIntent), sentence
        rest = intent.text if isinstance(intent, RemindIntent) else intent.command
        assert rest in ("water the plants", "浇花", "date"), (sentence, rest)
        assert (rest == "date") == ("date" in shape)
        plan = schedule_of(intent.when, now=NOW, zone=BERLIN)
        times = schedule.upcoming(plan, now=NOW, zone=BERLIN)
        assert [time.astimezone(BERLIN) for time in times] == expected, sentence
        assert all(schedule_words(plan).values())


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("every hour between 9 and 17", ["21 15:00", "21 16:00", "21 17:00"]),
        ("每天上午9点到下午5点每半小时", ["21 14:30", "21 15:00", "21 15:30"]),
        ("每天9点到17点每小时", ["21 15:00", "21 16:00", "21 17:00"]),
        ("every 2 hours from 9am to 5pm on weekdays", ["21 15:00", "21 17:00", "22 09:00"]),
        ("every 30 minutes between 9 and 15", ["21 14:30", "22 09:00", "22 09:30"]),
        ("every hour until 5pm", ["21 15:27", "21 16:27"]),
        ("every hour 3 times", ["21 15:27", "21 16:27", "21 17:27"]),
        ("每小时共2次", ["21 15:27", "21 16:27"]),
        ("every 10 minutes for 2 hours", ["21 14:37", "21 14:47", "21 14:57"]),
        ("every 2 hours starting tomorrow at 8", ["22 08:00", "22 10:00", "22 12:00"]),
        ("every other day", ["23 14:27", "25 13:27", "27 13:27"]),
        ("every 2 days starting Friday", ["23 09:00", "25 09:00", "27 09:00"]),
        ("every other day at 8 starting tomorrow", ["22 08:00", "24 08:00", "26 08:00"]),
        ("every other Monday at 9", ["26 09:00", "09 09:00", "23 09:00"]),
        ("every fortnight on Monday", ["26 09:00", "09 09:00", "23 09:00"]),
        ("every day until Friday at 9", ["22 09:00", "23 09:00"]),
        ("on the last working day of every month at 9", ["30 09:00", "30 09:00", "31 09:00"]),
        ("first of next month", ["01 09:00"]),
        ("下个月1号", ["01 09:00"]),
        ("on the last day of next month at 17:00", ["30 17:00"]),
        ("下个月最后一天", ["30 09:00"]),
        ("on the 25th at 9", ["25 09:00"]),
        ("每月底", ["31 09:00", "30 09:00", "31 09:00"]),
    ],
)
def test_a_time_has_these_next_times(when: str, expected: list[str]) -> None:
    plan = schedule_of(when, now=NOW, zone=BERLIN)
    times = schedule.upcoming(plan, now=NOW, zone=BERLIN)
    assert [f"{time.astimezone(BERLIN):%d %H:%M}" for time in times] == expected


UNKNOWN = [
    "every 10 moons", "every blue moon", "every 2nd Tuesday at 9", "every quarter", "twice a day",
    "three times a day", "every day except holidays at 9", "every weekday but not in July at 8",
    "every day at 9 until Christmas", "at 9 until Friday", "every hour at 9", "every fourth Monday",
    "every day at 9 and 18 except the first", "every leap day", "every Monday of the quarter at 9",
    "at 9 3 times", "every other month", "every day at 9 until 2020-01-32",
    "每隔三天", "每季度", "每天三次", "每天9点直到圣诞节", "每天除了节假日9点", "隔三差五",
]  # fmt: skip


@pytest.mark.parametrize("words", UNKNOWN)
def test_what_is_not_understood_of_a_time_is_asked_about_and_never_text(words: str) -> None:
    is_zh = not words.isascii()
    reminders = [f"提醒我{words}浇花", f"{words}提醒我浇花", f"提醒我浇花，{words}"]
    commands = [f"{words}运行：date", f"{words}运行 date"]
    if not is_zh:
        reminders = [f"remind me {words} to water", f"remind me to water {words}"]
        commands = [f"{words}: run date", f"{words} run date", f"run date {words}"]
    for sentence in [*reminders, *commands]:
        intent = parse(sentence, is_program)
        assert not isinstance(intent, RemindIntent | AtIntent | EveryIntent | RunIntent), sentence
    asked = parse(reminders[0], is_program)
    assert isinstance(asked, BadSentence)
    assert "weeks" in bad_sentence(asked, "en") or asked.reason != "time_unknown"


@pytest.mark.parametrize(
    "sentence",
    [
        "remind me on Monday and Wednesday to run", "remind me every morning and evening to run",
        "remind me at nine thirty to run", "remind me at ten past nine to run",
        "remind me at 10 to 9 to run", "remind me at 9 CET to run", "remind me Monday week to run",
        "remind me at 9 Berlin time to run", "remind me every day at 9 to run, not in July",
        "at nine thirty: run date", "at 9 GMT+2: run date", "每天早晚提醒我吃药", "提醒我9点前睡觉",
        "提醒我九点左右睡觉", "提醒我周五之前交报告", "每小时提醒我起来，晚上不要",
        "9点左右运行 date", "at 25:00 run date", "every day at 9:75: run date",
        "remind me every Monday in December to run", "remind me every day at 9 if it rains to run",
        "remind me at 5 (UTC) to run", "提醒我每天9点跑步除了下雨",
        "on Feb 30 at 9:00: run date", "in 5 run date", "at 6.30pm remind me to run",
    ],
)  # fmt: skip
def test_the_second_half_of_a_time_is_never_text(sentence: str) -> None:
    intent = parse(sentence, is_program)
    assert isinstance(intent, BadSentence)
    assert intent.reason == "time_unknown"


def test_the_words_that_were_not_understood_are_said() -> None:
    for sentence in ("every 10 moons run date", "remind me every 10 moons to look up"):
        intent = parse(sentence, is_program)
        assert isinstance(intent, BadSentence)
        answer = bad_sentence(intent, "en")
        assert "every 10 moons" in answer
        assert "minutes, hours, days, weeks" in answer
    assert parse("every 10 fortnights run date", is_program) == EveryIntent(140 * 86400, "date")


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("remind me tomorrow at 9 to book a table for Friday", "book a table for Friday"),
        ("remind me tomorrow at 9 to read the daily news", "read the daily news"),
        ("remind me tomorrow at 9 to prepare Monday's meeting", "prepare Monday's meeting"),
        ("remind me every day at 9 to walk for 30 minutes", "walk for 30 minutes"),
        ("remind me at 9pm: every day at 9 until Friday", "every day at 9 until Friday"),
        ("提醒我明天9点准备下周一的会议", "准备下周一的会议"),
        ("提醒我明天9点喝一点水", "喝一点水"),
        ("remind me at 9 it is time to leave", "it is time to leave"),
        ("提醒我明天9点前端评审", "前端评审"),
        ("提醒我明天左右手交替训练", "左右手交替训练"),
        ("提醒我明天前往机场", "前往机场"),
        ("please remember to buy milk tomorrow at 9", "buy milk"),
        ("remind me tomorrow December rent is due", "December rent is due"),
    ],
)
def test_a_day_that_belongs_to_the_text_stays_there(sentence: str, text: str) -> None:
    intent = parse(sentence)
    assert isinstance(intent, RemindIntent)
    assert intent.text == text


@pytest.mark.parametrize(
    "text", ["every day I run 5 km", "每天跑步很好", "昨天提醒我的事", "今天你提醒我了吗"]
)
def test_talk_is_not_asked_about(text: str) -> None:
    assert isinstance(parse(text, is_program), PlainSentence)


@pytest.mark.parametrize(
    ("sentence", "hour"),
    [
        ("remind me at 6 to cook", "21 18:00"), ("remind me at six to cook", "21 18:00"),
        ("remind me at 6:30 to cook", "21 18:30"), ("6点提醒我做饭", "21 18:00"),
        ("remind me at 6am to cook", "22 06:00"), ("remind me at 06:00 to cook", "22 06:00"),
        ("remind me tomorrow at 6 to cook", "22 06:00"), ("remind me at 3 to cook", "21 15:00"),
        ("remind me at 2 to cook", "22 02:00"), ("remind me at 18 to cook", "21 18:00"),
        ("早上6点提醒我做饭", "22 06:00"),
    ],
)  # fmt: skip
def test_an_hour_alone_is_the_next_such_on_the_clock(sentence: str, hour: str) -> None:
    intent = parse(sentence)
    assert isinstance(intent, RemindIntent)
    (at,) = schedule.upcoming(schedule_of(intent.when, now=NOW, zone=BERLIN), now=NOW)
    assert f"{at.astimezone(BERLIN):%d %H:%M}" == hour
