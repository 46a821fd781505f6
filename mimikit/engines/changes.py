"""What one run changed in the workspace: two looks at it, told apart from what others did.

Whose a change is nobody can see where several runs work at once: a file that one of them says it
wrote is that one's, any other may be each's, and is told as shared.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from pathlib import Path

from mimikit.engines import diff
from mimikit.engines.base import EventKind
from mimikit.engines.snapshot import SeenFile, WorkspaceReader, WorkspaceSnapshot
from mimikit.protocol.diffs import FileAction, FileDiff, TaskDiff

MOST_FILES = 300
"""Files of one diff; of more the first by name, those that runs name before others."""
MOST_CHARACTERS = 524_288
"""Of all hunks of one diff."""
COMPARE_S = 4.0
"""So long comparing may take; for the files left then only their sizes are told."""
_MOST_UNSEEN = 20
_MOST_PAIRS = 2000
_ALIKE = 0.5
"""So much of a file that was renamed has to be the same."""
_SAID: dict[str, FileAction] = {"add": "added", "delete": "deleted"}


class RunRecording:
    """What one run says it did, and what was there before it."""

    def __init__(
        self, workspace: Path, reader: WorkspaceReader | None, monotonic: Callable[[], float]
    ) -> None:
        """Look at the workspace as it is; `reader`: None where nobody asks what is changed."""
        self._root = os.path.realpath(workspace)
        self._reader = reader
        self._before = reader.look() if reader else WorkspaceSnapshot()
        self._monotonic = monotonic
        self.named: dict[str, FileAction] = {}
        """The files it says it changed, by path in the workspace."""
        self.looked = False
        """Whether it ran a command or used a tool."""
        self.others: list[RunRecording] = []
        """The runs that worked here in the meantime."""

    def event(self, kind: EventKind, text: str, data: Mapping[str, object]) -> None:
        """Take up one event of the run."""
        self.looked |= kind in ("command", "tool")
        if kind == "file" and text:
            whole = os.path.normpath(f"{self._root}/{text}" if text[0] != "/" else text)
            if whole.startswith(f"{self._root}/"):
                inner = whole[len(self._root) + 1 :]
                self.named[inner] = _SAID.get(str(data.get("kind")), "modified")

    def diff(self, task_id: str, attempt: int) -> TaskDiff | None:
        """What it changed up to now; None: nothing, or nobody asks."""
        reader, before = self._reader, self._before
        if reader is None:
            return None
        after = reader.look(before)
        pairs = _with_renames(reader, _changed(before, after), before, after)
        found = [pair for pair in pairs if not self._is_others(pair)]
        known = {path for pair in pairs for path in pair}
        found += [
            (path, path)
            for path in self.named
            if path not in known and not (before.saw(path) and after.saw(path))
        ]
        found.sort(key=lambda pair: (_path(pair) not in self.named, _path(pair)))
        until, left, files = self._monotonic() + COMPARE_S, MOST_CHARACTERS, list[FileDiff]()
        for pair in found[:MOST_FILES]:
            sides = before.files.get(pair[0]), after.files.get(pair[1])
            in_time = left > 0 and self._monotonic() < until
            file = self._file_diff(reader, pair, sides, in_time=in_time).but(attempt=attempt)
            left -= sum(len(line) for hunk in file.hunks for line in hunk.lines)
            files.append(file)
        if not files:
            return None
        return TaskDiff(
            id=task_id,
            files=files,
            more_files=len(found) - len(files),
            unseen=[shown_path(folder) or "." for folder in sorted(after.unseen)][:_MOST_UNSEEN],
        )

    def _is_others(self, pair: tuple[str, str]) -> bool:
        by_others = any(path in other.named for other in self.others for path in pair)
        return by_others and not any(path in self.named for path in pair)

    def _file_diff(
        self,
        reader: WorkspaceReader,
        pair: tuple[str, str],
        sides: tuple[SeenFile | None, SeenFile | None],
        *,
        in_time: bool,
    ) -> FileDiff:
        path, (was, now) = _path(pair), sides
        is_named = any(part in self.named for part in pair)
        by_others = any(part in other.named for other in self.others for part in pair)
        made = FileDiff(
            path=shown_path(path),
            action="added" if not pair[0] else "deleted" if not pair[1] else "modified",
            old_size=was.size if was else None,
            new_size=now.size if now else None,
            shared=bool(self.others) and (by_others or not is_named),
        )
        if was is None and now is None:
            return made.but(action=self.named.get(path, "modified"), unshown="unknown")
        if pair[0] and pair[1] and pair[0] != pair[1]:
            made = made.but(action="renamed", from_path=shown_path(pair[0]))
        if was and now and was.mode != now.mode:
            made = made.but(old_mode=f"{was.mode:o}", new_mode=f"{now.mode:o}")
        old, new = (reader.content(side) if side else b"" for side in sides)
        if old is None or new is None or not in_time:
            return made.but(unshown="big")
        return _with_lines(made, old, new)


class ChangeRecorder:
    """The runs that work in the workspace now. Safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[RunRecording] = []

    @contextlib.contextmanager
    def recording(
        self,
        workspace: Path,
        closed: Collection[Path],
        monotonic: Callable[[], float],
        *,
        looks: bool,
    ) -> Generator[RunRecording]:
        """While one run works; `looks`: what it changes is asked for, not only that it works."""
        store = _nameless_file() if looks else None
        try:
            reader = None
            if store is not None:
                reader = WorkspaceReader(workspace, closed, monotonic, store)
            recording = RunRecording(workspace, reader, monotonic)
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
        finally:
            if store is not None:
                os.close(store)


