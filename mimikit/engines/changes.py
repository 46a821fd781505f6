"""What one run changed in the workspace: a snapshot before it and one after it, compared.

Where several runs work at once nobody can see whose a change is: a file that one of them reports is
that run's, any other may be each's and is marked as shared. The files of version control are not
looked at, nor what programs generate (caches, installed packages); no link is followed.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import os
import re
import stat
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from mimikit.engines.base import EventKind
from mimikit.protocol.results import DiffHunk, FileAction, FileDiff, TaskDiff

MAX_WORKSPACE_FILES = 20_000
MAX_FILE_BYTES = 2**20
"""A larger file is compared by its time stamps alone."""
MAX_STORED_BYTES = 64 * 2**20
MAX_FILES = 300
"""Files of one diff; those that the run reports come first."""
MAX_CHARACTERS = 524_288
"""Of all hunks of one diff."""
MAX_LINES = 2000
"""Of one file's hunks."""
MAX_LINE_CHARACTERS = 2000
MAX_LINE_PAIRS = 1_000_000
"""Lines of one side times those of the other that difflib compares, without equal ends."""
_MAX_UNSEEN = 20
_VCS_DIRS = frozenset({".git", ".hg", ".jj", ".sl", ".pijul", "_darcs", "__pycache__"})
_GENERATED_DIRS = frozenset({"node_modules"})
_GENERATED_MARKERS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
_ACTIONS: dict[str, FileAction] = {"add": "added", "delete": "deleted"}
_CONTEXT_LINES = 3
_NO_END = b"\\ No newline at end of file"
_GIT_DIFF = (
    *("-c", "core.fsmonitor=", "-c", "core.hooksPath=/dev/null", "-c", "diff.external=", "diff"),
    *("--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--no-prefix", "-M"),
)
_GIT_ENV = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}


# ---- the runs that work in the workspace


class RunRecording:
    def __init__(self, workspace: Path, reader: _Reader | None, git: str | None) -> None:
        """`reader`: None where nobody asks what the run changes."""
        self._root = os.path.realpath(workspace)
        self._reader, self._git = reader, git
        self._before = reader.snapshot() if reader else _Snapshot()
        self.named: dict[str, FileAction] = {}
        """The files it reports, by path in the workspace."""
        self.looked = False
        """Whether it ran a command or used a tool."""
        self.others: list[RunRecording] = []
        """Runs that worked here meanwhile."""

    def event(self, kind: EventKind, text: str, data: Mapping[str, object]) -> None:
        self.looked |= kind in ("command", "tool")
        if kind == "file" and text:
            whole = os.path.normpath(Path(self._root, text))
            if whole.startswith(f"{self._root}/"):
                inner = whole[len(self._root) + 1 :]
                self.named[inner] = _ACTIONS.get(str(data.get("kind")), "modified")

    def diff(self, task_id: str, attempt: int) -> TaskDiff | None:
        """What the run has changed so far; None: nothing, or nobody asks.

        Raises OSError if it cannot be compared.
        """
        reader, before = self._reader, self._before
        if reader is None:
            return None
        after = reader.snapshot()
        unknown = {path for path in self.named if not (before.saw(path) and after.saw(path))}
        of_others = {path for other in self.others for path in other.named}
        found = (_changed(before, after) | unknown) - (of_others - self.named.keys())
        listed = sorted(found, key=lambda path: (path not in self.named, path))[:MAX_FILES]
        if not listed:
            return None
        files, pairs = list[FileDiff](), list[Pair]()
        for path in listed:
            was, now = before.files.get(path), after.files.get(path)
            pair = reader.content(was), reader.content(now)
            is_big = (was and pair[0] is None) or (now and pair[1] is None)
            is_shared = bool(self.others) and (path in of_others or path not in self.named)
            file = FileDiff(
                path=os.fsencode(path).decode(errors="backslashreplace"),
                action="modified" if was and now else "added" if now else "deleted",
                old_size=was.size if was else None,
                new_size=now.size if now else None,
                old_mode=f"{was.mode:o}" if was else None,
                new_mode=f"{now.mode:o}" if now else None,
                shared=is_shared,
                unshown="big" if is_big else None,
                attempt=attempt,
            )
            if path in unknown:
                file = file.but(action=self.named[path], unshown="unknown")
            files.append(file)
            pairs.append((None, None) if file.unshown else pair)
        unseen = [os.fsencode(path).decode(errors="backslashreplace") for path in after.unseen]
        return TaskDiff(
            id=task_id,
            files=_with_hunks(files, compare(pairs, self._git)),
            more_files=len(found) - len(listed),
            unseen=sorted(path or "." for path in unseen)[:_MAX_UNSEEN],
        )


