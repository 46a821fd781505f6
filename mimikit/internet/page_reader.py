"""Turns what came of an address into text: a short program of its own, with limits.

    python -I -m mimikit.internet.page_reader < head and body > what is in it

What is unpacked and parsed here was made by others, perhaps to harm: memory, time and files of this
process are limited by itself, its start is in a sandbox without network where there is one, and
whatever becomes of it the consumer has read a few bytes of JSON. The head is a line of JSON:
`url`, `mediaType`, `charset`, `encoding`, `mostBytes`, `links`; the body follows. Out comes one
object: `title`, `date`, `text`, `links`, `kind`, or `error`.
"""

from __future__ import annotations

import codecs
import importlib
import io
import json
import re
import resource
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, TypedDict
from urllib.parse import urljoin, urlsplit

MOST_CPU_S = 20
_MOST_MEMORY = 1536 * 2**20
_MOST_TEXT = 2_000_000
_MOST_LINKS = 200
_MOST_ENCODINGS = 2
_MOST_PDF_PAGES = 300
_PIECE = 65536
_HTML = ("text/html", "application/xhtml+xml")
_META = re.compile(
    rb"""<meta[^>]{0,200}charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE
)
_XML = re.compile(rb"""^\s*<\?xml[^>]{0,100}encoding\s*=\s*["']([A-Za-z0-9_.-]{1,40})""")
_LOOKS_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "iso-8859-1": "cp1252", "latin-1": "cp1252"}
"""What pages that name these are really written in."""


class PageHead(TypedDict):
    url: str
    mediaType: str
    charset: str
    encoding: str
    mostBytes: int
    links: bool


class PageText(TypedDict, total=False):
    title: str
    date: str
    text: str
    links: list[tuple[str, str]]
    kind: str
    error: str


class UnreadablePage(Exception):
    """What came can not be read; the text says why."""


def main() -> None:
    _limit()
    head: PageHead = json.loads(sys.stdin.buffer.readline(_PIECE))
    body = sys.stdin.buffer.read()
    try:
        reading = read(head, body)
    except UnreadablePage as error:
        reading = PageText(error=str(error))
    except MemoryError:
        reading = PageText(error="there is too much in it to be read")
    except RecursionError:
        reading = PageText(error="it is nested too deeply to be read")
    except Exception as error:  # noqa: BLE001 - parsers fail in many ways, on what was made to
        reading = PageText(error=f"it can not be read: {type(error).__name__}")
    text = reading.get("text", "")
    if len(text) > _MOST_TEXT:
        reading["text"] = text[:_MOST_TEXT] + "\n\n[… the rest is left out …]"
    sys.stdout.buffer.write(json.dumps(reading, ensure_ascii=False).encode("utf-8", "replace"))


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def read(head: PageHead, body: bytes) -> PageText:
    """Raises UnreadablePage, and what parsers raise."""
    data = unpacked(body, head["encoding"], head["mostBytes"])
    kind = head["mediaType"]
    if data.startswith(b"%PDF-") or "pdf" in kind:
        return _of_pdf(data)
    if _is_html(kind, data):
        return _of_html(head, data)
    if _is_binary(data) and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UnreadablePage("expected a page, a text or a PDF, got something else")
    return PageText(kind="text", text=decoded(data, head["charset"]))


def _is_html(kind: str, data: bytes) -> bool:
    if kind in _HTML:
        return True
    is_open = kind in ("", "text/plain", "application/octet-stream", "application/xml", "text/xml")
    return is_open and bool(_LOOKS_HTML.search(data[:1024]))


def _is_binary(data: bytes) -> bool:
    return b"\0" in data[:4096]


# ---- what is packed


