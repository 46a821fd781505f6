"""A state folder becomes one zip, and a zip a whole state folder or nothing."""

from __future__ import annotations

import contextlib
import io
import stat
import zipfile
from pathlib import Path

import pytest

from mimikit import state as state_folder
from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.state import check_export, open_state, place_state
from mimikit.supervisor import consumer_lock
from tests.cli.conftest import Cli
from tests.cli.test_start import add_page
from tests.support.memory_disk import Crash, MemoryDisk

EXPORTED = "memory/über.md files/1 huey/worker/queue/m.json corrupt/folder/odd turns/t.1.started"
LEFT_OUT = (
    "secrets/token corrupt/1-secrets_token cache/1 pages/p.json health.json consumer.json x.lock "
    "events.jsonl events.1.jsonl side/self-awake/x/a inbox/.tmp-1-2-3-4 memory/link.md"
)
GOOD = {"history.json": b"{}", "memory/a.md": b"a", "memory/summary/b.md": b"b" * 99}


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def zipped(entries: dict[str, bytes], mark: bytes = b"mimikit export 1", mode: int = 0) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.comment = mark
        for name, content in entries.items():
            (entry := zipfile.ZipInfo(name)).external_attr = mode << 16
            archive.writestr(entry, content)
    return data.getvalue()


def test_a_round_trip_keeps_all_but_secrets_and_what_is_made_anew(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    home, file, other = tmp_path / ".mimikit", tmp_path / "x.zip", tmp_path / "other"
    exported, (*left_out, link) = EXPORTED.split(), LEFT_OUT.split()
    for number, name in enumerate(exported + left_out):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(bytes(range(number, 256)))
    (home / link).symlink_to("/etc/passwd")
    assert link in cli("export", str(file)).stderr
    other.mkdir()
    assert cli("--state", str(other), "import", str(file), "--json").exit_code == 0
    expected = {*exported, paths.CONFIG, ".gitignore"}
    assert contents(other) == {n: d for n, d in contents(home).items() if n in expected}
    assert {stat.S_IMODE(one.stat().st_mode) for one in (file, other / exported[0])} == {0o600}
    assert "absent or empty" in cli("--state", str(other), "import", str(file)).stderr


def test_it_refuses_while_mimikit_runs_and_replaces_no_file_by_accident(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("init")
    home, file = tmp_path / ".mimikit", tmp_path / "x.zip"
    file.write_bytes(b"old")
    assert "which exists; `--force` replaces it" in cli("export", str(file)).stderr
    monkeypatch.setattr(state_folder, "_MAX_BYTES", 3)
    assert "expected at most 3 bytes" in cli("export", str(file), "--force").stderr
    assert ({*tmp_path.iterdir()}, file.read_bytes()) == ({home, file}, b"old")
    lock = consumer_lock.take_consumer_lock(open_state(home, tmp_path))
    assert "in use by mimikit" in cli("export", "y.zip").stderr
    lock.release()
    add_page(home, 1)
    assert "the page runs" in cli("export", "y.zip").stderr


@pytest.mark.parametrize(
    ("data", "words"),
    [
        *((zipped({name: b""}), "without secrets") for name in (
            "../x", "/etc/x", "a//b", "a/./b", "a/", "secrets/token", "consumer.lock", "cache/x")),
        *((zipped({"a": b"/etc"}, mode=kind), "plain files") for kind in (
            stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFDIR)),
        (zipped({"a": b"", "b": b""}).replace(b"b", b"a"), "each name in the zip once"),
        (zipped({"a": b"", "a/b": b""}), "each name in the zip once"),
        (zipped({}, mark=b"mimikit export 2"), "or a newer one"),
        (zipped({"history.json": b'{"schemaVersion": 9}'}), "or older, got 9"),
        (zipped(GOOD)[:-30], "not a zip file"),
        (zipped(GOOD).replace(b"bbbb", b"bbbc"), "Bad CRC-32"),
    ],
)  # fmt: skip
def test_a_bad_zip_leaves_nothing(cli: Cli, tmp_path: Path, data: bytes, words: str) -> None:
    file = tmp_path / "x.zip"
    file.write_bytes(data)
    assert words in cli("import", str(file)).stderr
    assert [*tmp_path.iterdir()] == [file]
    with pytest.raises(StorageError, match="expected 102 bytes of room"):
        check_export(zipfile.ZipFile(io.BytesIO(zipped(GOOD))), 101)


def test_a_death_at_any_step_leaves_nothing_or_the_whole() -> None:
    whole = {f".mimikit/{name}": data for name, data in GOOD.items()}
    disk = MemoryDisk()
    for step in range(30):
        disk = MemoryDisk(crash_at=step)
        archive = zipfile.ZipFile(io.BytesIO(zipped(GOOD)))
        with contextlib.suppress(Crash):
            place_state(disk, archive, "temp", paths.STATE_FOLDER)
        for image in (disk.after_kill(), *disk.after_power_loss()):
            found = {n: d for n, d in image.contents().items() if n.startswith(".mimikit")}
            assert found in ([{}, whole] if disk.dead else [whole])
    assert not disk.dead
