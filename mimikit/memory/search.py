"""The search in memory, in English and Chinese: what a turn is given, what a user looks for.

One object serves a whole process, from any thread. Every process searches for itself; the files
decide what is true.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Container, Mapping, Sequence
from datetime import date, datetime, tzinfo
from pathlib import Path

from mimikit.clock import Clock
from mimikit.errors import StorageError
from mimikit.memory import passages, ranking, tokens
from mimikit.memory.documents import DocumentFolders
from mimikit.memory.index import K1, BrokenIndex, PassageIndex, RankIndex, TermTotals, idf
from mimikit.memory.indexer import Indexer, IndexState, IndexStatus
from mimikit.memory.passages import FAR, NEAR, Scope, Window
from mimikit.memory.ranking import Match
from mimikit.memory.terms import SEGMENTERS, ChineseDictionary, first_importable, terms
from mimikit.protocol.files import Files
from mimikit.protocol.models import Hit
from mimikit.protocol.watch import FolderWatch

MOST_TERMS = 64
"""Of a query: its rarest ones."""
LONGEST_QUERY = 20_000
"""Characters; of a longer one the beginning counts."""
ASKED_FIRST, ASKED_LAST = 3000, 1000
"""Characters of a message that are searched for before it is answered."""
RECENT_WEIGHT, RECENT_CHARACTERS = 0.2, 2000
"""Of what was said before: how much it counts, and how much of each message."""
_TURN_SHARE = 0.2
"""Below this share of the best hit, none is quoted."""
_LEAST_MATCHES, _MOST_MATCHES = 100, 250
_FILES_SCORED = 200
_TURN_HITS = 200
"""Of these a turn's excerpts are made."""
_TURN_TOKENS = 2048
_TURN_PATIENCE_S = 0.02
_INDEXES = ("tantivy", "rank_bm25")


def backends() -> tuple[str, str]:
    """Which modules serve here: the compiled ones where they can be imported.

    The index's: `tantivy`, or `rank_bm25`, which keeps nothing on disk and is slower. The one that
    cuts Chinese: `rjieba`, or `jieba`, which is slower.
    """
    return first_importable(*_INDEXES), first_importable(*SEGMENTERS)


def open_index(files: Files, folder: Path) -> PassageIndex:
    """The index of a state folder; `folder`: on the disk."""
    if first_importable(*_INDEXES) == "rank_bm25":
        return RankIndex()
    from mimikit.memory.tantivy_index import TantivyIndex

    return TantivyIndex(files, folder)


