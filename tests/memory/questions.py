"""A small state folder with everything that is searched, and questions with their expected hits."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from mimikit.memory import markdown
from mimikit.memory.search import MemorySearch
from mimikit.memory.tantivy_index import TantivyIndex
from mimikit.memory.terms import ChineseDictionary
from mimikit.protocol.files import Files
from mimikit.protocol.models import Hit, Message
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.state import State, open_state
from tests.support.twins import FakeClock

ZONE = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 2, 1, 9, 0, tzinfo=UTC)


def at(day: str, hour: int = 4, minute: int = 0) -> datetime:
    return datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC).replace(
        hour=hour, minute=minute
    )


def said(number: int, text: str, role: str, day: str, minute: int = 0) -> Message:
    when = at(day, minute=minute)
    return Message(id=f"msg-{number}", role=role, text=text, created_at=when)  # pyright: ignore[reportArgumentType]


DEPLOY = [
    said(1, "部署到 Cloudflare Workers 時遇到逾時錯誤 E1027", "user", "2026-01-28", 1),
    said(2, "Increase the timeout in wrangler.toml to 60 seconds.", "agent", "2026-01-28", 2),
    said(3, "I watched three documentaries about glaciers.", "user", "2026-01-28", 3),
]
CODE = [
    said(4, "parse_config_file 在 loader.py 里崩溃了", "user", "2026-01-29", 1),
    said(5, "Version v2.13.4 repairs it in HttpRequestParser.", "agent", "2026-01-29", 2),
    said(6, "Ｐａｓｓｗｏｒｄ rotation happens every ９０ days", "user", "2026-01-29", 3),
    said(7, "André waits at the café in Zürich", "user", "2026-01-29", 4),
]
TALK = [
    said(8, "鯨魚為什麼要唱歌?", "user", "2026-01-20", 1),
    said(9, "Whales sing to find each other.", "agent", "2026-01-20", 2),
]
MEMORY = """- 用户喜欢用 pnpm 而不是 npm。 <!-- note-1 -->
- The staging server is called Kestrel. <!-- note-2 -->
- 奶奶的生日是六月十八号 <!-- note-3 -->
"""
SETUP = """# 安裝指南

## 資料庫

執行遷移之前先備份資料。

## Networking

Open port 8443 on the firewall.
"""
API = """# Programming

`getUserName` returns the display name.

