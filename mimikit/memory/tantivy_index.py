"""The index of passages: tantivy's, below `cache/search`. It may be deleted at any time.

Who searches compares the files with the list of what is indexed (`manifest.json`), so a lost or old
index costs time and never a wrong answer: a file that has changed since is indexed again before it
is searched, and until then its old passages do not count.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import math
import operator
import secrets
import shutil
import stat
import threading
from array import array
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast

import tantivy

from mimikit.errors import StorageError, UnsafeFile
from mimikit.memory import passages
from mimikit.memory.index import (
    EMPTY_VIEW,
    BrokenIndex,
    Changed,
    PassageView,
    Stamp,
    StampTable,
    TermTotals,
)
from mimikit.memory.index_batch import IndexBatch, IndexDocument, give_back
from mimikit.memory.passages import (
    FAR,
    NEAR,
    NOTES,
    Passage,
    Scope,
    ScopeTerms,
    Window,
    beside,
    file_terms,
    scope_of,
)
from mimikit.memory.ranking import Match
from mimikit.memory.terms import Cutter
from mimikit.protocol import paths
from mimikit.protocol.files import Files

FORMAT = 5
"""Of terms, weights and fields: an index of another format is made anew."""
_FOLDER = f"{paths.CACHE}/search"
_MANIFEST = f"{_FOLDER}/manifest.json"
_UNFINISHED = f"{_FOLDER}/unfinished"
_LOCK = f"{paths.CACHE}/search.lock"
_MOST_READ = 1000
"""Documents that are kept as they were read."""
_MOST_TERMS = 4000
"""How often each of these stands in the index is known: what was said is asked about again."""
_NO_ROW = (0,) * 8
"""As long as a file's stamp, its totals, and how many notes it has with how many terms."""
_SCOPES = (*NEAR, *FAR)
_TABLES = [table for scope in _SCOPES for table in scope if table]

Place: TypeAlias = tuple[str, int, int]
"""Of a document: table, segment, number."""


class IndexCounts(NamedTuple):
    files: StampTable
    """The stamp and the totals of each."""
    sums: dict[Scope, TermTotals]

    def but(self, rows: Mapping[str, Sequence[int] | None]) -> IndexCounts:
        """With some files counted anew, or (None) no more."""
        sums = dict(self.sums)
        for path, row in rows.items():
            scope, was = scope_of(path), self.files.row(path) or _NO_ROW
            more = [*map(operator.sub, row or _NO_ROW, was)]
            for at, these in ((scope, more[2:6]), (NOTES, [*more[6:], 0, 0])):
                sums[at] = TermTotals(*map(operator.add, sums[at], these))
        return IndexCounts(self.files.but(rows), sums)


