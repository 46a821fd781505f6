"""What runs left in the git folders that they wrote, put right outside of them, by descriptors.

What was seen by a name may be elsewhere by now, as a run that goes on exchanges folders: it is
changed only below the very folder that was given to be written.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import struct
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from pathlib import Path

from mimikit.engines import process, sandbox
from mimikit.engines.git_folders import KIN, shut_in, strange_in, text_of
from mimikit.errors import EngineError
from mimikit.protocol.paths import STATE_FOLDER

CLOSED = (
    "can not be looked into since it ran: it is read-only to agents until you mend its "
    "permissions; look at what is in it before you use git there"
)
MOST_TOLD = 20
_MOST_INDEXES = 100
_MOST_BYTES = 128 * 1024 * 1024
"""Of the indexes of one git folder together: more than a million files."""
_MOST_PARTED_BYTES = 1024 * 1024
_MOST_PARTED_IN_ALL = 16 * _MOST_PARTED_BYTES
"""By one run: each name of one file becomes a file."""
_MODE, _HASH_AT = 24, 40
_EXTENDED, _NAME_BITS = 0x4000, 0xFFF
_FOLDER = 0o040000
_UNSEEN = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""What the file system of macOS leaves out of names."""
_OUT = frozenset({b"", b".", b".."})
_SHUT_NAMES = frozenset({".git", "git~1", STATE_FOLDER, *KIN})
_SHUT_BEGINS = frozenset({name[:1].encode() for name in _SHUT_NAMES})
_TIPS = """
git for-each-ref --count=$1 --format='%(refname)' && echo HEAD && echo &&
{ git for-each-ref --count=$1 --format="$2" && printf "$3"; } | git cat-file --batch-check
"""
"""Prints the name of each branch and tag, then for each of them, path by path, what is there."""
_MOST_TIPS = 10_000


@contextlib.contextmanager
def opened(folder: Path, below: int | None = None, *, inode: int = 0) -> Generator[int]:
    """A descriptor of a folder to which no link leads: of that one, whatever takes its place.

    Raises:
        OSError: there is a link on the way, or no such folder.
        EngineError: it is not the one that was looked at.
    """
    how = os.O_DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", os.O_RDONLY)
    at = os.open("/", how) if below is None else os.dup(below)
    try:
        for part in folder.parts[1 if below is None else 0 :]:
            inner = os.open(part, how, dir_fd=at)
            os.close(at)
            at = inner
        if inode not in (0, os.fstat(at).st_ino):
            raise EngineError(f"{folder} was exchanged meanwhile")
        yield at
    finally:
        os.close(at)


def cut(said: list[str]) -> list[str]:
    more = [f"… and {len(said) - MOST_TOLD} more"] if len(said) > MOST_TOLD else []
    return [*said[:MOST_TOLD], *more]


def remove_links(written: Mapping[Path, int]) -> list[str]:
    """Remove links from git folders that were written; says so, and what can not be looked into.

    Folders whose permissions the run took away get them back: there may be links in them.
    """
    said: list[str] = []
    for folder, top in written.items():

        def reopen(path: Path, folder: Path = folder, top: int = top) -> bool:
            with contextlib.suppress(OSError), opened(path.relative_to(folder), top) as at:
                if _give_back(at):
                    said.append(f"gave {path} its permissions back, which had been taken away")
                    return True
            return False

        for path in strange_in(folder, reopen):
            inner = path.relative_to(folder)
            with contextlib.suppress(OSError), opened(inner.parent, top) as at:
                if path == folder or not _is_link(inner.name, at):
                    if not os.path.lexists(path):  # a folder around it is closed
                        continue
                    said.append(f"{path} {CLOSED}")
                    continue
                to = os.readlink(inner.name, dir_fd=at)
                _give_back(at)
                os.unlink(inner.name, dir_fd=at)
                said.append(f"removed {path}, a link to {to} that git would have written through")
    return cut(said)


def _give_back(at: int) -> bool:
    """Have the owner read, write and search a folder; whether anything was missing."""
    mode = stat.S_IMODE(os.fstat(at).st_mode)
    if mode & stat.S_IRWXU == stat.S_IRWXU:
        return False
    _path_of(at).chmod(mode | stat.S_IRWXU)
    return True


def _path_of(at: int) -> Path:
    """The very folder of a descriptor, wherever it is now."""
    return Path(f"/proc/self/fd/{at}")


def _is_link(name: str, at: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode)


