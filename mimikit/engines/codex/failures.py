"""Classifies failures of codex: by their type if there is one, else by the message."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from mimikit.engines.base import Failed
from mimikit.engines.limits import retry_at
from mimikit.protocol.json import Json
from mimikit.protocol.models import EngineProblem

_TOO_LONG = re.compile(r"room in the model's context window|context_length_exceeded")
_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_PATTERNS: dict[EngineProblem, re.Pattern[str]] = {
    problem: re.compile(words.replace("\n", ""), re.IGNORECASE)
    for problem, words in _FILE["words"].items()
}
_KINDS: dict[str, EngineProblem] = {
    kind: problem for problem, kinds in _FILE["kinds"].items() for kind in kinds
}
_STATUSES: dict[int, EngineProblem] = {401: "logged_out", 403: "logged_out", 429: "limited"}


def is_context_overflow(message: str) -> bool:
    return _TOO_LONG.search(message) is not None


def failure_of(
    message: str, now: datetime, info: Json = None, resets: Iterable[datetime] = ()
) -> Failed:
    """The failure that codex reported; `resets`: when its exhausted rate limits reset."""
    kind, status = _kind_of(info)
    if is_context_overflow(message) or kind == "contextWindowExceeded":
        return Failed("error", message, too_long=True)
    found: list[EngineProblem] = [
        problem for problem, words in _PATTERNS.items() if words.search(message)
    ]
    by_words = found[0] if found else None
    want = _STATUSES.get(status or 0) or _KINDS.get(kind) or by_words
    if want == "unreachable" and status is not None:  # the server did answer
        want = "broken" if status >= 500 else None
    if want is None:
        return Failed("error", message)
    again = None
    if want == "limited":  # the last of several windows counts; a message is less exact
        again = max((at for at in resets if at > now), default=None) or retry_at(message, now)
    return Failed.unavailable(want, message, retry_at=again)


def exhausted_until(limits: Json) -> list[datetime]:
    """When the exhausted windows of `account/rateLimits/updated` reset."""
    resets = list[datetime]()
    for name in ("primary", "secondary"):
        window = limits.get(name) if isinstance(limits, dict) else None
        if not isinstance(window, dict):
            continue
        used, at = window.get("usedPercent"), window.get("resetsAt")
        if isinstance(used, int | float) and used >= 100 and isinstance(at, int) and 0 < at < 2**33:
            resets.append(datetime.fromtimestamp(at, UTC))
    return resets


def _kind_of(info: Json) -> tuple[str, int | None]:
    """The type of a `codexErrorInfo`, and its HTTP status."""
    if isinstance(info, str):
        return info, None
    for kind, facts in info.items() if isinstance(info, dict) else ():
        status = facts.get("httpStatusCode") if isinstance(facts, dict) else None
        return kind, status if isinstance(status, int) else None
    return "", None
