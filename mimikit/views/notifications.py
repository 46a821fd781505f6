"""The channels by which the user is reached, and how each is."""

from __future__ import annotations

from datetime import datetime, timedelta

from mimikit import config_file
from mimikit.notifications import rules
from mimikit.notifications.courier import is_installed
from mimikit.notifications.ledger import read_lines
from mimikit.notifications.rules import ChannelHistory
from mimikit.notifications.secrecy import service_of
from mimikit.notifications.send import DESKTOP
from mimikit.notify_settings import EventKind, NotifySettings
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.models import Instant
from mimikit.protocol.notifications import NotificationEvent
from mimikit.views.base import View

_LOOKED_BACK = timedelta(days=30)


class ChannelView(View):
    """One channel. Of its address only what service it leads to."""

    name: str
    service: str
    """`ntfy`, `mailto`, `desktop` …; empty: its address can not be read."""
    events: list[EventKind]
    waiting: int
    """Events that wait for it."""
    sent_at: Instant | None
    """When something last arrived."""
    failed_at: Instant | None
    error: str | None
    """Why its last failure was one."""
    failing: bool
    """Whether the last try failed."""


class ChannelList(View):
    """The channels in the order of the settings, and when none is used."""

    installed: bool
    """Whether the package is there that knows the services; `desktop` needs none."""
    quiet: str
    """Quiet hours, such as `22:30-08:00`; empty: none."""
    quiet_events: list[EventKind]
    channels: list[ChannelView]


def channel_list(files: Files, settings: NotifySettings, now: datetime) -> ChannelList:
    """Each channel that is set up, and how it is; nobody is asked for it."""
    found = ReadOnlyFiles(files)
    over = set[tuple[str, str]]()
    histories: dict[str, ChannelHistory] = {}
    for line in read_lines(found, now - _LOOKED_BACK) if settings.channels else ():
        if line.outcome != "failed":
            over |= {(event_id, line.channel) for event_id in line.events}
        if line.outcome in ("sent", "failed"):
            before = histories.get(line.channel, ChannelHistory())
            error = None if line.outcome == "sent" else line.error or ""
            histories[line.channel] = rules.after_send(before, line.at, error)
    names = found.names(paths.NOTIFICATIONS_NEW) if settings.channels else ()
    events = found.load_all(paths.NOTIFICATIONS_NEW, NotificationEvent, names)
    channels = [
        ChannelView(
            name=name,
            service=service_of(config_file.secret_of(found, channel.url_file)),
            events=channel.events,
            waiting=sum(name in it.channels and (it.id, name) not in over for it in events),
            sent_at=history.sent_at,
            failed_at=history.failed_at,
            error=history.error,
            failing=history.failures > 0,
        )
        for name, channel in settings.channels.items()
        for history in [histories.get(name, ChannelHistory())]
    ]
    return ChannelList(
        installed=is_installed(),
        quiet=settings.quiet,
        quiet_events=settings.quiet_events,
        channels=channels,
    )


def lacks_package(channel: ChannelView, *, installed: bool) -> bool:
    """Whether a channel can not be used as the package is missing."""
    return not installed and channel.service != DESKTOP
