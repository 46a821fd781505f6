"""`mimikit up`: page and consumer as two processes under this one; `mimikit web`."""

from __future__ import annotations

import contextlib
import socket
import sys

import click

from mimikit import __version__, app
from mimikit.cli import terminal
from mimikit.cli.client import HINT, Watcher, look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame
from mimikit.cli.options import PORT
from mimikit.cli.process_group import (
    HURRY,
    PARENT_OPTION,
    ProcessGroup,
    end_with_parent,
    ended_how,
    own_command,
    parent_option,
)
from mimikit.errors import AlreadyRunning
from mimikit.protocol import paths
from mimikit.state import State

_WEB_START_S = 20.0
_CONSUMER_START_S = 4.0
_KNOCK_S = 0.05
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
@pass_frame
def up(frame: CliContext, host: str | None, port: int | None) -> None:
    """Start the page and the consumer together; one Ctrl-C ends both.

    Prints the page's address and a link that logs a browser in once. What ends by itself is started
    again; both end when this process does, however it ends.
    """
    state = frame.open_as_keeper(create=True)
    host = host or state.settings.web.host
    there = look_at_consumer(state)
    if there.is_there:
        raise AlreadyRunning(
            f"expected no consumer at {state.path}, got {there.who}; end it first, or start the "
            "page alone with `mimikit web`"
        )
    # Tried here, so that what is wrong with the address is said before anything starts.
    bound = app.listen(host, port, state.settings)
    try:
        app.check_exposure(bound, state.settings)
    finally:
        bound.socket.close()
    port = bound.port
    places = ["--workspace", str(state.workspace), "--state", str(state.path)]
    group = ProcessGroup(
        {
            "consumer": own_command(*places, "consumer", PARENT_OPTION),
            "page": own_command(*places, "web", PARENT_OPTION, "--host", host, "--port", str(port)),
        },
        state.clock,
        _say,
        hurry={"consumer": HURRY},
    )
    limits = state.settings.limits
    group.start()
    try:
        code = _until_ready(group, state, host, port)
        if code is None:
            _print_banner(state, host, port)
            code = group.tend()
        if code == 0:
            runs = sum(len(state.files.names(f"{seat}/running")) for seat in paths.QUEUES)
            number = f"{runs} runs have" if runs > 1 else "1 run has"
            time = f"{limits.shutdown_timeout_s:g} s to finish; Ctrl-C again ends at once"
            _say(f"Ending: {number} {time}." if runs else "Ending.")
    finally:
        group.end(limits.shutdown_timeout_s + limits.kill_after_s + 5)
    _say("Ended.")
    sys.exit(code)


def _until_ready(group: ProcessGroup, state: State, host: str, port: int) -> int | None:
    """Wait for the page, and a moment for the consumer; gives an exit code when that failed."""
    deadline_s = state.clock.monotonic() + _WEB_START_S
    while not _answers(host, port):
        if (code := _code_of_end(group, _KNOCK_S)) is not None:
            return code
        if state.clock.monotonic() > deadline_s:
            _say(f"expected the page to answer within {_WEB_START_S:g} s, got nothing; giving up")
            return 1
    with Watcher(state, [paths.ROOT]) as watcher:
        deadline_s = state.clock.monotonic() + _CONSUMER_START_S
        while look_at_consumer(state).state != "running":
            if (code := _code_of_end(group, 0)) is not None:
                return code
            if state.clock.monotonic() > deadline_s:
                break
            watcher.pause(_KNOCK_S)
    return None


def _code_of_end(group: ProcessGroup, timeout_s: float) -> int | None:
    """The exit code when a signal or a death ends the start; None while it goes on."""
    event = group.next_event(timeout_s)
    if event is None or event.kind == "stop":
        return None if event is None else 0
    _say(f"The {event.who} could not start: it {ended_how(event.code)}.")
    return 1


def _answers(host: str, port: int) -> bool:
    target = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104
    with contextlib.suppress(OSError), socket.create_connection((target, port), timeout=1):
        return True
    return False


def _print_banner(state: State, host: str, port: int) -> None:
    link = app.login_link(state, host, port)
    page = link.partition("#")[0]
    elsewhere = "" if port == state.settings.web.port else f" --port {port}"
    another = f"mimikit token --link{elsewhere}"
    consumer = look_at_consumer(state)
    lines = [
        f"{terminal.bold('mimikit ' + __version__)} is running in {state.workspace}",
        "",
        f"  {terminal.dim('Page')}     {terminal.bold(page)}",
        f"  {terminal.dim('Log in')}   {link}",
        terminal.dim(f"           works once, within the hour; `{another}` makes another"),
    ]
    if consumer.health is not None and consumer.state == "running":
        for number, line in enumerate(terminal.engine_lines(consumer.health.engines)):
            lead = "           " if number else f"  {terminal.dim('Engines')}  "
            lines += terminal.hanging(lead, line.text)
    else:
        lines.append("  The consumer is still starting; `mimikit status` shows when it is there.")
    lines += ["", terminal.dim("Ctrl-C ends both.")]
    for line in lines:
        _say(line)


def _say(line: str) -> None:
    # The terminal may have been closed: that is no reason to leave processes behind.
    with contextlib.suppress(OSError, ValueError):
        click.echo(line)
        sys.stdout.flush()


@click.command(cls=LeafCommand)
@_host_option
@_port_option
@parent_option
@pass_frame
def web(frame: CliContext, host: str | None, port: int | None, with_parent: bool) -> None:
    """Start the page and its API; the consumer, which does the work, is started apart."""
    state = frame.open_as_keeper(create=True)

    def ready(at_host: str, at_port: int) -> None:
        link = app.login_link(state, at_host, at_port)
        terminal.out(f"Page     {link.partition('#')[0]}")
        terminal.out(f"Log in   {link}")
        if not look_at_consumer(state).is_there:
            terminal.note(f"Messages and tasks wait: {HINT}.")

    if with_parent:
        end_with_parent()
    app.serve_page(state, host, port, None if with_parent else ready)
