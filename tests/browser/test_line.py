"""The connection to the server: lost, refused, reconnected."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser


def test_a_page_heals_when_the_server_comes_back(chat: Chat) -> None:
    chat.complaints.expect(r"net::ERR_|Failed to load resource")
    chat.product.stop("web")
    expect(chat.page.locator(".connection")).to_contain_text("Reconnecting")
    chat.product.start("web")
    chat.product.say("run: echo while-away", "msg-while-away")
    expect(chat.page.locator("#m-msg-while-away")).to_be_visible(timeout=30_000)
    expect(chat.page.locator(".connection.is-online")).to_be_attached(timeout=30_000)
    assert chat.page.locator("#m-msg-while-away").count() == 1


def test_a_page_whose_stream_is_refused_asks_every_few_seconds(
    product: Product, open_chat: OpenChat
) -> None:
    chat = open_chat(product)
    chat.complaints.expect("503")
    full = {"error": {"message": "16 streams are open already", "field": None}}
    chat.page.route("**/api/events?*", lambda route: route.fulfill(status=503, json=full))
    chat.page.reload()
    expect(chat.page.locator(".connection.is-polling")).to_contain_text("Every 5 s")
    chat.send("run: echo by-polling")
    expect(chat.message("by-polling").first).to_have_attribute("data-delivery", "answered")
    expect(chat.told("by-polling")).to_be_visible()


def test_a_consumer_that_is_gone_is_told_loudly_and_messages_wait_for_it(chat: Chat) -> None:
    chat.product.stop("consumer")
    alert = chat.page.get_by_role("alert")
    expect(alert).to_contain_text("mimikit is not running", timeout=30_000)
    expect(alert).to_contain_text("mimikit up")
    chat.send("run: echo patience")
    expect(chat.message("patience")).to_contain_text("Queued")
    chat.product.start("consumer")
    expect(alert).to_have_count(0, timeout=30_000)
    expect(chat.message("patience").first).to_have_attribute("data-delivery", "answered")
