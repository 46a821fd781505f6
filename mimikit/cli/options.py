"""Option types: durations, past times, numbers, and the timing of triggers."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields
from datetime import MAXYEAR, UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self, TypeAlias, get_args
from zoneinfo import ZoneInfo

import click
from pydantic import ValidationError

from mimikit.cli import client
from mimikit.errors import BadInput
from mimikit.language.time_vocabulary import fold, interval_at
from mimikit.protocol import triggers
from mimikit.protocol.models import Notify
from mimikit.protocol.records import bad_record
from mimikit.state import ReadOnlyState
from mimikit.tools import requests
from mimikit.tools.requests import TriggerFields
from mimikit.triggers import conditions, patterns, schedule

_DAY = re.compile(r"(today|yesterday)(?:\s+(?:at\s+)?(\d{1,2}):(\d\d))?")
_MONTH = re.compile(r"(\d{4})-(\d\d)")
_MAX_AGE_S = 100 * 366 * 86400
_FIELD = re.compile(r"^(when|cron|timezone): ")


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `10m`, `1h30m`, `2 days` or `45`; BadInput for anything else, and zero."""
    plain = fold(text).strip()
    plain = f"{plain}s" if plain.isdecimal() else plain
    interval = interval_at("span", plain, 0)
    if interval is None or interval.end < len(plain) or not interval.seconds:
        raise BadInput(f"expected a duration such as 90s, 10m, 2h or 1d, got {text[:40]!r}")
    return interval.seconds


def parse_past(text: str, now: datetime, zone: tzinfo) -> datetime:
    """A past time, in UTC, from a date, a month, a time or an age such as `7d`; else BadInput."""
    with contextlib.suppress(BadInput, ValueError, OverflowError):
        parsed = _past_time(" ".join(text.lower().split()), now, zone)
        if parsed is not None and 1 < parsed.year < MAXYEAR:
            return parsed.astimezone(UTC)
    raise BadInput(
        "expected a day or time such as 2026-01-28, 2026-01-28T09:30, yesterday or 7d, "
        f"got {text[:40]!r}"
    )


def _past_time(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    if month := _MONTH.fullmatch(text):
        return datetime(int(month[1]), int(month[2]), 1, tzinfo=zone)
    if named := _DAY.fullmatch(text):
        day = now.astimezone(zone).date() - timedelta(days=named[1] == "yesterday")
        return datetime.combine(day, time(int(named[2] or 0), int(named[3] or 0)), zone)
    with contextlib.suppress(ValueError):
        parsed = datetime.fromisoformat(text.upper())
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=zone)
    if text.isdigit():
        return None
    seconds = parse_duration(text.removesuffix(" ago"))
    return now - timedelta(seconds=seconds) if seconds <= _MAX_AGE_S else None


def duration(text: str) -> float:
    """A type of options, in seconds."""
    try:
        return parse_duration(text)
    except BadInput as error:
        raise click.BadParameter(str(error)) from None


def duration_or_none(text: str) -> float:
    return 0.0 if text.strip() in ("0", "0s", "none") else duration(text)


def profile(name: str) -> str:
    """A type of options: the name that is stored."""
    stored = {"assistant": "standard", "expert": "specialist", "background": "deferred"}
    return stored.get(name, name)


class NumberRange(click.IntRange):
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            expected = f"a number from {self.min} to {self.max}"
            self.fail(f"expected {expected}, got {str(value).strip()!r}", param, ctx)


class WordOption(click.Choice[str]):
    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        return f"expected one of {', '.join(self.choices)}; got {str(value)!r}"


PORT = NumberRange(0, 65535)


def check_length(text: str, most: int, expected: str) -> None:
    text.encode()  # UnicodeError: refused in one line
    if not text or len(text) > most:
        got = f"{len(text)} characters" if text else "only blanks"
        raise click.UsageError(f"expected {expected}, got {got}")


Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
_SCHEDULE_OPTIONS = [
    click.option(
        "--at", metavar="TIME", help='Once, then: 10m, "tomorrow 9:00", 2026-12-01T09:00.'
    ),
    click.option("--every", type=duration, help="Repeat at this interval: 10m, 1d."),
    click.option("--cron", metavar="LINE", help='By a cron line: "0 9 * * 1-5".'),
    click.option("--tz", metavar="ZONE", help="Time zone of --at and --cron."),
    click.option("--starting", metavar="TIME", help="The earliest time: Monday, 2026-12-01."),
    click.option("--until", metavar="TIME", help="The latest time, then it is removed: Friday."),
    click.option("--times", type=NumberRange(1, 1_000_000), help="Runs, then it is removed."),
    click.option(
        "--lateness",
        type=duration_or_none,
        metavar="DURATION",
        help="A time missed by more is not run.",
    ),
]
_OPTIONS = [
    *_SCHEDULE_OPTIONS,
    click.option(
        "--when-changed",
        metavar="GLOB",
        help="When such a file changes; relative to the workspace.",
    ),
    click.option("--when-exists", metavar="PATH", help="When such a file exists."),
    click.option(
        "--after",
        metavar="ID",
        multiple=True,
        help="Once, when that task or trigger's run is done; may be repeated.",
    ),
    click.option(
        "--cooldown",
        type=duration_or_none,
        metavar="DURATION",
        help="Minimum time between firings.",
    ),
]


notify_option = click.option(
    "--notify",
    type=WordOption(get_args(Notify)),
    help="Who is notified: teller, message, change (of the output), failure (only), none.",
)


def _together(options: Sequence[Decorator]) -> Decorator:
    return lambda command: functools.reduce(lambda it, one: one(it), reversed(options), command)


