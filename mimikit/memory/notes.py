"""Memory files as text: what is remembered, and a simple search in it.

The search here is a plain scan of words and characters; it is replaced by an index later.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime

from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import BacklogChange, Remembered

_WORD = re.compile(r"[A-Za-z0-9_]+|[\u3400-\u9fff]")
_STOP_WORDS = """
a an and are at be do for i in is it me my of on or that the this to what you know about
的 了 是 我 你 吗 什 么
"""
_STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True, slots=True)
class Passage:
    """A note that was found: where it stands, what it says, how well it fits (0 to 1)."""

    source: str
    text: str
    score: float


def remember(files: Files, note: Remembered, now: datetime) -> None:
    """Write a note where it belongs; a note already there (by its id) is not written again.

    Crash: the file is replaced whole; a replay finds the note's id in it.
    """
    path = paths.MEMORY if note.long_term else f"{paths.MEMORY_FOLDER}/{now:%Y-%m-%d}.md"
    text = _text(files, path)
    mark = f"<!-- {note.id} -->"
    if mark not in text:
        line = " ".join(note.content.split())
        files.write(path, f"{text.rstrip()}\n- {line} {mark}\n".lstrip().encode())


def change_backlog(files: Files, change: BacklogChange) -> None:
    """Apply one change to the checkbox list; applying it twice changes nothing more."""
    lines = _text(files, paths.BACKLOG).splitlines()
    item = " ".join(change.item.split())
    mine = [i for i, line in enumerate(lines) if line[6:].strip() == item and line[:3] == "- ["]
    if change.action == "add" and not mine:
        lines.append(f"- [ ] {item}")
    for i in reversed(mine):
        if change.action == "done":
            lines[i] = f"- [x] {item}"
        elif change.action == "remove":
            del lines[i]
    files.write(paths.BACKLOG, ("\n".join(lines) + "\n").encode() if lines else b"")


def search(files: Files, query: str, limit: int = 5) -> list[Passage]:
    """Notes that share words with the query, best first: the share of its words they contain."""
    wanted = words(query)
    if not wanted:
        return []
    hits: list[Passage] = []
    for path in _sources(files):
        for note in _passages(_text(files, path)):
            shared = wanted & words(note)
            if shared:
                hits.append(Passage(path, note, len(shared) / len(wanted)))
    hits.sort(key=lambda hit: -hit.score)
    return [hit for hit in hits[:limit] if hit.score >= hits[0].score / 2]


def words(text: str) -> frozenset[str]:
    """Lower-case words and single Chinese characters, common ones left out."""
    return frozenset(w for w in _WORD.findall(text.lower()) if w not in _STOP)


def content_hash(text: str) -> str:
    """What guards an edit: the hash of the text it was based on."""
    return hashlib.sha256(text.encode()).hexdigest()


def _sources(files: Files) -> list[str]:
    dated = [f"{paths.MEMORY_FOLDER}/{name}" for name in files.names("memory", suffix=".md")]
    return [paths.MEMORY, *reversed(dated)]


def _passages(text: str) -> list[str]:
    bare = re.sub(r"<!--.*?-->", "", text)
    return [line.strip().removeprefix("- ").strip() for line in bare.splitlines() if line.strip()]


def _text(files: Files, path: str) -> str:
    return (files.read(path) or b"").decode("utf-8", "replace")
