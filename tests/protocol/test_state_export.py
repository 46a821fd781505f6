"""A state folder as a zip, and back: what is in it, what is refused, and what is left untouched."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mimikit.errors import BadInput, Conflict, MimikitError, NewerState, NoRoom, StorageError
from mimikit.protocol import paths, snapshot, state_import
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.snapshot_lock import SnapshotLock
from mimikit.protocol.state_export import FOLDER, MANIFEST, ExportManifest, export_state
from mimikit.protocol.state_import import import_state
from tests.support.flushes import flushes, inodes

NOW = datetime(2026, 11, 26, 9, 30, tzinfo=UTC)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[RealDisk]:
    """A state folder with a little of everything."""
    root = tmp_path / "one" / ".mimikit"
    root.mkdir(parents=True, mode=0o700)
    found = RealDisk(root, is_state=True)
    files = Files(found, durable=False)
    files.make_folders()
    files.write("config.toml", b"")
    files.write(paths.inbox("m1"), b'{"text": "hello"}')
    files.append("history/2026-11-26.jsonl", {"id": "m0"})
    files.write("memory/\u559d\u8336.md", "喝茶".encode())
    files.write("files/" + "0" * 64, os.urandom(3000))
    files.write(paths.TOKEN, b"secret")
    files.write("cache/index", b"x")
    files.write(paths.HEALTH, b"{}")
    files.write(paths.page("p1"), b"{}")
    yield found
    found.close()


def export(disk: RealDisk, target: Path, *, with_secrets: bool = False) -> ExportManifest:
    return export_state(disk, target, NOW, version="0.1.0", with_secrets=with_secrets)


def content(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


EXPORTED = {"config.toml", "inbox/m1.json", "history/2026-11-26.jsonl", "memory/喝茶.md",
            "files/" + "0" * 64}  # fmt: skip


def test_everything_but_secrets_cache_and_what_tells_of_processes_comes_back_the_same(
    disk: RealDisk, tmp_path: Path
) -> None:
    file, target = tmp_path / "x.zip", tmp_path / "two" / ".mimikit"
    made = export(disk, file)
    assert {one.path for one in made.files} == EXPORTED
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert zipfile.ZipFile(file).testzip() is None
    assert import_state(file, target) == made
    before = content(Path(disk.root))
    assert content(target) == {name: before[name] for name in EXPORTED}
    assert all(stat.S_IMODE(path.stat().st_mode) in (0o600, 0o700) for path in target.rglob("*"))
    assert [path.name for path in target.parent.iterdir()] == [".mimikit"]
    assert not list(Path(disk.root, "cache").glob("snapshot-*"))


def test_all_of_an_export_and_of_an_import_is_flushed(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, target = tmp_path / "x.zip", tmp_path / "two" / ".mimikit"
    target.parent.mkdir()
    flushed = flushes(monkeypatch)
    export(disk, file)
    assert flushed[-2:] == inodes(file, tmp_path)
    flushed.clear()
    import_state(file, target)
    assert set(inodes(target, *target.rglob("*"))) <= set(flushed[:-1])
    assert flushed[-1:] == inodes(target.parent)


def test_secrets_are_in_it_only_when_asked_for(disk: RealDisk, tmp_path: Path) -> None:
    made = export(disk, tmp_path / "x.zip", with_secrets=True)
    assert {one.path for one in made.files} == EXPORTED | {paths.TOKEN}
    assert made.with_secrets


def test_what_is_no_file_or_has_no_name_in_text_is_told_and_left_out(
    disk: RealDisk, tmp_path: Path
) -> None:
    root = Path(disk.root)
    (root / "inbox/link.json").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"memory/\xff.md")).write_text("x")
    made = export(disk, tmp_path / "x.zip")
    assert {one.path for one in made.files} == EXPORTED
    assert set(made.left_out) == {"inbox/link.json", "pipe", "memory/\\udcff.md"}


def test_lines_that_are_appended_later_are_not_in_it(disk: RealDisk, tmp_path: Path) -> None:
    """A file of lines is linked: what it was then is told by its size."""
    files, line = Files(disk, durable=False), b'{"id":"m0"}\n'
    with snapshot.taken(disk, with_secrets=False) as found:
        files.append("history/2026-11-26.jsonl", {"id": "later"})
        files.write(paths.inbox("m1"), b"{}")
        files.remove("memory/喝茶.md")
        texts = {one.path: b"".join(snapshot.blocks(disk, one)) for one in found.files}
    assert texts["history/2026-11-26.jsonl"] == line
    assert texts["inbox/m1.json"] == b'{"text": "hello"}'
    assert texts["memory/喝茶.md"].decode() == "喝茶"


def test_where_there_are_no_links_files_are_copied(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    assert {one.path for one in export(disk, tmp_path / "x.zip").files} == EXPORTED


def test_a_change_waits_while_the_folder_is_held_still(disk: RealDisk) -> None:
    assert disk.snapshot_lock is not None
    other = RealDisk(Path(disk.root), is_state=True)
    done = threading.Event()

    def write() -> None:
        Files(other, durable=False).write(paths.inbox("m2"), b"{}")
        done.set()

    assert disk.snapshot_lock.take_alone(1)
    thread = threading.Thread(target=write)
    thread.start()
    assert not done.wait(0.05)
    disk.snapshot_lock.release()
    thread.join()
    assert done.is_set()
    other.close()


FORKS = """
import os, sys
from pathlib import Path
from mimikit.protocol.disk import RealDisk
disks = [RealDisk(Path(sys.argv[1]), is_state=True) for _ in range(2)]
one, other = (disk.snapshot_lock for disk in disks)
with one:
    child = os.fork()
    if child == 0:
        with one:
            pass
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert not other.take_alone(0.05)
assert other.take_alone(0.05)
"""


@pytest.mark.fault(65)
def test_who_has_seen_the_folder_lets_the_next_one(disk: RealDisk) -> None:
    first, second = (SnapshotLock(disk.folder_fd(paths.ROOT)) for _ in range(2))
    assert first.take_alone(0)
    assert not second.take_alone(0)
    first.release()
    assert second.take_alone(0)
    first.close()
    second.close()


def test_a_forked_child_does_not_let_go_of_its_parents_lock(disk: RealDisk) -> None:
    command = [sys.executable, "-P", "-c", FORKS, disk.root]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_who_does_not_wait_is_noticed(disk: RealDisk, tmp_path: Path) -> None:
    """A program that changes files by another way all the time, as an older mimikit would."""
    root, number = Path(disk.root), 0
    folder_fd = disk.folder_fd

    def changing(path: str) -> int:
        nonlocal number
        number += 1
        with (root / "history/2026-11-26.jsonl").open("a") as file:
            file.write("x\n")
        return folder_fd(path)

    disk.folder_fd = changing
    with pytest.raises(Conflict, match="hold still"):
        export(disk, tmp_path / "x.zip")
    assert not (tmp_path / "x.zip").exists()


def test_a_dead_exports_links_and_temp_file_go_with_the_next(
    disk: RealDisk, tmp_path: Path
) -> None:
    dead = "1-1-" + "0" * 8 + "-abcdef"
    links, temp = Path(disk.root) / f"cache/snapshot-{dead}", tmp_path / f".mimikit-export-{dead}"
    (links / "0").mkdir(parents=True)
    temp.write_bytes(b"x")
    export(disk, tmp_path / "x.zip")
    assert not links.exists()
    assert not temp.exists()


@pytest.mark.parametrize("odd", ["a folder", "no folder around it", "in the state", "a link"])
def test_no_export_is_written_where_no_file_can_be(
    disk: RealDisk, tmp_path: Path, odd: str
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "x")
    target = {
        "a folder": tmp_path,
        "no folder around it": tmp_path / "none/x.zip",
        "in the state": Path(disk.root) / "memory/x.zip",
        "a link": tmp_path / "link",
    }[odd]
    with pytest.raises(BadInput, match="expected a file"):
        export(disk, target)


# ---- what is refused


Entries = list[tuple[zipfile.ZipInfo | str, bytes]]


def packed(tmp_path: Path, entries: Entries, **manifest: object) -> Path:
    """A zip of these entries, whose manifest fits them but for what is given."""
    file = tmp_path / "made.zip"
    named = [(e if isinstance(e, str) else e.filename, data) for e, data in entries]
    files = [
        {"path": n.removeprefix(FOLDER), "size": len(d), "sha256": hashlib.sha256(d).hexdigest()}
        for n, d in named
    ]
    told = {"mimikitVersion": "0.1.0", "createdAt": "2026-11-26T00:00:00.000Z", "files": files}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in entries:
            archive.writestr(entry, data)
        archive.writestr(MANIFEST, json.dumps(told | manifest))
    return file


def link_to(target: str) -> tuple[zipfile.ZipInfo, bytes]:
    entry = zipfile.ZipInfo("state/inbox/link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry, target.encode()


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def bare(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("state/a", b"x")
    return path


SUM = hashlib.sha256(b"x").hexdigest()
HOSTILE: dict[str, Callable[[Path], Path]] = {
    "climbs out": lambda at: packed(at, [("state/../../evil", b"x")]),
    "climbs out in the middle": lambda at: packed(at, [("state/a/../../../evil", b"x")]),
    "absolute": lambda at: packed(at, [("state//etc/evil", b"x")]),
    "a dot": lambda at: packed(at, [("state/./evil", b"x")]),
    "no folder of ours": lambda at: packed(at, [("evil", b"x")]),
    "long": lambda at: packed(at, [("state/" + "x" * 300, b"x")]),
    "deep": lambda at: packed(at, [("state/" + "x/" * 40 + "x", b"x")]),
    "a link": lambda at: packed(at, [link_to("/etc")]),
    "a file and a folder": lambda at: packed(at, [("state/a", b"x"), ("state/a/b", b"x")]),
    "not in the manifest": lambda at: packed(at, [("state/a", b"x")], files=[]),
    "not in the zip": lambda at: packed(at, [], files=[{"path": "a", "size": 1, "sha256": SUM}]),
    "named twice": lambda at: packed(
        at, [("state/a", b"x")], files=[{"path": "a", "size": 1, "sha256": SUM}] * 2
    ),
    "another sum": lambda at: packed(
        at, [("state/a", b"y")], files=[{"path": "a", "size": 1, "sha256": SUM}]
    ),
    "another size": lambda at: packed(
        at, [("state/a", b"xx")], files=[{"path": "a", "size": 1, "sha256": SUM}]
    ),
    "a negative size": lambda at: packed(
        at, [("state/a", b"x")], files=[{"path": "a", "size": -1, "sha256": SUM}]
    ),
    "a manifest that is none": lambda at: packed(at, [], files="x"),
    "no zip": lambda at: put(at / "x", b"hello"),
    "empty": lambda at: put(at / "x", b""),
    "no manifest": lambda at: bare(at / "x"),
    "nothing": lambda at: at / "none",
    "a folder": lambda at: at,
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_no_whole_export_is_refused_and_nothing_is_placed(
    tmp_path: Path, what: str
) -> None:
    (tmp_path / "zips").mkdir()
    file, place = HOSTILE[what](tmp_path / "zips"), tmp_path / "place"
    place.mkdir()
    with pytest.raises(BadInput) as error:
        import_state(file, place / ".mimikit")
    assert "expected" in str(error.value) or "nothing was changed" in str(error.value)
    assert list(place.iterdir()) == []
    assert {path.name for path in tmp_path.iterdir()} == {"zips", "place"}


def test_a_damaged_zip_is_refused_wherever_the_damage_is(disk: RealDisk, tmp_path: Path) -> None:
    file, place = tmp_path / "x.zip", tmp_path / "place"
    place.mkdir()
    export(disk, file)
    whole = file.read_bytes()
    is_same = content(Path(disk.root))
    for at in range(0, len(whole), 97):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            import_state(file, place / ".mimikit")
        except MimikitError:
            assert list(place.iterdir()) == []
        else:  # it hit what nobody reads, such as a time
            found = content(place / ".mimikit")
            assert all(is_same[name] == data for name, data in found.items())
            (place / ".mimikit").rename(tmp_path / f"whole-{at}")
    for length in range(0, len(whole) - 1, 211):
        file.write_bytes(whole[:length])
        with pytest.raises(BadInput):
            import_state(file, place / ".mimikit")


def test_a_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = packed(tmp_path, [("state/a", b"\0" * 2**24)])
    assert file.stat().st_size < 2**16
    monkeypatch.setattr(state_import, "_SPARE_BYTES", 2**62)  # as if the disk were full
    with pytest.raises(NoRoom, match="MB of room"):
        import_state(file, tmp_path / "place/.mimikit")
    assert list((tmp_path / "place").iterdir()) == []


@pytest.mark.parametrize("key", ["format", "schemaVersion"])
def test_what_a_newer_mimikit_exported_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(NewerState, match=rf"{key} 1 or older, got 2"):
        import_state(packed(tmp_path, [], **{key: 2}), tmp_path / "place/.mimikit")


def test_it_is_imported_only_where_nothing_is(disk: RealDisk, tmp_path: Path) -> None:
    file = tmp_path / "x.zip"
    export(disk, file)
    for name in ("full", "file", "link"):
        place = tmp_path / name
        if name == "full":
            place.mkdir()
            (place / "config.toml").write_text("")
        elif name == "file":
            place.write_text("x")
        else:
            (tmp_path / "elsewhere").mkdir()
            place.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(BadInput, match="expected no state folder, or an empty one"):
            import_state(file, place)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (tmp_path / "empty").mkdir()
    import_state(file, tmp_path / "empty")
    assert set(content(tmp_path / "empty")) == EXPORTED


def test_a_disk_that_fails_leaves_the_old_export(
    disk: RealDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.zip"
    file.write_bytes(b"old")

    def fail(*_args: object) -> Iterator[bytes]:
        yield b"x"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshot, "blocks", fail)
    with pytest.raises(StorageError, match="disk is full"):
        export(disk, file)
    assert file.read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "x.zip"]
