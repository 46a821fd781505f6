"""`mimikit enqueue`: a task, or a trigger that makes one at its time or event."""

from __future__ import annotations

import sys
from typing import Any

import click

from mimikit.cli import client, terminal
from mimikit.cli.client import HINT, RequestFailed, WaitGuard, Watcher, look_at_consumer
from mimikit.cli.frame import Frame, LeafCommand, json_option, pass_frame
from mimikit.cli.options import Duration, NumberRange, TimingOptions, timing_options
from mimikit.cli.triggers import promises
from mimikit.protocol.models import Task
from mimikit.state import ReadOnlyState
from mimikit.tasks import queue
from mimikit.tasks.queue import TaskSnapshot
from mimikit.tools import requests
from mimikit.tools.requests import TaskRequest
from mimikit.triggers import registry
from mimikit.views import tasks as shown
from mimikit.views.overview import task_outcome

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
    frame: Frame,
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
        _make_trigger(state, wanted, times, as_json=as_json)
        return
    task = requests.new_task(wanted, state.clock.now())
    queue.submit(state.files, task)
    if wait:
        _wait(state, task, as_json=as_json)
    elif as_json:
        terminal.print_json(task.to_dict())
    else:
        _tell(state, task.id, [f"queued{_place(state)}"])


def _make_trigger(
    state: ReadOnlyState, wanted: TaskRequest, times: TimingOptions, *, as_json: bool
) -> None:
    now = state.clock.now()
    trigger = requests.new_trigger(state.files, wanted, times.build(state, now), now)
    registry.create(state.files, trigger)
    if as_json:
        terminal.print_json(trigger.to_dict())
    else:
        _tell(state, trigger.id, promises(state, trigger))


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

    def look() -> TaskSnapshot | None:
        view = shown.find_view(state.files, task.id)
        return view if view is not None and view.completed_at is not None else None

    patience = WaitGuard(
        state, f"task {client.short_id(task.id)} is kept until then", terminal.note
    )
    with Watcher(state, ["worker/results", "worker/ended"]) as watcher:
        while (view := look()) is None:
            patience.check(task.profile, queued=True)
            watcher.pause()
    _print_result(view, as_json=as_json)


def _print_result(view: TaskSnapshot, *, as_json: bool) -> None:
    result = task_outcome(view)
    if as_json:
        terminal.print_json({"id": view.task.id} | (result.to_dict() if result else {}))
    elif result and result.text and (view.state == "done" or result.text != view.error):
        terminal.out(terminal.block(result.text))
    if view.state != "done":
        reason = view.error or "no reason given"
        raise RequestFailed(f"task {client.short_id(view.task.id)} {view.state}: {reason}")
