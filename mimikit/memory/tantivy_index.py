"""The index of passages by tantivy, in `cache/search`. It may be deleted at any time.

`manifest.json` lists the indexed files with their stamps. A search compares them with the files, so
a lost or outdated index costs time and never gives a wrong answer: a changed file is indexed again
before it is searched, and its old passages do not count until then.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import math
import secrets
import shutil
import stat
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import tantivy

from mimikit.errors import StorageError, UnsafeFile
from mimikit.memory import passages
from mimikit.memory.index import (
    EMPTY_VIEW,
    SCOPES,
    BrokenIndex,
    Changed,
    MemoryView,
    Stamp,
    TermTotals,
    idf,
)
from mimikit.memory.passages import (
    NOTES,
    Passage,
    Scope,
    ScopeTerms,
    Window,
    file_terms,
    neighbour_term,
    scope_of,
)
from mimikit.memory.ranking import Match
from mimikit.memory.terms import Cutter
from mimikit.protocol import paths
from mimikit.protocol.files import Files

FORMAT = 7
"""Of the terms, weights and fields: an index of another format is rebuilt."""
_FOLDER = f"{paths.CACHE}/search"
_MANIFEST = f"{_FOLDER}/manifest.json"
_UNFINISHED = f"{_FOLDER}/unfinished"
_LOCK = f"{paths.CACHE}/search.lock"
_CACHED_DOCUMENTS = 1000
_CACHED_FREQUENCIES = 4000
_TABLES = [table for scope in SCOPES for table in scope if table]
_WRITER_HEAP = 16 * 2**20
_BATCH_CHARACTERS = 4 * 2**20
"""A larger batch is written before more is read."""

Place: TypeAlias = tuple[str, int, int]
"""Of a document: table, segment, number."""


class IndexedFile(NamedTuple):
    stamp: Stamp
    totals: TermTotals
    notes: TermTotals
    """Of the part of the file that belongs to the scope of notes."""


class TantivyView:
    """An immutable snapshot of the index; scores by BM25 with k1 = 1.2, b = 0.75."""

    def __init__(
        self,
        schema: tantivy.Schema,
        searchers: Mapping[str, tantivy.Searcher],
        files: Mapping[str, IndexedFile],
    ) -> None:
        self.schema, self.searchers = schema, searchers
        self.stamps = {path: file.stamp for path, file in files.items()}
        in_scope: dict[Scope, list[TermTotals]] = {scope: [] for scope in SCOPES}
        for path, file in files.items():
            in_scope[scope_of(path)].append(file.totals)
            in_scope[NOTES].append(file.notes)
        self.totals = {scope: TermTotals.sum(each) for scope, each in in_scope.items()}
        self.passage_count = sum(totals.passages for totals in self.totals.values())
        # A turn searches twice, the next one for much the same. Caches of functions, not of
        # methods: a reference cycle would keep the index's files open.
        self._read = functools.lru_cache(_CACHED_DOCUMENTS)(functools.partial(_document, searchers))
        self._count = functools.lru_cache(_CACHED_FREQUENCIES)(
            functools.partial(_frequency, searchers)
        )

    def search(
        self, weights: Mapping[str, float], scope: Scope, mean: float, limit: int, window: Window
    ) -> list[Match]:
        """As `MemoryView.search`, but `mean` is unused: tantivy computes its own."""
        with _guarded():
            documents = self._best(weights, scope.passage, limit, window)
            return [
                Match(path, passage, score, place[2], functools.partial(self._neighbour, place))
                for place, path, passage, score in documents
                if passage
            ]

    def search_files(
        self, weights: Mapping[str, float], scope: Scope, mean: float, limit: int
    ) -> dict[str, float]:
        with _guarded():
            best = self._best(weights, scope.file, limit, Window())
            return {path: score for _, path, _, score in best}

    def frequency(self, term: str, table: str) -> int:
        with _guarded():
            return self._count(table, term) + self._count(table, neighbour_term(term))

    def _best(
        self, weights: Mapping[str, float], table: str, limit: int, window: Window
    ) -> Iterator[tuple[Place, str, Passage | None, float]]:
        """The matching documents, best first: place, path, passage, score."""
        searcher = self.searchers.get(table)
        if searcher is None:
            return
        documents = searcher.num_docs
        own = self._clauses(weights.items(), table, documents)
        if not own:
            return
        beside = ((neighbour_term(term), weight) for term, weight in weights.items())
        query = tantivy.Query.boolean_query(own)
        if near := self._clauses(beside, table, documents):
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), *near])
        if not window.is_open:
            after = _milliseconds(window.after) if window.after else -(2**62)
            before = _milliseconds(window.before) if window.before else 2**62
            within = tantivy.Query.range_query(
                self.schema, "at", tantivy.FieldType.Integer, after, before, include_upper=False
            )
            unscored = tantivy.Query.const_score_query(within, 0.0)
            both = [(tantivy.Occur.Must, query), (tantivy.Occur.Must, unscored)]
            query = tantivy.Query.boolean_query(both)
        # tantivy allocates memory for as many hits as it is asked for.
        room = max(min(limit, documents), 1)
        for score, address in searcher.search(query, room, count=False).hits:
            place = table, address.segment_ord, address.doc
            yield place, *self._read(place), score

    def _clauses(
        self, weights: Iterable[tuple[str, float]], table: str, documents: int
    ) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        clauses: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for term, weight in weights:
            if count := self._count(table, term):
                own = idf({term: 1.0}, {term: count}, documents)[term]  # is in the weight already
                query = tantivy.Query.term_query(self.schema, "terms", term, "freq")
                boosted = tantivy.Query.boost_query(query, weight / own)
                clauses.append((tantivy.Occur.Should, boosted))
        return clauses

    def _neighbour(self, place: Place, step: int) -> Passage | None:
        """A passage of the same file has a successive number; others may be another file's."""
        table, segment, number = place
        with contextlib.suppress(BrokenIndex), _guarded():
            if number + step >= 0:
                path, passage = self._read((table, segment, number + step))
                return passage if path == self._read(place)[0] else None
        return None


