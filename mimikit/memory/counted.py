"""By which terms passages and files are found, and how often each counts. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from mimikit.memory import passages
from mimikit.memory.passages import Passage
from mimikit.memory.text import Cutter, terms

OWN, ABOVE = 4, 2
AROUND = {-2: 1, -1: 2, 1: 1}
"""How often the terms of a passage, of its context and of its neighbours are counted.

Measured on dialogues (docs/memory.md): what stands before a message says what it is about.
"""
_AROUND_TERMS = 60
_FILE_TERMS = 5000
_SPEAKER = re.compile(r"[^\W\d_][\w.'-]*(?: [\w.'-]+){0,2}[:：]")


@dataclass(frozen=True, slots=True)
class Counted:
    """The terms of a file's passages, in their order, and of the file as a whole."""

    each: list[list[str]]
    whole: list[str]


def counted(found: list[Passage], cut: Cutter | None) -> Counted:
    """The terms of the passages of one file."""
    own = {id(passage): terms(passage.text, cut) for passage in found}
    said = {id(passage): own[id(passage)][_labels(passage.text) :] for passage in found}
    each: list[list[str]] = []
    for passage, around in passages.neighbours(found):
        mine = own[id(passage)] * OWN + terms(passage.context, cut) * ABOVE
        for step, neighbour in around.items():
            mine += said[id(neighbour)][:_AROUND_TERMS] * AROUND[step]
        each.append(mine + date_terms(passage.day))
    every = [term for passage in found for term in own[id(passage)]]
    days = {passage.day for passage in found}
    dates = date_terms(days.pop()) if len(days) == 1 else []
    return Counted(each, every[:_FILE_TERMS] + dates)


def date_terms(day: date | None) -> list[str]:
    """A day as people write it: its number, the month's name, the year."""
    return terms(f"{day.day} {day:%B} {day.year}") if day else []


def _labels(text: str) -> int:
    """How many terms name the speaker of a line (`Ann Lee: …`): they say nothing of others."""
    label = _SPEAKER.match(text)
    return len(terms(label[0])) if label else 0
