"""`mimikit doctor`: look at everything, say how to mend it, mend what is safe."""

from __future__ import annotations

import itertools
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, cast

import click

from mimikit import app, config
from mimikit.cli import checks, notify, state_checks, terminal, tool_checks
from mimikit.cli.checks import Finding, broken, note, ok, warning
from mimikit.cli.client import look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame_and_json
from mimikit.cli.skill_checks import skills, tool_servers
from mimikit.clock import SystemClock
from mimikit.config import Settings, known_keys
from mimikit.engine_settings import SettingsSection
from mimikit.errors import MimikitError
from mimikit.log import EventLog
from mimikit.protocol import schema
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
@click.option("--fix", is_flag=True, help="Mend what is safe to mend; says what it does.")
@pass_frame_and_json
def doctor(frame: CliContext, fix: bool, as_json: bool) -> None:
    r"""Check everything and say how to mend it.

    With --fix it mends what a program safely can: the rights and folders of the state, its
    .gitignore, what was left half made, indexes. Nothing of yours is removed; for the rest it says
    what to do.

    \b
    Exit codes: 0  nothing is broken (any more)
                1  something is broken, or could not be mended
                2  wrongly called
    """
    folder, workspace = frame.places()
    findings = list(examine(frame, folder, workspace))
    mended: list[str] = []
    not_mended: list[str] = []
    if fix and any(finding.fix for finding in findings):
        for finding in findings:
            if finding.fix is None:
                continue
            if (reason := _why_not_mended(frame, finding, finding.fix)) is None:
                mended.append(finding.text)
            else:
                not_mended.append(f"{finding.text}: {reason}")
        findings = list(examine(frame, folder, workspace))
        for text in {finding.text for finding in findings if finding.fix} & {*mended}:
            mended.remove(text)
            not_mended.append(f"{text}: it is still so")
    try:
        settings = list(_settings_in_force(config.load(folder), folder))
    except MimikitError:
        settings = []
    if as_json:
        seen = [FindingView.model_validate(found, from_attributes=True) for found in findings]
        report = DoctorReport(
            settings=settings, findings=seen, mended=mended, not_mended=not_mended
        )
        terminal.print_json(report.to_dict())
    else:
        if settings:
            _print_settings(settings)
        _print_findings(findings)
    if not_mended or any(finding.level == "broken" for finding in findings):
        raise click.exceptions.Exit(1)


def _why_not_mended(frame: CliContext, finding: Finding, fix: Callable[[], object]) -> str | None:
    """Say what will be done, do it, say what came of it: None where it is mended.

    One that can not be mended keeps none from the next.
    """
    terminal.note(f"To mend: {terminal.one_line(finding.text)} ({finding.mend})")
    try:
        with app.without_consumer(frame.open_as_keeper()) if finding.alone else nullcontext():
            fix()
    except (MimikitError, OSError) as error:
        terminal.note(f"Not mended: {terminal.one_line(str(error))}")
        return str(error)
    terminal.note("Mended.")
    return None


def examine(frame: CliContext, folder: Path, workspace: Path) -> Iterator[Finding]:
    """Every finding, the ground first."""
    shown = _why_only_shown(folder)
    for finding in _examine(frame, folder, workspace):
        # What a newer mimikit wrote is changed by none of our hands.
        yield replace(finding, fix=None) if shown else finding
    if shown:
        yield broken("state", shown)


def _why_only_shown(folder: Path) -> str | None:
    if not folder.is_dir() or folder.is_symlink():
        return None
    with closing(RealDisk(folder)) as disk:
        return schema.why_newer(Files(disk))


def _examine(frame: CliContext, folder: Path, workspace: Path) -> Iterator[Finding]:
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
    ground = list(state_checks.folder_itself(folder))
    yield from ground
    if any(finding.level == "broken" and finding.fix is None for finding in ground):
        return
    yield from _examine_state(frame, folder, workspace)


def _examine_state(frame: CliContext, folder: Path, workspace: Path) -> Iterator[Finding]:
    files, clock = Files(frame.keep(RealDisk(folder, is_state=True))), SystemClock()
    now = clock.now()
    yield from state_checks.inside(folder, files)
    yield from state_checks.repository(folder, workspace, files)
    yield from state_checks.leftovers(folder, files, now)
    yield from checks.disk(folder)
    try:
        settings = config.load(folder)
        path = folder / "config.toml"
        yield ok("settings", str(path) if path.exists() else f"no {path}: defaults")
    except MimikitError as error:
        settings = None
        yield broken("settings", str(error))
    yield from checks.clock(now, state_checks.newest_write(folder), settings)
    if not (folder / "corrupt").is_dir():
        return  # what comes now reads the folders
    yield from state_checks.unreadable(folder, files, now)
    if settings is None:
        return
    state = State(folder, workspace, files, settings, clock, EventLog(files, clock))
    consumer = look_at_consumer(state)
    yield from state_checks.remade(state)
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
    yield from skills(state)
    yield from tool_servers(state)
    yield from checks.worker_sandbox(state)
    yield from tool_checks.web_tools(settings)
    yield from notify.findings(state)


def _print_findings(findings: Sequence[Finding]) -> None:
    terminal.out(terminal.bold("Findings"))
    for finding in findings:
        mark, colour = _MARKS[finding.level]
        lead = f"  {click.style(mark, fg=colour)} {terminal.heading(finding.area)}"
        terminal.out("\n".join(terminal.hanging(lead, terminal.one_line(finding.text))))
        if finding.mend:
            how = "does it, while no consumer runs" if finding.alone else "does it"
            mend = finding.mend + (f" (`mimikit doctor --fix` {how})" if finding.fix else "")
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
                name: _masked(it.model_dump(exclude_defaults=True))  # it names where keys are
                if isinstance(it, SettingsSection)
                else "•••"
                if _SECRET.search(name)
                else it
                for name, it in table.items()
            }
        yield SettingView(key=key, value=value, origin=_origin(key, file))


def _masked(table: dict[str, Any]) -> dict[str, Any]:
    """Without the values of the variables that a server of tools is given."""
    if not isinstance(env := table.get("env"), dict):
        return table
    return {**table, "env": dict.fromkeys(cast("dict[str, str]", env), "•••")}


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
