"""A strict JSON parser for input from disk and network.

Raises BadRecord, and nothing else, for bytes that are not UTF-8, nesting deeper than MAX_DEPTH,
duplicate keys, NaN and infinities, lone surrogates and endless numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import TypeAlias, cast

from mimikit.errors import BadRecord

MAX_DEPTH = 64
_KINDS: dict[type, str] = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    type(None): "null",
}
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def parse_json(data: bytes) -> Json:
    """Parse one JSON text; BadRecord with the reason, and the line where it is known."""
    try:
        text = data.decode("utf-8-sig")
        value = cast("Json", _DECODER.decode(text))
    except UnicodeDecodeError as error:
        raise BadRecord(f"expected UTF-8 text, got byte {error.start} that is not") from None
    except json.JSONDecodeError as error:
        raise BadRecord(
            f"expected JSON, got {error.msg.lower()} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise BadRecord(f"expected at most {MAX_DEPTH} levels of nesting, got far more") from None
    except ValueError as error:
        raise BadRecord(str(error)) from None
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise BadRecord(f"expected at most {MAX_DEPTH} levels of nesting, got {_depth(value)}")
    if _SURROGATE.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise BadRecord("expected valid Unicode, got a lone surrogate") from None
    return value


def parse_object(data: bytes) -> dict[str, Json]:
    """Parse one JSON object; BadRecord for anything else."""
    value = parse_json(data)
    if not isinstance(value, dict):
        raise BadRecord(f"expected a JSON object, got {_KINDS[type(value)]}")
    return value


def table_of(value: object) -> dict[str, object]:
    """The value if it is a JSON object, else an empty one."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def tables_of(value: object) -> list[dict[str, object]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, object]", item) for item in items if isinstance(item, dict)]


def text_of(holder: object, key: str) -> str:
    value = table_of(holder).get(key)
    return value if isinstance(value, str) else ""


def count_of(holder: object, key: str) -> int:
    value = table_of(holder).get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 0 <= value < 2**53 else 0


def dump_line(value: object) -> bytes:
    return _ENCODER.encode(value).encode() + b"\n"


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"expected each key once, got {twice!r} twice")
    return result


def _no_constant(name: str) -> Json:
    raise ValueError(f"expected a number, got {name}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"expected a finite number, got {text[:20]}")
    return number


# Made once: json.loads and json.dumps with options would make one each time.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
)


def _depth(value: Json) -> int:
    """The depth, without recursion: deep nesting would exhaust the stack."""
    deepest, todo = 0, [(value, 1)]
    while todo:
        item, depth = todo.pop()
        deepest = max(deepest, depth)
        if isinstance(item, dict):
            todo += [(child, depth + 1) for child in item.values()]
        elif isinstance(item, list):
            todo += [(child, depth + 1) for child in item]
    return deepest
