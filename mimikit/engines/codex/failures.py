"""What a failure of codex means: by its type where codex tells one, else by its words."""

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
_WORDS: dict[EngineWant, re.Pattern[str]] = {
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
"""`codexErrorInfo` of the app-server, as far as it tells that codex can not serve."""
_STATUSES: dict[int, EngineWant] = {401: "logged_out", 403: "logged_out", 429: "limited"}


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """What ended a turn."""

    said: str
    want: EngineWant | None = None
    """What codex lacks; None: the work itself failed."""
    too_long: bool = False
    """The prompt was more than the model takes."""
    again: datetime | None = None
    """When a limit is known to end."""

    def outcome(self, text: str, *, acted: bool, code: int | None) -> Outcome:
        """`acted`: something was done already, so a shorter prompt is no cure."""
        if self.want is not None:
            return Failed.unavailable(self.want, self.said, text=text, retry_at=self.again)
        too_long = self.too_long and not acted
        return Failed("error", self.said, text, exit_code=code, too_long=too_long)


def told_too_long(said: str) -> bool:
    """Whether it is said that a conversation is more than the model takes."""
    return _TOO_LONG.search(said) is not None


def told_failure(said: str, now: datetime) -> EngineFailure:
    """A failure of which there are words alone."""
    if told_too_long(said):
        return EngineFailure(said, too_long=True)
    wants: list[EngineWant] = [want for want, words in _WORDS.items() if words.search(said)]
    want = wants[0] if wants else None
    return EngineFailure(said, want, again=retry_at(said, now) if want == "limited" else None)


def typed_failure(
    said: str, info: Json, resets: Iterable[datetime], now: datetime
) -> EngineFailure:
    """A failure with its `codexErrorInfo`; `resets`: when limits that are used up begin anew."""
    kind, status = _kind_of(info)
    told = told_failure(said, now)
    if told.too_long or kind == "contextWindowExceeded":
        return EngineFailure(said, too_long=True)
    want = _STATUSES.get(status or 0) or _KINDS.get(kind) or told.want
    if want == "unreachable" and status is not None:  # somebody was there
        want = "broken" if status >= 500 else None
    again = None
    if want == "limited":  # of several windows the last is what counts; words give minutes
        again = max((at for at in resets if at > now), default=None) or retry_at(said, now)
    return EngineFailure(said, want, again=again)


def used_up_until(limits: Json) -> list[datetime]:
    """When those windows of `account/rateLimits/updated` begin anew of which nothing is left."""
    found = list[datetime]()
    for name in ("primary", "secondary"):
        window = limits.get(name) if isinstance(limits, dict) else None
        if not isinstance(window, dict):
            continue
        used, at = window.get("usedPercent"), window.get("resetsAt")
        if isinstance(used, int | float) and used >= 100 and isinstance(at, int) and 0 < at < 2**33:
            found.append(datetime.fromtimestamp(at, UTC))
    return found


def _kind_of(info: Json) -> tuple[str, int | None]:
    """The kind of a `codexErrorInfo`, and the HTTP status it names."""
    if isinstance(info, str):
        return info, None
    for kind, facts in info.items() if isinstance(info, dict) else ():
        status = facts.get("httpStatusCode") if isinstance(facts, dict) else None
        return kind, status if isinstance(status, int) else None
    return "", None
