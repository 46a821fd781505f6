"""Memory files are listed, read and saved over HTTP; a concurrent edit is a conflict."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mimikit.memory import notes
from mimikit.memory.notes import content_hash
from mimikit.protocol import files, paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.views.memory import MAX_EDITED_BYTES, MAX_SHOWN_BYTES
from mimikit.web.app import MAX_BODY_BYTES
from tests.web.conftest import Web, error_of
from tests.web.remembering import RAW, SUMMARY, put, write

# ---- the list -------------------------------------------------------------------------------


def test_an_empty_folder_has_an_empty_list(web: Web) -> None:
    assert web.get("/api/memory") == {
        "files": [],
        "index": {
            "files": 0,
            "passages": 0,
            "fresh": True,
            "words": "not loaded",
            "fallback": None,
        },
    }


def test_files_come_long_term_first_then_the_newest_day_then_docs(web: Web, docs: Path) -> None:
    for path in (
        *("memory.md", "memory/2026-01-28-deploy-it.md", "memory/2026-01-28.md", "memory/own.md"),
        *("memory/2026-02-01-mem-abcdefgh.md", "memory/summary/2026-01-20.md"),
        *("memory/summary/2025-12-31.md", "memory/summary/2025-12.md", "memory/2026-02-30.md"),
        *("memory/notes.txt", "backlog.md"),
    ):
        write(web, path, "x")
    found = web.get("/api/memory")["files"]
    assert [(f["path"], f["kind"], f["title"], f["day"]) for f in found] == [
        ("memory.md", "longTerm", "memory", None),
        ("memory/2026-02-01-mem-abcdefgh.md", "raw", "mem abcdefgh", "2026-02-01"),
        ("memory/2026-01-28.md", "raw", "2026-01-28", "2026-01-28"),
        ("memory/2026-01-28-deploy-it.md", "raw", "deploy it", "2026-01-28"),
        ("memory/summary/2026-01-20.md", "day", "2026-01-20", "2026-01-20"),
        ("memory/summary/2025-12-31.md", "day", "2025-12-31", "2025-12-31"),
        ("memory/summary/2025-12.md", "month", "2025-12", "2025-12-01"),
        ("memory/own.md", "raw", "own", None),
        ("memory/2026-02-30.md", "raw", "2026-02-30", None),
        ("docs/guide/deep/部署.md", "docs", "guide/deep/部署", None),
        ("docs/start.md", "docs", "start", None),
    ]
    assert [f["path"] for f in found if f["hidden"]] == ["memory/summary/2025-12-31.md"]
    assert {f["kind"] for f in found if not f["editable"]} == {"docs"}
    assert found[0]["size"] == 1
    assert found[-1]["modifiedAt"] > "2000"
    assert set(found[0]) == {
        *("path", "kind", "title", "day", "size", "modifiedAt", "editable", "hidden")
    }


# ---- reading --------------------------------------------------------------------------------


def test_a_file_is_read_as_text_and_as_html_without_ids(web: Web) -> None:
    hash_ = write(web, "memory/2026-01-28-tea.md", RAW)
    found = web.get("/api/memory/memory/2026-01-28-tea.md")
    assert (found["text"], found["hash"], found["size"]) == (RAW, hash_, len(RAW.encode()))
    assert (found["kind"], found["editable"], found["cut"]) == ("raw", True, False)
    html = found["html"]
    assert '<h2 dir="auto">09:30 user</h2>' in html
    assert '<h2 dir="auto">09:31 agent</h2>' in html, "an open code block ends with its message"
    assert '<p dir="auto">## 09:30 user &lt;!-- msg-1' not in html
    assert "<strong>done</strong> &lt;script&gt;" in html
    assert "<li>The user likes tea.</li>\n<li>And pie.</li>" in html
    assert "note-1" not in html
    assert "msg-2" not in html


def test_the_parts_of_a_summary_lose_their_marks(web: Web) -> None:
    write(web, "memory/summary/2026-01-20.md", SUMMARY)
    html = web.get("/api/memory/memory/summary/2026-01-20.md")["html"]
    assert "sum-1" not in html
    assert "msg-9" not in html
    assert "<em>first</em>" in html
    assert '<p dir="auto">The second.</p>' in html


def test_documents_are_read_and_not_saved(web: Web, docs: Path) -> None:
    found = web.get("/api/memory/docs/guide/deep/部署.md")
    assert (found["text"], found["kind"], found["editable"]) == ("Cloudflare", "docs", False)
    assert found["html"] == '<p dir="auto">Cloudflare</p>\n'
    for hash_ in (None, found["hash"]):
        refused = put(web, "docs/guide/deep/部署.md", "mine", hash_)
        assert refused.status_code == 403
        assert "only shown here" in error_of(refused)["message"]
    assert put(web, "docs/new.md", "mine").status_code == 403
    assert (docs / "guide" / "deep" / "部署.md").read_text() == "Cloudflare"
    assert not (docs / "new.md").exists()


def test_empty_files_bom_and_invalid_utf8_are_read(web: Web) -> None:
    write(web, "memory.md", b"")
    found = web.get("/api/memory/memory.md")
    assert (found["text"], found["html"], found["size"]) == ("", "", 0)
    write(web, "memory.md", b"\xef\xbb\xbf# caf\xe9\r\n")
    found = web.get("/api/memory/memory.md")
    assert found["text"] == "# caf\ufffd\r\n"
    assert found["hash"] == notes.content_hash(found["text"])
    refused = put(web, "memory.md", "new", found["hash"])
    assert refused.status_code == 403, "what could not be shown would be lost"
    assert "expected UTF-8" in error_of(refused)["message"]
    assert web.files.read("memory.md") == b"\xef\xbb\xbf# caf\xe9\r\n"


def test_a_huge_file_is_shown_in_part(web: Web) -> None:
    line = "- [a](http://b.example) `x` *y* <z>\n"
    write(web, "memory.md", line * (2 * MAX_EDITED_BYTES // len(line)))
    found = web.get("/api/memory/memory.md")
    assert (found["cut"], found["editable"]) == (False, False)
    assert len(found["html"]) < 1_500_000
    assert "longer than can be shown" in found["html"]
    write(web, "memory.md", "字\n" * MAX_SHOWN_BYTES)
    found = web.get("/api/memory/memory.md")
    assert (found["cut"], found["editable"]) == (True, False)
    assert found["size"] == 4 * MAX_SHOWN_BYTES
    assert found["text"] == "字\n" * (MAX_SHOWN_BYTES // 4)
    refused = put(web, "memory.md", "mine", found["hash"])
    assert refused.status_code == 403
    assert "too large to be edited here" in error_of(refused)["message"]


# ---- saving ---------------------------------------------------------------------------------


def test_a_file_is_created_saved_and_shown(web: Web) -> None:
    for path in ("memory.md", "memory/2026-03-01.md", "memory/2026-03-01-tea-and-pie-2.md"):
        made = put(web, path, "# Tea\n")
        assert made.status_code == 200, made.get_data()
        assert made.get_json() == web.get(f"/api/memory/{path}")
        again = put(web, path, "# 茶 🍵\r\n", made.get_json()["hash"])
        assert again.get_json() == web.get(f"/api/memory/{path}")
        assert web.files.read(path) == "# 茶 🍵\r\n".encode()


@pytest.mark.parametrize(
    "path",
    [
        *("memory/own.md", "memory/2026-02-30.md", "memory/2026-03-01-Tea.md", "memory/2026-03.md"),
        *("memory/2026-03-01-茶.md", "memory/2026-03-01-.md", "memory/summary/2026-03-01.md"),
        *("memory/summary/2026-03.md", "memory/2026-03-01-" + "x" * 41 + ".md"),
    ],
)
def test_only_long_term_and_dated_files_can_be_created(web: Web, path: str) -> None:
    refused = put(web, path, "x")
    assert refused.status_code == 422
    assert error_of(refused)["field"] == "path"
    assert web.files.read(path) is None
    hash_ = write(web, path, "x")
    assert put(web, path, "y", hash_).status_code == 200, "one that is there can be edited"


def test_an_edit_of_a_stale_text_is_refused_with_the_current_text(web: Web) -> None:
    hash_ = write(web, "memory.md", "one")
    write(web, "memory.md", "two")
    refused = put(web, "memory.md", "mine", hash_)
    assert refused.status_code == 409
    told = refused.get_json()
    assert told["error"]["field"] == "hash"
    assert "changed meanwhile" in told["error"]["message"]
    assert told["current"] == web.get("/api/memory/memory.md")
    assert told["current"]["text"] == "two"
    assert put(web, "memory.md", "mine", told["current"]["hash"]).status_code == 200


def test_a_deleted_or_existing_file_is_a_conflict(web: Web) -> None:
    gone = put(web, "memory.md", "mine", content_hash("one"))
    assert (gone.status_code, gone.get_json()["current"]) == (409, None)
    assert web.files.read("memory.md") is None
    write(web, "memory.md", "one")
    there = put(web, "memory.md", "mine")
    assert (there.status_code, there.get_json()["current"]["text"]) == (409, "one")
    assert web.files.read("memory.md") == b"one"


def test_a_repeated_save_is_idempotent(web: Web) -> None:
    hash_ = write(web, "memory.md", "one")
    first = put(web, "memory.md", "two", hash_)
    assert put(web, "memory.md", "two", hash_).get_json() == first.get_json()
    assert put(web, "memory/2026-03-01.md", "x").status_code == 200
    assert put(web, "memory/2026-03-01.md", "x").status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": "x"}, "hash"),
        ({"hash": None}, "text"),
        ({"text": "x", "hash": "abc"}, "hash"),
        ({"text": "x", "hash": "a" * 64 + "\n"}, "hash"),
        ({"text": "x", "hash": None, "more": 1}, "more"),
        ({"text": "a\x00b", "hash": None}, "text"),
    ],
)
def test_a_bad_save_is_refused_by_its_field(web: Web, body: Any, field: str) -> None:
    refused = web.ask("PUT", "/api/memory/memory.md", body)
    assert refused.status_code == 422
    assert error_of(refused)["field"] == field
    assert web.files.read("memory.md") is None


def test_a_longer_text_is_refused(web: Web) -> None:
    write(web, "memory.md", "one")
    for text in ("x" * (MAX_EDITED_BYTES + 1), "字" * (MAX_EDITED_BYTES // 2), "x" * 7 * 2**20):
        refused = put(web, "memory.md", text, content_hash("one"))
        assert refused.status_code == 413
        told, is_body = error_of(refused), len(text) > 6 * 2**20
        assert told["field"] == (None if is_body else "text")
        assert f"at most {6148 if is_body else 1024} KiB" in told["message"]
    assert web.files.read("memory.md") == b"one"
    assert web.ask("POST", "/api/input", data=b"x" * (MAX_BODY_BYTES + 1)).status_code == 413


def test_a_held_lock_is_reported(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOCK_WAIT_S", 0.0)
    lock = web.files.lock(paths.MEMORY_LOCK)
    refused = put(web, "memory.md", "x")
    assert refused.status_code == 503
    assert "try again" in error_of(refused)["message"]
    assert lock is not None
    lock.release()
    assert put(web, "memory.md", "x").status_code == 200


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """Run the jobs concurrently; returns their results."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        start.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def test_a_save_never_overwrites_a_concurrent_note(on_disk: Web) -> None:
    other = Files(RealDisk(Path(on_disk.files.fs.root)))

    def remember() -> None:
        for number in range(20):
            notes.amend(other, "memory.md", lambda text, n=number: f"{text}\n- note {n}")

    def edit() -> int:
        saved = 0
        while saved < 10:
            now = on_disk.get("/api/memory/memory.md")
            answer = put(on_disk, "memory.md", f"{now['text']}\n- edit {saved}", now["hash"])
            saved += answer.status_code == 200
        return saved

    at_once(remember, edit)
    lines = web_text(on_disk).split("\n")
    assert sorted(lines) == sorted(
        ["long", *(f"- note {n}" for n in range(20)), *(f"- edit {n}" for n in range(10))]
    )


def web_text(web: Web) -> str:
    return web.get("/api/memory/memory.md")["text"]
