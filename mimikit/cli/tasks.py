"""`mimikit tasks`: list, show, follow, cancel, retry."""

from __future__ import annotations

from datetime import datetime

import click

from mimikit.cli import client, task_text, terminal
from mimikit.cli.client import give_command, live_runs
from mimikit.cli.frame import Frame, LeafCommand, PlainGroup, json_option, pass_frame
from mimikit.cli.options import NumberRange, WordOption
from mimikit.cli.task_text import RunFollower
from mimikit.errors import NotFound
from mimikit.state import ReadOnlyState
from mimikit.views import tasks as shown
from mimikit.views.overview import task_report
from mimikit.views.tasks import TaskList, TaskView

STATES = ("queued", "running", "done", "failed", "canceled")


@click.group(cls=PlainGroup)
def tasks() -> None:
    """What is queued, running and done."""


@tasks.command("list")
@click.option("--only", type=WordOption(STATES), help="Those of one state.")
@click.option("-n", "--limit", type=NumberRange(1, 1000), default=20, help="How many ended ones.")
@json_option
@pass_frame
def list_(frame: Frame, only: str | None, limit: int, as_json: bool) -> None:
    """List running and queued tasks, then those that ended last."""
    state = frame.open()
    found = shown.listed(state.files, live_runs(state), only, limit)
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
def show(frame: Frame, task_id: str, as_json: bool) -> None:
    """Show a task: what was asked, what came of it, how it got there."""
    state = frame.open()
    id_ = client.find_task(state.files, task_id)
    report = task_report(state.files, id_, live_runs(state))
    if report is None:
        raise NotFound(f"expected a task, got {id_!r}, which is gone meanwhile")
    if as_json:
        terminal.print_json(report.to_dict())
        return
    for line in task_text.lines(report, state.clock.now(), state.settings.zone):
        terminal.out(line)


@tasks.command()
@click.argument("task_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on until the task has ended.")
@json_option
@pass_frame
def output(frame: Frame, task_id: str, follow: bool, as_json: bool) -> None:
    """Print what a task's run did and wrote; with -f as it comes."""
    state = frame.open()
    id_ = client.find_task(state.files, task_id)
    with RunFollower(state, id_, as_json=as_json) as follower:
        follower.print_until_end() if follow else follower.print_present()
    if not follow and not as_json and not follower.printed_anything:
        terminal.note("No output yet." if not _has_ended(state, id_) else "It wrote nothing.")


def _has_ended(state: ReadOnlyState, task_id: str) -> bool:
    view = shown.find_view(state.files, task_id)
    return view is not None and view.completed_at is not None


@tasks.command()
@click.argument("task_ids", metavar="ID...", nargs=-1, required=True)
@json_option
@pass_frame
def cancel(frame: Frame, task_ids: tuple[str, ...], as_json: bool) -> None:
    """Cancel tasks: a queued one never starts, a running one is ended."""
    _give_all(frame.open(), "cancel", task_ids, as_json=as_json)


@tasks.command()
@click.argument("task_ids", metavar="ID...", nargs=-1, required=True)
@json_option
@pass_frame
def retry(frame: Frame, task_ids: tuple[str, ...], as_json: bool) -> None:
    """Do ended tasks again, as new ones."""
    _give_all(frame.open(), "retry", task_ids, as_json=as_json)


def _give_all(state: ReadOnlyState, action: str, given: tuple[str, ...], *, as_json: bool) -> None:
    ids = [client.find_task(state.files, text) for text in given]
    for id_ in ids:
        outcome = give_command(state, action, id_)
        if as_json:
            terminal.print_json(outcome.to_dict())
        else:
            terminal.out(terminal.sentence(outcome.message))


@click.command(cls=LeafCommand)
@json_option
@pass_frame
def pause(frame: Frame, as_json: bool) -> None:
    """Let the queues rest: what runs goes on, nothing new starts."""
    _give(frame, "pause", as_json=as_json)


@click.command(cls=LeafCommand)
@json_option
@pass_frame
def resume(frame: Frame, as_json: bool) -> None:
    """Let the queues go on."""
    _give(frame, "resume", as_json=as_json)


def _give(frame: Frame, action: str, *, as_json: bool) -> None:
    outcome = give_command(frame.open(), action)
    if as_json:
        terminal.print_json(outcome.to_dict())
    else:
        terminal.out(terminal.sentence(outcome.message))