class TantivyView:
    """BM25 by tantivy, whose k1 is 1.2 and b 0.75."""

    def __init__(
        self,
        schema: tantivy.Schema,
        searchers: Mapping[str, tantivy.Searcher],
        counts: IndexCounts,
    ) -> None:
        """`searchers`: by table; those that hold anything."""
        self.schema, self.searchers, self.counts = schema, searchers, counts
        self.stamps = counts.files
        # A turn asks twice, and the next for much the same. No circle: each holds files open.
        self._read = functools.lru_cache(_MOST_READ)(functools.partial(_document, searchers))
        self._often = functools.lru_cache(_MOST_TERMS)(functools.partial(_often, searchers))

    @property
    def passage_count(self) -> int:
        return sum(totals.passages for totals in self.counts.sums.values())

    def search(
        self, says: Mapping[str, float], scope: Scope, limit: int, window: Window
    ) -> list[Match]:
        with _guarded():
            found = self._best(says, scope.passage, limit, window)
            return [
                Match(path, passage, score, place[2], functools.partial(self._beside, place))
                for place, path, passage, score in found
                if passage
            ]

    def search_files(self, says: Mapping[str, float], scope: Scope, limit: int) -> dict[str, float]:
        with _guarded():
            best = self._best(says, scope.file, limit, Window())
            return {path: score for _, path, _, score in best}

    def frequency(self, term: str, table: str) -> int:
        with _guarded():
            return self._often(table, term) + self._often(table, beside(term))

    def totals(self, scope: Scope) -> TermTotals:
        return self.counts.sums[scope]

    def _best(
        self, says: Mapping[str, float], table: str, limit: int, window: Window
    ) -> Iterator[tuple[Place, str, Passage | None, float]]:
        """The documents that share terms with the query, best first: place, what it is, score."""
        make, searcher = tantivy.Query, self.searchers.get(table)
        if searcher is None:
            return
        documents = searcher.num_docs

        def should(term: str, weight: float) -> Iterator[tuple[tantivy.Occur, tantivy.Query]]:
            if often := self._often(table, term):
                # It weighs a term by its own idf: that is taken out, ours counts.
                own = math.log(1 + (max(documents - often, 0) + 0.5) / (often + 0.5))
                asked = make.term_query(self.schema, "terms", term, "freq")
                yield tantivy.Occur.Should, make.boost_query(asked, weight / own)

        own = [one for item in says.items() for one in should(*item)]
        if not own:
            return
        near = [one for term, weight in says.items() for one in should(beside(term), weight)]
        query = make.boolean_query(own)
        if near:  # what stands beside adds to it, and finds nothing by itself
            query = make.boolean_query([(tantivy.Occur.Must, query), *near])
        if not window.is_open:
            within = make.range_query(
                self.schema,
                "at",
                tantivy.FieldType.Integer,
                _instant(window.after) if window.after else -(2**62),
                _instant(window.before) if window.before else 2**62,
                include_upper=False,
            )
            both = (query, make.const_score_query(within, 0.0))
            query = make.boolean_query([(tantivy.Occur.Must, one) for one in both])
        # So many places at most are of use: the library makes room for all it is asked for.
        room = max(min(limit, documents), 1)
        for score, address in searcher.search(query, room, count=False).hits:
            place = table, address.segment_ord, address.doc
            yield place, *self._read(place), score

    def _beside(self, place: Place, step: int) -> Passage | None:
        """The passages of a file stand in its order, and after them those of another, or none."""
        table, segment, number = place
        with contextlib.suppress(BrokenIndex), _guarded():
            if number + step >= 0:
                there = self._read((table, segment, number + step))
                return there[1] if there[0] == self._read(place)[0] else None
        return None


def _often(searchers: Mapping[str, tantivy.Searcher], table: str, term: str) -> int:
    searcher = searchers.get(table)
    return searcher.doc_freq("terms", term) if searcher is not None else 0


def _document(
    searchers: Mapping[str, tantivy.Searcher], place: Place
) -> tuple[str, Passage | None]:
    """What stands at a place: its path, and the passage, if it is one."""
    table, *where = place
    document = searchers[table].doc(tantivy.DocAddress(*where))
    body = cast("bytes | None", document.get_first("body"))
    path = cast("str", document.get_first("path") or "")
    return path, passages.restored(body) if body else None