def _nameless_file() -> int | None:
    """A file that no run can reach, and that is gone with the process; None where there is none."""
    try:
        with tempfile.TemporaryFile(buffering=0) as file:
            return os.dup(file.fileno())
    except OSError:  # no room for it: the work goes on
        return None


def _path(pair: tuple[str, str]) -> str:
    return pair[1] or pair[0]


def _changed(before: WorkspaceSnapshot, after: WorkspaceSnapshot) -> list[tuple[str, str]]:
    """What is not as it was, as its path before and its path now; empty where there is none."""
    found: list[tuple[str, str]] = []
    for path, was in before.files.items():
        now = after.files.get(path)
        if now is None and before.saw(path) and after.saw(path):
            found.append((path, ""))
        elif now is not None and now is not was and not _same(was, now):
            found.append((path, path))
    found += [
        ("", path)
        for path in after.files
        if path not in before.files and before.saw(path) and after.saw(path)
    ]
    return found


def _same(was: SeenFile, now: SeenFile) -> bool:
    if (was.is_link, was.mode, was.size) != (now.is_link, now.mode, now.size):
        return False
    if was.digest is None or now.digest is None:
        return was.stamp == now.stamp
    return was.digest == now.digest


def _with_renames(
    reader: WorkspaceReader,
    pairs: Iterable[tuple[str, str]],
    before: WorkspaceSnapshot,
    after: WorkspaceSnapshot,
) -> list[tuple[str, str]]:
    """What went and what came, joined where one became the other: the same, or much alike."""
    rest = list(pairs)
    gone = [old for old, new in rest if not new]
    came = [new for old, new in rest if not old]
    if not gone or not came:
        return rest
    became: dict[str, str] = {}
    by_content = {
        (now.digest or now.stamp[0], now.size): new
        for new in reversed(came)
        if (now := after.files[new]).size
    }
    for old in gone:
        was = before.files[old]
        new = by_content.pop((was.digest or was.stamp[0], was.size), None)
        if new is not None:
            became[old] = new
    left = [old for old in gone if old not in became]
    fresh = [new for new in came if new not in became.values()]
    if len(left) * len(fresh) <= _MOST_PAIRS:
        became |= _alike(
            {old: _lines(reader, before.files[old]) for old in left},
            {new: _lines(reader, after.files[new]) for new in fresh},
        )
    taken = {*became, *became.values()}
    kept = [(old, new) for old, new in rest if old == new or (old or new) not in taken]
    return kept + list(became.items())


def _alike(gone: dict[str, list[bytes]], came: dict[str, list[bytes]]) -> dict[str, str]:
    """Each file that went with the one it is most like, the likest first."""
    counts = {path: Counter(lines) for path, lines in (*gone.items(), *came.items()) if lines}
    rated: list[tuple[float, str, str]] = []
    for old, was in gone.items():
        for new, now in came.items():
            if old not in counts or new not in counts or not 0.3 < len(was) / len(now) < 3:
                continue
            both = sum((counts[old] & counts[new]).values())
            if (share := 2 * both / (len(was) + len(now))) >= _ALIKE:
                rated.append((share, old, new))
    became: dict[str, str] = {}
    for _, old, new in sorted(rated, reverse=True):
        if old not in became and new not in became.values():
            became[old] = new
    return became


def _lines(reader: WorkspaceReader, seen: SeenFile) -> list[bytes]:
    data = None if seen.is_link else reader.content(seen)
    return [] if data is None or diff.is_binary(data) else diff.lines_of(data)


def _with_lines(made: FileDiff, old: bytes, new: bytes) -> FileDiff:
    if old != new and (diff.is_binary(old) or diff.is_binary(new)):
        return made.but(unshown="binary")
    a, b = diff.lines_of(old), diff.lines_of(new)
    changes = diff.changes_of(a, b)
    hunks, cut = diff.hunks_of(a, b, changes)
    return made.but(
        added=sum(change[3] - change[2] for change in changes),
        removed=sum(change[1] - change[0] for change in changes),
        hunks=hunks,
        cut_lines=cut,
    )


def shown_path(path: str) -> str:
    """A path as it can stand in a record, also where it is no UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")
