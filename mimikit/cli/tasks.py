"""`mimikit enqueue`, `tasks` (list, show, output, cancel, retry), `pause` and `resume`."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, get_args

import click

from mimikit.cli import client, frame, options, render, terminal
from mimikit.cli.frame import CliContext, LeafCommand, PlainGroup
from mimikit.cli.triggers import create_trigger, print_new
from mimikit.config import ProfilesSettings
from mimikit.language.plain_text import without_printed
from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.state import ReadOnlyState
from mimikit.tasks import queue
from mimikit.tasks.queue import TaskState
from mimikit.tools import requests
from mimikit.tools.requests import TaskRequest
from mimikit.views import diffs
from mimikit.views import tasks as task_views
from mimikit.views.chains import task_detail
from mimikit.views.diffs import DiffView
from mimikit.views.job_views import JobReader
from mimikit.views.tasks import OutputEvent, TaskList
from mimikit.views.usage import UsageReader

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
    type=options.profile,
    help="Who does it: assistant (default), expert, background, command.",
)
@click.option("--priority", type=options.NumberRange(0, 10), default=5, help="Higher first (5).")
@click.option("--timeout", type=options.duration, help="End it after this long: 90s, 10m, 2h.")
@click.option(
    "--max-attempts",
    type=options.NumberRange(1, 100),
    default=1,
    help="Attempts before it fails (1).",
)
@click.option("--title", default="", help="A short name for lists.")
@options.notify_option
@options.timing_options
@click.option(
    "--once", is_flag=True, default=None, help="With a condition: fire once, then remove it."
)
@click.option("--wait", is_flag=True, help="Wait for the end and print the result.")
@frame.pass_cli_and_json
def enqueue(
    cli: CliContext,
    prompt: str,
    is_command: bool,
    profile: str | None,
    wait: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Queue a task; PROMPT says what to do, `-` reads it from standard input."""
    times = options.TimingOptions.pop_from(values)
    times.check()
    if is_command and profile not in (None, COMMAND_PROFILE):
        raise click.UsageError(f"expected --command or --profile {profile}, got both; choose one")
    if wait and (given := times.clock + times.events):
        raise click.UsageError(
            f"expected {given[0]} or --wait, got both: --wait is for tasks that start now"
        )
    state = cli.open()
    request = TaskRequest(
        prompt=sys.stdin.read() if prompt == "-" else prompt,
        origin="cli",
        profile=COMMAND_PROFILE if is_command else profile or "standard",
        **values,
    )
    if times.clock or times.events:
        create_trigger(state, request, times, as_json=as_json)
        return
    requests.check_request(request, ProfilesSettings.model_fields)
    task = requests.new_task(request, state.clock.now())
    queue.submit(state.files, task)
    if wait:
        _wait(state, task, as_json=as_json)
        return
    others = len(state.files.names("worker/queue")) - 1
    more = f"; {others} more {'waits' if others == 1 else 'wait'}" if others > 0 else ""
    print_new(state, task, [f"queued{more}"], as_json=as_json)


def _wait(state: ReadOnlyState, task: Task, *, as_json: bool) -> None:
    """Print the result once the task has ended; RequestFailed unless it is done."""
    name = f"task {terminal.short_id(task.id)}"
    guard = client.WaitGuard(state, f"{name} is kept until then")
    with client.StateWatch(state, ["worker/results", "worker/ended"]) as watcher:
        while (
            view := task_views.find_snapshot(state.files, task.id)
        ) is None or not view.completed_at:
            if failure := guard.check(task.profile, queued=True):
                raise failure
            watcher.pause()
    result = task_views.result_of(view)
    if as_json:
        terminal.print_json({"id": task.id} | (result.to_dict() if result else {}))
    elif result and result.text and (view.state == "done" or result.text != view.error):
        terminal.out(terminal.block(result.text))
    if view.state != "done":
        error = without_printed(view.error or "no reason given", result.text if result else "")
        raise client.RequestFailed(f"{name} {view.state}: {error}")


STATES = get_args(TaskState)
_JOB_STATES: dict[str, tuple[str, ...]] = {
    "queued": ("asked", "waiting"),
    "running": ("running", "planning"),
    "asking": ("waiting",),
}


@click.group(cls=PlainGroup)
def tasks() -> None:
    """Queued, running and ended tasks."""


