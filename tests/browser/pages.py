"""The page as its user sees it, and its console errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import ConsoleMessage, Locator, Page, expect

from tests.browser.product import Product


@dataclass
class Complaints:
    """Console errors of a page, and those that a test expects."""

    found: list[str] = field(default_factory=list[str])
    expected: list[str] = field(default_factory=list[str])

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.found.append(f"page error: {error}"))

    def expect(self, pattern: str) -> None:
        """Expect errors that match: a server that is gone, say."""
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
        """The card of the last job that is done, with this in its result."""
        result = self.page.locator(".prose", has_text=text)
        return self.page.locator("#timeline .job.is-done").filter(has=result).last

    def reload(self) -> None:
        self.page.reload()
        expect(self.page.locator("#composer")).to_be_visible()


OpenChat = Callable[..., Chat]