def unpacked(body: bytes, encoding: str, most: int) -> bytes:
    """The body as it was before it was packed, of at most so many bytes.

    Raises:
        UnreadablePage: it is more, broken, or packed in a way that was not asked for.
    """
    packed = [name.strip() for name in encoding.split(",") if name.strip() not in ("", "identity")]
    if len(packed) > _MOST_ENCODINGS:
        raise UnreadablePage(f"expected at most {_MOST_ENCODINGS} encodings, got {len(packed)}")
    for name in reversed(packed):
        unpack = {"gzip": _gunzip, "x-gzip": _gunzip, "deflate": _inflate, "br": _unbrotli}.get(
            name
        )
        if unpack is None:
            raise UnreadablePage(f"expected gzip, deflate or br, got {name[:20]!r}")
        try:
            body = _joined(unpack(body), most)
        except zlib.error:
            raise UnreadablePage(f"expected {name}, got something broken") from None
    return body


def _joined(parts: Iterator[bytes], most: int) -> bytes:
    whole = bytearray()
    for part in parts:
        whole += part
        if len(whole) > most:
            raise UnreadablePage(f"expected at most {most / 1e6:g} MB once unpacked, got more")
    return bytes(whole)


def _gunzip(body: bytes) -> Iterator[bytes]:
    return _zlib_parts(body, zlib.MAX_WBITS | 16)


def _inflate(body: bytes) -> Iterator[bytes]:
    """With the head that the standard asks for, or without it, as some servers send it."""
    has_head = len(body) > 1 and body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return _zlib_parts(body, zlib.MAX_WBITS if has_head else -zlib.MAX_WBITS)


def _zlib_parts(body: bytes, window: int) -> Iterator[bytes]:
    """Members one after the other, as they stand in some files."""
    while body:
        packer = zlib.decompressobj(window)
        rest = body
        while rest and not packer.eof:
            yield packer.decompress(rest, _PIECE)
            rest = packer.unconsumed_tail
        body = packer.unused_data if window > zlib.MAX_WBITS else b""


def _unbrotli(body: bytes) -> Iterator[bytes]:
    brotli: Any = importlib.import_module("brotli")
    packer = brotli.Decompressor()
    try:
        yield packer.process(body, output_buffer_limit=_PIECE)
        while not packer.is_finished() and not packer.can_accept_more_data():
            yield packer.process(b"", output_buffer_limit=_PIECE)
    except brotli.error:
        raise UnreadablePage("expected br, got something broken") from None


# ---- what is text


def decoded(data: bytes, charset: str) -> str:
    """The text of bytes whose charset is named by none, one or several, rightly or wrongly.

    UTF-8 that has more than ASCII in it is no accident, so that goes before what is named. What is
    named counts where all of it can be read so; then what is likeliest.
    """
    for bom, name in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"),
                      (codecs.BOM_UTF16_BE, "utf-16")):  # fmt: skip
        if data.startswith(bom):
            return data.decode(name, "replace")
    named = [found[1].decode() for found in (_META.search(data[:4096]), _XML.search(data)) if found]
    vague = charset.lower() in ("iso-8859-1", "latin1", "latin-1", "us-ascii", "windows-1252")
    order = ["utf-8", *named, charset] if vague else ["utf-8", charset, *named]
    if vague and not named:
        order = ["utf-8", *(["gb18030"] if _is_chinese(data) else []), charset]
    for name in filter(None, order):
        text = _decoded_by(data, name)
        if text is not None:
            return text
    if (text := _likeliest(data)) is not None:
        return text
    return data.decode(_known(charset) or "utf-8", "replace")


def _known(name: str) -> str | None:
    try:
        return codecs.lookup(_WIDER.get(name.lower(), name)).name
    except (LookupError, ValueError):
        return None


def _decoded_by(data: bytes, name: str) -> str | None:
    if (known := _known(name)) is None:
        return None
    try:
        text = data.decode(known)
    except (UnicodeError, ValueError):
        return None
    except LookupError:  # no encoding of text
        return None
    return text if isinstance(text, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]


def _likeliest(data: bytes) -> str | None:
    """GBK that reads as Chinese does, which guessers take for a neighbour's; else their guess."""
    from charset_normalizer import from_bytes

    if _is_chinese(data):
        return data.decode("gb18030")
    found = from_bytes(data[:200_000]).best()
    return data.decode(found.encoding, "replace") if found is not None else None


