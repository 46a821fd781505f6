"""The sandbox of Workers, and the canary: a shell in it that tries to break out."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mimikit.config import asset_folder
from mimikit.engine_settings import SandboxSettings
from mimikit.errors import EngineError
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.sandbox import programs
from mimikit.sandbox.box import Box, box_argv, namespace_argv
from mimikit.sandbox.git import git_access

INSTALL = "install bubblewrap (`sudo apt install bubblewrap`, `dnf install bubblewrap`)"
OR_OPEN = '`sandbox.mode = "off"` lets agents run without it'
_PROBE_TIMEOUT_S = 20.0
_CACHE_S = 120.0
_SECRETS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".netrc", ".git-credentials", ".pypirc"),
    *(".config/gh", ".config/gcloud", ".config/git/credentials", ".docker/config.json"),
    *(".config/opencode", ".local/share/opencode", ".codex/auth.json"),
)
"""Masked if the box shows the home or a part of it."""
_DONE = "all was tried"
_ATTACK = """
cat "$1/$2"; echo forged > "$1/$3"
mkdir -p "$1/cache"; cat "$1/$2"; echo forged > "$1/$3"
umount "$1"; umount -l "$1"; cat "$1/$2"; echo forged > "$1/$3"
for root in /proc/[0-9]*/root; do cat "$root$1/$2"; done
[ "$(readlink /proc/self/ns/pid)" = "$4" ] && echo "sees $5"
[ "$6" = no ] && grep -v -e '|' -e ' lo:' /proc/net/dev && echo "has $5"
echo "all was" tried
"""
"""The canary's script: read and write the state, see the consumer, use a network."""


def namespaced(
    argv: Sequence[str],
    *,
    hidden: Iterable[Path] = (),
    writable: Iterable[Path] = (),
    covers: Mapping[Path, Path] | None = None,
) -> list[str] | None:
    """`argv` in a process namespace; None if bubblewrap is missing or cannot create one."""
    bwrap = programs.find_bwrap()
    if bwrap is None or _probe() is not None:
        return None
    return namespace_argv(bwrap, argv, hidden=hidden, writable=writable, covers=covers)


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """What one run needs of its box. Paths may be links."""

    workspace: Path
    scratch: Path
    read_only: bool = False
    network: bool = False
    nests: bool = False
    """Whether the program creates its own box in it, as codex does."""
    writable: Sequence[Path] = ()
    shown: Sequence[Path] = ()


