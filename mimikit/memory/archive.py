"""Decides which messages are archived where, and summarises them without a model. Pure.

Recent days are copied; older ones become daily summaries, then monthly ones. Memory files age the
same way. Source: spec 5, archiving.
"""

from __future__ import annotations

import contextlib
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
from mimikit.memory import markdown
from mimikit.memory.terms import stop_words
from mimikit.protocol.ids import derived_id
from mimikit.protocol.models import Message, to_utc

T = TypeVar("T")
Kind = Literal["raw", "day", "month"]

YOUNG_DAYS = 5
BACK_OFF = tuple(timedelta(minutes=minutes) for minutes in (10, 30, 120, 360, 720))
BACKLOG_AT = 5
"""After this many failures the log reports a backlog."""
PROMPT_CHARACTERS = 60_000
"""Maximum input of one summary."""
TEXT_CHARACTERS = 8_000
"""Longer texts are cut in the middle before they are summarised."""
BATCH_CHARACTERS = 500_000
"""Maximum text written per supervisor step, unless one message is longer."""


@dataclass(frozen=True, slots=True)
class ArchiveRules:
    """When archiving starts. Counts are of messages."""

    start_above: int = 100
    every: timedelta = timedelta(hours=6)
    flush_at: int = 800
    flush_every: timedelta = timedelta(hours=1)
    batch: int = 200


RULES = ArchiveRules()


@dataclass(frozen=True, slots=True)
class MessageGroup:
    """Messages that are archived together: copied to a file, or summarised."""

    kind: Kind
    name: str
    """Day or month: `2026-01-28`, `2026-01`."""
    messages: tuple[Message, ...]

    @property
    def attempt(self) -> int:
        return max(message.archive_attempts for message in self.messages)


@dataclass(frozen=True, slots=True)
class SummaryInput:
    """A line of JSON to be summarised, and the id of its source."""

    source: str
    line: str


# ---- scheduling


def place(day: date, today: date) -> Kind:
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
    open_ = [message for message in messages if message.archived is False]
    ready = [message for message in open_ if _is_ready(message, now)]
    if not ready:
        return False
    if len(open_) > rules.start_above or any(message.archive_attempts for message in ready):
        return True
    last = last_archive_at or min(message.created_at for message in open_)
    # A future time: the clock was set back since.
    return last > now or now - last >= rules.every


def plan_archive(
    messages: Sequence[Message],
    now: datetime,
    zone: tzinfo,
    *,
    rules: ArchiveRules = RULES,
    summaries: bool = True,
) -> list[MessageGroup]:
    """The groups to archive now, raw ones first, then by day; messages in back-off are skipped.

    summaries: whether an engine is available for them; else only recent days are archived.
    """
    today = now.astimezone(zone).date()
    by_place: dict[tuple[Kind, str], list[Message]] = {}
    ready = [m for m in messages if m.archived is False and _is_ready(m, now)]
    for message in sorted(ready, key=lambda m: (m.created_at, m.id)):
        day = day_of(message, zone)
        # Generated messages are copied, never summarised.
        kind = "raw" if message.is_by_code else place(day, today)
        by_place.setdefault((kind, place_name(kind, day)), []).append(message)
    groups: list[MessageGroup] = []
    for kind, name in sorted(by_place, key=lambda place: (place[0] != "raw", place[1])):
        of_place = by_place[kind, name]
        if kind == "raw":
            groups += _raw_groups(name, of_place, rules)
        elif summaries:
            packs = _packs(
                of_place, lambda m: len(piece_of(m, zone).line), PROMPT_CHARACTERS, joint=1
            )
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
    """The groups to write when too much is unarchived: all messages verbatim, by day."""
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
    # Later than any back-off: the clock was set back since.
    return next_at is None or not now < next_at <= now + BACK_OFF[-1]


def _raw_groups(day: str, messages: list[Message], rules: ArchiveRules) -> list[MessageGroup]:
    packs = _packs(messages, lambda message: len(message.text), BATCH_CHARACTERS, most=rules.batch)
    return [MessageGroup("raw", day, tuple(pack)) for pack in packs]


