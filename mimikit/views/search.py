"""What a search found: messages, memory and work, each with its number and a place to go to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from mimikit.language.plain_text import plain_words
from mimikit.memory.passages import NEAR, RESULTS, SAID, Scope
from mimikit.protocol.files import ReadOnlyFiles
from mimikit.protocol.models import Hit
from mimikit.tasks.queue import TaskState
from mimikit.views import tasks
from mimikit.views.base import Title, View
from mimikit.views.jobs import JobState, JobView

if TYPE_CHECKING:
    from mimikit.memory.search import MemorySearch

MOST_COUNTED = 100
"""Of each kind; more are counted as so many."""
_NAMED_FIRST = 3
"""So much work stands above all else because of its title."""
SearchKind: TypeAlias = Literal["messages", "memory", "work"]
_SCOPES: dict[SearchKind, Sequence[Scope]] = {
    "messages": (SAID,), "memory": NEAR, "work": (RESULTS,),
}  # fmt: skip


class HitView(View):
    """What a search found, with the places in its snippet that were asked for."""

    source: str
    kind: str
    snippet: str
    """Plain words, whatever markdown they stood in."""
    marks: list[tuple[int, int]]
    """Begin and end of each. Units: characters; in order, none overlap."""
    score: float
    day: date | None
    line: int
    """0: not in a text file."""
    message_id: str | None
    role: str | None
    task_id: str | None


class SearchHitView(HitView):
    title: Title | None
    """Of the task whose result it is."""
    state: TaskState | JobState | None


class SearchCounts(View):
    """How many of each kind were found; 100 is so many or more."""

    messages: int
    memory: int
    work: int


class SearchAnswer(View):
    query: str
    hits: list[SearchHitView]
    counts: SearchCounts
    took_ms: float
    fallback: str | None
    """Why a plain scan served."""


class HitReport(HitView):
    text: str
    """The whole passage."""


class SearchReport(View):
    query: str
    hits: list[HitReport]
    fallback: str | None
    """Why a plain scan served."""


def look_up(
    engine: MemorySearch,
    files: ReadOnlyFiles,
    query: str,
    kind: SearchKind | None,
    limit: int,
    *,
    after: datetime | None,
    before: datetime | None,
    named: Sequence[JobView] = (),
) -> tuple[list[SearchHitView], SearchCounts]:
    """The best hits of one kind, or of all, and how many of each there are.

    named: work that bears what is looked for in its title.
    """
    found = {
        one: engine.find(query, limit=MOST_COUNTED, after=after, before=before, scopes=scopes)
        for one, scopes in _SCOPES.items()
    }
    said = {hit.message_id for hit in found["messages"]}
    # A message that memory keeps is one all the same, shown where it was said if that was found.
    kept = [hit for hit in found["memory"] if hit.message_id]
    found["messages"] += [hit for hit in kept if hit.message_id not in said]
    found["memory"] = [hit for hit in found["memory"] if not hit.message_id]
    shown = {job.task_id for job in named}
    found["work"] = [hit for hit in found["work"] if hit.task_id not in shown]
    numbers = {one: len(found[one]) for one in get_args(SearchKind)}
    numbers["work"] += len(named)
    counts = SearchCounts(**{one: min(number, MOST_COUNTED) for one, number in numbers.items()})
    hits = found[kind] if kind else [*chain(*found.values())]
    hits.sort(key=lambda hit: -hit.score)
    best = hits[0].score if hits else 1.0
    titled = [_named(job, query, best) for job in named if kind in (None, "work")]
    titled = titled[: limit if kind else _NAMED_FIRST]
    return titled + [_found(files, hit, query) for hit in hits[: limit - len(titled)]], counts


def _named(job: JobView, query: str, score: float) -> SearchHitView:
    is_trigger, title = job.kind == "trigger", plain_words(job.title)
    return SearchHitView(
        source=job.id,
        kind="trigger" if is_trigger else "work",
        snippet=title,
        marks=marks(query, title),
        score=score,
        day=None,
        line=0,
        message_id=None,
        role=None,
        task_id=None if is_trigger else job.task_id,
        title=None,
        state=job.state,
    )


def _found(files: ReadOnlyFiles, hit: Hit, query: str) -> SearchHitView:
    known = tasks.find_view(files, hit.task_id) if hit.task_id else None
    return SearchHitView.of(
        hit,
        **_words(hit, query),
        title=known and tasks.title_of(known.task),
        state=known and known.state,
    )


def hit_view(hit: Hit, query: str) -> HitView:
    return HitView.of(hit, **_words(hit, query))


def _words(hit: Hit, query: str) -> dict[str, object]:
    snippet = plain_words(hit.snippet)
    return {"snippet": snippet, "marks": marks(query, snippet)}


def marks(query: str, snippet: str) -> list[tuple[int, int]]:
    """Where a snippet has the words of a query. Units: characters; in order, none overlap.

    Single Chinese characters are marked only where nothing longer is: they stand everywhere.
    """
    from mimikit.memory import terms

    places = terms.occurrences(snippet, set(terms.terms(query)))
    long = [term for term in places if len(term.text) > 1 or not terms.has_wide(term.text)]
    joined: list[tuple[int, int]] = []
    for start, end in sorted((term.start, term.end) for term in long or places):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined
