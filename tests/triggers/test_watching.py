"""File events on real folders: which triggers are notified."""

from __future__ import annotations

import functools
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mimikit.protocol.watch import FolderWatch
from mimikit.triggers import workspace
from mimikit.triggers.patterns import parse
from mimikit.triggers.workspace import FileWatch, FolderWorkspace

DEADLINE_S = 20


class Told:
    """Records the notified triggers."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count: dict[str, int] = {}

    def __call__(self, trigger_ids: set[str]) -> None:
        with self.changed:
            for id_ in trigger_ids:
                self.count[id_] = self.count.get(id_, 0) + 1
            self.changed.notify_all()

    def wait(self, trigger_id: str, more_than: int, what: str) -> None:
        with self.changed:
            heard = self.changed.wait_for(
                lambda: self.count.get(trigger_id, 0) > more_than, DEADLINE_S
            )
        assert heard, f"{what}: {trigger_id} was not told"


class Desk:
    """A watched workspace; marker files show that earlier events were delivered."""

    def __init__(self, root: Path) -> None:
        self.root, self.told = root, Told()
        (root / ".mimikit").mkdir(parents=True, exist_ok=True)
        self.workspace = FolderWorkspace(root, root / ".mimikit")
        self.watch = FileWatch(self.workspace, self.told)
        self.marks = 0
        self.set("mark", "mark*")

    def set(self, trigger_id: str, *patterns: str) -> None:
        self.watch.set(trigger_id, tuple(parse(text) for text in patterns))

    def after(self, act: Callable[[], object], trigger_id: str = "t") -> None:
        """Do something and wait until the trigger is notified of it."""
        self.settle()
        before = self.told.count.get(trigger_id, 0)
        act()
        self.told.wait(trigger_id, before, getattr(act, "__name__", str(act)))

    def settle(self, folder: str = ".") -> None:
        """Until all that has happened so far has been told.

        What one read of events brought is told folder by folder in any order; so two marks, each
        with a single event: when the second is told, what was read with the first has been.
        """
        for _ in range(2):
            self.marks += 1
            name = f"mark{self.marks}"
            before = self.told.count.get("mark", 0)
            (self.root / folder / name).symlink_to("nowhere")
            self.told.wait("mark", before, name)

    def silent(self, act: Callable[[], object], trigger_id: str = "t") -> None:
        """Assert that the trigger is not notified of an action."""
        self.settle()
        before = self.told.count.get(trigger_id, 0)
        act()
        self.settle()
        assert self.told.count.get(trigger_id, 0) == before

    def write(self, name: str, text: str = "x") -> Callable[[], object]:
        def write() -> None:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

        write.__name__ = f"write {name}"
        return write

    def make(self, name: str) -> None:
        (self.root / name).mkdir(parents=True)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A workspace watched by events only, without rescans."""
    monkeypatch.setattr(workspace, "RESCAN_S", 1000.0)
    made = Desk(tmp_path)
    yield made
    made.watch.close()


def test_every_change_of_a_matching_file_is_reported(desk: Desk) -> None:
    desk.make("src")
    desk.set("t", "src/*.py")
    a = desk.root / "src/a.py"
    desk.after(desk.write("src/a.py"))
    desk.after(desk.write("src/a.py", "more"))
    desk.after(lambda: os.utime(a, (1, 1)))
    desk.after(lambda: a.rename(desk.root / "src/b.py"))
    desk.after(lambda: (desk.root / "src/b.py").rename(a))
    desk.after(a.unlink)
    desk.after(lambda: (desk.root / "mark").touch() or os.link(desk.root / "mark", a))
    desk.after(lambda: a.rename(desk.root / "elsewhere"))
    desk.after(lambda: (desk.root / "elsewhere").rename(a))


def test_other_files_are_not_reported(desk: Desk) -> None:
    for folder in ("src", "src/.cache", "docs", ".git"):
        desk.make(folder)
    desk.set("t", "src/**/*.py")
    for name in (
        "src/a.txt", "src/.a.py", "src/.cache/a.py", "docs/a.py", ".git/a.py", "a.py",
        ".mimikit/x.py",
    ):  # fmt: skip
        desk.silent(desk.write(name))
        desk.silent((desk.root / name).unlink)
    desk.after(desk.write("src/a.py"))


@pytest.mark.parametrize("pattern", ["**", ".", ".*/*.json", "**/*.json", "{root}/.mimikit/*.json"])
def test_the_state_folder_is_never_reported(desk: Desk, pattern: str) -> None:
    desk.make("elsewhere")
    desk.settle()
    desk.set("t", pattern.format(root=desk.root))
    desk.set("mark", "elsewhere/mark*")
    desk.settle("elsewhere")
    before = desk.told.count.get("t", 0)
    for name in ("state.json", "tasks/x.json"):
        desk.write(f".mimikit/{name}")()
    (desk.root / ".mimikit/state.json").unlink()
    desk.settle("elsewhere")
    told_of_both_marks = 2 * (pattern in ("**", "."))
    assert desk.told.count.get("t", 0) == before + told_of_both_marks
    assert not any(".mimikit" in folder for folder in desk.watch._folders)


def test_new_folders_are_entered_however_deep_and_fast_they_come(desk: Desk) -> None:
    desk.set("t", "src/**/*.py")
    desk.after(desk.write("src/a/b/c/d/x.py"))
    desk.after(desk.write("src/a/b/c/d/x.py", "again"))
    desk.after(desk.write("src/a/b/y.py"))
    desk.after(desk.write("src/e/f/z.py"))
    desk.after((desk.root / "src/e/f/z.py").unlink)


