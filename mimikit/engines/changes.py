"""What a run changed in the workspace: a snapshot before it is compared with one after it.

Where several runs overlap, a file that one of them reports is that run's; any other may be each's
and is marked as shared. Skips version control and generated folders; follows no link.
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
from mimikit.language.plain_text import path_text
from mimikit.protocol.results import DiffHunk, FileAction, FileDiff, TaskDiff

MAX_WORKSPACE_FILES = 20_000
MAX_FILE_BYTES = 2**20
"""A larger file is compared by its time stamps alone."""
MAX_STORED_BYTES = 64 * 2**20
MAX_FILES = 300
MAX_CHARACTERS = 524_288
"""Of all hunks of one diff."""
MAX_LINES = 2000
"""Of one file's hunks."""
MAX_LINE_CHARACTERS = 2000
MAX_LINE_PAIRS = 1_000_000
"""Product of both line counts up to which difflib compares."""
_MAX_SKIPPED_FOLDERS = 20
_SKIPPED_NAMES = frozenset({".git", ".hg", ".jj", ".sl", ".pijul", "_darcs", "__pycache__"})
_GENERATED_MARKERS = frozenset({"CACHEDIR.TAG", "pyvenv.cfg"})
_ACTIONS: dict[str, FileAction] = {"add": "added", "delete": "deleted"}
_CONTEXT_LINES = 3
_GIT_ACTIONS: dict[str, FileAction] = {
    "new file mode": "added",
    "deleted file mode": "deleted",
    "rename from": "renamed",
}
_GIT_HEAD = re.compile(rf"^({'|'.join(_GIT_ACTIONS)}|rename to|Binary files) (.*)", re.MULTILINE)
_NO_NEWLINE = b"\\ No newline at end of file"
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


class RunRecording:
    def __init__(self, workspace: Path, reader: _Reader | None, git: str | None) -> None:
        """`reader`: None if no diff is wanted."""
        self._root = os.path.realpath(workspace)
        self._reader, self._git = reader, git
        self._before = reader.snapshot() if reader else _Snapshot()
        self.reported: dict[str, FileAction] = {}
        """The files that the run's events report, by path in the workspace."""
        self.used_tools = False
        self.overlapping: list[RunRecording] = []

    def event(self, kind: EventKind, text: str, data: Mapping[str, object]) -> None:
        self.used_tools |= kind in ("command", "tool")
        if kind == "file" and text:
            path = os.path.normpath(Path(self._root, text))
            if path.startswith(f"{self._root}/"):
                action = _ACTIONS.get(str(data.get("kind")), "modified")
                self.reported[path[len(self._root) + 1 :]] = action

    def diff(self, task_id: str, attempt: int) -> TaskDiff | None:
        """The changes so far; None if there are none. Raises OSError if they cannot be compared."""
        reader, before = self._reader, self._before
        if reader is None:
            return None
        after = reader.snapshot()
        reported = self.reported
        unknown = {path for path in reported if not (before.covers(path) and after.covers(path))}
        by_others = {path for other in self.overlapping for path in other.reported}
        changed = (_changed(before, after) | unknown) - (by_others - reported.keys())
        listed = sorted(changed, key=lambda path: (path not in reported, path))[:MAX_FILES]
        if not listed:
            return None
        files, pairs = list[FileDiff](), list[Pair]()
        for path in listed:
            old, new = before.files.get(path), after.files.get(path)
            pair = reader.content(old), reader.content(new)
            is_big = (old and pair[0] is None) or (new and pair[1] is None)
            action: FileAction = "modified" if old and new else "added" if new else "deleted"
            is_unknown = path in unknown
            file = FileDiff(
                path=path_text(path),
                action=reported[path] if is_unknown else action,
                old_size=old.size if old else None,
                new_size=new.size if new else None,
                old_mode=f"{old.mode:o}" if old else None,
                new_mode=f"{new.mode:o}" if new else None,
                shared=bool(self.overlapping) and (path in by_others or path not in reported),
                unshown="unknown" if is_unknown else "big" if is_big else None,
                attempt=attempt,
            )
            files.append(file)
            pairs.append((None, None) if file.unshown else pair)
        return TaskDiff(
            id=task_id,
            files=_with_hunks(files, compare(pairs, self._git)),
            more_files=len(changed) - len(listed),
            unseen=sorted(path_text(path) or "." for path in after.skipped)[:_MAX_SKIPPED_FOLDERS],
        )


