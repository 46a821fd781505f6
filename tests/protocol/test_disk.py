"""One suite for both disks: what one does, the other does, errors included."""

from __future__ import annotations

import errno

import pytest

from mimikit.errors import UnsafeFile
from mimikit.protocol.disk import FileSystem

BAD_NAMES = ["", ".", "..", "inbox/..", "inbox/.", "../x", "a\x00b", "no/such/folder"]


@pytest.fixture(autouse=True)
def folders(disk: FileSystem) -> None:
    disk.make_dir("inbox")
    disk.make_dir("turns")
    disk.make_dir("turns/new")


def test_a_file_that_exists_is_not_created_again(disk: FileSystem) -> None:
    disk.write_new("inbox/a.json", b"first", sync=True)
    with pytest.raises(FileExistsError):
        disk.write_new("inbox/a.json", b"second", sync=True)
    assert disk.read("inbox/a.json") == b"first"


def test_a_folder_needs_the_one_above(disk: FileSystem) -> None:
    with pytest.raises(FileNotFoundError):
        disk.make_dir("no/such")


def test_a_listing_tells_files_from_folders(disk: FileSystem) -> None:
    disk.write_new("turns/a.json", b"1", sync=True)
    assert sorted(disk.list_dir("turns")) == [("a.json", "file"), ("new", "folder")]
    assert sorted(disk.list_dir("")) == [("inbox", "folder"), ("turns", "folder")]
    assert disk.list_dir("inbox") == []


def test_stat_tells_kind_size_and_a_new_inode_after_replacement(disk: FileSystem) -> None:
    disk.write_new("inbox/a.json", b"12345", sync=True)
    disk.write_new("inbox/b.json", b"1", sync=True)
    before = disk.stat("inbox/a.json")
    assert before is not None
    assert (before.kind, before.size) == ("file", 5)
    disk.rename("inbox/b.json", "inbox/a.json")
    after = disk.stat("inbox/a.json")
    assert after is not None
    assert after.inode != before.inode
    folder = disk.stat("inbox")
    assert folder is not None
    assert folder.kind == "folder"


@pytest.mark.parametrize(
    "operation",
    [
        ("read", "inbox/none"),
        ("read", "nowhere/none"),
        ("unlink", "inbox/none"),
        ("rename", "inbox/none", "inbox/other"),
        ("rename_exclusive", "inbox/none", "inbox/other"),
        ("write_new", "nowhere/a", b""),
        ("append_line", "nowhere/a", b"x"),
        ("list_dir", "nowhere"),
        ("sync_dir", "nowhere"),
        ("sync_file", "inbox/none"),
    ],
    ids=lambda operation: " ".join(map(str, operation)),
)
def test_what_is_missing_is_reported_as_missing(disk: FileSystem, operation) -> None:
    name, *arguments = operation
    keywords = {"sync": True} if name in ("write_new", "append_line") else {}
    with pytest.raises(FileNotFoundError) as caught:
        getattr(disk, name)(*arguments, **keywords)
    assert caught.value.errno == errno.ENOENT


def test_moving_into_a_missing_folder_changes_nothing(disk: FileSystem) -> None:
    disk.write_new("inbox/a.json", b"1", sync=True)
    with pytest.raises(FileNotFoundError):
        disk.rename("inbox/a.json", "nowhere/a.json")
    assert disk.read("inbox/a.json") == b"1"


def test_rename_replaces_what_is_there(disk: FileSystem) -> None:
    disk.write_new("inbox/a.json", b"a", sync=True)
    disk.write_new("turns/new/b.json", b"b", sync=True)
    disk.rename("inbox/a.json", "turns/new/b.json")
    assert disk.read("turns/new/b.json") == b"a"
    assert disk.stat("inbox/a.json") is None


def test_an_exclusive_rename_never_replaces(disk: FileSystem) -> None:
    disk.write_new("inbox/a.json", b"a", sync=True)
    disk.write_new("inbox/b.json", b"b", sync=True)
    with pytest.raises(FileExistsError):
        disk.rename_exclusive("inbox/a.json", "inbox/b.json")
    assert disk.read("inbox/a.json") == b"a"
    assert disk.read("inbox/b.json") == b"b"


def test_lines_are_appended_and_tell_where_they_begin(disk: FileSystem) -> None:
    assert disk.append_line("log.jsonl", b"one\n", sync=True) == 0
    assert disk.append_line("log.jsonl", b"two\n", sync=False) == 4
    assert disk.read("log.jsonl") == b"one\ntwo\n"


def test_a_line_after_a_torn_one_begins_on_a_new_line(disk: FileSystem) -> None:
    disk.write_new("log.jsonl", b'one\n{"torn', sync=True)
    assert disk.append_line("log.jsonl", b"two\n", sync=True) == 11
    assert disk.read("log.jsonl") == b'one\n{"torn\ntwo\n'


def test_a_lock_is_held_by_one(disk: FileSystem) -> None:
    first = disk.lock("consumer.lock")
    assert first is not None
    assert disk.lock("consumer.lock") is None
    other = disk.lock("memory.lock")
    assert other is not None
    first.release()
    first.release()
    again = disk.lock("consumer.lock")
    assert again is not None
    again.release()
    other.release()


@pytest.mark.parametrize("path", BAD_NAMES)
def test_no_name_leads_out_of_the_folder(disk: FileSystem, path: str) -> None:
    for operation in (
        lambda: disk.read(path),
        lambda: disk.write_new(path, b"", sync=True),
        lambda: disk.append_line(path, b"\n", sync=True),
        lambda: disk.unlink(path),
    ):
        with pytest.raises((UnsafeFile, FileNotFoundError, FileExistsError, IsADirectoryError)):
            operation()
