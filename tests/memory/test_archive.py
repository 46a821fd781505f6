"""What is archived, when and where: pure functions of messages, time and zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mimikit.memory import archive, markdown
from mimikit.memory.archive import ArchiveRules, plan_archive, plan_flush
from mimikit.protocol.models import Message, SummaryScope

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
LATE = NOW - timedelta(days=1)
"""A last archive that was long ago."""


def said(number: int, at: datetime = NOW, text: str = "hello", **more: Any) -> Message:
    return Message(id=f"msg-{number}", role="user", text=text, created_at=at).but(**more)


def many(count: int, at: datetime = NOW, **more: Any) -> list[Message]:
    return [said(number, at, **more) for number in range(count)]


def ids(groups: list[archive.MessageGroup]) -> list[tuple[str, str, list[str]]]:
    return [(g.kind, g.name, [m.id for m in g.messages]) for g in groups]


# ---- where


@pytest.mark.parametrize(
    ("today", "day", "expected"),
    [
        ("2026-01-31", "2026-01-31", "raw"),
        ("2026-01-31", "2026-01-25", "day"),
        ("2026-01-31", "2025-11-30", "month"),
        ("2026-02-01", "2025-12-31", "month"),
        ("2026-01-01", "2025-12-26", "day"),
        ("2028-02-29", "2028-01-01", "day"),
        ("2028-03-05", "2028-02-29", "raw"),
        ("2028-03-06", "2028-02-29", "day"),
        ("2026-03-10", "2026-03-11", "raw"),  # the clock was set back since
    ],
)
def test_a_day_is_archived_by_its_age(today: str, day: str, expected: str) -> None:
    kind = archive.place(date.fromisoformat(day), date.fromisoformat(today))
    assert kind == expected
    name = archive.place_name(kind, date.fromisoformat(day))
    assert name == (day[:7] if expected == "month" else day)


@pytest.mark.parametrize(
    ("zone", "at", "day"),
    [
        ("Asia/Shanghai", "2026-01-27T16:00:00.000Z", "2026-01-28"),
        # Summer time begins on 8 March at 2:00: that day ends an hour earlier in UTC.
        ("America/New_York", "2026-03-08T04:59:59.999Z", "2026-03-07"),
        ("America/New_York", "2026-03-09T04:00:00.000Z", "2026-03-09"),
        # It ends on 1 November: that day has 25 hours.
        ("America/New_York", "2026-11-01T04:00:00.000Z", "2026-11-01"),
        ("America/New_York", "2026-11-02T05:00:00.000Z", "2026-11-02"),
        ("Pacific/Kiritimati", "2025-12-31T10:00:00.000Z", "2026-01-01"),
    ],
)
def test_a_message_belongs_to_the_calendar_day_of_its_zone(zone: str, at: str, day: str) -> None:
    message = said(1, datetime.fromisoformat(at))
    assert archive.day_of(message, ZoneInfo(zone)).isoformat() == day
    now = message.created_at + timedelta(minutes=1)
    (group,) = plan_archive([message], now, ZoneInfo(zone))
    assert (group.kind, group.name) == ("raw", day)


@given(
    st.integers(0, 6 * 365 * 86400).map(lambda s: NOW - timedelta(days=700) + timedelta(seconds=s)),
    st.lists(st.timedeltas(timedelta(), timedelta(days=200)), min_size=1, max_size=12),
    st.sampled_from(["UTC", "Asia/Shanghai", "America/New_York", "Pacific/Kiritimati"]),
)
def test_each_message_is_in_one_group_of_its_own_place(
    at: datetime, ages: list[timedelta], zone: str
) -> None:
    messages = [said(number, at - age) for number, age in enumerate(ages)]
    plan = plan_archive(messages, at, ZoneInfo(zone))
    assert sorted(m.id for g in plan for m in g.messages) == sorted(m.id for m in messages)
    today = at.astimezone(ZoneInfo(zone)).date()
    for group in plan:
        for message in group.messages:
            day = archive.day_of(message, ZoneInfo(zone))
            assert group.kind == archive.place(day, today)
            assert day.isoformat().startswith(group.name)
    raws = [group.kind == "raw" for group in plan]
    assert raws == sorted(raws, reverse=True), "what code writes comes first"


# ---- when


@pytest.mark.parametrize(
    ("messages", "last", "expected"),
    [
        ([], LATE, False),
        (many(101), NOW, True),
        (many(101, archived="pending"), LATE, False),
        ([*many(100), said(200, archived="pending")], NOW, False),
        (many(1), NOW - timedelta(hours=6), True),
        (many(1), NOW - timedelta(hours=6, milliseconds=-1), False),
        (many(1), NOW + timedelta(minutes=1), True),  # the clock was set back
        (many(1, NOW + timedelta(days=400)), None, True),
        (many(1, NOW - timedelta(hours=6)), None, True),
        ([said(1, NOW - timedelta(hours=6), archived=True), said(2)], None, False),
        (many(150, archive_attempts=1, archive_next_at=NOW + timedelta(seconds=1)), LATE, False),
        (many(1, archive_attempts=1, archive_next_at=NOW), NOW, True),
        (many(1, archive_attempts=1, archive_next_at=NOW + timedelta(seconds=1)), NOW, False),
        (many(1, archive_attempts=1, archive_next_at=NOW + timedelta(days=400)), NOW, True),
    ],
)
def test_archiving_begins_by_number_by_time_and_for_a_next_try(
    messages: list[Message], last: datetime | None, expected: bool
) -> None:
    assert archive.is_due(messages, NOW, last) is expected


def test_a_pass_takes_all_that_may_be_tried_and_no_other() -> None:
    messages = [
        said(1, archived=True),
        said(2, archived="pending"),
        said(3, archive_attempts=2, archive_next_at=NOW + timedelta(hours=1)),
        said(4, archive_attempts=2, archive_next_at=NOW),
        said(5),
    ]
    plan = plan_archive(messages, NOW, UTC)
    assert ids(plan) == [("raw", "2026-03-10", ["msg-4", "msg-5"])]
    assert plan[0].attempt == 2


def test_without_summaries_only_recent_days_are_archived() -> None:
    messages = [said(1, NOW - timedelta(days=20)), said(2)]
    plan = plan_archive(messages, NOW, UTC, summaries=False)
    assert ids(plan) == [("raw", "2026-03-10", ["msg-2"])]
    assert plan_archive(messages[:1], NOW, UTC, summaries=False) == []


def test_raw_groups_are_written_some_at_a_time() -> None:
    plan = plan_archive(many(450), NOW, UTC)
    assert [len(group.messages) for group in plan] == [200, 200, 50]


# ---- after a failure


def test_the_retry_delay_grows() -> None:
    message = said(1, archived="pending", archive_task="task-1")
    waits: list[timedelta] = []
    for attempt in range(1, 8):
        message = message.but(**archive.failed(message, NOW))
        assert message.archived is False
        assert (message.archive_attempts, message.archive_failed_at) == (attempt, NOW)
        assert message.archive_task is None
        waits.append((message.archive_next_at or NOW) - NOW)
    minutes = [wait.total_seconds() / 60 for wait in waits]
    assert minutes == [10, 30, 120, 360, 720, 720, 720]


@pytest.mark.parametrize("name", ["../2026-01", "2026-1", "2026-01-02.md", "", "2026-01-02-x", "a"])
def test_a_summary_scope_accepts_only_a_day_or_month(name: str) -> None:
    with pytest.raises(ValidationError):
        SummaryScope(kind="day", name=name, sources=["msg-1"])
    assert SummaryScope(kind="month", name="2026-01", sources=["msg-1"]).name == "2026-01"


# ---- the safety valve


@pytest.mark.parametrize(
    ("count", "last", "expected"),
    [
        (799, None, False),
        (800, None, True),
        (800, NOW - timedelta(minutes=59), False),
        (800, NOW - timedelta(hours=1), True),
    ],
)
def test_the_flush_comes_with_very_many_and_not_too_often(
    count: int, last: datetime | None, expected: bool
) -> None:
    blocked = many(count, archive_next_at=NOW + timedelta(hours=12), archive_attempts=5)
    assert bool(plan_flush(blocked, NOW, UTC, last)) is expected


def test_the_flush_takes_waiting_messages_by_day_and_leaves_pending_ones() -> None:
    old = NOW - timedelta(days=60)
    messages = [said(1, old), said(2), said(3, archived="pending"), said(4, archived=True)]
    plan = plan_flush(messages, NOW, UTC, None, rules=ArchiveRules(flush_at=2))
    assert ids(plan) == [("raw", "2026-01-09", ["msg-1"]), ("raw", "2026-03-10", ["msg-2"])]


# ---- what a summary is made from


def test_long_groups_go_to_several_runs() -> None:
    day = NOW - timedelta(days=10)
    messages = [said(number, day, "x" * 7_000) for number in range(20)]
    plan = plan_archive(messages, NOW, UTC)
    assert [group.kind for group in plan] == ["day"] * len(plan)
    assert len(plan) == 3
    for group in plan:
        pieces = [archive.piece_of(message, UTC) for message in group.messages]
        assert len(archive.fenced(pieces)) <= archive.PROMPT_CHARACTERS + 100
    assert sorted(m.id for g in plan for m in g.messages) == sorted(m.id for m in messages)


@given(st.text(max_size=300))
def test_no_text_leaves_its_block(text: str) -> None:
    block = archive.fenced([archive.piece_of(said(1, text=text), UTC)])
    fence, line, end = block.split("\n")
    assert fence == end + "json"
    assert fence.strip("`") == "json"
    assert end not in line


def test_a_text_of_any_length_and_kind_fits_into_one_run() -> None:
    for text in ("\x01" * 200_000, "字" * 200_000, "a\ud800b", "`" * 5_000):
        message = Message.model_construct(
            id="msg-1", role="user", text=text, created_at=NOW, archived=False
        )
        piece = archive.piece_of(message, UTC)
        assert len(piece.line) < archive.PROMPT_CHARACTERS
        assert piece.line.encode()


# ---- what ages


def test_files_are_summarised_by_their_age() -> None:
    found = archive.targets(
        raw=["2026-03-09-a.md", "2026-03-04-b.md", "2026-03-04.md", "2026-01-02-c.md",
             "notes.md", "2026-13-45-x.md", "2026-03-01 mine.md"],
        daily=["2026-02-27.md", "2026-01-02.md", "2026-01-03.md", "2026-01.md"],
        today=NOW.date(),
    )  # fmt: skip
    assert found == [
        archive.SummaryTarget(
            "month", "2026-01", ("2026-01-02-c.md",), ("2026-01-02.md", "2026-01-03.md")
        ),
        archive.SummaryTarget("day", "2026-03-04", ("2026-03-04-b.md", "2026-03-04.md")),
    ]


def test_everything_in_a_raw_file_is_summarised() -> None:
    text = markdown.extended(
        "", date(2026, 1, 2), [said(1, datetime(2026, 1, 2, 9, 30, tzinfo=UTC))], UTC
    )
    text = markdown.with_note(text, "note-1", "tea") + "\nmine\n"
    pieces = archive.pieces_of_raw("memory/2026-01-02-a.md", date(2026, 1, 2), text, UTC)
    assert [piece.source for piece in pieces] == ["msg-1", "note-1", "memory/2026-01-02-a.md"]
    assert pieces[0].line == '{"at": "2026-01-02 09:30", "role": "user", "text": "hello"}'


# ---- names


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Please deploy the website to Cloudflare Workers", "The deploy timed out"],
         "deploy-cloudflare-website-timed"),
        (["fix parseConfig in settings_loader"], "settings-config-loader-parse"),
        (["你好，今天天气不错"], "mem-123456zz"),
        (["部署 nginx 到服务器"], "nginx"),
        (["my key is sk9f8a7b6c5d4e3f2a1b0c9d8e7f6a5b, password AKIA1234567890"], "password-key"),
    ],
)  # fmt: skip
def test_a_slug_has_the_topic(texts: list[str], expected: str) -> None:
    first = Message(id="msg-01jh3v8e3k00000000123456zz", role="user", text=texts[0], created_at=NOW)
    messages = [first, *(said(number, text=text) for number, text in enumerate(texts[1:]))]
    assert markdown.slug(messages) == expected


@settings(max_examples=200)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=4), st.integers(0, 3))
def test_a_slug_is_short_and_unique(texts: list[str], others: int) -> None:
    messages = [said(number, text=text) for number, text in enumerate(texts)]
    taken: list[str] = []
    for _ in range(others + 1):
        taken.append(markdown.slug(messages, taken))
    assert len(set(taken)) == len(taken)
    for name in taken:
        assert 0 < len(name) <= 32
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert name.strip("-") == name
    assert markdown.slug(messages) == taken[0]


def test_a_day_has_one_raw_file_until_that_is_large() -> None:
    day, messages = date(2026, 3, 10), [said(1, text="deploy nginx")]
    assert markdown.raw_name(day, messages, {}) == "2026-03-10-deploy-nginx.md"
    assert markdown.raw_name(day, messages, {"2026-03-10-tea.md": 500}) == "2026-03-10-tea.md"
    assert markdown.raw_name(day, messages, {"2026-03-10.md": 500}) == "2026-03-10-deploy-nginx.md"
    assert (
        markdown.raw_name(day, messages, {"2026-03-10-deploy-nginx.md": -1})
        == "2026-03-10-deploy-nginx-2.md"
    ), "a file that its user made is not ours to extend"
    large = {"2026-03-10-deploy-nginx.md": markdown.FILE_BYTES}
    assert markdown.raw_name(day, messages, large) == "2026-03-10-deploy-nginx-2.md"
    assert markdown.raw_name(day, messages, {}, flush=True) == "2026-03-10.md"