def set_indexes_aside(
    written: Mapping[Path, int], own: Iterable[Path] = (), shut: Iterable[bytes] = ()
) -> list[str]:
    """Rename each index by which git would write where it must not; says so.

    `shut`: where nothing is written either from the git folders of the workspace itself, `own`.
    """
    said: list[str] = []
    for folder, at in written.items():
        with contextlib.suppress(OSError):
            names = [path.name for path in _path_of(at).iterdir() if _is_index(path.name)]
            of_own = tuple(shut) if folder in own else ()
            odd = _odd(sorted(names)[:_MOST_INDEXES], folder, at, of_own)
            if "index" in names and any(name.startswith("shared") for name in odd):
                odd.setdefault("index", "may build on an odd one")
            for name, why in odd.items():
                said.append(_set_aside(folder / name, at, why))
    return cut(said)


def _is_index(name: str) -> bool:
    of_git = name == "index" or name.startswith(("index.", "sharedindex."))
    return of_git and not name.endswith(".lock") and ".odd" not in name


def _odd(names: Iterable[str], folder: Path, at: int, shut: Collection[bytes]) -> dict[str, str]:
    room, odd, hash_bytes = _MOST_BYTES, dict[str, str](), _hash_bytes(folder)
    for name in names:
        try:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
            with os.fdopen(handle, "rb") as file:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode):
                    odd[name] = "is no file"
                    continue
                room -= found.st_size
                why = "is too large to be looked at"
                if room >= 0:
                    why = why_odd(file.read(found.st_size), hash_bytes, shut)
        except FileNotFoundError:
            continue
        except OSError as error:
            why = f"can not be read ({error.strerror})"
        if why:
            odd[name] = why
    return odd


def _hash_bytes(folder: Path) -> int:
    """How long the names of objects are; the configuration is shut, and tells."""
    common = folder.parent.parent if folder.parent.name == "worktrees" else folder
    with contextlib.suppress(OSError, EngineError):
        if re.search(r"objectformat\s*=\s*\"?sha256", text_of(common / "config"), re.IGNORECASE):
            return 32
    return 20


def _set_aside(path: Path, at: int, why: str) -> str:
    to = f"{path.name}.odd"
    try:
        _give_back(at)
        if os.path.lexists(_path_of(at) / to):
            to = f"{to}-{secrets.token_hex(4)}"
        os.rename(path.name, to, src_dir_fd=at, dst_dir_fd=at)
    except OSError as error:
        return f"{path} {why}, and stays ({error.strerror}): use no git there until it is gone"
    return f"{path} {why}: it was renamed to {to}; `git reset` makes a new one"


def part_names(folders: Iterable[Path]) -> list[str]:
    """Give what is shut in git folders, and has other names too, files of their own; says so."""
    said, stay, room = list[str](), list[str](), _MOST_PARTED_IN_ALL
    for path, found in (one for folder in folders for one in shut_in(folder)):
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            with contextlib.suppress(OSError, EngineError), opened(path.parent) as at:
                copied = _part(path.name, at, min(room, _MOST_PARTED_BYTES))
                if copied is None:
                    stay.append(f"{path} is the same file as another: give it a copy of its own")
                    continue
                room -= copied
                said.append(f"{path} was the same file as another: it is one of its own now")
    return [*cut(stay), *cut(said)]


