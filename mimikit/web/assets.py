"""The page's own files: each once packed for the wire, below a path that is a hash of them all.

A browser may so keep every file for ever, and modules may import one another by relative paths.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from flask import Blueprint, Response, request

from mimikit.errors import NotFound
from mimikit.web.api.routing import site
from mimikit.web.modules import PageModules

try:
    import brotli
except ImportError:  # where there is no wheel, gzip serves
    brotli = None

Coding = Literal["br", "gzip"]
CODINGS: Sequence[Coding] = ("br", "gzip") if brotli is not None else ("gzip",)
"""In the order of what we would rather send."""
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_PACKED = (".png", ".ico", ".woff2")
_LEAST_BYTES = 600
"""What is shorter fits into a packet as it is."""
_MAIN, _MAP, _VENDORED, _STYLES = "js/main.js", "js/main.js.map", "vendor/", "css/all.css"
_COMMENT = re.compile(rb"^[ \t]*(?:/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*)[ \t]*$", re.MULTILINE)
"""One that has its lines to itself."""
_FIRST_STYLES = ("tokens", "base", "layout", "chat", "dock", "panel", "prose")
"""What the others build on, in this order."""


def accepted_coding() -> Coding | None:
    """How the answer to this request may be packed; None: not at all."""
    offered = request.accept_encodings
    return next((one for one in CODINGS if offered[one] > 0), None)


def pack(data: bytes, coding: Coding, *, is_kept: bool) -> bytes:
    """`is_kept`: it is packed once and sent often, so all effort is worth it."""
    if coding == "br" and brotli is not None:
        quality = 10 if is_kept else 4  # 11: a fiftieth less, in three times the time
        return cast("bytes", brotli.compress(data, quality=quality))  # pyright: ignore[reportUnknownMemberType]
    return gzip.compress(data, 9 if is_kept else 5, mtime=0)


def pack_answer(response: Response) -> Response:
    """Pack an answer's text, where its client takes that and it is worth it."""
    if response.is_streamed or "Content-Encoding" in response.headers:
        return response
    kind = response.mimetype or ""
    if not (kind.startswith("text/") or kind in ("application/json", "image/svg+xml")):
        return response
    response.headers.add("Vary", "Accept-Encoding")
    coding, data = accepted_coding(), response.get_data()
    if coding is not None and len(data) >= _LEAST_BYTES:
        response.set_data(pack(data, coding, is_kept=False))
        response.headers["Content-Encoding"] = coding
    return response


def without_comments(source: bytes) -> bytes:
    """A module or style for its machine: each line keeps its number, those of comments are empty.

    They are a good third of the page's weight. No text of ours has a line that looks like one.
    """
    return _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), source)


@dataclass(frozen=True)
class _Tree:
    """All files as they stood at one time."""

    signature: object = None
    hash: str = ""
    paths: dict[str, Path] = field(default_factory=dict[str, Path])
    packed: dict[tuple[str, Coding], bytes | None] = field(
        default_factory=dict[tuple[str, Coding], "bytes | None"]
    )
    """Each as it is sent; None where packing makes it no smaller."""

    @functools.cached_property
    def modules(self) -> PageModules:
        """What the page begins with."""
        return PageModules(_MAIN, self.module, _VENDORED)

    def module(self, name: str) -> str:
        """A module's text, for its machine; NotFound where there is none."""
        path = self.paths.get(name)
        if path is None:
            raise NotFound(f"the page has no file {name[:80]!r}")
        data = path.read_bytes()
        return (data if name.startswith(_VENDORED) else without_comments(data)).decode()


