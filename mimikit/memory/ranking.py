"""Ranks matches, extracts snippets and excerpts, scans text without an index. Pure.

The scan is the fallback if the index finds nothing: it also matches parts of words and stop words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import NamedTuple, TypeAlias

from mimikit.memory import passages
from mimikit.memory.passages import Kind, Passage, Window
from mimikit.memory.terms import folded, has_cjk, has_only, occurrences, terms
from mimikit.protocol import paths

FILE_SHARE = 1.0
"""Weight of the file's score relative to the passage's."""
ECHO_WEIGHT = 0.3
"""Weight of a message with no other terms than the query's: the same question, asked before."""
COMMAND_WEIGHT = 0.3
"""Weight of a command line of the user's, so that notes come first."""
NOTE_WEIGHT = 2.0
"""Weight of notes: one with half as many of the terms ranks before a message."""
MIN_SHARE = 0.1
"""Matches below this share of the best score are dropped."""
RECENT_DAYS, RECENT_BONUS, HALF_LIFE_DAYS = 5, 0.1, 30.0
_WEIGHTS: Mapping[Kind, float] = {
    "memory": 1.0, "summary": 0.95, "docs": 0.95, "transcript": 0.8, "result": 0.8,
}  # fmt: skip
_SUMMARY = f"{paths.MEMORY_FOLDER}/summary/"
SNIPPET = 300
"""Characters of a snippet, without `CUT` marks."""
CUT = "…"
EXCERPT = 400
"""A passage of more characters is quoted in full only where room is left."""
_FILLINGS, _MIN_ROOM = 2, 8
BESIDE_SHARE = 0.8
"""Score of a hit's neighbours, as a share of its own."""
_ECHOES, _ECHO_CHARACTERS = 30, 200
"""Number of hits checked for echoes, and the maximum characters of an echo."""
_MAX_WORDS = 32
_COMMAND = re.compile(r"\s*(?:please\s+)?(?:run|execute|运行|执行)\s*[:：`]", re.IGNORECASE)


Neighbour: TypeAlias = Callable[[int], "Passage | None"]
"""Offset → the passage so many after (negative: before) in the same file; None: there is none."""


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    passage: Passage
    score: float
    """A share of the maximum score: at most about 1."""
    number: int = 0
    neighbour: Neighbour = field(default=lambda _: None, compare=False, repr=False)


def neighbours(passages: Sequence[Passage], number: int) -> Neighbour:
    last = len(passages) - 1
    return lambda step: passages[number + step] if 0 <= number + step <= last else None


def rank(
    matches: Sequence[Match],
    file_scores: Mapping[str, float],
    today: date,
    limit: int,
    asked: Container[str] = (),
) -> list[Match]:
    """The best hits without duplicates; a day's messages replace its summary.

    asked: the terms of the query.
    """
    scored: list[Match] = []
    for match in matches:
        score = match.score
        is_command = _is_command(match.passage)
        if not (is_note := _is_note(match)) and not is_command:
            score += FILE_SHARE * file_scores.get(match.path, 0.0)
        weight = NOTE_WEIGHT if is_note else _WEIGHTS[passages.kind_of(match.path)]
        weight *= COMMAND_WEIGHT if is_command else 1.0
        bonus = recency(match.passage.day, today)
        scored.append(replace(match, score=score * weight * bonus))
    scored.sort(key=lambda hit: -hit.score)
    for number, hit in enumerate(scored[:_ECHOES]):
        if not _is_note(hit) and _is_echo(hit.passage, asked):
            scored[number] = replace(hit, score=hit.score * ECHO_WEIGHT)
    scored.sort(key=lambda hit: -hit.score)
    # A message in both memory and transcript is shown from memory.
    distinct: dict[object, Match] = {}
    for hit in scored:
        if hit.score < MIN_SHARE * scored[0].score:
            break
        key = hit.passage.message_id or (hit.passage.task_id, hit.passage.text)
        first = distinct.setdefault(key, hit)
        if "transcript" == passages.kind_of(first.path) != passages.kind_of(hit.path):
            distinct[key] = replace(hit, score=first.score)
    return _with_notes(_without_summarised([*distinct.values()]), max(limit, 0))