def _part(name: str, at: int, most: int) -> int | None:
    """How many bytes were copied; None where it is no file, or has more than `most`."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=at)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        data = file.read(found.st_size)
    new, flags = f"{name}.{secrets.token_hex(8)}", os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(new, flags, 0o600, dir_fd=at), "wb") as file:
        file.write(data)
        os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode) & 0o777)
    os.rename(new, name, src_dir_fd=at, dst_dir_fd=at)
    return len(data)


def why_odd(data: bytes, hash_bytes: int = 20, shut: Collection[bytes] = ()) -> str | None:
    """Why nobody should check out an index; None where it is a plain one.

    `shut`: paths below which it must name nothing.

    Git checks names when it adds them, not when it reads an index: by one that somebody else wrote
    `git restore .` writes hooks, and files outside of the workspace. What is read here otherwise
    than git would read it is odd too.
    """
    try:
        return _look(data, hash_bytes, shut)
    except (struct.error, IndexError, ValueError):
        return "can not be read"


def _look(data: bytes, hash_bytes: int, shut: Collection[bytes]) -> str | None:
    sign, version, count = struct.unpack_from(">4sII", data)
    if sign != b"DIRC" or version not in (2, 3, 4):
        raise ValueError
    entries = _Entries(data, version, hash_bytes, shut)
    odd = entries.odd(12, count)
    end, at, is_split = len(data) - hash_bytes, entries.end, False
    if at > end:
        raise ValueError
    last = end - 12 - hash_bytes  # by this git looks for what follows, if it reads with threads
    if data[last : last + 4] == b"EOIE" and struct.unpack_from(">I", data, last + 8)[0] != at:
        raise ValueError
    while at <= end - 8:
        name, size = struct.unpack_from(">4sI", data, at)
        is_split |= name == b"link"
        if name == b"IEOT":  # where each thread begins: it knows nothing of the name before
            blocks = struct.iter_unpack(">II", data[at + 12 : at + 8 + size])
            odd = [*odd, *(one for start, most in blocks for one in entries.odd(start, most))]
        at += 8 + size
    # Where the names lie in another file, those that are not new are empty here.
    names = [name for name in odd if name or not is_split]
    return f"has an entry named {names[0].decode(errors='replace')!r}" if names else None


class _Entries:
    def __init__(self, data: bytes, version: int, hash_bytes: int, shut: Collection[bytes]) -> None:
        self._data, self._is_packed, self._hash_bytes = data, version == 4, hash_bytes
        self._shut = tuple(path + b"/" for path in shut)
        self.end = 0

    def odd(self, at: int, count: int) -> list[bytes]:
        """The odd names among those that begin somewhere; sees where they end."""
        if count > len(self._data):
            raise ValueError
        return [
            name
            for name, is_folder in self._names(at, count)
            if _is_odd(name, is_folder) or (name + b"/").startswith(self._shut)
        ]

    def _names(self, at: int, count: int) -> Generator[tuple[bytes, bool]]:
        data, name = self._data, b""
        for _ in range(count):
            start, at = at, at + _HASH_AT + self._hash_bytes
            (mode,) = struct.unpack_from(">I", data, start + _MODE)
            (flags,) = struct.unpack_from(">H", data, at)
            at += 4 if flags & _EXTENDED else 2
            same = b""
            if self._is_packed:
                less, at = self._number(at)
                if less > len(name) and name:
                    raise ValueError
                same = name[: max(0, len(name) - less)]
            size = (flags & _NAME_BITS) - len(same)
            if flags & _NAME_BITS == _NAME_BITS:
                size = data.index(0, at) - at
            if size < 0 or data[at + size] or 0 in data[at : at + size]:
                raise ValueError
            name = same + data[at : at + size]
            at += size + 1
            if not self._is_packed:
                at = start + (at - start + 7) // 8 * 8
            yield name, mode == _FOLDER
        self.end = at

    def _number(self, at: int) -> tuple[int, int]:
        byte = self._data[at]
        number = byte & 127
        while byte & 128:
            at += 1
            byte = self._data[at]
            number = ((number + 1) << 7) + (byte & 127)
        return number, at + 1


def _is_odd(name: bytes, is_folder: bool) -> bool:
    parts = (name.removesuffix(b"/") if is_folder else name).split(b"/")
    return any(part in _OUT or _is_shut(part) for part in parts)


def _is_shut(part: bytes) -> bool:
    """Whether a name is that of a git folder, or the like, to any file system that git knows."""
    if part.isascii() and part[:1].lower() not in _SHUT_BEGINS:
        return False
    text = _UNSEEN.sub("", part.decode(errors="replace")).lower()
    return re.split(r"[\\:]", text)[0].rstrip(" .") in _SHUT_NAMES


def committed(
    folder: Path, inner: Sequence[bytes], workspace: Path, state: Path
) -> dict[tuple[bytes, str], str]:
    """Which of some paths of a workspace branches and tags have: path and object, and one of them.

    Who checks that out, or merges it, writes what it has there. In the sandbox, as what git reads
    was written by Workers; where git or the sandbox can not be used, nothing is found.
    """
    inner = [path for path in inner if not re.search(rb"[\n\\]", path)]
    asked = [path.decode(errors="surrogateescape").replace("%", "%%") for path in inner]
    of_ref = "%0a".join(f"%(objectname):{path}" for path in asked)
    of_head = "".join(f"HEAD:{path}\\n" for path in asked)
    argv = ["/bin/sh", "-c", _TIPS, "sh", str(_MOST_TIPS), of_ref, of_head]
    argv = sandbox.masked(argv, state, frozen=workspace)
    env = process.environment(more={"GIT_DIR": str(folder)})
    code, said, _ = process.output(argv, cwd=workspace, env=env) if inner else (None, "", "")
    names, _, objects = said.partition("\n\n")
    found, lines = dict[tuple[bytes, str], str](), iter(objects.splitlines() if code == 0 else ())
    for name in names.splitlines():
        for path in inner:
            words = next(lines, "").split(" ")
            if len(words) == 3 and words[2].isdigit():  # object, kind, size
                found[path, words[0]] = name
    return found
