"""The bell between threads and the watch on folders, by events and by comparing times."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mimikit.protocol.watch import FolderWatch, WakeBell


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.told: list[list[str] | None] = []
        self.changed = threading.Condition()

    def __call__(self, names: list[str] | None) -> None:
        with self.changed:
            self.told.append(names)
            self.changed.notify_all()

    def names(self) -> set[str]:
        return {name for names in self.told for name in names or ()}

    def wait_for(self, name: str | None) -> None:
        """Until `name` was told, or (None) the whole folder, which tells of every name."""
        with self.changed:
            heard = self.changed.wait_for(lambda: None in self.told or name in self.names(), 20)
        assert heard, f"{name} was not told: {self.told}"


@pytest.fixture(params=[True, False], ids=["events", "times"])
def watch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FolderWatch]:
    (tmp_path / "in").mkdir()
    made = FolderWatch(tmp_path, inotify=request.param, rescan_s=0.1, poll_s=0.005)
    yield made
    made.close()


@pytest.fixture
def by_events(tmp_path: Path) -> Iterator[FolderWatch]:
    """A watch whose safety net comes too late to help."""
    (tmp_path / "in").mkdir()
    made = FolderWatch(tmp_path, rescan_s=1000)
    assert made.by_events
    yield made
    made.close()


def test_a_ring_before_the_wait_is_kept_and_many_are_one() -> None:
    bell = WakeBell()
    assert not bell.wait(0)
    bell.ring()
    bell.ring()
    assert bell.wait(0)
    assert not bell.wait(0)


def test_each_way_a_file_can_appear_is_told(watch: FolderWatch, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (tmp_path / "elsewhere").write_text("x")
    ways = {
        "renamed": lambda: (tmp_path / "elsewhere").rename(folder / "renamed"),
        "written": lambda: (folder / "written").write_text("x"),
        "touched": (folder / "touched").touch,
        "linked": lambda: os.link(folder / "written", folder / "linked"),
        "symlink": lambda: (folder / "symlink").symlink_to("nowhere"),
        "fifo": lambda: os.mkfifo(folder / "fifo"),
    }
    for name, make in ways.items():
        heard = Heard()
        watch.watch("in", heard)
        make()
        heard.wait_for(name)
        watch.unwatch("in", heard)


def test_events_alone_tell_names_without_delay(by_events: FolderWatch, tmp_path: Path) -> None:
    heard, folder = Heard(), tmp_path / "in"
    by_events.watch("in", heard)
    (folder / ".hidden").write_text("x")
    (folder / "sub").mkdir()
    (folder / ".hidden").rename(folder / "a")
    heard.wait_for("a")
    (folder / "a").write_text("written in place")
    (folder / "b").symlink_to("a")
    heard.wait_for("b")
    assert heard.names() == {"a", "b"}


def test_a_file_being_written_is_told_when_it_is_closed(
    by_events: FolderWatch, tmp_path: Path
) -> None:
    heard = Heard()
    by_events.watch("in", heard)
    with (tmp_path / "in/a").open("wb") as slow:
        (tmp_path / "in/b").touch()
        heard.wait_for("b")
        assert "a" not in heard.names()
        slow.write(b"x")
    heard.wait_for("a")


def test_a_folder_that_appears_later_is_told_as_a_whole(watch: FolderWatch, tmp_path: Path) -> None:
    heard = Heard()
    watch.watch("late", heard)
    (tmp_path / "late").mkdir()
    (tmp_path / "late/a").write_text("x")
    heard.wait_for("a")


def test_a_folder_made_anew_is_watched_again(watch: FolderWatch, tmp_path: Path) -> None:
    heard = Heard()
    watch.watch("in", heard)
    (tmp_path / "in").rmdir()
    (tmp_path / "in").mkdir()
    heard.wait_for(None)
    heard.told.clear()
    (tmp_path / "in/a").write_text("x")
    heard.wait_for("a")


def test_what_one_listener_raises_harms_no_other(
    watch: FolderWatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_names: list[str] | None) -> None:
        raise RuntimeError("broken")

    heard = Heard()
    watch.watch("in", broken)
    watch.watch("in", heard)
    for name in ("a", "b"):
        (tmp_path / "in" / name).write_text("x")
        heard.wait_for(name)
        heard.told.clear()
    assert "failed" in caplog.text


def test_too_many_events_are_told_as_the_whole_folder(
    by_events: FolderWatch, tmp_path: Path
) -> None:
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    heard, blocked, go_on = Heard(), threading.Event(), threading.Event()

    def slow(names: list[str] | None) -> None:
        blocked.set()
        assert go_on.wait(60)
        heard(names)

    by_events.watch("in", slow)
    (tmp_path / "in/first").touch()
    assert blocked.wait(20)
    links = [tmp_path / "in/a", tmp_path / "in/b"]
    links[0].touch()
    for i in range(room + 100):
        links[i % 2].rename(links[1 - i % 2])
    go_on.set()
    with heard.changed:
        assert heard.changed.wait_for(lambda: None in heard.told, 20)


def test_the_safety_net_finds_what_no_event_told(tmp_path: Path) -> None:
    """As on a file system that tells nothing: the watch's own events are drained away."""
    (tmp_path / "in").mkdir()
    watch = FolderWatch(tmp_path, rescan_s=0.05)
    watch._is_relevant = lambda *_: False  # pyright: ignore[reportAttributeAccessIssue]
    heard = Heard()
    watch.watch("in", heard)
    (tmp_path / "in/a").write_text("x")
    with heard.changed:
        assert heard.changed.wait_for(lambda: None in heard.told, 20)
    watch.close()