def _frequency(searchers: Mapping[str, tantivy.Searcher], table: str, term: str) -> int:
    searcher = searchers.get(table)
    return searcher.doc_freq("terms", term) if searcher is not None else 0


def _document(
    searchers: Mapping[str, tantivy.Searcher], place: Place
) -> tuple[str, Passage | None]:
    table, *address = place
    document = searchers[table].doc(tantivy.DocAddress(*address))
    body = cast("bytes | None", document.get_first("body"))
    path = cast("str", document.get_first("path") or "")
    return path, passages.from_bytes(body) if body else None


class TantivyIndex:
    """The index on disk. Thread-safe, but for one update at a time."""

    def __init__(self, files: Files, folder: Path) -> None:
        """`folder`: the state folder on the disk."""
        self._files = files
        self._folder = folder / _FOLDER
        self._schema = _schema()
        self._loaded: tuple[int, int] | None = None
        self._changing = threading.RLock()
        self._reset()

    def refresh(self) -> None:
        """Load what another process has indexed since; raises StorageError."""
        with self._changing:
            stamp = self._manifest_stamp()
            if stamp is None and self._loaded is not None:
                self._make_folder()  # deleted, or rebuilt by another process
                stamp = self._manifest_stamp()
            if stamp != self._loaded:
                self._open()
                self._loaded = stamp

    def _manifest_stamp(self) -> tuple[int, int] | None:
        stat = self._files.stat(_MANIFEST)
        return (stat.mtime_ns, stat.inode) if stat else None

    def _make_folder(self) -> None:
        self._files.make_folders((paths.CACHE, _FOLDER))

    def update(
        self, changed: Iterable[Changed], deleted: Iterable[str], cut: Cutter | None = None
    ) -> bool:
        """Index changed files, remove deleted ones; False: another process is updating.

        Crash: the mark of an unfinished update makes the next one begin from nothing.

        Raises:
            StorageError: the disk refuses; BrokenIndex: the index cannot be used.
        """
        self._make_folder()
        lock = self._files.lock(_LOCK)
        if lock is None:
            return False
        try:
            self.refresh()
            if self._files.exists(_UNFINISHED):
                self._reset()
            self._write(changed, deleted, cut)
            return True
        finally:
            lock.release()

    def clear(self) -> None:
        """Delete the index; the next update rebuilds it."""
        with self._changing:
            self._reset()
            self._make_folder()
            self._empty_folder()

    @property
    def bytes_on_disk(self) -> int:
        total = 0
        for entry in self._folder.rglob("*"):
            with contextlib.suppress(OSError):  # a merge removed it
                total += entry.lstat().st_size
        return total

    # ---- opening

    def _open(self) -> None:
        """Open what the manifest lists; nothing where it is missing or broken."""
        known = _load_manifest(self._files)
        if known is None or self._files.exists(_UNFINISHED):
            self._reset()
            return
        generation, files = known
        try:
            if generation != self._generation:
                self._tables, self._generation = {}, generation
            with _guarded():
                for table in _TABLES:
                    folder = self._folder / table
                    if table not in self._tables and folder.is_dir():
                        self._tables[table] = _manual(tantivy.Index.open(str(folder)))
            self._show(files)
        except BrokenIndex:
            self._reset()

    def _show(self, files: Mapping[str, IndexedFile]) -> None:
        with _guarded():
            for index in self._tables.values():
                index.reload()
            searchers = {table: index.searcher() for table, index in self._tables.items()}
            self.view = TantivyView(self._schema, searchers, files)
            self._indexed = files

    def _reset(self) -> None:
        self._tables: dict[str, tantivy.Index] = {}
        self._generation = ""
        self.view: TantivyView | MemoryView = EMPTY_VIEW
        self._indexed: Mapping[str, IndexedFile] = {}

    def _empty_folder(self) -> None:
        """Other processes have the folder open, so it stays."""
        for entry in self._folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    # ---- writing

    def _write(
        self, changed: Iterable[Changed], deleted: Iterable[str], cut: Cutter | None
    ) -> None:
        # Local: a search that finds no manifest meanwhile resets the attributes.
        tables, indexed, generation = dict(self._tables), {**self._indexed}, self._generation
        if not generation:
            tables, generation = {}, secrets.token_hex(8)
            self._empty_folder()
        self._files.write(_UNFINISHED, b"", sync=False)
        batch = _Batch(functools.partial(self._table, tables))
        try:
            for path in deleted:
                batch.delete(path, tables)
                indexed.pop(path, None)
            for path, stamp, in_file in changed:
                parts = file_terms(path, in_file, cut)
                if path in indexed:
                    batch.delete(path, tables)
                batch.add(path, parts)
                totals = {part.scope: TermTotals.of(part) for part in parts}
                notes = totals.pop(NOTES, TermTotals())
                indexed[path] = IndexedFile(stamp, totals.get(scope_of(path), TermTotals()), notes)
            batch.write()
        except BaseException:
            self._reset()  # unknown how much was written: the next update rebuilds it
            raise
        # tantivy creates files by the umask; conversations are private.
        for entry in self._folder.rglob("*"):
            with contextlib.suppress(OSError):  # a merge removed it
                if stat.S_ISREG(mode := entry.lstat().st_mode) and mode & 0o077:
                    entry.chmod(0o600)
        with self._changing:
            self._tables, self._generation = tables, generation
            self._show(indexed)
            self._save()

    def _table(self, tables: dict[str, tantivy.Index], table: str) -> tantivy.Index:
        if table not in tables:
            self._files.make_folders((f"{_FOLDER}/{table}",))
            path = str(self._folder / table)
            tables[table] = _manual(tantivy.Index(self._schema, path=path, reuse=False))
        return tables[table]

    def _save(self) -> None:
        """Publish the manifest; last, so that it never lists what is not indexed."""
        manifest = {"format": FORMAT, "generation": self._generation, "files": self._indexed}
        data = json.dumps(manifest, separators=(",", ":")).encode()
        self._files.write(_MANIFEST, data, sync=False)
        self._files.remove(_UNFINISHED)
        self._loaded = self._manifest_stamp()


