"""The full-text search in English and Chinese: for users (`find`) and for prompts (`recall`).

One object per process, thread-safe. The files are the source of truth.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Container, Mapping, Sequence
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from mimikit.clock import Clock
from mimikit.errors import StorageError
from mimikit.memory import passages, ranking, tokens
from mimikit.memory.documents import DocumentFolders
from mimikit.memory.index import K1, BrokenIndex, TermTotals, idf
from mimikit.memory.indexer import Indexer, IndexState, IndexStatus
from mimikit.memory.passages import FAR, NEAR, Scope, Window
from mimikit.memory.ranking import Match
from mimikit.memory.terms import ChineseDictionary, terms
from mimikit.protocol.files import Files
from mimikit.protocol.models import Hit
from mimikit.protocol.watch import FolderWatch

if TYPE_CHECKING:
    from mimikit.memory.tantivy_index import TantivyIndex

MAX_TERMS = 64
"""Of a longer query only the rarest terms are used."""
MAX_QUERY = 20_000
"""Characters; the rest is ignored."""
MESSAGE_START, MESSAGE_END = 3000, 1000
"""Of a longer message, only so many characters at its ends are the query."""
RECENT_WEIGHT, RECENT_CHARACTERS = 0.2, 2000
"""Weight of earlier messages in the query, and the characters used of each."""
_TURN_SHARE = 0.2
"""Sources whose best hit scores below this share of the best one are not quoted."""
_MIN_MATCHES, _MAX_MATCHES = 100, 250
_MAX_FILES = 200
_TURN_HITS = 200
_TURN_TOKENS = 2048
_TURN_PATIENCE_S = 0.02


def open_index(files: Files, folder: Path) -> TantivyIndex | None:
    """The index on disk of the state folder `folder`; None where tantivy cannot be imported."""
    try:
        from mimikit.memory.tantivy_index import TantivyIndex
    except ImportError:  # compiled, and not for every machine
        return None
    return TantivyIndex(files, folder)


class MemorySearch:
    """Searches the index; scans the files if it finds nothing."""

    def __init__(
        self,
        files: Files,
        *,
        workspace: Path | None,
        index: TantivyIndex | None,
        zone: tzinfo,
        clock: Clock,
        words: ChineseDictionary | None = None,
        watch: FolderWatch | None = None,
        patience_s: float = 2.0,
    ) -> None:
        """Reads nothing before the first search.

        workspace: its `docs/**/*.md` are searched too.
        index: None: everything is indexed in memory.
        words: None: Chinese is searched by characters and pairs only.
        watch: on the state folder, recursive; for long-lived processes.
        patience_s: how long `find` waits for a large index update.
        """
        self.watch = watch
        documents = DocumentFolders(files, workspace, watch)
        self._indexer = Indexer(documents, index, zone, clock, words)
        self.refresh, self.close = self._indexer.refresh, self._indexer.close
        self._zone, self._clock, self._patience_s = zone, clock, patience_s

    def find(
        self,
        query: str,
        *,
        limit: int = 10,
        after: datetime | None = None,
        before: datetime | None = None,
        everywhere: bool = True,
    ) -> list[Hit]:
        """Search memory, summaries and docs; with `everywhere` also transcript and results.

        after, before: inclusive, exclusive; they exclude passages without a time.
        """
        window, scopes = Window(after, before), (*NEAR, *FAR) if everywhere else NEAR
        state = self._indexer.catch_up(everywhere=everywhere, patience_s=self._patience_s)
        asked = self._weights(query[:MAX_QUERY], 1.0)
        weights = _rarest(asked, state, scopes)
        hits = self._search(weights, asked, state, limit, window, scopes)
        hits = hits or self._scan(query, state, limit, window, self._patience_s)
        return [_hit(match, ranking.snippet(match.passage.text, weights)) for match in hits]

    def recall(
        self, asked: str, recent: Sequence[str] = (), *, limit: int = 5, budget: int = _TURN_TOKENS
    ) -> list[Hit]:
        """Excerpts of memory, summaries and docs for a prompt; never waits for long.

        One hit per source; its snippet quotes the best passages of that source.

        budget: of all snippets, with the names of their sources, in tokens.
        asked: the message to answer. recent: earlier messages; they rank the hits of `asked`, and
            are searched for themselves only if `asked` finds nothing ("and then?").
        """
        state = self._indexer.catch_up(everywhere=False, patience_s=_TURN_PATIENCE_S)
        is_long = len(asked) > MESSAGE_START + MESSAGE_END  # the question is at one of the ends
        ends = f"{asked[:MESSAGE_START]}\n{asked[-MESSAGE_END:]}" if is_long else asked
        weights = own = self._weights(ends, 1.0)
        hits = self._search_near(own, own, state)
        if recent:
            earlier = "\n".join(text[:RECENT_CHARACTERS] for text in recent)
            before = self._weights(earlier, RECENT_WEIGHT)
            # All earlier terms together never weigh more than the question.
            share = min(1.0, max(len(own), 1) / max(len(before), 1))
            weights = {**{term: weight * share for term, weight in before.items()}, **own}
            both = self._search_near(weights, own, state)
            asked_for = {(hit.path, hit.passage) for hit in hits}
            hits = [h for h in both if not hits or (h.path, h.passage) in asked_for] or hits
        hits = hits or self._scan(asked, state, limit, Window(), _TURN_PATIENCE_S)
        best: dict[str, float] = {}
        for hit in hits:
            best.setdefault(hit.path, hit.score)
        relevant = [hit for hit in hits if best[hit.path] >= _TURN_SHARE * hits[0].score]
        quoted = ranking.excerpts(relevant, weights, limit, budget, _cost)
        return [_hit(match, text) for match, text in quoted]

    def warm_up(self) -> None:
        """Load in a thread what the first turn needs."""

        def read() -> None:
            with contextlib.suppress(StorageError, OSError):  # the first turn reports it
                self.recall("mimikit")

        threading.Thread(target=read, name="warm-up", daemon=True).start()

    def index_ahead(self) -> None:
        """Index many changed files in the background, so that no search has to wait."""
        with contextlib.suppress(StorageError, OSError):  # the next search reports it
            self._indexer.index_ahead()

    def status(self) -> IndexStatus:
        return self._indexer.status()

    @property
    def fallback(self) -> str | None:
        """Why the index on disk is not used; None when it is."""
        return self._indexer.fault

    def _search_near(
        self, weights: dict[str, float], asked: Container[str], state: IndexState
    ) -> list[Match]:
        rarest = _rarest(weights, state, NEAR)
        return self._search(rarest, asked, state, _TURN_HITS, Window(), NEAR)

    def _search(
        self,
        weights: Mapping[str, float],
        asked: Container[str],
        state: IndexState,
        limit: int,
        window: Window,
        scopes: Sequence[Scope],
    ) -> list[Match]:
        recent, view = state.recent, state.view
        wanted = max(_MIN_MATCHES, min(4 * limit, _MAX_MATCHES))
        all_matches: list[Match] = []
        scores: dict[str, float] = {}
        for scope in scopes:
            totals = TermTotals.sum([recent.totals[scope], view.totals[scope]])
            if not totals.passages:
                continue
            try:
                shares, whole = _normalised(weights, scope.passage, totals.passages, state)
                mean = totals.terms / totals.passages
                matches = recent.search(shares, scope, mean, recent.passage_count, window)
                all_matches += [match for match in matches if state.is_recent(match.path)]
                all_matches += _indexed_matches(shares, scope, mean, state, wanted, window)
                if totals.files:
                    shares, _ = _normalised(weights, scope.file, totals.files, state, whole)
                    mean = totals.file_terms / totals.files
                    scores |= recent.search_files(shares, scope, mean, totals.files)
                    indexed = view.search_files(shares, scope, mean, _MAX_FILES).items()
                    scores |= {path: score for path, score in indexed if state.is_indexed(path)}
            except BrokenIndex as error:
                self._indexer.disable(error)
        return ranking.rank(all_matches, scores, self._today(), limit, asked)

    def _weights(self, query: str, weight: float) -> dict[str, float]:
        return dict.fromkeys(terms(query, self._indexer.cutter(query)), weight)

    def _scan(
        self, query: str, state: IndexState, limit: int, window: Window, patience_s: float
    ) -> list[Match]:
        until = time.monotonic() + patience_s
        matches: list[Match] = []
        wanted = ranking.scanned_words(query[:MAX_QUERY])
        for path in ranking.visible(state.snapshot) if wanted else ():
            if time.monotonic() > until:
                break
            data = self._indexer.documents.read(path)
            if data is not None and ranking.may_contain(data, wanted):
                matches += ranking.scan(path, self._indexer.passages_of(path, data), wanted, window)
        return ranking.rank(matches, {}, self._today(), limit)

    def _today(self) -> date:
        return self._clock.now().astimezone(self._zone).date()


def _hit(match: Match, snippet: str) -> Hit:
    passage = match.passage
    return Hit(
        source=passages.part_of(match.path).path,
        text=passage.text,
        line=passage.line,
        kind=passages.kind_of(match.path),
        day=passage.day,
        score=match.score,
        snippet=snippet,
        message_id=passage.message_id,
        role=passage.role,
        task_id=passage.task_id,
    )


def _indexed_matches(
    shares: Mapping[str, float],
    scope: Scope,
    mean: float,
    state: IndexState,
    wanted: int,
    window: Window,
) -> list[Match]:
    """The best matches of the index on disk, without outdated ones."""
    while True:
        matches = state.view.search(shares, scope, mean, wanted, window)
        current = [match for match in matches if state.is_indexed(match.path)]
        if 2 * len(current) >= wanted or len(matches) < wanted:
            return current
        wanted *= 8


def _rarest(
    weights: dict[str, float], state: IndexState, scopes: Sequence[Scope]
) -> Mapping[str, float]:
    """The MAX_TERMS terms with the greatest weight, the rarest first."""
    if len(weights) <= MAX_TERMS:
        return weights
    frequency = {
        term: sum(_frequency(term, scope.passage, state) for scope in scopes) for term in weights
    }
    known = [term for term in weights if frequency[term]]
    known.sort(key=lambda term: (-weights[term], frequency[term]))
    return {term: weights[term] for term in known[:MAX_TERMS]}


def _normalised(
    weights: Mapping[str, float],
    table: str,
    documents: int,
    state: IndexState,
    whole: float | None = None,
) -> tuple[dict[str, float], float]:
    """Each term's weight times idf, as a share of the maximum score; and that maximum.

    This makes scores of several scopes comparable. A missing term counts as a rare one.
    """
    frequency = {term: _frequency(term, table, state) for term in weights}
    rare = idf(weights, {term: max(number, 1) for term, number in frequency.items()}, documents)
    whole = whole or sum(rare.values()) * (K1 + 1)
    return {term: weight / whole for term, weight in rare.items() if frequency[term]}, whole


def _frequency(term: str, table: str, state: IndexState) -> int:
    recent = state.recent.frequency(term, table)
    with contextlib.suppress(BrokenIndex):  # the search that follows reports it
        return recent + state.view.frequency(term, table)
    return recent


def _cost(text: str) -> int:
    """Tokens in a prompt, where further lines are indented."""
    return tokens.count(text.replace("\n", "\n  "))
