"""Shared by the commands: find an id, watch the state, submit a command, send a message."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, Self, TypeAlias

import click

from mimikit.cli import render, terminal
from mimikit.cli.frame import LeafCommand, pass_state_and_json
from mimikit.config import system_zone
from mimikit.conversation import attachments, history, inbox
from mimikit.errors import AlreadyRunning, BadInput, MimikitError, NotFound
from mimikit.log import read_changes
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import check_id, new_id
from mimikit.protocol.models import MAX_TEXT, Command, CommandResult, InboxItem, Message, Question
from mimikit.state import ReadOnlyState, State
from mimikit.supervisor import consumer_lock, settings_writer
from mimikit.tasks import ledger, queue
from mimikit.triggers import registry
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import status
from mimikit.views.status import Consumer

_MIN_SUFFIX = 4
_MAX_LISTED = 5
_POLL_S = 0.5
START_HINT = "mimikit is not running; `mimikit up` starts it"
NO_CONSUMER = "expected mimikit to be running, it is not; `mimikit up` starts it"


class RequestFailed(MimikitError):
    """The request failed; the exit code is 1."""


# ---- ids: each find_… raises NotFound, or BadInput when several ids have that suffix


def find_task(files: Files, suffix: str) -> str:
    return _by_suffix(suffix, _task_ids(files), "task")


def find_trigger(files: Files, suffix: str, *, removed: bool = False) -> str:
    """`removed`: removed ones, too."""
    gone = ledger.trigger_ids(files) if removed else ()
    return _by_suffix(suffix, [*registry.ids(files), *gone], "trigger")


def find_task_or_trigger(files: Files, suffix: str) -> str:
    known = [*registry.ids(files), *_task_ids(files), *ledger.trigger_ids(files)]
    return _by_suffix(suffix, known, "task or trigger")


def _task_ids(files: Files) -> Iterator[str]:
    for queue_name, part in itertools.product(paths.QUEUES, ("running", "queue", "ended")):
        for name in files.names(f"{queue_name}/{part}"):
            yield name.removesuffix(".json")


def _by_suffix(suffix: str, ids: Iterable[str], kind: str) -> str:
    known = set(ids)
    if check_id(suffix) in known:
        return suffix
    is_long = len(suffix) >= _MIN_SUFFIX
    matches = sorted(id_ for id_ in known if id_.endswith(suffix)) if is_long else []
    if not matches:
        where = " and ".join(f"`mimikit {one}s list`" for one in kind.split(" or "))
        verb = "show" if " or " in kind else "shows"
        raise NotFound(
            f"expected the id of a {kind}, or its last {terminal.SHORT_ID} characters, "
            f"got {suffix!r}; {where} {verb} them"
        )
    if len(matches) > 1:
        some = ", ".join(matches[:_MAX_LISTED]) + (", …" if len(matches) > _MAX_LISTED else "")
        raise BadInput(f"expected the end of one {kind}'s id, got {suffix!r}, which fits {some}")
    return matches[0]


def was_removed(kind: str, id_: str) -> NotFound:
    return NotFound(f"expected a {kind}, got {id_!r}, which was removed meanwhile")


# ---- the consumer


def read_consumer(state: State) -> Consumer:
    return status.read_consumer(state.files, state.clock.now())


def situation(state: ReadOnlyState, consumer: Consumer | None = None) -> ExplanationContext:
    consumer = consumer or read_consumer(state)
    now, zone = state.clock.now(), state.settings.zone
    return status.situation(state.files, consumer, now=now, zone=zone)


class StateWatch:
    def __init__(self, state: State, folders: Iterable[str]) -> None:
        """Start watching: a change after this ends the next `pause`."""
        from mimikit.protocol.watch import FolderWatch, WakeBell  # few commands need it

        self._bell = WakeBell()
        self._watch = FolderWatch(state.path)
        for folder in folders:
            self._watch.watch(folder, lambda _names: self._bell.ring())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._watch.close(wait=False)

    def pause(self, timeout_s: float = _POLL_S) -> None:
        self._bell.wait(timeout_s)

    def wake(self) -> None:
        self._bell.ring()


class WaitGuard:
    """Prints why a command has to wait, each reason once.

    without_consumer: what happens to the request when no consumer is running.
    """

    def __init__(self, state: State, without_consumer: str) -> None:
        self._state, self._without_consumer = state, without_consumer
        self._printed: set[str] = set()

    def check(self, role: str, *, queued: bool) -> RequestFailed | None:
        """Print why the role or profile has to wait; an error when no consumer is running.

        queued: whether the command waits for the queues, which may be paused.
        """
        consumer = read_consumer(self._state)
        if not consumer.is_up:
            return RequestFailed(f"{NO_CONSUMER}; {self._without_consumer}")
        health = consumer.health
        reasons: list[str] = []
        if health and queued and health.paused:
            reasons.append("The queues are paused; `mimikit resume` lets them go on.")
        engine = health.engines.get(role) if health else None
        if engine and engine.state == "waiting":
            now, zone = self._state.clock.now(), self._state.settings.zone
            reasons.append(f"It waits: {terminal.waiting_reason(engine, now, zone)}.")
        for text in reasons:
            if text not in self._printed:
                terminal.note(text)
                self._printed.add(text)
        return None


# ---- commands


def action_command(
    action: str, text: str, find: Callable[[Files, str], str] | None = None
) -> click.Command:
    """A command that submits `action`; with `find` once for each id that it is given."""

    @click.command(action.removeprefix("trigger_"), cls=LeafCommand, help=text)
    @pass_state_and_json
    def command(state: ReadOnlyState, as_json: bool, ids: Sequence[str] = ()) -> None:
        # All ids are resolved before the first command.
        for target in [find(state.files, given) for given in ids] if find else [""]:
            render.show(submit_command(state, action, target), state, as_json=as_json)

    if find:
        command.params.insert(0, click.Argument(["ids"], metavar="ID...", nargs=-1, required=True))
    return command


def change_settings(
    state: State, action: str, target: str = "", args: dict[str, Any] | None = None
) -> CommandResult:
    """Change the settings: by the consumer, or here under its lock; RequestFailed if refused."""
    if not read_consumer(state).is_up:
        command = _command(state, action, target, args)
        with contextlib.suppress(AlreadyRunning), contextlib.ExitStack() as stack:
            stack.callback(consumer_lock.free_lock(state).release)
            queue.submit_command(state.files, command)
            settings_writer.apply_waiting(state.files, state.clock.now())
            return _succeeded(queue.command_result(state.files, command.id))
    return submit_command(state, action, target, args)


def submit_command(
    state: State, action: str, target: str = "", args: dict[str, Any] | None = None
) -> CommandResult:
    """Submit a command and wait briefly; RequestFailed if it failed, or stays pending."""
    command = _command(state, action, target, args)
    is_served = read_consumer(state).is_up
    result = queue.submit_and_wait(state.files, command, is_served=is_served)
    if not is_served:
        raise RequestFailed(f"{NO_CONSUMER}, which carries out this command: it is kept until then")
    if result is None:
        message, now = "accepted, not carried out yet", state.clock.now()
        result = CommandResult(command=command, ok=True, message=message, applied_at=now)
    return _succeeded(result)


def _succeeded(result: CommandResult | None) -> CommandResult:
    if result is None or not result.ok:
        raise RequestFailed(result.message if result else "the settings were not changed")
    return result


def _command(state: State, action: str, target: str, args: dict[str, Any] | None) -> Command:
    now = state.clock.now()
    fields = {"action": action, "target": target, "args": args or {}, "origin": "cli"}
    return Command.model_validate({"id": new_id("cmd", now), "created_at": now, **fields})


# ---- the conversation


class ReplyPart(NamedTuple):
    turn_id: str
    text: str
    reset: bool = False
    """The parts before it are withdrawn."""


class TurnStarted(NamedTuple):
    turn_id: str
    inputs: tuple[str, ...]


ConversationEvent: TypeAlias = ReplyPart | TurnStarted | Message


class ConversationClient:
    """Sends messages, and reads what happens from now on.

    Whole messages come from the transcript, parts of a reply in progress from the change feed.
    """

    _PAGE = 50

    def __init__(self, state: ReadOnlyState) -> None:
        self._state, self._files = state, state.files
        self._cursor = read_changes(self._files, None).cursor
        known = history.page(self._files, limit=self._PAGE)
        self._known = {message.id for message in known.messages}

    def send(self, text: str, files: Sequence[BinaryIO] = ()) -> InboxItem:
        """Store a message in the inbox; the number of an option answers the open question."""
        if not text.strip():
            raise BadInput("expected a message, got only blanks")
        text.encode()  # UnicodeError: refused in one line
        if len(text) > MAX_TEXT:
            raise BadInput(
                f"expected a message of at most {MAX_TEXT} characters, got {len(text)}; "
                "put the rest into a file and name it"
            )
        ids: list[str] = []
        now, limits = self._state.clock.now(), self._state.settings.files
        for file in files:
            data = file.read(attachments.MAX_FILE_BYTES + 1)
            ids.append(attachments.keep(self._files, data, file.name, limits).id)
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
            files=attachments.named(self._files, ids),
        )
        inbox.put(self._files, item)
        return item

    def stop_reply(self, turn_id: str) -> None:
        queue.submit_command(self._files, _command(self._state, "cancel", turn_id, None))

    def question(self) -> Question | None:
        question = inbox.pending_question(self._files)
        if question is None or inbox.is_expired(question, self._state.clock.now()):
            return None
        return question

    def events(self) -> Iterator[ConversationEvent]:
        changes = read_changes(self._files, self._cursor)
        self._cursor = changes.cursor
        for event in changes.events:
            turn_id = str(event.get("turnId"))
            if event["kind"] == "delta":
                is_reset = event.get("reset") is True
                yield ReplyPart(turn_id, str(event.get("text", "")), is_reset)
            elif event["kind"] == "turn" and event.get("state") == "started":
                inputs = event.get("inputs")
                known = map(str, inputs if isinstance(inputs, list) else ())
                yield TurnStarted(turn_id, tuple(known))
        for message in history.page(self._files, limit=self._PAGE).messages:
            if message.id not in self._known:
                self._known.add(message.id)
                yield message


def option_of(question: Question | None, text: str) -> str | None:
    number = text.strip()
    if question is None or not (number.isascii() and number.isdigit() and len(number) < 4):
        return None
    place = int(number) - 1
    return question.options[place] if 0 <= place < len(question.options) else None


def locale_tag() -> str | None:
    """The user's language from the environment, such as `zh-CN`; None when it is not set."""
    named = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    tag = next((value for value in named if value), "").partition(".")[0].partition("@")[0]
    return None if tag in ("", "C", "POSIX") else tag.replace("_", "-")
