"""The page in a real browser: what a cold load weighs, when it shows something, how it keeps up.

Rows: a cold load on the wire (heads included); first content of a page with 2,000 messages and
1,000 tasks beside an empty one, by turns, and its snapshot; typing into the full page; a message
from its sending elsewhere to its sight; an hour of a trigger that fires every ten seconds and tells
each time.
Needs Debian's chromium. Run: python -m benchmarks.page [--rounds N] [--messages N] [--tasks N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.load import filled
from benchmarks.web import Served, client, served
from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message
from mimikit.web import tokens
from tests.support import programs

_SIZE = {"width": 1280, "height": 820}
_FIRST = "#timeline > li.message, .welcome"
_WATCH = """(selector) => {
  const seen = () => (window.firstSeen ??= document.querySelector(selector) && performance.now());
  new MutationObserver(() => seen()).observe(document, { childList: true, subtree: true });
}"""
_TYPED = """(field) => {
  window.typed = [];
  field.addEventListener("keydown", () => {
    const began = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.typed.push(performance.now() - began)));
  });
}"""
_SHOWN = """() => {
  window.shown = {};
  new MutationObserver(() => {
    for (const one of document.querySelectorAll("#timeline > [id^=m-]")) {
      window.shown[one.id.slice(2)] ??= Date.now();
    }
  }).observe(document, { childList: true, subtree: true });
}"""


@dataclass
class Site:
    """A web process over a folder, whose consumer the benchmark is."""

    files: Files
    server: Served

    def link(self) -> str:
        code = tokens.new_login_code(self.files, SystemClock().now())
        return tokens.login_link("127.0.0.1", self.server.port, code)


@contextmanager
def site(messages: int = 0, tasks: int = 0) -> Iterator[Site]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = filled(folder, messages=messages, tasks=tasks)
        state = folder / ".mimikit"
        argv = [sys.executable, "-m", "mimikit.web.serve", str(state), name, "127.0.0.1", "0"]
        with served(argv, folder, state) as server:
            yield Site(files, server)


@contextmanager
def opened(browser: Browser, here: Site) -> Iterator[Page]:
    """A page in a browser that has seen none before, which notes when it shows something first."""
    context = browser.new_context(viewport=_SIZE, locale="en-GB")  # type: ignore[arg-type]
    page = context.new_page()
    page.add_init_script(f"({_WATCH})({_FIRST!r})")
    page.goto(here.link())
    page.wait_for_selector(_FIRST)
    yield page
    context.close()


def weight(browser: Browser, here: Site) -> dict[str, float]:
    """What a cold load brings over the wire. Units: KB."""
    context = browser.new_context(viewport=_SIZE, locale="en-GB")  # type: ignore[arg-type]
    page = context.new_page()
    wire = context.new_cdp_session(page)
    wire.send("Network.enable")
    sizes: list[float] = []
    wire.on("Network.loadingFinished", lambda told: sizes.append(told["encodedDataLength"]))
    page.goto(here.link())
    page.wait_for_selector(_FIRST)
    page.wait_for_selector("#composer")
    page.wait_for_timeout(1500)  # what comes after the first sight belongs to it
    context.close()
    return {"KB": sum(sizes) / 1000, "requests": len(sizes)}


def first_content(browser: Browser, here: Site) -> float:
    """Units: milliseconds since the navigation began."""
    with opened(browser, here) as page:
        return float(page.evaluate("() => window.firstSeen"))


def typing(browser: Browser, here: Site, keys: int) -> float:
    """From a key to the frame after it is drawn, p95. Units: milliseconds."""
    with opened(browser, here) as page:
        field = page.locator("#composer")
        field.evaluate(_TYPED)
        field.press_sequentially("what do we know of it? " * (keys // 23), delay=30)
        found = sorted(page.evaluate("() => window.typed"))
        return found[int(len(found) * 0.95)]


def sight(browser: Browser, here: Site, count: int) -> float:
    """From a message's write and hint to its sight, p50. Units: milliseconds."""
    feed, history = ChangeFeed(here.files, SystemClock()), HistoryStore(here.files)
    pause = threading.Event()
    delays: list[float] = []
    with opened(browser, here) as page:
        page.evaluate(_SHOWN)
        for number in range(count):
            now = SystemClock().now()
            message = Message(id=f"msg-new-{number}", role="agent", text="done", created_at=now)
            history.add([message])
            written = SystemClock().now().timestamp() * 1000
            feed.tell("message", id=message.id)
            page.wait_for_selector(f"#m-{message.id}")
            delays.append(page.evaluate(f"() => window.shown['{message.id}']") - written)
            pause.wait(0.13)
    return statistics.median(delays)


