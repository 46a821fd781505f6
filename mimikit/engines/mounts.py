"""What file systems are mounted where: at which other places the same files are seen.

As a program it is the first process of an agent's sandbox: it looks whether all is mounted as it
was meant, starts another program, and keeps that so. It needs the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import math
import os
import re
import select
import signal
import stat
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

HIDE, SHUT, HELD, LOGIN, SHOWN = "hide", "shut", "held", "login", "shown"
"""How a path is kept in a sandbox: masked, now or as soon as it comes; read-only; where it is; from
those in sandboxes within, who masked it as they began; or open within what is masked."""
ENDED = "bwrap: ended, as this can not be kept from the run any more:"
"""What the first process says last where it ends all, before how that came."""

_LINE = re.compile(r"^[^ \n]+ [^ \n]+ ([^ \n]+) ([^ \n]+) ([^ \n]+) .*? - ([^ \n]+)", re.MULTILINE)
_ESCAPED = re.compile(r"\\([0-7]{3})")
"""How a space, a tab, a newline and a backslash stand there."""
_LOOK_EVERY_S, _SOON_S = 1.0, 0.01
_GONE_S = 0.5
"""How long what is shut may be gone while somebody replaces it."""
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
"""These have the same numbers on all machines, and no names in older C libraries."""
_AT_EMPTY, _AT_ALL, _CLONE, _READ_ONLY, _FROM_AND_TO_DESCRIPTORS = 0x1000, 0x8000, 1, 1, 0x44
_SHARED, _EMPTY_FLAGS = 0x104000, 0xF
_NOT_THERE = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.ESRCH, errno.EINVAL),  # of a process that has ended
)
_COMES = 0x1C0 | 0xC00
"""Something was created or moved there or from there, or the folder itself was moved or removed."""
_DUMPABLE, _BOUNDING_DROP, _AMBIENT, _AMBIENT_RAISE, _AMBIENT_CLEAR = 4, 24, 47, 2, 4
_SETFCAP, _CAPABILITIES_3 = 31, 0x20080522


class Mount(NamedTuple):
    """A folder or file of a file system, and where that is seen: what the kernel says."""

    device: str
    root: Path
    """What of the file system it is, from the file system's own top."""
    point: Path
    kind: str


def mounts_here() -> list[Mount]:
    """The mounts that this process sees."""
    return parsed_mounts(os.fsdecode(Path("/proc/self/mountinfo").read_bytes()))


def parsed_mounts(mountinfo: str) -> list[Mount]:
    found = _LINE.findall(mountinfo)
    return [
        Mount(device, Path(_plain(root)), Path(_plain(point)), kind)
        for device, root, point, kind in found
    ]


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)


def mount_holding(path: Path, mounts: Sequence[Mount]) -> Mount | None:
    """The mount in which a real path lies: the nearest around it, of two at one point the later."""
    around = [mount for mount in mounts if path.is_relative_to(mount.point)]
    return max(reversed(around), key=lambda mount: len(mount.point.parts), default=None)


def other_places(path: Path, mounts: Sequence[Mount]) -> list[Path]:
    """Where else the files at and below a real path are seen, or some of them."""
    parts = [(mount.device, mount.root) for mount in mounts if mount.point.is_relative_to(path)]
    if mount := mount_holding(path, mounts):
        parts.append((mount.device, mount.root / path.relative_to(mount.point)))
    places = [
        # Of a mount of a part of it, that part; of one around it, what it is there.
        mount.point / (part.relative_to(mount.root) if part.is_relative_to(mount.root) else "")
        for device, part in parts
        for mount in mounts
        if mount.device == device
        if part.is_relative_to(mount.root) or mount.root.is_relative_to(part)
    ]
    apart = (at for at in places if not (at.is_relative_to(path) or path.is_relative_to(at)))
    return list(dict.fromkeys(apart))


