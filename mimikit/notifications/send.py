"""Sends one notification, in a process of its own: `python -P -m mimikit.notifications.send`.

It loads Apprise, says that it is ready, reads what is to be sent from its input, the channel's
address among it, and writes what came of it. No address stands in an argument, the environment, a
file or what it writes. It ends with who started it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from typing import Any, cast

from mimikit.extras import install_line
from mimikit.notifications.secrecy import redacted

LONGEST_S = 60
READY = "ready"
DESKTOP = "desktop"
_NO_PROGRAM = "expected the program notify-send, found none; install libnotify-bin"
_DIE_WITH_PARENT = 1


class _Complaints(logging.Handler):
    """What Apprise says of a failure; it returns no more than that there was one."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def missing() -> str:
    """What to say where the package is not installed."""
    return f"the package for notifications is missing; `{install_line('notify')}` brings it"


def deliver(url: str, title: str, text: str, timeout_s: float, *, check: bool = False) -> str:
    """Send it, or only look at the address; gives why not, without the address; empty: it went."""
    if url.partition("://")[0].lower() == DESKTOP:
        return _to_desktop(title, text, timeout_s, check=check)
    library = cast("Any", importlib.import_module("apprise"))
    complaints = _Complaints()
    logger = logging.getLogger("apprise")
    logger.handlers, logger.propagate = [complaints], False
    asset = library.AppriseAsset(app_id="mimikit", app_desc="mimikit", secure_logging=True)
    plugin = library.Apprise.instantiate(url, asset=asset)
    if plugin is None:
        return "expected an address that Apprise knows, and can use here, got another"
    if check:
        return ""
    sender = library.Apprise(asset=asset)
    sender.add(plugin)
    is_alone = not text  # some services refuse a title without a text
    body, head = (title, "") if is_alone else (text, title)
    if sender.notify(body=body, title=head, body_format=library.NotifyFormat.TEXT):
        return ""
    return redacted(complaints.said[-1] if complaints.said else "it was not taken", url)


def _to_desktop(title: str, text: str, timeout_s: float, *, check: bool) -> str:
    """By the desktop's own program: what Apprise uses for it is seldom there."""
    if (program := shutil.which("notify-send")) is None:
        return _NO_PROGRAM
    if check:
        return ""
    try:
        ended = subprocess.run(
            [program, "--app-name", "mimikit", "--", title, text],
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the desktop did not answer in time"
    said = ended.stderr.decode(errors="replace").strip().splitlines()
    return redacted(said[-1] if said else "it was not taken", "") if ended.returncode else ""


def _end_with_parent() -> None:
    """Linux ends this process with the thread that started it; elsewhere the alarm has to do."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def main() -> None:
    signal.alarm(LONGEST_S)
    _end_with_parent()
    with contextlib.suppress(Exception):  # it is told once something is to be sent
        importlib.import_module("apprise")
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    asked = sys.stdin.buffer.read()
    if not asked:  # whoever started it has ended
        return
    facts = json.loads(asked)
    url = str(facts["url"])
    try:
        error = deliver(
            url, str(facts["title"]), str(facts["text"]), facts["timeoutS"], check=facts["check"]
        )
    except ImportError:
        error = missing()
    except Exception as failure:  # noqa: BLE001 - a library's; whatever it is, it did not go
        error = redacted(f"{type(failure).__name__}: {failure}", url) or "it was not taken"
    sys.stdout.write(json.dumps({"error": error}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads of libraries are not waited for


if __name__ == "__main__":
    main()
