"""`mimikit notify`, and the child process that sends: URLs appear nowhere else."""

from __future__ import annotations

import io
import json
import logging
import socket
import stat
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from mimikit import notifications
from mimikit.notifications import DeliveryReport
from tests.cli.conftest import Cli

SECRET = "tok3n-of-mine"
URL = f"ntfy://user:{SECRET}@ntfy.example/topic"


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str]]:
    """What would be given to the child process, in which nothing fails but `bad`."""
    given: list[tuple[str, str, str]] = []

    def in_child(url: str, title: str = "", text: str = "") -> DeliveryReport:
        given.append((url, title, text))
        if "bad" in url:
            return DeliveryReport(outcome="failed", error="expected a URL that Apprise knows")
        return DeliveryReport(outcome="sent")

    monkeypatch.setattr(notifications, "_in_child", in_child)
    return given


def test_channels_are_added_listed_tested_and_removed(
    cli: Cli, child: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    outputs = [
        cli("notify", "add", "phone", "--url-stdin", text=f"{URL}\n").output,
        cli("notify", "list").output,
        cli("notify", "list", "--json").output,
        cli("notify", "test").output,
    ]
    key = tmp_path / ".mimikit/secrets/notify-phone.url"
    assert key.read_text() == f"{URL}\n"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert json.loads(outputs[2])["channels"] == [
        {"name": "phone", "address": "ntfy://•••ic", "waiting": 0, "error": "", "retryAt": None}
    ]
    assert "phone: sent" in outputs[3]
    assert child == [(URL, "", ""), (URL, "mimikit", "mimikit can reach you here.")]
    others = [path for path in (tmp_path / ".mimikit").rglob("*") if path.is_file() and path != key]
    assert not any(SECRET in text for text in outputs)
    assert not any(SECRET.encode() in path.read_bytes() for path in others)
    assert "Removed phone" in cli("notify", "remove", "phone").output
    assert not key.exists()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["add", "phone"], "expected URL or --url-stdin"),
        (["add", "Phone!", URL], "expected a name of lower-case letters"),
        (["add", "phone", "no url"], "expected a URL such as ntfy://TOPIC"),
        (["add", "phone", "bad://x"], "expected a URL that Apprise knows"),
        (["remove", "../token"], "expected a channel that is set up (none yet)"),
        (["test", "phone"], "expected every channel to take the message"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_line(
    cli: Cli, child: list[tuple[str, str, str]], arguments: list[str], expected: str
) -> None:
    cli("init")
    result = cli("notify", *arguments)
    assert result.exit_code != 0
    assert expected in result.output
    assert SECRET not in result.output


def test_without_the_package_it_says_how_to_install_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert "pip install 'mimikit-assistant[notify]'" in cli("notify", "add", "phone", URL).output


# ---- the child, with a fake of Apprise


class FakeApprise:
    """Knows `ntfy` alone; what it says of a failure is `log`."""

    log: tuple[str, ...] = ()

    def __init__(self, asset: object) -> None:
        self.sent: list[tuple[str, str]] = []

    def add(self, url: str) -> bool:
        return url.startswith("ntfy://")

    def notify(self, text: str, *, title: str, body_format: str) -> bool:
        sys.stdout.write(f"a plugin prints {text} {title} {body_format}")
        for line in self.log:
            level, _, message = line.partition(":")
            logging.getLogger("apprise").log(getattr(logging, level), message)
        return not self.log


@pytest.mark.parametrize(
    ("url", "log", "expected"),
    [
        (URL, (), {"outcome": "sent", "error": ""}),
        ("odd://x", (), {"outcome": "failed", "error": "expected a URL that Apprise knows"}),
        (
            URL,
            (f"WARNING:user:{SECRET} refused\nby ntfy.example", "DEBUG:text aborted"),
            {"outcome": "failed", "error": "•••:••• refused"},
        ),
        (
            URL,
            ("WARNING:A Connection error occurred", "DEBUG:Socket Exception: Read timed out."),
            {"outcome": "unknown", "error": "A Connection error occurred"},
        ),
    ],
)
def test_the_child_answers_in_json_without_the_url(
    monkeypatch: pytest.MonkeyPatch, url: str, log: tuple[str, ...], expected: dict[str, str]
) -> None:
    monkeypatch.setattr(FakeApprise, "log", log)
    fake = SimpleNamespace(
        Apprise=FakeApprise,
        AppriseAsset=lambda **_facts: None,
        NotifyFormat=SimpleNamespace(TEXT="text"),
    )
    monkeypatch.setitem(sys.modules, "apprise", fake)
    monkeypatch.setattr("signal.alarm", lambda _seconds: None)
    given = json.dumps([url, "Failed: x", "exit code 3"]).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    output = io.StringIO()
    monkeypatch.setattr("sys.stdout", output)
    notifications.main()
    assert json.loads(output.getvalue()) == expected


# ---- nightly: the real child with Apprise


class Receiver(BaseHTTPRequestHandler):
    bodies: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None: ...


def test_a_real_child_sends_by_http(cli: Cli) -> None:
    Receiver.bodies = []
    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"json://127.0.0.1:{server.server_port}/{SECRET}"
        assert cli("notify", "add", "hook", url).exit_code == 0
        assert cli("notify", "test", "hook").exit_code == 0
        server.shutdown()
    gone = cli("notify", "test", "hook")
    assert [body["message"] for body in Receiver.bodies] == ["mimikit can reach you here."]
    assert gone.exit_code == 1
    assert SECRET not in gone.output


def test_a_real_child_sends_by_smtp(cli: Cli) -> None:
    letters: list[bytes] = []

    class Mailbox:
        async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
            letters.append(envelope.content)
            return "250 OK"

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    mail = Controller(Mailbox(), hostname="127.0.0.1", port=port)
    mail.start()
    try:
        query = "from=me@example.org&to=you@example.org&mode=insecure"
        assert cli("notify", "add", "mail", f"mailto://127.0.0.1:{port}?{query}").exit_code == 0
        result = cli("notify", "test", "mail")
    finally:
        mail.stop()
    assert result.exit_code == 0, result.output
    assert b"mimikit can reach you here." in letters[0]
    assert b"Subject: mimikit" in letters[0]
