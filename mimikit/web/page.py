"""The page itself: index.html, and its files under a path that changes with their content.

The path holds a hash of the whole tree, so that a browser may keep every file for ever and modules
may import one another by relative paths.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from flask import Blueprint, Response

from mimikit.assets import asset_folder
from mimikit.errors import NotFound

PLACEHOLDER = "{{assets}}"
_TYPES = {
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
_FOR_EVER = "public, max-age=31536000, immutable"


class Assets:
    """The files of the page below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._signature: object = None
        self._files: dict[str, Path] = {}
        self._hash = ""

    def tree_hash(self) -> str:
        """The hash of every file's name and content; looked up anew when one changed."""
        found = self._find()
        signature = [(name, path.stat().st_mtime_ns) for name, path in found.items()]
        with self._lock:
            if signature != self._signature:
                digest = hashlib.sha256()
                for name, path in found.items():
                    data = path.read_bytes()
                    digest.update(f"{name}\x00{len(data)}\x00".encode() + data)
                self._files, self._signature = found, signature
                self._hash = digest.hexdigest()[:16]
            return self._hash

    def read(self, tree_hash: str, name: str) -> tuple[bytes, str]:
        """A file's bytes and type.

        Raises:
            NotFound: it is none of the page's files, or those have changed since.
        """
        if tree_hash != self._hash and tree_hash != self.tree_hash():
            raise NotFound("the page is newer than this; load it again")
        path = self._files.get(name)
        if path is None:
            raise NotFound(f"the page has no file {name[:80]!r}")
        return path.read_bytes(), _TYPES[path.suffix]

    def index(self) -> bytes:
        """index.html with the path of its files filled in."""
        text = (self._root / "index.html").read_text(encoding="utf-8")
        return text.replace(PLACEHOLDER, f"/assets/{self.tree_hash()}").encode()

    def _find(self) -> dict[str, Path]:
        """Files that may be served by their names, sorted; no hidden ones, none behind links."""
        return {
            path.relative_to(self._root).as_posix(): path
            for path in sorted(self._root.rglob("*"))
            if path.suffix in _TYPES
            and not path.is_symlink()
            and path.is_file()
            and not any(part.startswith(".") for part in path.relative_to(self._root).parts)
        }


def page_routes(assets: Assets | None = None) -> Blueprint:
    """The routes that need no login."""
    routes = Blueprint("page", __name__)
    found = assets or Assets(asset_folder("webui"))

    @routes.get("/")
    def index() -> Response:
        response = Response(found.index(), mimetype="text/html")
        response.headers["Cache-Control"] = "no-cache"
        return response

    @routes.get("/assets/<tree_hash>/<path:name>")
    def asset(tree_hash: str, name: str) -> Response:
        data, type_ = found.read(tree_hash, name)
        response = Response(data, content_type=type_)
        response.headers["Cache-Control"] = _FOR_EVER
        return response

    return routes
