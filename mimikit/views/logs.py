"""The log, page by page: back from its end, or on from where one has read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime

from mimikit.errors import BadInput
from mimikit.language.plain_text import plain
from mimikit.language.reasons import reason_words
from mimikit.log import log_lines, log_lines_back, log_segments
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.json import Json
from mimikit.views.base import View, Words

MOST_LINES = 500
_READ_BYTES = 2 * 2**20
"""So much of the log is read for one page, whether anything in it fits or not."""
_HEADS = ("timestamp", "type", "event")
_REASONS = ("error", "reason", "said")
_CURSOR = re.compile(r"(log\.[0-9-]{10}(?:\.[0-9]{1,18})?\.jsonl):([0-9]{1,15})")


class LogLineView(View):
    """One thing that happened."""

    id: str
    """Its cursor."""
    at: str
    type: str
    """`task`, `audit`, `error` …"""
    event: str
    facts: dict[str, str]
    """What else stands on the line."""
    words: dict[str, Words]
    """Of its facts those that code says of what went wrong, in each language."""


class LogPage(View):
    """Some lines, oldest first; there may be fewer than asked for and yet more before them."""

    lines: list[LogLineView]
    before: str | None
    """Where those before these begin; null at the beginning of what is kept."""
    after: str
    """Where to go on with those to come."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines are wanted; what is empty does not matter."""

    type: str = ""
    text: str = ""
    id: str = ""
    """Of a task, turn, trigger or trace that the line names."""

    def fits(self, line: LogLineView) -> bool:
        if self.type and line.type != self.type:
            return False
        values = line.facts.values()
        if self.id and self.id not in values:
            return False
        wanted = self.text.casefold()
        return not wanted or any(wanted in text.casefold() for text in (line.event, *values))


def log_page(
    files: ReadOnlyFiles,
    wanted: LogFilter,
    now: datetime,
    *,
    limit: int,
    before: str | None = None,
    after: str | None = None,
) -> LogPage:
    """The lines before a cursor, after one, or the newest.

    Raises:
        BadInput: a cursor that is not one of ours.
    """
    segments = log_segments(files, f"{now:%Y-%m-%d}")
    if after is not None:
        return _newer(files, segments, wanted, _place(after, "after"), limit)
    newest = [*segments][-1]
    stat = files.stat(segments[newest])
    end = f"{newest}:{stat.size if stat else 0}"
    upto = _place(end if before is None else before, "before")
    return _older(files, segments, wanted, upto, limit, end)


def last_error(files: ReadOnlyFiles, now: datetime) -> LogLineView | None:
    """The last error, as far back as one page reaches."""
    found = log_page(files, LogFilter(type="error"), now, limit=1).lines
    return found[-1] if found else None


def _older(
    files: ReadOnlyFiles,
    segments: dict[str, str],
    wanted: LogFilter,
    upto: tuple[str, int],
    limit: int,
    after: str,
) -> LogPage:
    found: list[LogLineView] = []
    names, left = [*segments], _READ_BYTES
    names = names[: names.index(upto[0]) + 1] if upto[0] in segments else []
    for name in reversed(names):
        end = upto[1] if name == upto[0] else None
        for offset, line in log_lines_back(files, segments[name], end):
            left -= (offset if end is None else end) - offset
            end, shown = offset, _shown(f"{name}:{offset}", line)
            if wanted.fits(shown):
                found.append(_worded(shown))
            if len(found) >= limit or left <= 0:
                return LogPage(lines=found[::-1], before=shown.id, after=after)
    return LogPage(lines=found[::-1], before=None, after=after)


def _newer(
    files: ReadOnlyFiles,
    segments: dict[str, str],
    wanted: LogFilter,
    since: tuple[str, int],
    limit: int,
) -> LogPage:
    found: list[LogLineView] = []
    names, (name, end) = [*segments], since
    names = names[names.index(name) if name in segments else -1 :]
    for name in names:
        begin = end = since[1] if name == since[0] else 0
        for stop, line in log_lines(files, segments[name], begin, _READ_BYTES):
            shown, end = _shown(f"{name}:{end}", line), stop
            if wanted.fits(shown):
                found.append(_worded(shown))
            if len(found) >= limit:
                break
        if len(found) >= limit or end - begin > _READ_BYTES // 2:  # there may be more of it
            break
    return LogPage(lines=found, before=None, after=f"{name}:{end}")


def _shown(cursor: str, line: dict[str, Json]) -> LogLineView:
    def text(value: Json) -> str:
        return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

    return LogLineView(
        id=cursor,
        at=text(line.get("timestamp", "")),
        type=text(line.get("type", "")),
        event=text(line.get("event", "")),
        facts={plain(key): text(value) for key, value in line.items() if key not in _HEADS},
        words={},
    )


def _worded(line: LogLineView) -> LogLineView:
    """With what is known of its reasons: looked up of what is shown alone."""
    said = ((key, reason_words(line.facts.get(key))) for key in _REASONS)
    words = {key: both for key, both in said if both is not None}
    return line.model_copy(update={"words": words}) if words else line


def _place(cursor: str, field: str) -> tuple[str, int]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise BadInput(
            f"{field}: expected a cursor from an earlier answer, got something else", field=field
        )
    return match[1], int(match[2])
