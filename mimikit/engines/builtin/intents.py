"""The commands that `grammar` recognizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mimikit.engines.builtin.reminders import NoticedIntent, RemindIntent, SnoozeIntent
from mimikit.protocol.models import Notify

BacklogAction = Literal["add", "done", "remove"]


@dataclass(frozen=True, slots=True)
class RunIntent:
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class EveryIntent:
    seconds: float
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class AtIntent:
    when: str
    """For `times.parse_when`."""
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class WhenFileIntent:
    path: str
    """May be a glob."""
    change: Literal["changed", "exists"]
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class AfterIntent:
    reference: str
    """As the user wrote it."""
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class RememberIntent:
    content: str


@dataclass(frozen=True, slots=True)
class ForgetIntent:
    what: str
    everything: bool = False
    """All that matches."""


@dataclass(frozen=True, slots=True)
class RecallIntent:
    about: str


@dataclass(frozen=True, slots=True)
class ChangeBacklogIntent:
    action: BacklogAction
    item: str


@dataclass(frozen=True, slots=True)
class CancelIntent:
    reference: str
    """May be empty."""


@dataclass(frozen=True, slots=True)
class SwitchIntent:
    action: Literal["pause", "resume"]
    reference: str


@dataclass(frozen=True, slots=True)
class AskIntent:
    """When a task or trigger runs next, or how it went."""

    asks: Literal["next", "outcome"]
    reference: str


@dataclass(frozen=True, slots=True)
class FailedIntent:
    day: Literal["today", "yesterday", "lately"]


Shown = Literal["help", "status", "tasks", "reminders", "backlog"]


@dataclass(frozen=True, slots=True)
class ShowIntent:
    what: Shown


BadReason = Literal[
    "too_often",
    "too_rare",
    "command_or_time",
    "several",
    "file_or_word",
    "reminding_none",
    "time_unknown",
    "run_what",
    "remember_what",
    "item_what",
    "remind_or_run",
]


@dataclass(frozen=True, slots=True)
class BadSentence:
    """Recognized, but invalid."""

    reason: BadReason
    text: str
    words: str = ""
    """What was not understood."""
    when: str = ""
    """The time, as far as it was understood; what it is for follows."""
    command: str = ""


@dataclass(frozen=True, slots=True)
class PlainSentence:
    text: str


Commanding = RunIntent | EveryIntent | AtIntent | WhenFileIntent | AfterIntent
"""Intents that run a command, now or later."""
Intent = (
    Commanding
    | RemindIntent
    | SnoozeIntent
    | NoticedIntent
    | RememberIntent
    | ForgetIntent
    | RecallIntent
    | ChangeBacklogIntent
    | CancelIntent
    | SwitchIntent
    | AskIntent
    | FailedIntent
    | ShowIntent
    | BadSentence
    | PlainSentence
)
