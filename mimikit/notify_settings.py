"""What may be set of notifications: `[notify]` of config.toml, unit in each name."""

from __future__ import annotations

import re
from datetime import time
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints, field_validator

from mimikit.engine_settings import NAME_PATTERN, Seconds, SettingsSection

EventKind = Literal["reminder", "question", "failed", "breaker", "canceled", "done"]
"""What is told outside of the page; `breaker`: a trigger was paused after failures alike."""
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
ALWAYS: tuple[EventKind, ...] = ("reminder", "question", "failed", "breaker")

ChannelName = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


class ChannelSettings(SettingsSection):
    """`[notify.channels.NAME]`: one way to reach the user."""

    url_file: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]{1,60}$")]
    """The file in `secrets/` that holds its address: whoever knows that can write to the user."""
    events: list[EventKind] = Field(default_factory=lambda: list(EVENT_KINDS), min_length=1)
    """What it is for."""


class NotifySettings(SettingsSection):
    """`[notify]`: who is reached where, and when not."""

    channels: dict[ChannelName, ChannelSettings] = Field(default_factory=dict)
    quiet: str = ""
    """`22:30-08:00`, in the workspace's zone: only `quiet_events` go out then; empty: never."""
    quiet_events: list[EventKind] = Field(default_factory=lambda: list(ALWAYS))
    """What goes out in quiet hours, too; the rest is told as one at their end."""
    details: bool = True
    """Do the first words of results and errors go out? Else their titles alone."""
    done_after_s: Seconds = 60
    """Success is told of work that took so long, and of each `specialist`."""
    merge_s: Annotated[float, Field(ge=0, le=3600)] = 5
    """Successes within so long are one notification."""
    apart_s: Annotated[float, Field(ge=0, le=3600)] = 1.5
    """So long apart two notifications of a channel are at least."""
    per_hour: Annotated[int, Field(ge=2, le=1000)] = 30
    """More than so many an hour are gathered into fewer; reminders and questions do not wait."""

    @field_validator("quiet")
    @classmethod
    def _two_times(cls, text: str) -> str:
        if text and (not _QUIET.fullmatch(text) or text[:5] == text[6:]):
            raise ValueError("expected two different times such as 22:30-08:00")
        return text

    @property
    def quiet_times(self) -> tuple[time, time] | None:
        """When quiet hours begin and end, by the clock on the wall."""
        if (found := _QUIET.fullmatch(self.quiet)) is None:
            return None
        begin_h, begin_min, end_h, end_min = map(int, found.groups())
        return time(begin_h, begin_min), time(end_h, end_min)

    def channels_for(self, kind: EventKind) -> list[str]:
        """The channels that are for events of a kind."""
        return [name for name, channel in self.channels.items() if kind in channel.events]
