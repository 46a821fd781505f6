"""`mimikit up` (page and consumer as child processes), `web`; the state folder and its token."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path

import click

from mimikit import __version__, processes
from mimikit.cli import client, process_group, terminal
from mimikit.cli.frame import CliContext, LeafCommand, pass_cli, pass_cli_and_json
from mimikit.cli.options import PORT
from mimikit.cli.process_group import ProcessGroup, child_command, end_words
from mimikit.config import Settings, known_keys, local_host
from mimikit.errors import AlreadyRunning, BadInput
from mimikit.protocol import paths
from mimikit.protocol.runtime import LockHolder
from mimikit.state import State, export_state, import_state
from mimikit.supervisor import consumer_lock

_WEB_START_S = 20.0
_CONSUMER_START_S = 4.0
_POLL_S = 0.05
_ORPHANS_S = 3.0
_host_option = click.option(
    "--host", help="Address to listen on (default: web.host of the settings)."
)
_port_option = click.option(
    "--port",
    type=PORT,
    help="Port to listen on (default: $PORT, else web.port of the settings; 0 takes a free one).",
)


@click.command(cls=LeafCommand)
@_host_option
@_port_option
@pass_cli
def up(cli: CliContext, host: str | None, port: int | None) -> None:
    """Start the page and the consumer together; one Ctrl-C ends both.

    Prints the page's address and a link that logs a browser in once. What ends by itself is started
    again; both end when this process does, however it ends.
    """
    state = cli.open_writable(create=True)
    host = host or state.settings.web.host
    _await_orphans(state)
    consumer = client.read_consumer(state)
    if consumer.is_up:
        raise AlreadyRunning(
            f"mimikit is running at {state.path} already ({consumer.who}); end it first, or start "
            "the page alone with `mimikit web`"
        )
    # A bad address is reported before anything starts.
    bound = processes.listen(host, port, state.settings)
    try:
        bound.check_exposure(state.settings)
    finally:
        bound.socket.close()
    port = bound.port
    places = ["--workspace", str(state.workspace), "--state", str(state.path)]
    group = ProcessGroup(
        {
            "consumer": child_command(*places, "consumer"),
            "page": child_command(*places, "web", "--host", host, "--port", str(port)),
        },
        state.clock,
        _print,
        fast_signals={"consumer": process_group.FAST_SHUTDOWN},
    )
    limits = state.settings.limits
    group.start()
    try:
        code = _until_ready(group, state, host, port)
        if code is None:
            _print_banner(state, host, port)
            group.supervise()
            code = 0
        if code == 0:
            runs = sum(len(state.files.names(f"{name}/running")) for name in paths.QUEUES)
            number = f"{runs} runs have" if runs > 1 else "1 run has"
            time = f"{limits.shutdown_timeout_s:g} s to finish; Ctrl-C again ends at once"
            _print(f"Ending: {number} {time}." if runs else "Ending.")
    finally:
        group.end(limits.shutdown_timeout_s + limits.kill_after_s + 5)
    _print("Ended.")
    sys.exit(code)


def _await_orphans(state: State) -> None:
    """Wait for the processes of an `up` that was killed: they end with it."""
    holder = state.files.peek(paths.CONSUMER_HOLDER, LockHolder)
    pids = [record.pid for record in [holder, *processes.pages(state)] if record]
    for _ in range(int(_ORPHANS_S / _POLL_S)):
        if not any(map(process_group.has_lost_parent, pids)):
            return
        time.sleep(_POLL_S)


def _until_ready(group: ProcessGroup, state: State, host: str, port: int) -> int | None:
    """Wait for the page and briefly for the consumer; the exit code when the start failed."""

    def page_answers() -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection((local_host(host), port), timeout=1).close()
            return True
        return False

    def wait_for(is_ready: Callable[[], bool], timeout_s: float) -> int | None:
        """The exit code when a signal or the exit of a process ends the start."""
        deadline_s = state.clock.monotonic() + timeout_s
        while not is_ready() and state.clock.monotonic() <= deadline_s:
            event = group.next_event(_POLL_S)
            if event is not None and event.kind == "stop":
                return 0
            if event is not None:
                what = "mimikit" if event.name == "consumer" else "the page"
                _print(f"{what} could not start: it {end_words(event.code)}.")
                return 1
        return None

    if (code := wait_for(page_answers, _WEB_START_S)) is not None:
        return code
    if not page_answers():
        _print(f"expected the page to answer within {_WEB_START_S:g} s, got nothing; giving up")
        return 1
    return wait_for(lambda: client.read_consumer(state).state == "running", _CONSUMER_START_S)


def _print_banner(state: State, host: str, port: int) -> None:
    link = processes.login_link(state, host, port)
    page = link.partition("#")[0]
    elsewhere = "" if port == state.settings.web.port else f" --port {port}"
    another = f"mimikit token --link{elsewhere}"
    consumer = client.read_consumer(state)
    lines = [
        f"{terminal.bold('mimikit ' + __version__)} is running in {state.workspace}",
        "",
        f"  {terminal.dim('Page')}     {terminal.bold(page)}",
        f"  {terminal.dim('Log in')}   {link}",
        terminal.dim(f"           works once, within the hour; `{another}` makes another"),
    ]
    if consumer.health is not None and consumer.state == "running":
        for number, line in enumerate(terminal.engine_lines(consumer.health.engines)):
            lead = "           " if number else f"  {terminal.dim('Model')}    "
            lines += terminal.hanging(lead, line)
    else:
        lines.append("  mimikit is still starting; `mimikit status` shows when it is there.")
    lines += ["", terminal.dim("Ctrl-C ends both.")]
    _print("\n".join(lines))


def _print(line: str) -> None:
    # A closed terminal must not keep the processes from being ended.
    with contextlib.suppress(OSError, ValueError):
        click.echo(line)
        sys.stdout.flush()


@click.command(cls=LeafCommand)
@_host_option
@_port_option
@process_group.parent_option
@pass_cli
def web(cli: CliContext, host: str | None, port: int | None, with_parent: bool) -> None:
    """Start the page and its API; the consumer, which does the work, is started apart."""
    state = cli.open_writable(create=not with_parent)

    def ready(at_host: str, at_port: int) -> None:
        link = processes.login_link(state, at_host, at_port)
        terminal.out(f"Page     {link.partition('#')[0]}")
        terminal.out(f"Log in   {link}")
        if not client.read_consumer(state).is_up:
            terminal.note(f"Messages and tasks wait: {client.START_HINT}.")

    if with_parent:
        process_group.end_with_parent()
    processes.serve_page(state, host, port, None if with_parent else ready)


# ---- the state folder and its token


@click.command(cls=LeafCommand)
@pass_cli
def init(cli: CliContext) -> None:
    """Make a state folder here; one that exists is left as it is."""
    folder, workspace = cli.folders()
    is_new = not folder.exists()
    state = cli.open_writable(create=True)
    if is_new:
        state.files.create(paths.CONFIG, config_template().encode())
    terminal.out(f"{'Made' if is_new else 'Already there:'} {folder}")
    if is_new:
        terminal.out(f"  workspace  {workspace}")
        terminal.out(f"  settings   {folder / paths.CONFIG} (all at their defaults)")
        terminal.out("`mimikit up` starts it, with its page.")


@click.command(cls=LeafCommand)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@pass_cli_and_json
def export(cli: CliContext, file: Path, force: bool, as_json: bool) -> None:
    """Write conversations, memory, tasks, triggers, files and settings into FILE, a zip.

    mimikit must not run meanwhile. The token, keys and channels' URLs are not in it.
    """
    state = cli.open()
    with contextlib.ExitStack() as stack:
        stack.callback(consumer_lock.free_lock(state).release)
        if pages := processes.pages(state):
            raise AlreadyRunning(f"the page runs (process {pages[-1].pid}); end it first")
        left_out = export_state(state.files, file, replace=force)
    for path in left_out:
        terminal.note(f"Left out, as it is no plain file: {terminal.one_line(path)}")
    if file.resolve().is_relative_to(state.workspace):
        terminal.note("It is in the workspace, where agents can read it; move it away.")
    if as_json:
        terminal.print_json({"file": str(file.resolve()), "leftOut": left_out})
    else:
        terminal.out(f"Exported to {file}, {file.stat().st_size:,} bytes.")


@click.command(cls=LeafCommand)
@click.argument("file", type=click.Path(path_type=Path))
@pass_cli_and_json
def import_(cli: CliContext, file: Path, as_json: bool) -> None:
    """Make a state folder here of FILE, which `mimikit export` wrote.

    Only where none is, or an empty one. Take only your own: its tasks and triggers run here.
    """
    folder, _ = cli.folders()
    count = import_state(file, folder)
    if as_json:
        terminal.print_json({"state": str(folder), "files": count})
    else:
        terminal.out(f"Imported {terminal.plural(count, 'file')} to {folder}.")
        terminal.out("Add the keys of engines and the channels again; then `mimikit up` starts it.")


@click.command(cls=LeafCommand)
@click.option("--link", is_flag=True, help="Print only a link that logs a browser in once.")
@click.option("--renew", is_flag=True, help="Make a new token; the old one stops working.")
@click.option("--host", help="Of the link (default: web.host of the settings).")
@click.option("--port", type=PORT, help="Of the link (default: web.port of the settings).")
@pass_cli_and_json
def token(
    cli: CliContext, link: bool, renew: bool, host: str | None, port: int | None, as_json: bool
) -> None:
    """Print the token, and in a terminal a fresh login link for the page.

    Scripts send the token as `Authorization: Bearer TOKEN`. Who holds it drives the agent: keep it
    to yourself.
    """
    state = cli.open_writable()
    result: dict[str, str] = {}
    if renew or not link:
        try:
            secret = processes.page_token(state, renew=renew)
        except BadInput as error:
            raise click.UsageError(f"--renew: {error}") from None
        result = {} if link else {"token": secret}
    if link or (sys.stdout.isatty() and not as_json):
        pages = processes.pages(state)
        if not pages and port is None:
            terminal.note("No page of this workspace runs; `mimikit up` starts one.")
        web = pages[-1] if pages else state.settings.web
        at_port = web.port if port is None else port
        result["link"] = processes.login_link(state, host or web.host, at_port)
    if as_json:
        terminal.print_json(result)
    elif len(result) == 1:
        terminal.out(*result.values())
    else:
        terminal.out(f"Token    {result['token']}")
        terminal.out(f"Log in   {result['link']}")
        terminal.out(terminal.dim("         the link works once, within the hour"))


_HEAD = """\
# Settings of mimikit. Each line shows a default: to change one, remove the # before it and before
# the [table] above it.
# `mimikit doctor` prints every value in force and where it came from.
# The environment takes precedence: MIMIKIT_WEB__PORT=9000 is web.port.
"""


def config_template() -> str:
    """A config.toml with every setting, commented out."""
    tables: dict[str, list[str]] = {}
    defaults = Settings.model_construct()
    for key in known_keys():
        table, _, name = key.rpartition(".")
        value = attrgetter(key)(defaults)
        shown = json.dumps({} if isinstance(value, dict) else value, ensure_ascii=False)
        shown = "…" if value is None else shown
        lines = tables.setdefault(table, [f"# [{table}]"] if table else [])
        lines.append(f"# {name} = {shown}")
    return "\n".join([_HEAD, *("\n".join(lines) + "\n" for lines in tables.values())])