```
# not a heading
curl /v1/users
```
"""


def result(task_id: str, text: str, *, internal: bool = False) -> bytes:
    when = at("2026-01-21")
    return TaskResult(
        id=task_id,
        status="done",
        result={"text": text},
        trace_id=task_id,
        internal=internal,
        started_at=when,
        completed_at=when,
    ).to_json()


def plan(task_id: str, summary: str) -> bytes:
    when = at("2026-01-22")
    return PlanResult(
        id=task_id,
        status="done",
        summary=summary,
        turn_id="turn-1",
        trace_id=task_id,
        started_at=when,
        completed_at=when,
    ).to_json()


def lines(messages: Iterable[Message]) -> str:
    return "".join(
        json.dumps(json.loads(one.to_json()), ensure_ascii=False) + "\n" for one in messages
    )


def day_summary(name: str, text: str) -> str:
    return markdown.extended_summary("", name, f"part-{name}", ["msg-0"], text)


INDEXES = ("tantivy", None)
"""None: everything is in memory."""


@dataclass
class World:
    state: State

    @property
    def files(self) -> Files:
        return self.state.files

    @property
    def path(self) -> Path:
        return self.state.path

    def put(self, path: str, text: str | bytes) -> None:
        """Write a file by rename, as the product and most editors do."""
        base = self.state.workspace if path.startswith("docs/") else self.path
        target = base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        temp = target.with_name(".saving")
        temp.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.rename(temp, target)  # noqa: TID251 - as an editor of the user's does

    def search(
        self,
        *,
        index: str | None = "tantivy",
        words: ChineseDictionary | None = None,
        files: Files | None = None,
    ) -> MemorySearch:
        """A separate search, as in another process; `index` is one of `INDEXES`."""
        files = files or self.files
        return MemorySearch(
            files,
            workspace=self.state.workspace,
            index=TantivyIndex(files, self.path) if index else None,
            zone=self.state.settings.zone,
            clock=self.state.clock,
            words=words,
            patience_s=60.0,
        )


def empty_world(folder: Path, *, state: str = ".mimikit", zone: str = "Asia/Shanghai") -> World:
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / state
    place.mkdir(mode=0o700, parents=True)
    (place / "config.toml").write_text(f'timezone = "{zone}"\n')
    opened = open_state(place, folder)
    return World(dataclasses.replace(opened, clock=FakeClock(NOW)))


def full_world(folder: Path) -> World:
    world = empty_world(folder)
    world.put("memory.md", MEMORY)
    world.put("memory/2026-01-28-deploy.md", markdown.extended("", date(2026, 1, 28), DEPLOY, ZONE))
    world.put("memory/2026-01-29.md", markdown.extended("", date(2026, 1, 29), CODE, ZONE))
    world.put("memory/summary/2026-01-10.md", day_summary("2026-01-10", "討論了季度預算的分配。"))
    world.put("memory/summary/2025-12.md", day_summary("2025-12", "The printer was replaced."))
    world.put("memory/summary/2025-12-03.md", day_summary("2025-12-03", "An otter in the printer."))
    world.put("docs/setup.md", SETUP)
    world.put("docs/guide/api.md", API)
    world.put("history/2026-01-20.jsonl", lines(TALK))
    world.put("history/2026-01-28.jsonl", lines(DEPLOY))
    world.put("worker/results/task-1.json", result("task-1", "Throughput rose after batching."))
    world.put("worker/results/task-2.json", result("task-2", "An otter swims.", internal=True))
    world.put("planner/done/plan-1.json", plan("plan-1", "迁移计划分三步走"))
    return world


_DEPLOY = "memory/2026-01-28-deploy.md"
_CODE = "memory/2026-01-29.md"

QUESTIONS: list[tuple[str, str, str]] = [
    # what is asked, the file of the first hit, its text or a part of it
    ("用户喜欢什么包管理器 pnpm", "memory.md", "用户喜欢用 pnpm"),
    ("staging servers", "memory.md", "Kestrel"),
    ("奶奶什么时候过生日？", "memory.md", "六月十八号"),
    # the question in one script, the text in the other
    ("部署时遇到了什么错误", _DEPLOY, "逾時錯誤"),
    ("怎么备份数据", "docs/setup.md", "備份資料"),
    ("鲸鱼为什么唱歌", "history/2026-01-20.jsonl", "鯨魚"),
    ("遷移計劃", "planner/done/plan-1.json", "迁移计划"),
    # what is neither one nor the other
    ("error E1027", _DEPLOY, "E1027"),
    ("wrangler.toml", _DEPLOY, "wrangler.toml"),
    ("parse_config_file", _CODE, "parse_config_file"),
    ("PARSE_CONFIG_FILE", _CODE, "parse_config_file"),
    ("HttpRequestParser", _CODE, "HttpRequestParser"),
    ("2.13.4", _CODE, "v2.13.4"),
    ("getUserName", "docs/guide/api.md", "getUserName"),
    ("port 8443", "docs/setup.md", "8443"),
    # other forms of a word
    ("documentary on a glacier", _DEPLOY, "documentaries about glaciers"),
    ("the whale sang or is singing", "history/2026-01-20.jsonl", "Whales sing"),
    ("rotating a password", _CODE, "rotation"),
    ("ｗｒａｎｇｌｅｒ", _DEPLOY, "wrangler.toml"),
    ("Andre cafe Zurich", _CODE, "André"),
    ("batching", "worker/results/task-1.json", "Throughput"),
    ("printers", "memory/summary/2025-12.md", "replaced"),
    # by the headings above
    ("networking firewall", "docs/setup.md", "8443"),
    # what no index of words has: a part of a word, words that say nothing
    ("ocumentari", _DEPLOY, "documentaries"),
    ("eatedly", "", ""),
    ("otter", "", ""),
    ("about", _DEPLOY, "documentaries about"),
    ("而", "memory.md", "而不是"),
    ("", "", ""),
    ("🦦", "", ""),
    ("\x00\ud800", "", ""),
    ('?!*:()[]{}^~"\\/ +-', "", ""),
]

Key = tuple[str, int, str | None]


def keys(found: Iterable[Hit]) -> list[Key]:
    return [(hit.source, hit.line, hit.message_id) for hit in found]


def ask_all(search: MemorySearch) -> dict[str, list[Hit]]:
    """The hits of each question; asserts the first one."""
    given: dict[str, list[Hit]] = {}
    for query, source, part in QUESTIONS:
        hits = search.find(query)
        first = (hits[0].source, part in hits[0].text) if hits else ("", True)
        assert first == (source, True), (query, [(h.source, h.text, h.score) for h in hits])
        given[query] = hits
    return given


def wait_for(holds: Callable[[], bool], *, tries: int = 4000) -> None:
    import threading

    pause = threading.Event()
    while not holds():
        tries -= 1
        assert tries, "it never came"
        pause.wait(0.005)
