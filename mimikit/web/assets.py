"""The page's files, below a hash of the whole tree: browsers cache them for ever; and gzip."""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from pathlib import Path

from flask import Blueprint, Response, request

from mimikit.errors import NotFound
from mimikit.web.api.routing import current_site

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
SOURCES = {"css", "js", "vendor"}
"""Bundled into dist/ (`make page`)."""
_TEXT = re.compile(r"text/(?!event-stream)|application/(json|manifest)|image/svg")
_LEAST_BYTES = 1000


class Assets:
    """The files of the page in memory; no sources, hidden files, links and unknown types."""

    def __init__(self, root: Path) -> None:
        digest = hashlib.sha256()
        self._files: dict[str, bytes] = {}
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root)
            is_left_out = name.parts[0] in SOURCES or any(p.startswith(".") for p in name.parts)
            if path.suffix in TYPES and path.is_file() and not (path.is_symlink() or is_left_out):
                self._files[name.as_posix()] = data = path.read_bytes()
                digest.update(f"{name}\x00{len(data)}\x00".encode() + data)
        self.tree_hash = digest.hexdigest()[:16]
        index = self._files["index.html"].decode()
        self.index = index.replace("{{assets}}", f"assets/{self.tree_hash}").encode()

    def read(self, tree_hash: str, name: str) -> tuple[bytes, str]:
        """A file's bytes and type; NotFound for an unknown file or version."""
        if tree_hash != self.tree_hash:
            raise NotFound("the page is newer than this; load it again")
        if name not in self._files:
            raise NotFound(f"the page has no file {name[:80]!r}")
        return self._files[name], TYPES[Path(name).suffix]


def compress(response: Response) -> Response:
    """Compress a text answer for a browser that takes gzip; streams stay as they are."""
    if response.is_streamed or not _TEXT.match(response.mimetype or ""):
        return response
    response.vary.add("Accept-Encoding")
    data = response.get_data()
    if len(data) >= _LEAST_BYTES and request.accept_encodings["gzip"] > 0:
        is_kept = "immutable" in response.headers["Cache-Control"]
        response.set_data(_packed_once(data) if is_kept else gzip.compress(data, 5, mtime=0))
        response.headers["Content-Encoding"] = "gzip"
    return response


@functools.cache
def _packed_once(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def page_routes(assets: Assets) -> Blueprint:
    routes = Blueprint("page", __name__)

    @routes.get("/")
    def index() -> Response:
        if page := current_site().guard.canonical_url():
            return Response(status=307, headers={"Location": page, "Cache-Control": "no-store"})
        response = Response(assets.index, mimetype="text/html")
        response.headers["Cache-Control"] = "no-cache"
        return response

    @routes.get("/assets/<tree_hash>/<path:name>")
    def asset(tree_hash: str, name: str) -> Response:
        data, type_ = assets.read(tree_hash, name)
        response = Response(data, content_type=type_)
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    return routes