schedule_options, timing_options = _together(_SCHEDULE_OPTIONS), _together(_OPTIONS)


@dataclass(frozen=True, slots=True)
class TimingOptions:
    """The values of the timing options. Units: seconds."""

    at: str | None = None
    every: float | None = None
    cron: str | None = None
    tz: str | None = None
    starting: str | None = None
    until: str | None = None
    times: int | None = None
    lateness: float | None = None
    when_changed: str | None = None
    when_exists: str | None = None
    after: tuple[str, ...] = ()
    cooldown: float | None = None
    once: bool | None = None

    @classmethod
    def pop_from(cls, options: dict[str, Any]) -> Self:
        names = [field.name for field in fields(cls) if field.name in options]
        return cls(**{name: options.pop(name) for name in names})

    @property
    def clock(self) -> list[str]:
        return self._given("at", "every", "cron")

    @property
    def events(self) -> list[str]:
        return self._given("when_changed", "when_exists", "after")

    def _given(self, *names: str) -> list[str]:
        """Those of the options that have a value, as they are written."""
        given = (name for name in names if getattr(self, name) not in (None, ()))
        return [f"--{name.replace('_', '-')}" for name in given]

    def limits(self, now: datetime, zone: ZoneInfo) -> dict[str, object]:
        """The limits of the schedule, by field."""
        found: dict[str, object] = {}
        for name, text in (("starting", self.starting), ("until", self.until)):
            if text is not None:
                with errors_for(f"--{name}"):
                    is_end = name == "until"
                    found[name] = requests.limit_of(text, now=now, zone=zone, is_end=is_end)
        given = {"times": self.times, "lateness": self.lateness}
        return found | {name: value for name, value in given.items() if value is not None}

    def check(self, *, is_edit: bool = False) -> None:
        """Raise UsageError for options that exclude each other.

        is_edit: the options change an existing trigger.
        """
        clock, events = self.clock, self.events
        got = " and ".join([*clock[:1], *events])
        if len(clock) > 1:
            raise _expected(f"one of --at, --every, --cron; got {' and '.join(clock)}")
        if clock and events:
            raise _expected(
                f"a time or a condition, got {got}; make a second trigger with --after the first"
            )
        if self.tz is not None and ("--every" in clock or not (clock or is_edit)):
            raise _expected(f"--cron or --at with --tz, got {clock[0] if clock else 'neither'}")
        limits = (self.starting, self.until, self.times, self.lateness)
        if not (clock or is_edit) and any(limit is not None for limit in limits):
            limits_of = "--starting, --until, --times or --lateness"
            raise _expected(f"--at, --every or --cron with {limits_of}, got none of them")
        for name, given in (("--cooldown", self.cooldown is not None), ("--once", self.once)):
            if given and (clock or not (events or is_edit)):
                got = got or "none of them"
                raise _expected(f"--when-changed, --when-exists or --after with {name}, got {got}")
        if self.cooldown and (self.once or (self.after and self.once is None)):
            reason = "--once" if self.once else "--after, which runs once"
            raise _expected(f"{reason} or --cooldown, got both")

    def build(self, state: ReadOnlyState, now: datetime) -> TriggerFields:
        """The fields of the trigger; BadInput for an invalid value."""
        result = TriggerFields()
        zone = self.zone() if self.clock else None
        here = schedule.time_zone(zone) if zone else state.settings.zone
        if self.at is not None:
            with errors_for("--at"):
                result["schedule"] = requests.schedule_of(self.at, now=now, zone=here)
        elif self.clock:
            with errors_for(self.clock[0]):
                if self.cron is not None:
                    schedule.check_cron(self.cron)
                result["schedule"] = triggers.Schedule(
                    interval=self.every, cron=self.cron, timezone=zone
                )
        limits = self.limits(now, here)
        if "schedule" in result and limits:
            plan = result["schedule"]
            if plan.interval and {"starting", "until"} & limits.keys():
                limits["timezone"] = here.key
            result["schedule"] = plan.but(**limits)
            schedule.check(result["schedule"])
        parts: list[triggers.Condition] = []
        if self.when_changed is not None:
            with errors_for("--when-changed"):
                changed = triggers.FileChangedParameters(path=_pattern(self.when_changed))
                parts.append(triggers.FileChanged(params=changed))
        if self.when_exists is not None:
            with errors_for("--when-exists"):
                there = triggers.FileExistsParameters(path=_pattern(self.when_exists))
                parts.append(triggers.FileExists(params=there))
        ids = dict.fromkeys(client.find_task_or_trigger(state.files, given) for given in self.after)
        parts += [triggers.TaskDone(params=triggers.TaskParameters(taskId=id_)) for id_ in ids]
        if parts:
            result["condition"] = conditions.all_of(parts)
        if self.cooldown is not None:
            result["cooldown"] = self.cooldown
        if self.once is not None or self.after:
            result["once"] = self.once is not False
        return result

    def zone(self) -> str | None:
        with errors_for("--tz"):
            return schedule.time_zone(self.tz).key if self.tz is not None else None


def _expected(text: str) -> click.UsageError:
    return click.UsageError(f"expected {text}")


def _pattern(path: str) -> str:
    whole = str(Path(path).expanduser()) if path.startswith("~/") else path
    patterns.parse(whole)
    return whole


@contextlib.contextmanager
def errors_for(option: str) -> Generator[None]:
    """Make errors name the option instead of the field it sets."""
    try:
        yield
    except (BadInput, RuntimeError, ValidationError) as error:
        text = str(bad_record(error) if isinstance(error, ValidationError) else error)
        raise BadInput(f"{option}: {_FIELD.sub('', text)}") from None
