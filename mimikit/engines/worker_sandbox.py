"""The sandbox of an agent's Worker: the outer one, git's folders shut in it, proved to hold.

Each engine whose Worker works with tools of a shell's power has it, whatever that engine is.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path

from mimikit.engines import git, sandbox
from mimikit.engines.base import UPSTREAM, EngineRequest, OnEvent
from mimikit.engines.git_folders import GitFolders
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files

GIT_PINS = f"{paths.CACHE}/git-folders"
"""What was found of git, as paths with zero bytes between them: where commits go, what was met."""


class WorkerSandbox:
    """Made once for an engine; safe between threads."""

    def __init__(self, state: Path, secrets: Sequence[str]) -> None:
        """`secrets`: more that no Worker reads, besides the usual of the home."""
        self._state, self._secrets = state, secrets
        self._lock = threading.Lock()
        self._proved: set[tuple[Path, bool, bool, bool]] = set()
        """Workspaces, each in the forms in which the sandbox was found to hold there."""

    @contextlib.contextmanager
    def git_held(self, request: EngineRequest) -> Generator[GitFolders]:
        """What the run may do with git's folders; afterwards, in `left`, what it left behind.

        Raises:
            EngineError: there is more in the workspace than can be looked at or shut.
        """
        if request.kept:  # a worktree: nothing of git is the Worker's
            yield GitFolders(shut=[path for path in request.kept if os.path.lexists(path)])
            return
        if request.read_only:  # the whole workspace is, git's folders with it
            yield GitFolders()
            return
        went, met = self._git_pins()
        with git.held(request.workspace, self._state, met) as folders:
            self._pin(folders, went, request.on_event)
            yield folders
        for note in folders.left:
            request.on_event("note", note, {})

    def masked(
        self,
        argv: Sequence[str],
        request: EngineRequest,
        folders: GitFolders,
        *,
        writable: Iterable[Path] = (),
        shown: Iterable[Path] = (),
        logins: Iterable[Path] = (),
        confined: bool = False,
        network: bool = True,
    ) -> list[str]:
        """`argv` in the sandbox. `writable` and `shown` stay so within what is masked."""
        workspace = request.workspace
        own, sealed = sandbox.own_files(workspace)
        for path in sealed if not request.read_only else ():
            said = f"{path}: nothing can be made or removed right in it, this program starts there"
            request.on_event("note", said, {})
        states = [path for path in folders.states if os.path.realpath(path) == str(path)]
        secret = [*sandbox.secrets_of_home(self._secrets), *states]
        opened = [request.scratch, workspace, *writable]
        if confined:  # else the engine's own sandbox says where commits go
            top = os.path.realpath(workspace)
            opened += [path for path in folders.writable if not path.is_relative_to(top)]
        return sandbox.masked(
            argv,
            self._state,
            writable=opened if not request.read_only or not confined else [request.scratch],
            shown=[path for path in (request.scratch / UPSTREAM, *shown) if path.exists()],
            read_only=[*own, *folders.shut],
            reopened=folders.opened,
            pinned=[*folders.pinned, *sandbox.folders_around([*own, *sealed], workspace)],
            hidden=[*secret, *sandbox.doors()],
            sealed=sealed if not request.read_only else (),
            frozen=workspace if request.read_only else None,
            logins=logins,
            confined=confined,
            network=network,
        )

    def unproved(
        self,
        request: EngineRequest,
        *,
        inner: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        confined: bool = False,
        network: bool = True,
    ) -> str | None:
        """Why the sandbox does not hold here; looked at once for each workspace and form.

        `inner`: what stands in front of an agent's own commands, started in the environment `env`.
        """
        form = request.workspace, request.read_only, confined, network
        with self._lock:
            if form in self._proved:
                return None
            reason = sandbox.canary(
                self._state,
                request.workspace,
                inner=inner,
                env=env,
                frozen=request.read_only,
                confined=confined,
                network=network,
            )
            if reason is None:
                self._proved.add(form)
            return reason

    def _git_pins(self) -> tuple[list[Path], list[Path]]:
        """Where commits went first, and what was met of git before."""
        with contextlib.closing(RealDisk(self._state)) as disk:
            went, _, met = (Files(disk).read(GIT_PINS) or b"").partition(b"\0\0")
        first, second = (
            [Path(os.fsdecode(path)) for path in part.split(b"\0") if path] for part in (went, met)
        )
        return first, second

    def _pin(self, folders: GitFolders, went: list[Path], on_event: OnEvent) -> None:
        """Keep what was found of git for the runs to come; say what is not as it was."""
        commits = folders.writable or went
        parts = (b"\0".join(map(os.fsencode, paths)) for paths in (commits, folders.met))
        with self._lock:
            write_cache(self._state, GIT_PINS, b"\0\0".join(parts))
        for note in folders.notes:
            on_event("note", note, {})
        if went and commits != went:
            now, before = (", ".join(map(str, paths)) for paths in (commits, went))
            on_event("note", f"commits go to {now} now, no longer to {before}", {})


def write_cache(state: Path, name: str, data: bytes) -> None:
    """Keep what can be found again, in the state's `cache/`."""
    with contextlib.closing(RealDisk(state)) as disk:
        files = Files(disk, durable=False)
        files.make_folders()
        files.write(name, data)