class Assets:
    """The files of the page below one folder. Safe between threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._tree = _Tree()

    def tree_hash(self) -> str:
        """The hash of every file's name and content; looked up anew when one changed.

        Served are files whose type is known; no hidden ones, none behind links.
        """
        found: dict[str, Path] = {}
        for path in sorted(self._root.rglob("*")):
            name = path.relative_to(self._root)
            is_hidden = any(part.startswith(".") for part in name.parts)
            if path.suffix in TYPES and path.is_file() and not (path.is_symlink() or is_hidden):
                found[name.as_posix()] = path
        signature = [(name, path.stat().st_mtime_ns) for name, path in found.items()]
        with self._lock:
            if signature != self._tree.signature:
                digest = hashlib.sha256()
                for name, path in found.items():
                    data = path.read_bytes()
                    digest.update(f"{name}\x00{len(data)}\x00".encode() + data)
                self._tree = _Tree(signature, digest.hexdigest()[:16], found)
            return self._tree.hash

    def read(self, tree_hash: str, name: str) -> tuple[bytes, str]:
        """A file's bytes and type; NotFound for what is none, or when one has changed since.

        All style sheets are one, and the modules that the page begins with: each head and each
        packing of its own would outweigh it.
        """
        tree = self._current(tree_hash)
        if name == _STYLES:
            parts = (without_comments(tree.paths[one].read_bytes()) for one in self._styles())
            return b"".join(parts), TYPES[".css"]
        if name == _MAP:
            return tree.modules.source_map().encode(), TYPES[".json"]
        if name.endswith(".js") and name.startswith("js/"):
            text = tree.modules.bundle() if name == _MAIN else tree.modules.later(name)
            return text.encode(), TYPES[".js"]
        path = tree.paths.get(name)
        if path is None:
            raise NotFound(f"the page has no file {name[:80]!r}")
        return path.read_bytes(), TYPES[path.suffix]

    def read_packed(self, tree_hash: str, name: str, coding: Coding) -> bytes | None:
        """A file's bytes packed; None where that makes it no smaller. Raises as `read` does."""
        packed = self._current(tree_hash).packed
        if (name, coding) not in packed:  # to make the modules one takes longer than to send them
            data, _ = self.read(tree_hash, name)
            is_worth_it = len(data) >= _LEAST_BYTES and not name.endswith(_PACKED)
            packed[name, coding] = pack(data, coding, is_kept=True) if is_worth_it else None
        return packed[name, coding]

    def _current(self, tree_hash: str) -> _Tree:
        if tree_hash != self._tree.hash and tree_hash != self.tree_hash():
            raise NotFound("the page is newer than this; load it again")
        return self._tree

    def index(self) -> bytes:
        """index.html with the path of its files, and `{{modules}}`, filled in."""
        base = f"/assets/{self.tree_hash()}"
        text = (self._root / "index.html").read_text(encoding="utf-8")
        names = self._tree.modules.others
        modules = [f'<link rel="modulepreload" href="{base}/{name}" />' for name in names]
        text = text.replace("{{modules}}", "\n    ".join(modules))
        return text.replace("{{assets}}", base).encode()

    def _styles(self) -> list[str]:
        """Every style sheet: what the others stand on first."""
        first = [f"css/{name}.css" for name in _FIRST_STYLES]
        names = [name for name in self._tree.paths if re.fullmatch(r"css/[^/]+\.css", name)]
        return [
            *(one for one in first if one in names),
            *(one for one in names if one not in first),
        ]


def page_routes(assets: Assets) -> Blueprint:
    """The routes that need no login."""
    routes = Blueprint("page", __name__)

    @routes.get("/")
    def index() -> Response:
        if page := site().guard.own_page():
            return Response(status=307, headers={"Location": page, "Cache-Control": "no-store"})
        response = Response(assets.index(), mimetype="text/html")
        response.headers["Cache-Control"] = "no-cache"
        return response

    @routes.get("/sw.js")
    def worker() -> Response:
        """At an address that stays, so that a new one takes the place of the old."""
        data, type_ = assets.read(assets.tree_hash(), "sw.js")
        response = Response(data, content_type=type_)
        response.headers["Cache-Control"] = "no-cache"
        return response

    @routes.get("/assets/<tree_hash>/<path:name>")
    def asset(tree_hash: str, name: str) -> Response:
        coding = accepted_coding()
        packed = assets.read_packed(tree_hash, name, coding) if coding else None
        if packed is not None and coding is not None:
            response = Response(packed, content_type=TYPES[Path(name).suffix])
            response.headers["Content-Encoding"] = coding
        else:
            data, type_ = assets.read(tree_hash, name)
            response = Response(data, content_type=type_)
        response.headers["Vary"] = "Accept-Encoding"
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    return routes
