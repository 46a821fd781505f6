"""How a process learns that something lies in a folder: a bell, a watch on folders, their threads.

`FolderWatch` is one thread that sleeps in the kernel until a name appears (inotify; without it, it
compares times every 50 ms). It reads no file and knows no record; whoever is told looks for itself,
so one word too many costs nothing and the next comparison of times makes good a lost one.
"""

# inotify_simple carries no types: what comes from it is unknown to the checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import contextlib
import errno
import logging
import os
import select
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from inotify_simple import INotify, flags

from mimikit.errors import shortage_of

_logger = logging.getLogger(__name__)

Listener: TypeAlias = Callable[["list[str] | None"], None]
"""Told the names that changed in its folder; None means: look at the whole folder again."""

_GONE = flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED
_WANTED = (
    flags.CLOSE_WRITE | flags.MOVED_TO | flags.CREATE | flags.DELETE_SELF | flags.MOVE_SELF
    | flags.ONLYDIR | flags.DONT_FOLLOW
)  # fmt: skip
_MORE_WANTED = _WANTED | flags.MODIFY | flags.ATTRIB | flags.MOVED_FROM | flags.DELETE


class WakeBell:
    """A bell for one waiting thread: rings before it waits are kept, many rings are one."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self.ring = self._rung.set

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a ring; False when none came in time. The ring is used up by this."""
        if rung := self._rung.wait(timeout_s):
            self._rung.clear()
        return rung


class BoundedThread(threading.Thread):
    """A daemon thread."""

    def __init__(self, run: Callable[[], object], name: str | None = None) -> None:
        super().__init__(target=run, name=name, daemon=True)


