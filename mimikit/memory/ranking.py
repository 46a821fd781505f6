"""Which matches are hits, in which order, and what of each is shown or quoted. Pure.

Also the plain scan for when the index has nothing or is not there: it finds words as they stand, so
also what no index of words has (a part of a word, a stop word).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TypeAlias

from mimikit.memory import passages
from mimikit.memory.passages import Kind, Passage, Window
from mimikit.memory.terms import folded, has_wide, occurrences, terms
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
WIDTH = 300
"""Characters of one quotation."""
TRUNCATED = " [truncated]"
_MOST_WORDS = 32
"""Of a scan."""


Beside: TypeAlias = Callable[[int], "Passage | None"]
"""What stands so many passages after one in its file (before it, if negative); None: nothing."""


@dataclass(frozen=True, slots=True)
class Match:
    """A passage that holds some of what was asked for."""

    path: str
    passage: Passage
    score: float
    beside: Beside = field(default=lambda _: None, compare=False, repr=False)


def among(found: Sequence[Passage], number: int) -> Beside:
    """What stands beside the passage of this number."""
    last = len(found) - 1
    return lambda step: found[number + step] if 0 <= number + step <= last else None


def rank(
    found: Sequence[Match], file_scores: Mapping[str, float], today: date, limit: int
) -> list[Match]:
    """The best hits, one for each message and text, none far below the best.

    A day's own words stand for its summary.
    """
    scored: list[Match] = []
    for match in found:
        score = match.score + FILE_SHARE * file_scores.get(match.path, 0.0)
        weight = _WEIGHTS[passages.kind_of(match.path)]
        bonus = recency(match.passage.day, today)
        scored.append(replace(match, score=score * weight * bonus))
    scored.sort(key=lambda hit: -hit.score)
    # Of a message that stands in memory and in the transcript, memory is shown.
    distinct: dict[object, Match] = {}
    for hit in scored:
        if hit.score < LEAST_SHARE * scored[0].score:
            break
        key = hit.passage.message_id or (hit.passage.task_id, hit.passage.text)
        first = distinct.setdefault(key, hit)
        if "transcript" == passages.kind_of(first.path) != passages.kind_of(hit.path):
            distinct[key] = replace(hit, score=first.score)
    return _without_told([*distinct.values()])[: max(limit, 0)]


def recency(day: date | None, today: date) -> float:
    """A mild bonus: whole for the last days, halved every month. What has no day has half of it."""
    if day is None:
        return 1 + RECENT_BONUS / 2
    age = max((today - day).days - RECENT_DAYS, 0)
    return 1 + RECENT_BONUS * 0.5 ** (age / HALF_LIFE_DAYS)


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
        elif kind == "memory" and day not in seen:
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
    """At most `width` characters of a text: where the weightiest terms stand together."""
    if len(text) <= width:
        return text
    marks = occurrences(text, weights)
    first = start = end = 0
    most = 0.0
    for last, mark in enumerate(marks):
        while first < last and mark.end - marks[first].start > width:
            first += 1
        weight = sum(weights[term] for term in {m.text for m in marks[first : last + 1]})
        if weight > most:
            start, most = marks[first].start, weight
            end = min(mark.end, start + width)  # of an endless word
    # Widened on both sides, at words where there are some.
    room = width - (end - start)
    start = max(0, min(start - room // 2, len(text) - width))
    end = min(len(text), start + width)
    if start and (space := text.find(" ", start, start + 20)) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", end - 20, end)) >= 0:
        end = space
    return (CUT if start else "") + text[start:end].strip() + (CUT if end < len(text) else "")


# ---- what a prompt quotes

# An answer often stands beside the message that matches the question. The room of a hit is used for
# its neighbours, those first that match better themselves.


def quotations(
    hits: Sequence[Match], weights: Mapping[str, float], limit: int
) -> list[tuple[Match, str]]:
    """At most `limit` hits, best first, each with its text among its neighbours.

    What one of them shows is no other's.

    hits: best first, more than `limit`, so that those already shown can be passed over.
    """
    scores = {(hit.path, hit.passage): hit.score for hit in hits}
    shown: set[tuple[str, Passage]] = set()
    made: list[tuple[Match, str]] = []
    for hit in hits:
        if len(made) == limit:
            break
        if (hit.path, hit.passage) in shown:
            continue
        group = _group(hit, scores, shown)
        shown.update((hit.path, passage) for passage in group)
        text = "\n".join(_line(passage) for passage in group)
        if len(text) > WIDTH:
            role = f"{group[0].role}: " if group[0].role else ""
            width = WIDTH - len(TRUNCATED) - len(role) - 2 * len(CUT)
            text = role + snippet(group[0].text, weights, width) + TRUNCATED
        made.append((hit, text))
    return made


def _group(
    hit: Match, scores: Mapping[tuple[str, Passage], float], shown: set[tuple[str, Passage]]
) -> list[Passage]:
    """The hit with those around it that fit beside it."""
    group, room = {0: hit.passage}, WIDTH - len(_line(hit.passage))
    while not hit.passage.alone:
        near = {step: hit.beside(step) for step in (min(group) - 1, max(group) + 1)}
        beside = {
            step: passage
            for step, passage in near.items()
            if passage is not None
            and not passage.alone
            and passage.context == hit.passage.context  # of another section it would mislead
            and (hit.path, passage) not in shown
            and len(_line(passage)) < room
        }
        if not beside:
            break
        # Of two that match alike, what comes after: an answer follows its question.
        best = max(beside, key=lambda n: (scores.get((hit.path, beside[n]), 0.0), n))
        group[best] = beside[best]
        room -= len(_line(beside[best])) + 1
    return [group[step] for step in sorted(group)]


def _line(passage: Passage) -> str:
    before, after = CUT * passage.is_cut_before, CUT * passage.is_cut_after
    role = f"{passage.role}: " if passage.role else ""
    return f"{role}{before}{passage.text}{after}"


# ---- without an index


def scanned_words(query: str) -> list[str]:
    """The words to look for, in lower case: those that say something, else all."""
    words = [word for word in folded(query).split() if terms(word)] or folded(query).split()
    # A word as it stands; of Chinese, which has no spaces, its characters and pairs.
    parts = [part for word in words for part in (has_wide(word) and terms(word)) or [word]]
    return list(dict.fromkeys(parts))[:_MOST_WORDS]


def may_hold(data: bytes, words: Sequence[str]) -> bool:
    text = folded(data.decode("utf-8", "replace"))
    return any(word in text for word in words)


def scan(path: str, found: Sequence[Passage], words: Sequence[str], window: Window) -> list[Match]:
    """The passages with some of the words, each scored by the share of them it holds."""
    seen: list[Match] = []
    for number, passage in enumerate(found):
        text = folded(f"{passage.context} {passage.text}")
        held = sum(word in text for word in words)
        if held and window.holds(passage.at):
            seen.append(Match(path, passage, held / len(words), among(found, number)))
    return seen
