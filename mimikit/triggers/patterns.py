"""Parses and matches the paths and globs of conditions: `notes.txt`, `src/**/*.py`. Pure.

`*` and `?` stop at a slash, `**` matches folders. As in a shell, hidden names match only a part
that begins with a dot.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias, cast

from mimikit.errors import BadInput
from mimikit.protocol.paths import STATE_FOLDER

MAX_PATTERN = 500
MAX_DEPTH = 60
_MAX_STARS = 4

Seen: TypeAlias = dict[str, list[int]]
"""Path → [mtime in nanoseconds, size in bytes]."""

_MAX_ALTERNATIVES = 50
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
"""The innermost alternatives."""
_GLOB = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[(?:([!^]?+)(.[^]]*)\])?", re.DOTALL)
"""`[a-c]`, `[!a]`, or a literal `[`."""
_RANGE = re.compile("(.)-(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A checked pattern. Paths are relative to the workspace, or absolute."""

    text: str
    base: str
    """The folder of all matches; of a plain path the path itself."""
    parts: tuple[str, ...]
    """The glob after the base, by name; empty for a plain path."""

    @property
    def is_plain(self) -> bool:
        return not self.parts

    def matches(self, below: str) -> bool:
        """Whether a path relative to the base matches, also one that is the glob's own text."""
        return below == "/".join(self.parts) or len(self.parts) in self._reached(below)

    def enters(self, folder: str) -> bool:
        """Whether a folder, relative to the base, may contain matches."""
        if folder.count("/") >= MAX_DEPTH:
            return False
        if self.is_plain:
            return not any(name.startswith(".") for name in folder.split("/"))
        if "/".join(self.parts).startswith(f"{folder}/"):
            return True
        return any(place < len(self.parts) for place in self._reached(folder))

    def _reached(self, below: str) -> set[int]:
        """How many parts the names may match: all possibilities, in one pass."""
        reached = self._past_stars({0})
        for name in below.split("/"):
            following: set[int] = set()
            for place in reached - {len(self.parts)}:
                if self.parts[place] != "**":
                    if _regex(self.parts[place]).fullmatch(name):
                        following.add(place + 1)
                elif not name.startswith("."):
                    following |= {place, place + (place == len(self.parts) - 1)}
            reached = self._past_stars(following)
        return reached

    def _past_stars(self, places: set[int]) -> set[int]:
        """Add the places after each `**` that matches no folder; a last one matches some."""
        last = len(self.parts) - 1
        return places | {
            place + 1 for place in places if place < last and self.parts[place] == "**"
        }


def parse_all(text: str) -> list[Pattern]:
    """Parse a path or glob with alternatives: `src/*.{ts,tsx}`. Raises BadInput."""
    waiting, found = [text], list[Pattern]()
    while waiting:
        one = waiting.pop(0)
        if braces := _BRACES.search(one):
            start, end = braces.span()
            waiting = [f"{one[:start]}{it}{one[end:]}" for it in braces[1].split(",")] + waiting
        else:
            found.append(parse(one))
        if len(found) + len(waiting) > _MAX_ALTERNATIVES:
            raise _refusal(f"at most {_MAX_ALTERNATIVES} alternatives in braces", text)
    if len(found) > 1:
        found.append(Pattern(text, text, ()))  # a file that is called so
    return found


def list_all(text: str, list_files: Callable[[Pattern], Seen | None]) -> Seen | None:
    """The files of all alternatives of a path; None: too many."""
    alternatives, found = parse_all(text), Seen()
    for pattern in alternatives:
        files = list_files(pattern)
        if files is None:
            return None
        below = "" if len(alternatives) == 1 or pattern.is_plain else f"{pattern.base}/"
        found |= {f"{below}{name}": entry for name, entry in files.items()}
    return found


def as_before(files: Seen, known: Seen, names: Collection[str]) -> Seen:
    """The files, of which some names are as they were known."""
    kept = {name: entry for name, entry in files.items() if name not in names}
    return kept | {name: known[name] for name in names if name in known}


def as_listing(value: object) -> Seen | None:
    return cast("Seen", value) if isinstance(value, dict) else None


def changes(known: Seen, files: Seen) -> Seen:
    """The changed files with their present entries; of a deleted one the last known."""
    return {
        name: files.get(name) or known[name]
        for name in sorted(known.keys() | files.keys())
        if known.get(name) != files.get(name)
    }


def parse(text: str) -> Pattern:
    """Parse a path or glob.

    Raises:
        BadInput: it is empty, too long, contains `..`, or names the state folder.
    """
    if not text.strip() or len(text) > MAX_PATTERN or "\0" in text or "\n" in text:
        example = "a path or a glob, such as `src/**/*.py`"
        raise _refusal(f"{example}, of at most {MAX_PATTERN} characters", text)
    absolute = text.startswith("/")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    parts = [
        part
        for part, before in zip(parts, ["", *parts], strict=False)
        if part != "**" or before != "**"
    ]
    if ".." in parts:
        raise _refusal("a path without `..`", text)
    if not absolute and parts[:1] == [STATE_FOLDER]:
        instead = "which is never watched (wait for a task with `task_done`)"
        raise _refusal(f"a path outside of `{STATE_FOLDER}`, {instead}", text)
    if any("**" in part and part != "**" for part in parts):
        raise _refusal("`**` to stand alone between slashes", text)
    if any(part != "**" and part.count("*") > _MAX_STARS for part in parts):
        raise _refusal(f"at most {_MAX_STARS} `*` in a name", text)
    fixed = next((i for i, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    base = ("/" if absolute else "") + "/".join(parts[:fixed])
    for part in parts[fixed:]:
        for _, inside in _CLASS.findall(part):
            if any(first > last for first, last in _RANGE.findall(inside)):
                raise _refusal("a glob", text)
    return Pattern(text, base or ("/" if absolute else "."), tuple(parts[fixed:]))


def _refusal(expected: str, text: str) -> BadInput:
    return BadInput(f"expected {expected}, got {text[:60]!r}", field="path", code="bad_path")


@functools.lru_cache(maxsize=1000)
def _regex(part: str) -> re.Pattern[str]:
    hidden = "" if part.startswith(".") else r"(?!\.)"
    return re.compile(hidden + fnmatch.translate(_CLASS.sub(_for_fnmatch, part)))


def _for_fnmatch(match: re.Match[str]) -> str:
    """A bracket expression for `fnmatch`, which does not support `[^…]`."""
    if not match[2]:
        return "[[]"
    return f"[!{match[2]}]" if match[1] else match[0]
