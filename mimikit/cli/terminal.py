"""How things look in a terminal: tables, states, times and colours.

Colour is left out by click where the output is no terminal, and everywhere when NO_COLOR is set.
Text that came from a model, a program or a file is printed without its control characters.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import click

from mimikit.language.plain_text import as_json as json_text
from mimikit.language.plain_text import plain as safe

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from mimikit.protocol.models import EngineStatus, Record
    from mimikit.state import State
    from mimikit.views.base import View
    from mimikit.views.diffs import DiffView

_COLOURS = {
    word: colour
    for colour, words in {
        "cyan": "running",
        "green": "done ok active",
        "red": "failed broken down blocked",
        "yellow": "asking canceled paused warning",
    }.items()
    for word in words.split()
}
_HEAD = 11
_GAP = 2


def out(text: str = "") -> None:
    click.echo(text)


def note(text: str) -> None:
    """A line beside the answer: it goes to stderr, so that a pipe gets the answer alone."""
    click.echo(dim(text), err=True)


def print_json(value: object) -> None:
    click.echo(json_text(value, indent=2))


def show(answer: View | Record, lines: Iterable[str], *, as_json: bool) -> None:
    """Print JSON for programs, or lines for people, which are made only then."""
    if as_json:
        print_json(answer.to_dict())
    else:
        for line in lines:
            out(line)


def bold(text: str) -> str:
    return click.style(text, bold=True)


def dim(text: str) -> str:
    return click.style(text, dim=True)


def state(word: str) -> str:
    """A state in its colour; the word is there without colours, too."""
    return coloured(word, word)


def coloured(text: str, like: str) -> str:
    colour = _COLOURS.get(like)
    return click.style(text, fg=colour) if colour else text


def one_line(text: str) -> str:
    """Text of any origin on one line, safe for a terminal."""
    return " ".join(safe(text).split())


def block(text: str) -> str:
    """Text of any origin, its lines kept, safe for a terminal."""
    return safe(text.expandtabs(4)).rstrip()


def heading(text: str) -> str:
    """What stands before a fact, as wide as all of them."""
    return dim(f"{text} ".ljust(_HEAD))


def facts(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Heading and text, of any origin, as lines."""
    return (f"  {heading(head)}{one_line(text)}" for head, text in found)


def plural(number: int, one: str) -> str:
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def indented(text: str) -> str:
    return textwrap.indent(block(text), "  ")


def width(text: str) -> int:
    """Columns it takes."""
    import wcwidth  # here and below: page and consumer align nothing, and its tables are large

    return wcwidth.width(text)


def clip(text: str, columns: int) -> str:
    """A text cut to so many columns, with `…` where it was cut; what is cut loses its colours."""
    import wcwidth

    if wcwidth.width(text) <= columns:
        return text
    return wcwidth.clip(click.unstyle(text), 0, columns - 1).rstrip() + "…"


def room() -> int | None:
    """Columns of the terminal; None when the output is none, and nothing need be cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], empty: str, *, flexible: int = -1
) -> list[str]:
    """Lines of aligned columns; the flexible one (the last, unless told) is cut to the terminal.

    empty: what is said when there is no row.
    """
    if not rows:
        return [empty]
    lines = [[dim(heading) for heading in headings], *map(list, rows)]
    columns = room()
    if columns is not None:
        widths = [max(map(width, column)) + _GAP for column in zip(*lines, strict=True)]
        left = columns - sum(widths) + widths[flexible]
        for line in lines[1:]:
            line[flexible] = clip(line[flexible], max(left, 12))
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    import wcwidth

    widths = [max(map(width, column)) + _GAP for column in zip(*lines, strict=True)]
    return ["".join(map(wcwidth.ljust, line, widths)).rstrip() for line in lines]


def sentence(text: str) -> str:
    """A message of ours as a sentence; an id at its beginning stays as it is."""
    begin = text[:1] if "-" in text.partition(" ")[0] else text[:1].upper()
    return f"{begin}{text[1:].rstrip('.')}."


def hanging(lead: str, text: str) -> list[str]:
    """A text behind its lead, wrapped to the terminal under its own beginning."""
    import wcwidth

    lead_width = width(lead)
    columns = (room() or 10_000) - lead_width
    lines = wcwidth.wrap(text, max(columns, 20), break_on_hyphens=False) or [""]
    return [lead + lines[0], *(" " * lead_width + line for line in lines[1:])]


class StreamPrinter:
    """Prints a text as it comes, and others between such texts, each on lines of its own."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._at_line_start = True
        self.streamed = ""
        self.printed_anything = False

    def stream(self, text: str) -> None:
        """A part of a text that comes."""
        self.streamed += text
        self.write(safe(text))

    def message(self, text: str, shown: str) -> None:
        """Print a whole text as it is shown, unless just this was streamed."""
        is_there = safe(text).strip() == safe(self.streamed).strip()
        self.end()
        if not is_there:
            self.write(shown)
            self.end()

    def line(self, text: str) -> None:
        self.end()
        self.write(text + "\n")

    def end(self) -> None:
        """No more comes of what was streamed."""
        if not self._at_line_start:
            self.write("\n")
        self.streamed = ""

    def write(self, text: str, *, err: bool = False) -> None:
        if text and not self._quiet:
            click.echo(text, nl=False, err=err)
            self.printed_anything = True
            self._at_line_start = text.endswith("\n")


