"""`mimikit chat`: one message and its reply, or a conversation."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime

import click

from mimikit.cli import client, terminal
from mimikit.cli.frame import CliContext, LeafCommand, pass_frame_and_json
from mimikit.cli.render import without_answer
from mimikit.errors import MimikitError, StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import InboxItem, Message, Question
from mimikit.state import ReadOnlyState
from mimikit.views import tasks as shown
from mimikit.views.messages import ReplyReport

_WATCHED = (paths.ROOT, paths.INBOX, paths.TRANSCRIPT)
_PROMPT = "› "
_MOST_REPEATED = 100
"""Columns of what a trigger is told of again."""
_HELP = """\
Write a message and press Enter. A number answers the question that is open.
Ctrl-C while a reply comes: stop waiting for it, it is shown when it is there.
Ctrl-D or /quit: leave. Everything goes on without you."""


@click.command(cls=LeafCommand)
@click.argument("text", required=False)
@click.option("--wait", is_flag=True, help="Also wait for the tasks that the reply starts.")
@pass_frame_and_json
def chat(frame: CliContext, text: str | None, wait: bool, as_json: bool) -> None:
    """Send TEXT and print the reply as it comes; `-` reads it from the input.

    Without TEXT this is a conversation: Ctrl-D leaves it, /help says more. While a question is
    open, the number of an option answers it.
    """
    if text is None and (wait or as_json):
        raise click.UsageError("expected TEXT with --wait or --json, got none")
    state = frame.open()
    if text is None:
        if not client.look_at_consumer(state).is_there:
            terminal.note(f"Note: {client.HINT}. What you write is kept until then.")
        if sys.stdin.isatty():
            terminal.note("Ctrl-D leaves, /help says more.")
        with client.Watcher(state, _WATCHED) as watcher:
            _Conversation(state, watcher).run()
        return
    said = sys.stdin.read() if text == "-" else text
    _OneMessage(state, as_json=as_json).run(said, wait=wait)


class _OneMessage:
    def __init__(self, state: ReadOnlyState, *, as_json: bool) -> None:
        self._state, self._as_json = state, as_json
        self._client = client.ConversationClient(state)
        self._printer = ReplyPrinter(quiet=as_json)
        self._patience = client.WaitGuard(state, "your message is kept until then")

    def run(self, text: str, *, wait: bool) -> None:
        with client.Watcher(self._state, _WATCHED) as watcher:
            item = self._client.say(text)
            try:
                heard = self._follow(
                    watcher, "teller", item.id, lambda: self._client.is_settled(item.id)
                )
                replies = [message for message in heard if item.id in message.in_reply_to]
                named = dict.fromkeys(id_ for message in replies for id_ in message.task_ids)
                views = [shown.find_view(self._state.files, id_) for id_ in named]
                # Over or not. What a reply only tells of is older than the message.
                started = [v.task for v in views if v and v.task.created_at >= item.created_at]
                traces = {task.trace_id for task in started}
                told = self._follow_work(watcher, traces) if wait and started else []
                late = [message for message in told if message.role != "user"]
            except KeyboardInterrupt:
                self._printer.end()
                terminal.note(
                    "\nIt goes on without you; the page and `mimikit chat` show what comes."
                )
                raise
        question, said = self._client.question(), [*replies, *late]
        if self._as_json:
            ids = [task.id for task in started]
            report = ReplyReport(id=item.id, messages=said, task_ids=ids, question=question)
            terminal.print_json(report.to_dict())
        else:
            self._print_rest(replies, len(started), question, waited=wait)
        if any(message.failed for message in said):
            raise client.RequestFailed("the message was not answered; what it says above is why")
        if bad := next((task.id for task in started if wait and self._has_failed(task.id)), None):
            raise client.RequestFailed(
                f"work failed: `mimikit tasks show {client.short_id(bad)}` tells why"
            )

    def _follow(
        self, watcher: client.Watcher, seat: str, awaited: str | None, is_over: Callable[[], bool]
    ) -> list[Message]:
        """Print what comes until it is over; gives the new messages.

        awaited: the input whose reply is streamed; None: work in the queues is waited for.

        Raises:
            RequestFailed: there is nobody to do it.
        """
        heard: list[Message] = []
        failure: client.RequestFailed | None = None
        while True:
            # Asked before reading: once it is over, the transcript has all of it.
            has_ended = is_over()
            for event in self._client.events():
                self._printer.take(event, awaited)
                if isinstance(event, Message):
                    heard.append(event)
            if has_ended or failure:
                self._printer.end()
            if failure:
                raise failure
            if has_ended:
                return heard
            try:
                self._patience.check(seat, queued=awaited is None)
                watcher.pause()
            except client.RequestFailed as error:
                failure = error  # raised when what came just before it is printed

    def _follow_work(self, watcher: client.Watcher, traces: set[str]) -> list[Message]:
        """Print what is told of the work until all of it is over, or it asks a question."""
        files = self._state.files

        def is_over() -> bool:
            """Nothing of these traces runs, waits, or is still to be told; what repeats aside."""
            if self._client.question() is not None:
                return True
            live = [view.task for view in shown.live_views(files)]
            if any(task.trace_id in traces and not task.source_trigger_id for task in live):
                return False
            names = [f"{paths.INBOX}/{name}" for name in files.names(paths.INBOX)]
            items = [files.peek(name, InboxItem) for name in names]
            return not any(item and item.trace_id in traces for item in items)

        return self._follow(watcher, "planner", None, is_over)

    def _print_rest(
        self, replies: list[Message], started: int, question: Question | None, *, waited: bool
    ) -> None:
        if not replies:
            terminal.note("The answer is passed on.")
        if question is not None:
            said = replies[-1].text if replies else ""
            for line in question_lines(question, said, self._state.clock.now()):
                terminal.out(line)
        if started and not waited:
            number = "A task is" if started == 1 else f"{started} tasks are"
            terminal.note(f"{number} started; `mimikit tasks list` shows how it goes.")

    def _has_failed(self, planner_or_task: str) -> bool:
        view = shown.find_view(self._state.files, planner_or_task)
        if view is None:
            return False
        live = client.look_at_consumer(self._state).live
        trace = shown.in_trace(self._state.files, view.task.trace_id, live, view)
        return any(task.state == "failed" for task in trace if not task.source_trigger_id)


class _Conversation:
    """The prompt in this thread; in another whoever hears and prints, also between the lines."""

    def __init__(self, state: ReadOnlyState, watcher: client.Watcher) -> None:
        self._state, self._watcher = state, watcher
        self._client = client.ConversationClient(state)
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
        self._typed: Callable[[], str] = str  # nothing is known of it without readline
        if self._is_terminal:
            with contextlib.suppress(ImportError):
                import readline

                self._typed = readline.get_line_buffer

    def run(self) -> None:
        context = click.get_current_context()
        listener = threading.Thread(target=self._listen, args=(context,), daemon=True)
        listener.start()
        try:
            while (text := self._ask()) is not None:
                if text in ("/quit", "/exit"):
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
                item = self._client.say(text)
            except MimikitError as error:
                terminal.note(f"Not sent: {error}")
                return
            self._awaited = item.id
            self._is_settled.clear()
        if not client.look_at_consumer(self._state).is_there:
            if not self._is_terminal:
                raise client.RequestFailed(
                    f"{client.NO_CONSUMER}, which answers: your message is kept until then"
                )
            terminal.note(f"It is kept: {client.HINT}.")
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
            is_settled = awaited is not None and self._client.is_settled(awaited)
            for event in self._client.events():
                message = event if isinstance(event, Message) else None
                if message and message.text == self._asked:
                    # With its answer a question comes again: its card was seen long before.
                    self._asked = None
                    continue
                if not self._at_prompt:
                    self._printer.take(event, awaited)
                elif message and message.id != awaited:
                    own = terminal.dim(f"(you, elsewhere) {terminal.one_line(message.text)}")
                    text = self._printer.shown(message)
                    self._between(own if message.role == "user" else text)
                else:
                    continue
                if message:
                    self._last_said = message.text
            self._show_question()
            if is_settled or not client.look_at_consumer(self._state).is_there:
                self._printer.end()
                if awaited is not None and self._is_terminal:
                    terminal.out()
                self._awaited = None
                self._is_settled.set()

    def _show_question(self) -> None:
        """The card of a question that was not shown yet."""
        question = self._client.question()
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
        click.echo(f"\r\x1b[K{text}\n\n{_PROMPT}{self._typed()}", nl=False)
        sys.stdout.flush()


class ReplyPrinter(terminal.StreamPrinter):
    """Prints the awaited reply word by word, and any other message when it is whole."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._turn = ""
        self._whole: set[str | None] = set()  # turns printed: their words may be read after that
        self._times: Counter[str] = Counter()
        """How often each trigger was told of since the user said something."""

    def take(self, event: client.ConversationEvent, awaited: str | None) -> None:
        """Print what an event says; `awaited` is the input whose reply is streamed."""
        match event:
            case client.TurnStarted(turn_id) | client.ReplyPart(turn_id) if turn_id in self._whole:
                return
            case client.TurnStarted(turn_id, inputs):
                if self.streamed and turn_id == self._turn:
                    self.line(terminal.dim("(that attempt failed; once more)"))
                if awaited in inputs:
                    self._turn = turn_id
            case client.ReplyPart(turn_id, text) if turn_id == self._turn:
                self.stream(text)
            case Message(turn_id=turn_id, role="agent" | "system"):
                if turn_id != self._turn:
                    self.end()
                self.message(event.text, self.shown(event))
                self._whole.add(turn_id)
            case _:
                return

    def shown(self, message: Message) -> str:
        """A message as it is printed: of a trigger told of before in one line, with the count."""
        if message.role == "user":
            self._times.clear()
        text, trigger_id = message_text(message), message.trigger_id
        if trigger_id is None:
            return text
        self._times[trigger_id] += 1
        times = self._times[trigger_id]
        if times == 1:
            return text
        line = terminal.clip(terminal.one_line(text), _MOST_REPEATED)
        return f"{terminal.dim(f'({times} times)')} {line}"


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
