"""What a system's manager of services is told of mimikit: systemd units, launchd plists. Pure."""

from __future__ import annotations

import hashlib
import plistlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mimikit.errors import BadInput

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MADE_BY = "Made by `mimikit service install`; `mimikit service remove` takes it away."


class ServiceProcess(NamedTuple):
    """One process that is to be kept running."""

    role: str
    """`consumer` or `web`."""
    arguments: Sequence[str]
    environment: Mapping[str, str]
    stop_s: float
    """So long it may take to end."""


class ServiceFile(NamedTuple):
    name: str
    """The unit's or agent's, by which the system knows it."""
    file: str
    data: bytes


def service_name(state: Path) -> str:
    """Of a state folder, always the same: what its workspace is called, and a hash of its path."""
    called = re.sub(r"[^A-Za-z0-9]+", "-", state.parent.name).strip("-").lower()[:24]
    digest = hashlib.sha256(str(state).encode(errors="surrogateescape")).hexdigest()[:8]
    return f"{called}-{digest}" if called else digest


def systemd_unit(process: ServiceProcess, name: str) -> ServiceFile:
    """A unit for `systemctl --user`.

    Agents and commands run in bubblewrap, which makes namespaces: so nothing is set here that takes
    these away (`RestrictNamespaces`, `PrivateUsers`, `ProtectSystem` and their kin).

    Raises:
        BadInput: a path that can not stand in a unit.
    """
    program, *rest = process.arguments
    line = " ".join([_quoted(program), *(_quoted(one).replace("$", "$$") for one in rest)])
    variables = [
        f"Environment={_quoted(f'{key}={value}')}" for key, value in process.environment.items()
    ]
    unit = f"mimikit-{process.role}-{name}.service"
    lines = [
        f"# {_MADE_BY}",
        "[Unit]",
        f"Description=mimikit {process.role} ({name})",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={line}",
        *variables,
        "Restart=always",
        "RestartSec=5",
        # The first process ends what it started; what is left after the time is ended by force.
        "KillMode=mixed",
        f"TimeoutStopSec={process.stop_s:g}",
        # A run that the kernel ended as memory was out is a run that failed, and no more.
        "OOMPolicy=continue",
        "NoNewPrivileges=yes",
        "UMask=0077",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return ServiceFile(unit, unit, "\n".join([*lines, ""]).encode())


def _quoted(text: str) -> str:
    """One word of a unit's line: quotes and backslashes escaped, `%` no specifier."""
    _check(text)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def launchd_plist(process: ServiceProcess, name: str) -> ServiceFile:
    """An agent for `launchctl`, of the user's session.

    Raises:
        BadInput: a path that can not stand in it.
    """
    for text in (*process.arguments, *process.environment.values()):
        _check(text)
    label = f"mimikit.{process.role}.{name}"
    data = plistlib.dumps(
        {
            "Label": label,
            "ProgramArguments": list(process.arguments),
            "EnvironmentVariables": dict(process.environment),
            "RunAtLoad": True,
            "KeepAlive": True,
            "ThrottleInterval": 5,
            "ExitTimeOut": int(process.stop_s),
            "ProcessType": "Background",
            "Umask": 0o077,
        }
    )
    return ServiceFile(label, f"{label}.plist", data)


def _check(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        is_odd = True
    else:
        is_odd = _CONTROL.search(text) is not None
    if is_odd:
        shown = text.encode(errors="backslashreplace").decode()
        raise BadInput(
            f"expected a path of UTF-8 text without control characters, got {shown!r}; a service "
            "can not be made of that"
        )
