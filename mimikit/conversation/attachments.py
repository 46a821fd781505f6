"""Files that the user sends: `files/{id}`, equal ones once, each with a record of its name.

They stay until the user deletes them; `files.max_mb` bounds them.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
from collections.abc import Sequence

from mimikit.config import FileSettings
from mimikit.errors import BadInput, UnsafeFile
from mimikit.language.plain_text import plain
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import MAX_FILES, FileRef

MAX_FILE_BYTES = 10 * 2**20
MAX_PICTURE_BYTES = 5_000_000
"""Of a picture that is shown to a model."""
_MAX_TEXT_BYTES = 500_000
"""Read of a text; a prompt has room for less."""
_MAX_NAME_BYTES = 180
_PICTURES = {
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "jpeg": re.compile(rb"\xff\xd8\xff"),
    "gif": re.compile(rb"GIF8[79]a"),
    "webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}


def keep(files: Files, data: bytes, name: str, settings: FileSettings) -> FileRef:
    """Store a file; it is on disk when this returns.

    Crash: a record without its file is no file.

    Raises:
        BadInput: it is empty or too large, or there is no room for more.
    """
    if not 0 < len(data) <= MAX_FILE_BYTES:
        message = f"file: expected 1 to {MAX_FILE_BYTES:,} bytes, got {len(data):,}"
        most = f"{MAX_FILE_BYTES // 2**20} MB"
        raise BadInput(message, field="file", code="too_large", params={"max": most})
    extension = _extension_of(data)
    kind = "image" if extension in _PICTURES else "text" if extension == "txt" else "other"
    id_ = f"{hashlib.sha256(data).hexdigest()[:32]}.{extension}"
    ref = FileRef(id=id_, name=_harmless_name(name), kind=kind, bytes=len(data))
    path = paths.user_file(id_)
    used = sum(stat.size for stat in files.stats(paths.FILES, suffix="").values())
    if used + len(data) > settings.max_mb * 2**20 and not files.exists(path):
        message = f"file: the {settings.max_mb} MB of {paths.FILES}/ (`files.max_mb`) are used up"
        message += "; delete there what you no longer need"
        raise BadInput(message, field="file", code="files_full", params={"max": settings.max_mb})
    files.save(paths.user_file_record(id_), ref)
    files.create(path, data)
    return ref


def _extension_of(data: bytes) -> str:
    if picture := next((name for name, start in _PICTURES.items() if start.match(data)), None):
        return picture
    with contextlib.suppress(UnicodeDecodeError):
        return "bin" if "\0" in data.decode() or data.startswith(b"%PDF-") else "txt"
    return "bin"


def _harmless_name(name: str) -> str:
    """The last part of a path, on one line; of a long one the end, which has the extension."""
    last = re.split(r"[/\\]", " ".join(plain(name).split()))[-1]
    end = last.encode(errors="replace")[-_MAX_NAME_BYTES:].decode(errors="ignore")
    return end.strip(". ") or "file"


def find(files: Files, file_id: str) -> FileRef | None:
    ref = files.peek(paths.user_file_record(file_id), FileRef)
    return ref if ref is not None and files.exists(paths.user_file(file_id)) else None


def named(files: Files, ids: Sequence[str]) -> list[FileRef]:
    """The files that a message names.

    Raises:
        BadInput: they are too many, or one is not there.
    """
    refs: list[FileRef] = []
    for id_ in dict.fromkeys(ids):
        ref = find(files, id_)
        if ref is None or len(refs) == MAX_FILES:
            wanted = f"at most {MAX_FILES} ids of files that were sent before"
            message = f"files: expected {wanted}, got {id_[:60]!r}"
            raise BadInput(message, field="files", code="not_found")
        refs.append(ref)
    return refs


# ---- reading


def media_type(file_id: str) -> str:
    extension = file_id.rpartition(".")[2]
    if extension in _PICTURES:
        return f"image/{extension}"
    return "text/plain; charset=utf-8" if extension == "txt" else "application/octet-stream"


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
    is_shown = ref.kind == "image" and ref.bytes <= MAX_PICTURE_BYTES
    data = content(files, ref) if is_shown else None
    return f"data:{media_type(ref.id)};base64,{base64.b64encode(data).decode()}" if data else ""
