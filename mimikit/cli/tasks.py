"""`mimikit enqueue`, `tasks` (list, show, output, cancel, retry), `pause` and `resume`."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import click

from mimikit.cli import client, task_text, terminal
from mimikit.cli.client import HINT, RequestFailed, WaitGuard, Watcher, look_at_consumer
from mimikit.cli.frame import CliContext, LeafCommand, PlainGroup, json_option, pass_frame
from mimikit.cli.options import Duration, NumberRange, TimingOptions, WordOption, timing_options
from mimikit.cli.task_text import RunFollower
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
@json_option
@pass_frame
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
    elif as_json:
        terminal.print_json(made.to_dict())
    elif isinstance(made, Task):
        _tell(state, made.id, [f"queued{_place(state)}"])
    else:
        _tell(state, made.id, promises(state, made))


def _tell(state: ReadOnlyState, id_: str, what: list[str]) -> None:
    """The id for pipes; beside it what happened, and what is missing for it to go on."""
    terminal.out(id_)
    for text in what:
        terminal.note(terminal.sentence(text))
    if not look_at_consumer(state).is_there:
        terminal.note(f"It waits: {HINT}.")


def _place(state: ReadOnlyState) -> str:
    others = len(state.files.names("worker/queue")) - 1
    return f"; {others} more {'waits' if others == 1 else 'wait'}" if others > 0 else ""


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
@json_option
@pass_frame
def list_(frame: CliContext, only: str | None, limit: int, as_json: bool) -> None:
    """List running and queued tasks, then those that ended last."""
    state = frame.open()
    found = shown.listed(state.files, client.live_runs(state), only, limit)
    if as_json:
        terminal.print_json(TaskList(tasks=found).to_dict())
        return
    if not found:
        terminal.out(f"No tasks{f' that are {only}' if only else ''}. `mimikit enqueue` makes one.")
        return
    now = state.clock.now()
    short = terminal.room() is not None
    rows = [
        (
            client.short_id(task.id) if short else task.id,
            terminal.state(task.state),
            task.seat if task.seat == "planner" else task.profile,
            _when(task, now),
            terminal.one_line(task.headline and f"{task.title}: {task.headline}")
            or terminal.one_line(task.title),
        )
        for task in found
    ]
    terminal.table(("ID", "STATE", "FOR", "WHEN", "WHAT"), rows)


def _when(task: TaskView, now: datetime) -> str:
    if task.state == "queued":
        if task.not_before and task.not_before > now:
            return f"starts {terminal.ago(task.not_before, now)}"
        return f"waits {terminal.short_span((now - task.created_at).total_seconds())}"
    if task.state == "running":
        if not task.started_at:
            return "now"
        return f"for {terminal.short_span((now - task.started_at).total_seconds())}"
    return terminal.ago(task.completed_at or task.created_at, now)


@tasks.command()
@click.argument("task_id", metavar="ID")
@json_option
@pass_frame
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
@json_option
@pass_frame
def output(frame: CliContext, task_id: str, follow: bool, as_json: bool) -> None:
    """Print what a task's run did and wrote; with -f as it comes."""
    state = frame.open()
    id_ = client.find_task(state.files, task_id)
    with RunFollower(state, id_, as_json=as_json) as follower:
        follower.print_until_end() if follow else follower.print_present()
    if not follow and not as_json and not follower.printer.printed_anything:
        view = shown.find_view(state.files, id_)
        has_ended = view is not None and view.completed_at is not None
        terminal.note("It wrote nothing." if has_ended else "No output yet.")


@tasks.command()
@click.argument("task_ids", metavar="ID...", nargs=-1, required=True)
@json_option
@pass_frame
def cancel(frame: CliContext, task_ids: tuple[str, ...], as_json: bool) -> None:
    """Cancel tasks: a queued one never starts, a running one is ended."""
    _give_all(frame.open(), "cancel", task_ids, as_json=as_json)


@tasks.command()
@click.argument("task_ids", metavar="ID...", nargs=-1, required=True)
@json_option
@pass_frame
def retry(frame: CliContext, task_ids: tuple[str, ...], as_json: bool) -> None:
    """Do ended tasks again, as new ones."""
    _give_all(frame.open(), "retry", task_ids, as_json=as_json)


def _give_all(state: ReadOnlyState, action: str, given: tuple[str, ...], *, as_json: bool) -> None:
    # All are found before the first is touched.
    for id_ in [client.find_task(state.files, text) for text in given]:
        client.carry_out(state, action, id_, as_json=as_json)


@click.command(cls=LeafCommand)
@json_option
@pass_frame
def pause(frame: CliContext, as_json: bool) -> None:
    """Let the queues rest: what runs goes on, nothing new starts."""
    client.carry_out(frame.open(), "pause", as_json=as_json)


@click.command(cls=LeafCommand)
@json_option
@pass_frame
def resume(frame: CliContext, as_json: bool) -> None:
    """Let the queues go on."""
    client.carry_out(frame.open(), "resume", as_json=as_json)