def _is_echo(passage: Passage, asked: Container[str]) -> bool:
    is_brief = passage.role is not None and len(passage.text) <= _ECHO_CHARACTERS
    return is_brief and has_only(passage.text, asked)


def _is_command(passage: Passage) -> bool:
    return passage.role == "user" and _COMMAND.match(passage.text) is not None


def _is_note(match: Match) -> bool:
    return passages.scope_of(match.path, match.passage) == passages.NOTES


def _with_notes(hits: list[Match], limit: int) -> list[Match]:
    """The best hits; further matching notes replace the last ones, up to half."""
    shown, rest = hits[:limit], hits[limit:]
    room = (limit + 1) // 2 - sum(map(_is_note, shown))
    notes = [hit for hit in rest if _is_note(hit)][: max(room, 0)]
    others = [hit for hit in reversed(shown) if not _is_note(hit)][: len(notes)]
    return [hit for hit in shown if not any(hit is other for other in others)] + notes


def recency(day: date | None, today: date) -> float:
    """A mild factor for recent days, halved every month; half where there is no day."""
    if day is None:
        return 1 + RECENT_BONUS / 2
    age = max((today - day).days - RECENT_DAYS, 0)
    return 1 + RECENT_BONUS * 0.5 ** (age / HALF_LIFE_DAYS)


def _without_summarised(hits: list[Match]) -> list[Match]:
    """Drop summaries of days whose messages are hits; the messages take the better score."""
    own = {hit.passage.day for hit in hits if passages.kind_of(hit.path) == "memory"} - {None}
    better: dict[date | None, float] = {}
    seen: set[date | None] = set()
    remaining: list[Match] = []
    for hit in hits:
        day, kind = hit.passage.day, passages.kind_of(hit.path)
        if kind == "summary" and day in own:
            better.setdefault(day, hit.score)
        elif kind == "memory" and day not in seen:
            seen.add(day)
            remaining.append(replace(hit, score=max(hit.score, better.get(day, 0.0))))
        else:
            remaining.append(hit)
    return sorted(remaining, key=lambda hit: -hit.score)


def visible(known: Mapping[str, object]) -> list[str]:
    return [path for path in known if not is_hidden(path, known)]


def is_hidden(path: str, known: Container[str]) -> bool:
    if not path.startswith(_SUMMARY):
        return False
    day = passages.day_of(path)
    return day is not None and f"{path.rpartition('/')[0]}/{day:%Y-%m}.md" in known


