"""Downloads and verifies the weights of the small models, kept per user.

A file gets its final name once its SHA-256 matches the pinned one.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mimikit.errors import BadInput, Conflict, EngineError, StorageError
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files

Fetch = Callable[[str, int], Iterator[bytes]]
"""(url, offset) → chunks; an empty first chunk: the server does not resume."""
OnProgress = Callable[[int, int], None]
"""Progress callback: (bytes so far, all bytes)."""

_CHUNK_BYTES = 2**20
_TIMEOUT_S = 60.0
_PUBLISHER = "https://huggingface.co/Qwen"


@dataclass(frozen=True, slots=True)
class ModelWeights:
    size: str
    title: str
    sha256: str
    bytes: int
    url: str

    @property
    def file(self) -> str:
        return f"{self.sha256}.gguf"


SMALL = ModelWeights(
    "0.5b",
    "Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    491_400_064,
    f"{_PUBLISHER}/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
)
LARGE = ModelWeights(
    "1.5b",
    "Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    1_117_320_768,
    f"{_PUBLISHER}/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
)
KNOWN = (LARGE, SMALL)
"""The best first."""


def folder_of_user() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "mimikit" / "models"


def is_whole(weights: ModelWeights, folder: Path) -> bool:
    try:
        return (folder / weights.file).stat().st_size == weights.bytes
    except OSError:
        return False


def best(folder: Path) -> ModelWeights | None:
    return next((one for one in KNOWN if is_whole(one, folder)), None)


def needed_bytes(weights: ModelWeights, folder: Path) -> int:
    try:
        there = (folder / f"{weights.sha256}.part").stat().st_size
    except OSError:
        there = 0
    return max(0, weights.bytes - there)


def check_room(weights: ModelWeights, folder: Path) -> None:
    above = next(place for place in (folder, *folder.parents) if place.exists())
    free, needed = shutil.disk_usage(above).free, needed_bytes(weights, folder)
    if free < needed:
        raise BadInput(
            f"expected {needed / 1e9:.1f} GB of free disk at {above}, got {free / 1e9:.1f} GB; "
            "make room, or set XDG_CACHE_HOME to another disk"
        )


def set_up(weights: ModelWeights, folder: Path, fetch: Fetch, on_progress: OnProgress) -> Path:
    """Download the missing part, verify the whole file, and return its path.

    Crash: the `.part` file stays, and the next call resumes at its end.

    Raises:
        BadInput: too little disk space, or not the pinned file.
        EngineError: the download failed.
        Conflict: another process is setting up the same weights.
    """
    check_room(weights, folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(RealDisk(folder)) as disk:
        files = Files(disk)
        if (lock := files.lock(f"{weights.sha256}.lock")) is None:
            raise Conflict(f"{folder} is being written to by another setup; wait for that")
        try:
            if not is_whole(weights, folder):
                _complete(weights, folder / f"{weights.sha256}.part", fetch, on_progress)
                files.move(f"{weights.sha256}.part", weights.file)
        finally:
            lock.release()
    return folder / weights.file


def remove(weights: ModelWeights, folder: Path) -> bool:
    """Remove the weights and a partial download; returns whether there was anything."""
    if not folder.is_dir():
        return False
    with closing(RealDisk(folder)) as disk:
        files = Files(disk)
        was_there = files.remove(weights.file)
        was_there = files.remove(f"{weights.sha256}.part") or was_there
        files.remove(f"{weights.sha256}.lock")
    return was_there


def _complete(weights: ModelWeights, part: Path, fetch: Fetch, on_progress: OnProgress) -> None:
    """Complete the `.part` file and verify its hash; a wrong file is removed."""
    digest, size = hashlib.sha256(), 0
    try:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            while size < weights.bytes and (data := file.read(_CHUNK_BYTES)):
                digest.update(data)
                size += len(data)
            if size < weights.bytes:
                for data in fetch(weights.url, size):
                    if not data:  # the server does not resume
                        file.seek(0)
                        file.truncate()
                        digest, size = hashlib.sha256(), 0
                    file.write(data)
                    digest.update(data)
                    size += len(data)
                    on_progress(size, weights.bytes)
                    if size > weights.bytes:
                        break
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(f"{part}: {error}") from error
    if size < weights.bytes:
        raise EngineError(
            _failed(weights.url, f"it ended after {size:,} of {weights.bytes:,} bytes")
        )
    if size > weights.bytes or digest.hexdigest() != weights.sha256:
        part.unlink()
        raise BadInput(
            f"expected a file of {weights.bytes:,} bytes with the SHA-256 {weights.sha256} at "
            f"{weights.url}, got another; it was removed: try again, or set local.model_path to a "
            "GGUF file of your own"
        )


def download(url: str, offset: int) -> Iterator[bytes]:
    """Download a file from an offset on; EngineError when the server fails."""
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - a pinned address
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            if offset and answer.status != http.HTTPStatus.PARTIAL_CONTENT:
                yield b""
            while data := answer.read(_CHUNK_BYTES):
                yield data
    except urllib.error.HTTPError as error:
        raise EngineError(_failed(url, f"it answered {error.code} {error.reason}")) from error
    except urllib.error.URLError as error:
        raise EngineError(_failed(url, str(error.reason))) from error
    except (OSError, http.client.HTTPException) as error:
        raise EngineError(_failed(url, str(error) or type(error).__name__)) from error


def _failed(url: str, why: str) -> str:
    return (
        f"{url} cannot be downloaded: {why}; check the connection and try again, it resumes where "
        "it stopped. Or set local.model_path to a GGUF file of your own"
    )
