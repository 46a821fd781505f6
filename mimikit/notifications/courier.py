"""Takes notifications to their channels: each in a process of its own, on a thread of its own.

Only that process loads what it takes, and knows the address for longer than it takes to pass it on.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mimikit.errors import StorageError
from mimikit.notifications import send as sender
from mimikit.notifications.secrecy import redacted
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.notifications import NotificationSend

TIMEOUT_S = 40.0
"""So long one may take, the start of its process included."""
_PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR",
    "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
)  # fmt: skip
"""What the process sees of the environment: no key, no token."""


@dataclass(frozen=True, slots=True)
class SendReport:
    """How a send ended. `error`: why it did not arrive; None: it did.

    is_marked: without its mark it never began, and says nothing of the channel.
    """

    send: NotificationSend
    error: str | None
    is_marked: bool = True
    is_known: bool = True
    """False: its process ended without a word, and it may have arrived."""


class NotificationCourier(Protocol):
    """Where notifications are sent: processes, or in place for tests."""

    def post(self, send: NotificationSend, url: str) -> None:
        """Begin to send one; its mark is written at the last moment before it goes."""
        ...

    def reports(self) -> list[SendReport]:
        """What has ended since the last look."""
        ...

    def close(self, timeout_s: float) -> None:
        """Begin no more, and wait so long for what is under way."""
        ...


class SendProcess:
    """A process that has what it takes to send one notification, and waits for it."""

    def __init__(self, timeout_s: float = TIMEOUT_S) -> None:
        """Raises OSError: it could not be started."""
        self._timeout_s = timeout_s
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mimikit.notifications.send"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            cwd="/",
            # In this session: one of its own would pass for what a run has left behind.
            process_group=0,
        )
        self._end = threading.Timer(timeout_s, self._process.kill)
        self._end.daemon = True
        self._end.start()

    def wait(self) -> bool:
        """Wait until it is ready; False: it has ended."""
        output = self._process.stdout
        return output is not None and output.readline().strip() == sender.READY.encode()

    def send(self, url: str, title: str, text: str, *, check: bool = False) -> str | None:
        """Have it sent; gives why it did not arrive, empty where it did; None: it never said."""
        facts = {
            "url": url, "title": title, "text": text, "check": check,
            "timeoutS": self._timeout_s / 2,
        }  # fmt: skip
        try:
            said, _ = self._process.communicate(json.dumps(facts).encode())
            error = json.loads(said)["error"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return redacted(str(error), url) if error else ""

    def close(self) -> None:
        """End it, whatever it does."""
        self._end.cancel()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was not written to it is not wanted any more
                    continue
        self._process.wait()


def is_installed() -> bool:
    """Whether the package is there that knows the services."""
    return importlib.util.find_spec("apprise") is not None


def sent_now(url: str, title: str, text: str, *, check: bool = False) -> str:
    """Send one and wait for it, or only look at its address; gives why not; empty: it went."""
    try:
        process = SendProcess()
    except OSError as error:
        return f"it could not be tried: {error.strerror}"
    try:
        if not process.wait():
            return "it could not be tried: its process ended without a word"
        error = process.send(url, title, text, check=check)
        return f"no answer came within {TIMEOUT_S:.0f} s" if error is None else error
    finally:
        process.close()


class ProcessCourier:
    """Sends by a process each."""

    def __init__(
        self, files: Files, ring: Callable[[], None], start: Callable[[], SendProcess] = SendProcess
    ) -> None:
        """`ring` wakes the supervisor when one has ended."""
        self._files, self._ring, self._start = files, ring, start
        self._done: queue.SimpleQueue[SendReport] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def post(self, send: NotificationSend, url: str) -> None:
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        thread = threading.Thread(
            target=self._run, args=(send, url), name=f"notify {send.channel}", daemon=True
        )
        try:
            thread.start()
        except (RuntimeError, MemoryError):
            self._done.put(SendReport(send, "no thread could be started", is_marked=False))
            return
        self._threads.append(thread)

    def reports(self) -> list[SendReport]:
        return [self._done.get() for _ in range(self._done.qsize())]

    def close(self, timeout_s: float) -> None:
        """Begin no more, and wait so long for what is under way; its mark tells of the rest."""
        self._is_closed = True
        until = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0))

    def _run(self, send: NotificationSend, url: str) -> None:
        try:
            report = self._sent(send, url)
        except (OSError, StorageError, MemoryError) as error:
            report = SendReport(send, redacted(str(error), url), is_marked=False)
        self._done.put(report)
        self._ring()

    def _sent(self, send: NotificationSend, url: str) -> SendReport:
        process = self._start()
        try:
            if not process.wait() or self._is_closed:
                return SendReport(send, "its process could not be started", is_marked=False)
            # From here on it may arrive.
            self._files.save(paths.notification_sending(send.id), send)
            error = process.send(url, send.title, send.text)
        finally:
            process.close()
        if error is None:
            late = f"no answer came within {TIMEOUT_S:.0f} s"
            return SendReport(send, late, is_known=False)
        return SendReport(send, error or None)
