"""The transcript loses nothing and doubles nothing; the pages of it fit together."""

from __future__ import annotations

import errno
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimikit.conversation import history
from mimikit.conversation.history import HistoryCaps, HistoryStore, page
from mimikit.errors import BadInput, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import History, Message
from mimikit.protocol.records import MAX_RECORD_BYTES
from tests.support.memory_disk import DiskStep, MemoryDisk

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def said(id_: str, at: datetime = NOW, **more: Any) -> Message:
    return Message(id=id_, role="user", text=f"text of {id_}", created_at=at).but(**more)


def transcript(files: Files) -> list[str]:
    """Ids in the transcript, in the order of its files and lines."""
    return [
        str(line["id"])
        for name in files.names(paths.TRANSCRIPT, suffix=".jsonl")
        for _, line in files.lines(f"{paths.TRANSCRIPT}/{name}")
    ]


def test_messages_go_into_transcript_and_working_set(files: Files) -> None:
    conversation = HistoryStore(files)
    assert conversation.add([said("a"), said("b")]) == [said("a"), said("b")]
    assert transcript(files) == ["a", "b"]
    saved = files.load(paths.HISTORY, History)
    assert saved is not None
    assert [message.id for message in saved.messages] == ["a", "b"]
    assert [message.id for message in HistoryStore(files).messages] == ["a", "b"]


def test_a_message_that_is_repeated_is_kept_once(files: Files) -> None:
    HistoryStore(files).add([said("a")])
    for conversation in (HistoryStore(files), HistoryStore(files)):
        assert conversation.add([said("a"), said("b"), said("b")]) in ([said("b")], [])
    assert transcript(files) == ["a", "b"]
    assert [message.id for message in HistoryStore(files).messages] == ["a", "b"]


def test_what_came_last_is_the_newest_whatever_the_clock_said(files: Files) -> None:
    ahead = NOW + timedelta(days=400)
    HistoryStore(files).add([said("a"), said("b", ahead)])
    for _ in range(2):  # the second time it is a replay
        conversation = HistoryStore(files)
        conversation.add([said("c", NOW + timedelta(minutes=1)), said("d", NOW)])
        assert [m.id for m in page(files).messages] == ["a", "b", "c", "d"]
    assert [m.id for m in page(files, limit=2).messages] == ["c", "d"]
    files.remove(paths.HISTORY)
    assert HistoryStore(files).has("c", NOW.date())
    HistoryStore(files).add([said("e", ahead + timedelta(days=1))])
    assert len(files.names(paths.TRANSCRIPT, suffix=".jsonl")) == 3


def test_a_working_set_that_is_no_record_costs_no_message(files: Files) -> None:
    HistoryStore(files).add([said("a")])
    files.write(paths.HISTORY, b'{"messages": 5}')
    conversation = HistoryStore(files)
    assert conversation.add([said("a"), said("b")]) == [said("b")]
    assert transcript(files) == ["a", "b"]


@pytest.mark.parametrize("operation", ["create", "write", "sync", "sync_dir", "rename"])
def test_a_refusing_disk_neither_loses_nor_doubles(
    files: Files, disk: MemoryDisk, operation: str
) -> None:
    conversation = HistoryStore(files)
    conversation.add([said("zero", NOW - timedelta(days=1))])
    for skip in range(6):
        count = [0]

        def fail(
            _n: int, step: DiskStep, count: list[int] = count, skip: int = skip
        ) -> OSError | None:
            if step.operation != operation:
                return None
            count[0] += 1
            return OSError(errno.EIO, "failed") if count[0] == skip + 1 else None

        disk.fail = fail
        messages = [said(f"{operation}{skip}"), said(f"{operation}{skip}b")]
        try:
            conversation.add(messages)
        except StorageError:
            disk.fail = None
            conversation.add(messages)
        disk.fail = None
    expected = [f"{operation}{n}{b}" for n in range(6) for b in ("", "b")]
    assert transcript(files) == ["zero", *expected]
    assert [message.id for message in conversation.messages] == ["zero", *expected]
    assert [message.id for message in HistoryStore(files).messages] == ["zero", *expected]


def test_the_working_set_forgets_archived_messages_first_and_no_other(files: Files) -> None:
    conversation = HistoryStore(files)
    old = [said(f"old{n:03}", archived=n % 2 == 0) for n in range(HistoryCaps().soft)]
    conversation.add(old)
    conversation.add([said("new1"), said("new2"), said("new3", archived="pending")])
    kept = [message.id for message in conversation.messages]
    assert len(kept) == HistoryCaps().soft
    assert kept[:3] == ["old001", "old003", "old005"]
    assert kept[-3:] == ["new1", "new2", "new3"]
    assert len(transcript(files)) == HistoryCaps().soft + 3


# ---- pages -------------------------------------------------------------------------------


def filled(files: Files, per_day: list[int]) -> list[str]:
    """A transcript with so many messages on each day; gives all ids, oldest first."""
    ids: list[str] = []
    for day, count in enumerate(per_day):
        at = NOW + timedelta(days=day)
        for number in range(count):
            ids.append(f"d{day}-{number}")
            files.append(paths.transcript(at.date()), said(ids[-1], at).to_dict(), sync=False)
    return ids


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(st.integers(0, 7), max_size=6), st.integers(1, 9))
def test_all_pages_together_are_the_transcript(per_day: list[int], limit: int) -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    ids = filled(files, per_day)
    found: list[str] = []
    cursor = None
    for _ in range(100):
        got = page(files, cursor, limit)
        assert len(got.messages) <= limit
        found = [message.id for message in got.messages] + found
        cursor = got.before
        if cursor is None:
            break
        assert len(got.messages) == limit
    assert found == ids


