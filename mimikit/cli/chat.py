"""`mimikit chat`: one message and its reply, or a conversation."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import BinaryIO

import click

from mimikit.cli import client, terminal
from mimikit.cli.frame import CliContext, LeafCommand, pass_cli_and_json
from mimikit.cli.render import without_answer
from mimikit.errors import MimikitError, StorageError
from mimikit.protocol import paths
from mimikit.protocol.models import InboxItem, Message, Question
from mimikit.state import ReadOnlyState
from mimikit.views import tasks as task_views
from mimikit.views.messages import ReplyReport
from mimikit.views.tasks import TaskView

_BRIEF_S = 10.0  # how long a message waits for work that code has started (`run: uptime`)
_WATCHED = (paths.ROOT, paths.INBOX, paths.TRANSCRIPT)
_PROMPT = "› "
_REPEAT_COLUMNS = 100
_HELP = """\
Write a message and press Enter. A number answers the question that is open.
Ctrl-C while a reply comes: stop it; what has come of it is kept. Before that: stop waiting for it.
Ctrl-D or /quit: leave. Everything goes on without you."""


@click.command(cls=LeafCommand)
@click.argument("text", required=False)
@click.option("--wait", is_flag=True, help="Also wait for the tasks that the reply starts.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.File("rb"),
    help="Send this file or picture with TEXT; may be repeated.",
)
@pass_cli_and_json
def chat(
    cli: CliContext, text: str | None, wait: bool, files: tuple[BinaryIO, ...], as_json: bool
) -> None:
    """Send TEXT and print the reply as it comes; `-` reads it from the input.

    Without TEXT this is a conversation: Ctrl-D leaves it, /help says more. While a question is
    open, the number of an option answers it.
    """
    if text is None and (wait or as_json or files):
        raise click.UsageError("expected TEXT with --wait, --file or --json, got none")
    state = cli.open()
    with client.StateWatch(state, _WATCHED) as watcher:
        session = ChatSession(state, watcher, quiet=as_json)
        if text is None:
            session.converse()
        else:
            message = sys.stdin.read() if text == "-" else text
            session.send(message, files, wait=wait, as_json=as_json)


class ChatSession:
    def __init__(
        self, state: ReadOnlyState, watcher: client.StateWatch, *, quiet: bool = False
    ) -> None:
        self._state, self._watcher = state, watcher
        self._client = client.ConversationClient(state)
        self._printer = ReplyPrinter(quiet=quiet)
        self._guard = client.WaitGuard(state, "your message is kept until then")
        self._is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._sent_ids: set[str] = set()
        self._shown_question_id = ""
        self._shown_question_text: str | None = None
        """Of the last card, until the question comes as a message, too."""
        self._last_text = ""
        self._typed_text: Callable[[], str] = str  # empty without readline
        if self._is_terminal:
            with contextlib.suppress(ImportError):
                import readline

                self._typed_text = readline.get_line_buffer
                # Pasted lines are one message.
                readline.parse_and_bind("set enable-bracketed-paste on")

    def _follow(self, role: str, awaited: str | None, is_over: Callable[[], bool]) -> list[Message]:
        """Print events until `is_over`, and return the new messages.

        awaited: the input whose reply is streamed; None: wait for the queues.
        """
        messages: list[Message] = []
        while True:
            # Both checked before reading, so that nothing written before them is missed.
            has_ended = is_over()
            failure = None if has_ended else self._guard.check(role, queued=awaited is None)
            for event in self._client.events():
                if isinstance(event, Message):
                    messages.append(event)
                    if self._repeats_question(event):
                        continue
                    self._last_text = event.text
                self._printer.take(event, awaited)
            if has_ended or failure:
                self._printer.end()
            if failure:
                raise failure
            if has_ended:
                return messages
            self._watcher.pause()

    def _await_reply(self, item_id: str) -> list[Message]:
        """Follow until the message is settled; Ctrl-C stops the reply that comes, and no work."""

        def is_over() -> bool:  # then the reply is in the transcript
            return not self._state.files.exists(paths.inbox(item_id))

        try:
            return self._follow("teller", item_id, is_over)
        except KeyboardInterrupt:
            if not self._printer.turn_id:
                raise
            self._client.stop_reply(self._printer.turn_id)
        return self._follow("teller", item_id, is_over)

    def _repeats_question(self, message: Message) -> bool:
        """Whether the message is the question shown last: its answer brings it again."""
        is_repeated = message.text == self._shown_question_text
        self._shown_question_text = None if is_repeated else self._shown_question_text
        return is_repeated

    # ---- one message

    def send(self, text: str, files: Sequence[BinaryIO], *, wait: bool, as_json: bool) -> None:
        open_before = self._client.question()
        item = self._client.send(text, files)
        try:
            messages = self._await_reply(item.id)
            replies = [message for message in messages if item.id in message.in_reply_to]
            started = self._started_tasks(item, replies)
            traces = {task.trace_id for task in started}
            brief_s = _BRIEF_S if any(one.engine == "builtin" for one in replies) else 0.0
            patience_s = math.inf if wait else brief_s
            later = self._follow_work(traces, patience_s, open_before) if started else []
        except KeyboardInterrupt:
            self._printer.end()
            terminal.note("\nIt goes on without you; the page and `mimikit chat` show what comes.")
            raise
        shown = [*replies, *(message for message in later if message.role != "user")]
        question = self._client.question()
        if as_json:
            ids = [task.id for task in started]
            report = ReplyReport(id=item.id, messages=shown, task_ids=ids, question=question)
            terminal.print_json(report.to_dict())
        else:
            if not replies:
                terminal.note("The answer is passed on.")
            if question is not None:
                terminal.out(self._card(question, replies[-1].text if replies else ""))
            if not wait and not later and self._goes_on(traces):
                number = "A task is" if len(started) == 1 else f"{len(started)} tasks are"
                terminal.note(f"{number} started; `mimikit tasks list` shows how it goes.")
        if any(message.failed for message in shown):
            raise client.RequestFailed("the message was not answered; the reason is above")
        if wait and (bad := next((task.id for task in started if self._has_failed(task)), None)):
            short = terminal.short_id(bad)
            raise client.RequestFailed(f"work failed: `mimikit tasks show {short}` tells why")

    def _started_tasks(self, item: InboxItem, replies: list[Message]) -> list[TaskView]:
        """The tasks that the replies started; those that they only mention are older."""
        files = self._state.files
        task_ids = dict.fromkeys(id_ for message in replies for id_ in message.task_ids)
        views = [task_views.find(files, id_, {}) for id_ in task_ids]
        return [view for view in views if view and view.created_at >= item.created_at]

    def _follow_work(
        self, traces: set[str], patience_s: float, open_before: Question | None
    ) -> list[Message]:
        files, clock = self._state.files, self._state.clock
        until_s = clock.monotonic() + patience_s

        def is_over() -> bool:
            """No task of the traces is live or unreported; runs of triggers do not count."""
            if self._client.question() not in (None, open_before) or clock.monotonic() >= until_s:
                return True
            if self._goes_on(traces):
                return False
            names = [f"{paths.INBOX}/{name}" for name in files.names(paths.INBOX)]
            items = [files.peek(name, InboxItem) for name in names]
            return not any(item and item.trace_id in traces for item in items)

        return self._follow("planner", None, is_over)

    def _goes_on(self, traces: set[str]) -> bool:
        live = [view.task for view in task_views.live_snapshots(self._state.files)]
        return any(task.trace_id in traces and not task.source_trigger_id for task in live)

    def _has_failed(self, task: TaskView) -> bool:
        """Whether a task of its trace failed; runs of triggers do not count."""
        trace = task_views.in_trace(self._state.files, task.trace_id, {})
        return any(one.state == "failed" for one in trace if not one.source_trigger_id)

    # ---- a conversation

    def converse(self) -> None:
        if not client.read_consumer(self._state).is_up:
            terminal.note(f"Note: {client.START_HINT}. What you write is kept until then.")
        if sys.stdin.isatty():
            terminal.note("Ctrl-D leaves, /help says more.")
        while (text := self._ask()) not in (None, "/quit", "/exit"):
            if text == "/help":
                terminal.out(terminal.dim(_HELP))
            elif text:
                self._exchange(text)

    def _exchange(self, text: str) -> None:
        try:
            item = self._client.send(text)
        except (MimikitError, UnicodeError) as error:
            terminal.note(f"Not sent: {error}")
            return
        self._sent_ids.add(item.id)
        try:
            self._await_reply(item.id)
        except client.RequestFailed as error:
            if not self._is_terminal:
                raise
            terminal.note(f"{error}.")
            return
        except KeyboardInterrupt:
            self._printer.end()
            terminal.note("\nIt goes on; the reply is shown when it is there.")
            return
        if question := self._new_question():
            terminal.out(self._card(question, self._last_text))
        if self._is_terminal:
            terminal.out()

    def _ask(self) -> str | None:
        if not self._is_terminal:
            line = sys.stdin.readline()
            return line.strip() if line else None
        is_over = threading.Event()
        context = click.get_current_context()
        listener = threading.Thread(target=self._listen, args=(context, is_over), daemon=True)
        listener.start()
        try:
            return input(_PROMPT).strip()
        except EOFError:
            terminal.out()
            return None
        except KeyboardInterrupt:
            terminal.out()
            terminal.note("Ctrl-D leaves.")
            return ""
        finally:
            is_over.set()
            self._watcher.wake()
            listener.join()

    def _listen(self, context: click.Context, is_over: threading.Event) -> None:
        # The context knows whether colours are wanted; each thread has its own.
        with context.scope(cleanup=False):
            while not is_over.is_set():
                try:
                    for event in self._client.events():
                        if isinstance(event, Message):
                            self._show_above(event)
                    if question := self._new_question():
                        self._print_above(self._card(question, self._last_text))
                except StorageError as error:
                    terminal.note(f"Cannot read the conversation: {error}")
                    is_over.wait(1)
                self._watcher.pause()

    def _show_above(self, message: Message) -> None:
        text = self._printer.text_of(message)
        if message.id in self._sent_ids or self._repeats_question(message):
            return
        if message.role == "user":
            text = terminal.dim(f"(you, elsewhere) {terminal.one_line(message.text)}")
        self._last_text = message.text
        self._print_above(text)

    def _print_above(self, text: str) -> None:
        """Print above the prompt, then restore the prompt and the line being typed."""
        click.echo(f"\r\x1b[K{text}\n\n{_PROMPT}{self._typed_text()}", nl=False)
        sys.stdout.flush()

    def _new_question(self) -> Question | None:
        question = self._client.question()
        if question is None or question.question_id == self._shown_question_id:
            return None
        self._shown_question_id = question.question_id
        self._shown_question_text = question.question
        return question

    def _card(self, question: Question, shown: str) -> str:
        """A question's text, unless it is in `shown`, its options, and how to answer."""
        text = terminal.bold(terminal.block(question.question))
        lines = [] if question.question.strip() in shown else [text]
        for number, option in enumerate(question.options, 1):
            lines.append(f"  {terminal.bold(str(number))}  {terminal.one_line(option)}")
        how = "Answer with its number or your own" if question.options else "Answer in your"
        otherwise = without_answer(question, self._state.clock.now())
        return "\n".join([*lines, terminal.dim(f"{how} words; {otherwise}.")])


