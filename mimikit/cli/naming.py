"""Ids as people give and see them: whole, or the end that tells one from the others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mimikit.errors import BadInput, NotFound
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import check_id, is_id
from mimikit.tasks import ledger, queue
from mimikit.triggers import registry
from mimikit.web.guest import GuestFiles

_GENERATED = re.compile(r"[a-z]+-[0-9a-z]{26}")
SHORT = 8
_LEAST = 4
_NAMED = 5
_TASK_FOLDERS = [f"{seat}/{part}" for seat in paths.SEATS for part in ("running", "queue", "ended")]
_LEDGER_BYTES = 4 * 2**20
_OF_TRIGGERS = frozenset({"slot", "ordered", "trigger_created", "trigger_removed"})


def short(id_: str) -> str:
    """The end of a generated id, which is enough to name it; any other id whole."""
    return id_[-SHORT:] if _GENERATED.fullmatch(id_) else id_


def find_task(files: Files, given: str) -> str:
    """The id of the task that is meant.

    Raises:
        NotFound: there is none.
        BadInput: several end so.
    """
    check_id(given)
    if queue.find(files, given) is not None:
        return given
    return _the_one(given, _task_ids(files), "task")


def find_trigger(files: Files, given: str) -> str:
    """The id of the trigger that is meant; of a broken file its name, whatever that is.

    Raises:
        NotFound: there is none.
        BadInput: several end so.
    """
    ids = registry.ids(files)
    return given if given in ids else _the_one(check_id(given), ids, "trigger")


def find_either(files: GuestFiles, given: str) -> str:
    """The id of the task or trigger that is meant; of a trigger also when it has fired and gone.

    Raises:
        NotFound: there is none.
        BadInput: several end so.
    """
    check_id(given)
    if files.exists(paths.trigger(given)) or queue.find(files, given) is not None:
        return given
    if ledger.slots_of(files, given, 1):
        return given
    known = [*registry.ids(files), *_task_ids(files), *_remembered(files)]
    return _the_one(given, known, "task or trigger")


def find_trigger_ever(files: GuestFiles, given: str) -> str:
    """The id of the trigger that is meant, or was before it fired or was removed.

    Raises:
        NotFound: there is none, and none is remembered.
        BadInput: several end so.
    """
    try:
        return find_trigger(files, given)
    except NotFound:
        if is_id(given) and ledger.slots_of(files, given, 1):
            return given
        return _the_one(given, _remembered(files), "trigger")


def _remembered(files: GuestFiles) -> Iterator[str]:
    """Ids of the triggers of which the ledger's end tells."""
    for name in files.names(paths.LEDGER, suffix=".jsonl")[-2:]:
        for line in files.tail(f"{paths.LEDGER}/{name}", _LEDGER_BYTES):
            if line.get("event") in _OF_TRIGGERS:
                yield str(line.get("id"))


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
