"""Channels over HTTP: shown without their addresses, tried, set up and removed by commands."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.models import Command
from mimikit.protocol.notifications import NotificationEvent, NotificationLine
from tests.support.receiver import Receiver
from tests.web.conftest import MakeWeb, Web, error_of

SECRET = "canary-topic-7fq2"
MINE = """[notify]
quiet = "22:30-08:00"

[notify.channels.phone]
url_file = "notify-phone.url"
events = ["failed", "reminder"]
"""


@pytest.fixture
def mine(web: Web) -> Web:
    """With a channel that is set up."""
    web.files.write(paths.CONFIG, MINE.encode())
    web.files.write(f"{paths.SECRETS}/notify-phone.url", f"ntfy://{SECRET}\n".encode())
    return web


def put(web: Web, name: str = "phone", **body: Any) -> Any:
    return web.ask("PUT", f"/api/notify/{name}", {"id": "cmd-1", **body})


def command(web: Web) -> Command:
    found = web.files.load(paths.command("cmd-1"), Command)
    assert found is not None
    return found


def test_each_is_shown_with_how_it_is_and_without_its_address(mine: Web) -> None:
    now = mine.clock.now()
    event = NotificationEvent(
        id="note-1", kind="failed", title="x", channels=["phone"], created_at=now
    )
    mine.files.save(paths.notification_new("note-1"), event)
    line = NotificationLine(
        send="s", channel="phone", outcome="failed", at=now, error="nobody is there"
    )
    mine.files.append(paths.notification_lines(now), line.to_dict())
    shown = mine.get("/api/notify")
    assert SECRET not in json.dumps(shown)
    assert shown["quiet"] == "22:30-08:00"
    (channel,) = shown["channels"]
    assert channel | {
        "name": "phone", "service": "ntfy", "events": ["failed", "reminder"], "waiting": 1,
        "failing": True, "error": "nobody is there", "sentAt": None,
    } == channel  # fmt: skip


def test_where_none_is_set_up_none_is_shown(web: Web) -> None:
    assert web.get("/api/notify")["channels"] == []


def test_an_address_goes_into_its_file_and_nowhere_else(make_web: MakeWeb, tmp_path: Path) -> None:
    disk: Any = RealDisk(tmp_path)
    web = make_web(disk=disk)
    assert put(web, url=f" ntfy://{SECRET} ", events=["failed"]).status_code == 202
    file = tmp_path / "secrets/notify-phone.url"
    assert file.read_text() == f"ntfy://{SECRET}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    given = command(web)
    assert (given.action, given.target, given.origin) == ("notify_set", "phone", "http")
    assert given.args == {"events": ["failed"]}
    others = [path for path in tmp_path.rglob("*") if path.is_file() and path != file]
    assert [path for path in others if SECRET.encode() in path.read_bytes()] == []


def test_one_that_is_known_keeps_its_address(mine: Web) -> None:
    assert put(mine, events=["done"]).status_code == 202
    assert command(mine).args == {"events": ["done"]}
    kept = mine.files.read(f"{paths.SECRETS}/notify-phone.url")
    assert kept == f"ntfy://{SECRET}\n".encode()


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("Phone", {"url": "ntfy://x"}, "name"),
        ("desk", {}, "url"),
        ("desk", {"url": f"no address {SECRET}"}, "url"),
        ("desk", {"url": "ntfy://x", "events": ["odd"]}, "events.0"),
        ("desk", {"url": "ntfy://x", "events": []}, "events"),
    ],
)
def test_what_can_not_be_used_is_told_at_its_field(
    web: Web, name: str, body: dict[str, Any], field: str
) -> None:
    before = web.contents()
    answer = put(web, name, **body)
    assert (answer.status_code, error_of(answer)["field"]) == (422, field)
    assert SECRET not in json.dumps(error_of(answer))
    assert web.contents() == before


def test_a_test_goes_out_now_and_what_came_of_it_is_told(mine: Web) -> None:
    with Receiver() as receiver:
        for path, ok in (("/in", True), (f"/refuse/{SECRET}", False)):
            url = receiver.url(path)
            mine.files.write(f"{paths.SECRETS}/notify-phone.url", f"{url}\n".encode())
            answer = mine.ask("POST", "/api/notify/phone/test", {"locale": "zh-CN"})
            text = answer.get_data(as_text=True)
            assert json.loads(text)["ok"] is ok
            assert SECRET not in text
        assert receiver.arrived[0]["message"] == "这是一条测试：通知能送到这里。"


def test_one_that_is_not_there_is_neither_tried_nor_removed(web: Web) -> None:
    for method, address in (("POST", "/api/notify/phone/test"), ("DELETE", "/api/notify/phone")):
        answer = web.ask(method, address, {})
        assert (answer.status_code, error_of(answer)["code"]) == (404, "no_channel")


def test_removing_one_is_a_command(mine: Web) -> None:
    answer = mine.ask("DELETE", "/api/notify/phone", {"id": "cmd-1"})
    assert answer.status_code == 202
    assert command(mine).action == "notify_remove"


def test_settings_that_can_not_be_read_are_told(web: Web) -> None:
    web.files.write(paths.CONFIG, b"x = [\n")
    for answer in (web.ask("GET", "/api/notify"), put(web, url="ntfy://x")):
        assert answer.status_code == 409
