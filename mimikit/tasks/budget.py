"""How many tokens may be used: what is reserved before a run, and settled after it.

Pure: it knows no clock and no file. A run reserves what its like has used most lately; where the
day, its trigger or its task has no room for that, it is held. Units: tokens, of prompts (cached
ones, too) and answers together.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal, TypeAlias
from zoneinfo import ZoneInfo

from mimikit.config import TokenCapSettings
from mimikit.protocol.models import Role

RECENT = 20
"""So many runs of a kind tell what the next may need."""
GUESS: dict[Role, int] = {"teller": 4_000, "planner": 8_000, "worker": 30_000}
"""What a run reserves whose like never was."""
LOOK_AGAIN = timedelta(seconds=2)
"""So soon it is looked again where runs under way have reserved what may come free."""
HeldFor: TypeAlias = Literal["day", "trigger", "task"]
RunKind: TypeAlias = tuple[str, Role, str]
"""Engine, role, profile: runs of one kind need about the same."""


@dataclass(frozen=True, slots=True)
class BudgetHold:
    """Why a run may not begin. Tokens."""

    held_for: HeldFor
    cap: int
    used: int
    until: datetime | None = None
    """When it is looked at again; None: never, as a task's tokens never come back."""
    is_short: bool = False
    """Only runs under way have reserved what it needs."""


@dataclass(frozen=True, slots=True)
class _Reserved:
    day: date
    trigger_id: str | None
    tokens: int


def day_of(now: datetime, zone: ZoneInfo) -> date:
    """The user's day."""
    return now.astimezone(zone).date()


def day_end(now: datetime, zone: ZoneInfo) -> datetime:
    """When the user's day is over: the first moment of the next one that there is."""
    begin = datetime.combine(day_of(now, zone) + timedelta(days=1), time(), zone)
    return begin.astimezone(UTC)


class TokenBudget:
    """What a day has used, and what the runs under way have reserved of it."""

    def __init__(self, caps: TokenCapSettings) -> None:
        self.caps = caps
        self.day = date.min
        self.used = 0
        self._by_trigger = Counter[str]()
        self._reserved: dict[str, _Reserved] = {}
        self._recent: dict[RunKind, deque[int]] = {}

    def begin_day(self, day: date) -> None:
        """Nothing of it is used yet; what is reserved belongs to the day its run began on."""
        self.day, self.used = day, 0
        self._by_trigger.clear()

    def reserved(self, trigger_id: str | None = None) -> int:
        """What runs of this day have reserved: all, or those of a trigger."""
        return sum(
            one.tokens
            for one in self._reserved.values()
            if one.day == self.day and trigger_id in (None, one.trigger_id)
        )

    def hold(
        self, kind: RunKind, trigger_id: str | None, now: datetime, zone: ZoneInfo
    ) -> BudgetHold | None:
        """Why such a run may not begin now; None when it may."""
        for held_for, cap, used, held in self._places(trigger_id):
            need = self._need(kind, cap, used, held)
            if used + held + need > cap:
                is_short = used + need <= cap
                until = now + LOOK_AGAIN if is_short else day_end(now, zone)
                return BudgetHold(held_for, cap, used, until, is_short)
        return None

    def reserve(self, run: str, kind: RunKind, trigger_id: str | None) -> int:
        """Note that a run begins; gives what it reserves."""
        places = self._places(trigger_id)
        needs = [self._need(kind, cap, used, held) for _, cap, used, held in places]
        tokens = min([max(self._recent.get(kind, ()), default=GUESS[kind[1]]), *needs])
        self._reserved[run] = _Reserved(self.day, trigger_id, tokens)
        return tokens

    def _places(self, trigger_id: str | None) -> list[tuple[HeldFor, int, int, int]]:
        """What caps the run of a trigger, or of none: the cap, what is used, what reserved."""
        caps = self.caps
        places: list[tuple[HeldFor, int, int, int]] = []
        if caps.daily_tokens is not None:
            places.append(("day", caps.daily_tokens, self.used, self.reserved()))
        if caps.per_trigger_daily_tokens is not None and trigger_id is not None:
            used, held = self._by_trigger[trigger_id], self.reserved(trigger_id)
            places.append(("trigger", caps.per_trigger_daily_tokens, used, held))
        return places

    def _need(self, kind: RunKind, cap: int, used: int, held: int) -> int:
        """What such a run reserves under a cap: the most that its like has used lately.

        Of what not even an empty day has room for, one run has the day to itself. Of a kind that
        never was, one may begin where anything is left, with no other of its kind beside it.
        """
        if recent := self._recent.get(kind):
            return min(max(recent), cap)
        return max(1, min(GUESS[kind[1]], cap - used - held))

    def grow(self, run: str, tokens: int) -> None:
        """A run under way has used so much already."""
        held = self._reserved.get(run)
        if held is not None and tokens > held.tokens:
            self._reserved[run] = _Reserved(held.day, held.trigger_id, tokens)

    def settle(self, run: str) -> None:
        """A run is over: nothing is reserved for it any more."""
        self._reserved.pop(run, None)

    def count(self, trigger_id: str | None, tokens: int) -> None:
        """So much was used by a run of this day."""
        self.used += tokens
        if trigger_id is not None:
            self._by_trigger[trigger_id] += tokens

    def learn(self, kind: RunKind, tokens: int) -> None:
        """What a run has really used; an estimate teaches nothing."""
        self._recent.setdefault(kind, deque(maxlen=RECENT)).append(tokens)