def test_a_base_that_does_not_exist_yet_is_waited_for(desk: Desk) -> None:
    desk.set("t", "one/two/three/*.txt")
    assert not desk.watch.needs_polling("t")
    desk.after(lambda: desk.make("one"))
    desk.after(lambda: desk.make("one/two/three"))
    desk.after(desk.write("one/two/three/x.txt"))
    desk.silent(desk.write("one/two/x.txt"))
    desk.silent(desk.write("one/x.txt"))
    assert not desk.watch.needs_polling("t")


def test_a_folder_removed_and_made_again_is_watched_again(desk: Desk) -> None:
    desk.make("src/lib")
    desk.set("t", "src/**/*.py")
    for number in range(3):
        desk.after(lambda: shutil.rmtree(desk.root / "src"))
        desk.after(lambda: desk.make("src/lib"))
        desk.after(desk.write("src/lib/x.py", str(number)))
        desk.after(desk.write("src/lib/x.py", f"{number} again"))
        desk.settle()


def test_after_more_events_than_the_kernel_keeps_nothing_stays_unseen(
    desk: Desk, tmp_path: Path
) -> None:
    """A folder created while events were lost is watched afterwards."""
    room = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    desk.make("in")
    blocked, go_on = threading.Event(), threading.Event()
    told = desk.told

    def slow(trigger_ids: set[str]) -> None:
        blocked.set()
        assert go_on.wait(DEADLINE_S)
        told(trigger_ids)

    desk.watch._changed = slow
    desk.set("t", "in/**/*.txt")
    (desk.root / "in/first.txt").touch()
    assert blocked.wait(DEADLINE_S)
    links = [desk.root / "in/a.txt", desk.root / "in/b.txt"]
    links[0].touch()
    for number in range(room // 2 + 50):
        links[number % 2].rename(links[1 - number % 2])
    desk.make("in/late/deep")
    go_on.set()
    desk.told.wait("t", 1, "the flood")
    desk.settle()
    desk.after(desk.write("in/late/deep/x.txt"))


def test_each_trigger_is_notified_of_its_own_files_only(desk: Desk) -> None:
    desk.set("py", "src/*.py")
    desk.set("txt", "src/*.txt", "docs/*.txt")
    desk.after(lambda: desk.make("src"), "py")
    desk.after(desk.write("src/a.py"), "py")
    desk.silent(desk.write("src/b.py"), "txt")
    desk.after(desk.write("docs/a.txt"), "txt")
    desk.silent(desk.write("docs/b.txt"), "py")


def test_a_trigger_with_a_new_pattern_is_notified_of_that_only(desk: Desk) -> None:
    desk.make("a")
    desk.make("b")
    desk.set("t", "a/*")
    desk.set("other", "a/*")
    desk.after(desk.write("a/1"))
    desk.set("t", "b/*")
    desk.silent(desk.write("a/2"))
    desk.after(desk.write("b/1"))
    desk.set("t")
    desk.silent(desk.write("b/2"))
    desk.after(desk.write("a/3"), "other")


def test_links_to_folders_are_not_followed(desk: Desk) -> None:
    desk.make("src")
    desk.make("other")
    (desk.root / "src/link").symlink_to("../other", target_is_directory=True)
    (desk.root / "src/loop").symlink_to(".", target_is_directory=True)
    desk.set("t", "src/**/*.py")
    desk.silent(desk.write("other/x.py"))
    watched = {os.path.relpath(folder, desk.root) for folder in desk.watch._folders}
    assert watched == {".", "src"}


def test_a_base_that_is_a_link_is_polled(desk: Desk) -> None:
    desk.make("other")
    (desk.root / "src").symlink_to("other", target_is_directory=True)
    desk.set("t", "src/*.py")
    assert desk.watch.needs_polling("t")
    assert not desk.watch.needs_polling("mark")
    desk.set("t", "other/*.py")
    assert not desk.watch.needs_polling("t")


def test_files_outside_of_the_workspace_are_watched_by_their_whole_path(
    desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    desk.set("t", f"{outside}/in/*.txt")
    desk.after((outside / "in").mkdir)
    desk.after(lambda: (outside / "in/x.txt").write_text("x"))
    desk.after(lambda: shutil.rmtree(outside / "in"))
    desk.after((outside / "in").mkdir)
    desk.after(lambda: (outside / "in/x.txt").write_text("x"))


def test_without_inotify_the_triggers_are_polled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        workspace, "FolderWatch", functools.partial(FolderWatch, inotify=False, poll_s=0.01)
    )
    desk = Desk(tmp_path)
    desk.make("src")
    desk.set("t", "src/**/*.py")
    assert desk.watch.needs_polling("t")
    desk.after(desk.write("src/x.py"))  # its folder's time tells of a new name
    desk.after(lambda: desk.make("src/lib"))
    desk.after(desk.write("src/lib/y.py"))
    desk.set("t")
    assert not desk.watch.needs_polling("t")
    desk.watch.close()


def test_a_trigger_with_too_many_folders_is_polled(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "MAX_FOLDERS", 4)
    for name in "abcdef":
        desk.make(f"src/{name}")
    desk.set("t", "src/**/*.py")
    assert desk.watch.needs_polling("t")
    for name in "abcdef":
        desk.set(name, f"src/{name}/*.py")
    assert desk.watch.needs_polling("t")
    assert not any(desk.watch.needs_polling(name) for name in "abcdef")
    desk.set("t", "src/a/*.py")
    assert not desk.watch.needs_polling("t")