class ChangeRecorder:
    """The runs that work in the workspace now. Safe between threads."""

    def __init__(self, git: str | None = None) -> None:
        """`git`: the program that compares contents; None: difflib does."""
        self._git = git
        self._lock = threading.Lock()
        self._open: list[RunRecording] = []

    @contextlib.contextmanager
    def recording(
        self, workspace: Path, closed: Collection[Path], *, looks: bool
    ) -> Generator[RunRecording]:
        """Record while one run works; `looks`: its diff is asked for, not only that it works."""
        with contextlib.ExitStack() as stack:
            reader = None
            if looks:
                with contextlib.suppress(OSError):  # no room for the store: run without a diff
                    store = stack.enter_context(tempfile.TemporaryFile(buffering=0))
                    reader = _Reader(workspace, closed, store.fileno())
            recording = RunRecording(workspace, reader, self._git)
            with self._lock:
                recording.others = list(self._open)
                for other in self._open:
                    other.others.append(recording)
                self._open.append(recording)
            try:
                yield recording
            finally:
                with self._lock:
                    self._open.remove(recording)


# ---- snapshots


class _File(NamedTuple):
    """A file, or a link (mode 0), as it was."""

    mode: int
    size: int
    stamp: tuple[int, int, int]
    """Inode, mtime and ctime: tells whether an unread file was touched."""
    digest: bytes | None = None
    """None where it was not read."""

    def is_same(self, now: _File) -> bool:
        if (self.mode, self.size) != (now.mode, now.size):
            return False
        if self.digest is None or now.digest is None:
            return self.stamp == now.stamp
        return self.digest == now.digest


@dataclass
class _Snapshot:
    """Paths are relative to the workspace; bytes that are no UTF-8 stand as surrogates."""

    files: dict[str, _File] = field(default_factory=dict[str, _File])
    folders: set[str] = field(default_factory=set[str])
    unseen: set[str] = field(default_factory=set[str])
    """Folders not looked into, or not to their end; the workspace itself as the empty path."""

    def saw(self, path: str) -> bool:
        """Whether the file would have been seen, had it been there."""
        if path in self.files:
            return True
        while path:
            path = path.rpartition("/")[0]
            if path in self.unseen or path in self.folders:
                return path not in self.unseen
        return False


def _changed(before: _Snapshot, after: _Snapshot) -> set[str]:
    both = before.files.keys() & after.files.keys()
    changed = {path for path in both if not before.files[path].is_same(after.files[path])}
    one = before.files.keys() ^ after.files.keys()
    return changed | {path for path in one if before.saw(path) and after.saw(path)}