class ReplyPrinter(terminal.StreamPrinter):
    """Streams the awaited reply, and prints every other message as a whole."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self.turn_id = ""
        """The turn that answers the awaited input, while it is in progress."""
        self._printed: set[str | None] = set()  # turns whose late deltas are ignored
        self._times: Counter[str] = Counter()

    def take(self, event: client.ConversationEvent, awaited: str | None) -> None:
        """Print an event; `awaited` is the input whose reply is streamed."""
        match event:
            case client.TurnStarted(turn_id) | client.ReplyPart(turn_id) if (
                turn_id in self._printed
            ):
                return
            case client.TurnStarted(turn_id, inputs):
                if self.streamed and turn_id == self.turn_id:
                    self.line(terminal.dim("(that attempt failed; once more)"))
                if awaited in inputs:
                    self.turn_id = turn_id
            case client.ReplyPart(turn_id, text, reset) if turn_id == self.turn_id:
                if reset:
                    self.withdraw()
                self.stream(text)
            case Message(turn_id=turn_id, role="agent" | "system"):
                if turn_id != self.turn_id:
                    self.end()
                self.message(event.text, self.text_of(event))
                if event.role == "agent" and event.stopped:
                    self.line(terminal.dim("(stopped)"))
                if event.error:
                    self.line(click.style(f"(not completed: {event.error})", fg="red"))
                self._printed.add(turn_id)
                if turn_id == self.turn_id:
                    self.turn_id = ""
            case _:
                return

    def text_of(self, message: Message) -> str:
        """The text to print; a repeated message of a trigger becomes one line with the count."""
        if message.role == "user":
            self._times.clear()
        text, trigger_id = terminal.block(message.text), message.trigger_id
        if message.failed:
            text = click.style(text, fg="red")
        if trigger_id is None:
            return text
        self._times[trigger_id] += 1
        times = self._times[trigger_id]
        if times == 1:
            return text
        line = terminal.clip(terminal.one_line(text), _REPEAT_COLUMNS)
        return f"{terminal.dim(f'({times} times)')} {line}"
