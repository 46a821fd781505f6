"""The search on a real folder: equal hits with any index, after edits and damage."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from mimikit.memory import indexer, markdown, notes
from mimikit.memory.terms import ChineseDictionary
from mimikit.protocol import disk
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Hit, RememberedNote
from mimikit.state import make_search
from tests.memory.questions import (
    INDEXES,
    ZONE,
    World,
    ask_all,
    at,
    day_summary,
    empty_world,
    full_world,
    keys,
    lines,
    said,
    wait_for,
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return full_world(tmp_path)


@pytest.fixture
def bare(tmp_path: Path) -> World:
    return empty_world(tmp_path)


def sources(found: list[Hit]) -> list[str]:
    """The files of the hits, each once."""
    return list(dict.fromkeys(hit.source for hit in found))


# ---- the same hits each time


def test_hits_are_the_same_in_memory_in_the_index_and_after_a_restart(world: World) -> None:
    held = {query: keys(hits) for query, hits in ask_all(world.search(index=None)).items()}
    search = world.search()
    status = search.refresh()
    assert (status.fresh, status.stale_files, status.fallback) == (True, 0, None)
    assert status.files == 13
    indexed = {query: keys(hits) for query, hits in ask_all(search).items()}
    again = world.search()
    assert {query: keys(hits) for query, hits in ask_all(again).items()} == indexed
    assert again.status().fresh
    assert {query: set(hits) for query, hits in held.items()} == {
        query: set(hits) for query, hits in indexed.items()
    }


def test_search_works_without_optional_packages(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shared = tmp_path / "tmp"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))  # jieba would keep its dictionary there
    compiled = world.search(words=ChineseDictionary())
    compiled.refresh()
    for name in ("tantivy", "rjieba", "mimikit.memory.tantivy_index"):
        monkeypatch.setitem(sys.modules, name, None)
    search = make_search(world.state)
    status = search.refresh()
    assert (status.files, status.fresh, status.words, status.fallback) == (13, True, "ready", None)
    ours, theirs = ask_all(search), ask_all(compiled)
    assert {query: {*keys(hits)} for query, hits in ours.items()} == {
        query: {*keys(hits)} for query, hits in theirs.items()
    }
    assert list(shared.iterdir()) == []
    world.put("memory/2026-01-31.md", "A walrus.\n")
    assert search.find("walrus")[0].text == "A walrus."
    again = make_search(world.state)  # by itself it keeps nothing on disk
    assert again.find("walrus")[0].text == "A walrus."
    ask_all(again)


def test_recall_excludes_transcripts_and_results(world: World) -> None:
    search = world.search()
    assert sources(search.find("whales sing", everywhere=False)) == []
    assert sources(search.recall("whales sing")) == []
    assert search.find("whales sing")[0].kind == "transcript"
    assert search.find("throughput", everywhere=True)[0].task_id == "task-1"
    assert search.find("throughput", everywhere=False) == []


def test_a_hit_has_its_location(world: World) -> None:
    search = world.search()
    hit = search.find("glaciers")[0]
    assert (hit.source, hit.role, hit.message_id) == (
        "memory/2026-01-28-deploy.md",
        "user",
        "msg-3",
    )
    assert hit.day == date(2026, 1, 28)
    text = (world.path / hit.source).read_text().split("\n")
    assert "msg-3" in text[hit.line - 1]
    note = search.find("Kestrel")[0]
    assert (note.line, note.role, note.day) == (2, None, None)
    line = search.find("鯨魚")[0]
    assert (line.source, line.line, line.kind) == ("history/2026-01-20.jsonl", 1, "transcript")


# ---- one hit for one thing


def test_a_message_in_memory_and_in_the_transcript_is_one_hit(world: World) -> None:
    for search in (world.search(), world.search(index=None)):
        search.refresh()
        found = search.find("glaciers documentaries")
        assert sources(found) == ["memory/2026-01-28-deploy.md"]
        assert len({hit.message_id for hit in found}) == len(found)


def test_a_month_summary_hides_its_days(world: World) -> None:
    search = world.search()
    search.refresh()
    assert sources(search.find("otter printer")) == ["memory/summary/2025-12.md"]
    os.unlink(world.path / "memory/summary/2025-12.md")
    assert sources(search.find("otter printer")) == ["memory/summary/2025-12-03.md"]
    world.put("memory/summary/2025-12.md", day_summary("2025-12", "The printer was replaced."))
    assert sources(search.find("otter printer")) == ["memory/summary/2025-12.md"]


@pytest.mark.parametrize("index", INDEXES)
def test_the_words_of_a_day_stand_for_its_summary(bare: World, index: str | None) -> None:
    day = "2026-01-10"
    raw = markdown.extended(
        "", date(2026, 1, 10), [said(1, "The budget meeting went on and on", "user", day)], ZONE
    )
    bare.put(f"memory/summary/{day}.md", day_summary(day, "budget budget meeting"))
    search = bare.search(index=index)
    assert sources(search.find("budget meeting")) == [f"memory/summary/{day}.md"]
    bare.put(f"memory/{day}.md", raw)
    assert sources(search.find("budget meeting")) == [f"memory/{day}.md"]
    search.refresh()
    assert sources(search.find("budget meeting")) == [f"memory/{day}.md"]
    # The words of that day that have nothing to do with the question do not hide it.
    other = [said(1, "Lunch was noodles", "user", day)]
    bare.put(f"memory/{day}.md", markdown.extended("", date(2026, 1, 10), other, ZONE))
    assert sources(search.find("budget meeting")) == [f"memory/summary/{day}.md"]


@pytest.mark.parametrize("index", INDEXES)
def test_a_time_window_limits_the_hits(world: World, index: str | None) -> None:
    search = world.search(index=index)
    search.refresh()
    first, second = at("2026-01-28", minute=1), at("2026-01-28", minute=2)
    query = "Cloudflare timeout E1027 seconds pnpm firewall budget 预算"

    def found(after: datetime | None, before: datetime | None) -> set[str | None]:
        return {
            hit.message_id or hit.source for hit in search.find(query, after=after, before=before)
        }

    assert {"msg-1", "msg-2", "memory.md", "docs/setup.md"} <= found(None, None)
    assert found(first, second) == {"msg-1"}
    assert found(second, second + timedelta(milliseconds=1)) == {"msg-2"}
    assert found(first + timedelta(milliseconds=1), second) == set()
    assert found(second, None) == {"msg-2"}  # what stands beside a message finds it not
    assert found(None, at("2026-01-11", hour=0)) == {"memory/summary/2026-01-10.md"}


def test_of_two_alike_the_later_comes_first(bare: World) -> None:
    for day in ("2025-03-01", "2026-01-30", "2025-10-01"):
        bare.put(f"memory/{day}.md", "We talked about the orchard.\n")
    for index in INDEXES:
        search = bare.search(index=index)
        search.refresh()
        found = [f"{hit.day}" for hit in search.find("orchard")]
        # The date counts as a term of a passage and makes none of these longer than the others.
        assert found[0] == "2026-01-30"


def test_earlier_messages_are_searched_when_the_question_has_no_terms(world: World) -> None:
    search = world.search()
    found = search.recall("and then?", ["Tell me about glaciers"])
    assert found[0].message_id == "msg-3"
    assert search.recall("Kestrel", ["Tell me about glaciers"])[0].source == "memory.md"


# ---- edits are seen by the next search


EDITS: dict[str, Callable[[World], None]] = {
    "in place": lambda w: _in_place(w, "memory/2026-01-29.md"),
    "by rename": lambda w: w.put("memory/2026-01-29.md", "A walrus.\n"),
    "a line of the transcript": lambda w: _appended(w, "history/2026-01-28.jsonl"),
    "docs in place": lambda w: _in_place(w, "docs/setup.md"),
    "a new folder of docs": lambda w: w.put("docs/a/b/c.md", "A walrus.\n"),
}


def _in_place(world: World, path: str) -> None:
    base = world.state.workspace if path.startswith("docs/") else world.path
    folder = (base / path).parent
    before = folder.stat().st_mtime_ns
    (base / path).write_text("A walrus.\n")
    assert folder.stat().st_mtime_ns == before


def _appended(world: World, path: str) -> None:
    with (world.path / path).open("a") as file:
        file.write(lines([said(90, "A walrus.", "user", "2026-01-28", 50)]))


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("index", INDEXES)
def test_an_edit_is_seen_by_the_next_search(
    world: World, index: str | None, edit: Callable[[World], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimikit.memory.documents._SLOW_S", 60.0)
    search = world.search(index=index)
    search.refresh()
    assert search.find("walrus") == []
    edit(world)
    first = search.find("walrus")
    assert "A walrus." in first[0].text
    search.refresh()
    assert keys(search.find("walrus")) == keys(first)


def _gone_link(path: Path) -> None:
    target = path.with_name("kept")
    shutil.copy(path, target)
    os.unlink(path)
    os.symlink(target, path)


def _gone_folder(path: Path) -> None:
    os.unlink(path)
    os.mkdir(path)


REMOVALS: dict[str, Callable[[Path], object]] = {
    "removed": os.unlink,
    "a link": _gone_link,
    "a folder": _gone_folder,
    "no text": lambda path: path.write_bytes(bytes(range(256)) * 20),
}


@pytest.mark.parametrize("removal", REMOVALS.values(), ids=REMOVALS.keys())
@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize(
    ("path", "query"),
    [("memory/2026-01-29.md", "HttpRequestParser"), ("docs/guide/api.md", "getUserName")],
)
def test_removed_text_is_not_found(
    world: World,
    index: str | None,
    removal: Callable[[Path], object],
    path: str,
    query: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mimikit.memory.documents._SLOW_S", 60.0)
    search = world.search(index=index)
    search.refresh()
    assert sources(search.find(query)) == [path]
    removal((world.state.workspace if path.startswith("docs/") else world.path) / path)
    assert search.find(query) == []
    assert search.find("firewall")
    search.refresh()
    assert search.find(query) == []
    assert search.status().fresh


@pytest.mark.parametrize("folder", ["memory/summary", "memory", "history", "worker/results"])
def test_a_folder_removed_by_hand_is_no_trouble(world: World, folder: str) -> None:
    search = world.search()
    search.refresh()
    shutil.rmtree(world.path / folder)
    assert search.find("firewall")
    assert search.recall("firewall")
    assert search.status().stale_files
    os.makedirs(world.path / folder, exist_ok=True)
    assert search.find("firewall")
    if folder.startswith("memory"):
        world.put(f"{folder}/2026-01-31.md", "A walrus.\n")
        assert sources(search.find("walrus")) == [f"{folder}/2026-01-31.md"]


# ---- many files


@pytest.mark.parametrize("stays", [False, True])
def test_edits_among_many_files_are_seen(bare: World, stays: bool) -> None:
    for number in range(330):
        bare.put(f"memory/2026-01-{number % 28 + 1:02d}-n{number}.md", f"Note {number}.\n")
    search = make_search(bare.state, words=False, stays=stays)
    assert search.refresh().files == 330
    assert search.find("note")
    assert search.find("note")
    path = bare.path / "memory/2026-01-06-n5.md"

    def seen(query: str, count: int) -> None:
        if stays:  # the system tells of it in its own time, which is short
            wait_for(lambda: len(search.find(query)) == count)
        assert len(search.find(query)) == count

    path.write_text("A walrus.\n")
    seen("walrus", 1)
    bare.put("memory/2026-01-06-n5.md", "A badger.\n")
    seen("badger", 1)
    seen("walrus", 0)
    bare.put("memory/2026-01-31.md", "Another badger.\n")
    seen("badger", 2)
    os.unlink(path)
    seen("badger", 1)
    _gone_folder(bare.path / "memory/2026-01-31.md")
    seen("badger", 0)
    shutil.rmtree(bare.path / "memory")
    seen("note", 0)
    os.makedirs(bare.path / "memory/summary", exist_ok=True)
    bare.put("memory/2026-01-31.md", "One more badger.\n")
    seen("badger", 1)


class Counting(Files):
    """Files that count reads per thread."""

    def __init__(self, fs: disk.FileSystem) -> None:
        super().__init__(fs)
        self.reads: dict[str, int] = {}
        self.slow: threading.Event | None = None

    def read(self, path: str, *, max_bytes: int | None = None) -> bytes | None:
        name = threading.current_thread().name
        self.reads[name] = self.reads.get(name, 0) + path.startswith("memory/")
        if name == "index" and self.slow is not None:
            self.slow.wait(60)
        return super().read(path, max_bytes=max_bytes)


# ---- what is never searched


def test_names_that_are_no_text_and_hidden_ones_are_left_out(world: World) -> None:
    search = world.search()
    for folder in (world.path / "memory", world.state.workspace / "docs"):
        for name in (b"2026-01-30-\xff.md", b".hidden.md"):
            with open(os.fsencode(folder) + b"/" + name, "wb") as file:
                file.write(b"A walrus.\n")
    os.makedirs(world.state.workspace / "docs/.git")
    (world.state.workspace / "docs/.git/x.md").write_text("A walrus.\n")
    assert search.find("walrus") == []
    assert search.refresh().fallback is None
    assert search.find("walrus") == []


def test_docs_that_are_a_link_or_lead_out_by_one_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("A walrus.\n")
    world = empty_world(tmp_path / "w")
    (tmp_path / "w/docs").symlink_to(outside)
    assert world.search().find("walrus") == []
    other = empty_world(tmp_path / "v")
    (tmp_path / "v/docs").mkdir()
    (tmp_path / "v/docs/folder").symlink_to(outside)
    (tmp_path / "v/docs/file.md").symlink_to(outside / "x.md")
    assert other.search().find("walrus") == []


@pytest.mark.parametrize("place", ["docs/state", "docs", "docs/a/.mimikit"])
def test_a_state_folder_among_the_docs_is_no_doc(tmp_path: Path, place: str) -> None:
    world = empty_world(tmp_path, state=place)
    world.put("memory.md", "- A walrus. <!-- n -->\n")
    (world.path / "prompts/x.md").write_text("A badger.\n")
    search = world.search()
    assert sources(search.find("walrus")) == ["memory.md"]
    assert search.find("badger") == []


# ---- trouble with the index


def _rm_tree(folder: Path) -> None:
    """Remove a folder atomically, as an open index creates lock files in it."""
    gone = folder.with_name(f"{folder.name} gone")
    os.rename(folder, gone)  # noqa: TID251
    shutil.rmtree(gone)


def _rm_index(path: Path) -> None:
    _rm_tree(path / "cache/search")


def _table_files(path: Path) -> list[Path]:
    return [file for file in (path / "cache/search").glob("*/*") if file.is_file()]


def _garbage_files(path: Path) -> None:
    for file in _table_files(path):
        file.write_bytes(b"\xff" * 5000)


def _cache_is_a_file(path: Path) -> None:
    _rm_tree(path / "cache")
    (path / "cache").write_bytes(b"")


def _other_version(path: Path) -> None:
    manifest = path / "cache/search/manifest.json"
    known = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**known, "format": known["format"] + 1}))


BREAKS = [_rm_index, _garbage_files, _cache_is_a_file, _other_version]


@pytest.mark.parametrize("damage", BREAKS)
def test_a_damaged_index_loses_no_hit_after_a_restart(
    world: World, damage: Callable[[Path], None]
) -> None:
    world.search().refresh()
    damage(world.path)
    again = Files(RealDisk(world.path))
    search = world.search(files=again)
    ask_all(search)
    assert search.recall("glaciers")
    status = search.refresh()
    ask_all(search)
    if damage is not _cache_is_a_file:
        assert (status.fresh, status.fallback) == (True, None)
    else:
        assert status.fallback


def test_an_index_is_shared_between_processes(world: World) -> None:
    first, second = world.search(), world.search(files=Files(RealDisk(world.path)))
    first.refresh()
    assert second.status().fresh
    world.put("memory/2026-01-31.md", "A walrus.\n")
    assert second.find("walrus")
    assert second.status().stale_files == 1
    first.refresh()
    assert second.status().fresh
    assert second.find("walrus")
    assert second.status().refreshed_at is None


class FullDisk(RealDisk):
    """A disk that refuses writes below the cache while `full`."""

    full = False

    def write_new(self, path: str, data: bytes, *, sync: bool) -> None:
        if self.full and path.startswith("cache"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().write_new(path, data, sync=sync)


def test_a_full_disk_loses_no_hit_and_no_index(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FullDisk(world.path)
    search = world.search(files=Files(disk))
    search.refresh()
    disk.full = True
    world.put("memory/2026-01-31.md", "A walrus.\n")
    status = search.refresh()
    assert "disk is full" in (status.fallback or "")
    assert status.files == 13  # what was indexed still serves
    ask_all(search)
    assert search.find("walrus")
    disk.full = False
    status = search.refresh()
    assert (status.fresh, status.fallback, status.files) == (True, None, 14)
    ask_all(search)


# ---- threads


@pytest.mark.slow
@pytest.mark.parametrize("stays", [False, True])
def test_threads_find_what_is_there_while_it_changes(
    world: World, stays: bool, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(indexer, "MAX_IN_MEMORY", 5)
    search = make_search(world.state, words=False, stays=stays)
    wrong: list[object] = []
    over = threading.Event()
    others = ["glaciers", "Kestrel", "HttpRequestParser", "备份数据", "whales"]

    def look() -> None:
        try:
            while not over.is_set():
                for query in others:
                    if not search.find(query):
                        wrong.append(query)
                hits = search.find("tally", everywhere=False)
                if [hit.source for hit in hits] != ["memory/2026-01-31.md"]:
                    wrong.append([(hit.source, hit.text) for hit in hits])
                search.recall("glaciers")  # in its short time it may find nothing: never an error
        except BaseException as error:
            wrong.append(error)
            raise

    world.put("memory/2026-01-31.md", "The tally is 0.\n")
    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, 60 * size):
            world.put("memory/2026-01-31.md", f"The tally is {number}.\n")
            world.put(f"memory/2026-01-{number % 27 + 1:02d}-n.md", f"Noise {number}. " * 20)
            found = search.find("tally", everywhere=False)
            assert [hit.text for hit in found] == [f"The tally is {number}."]
            if number % 20 == 0:
                search.refresh(rebuild=number % 40 == 0)
            assert not wrong
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.parametrize("ended", [12, 13])
def test_the_consumer_indexes_large_changes_ahead(bare: World, ended: int) -> None:
    """The consumer does it each minute, so that the page has little to index."""
    keeper = bare.search()
    keeper.index_ahead()
    for number in range(ended):
        bare.put(f"memory/2026-01-05-n{number}.md", f"Note zebra{number} striped.\n")
    keeper.index_ahead()
    is_much = ended > indexer.SMALL_FILES
    wait_for(lambda: keeper.status().fresh == is_much)
    files = Counting(bare.files.fs)
    page = bare.search(files=files)
    assert page.find("zebra7")[0].source == "memory/2026-01-05-n7.md"
    assert sum(files.reads.values()) == (0 if is_much else ended), "little is left to who searches"


def test_notes_are_dated_and_the_newest_comes_first(tmp_path: Path) -> None:
    world = empty_world(tmp_path)
    for number, day in ((3, "2026-01-20"), (5, "2026-01-28")):
        text = f"the office is on floor {number}"
        note = RememberedNote(id=f"mem-{number}", content=text, long_term=True)
        notes.remember(world.files, note, at(day))
    (hit,) = world.search().recall("which floor is the office on?")
    assert hit.snippet.split("\n") == [
        "2026-01-28: the office is on floor 5",
        "2026-01-20: the office is on floor 3",
    ]
