"""`mimikit self-awake`: improvements while nothing else is to do, each on a branch of its own."""

from __future__ import annotations

import click

from mimikit.cli import client, render, terminal
from mimikit.cli.frame import LeafCommand, pass_state_and_json
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
