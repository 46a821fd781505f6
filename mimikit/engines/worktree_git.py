"""Git as self-awake runs it: what a repository says starts no program, and each folder is named.

Nothing here looks at what a Worker may have written in order to find git's folders.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from pathlib import Path

from mimikit.engines import process, process_tree
from mimikit.engines.base import CancelToken
from mimikit.engines.program import Program, Stream
from mimikit.errors import BadInput
from mimikit.protocol.self_awake import RepositoryPlace

_TIMEOUT_S = 600.0
_MOST_OUTPUT = 64 * 2**20
_QUIET = (
    *("core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"),
    *("submodule.recurse=false", "core.untrackedCache=false", "core.splitIndex=false"),
    *("advice.detachedHead=false", "protocol.allow=never", "commit.gpgSign=false"),
)
"""Settings under which git runs nothing and writes nothing beside what it is asked for."""
AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "mimikit"), ("EMAIL", "mimikit@localhost"))
}
LINKS = ("120000", "160000")
"""Modes of symbolic links, and of repositories within."""


class WorktreeGit:
    """Runs it, by whatever thread."""

    def __init__(self, folder: Path, state: Path) -> None:
        """`folder`: where the worktrees are."""
        self._folder, self._state = folder, state

    @contextlib.contextmanager
    def staged(
        self,
        place: RepositoryPlace,
        name: str,
        known: Collection[str] | None = None,
        *,
        kept: bool = False,
    ) -> Generator[Callable[[Sequence[str]], str]]:
        """Git with all that stands in a worktree in an index of its own, gone afterwards.

        known: of what is new there only this.
        kept: what is new goes into the repository, else into a folder that is gone as well.

        Raises:
            BadInput: a repository was made in it.
        """
        path, git_dir = self._folder / name, Path(place.git_dir)
        with tempfile.TemporaryDirectory(prefix=process_tree.scratch_prefix(self._state)) as held:
            env = {"GIT_INDEX_FILE": f"{held}/index"}
            if not kept:
                (Path(held) / "objects").mkdir()
                env |= {
                    "GIT_OBJECT_DIRECTORY": f"{held}/objects",
                    "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(git_dir / "objects"),
                }

            own = git_dir / "worktrees" / name
            where = [f"--git-dir={own}", f"--work-tree={path}"]
            env |= self.filters_off(own)

            def git(words: Sequence[str]) -> str:
                return self._run([*where, *words], path, env)

            git(["read-tree", place.head])
            if (at := _repository_within(path, git)) is not None:
                raise BadInput(f"{at} was made a repository of its own")
            add(git, place, path, known)
            yield git

    def run(
        self, place: RepositoryPlace, words: Sequence[str], env: Mapping[str, str] | None = None
    ) -> str:
        return self._run([f"--git-dir={place.git_dir}", *words], Path(place.git_dir), env)

    def attempt(
        self, words: Sequence[str], cwd: Path, place: RepositoryPlace | None = None
    ) -> str | None:
        try:
            where = [f"--git-dir={place.git_dir}"] if place else []
            return self._run([*where, *words], cwd)
        except BadInput:
            return None

    def _run(self, words: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None) -> str:
        front = [word for setting in _QUIET for word in ("-c", setting)]
        code, out, said = self._ended(["git", "--no-pager", *front, *words], cwd, env)
        if code != 0:
            last = said.strip().splitlines()[-1:] or [f"it ended with {code}"]
            what = next(word for word in words if not word.startswith("-"))
            raise BadInput(f"git {what}: {last[0][:500]}")
        return out

    def filters_off(self, git_dir: Path) -> dict[str, str]:
        """Variables that turn off each filter the owner has: it would run what a Worker wrote."""
        argv = ["git", f"--git-dir={git_dir}", "config", "--null", "--name-only", "--get-regexp"]
        _, out, _ = self._ended([*argv, r"^filter\."], git_dir, None)
        names = {key.partition(".")[2].rpartition(".")[0] for key in out.split("\0") if key}
        off = (("smudge", ""), ("clean", ""), ("process", ""), ("required", "false"))
        pairs = [(f"filter.{name}.{key}", value) for name in sorted(names) for key, value in off]
        env = {"GIT_CONFIG_COUNT": str(len(pairs))}
        for number, (key, value) in enumerate(pairs):
            env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return env

    def _ended(
        self, argv: Sequence[str], cwd: Path, more: Mapping[str, str] | None
    ) -> tuple[int | None, str, str]:
        said: dict[Stream, list[bytes]] = {"stdout": [], "stderr": []}
        env = process.environment(
            more={
                "LC_ALL": "C.UTF-8",
                "GIT_OPTIONAL_LOCKS": "0",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_NO_LAZY_FETCH": "1",
                **AUTHOR,
                **(more or {}),
            }
        )
        program = Program(
            argv=argv,
            cwd=cwd,
            env=env,
            mark=process_tree.mark(self._state, "self-awake"),
            timeout_s=_TIMEOUT_S,
            output_bytes=_MOST_OUTPUT,
        )
        ended = process.run(program, lambda name, data: said[name].append(data), CancelToken())
        out, errors = (b"".join(said[name]).decode(errors="replace") for name in said)
        if ended.stopped:
            errors = f"it was ended: {ended.stopped}"
        return None if ended.stopped else ended.exit_code, out, errors


def add(
    git: Callable[[Sequence[str]], str],
    place: RepositoryPlace,
    worktree: Path,
    known: Collection[str] | None,
) -> None:
    """Stage what stands in a worktree; of what is new only what is `known`, where that is given."""
    where = f":(top,literal){place.prefix}" if place.prefix else ":/"
    if known is None:
        git(["add", "--all", "--", where])
        return
    git(["read-tree", "-m", place.head])  # keeps what was hashed
    git(["add", "--update", "--", where])
    if there := [name for name in known if os.path.lexists(worktree / name)]:
        git(["add", "--", *(f":(top,literal){name}" for name in there)])


def _repository_within(worktree: Path, git: Callable[[Sequence[str]], str]) -> str | None:
    """Where a Worker has made a repository in a worktree; None: nowhere.

    To see whether a submodule was changed `git add` starts another git in it, which goes by the
    configuration there, and so runs whatever that names. Of others it would make submodules. What
    git ignores it does not look into: there package managers keep repositories.
    """
    for entry in git(["ls-files", "--stage", "-z"]).split("\0"):
        mode, _, at = entry.partition(" ")[0], *entry.partition("\t")[1:]
        # A name that is not UTF-8 can not be looked for by what we were told of it.
        if mode == LINKS[1] and ("\ufffd" in at or os.path.lexists(worktree / at / ".git")):
            return at
    found = [
        Path(folder).relative_to(worktree)
        for folder, folders, files in os.walk(worktree)
        if folder != str(worktree) and any(name.lower() == ".git" for name in (*folders, *files))
    ]
    if not found:
        return None
    words = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"]
    ignored = {name.rstrip("/") for name in git(words).split("\0") if name.endswith("/")}
    for folder in found:
        if not ignored.intersection(map(Path.as_posix, (folder, *folder.parents))):
            return folder.as_posix().encode(errors="replace").decode()
    return None


def _quoted(path: Path) -> str:
    """A path as it may stand in a list with colons."""
    text = str(path)
    if ":" not in text and not text.startswith('"'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
