"""The index of passages: tantivy's, below `cache/search`. It may be deleted at any time.

Who searches compares the files with the list of what is indexed (`manifest.json`), so a lost or old
index costs time and never a wrong answer: a file that has changed since is indexed again before it
is searched, and until then its old passages do not count.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import io
import json
import math
import operator
import secrets
import shutil
import threading
from array import array
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

import tantivy

from mimikit.errors import StorageError, UnsafeFile
from mimikit.memory import passages
from mimikit.memory.index import (
    EMPTY_VIEW,
    BrokenIndex,
    Changed,
    PassageView,
    StampTable,
    TermTotals,
)
from mimikit.memory.passages import FAR, NEAR, Passage, Scope, Window, file_terms, scope_of
from mimikit.memory.ranking import Match
from mimikit.memory.terms import Cutter
from mimikit.protocol import paths
from mimikit.protocol.files import Files

FORMAT = 4
"""Of terms, weights and fields: an index of another format is made anew."""
_FOLDER = f"{paths.CACHE}/search"
_MANIFEST = f"{_FOLDER}/manifest.json"
_UNFINISHED = f"{_FOLDER}/unfinished"
_LOCK = f"{paths.CACHE}/search.lock"
_HEAP = 16 * 2**20
_BATCH = 2000
"""Files of one commit."""
_MOST_READ = 1000
"""Documents that are kept as they were read."""
_MOST_TERMS = 4000
"""How often each of these stands in the index is known: what was said is asked about again."""
_NO_ROW = (0,) * 6
"""As long as a file's stamp and totals."""


class IndexCounts(NamedTuple):
    files: StampTable
    """The stamp and the totals of each."""
    sums: dict[Scope, TermTotals]

    def but(self, rows: Mapping[str, Sequence[int] | None]) -> IndexCounts:
        """With some files counted anew, or (None) no more."""
        sums = dict(self.sums)
        for path, row in rows.items():
            scope, was = scope_of(path), self.files.row(path) or _NO_ROW
            more = map(operator.sub, (row or _NO_ROW)[2:], was[2:])
            sums[scope] = TermTotals(*map(operator.add, sums[scope], more))
        return IndexCounts(self.files.but(rows), sums)


class TantivyView:
    """BM25 by tantivy, whose k1 is 1.2 and b 0.75, and no weight of a term negative."""

    def __init__(
        self, schema: tantivy.Schema, searcher: tantivy.Searcher, counts: IndexCounts
    ) -> None:
        self.schema, self.searcher, self.counts = schema, searcher, counts
        self.stamps = counts.files
        # A turn asks twice, and the next for much the same. No circle: each holds files open.
        self._read = functools.lru_cache(_MOST_READ)(functools.partial(_document, searcher))
        self._often = functools.lru_cache(_MOST_TERMS)(searcher.doc_freq)

    @property
    def passage_count(self) -> int:
        return sum(totals.passages for totals in self.counts.sums.values())

    def search(
        self, weights: Mapping[str, float], scope: Scope, limit: int, window: Window
    ) -> list[Match]:
        with _guarded():
            found = self._best(weights, scope.passage, limit, window)
            return [
                Match(path, passage, score, functools.partial(self._beside, place))
                for place, path, passage, score in found
                if passage
            ]

    def search_files(
        self, weights: Mapping[str, float], scope: Scope, limit: int
    ) -> dict[str, float]:
        with _guarded():
            best = self._best(weights, scope.file, limit, Window())
            return {path: score for _, path, _, score in best}

    def frequency(self, term: str, scope: Scope) -> int:
        with _guarded():
            return self._often(scope.passage, term)

    def totals(self, scope: Scope) -> TermTotals:
        return self.counts.sums[scope]

    def _best(
        self, weights: Mapping[str, float], field: str, limit: int, window: Window
    ) -> Iterator[tuple[tuple[int, int], str, Passage | None, float]]:
        """The documents that share terms with the query, best first: place, what it is, score."""
        make = tantivy.Query
        if not weights:
            return
        terms = (
            make.boost_query(make.term_query(self.schema, field, term, "freq"), weight)
            for term, weight in weights.items()
        )
        query = make.boolean_query([(tantivy.Occur.Should, term) for term in terms])
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
        room = max(min(limit, self.passage_count + len(self.counts.files)), 1)
        for score, address in self.searcher.search(query, room, count=False).hits:
            place = address.segment_ord, address.doc
            yield place, *self._read(place), score

    def _beside(self, place: tuple[int, int], step: int) -> Passage | None:
        """The passages of a file stand in its order, and after them what is none."""
        segment, number = place
        with contextlib.suppress(BrokenIndex), _guarded():
            if number + step >= 0:
                there = self._read((segment, number + step))
                return there[1] if there[0] == self._read(place)[0] else None
        return None


