"""`mimikit service`: systemd units, and the behaviour without systemd."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mimikit.cli import service as service_module
from mimikit.cli.service import UnitFile, service_name, systemd_unit
from mimikit.errors import BadInput
from tests.cli.conftest import Cli

ODD = "a b %h $HOME 'c' \"d\" \\n ü 字"
"""What a folder may be called, and a unit's line reads otherwise."""


class Systemd:
    """Fake of `systemctl` and `loginctl`; records the calls."""

    def __init__(self) -> None:
        self.code = 0
        self.calls: list[str] = []

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.calls.append(" ".join(command))
        said = "ActiveState=active\nSubState=running\nNRestarts=2\nOther=x\n"
        return subprocess.CompletedProcess(command, self.code, said, "no bus")


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    made = Systemd()
    monkeypatch.setattr(service_module, "_run", made.run)
    monkeypatch.setattr(service_module.shutil, "which", lambda name: f"/usr/bin/{name}")
    return made


@pytest.fixture
def service(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`mimikit service` in a workspace with special characters in its name."""
    workspace = tmp_path / ODD
    (workspace / ".mimikit").mkdir(mode=0o700, parents=True)
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return lambda *arguments: cli("service", *arguments)


def units(top: Path) -> list[Path]:
    return sorted((top / "home/.config/systemd/user").glob("*"))


def test_install_writes_and_enables_two_units_and_starts_nothing(
    service: Cli, systemd: Systemd, tmp_path: Path
) -> None:
    made = service("install", "--port", "9001")
    assert made.exit_code == 0, made.stderr
    consumer, web = units(tmp_path)
    assert consumer.name.startswith("mimikit-consumer-")
    assert systemd.calls[:3] == [
        "systemctl --user show-environment",
        "systemctl --user daemon-reload",
        f"systemctl --user enable {consumer.name} {web.name}",
    ]
    assert "enable-linger" in made.stderr
    text = web.read_text()
    assert '"web" "--port" "9001"' in text
    assert {"Restart=always", "OOMPolicy=continue", "UMask=0077"} <= set(text.splitlines())
    assert "NoNewPrivileges" not in text


def test_a_service_starts_only_with_now_and_can_be_removed(
    service: Cli, systemd: Systemd, tmp_path: Path
) -> None:
    assert service("install", "--now").exit_code == 0
    names = " ".join(path.name for path in units(tmp_path))
    assert f"systemctl --user restart {names}" in systemd.calls
    removed = service("remove")
    assert removed.exit_code == 0, removed.stderr
    assert units(tmp_path) == []
    assert systemd.calls[-2:] == [
        f"systemctl --user disable --now {names}",
        "systemctl --user daemon-reload",
    ]
    assert "No service" in service("remove").stdout


def test_a_dry_run_prints_everything_and_does_nothing(
    service: Cli, systemd: Systemd, tmp_path: Path
) -> None:
    shown = service("install", "--now", "--dry-run")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.count("[Service]") == 2
    assert "$ systemctl --user daemon-reload" in shown.stdout
    assert (systemd.calls, units(tmp_path)) == ([], [])


def test_without_user_systemd_nothing_is_written(
    service: Cli, systemd: Systemd, tmp_path: Path
) -> None:
    systemd.code = 1
    failed = service("install")
    assert failed.exit_code == 1
    assert "enable-linger" in failed.stderr
    assert "mimikit up" in failed.stderr
    assert units(tmp_path) == []


def test_a_service_needs_a_state_folder(service: Cli, systemd: Systemd, tmp_path: Path) -> None:
    refused = service("install", "--state", str(tmp_path / "none"))
    assert refused.exit_code == 2
    assert "mimikit init" in refused.stderr
    assert (systemd.calls, units(tmp_path)) == ([], [])


def unit(*arguments: str, **environment: str) -> UnitFile:
    return systemd_unit("consumer", "name", [sys.executable, *arguments], environment, 20)


@pytest.mark.nightly
@pytest.mark.needs_program("systemd-analyze")
def test_systemd_accepts_the_unit_for_any_folder_name(tmp_path: Path) -> None:
    made = unit("-P", "--state", f"/home/{ODD}", PATH=f"/bin:/{ODD}")
    path = tmp_path / made.name
    path.write_bytes(made.data)
    assert complaints_of_systemd(path) == []
    path.write_bytes(made.data.replace(b"Restart=always", b"Restart=sometimes"))
    assert len(complaints_of_systemd(path)) == 1


def complaints_of_systemd(path: Path) -> list[str]:
    """Complaints of systemd about this unit."""
    command = ["systemd-analyze", "verify", "--man=no", path]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line for line in checked.stderr.splitlines() if path.name in line]


def test_arguments_are_quoted_correctly_in_a_unit() -> None:
    (line,) = [
        line
        for line in unit(f"/home/{ODD}").data.decode().splitlines()
        if line.startswith("ExecStart=")
    ]
    # As systemd does: words by quotes and backslashes, then `%%` and `$$`.
    words = shlex.split(line.removeprefix("ExecStart="))
    assert [word.replace("%%", "%").replace("$$", "$") for word in words] == [
        sys.executable,
        f"/home/{ODD}",
    ]


@pytest.mark.parametrize("path", ["/home/a\nExecStart=/bin/sh", "/home/\udcff", "/home/\x1b"])
def test_a_path_that_no_unit_can_hold_is_refused(path: str) -> None:
    with pytest.raises(BadInput, match="control characters"):
        unit(path)


def test_each_state_folder_has_a_name_of_its_own() -> None:
    names = {
        service_name(Path(path)) for path in ("/a/b/.mimikit", "/c/b/.mimikit", "/字/.mimikit")
    }
    assert len(names) == 3
    assert all(name.isascii() for name in names)
