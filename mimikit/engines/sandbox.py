"""The outer sandbox of agent Workers and of the owner's commands: bubblewrap, the state masked.

Inside it a run sees the machine as it is, but an empty, read-only folder where the state lies, and
no process that is not its own: with the first of them all others end. A Worker moreover finds
what makes git run programs and this program's own files read-only, secrets gone, and no keys in the
kernel. Root loses capabilities too: it could take the mask away. Only Linux has it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import re
import secrets
import shutil
import stat
import struct
import sys
import tempfile
from collections.abc import Container, Iterable, Mapping, Sequence
from importlib import util
from pathlib import Path
from typing import Literal, NamedTuple

from mimikit.config import asset_folder
from mimikit.engines import mounts, process
from mimikit.engines.mounts import Mount, mounts_here, other_places
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files

_PROBE_S = 10
_UNSHARE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
sys.exit(100 + (libc.unshare(int(sys.argv[1])) and ctypes.get_errno()))
"""
"""Asks the kernel for namespaces as bubblewrap does, and tells its answer by the exit code."""
_NEW_MOUNTS, _NEW_USERS, _NEW_PIDS = 0x20000, 0x10000000, 0x20000000
_NEVER = (0, errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS)
"""Answers that are no sign of a want: it is forbidden, not there, or something else is amiss."""
_UNMASKING = (
    *("SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "SYS_RAWIO", "SYS_BOOT", "MKNOD"),
    *("DAC_READ_SEARCH", "BPF", "PERFMON", "NET_RAW", "NET_ADMIN"),
)
"""With these root reaches what a mask hides: by mounts, disks, handles of files, the kernel, and
by what others send over loopback."""
_DISKS = re.compile(r"sg\d+|ng\d+n\d+|nvme\d+|bsg|mtd.*|raw.*")
"""Character devices by which a disk is read as well as by its block device."""
_OF_THE_SYSTEM = ("/", "/usr", "/usr/local")
_STARTERS = (
    *("GNUmakefile", "Procfile", "pyproject.toml", "scripts"),
    *("requirements.lock", "requirements-run.lock"),
)
"""What starts a checkout: `make up`."""
_DOCUMENTS = (".md", ".rst")
_TOP = Path("/")
_OF_OTHERS = (Path("/dev/shm"), Path("/dev/pts"))  # noqa: S108 - what is kept from a sandbox
_MOST_OPENED = 100
"""Entries of a sealed folder that can be written: each is a mount."""
_SECRETS = (
    *(".ssh", ".aws", ".azure", ".gnupg", ".kube", ".netrc", ".git-credentials", ".pypirc"),
    *(".config/gh", ".config/gcloud", ".config/git/credentials", ".docker/config.json"),
    *(".config/opencode", ".local/share/opencode"),
)
_DOORS = (
    *("run/user/*", "run/dbus", "run/screen", "tmp/.X11-unix", "tmp/.ICE-unix"),
    *("tmp/tmux-*", "tmp/ssh-*", "tmp/emacs*", "tmp/vscode-*.sock"),
    *("run/docker.sock", "run/containerd", "run/podman", "run/libvirt", "run/lxd*"),
    *("var/lib/lxd/unix.socket", "var/lib/incus/unix.socket", "run/snapd*.socket"),
    *("run/systemd/private", "run/systemd/notify", "run/systemd/journal"),
)
_SHUT_CALLS = {
    "x86_64": ((0xC000003E, 248, 72, 72), (0x40000003, 286, 55, 221)),
    "aarch64": ((0xC00000B7, 217, 25, 25), (0x40000028, 309, 55, 221)),
}
"""Of a machine's programs of 64 and of 32 bits: what the kernel calls them, the number of
`add_key`, which `request_key` and `keyctl` follow, and those of `fcntl`."""
_START = """
import os, sys
kept, seen = os.memfd_create("filter", 0), os.memfd_create("mounts", 0)
with open(kept, "wb", closefd=False) as file: file.write(bytes.fromhex(sys.argv[1]))
with open(seen, "wb", closefd=False) as file: file.write(open("/proc/self/mountinfo", "rb").read())
os.lseek(kept, 0, os.SEEK_SET)
at, words = int(sys.argv[2]), sys.argv[3:]
words[at] = str(seen)
if sys.argv[1]: words[1:1] = ["--seccomp", str(kept)]
os.execvp(words[0], words)
"""
"""Starts bubblewrap with a filter of system calls, and has it told what is mounted now."""
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


class SandboxAnswer(NamedTuple):
    """What a sandbox can do on this machine."""

    can: Literal["works", "not here", "not now"]
    """Not now: something it needs is used up, which passes."""
    reason: str = ""


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


def ask() -> SandboxAnswer:
    """Try whether a sandbox can be made; who can not tell apart what it says asks the kernel."""
    if sys.platform != "linux":
        return SandboxAnswer("not here", f"expected Linux for the sandbox, got {sys.platform}")
    if find_bwrap() is None:
        said = "expected bubblewrap for the sandbox, got none; install its package"
        return SandboxAnswer("not here", said)
    argv, said = masked(["/bin/true"], Path(tempfile.gettempdir()), as_owner=True), ""
    for _ in range(2):  # what was used up may be free again when the kernel is asked
        code, _, complaints = process.output(argv, timeout_s=_PROBE_S)
        if code == 0:
            return SandboxAnswer("works")
        said = complaints.strip() or f"it {'is slow' if code is None else 'says nothing'}"
        if code is None or _used_up():
            return SandboxAnswer("not now", f"no sandbox can be made just now: {said}")
    return SandboxAnswer(
        "not here",
        f"bubblewrap can not make a sandbox here: {said}; "
        "allow user namespaces (in a container: run it with them)",
    )


def _used_up() -> bool:
    """Whether the kernel refuses namespaces for want of something that others hold."""
    kinds = _NEW_MOUNTS | _NEW_PIDS | (_NEW_USERS if os.geteuid() else 0)
    code, _, _ = process.output([sys.executable, "-I", "-S", "-c", _UNSHARE, str(kinds)])
    if code in [100 + answer for answer in _NEVER]:
        return False
    limits = (Path(f"/proc/sys/user/max_{kind}_namespaces") for kind in ("mnt", "pid", "user"))
    return not any(path.exists() and path.read_text().strip() == "0" for path in limits)


def masked(
    argv: Sequence[str],
    state: Path,
    *,
    writable: Iterable[Path] = (),
    shown: Iterable[Path] = (),
    read_only: Iterable[Path] = (),
    reopened: Iterable[Path] = (),
    pinned: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    sealed: Iterable[Path] = (),
    frozen: Path | None = None,
    logins: Iterable[Path] = (),
    as_owner: bool = False,
    confined: bool = False,
    network: bool = True,
    told: int | None = None,
) -> list[str]:
    """`argv` with the sandbox in front of it.

    `writable` stays so within what is masked or made read-only, and `shown` is read there.
    `read_only` is so wherever else it lies, `reopened` is written within that, `pinned` can neither
    be moved nor replaced: these may have been named by Workers. `hidden` is there and empty, for an
    agent also what comes later. In a `sealed` folder nothing is made, moved or removed; its folders
    and documents are written. `frozen` is a folder around the state folder that is read-only but
    for what is `writable`. `confined` is for what has no sandbox of its own in this one: all is
    read-only but for what is `writable`, terminals and shared memory are gone. Without `network`
    there is none. `as_owner` keeps the rights the owner has, but for those that open the mask. The
    folders around the state folder stay where they are: who moves one away makes a state of his own
    in its place. The state and what is hidden are so at each place where they are mounted; for an
    agent a guard keeps all that so. `logins`: what the agent masks for those it starts in sandboxes
    of its own, who end when it is replaced. `told`: where bubblewrap tells how it went.
    """
    real, sealed, mounted = _real(state), [_real(path) for path in sealed], mounts_here()
    states = _places(real, mounted)
    gone = [path for path in _OF_OTHERS if path.is_dir()] if confined else []
    hidden = [place for path in (*hidden, *gone) for place in _places(_real(path), mounted)]
    opened, shown = set(map(_real, writable)), list(map(_real, shown))
    trusted = [*opened, *shown]

    def seen(paths: Iterable[Path]) -> list[Path]:
        found = (
            (path, any(map(path.is_relative_to, (*states, *hidden)))) for path in map(_real, paths)
        )
        return [path for path, is_masked in found if not is_masked or path in trusted]

    shut = seen([*read_only, *sealed, *([] if frozen is None else [frozen])])
    shut += [_TOP] if confined else []
    closed = dict.fromkeys([*shown, *shut], "--ro-bind")
    if os.geteuid() == 0:  # what root reaches without a capability
        closed |= dict.fromkeys((Path("/sys"), Path("/proc/sys")), "--ro-bind")
        closed |= dict.fromkeys(_raw_disks(), "--dev-bind")
    later = [path for path in hidden if not os.access(path, os.F_OK)]
    for path in (path for path in (*hidden, *states) if path not in later):
        closed[path] = "--tmpfs" if path == real or path.is_dir() else "--dev-bind"
    opened = opened.union(seen(reopened), *map(_written_in, sealed))
    again = [path for path in opened if any(map(path.is_relative_to, closed))]
    around = [folder for path in states for folder in path.parents if _can_be_moved(folder)]
    pins = [*seen(pinned), *around]
    pins = [path for path in pins if not _is_shut(path, closed, opened)]  # it would open it again
    made = {**dict.fromkeys([*pins, *again], "--bind"), **closed}
    wrapped = _start_of_box(told, network=network, shut=made.pop(_TOP, None) is not None)
    wrapped += _rights(as_owner=as_owner, confined=confined)
    for path in sorted(made, key=_depth):  # else the outer covers the inner
        source = "/dev/null" if made[path] == "--dev-bind" else str(path)
        wrapped += [made[path], *([source] if made[path] != "--tmpfs" else []), str(path)]
    for path in (path for path, how in made.items() if how == "--tmpfs"):
        wrapped += ["--remount-ro", str(path)]
    if as_owner:
        return [*wrapped, "--", *argv]
    wrapped += ["--", sys.executable, "-I", "-S", mounts.__file__]
    calls = _call_filter(_SHUT_CALLS.get(platform.machine(), ()))
    start = [sys.executable, "-I", "-S", "-c", _START, calls.hex(), str(len(wrapped))]
    kept = {path: how for path, how in made.items() if how != "--bind" or path not in again}
    words = _guarded({**kept, **dict.fromkeys(later, "--tmpfs")})
    words += [f"{mounts.LOGIN}{_real(path.parent) / path.name}" for path in logins]
    words += [f"{mounts.SHOWN}{path}" for path in trusted]
    return [*start, *wrapped, "the mounts", *words, "--", *argv]


def with_empty(argv: Sequence[str], path: Path, empty: Path) -> list[str]:
    """`argv` where a file is there and empty: `empty` is seen in its place.

    Until somebody renames another over it. May stand within what `masked` puts in front.
    """
    there = ["--ro-bind", str(_real(empty)), str(_real(path))]
    front = [find_bwrap() or "bwrap", "--die-with-parent", "--unshare-user", "--dev-bind", "/", "/"]
    return [*front, *there, "--", *argv]


def _rights(*, as_owner: bool, confined: bool) -> list[str]:
    if as_owner:
        return [word for name in _UNMASKING for word in ("--cap-drop", f"CAP_{name}")]
    # The guard mounts, and gives up each right for the agent; but for the last, which root needs,
    # and all it needs, to make the agent's own sandbox inside this one.
    nests = os.geteuid() == 0 and not confined
    kept = ["SYS_ADMIN", "SETPCAP", *(["SETFCAP"] if nests else [])]
    added = [word for name in kept for word in ("--cap-add", f"CAP_{name}")]
    return ["--as-pid-1", "--cap-drop", "ALL", *added]


def _guarded(made: Mapping[Path, str]) -> list[str]:
    """What the guard is told: how each path is kept, in what is around it first."""
    ways = {"--ro-bind": mounts.SHUT, "--bind": mounts.HELD}
    outer_first = sorted(made, key=_depth)
    return [f"{ways.get(made[path], mounts.HIDE)}{path}" for path in outer_first]


def _start_of_box(told: int | None, *, network: bool, shut: bool) -> list[str]:
    """Bubblewrap with what it shows before anything else is closed; `shut`: all is read-only."""
    wrapped = [find_bwrap() or "bwrap", "--die-with-parent", "--unshare-pid"]
    wrapped += ["--json-status-fd", str(told)] if told is not None else []
    wrapped += [] if network else ["--unshare-net"]
    shown = ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev"]
    return [*wrapped, *(shown if shut else ["--dev-bind", "/", "/"]), "--proc", "/proc"]


def _call_filter(calls: Iterable[tuple[int, int, int, int]]) -> bytes:
    """A filter with which the kernel seems to keep no keys, and gives no leases.

    The keys are the owner's (tickets, disks). A lease on a file that the owner may read has whoever
    opens that wait for 45 seconds.

    Each line of it: what to do, how many lines to pass over if it is so and if not, a number.
    """
    lines = list[tuple[int, int, int, int]]()
    for kind, first, *of_files in calls:
        lines += [
            (0x20, 0, 0, 4),  # whose numbers these are
            (0x15, 0, 11, kind),
            (0x20, 0, 0, 0),  # the call
            (0x54, 0, 0, 0xBFFFFFFF),  # of the shorter pointers (x32) too
            (0x35, 0, 2, first),
            (0x25, 1, 0, first + 2),
            (0x06, 0, 0, 0x50000 | errno.ENOSYS),
            (0x15, 1, 0, of_files[0]),
            (0x15, 0, 3, of_files[1]),
            (0x20, 0, 0, 24),  # what is asked of a file
            (0x15, 0, 1, fcntl.F_SETLEASE),
            (0x06, 0, 0, 0x50000 | errno.EACCES),
            (0x06, 0, 0, 0x7FFF0000),  # let it be made
        ]
    lines.append((0x06, 0, 0, 0x7FFF0000))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


def _raw_disks(devices: Path = Path("/dev")) -> list[Path]:
    """The disks of the machine: whoever reads one reads each file on it."""
    disks: list[Path] = []
    for top, folders, names in os.walk(devices):
        folders[:] = [name for name in folders if not os.path.ismount(f"{top}/{name}")]
        for path in (Path(top, name) for name in names):
            with contextlib.suppress(OSError):  # gone meanwhile
                mode = path.lstat().st_mode
                by_name = any(map(_DISKS.fullmatch, path.relative_to(devices).parts))
                if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and by_name):
                    disks.append(path)
    return disks


