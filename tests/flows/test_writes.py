"""Nothing below the state folder is opened for writing except by the one room that writes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.shell import ShellEngine
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from tests.crash.driver import Client
from tests.crash.flows import FLOWS
from tests.crash.oracle import Oracle
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock

EVENTS = {"open", "os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.symlink",
          "os.truncate", "shutil.rmtree", "shutil.move", "shutil.copyfile"}  # fmt: skip
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
ROOM = os.sep + os.path.join("mimikit", "protocol") + os.sep


class Watch:
    """Hears of every file opened or moved by this process, and keeps those that break the rule."""

    def __init__(self) -> None:
        self.root: Path | None = None
        self.broken: list[str] = []
        self.rightly = 0

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Look at one event; the root is set only while a test wants to know."""
        root = self.root
        if root is None or event not in EVENTS or not _changes(event, args):
            return
        frame = sys._getframe(2)
        if not _below(root, event, args):
            return
        if ROOM in frame.f_code.co_filename:
            self.rightly += 1
        else:
            self.broken.append(f"{event} {args[0]!r} by {frame.f_code.co_filename}")


FOLDER_ARGUMENTS = {"os.rename": 2, "os.link": 2, "os.remove": 1, "os.rmdir": 1, "os.mkdir": 2,
                    "os.symlink": 2}  # fmt: skip
"""Where the descriptors of folders begin among the arguments of an event."""


def _below(root: Path, event: str, args: tuple[Any, ...]) -> bool:
    """Whether it is about the state folder: by its path, or relative to a folder in it."""
    paths = [os.fsdecode(arg) for arg in args if isinstance(arg, (str, bytes))]
    if any(path.startswith(str(root)) for path in paths):
        return True
    if event == "open":  # its folder is not told: a relative path counts as one of ours
        return any(not path.startswith("/") for path in paths[:1])
    for folder in args[FOLDER_ARGUMENTS.get(event, len(args)) :]:
        try:
            if os.readlink(f"/proc/self/fd/{folder}").startswith(str(root)):
                return True
        except OSError:
            continue
    return False


def _changes(event: str, args: tuple[Any, ...]) -> bool:
    if event != "open":
        return True
    mode, flags = args[1], args[2]
    return bool(flags & WRITING) or (isinstance(mode, str) and any(c in mode for c in "wax+"))


WATCH = Watch()
_INSTALLED = threading.Lock()


def _install() -> None:
    """An audit hook cannot be removed again: one for all tests, deaf while it is not needed."""
    if _INSTALLED.acquire(blocking=False):
        sys.addaudithook(WATCH.hear)


@contextmanager
def watched(root: Path) -> Generator[Watch]:
    """Hear of what happens below this folder."""
    _install()
    WATCH.broken, WATCH.rightly = [], 0
    WATCH.root = root
    try:
        yield WATCH
    finally:
        WATCH.root = None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / ".mimikit"
    made.mkdir()
    return made


def product_on(folder: Path, make: Callable[..., Product] = Product, **more: Any) -> Client:
    oracle = Oracle()
    files = Files(RealDisk(folder), durable=False)
    files.make_folders()
    mind = Mind(oracle.runs)
    product = make(files, FakeClock(START), mind, quiet=False, **more)
    product.start()
    product.idle()
    return Client(product, oracle)


def test_the_flows_write_through_the_one_room(folder: Path) -> None:
    # Ids repeat from flow to flow, so each has a folder of its own.
    roots = {flow.name: folder / flow.name for flow in FLOWS}
    for root in roots.values():
        root.mkdir()
    with watched(folder) as watch:
        for flow in FLOWS:
            client = product_on(roots[flow.name], flow.product)
            if flow.hook is not None:
                hook = flow.hook
                client.product.mind.hook = lambda request, c=client, h=hook: h(c, request)
            for action in flow.actions:
                action(client)
                client.product.idle()
            client.files.fs.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert watch.broken == []
    assert watch.rightly > 1000


def test_the_builtin_engine_and_commands_write_through_the_one_room(
    folder: Path, tmp_path: Path
) -> None:
    builtin = {"engine": "builtin"}
    settings = Settings.model_validate(
        {
            "timezone": "UTC",
            "roles": {"teller": builtin, "planner": builtin},
            "profiles": {"standard": builtin, "specialist": builtin},
        }
    )
    with watched(folder) as watch:
        client = product_on(
            folder,
            settings=settings,
            more_engines=(BuiltinEngine(), ShellEngine(settings)),
            workspace=tmp_path,
            state=folder,
        )
        client.say("m1", "run: echo hello from the shell")
        client.product.idle()
        client.say("m2", "remember that I like tea")
        client.product.idle()
        client.files.fs.close()  # pyright: ignore[reportAttributeAccessIssue]
    texts = [message.text for message in client.product.store.conversation.messages]
    assert any("hello from the shell" in text for text in texts)
    assert watch.broken == []
    assert watch.rightly > 100


@pytest.mark.parametrize("way", ["open", "os.open", "rename", "unlink", "mkdir"])
def test_the_watch_hears_who_goes_another_way(folder: Path, way: str) -> None:
    target = folder / "history.json"
    target.write_text("{}")
    descriptor = os.open(folder, os.O_RDONLY)
    with watched(folder) as watch:
        if way == "open":
            target.write_text("x")
        elif way == "os.open":
            os.close(os.open(target, os.O_WRONLY))
        elif way == "rename":
            target.rename(folder / "other")
        elif way == "unlink":
            os.unlink("history.json", dir_fd=descriptor)
        else:
            (folder / "new").mkdir()
    os.close(descriptor)
    assert len(watch.broken) == 1
    assert watch.rightly == 0
