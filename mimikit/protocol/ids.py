"""Ids of records, which are safe as file names, and identities of processes.

Pids are reused, so a process is identified by pid, start time and boot. The start time is field 22
of /proc/PID/stat, elsewhere the output of `ps` (untested on macOS).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mimikit.errors import BadInput

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_ID = re.compile(ID_PATTERN)
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def check_id(text: str, *, field: str = "id") -> str:
    """Return `text`; BadInput when it is no valid id."""
    if not is_id(text):
        shown = text[:40] + ("…" if len(text) > 40 else "")
        raise BadInput(
            f"{field}: expected 1 to 128 letters, digits, '.', '_' or '-', starting with a letter "
            f"or digit; got {shown!r}",
            field=field,
            code="bad_id",
        )
    return text


def new_id(prefix: str, now: datetime) -> str:
    """Create an id that sorts by time: `prefix-` and a lower-case ULID."""
    since = (now - _BEGIN) // timedelta(milliseconds=1)  # exact, unlike a timestamp's float
    value = (since << 80) | int.from_bytes(os.urandom(10))
    return f"{prefix}-" + "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -5, -5))


def derived_id(prefix: str, *parts: str) -> str:
    """Derive an id from its inputs, so that a replay creates no second record."""
    digest = hashlib.sha256("\x00".join(parts).encode()).digest()
    return f"{prefix}-" + base64.b32encode(digest).decode().lower()[:26]


@functools.cache
def boot_id() -> str:
    """The id of this boot; empty where unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def start_time(pid: int) -> str | None:
    """The start time of a process, in the system's own format; None when there is none."""
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
    """Whether the process runs and its pid was not reused."""
    return boot == boot_id() and start_time(pid) == started


def writer_lives(temp: str) -> bool:
    """Whether the process that wrote a temp file is alive; False for a foreign name."""
    match temp.split("-"):
        case [pid, started, boot, _] if pid.isascii() and pid.isdigit():
            return boot_id().startswith(boot) and start_time(int(pid)) == started
        case _:
            return False


def own_start_time() -> str:
    return _start_time_once(os.getpid())


@functools.cache
def _start_time_once(own_pid: int) -> str:
    return start_time(own_pid) or ""
