"""`mimikit enqueue`, `tasks` (list, show, output, cancel, retry), `pause` and `resume`."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from mimikit.cli import client, task_text, terminal
from mimikit.cli.client import HINT, RequestFailed, WaitGuard, Watcher, look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, PlainGroup, pass_frame_and_json
from mimikit.cli.options import Duration, NumberRange, TimingOptions, WordOption, timing_options
from mimikit.cli.triggers import promises
from mimikit.protocol.models import Task
from mimikit.state import ReadOnlyState
from mimikit.tasks import queue
from mimikit.tools import requests
from mimikit.tools.requests import TaskRequest
from mimikit.triggers import registry
from mimikit.views import tasks as shown
from mimikit.views.chains import task_report
from mimikit.views.tasks import TaskList, TaskView, task_outcome

COMMAND_PROFILE = "command"
_EXAMPLES = """\b
Examples:
  mimikit enqueue "summarise README.md" --wait
  mimikit enqueue --command "df -h /" --every 1h
  mimikit enqueue --command "make" --when-changed "src/**/*.py"
  mimikit enqueue "tell me what is new" --cron "0 9 * * 1-5" --tz Asia/Shanghai
"""


@click.command(cls=LeafCommand, epilog=_EXAMPLES)
@click.argument("prompt")
@click.option("--command", "is_command", is_flag=True, help="PROMPT is a shell command; no LLM.")
@click.option(
    "--profile",
    metavar="PROFILE",
    help="Who does it: deferred, standard (default), specialist, command.",
)
@click.option("--priority", type=NumberRange(0, 10), default=5, help="Higher first (5).")
@click.option("--timeout", type=Duration(), help="End it after this long: 90s, 10m, 2h.")
@click.option(
    "--max-attempts", type=NumberRange(1, 100), default=1, help="Tries before it fails (1)."
)
@click.option("--title", default="", help="A short name for lists.")
@timing_options
@click.option("--once", is_flag=True, default=None, help="Of a condition: fire once, then be gone.")
@click.option("--wait", is_flag=True, help="Wait for the end and print the result.")
@pass_frame_and_json
def enqueue(
    frame: CliContext,
    prompt: str,
    is_command: bool,
    profile: str | None,
    priority: int,
    timeout: float | None,
    max_attempts: int,
    title: str,
    wait: bool,
    as_json: bool,
    **timing: Any,
) -> None:
    """Put a task into the queue; PROMPT says what to do, `-` reads it from the input."""
    times = TimingOptions(**timing)
    times.check()
    if is_command and profile not in (None, COMMAND_PROFILE):
        raise click.UsageError(f"expected --command or --profile {profile}, got both; choose one")
    if wait and (given := times.clock + times.events):
        raise click.UsageError(
            f"expected {given[0]} or --wait, got both: --wait is for what is done now"
        )
    state = frame.open()
    wanted = TaskRequest(
        prompt=sys.stdin.read() if prompt == "-" else prompt,
        origin="cli",
        title=title,
        profile=COMMAND_PROFILE if is_command else profile or "standard",
        priority=priority,
        timeout=timeout,
        max_attempts=max_attempts,
    )
    requests.check_request(wanted, type(state.settings.profiles).model_fields)
    if times.clock or times.events:
        now = state.clock.now()
        made = requests.new_trigger(state.files, wanted, times.build(state, now), now)
        registry.create(state.files, made)
    else:
        made = requests.new_task(wanted, state.clock.now())
        queue.submit(state.files, made)
    if wait and isinstance(made, Task):
        _wait(state, made, as_json=as_json)
        return
    if as_json:
        terminal.print_json(made.to_dict())
        return
    # The id for pipes; beside it what happened, and what is missing for it to go on.
    terminal.out(made.id)
    if isinstance(made, Task):
        others = len(state.files.names("worker/queue")) - 1
        more = f"; {others} more {'waits' if others == 1 else 'wait'}" if others > 0 else ""
        terminal.note(f"Queued{more}.")
    else:
        for text in promises(state, made):
            terminal.note(terminal.sentence(text))
    if not look_at_consumer(state).is_there:
        terminal.note(f"It waits: {HINT}.")


def _wait(state: ReadOnlyState, task: Task, *, as_json: bool) -> None:
    """Wait for the end and print the result.

    Raises:
        RequestFailed: it failed or was canceled, or there is nobody to do it.
    """
    name = f"task {client.short_id(task.id)}"
    patience = WaitGuard(state, f"{name} is kept until then")
    with Watcher(state, ["worker/results", "worker/ended"]) as watcher:
        while (view := shown.find_view(state.files, task.id)) is None or not view.completed_at:
            patience.check(task.profile, queued=True)
            watcher.pause()
    result = task_outcome(view)
    if as_json:
        terminal.print_json({"id": task.id} | (result.to_dict() if result else {}))
    elif result and result.text and (view.state == "done" or result.text != view.error):
        terminal.out(terminal.block(result.text))
    if view.state != "done":
        raise RequestFailed(f"{name} {view.state}: {view.error or 'no reason given'}")


STATES = ("queued", "running", "done", "failed", "canceled")


@click.group(cls=PlainGroup)
def tasks() -> None:
    """What is queued, running and done."""


@tasks.command("list")
@click.option("--only", type=WordOption(STATES), help="Those of one state.")
@click.option("-n", "--limit", type=NumberRange(1, 1000), default=20, help="How many ended ones.")
@pass_frame_and_json
def list_(frame: CliContext, only: str | None, limit: int, as_json: bool) -> None:
    """List running and queued tasks, then those that ended last."""
    state = frame.open()
    found = shown.listed(state.files, client.live_runs(state), only, limit)
    now = state.clock.now()
    short = terminal.room() is not None
    rows = [
        (
            client.short_id(task.id) if short else task.id,
            terminal.state(task.state),
            task.seat if task.seat == "planner" else task.profile,
            _when(task, now),
            terminal.one_line(f"{task.title}: {task.headline}" if task.headline else task.title),
        )
        for task in found
    ]
    lines = [f"No tasks{f' that are {only}' if only else ''}. `mimikit enqueue` makes one."]
    if rows:
        lines = terminal.table(("ID", "STATE", "FOR", "WHEN", "WHAT"), rows)
    terminal.show(TaskList(tasks=found), lines, as_json=as_json)


def _when(task: TaskView, now: datetime) -> str:
    if task.state == "queued":
        if task.not_before and task.not_before > now:
            return f"starts {terminal.ago(task.not_before, now)}"
        return f"waits {terminal.short_span((now - task.created_at).total_seconds())}"
    if task.state == "running":
        since = task.started_at
        return f"for {terminal.short_span((now - since).total_seconds())}" if since else "now"
    return terminal.ago(task.completed_at or task.created_at, now)


@tasks.command()
@click.argument("task_id", metavar="ID")
@pass_frame_and_json
def show(frame: CliContext, task_id: str, as_json: bool) -> None:
    """Show a task: what was asked, what came of it, how it got there."""
    state = frame.open()
    id_ = client.find_task(state.files, task_id)
    report = task_report(state.files, id_, client.live_runs(state))
    if report is None:
        raise client.gone("task", id_)
    lines = task_text.lines(report, state.clock.now(), state.settings.zone)
    terminal.show(report, lines, as_json=as_json)


@tasks.command()
@click.argument("task_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on until the task has ended.")
@pass_frame_and_json
def output(frame: CliContext, task_id: str, follow: bool, as_json: bool) -> None:
    """Print what a task's run did and wrote; with -f as it comes."""
    state = frame.open()
    id_ = client.find_task(state.files, task_id)
    task_text.print_output(state, id_, follow=follow, as_json=as_json)


def _changing(action: str, text: str) -> None:
    @tasks.command(action, help=text)
    @click.argument("task_ids", metavar="ID...", nargs=-1, required=True)
    @pass_frame_and_json
    def command(frame: CliContext, task_ids: tuple[str, ...], as_json: bool) -> None:
        state = frame.open()
        # All are found before the first is touched.
        for id_ in [client.find_task(state.files, given) for given in task_ids]:
            client.carry_out(state, action, id_, as_json=as_json)


_changing("cancel", "Cancel tasks: a queued one never starts, a running one is ended.")
_changing("retry", "Do ended tasks again, as new ones.")


@click.command(cls=LeafCommand)
@pass_frame_and_json
def pause(frame: CliContext, as_json: bool) -> None:
    """Let the queues rest: what runs goes on, nothing new starts."""
    client.carry_out(frame.open(), "pause", as_json=as_json)


@click.command(cls=LeafCommand)
@pass_frame_and_json
def resume(frame: CliContext, as_json: bool) -> None:
    """Let the queues go on."""
    client.carry_out(frame.open(), "resume", as_json=as_json)