class _Reader:
    """Takes snapshots of one workspace; contents go to a store, a file that has no name."""

    def __init__(self, workspace: Path, closed: Collection[Path], store: int) -> None:
        self._root = os.path.realpath(workspace)
        self._closed = frozenset(os.path.realpath(path) for path in closed)
        self._store, self._end = store, 0
        self._offsets: dict[bytes, int] = {}

    def snapshot(self) -> _Snapshot:
        seen = _Snapshot()
        pending = {""}  # listed by its parent, and not visited yet
        with contextlib.suppress(OSError):
            for top, folders, names, folder_fd in os.fwalk(self._root):
                folder = top[len(self._root) :].lstrip("/")
                prefix = f"{folder}/" if folder else ""
                pending.discard(folder)
                entries = sorted(n for n in (*names, *folders) if not self._is_closed(prefix + n))
                folders[:] = sorted({*folders}.intersection(entries))
                if _is_generated(folder, entries) or len(seen.files) >= MAX_WORKSPACE_FILES:
                    seen.unseen.add(folder)
                    folders.clear()
                    continue
                seen.folders.add(folder)
                for name in entries:
                    if len(seen.files) >= MAX_WORKSPACE_FILES:
                        seen.unseen.add(folder)
                        break
                    with contextlib.suppress(OSError, ValueError):  # gone, or changes just now
                        if (found := self._read_file(name, folder_fd)) is not None:
                            seen.files[prefix + name] = found
                pending |= {prefix + name for name in folders} - seen.files.keys()
        seen.unseen |= pending  # closed to us, or beyond the limit
        return seen

    def _is_closed(self, path: str) -> bool:
        return path.rpartition("/")[2] in _VCS_DIRS or f"{self._root}/{path}" in self._closed

    def _read_file(self, name: str, folder_fd: int) -> _File | None:
        """None for what is neither a file nor a link."""
        status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        stamp = status.st_ino, status.st_mtime_ns, status.st_ctime_ns
        if stat.S_ISLNK(status.st_mode):
            return self._stored(0, stamp, os.fsencode(os.readlink(name, dir_fd=folder_fd)))
        if not stat.S_ISREG(status.st_mode):
            return None
        mode, data = stat.S_IMODE(status.st_mode), None
        with contextlib.suppress(PermissionError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(name, flags, dir_fd=folder_fd), "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        if data is None or len(data) > MAX_FILE_BYTES:
            return _File(mode, status.st_size, stamp)
        return self._stored(mode, stamp, data)

    def _stored(self, mode: int, stamp: tuple[int, int, int], data: bytes) -> _File:
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if digest not in self._offsets and self._end + len(data) <= MAX_STORED_BYTES:
            with contextlib.suppress(OSError):  # no room on that disk
                if os.pwrite(self._store, data, self._end) == len(data):
                    self._offsets[digest] = self._end
                    self._end += len(data)
        return _File(mode, len(data), stamp, digest)

    def content(self, file: _File | None) -> bytes | None:
        """None where there is no such file, or its content was not stored."""
        if file is None or file.digest is None or file.digest not in self._offsets:
            return None
        return os.pread(self._store, file.size, self._offsets[file.digest])


def _is_generated(folder: str, names: Collection[str]) -> bool:
    is_named = folder.rpartition("/")[2] in _GENERATED_DIRS
    return bool(folder) and (is_named or not _GENERATED_MARKERS.isdisjoint(names))


# ---- the lines that differ

Pair: TypeAlias = tuple[bytes | None, bytes | None]
"""The content of a file before and now; None where there is no such file."""


@dataclass(slots=True)
class Difference:
    """How one file differs; of a renamed one `old` and `new` are numbers of two pairs."""

    old: int
    new: int
    hunks: list[DiffHunk] = field(default_factory=list[DiffHunk])
    unshown: str | None = None
    """`binary`, or `big` where it is too long for difflib."""


def compare(pairs: Sequence[Pair], git: str | None) -> list[Difference]:
    """Every pair that differs. Raises OSError: no room for the contents, or git failed."""
    return _by_git(pairs, git) if git else _by_difflib(pairs)


def _by_git(pairs: Sequence[Pair], git: str) -> list[Difference]:
    with tempfile.TemporaryDirectory() as folder:
        for side, name in enumerate("ab"):
            Path(folder, name).mkdir()
            for number, pair in enumerate(pairs):
                if (content := pair[side]) is not None:
                    Path(folder, name, str(number)).write_bytes(content)
        env = {**_GIT_ENV, "HOME": folder, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}
        argv = [git, *_GIT_DIFF, "a", "b"]
        ran = subprocess.run(argv, cwd=folder, env=env, capture_output=True, check=False)
    if ran.returncode not in (0, 1):
        raise OSError(f"git diff ended with {ran.returncode}: {ran.stderr[:200]!r}")
    found: list[Difference] = []
    for part in re.split(rb"^diff --git ", ran.stdout, flags=re.MULTILINE)[1:]:
        names, *lines = part.removesuffix(b"\n").split(b"\n")
        old, new = (int(name[2:]) for name in names.split())
        if any(line.startswith(b"Binary files ") for line in lines):
            found.append(Difference(old, new, unshown="binary"))
        else:
            found.append(Difference(old, new, hunks_of(lines)))
    return found


def _by_difflib(pairs: Sequence[Pair]) -> list[Difference]:
    """As git does it, but a file that was renamed and changed counts as two."""
    added = {new: number for number, (old, new) in enumerate(pairs) if old is None and new}
    renamed = {
        number: added.pop(old)
        for number, (old, new) in enumerate(pairs)
        if new is None and old in added
    }
    found = [Difference(old, new) for old, new in renamed.items()]
    for number, (old, new) in enumerate(pairs):
        if old == new or number in renamed or number in renamed.values():
            continue
        if any(b"\0" in (side or b"")[:8000] for side in (old, new)):  # git's own rule for binary
            found.append(Difference(number, number, unshown="binary"))
        elif (hunks := _unified(old or b"", new or b"")) is None:
            found.append(Difference(number, number, unshown="big"))
        else:
            found.append(Difference(number, number, hunks))
    return found


def _unified(old: bytes, new: bytes) -> list[DiffHunk] | None:
    """None where difflib would take too long."""
    a, b = _lines(old), _lines(new)
    start = end = 0
    least = min(len(a), len(b))
    while start < least and a[start] == b[start]:
        start += 1
    while end < least - start and a[-1 - end] == b[-1 - end]:
        end += 1
    if (len(a) - start - end) * (len(b) - start - end) > MAX_LINE_PAIRS:
        return None
    start, end = max(0, start - _CONTEXT_LINES), max(0, end - _CONTEXT_LINES)
    a, b = a[start : len(a) - end], b[start : len(b) - end]
    lines: list[bytes] = []
    for line in difflib.diff_bytes(difflib.unified_diff, a, b, n=_CONTEXT_LINES):
        lines += [line.removesuffix(b"\n")] + ([] if line.endswith(b"\n") else [_NO_END])
    return [
        hunk.but(old_start=hunk.old_start + start, new_start=hunk.new_start + start)
        for hunk in hunks_of(lines)
    ]


def _lines(content: bytes) -> list[bytes]:
    *whole, last = content.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def hunks_of(lines: Iterable[bytes]) -> list[DiffHunk]:
    """The hunks of one file's unified diff, whatever stands before them."""
    found: list[DiffHunk] = []
    for line in lines:
        if at := re.match(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", line):
            counts = (int(part or 1) for part in at.groups())
            names = ("old_start", "old_lines", "new_start", "new_lines")
            found.append(DiffHunk(**dict(zip(names, counts, strict=True)), lines=[]))
        elif found:
            text = line.decode(errors="backslashreplace")
            if more := max(0, len(text) - 1 - MAX_LINE_CHARACTERS):
                text = f"{text[: MAX_LINE_CHARACTERS + 1]} … ({more} more characters)"
            found[-1].lines.append(text)
    return found


def _with_hunks(files: list[FileDiff], found: Iterable[Difference]) -> list[FileDiff]:
    """Adds the hunks, cut to size; joins both ends of a rename."""
    left, joined = MAX_CHARACTERS, set[int]()
    for one in found:
        file = files[one.new]
        if one.old != one.new:
            old = files[one.old]
            joined.add(one.old)
            file = file.but(
                action="renamed",
                from_path=old.path,
                old_size=old.old_size,
                old_mode=old.old_mode,
                shared=file.shared and old.shared,
            )
        unshown = one.unshown or ("big" if left <= 0 else None)
        hunks, cut_lines = cut([] if unshown else one.hunks, left)
        left -= sum(len(line) for hunk in hunks for line in hunk.lines)
        signs = Counter(line[0] for hunk in one.hunks for line in hunk.lines)
        files[one.new] = file.but(
            added=signs["+"],
            removed=signs["-"],
            hunks=hunks,
            cut_lines=cut_lines,
            unshown=unshown,
        )
    return [
        file.but(old_mode=None, new_mode=None)
        if file.old_mode == file.new_mode or None in (file.old_mode, file.new_mode)
        else file
        for number, file in enumerate(files)
        if number not in joined
    ]


def cut(hunks: Iterable[DiffHunk], characters: int) -> tuple[list[DiffHunk], int]:
    """The lines shown of one file, and how many are left out."""
    shown: list[DiffHunk] = []
    lines_left, cut_lines = MAX_LINES, 0
    for hunk in hunks:
        lines: list[str] = []
        for line in hunk.lines:
            if lines_left <= 0 or characters <= 0:
                break
            lines.append(line)
            lines_left, characters = lines_left - 1, characters - len(line)
        cut_lines += len(hunk.lines) - len(lines)
        if lines:
            shown.append(hunk.but(lines=lines))
    return shown, cut_lines
