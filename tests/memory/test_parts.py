"""A long day of the conversation is searched in parts: only its tail is read as it grows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.memory import documents, passages
from mimikit.memory.search import MemorySearch
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import Message
from mimikit.protocol.records import MAX_RECORD_BYTES
from tests.support.memory_disk import MemoryDisk
from tests.support.twins import FakeClock

NOW = datetime(2026, 1, 28, 9, tzinfo=UTC)
DAY = paths.transcript(NOW.date())
WORDS = ("walrus", "copper", "garden", "violin", "harbour", "lantern", "meadow", "thunder")


def line(number: int, word: int = 0) -> bytes:
    text = (
        f"{WORDS[(number + word) % len(WORDS)]} number {number} {WORDS[number // 8 % len(WORDS)]}"
    )
    at = NOW + timedelta(seconds=number)
    return dump_line(Message(id=f"m{number}", role="user", text=text, created_at=at).to_dict())


def opened() -> tuple[Files, MemoryDisk]:
    disk = MemoryDisk()
    files = Files(disk)
    files.make_folders()
    return files, disk


def searching(files: Files) -> MemorySearch:
    return MemorySearch(files, workspace=None, index=None, zone=UTC, clock=FakeClock(NOW))


def found(search: MemorySearch, query: str) -> list[tuple[str, int, str | None, str]]:
    hits = search.find(query, limit=1000)
    return sorted((hit.source, hit.line, hit.message_id, hit.text) for hit in hits)


@pytest.fixture
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PART_BYTES", 700)


Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["say", "say", "say", "tear", "edit", "cut", "clear"]), st.integers(0, 12)
    ),
    max_size=12,
)


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("is_refreshed", [False, True])
def test_hits_are_those_of_a_search_that_is_made_anew(is_refreshed: bool) -> None:
    @settings(max_examples=30, deadline=None)
    @given(STEPS)
    def check(steps: list[Step]) -> None:
        files, disk = opened()
        search = searching(files)
        number = 0
        for step, many in steps:
            data = files.read(DAY) or b""
            if step == "say":
                said = b"".join(line(number + more) for more in range(many))
                number += many
                disk.append_line(DAY, said, sync=False)
            elif step == "tear":
                disk.append_line(DAY, line(number)[:9], sync=False)
            elif step == "edit":  # in place: another word early in the day, as long as the old one
                files.write(DAY, data.replace(b"copper", b"silver", many))
            elif step == "cut":
                files.write(DAY, b"".join(data.splitlines(keepends=True)[many:]))
            else:
                files.write(DAY, b"")
            anew = searching(files)
            if is_refreshed:
                search.refresh()
                anew.refresh()
            for query in ("walrus", "silver", "number 7"):
                assert found(search, query) == found(anew, query)

    check()


@pytest.mark.usefixtures("short_parts")
def test_a_hit_tells_the_file_and_the_line_it_stands_on() -> None:
    files, disk = opened()
    disk.append_line(DAY, b"".join(map(line, range(60))), sync=False)
    for number in (0, 7, 31, 59):
        (hit,) = [
            hit
            for hit in searching(files).find(f"number {number}")
            if hit.message_id == f"m{number}"
        ]
        assert (hit.source, hit.line, hit.kind) == (DAY, number + 1, "transcript")
        assert (files.read(DAY) or b"").splitlines()[hit.line - 1] + b"\n" == line(number)


@pytest.mark.parametrize("messages", [2_000, 20_000])
def test_a_message_more_costs_the_same_however_long_the_day_is(
    messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, disk = opened()
    disk.append_line(DAY, b"".join(map(line, range(messages))), sync=False)
    search = searching(files)
    search.refresh()
    read: list[int] = []
    cut: list[int] = []
    plain_read, plain_cut = disk.read, passages.of_file

    def counted(path: str, **where: Any) -> bytes:
        read.append(len(plain_read(path, **where)))
        return plain_read(path, **where)

    def counted_cut(path: str, data: bytes, zone: Any) -> list[passages.Passage]:
        cut.append(len(data))
        return plain_cut(path, data, zone)

    monkeypatch.setattr(disk, "read", counted)
    monkeypatch.setattr(passages, "of_file", counted_cut)
    disk.append_line(DAY, line(messages), sync=False)
    assert f"m{messages}" in [hit.message_id for hit in search.find(f"number {messages}")]
    assert sum(read) <= 8 * documents.PART_BYTES
    assert sum(cut) <= 2 * documents.PART_BYTES
    assert search.status().files == 1


def test_a_day_longer_than_any_other_file_may_be_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "MAX_FILE_BYTES", 50_000)
    files, disk = opened()
    disk.append_line(DAY, b"".join(map(line, range(1_000))), sync=False)
    stat = files.stat(DAY)
    assert stat is not None
    assert stat.size > documents.MAX_FILE_BYTES
    assert {hit.message_id for hit in searching(files).find("number 7")} >= {"m7"}


def test_a_huge_line_costs_no_more_than_a_record_and_hides_nothing_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files, _ = opened()
    whole = b"".join(line(number) for number in range(400))
    files.write(DAY, whole + b"\0" * (3 * MAX_RECORD_BYTES), sync=False)
    asked: list[int] = []
    part = files.part

    def counted(path: str, offset: int, limit: int) -> bytes:
        asked.append(limit)
        return part(path, offset, limit)

    monkeypatch.setattr(files, "part", counted)
    search = searching(files)
    assert found(search, "number 399")
    assert max(asked) <= MAX_RECORD_BYTES + documents.PART_BYTES
    assert sum(asked) <= 6 * MAX_RECORD_BYTES
    asked.clear()
    assert found(search, "number 3")
    assert sum(asked) == 0, "what has not changed is not read again"


def test_only_days_are_looked_at_in_the_history(monkeypatch: pytest.MonkeyPatch) -> None:
    files, _ = opened()
    for name in ("x", "2026-13-01", "2026-01-28-copy", "20260128", "2026-W05-3"):
        files.write(f"{paths.TRANSCRIPT}/{name}.jsonl", line(0), sync=False)
    assert found(searching(files), "walrus") == []
    files.write(DAY, line(0), sync=False)
    assert len(found(searching(files), "walrus")) == 1


def test_of_an_endless_day_only_so_much_is_searched(
    short_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_DAY_BYTES", 20_000)
    files, _ = opened()
    files.write(DAY, b"".join(line(number) for number in range(2000)), sync=False)
    numbers = {int(hit[2][1:]) for hit in found(searching(files), "number") if hit[2]}
    assert 0 in numbers
    assert max(numbers) < 400