class MemorySearch:
    """Asks the index and what is held in memory; scans plainly where neither has anything."""

    def __init__(
        self,
        files: Files,
        *,
        workspace: Path | None,
        index: PassageIndex | None,
        zone: tzinfo,
        clock: Clock,
        words: ChineseDictionary | None = None,
        watch: FolderWatch | None = None,
        patience_s: float = 2.0,
    ) -> None:
        """Nothing is read before the first search.

        workspace: whose `docs/**/*.md` are searched too; None: there are none.
        index: None: everything is held in memory.
        words: the dictionary to use; None: this process does without.
        watch: on the state folder, of everything; for processes that live long.
        patience_s: how long `find` waits for a large update.
        """
        self.watch = watch
        documents = DocumentFolders(files, workspace, watch)
        self._indexer = Indexer(documents, index, zone, clock, words)
        self._zone, self._clock = zone, clock
        self._patience_s = patience_s

    def find(
        self,
        query: str,
        *,
        limit: int = 10,
        after: datetime | None = None,
        before: datetime | None = None,
        everywhere: bool = True,
    ) -> list[Hit]:
        """Hits, best first, of memory, summaries, docs; with `everywhere` of all that was said.

        after, before: inclusive and exclusive; what has no time is left out then.
        """
        window, scopes = Window(after, before), (*NEAR, *FAR) if everywhere else NEAR
        state = self._indexer.catch_up(everywhere=everywhere, patience_s=self._patience_s)
        asked = self._weights(query[:LONGEST_QUERY], 1.0)
        weights = _rarest(asked, state, scopes)
        hits = self._hits(weights, asked, state, limit, window, scopes)
        hits = hits or self._scanned(query, state, limit, window, self._patience_s)
        return [_found(hit, ranking.snippet(hit.passage.text, weights)) for hit in hits]

    def recall(
        self,
        asked: str,
        recent: Sequence[str] = (),
        *,
        limit: int = 5,
        budget: int = _TURN_TOKENS,
    ) -> list[Hit]:
        """What a turn is given: of memory, summaries and docs; never waits for long.

        One hit for each source; its snippet is what is to be quoted: the best of that source.

        budget: of all snippets, with the names of their sources, in tokens.
        asked: what is to be answered. recent: what was said before. Of the hits of what is asked,
            this says which are meant; by this alone something is found only when the question
            itself finds nothing ("and then?").
        """
        state = self._indexer.catch_up(everywhere=False, patience_s=_TURN_PATIENCE_S)
        is_long = len(asked) > ASKED_FIRST + ASKED_LAST  # what is asked stands at one of its ends
        ends = f"{asked[:ASKED_FIRST]}\n{asked[-ASKED_LAST:]}" if is_long else asked
        weights = own = self._weights(ends, 1.0)
        hits = self._near(own, own, state)
        if recent:
            said = "\n".join(text[:RECENT_CHARACTERS] for text in recent)
            before = self._weights(said, RECENT_WEIGHT)
            # Together the terms of what was said before never weigh more than the question.
            share = min(1.0, max(len(own), 1) / max(len(before), 1))
            weights = {**{term: weight * share for term, weight in before.items()}, **own}
            both = self._near(weights, own, state)
            asked_for = {(hit.path, hit.passage) for hit in hits}
            hits = [h for h in both if not hits or (h.path, h.passage) in asked_for] or hits
        hits = hits or self._scanned(asked, state, limit, Window(), _TURN_PATIENCE_S)
        best: dict[str, float] = {}
        for hit in hits:
            best.setdefault(hit.path, hit.score)
        meant = [hit for hit in hits if best[hit.path] >= _TURN_SHARE * hits[0].score]
        quoted = ranking.excerpts(meant, weights, limit, budget, _cost)
        return [_found(hit, text) for hit, text in quoted]

    def warm_up(self) -> None:
        """Have what a turn needs read by a thread of its own, before the first one comes."""

        def read() -> None:
            with contextlib.suppress(StorageError, OSError):  # the turn that needs it will say so
                self.recall("mimikit")

        threading.Thread(target=read, name="warm-up", daemon=True).start()

    def keep_up(self) -> None:
        """Have everything that has changed indexed meanwhile, so that no search finds it to do."""
        with contextlib.suppress(StorageError, OSError):  # the next time, or who searches
            self._indexer.keep_up()

    def refresh(self, *, rebuild: bool = False) -> IndexStatus:
        """Bring the index up to date, from nothing with `rebuild`; takes as long as it takes."""
        return self._indexer.refresh(rebuild=rebuild)

    def status(self) -> IndexStatus:
        return self._indexer.status()

    def close(self) -> None:
        """Have what was read so far written down; before the disk is closed."""
        self._indexer.close()

    @property
    def fallback(self) -> str | None:
        """Why the index does not serve; None when it does."""
        return self._indexer.fault

    def _near(
        self, weights: dict[str, float], asked: Container[str], state: IndexState
    ) -> list[Match]:
        rarest = _rarest(weights, state, NEAR)
        return self._hits(rarest, asked, state, _TURN_HITS, Window(), NEAR)

    def _hits(
        self,
        weights: Mapping[str, float],
        asked: Container[str],
        state: IndexState,
        limit: int,
        window: Window,
        scopes: Sequence[Scope],
    ) -> list[Match]:
        held, view = state.held, state.view
        wanted = max(_LEAST_MATCHES, min(4 * limit, _MOST_MATCHES))
        found: list[Match] = []
        scores: dict[str, float] = {}
        for scope in scopes:
            known = TermTotals.sum([held.totals(scope), view.totals(scope)])
            if not known.passages:
                continue
            try:
                says, whole = _says(weights, scope.passage, known.passages, state)
                mean = known.terms / known.passages
                matches = held.search(says, scope, mean, window)
                found += [match for match in matches if state.is_held(match.path)]
                found += _indexed(says, scope, state, wanted, window)
                if known.files:
                    says, _ = _says(weights, scope.file, known.files, state, whole)
                    scores |= held.search_files(says, scope, known.file_terms / known.files)
                    indexed = view.search_files(says, scope, _FILES_SCORED).items()
                    scores |= {path: score for path, score in indexed if state.is_indexed(path)}
            except BrokenIndex as error:
                self._indexer.give_up(error)
        return ranking.rank(found, scores, self._today(), limit, asked)

    def _weights(self, query: str, weight: float) -> dict[str, float]:
        return dict.fromkeys(terms(query, self._indexer.cutter(query)), weight)

    def _scanned(
        self, query: str, state: IndexState, limit: int, window: Window, patience_s: float
    ) -> list[Match]:
        """Hits by looking through the files, for as long as there is patience."""
        until = time.monotonic() + patience_s
        found: list[Match] = []
        wanted = ranking.scanned_words(query[:LONGEST_QUERY])
        for path in ranking.visible(state.snapshot.stamps) if wanted else ():
            if time.monotonic() > until:
                break
            data = self._indexer.documents.read(path)
            if data is not None and ranking.may_hold(data, wanted):
                found += ranking.scan(path, self._indexer.passages_of(path, data), wanted, window)
        return ranking.rank(found, {}, self._today(), limit)

    def _today(self) -> date:
        return self._clock.now().astimezone(self._zone).date()


