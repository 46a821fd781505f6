"""Where hostile texts come from beside messages and files: servers of tools, the web, skills.

The product's own code stands between them and a model; what stands in here is the server that is
spoken with, the search engine, and the program that takes a page apart.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mimikit.config import Settings
from mimikit.engines.base import CancelToken, ToolReply, ToolSpec
from mimikit.errors import EngineError
from mimikit.internet.connection import CallLimits
from mimikit.internet.pages import RawPage
from mimikit.internet.reading import PageReader, ReadPage
from mimikit.internet.searching import SearchHit, WebSearch
from mimikit.internet.web_tools import WebTools
from mimikit.log import EventLog
from mimikit.protocol.files import Files
from mimikit.testing.twins import FakeClock
from mimikit.tools.mcp_process import McpProcess, Message
from mimikit.tools.mcp_servers import McpServers, offered_name
from mimikit.tools.provider import ToolProvider, ToolRun
from tests.security.corpus import Attack, Call
from tests.support.fake_web import FakeWeb, answer

SITE = "site.example.com"
DESK = "desk"
"""The server of tools."""
DESK_SAYS = f"A tool of the server {DESK}, which says of it: "


class PlantedTools:
    """What runs are provided with just now."""

    name = "planted"
    works_in_tree = False

    def __init__(self) -> None:
        self.inner: tuple[ToolProvider, ...] = ()
        self._of: dict[str, ToolProvider] = {}

    def specs(self, run: ToolRun) -> Sequence[ToolSpec]:
        found = [(one, spec) for one in self.inner for spec in one.specs(run)]
        self._of = {spec.name: one for one, spec in found}
        return [spec for _, spec in found]

    def call(self, name: str, given: Mapping[str, object], run: ToolRun) -> ToolReply:
        return self._of[name].call(name, given, run)


class PlantedServer:
    """Stands in for the process that speaks with a server of tools: a tool for each attack.

    Each third answers, fails, or can not be asked, all with the attack's text; or, where the server
    attacks by what it says of itself, the text is a description, a schema's or a name.
    """

    is_alive = True

    def __init__(self, attacks: Sequence[Attack], *, by_itself: bool) -> None:
        self._attacks, self._by_itself = attacks, by_itself
        self.calls: list[Call] = []
        """One of each tool."""
        self._tools: dict[str, tuple[int, Attack]] = {}
        self._listed: list[dict[str, Any]] = []
        for number, attack in enumerate(attacks):
            told = self._told(number, attack)
            self._tools[told["name"]] = number, attack
            self._listed.append(told)
            self.calls.append(Call(offered_name(DESK, told["name"]), {}))

    def _told(self, number: int, attack: Attack) -> dict[str, Any]:
        text = attack.text if self._by_itself else ""
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        name, said = f"look{number}", "Looks something up."
        match number % 4:
            case 0:
                said = text or said
            case 1:
                schema["properties"]["a"] = {"type": "string", "description": text}
            case 2:
                schema |= {"title": text, "properties": {"a": {"enum": [text], "default": text}}}
            case _:
                name = f"{attack.mark} {text}" if text else name
        return {"name": name, "description": said, "schema": json.dumps(schema)}

    def ask(self, do: Message, server: Message, timeout_s: float, cancel: CancelToken) -> Message:
        del server, timeout_s, cancel
        if do["method"] == "list":
            return {"tools": cast("Any", self._listed), "left": 0}
        number, attack = self._tools[str(do["tool"])]
        if self._by_itself:
            return {"text": "done"}
        if number % 3 == 2:
            raise EngineError(attack.text)
        return {"text": attack.text, "isError": number % 3 == 1}

    def close(self) -> None:
        pass


def servers(
    planted: PlantedServer, settings: Settings, files: Files, state: Path, log: EventLog
) -> McpServers:
    """The product's provider, before a planted server."""
    desk = {"url": "http://127.0.0.1:9/mcp", "roles": ["planner", "worker"]}
    made = Settings.model_validate({"mcp": {DESK: {**desk, "profiles": ["standard"]}}})
    both = settings.model_copy(update={"mcp": made.mcp})
    host = cast("McpProcess", planted)
    return McpServers(both, files, state, state.parent, log, host=host)


class PlantedWeb:
    """A page for each attack, which has it in its text, its title, its links, or a search hit."""

    def __init__(self, attacks: Sequence[Attack], web: FakeWeb) -> None:
        self._attacks, self._web = attacks, web
        web.pages |= {f"{SITE}/{n}": answer("x", "text/html") for n, _ in enumerate(attacks)}
        pages = (f"http://{SITE}/{n}" for n, _ in enumerate(attacks) if n % 4 != 3)
        self.calls = [Call("web_fetch", {"url": url, "links": True}) for url in pages]
        self.calls.append(Call("web_search", {"query": "cats"}))

    def read(self, page: RawPage, limits: CallLimits, run_id: str) -> ReadPage:
        del limits, run_id
        number = int(page.url.rpartition("/")[2])
        text = self._attacks[number].text
        match number % 4:
            case 0:
                return ReadPage(text=text)
            case 1:
                return ReadPage(title=text, text="cats")
            case _:
                return ReadPage(text="cats", links=[[text, f"http://{SITE}/?{text}"]])

    def search(self, query: str, most: int, limits: CallLimits, run_id: str) -> list[SearchHit]:
        del query, most, limits, run_id
        texts = [one.text for number, one in enumerate(self._attacks) if number % 4 == 3]
        parts = itertools.cycle(("title", "text", "url", "date"))
        return [
            SearchHit(**{"url": f"http://{SITE}/", part: text})
            for part, text in zip(parts, texts, strict=False)
        ]

    def tools(self, settings: Settings, state: Path, files: Files, clock: FakeClock) -> WebTools:
        """The product's provider, before this web."""
        reader, search = cast("PageReader", self), cast("WebSearch", self)
        return WebTools(
            settings.internet, state, files, clock, self._web.network, search=search, reader=reader
        )


def plant_skills(files: Files, attacks: Iterable[Attack]) -> list[Call]:
    """A skill for each, which has it in its text, in another file or in what is said of it."""
    calls: list[Call] = []
    for number, attack in enumerate(attacks):
        name = f"skill-{number}"
        folder = f"skills/{name}"
        said = attack.text if number % 3 == 2 else "How it is done."
        body = attack.text if number % 3 == 0 else "See more.md."
        files.make_folders(["skills", folder])
        head = f"---\nname: {name}\ndescription: {json.dumps(said)}\n---\n"
        files.write(f"{folder}/SKILL.md", f"{head}{body}\n".encode())
        calls.append(Call("read_skill", {"name": name}))
        if number % 3 == 1:
            files.write(f"{folder}/more.md", attack.text.encode())
            calls.append(Call("read_skill", {"name": name, "file": "more.md"}))
    return calls
