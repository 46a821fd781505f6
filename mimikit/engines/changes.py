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
from collections.abc import Collection, Generator, Mapping
from pathlib import Path

from mimikit.engines import diff
from mimikit.engines.base import EventKind
from mimikit.engines.snapshot import SeenFile, WorkspaceReader, WorkspaceSnapshot
from mimikit.protocol.diffs import FileAction, FileDiff, TaskDiff

MOST_FILES = 300
"""Files of one diff; of more the first by name, those that runs name before others."""
MOST_CHARACTERS = 524_288
"""Of all hunks of one diff."""
_MOST_UNSEEN = 20
_SAID: dict[str, FileAction] = {"add": "added", "delete": "deleted"}


class RunRecording:
    """What one run says it did, and what was there before it."""

    def __init__(self, workspace: Path, reader: WorkspaceReader | None, git: str | None) -> None:
        """Look at the workspace as it is; `reader`: None where nobody asks what is changed."""
        self._root = os.path.realpath(workspace)
        self._reader = reader
        self._before = reader.look() if reader else WorkspaceSnapshot()
        self._git = git
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
        """What it changed up to now; None: nothing, or nobody asks.

        Raises:
            OSError: the contents cannot be compared.
        """
        reader, before = self._reader, self._before
        if reader is None:
            return None
        after = reader.look(before)
        unknown = {path for path in self.named if not (before.saw(path) and after.saw(path))}
        others = {path for other in self.others for path in other.named} - {*self.named}
        found = (_changed(before, after) | unknown) - others
        listed = sorted(found, key=lambda path: (path not in self.named, path))[:MOST_FILES]
        if not listed:
            return None
        made, pairs = list[FileDiff](), list[diff.Pair]()
        for path in listed:
            file, pair = self._file(path, before.files.get(path), after.files.get(path))
            if path in unknown:
                file, pair = file.but(action=self.named[path], unshown="unknown"), (None, None)
            made.append(file.but(attempt=attempt))
            pairs.append(pair)
        return TaskDiff(
            id=task_id,
            files=_with_lines(made, diff.compare(pairs, self._git)),
            more_files=len(found) - len(listed),
            unseen=[shown_path(folder) or "." for folder in sorted(after.unseen)][:_MOST_UNSEEN],
        )

    def _file(
        self, path: str, was: SeenFile | None, now: SeenFile | None
    ) -> tuple[FileDiff, diff.Pair]:
        """A file without its lines yet, and what it held."""
        by_others = any(path in other.named for other in self.others)
        made = FileDiff(
            path=shown_path(path),
            action="modified" if was and now else "added" if now else "deleted",
            old_size=was.size if was else None,
            new_size=now.size if now else None,
            old_mode=f"{was.mode:o}" if was else None,
            new_mode=f"{now.mode:o}" if now else None,
            shared=bool(self.others) and (by_others or path not in self.named),
        )
        old = self._reader.content(was) if self._reader and was else None
        new = self._reader.content(now) if self._reader and now else None
        if (was and old is None) or (now and new is None):
            return made.but(unshown="big"), (None, None)
        return made, (old, new)


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
        """While one run works; `looks`: what it changes is asked for, not only that it works."""
        store = _nameless_file() if looks else None
        try:
            reader = WorkspaceReader(workspace, closed, store) if store is not None else None
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


def _changed(before: WorkspaceSnapshot, after: WorkspaceSnapshot) -> set[str]:
    """The paths that are not as they were; of what was not seen both times nothing is known."""
    both = before.files.keys() & after.files.keys()
    changed = {path for path in both if not before.files[path].is_same(after.files[path])}
    one = before.files.keys() ^ after.files.keys()
    return changed | {path for path in one if before.saw(path) and after.saw(path)}


def _with_lines(made: list[FileDiff], found: list[diff.Difference]) -> list[FileDiff]:
    """The files with what differs in each, cut to size; both ends of a rename joined."""
    left, joined = MOST_CHARACTERS, set[int]()
    for one in found:
        file = made[one.new]
        if one.old != one.new:
            old = made[one.old]
            joined.add(one.old)
            file = file.but(
                action="renamed",
                from_path=old.path,
                old_size=old.old_size,
                old_mode=old.old_mode,
                shared=file.shared and old.shared,
            )
        unshown = one.unshown or ("big" if left <= 0 else None)
        hunks, cut_lines = diff.cut([] if unshown else one.hunks)
        left -= sum(len(line) for hunk in hunks for line in hunk.lines)
        signs = Counter(line[0] for hunk in one.hunks for line in hunk.lines)
        made[one.new] = file.but(
            added=signs["+"],
            removed=signs["-"],
            hunks=hunks,
            cut_lines=cut_lines,
            unshown=unshown,
        )
    kept = [file for number, file in enumerate(made) if number not in joined]
    return [
        file.but(old_mode=None, new_mode=None)
        if file.old_mode == file.new_mode or None in {file.old_mode, file.new_mode}
        else file
        for file in kept
    ]


def shown_path(path: str) -> str:
    """A path as it can stand in a record, also where it is no UTF-8."""
    return os.fsencode(path).decode(errors="backslashreplace")
