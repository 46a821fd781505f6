"""Decode and encode records, with a limit on their size. Pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from mimikit.errors import BadInput, BadRecord, ErrorCode, ErrorParams
from mimikit.protocol.disk import FileStat
from mimikit.protocol.ids import ID_PATTERN
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import (
    END_OF_TIME,
    Command,
    History,
    InboxItem,
    Question,
    Record,
    Task,
    to_utc,
)
from mimikit.protocol.results import StatusCheckpoint
from mimikit.protocol.runtime import TurnAttempt
from mimikit.protocol.triggers import Trigger

R = TypeVar("R", bound=Record)
_SECRET = frozenset({"url", "key", "token", "code"})
"""Fields whose value no error repeats."""
MAX_RECORD_BYTES = 16 * 2**20
_MAX_BYTES: dict[type[Record], int] = {
    **dict.fromkeys((InboxItem, Command, Question, Task, Trigger, TurnAttempt), 4 * 2**20),
    History: 256 * 2**20,
    StatusCheckpoint: 64 * 2**20,
}


def max_record_bytes(model: type[Record]) -> int:
    """Maximum size of such a record on disk, checked before reading and writing."""
    return _MAX_BYTES.get(model, MAX_RECORD_BYTES)


def decode(data: bytes, model: type[R]) -> R:
    """Parse and validate one record.

    Raises:
        BadRecord: with the field, what was expected and what was found.
    """
    if len(data) > max_record_bytes(model):
        raise BadRecord(f"expected at most {max_record_bytes(model):,} bytes, got {len(data):,}")
    parse_object(data)
    try:
        return model.model_validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError as error:
        raise bad_record(error) from None


def encode(record: Record) -> bytes:
    """Serialize a record, indented if it fits; BadRecord if it is too large."""
    data, max_bytes = record.to_json(), max_record_bytes(type(record))
    if len(data) > max_bytes:
        data = record.model_dump_json(by_alias=True).encode() + b"\n"
    if len(data) > max_bytes:
        raise BadRecord(
            f"{type(record).__name__}: expected at most {max_bytes:,} bytes, got {len(data):,}"
        )
    return data


def check_name(record: Record, path: str) -> None:
    """Raise BadRecord when a record's id differs from its file's name."""
    id_ = getattr(record, "id", None)
    if isinstance(record, TurnAttempt):
        id_ = f"{record.turn_id}.{record.attempt}"
    check_stem(id_, path.rpartition("/")[2].rpartition(".")[0])


def check_stem(id_: object, stem: str) -> None:
    if id_ is not None and id_ != stem:
        raise BadRecord(f"id: expected {stem!r} as in the file's name, got {id_!r}", field="id")


def bad_record(error: ValidationError) -> BadRecord:
    """The first error of a validation as a BadRecord."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "(the record)"
    got = "•••" if where in _SECRET else repr(first.get("input"))
    shown = got if len(got) <= 80 else got[:77] + "…"
    reason = first["msg"].removeprefix("Value error, ")  # pydantic's, before words of our own
    told = f"{reason}, got {shown}"
    if first["type"] == "missing":
        told = "expected a value, got none"
    code, params = code_of(first)
    return BadRecord(f"{where}: {told}", field=where, code=code, params=params)


_CODES: dict[str, ErrorCode] = {
    "missing": "missing",
    "extra_forbidden": "unknown_field",
    "string_pattern_mismatch": "bad_format",
    "bad_time": "bad_time",
}
_BOUNDS: dict[str, tuple[ErrorCode, str]] = {
    "max_length": ("too_long", "max"),
    "min_length": ("too_short", "min"),
    "lt": ("too_large", "max"),
    "le": ("too_large", "max"),
    "gt": ("too_small", "min"),
    "ge": ("too_small", "min"),
}
"""By pydantic's name of the bound: our code, and our name of it."""
_WRONG_TYPE = re.compile("(.+?)(_from_float|_parsing|_type)+")


def code_of(detail: ErrorDetails) -> tuple[ErrorCode, ErrorParams]:
    """The code and parameters of a validation error."""
    kind, context = detail["type"], detail.get("ctx", {})
    if context.get("min_length") == 1:
        return "missing", {}
    if context.get("pattern") == ID_PATTERN:
        return "bad_id", {}
    if kind == "literal_error":
        return "not_one_of", {"allowed": ", ".join(re.findall("'([^']*)'", context["expected"]))}
    for name in _BOUNDS.keys() & context.keys():
        code, ours = _BOUNDS[name]
        return code, {ours: context[name]}
    if kind.startswith(("date", "time")):
        return "bad_time", {}
    if match := _WRONG_TYPE.fullmatch(kind):
        return "wrong_type", {"expected": match[1]}
    return _CODES.get(kind, "bad_input"), {}


def check_text(text: str, field: str) -> str:
    """Return `text`; BadInput when it is blank."""
    if not text.strip():
        message = f"{field}: expected some text, got only blanks"
        raise BadInput(message, field=field, code="missing")
    return text


def whole_lines(data: bytes) -> Iterator[tuple[int, dict[str, Json]]]:
    """Iterate over the end and object of each line; torn, foreign and too long ones are skipped."""
    end = 0
    for line in data.split(b"\n")[:-1]:
        end += len(line) + 1
        if len(line) <= MAX_RECORD_BYTES:
            with contextlib.suppress(BadRecord):
                yield end, parse_object(line)


def written_at(stat: FileStat) -> datetime:
    """A file's mtime, clamped to the range of record times."""
    seconds = min(max(stat.mtime_ns / 1e9, 0), END_OF_TIME.timestamp() - 1)
    return to_utc(datetime.fromtimestamp(seconds, UTC))
