"""The outer sandbox of every agent Worker: bubblewrap, with the state folder masked.

Inside it an agent sees the machine as it is, but an empty, read-only folder where the state lies,
and no process that is not its own. Root loses its capabilities too: it could take the mask away.
Only Linux has it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import sys
from collections.abc import Iterable, Sequence
from importlib import util
from pathlib import Path

from mimikit.engines import process
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files

_PROBE_S = 10
_TRIED = "all was tried"
_ATTACK = """
try() { cat "$1/$2"; echo forged > "$1/$3"; }
try "$1" "$2" "$3"
mkdir "$1/cache" && try "$1" "$2" "$3"
for root in /proc/[0-9]*/root; do try "$root$1" "$2" "$3"; done
umount "$1"; try "$1" "$2" "$3"
umount -l "$1"; try "$1" "$2" "$3"
for kind in -m -Urm; do
    unshare $kind sh -c 'umount "$1"; cat "$1/$2"; echo forged > "$1/$3"' sh "$1" "$2" "$3"
done
echo "all was" tried
"""
"""What a masked shell tries in order to read one file of the state and to write another."""


@functools.cache
def find_bwrap() -> str | None:
    """The bubblewrap program: the system's, else the one that comes with codex's package."""
    return shutil.which("bwrap") or packaged_program("codex-resources", "bwrap")


def packaged_program(*parts: str) -> str | None:
    """A program of the package openai-codex-cli-bin; None where that is not installed."""
    package = util.find_spec("codex_cli_bin")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent.joinpath(*parts)
    return str(program) if os.access(program, os.X_OK) else None


def unavailable() -> str | None:
    """Why there is no sandbox on this machine, and what to do; None when there is."""
    if sys.platform != "linux":
        return f"expected Linux for the Worker's sandbox, got {sys.platform}"
    bwrap = find_bwrap()
    if bwrap is None:
        return "expected bubblewrap for the Worker's sandbox, got none; install its package"
    options = ["--unshare-pid", "--dev-bind", "/", "/", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108 - masked, not used
    code, _, complaints = process.output([bwrap, *options, "--", "/bin/true"], timeout_s=_PROBE_S)
    if code == 0:
        return None
    return (
        f"bubblewrap can not make a sandbox here: {complaints.strip() or 'it says nothing'}; "
        "allow user namespaces (in a container: run it with them)"
    )


def masked(
    argv: Sequence[str],
    state: Path,
    *,
    writable: Iterable[Path] = (),
    read_only: Iterable[Path] = (),
    frozen: Path | None = None,
) -> list[str]:
    """`argv` with the sandbox in front of it.

    `writable` and `read_only` name what of the state folder stays visible; what lies elsewhere is
    visible anyway, and of that `read_only` is made so. `frozen` is a folder around the state folder
    that is read-only but for what is `writable`.
    """
    real = Path(os.path.realpath(state))
    may_write = [os.path.realpath(path) for path in writable]
    wrapped = [find_bwrap() or "bwrap", "--die-with-parent", "--unshare-pid", "--cap-drop", "ALL"]
    if os.geteuid() == 0:
        # What root needs, and all it needs, to make the agent's own sandbox inside this one.
        wrapped += ["--cap-add", "CAP_SETFCAP"]
    wrapped += ["--dev-bind", "/", "/", "--proc", "/proc"]
    if frozen is not None:  # before the mask, which would else be covered
        still = os.path.realpath(frozen)
        wrapped += ["--ro-bind", still, still, *_bound(may_write, below=still)]
    wrapped += ["--tmpfs", str(real), *_bound(may_write, below=real)]
    for path in map(os.path.realpath, read_only):
        wrapped += ["--ro-bind", path, path]
    return [*wrapped, "--remount-ro", str(real), "--", *argv]


def _bound(writable: Iterable[str], *, below: str | Path) -> list[str]:
    paths_below = [path for path in writable if Path(path).is_relative_to(below)]
    return [word for path in paths_below for word in ("--bind", path, path)]


def canary(
    state: Path, workspace: Path, *, inner: Sequence[str] = (), frozen: bool = False
) -> str | None:
    """Prove that a masked shell can neither read nor write the state; else the reason in words.

    With `inner`, the start of a command line that runs another, the shell runs within that; with
    `frozen` in a workspace that is read-only.
    """
    if reason := unavailable():
        return reason
    tag, secret = secrets.token_hex(8), secrets.token_hex(16)
    bait, forged = f"{paths.CACHE}/canary-{tag}", f"{paths.CACHE}/forged-{tag}"
    argv = [*inner, "/bin/sh", "-c", _ATTACK, "sh", os.path.realpath(state), bait, forged]
    if frozen:
        argv = masked(argv, state, frozen=workspace)
    else:
        argv = masked(argv, state, writable=[workspace])
    with contextlib.closing(RealDisk(state)) as disk:
        files = Files(disk, durable=False)
        files.make_folders()
        files.write(bait, secret.encode())
        try:
            _, out, complaints = process.output(argv, cwd=workspace, timeout_s=_PROBE_S)
        finally:
            files.remove(bait)
        could_write = files.remove(forged)
    said = out + complaints
    if could_write:
        return f"a masked shell could write below {state}"
    if secret in said:
        return f"a masked shell could read below {state}"
    if _TRIED not in said:
        return f"the check of the sandbox did not run: {said.strip()[-300:] or 'no output'}"
    return None