class ChangeRecorder:
    def __init__(self, git: str | None = None) -> None:
        """`git`: the program; None: difflib compares."""
        self._git = git
        self._lock = threading.Lock()
        self._open: list[RunRecording] = []

    @contextlib.contextmanager
    def recording(
        self, workspace: Path, excluded: Collection[Path], *, with_diff: bool
    ) -> Generator[RunRecording]:
        """Record one run; without `with_diff` only that it overlaps with others."""
        with contextlib.ExitStack() as stack:
            reader = None
            if with_diff:
                with contextlib.suppress(OSError):  # no room for the store: run without a diff
                    store = stack.enter_context(tempfile.TemporaryFile(buffering=0))
                    reader = _Reader(workspace, excluded, store.fileno())
            recording = RunRecording(workspace, reader, self._git)
            with self._lock:
                recording.overlapping = list(self._open)
                for other in self._open:
                    other.overlapping.append(recording)
                self._open.append(recording)
            try:
                yield recording
            finally:
                with self._lock:
                    self._open.remove(recording)


# ---- snapshots


class _File(NamedTuple):
    mode: int
    """0: a symbolic link."""
    size: int
    stamp: tuple[int, int, int]
    """Inode, mtime and ctime."""
    digest: bytes | None = None

    def is_same(self, now: _File) -> bool:
        if (self.mode, self.size) != (now.mode, now.size):
            return False
        if self.digest is None or now.digest is None:
            return self.stamp == now.stamp
        return self.digest == now.digest


@dataclass
class _Snapshot:
    """Paths are relative to the workspace, the workspace itself is the empty path."""

    files: dict[str, _File] = field(default_factory=dict[str, _File])
    skipped: set[str] = field(default_factory=set[str])
    """Folders that were not read, or not to their end."""

    def covers(self, path: str) -> bool:
        folder = path.rpartition("/")[0]
        while folder and folder not in self.skipped:
            folder = folder.rpartition("/")[0]
        return path in self.files or folder not in self.skipped


def _changed(before: _Snapshot, after: _Snapshot) -> set[str]:
    both = before.files.keys() & after.files.keys()
    changed = {path for path in both if not before.files[path].is_same(after.files[path])}
    one = before.files.keys() ^ after.files.keys()
    return changed | {path for path in one if before.covers(path) and after.covers(path)}


class _Reader:
    """Takes snapshots of one workspace; contents go to a nameless file."""

    def __init__(self, workspace: Path, excluded: Collection[Path], store: int) -> None:
        self._root = os.path.realpath(workspace)
        self._excluded = frozenset(os.path.realpath(path) for path in excluded)
        self._store, self._end = store, 0
        self._offsets: dict[bytes, int] = {}

    def snapshot(self) -> _Snapshot:
        found = _Snapshot()
        pending = {""}  # listed by its parent, and not visited yet
        with contextlib.suppress(OSError):
            for top, folders, names, folder_fd in os.fwalk(self._root):
                folder = top[len(self._root) :].lstrip("/")
                prefix = f"{folder}/" if folder else ""
                pending.discard(folder)
                entries = sorted(
                    name
                    for name in (*names, *folders)
                    if name not in _SKIPPED_NAMES
                    and f"{self._root}/{prefix}{name}" not in self._excluded
                )
                folders[:] = sorted({*folders}.intersection(entries))
                is_generated = folder.rpartition("/")[2] == "node_modules" or (
                    folder and not _GENERATED_MARKERS.isdisjoint(entries)
                )
                if is_generated or len(found.files) >= MAX_WORKSPACE_FILES:
                    found.skipped.add(folder)
                    folders.clear()
                    continue
                for name in entries:
                    if len(found.files) >= MAX_WORKSPACE_FILES:
                        found.skipped.add(folder)
                        break
                    with contextlib.suppress(OSError, ValueError):  # removed or changed meanwhile
                        if (file := self._read_file(name, folder_fd)) is not None:
                            found.files[prefix + name] = file
                pending |= {prefix + name for name in folders} - found.files.keys()
        found.skipped |= pending  # no permission, or beyond the limit
        return found

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
            with contextlib.suppress(OSError):  # that disk is full
                if os.pwrite(self._store, data, self._end) == len(data):
                    self._offsets[digest] = self._end
                    self._end += len(data)
        return _File(mode, len(data), stamp, digest)

    def content(self, file: _File | None) -> bytes | None:
        if file is None or file.digest is None or file.digest not in self._offsets:
            return None
        return os.pread(self._store, file.size, self._offsets[file.digest])


# ---- hunks

Pair: TypeAlias = tuple[bytes | None, bytes | None]
"""A file's old and new content; None where it does not exist."""


