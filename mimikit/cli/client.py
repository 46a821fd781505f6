"""What commands do with an opened state: find an id, watch, give a command, talk."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self, TypeAlias

from mimikit.cli import render, terminal
from mimikit.config import system_zone
from mimikit.conversation import history, inbox, turn_prompts
from mimikit.errors import AlreadyRunning, BadInput, MimikitError, NotFound
from mimikit.log import read_changes
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.ids import check_id, is_id, new_id
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
HINT = "no consumer is running; `mimikit up` starts one"
NO_CONSUMER = "expected a running consumer, got none; `mimikit up` starts one"


class RequestFailed(MimikitError):
    """What was asked for did not come about; the text says why, the exit code is 1."""


# ---- ids: each find_… raises NotFound, or BadInput when several ids end so


def find_task(files: Files, given: str) -> str:
    check_id(given)
    if queue.find(files, given) is not None:
        return given
    return _by_suffix(given, _task_ids(files), "task")


def find_prompt(files: Files, given: str | None) -> str:
    """The newest turn or task that ends so and whose prompt is kept; without `given` the newest."""
    ids = turn_prompts.newest(files)
    match = next((id_ for id_ in ids if id_.endswith(check_id(given) if given else "")), None)
    if match is None:
        got = f"got {given!r}" if given else "there is none yet"
        raise NotFound(
            f"expected the id of a turn or task, or its end, {got}; "
            "prompts of the last 200 runs of a model are kept"
        )
    return match


def find_trigger(files: Files, given: str) -> str:
    """A broken file is found by its name, whatever that is."""
    ids = registry.ids(files)
    return given if given in ids else _by_suffix(check_id(given), ids, "trigger")


def find_trigger_ever(files: ReadOnlyFiles, given: str) -> str:
    """Also one that has fired and gone, or was removed."""
    try:
        return find_trigger(files, given)
    except NotFound:
        if is_id(given) and ledger.slots_of(files, given, 1):
            return given
        return _by_suffix(given, ledger.trigger_ids(files), "trigger")


def find_task_or_trigger(files: ReadOnlyFiles, given: str) -> str:
    """Also a trigger that has fired and gone."""
    check_id(given)
    is_known = files.exists(paths.trigger(given)) or queue.find(files, given) is not None
    if is_known or ledger.slots_of(files, given, 1):
        return given
    known = [*registry.ids(files), *_task_ids(files), *ledger.trigger_ids(files)]
    return _by_suffix(given, known, "task or trigger")


def _task_ids(files: Files) -> Iterator[str]:
    for seat, part in itertools.product(paths.QUEUES, ("running", "queue", "ended")):
        for name in files.names(f"{seat}/{part}"):
            yield name.removesuffix(".json")


def _by_suffix(given: str, ids: Iterable[str], kind: str) -> str:
    is_long = len(given) >= _MIN_SUFFIX
    matches = sorted({id_ for id_ in ids if id_.endswith(given)}) if is_long else []
    if not matches:
        where = " and ".join(f"`mimikit {one}s list`" for one in kind.split(" or "))
        verb = "show" if " or " in kind else "shows"
        raise NotFound(
            f"expected the id of a {kind}, or its last {terminal.SHORT_ID} characters, "
            f"got {given!r}; {where} {verb} them"
        )
    if len(matches) > 1:
        some = ", ".join(matches[:_MAX_LISTED]) + (", …" if len(matches) > _MAX_LISTED else "")
        raise BadInput(f"expected the end of one {kind}'s id, got {given!r}, which fits {some}")
    return matches[0]


def was_removed(kind: str, id_: str) -> NotFound:
    return NotFound(f"expected a {kind}, got {id_!r}, which was removed meanwhile")


# ---- the consumer


def look_at_consumer(state: State) -> Consumer:
    return status.look_at_consumer(state.files, state.clock.now())


def situation(state: ReadOnlyState, consumer: Consumer | None = None) -> ExplanationContext:
    consumer = consumer or look_at_consumer(state)
    now, zone = state.clock.now(), state.settings.zone
    return status.situation(state.files, consumer, now=now, zone=zone)


class StateWatch:
    def __init__(self, state: State, folders: Iterable[str]) -> None:
        """Watch from now on: what is looked at after this, no change of it is missed."""
        from mimikit.protocol.watch import FolderWatch, WakeBell  # few commands wait for anything

        self._bell = WakeBell()
        self._watch = FolderWatch(state.path)
        for folder in folders:
            self._watch.watch(folder, lambda _names: self._bell.ring())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._watch.close(wait=False)

    def pause(self, timeout_s: float = _POLL_S) -> None:
        """Until something changed, or the time is up."""
        self._bell.wait(timeout_s)

    def wake(self) -> None:
        """End the pause of another thread."""
        self._bell.ring()


class WaitGuard:
    """Tells, while a command waits, what keeps it waiting; each reason once.

    kept: what becomes of the wish when no consumer is running.
    """

    def __init__(self, state: State, kept: str) -> None:
        self._state, self._kept = state, kept
        self._told: set[str] = set()

    def check(self, seat: str, *, queued: bool) -> RequestFailed | None:
        """Look at the role or profile waited for; the error to raise when no consumer is running.

        queued: whether the wait is for the queues, which may be paused.
        """
        consumer = look_at_consumer(self._state)
        if not consumer.is_there:
            return RequestFailed(f"{NO_CONSUMER}; {self._kept}")
        health = consumer.health
        reasons: list[str] = []
        if health and queued and health.paused:
            reasons.append("The queues are paused; `mimikit resume` lets them go on.")
        engine = health.engines.get(seat) if health else None
        if engine and engine.state == "waiting":
            now, zone = self._state.clock.now(), self._state.settings.zone
            reasons.append(f"It waits: {terminal.waiting_reason(engine, now, zone)}.")
        for text in reasons:
            if text not in self._told:
                terminal.note(text)
                self._told.add(text)
        return None


# ---- commands


def carry_out(state: State, action: str, target: str = "", *, as_json: bool) -> None:
    """Give a command and print what comes of it."""
    render.show(give_command(state, action, target), state, as_json=as_json)


def change_settings(
    state: State, action: str, target: str = "", args: dict[str, Any] | None = None
) -> CommandResult:
    """Have the settings changed: by the consumer, or here, under its lock, where none is running.

    Raises:
        RequestFailed: it was refused, or not carried out (it is kept then).
    """
    if not look_at_consumer(state).is_there:
        command = _command(state, action, target, args)
        try:
            with consumer_lock.in_place_of_consumer(state):
                queue.give_command(state.files, command)
                settings_writer.apply_waiting(state.files, state.clock.now())
        except AlreadyRunning:  # one has started this moment
            return give_command(state, action, target, args)
        return _succeeded(queue.command_result(state.files, command.id))
    return give_command(state, action, target, args)


def give_command(
    state: State, action: str, target: str = "", args: dict[str, Any] | None = None
) -> CommandResult:
    """Give a command and wait a moment for what comes of it.

    Raises:
        RequestFailed: it could not be carried out, or no consumer is running (it is kept then).
    """
    command = _command(state, action, target, args)
    is_served = look_at_consumer(state).is_there
    result = queue.give_and_wait(state.files, command, is_served=is_served)
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


class TurnStarted(NamedTuple):
    """A turn began that answers these inputs; a second time, when its first attempt failed."""

    turn_id: str
    inputs: tuple[str, ...]


ConversationEvent: TypeAlias = ReplyPart | TurnStarted | Message


class ConversationClient:
    """One terminal's part in the conversation, from now on.

    Replies come from the transcript, the words of one in progress from the feed; what the feed
    loses, the transcript still has.
    """

    _PAGE = 50

    def __init__(self, state: ReadOnlyState) -> None:
        self._state, self._files = state, state.files
        self._cursor = read_changes(self._files, None).cursor
        known = history.page(self._files, limit=self._PAGE)
        self._known = {message.id for message in known.messages}

    def say(self, text: str) -> InboxItem:
        """Put a message into the inbox, or the answer when it is the number of an option.

        Once this returns it is on disk.

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
        """Whether a message was dealt with: then its reply is in the transcript."""
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
        for message in history.page(self._files, limit=self._PAGE).messages:
            if message.id not in self._known:
                self._known.add(message.id)
                yield message


def option_of(question: Question | None, text: str) -> str | None:
    """The option that a number stands for."""
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
