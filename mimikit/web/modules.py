"""The modules that a page begins with, sent as one: each alone would cost a head, and pack badly.

They stay plain files that a browser could load one by one. Sent together, each is a function that
returns what it exports, in the order in which they need one another. Imports and exports have the
few forms our modules use, each at the beginning of a line; any other is an error, not a guess.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.{1,2}/[^"]+)";', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async function|function|class|const) (\w+))", re.MULTILINE)
_LIST = re.compile(r"^export \{([\w\s,]*)\};", re.MULTILINE)
_LATER = re.compile(r'\bimport\("(\.{1,2}/[^"]+)"\)')
_VENDORED = re.compile(r'\bfrom ?"(\.{1,2}/[^"]+)"')
"""In a file that is packed already."""
_OTHER = re.compile(r"^(?:import\b(?! *\()|export\b).*", re.MULTILINE)
_HELD = "$modules"
"""What each of them exports, by its path, to those in the bundle and those that come later."""
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


class PageModules:
    """The first module of a page and all it imports.

    Paths are relative to the folder of the page's files. Reads nothing but by `read`.
    """

    def __init__(self, first: str, read: Callable[[str], str], vendored: str) -> None:
        """`vendored`: what the paths of those begin with that are sent as they are."""
        self._first, self._read, self._vendored = first, read, vendored
        self._bundled: list[str] = []
        """Each after those that it imports."""
        self.others: list[str] = []
        """What they import that is vendored."""
        self._collect(first, ())

    def bundle(self) -> str:
        """All of them as one module: the first at its end, and the place of its map."""
        return "".join(f"{line}\n" for line, _ in self._lines())

    def source_map(self) -> str:
        """Which line of which file each line of the bundle is, for a browser's debugger."""
        mappings: list[str] = []
        at_source, at_line = 0, 0
        for _, origin in self._lines():
            if origin is None:
                mappings.append("")
                continue
            source, line = origin
            mappings.append(f"A{_vlq(source - at_source)}{_vlq(line - at_line)}A")
            at_source, at_line = origin
        sources = [_place(name, self._first) for name in self._bundled]
        return json.dumps(
            {"version": 3, "sources": sources, "names": [], "mappings": ";".join(mappings)}
        )

    def later(self, name: str) -> str:
        """A module that comes later, as it is but that it shares those that are there already."""
        text = self._imported(name, self._read(name), set(self._bundled) - {self._first})
        held = f'import {{ {_HELD} }} from "{_place(self._first, name)}"; '
        return held + text if _HELD in text else text

    def _collect(self, name: str, importers: Sequence[str]) -> None:
        if name in importers:
            raise ValueError(f"{name}: modules that import one another can not be one")
        if name in self._bundled or name in self.others:
            return
        text, is_own = self._read(name), not name.startswith(self._vendored)
        places = (
            [found[1] for found in _IMPORT.findall(text)] if is_own else _VENDORED.findall(text)
        )
        for place in places:
            self._collect(_joined(name, place), (*importers, name))
        (self._bundled if is_own else self.others).append(name)

    def _lines(self) -> Iterator[tuple[str, tuple[int, int] | None]]:
        """Each line of the bundle, and its file (by number) and line (from 0)."""
        for number, name in enumerate(self.others):
            yield f'import * as $other{number} from "{_place(name, self._first)}";', None
        held = (f'"{name}": $other{number}' for number, name in enumerate(self.others))
        yield f"export const {_HELD} = {{{', '.join(held)}}};", None
        for number, name in enumerate(self._bundled):
            text, exported = self._as_function(name)
            lines = text.removesuffix("\n").split("\n")
            if name == self._first:
                yield from ((line, (number, at)) for at, line in enumerate(lines))
                break
            yield f'{_HELD}["{name}"] = (() => {{', None
            yield from ((line, (number, at)) for at, line in enumerate(lines))
            yield f"return {{ {', '.join(exported)} }}; }})();", None
        yield f"//# sourceMappingURL={posixpath.basename(self._first)}.map", None

    def _as_function(self, name: str) -> tuple[str, list[str]]:
        """A module's text between the braces of a function, line by line, and what it exports."""
        text = self._imported(name, self._read(name), {*self._bundled, *self.others})
        text = _LATER.sub(
            lambda found: f'import("{_place(_joined(name, found[1]), self._first)}")', text
        )
        exported = _EXPORT.findall(text)
        for names in _LIST.findall(text):
            exported += re.findall(r"\w+", names)
        text = _LIST.sub(lambda found: "\n" * found[0].count("\n"), _EXPORT.sub("", text))
        if other := _OTHER.search(text):
            raise ValueError(f"{name}: expected a form that can be bundled, got {other[0]!r}")
        if "import.meta" in text and posixpath.dirname(name) != posixpath.dirname(self._first):
            raise ValueError(f"{name}: expected no address of its own, it is sent from elsewhere")
        return text, exported

    def _imported(self, name: str, text: str, held: set[str]) -> str:
        """A module's text that takes its imports from those held."""

        def taken(found: re.Match[str]) -> str:
            path = _joined(name, found[2])
            if path not in held:
                return found[0]
            names = re.sub(r"\s+as\s+", ": ", found[1])
            return f'const {{{names}}} = {_HELD}["{path}"];'

        return _IMPORT.sub(taken, text)


def _joined(name: str, place: str) -> str:
    """The path of what a module names by a place relative to its own."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), place))


def _place(name: str, importer: str) -> str:
    """How a module names another."""
    place = posixpath.relpath(name, posixpath.dirname(importer))
    return place if place.startswith(".") else f"./{place}"


def _vlq(value: int) -> str:
    """A number as the mappings of a source map have it: base 64, five bits a digit, sign last."""
    rest = (abs(value) << 1) | (value < 0)
    digits = ""
    while True:
        rest, digit = rest >> 5, rest & 31
        digits += _DIGITS[digit | (32 if rest else 0)]
        if not rest:
            return digits
