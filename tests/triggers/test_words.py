"""Descriptions of schedules and conditions, in both languages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.errors import BadInput
from mimikit.protocol.triggers import Condition, Schedule
from mimikit.triggers import conditions, explain, schedule

T0 = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def leaf(kind: str, **params: object) -> Condition:
    return conditions.read({"type": kind, "params": params})


def joined(kind: str, *parts: Condition) -> Condition:
    return leaf(kind, conditions=[part.to_dict() for part in parts])


A, B = leaf("file_exists", path="a"), leaf("file_changed", path="src/**/*.py")


@pytest.mark.parametrize(
    ("schedule", "en", "zh"),
    [
        (Schedule(interval=10), "every 10 seconds", "每 10 秒"),
        (
            Schedule(cron="0 9 * * *", timezone="Asia/Shanghai"),
            "every day at 09:00 (Asia/Shanghai)",
            "每天 09:00（Asia/Shanghai）",
        ),
        (Schedule(cron="30 18 * * 1-5"), "every weekday at 18:30", "每个工作日 18:30"),
        (
            Schedule(cron="5 7 * * 6-7,2"),
            "every Tuesday, Saturday and Sunday at 07:05",
            "每周二、周六和周日 07:05",
        ),
        (Schedule(cron="0 9 1 * *"), "every month on the 1st at 09:00", "每月 1 号 09:00"),
        (Schedule(cron="15 * * * *"), "every hour at :15", "每小时 15 分"),
        (Schedule(cron="*/7 * * * *"), "by cron */7 * * * *", "按 cron */7 * * * *"),
        (
            Schedule(cron="0 9 * * 1#1"),
            "every month on the first Monday at 09:00",
            "每月 第一个周一 09:00",
        ),
        (Schedule(cron="0 9 L * *"), "every month on the last day at 09:00", None),
        (
            Schedule(cron="*/30 9-16 * * 1-5"),
            "every weekday at 09:00–16:30, every 30 minutes",
            "每个工作日 09:00–16:30，每 30 分钟",
        ),
        (
            Schedule(cron="0 8 * * *", starting=T0, every_days=2, times=1, lateness=3600),
            "every 2 days at 08:00, one time in all, not if more than 1 hour late",
            "每 2 天 08:00，共 1 次，迟到超过 1 小时 则不执行",
        ),
        (
            Schedule(cron="0 9 * * 1,3", timezone="Etc/UTC", starting=T0, every_weeks=2),
            "every 2 weeks on Monday and Wednesday at 09:00 (UTC)",
            "每 2 周的周一和周三 09:00（UTC）",
        ),
        (
            Schedule(cron="0 9 1 */2 *"),
            "every 2 months on the 1st at 09:00",
            "每 2 个月的 1 号 09:00",
        ),
        (
            Schedule(cron="15 * * * *", starting=T0, every_days=3),
            "every hour at :15, only every 3rd day",
            "每小时 15 分，每 3 天一次",
        ),
        (
            Schedule(interval=3600, until=T0, timezone="Asia/Shanghai"),
            "every hour, until Saturday, 2026-11-21 at 17:30 (Asia/Shanghai)",
            "每小时，直到 2026-11-21（周六）17:30（Asia/Shanghai）",
        ),
        (
            Schedule(run_at=T0, timezone="Asia/Shanghai"),
            "once on Saturday, 2026-11-21 at 17:30 (Asia/Shanghai)",
            "2026-11-21（周六）17:30（Asia/Shanghai），一次",
        ),
        (Schedule(), "never", "从不"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_schedule_in_words(schedule: Schedule, en: str, zh: str | None) -> None:
    said = explain.schedule_words(schedule)
    assert said["en"] == en
    assert zh is None or said["zh"] == zh


@pytest.mark.parametrize(
    ("condition", "en", "zh"),
    [
        (A, "a exists", " a 存在"),
        (B, "src/**/*.py changes", " src/**/*.py 变化"),
        (leaf("task_done", taskId="t"), "“Build” is done", "「Build」完成"),
        (leaf("llm_eval", prompt="is\n it late?"), "a model finds true: is it late?", None),
        (
            joined("or", A, joined("and", B, A)),
            "(a exists) or (src/**/*.py changes and a exists)",
            "( a 存在)或( src/**/*.py 变化且 a 存在)",
        ),
        (leaf("not", condition=A.to_dict()), "not: a exists", "并非 a 存在"),
    ],
    ids=str,
)
def test_a_condition_in_words(condition: Condition, en: str, zh: str | None) -> None:
    said = explain.condition_words(condition, lambda _id: "Build")
    assert said["en"] == en
    assert zh is None or said["zh"] == zh


FIELDS = st.sampled_from(
    ["*", "0", "5", "9", "*/5", "*/15", "*/60", "1-5", "1,4", "0-7", "23", "31"]
)


@settings(max_examples=300)
@given(st.tuples(FIELDS, FIELDS, FIELDS, FIELDS, FIELDS).map(" ".join))
def test_any_valid_cron_line_has_a_description(line: str) -> None:
    try:
        schedule.check_cron(line)
    except BadInput:
        return
    said = explain.schedule_words(Schedule(cron=line))
    assert said["en"]
    assert said["zh"]
    assert ("cron" in said["en"]) == ("cron" in said["zh"])
