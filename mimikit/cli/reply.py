"""How replies and questions look in a terminal, word by word or whole."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import click

from mimikit.cli import durations, terminal
from mimikit.cli.talking import Begun, News, Said, Words
from mimikit.protocol.models import Message, Question


class ReplyPrinter:
    """Prints the awaited reply word by word, and any other message when it is whole."""

    def __init__(self, *, quiet: bool = False) -> None:
        """`quiet` prints nothing."""
        self._quiet = quiet
        self._turn = ""
        self._streamed = ""

    def take(self, news: News, awaited: str | None) -> None:
        """Print what a piece of news says; `awaited` is the input whose reply is streamed."""
        match news:
            case Begun(turn_id, inputs):
                if self._streamed and turn_id == self._turn:
                    self.end()
                    self._write(terminal.dim("(that attempt failed; once more)") + "\n")
                if awaited in inputs:
                    self._turn = turn_id
            case Words(turn_id, text) if turn_id == self._turn:
                self._streamed += text
                self._write(terminal.safe(text))
            case Said(message) if message.role != "user":
                self._message(message)
            case _:
                return

    def _message(self, message: Message) -> None:
        """A whole message; one that was streamed just now is there already."""
        if message.turn_id == self._turn and message.text.strip() == self._streamed.strip():
            self.end()
            return
        self.end()
        self._write(message_text(message) + "\n")

    def end(self) -> None:
        """Close the line that is open."""
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
    return f"{durations.ago(question.expires_at, now)} {what}"
