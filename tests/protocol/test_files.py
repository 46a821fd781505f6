"""The room that writes: whole or not at all, once or not at all, and never silently wrong."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from mimikit.errors import BadRecord, StorageError, UnsafeFile
from mimikit.protocol import ids, paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem
from mimikit.protocol.records import MAX_RECORD_BYTES, decode
from tests.support.memory_disk import Crash, DiskStep, MemoryDisk

GOOD = b'{"id": "m1", "createdAt": "2026-12-01T09:00:00.000Z", "text": "hello"}'


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def files(disk: MemoryDisk) -> Files:
    made = Files(disk)
    made.make_folders()
    disk.log.clear()
    return made


def refusing(disk: MemoryDisk, operation: str, code: int = errno.ENOSPC, times: int = 1) -> None:
    """Let the next `times` changes of this kind fail."""
    left = [times]

    def fail(_number: int, step: DiskStep) -> OSError | None:
        if step.operation != operation or not left[0]:
            return None
        left[0] -= 1
        return OSError(code, os.strerror(code), step.path)

    disk.fail = fail


def names(disk: MemoryDisk, folder: str) -> list[str]:
    return sorted(name for name, _ in disk.list_dir(folder))


# ---- whole files -------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_the_old_or_the_new_wherever_the_process_dies(durable: bool) -> None:
    for torn in (0.0, 0.5, 1.0):
        for at in range(20):
            disk = MemoryDisk()
            files = Files(disk, durable=durable)
            files.make_folders()
            files.write(paths.HISTORY, b"old")
            disk.crash_at, disk.torn = len(disk.log) + at, torn
            try:
                files.write(paths.HISTORY, b"newer")
            except Crash:
                images = [disk.after_kill(), *(disk.after_power_loss() if durable else ())]
                assert {image.contents()[paths.HISTORY] for image in images} <= {b"old", b"newer"}
            else:
                assert disk.read(paths.HISTORY) == b"newer"
                return
    raise AssertionError("expected the write to end within 20 changes")


def test_fast_durability_keeps_the_order_and_skips_the_flushes(disk: MemoryDisk) -> None:
    files = Files(disk, durable=False)
    files.make_folders()
    disk.log.clear()
    files.write(paths.HISTORY, b"x")
    files.append(paths.LOG, {"a": 1})
    files.move(paths.HISTORY, paths.RUNTIME)
    files.remove(paths.RUNTIME)
    assert not {"sync", "sync_dir"} & {step.operation for step in disk.log}


@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename"])
def test_a_refused_write_leaves_the_old_file_and_no_temp(
    files: Files, disk: MemoryDisk, operation: str
) -> None:
    files.write(paths.HISTORY, b"old")
    refusing(disk, operation)
    with pytest.raises(StorageError, match=r"history\.json: the disk is full"):
        files.write(paths.HISTORY, b"newer")
    assert disk.read(paths.HISTORY) == b"old"
    assert [name for name in names(disk, "") if name.startswith(".tmp-")] == []


def test_a_flush_that_failed_is_not_repeated_on_the_same_file(
    files: Files, disk: MemoryDisk
) -> None:
    flushed: list[str] = []

    def fail(_number: int, step: DiskStep) -> OSError | None:
        if step.operation == "sync":
            flushed.append(step.path)
            return OSError(errno.EIO, "failed") if len(flushed) == 1 else None
        return None

    disk.fail = fail
    with pytest.raises(StorageError):
        files.write(paths.HISTORY, b"x")
    files.write(paths.HISTORY, b"x")
    assert len(flushed) == len(set(flushed)) == 2


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "the disk is full, or can hold no more files; free some space or remove"),
        (errno.EROFS, "the disk is read-only; make it writable"),
        (errno.EIO, "the disk failed to read or write; check it"),
        (errno.EMFILE, "too many open files"),
        (errno.EACCES, "permission denied"),
    ],
)
def test_an_error_of_the_disk_names_the_place_and_the_remedy(
    files: Files, disk: MemoryDisk, code: int, words: str
) -> None:
    refusing(disk, "create", code)
    with pytest.raises(StorageError) as caught:
        files.create("inbox/m1.json", b"x")
    assert str(caught.value).startswith("inbox/m1.json: ")
    assert words in str(caught.value)
    assert not caught.value.permanent


# ---- once --------------------------------------------------------------------------------


def test_of_two_creators_at_once_one_wins(files: Files, disk: MemoryDisk) -> None:
    other = Files(disk)
    publish = disk.rename_exclusive

    def late(source: str, target: str) -> None:
        disk.rename_exclusive = publish
        assert other.create("inbox/m1.json", b"other")
        publish(source, target)

    disk.rename_exclusive = late
    assert not files.create("inbox/m1.json", b"mine")
    assert disk.read("inbox/m1.json") == b"other"
    assert names(disk, "inbox") == ["m1.json"]


def test_a_repeated_creation_makes_sure_of_the_one_that_died_before_its_flush(
    disk: MemoryDisk, files: Files
) -> None:
    disk.crash_at = 4  # create, write, sync, rename, and not the flush of the folder
    with pytest.raises(Crash):
        files.create("inbox/m1.json", b"x")
    disk.dead, disk.crash_at = False, None  # another process of the same machine goes on
    assert not files.create("inbox/m1.json", b"x")
    assert all("inbox/m1.json" in image.contents() for image in disk.after_power_loss())


# ---- moves -------------------------------------------------------------------------------


def test_a_claim_of_what_is_gone_says_so(files: Files) -> None:
    files.create("worker/queue/t.json", b"x")
    assert files.move("worker/queue/t.json", "worker/running/t.json")
    assert not files.move("worker/queue/t.json", "worker/running/t.json")


def test_a_move_whose_flush_fails_is_undone(files: Files, disk: MemoryDisk) -> None:
    files.create("worker/queue/t.json", b"x")
    refusing(disk, "sync_dir")
    with pytest.raises(StorageError):
        files.move("worker/queue/t.json", "worker/running/t.json")
    assert names(disk, "worker/queue") == ["t.json"]
    assert names(disk, "worker/running") == []


def test_a_move_that_can_not_even_be_undone_has_happened(files: Files, disk: MemoryDisk) -> None:
    files.create("worker/queue/t.json", b"x")
    moved: list[str] = []

    def fail(_number: int, step: DiskStep) -> OSError | None:
        moved.append(step.operation)
        return None if moved == ["rename"] else OSError(errno.EIO, "failed")

    disk.fail = fail
    assert files.move("worker/queue/t.json", "worker/running/t.json")
    disk.fail = None
    assert names(disk, "worker/running") == ["t.json"]


def test_a_move_into_a_missing_folder_is_an_error_not_a_lost_race(files: Files) -> None:
    files.create("inbox/m1.json", b"x")
    with pytest.raises(StorageError, match="the folder is gone"):
        files.move("inbox/m1.json", "nowhere/m1.json")


# ---- records -----------------------------------------------------------------------------


def test_listings_leave_out_temps_folders_and_other_suffixes(files: Files) -> None:
    files.create("turns/a.json", b"x")
    files.create("turns/b.started", b"x")
    files.create("turns/.tmp-1-2-3-4.json", b"x")
    assert files.names("turns") == ["a.json"]
    assert files.names("turns", suffix=".started") == ["b.started"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "expected JSON"),
        (b'{"id": "m1", ', "expected JSON"),
        (b'{"id": "m1"}', "createdAt: expected a value, got none"),
        (b'{"id": "../m1", "createdAt": "2026-12-01T09:00:00Z"}', "id: "),
        (b"\xff\xfe", "expected UTF-8"),
    ],
)
def test_what_is_no_record_is_put_aside_unchanged_with_the_reason_beside_it(
    files: Files, disk: MemoryDisk, data: bytes, reason: str
) -> None:
    events: list[tuple[str, dict[str, Any]]] = []
    files.on_event = lambda event, facts: events.append((event, facts))
    files.create("inbox/m1.json", data)
    assert files.load("inbox/m1.json", InboxItem) is None
    kept, why = names(disk, "corrupt")
    assert disk.read(f"corrupt/{kept}") == data
    assert kept.endswith("inbox_m1.json")
    assert why == f"{kept}.reason.txt"
    text = disk.read(f"corrupt/{why}").decode()
    assert text.startswith("inbox/m1.json\n")
    assert reason in text
    assert [event for event, _ in events] == ["quarantined"]
    assert events[0][1]["path"] == "inbox/m1.json"
    assert files.load("inbox/m1.json", InboxItem) is None
    assert len(events) == 1


def test_whoever_only_looks_leaves_a_bad_record_where_it_is(files: Files) -> None:
    files.create("inbox/m1.json", b"{")
    assert files.peek("inbox/m1.json", InboxItem) is None
    assert files.read("inbox/m1.json") == b"{"


@pytest.mark.parametrize("is_closed", [False, True], ids=["a file", "its folder"])
def test_a_file_that_may_not_be_read_is_set_aside_but_a_closed_folder_is_waited_for(
    files: Files, disk: MemoryDisk, monkeypatch: pytest.MonkeyPatch, is_closed: bool
) -> None:
    files.write("inbox/m1.json", GOOD)

    def refuse(path: str, **_more: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    for operation in ("read", "stat") if is_closed else ("read",):
        monkeypatch.setattr(disk, operation, refuse)
    if not is_closed:
        assert files.load("inbox/m1.json", InboxItem) is None
        return
    with pytest.raises(StorageError) as caught:
        files.load("inbox/m1.json", InboxItem)
    assert not isinstance(caught.value, UnsafeFile)
    monkeypatch.undo()
    assert files.load("inbox/m1.json", InboxItem) is not None


def test_a_file_in_quarantine_has_its_reason_wherever_the_process_dies() -> None:
    for at in range(20):
        disk = MemoryDisk()
        files = Files(disk)
        files.make_folders()
        files.create("inbox/m1.json", b"{")
        disk.crash_at = len(disk.log) + at
        try:
            files.load("inbox/m1.json", InboxItem)
        except Crash:
            for image in [disk.after_kill(), *disk.after_power_loss()]:
                found = {name for name, _ in image.list_dir("corrupt")}
                kept = {n for n in found if not n.endswith(".txt") and not n.startswith(".")}
                assert len(kept) + len(names(image, "inbox")) == 1
                assert all(f"{name}.reason.txt" in found for name in kept)
        else:
            return
    raise AssertionError("expected the quarantine to end within 20 changes")


@pytest.mark.parametrize("name", ["名" * 80 + ".json", "a b\n.json", "\udcff.json", "x" * 250])
def test_a_file_of_any_name_can_be_put_aside(tmp_path: Path, name: str) -> None:
    disk = RealDisk(tmp_path)
    files = Files(disk, durable=False)
    files.make_folders()
    (tmp_path / "inbox" / name).write_bytes(b"{")
    files.quarantine(f"inbox/{name}", "no record\udcff")
    assert files.names("inbox", suffix="") == []
    assert len(files.names("corrupt", suffix="")) == 2
    disk.close()


def test_a_link_in_place_of_a_record_is_put_aside_and_not_followed(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    files = Files(disk, durable=False)
    files.make_folders()
    outside = tmp_path / "outside.json"
    outside.write_bytes(GOOD)
    (tmp_path / "inbox" / "m1.json").symlink_to(outside)
    os.mkfifo(tmp_path / "inbox" / "m2.json")
    assert files.load_all("inbox", InboxItem) == []
    assert outside.read_bytes() == GOOD
    kept = [name for name in files.names("corrupt", suffix="") if not name.endswith(".txt")]
    assert len(kept) == 2
    disk.close()


def test_a_record_too_large_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(BadRecord, match="expected at most"):
        decode(b" " * (MAX_RECORD_BYTES + 1), InboxItem)


# ---- lines -------------------------------------------------------------------------------


def test_lines_tell_their_end_and_can_be_read_on_from_there(files: Files) -> None:
    files.append("log.jsonl", {"n": 1})
    files.append("log.jsonl", {"n": 2})
    ends = [(end, line["n"]) for end, line in files.lines("log.jsonl")]
    assert ends == [(8, 1), (16, 2)]
    assert [line["n"] for _, line in files.lines("log.jsonl", offset=8)] == [2]
    assert list(files.lines("none.jsonl")) == []


def test_torn_and_foreign_lines_hide_no_other(files: Files, disk: MemoryDisk) -> None:
    foreign = b'{"n":1}\nnot json\n\n[1]\n{"half\r\x00\xff\n{"n":2}\r\n{"n":3}\n{"n":4'
    disk.write_new("log.jsonl", foreign, sync=True)
    assert [line["n"] for _, line in files.lines("log.jsonl")] == [1, 2, 3]
    files.append("log.jsonl", {"n": 5})
    assert [line["n"] for _, line in files.lines("log.jsonl")] == [1, 2, 3, 5]


def test_lines_within_a_limit_are_the_beginning_only(files: Files) -> None:
    for number in range(1000):
        files.append("log.jsonl", {"n": number}, sync=False)
    seen = [line["n"] for _, line in files.lines("log.jsonl", limit=64)]
    assert seen == list(range(8))


def test_the_first_line_of_a_file_makes_its_name_last(files: Files, disk: MemoryDisk) -> None:
    files.append("tasks/2026-12.jsonl", {"n": 1})
    files.append("tasks/2026-12.jsonl", {"n": 2})
    for image in disk.after_power_loss():
        assert image.contents()["tasks/2026-12.jsonl"] == b'{"n":1}\n{"n":2}\n'


# ---- temps, locks, settling --------------------------------------------------------------


def owned(pid: int, started: str, boot: str) -> str:
    return f"inbox/.tmp-{pid}-{started}-{boot}-0123456789ab"


def test_only_temps_of_the_dead_are_swept(files: Files, disk: MemoryDisk) -> None:
    boot, me = ids.boot_id()[:8], ids.own_start_time()
    kept = owned(os.getpid(), me, boot)
    swept = [
        owned(os.getpid(), "1", boot),  # the number was given to us later
        owned(2**22 + 1, me, boot),  # no such process
        owned(os.getpid(), me, "00000000"),  # another boot, or another machine
        "inbox/.tmp-garbage",
        "inbox/.tmp-x-y-z-w",
    ]
    for path in [kept, *swept]:
        disk.write_new(path, b"half", sync=True)
    disk.write_new("inbox/m1.json", GOOD, sync=True)
    assert files.sweep_temps("inbox") == len(swept)
    assert names(disk, "inbox") == sorted([kept.removeprefix("inbox/"), "m1.json"])


def test_settling_makes_last_what_a_killed_process_had_not_flushed(
    files: Files, disk: MemoryDisk
) -> None:
    disk.append_line("tasks/2026-12.jsonl", b"{}\n", sync=False)
    disk.write_new("inbox/m1.json", GOOD, sync=True)
    files.sync_written([*paths.FOLDERS, paths.ROOT], ["tasks/2026-12.jsonl"])
    assert {image.fingerprint() for image in disk.after_power_loss()} == {disk.fingerprint()}


@pytest.mark.parametrize("blocks", [(3,), (20, 50), (1000,)])
def test_lines_are_read_from_the_end_as_from_the_beginning(
    files: Files, monkeypatch: pytest.MonkeyPatch, blocks: tuple[int, ...]
) -> None:
    for number in range(9):
        files.append(paths.LOG, {"n": number, "even": number % 2 == 0})
        files.fs.append_line(paths.LOG, b"foreign\n", sync=False)
    files.fs.append_line(paths.LOG, b'{"n": "torn', sync=False)
    whole = list(files.lines(paths.LOG))
    monkeypatch.setattr("mimikit.protocol.files._BLOCK_BYTES", blocks)
    assert list(files.lines(paths.LOG)) == whole
    assert list(files.lines(paths.LOG, offset=whole[2][0], limit=50)) == [
        line for line in whole[3:] if line[0] <= whole[2][0] + 50
    ]
    back = list(files.lines_back(paths.LOG))
    assert [line["n"] for _, line in back] == list(range(8, -1, -1))
    for offset, line in back:
        assert next(files.lines(paths.LOG, offset=offset))[1] == line
        assert (
            list(files.lines_back(paths.LOG, upto=offset)) == back[back.index((offset, line)) + 1 :]
        )
    even = files.lines_back(paths.LOG, holding=b'"even":true')
    assert [line["n"] for _, line in even] == [8, 6, 4, 2, 0]
    assert len(list(files.lines_back(paths.LOG, max_bytes=100))) in range(1, 4)
    assert list(files.lines_back("none.jsonl")) == []