def snippet(text: str, weights: Mapping[str, float], width: int = SNIPPET) -> str:
    """The section of `width` characters with the greatest weight of terms."""
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
    # Widen on both sides, to whole words.
    room = width - (end - start)
    start = max(0, min(start - room // 2, len(text) - width))
    end = min(len(text), start + width)
    if start and (space := text.find(" ", start, start + 20)) >= 0:
        start = space + 1
    if end < len(text) and (space := text.rfind(" ", end - 20, end)) >= 0:
        end = space
    return (CUT if start else "") + text[start:end].strip() + (CUT if end < len(text) else "")


# ---- excerpts for a prompt


class Excerpt(NamedTuple):
    hit: Match
    text: str


@dataclass(slots=True, eq=False)
class _Quote:
    hit: Match
    score: float
    is_whole: bool = False
    price: int = 0
    """0: not computed yet."""


def excerpts(
    hits: Sequence[Match],
    weights: Mapping[str, float],
    most: int,
    budget: int,
    cost: Callable[[str], int],
) -> list[Excerpt]:
    """Quote the best passages of at most `most` sources within a budget, best source first.

    Passages keep the order of their file, verbatim, with `…` for omissions. Long passages are cut
    first, and quoted in full where room is left.

    hits: best first. budget: of all excerpts, in the unit of `cost`.
    """
    sources = [*dict.fromkeys(hit.path for hit in hits)][:most]
    best = {path: next(hit for hit in hits if hit.path == path) for path in sources}
    waiting = _quotable([hit for hit in hits if hit.path in best])
    quoted: list[_Quote] = []
    left = budget - sum(cost(f"[{path}]") for path in sources)
    for _ in range(_FILLINGS):  # the joint cost is known only afterwards
        for quote in waiting:
            if left < _MIN_ROOM:
                break
            quote.price = quote.price or cost(f"\n{_quote_text(quote, weights)}") + 1
            if quote.price <= left:
                quoted.append(quote)
                left -= quote.price
        waiting = [quote for quote in waiting if quote not in quoted]
        left = budget - _total_cost(quoted, weights, cost)
    for quote in quoted:
        if len(quote.hit.passage.text) > EXCERPT:
            more = cost(_full_text(quote.hit.passage)) - quote.price + 3
            quote.is_whole = more <= left
            left -= more if quote.is_whole else 0
    while quoted and _total_cost(quoted, weights, cost) > budget:
        quoted.pop()
    shown = _by_source(quoted, weights)
    return [Excerpt(best[path], shown[path]) for path in sources if path in shown]


def _total_cost(
    quoted: Sequence[_Quote], weights: Mapping[str, float], cost: Callable[[str], int]
) -> int:
    return sum(cost(f"[{path}] {text}") for path, text in _by_source(quoted, weights).items())


def _quotable(hits: Sequence[Match]) -> list[_Quote]:
    """The hits and their neighbours, which often contain the answer; best first."""
    known = {(hit.path, hit.number): _Quote(hit, hit.score) for hit in hits}
    for hit in hits:
        for step in (1, -1):
            passage, place = hit.neighbour(step), (hit.path, hit.number + step)
            # Notes have no neighbours; a passage of another section would mislead.
            if passage is None or passage.is_note or hit.passage.is_note:
                continue
            if passage.context == hit.passage.context and place not in known:
                near = Match(hit.path, passage, hit.score * BESIDE_SHARE, place[1])
                known[place] = _Quote(near, near.score)
            elif place in known:
                known[place].score = max(known[place].score, hit.score * BESIDE_SHARE)
    return sorted(known.values(), key=lambda quote: -quote.score)


def _by_source(quoted: Sequence[_Quote], weights: Mapping[str, float]) -> dict[str, str]:
    texts: dict[str, str] = {}
    before = -2
    for quote in sorted(quoted, key=_order):
        hit, passage = quote.hit, quote.hit.passage
        text = _quote_text(quote, weights)
        if hit.path == paths.MEMORY and passage.day:
            text = f"{passage.day}: {text}"
        if hit.path in texts:
            is_next = abs(hit.number - before) == 1 and (passage.role or passage.is_note)
            text = texts[hit.path] + ("\n" if is_next else f"\n{CUT}\n") + text
        texts[hit.path], before = text, hit.number
    return texts


def _order(quote: _Quote) -> tuple[str, int]:
    """In the order of their file, but the newest notes first."""
    number = quote.hit.number
    return quote.hit.path, -number if quote.hit.passage.is_note else number


def _quote_text(quote: _Quote, weights: Mapping[str, float]) -> str:
    passage = quote.hit.passage
    if quote.is_whole or len(passage.text) <= EXCERPT:
        return _full_text(passage)
    return f"{passage.role}: " * bool(passage.role) + snippet(passage.text, weights, EXCERPT)


def _full_text(passage: Passage) -> str:
    before, after = CUT * passage.is_cut_before, CUT * passage.is_cut_after
    role = f"{passage.role}: " if passage.role else ""
    return f"{role}{before}{passage.text}{after}"


# ---- without an index


def scanned_words(query: str) -> list[str]:
    """The words to scan for, folded, without stop words unless there are no others."""
    words = [word for word in folded(query).split() if terms(word)] or folded(query).split()
    # Chinese has no spaces: characters and pairs.
    parts = [part for word in words for part in (has_cjk(word) and terms(word)) or [word]]
    return list(dict.fromkeys(parts))[:_MAX_WORDS]


def may_contain(data: bytes, words: Sequence[str]) -> bool:
    text = folded(data.decode("utf-8", "replace"))
    return any(word in text for word in words)


def scan(
    path: str, passages: Sequence[Passage], words: Sequence[str], window: Window
) -> list[Match]:
    """The passages that contain any of the words, scored by the share of words."""
    seen: list[Match] = []
    for number, passage in enumerate(passages):
        text = folded(f"{passage.context} {passage.text}")
        count = sum(word in text for word in words)
        if count and window.contains(passage.at):
            share = count / len(words)
            seen.append(Match(path, passage, share, number, neighbours(passages, number)))
    return seen
