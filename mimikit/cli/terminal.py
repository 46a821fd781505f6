"""Formatting for the terminal: colours, tables, wrapping, durations and times.

Text from a model, a program or a file is printed without control characters.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import click

from mimikit.language.plain_text import as_json as json_text
from mimikit.language.plain_text import plain as safe

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

    from mimikit.protocol.models import EngineStatus
    from mimikit.state import State
    from mimikit.views.diffs import DiffView

_COLOURS = {
    **dict.fromkeys(("running",), "cyan"),
    **dict.fromkeys(("done", "ok", "active"), "green"),
    **dict.fromkeys(("failed", "broken", "down", "blocked"), "red"),
    **dict.fromkeys(("asking", "canceled", "paused", "warning"), "yellow"),
}
_HEADING_WIDTH = 11
_COLUMN_GAP = 2
_ANY_WIDTH = 10_000
_GENERATED_ID = re.compile(r"[a-z]+-[0-9a-z]{26}")
SHORT_ID = 8
Fact: TypeAlias = "tuple[str, str | None]"
"""A heading and a text; without a text it is not shown."""


def short_id(id_: str) -> str:
    """The end of a generated id, which commands accept; any other id unchanged."""
    return id_[-SHORT_ID:] if _GENERATED_ID.fullmatch(id_) else id_


def out(text: str = "") -> None:
    click.echo(text)


def note(text: str) -> None:
    """Print to stderr, so that a pipe gets the answer alone."""
    click.echo(dim(text), err=True)


def print_json(value: object) -> None:
    click.echo(json_text(value, indent=2))


def bold(text: str) -> str:
    return click.style(text, bold=True)


def dim(text: str) -> str:
    return click.style(text, dim=True)


def state(word: str) -> str:
    return coloured(word, word)


def coloured(text: str, like: str) -> str:
    return click.style(text, fg=_COLOURS[like]) if like in _COLOURS else text


def one_line(text: str) -> str:
    """Untrusted text on one line, safe for a terminal."""
    return " ".join(safe(text).split())


def block(text: str) -> str:
    """Untrusted text with its lines, safe for a terminal."""
    return safe(text.expandtabs(4)).rstrip()


def heading(text: str) -> str:
    return dim(f"{text} ".ljust(_HEADING_WIDTH))


def facts(pairs: Iterable[Fact]) -> Iterator[str]:
    return (f"  {heading(head)}{one_line(text)}" for head, text in pairs if text)


def section(title: str, lines: str | Iterable[str]) -> Iterator[str]:
    if isinstance(lines, str):
        lines = [textwrap.indent(block(lines), "  ")] if lines.strip() else []
    if lines := [*lines]:
        yield from ("", bold(title), *lines)


def plural(number: int, one: str) -> str:
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def sentence(text: str) -> str:
    """A message as a sentence; an id at its beginning is not capitalised."""
    begin = text[:1] if "-" in text.partition(" ")[0] else text[:1].upper()
    return f"{begin}{text[1:].rstrip('.')}."


# ---- columns


def width(text: str) -> int:
    import wcwidth  # a large module, which page and consumer do not need

    return wcwidth.width(text)


def clip(text: str, columns: int) -> str:
    """A text cut to the width, with `…`; a cut text loses its colours."""
    import wcwidth

    if wcwidth.width(text) <= columns:
        return text
    return wcwidth.clip(click.unstyle(text), 0, columns - 1).rstrip() + "…"


def terminal_width() -> int | None:
    """Columns of the terminal; None when the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], empty: str, *, flexible: int = -1
) -> list[str]:
    """Aligned columns, or `empty`; the flexible column is cut to fit the terminal."""
    if not rows:
        return [empty]
    lines = [[dim(heading) for heading in headings], *map(list, rows)]
    if (columns := terminal_width()) is not None:
        widths = _widths(lines)
        left = columns - sum(widths) + widths[flexible]
        for line in lines[1:]:
            line[flexible] = clip(line[flexible], max(left, 12))
    return aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    import wcwidth

    widths = _widths(lines)
    return ["".join(map(wcwidth.ljust, line, widths)).rstrip() for line in lines]


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, column)) + _COLUMN_GAP for column in zip(*lines, strict=True)]


def hanging(lead: str, text: str) -> list[str]:
    import wcwidth

    indent = width(lead)
    columns = (terminal_width() or _ANY_WIDTH) - indent
    lines = wcwidth.wrap(text, max(columns, 20), break_on_hyphens=False) or [""]
    return [lead + lines[0], *(" " * indent + line for line in lines[1:])]


def clipped(lead: str, text: str) -> str:
    return f"{lead}{clip(text, (terminal_width() or _ANY_WIDTH) - width(lead))}".rstrip()


# ---- streams


_ERASE = "\r\x1b[K"