class LastingThread:
    """A thread that this process cannot go on without; of one caller at a time."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.thread: threading.Thread | None = None
        """None: it was not begun, or came to its end by itself and says so by this."""

    def begin(self, run: Callable[[], object]) -> None:
        """Have it run this, unless it was begun already."""
        if self.thread is None:
            self.thread = _Lasting(run, self._name)
            self.thread.start()

    def join(self, timeout_s: float | None = None) -> None:
        if self.thread not in (None, threading.current_thread()):
            self.thread.join(timeout_s)

    @staticmethod
    def is_one(thread: threading.Thread | None) -> bool:
        return isinstance(thread, _Lasting)


class _Lasting(BoundedThread):
    pass


@dataclass
class _Folder:
    """One watched folder. Units: nanoseconds, seconds of the steady clock."""

    path: Path
    listeners: list[Listener] = field(default_factory=list[Listener])
    watch_id: int | None = None
    mtime_ns: int | None = None
    settled: bool = False
    """Whether it was looked at again after its last change: two changes may share one time."""
    rest_until: float = 0.0


class FolderWatch:
    """One thread that tells listeners which names appeared or changed in their folders.

    It tells of names moved in, written and closed, linked in. Names that begin with a dot are
    nobody's business (temporary files). A listener runs on the watch's thread: it must not wait for
    long, and what it raises is logged and goes no further.
    """

    def __init__(
        self,
        root: Path,
        *,
        everything: bool = False,
        inotify: bool = True,
        rescan_s: float = 1.5,
        poll_s: float = 0.05,
    ) -> None:
        """Watch folders below `root`; the thread starts with the first of them.

        everything: tell also of writes that go on, of what is removed, of folders and hidden names,
            and, as a whole (None), of a watched folder that is gone.
        inotify: use it where the system has it; else times are compared (untested on macOS).
        rescan_s: how often a folder's time is compared although events tell: the safety net.
        poll_s: how often where times are all there is.
        """
        self._root = root
        self._folders: dict[str, _Folder] = {}
        self._by_id: dict[int, _Folder] = {}
        self._guard = threading.RLock()
        self._everything = everything
        wanted = _MORE_WANTED if everything else _WANTED
        source: INotify | None = None
        if inotify:
            try:
                source = INotify()
            except AttributeError:  # this system has none, as macOS
                pass
            except OSError as error:
                _logger.warning("no inotify (%s); times are compared", error.strerror)
        self._events = _Events(source, wanted)
        self.by_events = source is not None
        """Whether the system tells of changes, or times must be compared."""
        self._pause_s = rescan_s if self.by_events else poll_s
        # A whole look is given at most so much of the time: events tell the rest, if there are any.
        self._rest_share = 50 if self.by_events else 5
        self._closed = False
        self._thread = LastingThread("folder-watch")

    def watch(self, folder: str, listener: Listener) -> bool:
        """Tell `listener` of changes in `folder` (relative to the root) from now on.

        What already lies there is not told: watch first, then look, and nothing is missed. A folder
        that is missing is told as a whole (None) when it appears. Gives whether the system will
        tell; where it does not, only the folder's own time is compared.
        """
        with self._guard:
            if self._thread.thread is None and not self._closed:
                self._thread.begin(self._run)
            entry = self._folders.setdefault(folder, _Folder(self._root / folder))
            entry.listeners = [*entry.listeners, listener]
            self._attach(entry)
            watched = entry.watch_id is not None
        self._events.wake()
        return watched

    def attach(self, folder: str) -> bool:
        """See that the system tells of a watched folder that may be a new one of its name."""
        with self._guard:
            entry = self._folders[folder]
            old = entry.watch_id
            new = self._events.add(entry.path)  # the same number if it is the same folder
            if new != old:
                self._let_go(entry)
                entry.watch_id = new
            if new is not None:
                self._by_id[new] = entry
            return new is not None

    def unwatch(self, folder: str, listener: Listener) -> None:
        with self._guard:
            entry = self._folders.get(folder)
            if entry is None:
                return
            entry.listeners = [known for known in entry.listeners if known != listener]
            if not entry.listeners:
                del self._folders[folder]
                self._let_go(entry)

    def close(self, *, wait: bool = True) -> None:
        """End the thread; with `wait`, after it nothing is told any more."""
        with self._guard:
            self._closed = True
        if self._thread.thread is None:
            self._events.close()
            return
        self._events.wake()
        if wait:
            self._thread.join()

    def _attach(self, entry: _Folder) -> bool:
        """Ask for events of a folder that has none; whether that is new."""
        if entry.watch_id is not None:
            return False
        entry.mtime_ns = _mtime_ns(entry.path)
        if entry.mtime_ns is not None and (new := self._events.add(entry.path)) is not None:
            entry.watch_id = new
            self._by_id[new] = entry
        entry.settled = entry.watch_id is not None
        return entry.settled

    def _let_go(self, entry: _Folder) -> None:
        """End the events of a folder, unless they are those of another name it has now."""
        if entry.watch_id is not None and self._by_id.get(entry.watch_id) is entry:
            del self._by_id[entry.watch_id]
            self._events.drop(entry.watch_id)
        entry.watch_id = None

    def _run(self) -> None:
        compare_at = time.monotonic() + self._pause_s
        while not self._closed:
            for entry, names in self._news(compare_at - time.monotonic()):
                self._tell(entry, names)
            if time.monotonic() >= compare_at and not self._closed:
                self._compare_times()
                compare_at = time.monotonic() + self._pause_s
        self._events.close()

    def _news(self, timeout_s: float) -> Iterator[tuple[_Folder, list[str] | None]]:
        """What the events of one wait say, names gathered by folder in their order."""
        names: dict[int, dict[str, None]] = {}
        whole: set[int] = set()
        gone: list[_Folder] = []
        for watch_id, mask, name in self._events.wait(max(timeout_s, 0)):
            if mask & flags.Q_OVERFLOW:
                whole.update(list(self._by_id))
            elif mask & _GONE:
                # Removed or moved away: the next comparison looks for a new one of its name.
                with self._guard:
                    if (entry := self._by_id.get(watch_id)) is not None:
                        self._let_go(entry)
                        gone.append(entry)
            elif self._worth_telling(watch_id, mask, name):
                names.setdefault(watch_id, {})[name] = None
        if self._everything:
            yield from ((entry, None) for entry in gone)
        for watch_id in whole | names.keys():
            entry = self._by_id.get(watch_id)
            if entry is not None:
                yield entry, None if watch_id in whole else list(names[watch_id])

    def _worth_telling(self, watch_id: int, mask: int, name: str) -> bool:
        if self._everything:
            return bool(name)
        if not name or name.startswith(".") or mask & flags.ISDIR:
            return False
        if not mask & flags.CREATE:
            return True
        # A link or a fifo has no other event. A plain file that is still empty is being written:
        # the end of that tells.
        entry = self._by_id.get(watch_id)
        with contextlib.suppress(OSError):
            found = (entry.path / name).lstat() if entry else None
            return found is not None and not (stat.S_ISREG(found.st_mode) and found.st_size == 0)
        return False

    def _compare_times(self) -> None:
        """The safety net, and all there is without events: has the folder's time changed?"""
        with self._guard:
            entries = list(self._folders.values())
        for entry in entries:
            now = time.monotonic()
            if now < entry.rest_until:
                continue
            known = entry.mtime_ns
            with self._guard:
                appeared = self.by_events and self._attach(entry)
            entry.mtime_ns = _mtime_ns(entry.path)
            changed = appeared or entry.mtime_ns != known
            if entry.mtime_ns is not None and (changed or not entry.settled):
                self._tell(entry, None)
                spent = time.monotonic() - now
                entry.rest_until = now + spent * self._rest_share
            entry.settled = not changed

    def _tell(self, entry: _Folder, names: list[str] | None) -> None:
        for listener in entry.listeners:
            try:
                listener(names)
            except Exception as error:
                if shortage_of(error):
                    raise
                _logger.exception("a listener of %s failed", entry.path)


