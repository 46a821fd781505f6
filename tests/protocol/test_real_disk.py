"""The real disk: links, pipes and devices are never followed, nothing leaks, short writes go on."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mimikit.errors import StorageError, UnsafeFile
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from tests.support.ordinary_user import as_an_ordinary_user, folder_of_an_ordinary_user

HOLDER = """
import sys
from pathlib import Path
from mimikit.protocol.disk import RealDisk
held = RealDisk(Path(sys.argv[1])).lock("consumer.lock")
sys.stdout.write("held\\n" if held else "refused\\n")
sys.stdout.flush()
sys.stdin.read()
"""


def test_files_and_folders_are_their_owners_alone(real_disk: RealDisk, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        real_disk.make_dir("inbox")
        real_disk.write_new("inbox/a", b"1", sync=True)
        real_disk.append_line("log", b"1\n", sync=True)
        lock = real_disk.lock("a.lock")
    finally:
        os.umask(old)
    assert lock is not None
    lock.release()
    assert stat.S_IMODE((tmp_path / "inbox").stat().st_mode) == 0o700
    for name in ("inbox/a", "log", "a.lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_link_is_neither_read_nor_appended_to(real_disk: RealDisk, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(UnsafeFile, match="expected a plain file"):
        real_disk.read("link")
    with pytest.raises(UnsafeFile):
        real_disk.append_line("link", b"x\n", sync=True)
    with pytest.raises(UnsafeFile):
        real_disk.lock("link")
    with pytest.raises(FileExistsError):
        real_disk.write_new("link", b"x", sync=True)
    assert outside.read_text() == "secret"


def test_a_link_in_place_of_a_folder_is_not_entered(real_disk: RealDisk, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.mkdir()
    (away / "a").write_text("secret")
    (tmp_path / "inbox").symlink_to(away)
    with pytest.raises(OSError, match="inbox"):
        real_disk.read("inbox/a")
    with pytest.raises(OSError, match="inbox"):
        real_disk.list_dir("inbox")
    with pytest.raises(OSError, match="inbox"):
        real_disk.write_new("inbox/b", b"x", sync=True)
    assert sorted(path.name for path in away.iterdir()) == ["a"]


def test_a_pipe_is_refused_and_never_waited_for(real_disk: RealDisk, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    outcome: list[type[BaseException]] = []

    def try_all() -> None:
        for operation in (
            lambda: real_disk.read("pipe"),
            lambda: real_disk.append_line("pipe", b"x\n", sync=True),
        ):
            try:
                operation()
            except UnsafeFile as error:
                outcome.append(type(error))

    thread = threading.Thread(target=try_all, daemon=True)
    thread.start()
    thread.join(5)
    assert outcome == [UnsafeFile, UnsafeFile]


def test_a_socket_and_a_device_are_refused(
    real_disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # the whole path may be longer than a socket's can be
        server.bind("s")
        with pytest.raises(UnsafeFile):
            real_disk.read("s")
    (tmp_path / "null").symlink_to("/dev/null")
    with pytest.raises(UnsafeFile):
        real_disk.read("null")
    assert sorted(real_disk.list_dir("")) == [("null", "other"), ("s", "other")]


def test_the_root_may_not_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(NotADirectoryError):
        RealDisk(tmp_path / "link")


def test_short_writes_go_on_to_the_end(
    real_disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:3]))
    real_disk.write_new("a", b"0123456789", sync=True)
    assert real_disk.read("a") == b"0123456789"


def test_a_line_that_could_not_be_written_whole_is_an_error_and_healed_later(
    real_disk: RealDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:3]))
        with pytest.raises(OSError, match="short write"):
            real_disk.append_line("log", b'{"a":1}\n', sync=True)
    offset = real_disk.append_line("log", b'{"b":2}\n', sync=True)
    assert real_disk.read("log") == b'{"a\n{"b":2}\n'
    assert offset == 4


def test_what_stands_at_a_folders_path_is_used_not_what_was_moved_away(
    real_disk: RealDisk, tmp_path: Path
) -> None:
    for folder in ("memory", "memory/summary"):
        real_disk.make_dir(folder)
    held = real_disk.folder_fd("memory/summary")
    (tmp_path / "memory").rename(tmp_path / "x")
    for use in (
        lambda: real_disk.write_new("memory/a", b"1", sync=True),
        lambda: real_disk.append_line("memory/summary/log", b"1\n", sync=True),
        lambda: real_disk.list_dir("memory"),
    ):
        with pytest.raises(FileNotFoundError):
            use()
    assert real_disk.stat("memory/a") is None
    (tmp_path / "memory" / "summary").mkdir(parents=True)
    real_disk.write_new("memory/a", b"1", sync=True)
    real_disk.append_line("memory/summary/log", b"1\n", sync=True)
    assert real_disk.folder_fd("memory/summary") == held, "who uses it meanwhile has the new one"
    assert sorted(path.name for path in (tmp_path / "memory").rglob("*")) == ["a", "log", "summary"]
    assert [path.name for path in (tmp_path / "x").rglob("*")] == ["summary"]


def test_a_link_that_takes_a_folders_place_is_not_followed(
    real_disk: RealDisk, tmp_path: Path
) -> None:
    real_disk.make_dir("inbox")
    real_disk.write_new("inbox/a", b"1", sync=True)
    (tmp_path / "inbox").rename(tmp_path / "x")
    (tmp_path / "inbox").symlink_to(tmp_path / "x")
    with pytest.raises(NotADirectoryError):
        real_disk.write_new("inbox/b", b"2", sync=True)
    with pytest.raises(NotADirectoryError):
        real_disk.read("inbox/a")


def test_a_root_that_was_moved_removed_or_replaced_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "state"
    root.mkdir()
    disk = RealDisk(root)
    assert disk.is_in_place()
    root.rename(tmp_path / "x")
    assert not disk.is_in_place()
    root.mkdir()
    assert not disk.is_in_place()
    root.rmdir()
    root.symlink_to(tmp_path / "x")
    assert not disk.is_in_place()
    root.unlink()
    (tmp_path / "x").rename(root)
    assert disk.is_in_place()


def test_no_descriptor_is_left_open_whatever_fails(real_disk: RealDisk, tmp_path: Path) -> None:
    real_disk.make_dir("inbox")
    (tmp_path / "inbox" / "link").symlink_to("nowhere")
    real_disk.list_dir("inbox")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(100):
        real_disk.write_new(f"inbox/{number}", b"x", sync=False)
        real_disk.append_line("log", b"x\n", sync=False)
        real_disk.list_dir("inbox")
        lock = real_disk.lock("a.lock")
        assert lock is not None
        assert real_disk.lock("a.lock") is None
        lock.release()
        for failing in (
            lambda: real_disk.read("inbox/link"),
            lambda: real_disk.read("inbox/none"),
            lambda: real_disk.write_new("inbox/0", b"x", sync=True),
            lambda: real_disk.append_line("inbox", b"x\n", sync=True),
        ):
            with pytest.raises((OSError, UnsafeFile)):
                failing()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_lock_is_free_as_soon_as_its_holder_is_killed(
    real_disk: RealDisk, tmp_path: Path
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert real_disk.lock("consumer.lock") is None
        holder.kill()
        holder.wait()
    lock = real_disk.lock("consumer.lock")
    assert lock is not None
    lock.release()


def test_a_program_started_meanwhile_does_not_keep_the_lock(real_disk: RealDisk) -> None:
    lock = real_disk.lock("consumer.lock")
    assert lock is not None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        again = real_disk.lock("consumer.lock")
        assert again is not None
        again.release()
        assert child.stdin is not None
        child.stdin.close()


def test_a_lock_tells_what_is_locked(real_disk: RealDisk, tmp_path: Path) -> None:
    path = "consumer.lock"
    lock = real_disk.lock(path)
    assert lock is not None
    assert lock.inode == (tmp_path / path).stat().st_ino
    assert RealDisk(tmp_path).lock(path) is None
    lock.release()
    again = RealDisk(tmp_path).lock(path)
    assert again is not None
    again.release()


@pytest.mark.parametrize("closed", ["memory", "turns", "commands"])
def test_a_folder_that_is_closed_is_named(closed: str) -> None:
    def test() -> None:
        with contextlib.closing(RealDisk(root)) as disk:
            Files(disk).make_folders()
        (root / closed).chmod(0)
        with contextlib.closing(RealDisk(root)) as disk, pytest.raises(StorageError) as caught:
            Files(disk).make_folders()
        assert str(caught.value).startswith(f"{closed}/")
        assert "permission denied" in str(caught.value)

    with folder_of_an_ordinary_user() as root:
        as_an_ordinary_user(test)


def test_a_folder_listed_by_several_threads_at_once_is_whole_for_each(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(300):
        (tmp_path / "many" / f"{number}.json").touch()
    disk = RealDisk(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        listings = list(pool.map(lambda _: len(disk.list_dir("many")), range(40)))
    assert listings == [300] * 40