# ---- times

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def span(seconds: float) -> str:
    """A span in words, of its one or two greatest units: `1 hour 5 minutes`, `0.4 seconds`."""
    seconds = max(seconds, 0.0)
    if seconds < 0.1:
        return "under 0.1 seconds"
    if seconds < 1 or (seconds < 10 and round(seconds, 1) % 1):
        return f"{seconds:.1f} seconds"
    rest = round(seconds)
    parts: list[str] = []
    for size, name in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
        if len(parts) == 2 or (parts and not count):
            break
    return " ".join(parts)


def short_span(seconds: float) -> str:
    """A span in few characters, for tables: `8s`, `3m 20s`, `2h 5m`, `4d`."""
    if seconds < 0.1:
        return "0s"
    return re.sub(r" (second|minute|hour|day)s?", lambda match: match[1][0], span(seconds))


def ago(when: datetime, now: datetime) -> str:
    """How long before or after `now`, by its greatest unit: `5 minutes ago`, `in 2 hours`."""
    seconds = (now - when).total_seconds()
    if -1 < seconds < 1:
        return "just now"
    greatest = " ".join(span(float(int(abs(seconds)))).split()[:2])
    return f"{greatest} ago" if seconds > 0 else f"in {greatest}"


def moment(when: datetime, now: datetime, zone: tzinfo) -> str:
    """A moment in local time, with its day unless that is today: `14:05:09`, `2026-01-28 14:05`."""
    local = when.astimezone(zone)
    if local.date() == now.astimezone(zone).date():
        return f"{local:%H:%M:%S}"
    return f"{local:%Y-%m-%d %H:%M}"


# ---- views


def section(heading: str, lines: str | Iterable[str]) -> Iterator[str]:
    """Lines under a heading; nothing when there are none."""
    if isinstance(lines, str):
        lines = [indented(lines)] if lines.strip() else []
    if lines := [*lines]:
        yield from ("", bold(heading), *lines)


@dataclass(frozen=True)
class RenderContext:
    """What stands around a view: the time, and what another view says of it."""

    now: datetime
    zone: ZoneInfo
    minds: Mapping[str, EngineStatus] | None = None
    """Engines by name, for what waits for one."""
    diff: DiffView | None = None
    """What a task changed."""
    empty: str = ""
    """What an empty list says instead of its own words."""

    @classmethod
    def of(cls, state: State, **more: Any) -> Self:
        return cls(state.clock.now(), state.settings.zone, **more)

    def moment(self, when: datetime) -> str:
        return moment(when, self.now, self.zone)

    def ago(self, when: datetime | None, otherwise: str = "-") -> str:
        return ago(when, self.now) if when else otherwise

    def both(self, when: datetime) -> str:
        return f"{self.moment(when)}, {self.ago(when)}"


# ---- engines

_NAMES = {"teller": "Teller", "planner": "Planner"}


class EngineLine(NamedTuple):
    """The roles and profiles that one engine serves, in words; whether their work waits for it."""

    text: str
    waits: bool


def engine_lines(engines: Mapping[str, EngineStatus]) -> list[EngineLine]:
    """Role or profile → engine, as lines: those with the same engine and reason stand together."""
    served: dict[str, list[str]] = {}
    for name, engine in engines.items():
        served.setdefault(engine.text, []).append(_NAMES.get(name, name))
    waiting = {engine.text for engine in engines.values() if engine.state == "waiting"}
    return [
        EngineLine(f"{', '.join(names)}: {text}", text in waiting) for text, names in served.items()
    ]


_TOLD_BY_KIND = ("limited", "unreachable", "broken")
"""What the reason would add to these is for the log; that of others says what mends it."""


def awaited(engine: EngineStatus, now: datetime, zone: ZoneInfo) -> str:
    """Why an engine is waited for, in a few words."""
    from mimikit.engines.registry import want_words

    by_kind = engine.want in _TOLD_BY_KIND or not engine.reason
    return one_line(want_words(engine, now, zone)["en"] if by_kind else engine.reason or "")


def awaited_lines(
    minds: Mapping[str, EngineStatus], now: datetime, zone: ZoneInfo
) -> Iterator[str]:
    """The minds that something waits for: why, what waits, and what may be done."""
    from mimikit.engines.registry import want_words

    for mind in minds.values():
        if mind.state != "waiting" or not mind.messages + mind.tasks:
            continue
        why = want_words(mind, now, zone)["en"]
        counts = ((mind.messages, "message"), (mind.tasks, "task"))
        what = " and ".join(plural(n, one) for n, one in counts if n)
        wait = "wait" if mind.messages + mind.tasks > 1 else "waits"
        tries = f"`mimikit engine try {mind.engine}` tries it now"
        without = "`mimikit engine use builtin` goes on without it"
        yield f"{one_line(why)}; {what} {wait}; {tries}; {without}"