class StreamPrinter:
    """Prints streamed texts and whole ones, each starting on a new line."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._at_line_start = True
        self._unfinished = False
        self.streamed = ""
        self.printed_anything = False

    def stream(self, text: str) -> None:
        self.streamed += text
        self.write(safe(text))

    def message(self, text: str, shown: str) -> None:
        """Print a whole text as `shown`, unless it was just streamed."""
        was_streamed = safe(text).strip() == safe(self.streamed).strip()
        self.end()
        if not was_streamed:
            self.write(shown)
            self.end()

    def unfinished(self, text: str) -> None:
        """Show a line that is still rewritten, in a terminal alone."""
        if self._at_line_start and not self._quiet and sys.stdout.isatty():
            self._unfinished = True
            click.echo(f"{_ERASE}{text[: shutil.get_terminal_size().columns - 1]}", nl=False)

    def line(self, text: str) -> None:
        self.end()
        self.write(text + "\n")

    def withdraw(self) -> None:
        """What was streamed is not the answer; it stays on the screen, marked."""
        if self.streamed:
            self.line(dim("(answering once more)"))

    def end(self) -> None:
        if not self._at_line_start:
            self.write("\n")
        self.streamed = ""

    def write(self, text: str, *, err: bool = False) -> None:
        if text and not self._quiet:
            if self._unfinished:
                click.echo(_ERASE, nl=False)
                self._unfinished = False
            click.echo(text, nl=False, err=err)
            self.printed_anything = True
            self._at_line_start = text.endswith("\n")


# ---- times

_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def span(seconds: float) -> str:
    """A duration in its one or two largest units: `1 hour 5 minutes`, `0.4 seconds`."""
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
    """A duration for tables: `8s`, `3m 20s`, `2h 5m`, `4d`."""
    if seconds < 0.1:
        return "0s"
    return re.sub(r" (second|minute|hour|day)s?", lambda match: match[1][0], span(seconds))


def ago(when: datetime, now: datetime) -> str:
    """Relative time in its largest unit: `5 minutes ago`, `in 2 hours`."""
    seconds = (now - when).total_seconds()
    if -1 < seconds < 1:
        return "just now"
    greatest = " ".join(span(float(int(abs(seconds)))).split()[:2])
    return f"{greatest} ago" if seconds > 0 else f"in {greatest}"


def moment(when: datetime, now: datetime, zone: tzinfo) -> str:
    """Local time, with the date unless it is today: `14:05:09`, `2026-01-28 14:05`."""
    local = when.astimezone(zone)
    if local.date() == now.astimezone(zone).date():
        return f"{local:%H:%M:%S}"
    return f"{local:%Y-%m-%d %H:%M}"


# ---- views


@dataclass(frozen=True)
class RenderContext:
    """The time, and data of other views that a renderer needs."""

    now: datetime
    zone: ZoneInfo
    engines: Mapping[str, EngineStatus] | None = None
    diff: DiffView | None = None
    empty: str = ""

    @classmethod
    def of(cls, state: State, **more: Any) -> Self:
        return cls(state.clock.now(), state.settings.zone, **more)

    def moment(self, when: datetime) -> str:
        return moment(when, self.now, self.zone)

    def ago(self, when: datetime | None, otherwise: str = "-") -> str:
        return ago(when, self.now) if when else otherwise

    def when(self, when: datetime) -> str:
        return f"{self.moment(when)}, {self.ago(when)}"


# ---- engines


def engine_lines(engines: Mapping[str, EngineStatus]) -> dict[str, bool]:
    """Lines such as `answering, planning: codex` → whether their work waits."""
    from mimikit.engines.registry import CODE, CODE_ENGINES
    from mimikit.language import phrases

    names_of: dict[str, list[str]] = {}
    if all(engine.engine in CODE_ENGINES for engine in engines.values()):
        return {phrases.say("no_model_connected", "en"): False}
    for name, engine in engines.items():
        text = "no model" if engine.engine == CODE else engine.text
        if name != "command":
            names_of.setdefault(text, []).append(phrases.role(name))
    waiting = {engine.text for engine in engines.values() if engine.state == "waiting"}
    return {f"{', '.join(names)}: {text}": text in waiting for text, names in names_of.items()}


def waiting_reason(engine: EngineStatus, now: datetime, zone: ZoneInfo) -> str:
    from mimikit.engines.registry import problem_words

    why = one_line(problem_words(engine, now, zone)["en"])
    return f"{why}: {one_line(engine.reason)}" if engine.reason else why


def waiting_lines(
    engines: Mapping[str, EngineStatus], now: datetime, zone: ZoneInfo
) -> Iterator[str]:
    """For each engine that something waits for: why, what waits, and what to do."""
    from mimikit.engines.registry import problem_words

    for engine in engines.values():
        what = waiting_words(engine.messages, engine.tasks)
        if engine.state == "waiting" and what:
            why = one_line(problem_words(engine, now, zone)["en"])
            retry = f"`mimikit engine try {engine.engine}` tries it now"
            yield f"{why}; {what}; {retry}; `mimikit engine use none` goes on without it"


def waiting_words(messages: int, tasks: int) -> str:
    """`1 message and 2 tasks wait`; empty when there are none."""
    counts = ((messages, "message"), (tasks, "task"))
    what = " and ".join(plural(number, one) for number, one in counts if number)
    return f"{what} {'waits' if messages + tasks == 1 else 'wait'}" if what else ""
