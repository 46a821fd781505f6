"""`mimikit notify`: a channel is set up, shown, tried and removed; its address is shown nowhere."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support.receiver import Receiver

SECRET = "canary-topic-7fq2"
OWN = "# my own\n[limits]\nretry_delay_s = 3 # soon\n"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def channels(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / ".mimikit/config.toml").read_text())["notify"]["channels"]


def test_it_is_set_up_with_its_address_apart_then_tried_and_removed(
    cli: Cli, receiver: Receiver, tmp_path: Path
) -> None:
    cli("init")
    config = tmp_path / ".mimikit/config.toml"
    config.write_text(OWN)
    url, file = receiver.url(f"/{SECRET}"), tmp_path / ".mimikit/secrets/notify-phone.url"
    given = ["--url-stdin", "--event", "failed", "--event", "reminder"]
    added = cli("notify", "add", "phone", *given, text=f"{url}\n")
    assert added.exit_code == 0, added.output
    assert config.read_text().startswith(OWN)
    assert channels(tmp_path) == {
        "phone": {"url_file": "notify-phone.url", "events": ["failed", "reminder"]}
    }
    assert file.read_text() == f"{url}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    tried = cli("notify", "test", "phone")
    assert "Sent by phone." in tried.stdout
    assert receiver.arrived[0]["message"] == "This is a test: notifications reach you here."
    shown = [cli(*words) for words in (["notify", "list"], ["notify", "list", "--json"])]
    shown += [cli("doctor"), cli("logs"), added, tried]
    assert "json  for failed, reminder  nothing was sent yet" in shown[0].stdout
    assert "phone (json): nothing was sent yet" in shown[2].stdout
    assert SECRET not in "".join(one.output for one in shown)
    cli("notify", "remove", "phone")
    assert "notify" not in tomllib.loads(config.read_text()) or not channels(tmp_path)
    assert config.read_text().startswith(OWN)
    assert not file.exists()
    assert "No channel is set up" in cli("notify", "list").stdout


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("Phone", "ntfy://x", "expected a name of lower-case letters"),
        ("phone", f"no address {SECRET}", "expected the address of a channel"),
        ("phone", f"nonsense://{SECRET}", "expected an address that Apprise knows"),
    ],
)
def test_what_can_not_be_used_is_told_and_nothing_is_written(
    cli: Cli, tmp_path: Path, name: str, text: str, said: str
) -> None:
    cli("init")
    before = (tmp_path / ".mimikit/config.toml").read_text()
    result = cli("notify", "add", name, "--url-stdin", text=text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert SECRET not in result.output
    assert (tmp_path / ".mimikit/config.toml").read_text() == before
    assert not list((tmp_path / ".mimikit/secrets").glob("notify-*"))


def test_what_is_missing_is_told(cli: Cli) -> None:
    cli("init")
    assert "expected the channel's address" in cli("notify", "add", "phone", text="").stderr
    assert "expected a channel that is set up (none yet)" in cli("notify", "test", "x").stderr
    assert "expected a channel that is set up" in cli("notify", "remove", "x").stderr
    assert "no channel; Apprise is installed" in cli("doctor").stdout


def test_a_test_that_does_not_arrive_says_why_and_doctor_says_that_an_address_is_gone(
    cli: Cli, receiver: Receiver, tmp_path: Path
) -> None:
    cli("init")
    url = receiver.url(f"/refuse/{SECRET}")
    cli("notify", "add", "phone", "--url-stdin", "--no-test", text=url)
    result = cli("notify", "test", "phone")
    assert result.exit_code == 1
    assert "error=401" in result.stderr
    assert SECRET not in result.output
    (tmp_path / ".mimikit/secrets/notify-phone.url").unlink()
    assert "expected an address, got none" in cli("notify", "test", "phone").stderr
    assert "phone: its address can not be read" in cli("doctor").stdout
