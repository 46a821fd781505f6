"""Which files a condition means: `notes.txt`, `src/**/*.py`. Pure: it reads no disk.

`*` and `?` stop at a slash, `**` goes through folders. As in a shell, names that begin with a dot
are meant only by a part that begins with one.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass
from typing import TypeAlias

from mimikit.errors import BadInput
from mimikit.protocol.paths import STATE_FOLDER

MAX_PATTERN = 500
MOST_DEPTH = 60
"""Folders below a pattern's base, one in another; what each costs grows with its depth."""
_MOST_STARS = 4

Seen: TypeAlias = dict[str, list[int]]
"""Path → [time of its last change in nanoseconds, size in bytes]."""

_GLOB = re.compile(r"[*?\[]")
_CLASS = re.compile(r"\[(?:([!^]?+)(.[^]]*)\])?", re.DOTALL)
"""`[a-c]`, `[!a]`, or a `[` that is never closed."""
_RANGE = re.compile("(.)-(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A checked pattern. Paths are relative to the workspace, or absolute."""

    text: str
    base: str
    """The folder all matches lie in; for a plain path the path itself."""
    parts: tuple[str, ...]
    """What follows the base; empty for a plain path."""

    @property
    def is_plain(self) -> bool:
        """Whether it names one path."""
        return not self.parts

    def matches(self, below: str) -> bool:
        """Whether a path below the base is meant."""
        return len(self.parts) in self._reached(below)

    def enters(self, folder: str) -> bool:
        """Whether matches may lie in a folder below the base; nothing is looked for far below."""
        if folder.count("/") >= MOST_DEPTH:
            return False
        if self.is_plain:
            return not any(name.startswith(".") for name in folder.split("/"))
        return any(place < len(self.parts) for place in self._reached(folder))

    def _reached(self, below: str) -> set[int]:
        """How many parts may be used up once these names are: all ways at once, in one pass."""
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
        """With the places after each `**`, which may stand for no folder at all; never the last."""
        last = len(self.parts) - 1
        return places | {
            place + 1 for place in places if place < last and self.parts[place] == "**"
        }


def parse(text: str) -> Pattern:
    """A path or glob as it stands in a condition.

    Raises:
        BadInput: it is empty, too long, climbs out of where it begins, or means the state folder.
    """
    if not text.strip() or len(text) > MAX_PATTERN or "\0" in text or "\n" in text:
        raise BadInput(
            f"expected a path or a glob of at most {MAX_PATTERN} characters, such as "
            f"`src/**/*.py`; got {text[:60]!r}",
            field="path",
            code="bad_pattern",
        )
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
        raise BadInput(
            f"expected a path outside of `{STATE_FOLDER}`, got {text[:60]!r}: the state folder is "
            "never watched; wait for a task with `task_done`",
            field="path",
            code="bad_pattern",
        )
    if any("**" in part and part != "**" for part in parts):
        raise _refusal("`**` to stand alone between slashes", text)
    if any(part != "**" and part.count("*") > _MOST_STARS for part in parts):
        raise _refusal(f"at most {_MOST_STARS} `*` in a name", text)
    fixed = next((i for i, part in enumerate(parts) if _GLOB.search(part)), len(parts))
    base = ("/" if absolute else "") + "/".join(parts[:fixed])
    for part in parts[fixed:]:
        for _, inside in _CLASS.findall(part):
            if any(first > last for first, last in _RANGE.findall(inside)):
                raise _refusal("a glob", text)
    return Pattern(text, base or ("/" if absolute else "."), tuple(parts[fixed:]))


def _refusal(expected: str, text: str) -> BadInput:
    return BadInput(f"expected {expected}, got {text[:60]!r}", field="path", code="bad_pattern")


@functools.lru_cache(maxsize=1000)
def _regex(part: str) -> re.Pattern[str]:
    """One name of a glob as a regular expression; no name takes long."""
    hidden = "" if part.startswith(".") else r"(?!\.)"
    return re.compile(hidden + fnmatch.translate(_CLASS.sub(_for_fnmatch, part)))


def _for_fnmatch(found: re.Match[str]) -> str:
    """What stands in brackets as `fnmatch` knows it; here a caret denies as well."""
    if not found[2]:
        return "[[]"
    return f"[!{found[2]}]" if found[1] else found[0]
