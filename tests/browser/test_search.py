"""The search for everything: its kinds, its address, and the way to what was found."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.protocol.models import Message
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product, make_product

pytestmark = pytest.mark.browser

LONG_AGO = 40
FAR = f"msg-far-{LONG_AGO:05d}"
DOWN_TO = """async (id) => {
  const box = document.querySelector("#scroll");
  box.scrollTop += box.clientHeight;
  for (let n = 0; n < 6; n += 1) await new Promise(requestAnimationFrame);
  const row = document.getElementById(id);
  return row !== null && row.getBoundingClientRect().top < box.getBoundingClientRect().bottom;
}"""
"""Reads on by a view; gives whether the row is reached, as others are drawn for a moment."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with a long conversation: what is looked for was said at its beginning."""
    product = make_product(tmp_path_factory.mktemp("search"), 'timezone = "Asia/Shanghai"')
    (product.state / "memory.md").write_text("# Notes\n\n- The walrus is called Wilma.\n")
    began = SystemClock().now() - timedelta(minutes=4000)
    HistoryStore(product.files).add(
        Message(
            id=f"msg-far-{number:05d}",
            role=("user", "agent")[number % 2],
            text="the walrus was seen 海象" if number == LONG_AGO else f"Message {number}, of fog.",
            created_at=began + timedelta(minutes=number),
            archived=True,
        )
        for number in range(3000)
    )
    try:
        product.start()
        yield product
    finally:
        product.stop()


@pytest.fixture
def chat(kept: Product, open_chat: OpenChat) -> Chat:
    return open_chat(kept)


def test_each_kind_has_its_number_and_the_search_stands_in_the_address(
    chat: Chat, kept: Product
) -> None:
    page = chat.page
    page.locator("#scroll").focus()
    page.keyboard.press("/")
    page.get_by_role("searchbox").fill("walrus")
    expect(page.locator(".hit")).to_have_count(2)
    expect(page).to_have_url(f"{kept.url}/#/search?q=walrus")
    kinds = page.get_by_role("navigation", name="What is searched").get_by_role("link")
    expect(kinds).to_have_text(["Everything 2", "Messages 1", "Memory 1", "Work 0"])
    page.get_by_role("link", name="Memory 1").click()
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".hit")).to_contain_text("Wilma")
    address = f"{kept.url}/#/search?q=walrus&kind=memory"
    expect(page).to_have_url(address)
    chat.reload()
    expect(page.locator(".hit")).to_contain_text("Wilma")
    expect(page.get_by_role("searchbox")).to_have_value("walrus")
    page.get_by_role("searchbox").fill("fog")
    page.get_by_role("link", name="Messages 100+").click()
    expect(page.locator(".hit")).to_have_count(100)
    page.go_back()  # typing is no step, another kind is one
    expect(page).to_have_url(f"{kept.url}/#/search?q=fog&kind=memory")
    page.go_back()
    expect(page).to_have_url(f"{kept.url}/#/search?q=walrus")
    expect(page.get_by_role("searchbox")).to_have_value("walrus")
    other = page.context.new_page()  # an address that was handed on
    other.goto(address)
    expect(other.locator(".hit")).to_contain_text("Wilma")


def test_a_message_far_beyond_what_is_loaded_is_shown_amid_others_and_leads_back_to_now(
    chat: Chat,
) -> None:
    page = chat.page
    page.goto(f"{chat.product.url}/#/search?q=海象&kind=messages")
    page.locator(".hit").get_by_role("button").click()
    found = page.locator(f"#m-{FAR}")
    expect(found).to_be_in_viewport()
    expect(found).to_contain_text("walrus")
    assert page.locator("#timeline .message").count() <= 60, "only what lies around it is loaded"
    later = f"m-msg-far-{LONG_AGO + 60:05d}"
    while not page.evaluate(DOWN_TO, later):  # one reads on, a page after the other
        continue
    expect(page.locator(f"#{later}")).to_be_in_viewport()
    expect(page.locator("#announcer")).to_be_empty()  # it was loaded, not said
    expect(found).not_to_be_in_viewport()
    expect(page.locator("#m-msg-far-02999")).to_have_count(0)
    page.get_by_role("button", name="Latest").click()
    expect(page.locator("#m-msg-far-02999")).to_be_in_viewport()
    chat.send("status")  # what is said now is heard again
    expect(chat.message("status").first).to_be_in_viewport()
    expect(page.locator(f"#m-{FAR}")).to_have_count(0)


def test_nothing_typed_nothing_found_and_a_failure_say_so(chat: Chat) -> None:
    chat.complaints.expect("503")
    page = chat.page
    page.goto(f"{chat.product.url}/#/search")
    expect(page.locator(".empty")).to_contain_text("What are you looking for?")
    page.get_by_role("searchbox").fill("xyzzyplugh")
    expect(page.locator(".empty")).to_contain_text("Nothing found")
    error = {"code": "storage", "message": "the disk does not answer", "field": None, "params": {}}
    page.route("**/api/search?*", lambda route: route.fulfill(status=503, json={"error": error}))
    page.get_by_role("searchbox").fill("walrus")
    expect(page.locator(".empty")).to_contain_text("the disk does not answer")
    page.unroute("**/api/search?*")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".hit").first).to_be_visible()
    page.get_by_role("button", name="Clear the search").click()
    expect(page.get_by_role("searchbox")).to_be_focused()
    expect(page.locator(".empty")).to_contain_text("What are you looking for?")
