"""`mimikit enqueue`: a task, or a trigger that makes one again and again."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click
from pydantic import ValidationError

from mimikit.cli import durations, naming, task_text, terminal
from mimikit.cli.frame import Frame, LeafCommand, json_option, pass_frame
from mimikit.cli.guest import GuestState
from mimikit.cli.values import Duration, Whole
from mimikit.cli.waiting import HINT, Failed, Patience, Watcher, look_at_consumer
from mimikit.errors import BadInput
from mimikit.protocol.files import bad_record
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import Schedule, Task, Trigger
from mimikit.tasks import queue
from mimikit.tasks.views import TaskView
from mimikit.triggers import registry, schedule
from mimikit.web.shown import tasks as shown

COMMAND_PROFILE = "command"
_EXAMPLES = """\b
Examples:
  mimikit enqueue "summarise README.md" --wait
  mimikit enqueue --command "df -h /" --every 1h
"""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for, whether once or again and again."""

    prompt: str
    profile: str
    priority: int
    timeout: float | None
    max_attempts: int
    title: str


@click.command(cls=LeafCommand, epilog=_EXAMPLES)
@click.argument("prompt")
@click.option("--command", "is_command", is_flag=True, help="PROMPT is a shell command; no LLM.")
@click.option(
    "--profile",
    metavar="PROFILE",
    help="Who does it: deferred, standard (default), specialist, command.",
)
@click.option("--priority", type=Whole(0, 10), default=5, help="0 to 10, higher first (5).")
@click.option("--timeout", type=Duration(), help="End it after this long: 90s, 10m, 2h.")
@click.option("--max-attempts", type=Whole(1, 100), default=1, help="Tries before it fails (1).")
@click.option("--title", default="", help="A short name for lists.")
@click.option("--every", type=Duration(), help="Run it again and again at this interval.")
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
    every: float | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Put a task into the queue; PROMPT says what to do, `-` reads it from the input."""
    if is_command and profile not in (None, COMMAND_PROFILE):
        raise click.UsageError(f"expected --command or --profile {profile}, got both; choose one")
    if every is not None and wait:
        raise click.UsageError("expected --every or --wait, got both: what repeats has no end")
    state = frame.open()
    chosen = COMMAND_PROFILE if is_command else profile or "standard"
    text = sys.stdin.read() if prompt == "-" else prompt
    asked = Asked(text, chosen, priority, timeout, max_attempts, title)
    _check(state, asked)
    if every is not None:
        _repeat(state, asked, every, as_json=as_json)
        return
    task = _submit(state, asked)
    if wait:
        _wait(state, task, as_json=as_json)
    elif as_json:
        terminal.print_json(task.to_dict())
    else:
        _tell(state, task.id, f"queued{_place(state)}")


def _check(state: GuestState, asked: Asked) -> None:
    """What the records do not check themselves."""
    known = list(type(state.settings.profiles).model_fields)
    if asked.profile not in known:
        raise BadInput(f"--profile: expected one of {', '.join(known)}, got {asked.profile!r}")
    if not asked.prompt.strip():
        raise BadInput("PROMPT: expected some text, got only blanks")


def _submit(state: GuestState, asked: Asked) -> Task:
    now = state.clock.now()
    id_ = new_id("task", now)
    try:
        task = Task(
            id=id_,
            profile=asked.profile,
            title=asked.title,
            prompt=asked.prompt,
            priority=asked.priority,
            created_at=now,
            max_attempts=asked.max_attempts,
            timeout=asked.timeout,
            trace_id=id_,
            origin="cli",
        )
    except ValidationError as error:
        raise bad_record(error) from None
    queue.submit(state.files, task)
    return task


def _repeat(state: GuestState, asked: Asked, every_s: float, *, as_json: bool) -> None:
    """Store a trigger that makes the task at each interval."""
    now = state.clock.now()
    id_ = new_id("trig", now)
    try:
        trigger = Trigger(
            id=id_,
            type="recurring",
            title=asked.title,
            prompt=asked.prompt,
            profile=asked.profile,
            priority=asked.priority,
            created_at=now,
            timeout=asked.timeout,
            max_attempts=asked.max_attempts,
            trace_id=id_,
            origin="cli",
            schedule=Schedule(interval=every_s),
        )
    except ValidationError as error:
        raise bad_record(error) from None
    if reason := schedule.unsupported(trigger):
        raise BadInput(reason)
    registry.create(state.files, trigger)
    if as_json:
        terminal.print_json(trigger.to_dict())
    else:
        words = schedule.describe(Schedule(interval=every_s))
        _tell(state, id_, f"runs {words}, first in {durations.words(every_s)}")


def _tell(state: GuestState, id_: str, what: str) -> None:
    """The id for pipes; beside it what happened, and what is missing for it to go on."""
    terminal.out(id_)
    terminal.note(terminal.sentence(what))
    if not look_at_consumer(state).is_there:
        terminal.note(f"It waits: {HINT}.")


def _place(state: GuestState) -> str:
    others = len(state.files.names("worker/queue")) - 1
    return f"; {others} more {'waits' if others == 1 else 'wait'}" if others > 0 else ""


def _wait(state: GuestState, task: Task, *, as_json: bool) -> None:
    """Wait for the end and print the result.

    Raises:
        Failed: it failed or was canceled, or there is nobody to do it.
    """

    def look() -> TaskView | None:
        view = shown.find_view(state.files, task.id)
        return view if view is not None and view.completed_at is not None else None

    patience = Patience(state, f"task {naming.short(task.id)} is kept until then", terminal.note)
    with Watcher(state, ["worker/results", "worker/ended"]) as watcher:
        while (view := look()) is None:
            patience.check(task.profile, queued=True)
            watcher.pause()
    _print_result(view, as_json=as_json)


def _print_result(view: TaskView, *, as_json: bool) -> None:
    result = task_text.result_of(view) or {}
    if as_json:
        terminal.print_json({"id": view.task.id, **result})
    elif result.get("text") and (view.state == "done" or result["text"] != view.error):
        terminal.out(terminal.block(result["text"]))
    if view.state != "done":
        reason = view.error or "no reason given"
        raise Failed(f"task {naming.short(view.task.id)} {view.state}: {reason}")