def _packs(
    items: Iterable[T], size: Callable[[T], int], room: int, *, most: int = 0, joint: int = 0
) -> list[list[T]]:
    """Split items into packs no larger than `room`, unless one item is larger.

    most: maximum of items per pack; 0: unlimited. joint: the size of the separator.
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
    attempts = message.archive_attempts + 1
    return {
        "archived": False,
        "archive_task": None,
        "archive_attempts": attempts,
        "archive_failed_at": to_utc(now),
        "archive_next_at": to_utc(now + delay_after(attempts)),
    }


def delay_after(attempts: int) -> timedelta:
    return BACK_OFF[min(max(attempts, 1), len(BACK_OFF)) - 1]


# ---- inputs of summaries


def summary_task_id(kind: Kind, name: str, sources: Iterable[str], attempt: int) -> str:
    return derived_id("task", "summary", kind, name, str(attempt), *sources)


def piece_of(message: Message, zone: tzinfo) -> SummaryInput:
    at = f"{message.created_at.astimezone(zone):%Y-%m-%d %H:%M}"
    return _piece(message.id, at, message.role, message.text)


def pieces_of_raw(path: str, day: date, text: str, zone: tzinfo) -> list[SummaryInput]:
    """Input of a summary from a raw file. `path`: the source of entries without an id."""
    pieces: list[SummaryInput] = []
    for entry in markdown.entries(text):
        at = f"{entry.at.astimezone(zone):%Y-%m-%d %H:%M}" if entry.at else day.isoformat()
        if entry.text.strip() and not entry.is_by_code:
            pieces.append(_piece(entry.id or path, at, entry.role or "note", entry.text))
    return pieces


def pieces_of_summary(path: str, day: date, text: str) -> list[SummaryInput]:
    parts = [(part.id, part.text) for part in markdown.parts(text)] or [(path, text)]
    return [_piece(source, day.isoformat(), "summary", t) for source, t in parts if t.strip()]


def packed(pieces: Iterable[SummaryInput]) -> list[list[SummaryInput]]:
    return _packs(pieces, lambda piece: len(piece.line), PROMPT_CHARACTERS, joint=1)


def fenced(pieces: Iterable[SummaryInput]) -> str:
    return fence("\n".join(piece.line for piece in pieces), "json")


def _piece(source: str, at: str, role: str, text: str) -> SummaryInput:
    text = text.encode("utf-8", "replace").decode()
    if len(text) > TEXT_CHARACTERS:
        text = f"{text[: TEXT_CHARACTERS * 3 // 4]} … {text[-TEXT_CHARACTERS // 4 :]}"
    return SummaryInput(
        source, json.dumps({"at": at, "role": role, "text": text}, ensure_ascii=False)
    )


# ---- ageing of files


@dataclass(frozen=True, slots=True)
class SummaryTarget:
    kind: Kind
    name: str
    raw: tuple[str, ...]
    daily: tuple[str, ...] = ()


def targets(raw: Iterable[str], daily: Iterable[str], today: date) -> list[SummaryTarget]:
    """The summaries that are due, oldest first."""
    by_name: dict[tuple[str, Kind], tuple[list[str], list[str]]] = {}
    for is_daily, names in enumerate((raw, daily)):
        for name in sorted(names):
            day = markdown.date_of(name)
            kind = place(day, today) if day else "raw"
            if day and (kind == "month" or (kind == "day" and not is_daily)):
                by_name.setdefault((place_name(kind, day), kind), ([], []))[is_daily].append(name)
    return [
        SummaryTarget(kind, name, tuple(raws), tuple(dailies))
        for (name, kind), (raws, dailies) in sorted(by_name.items())
    ]


# ---- extractive summaries: the best sentences, in order, with their dates

# For English and Chinese. A sentence scores by its terms: those used more than once, but not in
# every sentence; with a bonus for first sentences, numbers and names, and user messages.

SHARE = 0.25
"""Length of a summary relative to the text, within the two limits."""
MIN_CHARACTERS = 600
MAX_CHARACTERS = 3_000
SENTENCE_CHARACTERS = 240
_MAX_SENTENCES = 2_000
_ALIKE = 0.6
"""Sentences that share this fraction of their terms are duplicates."""

_END = re.compile(r"(?<=[。！？；!?…])\s*|(?<=[.;])\s+|\n+")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_COMMENT = re.compile(r"<!--(?:(?!<!--|-->).)*-->")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]+|\d(?:[\d.:/-]*\d)?|[\u3400-\u4dbf\u4e00-\u9fff]+")
_FACT = re.compile(r"\d|`[^`]+`|https?://|[A-Za-z_]+[/.][A-Za-z_]+")
_STOP = stop_words("summaries")
_STOP_CHARACTERS = frozenset("的了是我你他她它们吗呢吧啊在和与就都也很把被这那个個們嗎這")


@dataclass(frozen=True, slots=True)
class DatedText:
    at: str
    role: str
    text: str


_DATED_TEXT = TypeAdapter(DatedText)


@dataclass(frozen=True, slots=True)
class _Sentence(DatedText):
    terms: frozenset[str]
    is_first: bool


def summarise_prompt(prompt: str) -> str:
    """Summarise the lines of JSON in a prompt; "" if there are none."""
    return summarise(inputs_in(prompt))


def inputs_in(prompt: str) -> list[DatedText]:
    """The lines of JSON in a prompt, in order."""
    inputs: list[DatedText] = []
    for line in prompt.split("\n"):
        if line.startswith('{"at"'):
            with contextlib.suppress(ValidationError):
                inputs.append(_DATED_TEXT.validate_json(line, strict=True))
    return inputs


def summarise(texts: Iterable[DatedText]) -> str:
    """A list of the most relevant sentences, in order, each with its date."""
    sentences = [sentence for one in texts for sentence in _sentences(one)]
    whole = sum(len(s.text) for s in sentences)
    room = min(max(int(whole * SHARE), MIN_CHARACTERS), MAX_CHARACTERS)
    chosen: list[_Sentence] = []
    for sentence in _best_first(sentences):
        if chosen and room < 40:
            break
        cost = len(sentence.text) + 20
        fits = not chosen or cost <= room
        if fits and not any(_is_duplicate(sentence, other) for other in chosen):
            chosen.append(sentence)
            room -= cost
    lines: list[str] = []
    for one in sorted(chosen, key=sentences.index):
        by = f" {one.at} {one.role}:"
        if one.role == "summary":  # has dates of its own
            by = "" if one.text.startswith(one.at[:10]) else f" {one.at[:10]}"
        lines.append(f"-{by} {one.text}")
    return "\n".join(lines)


def _sentences(message: DatedText) -> list[_Sentence]:
    prose = [part for text in _CODE.split(message.text) for part in _COMMENT.split(text)]
    sentences: list[_Sentence] = []
    for raw in (raw for text in prose for raw in _END.split(text)):
        sentence = raw.strip()
        if message.role == "summary":  # a list item
            sentence = sentence.removeprefix("- ")
        terms: set[str] = set()
        """Words, numbers, and pairs of Chinese characters."""
        for word in _WORD.findall(sentence):
            bare = [c for c in word if c not in _STOP_CHARACTERS]
            pairs = {a + b for a, b in itertools.pairwise(bare)}
            terms |= {word.lower()} if word[0].isascii() else pairs
        terms -= _STOP
        if terms and len(sentences) < _MAX_SENTENCES:
            cut = len(sentence) > SENTENCE_CHARACTERS
            shown = sentence[: SENTENCE_CHARACTERS - 1].rstrip() + "…" if cut else sentence
            sentences.append(
                _Sentence(message.at, message.role, shown, frozenset(terms), not sentences)
            )
    return sentences


def _best_first(sentences: list[_Sentence]) -> list[_Sentence]:
    counts = Counter(term for sentence in sentences for term in sentence.terms)
    # Terms in every sentence score nothing, those used only once little.
    worth = {t: math.log1p(n) * math.log1p(len(sentences) / n) for t, n in counts.items()}

    def score(sentence: _Sentence) -> float:
        terms = sum(worth[term] for term in sentence.terms) / (len(sentence.terms) + 3)
        bonus = 1.0 + 0.15 * sentence.is_first + 0.25 * bool(_FACT.search(sentence.text))
        return terms * (bonus + 0.2 * (sentence.role == "user"))

    return sorted(sentences, key=score, reverse=True)


def _is_duplicate(one: _Sentence, other: _Sentence) -> bool:
    """Whether two sentences share most terms, and all numbers of one are in the other."""
    mine, theirs = ({t for t in s.terms if any(map(str.isdigit, t))} for s in (one, other))
    shared = len(one.terms & other.terms)
    is_alike = shared >= _ALIKE * min(len(one.terms), len(other.terms))
    return is_alike and (mine <= theirs or theirs <= mine)
