"""`mimikit self-awake` and `mimikit notify`: what it does, and whom it tells, meanwhile."""

from __future__ import annotations

import sys

import click

from mimikit import notifications
from mimikit.cli import client, render, terminal
from mimikit.cli.frame import CliContext, LeafCommand, PlainGroup, pass_cli, pass_state_and_json
from mimikit.errors import BadInput
from mimikit.language import phrases
from mimikit.roles.worktree import Worktrees
from mimikit.sandbox import programs
from mimikit.state import ReadOnlyState
from mimikit.views import life

_ACTIONS = ("status", "on", "off", "run", "merge", "discard")


@click.command("self-awake", cls=LeafCommand)
@click.argument("action", type=click.Choice(_ACTIONS), default="status")
@click.argument("target", default="")
@pass_state_and_json
def self_awake(state: ReadOnlyState, action: str, target: str, as_json: bool) -> None:
    """Let mimikit improve the repository while nothing else is to do.

    `status`, `on`, `off`. `run [ITEM]` begins one improvement now. `merge BRANCH` takes one over
    into the branch that is checked out, if the working tree is clean; `discard BRANCH` deletes it.
    """
    programs.exclude(state.workspace)
    worktrees = Worktrees(state.path, programs.find("git"))
    if action == "status":
        branches = worktrees.branches(state.workspace)
        health, now = client.read_consumer(state).current, state.clock.now()
        view = life.self_awake(state.files, state.settings, branches, health, now)
        render.show(view, state, as_json=as_json)
        return
    if action in ("merge", "discard"):
        change = worktrees.merge if action == "merge" else worktrees.discard
        message = change(state.workspace, target)
        state.log.write("audit", f"self_awake_{action}", branch=target)
    elif action == "run":
        message = client.submit_command(state, "self_awake_run", target).message
    else:
        args = {"enabled": action == "on"}
        message = client.change_settings(state, "self_awake_set", args=args).message
    if as_json:
        terminal.print_json({"ok": True, "message": message})
    else:
        terminal.out(terminal.sentence(message))


@click.group(cls=PlainGroup)
def notify() -> None:
    """Set up channels that reach you outside the page, by the URLs of Apprise."""


@notify.command()
@click.argument("name")
@click.argument("url", required=False)
@click.option("--url-stdin", is_flag=True, help="Read the URL from standard input.")
@pass_cli
def add(cli: CliContext, name: str, url: str | None, url_stdin: bool) -> None:
    """Add the channel NAME, or give it another URL. It is stored in secrets/."""
    if (url is None) == (not url_stdin):
        raise BadInput("expected URL or --url-stdin, got both or none")
    state = cli.open_writable(create=True)
    notifications.add(state.files, name, url or sys.stdin.read(10_000))
    terminal.out(f"Set up {name}. `mimikit notify test {name}` sends a message.")


@notify.command(name="list")
@pass_state_and_json
def list_(state: ReadOnlyState, as_json: bool) -> None:
    """List the channels, what waits for each, and what was sent lately."""
    render.show(life.notify(state.files, state.settings), state, as_json=as_json)


@notify.command()
@click.argument("name", required=False)
@pass_cli
def test(cli: CliContext, name: str | None) -> None:
    """Send a message to NAME, or to every channel, now."""
    files, text = cli.open().files, phrases.say("notice_test", "en")
    channels = [name] if name else notifications.names(files)
    reports = {one: notifications.send(files, one, "mimikit", text) for one in channels}
    for one, report in reports.items():
        terminal.out(f"{one}: {'sent' if report.outcome == 'sent' else report.error}")
    if any(report.outcome != "sent" for report in reports.values()):
        raise client.RequestFailed("expected every channel to take the message, got an error")


@notify.command()
@click.argument("name")
@pass_cli
def remove(cli: CliContext, name: str) -> None:
    """Remove the channel NAME and its URL."""
    notifications.remove(cli.open_writable().files, name)
    terminal.out(f"Removed {name}.")
