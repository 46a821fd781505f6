"""What was read of pages, kept for a while below `cache/web`. It may be removed at any time."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from datetime import datetime, timedelta

from mimikit.errors import MimikitError
from mimikit.internet.reading import ReadPage
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Record

FOLDER = f"{paths.CACHE}/web"
_MOST_FILES = 2000


class KeptPage(Record):
    """`cache/web/{SHA-256 of the address}.json`."""

    url: str
    """As it was asked for."""
    final_url: str
    fetched_at: datetime
    page: ReadPage


class PageCache:
    """Safe between threads. A disk that refuses costs a fetch, no more."""

    def __init__(self, files: Files, *, minutes: float, most_bytes: int) -> None:
        self._files, self._for, self._most_bytes = files, timedelta(minutes=minutes), most_bytes
        self._lock = threading.Lock()

    def find(self, url: str, now: datetime) -> KeptPage | None:
        """What was read of an address, if it is young enough."""
        with contextlib.suppress(MimikitError):
            kept = self._files.peek(_place(url), KeptPage)
            if kept and kept.url == url and timedelta() <= now - kept.fetched_at < self._for:
                return kept
        return None

    def keep(self, kept: KeptPage) -> None:
        """Keep it, and let go of the oldest while there is too much.

        Crash: a file may stay that is one too many; the next one that is kept finds it.
        """
        data = kept.to_json()
        if not self._for or len(data) > self._most_bytes:
            return
        with self._lock, contextlib.suppress(MimikitError):
            self._files.make_folders([paths.CACHE, FOLDER])
            self._files.write(_place(kept.url), data, sync=False)
            found = self._files.stats(FOLDER, suffix=".json")
            total = sum(stat.size for stat in found.values())
            oldest = sorted(found, key=lambda name: found[name].mtime_ns)
            for number, name in enumerate(oldest):
                if total <= self._most_bytes and len(oldest) - number <= _MOST_FILES:
                    break
                self._files.remove(f"{FOLDER}/{name}")
                total -= found[name].size


def _place(url: str) -> str:
    return f"{FOLDER}/{hashlib.sha256(url.encode(errors='replace')).hexdigest()}.json"