class _Batch:
    """Documents to add and paths to delete, by table; written one table at a time.

    Each tantivy writer takes a heap and threads of its own.
    """

    def __init__(self, open_table: Callable[[str], tantivy.Index]) -> None:
        self._open_table = open_table
        self._deleted: dict[str, list[str]] = defaultdict(list)
        self._added: dict[str, list[tantivy.Document]] = defaultdict(list)
        self._characters = 0

    def delete(self, path: str, tables: Iterable[str]) -> None:
        for table in {*scope_of(path), *NOTES} & {*tables}:
            self._deleted[table].append(path)

    def add(self, path: str, parts: list[ScopeTerms]) -> None:
        with _guarded():
            for scope, in_scope, each, whole in parts:
                for passage, terms in zip(in_scope, each, strict=True):
                    document = self._add(scope.passage, path, terms)
                    body = passages.to_bytes(passage)
                    document.add_bytes("body", body)
                    self._characters += len(body)
                    if passage.at is not None:
                        document.add_integer("at", _milliseconds(passage.at))
                if whole:
                    self._add(scope.file, path, whole)
        if self._characters >= _BATCH_CHARACTERS:
            self.write()

    def _add(self, table: str, path: str, terms: list[str]) -> tantivy.Document:
        document, text = tantivy.Document(), " ".join(terms)
        document.add_text("path", path)
        document.add_text("terms", text)
        self._added[table].append(document)
        self._characters += len(text)
        return document

    def write(self) -> None:
        with _guarded():
            for table in {**self._deleted, **self._added}:
                writer = self._open_table(table).writer(_WRITER_HEAP, 1)
                for path in self._deleted[table]:
                    writer.delete_documents_by_term("path", path)
                for document in self._added[table]:
                    writer.add_document(document)
                writer.commit()
                writer.wait_merging_threads()
        self._deleted.clear()
        self._added.clear()
        self._characters = 0
        with contextlib.suppress(AttributeError):  # glibc alone
            ctypes.CDLL(None).malloc_trim(0)  # else it keeps 70 MB


def _manual(index: tantivy.Index) -> tantivy.Index:
    """Reloaded by us only: tantivy's own thread creates a lock file in folders being deleted."""
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


def _milliseconds(at: datetime) -> int:
    return math.floor(at.timestamp() * 1000)


def _load_manifest(files: Files) -> tuple[str, dict[str, IndexedFile]] | None:
    """Generation and files; None when it is missing, broken or of another format."""
    try:
        known: dict[str, Any] = json.loads(files.read(_MANIFEST) or b"{}")
        if known.get("format") != FORMAT:
            return None
        return known["generation"], {
            path: IndexedFile(Stamp(*stamp), TermTotals(*counted), TermTotals(*notes))
            for path, (stamp, counted, notes) in known["files"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, UnsafeFile):
        return None


@contextlib.contextmanager
def _guarded() -> Generator[None]:
    """Turn whatever tantivy raises, also a panic of Rust, into `BrokenIndex`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, StorageError):
        raise
    except BaseException as error:
        message = f"{_FOLDER}: the index cannot be used ({error}); it is rebuilt"
        raise BrokenIndex(message) from error
