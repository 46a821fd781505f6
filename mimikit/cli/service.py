"""`mimikit service`: systemd user units that keep page and consumer running."""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from mimikit import config
from mimikit.cli import process_group, terminal
from mimikit.cli.frame import CliContext, PlainGroup, pass_cli
from mimikit.cli.options import PORT
from mimikit.errors import BadInput, MimikitError, StorageError
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files

ROLES = ("consumer", "web")
_SYSTEMCTL = ("systemctl", "--user")
_TIMEOUT_S = 30.0
_NOT_TEXT = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class UnitFile(NamedTuple):
    name: str
    data: bytes


@click.group(cls=PlainGroup)
def service() -> None:
    """Run mimikit and its page as systemd services of your user."""


@service.command()
@click.option("--host", help="Address of the page (default: web.host of the settings).")
@click.option("--port", type=PORT, help="Port of the page (default: web.port of the settings).")
@click.option("--now", is_flag=True, help="Start them as well, or restart them.")
@click.option("--dry-run", is_flag=True, help="Print what would be written and run, do nothing.")
@pass_cli
def install(cli: CliContext, host: str | None, port: int | None, now: bool, dry_run: bool) -> None:
    """Write and enable one unit for the page and one for mimikit itself, of this state folder."""
    folder, _ = cli.folders()
    if not folder.is_dir():
        raise BadInput(f"no state folder at {folder}; `mimikit init` makes one")
    web = [*(["--host", host] if host else []), *(["--port", str(port)] if port else [])]
    units = _units(cli, web)
    names = [unit.name for unit in units]
    steps = [[*_SYSTEMCTL, "daemon-reload"], [*_SYSTEMCTL, "enable", *names]]
    steps += [[*_SYSTEMCTL, "restart", *names]] if now else []
    if dry_run:
        for unit in units:
            terminal.out(terminal.bold(f"# {_folder() / unit.name}"))
            terminal.out(unit.data.decode())
        for step in steps:
            terminal.out(f"$ {' '.join(step)}")
        return
    _check_systemd()
    _write(units)
    for step in steps:
        _run_checked(step)
    for unit in units:
        terminal.out(f"Installed {_folder() / unit.name}")
    terminal.out("Started." if now else "They start with your next session; `--now` starts them.")
    if "Linger=yes" not in _run(["loginctl", "show-user", getpass.getuser()]).stdout:
        terminal.note("They run while you are logged in; `loginctl enable-linger`: always.")
    own = {key for key in os.environ if key.startswith("MIMIKIT_")}
    if own := sorted(own - {"MIMIKIT_WORKSPACE", "MIMIKIT_STATE"}):
        terminal.note(f"Not passed on: {', '.join(own)}; write what it needs into config.toml.")


@service.command()
@pass_cli
def remove(cli: CliContext) -> None:
    """Stop and remove both units of this state folder; the state stays as it is."""
    names = _installed(cli)
    if not names:
        terminal.out("No service of this state folder is installed.")
        return
    _check_systemd()
    _run([*_SYSTEMCTL, "disable", "--now", *names])  # fails for one that is not loaded
    with contextlib.closing(RealDisk(_folder())) as disk:
        for name in names:
            Files(disk).remove(name)
    _run_checked([*_SYSTEMCTL, "daemon-reload"])
    for name in names:
        terminal.out(f"Removed {_folder() / name}")


# ---- the unit files


def service_name(state: Path) -> str:
    """A stable name: the workspace's name and a hash of the state folder's path."""
    workspace = re.sub(r"[^A-Za-z0-9]+", "-", state.parent.name).strip("-").lower()[:24]
    digest = hashlib.sha256(str(state).encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{workspace}-{digest}" if workspace else digest


def systemd_unit(
    role: str, name: str, arguments: Sequence[str], environment: Mapping[str, str], stop_s: float
) -> UnitFile:
    """A unit of `systemctl --user`; BadInput for a path that a unit cannot contain.

    Without `RestrictNamespaces` and `NoNewPrivileges`: bubblewrap needs namespaces, and the owner's
    commands have the owner's rights.
    """
    program, *rest = arguments
    line = " ".join([_quoted(program), *(_quoted(one).replace("$", "$$") for one in rest)])
    variables = "".join(f"Environment={_quoted(f'{k}={v}')}\n" for k, v in environment.items())
    template = Path(__file__).with_suffix(".unit").read_text("utf-8")
    text = template.format(role=role, name=name, line=line, environment=variables, stop_s=stop_s)
    return UnitFile(f"mimikit-{role}-{name}.service", text.encode())


def _quoted(text: str) -> str:
    if _NOT_TEXT.search(text):
        shown = text.encode(errors="backslashreplace").decode()
        raise BadInput(
            f"expected a path of UTF-8 text without control characters, got {shown!r}; "
            "a service cannot be made of that"
        )
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _units(cli: CliContext, web: Sequence[str]) -> list[UnitFile]:
    folder, workspace = cli.folders()
    limits = config.load(folder).limits
    stop_s = limits.shutdown_timeout_s + limits.kill_after_s + 5
    given = process_group.environment()
    environment = {key: given[key] for key in ("PATH", "PYTHONPATH") if given.get(key)}
    # Not resolved: the link's target is the interpreter without our packages.
    begin = [str(Path(sys.executable).absolute()), "-P", "-m", "mimikit"]
    begin += ["--workspace", str(workspace), "--state", str(folder)]
    more = {"consumer": (), "web": web}
    name = service_name(folder)
    return [
        systemd_unit(role, name, [*begin, role, *more[role]], environment, stop_s) for role in ROLES
    ]


def _installed(cli: CliContext) -> list[str]:
    folder, _ = cli.folders()
    names = [f"mimikit-{role}-{service_name(folder)}.service" for role in ROLES]
    return [name for name in names if (_folder() / name).is_file()]


def _folder() -> Path:
    named = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(named) if named.startswith("/") else Path.home() / ".config"
    return base / "systemd" / "user"


def _write(units: Sequence[UnitFile]) -> None:
    try:
        _folder().mkdir(parents=True, exist_ok=True)
        disk = RealDisk(Path(os.path.realpath(_folder())))
    except OSError as error:
        raise StorageError(f"{_folder()}: {error.strerror}; nothing was changed") from error
    with contextlib.closing(disk):
        for unit in units:
            Files(disk).write(unit.name, unit.data)


# ---- systemd


def _check_systemd() -> None:
    if shutil.which(_SYSTEMCTL[0]) is None:
        raise MimikitError(
            "expected systemd, got no `systemctl`; keep `mimikit up` running in a terminal (tmux), "
            "or give the Procfile to a runner such as honcho"
        )
    ended = _run([*_SYSTEMCTL, "show-environment"])
    if ended.returncode != 0:
        error = terminal.one_line(ended.stderr.strip() or f"exit code {ended.returncode}")
        raise MimikitError(
            f"expected systemd to keep services of yours, got: {error}; log in as yourself (not by "
            "su or sudo), or run `loginctl enable-linger` and set "
            "XDG_RUNTIME_DIR=/run/user/$(id -u). In a container keep `mimikit up` running instead; "
            "`--dry-run` prints the units"
        )


def _run_checked(command: Sequence[str]) -> None:
    ended = _run(command)
    if ended.returncode != 0:
        error = terminal.one_line(ended.stderr.strip() or f"exit code {ended.returncode}")
        raise MimikitError(f"`{' '.join(command)}` failed: {error}")


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))
