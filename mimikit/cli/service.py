"""`mimikit service`: have the system keep page and consumer running, over logins and restarts.

Nothing is started unless `--now` says so.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from mimikit import config
from mimikit.cli import process_group, terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_frame, pass_frame_and_json
from mimikit.cli.options import PORT
from mimikit.cli.service_files import (
    ServiceFile,
    ServiceProcess,
    launchd_plist,
    service_name,
    systemd_unit,
)
from mimikit.errors import BadInput, MimikitError, StorageError
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files

ROLES = ("consumer", "web")
_PATIENCE_S = 30.0
_SHOWN = ("LoadState", "ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts")
_OURS = {"MIMIKIT_WORKSPACE", "MIMIKIT_STATE"}
"""What the command line says instead."""


@dataclass(frozen=True)
class ServiceManager:
    """How one system keeps services of a user."""

    folder: Path
    """Where it looks for them."""

    def files(self, name: str, processes: Sequence[ServiceProcess]) -> list[ServiceFile]:
        raise NotImplementedError

    def check(self) -> None:
        """Raise MimikitError, with what to do, where it can not be reached."""
        raise NotImplementedError

    def commands(self, files: Sequence[ServiceFile], action: str) -> list[list[str]]:
        """What is run for an action.

        `install`, `start`: once the files are written. `remove`: before they go, `reload`: after.
        """
        raise NotImplementedError

    def look(self, file: ServiceFile) -> dict[str, str]:
        """What it knows of a service, by its own names."""
        raise NotImplementedError

    def hints(self) -> Iterator[str]:
        """What a user should know of it."""
        yield from ()


class SystemdService(ServiceManager):
    """Units of `systemctl --user`."""

    def files(self, name: str, processes: Sequence[ServiceProcess]) -> list[ServiceFile]:
        return [systemd_unit(process, name) for process in processes]

    def check(self) -> None:
        if shutil.which("systemctl") is None:
            raise MimikitError(
                "expected systemd, got no `systemctl`; keep `mimikit up` running in a terminal "
                "(tmux), or give the Procfile to a runner such as honcho"
            )
        ended = _run(["systemctl", "--user", "show-environment"])
        if ended.returncode != 0:
            said = terminal.one_line(ended.stderr.strip() or f"exit code {ended.returncode}")
            raise MimikitError(
                f"expected systemd to keep services of yours, got: {said}; log in as yourself (not "
                "by su or sudo), or run `loginctl enable-linger` and set "
                "XDG_RUNTIME_DIR=/run/user/$(id -u). In a container keep `mimikit up` running "
                "instead; `--dry-run` prints the units"
            )

    def commands(self, files: Sequence[ServiceFile], action: str) -> list[list[str]]:
        systemctl, names = ["systemctl", "--user"], [file.name for file in files]
        return {
            "install": [[*systemctl, "daemon-reload"], [*systemctl, "enable", *names]],
            "start": [[*systemctl, "restart", *names]],
            "remove": [[*systemctl, "disable", "--now", *names]],
            "reload": [[*systemctl, "daemon-reload"]],
        }[action]

    def look(self, file: ServiceFile) -> dict[str, str]:
        ended = _run(["systemctl", "--user", "show", file.name, f"--property={','.join(_SHOWN)}"])
        pairs = (line.partition("=") for line in ended.stdout.splitlines())
        return {key: value for key, _, value in pairs if key in _SHOWN}

    def hints(self) -> Iterator[str]:
        user = getpass.getuser()
        ended = _run(["loginctl", "show-user", user, "--property=Linger"])
        if ended.stdout.strip() != "Linger=yes":
            yield (
                "It runs while you are logged in; to have it run from the start of the machine "
                f"on: `loginctl enable-linger {user}`"
            )


class LaunchdService(ServiceManager):
    """Agents of `launchctl`. Written by its manual; nobody has tried it yet."""

    @property
    def _domain(self) -> str:
        return f"gui/{os.getuid()}"

    def files(self, name: str, processes: Sequence[ServiceProcess]) -> list[ServiceFile]:
        return [launchd_plist(process, name) for process in processes]

    def check(self) -> None:
        if shutil.which("launchctl") is None:
            raise MimikitError("expected `launchctl`, got none; keep `mimikit up` running instead")

    def commands(self, files: Sequence[ServiceFile], action: str) -> list[list[str]]:
        places = [str(self.folder / file.file) for file in files]
        return {
            "install": [],
            "start": [["launchctl", "bootstrap", self._domain, place] for place in places],
            "remove": [["launchctl", "bootout", f"{self._domain}/{file.name}"] for file in files],
            "reload": [],
        }[action]

    def look(self, file: ServiceFile) -> dict[str, str]:
        ended = _run(["launchctl", "print", f"{self._domain}/{file.name}"])
        return {"ActiveState": "active" if ended.returncode == 0 else "inactive"}

    def hints(self) -> Iterator[str]:
        yield "launchd's part is written by its manual and untested: please report how it went."


def manager_of(platform: str) -> ServiceManager:
    """Raises MimikitError where none is known."""
    home = Path.home()
    if platform == "darwin":
        return LaunchdService(home / "Library" / "LaunchAgents")
    if platform == "linux":
        config = os.environ.get("XDG_CONFIG_HOME", "")
        base = Path(config) if config.startswith("/") else home / ".config"
        return SystemdService(base / "systemd" / "user")
    raise MimikitError(
        f"expected Linux or macOS, got {platform}; keep `mimikit up` running instead"
    )


@click.group(cls=PlainGroup)
def service() -> None:
    """Have the system start page and consumer with your session and keep them running."""


@service.command()
@click.option("--host", help="Address of the page (default: web.host of the settings).")
@click.option("--port", type=PORT, help="Port of the page (default: web.port of the settings).")
@click.option("--now", is_flag=True, help="Start it as well, or anew where it runs.")
@click.option("--dry-run", is_flag=True, help="Print what would be written and run, do nothing.")
@pass_frame
def install(
    frame: CliContext, host: str | None, port: int | None, now: bool, dry_run: bool
) -> None:
    """Write a service for the page and one for the consumer, to start with your next session."""
    manager = manager_of(sys.platform)
    folder, _ = frame.places()
    if not dry_run and not folder.is_dir():
        raise BadInput(f"no state folder at {folder}; `mimikit init` makes one")
    limits = config.load(folder).limits
    stop_s = limits.shutdown_timeout_s + limits.kill_after_s + 5
    files = manager.files(service_name(folder), _processes(frame, host, port, stop_s))
    steps = [
        *manager.commands(files, "install"),
        *(manager.commands(files, "start") if now else []),
    ]
    if dry_run:
        for file in files:
            terminal.out(terminal.bold(f"# {manager.folder / file.file}"))
            terminal.out(file.data.decode())
        for step in steps:
            terminal.out(f"$ {' '.join(step)}")
        return
    manager.check()
    _write(manager.folder, files)
    for step in steps:
        _must(step)
    for file in files:
        terminal.out(f"Installed {manager.folder / file.file}")
    terminal.out("Started." if now else "It starts with your next session; `--now` starts it now.")
    if own := sorted(key for key in os.environ if key.startswith("MIMIKIT_") and key not in _OURS):
        terminal.note(f"Not taken over: {', '.join(own)}; write what it needs into config.toml")
    for hint in manager.hints():
        terminal.note(hint)


@service.command()
@click.option("--dry-run", is_flag=True, help="Print what would be done, do nothing.")
@pass_frame
def remove(frame: CliContext, dry_run: bool) -> None:
    """End both services of this state folder and remove them; the state stays as it is."""
    manager = manager_of(sys.platform)
    there = _installed(frame, manager)
    if not there:
        terminal.out("There was no service of this state folder.")
        return
    if dry_run:
        for step in [*manager.commands(there, "remove"), *manager.commands(there, "reload")]:
            terminal.out(f"$ {' '.join(step)}")
        for file in there:
            terminal.out(f"remove {manager.folder / file.file}")
        return
    manager.check()
    for step in manager.commands(there, "remove"):
        _run(step)  # one that is not loaded is as good as ended
    with contextlib.closing(RealDisk(manager.folder)) as disk:
        for file in there:
            Files(disk).remove(file.file)
    for step in manager.commands(there, "reload"):
        _must(step)
    for file in there:
        terminal.out(f"Removed {manager.folder / file.file}")


@service.command()
@pass_frame_and_json
def status(frame: CliContext, as_json: bool) -> None:
    """Show whether both services are installed, and how they are."""
    manager = manager_of(sys.platform)
    there = _installed(frame, manager)
    if there:
        manager.check()
    found = {file.name: manager.look(file) for file in there}
    if as_json:
        terminal.print_json({"folder": str(manager.folder), "services": found})
        return
    if not found:
        terminal.out(
            "There is no service of this state folder; `mimikit service install` makes it."
        )
    for name, facts in found.items():
        active = " ".join(filter(None, (facts.get("ActiveState"), facts.get("SubState"))))
        more = [f"{key} {value}" for key, value in facts.items() if key in _SHOWN[3:] and value]
        terminal.out(f"{name}  {active or 'unknown'}  {terminal.dim(', '.join(more))}".rstrip())


def _processes(
    frame: CliContext, host: str | None, port: int | None, stop_s: float
) -> list[ServiceProcess]:
    folder, workspace = frame.places()
    places = ["--workspace", str(workspace), "--state", str(folder)]
    of_web = [
        *(["--host", host] if host else []),
        *(["--port", str(port)] if port is not None else []),
    ]
    given = process_group.environment()
    environment = {key: given[key] for key in ("PATH", "PYTHONPATH") if given.get(key)}
    # By its own path, not by what it links to: that is the interpreter without our packages.
    begin = [str(Path(sys.executable).absolute()), "-P", "-m", "mimikit", *places]
    return [
        ServiceProcess(
            role, [*begin, role, *(of_web if role == "web" else [])], environment, stop_s
        )
        for role in ROLES
    ]


def _installed(frame: CliContext, manager: ServiceManager) -> list[ServiceFile]:
    """Those of this state folder whose file is there."""
    folder, _ = frame.places()
    made = manager.files(service_name(folder), _processes(frame, None, None, 0))
    return [file for file in made if (manager.folder / file.file).is_file()]


def _write(folder: Path, files: Sequence[ServiceFile]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        disk = RealDisk(Path(os.path.realpath(folder)))
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror}; nothing was changed") from error
    with contextlib.closing(disk):
        for file in files:
            Files(disk).write(file.file, file.data)


def _must(command: list[str]) -> None:
    ended = _run(command)
    if ended.returncode != 0:
        said = terminal.one_line(ended.stderr.strip() or f"exit code {ended.returncode}")
        raise MimikitError(f"`{' '.join(command)}` failed: {said}")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))
