"""Classifies failures of codex: by their type if there is one, else by the message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from mimikit.engines.base import Failed
from mimikit.engines.limits import retry_at
from mimikit.protocol.json import Json
from mimikit.protocol.models import EngineProblem

_TOO_LONG = re.compile(r"room in the model's context window|context_length_exceeded")
_PATTERNS: dict[EngineProblem, re.Pattern[str]] = {
    "limited": re.compile(
        r"\b429\b|too many requests|rate limit|usage limit|quota exceeded|insufficient_quota"
        r"|at capacity|\b503\b|overloaded",
        re.IGNORECASE,
    ),
    "logged_out": re.compile(
        r"\b40[13]\b|unauthorized|forbidden|not logged in|log ?in again|sign in again"
        r"|refresh token|missing environment variable",
        re.IGNORECASE,
    ),
    "unreachable": re.compile(
        r"error sending request|connection refused|dns error|connection failed"
        r"|network is unreachable",
        re.IGNORECASE,
    ),
    "broken": re.compile(
        r"high demand|status:? 5\d\d\b|stream disconnected|stream closed", re.IGNORECASE
    ),
}
_KINDS: dict[str, EngineProblem] = {
    "usageLimitExceeded": "limited",
    "rateLimitExceeded": "limited",
    "serverOverloaded": "limited",
    "flexUnavailable": "limited",
    "unauthorized": "logged_out",
    "internalServerError": "broken",
    "httpConnectionFailed": "unreachable",
    "responseStreamConnectionFailed": "unreachable",
    "responseStreamDisconnected": "broken",
    "responseTooManyFailedAttempts": "broken",
}
"""The `codexErrorInfo` types that mean that codex is unavailable."""
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