class TantivyIndex:
    def __init__(self, files: Files, folder: Path) -> None:
        """`folder`: the state folder on the disk."""
        self._files = files
        self._folder = folder / _FOLDER
        self._schema = _schema()
        self._generation = ""
        self._seen: tuple[int, int] | None = None
        self._changing = threading.RLock()
        self._forget()

    def refresh(self) -> None:
        with self._changing:
            seen = self._look_at_manifest()
            if seen is None and self._seen is not None:
                self._find_folder()  # gone, or made anew by another process
                seen = self._look_at_manifest()
            if seen != self._seen:
                self._open()
                self._seen = seen

    def _look_at_manifest(self) -> tuple[int, int] | None:
        stat = self._files.stat(_MANIFEST)
        return (stat.mtime_ns, stat.inode) if stat else None

    def _find_folder(self) -> None:
        """See that names below the cache lead to the folders that are there now."""
        self._files.make_folders((paths.CACHE, _FOLDER))

    def update(
        self, changed: Iterable[Changed], gone: Iterable[str], cut: Cutter | None = None
    ) -> bool:
        """Crash: the mark of an unfinished update makes the next opening begin from nothing."""
        self._find_folder()
        lock = self._files.lock(_LOCK)
        if lock is None:
            return False
        try:
            self.refresh()
            if self._files.exists(_UNFINISHED):
                self._forget()  # whoever wrote it died: what is in it is not known
            self._write(changed, gone, cut)
            give_back()  # 20 MB after 44,000 results
            return True
        finally:
            lock.release()

    def clear(self) -> None:
        """Begin from nothing at the next update."""
        with self._changing:
            self._generation = ""
            self._forget()
            self._find_folder()
            self._empty()

    @property
    def bytes_on_disk(self) -> int:
        total = 0
        for entry in self._folder.rglob("*"):
            with contextlib.suppress(OSError):  # a merge took it away meanwhile
                total += entry.lstat().st_size
        return total

    # ---- opening

    def _open(self) -> None:
        """Open what the manifest tells of; without one, or with a broken one, nothing."""
        known = _manifest(self._files)
        if known is None or self._files.exists(_UNFINISHED):
            self._forget()
            return
        generation, counts = known
        try:
            if generation != self._generation:
                self._tables, self._generation = {}, generation
            with _guarded():
                for table in _TABLES:
                    folder = self._folder / table
                    if table not in self._tables and folder.is_dir():
                        self._tables[table] = _told_only(tantivy.Index.open(str(folder)))
            self._look(counts)
        except BrokenIndex:
            self._forget()

    def _look(self, counts: IndexCounts) -> None:
        with _guarded():
            for index in self._tables.values():
                index.reload()
            searchers = {table: index.searcher() for table, index in self._tables.items()}
            self.view = TantivyView(self._schema, searchers, counts)
            self._counts = counts

    def _forget(self) -> None:
        self._tables: dict[str, tantivy.Index] = {}
        self._generation = ""
        self.view: PassageView = EMPTY_VIEW
        sums = {scope: TermTotals() for scope in _SCOPES}
        self._counts = IndexCounts(StampTable(width=len(_NO_ROW)), sums)

    # ---- writing

    def _table(self, tables: dict[str, tantivy.Index], table: str) -> tantivy.Index:
        """One to write to; the lock is held."""
        if table not in tables:
            folder = self._folder / table
            self._files.make_folders((f"{_FOLDER}/{table}",))
            made = tantivy.Index(self._schema, path=str(folder), reuse=False)
            tables[table] = _told_only(made)
        return tables[table]

    def _empty(self) -> None:
        """Begin from nothing in the same folder: other processes hold on to it."""
        for entry in self._folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def _write(self, changed: Iterable[Changed], gone: Iterable[str], cut: Cutter | None) -> None:
        # Of its own: a search may let go of all of it meanwhile, as it finds no manifest yet.
        tables, counts, generation = dict(self._tables), self._counts, self._generation
        if not generation:
            tables, generation = {}, secrets.token_hex(8)
            self._empty()
        self._files.write(_UNFINISHED, b"", sync=False)
        rows: dict[str, Sequence[int] | None] = {}
        try:
            with contextlib.closing(
                IndexBatch(self._folder, functools.partial(self._table, tables))
            ) as batch:
                for path in gone:
                    _delete(path, batch, tables)
                    rows[path] = None
                for path, stamp, found in changed:
                    made = file_terms(path, found, cut)
                    if path in counts.files or path in rows:
                        _delete(path, batch, tables)
                    with _guarded():
                        for table, document in _documents(path, made):
                            batch.add(table, document)
                    rows[path] = _row(path, stamp, made)
                with _guarded():
                    batch.write()
        except BaseException:
            self._forget()  # what was written is not known: the mark has it made anew
            raise
        # The library makes files as the umask says; what was said is nobody else's business.
        for entry in self._folder.rglob("*"):
            with contextlib.suppress(OSError):  # a merge took it away meanwhile
                if stat.S_ISREG(mode := entry.lstat().st_mode) and mode & 0o077:
                    entry.chmod(0o600)
        with self._changing:
            self._tables, self._generation = tables, generation
            self._look(counts.but(rows))
            self._save()

    def _save(self) -> None:
        """Tell other processes what is indexed now; last, so that the index is never behind."""
        files, sums = self._counts
        head = [FORMAT, self._generation, [sums[scope] for scope in _SCOPES], len(files)]
        with io.BytesIO() as made:
            for line in chain([head], ([path, *row] for path, row in files.rows())):
                made.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self._files.write(_MANIFEST, made.getvalue(), sync=False)
        self._files.remove(_UNFINISHED)
        self._seen = self._look_at_manifest()


