"""`mimikit self-awake`: improvements while nothing else is to do, each on a branch of its own."""

from __future__ import annotations

import click

from mimikit.cli import client, terminal
from mimikit.cli.frame import LeafCommand, pass_state_and_json
from mimikit.protocol import paths
from mimikit.protocol.runtime import SelfAwakeState
from mimikit.roles.worktree import Worktrees
from mimikit.sandbox import programs
from mimikit.state import ReadOnlyState

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
        _show(state, worktrees.branches(state.workspace), as_json=as_json)
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


def _show(state: ReadOnlyState, branches: list[str], *, as_json: bool) -> None:
    found = state.files.peek(paths.SELF_AWAKE, SelfAwakeState) or SelfAwakeState()
    enabled = state.settings.self_awake.enabled
    if as_json:
        terminal.print_json({"enabled": enabled, "branches": branches, **found.to_dict()})
        return
    lines = [f"Self-awake is {'on' if enabled else 'off'}."]
    for run in filter(None, [*found.past[-10:], found.run]):
        what = terminal.one_line(run.reason or run.branch or "")
        lines.append(f"{run.started_at:%Y-%m-%d %H:%M}  {run.item}: {run.end or 'begun'}  {what}")
    for line in [*lines, *(f"not merged: {branch}" for branch in branches)]:
        terminal.out(line)
