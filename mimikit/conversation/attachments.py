"""Files that the user sends: `files/{id}`, equal ones once, each with a record of its name.

An empty file `{id}.sent` beside it says that a message names it; what no message names is removed
after a day.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
from collections.abc import Sequence

from mimikit.config import FileSettings
from mimikit.errors import BadInput, StorageError, UnsafeFile
from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import MAX_FILES, FileRef

MAX_PICTURE_BYTES = 5_000_000
"""Of a picture that is shown to a model."""
_MAX_TEXT_BYTES = 500_000
"""Read of a text file; a prompt has room for less."""
_NAME_BYTES = 180
"""With a prefix it is the name of a file for a task."""
_TEXT, _OTHER = "txt", "bin"
_PICTURES = {
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8[79]a"),
    "webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
_MEDIA_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    _TEXT: "text/plain; charset=utf-8",
    _OTHER: "application/octet-stream",
}


def keep(files: Files, data: bytes, name: str, settings: FileSettings) -> FileRef:
    """Store a file; it is on disk when this returns.

    Crash: a part without the rest is no file, and is removed after a day.

    Raises:
        BadInput: it is empty or too large, or there is no room for more.
    """
    if not data:
        raise BadInput("file: expected a file with something in it, got an empty one", field="file")
    if len(data) > settings.file_mb * 2**20:
        message = f"file: expected at most {settings.file_mb} MB (`files.file_mb`), got more"
        raise BadInput(message, field="file")
    extension = _extension_of(data)
    kind = "image" if extension in _PICTURES else "text" if extension == _TEXT else "other"
    id_ = f"{hashlib.sha256(data).hexdigest()[:32]}.{extension}"
    ref = FileRef(id=id_, name=harmless_name(name), kind=kind, bytes=len(data))
    path = paths.user_file(id_)
    used = sum(stat.size for stat in files.stats(paths.FILES, suffix="").values())
    if not files.exists(path) and used + len(data) > settings.max_mb * 2**20:
        raise BadInput(
            f"file: expected at most {settings.max_mb} MB in {paths.FILES}/ (`files.max_mb`), and "
            "that is used up; delete what you no longer need there",
            field="file",
        )
    files.save(paths.user_file_record(id_), ref)
    files.create(path, data)
    return ref


def _extension_of(data: bytes) -> str:
    for extension, start in _PICTURES.items():
        if start.match(data):
            return extension
    with contextlib.suppress(UnicodeDecodeError):
        if b"\0" not in data and not data.startswith(b"%PDF-"):
            data.decode()
            return _TEXT
    return _OTHER


def harmless_name(name: str) -> str:
    """The last part of a path, on one line; of a long one the end, which has the extension."""
    last = re.split(r"[/\\]", " ".join(plain(name).split()))[-1]
    end = last.encode(errors="replace")[-_NAME_BYTES:].decode(errors="ignore")
    return end.strip(". ") or "file"


def find(files: Files, file_id: str) -> FileRef | None:
    ref = files.peek(paths.user_file_record(file_id), FileRef)
    return ref if ref is not None and files.exists(paths.user_file(file_id)) else None


def named(files: Files, ids: Sequence[str]) -> list[FileRef]:
    """The files that a message names; from now on they stay.

    Raises:
        BadInput: they are too many, or one is not there.
    """
    unique = list(dict.fromkeys(ids))
    if len(unique) > MAX_FILES:
        message = f"files: expected at most {MAX_FILES}, got {len(unique)}"
        raise BadInput(message, field="files")
    refs: list[FileRef] = []
    for id_ in unique:
        if find(files, id_) is not None:
            files.create(paths.user_file(id_) + paths.SENT, b"")
        if (ref := find(files, id_)) is None:  # it may have been removed meanwhile
            message = f"files: expected the id of a file that was sent, got {id_[:60]!r}; send it"
            raise BadInput(message, field="files")
        refs.append(ref)
    return refs


# ---- reading


def media_type(file_id: str) -> str:
    return _MEDIA_TYPES.get(file_id.rpartition(".")[2], _MEDIA_TYPES[_OTHER])


def content(files: Files, ref: FileRef) -> bytes | None:
    """None: it is gone."""
    with contextlib.suppress(UnsafeFile):
        return files.read(paths.user_file(ref.id))
    return None


def beginning(files: Files, ref: FileRef) -> str:
    """Of a text; empty for other files."""
    data = files.part(paths.user_file(ref.id), 0, _MAX_TEXT_BYTES) if ref.kind == "text" else b""
    return plain(data.decode(errors="ignore"))


def data_url(files: Files, ref: FileRef) -> str:
    """Of a picture; empty for other files, and for one that is gone or too large."""
    if ref.kind != "image" or ref.bytes > MAX_PICTURE_BYTES:
        return ""
    data = content(files, ref)
    encoded = base64.b64encode(data or b"").decode()
    return f"data:{media_type(ref.id)};base64,{encoded}" if data else ""


# ---- retention


def remove_unsent(files: Files, limit_ns: int) -> list[str]:
    """Remove the files that no message names and that were last sent before then; their paths."""
    stats = files.stats(paths.FILES, suffix="")
    fresh = {_id_of(name) for name, stat in stats.items() if stat.mtime_ns >= limit_ns}
    removed: list[str] = []
    for name in sorted(stats, reverse=True):  # the record before the file
        id_ = _id_of(name)
        if id_ in fresh or files.exists(paths.user_file(id_) + paths.SENT):
            continue
        with contextlib.suppress(StorageError):
            path = paths.user_file(name)
            removed += [path] if files.remove(path) else []
    return removed


def _id_of(name: str) -> str:
    return name.removesuffix(paths.SENT).removesuffix(".json")
