"""What options take: spans, times of the past, numbers, and when a trigger fires.

Complaints read "expected X, got Y".
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Generator
from dataclasses import dataclass, fields
from datetime import MAXYEAR, UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Any, Self, get_args

import click
from pydantic import ValidationError

from mimikit.cli import client
from mimikit.errors import BadInput
from mimikit.protocol import triggers
from mimikit.protocol.models import Notify
from mimikit.protocol.records import bad_record
from mimikit.state import ReadOnlyState
from mimikit.tools import requests
from mimikit.tools.requests import TriggerFields
from mimikit.triggers import conditions, patterns, schedule

_UNITS = {
    word: seconds
    for seconds, words in {
        1: "s sec secs second seconds",
        60: "m min mins minute minutes",
        3600: "h hr hrs hour hours",
        86400: "d day days",
        604800: "w week weeks",
    }.items()
    for word in words.split()
}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([a-z]+)[\s,]*")
_PLAIN_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")
_DAY = re.compile(r"(today|yesterday)(?:\s+(?:at\s+)?(\d{1,2}):(\d\d))?")
_MONTH = re.compile(r"(\d{4})-(\d\d)")
_MOST_BACK_S = 100 * 366 * 86400
_FIELD = re.compile(r"^(when|cron|timezone): ")


def parse_duration(text: str) -> float:
    """Seconds of a span such as `90s`, `10m`, `1h30m`, `2 days`; a bare number means seconds.

    Raises BadInput when it is none, or no time at all.
    """
    folded = text.strip().lower()
    parts = _PART.findall(folded)
    if _PLAIN_NUMBER.fullmatch(folded):
        parts = [(folded, "s")]
    elif _PART.sub("", folded) or any(unit not in _UNITS for _, unit in parts):
        parts = []
    seconds = sum(float(count) * _UNITS[unit] for count, unit in parts)
    if not seconds:
        raise BadInput(f"expected a duration such as 90s, 10m, 2h or 1d, got {text[:40]!r}")
    return seconds


def parse_past(text: str, now: datetime, zone: tzinfo) -> datetime:
    """The time that is meant, in UTC: a day or month means its beginning, a span so long ago.

    Raises BadInput when it is none.
    """
    with contextlib.suppress(BadInput, ValueError, OverflowError):
        found = _time_meant(" ".join(text.lower().split()), now, zone)
        if found is not None and 1 < found.year < MAXYEAR:
            return found.astimezone(UTC)
    raise BadInput(
        "expected a day or time such as 2026-01-28, 2026-01-28T09:30, yesterday or 7d, "
        f"got {text[:40]!r}"
    )


def _time_meant(text: str, now: datetime, zone: tzinfo) -> datetime | None:
    """None, BadInput, ValueError or OverflowError when the folded text means no time."""
    if month := _MONTH.fullmatch(text):
        return datetime(int(month[1]), int(month[2]), 1, tzinfo=zone)
    if named := _DAY.fullmatch(text):
        day = now.astimezone(zone).date() - timedelta(days=named[1] == "yesterday")
        return datetime.combine(day, time(int(named[2] or 0), int(named[3] or 0)), zone)
    with contextlib.suppress(ValueError):
        found = datetime.fromisoformat(text.upper())
        return found if found.tzinfo else found.replace(tzinfo=zone)
    if text.isdigit():
        return None  # a bare number of seconds is nobody's way to say when
    seconds = parse_duration(text.removesuffix(" ago"))
    return now - timedelta(seconds=seconds) if seconds <= _MOST_BACK_S else None


class Duration(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] - click 8.2
    """A span of time such as `10m`, in seconds."""

    name = "DURATION"

    def __init__(self, *, or_none_at_all: bool = False) -> None:
        self._takes_zero = or_none_at_all

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, int | float):
            return float(value)
        if self._takes_zero and str(value).strip() in ("0", "0s", "none"):
            return 0.0
        try:
            return parse_duration(str(value))
        except BadInput as error:
            self.fail(str(error), param, ctx)


class NumberRange(click.IntRange):
    """A whole number between two others, both included."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            expected = f"a number from {self.min} to {self.max}"
            self.fail(f"expected {expected}, got {str(value).strip()!r}", param, ctx)


class WordOption(click.Choice[str]):
    """One of some words."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        return f"expected one of {', '.join(self.choices)}; got {str(value)!r}"


PORT = NumberRange(0, 65535)


def check_length(text: str, most: int, expected: str) -> None:
    """Refuse a text that is empty or too long; `expected` names what was to be given."""
    if not text or len(text) > most:
        got = f"{len(text)} characters" if text else "only blanks"
        raise click.UsageError(f"expected {expected}, got {got}")


_CLOCK_OPTIONS = [
    click.option(
        "--at", metavar="TIME", help='Once, then: 10m, "tomorrow 9:00", 2026-12-01T09:00.'
    ),
    click.option("--every", type=Duration(), help="Again and again at this interval: 10m, 1d."),
    click.option("--cron", metavar="LINE", help='By a cron line: "0 9 * * 1-5".'),
    click.option("--tz", metavar="ZONE", help="The zone --at and --cron are meant in."),
]
_OPTIONS = [
    *_CLOCK_OPTIONS,
    click.option(
        "--when-changed",
        metavar="GLOB",
        help="When such a file changes; relative to the workspace.",
    ),
    click.option("--when-exists", metavar="PATH", help="When such a file exists."),
    click.option("--when-hook", metavar="NAME", help="When something comes by that webhook."),
    click.option(
        "--after",
        metavar="ID",
        multiple=True,
        help="Once, when that task or trigger's run is done; give it again for more.",
    ),
    click.option(
        "--cooldown",
        type=Duration(or_none_at_all=True),
        help="After a firing, not again for so long.",
    ),
]


notify_option = click.option(
    "--notify",
    type=WordOption(get_args(Notify)),
    help="How it is told: teller (each run, in mimikit's words), message, change (of the output), "
    "failure (only), none.",
)
"""Left out: what is usual for its kind."""


def clock_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command those that name a time."""
    for option in reversed(_CLOCK_OPTIONS):
        command = option(command)
    return command