@dataclass(slots=True)
class Difference:
    """`old` and `new` are indexes of pairs; they differ for a rename."""

    old: int
    new: int
    hunks: list[DiffHunk] = field(default_factory=list[DiffHunk])
    unshown: str | None = None
    """`binary`, or `big` if too long for difflib."""


def compare(pairs: Sequence[Pair], git: str | None) -> list[Difference]:
    """The pairs that differ. Raises OSError if the disk is full or git fails."""
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
        is_binary = any(line.startswith(b"Binary files ") for line in lines)
        found.append(Difference(old, new, hunks_of(lines), "binary" if is_binary else None))
    return found


def _by_difflib(pairs: Sequence[Pair]) -> list[Difference]:
    """As git does, but finds no renames."""
    found: list[Difference] = []
    for number, (old, new) in enumerate(pairs):
        if old == new:
            continue
        if any(b"\0" in (side or b"")[:8000] for side in (old, new)):  # git's own rule for binary
            found.append(Difference(number, number, unshown="binary"))
            continue
        hunks = _unified(old or b"", new or b"")
        found.append(Difference(number, number, hunks or [], "big" if hunks is None else None))
    return found


def _unified(old: bytes, new: bytes) -> list[DiffHunk] | None:
    """None if difflib would take too long."""
    a, b = (re.findall(rb"[^\n]*\n|[^\n]+", content) for content in (old, new))
    if len(a) * len(b) > MAX_LINE_PAIRS:
        return None
    lines: list[bytes] = []
    for line in difflib.diff_bytes(difflib.unified_diff, a, b, n=_CONTEXT_LINES):
        lines += [line.removesuffix(b"\n")] + ([] if line.endswith(b"\n") else [_NO_NEWLINE])
    return hunks_of(lines)


def hunks_of(lines: Iterable[bytes]) -> list[DiffHunk]:
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


def files_of_diff(text: str) -> list[FileDiff]:
    """The files of a `git diff --no-prefix`, with hunks within the limits. Pure."""
    found, left = list[FileDiff](), MAX_CHARACTERS
    for part in re.split(r"^diff --git ", text, flags=re.MULTILINE)[1:]:
        names, _, rest = part.removesuffix("\n").partition("\n")
        facts = dict(_GIT_HEAD.findall(rest.partition("\n@@")[0]))
        path = facts.get("rename to", names[: len(names) // 2])
        actions: list[FileAction] = [_GIT_ACTIONS[head] for head in _GIT_ACTIONS if head in facts]
        action = (*actions, "modified")[0]
        file = FileDiff(path=path, action=action, from_path=facts.get("rename from"))
        hunks = hunks_of(line.encode() for line in rest.split("\n"))
        found.append(_shown(file, hunks, "binary" if "Binary files" in facts else None, left))
        left -= _size(found[-1].hunks)
    return found


def _with_hunks(files: list[FileDiff], differences: Iterable[Difference]) -> list[FileDiff]:
    """Adds the hunks within `MAX_CHARACTERS`; joins both files of a rename."""
    left, removed = MAX_CHARACTERS, set[int]()
    for one in differences:
        file = files[one.new]
        if one.old != one.new:
            old = files[one.old]
            removed.add(one.old)
            file = file.but(
                action="renamed",
                from_path=old.path,
                old_size=old.old_size,
                old_mode=old.old_mode,
                shared=file.shared and old.shared,
            )
        files[one.new] = _shown(file, one.hunks, one.unshown, left)
        left -= _size(files[one.new].hunks)
    return [
        file.but(old_mode=None, new_mode=None)
        if file.old_mode == file.new_mode or None in (file.old_mode, file.new_mode)
        else file
        for number, file in enumerate(files)
        if number not in removed
    ]


def _shown(file: FileDiff, hunks: list[DiffHunk], unshown: str | None, left: int) -> FileDiff:
    unshown = unshown or ("big" if left <= 0 else None)
    shown, cut_lines = cut([] if unshown else hunks, left)
    signs = Counter(line[0] for hunk in hunks for line in hunk.lines)
    return file.but(
        added=signs["+"], removed=signs["-"], hunks=shown, cut_lines=cut_lines, unshown=unshown
    )


def _size(hunks: Iterable[DiffHunk]) -> int:
    return sum(len(line) for hunk in hunks for line in hunk.lines)


def cut(hunks: Iterable[DiffHunk], characters: int) -> tuple[list[DiffHunk], int]:
    """The hunks of one file within the limits, and how many lines are left out."""
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
