"""What a file is by what is in it, never by what it is called. Pure.

Nothing is unpacked or decoded but text: of a picture its first bytes say what it is and how large.
"""

from __future__ import annotations

import re
import struct
import unicodedata

from mimikit.language.plain_text import plain

TEXT, PDF, OTHER = "text/plain", "application/pdf", "application/octet-stream"
MOST_PIXELS = 50_000_000
"""A picture of more would take a browser's memory: it is a file like any other."""
_MOST_NAME = 120
_MOST_SIDE = 30_000
_ODD = re.compile(r"""[\s/\\:*?"<>|`$]+""")
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
# Frames of a JPEG that tell its size: all but those of tables and of arithmetic coding's bounds.
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def harmless_name(given: str) -> str:
    """A name that is a plain name wherever it is shown or used: no path, no option, nothing hidden.

    Never empty; its ending stays as far as it has one.
    """
    name = unicodedata.normalize("NFC", given.encode(errors="replace").decode())
    name = plain(name.replace("\\", "/").rpartition("/")[2])
    name = _ODD.sub(" ", name).strip(" .-~")
    if len(name) > _MOST_NAME:
        stem, dot, ending = name.rpartition(".")
        kept = f"{dot}{ending}" if stem and len(ending) <= 12 else ""
        name = name[: _MOST_NAME - len(kept)].rstrip(" .") + kept
    return name or "file"


def picture_of(data: bytes) -> tuple[str, int, int] | None:
    """Media type, width and height of a picture that browsers and models take; None: it is none."""
    try:
        found = _png(data) or _gif(data) or _webp(data) or _jpeg(data)
    except (struct.error, IndexError):
        return None
    if found is None:
        return None
    _, width, height = found
    is_sound = 0 < width <= _MOST_SIDE and 0 < height <= _MOST_SIDE
    return found if is_sound and width * height <= MOST_PIXELS else None


def text_of(data: bytes) -> str | None:
    """The text that a file consists of; None where it is none.

    UTF-8, or UTF-16 with its mark; else GB 18030 where that makes Chinese of it.
    """
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    text = _decoded(data, encoding)
    if text is None and encoding == "utf-8":
        text = _decoded(data, "gb18030")
        wide = "".join(sign for sign in text or "" if ord(sign) > 127)
        if len(wide.encode("gb2312", "ignore")) < 0.9 * 2 * len(wide):  # it reads anything so
            return None
    return text


def media_type(data: bytes) -> str:
    """One of a few types that are known."""
    if (picture := picture_of(data)) is not None:
        return picture[0]
    if data.startswith(b"%PDF-"):
        return PDF
    return TEXT if text_of(data) is not None else OTHER


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if _BINARY.search(text) else text


def _png(data: bytes) -> tuple[str, int, int] | None:
    if not data.startswith(b"\x89PNG\r\n\x1a\n") or data[12:16] != b"IHDR":
        return None
    return "image/png", *struct.unpack(">II", data[16:24])


def _gif(data: bytes) -> tuple[str, int, int] | None:
    if data[:6] not in (b"GIF87a", b"GIF89a"):
        return None
    return "image/gif", *struct.unpack("<HH", data[6:10])


def _webp(data: bytes) -> tuple[str, int, int] | None:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return None
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
    elif kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = (side & 0x3FFF for side in struct.unpack("<HH", data[26:30]))
    else:
        return None
    return "image/webp", width, height


def _jpeg(data: bytes) -> tuple[str, int, int] | None:
    if not data.startswith(b"\xff\xd8\xff"):
        return None
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # filling
            at += 1
            continue
        if marker in _JPEG_SIZES:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return "image/jpeg", width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