def timing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all of them; `TimingOptions` takes their values."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class TimingOptions:
    """What the options say. Units: seconds."""

    at: str | None = None
    every: float | None = None
    cron: str | None = None
    tz: str | None = None
    when_changed: str | None = None
    when_exists: str | None = None
    when_hook: str | None = None
    after: tuple[str, ...] = ()
    cooldown: float | None = None
    once: bool | None = None

    @classmethod
    def take(cls, options: dict[str, Any]) -> Self:
        """Those among a command's options, which lose them."""
        given = [field.name for field in fields(cls) if field.name in options]
        return cls(**{name: options.pop(name) for name in given})

    @property
    def clock(self) -> list[str]:
        given = {"--at": self.at, "--every": self.every, "--cron": self.cron}
        return [name for name, value in given.items() if value is not None]

    @property
    def events(self) -> list[str]:
        given = {
            "--when-changed": self.when_changed,
            "--when-exists": self.when_exists,
            "--when-hook": self.when_hook,
            "--after": self.after or None,
        }
        return [name for name, value in given.items() if value is not None]

    def check(self, *, is_edit: bool = False) -> None:
        """Refuse what does not go together.

        is_edit: what is left out is as the trigger has it.

        Raises:
            UsageError: the line says what goes instead.
        """
        clock, events = self.clock, self.events
        if len(clock) > 1:
            raise click.UsageError(
                f"expected one of --at, --every, --cron; got {' and '.join(clock)}"
            )
        if clock and events:
            raise click.UsageError(
                f"expected a time or a condition, got {clock[0]} and {' and '.join(events)}; "
                "make a second trigger with --after the first"
            )
        if self.tz is not None and not is_edit and not set(clock) & {"--at", "--cron"}:
            raise click.UsageError("expected --cron or --at with --tz, got neither")
        if self.tz is not None and "--every" in clock:
            raise click.UsageError("expected --cron or --at with --tz, got --every")
        for name, given in (("--cooldown", self.cooldown is not None), ("--once", self.once)):
            if given and (clock or not (events or is_edit)):
                raise click.UsageError(
                    f"expected --when-changed, --when-exists, --when-hook or --after with {name}, "
                    f"got {' and '.join(clock) or 'none of them'}"
                )
        if self.cooldown and (self.once or (self.after and self.once is None)):
            reason = "--once" if self.once else "--after, which runs once"
            raise click.UsageError(f"expected {reason} or --cooldown, got both")

    def build(self, state: ReadOnlyState, now: datetime) -> TriggerFields:
        """The fields of a trigger that follow, by their names in the model.

        Raises:
            BadInput: a value can not be used.
        """
        made = TriggerFields()
        zone = self.zone() if self.clock else None
        if self.at is not None:
            with blame("--at"):
                here = requests.zone_named(zone) if zone else state.settings.zone
                made["schedule"] = requests.schedule_of(self.at, now=now, zone=here)
        elif self.clock:
            with blame(self.clock[0]):
                if self.cron is not None:
                    schedule.check_cron(self.cron)
                made["schedule"] = triggers.Schedule(
                    interval=self.every, cron=self.cron, timezone=zone
                )
        parts: list[triggers.Condition] = []
        if self.when_changed is not None:
            with blame("--when-changed"):
                changed = triggers.FileChangedParameters(path=_pattern(self.when_changed))
                parts.append(triggers.FileChanged(params=changed))
        if self.when_exists is not None:
            with blame("--when-exists"):
                there = triggers.FileExistsParameters(path=_pattern(self.when_exists))
                parts.append(triggers.FileExists(params=there))
        if self.when_hook is not None:
            with blame("--when-hook"):
                hook = triggers.WebhookParameters(name=self.when_hook)
                parts.append(triggers.WebhookCondition(params=hook))
        ids = dict.fromkeys(client.find_either(state.files, given) for given in self.after)
        parts += [triggers.TaskDone(params=triggers.TaskParameters(taskId=id_)) for id_ in ids]
        if parts:
            made["condition"] = conditions.all_of(parts)
        if self.cooldown is not None:
            made["cooldown"] = self.cooldown
        if self.once is not None or self.after:
            made["once"] = self.once is not False
        return made

    def zone(self) -> str | None:
        """The zone that was named, if any; BadInput when there is none of that name."""
        with blame("--tz"):
            return requests.zone_named(self.tz).key if self.tz is not None else None


def _pattern(path: str) -> str:
    """A path with its `~` replaced; a relative one stays so, and is the workspace's."""
    whole = str(Path(path).expanduser()) if path.startswith("~") else path
    patterns.parse(whole)
    return whole


@contextlib.contextmanager
def blame(option: str) -> Generator[None]:
    """Complaints from inside name the option, not the field that it sets."""
    try:
        yield
    except (BadInput, RuntimeError, ValidationError) as error:
        text = str(bad_record(error) if isinstance(error, ValidationError) else error)
        raise BadInput(f"{option}: {_FIELD.sub('', text)}") from None