# ---- everything: for files that are not ours


@pytest.fixture
def everything(tmp_path: Path) -> Iterator[FolderWatch]:
    """Tells of all there is, by events alone."""
    (tmp_path / "in").mkdir()
    made = FolderWatch(tmp_path, everything=True, rescan_s=1000)
    yield made
    made.close()


def test_everything_is_told_writes_removals_folders_and_hidden_names(
    everything: FolderWatch, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    held = (folder / "held").open("a")
    for name in ("gone", "moved", "mode"):
        (folder / name).touch()
    ways = {
        ".hidden": (folder / ".hidden").touch,
        "sub": (folder / "sub").mkdir,
        "held": lambda: (held.write("x"), held.flush()),
        "gone": (folder / "gone").unlink,
        "moved": lambda: (folder / "moved").rename(tmp_path / "away"),
        "mode": lambda: (folder / "mode").chmod(0o600),
    }
    for name, make in ways.items():
        heard = Heard()
        everything.watch("in", heard)
        make()
        heard.wait_for(name)
        assert None not in heard.told
        everything.unwatch("in", heard)
    held.close()


def test_a_watched_folder_that_goes_is_told_as_a_whole(
    everything: FolderWatch, tmp_path: Path
) -> None:
    for go in ((tmp_path / "in").rmdir, lambda: (tmp_path / "in").rename(tmp_path / "elsewhere")):
        heard = Heard()
        everything.watch("in", heard)
        everything.attach("in")
        go()
        heard.wait_for(None)
        assert heard.told[-1] is None
        everything.unwatch("in", heard)
        (tmp_path / "in").mkdir()


def test_a_folder_that_took_the_place_of_a_moved_one_is_told_of(
    everything: FolderWatch, tmp_path: Path
) -> None:
    """Its parent was moved, of which it is told nothing itself."""
    (tmp_path / "in/deep").mkdir()
    old, new = Heard(), Heard()
    everything.watch("in/deep", old)
    (tmp_path / "in").rename(tmp_path / "away")
    (tmp_path / "in/deep").mkdir(parents=True)
    assert everything.attach("in/deep")
    everything.watch("away/deep", new)
    (tmp_path / "away/deep/a").symlink_to("nowhere")
    (tmp_path / "in/deep/b").symlink_to("nowhere")
    old.wait_for("b")
    new.wait_for("a")
    assert (old.names(), new.names()) == ({"b"}, {"a"})
