"""Serializes Huey's messages and values as JSON, never pickle: a pickle can run code.

A value that JSON lacks is an object with one key that begins with `$`; of an exception only type
name and text are stored.
"""

# Huey has no types.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import base64
import contextlib
import json
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, cast
from uuid import UUID

from huey.registry import Message
from huey.serializer import Serializer
from huey.utils import SKIPPED, Error

from mimikit.errors import BadInput, BadRecord
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.records import MAX_RECORD_BYTES

MAX_MESSAGE_BYTES = MAX_RECORD_BYTES // 2  # in base64 they are a third more
_OURS = b'{"huey":'
_OTHER = b'{"base64":"'
_MESSAGE_ID = re.compile(rb'\{"huey":\{"\$message":\{"id":"([^"\\]+)"')


class RecordedError(Exception):
    """A deserialized exception: its type's name and its text."""

    def __init__(self, type_name: str, text: str) -> None:
        super().__init__(text)
        self.type_name = type_name
        self.text = text

    def __repr__(self) -> str:
        return f"{self.type_name}({self.text!r})"


class JsonSerializer(Serializer):
    """Serializes to `{"huey": …}`.

    Supported: None, bool, int, float, str, bytes, list, tuple, dict, set, frozenset, datetime,
    date, time, timedelta, Decimal, UUID, and Huey's own types. Anything else is a TypeError.
    """

    def _serialize(self, data: object) -> bytes:
        value = {"huey": _to_json(data)}
        try:
            return _ENCODER.encode(value).encode()
        except UnicodeEncodeError:  # a lone surrogate can only be written as an escape
            return json.dumps(value, separators=(",", ":")).encode()

    def _deserialize(self, data: bytes) -> Any:
        try:
            return _DECODER.decode(data.decode())["huey"]
        except (ValueError, KeyError, TypeError, ArithmeticError) as error:
            raise BadRecord(f'expected {{"huey": …}}, got {bytes(data[:60])!r}: {error}') from None


def wrap(data: bytes) -> bytes:
    """Any bytes as JSON: JsonSerializer's unchanged, others in base64; BadInput if too many."""
    _check_size(data)
    if data.startswith(_OURS) and data.endswith(b"}"):
        return data
    return _OTHER + base64.b64encode(data) + b'"}\n'


def unwrap(data: bytes) -> bytes:
    """The inverse of `wrap`; BadRecord for foreign bytes."""
    if data.startswith(_OURS) and data.endswith(b"}"):
        return data
    if data.startswith(_OTHER):
        try:
            return _from_base64(data[len(_OTHER) : data.rindex(b'"')])
        except ValueError:
            raise BadRecord("base64: expected base64 text, got something else") from None
    # Edited by hand, or half written.
    return extract(cast("Json", parse_object(data)))


def embed(data: bytes) -> Json:
    """Any bytes as a JSON value, for use inside a record; BadInput if too many."""
    _check_size(data)
    if data.startswith(_OURS):
        # Only what can be read back byte for byte.
        with contextlib.suppress(ValueError, RecursionError, BadRecord):
            value = cast("Json", json.loads(data))
            line = dump_line({"value": value})
            if line == b'{"value":' + data + b"}\n" and parse_object(line):
                return value
    return {"base64": base64.b64encode(data).decode()}


def extract(value: Json) -> bytes:
    """The inverse of `embed`; BadRecord for a foreign value."""
    if isinstance(value, dict):
        if "huey" in value:
            return dump_line(value)[:-1]
        text = value.get("base64")
        if isinstance(text, str):
            with contextlib.suppress(ValueError):
                return _from_base64(text)
    raise BadRecord('expected {"huey": …} or {"base64": "…"}, got something else')


def identity(data: bytes) -> bytes:
    """The message's id, else the bytes: stable when a message is serialized again."""
    found = _MESSAGE_ID.match(data)
    return found.group(1) if found else bytes(data)


def _check_size(data: Any) -> None:
    if not isinstance(data, bytes):
        raise TypeError(f"expected bytes, got {type(data).__name__}")
    if len(data) > MAX_MESSAGE_BYTES:
        raise BadInput(
            f"expected at most {MAX_MESSAGE_BYTES} bytes, got {len(data)}; "
            "keep the bulk in a file and pass its path"
        )


def _to_json(value: Any) -> Json:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else {"$float": repr(value)}
    if kind is list:
        return [_to_json(item) for item in value]
    if kind is dict:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: _to_json(item) for key, item in value.items()}
        return {"$dict": [[_to_json(key), _to_json(item)] for key, item in value.items()]}
    if isinstance(value, BaseException):
        return {"$exception": _exception_json(value)}
    for known, name, write, _ in _KINDS:
        if kind is known:
            return {name: write(value)}
    raise TypeError(
        f"expected plain data (None, numbers, texts, bytes, lists, dicts, sets, times), "
        f"got {kind.__module__}.{kind.__qualname__}; pass its parts"
    )


def _message_json(message: Any) -> Json:
    # The id comes first: `identity` looks for it there.
    fields = message._asdict().items()
    return {name: _to_json(item) for name, item in fields if item is not None}


def _items(value: Any) -> Json:
    return [_to_json(item) for item in value]


def _from_base64(text: str | bytes) -> bytes:
    return base64.b64decode(text, validate=True)


def _exception_json(error: BaseException) -> Json:
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - a foreign __str__ may raise anything
        text = f"(no text: {type(broken).__name__})"
    name = error.type_name if isinstance(error, RecordedError) else type(error).__name__
    return {"type": name, "text": text}


def _span(value: timedelta) -> Json:
    return [value.days, value.seconds, value.microseconds]


_KINDS: tuple[tuple[type, str, Callable[[Any], Json], Callable[[Any], Any]], ...] = (
    (tuple, "$tuple", _items, tuple),
    (Message, "$message", _message_json, lambda value: Message(**value)),
    (bytes, "$bytes", lambda value: base64.b64encode(value).decode(), _from_base64),
    (datetime, "$datetime", datetime.isoformat, datetime.fromisoformat),
    (timedelta, "$timedelta", _span, lambda value: timedelta(*value)),
    (set, "$set", _items, set),
    (frozenset, "$frozenset", _items, frozenset),
    (date, "$date", date.isoformat, date.fromisoformat),
    (time, "$time", time.isoformat, time.fromisoformat),
    (Decimal, "$decimal", str, Decimal),
    (UUID, "$uuid", str, UUID),
    (Error, "$error", lambda value: _to_json(value.metadata), Error),
    (type(SKIPPED), "$skipped", lambda _: True, lambda _: SKIPPED),
)
"""Type, key in a file, writer, reader."""
_READERS: dict[str, Callable[[Any], Any]] = {
    **{name: read for _, name, _, read in _KINDS},
    "$float": float,
    "$dict": dict,
    "$exception": lambda value: RecordedError(value["type"], value["text"]),
}


def _from_json(value: dict[str, Any]) -> Any:
    """Decoder hook, called for each object, the innermost first."""
    if len(value) == 1:
        (name,) = value
        if name[:1] == "$":
            return _READERS[name](value[name])
    return value


# json.dumps and json.loads would make new ones for every message.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(object_hook=_from_json)
