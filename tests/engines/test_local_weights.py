"""Weights are fetched from their publisher, verified by their hash, and resumed after any death."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mimikit.engines.local import weights
from mimikit.engines.local.weights import ModelWeights
from mimikit.errors import BadInput, Conflict, EngineError

WHOLE = b"GGUF" + b"a" * 3_000_000 + b"b" * 2_500_000 + b"the end"
SMALL = ModelWeights(
    "0.1b",
    "Tiny",
    hashlib.sha256(WHOLE).hexdigest(),
    len(WHOLE),
    "https://publisher.test/tiny.gguf",
)


class Killed(BaseException):
    """The process dies here."""


class Publisher:
    """Serves a file in chunks; it notes the offsets asked for, and may fail after some chunks."""

    def __init__(self, data: bytes = WHOLE, *, resumes: bool = True) -> None:
        self.data, self.resumes = data, resumes
        self.offsets: list[int] = []
        self.chunks_left = 10**6
        self.error: BaseException = Killed()

    def fetch(self, _url: str, offset: int) -> Iterator[bytes]:
        self.offsets.append(offset)
        if offset and not self.resumes:
            yield b""
            offset = 0
        for start in range(offset, len(self.data), 2**20):
            if self.chunks_left == 0:
                raise self.error
            self.chunks_left -= 1
            yield self.data[start : start + 2**20]


def quiet(_done: int, _whole: int) -> None:
    pass


def test_the_file_is_whole_verified_and_alone_in_its_folder(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    path = weights.set_up(
        SMALL, tmp_path / "new", Publisher().fetch, lambda done, all_: told.append((done, all_))
    )
    assert path.read_bytes() == WHOLE
    assert weights.is_whole(SMALL, tmp_path / "new")
    assert sorted(it.name for it in path.parent.iterdir()) == [SMALL.file, f"{SMALL.sha256}.lock"]
    assert told[-1] == (len(WHOLE), len(WHOLE))


@pytest.mark.parametrize("resumes", [True, False])
@pytest.mark.parametrize("chunks", range(6))
def test_a_death_after_any_chunk_leaves_no_file_and_the_next_setup_resumes(
    tmp_path: Path, chunks: int, resumes: bool
) -> None:
    dying = Publisher()
    dying.chunks_left = chunks
    with pytest.raises(Killed):
        weights.set_up(SMALL, tmp_path, dying.fetch, quiet)
    assert not weights.is_whole(SMALL, tmp_path)
    publisher = Publisher(resumes=resumes)
    assert weights.set_up(SMALL, tmp_path, publisher.fetch, quiet).read_bytes() == WHOLE
    assert publisher.offsets == [min(chunks * 2**20, len(WHOLE))]


def test_a_part_that_holds_something_else_is_noticed_and_removed(tmp_path: Path) -> None:
    (tmp_path / f"{SMALL.sha256}.part").write_bytes(b"x" * 100)
    with pytest.raises(BadInput, match="it was removed"):
        weights.set_up(SMALL, tmp_path, Publisher().fetch, quiet)
    assert weights.set_up(SMALL, tmp_path, Publisher().fetch, quiet).read_bytes() == WHOLE


@pytest.mark.parametrize("data", [WHOLE.replace(b"a", b"x", 1), WHOLE + b"more"])
def test_another_file_than_the_pinned_one_is_removed(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadInput, match=r"with the SHA-256 .* got another; it was removed"):
        weights.set_up(SMALL, tmp_path, Publisher(data).fetch, quiet)
    assert [it.name for it in tmp_path.iterdir()] == [f"{SMALL.sha256}.lock"]


def test_a_download_that_ends_early_is_kept_and_said(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"it ended after 1,000,000 of .* it resumes"):
        weights.set_up(SMALL, tmp_path, Publisher(WHOLE[:1_000_000]).fetch, quiet)
    assert weights.needed_bytes(SMALL, tmp_path) == len(WHOLE) - 1_000_000


def test_only_one_sets_up_at_a_time(tmp_path: Path) -> None:
    def fetch(_url: str, _offset: int) -> Iterator[bytes]:
        weights.set_up(SMALL, tmp_path, Publisher().fetch, quiet)
        yield b""

    with pytest.raises(Conflict, match="another setup"):
        weights.set_up(SMALL, tmp_path, fetch, quiet)


def test_too_little_room_is_said_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(tmp_path)._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: free)
    publisher = Publisher()
    with pytest.raises(BadInput, match=r"expected 0\.0 GB of free disk at .*, got 0\.0 GB"):
        weights.set_up(SMALL, tmp_path / "not" / "yet", publisher.fetch, quiet)
    assert not publisher.offsets


def test_removed_is_all_that_a_setup_has_left(tmp_path: Path) -> None:
    weights.set_up(SMALL, tmp_path, Publisher().fetch, quiet)
    assert weights.remove(SMALL, tmp_path)
    assert not list(tmp_path.iterdir())
    assert not weights.remove(SMALL, tmp_path)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path != "/tiny.gguf":
            self.send_error(404)
            return
        wanted = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-")
        self.send_response(206 if int(wanted) else 200)
        self.send_header("Content-Length", str(len(WHOLE) - int(wanted)))
        self.end_headers()
        self.wfile.write(WHOLE[int(wanted) :])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def test_a_download_resumes_by_http(tmp_path: Path, server: str) -> None:
    wanted = dataclasses.replace(SMALL, url=f"{server}/tiny.gguf")
    (tmp_path / f"{SMALL.sha256}.part").write_bytes(WHOLE[:1_500_000])
    assert weights.set_up(wanted, tmp_path, weights.download, quiet).read_bytes() == WHOLE


def test_what_the_server_refuses_is_said(tmp_path: Path, server: str) -> None:
    wanted = dataclasses.replace(SMALL, url=f"{server}/other")
    with pytest.raises(EngineError, match=r"/other cannot be downloaded: it answered 404"):
        weights.set_up(wanted, tmp_path, weights.download, quiet)
