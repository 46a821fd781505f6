"""The page as its user sees it, and what it complains of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

from tests.browser.product import Product

PATIENCE_MS = 60_000
"""What is waited for at most; a machine may be many times slower than another."""
UNHURRIED = """{
  const later = window.setTimeout.bind(window);
  const longer = { 1800: 600_000, 7000: 30_000 };
  window.setTimeout = (act, ms, ...given) => later(act, longer[ms] ?? ms, ...given);
  const now = performance.now.bind(performance);
  performance.now = () => now() / 10;
  const givenUp = AbortSignal.timeout.bind(AbortSignal);
  AbortSignal.timeout = (ms) => givenUp(10 * ms);
  const remove = DOMTokenList.prototype.remove;
  DOMTokenList.prototype.remove = function (...names) {
    remove.apply(this, names.filter((name) => name !== "is-shown"));
  };
}"""
"""What its reader has a moment for lasts where the machine is busy: "Copied" is said for 1.8 s,
what came of a click for 7 s, what is shown is marked for 2 s, two letters are one key within 1.5 s,
a focus waits 5 s; and a request that takes 15 s is not given up."""
SLOW_FRAMES = """
const soon = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => setTimeout(() => soon(draw), 300);
"""
"""What is to be drawn is drawn late, as on a busy machine."""
DRAWN = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(
  () => requestAnimationFrame(() => done()))))"""
"""Waits until what changed is drawn, and what followed from that."""


@dataclass
class Complaints:
    """What a page has complained of, and what a test expects it to."""

    found: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"page error: {error}"))

    def expect(self, pattern: str) -> None:
        """Complaints that match are part of the test: a server that is gone, say."""
        self.expected.append(pattern)

    def unexpected(self) -> list[str]:
        return [one for one in self.found if not any(re.search(e, one) for e in self.expected)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.found.append(f"{message.type}: {message.text}")


@dataclass
class Chat:
    """The page as its user sees it."""

    page: Page
    product: Product
    complaints: Complaints

    @property
    def field(self) -> Locator:
        return self.page.get_by_role("textbox", name="Message", exact=True)

    def send(self, text: str) -> None:
        self.field.fill(text)
        self.field.press("Enter")

    def message(self, text: str) -> Locator:
        """The messages that hold a text."""
        return self.page.locator("#timeline .message").filter(has_text=text)

    def told(self, text: str) -> Locator:
        """The last that says a command is done, and this with it: its card, or a message."""
        told = self.page.locator("#timeline :is(.message:not(.is-user), .card)", has_text="is done")
        return told.filter(has_text=text).last

    def reload(self) -> None:
        self.page.reload()
        expect(self.page.locator("#composer")).to_be_visible()


OpenChat = Callable[..., Chat]
