"""Files over HTTP: taken as bytes, given back as an attachment that can do nothing."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from mimikit.conversation import attachments, inbox
from mimikit.conversation.history import HistoryStore
from mimikit.protocol import paths
from mimikit.protocol.models import FileRef, Message
from mimikit.web.front import MAX_BODY_BYTES, MAX_FILE_BYTES, request_size
from mimikit.web.guard import RequestDenied
from tests.support.pictures import png
from tests.web.conftest import START, error_of

BYTES = "application/octet-stream"


def put(web, data: bytes, name: str = "a.txt", **more: Any) -> Any:
    given = {"type_": BYTES, "query": {"name": name}} | more
    return web.ask("POST", "/api/files", data=data, **given)


def kept(web, data: bytes = b"hello", name: str = "a.txt") -> dict[str, Any]:
    answer = put(web, data, name)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()


def test_a_file_is_on_disk_before_the_answer(web) -> None:
    told = kept(web, png(), "x/photo.png")
    assert told == {
        "id": hashlib.sha256(png()).hexdigest(),
        "name": "photo.png",
        "mediaType": "image/png",
        "size": len(png()),
        "width": 3,
        "height": 2,
        "kept": True,
    }
    assert web.files.read(paths.file_bytes(told["id"])) == png()


HOSTILE = [
    (b"<script>alert(1)</script>", "x.html", "text/plain; charset=utf-8"),
    (b"<svg onload=alert(1)>", "x.svg", "text/plain; charset=utf-8"),
    (b"GIF89a\x01\x00\x01\x00<script>alert(1)</script>", "x.html", "image/gif"),
    (b"%PDF-1.4\n<script>", '"><script>alert(1)</script>.pdf', "application/pdf"),
    (b"MZ\x00\x01", "a\r\nSet-Cookie: x=1.exe", BYTES),
    (b"PK\x03\x04" + b"\x00" * 50, "bomb.zip", BYTES),
]


@pytest.mark.parametrize(("data", "name", "kind"), HOSTILE)
def test_whatever_is_in_it_it_comes_back_as_an_attachment_in_a_sandbox(
    web, data: bytes, name: str, kind: str
) -> None:
    answer = web.ask("GET", f"/api/files/{kept(web, data, name)['id']}")
    assert answer.status_code == 200
    assert answer.get_data() == data
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
    assert not set(answer.headers["Content-Disposition"]) & set("<>\r\n/\\")
    assert answer.headers["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("id_", ["0" * 64, "../secrets/token", "secrets", "A" * 64, "x.json"])
def test_nothing_else_can_be_had_there(web, id_: str) -> None:
    assert web.ask("GET", f"/api/files/{id_}").status_code in (404, 422)


def test_what_is_too_large_is_refused_by_name(make_web) -> None:
    web = make_web(files={"file_mb": 1})
    answer = put(web, b"x" * (2**20 + 1))
    assert answer.status_code == 413
    assert error_of(answer)["message"] == "the file is too large; at most 1 MB are taken"
    assert put(web, b"x" * 2**20).status_code == 200


def test_a_full_folder_is_told_as_no_room(make_web) -> None:
    web = make_web(files={"folder_mb": 1})
    kept(web, b"x" * (2**20 - 2000))
    answer = put(web, b"y" * 2000)
    assert answer.status_code == 507
    assert "`files.folder_mb` sets how much is kept" in error_of(answer)["message"]


def test_an_empty_file_is_refused(web) -> None:
    assert put(web, b"").status_code in (411, 422)


@pytest.mark.parametrize("type_", ["application/json", "multipart/form-data; boundary=x", None])
def test_a_file_comes_as_bytes_only(web, type_: str | None) -> None:
    answer = put(web, b"hello", type_=type_)
    assert answer.status_code == 415
    assert BYTES in error_of(answer)["message"]


def test_another_site_sends_no_file(web) -> None:
    headers = {"Cookie": web.log_in(), "Sec-Fetch-Site": "cross-site"}
    assert put(web, b"hello", headers=headers).status_code == 403
    assert put(web, b"hello", login=False).status_code == 401
    assert not [path for path in web.contents() if path.startswith("files/")]


def test_the_way_in_takes_more_for_a_file_than_for_anything_else() -> None:
    def head(path: str, length: int) -> bytes:
        return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()

    for path in ("/api/files", "/api/files?name=a"):
        assert request_size(head(path, MAX_FILE_BYTES)) is not None
        with pytest.raises(RequestDenied, match="at most 10 MB"):
            request_size(head(path, MAX_FILE_BYTES + 1))
    for path in ("/api/filesystem", "/api/input", "/api/input?x=/api/files"):
        with pytest.raises(RequestDenied):
            request_size(head(path, MAX_BODY_BYTES + 1))


# ---- messages


def test_a_message_carries_its_files_to_the_inbox_and_the_page(web) -> None:
    one, two = kept(web), kept(web, png(), "p.png")
    body = {"id": "msg-1", "text": "look", "files": [one["id"], two["id"]]}
    assert web.ask("POST", "/api/input", body).status_code == 202
    item = inbox.read(web.files, "msg-1")
    assert item is not None
    assert [file.name for file in item.files] == ["a.txt", "p.png"]
    assert web.get("/api/snapshot")["inbox"][0]["files"] == [one, two]


def test_beside_a_file_no_word_is_needed(web) -> None:
    body = {"id": "msg-1", "files": [kept(web)["id"]]}
    assert web.ask("POST", "/api/input", body).status_code == 202
    assert web.ask("POST", "/api/input", {"id": "msg-2", "text": " "}).status_code == 422


@pytest.mark.parametrize(
    ("files", "status"),
    [(["0" * 64], 404), (["x"], 422), (["a" * 64] * 11, 422), ("x", 422), ([1], 422)],
)
def test_a_message_never_names_what_is_not_there(web, files: object, status: int) -> None:
    answer = web.ask("POST", "/api/input", {"id": "msg-1", "text": "x", "files": files})
    assert answer.status_code == status
    assert error_of(answer)["field"].startswith("files")
    assert inbox.read(web.files, "msg-1") is None


def test_the_same_message_twice_is_one_and_with_other_files_another(web) -> None:
    one, two = kept(web)["id"], kept(web, b"2")["id"]
    body = {"id": "msg-1", "text": "x", "files": [one]}
    assert web.ask("POST", "/api/input", body).status_code == 202
    assert web.ask("POST", "/api/input", body).status_code == 202
    assert web.ask("POST", "/api/input", body | {"files": [two]}).status_code == 409


def test_a_message_that_was_said_shows_its_files(web) -> None:
    ref = FileRef(id="a" * 64, name="\u202ex.txt", media_type="text/plain", size=3)
    said = Message(id="msg-0", role="user", text="x", created_at=START, files=[ref])
    HistoryStore(web.files).add([said])
    (shown,) = web.get("/api/messages")["messages"]
    assert shown["files"] == [
        {"id": "a" * 64, "name": "x.txt", "mediaType": "text/plain", "size": 3,
         "width": None, "height": None, "kept": False}
    ]  # fmt: skip


def test_a_message_that_is_answered_again_uses_its_files_anew(web) -> None:
    stays, went = kept(web), kept(web, b"gone", "b.txt")
    refs = [FileRef.model_validate(told) for told in (stays, went)]
    said = Message(id="msg-0", role="user", text="look", created_at=START, files=refs)
    HistoryStore(web.files).add([said])
    web.files.remove(paths.file_record(went["id"]))
    web.clock.advance(86400)
    assert web.ask("POST", "/api/messages/msg-0/retry", {"id": "msg-1"}).status_code == 202
    found = attachments.find(web.files, stays["id"])
    assert found is not None
    assert found.created_at == web.clock.now()
    item = inbox.read(web.files, "msg-1")
    assert item is not None
    assert item.files == refs