def strange_mounts(
    inside: Sequence[Mount],
    outside: Sequence[Mount],
    masked: Collection[Path],
    shown: Collection[Path],
) -> list[str]:
    """What a sandbox shows that it must not, or does not mask, in words.

    Mounts are made by name, and who goes on beside may exchange what has the name for a link. So
    whatever is mounted has to show what stands there anyway.

    outside: the mounts as they are without it.
    masked: what is there and empty; below that nothing is mounted but at `shown`.
    """
    known, said = set(outside), list[str]()
    for mount in inside:
        point = mount.point
        is_mask = mount.kind == "tmpfs" or mount.root.name == "null"
        if mount in known or (point in masked and is_mask):
            continue
        if mount.kind == "proc" and point == Path("/proc", *mount.root.parts[1:]):
            continue  # the sandbox's own
        around, is_hidden = mount_holding(point, outside), any(map(point.is_relative_to, masked))
        same = around and (around.device, around.root / point.relative_to(around.point))
        if same != (mount.device, mount.root) or (is_hidden and point not in shown):
            said.append(f"{point} shows {mount.root}")
    last = {mount.point: mount for mount in inside}
    for path in masked:
        there = last.get(path)
        if there is None or not (there.kind == "tmpfs" or there.root.name == "null"):
            said.append(f"{path} is not masked")
    return said


