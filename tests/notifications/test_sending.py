"""What is sent arrives, by a process that knows the address and tells it nobody."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from mimikit.notifications import courier
from mimikit.notifications.courier import ProcessCourier, SendProcess, sent_now
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.notifications import NotificationSend
from mimikit.testing.twins import FakeClock
from tests.support.product import START
from tests.support.receiver import Receiver

SECRET = "canary-topic-7fq2"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


class Mailbox:
    """Takes mail."""

    def __init__(self) -> None:
        self.mails: list[Any] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 taken"


class MailServer(Controller):
    """On whatever port is free."""

    def _trigger_server(self) -> None:
        server: Any = self.server
        self.port = server.sockets[0].getsockname()[1]
        super()._trigger_server()


def test_it_arrives_as_it_is_whatever_its_words_hold(receiver: Receiver) -> None:
    text = "• <b>失败</b>: *x* _y_\n• \\n & “z”"
    assert sent_now(receiver.url(), "有 2 件事 <i>", text) == ""
    got = receiver.arrived[0]
    assert (got["title"], got["message"]) == ("有 2 件事 <i>", text)


def test_it_arrives_by_mail() -> None:
    box = Mailbox()
    server = MailServer(box, hostname="127.0.0.1", port=0, ready_timeout=60)
    server.start()
    try:
        url = f"mailto://127.0.0.1:{server.port}/?from=me@example.org&to=you@example.org&mode=insecure"
        assert sent_now(url, "Failed: nightly tests", "it broke <here>\nand there") == ""
    finally:
        server.stop(no_assert=True)
    mail = box.mails[0]
    assert mail["subject"] == "Failed: nightly tests"
    assert "you@example.org" in mail["to"]
    assert "it broke <here>" in mail.get_body(("plain",)).get_content()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("REFUSE", "error=401"),
        (f"json://127.0.0.1:9/{SECRET}", "Connection error"),
        (f"nonsense://{SECRET}", "expected an address that Apprise knows"),
    ],
)
def test_why_it_did_not_arrive_is_said_without_the_address(
    receiver: Receiver, address: str, said: str
) -> None:
    url = address.replace("REFUSE", receiver.url(f"/refuse/{SECRET}"))
    error = sent_now(url, "x", "y")
    assert said in error
    assert SECRET not in error
    assert url not in error


def test_an_address_is_looked_at_without_anything_being_sent(receiver: Receiver) -> None:
    assert sent_now(receiver.url(), "", "", check=True) == ""
    assert receiver.arrived == []
    assert "expected an address" in sent_now("nonsense://x", "", "", check=True)


def test_its_process_has_no_address_in_its_arguments_and_no_secret_in_its_environment(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIMIKIT_TOKEN", SECRET)
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    process = SendProcess()
    try:
        assert process.wait()
        place = Path(f"/proc/{process._process.pid}")
        seen = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        assert process.send(receiver.url(f"/{SECRET}"), "x", "y") == ""
    finally:
        process.close()
    assert SECRET.encode() not in seen
    assert b"127.0.0.1" not in seen
    assert len(receiver.arrived) == 1


def test_one_that_nobody_sends_with_ends_at_once() -> None:
    process = SendProcess()
    try:
        assert process.wait()
        assert process._process.stdin is not None
        process._process.stdin.close()
        process._process.wait(timeout=60)
    finally:
        process.close()


def send_of(id_: str = "send-1") -> NotificationSend:
    at = FakeClock(START).now()
    return NotificationSend(
        id=id_, channel="phone", events=["note-1"], title="x", text="y", began_at=at
    )


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(RealDisk(tmp_path))
    made.make_folders()
    return made


def test_the_mark_is_there_before_it_goes_and_the_report_after(
    files: Files, receiver: Receiver
) -> None:
    rung = threading.Event()
    sender = ProcessCourier(files, rung.set)
    sender.post(send_of(), receiver.url())
    assert rung.wait(100)
    sender.close(100)
    (report,) = sender.reports()
    assert (report.error, report.is_marked, report.is_known) == (None, True, True)
    assert files.names(paths.NOTIFICATIONS_SENDING) == ["send-1.json"]
    kept = b"".join(path.read_bytes() for path in Path(files.fs.root).rglob("*.json"))
    assert b"127.0.0.1" not in kept


def test_one_that_never_begins_leaves_no_mark(files: Files, receiver: Receiver) -> None:
    def broken() -> SendProcess:
        raise OSError(12, "no memory")

    rung = threading.Event()
    sender = ProcessCourier(files, rung.set, broken)
    sender.post(send_of(), receiver.url(f"/{SECRET}"))
    assert rung.wait(100)
    (report,) = sender.reports()
    assert not report.is_marked
    assert SECRET not in str(report.error)
    assert files.names(paths.NOTIFICATIONS_SENDING) == []


def test_one_whose_process_is_killed_says_that_nobody_knows(files: Files) -> None:
    class Dying(SendProcess):
        def send(self, url: str, title: str, text: str, *, check: bool = False) -> str | None:
            self._process.kill()
            return super().send(url, title, text, check=check)

    rung = threading.Event()
    sender = ProcessCourier(files, rung.set, Dying)
    sender.post(send_of(), "json://127.0.0.1:9")
    assert rung.wait(100)
    (report,) = sender.reports()
    assert (report.is_marked, report.is_known) == (True, False)


def test_after_the_stop_none_begins(files: Files, receiver: Receiver) -> None:
    rung = threading.Event()
    sender = ProcessCourier(files, rung.set)
    sender.close(1)
    sender.post(send_of(), receiver.url())
    assert rung.wait(100)
    (report,) = sender.reports()
    assert not report.is_marked
    assert receiver.arrived == []


@pytest.mark.nightly
@pytest.mark.needs_program("dbus-daemon", "Xvfb", "dunst", "dunstctl", "notify-send")
def test_it_arrives_on_a_desktop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By a real notification daemon on a virtual display."""
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address=1"], stdout=subprocess.PIPE
    )
    read, write = os.pipe()
    display = subprocess.Popen(["Xvfb", "-displayfd", str(write)], pass_fds=[write])
    daemon = None
    try:
        assert bus.stdout is not None
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", bus.stdout.readline().decode().strip())
        os.close(write)
        with os.fdopen(read) as told:
            monkeypatch.setenv("DISPLAY", f":{told.readline().strip()}")
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        daemon = subprocess.Popen(["dunst"])
        wait = ["gdbus", "wait", "--session", "--timeout", "60", "org.freedesktop.Notifications"]
        subprocess.run(wait, check=True)
        assert sent_now("desktop://", "-提醒", "call <mum> & 妈妈") == ""
        subprocess.run(["dunstctl", "close-all"], check=True)
        shown = subprocess.run(["dunstctl", "history"], capture_output=True, text=True, check=True)
        assert "-提醒" in shown.stdout
        assert "妈妈" in shown.stdout
    finally:
        for program in (daemon, display, bus):
            if program is not None:
                program.terminate()
                program.wait()
        if bus.stdout is not None:
            bus.stdout.close()


def test_where_the_package_is_missing_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(courier.importlib.util, "find_spec", lambda _name: None)
    assert not courier.is_installed()


def test_a_package_that_is_broken_is_a_failure_like_any_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tmp_path.joinpath("apprise.py").write_text("raise AttributeError('half an upgrade')\n")
    monkeypatch.setattr(courier, "_PASSED_ON", (*courier._PASSED_ON, "PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = sent_now(f"json://127.0.0.1:9/{SECRET}", "x", "y")
    assert said == "AttributeError: half an upgrade"


def test_one_module_alone_loads_the_library() -> None:
    room = Path(courier.__file__).parents[1]
    named = [p for p in room.rglob("*.py") if 'import_module("apprise")' in p.read_text()]
    assert [path.name for path in named] == ["send.py"]
    assert not [p for p in room.rglob("*.py") if "import apprise" in p.read_text()]