def _delete(path: str, batch: IndexBatch, tables: Collection[str]) -> None:
    """Take a file out of every table that may have something of it."""
    with _guarded():
        for table in {*scope_of(path), *NOTES}:
            if table in tables or table in batch:
                batch.delete(table, path)


def _told_only(index: tantivy.Index) -> tantivy.Index:
    """The same index, that reloads when it is told to: else a thread of the library's does so too.

    That one would make its lock file in a folder that a user is just removing.
    """
    index.config_reader("manual")
    return index


def _schema() -> tantivy.Schema:
    """Of each table: one for the passages of a scope, one for its whole files."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("body", stored=True)
    builder.add_integer_field("at", indexed=True, fast=True)
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def _documents(path: str, made: list[ScopeTerms]) -> Iterator[tuple[str, IndexDocument]]:
    """One document for each passage, and one for what a file has in a scope; with its table."""
    for scope, found, each, whole in made:
        for passage, terms in zip(found, each, strict=True):
            body = passages.stored(passage).decode()
            at = _instant(passage.at) if passage.at else None
            yield scope.passage, IndexDocument(path, " ".join(terms), body, at)
        if whole:
            yield scope.file, IndexDocument(path, " ".join(whole))


def _row(path: str, stamp: Stamp, made: list[ScopeTerms]) -> array[int]:
    """What is known of a file: as long as `_NO_ROW`."""
    totals = {scope: TermTotals.of(each, whole) for scope, _, each, whole in made}
    notes = totals.pop(NOTES, TermTotals())
    mine = totals.get(scope_of(path), TermTotals())
    return array("q", (*stamp, *mine, notes.passages, notes.terms))


def _instant(at: datetime) -> int:
    """Milliseconds, as exact as a record tells them."""
    return math.floor(at.timestamp() * 1000)


def _manifest(files: Files) -> tuple[str, IndexCounts] | None:
    """Generation and counts; None when it is not one of this format.

    A line at a time: of very many files all at once would take more memory than is ever given back.
    """
    try:
        lines = io.BytesIO(files.read(_MANIFEST) or b"")
        known, generation, told, count = json.loads(next(lines, b"{}"))
        if known != FORMAT:
            return None
        table = StampTable(((p, row) for p, *row in map(json.loads, lines)), len(_NO_ROW))
        if len(table) != count:
            return None
        sums = {scope: TermTotals(*one) for scope, one in zip(_SCOPES, told, strict=True)}
        return generation, IndexCounts(table, sums)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, UnsafeFile):
        return None  # an unsafe one is no file at all: it goes with the rest when that is made anew


def damage(files: Files, folder: Path) -> str | None:
    """What is wrong with the index that lies there, as what it does; None: nothing, or none lies.

    Who searches, or indexes next, makes it anew.
    """
    if not files.exists(_MANIFEST) and not files.exists(_UNFINISHED):
        return None
    if (lock := files.lock(_LOCK)) is None:
        return None  # somebody is at it
    try:
        if files.exists(_UNFINISHED):
            return "was left half made"
        index = TantivyIndex(files, folder)
        index.refresh()
        return "can not be read" if index.view is EMPTY_VIEW else None
    finally:
        lock.release()


@contextlib.contextmanager
def _guarded() -> Generator[None]:
    """Turn whatever the library raises, a panic too, into one error."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, StorageError):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise BrokenIndex(
            f"{_FOLDER}: the index can not be used ({error}); it is made anew"
        ) from error
