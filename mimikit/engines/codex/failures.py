"""Classifies failures of codex: by their type if there is one, else by the message."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from mimikit.engines.base import Failed, Outcome
from mimikit.engines.limits import retry_at
from mimikit.protocol.json import Json
from mimikit.protocol.models import EngineWant

_TOO_LONG = re.compile(r"room in the model's context window|context_length_exceeded")
_PATTERNS: dict[EngineWant, re.Pattern[str]] = {
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
_KINDS: dict[str, EngineWant] = {
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
_STATUSES: dict[int, EngineWant] = {401: "logged_out", 403: "logged_out", 429: "limited"}


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """Why a turn failed."""

    message: str
    want: EngineWant | None = None
    """Why codex is unavailable; None: the run itself failed."""
    too_long: bool = False
    retry_at: datetime | None = None

    def outcome(self, text: str, *, acted: bool, code: int | None) -> Outcome:
        """`acted`: tools were called, so the run is not retried with a shorter prompt."""
        if self.want is not None:
            return Failed.unavailable(self.want, self.message, text=text, retry_at=self.retry_at)
        too_long = self.too_long and not acted
        return Failed("error", self.message, text, exit_code=code, too_long=too_long)


def is_context_overflow(message: str) -> bool:
    return _TOO_LONG.search(message) is not None


def failure_of_message(message: str, now: datetime) -> EngineFailure:
    """Classify a failure by its message alone."""
    if is_context_overflow(message):
        return EngineFailure(message, too_long=True)
    wants: list[EngineWant] = [
        want for want, pattern in _PATTERNS.items() if pattern.search(message)
    ]
    want = wants[0] if wants else None
    return EngineFailure(
        message, want, retry_at=retry_at(message, now) if want == "limited" else None
    )


def failure_of_type(
    message: str, info: Json, resets: Iterable[datetime], now: datetime
) -> EngineFailure:
    """Classify a failure by its `codexErrorInfo`; `resets`: when exhausted rate limits reset."""
    kind, status = _kind_of(info)
    by_message = failure_of_message(message, now)
    if by_message.too_long or kind == "contextWindowExceeded":
        return EngineFailure(message, too_long=True)
    want = _STATUSES.get(status or 0) or _KINDS.get(kind) or by_message.want
    if want == "unreachable" and status is not None:  # the server did answer
        want = "broken" if status >= 500 else None
    resets_at = None
    if want == "limited":  # the last of several windows counts; a message is less exact
        resets_at = max((at for at in resets if at > now), default=None) or retry_at(message, now)
    return EngineFailure(message, want, retry_at=resets_at)


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
