"""The notification channels: their URLs in `secrets/notify/`, and sending to them by Apprise.

Apprise is imported only in a child process (`python -m mimikit.notifications`), which gets URL and
text by stdin and answers in JSON. No argument, variable, log or answer contains a URL.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import logging
import re
import signal
import subprocess
import sys
import threading
from typing import Any, Literal

from pydantic import BaseModel

from mimikit.engines.process import network_environment
from mimikit.errors import BadInput, NotFound, StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files

SEND_TIMEOUT_S = 20
INSTALL = "expected the package apprise, got none; `pip install 'mimikit-assistant[notify]'`"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_FILE = re.compile(rf"notify-({_NAME.pattern})\.url")
_URL = re.compile(r"[a-z][a-z0-9+.-]{0,30}://\S{1,2000}", re.IGNORECASE)
_URL_PARTS = re.compile(r"[/:@?&=#,]+")
_UNCLEAR = re.compile("exception: .*(read timed|operation timed|: timed|aborted|reset by)")
"""In the log of Apprise: the message may have arrived nevertheless."""
_children: list[subprocess.Popen[bytes]] = []
"""The processes that send."""
_is_closed = threading.Event()
_DESKTOP = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")


def names(files: Files) -> list[str]:
    found = map(_FILE.fullmatch, files.names(paths.SECRETS, suffix=".url"))
    return [match[1] for match in found if match]


def add(files: Files, name: str, url: str) -> None:
    """Add or replace a channel. Raises BadInput."""
    if not _NAME.fullmatch(name):
        message = "expected a name of lower-case letters, digits, - and _, at most 32"
        raise BadInput(f"{message}, that begins with a letter; got {name[:40]!r}", field="name")
    if not _URL.fullmatch(url := url.strip()):
        raise BadInput("expected a URL such as ntfy://TOPIC, got something else", field="url")
    if not is_installed():
        raise BadInput(INSTALL, code="no_apprise")
    report = _in_child(url)
    if report.outcome != "sent":
        raise BadInput(report.error, field="url")
    files.write(paths.channel(name), f"{url}\n".encode())


def remove(files: Files, name: str) -> None:
    """Raises NotFound."""
    url_of(files, name)
    files.remove(paths.channel(name))


def url_of(files: Files, name: str) -> str:
    """Raises NotFound."""
    data = files.read(paths.channel(name)) if _NAME.fullmatch(name) else None
    if data is None:
        known = ", ".join(names(files)) or "none yet"
        raise NotFound(f"expected a channel that is set up ({known}), got {name[:40]!r}")
    return data.decode(errors="replace").strip()


def masked(url: str) -> str:
    """What may be shown of a URL: its kind, and the end of a long address. Pure."""
    kind, _, rest = url.partition("://")
    address = rest.partition("?")[0].rstrip("/")
    return f"{kind.lower()}://•••{address[-2:] if len(address) >= 12 else ''}"


def is_installed() -> bool:
    return importlib.util.find_spec("apprise") is not None


# ---- sending, in the parent


class DeliveryReport(BaseModel):
    """unknown: it may have been sent."""

    outcome: Literal["sent", "failed", "unknown"]
    error: str = ""


def send(files: Files, name: str, title: str, text: str) -> DeliveryReport:
    try:
        return _in_child(url_of(files, name), title, text)
    except (NotFound, StorageError, OSError) as error:
        return DeliveryReport(outcome="failed", error=str(error))


def _in_child(url: str, title: str = "", text: str = "") -> DeliveryReport:
    """Send, or without a title only check the URL."""
    if not is_installed():
        return DeliveryReport(outcome="failed", error=INSTALL)
    try:
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "mimikit.notifications"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=network_environment((*_DESKTOP, "REQUESTS_CA_BUNDLE")),
        ) as child:
            _children.append(child)
            if _is_closed.is_set():
                child.kill()
            try:
                asked = json.dumps([url, title, text]).encode()
                answered, _ = child.communicate(asked, timeout=SEND_TIMEOUT_S)
            finally:
                child.kill()
                _children.remove(child)
        return DeliveryReport.model_validate_json(answered)
    except subprocess.TimeoutExpired:
        return DeliveryReport(outcome="unknown", error=f"no answer within {SEND_TIMEOUT_S} s")
    except ValueError:
        return DeliveryReport(outcome="unknown", error="the sending process gave no answer")


def close() -> None:
    """End what is being sent: this process stops. It may have arrived."""
    _is_closed.set()
    for child in list(_children):
        child.kill()


# ---- the child


def answer(url: str, title: str, text: str) -> DeliveryReport:
    from apprise import Apprise, AppriseAsset, NotifyFormat

    log, logger = io.StringIO(), logging.getLogger("apprise")
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(levelname)s:%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    service: Any = Apprise(asset=AppriseAsset(app_id="mimikit", storage_mode="memory"))
    if not service.add(url):
        return DeliveryReport(outcome="failed", error="expected a URL that Apprise knows")
    if not title or service.notify(text, title=title, body_format=NotifyFormat.TEXT):
        return DeliveryReport(outcome="sent")
    lines = log.getvalue().splitlines()
    errors = [line for line in lines if line.startswith(("WARNING:", "ERROR:"))]
    error = errors[-1].partition(":")[2] if errors else "it was not accepted"
    outcome = "unknown" if _UNCLEAR.search(log.getvalue().lower()) else "failed"
    return DeliveryReport(outcome=outcome, error=without_url(error, url))


def without_url(text: str, url: str) -> str:
    """A text without the parts of a URL, any of which may be secret. Pure."""
    for part in sorted(_URL_PARTS.split(url.partition("://")[2]), key=len, reverse=True):
        if len(part) >= 4:
            text = text.replace(part, "•••")
    return " ".join(text.split())[:200]


def main() -> None:
    signal.alarm(SEND_TIMEOUT_S + 5)  # its parent may be gone
    url, title, text = json.loads(sys.stdin.buffer.read())
    with contextlib.redirect_stdout(sys.stderr):  # of a plugin
        report = answer(url, title, text)
    sys.stdout.write(report.model_dump_json())


if __name__ == "__main__":
    main()