class WorkerSandbox:
    """One per engine; thread-safe."""

    def __init__(self, settings: SandboxSettings, state: Path) -> None:
        self._settings, self._state = settings, real(state)
        self._lock = threading.Lock()
        self._verified = set[tuple[object, ...]]()

    @property
    def is_off(self) -> bool:
        return self._settings.mode == "off"

    def unavailable(self) -> str | None:
        if self.is_off or (reason := _probe("--unshare-user", "--unshare-net")) is None:
            return None
        return f"{reason}; {OR_OPEN}"

    def argv(self, argv: Sequence[str], spec: BoxSpec) -> list[str]:
        """`argv` in the box; unchanged with `sandbox.mode = off`. Raises EngineError."""
        if self.is_off:
            return list(argv)
        if (bwrap := programs.find_bwrap()) is None:
            raise EngineError(self.unavailable() or INSTALL)
        workspace, scratch = real(spec.workspace), real(spec.scratch)
        (temporary := scratch / "tmp").mkdir(exist_ok=True)
        if workspace == Path(workspace.anchor):
            raise EngineError(f"expected a folder as workspace, got {workspace}")
        git = git_access(workspace, self._settings.git)
        own = [path for path in map(real, _own_files()) if path.is_relative_to(workspace)]
        configured = [real(Path(name).expanduser()) for name in self._settings.show]
        shown = [*git.shown, *own, *map(real, spec.shown), *configured]
        protected = [*own, self._state, *git.shown]
        parents = [folder for path in protected for folder in path.parents if folder != workspace]
        pinned = [folder for folder in parents if folder.is_relative_to(workspace)]
        pinned += [] if git.writable is None else [git.writable]
        writable = [real(path) for path in spec.writable]
        # An engine needs the login in its own home, and hides it from its shells itself.
        keys = [
            path
            for path in hidden_paths(self._settings)
            if not any(map(path.is_relative_to, writable))
        ]
        box = Box(
            cwd=workspace,
            home=real(Path.home()),
            writable=[*([] if spec.read_only else [workspace]), scratch, *writable],
            shown=[*([workspace] if spec.read_only else []), *shown],
            pinned=[] if spec.read_only else pinned,
            hidden=[self._state, *keys],
            network=spec.network,
            nests=spec.nests,
        )
        line = box_argv(bwrap, argv, box)
        return [line[0], "--setenv", "TMPDIR", str(temporary), *line[1:]]

    def commits_in(self, workspace: Path) -> list[Path]:
        """The git folder, if the Worker may commit."""
        folder = git_access(real(workspace), self._settings.git).writable
        return [] if folder is None else [folder]

    def why_unsafe(
        self, spec: BoxSpec, *, inner: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> str | None:
        """Runs the canary, once per workspace and kind of box; None if it could not break out.

        `inner`: the argv that precedes the agent's commands.
        """
        form = spec.workspace, spec.read_only, spec.network, tuple(inner[:1])
        with self._lock:
            if self.is_off or form in self._verified:
                return None
            tag = secrets.token_hex(8)
            bait, forged = f"{paths.CACHE}/canary-{tag}", f"{paths.CACHE}/forged-{tag}"
            namespace = str(Path("/proc/self/ns/pid").readlink())
            words = [str(self._state), bait, forged, namespace, tag]
            network = "yes" if spec.network else "no"
            line = self.argv([*inner, "/bin/sh", "-c", _ATTACK, "sh", *words, network], spec)
            reason = self._run_canary(line, env, tag, bait, forged)
            if reason is None:
                self._verified.add(form)
            return reason

    def _run_canary(
        self, line: list[str], env: Mapping[str, str] | None, tag: str, bait: str, forged: str
    ) -> str | None:
        secret = secrets.token_hex(16)
        with contextlib.closing(RealDisk(self._state)) as disk:
            files = Files(disk, durable=False)
            files.make_folders()
            files.write(bait, secret.encode())
            try:
                output = _output(line, env)
            finally:
                files.remove(bait)
            could_write = files.remove(forged)
        if could_write:
            return f"a shell in the box could write below {self._state}"
        if secret in output:
            return f"a shell in the box could read below {self._state}"
        if f"sees {tag}" in output:
            return "a shell in the box sees processes outside of it"
        if f"has {tag}" in output:
            return "a shell in the box has a network"
        if _DONE not in output:
            return f"the check of the box did not run: {output.strip()[-300:] or 'no output'}"
        return None


def hidden_paths(settings: SandboxSettings) -> list[Path]:
    """Secrets of the home and of the settings: always masked."""
    named = (Path.home() / Path(name).expanduser() for name in (*_SECRETS, *settings.hide))
    return [real(path) for path in named]


def hidden_path_folders(settings: SandboxSettings, workspace: Path) -> list[str]:
    """Folders of PATH that a box does not show."""
    shown = [Path("/usr"), real(workspace), *(real(Path(n).expanduser()) for n in settings.show)]
    folders = dict.fromkeys(filter(os.path.isdir, os.environ.get("PATH", "").split(os.pathsep)))
    return [name for name in folders if not any(map(real(Path(name)).is_relative_to, shown))]


def real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def python_folders() -> list[Path]:
    """The standard library's folder, if not below /usr."""
    base = real(Path(sys.base_prefix))
    return [] if base.is_relative_to("/usr") else [base]


def _own_files() -> list[Path]:
    """Mimikit itself: read-only if the workspace contains it."""
    package = Path(__file__).parents[1]
    return [package, *map(asset_folder, ("webui", "prompts")), Path(sys.prefix)]


def _probe(*flags: str) -> str | None:
    if sys.platform != "linux":
        return f"expected Linux for the box of agents, got {sys.platform}"
    if (bwrap := programs.find_bwrap()) is None:
        return f"expected bubblewrap for the box of agents, got none; {INSTALL}"
    return _probe_by(bwrap, flags, time.monotonic() // _CACHE_S)


@functools.lru_cache(maxsize=8)
def _probe_by(bwrap: str, flags: tuple[str, ...], _slot: float) -> str | None:
    line = namespace_argv(bwrap, ["/bin/echo", _DONE])
    output = _output([bwrap, *flags, *line[1:]])
    if _DONE in output:
        return None
    return (
        f"bubblewrap cannot create a box here: {output.strip()[-300:] or 'no output'}; "
        "allow user namespaces (in a container: run it with them)"
    )


def _output(line: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """Stdout and stderr of a short program, or why it failed."""
    usual = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(Path.home())}
    try:
        ended = subprocess.run(
            line,
            env=dict(usual if env is None else env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_TIMEOUT_S,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {_PROBE_TIMEOUT_S:g} s"
    except OSError as error:
        return str(error)
    return ended.stdout.decode(errors="replace")
