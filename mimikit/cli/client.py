"""What commands do with an opened state: find what an id means, watch, wait, give a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Self

from mimikit.cli import terminal
from mimikit.errors import BadInput, MimikitError, NotFound
from mimikit.protocol import paths
from mimikit.protocol.files import Files, ReadOnlyFiles
from mimikit.protocol.ids import check_id, is_id, new_id
from mimikit.protocol.models import Command, CommandResult, LiveRun
from mimikit.protocol.watch import FolderWatch, WakeBell
from mimikit.state import ReadOnlyState, State
from mimikit.tasks import ledger, queue
from mimikit.triggers import registry
from mimikit.triggers.explain import ExplanationContext
from mimikit.views import status as statuses
from mimikit.views import triggers
from mimikit.views.status import Consumer, is_paused

_GENERATED = re.compile(r"[a-z]+-[0-9a-z]{26}")
SHORT = 8
_LEAST = 4
_NAMED = 5
_TASK_FOLDERS = [
    f"{seat}/{part}" for seat in paths.QUEUES for part in ("running", "queue", "ended")
]


def short_id(id_: str) -> str:
    """The end of a generated id, which is enough to name it; any other id whole."""
    return id_[-SHORT:] if _GENERATED.fullmatch(id_) else id_


def find_task(files: Files, given: str) -> str:
    """The id of the task that is meant.

    Raises NotFound, or BadInput when several end so.
    """
    check_id(given)
    if queue.find(files, given) is not None:
        return given
    return _the_one(given, _task_ids(files), "task")


def find_trigger(files: Files, given: str) -> str:
    """The id of the trigger that is meant; of a broken file its name, whatever that is.

    Raises NotFound, or BadInput when several end so.
    """
    ids = registry.ids(files)
    return given if given in ids else _the_one(check_id(given), ids, "trigger")


def find_either(files: ReadOnlyFiles, given: str) -> str:
    """The id of the task or trigger that is meant; of a trigger also when it has fired and gone.

    Raises NotFound, or BadInput when several end so.
    """
    check_id(given)
    if files.exists(paths.trigger(given)) or queue.find(files, given) is not None:
        return given
    if ledger.slots_of(files, given, 1):
        return given
    known = [*registry.ids(files), *_task_ids(files), *ledger.trigger_ids(files)]
    return _the_one(given, known, "task or trigger")


def find_trigger_ever(files: ReadOnlyFiles, given: str) -> str:
    """The id of the trigger that is meant, or was before it fired or was removed.

    Raises NotFound when none is remembered either, or BadInput when several end so.
    """
    try:
        return find_trigger(files, given)
    except NotFound:
        if is_id(given) and ledger.slots_of(files, given, 1):
            return given
        return _the_one(given, ledger.trigger_ids(files), "trigger")


def _task_ids(files: Files) -> Iterator[str]:
    for folder in _TASK_FOLDERS:
        for name in files.names(folder):
            yield name.removesuffix(".json")


def _the_one(given: str, ids: Iterable[str], kind: str) -> str:
    found = sorted({id_ for id_ in ids if id_.endswith(given)}) if len(given) >= _LEAST else []
    if not found:
        where = " and ".join(f"`mimikit {one}s list`" for one in kind.split(" or "))
        verb = "show" if " or " in kind else "shows"
        raise NotFound(
            f"expected the id of a {kind}, or its last {SHORT} characters, got {given!r}; "
            f"{where} {verb} them"
        )
    if len(found) > 1:
        some = ", ".join(found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
        raise BadInput(f"expected the end of one {kind}'s id, got {given!r}, which fits {some}")
    return found[0]


_LOOK_S = 0.5
HINT = "no consumer is running; `mimikit up` starts one"
NO_CONSUMER = "expected a running consumer, got none; `mimikit up` starts one"


class RequestFailed(MimikitError):
    """What was asked for did not come about; the text says why, the exit code is 1."""


class Watcher:
    def __init__(self, state: State, folders: Iterable[str]) -> None:
        """Watch from now on: look after this, and nothing is missed."""
        self._bell = WakeBell()
        self._watch = FolderWatch(state.path)
        for folder in folders:
            self._watch.watch(folder, lambda _names: self._bell.ring())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        """End the watch; its thread ends by itself."""
        self._watch.close(wait=False)

    def pause(self, timeout_s: float = _LOOK_S) -> None:
        """Until something changed, or the time is up."""
        self._bell.wait(timeout_s)


def gone(kind: str, id_: str) -> NotFound:
    return NotFound(f"expected a {kind}, got {id_!r}, which is gone meanwhile")


def look_at_consumer(state: State) -> Consumer:
    return statuses.look_at_consumer(state.files, state.clock.now())


def live_runs(state: State) -> dict[str, LiveRun]:
    """By id; none when no consumer is there."""
    return look_at_consumer(state).live


def situation(state: ReadOnlyState) -> ExplanationContext:
    """What triggers are explained by, as this terminal finds it."""
    consumer = look_at_consumer(state)
    return triggers.situation(
        state.files,
        now=state.clock.now(),
        zone=state.settings.zone,
        consumer_up=consumer.is_there,
        health=consumer.current,
        paused=is_paused(state.files, consumer.current),
    )


def carry_out(state: State, action: str, target: str = "", *, as_json: bool) -> None:
    """Give a command and print what comes of it."""
    outcome = give_command(state, action, target)
    terminal.show(outcome, [terminal.sentence(outcome.message)], as_json=as_json)


def give_command(
    state: State, action: str, target: str = "", args: dict[str, Any] | None = None
) -> CommandResult:
    """Give a command and wait a moment for what comes of it.

    Raises:
        RequestFailed: it could not be carried out, or nobody is there to do it (it is kept then).
    """
    now = state.clock.now()
    given = {"action": action, "target": target, "args": args or {}, "origin": "cli"}
    command = Command.model_validate({"id": new_id("cmd", now), "created_at": now, **given})
    is_served = look_at_consumer(state).is_there
    with Watcher(state, [paths.COMMANDS_DONE]) as watcher:
        found = queue.give_and_wait(state.files, command, is_served=is_served, pause=watcher.pause)
    if not is_served:
        raise RequestFailed(f"{NO_CONSUMER}, which carries out this order: it is kept until then")
    if found is None:
        return CommandResult(
            command=command, ok=True, message="accepted, not carried out yet", applied_at=now
        )
    if not found.ok:
        raise RequestFailed(found.message)
    return found


class WaitGuard:
    """Watches, while a command waits, over what could make it wait in vain; tells each thing once.

    what_is_kept: what becomes of the wish when there is nobody to fulfil it.
    """

    def __init__(self, state: State, what_is_kept: str) -> None:
        self._state, self._kept = state, what_is_kept
        self._told: set[str] = set()

    def check(self, seat: str, *, queued: bool) -> None:
        """Look once more at the role or profile waited for.

        queued: whether the wait is for the queues, which may be paused.

        Raises:
            RequestFailed: nobody is there to do it.
        """
        consumer = look_at_consumer(self._state)
        if not consumer.is_there:
            raise RequestFailed(f"{NO_CONSUMER}; {self._kept}")
        if consumer.health is None:
            return
        found: list[str] = []
        if queued and consumer.health.paused:
            found.append("The queues are paused; `mimikit resume` lets them go on.")
        engine = consumer.health.engines.get(seat)
        if engine is not None and engine.state == "waiting":
            found.append(f"It waits for its engine: {engine.reason}.")
        for text in found:
            if text not in self._told:
                terminal.note(text)
        self._told.update(found)
