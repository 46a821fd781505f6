"""Who is who: ids of records, which are safe as file names, and ids of processes.

A pid alone is reused, so a process's start time and the boot go with it. On Linux the start time is
field 22 of /proc/PID/stat; elsewhere `ps` tells it (untested on macOS).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mimikit.errors import BadInput

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_ID = re.compile(ID_PATTERN)
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def is_id(text: str) -> bool:
    """Whether `text` may be used as an id, and so as a file name."""
    return _ID.fullmatch(text) is not None


def check_id(text: str, *, field: str = "id") -> str:
    """Give `text` back if it is an id.

    Raises:
        BadInput: it is not; the message says what an id looks like.
    """
    if not is_id(text):
        shown = text[:40] + ("…" if len(text) > 40 else "")
        raise BadInput(
            f"{field}: expected 1 to 128 letters, digits, '.', '_' or '-', starting with a letter "
            f"or digit; got {shown!r}",
            field=field,
        )
    return text


def new_id(prefix: str, now: datetime) -> str:
    """A fresh id that sorts by time: the prefix and a ULID.

    Shape: `prefix-` + 10 characters of milliseconds + 16 of randomness, in lower-case base32.
    """
    since = (now - _BEGIN) // timedelta(milliseconds=1)  # exact, unlike a timestamp's float
    value = (since << 80) | int.from_bytes(os.urandom(10))
    return f"{prefix}-" + "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -5, -5))


def derived_id(prefix: str, *parts: str) -> str:
    """The id that always follows from `parts`: replaying what made it makes no second one.

    Shape: `prefix-` + 26 base32 characters of a SHA-256 over the parts.
    """
    digest = hashlib.sha256("\x00".join(parts).encode()).digest()
    return f"{prefix}-" + base64.b32encode(digest).decode().lower()[:26]


@functools.cache
def boot_id() -> str:
    """This boot of the machine; empty where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_time(pid: int) -> str | None:
    """When `pid` started, in the system's own terms; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
        ps = ["/bin/ps", "-o", "lstart=", "-p", str(pid)]
        out = subprocess.run(ps, capture_output=True, text=True, check=False)
        return out.stdout.strip() or None
    except OSError:
        return None
    # The command name may hold blanks and brackets: count fields from its closing bracket.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def is_alive(pid: int, started: str, boot: str) -> bool:
    """Whether that very process, not another with its number, still runs."""
    return boot == boot_id() and start_time(pid) == started


def writer_name() -> str:
    """A name for something on its way, new each time, which tells whether its writer lives."""
    return f"{this_writer()}-{os.urandom(6).hex()}"


def this_writer() -> str:
    """How such names of this process begin."""
    return f"{os.getpid()}-{own_start_time()}-{boot_id()[:8]}"


def abandoned(listed: Iterable[tuple[str, str]], kind: str, prefix: str) -> list[str]:
    """Of names with their kinds those of `prefix` and `writer_name` whose writer is dead."""
    begun = [name for name, got in listed if got == kind and name.startswith(prefix)]
    return [name for name in begun if not writer_lives(name.removeprefix(prefix))]


def writer_lives(temp: str) -> bool:
    """Whether the writer of a temp file may still finish it; unreadable names are nobody's."""
    match temp.split("-"):
        case [pid, started, boot, _] if pid.isascii() and pid.isdigit():
            return boot_id().startswith(boot) and start_time(int(pid)) == started
        case _:
            return False


def own_start_time() -> str:
    """The start time of this process; a forked child has one of its own."""
    return _start_time_once(os.getpid())


@functools.cache
def _start_time_once(own_pid: int) -> str:
    return start_time(own_pid) or ""