def _depth(path: Path) -> int:
    return len(path.parts)


def _can_be_moved(folder: Path) -> bool:
    return not folder.is_mount() and os.access(folder.parent, os.W_OK)


def _is_shut(path: Path, closed: Container[Path], opened: Container[Path]) -> bool:
    """Whether what is nearest around a path, or itself, is closed and not opened again."""
    around = (folder for folder in (path, *path.parents) if folder in closed or folder in opened)
    return next(around, path) in closed


def _places(real: Path, mounted: Sequence[Mount]) -> list[Path]:
    """A real path, and where else its files are seen, or will be."""
    others, is_there = other_places(real, mounted), os.access(real, os.F_OK)
    return [real, *(path for path in others if not is_there or os.access(path, os.F_OK))]


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _written_in(sealed: Path) -> list[Path]:
    with os.scandir(sealed) as entries:
        names = [
            entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False)
            or (entry.is_file(follow_symlinks=False) and entry.name.endswith(_DOCUMENTS))
        ]
    return [sealed / name for name in sorted(names)[:_MOST_OPENED] if name != "__pycache__"]


def own_files(workspace: Path) -> tuple[list[Path], list[Path]]:
    """What this program is made of, and what starts it: no Worker changes that.

    Second, the folders of the workspace in which Python, `make up` or `honcho` would take up what
    is not there yet (`sitecustomize.py`, `.env`): a Worker makes nothing in them.
    """
    package = Path(__file__).parents[1]
    made_of = {package, *map(asset_folder, ("webui", "prompts")), Path(sys.prefix)}
    made_of.add(Path(sys.base_prefix))  # a Python of the owner's own, it may be
    made_of |= {package.parent / name for name in _STARTERS}
    made_of = {path for path in map(_real, made_of) if str(path) not in _OF_THE_SYSTEM}
    top, checkout = _real(workspace), _real(package.parent)
    searched = {checkout, *(_real(Path(name)) for name in sys.path)}
    work = {top}  # what has to be worked in all the same
    if checkout.name not in ("site-packages", "dist-packages") and checkout.is_relative_to(top):
        work.add(checkout)
    made_of |= {path for path in searched - work if str(path) not in _OF_THE_SYSTEM}
    return [path for path in made_of if os.access(path, os.F_OK)], sorted(searched & work)


