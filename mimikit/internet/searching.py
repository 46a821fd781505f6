"""Asks a search engine: ddgs in a program of its own, or SearXNG, Brave, Tavily by their APIs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlencode

import httpx
from pydantic import Field

from mimikit.engines import process, process_tree
from mimikit.engines.program import Program, Stream
from mimikit.errors import BadRecord, EngineError, ProgramLost
from mimikit.internet.addresses import UrlRules, host_refusal
from mimikit.internet.connection import CallLimits, Network, WebError, ask
from mimikit.internet.tunnel import TunnelServer
from mimikit.internet_settings import InternetSettings
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import Record

BRAVE = "https://api.search.brave.com/res/v1/web/search"
TAVILY = "https://api.tavily.com/search"
_MOST_BYTES = 2 * 2**20
_MOST_QUOTED = 500
_DDGS_S = 25.0


class SearchHit(Record):
    """One page that was found. Nothing of it is ours: who shows it fences it."""

    url: str = Field(max_length=2000)
    title: str = ""
    text: str = ""
    date: str = ""


class WebSearch:
    """Searches for all runs, as the settings say. Safe between threads."""

    def __init__(
        self,
        settings: InternetSettings,
        state: Path,
        network: Network,
        *,
        brave: str = BRAVE,
        tavily: str = TAVILY,
        argv: tuple[str, ...] = ("-m", "mimikit.internet.ddgs_search"),
    ) -> None:
        """`brave`, `tavily`, `argv`: where those are, and what asks ddgs."""
        self._settings, self._state, self._network = settings, state, network
        self._brave, self._tavily, self._argv = brave, tavily, argv
        self._rules = UrlRules(settings.allow, settings.deny, settings.ports)

    def search(self, query: str, most: int, limits: CallLimits, run_id: str) -> list[SearchHit]:
        """The first pages found that may be read, best first.

        Raises:
            WebError: the search engine can not be asked.
        """
        ways: dict[str, Callable[[], list[SearchHit]]] = {
            "ddgs": lambda: self._by_ddgs(query, most, limits, run_id),
            "searxng": lambda: self._by_searxng(query, limits),
            "brave": lambda: self._by_brave(query, most, limits),
            "tavily": lambda: self._by_tavily(query, most, limits),
        }
        found = ways[self._settings.search]()
        return [hit for hit in found if self._may_be_read(hit.url)][:most]

    def _may_be_read(self, url: str) -> bool:
        try:
            at = httpx.URL(url)
            host = at.raw_host.decode("ascii")
        except (httpx.InvalidURL, UnicodeError, ValueError):
            return False
        return at.scheme in ("http", "https") and host_refusal(host, self._rules) is None

    def _by_searxng(self, query: str, limits: CallLimits) -> list[SearchHit]:
        base = (self._settings.search_url or "").rstrip("/").removesuffix("/search")
        url = httpx.URL(f"{base}/search?{urlencode({'q': query, 'format': 'json'})}")
        # The owner has named it: it may be on this machine. Nothing else is reached so.
        told = self._told(url, {}, None, limits, trusted=url.raw_host.decode("ascii"))
        return _hits(told.get("results"), "url", "title", "content", "publishedDate")

    def _by_brave(self, query: str, most: int, limits: CallLimits) -> list[SearchHit]:
        url = httpx.URL(f"{self._brave}?{urlencode({'q': query, 'count': most})}")
        told = self._told(url, {"x-subscription-token": self._key()}, None, limits)
        web = told.get("web")
        found = web.get("results") if isinstance(web, dict) else None
        return _hits(found, "url", "title", "description", "page_age")

    def _by_tavily(self, query: str, most: int, limits: CallLimits) -> list[SearchHit]:
        body = json.dumps({"query": query, "max_results": most}).encode()
        headers = {"authorization": f"Bearer {self._key()}", "content-type": "application/json"}
        told = self._told(httpx.URL(self._tavily), headers, body, limits)
        return _hits(told.get("results"), "url", "title", "content", "published_date")

    def _told(
        self,
        url: httpx.URL,
        headers: Mapping[str, str],
        body: bytes | None,
        limits: CallLimits,
        trusted: str | None = None,
    ) -> dict[str, Json]:
        own = CallLimits(limits.until_s, _MOST_BYTES, limits.cancel)
        sent = {"accept": "application/json", "user-agent": "mimikit", **headers}
        name = self._settings.search
        answer = ask(url, self._network, own, headers=sent, body=body, trusted=trusted)
        if answer.status != 200:
            hint = {401: "; is its key right?", 403: "; is JSON among its formats?", 429: "; later"}
            raise WebError(f"{name} answered {answer.status}{hint.get(answer.status, '')}")
        try:
            return parse_object(answer.body)
        except BadRecord as error:
            raise WebError(f"expected JSON of {name}, got something else: {error}") from None

    def _key(self) -> str:
        """Raises WebError: it is not there."""
        settings = self._settings
        if variable := settings.search_key_env:
            key, place = os.environ.get(variable, "").strip(), variable
        else:
            place = f"{paths.SECRETS}/{settings.search_key_file}"
            with contextlib.closing(RealDisk(self._state)) as disk:
                key = (Files(disk).read(place, most=10_000) or b"").decode("ascii", "replace")
            key = key.strip()
        if not key or not key.isprintable() or not key.isascii():
            raise WebError(f"expected the key of {settings.search} in {place}, got none")
        return key

    def _by_ddgs(self, query: str, most: int, limits: CallLimits, run_id: str) -> list[SearchHit]:
        """By a program of its own, all whose connections go through the guard of this one."""
        out: list[bytes] = []

        def take(stream: Stream, data: bytes) -> None:
            if stream == "stdout":
                out.append(data)

        with TunnelServer(self._network, limits) as tunnel:
            order = {"query": query, "most": most, "proxy": tunnel.url}
            program = Program(
                argv=[sys.executable, "-I", *self._argv],
                cwd=Path("/"),
                env=process.environment(),
                mark=process_tree.mark(self._state, run_id),
                timeout_s=min(_DDGS_S, limits.left_s()),
                kill_after_s=1,
                output_bytes=_MOST_BYTES,
                stdin=json.dumps(order).encode(),
            )
            try:
                ended = process.run(program, take, limits.cancel)
            except (EngineError, ProgramLost) as error:
                raise WebError(f"the search could not be begun: {error}") from error
        if ended.stopped:
            raise WebError("the search engines did not answer in time")
        try:
            told = parse_object(b"".join(out))
        except BadRecord:
            raise WebError("the search broke off") from None
        if error := told.get("error"):
            raise WebError(f"the search engines did not answer: {str(error)[:300]}")
        return _hits(told.get("results"), "href", "title", "body", "date")


def _hits(found: Json, url: str, title: str, text: str, date: str) -> list[SearchHit]:
    """What an answer's list holds, by what its fields are called there."""
    hits: list[SearchHit] = []
    for entry in found if isinstance(found, list) else []:
        if not isinstance(entry, dict) or not isinstance(entry.get(url), str):
            continue
        told = {key: str(entry.get(name) or "") for key, name in
                (("title", title), ("text", text), ("date", date))}  # fmt: skip
        address = str(entry[url]).strip()
        if len(address) <= 2000 and all(hit.url != address for hit in hits):
            hits.append(
                SearchHit(
                    url=address,
                    title=_line(told["title"], 200),
                    text=_line(told["text"], _MOST_QUOTED),
                    date=_line(told["date"], 40),
                )
            )
    return hits


def _line(text: str, most: int) -> str:
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else line[: most - 1] + "…"
