"""Who a process is: a pid alone is reused, so its start time and the boot go with it.

On Linux the start time is field 22 of /proc/PID/stat; elsewhere `ps` tells it (untested on macOS).
"""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path


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
        return _start_time_by_ps(pid) if not Path("/proc/self/stat").exists() else None
    except OSError:
        return None
    # The command name may hold blanks and brackets: count fields from its closing bracket.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def is_alive(pid: int, started: str, boot: str) -> bool:
    """Whether that very process, not another with its number, still runs."""
    return boot == boot_id() and start_time(pid) == started


def own_start_time() -> str:
    """The start time of this process; a forked child has one of its own."""
    return _start_time_once(os.getpid())


@functools.cache
def _start_time_once(own_pid: int) -> str:
    return start_time(own_pid) or ""


def _start_time_by_ps(pid: int) -> str | None:
    out = subprocess.run(
        ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return out.stdout.strip() or None