class _Events:
    """The kernel's own news of folders, where it tells any, and a bell that ends the wait."""

    def __init__(self, inotify: INotify | None, wanted: int) -> None:
        self._inotify = inotify
        self._wanted = wanted
        self._told_full = False
        self._guard = threading.Lock()
        self._ear, self._bell = os.pipe()
        held = contextlib.ExitStack()
        self._poller = select.poll()
        self._poller.register(self._ear, select.POLLIN)
        for end in (self._ear, self._bell):
            os.set_blocking(end, False)
            held.callback(os.close, end)
        if inotify is not None:
            self._poller.register(inotify, select.POLLIN)
            held.callback(inotify.close)
        # A watch that nobody holds any more lets go of its descriptors, too.
        self._closing = weakref.finalize(self, held.close)
        self._closing.atexit = False

    def add(self, path: Path) -> int | None:
        """Begin to tell of a folder; None when this can not."""
        if self._inotify is None:
            return None
        try:
            return self._inotify.add_watch(path, self._wanted)
        except ValueError:  # closed meanwhile
            return None
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) and not self._told_full:
                self._told_full = error.errno == errno.ENOSPC  # once: it is the same for all
                _logger.warning(
                    "%s: no events (%s); its time is compared instead", path, error.strerror
                )
            return None

    def drop(self, watch_id: int) -> None:
        # The folder may be gone, and its watch with it, or all of this be closed.
        with contextlib.suppress(OSError, ValueError):
            if self._inotify is not None:
                self._inotify.rm_watch(watch_id)

    def wait(self, timeout_s: float) -> list[tuple[int, int, str]]:
        """The next events (watch id, mask, name); none when time is up, and at `wake`."""
        # Rounded up: a wait that ends a little early would spin until its time has come.
        ready = [descriptor for descriptor, _ in self._poller.poll(int(timeout_s * 1000) + 1)]
        if self._ear in ready:
            os.read(self._ear, 4096)
        if self._inotify is None:
            return []
        return [(event.wd, event.mask, event.name) for event in self._inotify.read(timeout=0)]

    def wake(self) -> None:
        with self._guard, contextlib.suppress(BlockingIOError):  # full of calls not yet heard
            if self._closing.alive:
                os.write(self._bell, b"!")

    def close(self) -> None:
        with self._guard:
            self._closing()


def _mtime_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
