"""The services that the system keeps: what is written, what is run, and what is said without it."""

from __future__ import annotations

import os
import plistlib
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mimikit.cli.service_files import ServiceProcess, launchd_plist, service_name, systemd_unit
from mimikit.errors import BadInput
from tests.cli.conftest import Cli

ODD = "a b %h $HOME 'c' \"d\" \\n ü 字"
"""What a folder may be called, and a unit's line reads otherwise."""

FAKE_SYSTEMCTL = """#!/bin/sh
echo "$*" >>"{log}"
case "$2" in
show-environment) exit {code};;
show) echo "ActiveState=active"; echo "SubState=running"; echo "NRestarts=2"; echo "Other=x";;
esac
"""


@pytest.fixture
def service(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`mimikit service` in a workspace with an odd name, a home and a `systemctl` of its own."""
    workspace, programs = tmp_path / ODD.replace("/", ""), tmp_path / "bin"
    (workspace / ".mimikit").mkdir(mode=0o700, parents=True)
    programs.mkdir()
    put_systemctl(tmp_path, 0)
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    return lambda *arguments: cli("service", *arguments)


def put_systemctl(top: Path, code: int) -> None:
    program = top / "bin/systemctl"
    program.write_text(FAKE_SYSTEMCTL.format(log=top / "calls", code=code))
    program.chmod(0o755)


def calls(top: Path) -> list[str]:
    log = top / "calls"
    return log.read_text().splitlines() if log.exists() else []


def units(top: Path) -> list[Path]:
    return sorted((top / "home/.config/systemd/user").glob("*"))


@pytest.mark.needs_platform("linux")
def test_install_writes_and_enables_two_units_and_starts_nothing(
    service: Cli, tmp_path: Path
) -> None:
    made = service("install", "--port", "9001")
    assert made.exit_code == 0, made.stderr
    consumer, web = units(tmp_path)
    assert consumer.name.startswith("mimikit-consumer-")
    assert web.name.startswith("mimikit-web-")
    assert calls(tmp_path) == [
        "--user show-environment",
        "--user daemon-reload",
        f"--user enable {consumer.name} {web.name}",
    ]
    assert "enable-linger" in made.stderr
    text = web.read_text()
    assert '"web" "--port" "9001"' in text
    lines = {"Restart=always", "OOMPolicy=continue", "NoNewPrivileges=yes", "UMask=0077"}
    assert lines <= set(text.splitlines())


@pytest.mark.needs_platform("linux")
def test_started_it_is_only_when_told_and_removed_it_is_gone(service: Cli, tmp_path: Path) -> None:
    assert service("install", "--now").exit_code == 0
    names = " ".join(path.name for path in units(tmp_path))
    assert calls(tmp_path)[-1] == f"--user restart {names}"
    shown = service("status")
    assert shown.stdout.count("active running") == 2
    assert "NRestarts 2" in shown.stdout
    assert service("remove", "--dry-run").exit_code == 0
    assert len(units(tmp_path)) == 2
    removed = service("remove")
    assert removed.exit_code == 0, removed.stderr
    assert units(tmp_path) == []
    assert calls(tmp_path)[-2:] == [f"--user disable --now {names}", "--user daemon-reload"]
    assert "no service" in service("remove").stdout
    assert "no service" in service("status").stdout


@pytest.mark.needs_platform("linux")
def test_a_dry_run_prints_everything_and_does_nothing(service: Cli, tmp_path: Path) -> None:
    shown = service("install", "--now", "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("[Service]") == 2
    assert "$ systemctl --user daemon-reload" in shown.stdout
    assert (calls(tmp_path), units(tmp_path)) == ([], [])


@pytest.mark.needs_platform("linux")
def test_without_a_systemd_of_users_nothing_is_written_and_it_says_what_to_do(
    service: Cli, tmp_path: Path
) -> None:
    put_systemctl(tmp_path, 1)
    failed = service("install")
    assert failed.exit_code == 1
    assert "enable-linger" in failed.stderr
    assert "mimikit up" in failed.stderr
    assert units(tmp_path) == []


@pytest.mark.needs_platform("linux")
def test_a_folder_without_state_is_given_no_service(service: Cli, tmp_path: Path) -> None:
    refused = service("install", "--state", str(tmp_path / "none"))
    assert refused.exit_code == 2
    assert "mimikit init" in refused.stderr
    assert (calls(tmp_path), units(tmp_path)) == ([], [])


def process(*arguments: str, **environment: str) -> ServiceProcess:
    return ServiceProcess("consumer", [sys.executable, *arguments], environment, 20)


@pytest.mark.needs_program("systemd-analyze")
def test_systemd_accepts_the_unit_whatever_the_folder_is_called(tmp_path: Path) -> None:
    unit = systemd_unit(process("-P", "--state", f"/home/{ODD}", PATH=f"/bin:/{ODD}"), "name")
    path = tmp_path / unit.file
    path.write_bytes(unit.data)
    assert complaints_of_systemd(path) == []
    path.write_bytes(unit.data.replace(b"Restart=always", b"Restart=sometimes"))
    assert len(complaints_of_systemd(path)) == 1


def complaints_of_systemd(path: Path) -> list[str]:
    """Of this unit: what else lies on the machine is complained of, too.

    It is read as one of the machine: for those of users a session is needed.
    """
    command = ["systemd-analyze", "verify", "--man=no", path]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line for line in checked.stderr.splitlines() if path.name in line]


def test_the_words_of_a_unit_are_what_was_meant() -> None:
    unit = systemd_unit(process(f"/home/{ODD}"), "name").data.decode()
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    # As systemd does: words by quotes and backslashes, then `%%` and `$$`.
    words = shlex.split(line.removeprefix("ExecStart="))
    assert [word.replace("%%", "%").replace("$$", "$") for word in words] == [
        sys.executable,
        f"/home/{ODD}",
    ]


def test_a_plist_holds_the_same(tmp_path: Path) -> None:
    agent = launchd_plist(process("--state", f"/home/{ODD}", PATH="/bin"), "name")
    told = plistlib.loads(agent.data)
    assert told["ProgramArguments"] == [sys.executable, "--state", f"/home/{ODD}"]
    assert (told["KeepAlive"], told["EnvironmentVariables"]) == (True, {"PATH": "/bin"})
    assert agent.file == f"{told['Label']}.plist"


@pytest.mark.parametrize("path", ["/home/a\nExecStart=/bin/sh", "/home/\udcff", "/home/\x1b"])
def test_a_path_that_no_unit_can_hold_is_refused(path: str) -> None:
    for make in (systemd_unit, launchd_plist):
        with pytest.raises(BadInput, match="control characters"):
            make(process(path), "name")


def test_each_state_folder_has_a_name_of_its_own() -> None:
    names = {
        service_name(Path(path)) for path in ("/a/b/.mimikit", "/c/b/.mimikit", "/字/.mimikit")
    }
    assert len(names) == 3
    assert all(name.isascii() for name in names)
