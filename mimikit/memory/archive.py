"""What of the conversation goes into memory now, and where. Pure: it takes `now` and the zone.

Young days are copied as they are; older ones become summaries of days, still older ones of months.
What is in memory ages the same way. Source: spec 5, archiving.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal

from mimikit.memory import markdown
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Message, to_utc

Kind = Literal["raw", "day", "month"]

YOUNG_DAYS = 5
BACK_OFF = (
    timedelta(minutes=10),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=6),
    timedelta(hours=12),
)
BACKLOG_AT = 5
"""So many failures are told in the log."""
PROMPT_CHARACTERS = 60_000
"""What one summary is made from, at most."""
TEXT_CHARACTERS = 8_000
"""What a summary is given of one text, at most."""
BATCH_CHARACTERS = 500_000
"""So much text is written between two looks at everything else, if it is not one long message."""
FILE_BYTES = 2**20
"""A raw file that has grown so far gets a successor."""
SLUG_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """When archiving begins. Counts are of messages."""

    start_above: int = 100
    every: timedelta = timedelta(hours=6)
    flush_at: int = 800
    flush_every: timedelta = timedelta(hours=1)
    batch: int = 200
    """So many are written between two looks at everything else."""


RULES = ArchiveRules()


@dataclass(frozen=True, slots=True)
class MessageGroup:
    """Messages that go to one place together."""

    kind: Kind
    name: str
    """The day, or of monthly ones the month: `2026-01-28`, `2026-01`."""
    messages: tuple[Message, ...]

    @property
    def attempt(self) -> int:
        return max(message.archive_attempts for message in self.messages)


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """A part of what a summary is made from: a line of JSON, and the id of what it says."""

    source: str
    line: str


# ---- when, and where


def place(day: date, today: date) -> Kind:
    """Where a day of this age belongs."""
    if (today - day).days <= YOUNG_DAYS:
        return "raw"
    months = today.year * 12 + today.month - (day.year * 12 + day.month)
    return "day" if months <= 1 else "month"


def place_name(kind: Kind, day: date) -> str:
    return day.isoformat()[:7] if kind == "month" else day.isoformat()


def day_of(message: Message, zone: tzinfo) -> date:
    return message.created_at.astimezone(zone).date()


def is_due(
    messages: Sequence[Message],
    now: datetime,
    last_archive_at: datetime | None,
    *,
    rules: ArchiveRules = RULES,
) -> bool:
    """Whether there is something to archive and it is time."""
    open_ = [message for message in messages if message.archived is False]
    ready = [message for message in open_ if _is_ready(message, now)]
    if not ready:
        return False
    if len(open_) > rules.start_above or any(message.archive_attempts for message in ready):
        return True
    last = last_archive_at or min(message.created_at for message in open_)
    # A time yet to come: the clock was set back since.
    return last > now or now - last >= rules.every


def plan_archive(
    messages: Sequence[Message],
    now: datetime,
    zone: tzinfo,
    last_archive_at: datetime | None,
    *,
    rules: ArchiveRules = RULES,
    forced: bool = False,
    summaries: bool = True,
) -> list[MessageGroup]:
    """What is to be archived now, in groups that are written one by one; empty when none is due.

    forced: whatever the time and the number; yet none before its next try.
    summaries: whether there is somebody to make them; else only young days are archived.
    Order: raw ones first, then by day.
    """
    if not forced and not is_due(messages, now, last_archive_at, rules=rules):
        return []
    ready = [m for m in messages if m.archived is False and _is_ready(m, now)]
    groups = _grouped(ready, now.astimezone(zone).date(), zone, rules.batch)
    return [group for group in groups if summaries or group.kind == "raw"]


def plan_flush(
    messages: Sequence[Message],
    now: datetime,
    zone: tzinfo,
    last_flush_at: datetime | None,
    *,
    rules: ArchiveRules = RULES,
) -> list[MessageGroup]:
    """What the safety valve lets out now: all that wait, as they are, by day."""
    open_ = [message for message in messages if message.archived is False]
    if len(open_) < rules.flush_at:
        return []
    if last_flush_at is not None and timedelta() <= now - last_flush_at < rules.flush_every:
        return []
    by_day: dict[date, list[Message]] = {}
    for message in open_:
        by_day.setdefault(day_of(message, zone), []).append(message)
    return [
        MessageGroup("raw", day.isoformat(), tuple(part))
        for day, said in sorted(by_day.items())
        for part in _batches(said, rules.batch)
    ]


def _is_ready(message: Message, now: datetime) -> bool:
    next_at = message.archive_next_at
    # Further away than any delay: the clock was set back since.
    return next_at is None or not now < next_at <= now + BACK_OFF[-1]


def _grouped(
    messages: Iterable[Message], today: date, zone: tzinfo, batch: int
) -> list[MessageGroup]:
    by_place: dict[tuple[Kind, str], list[Message]] = {}
    for message in sorted(messages, key=lambda m: (m.created_at, m.id)):
        day = day_of(message, zone)
        kind = place(day, today)
        by_place.setdefault((kind, place_name(kind, day)), []).append(message)
    groups: list[MessageGroup] = []
    for (kind, name), said in sorted(by_place.items(), key=lambda item: item[0][1]):
        if kind == "raw":
            groups += [MessageGroup(kind, name, tuple(part)) for part in _batches(said, batch)]
        else:
            by_id = {message.id: message for message in said}
            packs = packed([piece_of(message, zone) for message in said])
            groups += [
                MessageGroup(kind, name, tuple(by_id[p.source] for p in pack)) for pack in packs
            ]
    return sorted(groups, key=lambda group: group.kind != "raw")


def _batches(messages: list[Message], size: int) -> list[list[Message]]:
    batches: list[list[Message]] = []
    room = 0
    for message in messages:
        if not batches or len(batches[-1]) >= size or len(message.text) > room:
            batches.append([])
            room = BATCH_CHARACTERS
        batches[-1].append(message)
        room -= len(message.text)
    return batches


# ---- after a failure


def failed(message: Message, now: datetime) -> dict[str, object]:
    """What changes in a message whose summary could not be made."""
    attempts = message.archive_attempts + 1
    return {
        "archived": False,
        "archive_task": None,
        "archive_attempts": attempts,
        "archive_failed_at": to_utc(now),
        "archive_next_at": to_utc(now + delay_after(attempts)),
    }


def delay_after(attempts: int) -> timedelta:
    """How long to wait after so many failures."""
    return BACK_OFF[min(max(attempts, 1), len(BACK_OFF)) - 1]


# ---- what summaries are made from


def summary_task_id(kind: Kind, name: str, sources: Iterable[str], attempt: int) -> str:
    """The id of the run that summarises these: the same for the same."""
    return derived_id("task", "summary", kind, name, str(attempt), *sources)


def piece_of(message: Message, zone: tzinfo) -> SummaryInput:
    at = f"{message.created_at.astimezone(zone):%Y-%m-%d %H:%M}"
    return _piece(message.id, at, message.role, message.text)


def pieces_of_raw(path: str, day: date, text: str, zone: tzinfo) -> list[SummaryInput]:
    """All that stands in a raw file, as it is given to be summarised.

    path: stands for what carries no id.
    """
    pieces: list[SummaryInput] = []
    for entry in markdown.entries(text):
        at = f"{entry.at.astimezone(zone):%Y-%m-%d %H:%M}" if entry.at else day.isoformat()
        if entry.text.strip():
            pieces.append(_piece(entry.id or path, at, entry.role or "note", entry.text))
    return pieces


def pieces_of_summary(path: str, day: date, text: str) -> list[SummaryInput]:
    """All parts of a daily summary, as they are given to be summarised once more."""
    parts = markdown.parts(text)
    if not parts and text.strip():
        return [_piece(path, day.isoformat(), "summary", text)]
    return [_piece(p.id, day.isoformat(), "summary", p.text) for p in parts if p.text]


def packed(
    pieces: Iterable[SummaryInput], most: int = PROMPT_CHARACTERS
) -> list[list[SummaryInput]]:
    """The pieces in packs, none larger than one run is given."""
    packs: list[list[SummaryInput]] = []
    room = 0
    for piece in pieces:
        if not packs or len(piece.line) > room:
            packs.append([])
            room = most
        packs[-1].append(piece)
        room -= len(piece.line) + 1
    return packs


def fenced(pieces: Iterable[SummaryInput]) -> str:
    """The pieces as a block of data, one a line; its fence is longer than any inside."""
    lines = "\n".join(piece.line for piece in pieces)
    fence = "```"
    while fence in lines:
        fence += "`"
    return f"{fence}json\n{lines}\n{fence}"


def _piece(source: str, at: str, role: str, text: str) -> SummaryInput:
    text = text.encode("utf-8", "replace").decode()
    if len(text) > TEXT_CHARACTERS:
        text = f"{text[: TEXT_CHARACTERS * 3 // 4]} … {text[-TEXT_CHARACTERS // 4 :]}"
    return SummaryInput(
        source, json.dumps({"at": at, "role": role, "text": text}, ensure_ascii=False)
    )


# ---- what ages

_DATED = re.compile(r"(\d{4}-\d\d-\d\d)[A-Za-z0-9._-]*\.md")


@dataclass(frozen=True, slots=True)
class SummaryTarget:
    """A summary, and the files of memory that are old enough to be in it."""

    kind: Kind
    name: str
    raw: tuple[str, ...]
    """Names of raw files, below `memory/`."""
    daily: tuple[str, ...] = ()
    """Names of daily summaries, below `memory/summary/`."""


def date_of(name: str) -> date | None:
    """The day in the name of a file of memory; None when there is none."""
    found = _DATED.fullmatch(name)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def targets(raw: Iterable[str], daily: Iterable[str], today: date) -> list[SummaryTarget]:
    """Which files belong into which summaries by now, oldest first."""
    raws: dict[tuple[Kind, str], list[str]] = {}
    dailies: dict[tuple[Kind, str], list[str]] = {}
    for names, found in ((raw, raws), (daily, dailies)):
        for name in sorted(names):
            day = date_of(name)
            kind = place(day, today) if day else "raw"
            if day and kind != "raw" and not (found is dailies and kind == "day"):
                found.setdefault((kind, place_name(kind, day)), []).append(name)
    return [
        SummaryTarget(*key, tuple(raws.get(key, ())), tuple(dailies.get(key, ())))
        for key in sorted(raws.keys() | dailies.keys(), key=lambda key: key[1])
    ]


# ---- names of raw files

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_WORD = 16
_DIGITS = 2
"""A word with more of them is rather a key or a number than a word."""
_STOP_WORDS = """
a about after again all also am an and any are as at be been before but by can could did do does
done for from get give go got had has have hello help her here hi him his how i if in into is it its
just know let like made make many may me message more most much must my need new no not now of ok on
one only or other our out over please put run said same say see she should so some such sure tell
than thank thanks that the their them then there these they thing think this those time to today
tomorrow too try two until up us use used using very want was way we well were what when where which
while who why will with without would yes yesterday yet you your
"""
_STOP = frozenset(_STOP_WORDS.split())
_SHORT_ID = re.compile(r"-([0-9a-hjkmnp-tv-z]{26})")


def slug(messages: Sequence[Message], taken: Collection[str] = ()) -> str:
    """A short name made from what they are about; the same for the same messages.

    taken: slugs that this day has already.
    """
    base = _kebab(_keywords(messages))
    if not base:
        first = messages[0].id
        ulid = _SHORT_ID.search(first)
        base = f"mem-{ulid[1][-8:] if ulid else hashlib.sha256(first.encode()).hexdigest()[:8]}"
    name, number = base, 1
    while name in taken:
        number += 1
        name = f"{base[: SLUG_CHARACTERS - len(str(number)) - 1].rstrip('-')}-{number}"
    return name


def _keywords(messages: Iterable[Message]) -> list[str]:
    """The words that say most: seldom short, often said, best first."""
    counts: Counter[str] = Counter()
    for message in messages:
        for word in _WORD.findall(message.text[:20_000]):
            for part in _CAMEL.split(word):
                counts[part.lower()] += 1
    known = [
        word
        for word in counts.keys() - _STOP
        if 3 <= len(word) <= _LONGEST_WORD and sum(map(str.isdigit, word)) <= _DIGITS
    ]
    return sorted(known, key=lambda word: (-counts[word] * len(word), word))


def _kebab(words: Iterable[str], most: int = 4) -> str:
    chosen: list[str] = []
    room = SLUG_CHARACTERS + 1  # the last one has no hyphen
    for word in words:
        if len(word) + 1 <= room and len(chosen) < most:
            chosen.append(word)
            room -= len(word) + 1
    return "-".join(chosen)


def raw_name(
    day: date, messages: Sequence[Message], sizes: Mapping[str, int], *, flush: bool = False
) -> str:
    """The name of the raw file into which these are written.

    sizes: the raw files of that day that hold messages already, or would be in the way, with their
        sizes in bytes; -1 for one that is not ours to extend.
    """
    if flush:
        return f"{day.isoformat()}.md"
    prefix = f"{day.isoformat()}-"
    own = [name for name, size in sizes.items() if name.startswith(prefix) and size >= 0]
    open_ = [name for name in own if sizes[name] < FILE_BYTES]
    if open_:
        return max(open_)
    taken = {n.removeprefix(prefix).removesuffix(".md") for n in sizes if n.startswith(prefix)}
    return f"{prefix}{slug(messages, taken)}.md"
