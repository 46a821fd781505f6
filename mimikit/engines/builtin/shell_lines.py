"""Extracts a shell command from a sentence. Pure.

What follows "run" is parsed in this order:

1. In backticks, a fence, quotes or 「」 the inside is the command; only polite words and a time may
   surround it. Straight quotes after a colon count only if nothing follows them.
2. After a colon (`run: …`) the rest is the command, unchanged.
3. Otherwise (`run ls -la`) it must look like a command (`looks_like_command`). When in doubt it is
   prose, as a wrong guess would be executed; the user can add the colon.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mimikit.language.phrases import HAN
from mimikit.language.time_vocabulary import filled, fold
from mimikit.language.times import FoundTime, time_at, time_at_end

IsProgram = Callable[[str], bool]
Doubt = Literal["command_or_time", "several"]

_FILE = Path(__file__).with_name("sentences.toml")
SENTENCES = tomllib.loads(_FILE.read_text(encoding="utf-8"))
QUOTES = {"「": "」", "『": "』", "“": "”", "‘": "’", '"': '"', "'": "'"}
MARKS = {"`": "`", **QUOTES}
"""Closing mark by opening mark."""
BARE_LIMIT = 2000
_TAIL = 120
"""Characters at the end that are searched for a time and polite words."""


def one_line_pattern(text: str) -> str:
    """Converts a multi-line pattern of `sentences.toml` to a regular expression."""
    lines = re.sub(r"\n +", "", text).strip("\n")
    return lines.replace("\n", "|").replace(" ", r"\s++")


def compiled(text: str) -> re.Pattern[str]:
    return re.compile(filled(one_line_pattern(text), _PARTS), re.IGNORECASE)


_MARKED = [rf"{sign}[^{closing}\n\0]{{1,300}}+{closing}" for sign, closing in MARKS.items()]
_PARTS = {name: one_line_pattern(part) for name, part in SENTENCES["parts"].items()}
_PARTS["quoted"] = "|".join(_MARKED)
SIGNS = {name: compiled(text) for name, text in SENTENCES["signs"].items()}


@dataclass(frozen=True, slots=True)
class FoldedText:
    """A text, and its normalized form with the same positions for pattern matching."""

    raw: str
    plain: str

    @classmethod
    def of(cls, text: str) -> FoldedText:
        raw = text.strip()
        return cls(raw, fold(raw))

    def cut(self, start: int, end: int | None = None) -> FoldedText:
        part = self.raw[start:end]
        inner = part.strip()
        begin = start + len(part) - len(part.lstrip())
        return FoldedText(inner, self.plain[begin : begin + len(inner)])

    def after(self, sign: str) -> FoldedText:
        return self.cut(len(sign)) if self.plain.startswith(sign) else self


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A command, and the time after it."""

    text: str
    time: FoundTime | None = None


def read_command(
    rest: FoldedText, is_program: IsProgram, *, asked: bool = False
) -> ShellLine | Doubt | None:
    """Parses what follows the verb; None if it is no command."""
    colon = rest.plain.startswith(":")
    body = rest.after(":")
    if not body.raw or "\0" in body.raw:
        return None
    marked = read_marked(body, colon=colon)
    if marked is not None:
        return marked
    if not colon:
        return read_bare(body, is_program, asked=asked)
    # All of the rest, unless it looks like more than a command.
    if SIGNS["another_sentence"].search(body.plain):
        return "several"
    found = time_at_end(body.plain, SIGNS["after_time"], _TAIL)
    if found is not None and not found.adverb and not found.vague:
        return "command_or_time"
    return ShellLine(body.raw)


def read_marked(body: FoldedText, *, colon: bool = False) -> ShellLine | None:
    """A command in quotes, backticks or a fence, with at most polite words around it."""
    if body.raw.startswith("`"):
        span = _backticked(body.raw)
    else:
        closing = QUOTES.get(body.raw[0])
        end = body.raw.find(closing, 1) if closing else -1
        span = (body.raw[1:end], end + 1) if end > 0 else None
    if span is None or not span[0].strip():
        return None
    inside, after = span[0].strip(), body.cut(span[1]).plain
    if len(after) > _TAIL or (colon and after and body.raw[0] in "\"'"):
        return None
    if SIGNS["courtesy_after"].match(after):
        return ShellLine(inside)
    found = time_at(after, len(after) - len(after.lstrip(" ,")))
    is_time = found is not None and SIGNS["after_time"].match(after, found.end)
    return ShellLine(inside, found) if is_time else None


