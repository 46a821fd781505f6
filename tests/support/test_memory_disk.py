"""MemoryDisk shows what a crash or power cut leaves: careless writes are caught."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.memory_disk import Crash, MemoryDisk

OLD, NEW = b'{"text": "old"}', b'{"text": "newer"}'
Protocol = Callable[[MemoryDisk], None]


def careful(disk: MemoryDisk) -> None:
    disk.write_new("a/.tmp", NEW, sync=True)
    disk.rename("a/.tmp", "a/x")
    disk.sync_dir("a")


def without_flush_of_the_file(disk: MemoryDisk) -> None:
    disk.write_new("a/.tmp", NEW, sync=False)
    disk.rename("a/.tmp", "a/x")
    disk.sync_dir("a")


def without_flush_of_the_folder(disk: MemoryDisk) -> None:
    disk.write_new("a/.tmp", NEW, sync=True)
    disk.rename("a/.tmp", "a/x")


def in_place(disk: MemoryDisk) -> None:
    disk.unlink("a/x")
    disk.write_new("a/x", NEW, sync=True)
    disk.sync_dir("a")


def by_way_of_a_gap(disk: MemoryDisk) -> None:
    disk.write_new("a/.tmp", NEW, sync=True)
    disk.unlink("a/x")
    disk.rename("a/.tmp", "a/x")
    disk.sync_dir("a")


def prepared() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dir("a")
    disk.write_new("a/x", OLD, sync=True)
    disk.sync_dir("a")
    return disk.after_kill()


def crashed(protocol: Protocol, at: int, torn: float = 0.0) -> MemoryDisk | None:
    """The disk after a crash before change `at`; None when the protocol makes fewer."""
    disk = prepared()
    disk.crash_at, disk.torn = at, torn
    try:
        protocol(disk)
    except Crash:
        return disk
    return None


def seen_after(protocol: Protocol, *, power: bool) -> set[bytes | None]:
    """What may stand in the file after a crash anywhere, torn writes included."""
    found: set[bytes | None] = set()
    for torn in (0.0, 0.5, 1.0):
        at = 0
        while (disk := crashed(protocol, at, torn)) is not None:
            images = list(disk.after_power_loss()) if power else [disk.after_kill()]
            found |= {image.contents().get("a/x") for image in images}
            at += 1
    return found


def lasting(protocol: Protocol) -> set[bytes | None]:
    """What may stand there when the power fails after the protocol said that it is done."""
    disk = prepared()
    protocol(disk)
    return {image.contents().get("a/x") for image in disk.after_power_loss()}


def test_a_careful_write_is_whole_whenever_it_crashes() -> None:
    assert seen_after(careful, power=False) == {OLD, NEW}
    assert seen_after(careful, power=True) == {OLD, NEW}
    assert lasting(careful) == {NEW}


def test_a_file_that_is_not_flushed_is_caught_torn_and_empty() -> None:
    assert {b"", NEW[: len(NEW) // 2]} <= seen_after(without_flush_of_the_file, power=True)
    assert b"" in lasting(without_flush_of_the_file)
    assert seen_after(without_flush_of_the_file, power=False) == {OLD, NEW}


def test_a_folder_that_is_not_flushed_is_caught_losing_what_was_said_to_be_there() -> None:
    assert lasting(without_flush_of_the_folder) == {OLD, NEW}


def test_a_write_in_place_is_caught_torn_even_by_a_kill() -> None:
    assert {None, b"", NEW[: len(NEW) // 2]} <= seen_after(in_place, power=False)


def test_a_gap_between_old_and_new_is_caught_even_by_a_kill() -> None:
    assert None in seen_after(by_way_of_a_gap, power=False)


def test_after_a_crash_nothing_can_be_tidied_up() -> None:
    disk = prepared()
    disk.crash_at = 1
    with pytest.raises(Crash):
        try:
            careful(disk)
        finally:
            with pytest.raises(Crash):
                disk.unlink("a/.tmp")
    assert "a/.tmp" in disk.after_kill().contents()
    for operation in (
        lambda: disk.read("a/x"),
        lambda: disk.stat("a/x"),
        lambda: disk.list_dir("a"),
        lambda: disk.lock("a.lock"),
        lambda: disk.append_line("log", b"x\n", sync=True),
    ):
        with pytest.raises(Crash):
            operation()


def test_an_unflushed_line_may_be_lost_whole_or_in_part_but_never_the_ones_before() -> None:
    disk = prepared()
    disk.append_line("a/log", b"one\n", sync=True)
    disk.sync_dir("a")
    disk.append_line("a/log", b"two\n", sync=False)
    seen = {image.contents().get("a/log") for image in disk.after_power_loss()}
    assert seen == {b"one\n", b"one\ntw", b"one\ntwo\n"}


def test_names_may_survive_in_any_combination_until_their_folder_is_flushed() -> None:
    disk = prepared()
    for name in "pqr":
        disk.write_new(f"a/{name}", name.encode(), sync=True)
    seen = {
        frozenset(path for path in image.contents() if path in ("a/p", "a/q", "a/r"))
        for image in disk.after_power_loss()
    }
    assert {frozenset(), frozenset({"a/p"}), frozenset({"a/r"}), frozenset({"a/p", "a/r"})} <= seen
    disk.sync_dir("a")
    assert {len(image.contents()) for image in disk.after_power_loss()} == {4}


def test_a_move_between_folders_never_shows_the_file_twice_or_not_at_all() -> None:
    disk = prepared()
    disk.make_dir("b")
    disk.rename("a/x", "b/x")
    for image in disk.after_power_loss():
        assert len(image.contents()) == 1
    disk.sync_dir("b")
    assert {frozenset(image.contents()) for image in disk.after_power_loss()} == {
        frozenset({"b/x"})
    }