def an_hour(browser: Browser, here: Site, firings: int) -> dict[str, float]:
    """By how much the chat and the page's memory grow from its first firings on."""
    feed, history = ChangeFeed(here.files, SystemClock()), HistoryStore(here.files)
    begun = SystemClock().now()
    here.files.write(
        paths.trigger("date"),
        b'{"prompt": "date", "profile": "command", "schedule": {"interval": 10}}',
    )
    with opened(browser, here) as page:
        wire = page.context.new_cdp_session(page)

        def look() -> tuple[float, float]:
            wire.send("HeapProfiler.collectGarbage")
            heap = page.evaluate("() => performance.memory.usedJSHeapSize") / 1e6
            return page.evaluate("() => document.getElementById('timeline').offsetHeight"), heap

        before, _ = look()
        found: list[tuple[float, float]] = []
        for number in range(firings):
            at = begun + timedelta(seconds=number / 10)
            message = Message(
                id=f"msg-fired-{number}", role="system", text=f"`date`: {at}", created_at=at,
                trigger_id="date", task_ids=[f"task-fired-{number}"],
            )  # fmt: skip
            history.add([message])
            feed.tell("message", id=message.id)
            if number in (0, firings // 6, firings - 1):
                page.wait_for_timeout(700)
                found.append(look())
    return {
        "line_px": found[0][0] - before,
        "grown_px": found[-1][0] - before,
        "heap_mb": found[1][1],
        "heap_grown_mb": found[-1][1] - found[1][1],
    }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--firings", type=int, default=360)
    args = parser.parse_args()
    with ExitStack() as stack:
        empty = stack.enter_context(site())
        full = stack.enter_context(site(args.messages, args.tasks))
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(
            executable_path=programs.browser(),
            chromium_sandbox=False,
            args=["--enable-precise-memory-info"],
        )
        cold = weight(browser, empty)
        print(f"cold load: {cold['KB']:.1f} KB in {cold['requests']:.0f} requests (limit 130 KB)")
        firsts: dict[str, list[float]] = {"empty": [], "full": []}
        for _ in range(args.rounds):  # by turns: the machine's moods meet both
            firsts["empty"].append(first_content(browser, empty))
            firsts["full"].append(first_content(browser, full))
        medians = {name: statistics.median(found) for name, found in firsts.items()}
        what = f"{args.messages} messages, {args.tasks} tasks"
        print(
            f"first content: {medians['full']:.0f} ms with {what}; empty {medians['empty']:.0f} ms"
        )
        delays: list[float] = []
        client(full.server.port, full.server.token, "GET", "/api/snapshot", 50, delays)
        print(f"its snapshot, p50: {statistics.median(delays):.1f} ms")
        with opened(browser, full) as page:
            nodes = page.locator("#timeline *").count()
        print(f"nodes of the timeline there: {nodes}")
        print(f"typing there, p95: {typing(browser, full, 92):.1f} ms (limit 50)")
        seen_ms = sight(browser, full, 30)
        print(f"a message's write to its sight there, p50: {seen_ms:.0f} ms (limit 80)")
        hour = an_hour(browser, empty, args.firings)
        print(
            f"{args.firings} firings of one trigger: the chat grows by {hour['grown_px']:.0f} px, "
            f"the first alone by {hour['line_px']:.0f}; heap {hour['heap_mb']:.1f} MB, "
            f"grown by {hour['heap_grown_mb']:.1f}"
        )
        browser.close()


if __name__ == "__main__":
    main()