def read_bare(
    body: FoldedText, is_program: IsProgram, *, asked: bool = False
) -> ShellLine | Doubt | None:
    """A command without quotes, if it looks like one."""
    if "\n" in body.raw or len(body.raw) > BARE_LIMIT:
        return None
    if asked:
        body = without_end(body, SIGNS["asked_at_end"])
    found = time_at_end(body.plain, SIGNS["after_time"], _TAIL)
    if found is not None:
        body = body.cut(0, found.start)
        body = body.cut(0, len(body.plain.rstrip(" ,")))
    for _ in range(3):
        body = without_end(body, SIGNS["courtesy_at_end"])
    named = SIGNS["the_command"].match(body.plain)
    if named:
        body = body.cut(named.start(1), named.end(1))
    if not looks_like_command(body.raw, is_program, asked=asked):
        return None
    if found is not None and (found.adverb or found.vague):
        return "command_or_time"
    return ShellLine(body.raw, found)


def looks_like_command(text: str, is_program: IsProgram, *, asked: bool = False) -> bool:
    """Whether the words after "run" are a command rather than prose.

    One line that begins with a program, a path or a shell builtin. No unquoted word may be typical
    of prose ("the", "and", "tomorrow"), Chinese, or end like a clause. A program that is also an
    everyday word ("time", "find"), and any question ("can you run …?"), needs shell syntax besides:
    an option, a path, an operator, quotes.
    """
    first = _FIRST_WORD.match(text)
    if first is None or "\n" in text or len(text) > BARE_LIMIT:
        return False
    word = first["program"]
    if not (word in _BUILTINS or word.startswith(_PATH_STARTS) or is_program(word)):
        return False
    if word in _PROSE_PROGRAMS:
        return not asked
    rest = _QUOTED.sub(" $ ", text[first.end() :])
    if set(rest) & set("\"'`") or any(_is_prose(token) for token in rest.split()):
        return False
    needs_syntax = asked or (word in _EVERYDAY_PROGRAMS and rest.strip() != "")
    return not needs_syntax or _SHELL_SYNTAX.search(rest) is not None


def without_end(view: FoldedText, pattern: re.Pattern[str]) -> FoldedText:
    match = pattern.search(view.plain, max(0, len(view.plain) - _TAIL))
    return view.cut(0, match.start()) if match else view


def _backticked(raw: str) -> tuple[str, int] | None:
    """The text inside the code span or fence at the start, and its end."""
    ticks = len(raw) - len(raw.lstrip("`"))
    opened = _FENCE_HEAD.match(raw, ticks) if ticks >= 3 else None
    if opened is not None:
        closing = re.compile(rf"^[ \t]*+`{{{ticks},}}+[ \t]*+$", re.MULTILINE)
        start = opened.end()
    else:
        closing = re.compile(rf"(?<!`)`{{{ticks}}}(?!`)")
        start = ticks
    close = closing.search(raw, start)
    return (raw[start : close.start()], close.end()) if close else None


def _is_prose(token: str) -> bool:
    if token.startswith("-"):
        return False
    if token.casefold().strip(",.;:!?") in _PROSE_WORDS or token.endswith(
        (",", "?", "!", "？", "！")
    ):
        return True
    return HAN.search(token) is not None and not set("/.") & set(token)


_FENCE_HEAD = re.compile(r"[A-Za-z0-9+-]*+[ \t]*+\n")

_FIRST_WORD = re.compile(
    r"(?>(?:[A-Za-z_][A-Za-z0-9_]*+=[^\s;|&<>]*+\s++)*)(?P<program>[A-Za-z0-9_./~+@-]{1,255}+)"
    r"(?=[\s;|&<>]|\Z)"
)
_QUOTED = re.compile(r"\"[^\"]*+\"|'[^']*+'|`[^`]*+`")
_SHELL_SYNTAX = re.compile(
    r"(?:^|\s)(?:--?[A-Za-z0-9]|\+%)|[|<>;&$*=~{}\[\]\\/]|(?:^|\s)\.(?:\s|$)|\w\.\w{1,8}(?:\s|$)"
)
_PATH_STARTS = ("/", "./", "../", "~/")
_BUILTINS = frozenset({"cd", "ulimit", "umask"})
_PROSE_PROGRAMS = frozenset({"echo", "printf", "say", "espeak", "notify-send"})
"""Programs whose arguments are prose."""
_EVERYDAY_PROGRAMS = frozenset(SENTENCES["words"]["everyday_programs"].split())
_PROSE_WORDS = frozenset(SENTENCES["words"]["talk"].split())
