"""Self-awake and the notification channels, for page and terminal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mimikit import notifications
from mimikit.config import Settings
from mimikit.engines.changes import MAX_FILES, files_of_diff
from mimikit.errors import BadInput, NotFound
from mimikit.protocol import paths
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Instant
from mimikit.protocol.notify import ChannelQueue, NotificationState, SentNotice
from mimikit.protocol.results import TaskDiff
from mimikit.protocol.runtime import Health, Improvement, SelfAwakeState
from mimikit.roles.prompts import Prompts, next_item, subjects
from mimikit.roles.worktree import Worktrees
from mimikit.views import diffs
from mimikit.views.base import Title, View, Words
from mimikit.views.diffs import DiffView

_MAX_RUNS = 20


class SelfAwakeView(View):
    enabled: bool
    why: Words | None
    """Why no improvement begins now; null while the consumer is not running."""
    next: str | None
    """The item that would be taken next, and when at the earliest; null: now."""
    next_at: Instant | None
    runs: list[Improvement]
    """The newest first; without `end` it is in progress."""
    branches: list[str]
    """Those that are not merged; each has a diff."""


def self_awake(
    files: ReadOnlyFiles,
    settings: Settings,
    branches: list[str],
    health: Health | None,
    now: datetime,
) -> SelfAwakeView:
    """`branches`: those that are not merged. `health`: None without a consumer."""
    state = files.peek(paths.SELF_AWAKE, SelfAwakeState) or SelfAwakeState()
    items, taken = Prompts(files).check_list()[1], state.taken
    about = subjects(files, taken, now)
    items = [item for item in items if about.get(item.name) != ""]
    due = next_item(items, taken, about, now)
    later = [(taken[one.name] + one.every, one.name) for one in items if one.name in taken]
    next_at, name = (None, due.name) if due else min(later, default=(None, None))
    runs = [run for run in (state.run, *reversed(state.past)) if run is not None]
    return SelfAwakeView(
        enabled=settings.self_awake.enabled,
        why=health.self_awake or None if health else None,
        next=name,
        next_at=next_at,
        runs=runs[:_MAX_RUNS],
        branches=branches,
    )


def branch_diff(worktrees: Worktrees, workspace: Path, branch: str) -> DiffView:
    """What merging a branch of self-awake would change. Raises NotFound."""
    try:
        found = files_of_diff(worktrees.diff(workspace, branch))
    except BadInput as error:
        raise NotFound(str(error), field="branch") from None
    shown, more = found[:MAX_FILES], len(found[MAX_FILES:])
    return diffs.of_record(TaskDiff(id="branch", files=shown, more_files=more))


class ChannelView(View):
    name: str
    address: str
    """The URL without what is secret."""
    waiting: int
    error: Title
    retry_at: Instant | None


class NotifyView(View):
    is_installed: bool
    """Whether Apprise is there, which sends."""
    quiet: str
    """Quiet hours such as `22:00-08:00`; empty: none."""
    channels: list[ChannelView]
    sent: list[SentNotice]
    """The newest first."""


def notify(files: ReadOnlyFiles, settings: Settings) -> NotifyView:
    state = files.peek(paths.NOTIFICATION_STATE, NotificationState) or NotificationState()
    channels: list[ChannelView] = []
    for name in notifications.names(files):
        queue = state.channels.get(name) or ChannelQueue()
        address = notifications.masked(notifications.url_of(files, name))
        waiting = len(queue.waiting)
        channels.append(ChannelView.of(queue, name=name, address=address, waiting=waiting))
    return NotifyView(
        is_installed=notifications.is_installed(),
        quiet=settings.notify.quiet,
        channels=channels,
        sent=state.sent[::-1],
    )
