"""Which matches are hits, in which order, and which part of each is shown. Pure."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from mimikit.memory import passages
from mimikit.memory.passages import Kind, Passage
from mimikit.memory.text import occurrences
from mimikit.protocol import paths

FILE_SHARE = 0.6
"""Weight of the score of the whole file beside that of the passage."""
LEAST_SHARE = 0.1
"""A hit below this share of the best one is none."""
RECENT_DAYS, RECENT_BONUS, HALF_LIFE_DAYS = 5, 0.1, 30.0
_WEIGHTS: Mapping[Kind, float] = {
    "memory": 1.0, "summary": 0.95, "docs": 0.95, "transcript": 0.8, "result": 0.8,
}  # fmt: skip
_SUMMARY = f"{paths.MEMORY_FOLDER}/summary/"
SNIPPET = 300
"""Characters of a snippet, without the marks of its cuts."""
CUT = "…"


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that holds some of what was asked for."""

    path: str
    passage: Passage
    score: float


def rank(
    found: Sequence[Match], file_scores: Mapping[str, float], today: date, limit: int
) -> list[Match]:
    """The best hits, one for each message, none far below the best."""
    scored = [
        Match(
            match.path,
            match.passage,
            (match.score + FILE_SHARE * file_scores.get(match.path, 0.0))
            * _WEIGHTS[passages.kind_of(match.path)]
            * recency(match.passage.day, today),
        )
        for match in found
    ]
    scored.sort(key=lambda hit: -hit.score)
    near = [hit for hit in scored if hit.score >= LEAST_SHARE * scored[0].score]
    return _one_each(near)[: max(limit, 0)]


def recency(day: date | None, today: date) -> float:
    """A mild bonus: whole for the last days, halved every month. What has no day has half of it."""
    if day is None:
        return 1 + RECENT_BONUS / 2
    age = max((today - day).days - RECENT_DAYS, 0)
    return 1 + RECENT_BONUS * 0.5 ** (age / HALF_LIFE_DAYS)


def _one_each(hits: list[Match]) -> list[Match]:
    """One hit for each message and text; a day's own words stand for its summary.

    Of a message that stands in memory and in the transcript, memory is shown.
    """
    places: dict[object, int] = {}
    kept: list[Match] = []
    for hit in hits:
        key = hit.passage.message_id or (hit.passage.task_id, hit.passage.text)
        if key not in places:
            places[key] = len(kept)
            kept.append(hit)
        else:
            first = kept[places[key]]
            if "transcript" == passages.kind_of(first.path) != passages.kind_of(hit.path):
                kept[places[key]] = replace(hit, score=first.score)
    return _without_told(kept)


def _without_told(hits: list[Match]) -> list[Match]:
    """Without the summaries of days whose own words are there: those take the better place."""
    own = {hit.passage.day for hit in hits if passages.kind_of(hit.path) == "memory"} - {None}
    better: dict[date | None, float] = {}
    seen: set[date | None] = set()
    kept: list[Match] = []
    for hit in hits:
        day, kind = hit.passage.day, passages.kind_of(hit.path)
        if kind == "summary" and day in own:
            better.setdefault(day, hit.score)
            continue
        if kind == "memory" and day not in seen:
            seen.add(day)
            kept.append(replace(hit, score=max(hit.score, better.get(day, 0.0))))
        else:
            kept.append(hit)
    return sorted(kept, key=lambda hit: -hit.score)


def visible(known: Mapping[str, object]) -> list[str]:
    """Without the daily summaries of months that have a monthly one."""
    return [path for path in known if not is_hidden(path, known)]


def is_hidden(path: str, known: Container[str]) -> bool:
    """Whether it is the daily summary of a month that has a monthly one."""
    if not path.startswith(_SUMMARY):
        return False
    day = passages.day_of(path)
    return day is not None and f"{path.rpartition('/')[0]}/{day:%Y-%m}.md" in known


def snippet(text: str, weights: Mapping[str, float], width: int = SNIPPET) -> str:
    """At most `width` characters of a text: those around the most of what was asked for."""
    if len(text) <= width:
        return text
    start, end = best_place(text, weights, width)
    return (CUT if start else "") + text[start:end].strip() + (CUT if end < len(text) else "")


def best_place(text: str, weights: Mapping[str, float], width: int) -> tuple[int, int]:
    """Where the weightiest terms of the query stand together, as a piece of at most `width`."""
    if len(text) <= width:
        return 0, len(text)
    marks = occurrences(text, weights)
    best, best_weight = (0, 0), 0.0
    first = 0
    for last, mark in enumerate(marks):
        while first < last and mark.end - marks[first].start > width:
            first += 1
        weight = sum(weights[term] for term in {m.text for m in marks[first : last + 1]})
        if weight > best_weight:
            start = marks[first].start
            best, best_weight = (start, min(mark.end, start + width)), weight  # of an endless word
    return _opened(text, *best, width)


def _opened(text: str, start: int, end: int, width: int) -> tuple[int, int]:
    """A place widened on both sides, at words where there are some."""
    room = width - (end - start)
    start = max(0, min(start - room // 2, len(text) - width))
    end = min(len(text), start + width)
    if start and (space := text.find(" ", start, start + 20)) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", end - 20, end)) >= 0:
        end = space
    return start, end
