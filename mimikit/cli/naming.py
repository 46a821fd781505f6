"""Ids as people give and see them: whole, or the end that tells one from the others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mimikit.errors import BadInput, NotFound
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.ids import check_id
from mimikit.tasks import queue

_GENERATED = re.compile(r"[a-z]+-[0-9a-z]{26}")
SHORT = 8
_LEAST = 4
_NAMED = 5
_TASK_FOLDERS = [f"{seat}/{part}" for seat in paths.SEATS for part in ("running", "queue", "ended")]


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
    names = (name for folder in _TASK_FOLDERS for name in files.names(folder))
    return _the_one(given, (name.removesuffix(".json") for name in names), "task")


def find_trigger(files: Files, given: str) -> str:
    """The id of the trigger that is meant.

    Raises:
        NotFound: there is none.
        BadInput: several end so.
    """
    check_id(given)
    if files.exists(paths.trigger(given)):
        return given
    names = (name.removesuffix(".json") for name in files.names(paths.TRIGGERS))
    return _the_one(given, names, "trigger")


def _the_one(given: str, ids: Iterable[str], kind: str) -> str:
    found = sorted({id_ for id_ in ids if id_.endswith(given)}) if len(given) >= _LEAST else []
    if not found:
        raise NotFound(
            f"expected the id of a {kind}, or its last {SHORT} characters, got {given!r}; "
            f"`mimikit {kind}s list` shows them"
        )
    if len(found) > 1:
        some = ", ".join(found[:_NAMED]) + (", …" if len(found) > _NAMED else "")
        raise BadInput(f"expected the end of one {kind}'s id, got {given!r}, which fits {some}")
    return found[0]
