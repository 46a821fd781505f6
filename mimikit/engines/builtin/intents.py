"""What a sentence may ask for."""

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
    """Units: seconds."""

    seconds: float
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class AtIntent:
    """`when` is for `times.parse_when`."""

    when: str
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class WhenFileIntent:
    """The path may be a glob."""

    path: str
    change: Literal["changed", "exists"]
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class AfterIntent:
    """The reference as the user wrote it."""

    reference: str
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class RememberIntent:
    content: str


@dataclass(frozen=True, slots=True)
class RecallIntent:
    about: str


@dataclass(frozen=True, slots=True)
class ChangeBacklogIntent:
    action: BacklogAction
    item: str


@dataclass(frozen=True, slots=True)
class CancelIntent:
    """The reference may be empty."""

    reference: str


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
    "too_often", "too_rare", "command_or_time", "several", "file_or_word", "reminding_none"
]


@dataclass(frozen=True, slots=True)
class BadSentence:
    """Understood, but cannot be done as it stands."""

    reason: BadReason
    text: str


@dataclass(frozen=True, slots=True)
class PlainSentence:
    """Anything else."""

    text: str


Commanding = RunIntent | EveryIntent | AtIntent | WhenFileIntent | AfterIntent
"""Intents that run a command, now or later."""
Intent = (
    Commanding
    | RemindIntent
    | SnoozeIntent
    | NoticedIntent
    | RememberIntent
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
