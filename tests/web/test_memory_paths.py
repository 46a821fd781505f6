"""Only memory files and plain documents can be read over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mimikit.memory.notes import content_hash
from mimikit.protocol.disk import RealDisk
from tests.web.conftest import SECRET, MakeWeb, Web
from tests.web.remembering import put

NONE_OF_THESE = [
    *("", ".", "..", "/", "memory", "memory/", "docs", "docs/", "memory.md/", "/memory.md"),
    *("secrets/token", "config.toml", "history.json", "backlog.md", "cache/x.md", "side/x.txt"),
    *("prompts/teller.md", "turns/done/x.md", "MEMORY.MD", "memory.MD", "memory/x.txt", "memory/x"),
    *("memory/../secrets/token", "memory/..", "memory/../memory.md", "./memory.md", "memory//x.md"),
    *("docs/../memory.md", "docs/../README.md", "docs/../.mimikit/secrets/token", "docs/x/../y.md"),
    *("memory/.hidden.md", "memory/.md", "memory/summary/.hidden.md", "docs/.git/x.md", "docs/.md"),
    *("memory/2026-01-28-tea.md\x00", "memory\x00.md", "memory/\x00.md", "docs/a\x00.md"),
    *("memory/2026-01-28-tea.md\n", "memory/a\nb.md", "memory/a\rb.md", "docs/\u2028.md"),
    *("memory/2026/01/28.md", "memory/summary/x/y.md", "memory/summary", "../README.md"),
    *("memory\\2026-01-28-tea.md", "..\\memory.md", "//etc/passwd", "/etc/passwd", "~/x.md"),
    *("memory/" + "x" * 300 + ".md", "memory/" + "字" * 100 + ".md", "docs/" + "x/" * 60 + "y.md"),
    *(
        "docs/" + "y" * 5000 + ".md",
        "outside/x.md",
        "README.md",
        "file:///etc/passwd",
        "%2e%2e/x.md",
    ),
]


@pytest.mark.parametrize("safe", ["/", ""])
def test_only_memory_files_are_read_or_written(on_disk: Web, docs, safe: str) -> None:
    for path in NONE_OF_THESE:
        address = f"/api/memory/{quote(path, safe=safe)}"
        assert on_disk.ask("GET", address).status_code in (404, 405), path
        for hash_ in (None, content_hash(SECRET)):
            sent = on_disk.ask("PUT", address, {"text": "mine", "hash": hash_})
            assert sent.status_code in (403, 404, 405), path
    everything = on_disk.workspace.rglob("*")
    assert all(b"mine" not in p.read_bytes() for p in everything if p.is_file())


def link_file(docs: Path, outside: Path) -> str:
    (docs / "a.md").symlink_to(outside / "x.md")
    return "a.md"


def link_file_within(docs: Path, outside: Path) -> str:
    (docs / "a.md").symlink_to(docs / "start.md")
    return "a.md"


def link_folder(docs: Path, outside: Path) -> str:
    (docs / "a").symlink_to(outside)
    return "a/x.md"


def link_docs(docs: Path, outside: Path) -> str:
    docs.rename(docs.with_name("old"))
    docs.symlink_to(outside)
    return "x.md"


def fifo(docs: Path, outside: Path) -> str:
    os.mkfifo(docs / "a.md")
    return "a.md"


def folder(docs: Path, outside: Path) -> str:
    (docs / "a.md").mkdir()
    return "a.md"


def loop(docs: Path, outside: Path) -> str:
    (docs / "a.md").symlink_to(docs / "a.md")
    return "a.md"


def file_as_folder(docs: Path, outside: Path) -> str:
    return "start.md/x.md"


@pytest.mark.parametrize(
    "make",
    [link_file, link_file_within, link_folder, link_docs, fifo, folder, loop, file_as_folder],
)
def test_links_and_special_files_are_no_documents(
    on_disk: Web, docs: Path, make: Callable[[Path, Path], str]
) -> None:
    name = make(docs, on_disk.workspace / "outside")
    assert on_disk.ask("GET", f"/api/memory/docs/{name}").status_code == 404
    listed = [file["path"] for file in on_disk.get("/api/memory")["files"]]
    assert f"docs/{name}" not in listed


@pytest.mark.parametrize("name", ["memory.md", "memory/2026-01-29.md", "memory/summary/2026-02.md"])
def test_links_are_no_memory_files_and_are_not_followed(on_disk: Web, name: str) -> None:
    state = Path(on_disk.files.fs.root)
    target = on_disk.workspace / "README.md"
    (state / name).unlink(missing_ok=True)
    (state / name).symlink_to(target)
    assert on_disk.ask("GET", f"/api/memory/{name}").status_code == 404
    for hash_ in (None, content_hash(SECRET)):
        assert put(on_disk, name, "mine", hash_).status_code in (422, 503)
    assert target.read_text() == SECRET
    assert name not in [file["path"] for file in on_disk.get("/api/memory")["files"]]


def test_a_state_folder_among_the_documents_stays_closed(make_web: MakeWeb, tmp_path: Path) -> None:
    state = tmp_path / "docs" / "state"
    state.mkdir(parents=True)
    disk: Any = RealDisk(state)
    web = make_web(disk=disk)
    web.files.write("prompts/teller.md", SECRET.encode())
    (tmp_path / "docs" / "a.md").write_text("x")
    assert [file["path"] for file in web.get("/api/memory")["files"]] == ["docs/a.md"]
    assert web.ask("GET", "/api/memory/docs/state/prompts/teller.md").status_code == 404
