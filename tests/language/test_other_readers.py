"""Times of day and dates as other libraries read them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from mimikit.language.times import InstantTime, parse_when

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 10, 21, 14, 27, tzinfo=ZONE)
ENGLISH = """
in 5 minutes; in 2 hours; in 3 days; in a week; tomorrow at 9:00; tomorrow at 6 in the evening
at 6pm; at 14:00; at 16:00; at midnight; today at 20:00; next Monday at 8:00; Friday at 17:00
on Sunday at 10am; this Friday at 5pm; the day after tomorrow at noon; 2026-12-01 09:00
on December 24 at 18:00; on 24 Dec at 18:00; on March 3 at 9:00; on the 24th at noon
tomorrow at 9; tonight at 8; in half an hour; in an hour and a half; at half past six
"""
CHINESE = """
5分钟后; 两小时后; 半小时后; 一个半小时后; 三天后; 明天早上9点; 今晚8点; 今天下午4点; 明天下午3点半
后天中午12点; 大后天下午3点; 下周一上午8点; 周五下午5点; 下下周三上午10点; 这周日上午10点
12月24日18点; 2026年12月1日9点; 下个月1号上午9点; 凌晨2点; 零点; 明早7点一刻; 月底上午9点
"""
EXPLAINED = {
    "tomorrow at 9": "the bare hour is not read by dateparser",
    "tonight at 8": "the bare hour is not read by dateparser",
    "at half past six": "not read by dateparser",
    "in half an hour": "not read by dateparser",
    "in an hour and a half": "not read by dateparser",
    "三天后": "JioNLP gives the whole day",
    "凌晨2点": "JioNLP gives the one that has passed",
    "零点": "JioNLP gives the one that has passed",
    "明早7点一刻": "JioNLP reads today",
    "月底上午9点": "not read by JioNLP",
}


def ours(text: str) -> datetime | None:
    when = parse_when(text, now=NOW, zone=ZONE)
    return when.at if isinstance(when, InstantTime) else None


def dateparsers(text: str) -> datetime | None:
    library: Any = pytest.importorskip("dateparser")
    settings = {"RELATIVE_BASE": NOW.replace(tzinfo=None), "PREFER_DATES_FROM": "future"}
    found = library.parse(text.removeprefix("at ").removeprefix("on "), settings=settings)
    return found and found.replace(tzinfo=ZONE)


def jionlps(text: str) -> datetime | None:
    library: Any = pytest.importorskip("jionlp")
    try:
        begin = library.parse_time(text, time_base=NOW.replace(tzinfo=None).timestamp())["time"][0]
    except ValueError:
        return None
    return datetime.fromisoformat(begin).replace(tzinfo=ZONE)


@pytest.mark.parametrize(("texts", "reader"), [(ENGLISH, dateparsers), (CHINESE, jionlps)])
def test_every_difference_from_another_reader_is_explained(texts: str, reader: Any) -> None:
    listed = [text.strip() for line in texts.strip().splitlines() for text in line.split(";")]
    differ = {
        text: (mine, theirs)
        for text in listed
        if (mine := ours(text)) != (theirs := reader(text))
        and not (mine and theirs and abs(mine - theirs) < timedelta(minutes=1))
    }
    assert None not in {mine for mine, _ in differ.values()}
    assert set(differ) == EXPLAINED.keys() & set(listed), differ
