"""How the engines are that turned a run away: one trouble for all runs of an engine, and its end.

While it lasts one run at a time tries the engine, after a rest that doubles from 5 s to 5 min, or
at the time that a limit is known to end. The others wait without being started.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from mimikit.clock import Clock
from mimikit.config import system_zone
from mimikit.engines.base import EngineAbsence, Outcome, ProbedEngine
from mimikit.language.phrases import MONTHS
from mimikit.protocol.models import EngineStatus, EngineWant, Role
from mimikit.protocol.watch import BoundedThread

REST_S, MOST_REST_S = 5.0, 300.0
LOOK_EVERY_S = 2.0
_CONNECT_S = 10.0
_SAYS_NOTHING = frozenset({"killed", "canceled", "timeout"})
"""How a run ends of which nothing follows for its engine."""
_AGAIN_AT = re.compile(
    r"try again at (?:(?P<month>[a-z]{3}) (?P<day>\d{1,2})[a-z]{0,2}, (?P<year>\d{4}) )?"
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d) ?(?P<half>[ap]m)",
    re.IGNORECASE,
)
_PIECE = (
    r"(\d+(?:\.\d+)?) ?"
    r"(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_AGAIN_IN = re.compile(rf"try again in ((?:{_PIECE}[ ,]*(?:and )?)+)", re.IGNORECASE)
_UNIT_S = {"ms": 0.001, "mil": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_at(said: str, now: datetime, zone: tzinfo | None = None) -> datetime | None:
    """When an engine says to try again; `zone` is the one its clock times are in, or the system's.

    None where it does not say.
    """
    if found := _AGAIN_IN.search(said):
        seconds = 0.0
        for number, unit in re.findall(_PIECE, found[1].lower()):
            unit_s = _UNIT_S.get(unit[:3]) or _UNIT_S.get(unit) or _UNIT_S[unit[0]]
            seconds += float(number) * unit_s
        return now + timedelta(seconds=min(seconds, 366 * 86400))
    found = _AGAIN_AT.search(said)
    if found is None:
        return None
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    local = now.astimezone(zone or ZoneInfo(system_zone())).replace(second=0, microsecond=0)
    try:
        if found["year"]:
            month = MONTHS[found["month"].lower()]
            local = local.replace(year=int(found["year"]), month=month, day=int(found["day"]))
        at = local.replace(hour=hour, minute=int(found["minute"]))
    except (KeyError, ValueError):
        return None
    if not found["year"] and at < now - timedelta(minutes=1):
        at += timedelta(days=1)
    return at.astimezone(now.tzinfo)


def accepts(url: str) -> bool:
    """Whether somebody takes connections there, or at the proxy on the way; nothing is asked."""
    try:
        place = urlsplit(proxy_to(url) or url)
        port = place.port or (443 if place.scheme == "https" else 80)
        socket.create_connection((place.hostname or "", port), _CONNECT_S).close()
    except (OSError, ValueError):
        return False
    return True


def proxy_to(url: str) -> str | None:
    """The proxy that the environment has for an address; none for this machine."""
    from urllib import request  # it brings much with it, and is used here alone

    place, proxies = urlsplit(url), request.getproxies_environment()
    host = place.hostname or ""
    proxy = proxies.get(place.scheme) or proxies.get("all")
    is_direct = host in ("localhost", "127.0.0.1", "::1") or bool(request.proxy_bypass(host))
    if not proxy or is_direct:
        return None
    return proxy if "//" in proxy else f"http://{proxy}"


@dataclass(slots=True)
class _Trouble:
    """Of one engine; of this machine's own (`unready`) as one role."""

    want: EngineWant
    reason: str
    until: datetime | None
    due_at: datetime
    due_s: float
    """The same by the steady clock: whichever comes first, as the other may be set."""
    times: int = 0
    """How often it was tried by itself in vain."""
    is_asked_for: bool = False
    """Somebody wants it tried now: when that is in vain, the rest is as it was."""
    trying: str | None = None
    """The run that tries it now."""
    answered: bool = False
    """It has answered since: others may go. It is over once a run is done."""