def test_a_cursor_holds_while_new_messages_come(files: Files) -> None:
    ids = filled(files, [6])
    first = page(files, limit=2)
    files.append(paths.transcript(NOW.date()), said("late").to_dict())
    second = page(files, first.before, limit=2)
    assert [message.id for message in second.messages] == ids[2:4]


@pytest.mark.parametrize("messages", [2_000, 20_000])
def test_the_newest_page_costs_the_same_however_long_the_day_is(
    files: Files, disk: MemoryDisk, messages: int
) -> None:
    line = dump_line(said("m").to_dict())
    disk.append_line(paths.transcript(NOW.date()), line * messages, sync=False)
    taken: list[int] = []
    plain_read = disk.read

    def counted(path: str, **where: Any) -> bytes:
        taken.append(len(plain_read(path, **where)))
        return plain_read(path, **where)

    disk.read = counted  # pyright: ignore[reportAttributeAccessIssue]
    assert len(page(files, limit=20).messages) == 20
    assert sum(taken) <= 2**16


def test_lines_that_are_no_message_are_left_out(files: Files) -> None:
    path = paths.transcript(NOW.date())
    files.append(path, {"id": "../x", "role": "user"})
    files.append(path, said("a").to_dict())
    files.append(path, {"role": "pirate"})
    assert [message.id for message in page(files).messages] == ["a"]


@pytest.mark.parametrize("cursor", ["", "x", "2026-12-01", "2026-12-01:x", "../../etc:0", ":5"])
def test_a_cursor_that_is_none_of_ours_is_refused(files: Files, cursor: str) -> None:
    with pytest.raises(BadInput, match="before: expected a cursor"):
        page(files, cursor)


# ---- what is archived --------------------------------------------------------------------


def test_fields_of_messages_are_changed_all_at_once(files: Files) -> None:
    conversation = HistoryStore(files)
    conversation.add([said("a"), said("b"), said("c")])
    writes = len(_writes(files))
    marked: dict[str, object] = {"archived": "pending", "archive_task": "task-1"}
    assert conversation.change({"a": marked, "c": marked, "gone": marked}) == 2
    assert len(_writes(files)) == writes + 1
    for one in (conversation, HistoryStore(files)):
        assert [(m.archived, m.archive_task) for m in one.messages] == [
            ("pending", "task-1"),
            (False, None),
            ("pending", "task-1"),
        ]
    assert conversation.change({"gone": marked}) == 0
    assert len(_writes(files)) == writes + 1, "nothing was to be changed"


def _writes(files: Files) -> list[DiskStep]:
    disk = files.fs
    assert isinstance(disk, MemoryDisk)
    return [s for s in disk.log if s.operation == "rename" and paths.HISTORY in str(s)]


def test_what_becomes_archived_beyond_the_cap_leaves_at_once(files: Files) -> None:
    conversation = HistoryStore(files)
    conversation.caps = HistoryCaps(soft=2)
    conversation.add([said("a"), said("b"), said("c"), said("d")])
    assert not conversation.trim()
    conversation.change({id_: {"archived": True} for id_ in ("b", "c", "d")})
    assert [m.id for m in conversation.messages] == ["a", "d"]
    assert not conversation.trim()
    assert transcript(files) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        ([said("a", archived=True), said("b")], ["a", "b"]),
        ([said("a", archived=True), said("b", text="x" * 9000)], ["b"]),
        ([said("a", archived=True, text="字" * 3000), said("b", archived=True)], ["b"]),
        ([said("a", text="x" * 9000), said("b", archived="pending", text="x" * 9000)], ["a", "b"]),
    ],
)
def test_archived_messages_make_room_by_their_size(
    messages: list[Message], kept: list[str]
) -> None:
    left = history.capped(messages, HistoryCaps(hard_bytes=9000))
    assert [message.id for message in left] == kept


@pytest.mark.parametrize(("count", "is_over"), [(300, False), (301, True)])
def test_an_overflow_is_what_can_not_be_dropped(files: Files, count: int, *, is_over: bool) -> None:
    conversation = HistoryStore(files)
    conversation.add([said(f"m{n}") for n in range(count)])
    assert conversation.is_over() is is_over
    assert len(conversation.messages) == count


def test_unarchived_messages_outlive_the_limit_of_other_records(files: Files) -> None:
    conversation = HistoryStore(files)
    conversation.add([said(f"m{n}", text="字" * 200_000) for n in range(30)])
    data = files.read(paths.HISTORY)
    assert data is not None
    assert len(data) > MAX_RECORD_BYTES
    assert [m.id for m in HistoryStore(files).messages] == [f"m{n}" for n in range(30)]
    assert files.names(paths.CORRUPT) == []
    files.write(paths.HISTORY, data[:-1000])
    assert HistoryStore(files).messages == []
    assert len(files.names(paths.CORRUPT)) == 1, "torn: into quarantine, as ever"
