"""`mimikit doctor`: check everything, say how to fix it, fix what is safe.

A check is a small function in `EVERY`; what it raises is a finding, too.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import click

from mimikit import __version__, app, config
from mimikit.cli import render, terminal
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame_and_json
from mimikit.clock import SystemClock
from mimikit.config import local_host
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.opencode import cli as opencode_cli
from mimikit.engines.registry import CODE_ENGINES, EngineRegistry
from mimikit.errors import MimikitError
from mimikit.log import EventLog
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.runtime import RuntimeState
from mimikit.roles.prompts import Prompts
from mimikit.sandbox.worker import BoxSpec, WorkerSandbox, outside_of_path
from mimikit.state import State
from mimikit.triggers import registry
from mimikit.views.doctor import DoctorReport, Finding, broken, note, ok, settings_in_force, warning
from mimikit.views.status import look_at_consumer

_BROKEN_MB, _LOW_MB = 50, 500
_MAX_SHOWN = 10
_TIMEOUT_S = 2.0


@click.command(cls=LeafCommand)
@click.option("--fix", is_flag=True, help="Fix what is safe to fix: rights, folders.")
@pass_frame_and_json
def doctor(frame: CliContext, fix: bool, as_json: bool) -> None:
    """Check everything and say how to fix it; exit code 1 when something is broken."""
    folder, workspace = frame.folders()
    findings = list(examine(frame, folder, workspace))
    if fix:
        for found in findings:
            if found.fix is not None:
                found.fix()
                terminal.note(f"Fixed: {found.text}")
        findings = list(examine(frame, folder, workspace))
    report = DoctorReport(settings=settings_in_force(folder), findings=findings)
    render.show(report, None, as_json=as_json)
    if any(found.level == "broken" for found in findings):
        raise click.exceptions.Exit(1)


def examine(frame: CliContext, folder: Path, workspace: Path) -> Iterator[Finding]:
    """Every finding; checks that need a state folder or valid settings are left out without."""
    version = sys.version.partition(" ")[0]
    yield ok("python", f"{version} at {sys.executable}, mimikit {__version__}")
    if not workspace.is_dir():
        yield broken("workspace", f"expected a folder, got {workspace}")
        return
    if not folder.exists():
        got = f"expected a state folder at {folder}, got none"
        make = partial(frame.open_writable, create=True)
        yield broken("state", got, "`mimikit init` makes one", make)
        return
    found = rights(folder)
    yield found
    if found.level == "broken" and found.fix is None:
        return
    try:
        settings = config.load(folder)
        yield ok("settings", "valid; each value and its origin stand above")
    except MimikitError as error:
        yield broken("settings", str(error))
        return
    files, clock = Files(frame.close_at_end(RealDisk(folder))), SystemClock()
    state = State(folder, workspace, files, settings, clock, EventLog(files, clock))
    for check in EVERY:
        try:
            yield from check(state)
        except MimikitError as error:
            yield broken(check.__name__, str(error))


# ---- the checks


def rights(folder: Path) -> Finding:
    if folder.is_symlink() or not folder.is_dir():
        return broken("state", f"expected a folder that is no link, got {folder}")
    status = folder.stat()
    if status.st_uid != os.getuid():
        got = f"expected a folder of yours, got {folder} of user {status.st_uid}"
        return broken("state", got, f"`sudo chown -R $(id -un) {folder}`")
    if (mode := stat.S_IMODE(status.st_mode)) != 0o700:
        got = f"expected mode 0700 on {folder}, got {mode:04o}"
        return broken("state", got, f"`chmod 700 {folder}`", lambda: folder.chmod(0o700))
    return ok("state", str(folder))


def disk(state: State) -> Iterator[Finding]:
    free_mb = shutil.disk_usage(state.path).free // 2**20
    if free_mb < _LOW_MB:
        short = broken if free_mb < _BROKEN_MB else warning
        yield short("disk", f"only {free_mb} MB left", "free some space; nothing is lost meanwhile")
    else:
        yield ok("disk", f"{free_mb / 1024:.1f} GB free")


def folders(state: State) -> Iterator[Finding]:
    every = [state.path, *(state.path / name for name in paths.FOLDERS)]
    if odd := [path for path in every if path.exists() and not path.is_dir()]:
        yield broken("folders", f"expected a folder, got a file at {odd[0]}", "move it away")
    elif missing := [name for name in paths.FOLDERS if not (state.path / name).is_dir()]:
        got = f"expected all folders, got none at {', '.join(missing[:_MAX_SHOWN])}"
        yield broken("folders", got, "make them", state.files.make_folders)
    elif shut := [path for path in every if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]:
        got = f"expected folders that can be written to, got {', '.join(map(str, shut))}"
        yield broken("folders", got, "give yourself the right to write there")


def corrupt(state: State) -> Iterator[Finding]:
    """Files that could not be read, and broken triggers, each with its reason."""
    files = state.files
    reasons = files.names(paths.CORRUPT, suffix=paths.REASON)
    for name in reasons[:_MAX_SHOWN]:
        text = (files.read(f"{paths.CORRUPT}/{name}") or b"").decode(errors="replace")
        copy = f"{paths.CORRUPT}/{name.removesuffix(paths.REASON)}"
        mend = f"kept as {copy}: fix it and move it back, or remove both files"
        yield warning("corrupt", ": ".join(text.strip().split("\n", 1)), mend)
    for trigger_id in registry.ids(files):
        if error := registry.read(files, trigger_id)[1]:
            mend = "fix the file; until then its last valid definition stays in force"
            yield warning("trigger", f"{paths.trigger(trigger_id)}: {error}", mend)


def consumer(state: State) -> Iterator[Finding]:
    """Whether one runs or could start: what would end it at its start is found here, too."""
    seen = look_at_consumer(state.files, state.clock.now())
    if seen.state == "stuck":
        yield broken("consumer", f"{seen.who} holds the lock and does not move", "restart it")
    elif seen.is_there:
        yield ok("consumer", f"{seen.state}: {seen.who} holds the lock")
    else:
        try:
            app.check_consumer_starts(state)
            yield note("consumer", "none is running", "`mimikit up` starts one")
        except Exception as error:  # noqa: BLE001 - it would end a consumer, too
            kind = "" if isinstance(error, MimikitError) else f"{type(error).__name__}: "
            yield broken("consumer", f"none can start: {kind}{error}")
    if seen.current and seen.current.degraded:
        yield warning("consumer", f"in trouble: {seen.current.degraded}")


def page(state: State) -> Iterator[Finding]:
    """Whether the page answers, or its port is free."""
    at = (local_host(state.settings.web.host), state.settings.web.port)
    address = f"{at[0]}:{at[1]}"
    connection = http.client.HTTPConnection(*at, timeout=_TIMEOUT_S)
    failures = (OSError, ValueError, http.client.HTTPException)
    with contextlib.suppress(*failures), contextlib.closing(connection):
        connection.request("GET", "/healthz")
        if "consumer" in json.loads(connection.getresponse().read(10_000)):
            yield ok("port", f"the page answers at {address}")
            return
    try:
        socket.create_server(at, family=socket.AF_INET6 if ":" in at[0] else socket.AF_INET).close()
        yield ok("port", f"{address} is free")
    except OSError as error:
        mend = "end the program that has it, or set another web.port"
        yield warning("port", f"expected {address} to be free, got {error}", mend)


def prompts(state: State) -> Iterator[Finding]:
    skipped = Prompts(state.files).skipped
    yield ok("prompts", "all templates are there and can be filled")
    mend = "put a text file there, or remove it; then restart"
    yield from (warning("prompts", reason, mend) for reason in skipped)


def engines(state: State) -> Iterator[Finding]:
    """Which engine each role and profile uses, and why not the others."""
    runtime = state.files.peek(paths.RUNTIME, RuntimeState)
    known = runtime.engines if runtime else {}
    status = EngineRegistry(app.engines_of(state), state.settings, known).status()
    if current := look_at_consumer(state.files, state.clock.now()).current:
        status = current.engines  # it has tried them
    for line, waits in terminal.engine_lines(status).items():
        mend = "until then its work waits in the queue"
        yield broken("engines", line, mend) if waits else ok("engines", line)
    if all(one.engine in CODE_ENGINES for one in status.values()):
        mend = "`codex login`, or `mimikit engine add`"
        yield warning("engines", "no language model is connected", mend)


def programs(state: State) -> Iterator[Finding]:
    engine, place = CodexEngine(state.settings, state.path), codex_cli.find(state.settings.codex)
    if (reason := engine.unavailable()) or place is None:
        yield note("codex", reason or "not installed")
    elif reason := engine.check_talk():
        yield warning("codex", f"its app-server does not start: {reason}", "update codex")
    else:
        yield ok("codex", f"{place.program}; its app-server starts")
    if other := opencode_cli.find(state.settings.opencode):
        yield ok("opencode", str(other.program))


def box(state: State) -> Iterator[Finding]:
    """Whether the sandbox hides a state folder from a Worker: tested on a temporary one."""
    settings = state.settings.sandbox
    if settings.mode == "off":
        advice = "an agent can then read and change all that you can"
        yield warning("sandbox", "off in the settings: Workers run without it", advice)
        return
    with tempfile.TemporaryDirectory() as place:
        (masked := Path(place, paths.STATE_FOLDER)).mkdir()
        worker = WorkerSandbox(settings, masked)
        reason = worker.unavailable() or worker.unproved(BoxSpec(Path(place), Path(place)))
    if reason is None:
        yield ok("sandbox", "a Worker can neither read nor write a state: tested")
    else:
        yield warning("sandbox", reason, "until then no agent works as a Worker")
    if unseen := outside_of_path(settings, state.workspace):
        what = f"Workers do not see these folders of PATH: {', '.join(unseen)}"
        yield note("sandbox", what, "show those they need by `sandbox.show`")


EVERY = (disk, folders, corrupt, consumer, page, prompts, engines, programs, box)


# ---- the report

_MARKS = {
    "ok": ("✓", "green"),
    "note": ("·", None),
    "warning": ("!", "yellow"),
    "broken": ("✗", "red"),
}
_TABLE_WIDTH = 20


@render.render.register
def _(view: DoctorReport, _context: terminal.RenderContext) -> Iterable[str]:
    yield from _settings(view)
    yield terminal.bold("Findings")
    for found in view.findings:
        mark, colour = _MARKS[found.level]
        lead = f"  {click.style(mark, fg=colour)} {terminal.heading(found.area)}"
        yield from terminal.hanging(lead, terminal.one_line(found.text))
        if found.mend:
            mend = found.mend + (" (`mimikit doctor --fix` does it)" if found.fixable else "")
            yield from terminal.hanging(f"    {terminal.heading('')}{terminal.dim('→')} ", mend)
    levels = [found.level for found in view.findings]
    told: list[str] = []
    if number := levels.count("broken"):
        told.append("1 thing is broken" if number == 1 else f"{number} things are broken")
    if number := levels.count("warning"):
        told.append(terminal.plural(number, "warning"))
    yield f"\n{', '.join(told) or 'All is well'}."


def _settings(view: DoctorReport) -> Iterator[str]:
    """By table, wrapped; what is not a default is bold and names its origin."""
    if not view.settings:
        return
    yield terminal.bold("Settings") + terminal.dim("  plain ones are defaults")
    for table, members in itertools.groupby(view.settings, lambda it: it.key.rpartition(".")[0]):
        texts: list[str] = []
        for setting in members:
            value, name = setting.value, setting.key.rpartition(".")[2]
            text = f"{name} = {'none' if value is None else json.dumps(value, ensure_ascii=False)}"
            is_default = setting.origin == "default"
            texts.append(text if is_default else terminal.bold(f"{text} ({setting.origin})"))
        yield from terminal.hanging(
            f"  {terminal.dim((table or 'general').ljust(_TABLE_WIDTH))}", "  ".join(texts)
        )
    yield ""