class MountGuard:
    """Keeps hidden and shut what a sandbox hides and shuts, whatever is put there from outside.

    Linux takes a mount away, in every sandbox, once somebody who does not see it renames something
    over the place it is on, or removes that: `git config`, an editor, a login. What comes there is
    mounted again; sandboxes made within this one get that too.
    """

    def __init__(self, ways: Mapping[str, str], wake: int) -> None:
        """`ways`: how each real path is kept (`HIDE`, `SHUT`, `HELD`), the outer ones first."""
        self._ways = dict(ways)
        self._null = os.open(os.devnull, os.O_PATH)
        self._table = os.open("/proc/self/mountinfo", os.O_RDONLY)
        self._watch = _kernel("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        self._logins = {path: _opened(path) for path, way in ways.items() if way == LOGIN}
        self._real_logins = {path: os.path.realpath(path) for path in self._logins}
        self._seen = self._look_up()
        self._mounted = {path: self._seen[path] for path in ways if path in self._seen}
        self._gone = {path: -math.inf for path in ways if path not in self._mounted}
        """What is not there, each with when that was seen first."""
        self._poll = select.poll()
        self._poll.register(self._table, select.POLLPRI)
        self._poll.register(self._watch, select.POLLIN)
        self._poll.register(wake, select.POLLIN)

    def mend(self) -> float:
        """Mount again what is not any more; gives the seconds after which to do it again.

        Raises:
            OSError: something there can not be kept as it was; the message says what and why.
        """
        now, wait_s, mended = time.monotonic(), _LOOK_EVERY_S, list[str]()
        for path, way in self._ways.items():
            if path in self._mounted and self._seen.get(path) == self._mounted[path]:
                continue
            try:
                self._watch_for(path)
                if way == LOGIN:
                    self._mind_login(path)
                    continue
                _mount_again(path, way, self._null)
            except FileNotFoundError:
                if way == SHUT and not os.path.lexists(Path(path).parent):
                    self._gone.pop(path, None)  # with it goes what it was a part of
                elif now < self._gone.setdefault(path, now) + _GONE_S:
                    wait_s = _SOON_S  # in the midst of being replaced
                elif way == SHUT:
                    raise
            else:
                self._gone.pop(path, None)
                mended.append(path)
        if mended:
            wait_s = 0.0  # what is around one of them may have come after it was looked for
            self._seen, mounted = self._look_up(), mounts_here()
            self._mounted |= {path: self._seen[path] for path in mended if path in self._seen}
            around = (mount_holding(Path(path).parent, mounted) for path in mended)
            for device in {re.escape(mount.device.encode()) for mount in around if mount}:
                # Private mounts of the same files did not get it.
                _end_all("mountinfo", rb"^\d+ \d+ %b \S+ \S+ \S+ (unbindable )?- " % device)
        return wait_s

    def _mind_login(self, path: str) -> None:
        """End what runs in sandboxes within that mask no more what stands there now."""
        before, now = self._logins[path], _opened(path)
        if now is None:
            return
        if before is None or os.path.realpath(path) != self._real_logins[path]:
            raise OSError(errno.ENOTSUP, "a login came, which its shells could read", path)
        self._logins[path], is_same = now, os.path.sameopenfile(before, now)
        os.close(before)  # no sooner, so that no other file got its number
        if not is_same:
            _end_all("status", rb"^NSpid:\t\d+\t\d")

    def wait(self, wait_s: float) -> None:
        """Wait until something may have changed, or `wake` was written to."""
        found = dict(self._poll.poll(wait_s * 1000))
        for handle in found.keys() - {self._table}:
            os.read(handle, 65536)
        if self._table in found or not found:
            self._seen = self._look_up()

    def _look_up(self) -> dict[str, int]:
        """The number of the mount that is seen at each place where one is."""
        os.lseek(self._table, 0, os.SEEK_SET)
        parts = list(iter(lambda: os.read(self._table, 65536), b""))
        lines = (line.split(" ", 5) for line in os.fsdecode(b"".join(parts)).splitlines())
        return {_plain(point): int(number) for number, _, _, _, point, _ in lines}

    def _watch_for(self, path: str) -> None:
        """Be woken by what comes on the way to a path."""
        folder = last = Path(path)
        while folder != last or last == Path(path):  # what comes until it is watched is seen too
            last = folder
            folder = next(each for each in Path(path).parents if os.access(each, os.R_OK))
            with contextlib.suppress(OSError):  # too many are watched: it is looked at in time
                name = ctypes.c_char_p(os.fsencode(folder))
                _kernel("inotify_add_watch", self._watch, name, _COMES)


def _opened(path: str, flags: int = 0) -> int | None:
    """A descriptor of a path; None if nothing is there, or nobody in here gets there.

    Raises:
        OSError: that can not be told; the agent may have taken all descriptors from this process.
    """
    try:
        return os.open(path, os.O_PATH | flags)
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise
        return None


def _end_all(name: str, pattern: bytes) -> None:
    """End all processes in whose file of `/proc` that has this name the pattern is found."""
    for path in (path for path in Path("/proc").glob(f"[0-9]*/{name}") if path.parts[2] != "1"):
        try:
            if re.search(pattern, path.read_bytes(), re.MULTILINE):
                os.kill(int(path.parts[2]), signal.SIGKILL)
        except OSError as error:
            if error.errno not in _NOT_THERE:
                raise


def _mount_again(path: str, way: str, mask: int) -> None:
    """Mount on what is at a path, by how it is kept: a mask, or itself, which may be read-only.

    All goes by one descriptor, so that no name is looked up twice, and nothing is there that is not
    read-only from the beginning: flags that are set later do not reach the sandboxes within.

    Raises:
        FileNotFoundError: nothing is there just now.
        OSError: it is odd, or the kernel does not mount it.
    """
    if (at := _opened(path, os.O_NOFOLLOW)) is None:
        raise FileNotFoundError(errno.ENOENT, "it is gone", path)
    try:
        kind, real = os.fstat(at).st_mode, str(Path(f"/proc/self/fd/{at}").readlink())
        if way == SHUT and not (stat.S_ISDIR(kind) or stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
            odd = errno.ENOTSUP, "it is neither a file nor a folder"
        elif real == path and not stat.S_ISLNK(kind):
            return _cover(at, way, mask, is_folder=stat.S_ISDIR(kind))
        elif real.endswith(" (deleted)") or not _is_still_at(path, at):
            odd = errno.ENOENT, "it is gone"
        else:
            odd = errno.ELOOP, "a link is there"
    except OSError as error:
        odd = error.errno, error.strerror
    finally:
        os.close(at)
    raise OSError(*odd, path)


def _is_still_at(path: str, handle: int) -> bool:
    """Whether what a descriptor is of can be seen at this path yet.

    What is being removed has another name for a moment, before the kernel calls it deleted.
    """
    if (now := _opened(path, os.O_NOFOLLOW)) is None:
        return False
    try:
        return os.path.samestat(os.fstat(now), os.fstat(handle))
    finally:
        os.close(now)


def _cover(at: int, way: str, mask: int, *, is_folder: bool) -> None:
    if way == HIDE and is_folder:
        where, tmpfs = (ctypes.c_char_p(word) for word in (b"/proc/self/fd/%d" % at, b"tmpfs"))
        _kernel("mount", tmpfs, where, tmpfs, _EMPTY_FLAGS, None)
        return
    name, source = ctypes.c_char_p(b""), mask if way == HIDE else at
    copied = _kernel(_OPEN_TREE, source, name, _AT_EMPTY | _AT_ALL | _CLONE)
    try:
        if way == SHUT:
            flags = ctypes.byref((ctypes.c_uint64 * 4)(_READ_ONLY))
            _kernel(_MOUNT_SETATTR, copied, name, _AT_EMPTY | _AT_ALL, flags, 32)
        _kernel(_MOVE_MOUNT, copied, name, at, name, _FROM_AND_TO_DESCRIPTORS)
    finally:
        os.close(copied)


def _kernel(call: str | int, *given: object) -> int:
    """Make a system call, by its name in the C library or by its number.

    Raises:
        OSError: as the kernel answers.
    """
    library = ctypes.CDLL(None, use_errno=True)
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in given]
    if isinstance(call, int):
        words.insert(0, ctypes.c_long(call))
    answer = getattr(library, call if isinstance(call, str) else "syscall")(*words)
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def _give_up_rights() -> None:
    """Keep no capability but the one by which root makes sandboxes within this one."""
    held = re.search(r"^CapPrm:\s*(\w+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    has_it = held is not None and int(held[1], 16) >> _SETFCAP & 1
    kept = [_SETFCAP] if os.geteuid() == 0 and has_it else []
    for number in range(64):
        if number not in kept:
            with contextlib.suppress(OSError):  # the kernel has no more of them
                _kernel("prctl", _BOUNDING_DROP, number, 0, 0, 0)
    _kernel("prctl", _AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    rights = (ctypes.c_uint32 * 6)(*[sum(1 << number for number in kept)] * 3)
    _kernel("capset", ctypes.byref((ctypes.c_uint32 * 2)(_CAPABILITIES_3)), ctypes.byref(rights))
    for number in kept:
        _kernel("prctl", _AMBIENT, _AMBIENT_RAISE, number, 0, 0)


def _become(words: list[str]) -> NoReturn:
    """Go on as another program, without the guard's rights."""
    _give_up_rights()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    os.execvp(words[0], words)  # noqa: S606 - it becomes what it was given


def _keep(guard: MountGuard, program: int) -> int:
    """Guard the mounts, as the first process, until a child has ended; gives its exit code."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda number, _: os.kill(program, number))
    while True:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == program:
                    code = os.waitstatus_to_exitcode(ended[1])
                    return code if code >= 0 else 128 - code
        guard.wait(guard.mend())


def _enter(handle: str, *words: str) -> None:
    """Run another program in this sandbox if nothing strange is mounted, and keep that so.

    handle: a file with what was mounted outside. words: paths, each after how it is kept, then `--`
    and the program.
    """
    with os.fdopen(int(handle), "rb") as file:
        file.seek(0)
        outside = parsed_mounts(os.fsdecode(file.read()))
    end = words.index("--")
    told = [word.partition("/") for word in words[:end]]
    ways = {f"/{rest}": way for way, _, rest in told if way != SHOWN}
    # What came since it was looked for is not masked yet either.
    masked = [Path(path) for path, way in ways.items() if way == HIDE and os.path.lexists(path)]
    shown = [Path(f"/{rest}") for way, _, rest in told if way == SHOWN]
    if said := strange_mounts(mounts_here(), outside, masked, shown):
        sys.exit(f"bwrap: exchanged meanwhile: {'; '.join(said[:5])}")
    try:
        _kernel("mount", None, ctypes.c_char_p(b"/"), None, _SHARED, None)
        _kernel("prctl", _DUMPABLE, 0, 0, 0, 0)
        wake, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        guard = MountGuard(ways, wake)
        guard.mend()
        if not (program := os.fork()):
            _become(list(words[end + 1 :]))
        code = _keep(guard, program)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)
        sys.exit(f"{ENDED} {error.filename or 'a mount'}: {error.strerror}")
    os._exit(code)


if __name__ == "__main__":
    _enter(*sys.argv[1:])