def folders_around(inner: Iterable[Path], workspace: Path) -> list[Path]:
    """The folders of a workspace in which something lies that has to stay where it is."""
    top = _real(workspace)
    around = [folder for path in inner for folder in (_real(path.parent) / path.name).parents]
    return [folder for folder in around if folder != top and folder.is_relative_to(top)]


def secrets_of_home(more: Iterable[str] = ()) -> list[Path]:
    """What of the owner's home no Worker reads, there or not."""
    return [Path.home() / Path(name).expanduser() for name in (*_SECRETS, *more)]


def doors(root: Path = Path("/")) -> list[Path]:
    """Sockets on which the owner's other programs wait for orders, as far as they are there."""
    found = [path for pattern in _DOORS for path in root.glob(pattern)]
    found += [Path(path) for path in (os.environ.get("SSH_AUTH_SOCK"),) if path]
    return [path for path in found if os.access(path, os.X_OK if path.is_dir() else os.W_OK)]


def canary(
    state: Path,
    workspace: Path,
    *,
    inner: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    frozen: bool = False,
    confined: bool = False,
    network: bool = True,
) -> str | None:
    """Prove that a masked shell can neither read nor write the state; else the reason in words.

    With `inner`, the start of a command line that runs another, the shell runs within that, in the
    environment `env`; with `frozen` in a workspace that is read-only; `confined` and `network` are
    those of `masked`.
    """
    if reason := ask().reason:
        return reason
    tag, secret = secrets.token_hex(8), secrets.token_hex(16)
    bait, forged = f"{paths.CACHE}/canary-{tag}", f"{paths.CACHE}/forged-{tag}"
    argv = [*inner, "/bin/sh", "-c", _ATTACK, "sh", os.path.realpath(state), bait, forged]
    argv = masked(
        argv,
        state,
        writable=[workspace],
        frozen=workspace if frozen else None,
        confined=confined,
        network=network,
    )
    with contextlib.closing(RealDisk(state)) as disk:
        files = Files(disk, durable=False)
        files.make_folders()
        files.write(bait, secret.encode())
        try:
            _, out, complaints = process.output(argv, cwd=workspace, env=env, timeout_s=_PROBE_S)
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