class EngineHealth:
    """The troubles of all engines of this process. Safe between threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._troubles: dict[tuple[str, Role | None], _Trouble] = {}

    def restore(self, known: EngineStatus) -> None:
        """Go on from how it was kept: tried at the end of a known limit, else with what comes."""
        now = self._clock.now()
        due_at = known.until if known.until and known.until > now else now
        due_s = self._clock.monotonic() + (due_at - now).total_seconds()
        trouble = _Trouble(known.want or "unready", known.reason or "", known.until, due_at, due_s)
        self._troubles[known.engine, None] = trouble

    def reason(self, engine: str, role: Role) -> EngineAbsence | None:
        """Why no run may begin now: it rests, or another run tries it."""
        with self._lock:
            return self._reason(engine, role)

    def begin(self, engine: str, role: Role, run_id: str) -> EngineAbsence | None:
        """Enter a run; or why it may not begin. Who enters while there is trouble tries it."""
        with self._lock:
            if (reason := self._reason(engine, role)) is not None:
                return reason
            for trouble in self._of(engine, role):
                if not trouble.answered:
                    trouble.trying = run_id
            return None

    def answered(self, engine: str, run_id: str) -> None:
        """A run was answered, if it is not done yet: others need not wait for its end."""
        with self._lock:
            for (name, _), trouble in self._troubles.items():
                if name == engine and trouble.trying == run_id:
                    trouble.answered, trouble.trying = True, None

    def left(self, engine: str, run_id: str) -> None:
        """A run is over, however it ended: it tries no longer."""
        with self._lock:
            for (name, _), trouble in self._troubles.items():
                if name == engine and trouble.trying == run_id:
                    trouble.trying = None

    def ended(self, engine: str, role: Role, run_id: str, outcome: Outcome) -> None:
        """Learn from how a run went. One that began before the trouble says nothing new of it."""
        want = outcome.want or _want_of(outcome)
        with self._lock:
            if want is not None:
                self._turned_away(
                    engine, role if want == "unready" else None, run_id, outcome, want
                )
            elif outcome.failure_reason not in _SAYS_NOTHING:
                for key in _keys(engine, role):
                    trouble = self._troubles.get(key)
                    if trouble and (trouble.answered or trouble.trying == run_id):
                        del self._troubles[key]

    def wake(self, engine: str | None = None, *, is_mended: bool = False) -> list[str]:
        """Have the next run try it, or all, however long they were to rest; gives their names.

        is_mended: nobody asked for it, it only looks so.
        """
        now, now_s = self._clock.now(), self._clock.monotonic()
        with self._lock:
            found = [key for key in self._troubles if engine in (None, key[0])]
            for trouble in (self._troubles[key] for key in found):
                trouble.due_at, trouble.due_s, trouble.until = now, now_s, None
                trouble.is_asked_for = not is_mended
        return sorted({name for name, _ in found})

    def forget(self, engine: str) -> None:
        """It is another one now."""
        with self._lock:
            for key in [key for key in self._troubles if key[0] == engine]:
                del self._troubles[key]

    def status(self, engine: str) -> EngineStatus | None:
        """How it is, of one that has not answered since."""
        with self._lock:
            for (name, _), trouble in self._troubles.items():
                if name == engine and not trouble.answered:
                    return EngineStatus(
                        engine=engine,
                        state="waiting",
                        want=trouble.want,
                        reason=trouble.reason,
                        until=trouble.until,
                        next_try_at=trouble.due_at,
                    )
        return None

    def is_doubted(self, engine: str) -> bool:
        """Whether no run of it is done since it turned one away."""
        with self._lock:
            return any(name == engine for name, _ in self._troubles)

    def is_tried(self, engine: str, role: Role) -> bool:
        """Whether only one run may begin now, to try it."""
        with self._lock:
            return any(not trouble.answered for trouble in self._of(engine, role))

    # ---- with the lock

    def _of(self, engine: str, role: Role) -> list[_Trouble]:
        return [self._troubles[key] for key in _keys(engine, role) if key in self._troubles]

    def _reason(self, engine: str, role: Role) -> EngineAbsence | None:
        now, now_s = self._clock.now(), self._clock.monotonic()
        for trouble in self._of(engine, role):
            is_due = now >= trouble.due_at or now_s >= trouble.due_s
            if not trouble.answered and (trouble.trying or not is_due):
                return EngineAbsence(trouble.reason, trouble.want, trouble.until)
        return None

    def _turned_away(
        self, engine: str, role: Role | None, run_id: str, outcome: Outcome, want: EngineWant
    ) -> None:
        now = self._clock.now()
        until = outcome.retry_at if outcome.retry_at and outcome.retry_at > now else None
        known = self._troubles.get((engine, role))
        if known and not known.answered and known.trying != run_id:
            return  # it began before that
        times = known.times if known else 0
        rest_s = min(REST_S * 2 ** min(times, 10), MOST_REST_S)
        due_at = until or now + timedelta(seconds=rest_s)
        self._troubles[engine, role] = _Trouble(
            want,
            outcome.error or "",
            until,
            due_at,
            self._clock.monotonic() + (due_at - now).total_seconds(),
            times=times + (0 if known and known.is_asked_for else 1),
        )


class EngineLook:
    """Looks, on threads of its own, whether what an engine lacks is there again."""

    def __init__(self, engine: ProbedEngine, clock: Clock) -> None:
        self._engine, self._clock = engine, clock
        self._of: datetime | None = None
        self._want: EngineWant | None = None
        self._next_s = 0.0
        self._was_ill = self._is_well = self._has_said = False
        self._thread: BoundedThread | None = None

    def shows(self, want: EngineWant, of: datetime | None) -> bool:
        """Whether it is there now and was not before, of the trouble that rests until `of`.

        The run that was turned away has seen that it was not: it may be back before the first
        look. What looks well though the engine turns runs away is no sign of anything: once that
        was said, only a look that finds it gone counts, or another trouble.
        """
        if want != self._want:
            self._want, self._has_said = want, False
        if of != self._of:
            self._of, self._was_ill, self._is_well = of, not self._has_said, False
        if self._is_well:
            self._is_well, self._was_ill, self._has_said = False, False, True
            return True
        is_at_it = self._thread is not None and self._thread.is_alive()
        if not is_at_it and self._clock.monotonic() >= self._next_s:
            self._next_s = self._clock.monotonic() + LOOK_EVERY_S
            self._thread = BoundedThread(lambda: self._look(want, of))
            with contextlib.suppress(RuntimeError, MemoryError):  # no thread: the next look tries
                self._thread.start()
        return False

    def _look(self, want: EngineWant, of: datetime | None) -> None:
        is_mended = self._engine.is_mended(want)
        if of == self._of:
            self._is_well = is_mended and self._was_ill
            if not is_mended:
                self._was_ill, self._has_said = True, False


def _keys(engine: str, role: Role) -> list[tuple[str, Role | None]]:
    return [(engine, None), (engine, role)]


def _want_of(outcome: Outcome) -> EngineWant | None:
    if outcome.failure_reason == "rate_limited":
        return "limited"
    return "unready" if outcome.failure_reason == "engine_unavailable" else None
