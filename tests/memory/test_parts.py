"""A long day of the transcript is indexed in parts; only its tail is read again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimikit.memory import documents
from mimikit.memory.search import MemorySearch
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import Message
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
def test_incremental_hits_equal_those_of_a_new_search(is_refreshed: bool) -> None:
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
def test_a_hit_has_its_file_and_line() -> None:
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


def test_only_day_files_of_the_history_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    files, _ = opened()
    for name in ("x", "2026-13-01", "2026-01-28-copy", "20260128", "2026-W05-3"):
        files.write(f"{paths.TRANSCRIPT}/{name}.jsonl", line(0), sync=False)
    assert found(searching(files), "walrus") == []
    files.write(DAY, line(0), sync=False)
    assert len(found(searching(files), "walrus")) == 1
