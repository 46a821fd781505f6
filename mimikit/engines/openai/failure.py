"""Classifies the failures of an endpoint: the words of its answer first, then the status."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, TypeAlias, cast

from mimikit.engines.limits import MAX_WAIT_S, retry_at, retry_header
from mimikit.protocol.json import table_of, tables_of

Trouble: TypeAlias = Literal[
    "too_long",
    "account",
    "region",
    "refused",
    "logged_out",
    "unknown_model",
    "limited",
    "unreachable",
    "broken",
    "absent",
    "silent",
    "error",
]
"""`account`: out of credit. `refused`: its content filter. `absent`: not a model endpoint.
`error`: this request was rejected."""

_FILE = Path(__file__).with_suffix(".toml")
_WORDS = {
    trouble: re.compile(pattern.replace("\n", ""), re.IGNORECASE | re.DOTALL)
    for trouble, pattern in tomllib.loads(_FILE.read_text("utf-8")).items()
}
_MAX_TOKENS = re.compile(r"max_(completion_|output_|new_)?tokens", re.IGNORECASE)
_LIMIT = re.compile(r"limit\D{1,20}(\d[\d,]*)", re.IGNORECASE)
_ASKED = re.compile(r"(?:requested|contains|got)\D{1,20}(\d[\d,]*)", re.IGNORECASE)
_TRANSIENT_STATUS = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_MESSAGES = ("error", "message", "msg", "detail", "base_resp", "status_msg", "error_msg", "errors")
_DETAILS = ("code", "type", "status", "param", "reason", "status_code")


class EndpointError(Exception):
    def __init__(
        self,
        trouble: Trouble,
        message: str,
        *,
        until: datetime | None = None,
        is_transient: bool = False,
        status: int | None = None,
        words: str = "",
    ) -> None:
        """`until`: when a rate limit ends. `words`: of the endpoint, with its error codes."""
        super().__init__(message)
        self.trouble: Trouble = trouble
        self.until, self.is_transient, self.status, self.words = until, is_transient, status, words


def message_of(body: object) -> str:
    for _ in range(6):
        if isinstance(body, list):
            body = _validation_text(cast("list[object]", body))
        if not (table := table_of(body)):
            break
        more = table_of(table.get("metadata")).get("raw")
        if isinstance(more, str):  # OpenRouter's, of the provider behind it
            return f"{table.get('message') or ''} {more}".strip()
        body = next((table[name] for name in _MESSAGES if table.get(name)), "")
    return body if isinstance(body, str) else json.dumps(body or "", default=str).strip('"')


def _validation_text(items: list[object]) -> object:
    """The first error of a list; of a list of validation errors, with where they are."""
    first = items[0] if items else ""
    if "loc" not in table_of(first):
        return first
    found: list[str] = []
    for error in tables_of(items):
        loc = error.get("loc")
        path = cast("list[object]", loc) if isinstance(loc, list) else [loc]
        found.append(f"{'.'.join(map(str, path))}: {error.get('msg')}")
    return "; ".join(found)


def words_of(body: object) -> str:
    """Its message and error codes, without a copy of the request."""
    return " ".join([message_of(body), *(str(value) for value in _values(body, _DETAILS))])


def _values(body: object, names: tuple[str, ...]) -> Iterator[object]:
    """Plain values of those names, at any of the upper levels."""
    level: list[object] = [body]
    for _ in range(5):
        tables = tables_of(level)
        for table in tables:
            yield from (table[k] for k in names if isinstance(table.get(k), str | int | float))
        level = [value for table in tables for value in table.values()]
        lists = [cast("list[object]", item) for item in level if isinstance(item, list)]
        level += [inner for items in lists for inner in items[:10]]


def status_in(body: object) -> int | None:
    for value in _values(body, ("code", "status", "status_code")):
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def classify(
    status: int | None, body: object, headers: Mapping[str, str], now: datetime
) -> tuple[Trouble, datetime | None, bool]:
    """The trouble, when its limit ends, and whether a retry may help at once. Pure.

    status: None for an error within an answer.
    """
    message, words = message_of(body), words_of(body)
    status = status or status_in(body)
    until = _until(body, headers, message, now)
    if _is_too_long(status, words):
        return "too_long", None, False
    # Gemini calls its rate limit a quota, but says when it ends.
    if status == 402 or (_WORDS["account"].search(words) and until is None):
        return "account", None, False
    for trouble in ("region", "refused"):
        if _WORDS[trouble].search(words):
            return trouble, None, False
    if status in (401, 403) or (
        (status or 400) < 500 and status != 429 and _WORDS["logged_out"].search(words)
    ):
        return "logged_out", None, False
    if status != 429 and _WORDS["unknown_model"].search(words):
        return "unknown_model", None, False
    if status == 429 or ((status or 400) < 500 and _WORDS["limited"].search(words)):
        return "limited", until, False
    if status in (404, 405) or _WORDS["absent"].search(words) or (status and 300 <= status < 400):
        return "absent", None, False
    if status is None or status >= 500 or status in _TRANSIENT_STATUS:
        return "broken", until if status == 503 else None, True
    return "error", None, False


def _is_too_long(status: int | None, words: str) -> bool:
    if status in (401, 402, 403, 404):
        return False
    limit, asked = _LIMIT.search(words), _ASKED.search(words)
    if limit and asked and "token" in words.lower():
        return int(asked[1].replace(",", "")) > int(limit[1].replace(",", ""))
    if status != 413 and (_MAX_TOKENS.search(words) or _WORDS["limited"].search(words)):
        return False
    return status == 413 or _WORDS["too_long"].search(words) is not None


def _until(
    body: object, headers: Mapping[str, str], message: str, now: datetime
) -> datetime | None:
    """When to retry, from headers, body or message."""
    if (at := retry_header(headers, now)) is not None:
        return at
    for value in _values(body, ("resets_in_seconds", "retry_after", "retryDelay")):
        with contextlib.suppress(ValueError):
            if 0 < (seconds := float(str(value).removesuffix("s"))) < MAX_WAIT_S:
                return now + timedelta(seconds=seconds)
    if (at := retry_at(message, now)) is not None:
        return at
    # Only the limits that are used up.
    resets = [
        reset
        for name, value in headers.items()
        if name.startswith("x-ratelimit-reset")
        and headers.get(name.replace("-reset", "-remaining"), "0") in ("0", "0.0")
        and (reset := _reset_time(value, now)) is not None
    ]
    return max(resets, default=None)


def _reset_time(value: str, now: datetime) -> datetime | None:
    """Of `6m0s`, `47.4`, or seconds or milliseconds since 1970."""
    if re.fullmatch(r"\d+(\.\d+)?", value):
        number = float(value)
        for unit in (1.0, 1000.0):
            if 0 <= number / unit - now.timestamp() < MAX_WAIT_S:
                return now + timedelta(seconds=number / unit - now.timestamp())
        return now + timedelta(seconds=number) if number < MAX_WAIT_S else None
    return retry_at(f"try again in {value}", now)