@tasks.command("list")
@click.option("--only", type=options.WordOption(STATES), help="Those of one state.")
@click.option(
    "-n", "--limit", type=options.NumberRange(1, 1000), default=20, help="How many ended ones."
)
@frame.pass_state_and_json
def list_(state: ReadOnlyState, only: str | None, limit: int, as_json: bool) -> None:
    """List what runs and waits, then what ended last; --json lists each task."""
    consumer = client.read_consumer(state)
    if as_json:
        listed = task_views.listed(state.files, consumer.live, only, limit)
        terminal.print_json(TaskList(tasks=listed).to_dict())
        return
    states = _JOB_STATES.get(only or "", (only,) if only else ())
    view = JobReader(state.files).page(consumer.live, states=states, limit=limit)
    empty = f"No tasks{f' that are {only}' if only else ''}. `mimikit enqueue` makes one."
    engines = consumer.current.by_engine if consumer.current else {}
    render.show(view, state, as_json=False, engines=engines, empty=empty)


@tasks.command()
@click.argument("task_id", metavar="ID")
@click.option("--diff", "only_diff", is_flag=True, help="Only the whole diff of what it changed.")
@frame.pass_state_and_json
def show(state: ReadOnlyState, task_id: str, only_diff: bool, as_json: bool) -> None:
    """Show a task: prompt, result, changes, events and chain."""
    id_ = client.find_task(state.files, task_id)
    snapshot = task_views.find_snapshot(state.files, id_)
    if snapshot is None:
        raise client.was_removed("task", id_)
    diff = diffs.of_task(state.files, id_)
    if only_diff:
        shown = diff or DiffView(files=[], more_files=0, unseen=[], interrupted=0)
        render.show(shown, state, as_json=as_json)
        return
    live = client.read_consumer(state).live
    used = UsageReader(state.files, state.settings).of_task(id_, snapshot.task.created_at)
    detail = task_detail(state.files, snapshot, live, used)
    render.show(detail, state, as_json=as_json, diff=diff)


@tasks.command()
@click.argument("task_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the task has ended.")
@frame.pass_state_and_json
def output(state: ReadOnlyState, task_id: str, follow: bool, as_json: bool) -> None:
    """Print the output of a task's run; with -f as it comes."""
    id_ = client.find_task(state.files, task_id)
    printer = terminal.StreamPrinter()
    offset, has_warned = 0, False
    folders = [paths.RUNS, *(f"{name}/results" for name in paths.QUEUES)]
    with client.StateWatch(state, folders) as watcher, contextlib.ExitStack() as stack:
        stack.callback(printer.end)
        while True:
            # Checked before reading, so that the last output is not missed.
            view = task_views.find_snapshot(state.files, id_)
            has_ended = view is None or view.completed_at is not None
            at_end = False
            while not at_end:
                events, offset, at_end = task_views.output(state.files, id_, offset)
                for event in events:
                    if as_json:
                        terminal.out(terminal.json_text(event.to_dict()))
                    else:
                        _print_event(printer, event)
            if has_ended or not follow:
                break
            if not has_warned and not client.read_consumer(state).is_up:
                terminal.note(f"It waits: {client.START_HINT}.")
                has_warned = True
            watcher.pause()
    if as_json:
        return
    if follow and view is not None:
        terminal.note(f"Ended: {view.state}{': ' + view.error if view.error else ''}")
    if not follow and not printer.printed_anything:
        terminal.note("It wrote nothing." if view and has_ended else "No output yet.")


def _print_event(printer: terminal.StreamPrinter, event: OutputEvent) -> None:
    text = terminal.safe(event.text)
    match event.type:
        case "delta":
            printer.stream(event.text)
        case "reset":
            printer.withdraw()
        case "message":
            printer.message(event.text, text)
        case "output":
            printer.write(text, err=event.stream == "stderr")
        case "line":
            printer.unfinished(terminal.one_line(text.splitlines()[-1] if text else ""))
        case "started" if event.data.get("attempt", 1) > 1:
            printer.line(terminal.dim(f"— attempt {event.data['attempt']} —"))
        case "command":
            printer.line(terminal.dim(f"$ {terminal.one_line(text)}"))
        case "tool" | "file" | "note":
            printer.line(terminal.dim(f"· {terminal.one_line(text)}"))
        case "error":
            printer.line(click.style(terminal.one_line(text), fg="red"))
        case _:
            return


for _action, _text in (
    ("cancel", "Cancel tasks: a queued one never starts, a running one is ended."),
    ("retry", "Repeat ended tasks, as new ones."),
):
    tasks.add_command(client.action_command(_action, _text, client.find_task))
_PAUSE = "Pause the queues: what runs goes on, nothing new starts."
pause = client.action_command("pause", _PAUSE)
resume = client.action_command("resume", "Resume the queues.")
