"""What a sentence may ask for, as the assistant without a model understands it."""

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
    """Run a command again and again. Units: seconds."""

    seconds: float
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class AtIntent:
    """Run a command at a time or at times of day; `when` is for `times.parse_when` to read."""

    when: str
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class WhenFileIntent:
    """Run a command when a file changes, or once it exists. The path may be a glob."""

    path: str
    change: Literal["changed", "exists"]
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class WhenHookIntent:
    """Run a command when something comes by a webhook."""

    hook: str
    command: str
    notify: Notify | None = None


@dataclass(frozen=True, slots=True)
class AfterIntent:
    """Run a command when a task is done; the reference as the user wrote it."""

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
    """Add an item to the backlog, tick it, or take it off."""

    action: BacklogAction
    item: str


@dataclass(frozen=True, slots=True)
class CancelIntent:
    """Cancel a task or trigger; the reference as the user wrote it, possibly empty."""

    reference: str


@dataclass(frozen=True, slots=True)
class SwitchIntent:
    """Pause a trigger, or let it go on; the reference as the user wrote it."""

    action: Literal["pause", "resume"]
    reference: str


@dataclass(frozen=True, slots=True)
class AskIntent:
    """When a task or trigger runs next, or how it went; the reference as the user wrote it."""

    asks: Literal["next", "outcome"]
    reference: str


@dataclass(frozen=True, slots=True)
class FailedIntent:
    """What failed on a day, or lately."""

    day: Literal["today", "yesterday", "lately"]


Shown = Literal["help", "status", "tasks", "reminders", "backlog"]


@dataclass(frozen=True, slots=True)
class ShowIntent:
    """Show what can be said, how the assistant is, what runs or has ended, or what is to do."""

    what: Shown


BadReason = Literal[
    "too_often", "too_rare", "command_or_time", "several", "file_or_word", "reminding_none"
]


@dataclass(frozen=True, slots=True)
class BadSentence:
    """Understood, but not to be done as it stands."""

    reason: BadReason
    text: str


Courtesy = Literal["greeting", "thanks", "all_right"]


@dataclass(frozen=True, slots=True)
class PlainSentence:
    """Anything else, with what it is a common courtesy for, if it is one."""

    text: str
    courtesy: Courtesy | None = None


Commanding = RunIntent | EveryIntent | AtIntent | WhenFileIntent | WhenHookIntent | AfterIntent
"""What runs a command, now or later."""
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
