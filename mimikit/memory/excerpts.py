"""What a prompt quotes of the hits: each with as much of what stands around it as fits. Pure.

An answer often stands beside the message that matches the question. The room of a hit is used for
its neighbours, those first that match better themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mimikit.memory import ranking
from mimikit.memory.passages import Passage
from mimikit.memory.ranking import Match

WIDTH = 300
"""Characters of one quotation."""
TRUNCATED = " [truncated]"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A quotation: the hit it is made for, and the text with its neighbours."""

    hit: Match
    text: str


def excerpts(
    hits: Sequence[Match],
    passages_of: Callable[[str], Sequence[Passage]],
    weights: Mapping[str, float],
    limit: int,
) -> list[Excerpt]:
    """At most `limit` quotations, best first; what one of them shows is no other's.

    hits: best first, more than `limit`, so that those already shown can be passed over.
    passages_of: the passages of a file, in its order.
    """
    scores = {(hit.path, hit.passage): hit.score for hit in hits}
    shown: set[tuple[str, Passage]] = set()
    made: list[Excerpt] = []
    for hit in hits:
        if len(made) == limit:
            break
        if (hit.path, hit.passage) not in shown:
            group = _group(hit, passages_of(hit.path), scores, shown)
            shown.update((hit.path, passage) for passage in group)
            made.append(Excerpt(hit, _said(group, weights)))
    return made


def _group(
    hit: Match,
    known: Sequence[Passage],
    scores: Mapping[tuple[str, Passage], float],
    shown: set[tuple[str, Passage]],
) -> list[Passage]:
    """The hit with those around it that fit beside it."""
    first = last = next((n for n, passage in enumerate(known) if passage == hit.passage), -1)
    if first < 0 or hit.passage.alone:
        return [hit.passage]
    room = WIDTH - len(_line(hit.passage))
    while True:
        beside = [
            number
            for number in (first - 1, last + 1)
            if 0 <= number < len(known)
            and not known[number].alone
            and known[number].context == hit.passage.context  # of another section it would mislead
            and (hit.path, known[number]) not in shown
            and len(_line(known[number])) < room
        ]
        if not beside:
            return list(known[first : last + 1])
        # Of two that match alike, what comes after: an answer follows its question.
        best = max(beside, key=lambda n: (scores.get((hit.path, known[n]), 0.0), n))
        first, last = min(first, best), max(last, best)
        room -= len(_line(known[best])) + 1


def _said(group: Sequence[Passage], weights: Mapping[str, float]) -> str:
    text = "\n".join(_line(passage) for passage in group)
    if len(text) <= WIDTH:
        return text
    role = f"{group[0].role}: " if group[0].role else ""
    width = WIDTH - len(TRUNCATED) - len(role) - 2 * len(ranking.CUT)
    return role + ranking.snippet(group[0].text, weights, width) + TRUNCATED


def _line(passage: Passage) -> str:
    return f"{passage.role}: {passage.text}" if passage.role else passage.text
