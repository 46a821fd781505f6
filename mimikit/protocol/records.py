"""What the bytes of a file mean as a record, and how many they may be. Pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import ValidationError

from mimikit.errors import BadRecord
from mimikit.protocol.disk import FileStat
from mimikit.protocol.json import parse_object
from mimikit.protocol.models import (
    END_OF_TIME,
    Command,
    History,
    InboxItem,
    Question,
    Record,
    Task,
    TurnAttempt,
    to_utc,
)
from mimikit.protocol.results import StatusCheckpoint
from mimikit.protocol.triggers import Trigger

R = TypeVar("R", bound=Record)
T = TypeVar("T")
MAX_RECORD_BYTES = 16 * 2**20
_SEEK_BYTES = 2**22
_ID_FIRST = re.compile(rb'\{"id":"([A-Za-z0-9._-]{1,128})"[,}]')
_MOST_BYTES: dict[type[Record], int] = {
    **dict.fromkeys((InboxItem, Command, Question, Task, Trigger, TurnAttempt), 4 * 2**20),
    # What is not archived is never dropped, and the ends of tasks are many.
    History: 256 * 2**20,
    StatusCheckpoint: 64 * 2**20,
}


def most_bytes(model: type[Record]) -> int:
    """So large a record of this kind may be on the disk: checked before it is read or written."""
    return _MOST_BYTES.get(model, MAX_RECORD_BYTES)


def decode(data: bytes, model: type[R]) -> R:
    """Validate the bytes of one record.

    Raises:
        BadRecord: naming the field, what was expected and what was got.
    """
    if len(data) > most_bytes(model):
        raise BadRecord(f"expected at most {most_bytes(model):,} bytes, got {len(data):,}")
    parse_object(data)
    try:
        return model.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        raise bad_record(error) from None


def encode(record: Record) -> bytes:
    """The bytes of one record, indented unless only that makes them too many.

    Raises:
        BadRecord: they are more than are read again.
    """
    data, most = record.to_json(), most_bytes(type(record))
    if len(data) > most:
        data = record.model_dump_json(by_alias=True).encode() + b"\n"
    if len(data) > most:
        raise BadRecord(
            f"{type(record).__name__}: expected at most {most:,} bytes, got {len(data):,}"
        )
    return data


def check_name(record: Record, path: str) -> None:
    """Raise BadRecord when a record names itself otherwise than its file."""
    id_ = getattr(record, "id", None)
    if isinstance(record, TurnAttempt):
        id_ = f"{record.turn_id}.{record.attempt}"
    stem = path.rpartition("/")[2].rpartition(".")[0]
    if id_ is not None and id_ != stem:
        raise BadRecord(f"id: expected {stem!r} as in the file's name, got {id_!r}", field="id")


def bad_record(error: ValidationError) -> BadRecord:
    """The first complaint of a validation, in words."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "(the record)"
    got = repr(first.get("input"))
    shown = got if len(got) <= 80 else got[:77] + "…"
    kind, told = first["type"], first.get("ctx", {})
    if kind == "missing":
        return BadRecord(f"{where}: expected a value, got none", field=where, code="missing")
    said = first["msg"].removeprefix("Value error, ")  # pydantic's, before words of our own
    code, limit = _CODES.get(kind, (None, ""))
    params = {"limit": told[limit]} if isinstance(told.get(limit), int | float | str) else {}
    return BadRecord(f"{where}: {said}, got {shown}", field=where, code=code, params=params)


_CODES = {
    "string_too_short": ("too_short", "min_length"),
    "string_too_long": ("too_long", "max_length"),
    "too_long": ("too_many", "max_length"),
    "greater_than": ("too_small", "gt"),
    "greater_than_equal": ("too_small", "ge"),
    "less_than": ("too_large", "lt"),
    "less_than_equal": ("too_large", "le"),
    "literal_error": ("not_a_choice", "expected"),
    "extra_forbidden": ("unknown_field", ""),
    **dict.fromkeys(("int_type", "int_parsing", "float_type", "float_parsing"), ("no_number", "")),
}
"""By pydantic's word for it: ours, and which of its facts is the limit."""


def whole_lines(data: bytes, read: Callable[[bytes], T] = parse_object) -> Iterator[tuple[int, T]]:
    """Each line's end within `data` and its object; torn and foreign lines are skipped.

    read: what is wanted of a line instead; BadRecord: it is skipped.
    """
    begin = 0
    while end := data.find(b"\n", begin) + 1:  # one by one: a list of all would be as large again
        line, begin = data[begin : end - 1], end
        with contextlib.suppress(BadRecord):
            yield end, read(line)


def id_in_line(line: bytes) -> str:
    """The id in a line: of one that begins with it as ours do, without a look at the rest.

    That costs a tenth of reading it, and is no proof that it can be read.

    Raises:
        BadRecord: it has none.
    """
    if found := _ID_FIRST.match(line):
        return found[1].decode()
    if not isinstance(id_ := parse_object(line).get("id"), str):
        raise BadRecord("id: expected one, got none")
    return id_


def without_line_end(
    read: Callable[[int, int], bytes | None], begin: int, end: int
) -> tuple[int, int]:
    """How far bytes without a line's end reach on both sides; `read` has an offset and a size."""
    while block := read(max(begin - _SEEK_BYTES, 0), min(begin, _SEEK_BYTES)):
        at = block.rfind(b"\n") + 1
        begin -= len(block) - at
        if at:
            break
    while block := read(end, _SEEK_BYTES):
        at = block.find(b"\n")
        end += at if at >= 0 else len(block)
        if at >= 0:
            break
    return begin, end


def written_at(stat: FileStat) -> datetime:
    """When a file was written, or the nearest time that a record may have."""
    seconds = min(max(stat.mtime_ns / 1e9, 0), END_OF_TIME.timestamp() - 1)
    return to_utc(datetime.fromtimestamp(seconds, UTC))
