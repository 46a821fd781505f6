"""The page in Chromium: requests, bytes, first content over a long past, events until shown.

Two web processes, one over an empty past and one over 2,000 messages and 1,000 tasks, by turns.
Run: python -m benchmarks.page [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.load import filled
from benchmarks.web import served
from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.log import ChangeFeed
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message
from mimikit.web import tokens
from tests.support import programs

# When an element first matches, by the page's own clock; set up before any script of the page.
WATCH = """(() => { window.seen = {};
  const look = () => { for (const name of ['#composer', '#timeline .message'])
    if (!(name in window.seen) && document.querySelector(name))
      window.seen[name] = performance.now(); };
  new MutationObserver(look).observe(document, {childList: true, subtree: true}); })()"""
SHOWN_AT = """(id) => new Promise((done) => {
  const now = () => performance.timeOrigin + performance.now();
  const look = () => document.getElementById(id) && done(now());
  new MutationObserver(look).observe(document, {childList: true, subtree: true}); look(); })"""
EVENTS = 40


@contextmanager
def page_over(name: str, **past: int) -> Generator[tuple[Files, Callable[[], str]]]:
    """A web process over such a past: its files, and fresh login links."""
    folder = Path(name)
    files = filled(folder, **past)
    state = str(folder / ".mimikit")
    argv = [sys.executable, "-m", "tests.support.serve_page", state, name, "127.0.0.1", "0"]
    with served(argv, folder, folder / ".mimikit") as site:

        def link() -> str:
            code = tokens.new_login_code(files, SystemClock().now())
            return tokens.login_link("127.0.0.1", site.port, code)

        yield files, link


def first_content(browser: Browser, link: str, selector: str) -> tuple[float, int, int]:
    """Milliseconds until an element is there, requests and bytes on the wire, with a cold cache."""
    with browser.new_context() as context:
        context.add_init_script(WATCH)
        page, sizes = context.new_page(), list[int]()
        page.on("requestfinished", lambda r: sizes.append(r.sizes()["responseBodySize"]))
        page.goto(link)
        page.locator(selector).first.wait_for()
        page.wait_for_load_state()
        page.wait_for_timeout(500)
        return page.evaluate(f"() => window.seen['{selector}']"), len(sizes), sum(sizes)


def event_ms(page: Page, files: Files, number: int) -> float:
    """From the event of a message until the page shows it. Units: ms."""
    clock, id_ = SystemClock(), f"msg-bench-{number}"
    history, feed = HistoryStore(files), ChangeFeed(files, clock)
    text = f"News number {number}."
    history.add([Message(id=id_, role="agent", text=text, created_at=clock.now())])
    began = clock.now().timestamp() * 1000
    feed.publish("message", id=id_)
    shown: float = page.evaluate(SHOWN_AT, f"m-{id_}")
    return shown - began


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    waits: dict[str, list[float]] = {"empty": [], "long": []}
    with ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2)]
        _, empty_link = stack.enter_context(page_over(folders[0]))
        files, long_link = stack.enter_context(page_over(folders[1], messages=2000, tasks=1000))
        player = stack.enter_context(sync_playwright())
        browser = player.chromium.launch(
            executable_path=programs.browser(), chromium_sandbox=False, args=["--disable-gpu"]
        )
        for _ in range(args.rounds):
            empty, requests, size = first_content(browser, empty_link(), "#composer")
            long, _, long_size = first_content(browser, long_link(), "#timeline .message")
            waits["empty"].append(empty)
            waits["long"].append(long)
        page = browser.new_page()
        page.goto(long_link())
        page.locator("#timeline .message").first.wait_for()
        page.wait_for_timeout(1000)
        events = [event_ms(page, files, number) for number in range(EVENTS)]
        browser.close()
    medians = {name: statistics.median(found) for name, found in waits.items()}
    print(
        f"cold: {requests} requests, {size / 1000:.0f} KB, with a long past {long_size / 1000:.0f}"
    )
    print(f"first content, empty past: {medians['empty']:.0f} ms, median of {args.rounds}")
    print(
        f"first content, 2,000 messages and 1,000 tasks: {medians['long']:.0f} ms, "
        f"ratio {medians['long'] / medians['empty']:.2f}"
    )
    print(f"event until it is shown: p50 {statistics.median(events):.0f} ms of {EVENTS}")


if __name__ == "__main__":
    main()
