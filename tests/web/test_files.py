"""Files over HTTP: stored by content, given back as attachments, named by messages."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
from datetime import timedelta
from typing import Any

import pytest

from mimikit.config import FileSettings
from mimikit.conversation import attachments, inbox
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from tests.support.memory_disk import Crash, MemoryDisk
from tests.web.conftest import START, error_of

BYTES = "application/octet-stream"
LATER = START + timedelta(days=100_000)  # the disk in memory is in the year 2100
PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def put(web, data: bytes, name: str = "a.txt", **more: Any) -> Any:
    return web.ask("POST", "/api/files", data=data, query={"name": name}, type_=BYTES, **more)


def sent(web, data: bytes = b"hello", name: str = "a.txt") -> dict[str, Any]:
    answer = put(web, data, name)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()


def stored(web) -> set[str]:
    return {path for path in web.contents() if path.startswith("files/")}


@pytest.mark.parametrize(
    ("data", "name", "shown", "kind", "extension", "media_type"),
    [
        ("你好\n".encode(), "../../etc/笔记.md", "笔记.md", "text", "txt", "text/plain"),
        (b"<script>alert(1)</script>", "x.html", "x.html", "text", "txt", "text/plain"),
        (b"<svg onload=alert(1)>", "C:\\x\\a\r\nb.svg", "a b.svg", "text", "txt", "text/plain"),
        (PNG, "p.exe", "p.exe", "image", "png", "image/png"),
        (b"\xff\xd8\xff\xe0", "", "file", "image", "jpeg", "image/jpeg"),
        (b"GIF89a<script>", "\u202ex.gif", "x.gif", "image", "gif", "image/gif"),
        (b"RIFF\n\0\0\0WEBPVP8 ", "..", "file", "image", "webp", "image/webp"),
        (b"%PDF-1.7 text only", "b.pdf", "b.pdf", "other", "bin", BYTES),
        (b"a\0b", "n" * 300 + ".bin", "n" * 176 + ".bin", "other", "bin", BYTES),
        ("中文".encode("gbk"), "c.txt", "c.txt", "other", "bin", BYTES),
    ],
)
def test_a_file_is_stored_by_its_content_and_comes_back_as_an_attachment(
    web, data: bytes, name: str, shown: str, kind: str, extension: str, media_type: str
) -> None:
    id_ = f"{hashlib.sha256(data).hexdigest()[:32]}.{extension}"
    assert sent(web, data, name) == {"id": id_, "name": shown, "kind": kind, "bytes": len(data)}
    assert web.files.read(paths.user_file(id_)) == data
    answer = web.ask("GET", f"/api/files/{id_}")
    assert (answer.get_data(), answer.mimetype) == (data, media_type)
    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
    assert not set(answer.headers["Content-Disposition"]) & set("<>\r\n/\\")
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("id_", ["0" * 32 + ".txt", "token", "..%2Fsecrets%2Ftoken", "x.json"])
def test_nothing_else_is_given_back(web, id_: str) -> None:
    assert web.ask("GET", f"/api/files/{id_}").status_code in (404, 422)


def test_what_has_no_room_is_refused_in_words(make_web) -> None:
    web = make_web(files={"max_mb": 1})
    assert put(web, b"").status_code == 422
    answer = put(web, b"x" * (10 * 2**20 + 1))
    assert (answer.status_code, "at most 10240 KiB" in error_of(answer)["message"]) == (413, True)
    assert put(web, b"x" * 2**19).status_code == 200
    answer = put(web, b"y" * (2**19 + 1))
    assert error_of(answer)["field"] == "file"
    assert "`files.max_mb`" in error_of(answer)["message"]


def test_another_site_sends_no_file(web) -> None:
    assert put(web, b"hello", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert put(web, b"hello", login=False).status_code == 401
    assert web.ask("POST", "/api/input", data=b"{}", type_=BYTES).status_code == 415
    assert not stored(web)


def test_a_message_carries_its_files_and_needs_no_word_beside_them(web) -> None:
    one, two = sent(web), sent(web, PNG, "p.png")
    body = {"id": "msg-1", "files": [one["id"], two["id"], one["id"]]}
    for _ in range(2):  # repeated, it is the same message
        assert web.ask("POST", "/api/input", body).status_code == 202
    item = inbox.read(web.files, "msg-1")
    assert item is not None
    assert [ref.to_dict() for ref in item.files] == [one, two]
    assert web.get("/api/snapshot")["inbox"][0]["files"] == [one, two]
    assert web.ask("POST", "/api/input", body | {"files": [two["id"]]}).status_code == 409


@pytest.mark.parametrize(
    "files", [["0" * 32 + ".txt"], ["x"], ["../a"], "x", [1], [f"{n:032}.txt" for n in range(11)]]
)
def test_a_message_names_only_what_is_there(web, files: object) -> None:
    answer = web.ask("POST", "/api/input", {"id": "msg-1", "text": "x", "files": files})
    assert answer.status_code == 422
    assert error_of(answer)["field"].startswith("files")
    assert inbox.read(web.files, "msg-1") is None


def test_a_crash_leaves_a_whole_file_or_none() -> None:
    settings, id_ = FileSettings(), f"{hashlib.sha256(b'hello').hexdigest()[:32]}.txt"
    for step in itertools.count():
        disk = MemoryDisk()
        Files(disk).make_folders()
        disk.crash_at = len(disk.log) + step
        with contextlib.suppress(Crash):
            attachments.keep(Files(disk), b"hello", "a.txt", settings)
        for left in disk.after_power_loss():
            files = Files(left)
            is_there = attachments.find(files, id_) is not None
            assert is_there or disk.dead
            assert not is_there or files.read(paths.user_file(id_)) == b"hello"
        if not disk.dead:
            return