def _found(hit: Match, snippet: str) -> Hit:
    passage = hit.passage
    return Hit(
        source=passages.part_of(hit.path).path,
        text=passage.text,
        line=passage.line,
        kind=passages.kind_of(hit.path),
        day=passage.day,
        score=hit.score,
        snippet=snippet,
        message_id=passage.message_id,
        role=passage.role,
        task_id=passage.task_id,
    )


def _indexed(
    says: Mapping[str, float], scope: Scope, state: IndexState, wanted: int, window: Window
) -> list[Match]:
    """The best matches in the index; more are asked for when outdated ones are among them."""
    while True:
        found = state.view.search(says, scope, wanted, window)
        kept = [match for match in found if state.is_indexed(match.path)]
        if 2 * len(kept) >= wanted or len(found) < wanted:
            return kept
        wanted *= 8


def _rarest(
    weights: dict[str, float], state: IndexState, scopes: Sequence[Scope]
) -> Mapping[str, float]:
    """Of very many terms those that weigh most, and of these the rarest."""
    if len(weights) <= MOST_TERMS:
        return weights
    often = {
        term: sum(_frequency(term, scope.passage, state) for scope in scopes) for term in weights
    }
    known = [term for term in weights if often[term]]
    known.sort(key=lambda term: (-weights[term], often[term]))
    return {term: weights[term] for term in known[:MOST_TERMS]}


def _says(
    weights: Mapping[str, float],
    table: str,
    documents: int,
    state: IndexState,
    whole: float | None = None,
) -> tuple[dict[str, float], float]:
    """How much each term says among these: a share of the whole that is asked for; and the whole.

    So scores of several scopes can be compared; a word that none here has counts as a rare one.
    """
    often = {term: _frequency(term, table, state) for term in weights}
    rare = idf(weights, {term: max(number, 1) for term, number in often.items()}, documents)
    whole = whole or sum(rare.values()) * (K1 + 1)
    return {term: says / whole for term, says in rare.items() if often[term]}, whole


def _frequency(term: str, table: str, state: IndexState) -> int:
    """In how many passages, or files, of a scope a term stands."""
    held = state.held.frequency(term, table)
    with contextlib.suppress(BrokenIndex):  # told by the search that follows
        indexed = state.view.frequency(term, table)
        return max(held, indexed) if state.is_double else held + indexed
    return held


def _cost(text: str) -> int:
    """In tokens, as a prompt has it: each further line is set in."""
    return tokens.count(text.replace("\n", "\n  "))
