"""What an update of the index is to write, gathered by table; then table after table is written.

Each writer fills a heap of its own and has threads of its own, so that there is but one at a time.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

import tantivy

_HEAP = 16 * 2**20
_BATCH = 4000
"""Documents of one commit: up to 10,000 wait in a writer's queue, each as large as its terms."""
_MOST_GATHERED = 64 * 2**20
"""Characters before it is written: who ends the process waits for that."""
_MOST_HELD = 2**18
"""Bytes of a table; what is more is in a file."""


class IndexDocument(NamedTuple):
    """Of a table: a passage, or all that a file has in a scope."""

    path: str
    terms: str
    """As many as there are, with blanks between them."""
    body: str = ""
    """The passage as the index keeps it."""
    at: int | None = None
    """Milliseconds since 1970."""

    def made(self) -> tantivy.Document:
        document = tantivy.Document()
        document.add_text("path", self.path)
        document.add_text("terms", self.terms)
        if self.body:
            document.add_bytes("body", self.body.encode())
        if self.at is not None:
            document.add_integer("at", self.at)
        return document


class IndexBatch:
    """By table, in their order: documents to add, and paths whose documents go.

    Its files have no name: nothing of them is left when the process ends.
    """

    def __init__(self, folder: Path, table: Callable[[str], tantivy.Index]) -> None:
        """`folder`: where its files are; `table`: makes the one to write to."""
        self._folder, self._table = folder, table
        self._spools: dict[str, SpooledTemporaryFile[bytes]] = {}
        self._size = 0

    def __contains__(self, table: str) -> bool:
        return table in self._spools

    def add(self, table: str, document: IndexDocument) -> None:
        self._put(table, document)
        if self._size >= _MOST_GATHERED:
            self.write()

    def delete(self, table: str, path: str) -> None:
        self._put(table, (path,))

    def _put(self, table: str, row: tuple[object, ...]) -> None:
        if table not in self._spools:
            file = SpooledTemporaryFile(_MOST_HELD, dir=str(self._folder))  # noqa: SIM115  # until written
            self._spools[table] = file
        self._size += self._spools[table].write(json.dumps(row).encode() + b"\n")

    def write(self) -> None:
        """Write what is gathered, and begin anew."""
        while self._spools:
            table, file = self._spools.popitem()
            with file:
                file.seek(0)
                writer = self._table(table).writer(_HEAP, 1)
                for number, line in enumerate(file, 1):
                    path, *more = json.loads(line)
                    if more:
                        writer.add_document(IndexDocument(path, *more).made())
                    else:
                        writer.delete_documents_by_term("path", path)
                    if number % _BATCH == 0:
                        writer.commit()
                writer.commit()
                writer.wait_merging_threads()
            give_back()
        self._size = 0

    def close(self) -> None:
        """Let go of what was not written."""
        for file in self._spools.values():
            file.close()
        self._spools.clear()


def give_back() -> None:
    """Give free memory back: what many small pieces took is else kept, for each thread anew."""
    with contextlib.suppress(AttributeError):  # of the GNU library alone
        ctypes.CDLL(None).malloc_trim(0)
