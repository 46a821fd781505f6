"""The conversation as a terminal takes part in it: says something, and hears what follows.

Nothing here prints. Replies come from the transcript, the words of one in progress from the feed;
what the feed loses, the transcript still has.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

import click

from mimikit.cli import terminal
from mimikit.config import system_zone
from mimikit.conversation import history, inbox
from mimikit.errors import BadInput
from mimikit.log import read_changes
from mimikit.protocol import paths
from mimikit.protocol.ids import new_id
from mimikit.protocol.models import MAX_TEXT, InboxItem, Message, Question
from mimikit.state import ReadOnlyState

_PAGE = 50


@dataclass(frozen=True, slots=True)
class ReplyPart:
    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn began that answers these inputs; a second time, when its first attempt failed."""

    turn_id: str
    inputs: tuple[str, ...]


ConversationEvent: TypeAlias = ReplyPart | TurnStarted | Message


class ConversationClient:
    """One terminal's part in the conversation, from now on."""

    def __init__(self, state: ReadOnlyState) -> None:
        """What was said before is known, and makes no event."""
        self._state, self._files = state, state.files
        self._cursor = read_changes(self._files, None).cursor
        self._known = {message.id for message in history.page(self._files, limit=_PAGE).messages}

    def say(self, text: str) -> InboxItem:
        """Put a message into the inbox, or the answer when it is the number of an option.

        Once this returns it is on disk, whoever may read it when.

        Raises:
            BadInput: it is empty or too long.
        """
        if not text.strip():
            raise BadInput("expected a message, got only blanks")
        if len(text) > MAX_TEXT:
            raise BadInput(
                f"expected a message of at most {MAX_TEXT} characters, got {len(text)}; "
                "put the rest into a file and name it"
            )
        now = self._state.clock.now()
        question = self.question()
        chosen = option_of(question, text)
        item = InboxItem(
            id=new_id("msg", now),
            kind="user_input" if chosen is None else "answer",
            text=text.strip() if chosen is None else chosen,
            created_at=now,
            question_id=question.question_id if question and chosen is not None else None,
            timezone=self._state.settings.timezone or system_zone(),
            locale=locale_tag(),
        )
        inbox.put(self._files, item)
        return item

    def question(self) -> Question | None:
        """The question that may be answered now."""
        question = inbox.pending_question(self._files)
        if question is None or inbox.is_expired(question, self._state.clock.now()):
            return None
        return question

    def is_settled(self, item_id: str) -> bool:
        """Whether what was said is dealt with: then its reply is in the transcript."""
        return not self._files.exists(paths.inbox(item_id))

    def events(self) -> Iterator[ConversationEvent]:
        """What happened since the last call."""
        changes = read_changes(self._files, self._cursor)
        self._cursor = changes.cursor
        for event in changes.events:
            turn_id = str(event.get("turnId"))
            if event["kind"] == "delta":
                yield ReplyPart(turn_id, str(event.get("text", "")))
            elif event["kind"] == "turn" and event.get("state") == "started":
                inputs = event.get("inputs")
                known = map(str, inputs if isinstance(inputs, list) else ())
                yield TurnStarted(turn_id, tuple(known))
        # New messages, oldest first.
        for message in history.page(self._files, limit=_PAGE).messages:
            if message.id not in self._known:
                self._known.add(message.id)
                yield message


def option_of(question: Question | None, text: str) -> str | None:
    """The option that a number stands for. Pure."""
    number = text.strip()
    if question is None or not (number.isascii() and number.isdigit() and len(number) < 4):
        return None
    place = int(number) - 1
    return question.options[place] if 0 <= place < len(question.options) else None


def locale_tag() -> str | None:
    """The language of the terminal's user as `zh-CN`; None when the environment does not say."""
    named = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    tag = next((value for value in named if value), "").partition(".")[0].partition("@")[0]
    return None if tag in ("", "C", "POSIX") else tag.replace("_", "-")


class ReplyPrinter:
    """Prints the awaited reply word by word, and any other message when it is whole."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._turn = ""
        self._streamed = ""

    def take(self, event: ConversationEvent, awaited: str | None) -> None:
        """Print what an event says; `awaited` is the input whose reply is streamed."""
        match event:
            case TurnStarted(turn_id, inputs):
                if self._streamed and turn_id == self._turn:
                    self.end()
                    self._write(terminal.dim("(that attempt failed; once more)") + "\n")
                if awaited in inputs:
                    self._turn = turn_id
            case ReplyPart(turn_id, text) if turn_id == self._turn:
                self._streamed += text
                self._write(terminal.safe(text))
            case Message(turn_id=turn_id, text=text, role="agent" | "system"):
                # One that was streamed just now is there already.
                is_there = turn_id == self._turn and text.strip() == self._streamed.strip()
                self.end()
                if not is_there:
                    self._write(message_text(event) + "\n")
            case _:
                return

    def end(self) -> None:
        if self._streamed and not self._streamed.endswith("\n"):
            self._write("\n")
        self._streamed = ""

    def _write(self, text: str) -> None:
        if not self._quiet:
            click.echo(text, nl=False)


def message_text(message: Message) -> str:
    """A message; what the system says itself is marked."""
    text = terminal.block(message.text)
    return click.style(text, fg="red") if message.failed else text


def question_lines(question: Question, said: str, now: datetime) -> Iterator[str]:
    """The card of a question; its text only when that was not just said."""
    if question.question.strip() not in said:
        yield terminal.bold(terminal.block(question.question))
    for number, option in enumerate(question.options, 1):
        yield f"  {terminal.bold(str(number))}  {terminal.one_line(option)}"
    how = "Answer with its number or your own words" if question.options else "Answer in your words"
    yield terminal.dim(f"{how}; {without_answer(question, now)}.")


def without_answer(question: Question, now: datetime) -> str:
    """What happens when nobody answers: `in 59 minutes "red" is taken`."""
    default = question.default
    what = f'"{terminal.one_line(default)}" is taken' if default else "it lapses"
    return f"{terminal.ago(question.expires_at, now)} {what}"
