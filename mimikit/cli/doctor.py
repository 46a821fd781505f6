"""`mimikit doctor`: look at everything, say how to mend it, mend what is safe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import click

from mimikit import config
from mimikit.cli import checks, terminal
from mimikit.cli.checks import Finding, broken, note, ok, warning
from mimikit.cli.client import look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, json_option, pass_frame
from mimikit.cli.setup import settings_in_force
from mimikit.clock import SystemClock
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
_SECRET = re.compile(r"key|token|secret|password", re.IGNORECASE)


@click.command(cls=LeafCommand)
@click.option("--fix", is_flag=True, help="Mend what is safe to mend: rights, folders, leftovers.")
@json_option
@pass_frame
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
        settings = list(settings_in_force(config.load(folder), folder))
    except MimikitError:
        settings = []
    settings = [(key, _without_secrets(value), origin) for key, value, origin in settings]
    if as_json:
        shown = [SettingView(key=k, value=v, origin=o) for k, v, o in settings]
        seen = [FindingView.model_validate(found, from_attributes=True) for found in findings]
        terminal.print_json(DoctorReport(settings=shown, findings=seen).to_dict())
    else:
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
    if settings is not None:
        log = EventLog(files, clock)
        yield from _examine_work(State(folder, workspace, files, settings, clock, log))


def _examine_work(state: State) -> Iterator[Finding]:
    consumer = look_at_consumer(state)
    if not consumer.is_there:
        yield note("consumer", "none is running", "`mimikit up` starts one")
    elif consumer.state == "stuck":
        yield broken("consumer", f"{consumer.who} holds the lock and does not move", "restart it")
    else:
        yield ok("consumer", f"{consumer.state}: {consumer.who} holds the lock")
    health = consumer.health if consumer.is_there else None
    if health is not None and health.degraded:
        yield warning("consumer", f"in trouble: {health.degraded}")
    if health is not None and health.paused:
        yield note("queues", "paused", "`mimikit resume` lets them go on")
    if state.settings.durability == "fast":
        yield note("durability", "fast: a power cut may lose the last seconds")
    yield from checks.port(state.settings)
    yield from checks.prompts(state)
    yield from checks.engines(state)
    yield from checks.worker_sandbox(state)


def _without_secrets(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    table = cast("dict[str, Any]", value)
    return {key: "•••" if _SECRET.search(key) else inner for key, inner in table.items()}


def _print_settings(settings: Sequence[tuple[str, Any, str]]) -> None:
    """By table; what is not a default stands out and names its origin."""
    if not settings:
        return
    terminal.out(terminal.bold("Settings") + terminal.dim("  plain ones are defaults"))
    tables: dict[str, list[str]] = {}
    for key, value, origin in settings:
        table, _, name = key.rpartition(".")
        shown = "none" if value is None else json.dumps(value, ensure_ascii=False)
        text = f"{name} = {shown}"
        if origin != "default":
            text = terminal.bold(f"{text} ({origin})")
        tables.setdefault(table, []).append(text)
    for table, texts in tables.items():
        terminal.wrapped(table or "general", texts)
    terminal.out()


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
