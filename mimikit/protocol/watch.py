"""Watches folders with one inotify thread, and wakes waiting threads.

Without inotify the folders' mtimes are polled every 50 ms. No file is read here: listeners scan for
themselves, so a spurious notification costs nothing, and a periodic mtime check makes up for a lost
one.
"""

# inotify_simple has no types.
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
"""Called with the changed names of the folder; None: scan the whole folder."""

_REMOVED = flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED
_MASK = (
    flags.CLOSE_WRITE | flags.MOVED_TO | flags.CREATE | flags.DELETE_SELF | flags.MOVE_SELF
    | flags.ONLYDIR | flags.DONT_FOLLOW
)  # fmt: skip
_ALL_MASK = _MASK | flags.MODIFY | flags.ATTRIB | flags.MOVED_FROM | flags.DELETE


class WakeBell:
    """An event for one waiting thread, cleared when the wait returns."""

    def __init__(self) -> None:
        self._rung = threading.Event()
        self.ring = self._rung.set

    def wait(self, timeout_s: float | None = None) -> bool:
        if rung := self._rung.wait(timeout_s):
            self._rung.clear()
        return rung


class CriticalThread:
    """A daemon thread whose failure ends the process (see `runner.consumer`)."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.thread: threading.Thread | None = None
        """None: not started, or finished without an error."""

    def begin(self, run: Callable[[], object]) -> None:
        if self.thread is None:
            self.thread = _Critical(target=run, name=self._name, daemon=True)
            self.thread.start()

    def join(self, timeout_s: float | None = None) -> None:
        if self.thread not in (None, threading.current_thread()):
            self.thread.join(timeout_s)

    @staticmethod
    def is_one(thread: threading.Thread | None) -> bool:
        return isinstance(thread, _Critical)


class _Critical(threading.Thread):
    pass


@dataclass
class _Folder:
    path: Path
    listeners: list[Listener] = field(default_factory=list[Listener])
    watch_id: int | None = None
    mtime_ns: int | None = None
    settled: bool = False
    """Whether it was scanned after its last change: two changes may share one mtime."""
    rest_until: float = 0.0


class FolderWatch:
    """Calls listeners from one thread with the names created or written in their folders.

    Dot files (temporary files) are ignored. A listener must not block; its exceptions are logged.
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
        """Watch folders below `root`.

        everything: also report writes in progress, removals, folders, hidden names, and (as None)
            a removed folder.
        inotify: use it where the system has it; else mtimes are polled (untested on macOS).
        rescan_s: interval of the mtime check beside inotify.
        poll_s: interval of the mtime check without inotify.
        """
        self._root = root
        self._folders: dict[str, _Folder] = {}
        self._by_id: dict[int, _Folder] = {}
        self._guard = threading.RLock()
        self._everything = everything
        source: INotify | None = None
        if inotify:
            try:
                source = INotify()
            except AttributeError:  # this system has none, as macOS
                pass
            except OSError as error:
                _logger.warning("no inotify (%s); folder mtimes are polled", error.strerror)
        self._events = _Events(source, _ALL_MASK if everything else _MASK)
        self.by_events = source is not None
        self._pause_s = rescan_s if self.by_events else poll_s
        # Full scans get at most one in so many parts of the time.
        self._rest_share = 50 if self.by_events else 5
        self._closed = False
        self._thread = CriticalThread("folder-watch")

    def watch(self, folder: str, listener: Listener) -> bool:
        """Notify `listener` of changes in `folder` from now on; returns whether inotify covers it.

        Existing files are not reported: watch first, then scan. A missing folder is reported (None)
        when it appears.
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
        """Renew the watch of a folder that may have been replaced; False when inotify cannot."""
        with self._guard:
            entry = self._folders[folder]
            old = entry.watch_id
            new = self._events.add(entry.path)  # the same number if it is the same folder
            if new != old:
                self._detach(entry)
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
                self._detach(entry)

    def close(self, *, wait: bool = True) -> None:
        """End the thread; with `wait`, no listener is called after this."""
        with self._guard:
            self._closed = True
        if self._thread.thread is None:
            self._events.close()
            return
        self._events.wake()
        if wait:
            self._thread.join()

    def _attach(self, entry: _Folder) -> bool:
        """Add an inotify watch to a folder that has none; returns whether it was added now."""
        if entry.watch_id is not None:
            return False
        entry.mtime_ns = _mtime_ns(entry.path)
        if entry.mtime_ns is not None and (new := self._events.add(entry.path)) is not None:
            entry.watch_id = new
            self._by_id[new] = entry
        entry.settled = entry.watch_id is not None
        return entry.settled

    def _detach(self, entry: _Folder) -> None:
        """Remove the inotify watch, unless another path of the same folder uses it now."""
        if entry.watch_id is not None and self._by_id.get(entry.watch_id) is entry:
            del self._by_id[entry.watch_id]
            self._events.drop(entry.watch_id)
        entry.watch_id = None

    def _run(self) -> None:
        rescan_at = time.monotonic() + self._pause_s
        while not self._closed:
            for entry, names in self._changes(rescan_at - time.monotonic()):
                self._notify(entry, names)
            if time.monotonic() >= rescan_at and not self._closed:
                self._compare_mtimes()
                rescan_at = time.monotonic() + self._pause_s
        self._events.close()

    def _changes(self, timeout_s: float) -> Iterator[tuple[_Folder, list[str] | None]]:
        """Wait for events, and return the changed names of each folder."""
        names: dict[int, dict[str, None]] = {}
        whole: set[int] = set()
        removed: list[_Folder] = []
        for watch_id, mask, name in self._events.wait(max(timeout_s, 0)):
            if mask & flags.Q_OVERFLOW:
                whole.update(list(self._by_id))
            elif mask & _REMOVED:
                # The next rescan looks for a new folder at its path.
                with self._guard:
                    if (entry := self._by_id.get(watch_id)) is not None:
                        self._detach(entry)
                        removed.append(entry)
            elif self._is_relevant(watch_id, mask, name):
                names.setdefault(watch_id, {})[name] = None
        if self._everything:
            yield from ((entry, None) for entry in removed)
        for watch_id in whole | names.keys():
            entry = self._by_id.get(watch_id)
            if entry is not None:
                yield entry, None if watch_id in whole else list(names[watch_id])

    def _is_relevant(self, watch_id: int, mask: int, name: str) -> bool:
        if self._everything:
            return bool(name)
        if not name or name.startswith(".") or mask & flags.ISDIR:
            return False
        if not mask & flags.CREATE:
            return True
        # A link or a fifo has no other event. An empty plain file is still being written: its
        # CLOSE_WRITE will be reported.
        entry = self._by_id.get(watch_id)
        with contextlib.suppress(OSError):
            found = (entry.path / name).lstat() if entry else None
            return found is not None and not (stat.S_ISREG(found.st_mode) and found.st_size == 0)
        return False

    def _compare_mtimes(self) -> None:
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
                self._notify(entry, None)
                spent = time.monotonic() - now
                entry.rest_until = now + spent * self._rest_share
            entry.settled = not changed

    def _notify(self, entry: _Folder, names: list[str] | None) -> None:
        for listener in entry.listeners:
            try:
                listener(names)
            except Exception as error:
                if shortage_of(error):
                    raise
                _logger.exception("a listener of %s failed", entry.path)


class _Events:
    """inotify, if available, and a pipe that ends the wait."""

    def __init__(self, inotify: INotify | None, mask: int) -> None:
        self._inotify = inotify
        self._mask = mask
        self._has_warned = False
        self._guard = threading.Lock()
        self._wake_out, self._wake_in = os.pipe()
        descriptors = contextlib.ExitStack()
        self._poller = select.poll()
        self._poller.register(self._wake_out, select.POLLIN)
        for end in (self._wake_out, self._wake_in):
            os.set_blocking(end, False)
            descriptors.callback(os.close, end)
        if inotify is not None:
            self._poller.register(inotify, select.POLLIN)
            descriptors.callback(inotify.close)
        # Also closes the descriptors of a watch that is garbage-collected.
        self._closing = weakref.finalize(self, descriptors.close)
        self._closing.atexit = False

    def add(self, path: Path) -> int | None:
        """Watch a folder; None when that is impossible."""
        if self._inotify is None:
            return None
        try:
            return self._inotify.add_watch(path, self._mask)
        except ValueError:  # closed meanwhile
            return None
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) and not self._has_warned:
                self._has_warned = error.errno == errno.ENOSPC  # the same for all folders
                _logger.warning(
                    "%s: cannot be watched (%s); its mtime is polled", path, error.strerror
                )
            return None

    def drop(self, watch_id: int) -> None:
        with contextlib.suppress(OSError, ValueError):  # the folder is gone, or this is closed
            if self._inotify is not None:
                self._inotify.rm_watch(watch_id)

    def wait(self, timeout_s: float) -> list[tuple[int, int, str]]:
        """The next events (watch id, mask, name); none after `timeout_s` or `wake`."""
        # Rounded up: a wait that ends a little early would spin until its time has come.
        ready = [descriptor for descriptor, _ in self._poller.poll(int(timeout_s * 1000) + 1)]
        if self._wake_out in ready:
            os.read(self._wake_out, 4096)
        if self._inotify is None:
            return []
        return [(event.wd, event.mask, event.name) for event in self._inotify.read(timeout=0)]

    def wake(self) -> None:
        with self._guard, contextlib.suppress(BlockingIOError):  # full of unread wakes
            if self._closing.alive:
                os.write(self._wake_in, b"!")

    def close(self) -> None:
        with self._guard:
            self._closing()


def _mtime_ns(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
