"""The page in a real browser: a message, its reply, the task, a trigger, and axe on each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.looking import violations
from tests.browser.pages import OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser


def test_a_user_sends_reads_the_task_and_makes_a_trigger(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    expect.set_options(timeout=60_000)
    product = fresh()
    product.start()
    chat = open_chat(product)
    page = chat.page
    chat.send("run: echo seen-in-the-page")
    expect(chat.told("seen-in-the-page")).to_be_visible()
    assert violations(page) == []
    chat.send("every 3 hours run true")
    product.wait_until(lambda: bool(product.call("GET", "/api/triggers")["triggers"]))
    shown = {"home": ".home", "tasks": ".row", "triggers": ".trigger", "memory": "#memory-search"}
    for place in (*shown, "triggers/new", "backlog", "engines", "settings", "usage"):
        page.goto(f"{product.url}/#/{place}")
        expect(page.locator(f"#panel {shown.get(place, 'h2')}").first).to_be_visible()
        expect(page.locator(".loading:visible")).to_have_count(0)
        assert violations(page) == []
