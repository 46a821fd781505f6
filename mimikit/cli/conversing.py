"""The conversation in a terminal: a prompt, and what is told meanwhile above it."""

from __future__ import annotations

import sys
import threading
from typing import Protocol

import click

from mimikit.cli import terminal
from mimikit.cli.guest import GuestState
from mimikit.cli.reply import ReplyPrinter, message_text, question_lines
from mimikit.cli.talking import Said, Talk
from mimikit.cli.waiting import HINT, NO_CONSUMER, Failed, Watcher, look_at_consumer
from mimikit.errors import MimikitError, StorageError
from mimikit.protocol import paths

_WATCHED = (paths.ROOT, paths.INBOX, paths.TRANSCRIPT)
_PROMPT = "› "
_LEAVE = frozenset({"/quit", "/exit"})
_HELP = """\
Write a message and press Enter. A number answers the question that is open.
Ctrl-C while a reply comes: stop waiting for it, it is shown when it is there.
Ctrl-D or /quit: leave. Everything goes on without you."""


class _Line(Protocol):
    """The part of readline that is used; there may be none."""

    def get_line_buffer(self) -> str:
        """What stands in the prompt's line now."""
        ...


def converse(state: GuestState) -> None:
    """Talk until the user leaves."""
    if not look_at_consumer(state).is_there:
        terminal.note(f"Note: {HINT}. What you write is kept until then.")
    if sys.stdin.isatty():
        terminal.note("Ctrl-D leaves, /help says more.")
    with Watcher(state, _WATCHED) as watcher:
        _Conversation(state, watcher).run()


class _Conversation:
    """The prompt in this thread; in another whoever hears and prints, also between the lines."""

    def __init__(self, state: GuestState, watcher: Watcher) -> None:
        self._state, self._watcher = state, watcher
        self._talk = Talk(state)
        self._printer = ReplyPrinter()
        self._printing = threading.RLock()
        self._awaited: str | None = None
        self._is_settled = threading.Event()
        self._leaving = threading.Event()
        self._at_prompt = False
        self._shown_question = ""
        self._asked: str | None = None
        self._last_said = ""
        self._is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._line = _readline() if self._is_terminal else None

    def run(self) -> None:
        context = click.get_current_context()
        listener = threading.Thread(target=self._listen, args=(context,), daemon=True)
        listener.start()
        try:
            while (text := self._ask()) is not None:
                if text in _LEAVE:
                    break
                if text == "/help":
                    terminal.out(terminal.dim(_HELP))
                elif text:
                    self._say(text)
        finally:
            self._leaving.set()
            listener.join(2)

    def _ask(self) -> str | None:
        """The next line; None at the end of the input."""
        if not self._is_terminal:
            line = sys.stdin.readline()
            return line.strip() if line else None
        try:
            with self._printing:
                self._at_prompt = True
            return input(_PROMPT).strip()
        except EOFError:
            terminal.out()
            return None
        except KeyboardInterrupt:
            terminal.out()
            terminal.note("Ctrl-D leaves.")
            return ""
        finally:
            self._at_prompt = False

    def _say(self, text: str) -> None:
        with self._printing:
            try:
                item = self._talk.say(text)
            except MimikitError as error:
                terminal.note(f"Not sent: {error}")
                return
            self._awaited = item.id
            self._is_settled.clear()
        if not look_at_consumer(self._state).is_there:
            if not self._is_terminal:
                raise Failed(f"{NO_CONSUMER}, which answers: your message is kept until then")
            terminal.note(f"It is kept: {HINT}.")
            return
        try:
            self._is_settled.wait()
        except KeyboardInterrupt:
            terminal.note("\nIt goes on; the reply is shown when it is there.")

    # ---- the other thread ------------------------------------------------------------------

    def _listen(self, context: click.Context) -> None:
        # The context knows whether colours are wanted; each thread has its own.
        with context.scope(cleanup=False):
            while not self._leaving.is_set():
                try:
                    self._hear()
                except StorageError as error:
                    terminal.note(f"Can not read the conversation: {error}")
                    self._leaving.wait(1)
                self._watcher.pause()

    def _hear(self) -> None:
        with self._printing:
            awaited = self._awaited
            # Asked before reading: once it is settled, the transcript has the whole reply.
            is_settled = awaited is not None and self._talk.is_settled(awaited)
            for news in self._talk.news():
                if self._repeats_question(news):
                    continue
                if not self._at_prompt:
                    self._printer.take(news, awaited)
                    self._remember(news)
                elif isinstance(news, Said) and news.message.id != awaited:
                    self._between(_line_of(news))
                    self._remember(news)
            self._show_question()
            if is_settled or not look_at_consumer(self._state).is_there:
                self._printer.end()
                if awaited is not None and self._is_terminal:
                    terminal.out()
                self._awaited = None
                self._is_settled.set()

    def _repeats_question(self, news: object) -> bool:
        """The transcript gets a question with its answer: its card was seen long before."""
        if not isinstance(news, Said) or news.message.text != self._asked:
            return False
        self._asked = None
        return True

    def _remember(self, news: object) -> None:
        if isinstance(news, Said):
            self._last_said = news.message.text

    def _show_question(self) -> None:
        """The card of a question that was not shown yet."""
        question = self._talk.question()
        if question is None or question.question_id == self._shown_question:
            return
        self._shown_question, self._asked = question.question_id, question.question
        lines = "\n".join(question_lines(question, self._last_said, self._state.clock.now()))
        if self._at_prompt:
            self._between(lines)
        else:
            self._printer.end()
            terminal.out(lines)

    def _between(self, text: str) -> None:
        """Print above the prompt, and bring the prompt back with what was typed so far."""
        typed = self._line.get_line_buffer() if self._line else ""
        click.echo(f"\r\x1b[K{text}\n\n{_PROMPT}{typed}", nl=False)
        sys.stdout.flush()


def _line_of(news: Said) -> str:
    message = news.message
    if message.role == "user":
        return terminal.dim(f"(you, elsewhere) {terminal.one_line(message.text)}")
    return message_text(message)


def _readline() -> _Line | None:
    """Line editing and history, where Python has it."""
    try:
        import readline
    except ImportError:
        return None
    return readline
