"""One page of the web as it came: redirects followed one by one, each judged as the first was."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import httpx

from mimikit import __version__
from mimikit.errors import Refused
from mimikit.internet.addresses import UrlRules, checked_url
from mimikit.internet.connection import CallLimits, Network, WebAnswer, WebError, ask
from mimikit.internet.robots import MOST_BYTES, may_read

USER_AGENT = f"Mozilla/5.0 (compatible; mimikit/{__version__})"
_KINDS = ("image", "audio", "video", "font", "application")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ROBOTS_S = 10.0
_MOST_ROBOTS = 200
_KEEP_ROBOTS_S, _KEEP_TROUBLE_S = 3600.0, 60.0
_TEXTS = ("text/", "application/json", "application/xml", "application/xhtml+xml")
_MORE_TEXTS = ("+json", "+xml", "/javascript", "/yaml", "/x-yaml", "/toml", "/x-ndjson")
_PDF = ("application/pdf", "application/x-pdf")
_UNKNOWN = ("", "application/octet-stream", "binary/octet-stream")
"""What it is is seen by its first bytes then."""


@dataclass(frozen=True, slots=True)
class RawPage:
    """What came of an address, not yet unpacked or read."""

    url: str
    """After all redirects."""
    media_type: str
    charset: str
    encoding: str
    body: bytes


def media_type_of(headers: Mapping[str, str]) -> tuple[str, str]:
    """The type in small letters without its parameters, and the charset it names."""
    kind, _, rest = headers.get("content-type", "").partition(";")
    charset = ""
    for part in rest.split(";"):
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'")[:40]
    return kind.strip().lower()[:100], charset


def is_readable(media_type: str) -> bool:
    """Whether there is text to be had of what has this type."""
    return (
        media_type.startswith(_TEXTS)
        or media_type.endswith(_MORE_TEXTS)
        or media_type in (*_PDF, *_UNKNOWN)
    )


class PageSource:
    """Fetches pages for all runs. Safe between threads."""

    def __init__(
        self,
        rules: UrlRules,
        network: Network,
        *,
        timeout_s: float,
        most_bytes: int,
        redirects: int,
    ) -> None:
        self._rules, self._network, self._redirects = rules, network, redirects
        self._timeout_s, self._most_bytes = timeout_s, most_bytes
        self._robots: dict[str, tuple[float, str | None]] = {}
        """By origin: until when it counts, and the text; None: nothing may be read there now."""
        self._lock = threading.Lock()

    def fetch(self, url: str, limits: CallLimits, *, asks_robots: bool) -> RawPage:
        """Ask for a page and follow where it leads.

        asks_robots: the page was found by a search, and is read as robots.txt has it.

        Raises:
            BadInput, Refused: the address, or one it leads to, is not read.
            WebError: there is no page to be had.
        """
        at = checked_url(url, self._rules)
        for _ in range(self._redirects + 1):
            if asks_robots:
                self._check_robots(at, limits)
            answer = ask(
                at, self._network, limits, headers=_headers(), wants_body=_is_page(at.host)
            )
            if answer.status not in _REDIRECTS:
                return _page(at, answer)
            at = checked_url(_target(at, answer), self._rules)
        raise WebError(f"expected at most {self._redirects} redirects, got more")

    def limits(self, limits: CallLimits) -> CallLimits:
        """Those of one fetch, within those of its caller."""
        until_s = min(limits.until_s, time.monotonic() + self._timeout_s)
        return CallLimits(until_s, self._most_bytes, limits.cancel)

    def _check_robots(self, url: httpx.URL, limits: CallLimits) -> None:
        origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
        now_s = time.monotonic()
        until_s, text = self._robots.get(origin, (0.0, None))
        if until_s <= now_s:
            text = self._robots_of(httpx.URL(f"{origin}/robots.txt"), limits)
            keep_s = _KEEP_TROUBLE_S if text is None else _KEEP_ROBOTS_S
            with self._lock:
                while len(self._robots) >= _MOST_ROBOTS:
                    del self._robots[next(iter(self._robots))]
                self._robots[origin] = now_s + keep_s, text
        path = url.raw_path.decode("ascii", "replace")
        if text is None or not may_read(text, path):
            why = "does not let it be read now" if text is None else "asks that this is not read"
            raise Refused(f"robots.txt of {url.host[:80]} {why}; take another page")

    def _robots_of(self, at: httpx.URL, limits: CallLimits) -> str | None:
        """Its text; nothing where there is none; None where it can not be had just now."""
        until_s = min(limits.until_s, time.monotonic() + _ROBOTS_S)
        own = CallLimits(until_s, MOST_BYTES, limits.cancel)
        headers = {"user-agent": USER_AGENT, "accept": "text/plain"}
        try:
            for _ in range(self._redirects + 1):
                answer = ask(at, self._network, own, headers=headers)
                if answer.status not in _REDIRECTS:
                    break
                at = checked_url(_target(at, answer), self._rules)
            else:
                return ""
        except WebError:
            limits.left_s()  # its caller's own end says nothing of the site
            return None
        if 400 <= answer.status < 500:
            return ""
        return answer.body.decode("utf-8", "replace") if answer.status == 200 else None


def _headers() -> dict[str, str]:
    packed = "gzip, deflate, br" if importlib.util.find_spec("brotli") else "gzip, deflate"
    kinds = "text/html, application/xhtml+xml, application/pdf, text/*;q=0.9, */*;q=0.5"
    return {"user-agent": USER_AGENT, "accept": kinds, "accept-encoding": packed}


def _is_page(host: str) -> Callable[[int, Mapping[str, str]], bool]:
    def wants(status: int, headers: Mapping[str, str]) -> bool:
        """Raises WebError for what has no text: nothing of it is read."""
        if status in _REDIRECTS:
            return False
        if not 200 <= status < 300:
            raise WebError(f"{host[:80]} answered {status}")
        kind, _ = media_type_of(headers)
        if not is_readable(kind):
            known = kind.partition("/")[0]
            got = known if known in _KINDS else "something else"
            raise WebError(f"expected a page, a text or a PDF, got {got}")
        return True

    return wants


def _target(at: httpx.URL, answer: WebAnswer) -> str:
    to = answer.headers.get("location", "")
    try:
        # Sites write UTF-8 into what is latin-1 by the standard.
        return str(at.join(to.encode("latin-1").decode("utf-8", "replace")))
    except (httpx.InvalidURL, ValueError):
        raise WebError(f"{at.host[:80]} leads to no address") from None


def _page(at: httpx.URL, answer: WebAnswer) -> RawPage:
    kind, charset = media_type_of(answer.headers)
    encoding = answer.headers.get("content-encoding", "").strip().lower()[:60]
    return RawPage(str(at), kind, charset, encoding, answer.body)
