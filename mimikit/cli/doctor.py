"""`mimikit doctor`: look at everything, say how to mend it, mend what is safe."""

from __future__ import annotations

import itertools
import json
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import click

from mimikit import config
from mimikit.cli import checks, terminal
from mimikit.cli.checks import Finding, broken, note, ok, warning
from mimikit.cli.client import look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame_and_json
from mimikit.clock import SystemClock
from mimikit.config import Settings, known_keys
from mimikit.engine_settings import SettingsSection
from mimikit.errors import MimikitError
from mimikit.log import EventLog
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.state import State
from mimikit.views.status import DoctorReport, FindingView, SettingView

_MARKS = {
    "ok": ("✓", "green"),
    "note": ("·", None),
    "warning": ("!", "yellow"),
    "broken": ("✗", "red"),
}
_TABLE_WIDTH = 20
_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)


@click.command(cls=LeafCommand)
@click.option("--fix", is_flag=True, help="Mend what is safe to mend: rights, folders, leftovers.")
@pass_frame_and_json
def doctor(frame: CliContext, fix: bool, as_json: bool) -> None:
    """Check everything and say how to mend it; exit code 1 when something is broken."""
    folder, workspace = frame.places()
    findings = list(examine(frame, folder, workspace))
    if fix and any(finding.fix for finding in findings):
        for finding in findings:
            if finding.fix is not None:
                finding.fix()
                terminal.note(f"Mended: {finding.text}")
        findings = list(examine(frame, folder, workspace))
    try:
        settings = list(_settings_in_force(config.load(folder), folder))
    except MimikitError:
        settings = []
    if as_json:
        seen = [FindingView.model_validate(found, from_attributes=True) for found in findings]
        terminal.print_json(DoctorReport(settings=settings, findings=seen).to_dict())
    else:
        if settings:
            _print_settings(settings)
        _print_findings(findings)
    if any(finding.level == "broken" for finding in findings):
        raise click.exceptions.Exit(1)


def examine(frame: CliContext, folder: Path, workspace: Path) -> Iterator[Finding]:
    """Every finding, the ground first."""
    yield from checks.python()
    yield from checks.assets()
    yield from checks.token_counts()
    yield from checks.search_modules()
    if not workspace.is_dir():
        yield broken("workspace", f"expected a folder, got {workspace}")
        return
    if not folder.exists():
        missing = f"expected a state folder at {folder}, got none"
        mend = "`mimikit init` makes one"
        yield broken("state", missing, mend, lambda: frame.open_as_keeper(create=True))
        return
    ground = list(checks.folder_itself(folder))
    yield from ground
    if any(finding.level == "broken" and finding.fix is None for finding in ground):
        return
    yield from _examine_state(frame, folder, workspace)


def _examine_state(frame: CliContext, folder: Path, workspace: Path) -> Iterator[Finding]:
    files, clock = Files(frame.keep(RealDisk(folder))), SystemClock()
    now = clock.now()
    yield from checks.inside(folder, files)
    yield from checks.repository(folder, workspace, files)
    yield from checks.leftovers(folder, files, now)
    yield from checks.disk(folder)
    try:
        settings = config.load(folder)
        path = folder / "config.toml"
        yield ok("settings", str(path) if path.exists() else f"no {path}: defaults")
    except MimikitError as error:
        settings = None
        yield broken("settings", str(error))
    yield from checks.clock(now, checks.newest_write(folder), settings)
    if not (folder / "corrupt").is_dir():
        return  # what comes now reads the folders
    yield from checks.unreadable(files)
    if settings is None:
        return
    state = State(folder, workspace, files, settings, clock, EventLog(files, clock))
    consumer = look_at_consumer(state)
    if not consumer.is_there:
        yield from checks.start(state)
    elif consumer.state == "stuck":
        yield broken("consumer", f"{consumer.who} holds the lock and does not move", "restart it")
    else:
        yield ok("consumer", f"{consumer.state}: {consumer.who} holds the lock")
    health = consumer.health if consumer.is_there else None
    if health is not None and health.degraded:
        yield warning("consumer", f"in trouble: {health.degraded}")
    if health is not None and health.paused:
        yield note("queues", "paused", "`mimikit resume` lets them go on")
    if settings.durability == "fast":
        yield note("durability", "fast: a power cut may lose the last seconds")
    yield from checks.port(settings)
    yield from checks.prompts(state)
    yield from checks.engines(state)
    yield from checks.worker_sandbox(state)


def _print_findings(findings: Sequence[Finding]) -> None:
    terminal.out(terminal.bold("Findings"))
    for finding in findings:
        mark, colour = _MARKS[finding.level]
        lead = f"  {click.style(mark, fg=colour)} {terminal.heading(finding.area)}"
        terminal.out("\n".join(terminal.hanging(lead, terminal.one_line(finding.text))))
        if finding.mend:
            mend = finding.mend + (" (`mimikit doctor --fix` does it)" if finding.fix else "")
            lead = f"    {terminal.heading('')}{terminal.dim('→')} "
            terminal.out("\n".join(terminal.hanging(lead, mend)))
    levels = [finding.level for finding in findings]
    told: list[str] = []
    if number := levels.count("broken"):
        told.append("1 thing is broken" if number == 1 else f"{number} things are broken")
    if number := levels.count("warning"):
        told.append(terminal.plural(number, "warning"))
    terminal.out(f"\n{', '.join(told) or 'All is well'}.")


# ---- settings


def _settings_in_force(settings: Settings, folder: Path) -> Iterator[SettingView]:
    """Each key with its value, secrets left out, and where that comes from."""
    try:
        file = tomllib.loads(config.file_text(folder / "config.toml"))
    except (OSError, ValueError):
        file = {}
    for key in known_keys():
        value = attrgetter(key)(settings)
        if isinstance(value, dict):
            table = cast("dict[str, Any]", value)
            value = {
                name: it.model_dump(exclude_defaults=True)  # of keys it holds only where they are
                if isinstance(it, SettingsSection)
                else "•••"
                if _SECRET.search(name)
                else it
                for name, it in table.items()
            }
        yield SettingView(key=key, value=value, origin=_origin(key, file))


def _origin(key: str, file: dict[str, Any]) -> str:
    for name in (key.replace(".", "__"), key.partition(".")[0]):
        if (variable := f"MIMIKIT_{name.upper()}") in os.environ:
            return variable
    *tables, name = key.split(".")
    for table in tables:
        inner = file.get(table)
        file = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return "config.toml" if name in file else "default"


def _print_settings(settings: Sequence[SettingView]) -> None:
    """By table, as many on a line as fit; what is not a default stands out and names its origin."""
    terminal.out(terminal.bold("Settings") + terminal.dim("  plain ones are defaults"))
    columns = terminal.room() or 100
    for table, members in itertools.groupby(settings, lambda it: it.key.rpartition(".")[0]):
        lead, line = (table or "general").ljust(_TABLE_WIDTH), ""
        for setting in members:
            value, name = setting.value, setting.key.rpartition(".")[2]
            text = f"{name} = {'none' if value is None else json.dumps(value, ensure_ascii=False)}"
            if setting.origin != "default":
                text = terminal.bold(f"{text} ({setting.origin})")
            if line and 2 + _TABLE_WIDTH + terminal.width(f"{line}  {text}") > columns:
                terminal.out(f"  {terminal.dim(lead)}{line}")
                lead, line = " " * _TABLE_WIDTH, ""
            line += f"  {text}" if line else text
        terminal.out(f"  {terminal.dim(lead)}{line}")
    terminal.out()
