"""What is read of a page: its text in the right letters, and nothing of a bomb."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import brotli
import pytest

from mimikit.internet import page_reader
from mimikit.internet.connection import CallLimits, WebError
from mimikit.internet.page_reader import PageHead, PageText, UnreadablePage, read
from mimikit.internet.pages import RawPage
from mimikit.internet.reading import PageReader
from tests.support.pdf import pdf, pdf_of

SAID = (
    "绿茶是中国的主要茶类之一，采摘之后不经过发酵，所以保持了它的绿色和清新的味道，人们都很喜欢。"
)
TRADITIONAL = (
    "綠茶是中國的主要茶類之一，採摘之後不經過發酵，所以保持了它的綠色和清新的味道，人們都很喜歡。"
)
LATIN = "Le thé vert est préparé après la récolte, et son goût est léger, à peine sucré."
MOST = 2_000_000


def head(**facts: Any) -> PageHead:
    made: dict[str, Any] = {
        "url": "http://tea.example.com/x/", "mediaType": "text/html", "charset": "",
        "encoding": "", "mostBytes": MOST, "links": True,
    }  # fmt: skip
    return cast(PageHead, made | facts)


def page(*paragraphs: str, before: str = "") -> str:
    said = "".join(f"<p>{text}</p>" for text in paragraphs)
    head = f"<head>{before}<title>Tea</title></head>"
    return f"<html>{head}<body><article>{said}</article></body></html>"


def text_of(body: bytes, **facts: Any) -> str:
    return read(head(**facts), body).get("text", "")


# ---- letters


@pytest.mark.parametrize(
    ("said", "really", "told", "before"),
    [
        (SAID, "gbk", "", ""),
        (SAID, "gb18030", "", ""),
        (SAID, "gbk", "", '<meta charset="gb2312">'),
        (SAID, "gbk", "gb2312", ""),
        (SAID, "gbk", "utf-8", ""),
        (SAID, "gbk", "iso-8859-1", ""),
        (SAID, "gbk", "iso-8859-1", '<meta charset="gbk">'),
        (SAID, "gbk", "no-such-charset", ""),
        (SAID, "gbk", "rot13", ""),
        (SAID, "gbk", "utf-8", '<meta http-equiv=Content-Type content="text/html; charset=gbk">'),
        (SAID, "utf-8", "", ""),
        (SAID, "utf-8", "gbk", ""),
        (SAID, "utf-8", "iso-8859-1", '<meta charset="gbk">'),
        (SAID, "utf-8-sig", "gbk", ""),
        (SAID, "utf-16", "", ""),
        (SAID, "utf-16", "utf-8", ""),
        (TRADITIONAL, "big5", "big5", ""),
        (TRADITIONAL, "big5", "", '<meta charset="big5">'),
        (LATIN, "iso-8859-1", "iso-8859-1", ""),
        (LATIN, "cp1252", "windows-1252", ""),
        (LATIN, "utf-8", "iso-8859-1", ""),
    ],
)
def test_letters_come_out_right_whatever_is_said_of_them(
    said: str, really: str, told: str, before: str
) -> None:
    body = page(said, said[::-1], before=before).encode(really)
    assert said in page_reader.decoded(body, told)


def test_a_chinese_page_without_a_word_of_its_charset_is_read() -> None:
    reading = read(head(), page(SAID, TRADITIONAL).encode("gbk"))
    assert SAID in reading.get("text", "")
    assert reading.get("title") == "Tea"


@pytest.mark.parametrize("body", [b"", b"\xff" * 100, bytes(range(256)), b"<", b"<html>\xff\xfe"])
def test_nothing_that_comes_is_a_fault(body: bytes) -> None:
    try:
        assert isinstance(text_of(body), str)
    except UnreadablePage as error:
        assert str(error)


# ---- what is in it


def test_of_a_page_there_are_text_title_date_and_links() -> None:
    before = '<meta property="article:published_time" content="2026-03-04T05:06:07Z">'
    links = '<a href="/green">Green <b>tea</b></a> <a href="../y#z">up</a> <a href="ftp://x">no</a>'
    links += '<a href="javascript:alert(1)">no</a> <a href="http://[oh">no</a>'
    body = page("The leaves are steamed soon after they are picked.", LATIN, links, before=before)
    reading = read(head(), body.encode())
    assert "The leaves are steamed" in reading.get("text", "")
    assert reading.get("date") == "2026-03-04"
    assert reading.get("links") == [
        *(("Green tea", "http://tea.example.com/green"), ("up", "http://tea.example.com/y"))
    ]


def test_scripts_and_styles_are_no_text() -> None:
    odd = "<script>var canary = 1</script><style>.canary{}</style><p>Short.</p>"
    text = text_of(f"<html><body>{odd}</body></html>".encode())
    assert "Short." in text
    assert "canary" not in text


@pytest.mark.parametrize(
    ("kind", "body", "wanted"),
    [
        ("text/plain", "a\n  b\n", "a\n  b\n"),
        ("application/json", '{"a": 1}', '{"a": 1}'),
        ("text/csv", "a,b\n1,2\n", "a,b\n1,2\n"),
        ("application/rss+xml", "<rss><item>x</item></rss>", "<rss><item>x</item></rss>"),
        ("", "just words", "just words"),
    ],
)
def test_a_text_is_told_as_it_is(kind: str, body: str, wanted: str) -> None:
    reading = read(head(mediaType=kind), body.encode())
    assert (reading.get("kind"), reading.get("text")) == ("text", wanted)


def test_what_is_no_text_for_all_its_type_says_is_refused() -> None:
    with pytest.raises(UnreadablePage, match="got something else"):
        text_of(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", mediaType="text/plain")


def test_a_title_without_end_is_cut() -> None:
    reading = read(head(), f"<html><title>{'x' * 9000}</title><p>tea</p></html>".encode())
    assert len(reading.get("title", "")) == 500


def test_nested_without_end_it_is_read_as_far_as_it_goes() -> None:
    assert "deep" in text_of(b"<div>" * 100_000 + b"deep")


# ---- PDF


def test_of_a_pdf_there_are_text_title_and_date() -> None:
    reading = read(head(mediaType="application/pdf"), pdf("Tea is green", "Of tea"))
    assert reading == PageText(
        kind="pdf", title="Of tea", date="2026-01-02", text="[page 1]\nTea is green"
    )
    assert text_of(pdf("hi"), mediaType="application/octet-stream") == "[page 1]\nhi"


@pytest.mark.parametrize("body", [b"%PDF-1.4\nnonsense", b"%PDF-", pdf("x")[:200]])
def test_a_broken_pdf_is_told_in_words(body: bytes) -> None:
    with pytest.raises(UnreadablePage, match="can not be read"):
        text_of(body, mediaType="application/pdf")


def test_a_pdf_that_unpacks_without_end_is_refused() -> None:
    with pytest.raises(UnreadablePage, match="can not be read"):
        text_of(pdf_of(b" " * 80_000_000), mediaType="application/pdf")


# ---- bombs


ZEROS = 8_000_000
BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", lambda: gzip.compress(bytes(ZEROS), 1)),
    "gzip in gzip": ("gzip, gzip", lambda: gzip.compress(gzip.compress(bytes(ZEROS), 1))),
    "deflate": ("deflate", lambda: zlib.compress(bytes(ZEROS), 1)),
    "br": ("br", lambda: brotli.compress(bytes(ZEROS), quality=1)),
    "members": ("gzip", lambda: gzip.compress(bytes(1_500_000)) * 4),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_given_up_before_it_is_large(name: str) -> None:
    encoding, made = BOMBS[name]
    with pytest.raises(UnreadablePage, match="at most 2 MB once unpacked"):
        page_reader.unpacked(made(), encoding, MOST)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(b"tea", mtime=0)),
        ("x-gzip", gzip.compress(b"t", mtime=0) + gzip.compress(b"ea", mtime=0)),
        ("deflate", zlib.compress(b"tea")),
        ("deflate", zlib.compress(b"tea")[2:-4]),
        ("br", brotli.compress(b"tea")),
        ("identity", b"tea"),
        ("", b"tea"),
        ("gzip, br", brotli.compress(gzip.compress(b"tea", mtime=0))),
    ],
)
def test_what_is_packed_as_it_was_asked_for_is_unpacked(encoding: str, body: bytes) -> None:
    assert page_reader.unpacked(body, encoding, MOST) == b"tea"


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("gzip", "broken"), ("br", "broken"), ("deflate", "broken"), ("zstd", "got 'zstd'"),
     ("gzip,gzip,gzip", "at most 2")],
)  # fmt: skip
def test_what_is_packed_otherwise_is_refused(encoding: str, said: str) -> None:
    with pytest.raises(UnreadablePage, match=said):
        page_reader.unpacked(b"\x01\x02\x03tea is not packed", encoding, MOST)


# ---- in its own process


def process(body: bytes, **facts: Any) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-I", "-m", "mimikit.internet.page_reader"],
        input=json.dumps(head(**facts)).encode() + b"\n" + body,
        capture_output=True,
        check=True,
    )
    return json.loads(ran.stdout)


def test_the_process_tells_one_object_and_has_limits() -> None:
    assert process("好".encode(), mediaType="text/plain") == {"kind": "text", "text": "好"}
    line = "import resource as r; from mimikit.internet import page_reader as p; p._limit(); "
    line += "print([r.getrlimit(x)[0] for x in (r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_FSIZE)]); "
    line += "x = bytearray(2 * 2**30)"
    ran = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert ran.stdout == f"[{1536 * 2**20}, 20, 0]\n"
    assert "MemoryError" in ran.stderr


def test_the_consumer_has_it_read_and_hears_why_not(tmp_path: Path) -> None:
    (state := tmp_path / ".mimikit").mkdir()
    reader = PageReader(state, most_bytes=MOST)
    limits = CallLimits(time.monotonic() + 60, 0)
    raw = RawPage("http://tea.example.com/", "text/plain", "gbk", "gzip", gzip.compress(b"tea"))
    assert reader.read(raw, limits, "run-1").text == "tea"
    encoding, made = BOMBS["gzip"]
    with pytest.raises(WebError, match="once unpacked"):
        reader.read(RawPage(raw.url, "text/plain", "", encoding, made()), limits, "run-1")
    with pytest.raises(WebError, match="in time"):
        reader.read(raw, CallLimits(time.monotonic() + 0.05, 0), "run-1")
