"""What of the conversation goes into memory now, where, and summed up how. Pure.

Young days are copied as they are; older ones become summaries of days, still older ones of months.
What is in memory ages the same way. Source: spec 5, archiving.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from mimikit.language.phrases import fence
from mimikit.language.plain_text import with_names
from mimikit.memory import markdown
from mimikit.memory.terms import stop_words
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Message, to_utc

T = TypeVar("T")
Kind = Literal["raw", "day", "month"]

YOUNG_DAYS = 5
BACK_OFF = tuple(timedelta(minutes=minutes) for minutes in (10, 30, 120, 360, 720))
BACKLOG_AT = 5
"""So many failures are told in the log."""
PROMPT_CHARACTERS = 60_000
"""What one summary is made from, at most."""
TEXT_CHARACTERS = 8_000
"""What a summary is given of one text, at most."""
BATCH_CHARACTERS = 500_000
"""So much text is written between two looks at everything else, if it is not one long message."""


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
    today = now.astimezone(zone).date()
    by_place: dict[tuple[Kind, str], list[Message]] = {}
    ready = [m for m in messages if m.archived is False and _is_ready(m, now)]
    for message in sorted(ready, key=lambda m: (m.created_at, m.id)):
        day = day_of(message, zone)
        # What code wrote is no memory: it is kept, and stands in no summary.
        kind = "raw" if message.is_by_code else place(day, today)
        by_place.setdefault((kind, place_name(kind, day)), []).append(message)
    groups: list[MessageGroup] = []
    for kind, name in sorted(by_place, key=lambda place: (place[0] != "raw", place[1])):
        said = by_place[kind, name]
        if kind == "raw":
            groups += _raw_groups(name, said, rules)
        elif summaries:
            packs = _packs(said, lambda m: len(piece_of(m, zone).line), PROMPT_CHARACTERS, joint=1)
            groups += [MessageGroup(kind, name, tuple(pack)) for pack in packs]
    return groups


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
    by_day: dict[str, list[Message]] = {}
    for message in open_:
        by_day.setdefault(day_of(message, zone).isoformat(), []).append(message)
    return [group for day in sorted(by_day) for group in _raw_groups(day, by_day[day], rules)]


def _is_ready(message: Message, now: datetime) -> bool:
    next_at = message.archive_next_at
    # Further away than any delay: the clock was set back since.
    return next_at is None or not now < next_at <= now + BACK_OFF[-1]


def _raw_groups(day: str, said: list[Message], rules: ArchiveRules) -> list[MessageGroup]:
    packs = _packs(said, lambda message: len(message.text), BATCH_CHARACTERS, most=rules.batch)
    return [MessageGroup("raw", day, tuple(pack)) for pack in packs]


def _packs(
    items: Iterable[T], size: Callable[[T], int], room: int, *, most: int = 0, joint: int = 0
) -> list[list[T]]:
    """The items in packs, none larger than `room`, if it is not one item alone.

    most: items of a pack; 0: any number. joint: what an item takes beside its size where another
        follows.
    """
    packs: list[list[T]] = []
    left = 0
    for item in items:
        taken = size(item)
        if not packs or len(packs[-1]) == most or taken > left:
            packs.append([])
            left = room
        packs[-1].append(item)
        left -= taken + joint
    return packs


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
    said = with_names(message.text, message.files)
    return _piece(message.id, at, message.role, said)


def pieces_of_raw(path: str, day: date, text: str, zone: tzinfo) -> list[SummaryInput]:
    """All that stands in a raw file, as it is given to be summarised.

    path: stands for what carries no id.
    """
    pieces: list[SummaryInput] = []
    for entry in markdown.entries(text):
        at = f"{entry.at.astimezone(zone):%Y-%m-%d %H:%M}" if entry.at else day.isoformat()
        if entry.text.strip() and not entry.is_by_code:
            pieces.append(_piece(entry.id or path, at, entry.role or "note", entry.text))
    return pieces


def pieces_of_summary(path: str, day: date, text: str) -> list[SummaryInput]:
    """All parts of a daily summary, as they are given to be summarised once more."""
    parts = [(part.id, part.text) for part in markdown.parts(text)] or [(path, text)]
    return [_piece(source, day.isoformat(), "summary", t) for source, t in parts if t.strip()]


def packed(pieces: Iterable[SummaryInput]) -> list[list[SummaryInput]]:
    """The pieces in packs, none larger than one run is given."""
    return _packs(pieces, lambda piece: len(piece.line), PROMPT_CHARACTERS, joint=1)


def fenced(pieces: Iterable[SummaryInput]) -> str:
    """The pieces as a block of data, one a line; its fence is longer than any inside."""
    return fence("\n".join(piece.line for piece in pieces), "json")


def _piece(source: str, at: str, role: str, text: str) -> SummaryInput:
    text = text.encode("utf-8", "replace").decode()
    if len(text) > TEXT_CHARACTERS:
        text = f"{text[: TEXT_CHARACTERS * 3 // 4]} … {text[-TEXT_CHARACTERS // 4 :]}"
    return SummaryInput(
        source, json.dumps({"at": at, "role": role, "text": text}, ensure_ascii=False)
    )


# ---- what ages


@dataclass(frozen=True, slots=True)
class SummaryTarget:
    """A summary, and the files of memory that are old enough to be in it."""

    kind: Kind
    name: str
    raw: tuple[str, ...]
    """Names of raw files, below `memory/`."""
    daily: tuple[str, ...] = ()
    """Names of daily summaries, below `memory/summary/`."""


def targets(raw: Iterable[str], daily: Iterable[str], today: date) -> list[SummaryTarget]:
    """Which files belong into which summaries by now, oldest first."""
    found: dict[tuple[str, Kind], tuple[list[str], list[str]]] = {}
    """By name and kind of the summary: its raw files, and its daily summaries."""
    for is_daily, names in enumerate((raw, daily)):
        for name in sorted(names):
            day = markdown.date_of(name)
            kind = place(day, today) if day else "raw"
            if day and (kind == "month" or (kind == "day" and not is_daily)):
                found.setdefault((place_name(kind, day), kind), ([], []))[is_daily].append(name)
    return [
        SummaryTarget(kind, name, tuple(raws), tuple(dailies))
        for (name, kind), (raws, dailies) in sorted(found.items())
    ]


# ---- summaries without a mind: the sentences that say most, in their order, with their dates

# English and Chinese. A sentence is worth what its terms are worth: those that this conversation is
# about, said more than once yet not in every sentence; a little more at a beginning, with a number
# or a name in it, and in the user's own words.

SHARE = 0.25
"""Of the text, so much is kept…"""
LEAST_CHARACTERS = 600
"""…at least this…"""
MOST_CHARACTERS = 3_000
"""…and at most this."""
SENTENCE_CHARACTERS = 240
_MOST_SENTENCES = 2_000
_ALIKE = 0.6
"""Two sentences that share so many of their terms say the same."""

_END = re.compile(r"(?<=[。！？；!?…])\s*|(?<=[.;])\s+|\n+")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--(?:(?!<!--|-->).)*-->")
_FACT = re.compile(r"\d|`[^`]+`|https?://|[A-Za-z_]+[/.][A-Za-z_]+")
_STOP = stop_words("summaries")
_STOP_CHARACTERS = frozenset("的了是我你他她它们吗呢吧啊在和与就都也很把被这那个個們嗎這")


@functools.cache  # so many characters take long to compile: a start does not wait for that
def _word() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z][A-Za-z0-9_]+|\d(?:[\d.:/-]*\d)?|[\u3400-\u4dbf\u4e00-\u9fff]+")


@dataclass(frozen=True, slots=True)
class DatedText:
    """One text with when and by whom it was said."""

    at: str
    role: str
    text: str


_DATED_TEXT = TypeAdapter(DatedText)


@dataclass(frozen=True, slots=True)
class _Sentence(DatedText):
    terms: frozenset[str]
    is_first: bool


def summarise_prompt(prompt: str) -> str:
    """The summary of the lines of JSON that stand in a prompt; empty when there are none."""
    return summarise(said_in(prompt))


def said_in(prompt: str) -> list[DatedText]:
    """What a prompt gives to be summarised, in its order."""
    found: list[DatedText] = []
    for line in prompt.split("\n"):
        if line.startswith('{"at"'):
            with contextlib.suppress(ValidationError):
                found.append(_DATED_TEXT.validate_json(line, strict=True))
    return found


def summarise(said: Iterable[DatedText]) -> str:
    """A list of the sentences that say most, each with its date, in their order."""
    sentences = [sentence for one in said for sentence in _sentences(one)]
    whole = sum(len(s.text) for s in sentences)
    room = min(max(int(whole * SHARE), LEAST_CHARACTERS), MOST_CHARACTERS)
    chosen: list[_Sentence] = []
    for sentence in _by_worth(sentences):
        if chosen and room < 40:
            break
        cost = len(sentence.text) + 20
        fits = not chosen or cost <= room
        if fits and not any(_says_the_same(sentence, other) for other in chosen):
            chosen.append(sentence)
            room -= cost
    lines: list[str] = []
    for one in sorted(chosen, key=sentences.index):
        by = f" {one.at} {one.role}:"
        if one.role == "summary":  # what was summed up before has its own dates
            by = "" if one.text.startswith(one.at[:10]) else f" {one.at[:10]}"
        lines.append(f"-{by} {one.text}")
    return "\n".join(lines)


def _sentences(said: DatedText) -> list[_Sentence]:
    prose = [part for text in _CODE.split(said.text) for part in _COMMENT.split(text)]
    found: list[_Sentence] = []
    for raw in (raw for text in prose for raw in _END.split(text)):
        sentence = raw.strip()
        if said.role == "summary":  # a line of a list of ours: it gets a sign again
            sentence = sentence.removeprefix("- ")
        terms: set[str] = set()
        """Words, numbers, and pairs of Chinese characters."""
        for word in _word().findall(sentence):
            bare = [c for c in word if c not in _STOP_CHARACTERS]
            pairs = {a + b for a, b in itertools.pairwise(bare)}
            terms |= {word.lower()} if word[0].isascii() else pairs
        terms -= _STOP
        if terms and len(found) < _MOST_SENTENCES:
            cut = len(sentence) > SENTENCE_CHARACTERS
            shown = sentence[: SENTENCE_CHARACTERS - 1].rstrip() + "…" if cut else sentence
            found.append(_Sentence(said.at, said.role, shown, frozenset(terms), not found))
    return found


def _by_worth(sentences: list[_Sentence]) -> list[_Sentence]:
    """The best first."""
    counts = Counter(term for sentence in sentences for term in sentence.terms)
    # Often said, yet rare: a term of every sentence tells nothing, nor does one said only once.
    worth = {t: math.log1p(n) * math.log1p(len(sentences) / n) for t, n in counts.items()}

    def score(sentence: _Sentence) -> float:
        terms = sum(worth[term] for term in sentence.terms) / (len(sentence.terms) + 3)
        bonus = 1.0 + 0.15 * sentence.is_first + 0.25 * bool(_FACT.search(sentence.text))
        return terms * (bonus + 0.2 * (sentence.role == "user"))

    return sorted(sentences, key=score, reverse=True)


def _says_the_same(one: _Sentence, other: _Sentence) -> bool:
    """Whether most of their terms are shared, and the numbers of one are those of the other."""
    mine, theirs = ({t for t in s.terms if any(map(str.isdigit, t))} for s in (one, other))
    shared = len(one.terms & other.terms)
    is_alike = shared >= _ALIKE * min(len(one.terms), len(other.terms))
    return is_alike and (mine <= theirs or theirs <= mine)