_COMMON = frozenset(
    "的一是不了在人有我他这中大来上个国和也子时道说年得就那要下以生会自着去之过家学对可里"
)


def _is_chinese(data: bytes) -> bool:
    """Whether all of it reads as GBK, and has as many common characters then as Chinese has."""
    text = _decoded_by(data, "gb18030") or ""
    han = [char for char in text if "\u4e00" <= char <= "\u9fff"]
    return len(han) > 3 and sum(char in _COMMON for char in han) * 20 >= len(han)


# ---- what is a page


def _of_html(head: PageHead, data: bytes) -> PageText:
    import trafilatura

    markup: Any = importlib.import_module("lxml.html")
    text = decoded(data, head["charset"]).replace("\0", "")
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)  # it names a charset that is not its own now
    if not text.strip():
        return PageText(kind="page", text="")
    tree = markup.document_fromstring(text, parser=markup.HTMLParser(recover=True, huge_tree=False))
    reading = PageText(kind="page", title=_title(tree), links=[])
    if head["links"]:
        reading["links"] = list(_links(tree, head["url"]))
    extract: Callable[..., str | None] = trafilatura.extract
    try:
        found = extract(
            text, url=head["url"], output_format="markdown", include_comments=False,
            include_tables=True, include_links=False, favor_recall=True, with_metadata=False,
        )  # fmt: skip
        told = trafilatura.extract_metadata(text, default_url=head["url"])
        reading["title"] = ((told.title if told else None) or reading.get("title", ""))[:500]
        reading["date"] = ((told.date if told else None) or "")[:40]
    except (RecursionError, ValueError, AttributeError, TypeError, KeyError, IndexError):
        found = None
    reading["text"] = found or _all_text(tree) or _bare(text)
    return reading


def _title(tree: Any) -> str:
    return " ".join(str(tree.findtext(".//title") or "").split())[:500]


def _links(tree: Any, base: str) -> Iterator[tuple[str, str]]:
    """Text and address of each link that leads to the web, once."""
    known: set[str] = set()
    for link in tree.iter("a"):
        try:
            to = urljoin(base, str(link.get("href") or "")).partition("#")[0]
            is_web = urlsplit(to).scheme in ("http", "https")
        except ValueError:
            continue
        if not is_web or to in known or len(to) > 1000 or to == base:
            continue
        known.add(to)
        yield " ".join(str(link.text_content()).split())[:200], to
        if len(known) >= _MOST_LINKS:
            return


def _all_text(tree: Any) -> str:
    """Where no article is found: every line that is shown."""
    for odd in list(tree.iter("script", "style", "noscript", "template")):
        odd.drop_tree()
    lines = (" ".join(line.split()) for line in tree.text_content().splitlines())
    return "\n".join(line for line in lines if line)


def _bare(text: str) -> str:
    """Of what no parser takes as a whole: all that stands outside of tags."""
    lines = (" ".join(line.split()) for line in re.sub(r"<[^<>]*>?", " ", text).splitlines())
    return "\n".join(line for line in lines if line)


# ---- what is a PDF


def _of_pdf(data: bytes) -> PageText:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it unpacks it limits by itself
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadablePage("this PDF is shut by a password")
        parts, size = list[str](), 0
        for number, page in enumerate(reader.pages, 1):
            if number > _MOST_PDF_PAGES or size > _MOST_TEXT:
                parts.append(f"[… {len(reader.pages)} pages in all; the rest is left out …]")
                break
            said = page.extract_text().strip()
            size += len(said)
            parts.append(f"[page {number}]\n{said}")
        facts = reader.metadata
        title = str(facts.title or "") if facts else ""
        made = facts.creation_date if facts else None
        date = made.date().isoformat() if made else ""
    except PyPdfError as error:
        raise UnreadablePage(f"this PDF can not be read: {type(error).__name__}") from None
    return PageText(kind="pdf", title=title[:500], date=date, text="\n\n".join(parts))


if __name__ == "__main__":
    main()