def _document(searcher: tantivy.Searcher, place: tuple[int, int]) -> tuple[str, Passage | None]:
    """What stands at a place: its path, and the passage, if it is one."""
    document = searcher.doc(tantivy.DocAddress(*place))
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
            with contextlib.suppress(AttributeError):  # of the GNU library alone
                # What many small pieces took is else kept for ever: 20 MB after 44,000 results.
                ctypes.CDLL(None).malloc_trim(0)
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
            if self._index is None or generation != self._generation:
                with _guarded():
                    self._index = _told_only(tantivy.Index.open(str(self._folder)))
                self._generation = generation
            self._look(self._index, counts)
        except BrokenIndex:
            self._forget()

    def _look(self, index: tantivy.Index, counts: IndexCounts) -> None:
        with _guarded():
            index.reload()
            self.view = TantivyView(self._schema, index.searcher(), counts)
            self._counts = counts

    def _forget(self) -> None:
        self._index: tantivy.Index | None = None
        self.view: PassageView = EMPTY_VIEW
        sums = {NEAR: TermTotals(), FAR: TermTotals()}
        self._counts = IndexCounts(StampTable(width=len(_NO_ROW)), sums)

    # ---- writing

    def _begin(self) -> tantivy.Index:
        """An index with nothing in it to write to; the lock is held."""
        self._generation = secrets.token_hex(8)
        self._empty()
        with _guarded():
            made = tantivy.Index(self._schema, path=str(self._folder), reuse=False)
            self._index = _told_only(made)
        return self._index

    def _empty(self) -> None:
        """Begin from nothing in the same folder: other processes hold on to it."""
        for entry in self._folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def _write(self, changed: Iterable[Changed], gone: Iterable[str], cut: Cutter | None) -> None:
        index = self._index or self._begin()
        self._files.write(_UNFINISHED, b"", sync=False)
        counts, rows = self._counts, dict[str, Sequence[int] | None]()
        try:
            with _guarded():
                writer = index.writer(_HEAP, 1)
                for path in gone:
                    writer.delete_documents_by_term("path", path)
                    rows[path] = None
            for number, (path, stamp, found) in enumerate(changed, 1):
                made = file_terms(found, cut)
                with _guarded():
                    if path in counts.files or path in rows:
                        writer.delete_documents_by_term("path", path)
                    for document in _documents(path, found, made):
                        writer.add_document(document)
                    if number % _BATCH == 0:
                        writer.commit()
                rows[path] = array("q", (*stamp, *TermTotals.of(made.each, made.whole)))
            with _guarded():
                writer.commit()
                writer.wait_merging_threads()
        except BaseException:
            self._forget()  # what was written is not known: the mark has it made anew
            raise
        # The library makes files as the umask says; what was said is nobody else's business.
        for entry in self._folder.iterdir():
            with contextlib.suppress(OSError):  # a merge took it away meanwhile
                if entry.lstat().st_mode & 0o077 and not entry.is_symlink():
                    entry.chmod(0o600)
        with self._changing:
            self._index = index  # a search may have let go of it: it found no manifest yet
            self._look(index, counts.but(rows))
            self._save()

    def _save(self) -> None:
        """Tell other processes what is indexed now; last, so that the index is never behind."""
        files, sums = self._counts
        head = [FORMAT, self._generation, sums[NEAR], sums[FAR], len(files)]
        with io.BytesIO() as made:
            for line in chain([head], ([path, *row] for path, row in files.rows())):
                made.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self._files.write(_MANIFEST, made.getvalue(), sync=False)
        self._files.remove(_UNFINISHED)
        self._seen = self._look_at_manifest()


def _told_only(index: tantivy.Index) -> tantivy.Index:
    """The same index, that reloads when it is told to: else a thread of the library's does so too.

    That one would make its lock file in a folder that a user is just removing.
    """
    index.config_reader("manual")
    return index


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("path", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("body", stored=True)
    builder.add_integer_field("at", indexed=True, fast=True)
    for name in (*NEAR, *FAR):
        builder.add_text_field(name, tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def _documents(
    path: str, found: list[Passage], made: passages.FileTerms
) -> Iterator[tantivy.Document]:
    """One document for each passage, and one for the whole file."""
    scope = scope_of(path)
    for passage, terms in zip(found, made.each, strict=True):
        document = tantivy.Document()
        document.add_text("path", path)
        document.add_bytes("body", passages.stored(passage))
        document.add_text(scope.passage, " ".join(terms))
        if passage.at:
            document.add_integer("at", _instant(passage.at))
        yield document
    whole = tantivy.Document()
    whole.add_text("path", path)
    whole.add_text(scope.file, " ".join(made.whole))
    yield whole


def _instant(at: datetime) -> int:
    """Milliseconds, as exact as a record tells them."""
    return math.floor(at.timestamp() * 1000)


def _manifest(files: Files) -> tuple[str, IndexCounts] | None:
    """Generation and counts; None when it is not one of this format.

    A line at a time: of very many files all at once would take more memory than is ever given back.
    """
    try:
        lines = io.BytesIO(files.read(_MANIFEST) or b"")
        known, generation, near, far, count = json.loads(next(lines, b"{}"))
        if known != FORMAT:
            return None
        table = StampTable(((p, row) for p, *row in map(json.loads, lines)), len(_NO_ROW))
        if len(table) != count:
            return None
        sums = {NEAR: TermTotals(*near), FAR: TermTotals(*far)}
        return generation, IndexCounts(table, sums)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, UnsafeFile):
        return None  # an unsafe one is no file at all: it goes with the rest when that is made anew


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
