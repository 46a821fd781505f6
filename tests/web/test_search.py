"""Search over HTTP: hits as data, and the query parameters."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimikit.conversation.history import HistoryStore
from mimikit.memory.search import IndexStatus, MemorySearch
from mimikit.protocol.files import Files
from mimikit.protocol.models import Hit, Message
from mimikit.views.memory import marks
from tests.support.memory_disk import MemoryDisk
from tests.support.twins import FakeClock
from tests.web.conftest import START, MakeWeb, Web


class Noting(MemorySearch):
    """The real search; records its arguments, and may report an index failure."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.asked: list[dict[str, Any]] = []
        self.trouble: str | None = None

    def find(self, query: str, **how: Any) -> list[Hit]:
        self.asked.append({"query": query} | how)
        return super().find(query, **how)

    @property
    def fallback(self) -> str | None:
        return self.trouble

    def status(self) -> IndexStatus:
        return dataclasses.replace(super().status(), fallback=self.trouble)


@pytest.fixture
def noting(tmp_path: Path) -> Noting:
    files = Files(MemoryDisk())
    files.make_folders()
    zone = ZoneInfo("Asia/Shanghai")
    return Noting(files=files, workspace=tmp_path, index=None, zone=zone, clock=FakeClock(START))


def write(web: Web, path: str, text: str) -> None:
    web.files.write(path, text.encode())


def found(web: Web, q: str, **query: str) -> list[dict[str, Any]]:
    return web.get("/api/search", q=q, **query)["hits"]


def test_a_hit_has_its_text_and_location(web: Web) -> None:
    write(
        web,
        "memory.md",
        "- The user prefers pnpm. <!-- note-1 -->\n"
        "- <script>alert(1)</script> deploys to 上海 <!-- note-2 -->\n",
    )
    answer = web.get("/api/search", q="which Deployment?")
    assert set(answer) == {"query", "hits", "tookMs", "fallback"}
    assert (answer["query"], answer["fallback"]) == ("which Deployment?", None)
    assert answer["tookMs"] >= 0
    (hit,) = answer["hits"]
    assert set(hit) == {
        *("source", "kind", "snippet", "marks", "score", "day", "line", "messageId", "role"),
        "taskId",
    }
    assert (hit["source"], hit["kind"], hit["line"]) == ("memory.md", "memory", 2)
    assert hit["snippet"] == "<script>alert(1)</script> deploys to 上海", "text, not markup"
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["deploys"]


def test_the_reason_for_a_search_without_index_is_reported(
    make_web: MakeWeb, noting: Noting
) -> None:
    noting.trouble = "the index is broken"
    web = make_web(search=lambda: noting)
    assert web.get("/api/memory")["index"]["fallback"] == "the index is broken"
    assert web.get("/api/search", q="x")["fallback"] == "the index is broken"


@pytest.mark.parametrize(
    ("query", "snippet", "marked"),
    [
        ("deploy", "Deployed, deploying; DEPLOY.", ["Deployed", "deploying", "DEPLOY"]),
        ("the user", "the user and the users", ["user", "users"]),
        ("数据库", "这个数据库的数目很多", ["数据库"]),
        ("數據庫", "数据库", ["数据库"]),
        ("库", "数据库", ["库"]),
        ("tea", "🍵🍵 tea 🍵", ["tea"]),
        ("café", "CAFE", ["CAFE"]),
        ("max_retries", "maxRetries max", ["maxRetries", "max"]),
        ("x", "", []),
    ],
)
def test_the_words_of_a_query_are_marked(query: str, snippet: str, marked: list[str]) -> None:
    assert [snippet[start:end] for start, end in marks(query, snippet)] == marked


@given(query=st.text(max_size=20), snippet=st.text(max_size=60))
def test_marks_lie_in_the_snippet_in_order(query: str, snippet: str) -> None:
    for asked in (query, snippet):
        last = -1
        for start, end in marks(asked, snippet):
            assert last < start < end <= len(snippet)
            last = end


def test_query_parameters_reach_the_search(make_web: MakeWeb, noting: Noting) -> None:
    web = make_web(timezone="Asia/Shanghai", search=lambda: noting)
    web.get("/api/search", q="x")
    web.get("/api/search", q="x", limit="100", scope="memory", after="2026-01-28")
    web.get("/api/search", q="x", scope="all", after="2026-01-28T09:30", before="2026-02-01T00:00Z")
    web.get("/api/search", q="x", after="", before="2026-01-28T09:30:00.123+01:00")
    usual = {"query": "x", "limit": 20, "after": None, "before": None, "everywhere": True}
    in_shanghai = datetime(2026, 1, 27, 16, tzinfo=UTC)
    half_past_nine = datetime(2026, 1, 28, 1, 30, tzinfo=UTC)
    february = datetime(2026, 2, 1, tzinfo=UTC)
    elsewhere = datetime(2026, 1, 28, 8, 30, 0, 123000, tzinfo=UTC)
    assert noting.asked == [
        usual,
        usual | {"limit": 100, "after": in_shanghai, "everywhere": False},
        usual | {"after": half_past_nine, "before": february},
        usual | {"before": elsewhere},
    ]


def test_a_search_of_memory_leaves_the_conversation_out(web: Web) -> None:
    write(web, "memory.md", "tea\n")
    message = Message(id="msg-1", role="user", text="more tea", created_at=START)
    HistoryStore(web.files).add([message])
    assert {hit["kind"] for hit in found(web, "tea")} == {"memory", "transcript"}
    assert {hit["kind"] for hit in found(web, "tea", scope="memory")} == {"memory"}
    assert len(found(web, "tea", limit="1")) == 1
