"""The scroll position: kept, following the end, or a button to go there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product, lay_history, running

pytestmark = pytest.mark.browser

TOPS = """(box) => Object.fromEntries([...box.querySelectorAll(".message")].map(
  (one) => [one.id, one.getBoundingClientRect().top]))"""
LEFT = "(box) => box.scrollHeight - box.scrollTop - box.clientHeight"


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with a long past."""
    root = tmp_path_factory.mktemp("talkative")
    with running(root, lay=lambda product: lay_history(product, 240)) as product:
        yield product


@pytest.fixture
def long(talkative: Product, open_chat: OpenChat) -> Chat:
    chat = open_chat(talkative)
    expect(chat.page.locator("#timeline .message").last).to_be_in_viewport()
    return chat


def held(chat: Chat, change: Callable[[], None]) -> float:
    """How far what is read moved while something changed. Units: pixels."""
    box = chat.page.locator("#scroll")
    before = box.evaluate(TOPS)
    change()
    after = box.evaluate(TOPS)
    seen = [name for name, top in before.items() if 60 < top < 600 and name in after]
    assert seen
    return max(abs(after[name] - before[name]) for name in seen)


def test_older_messages_come_on_top_and_what_is_read_stays(long: Chat) -> None:
    box = long.page.locator("#scroll")
    long.page.route("**/api/messages?*", lambda route: route.abort())
    long.complaints.expect("net::ERR_FAILED")
    box.evaluate("(box) => { box.scrollTop = 300; }")
    expect(long.page.get_by_role("button", name="could not be loaded")).to_be_visible()
    long.page.unroute("**/api/messages?*")
    long.page.get_by_role("button", name="could not be loaded").evaluate("(one) => one.click()")
    expect(long.page.locator("#m-msg-old-0219")).to_be_attached()
    box.evaluate("(box) => { box.scrollTop = 900; }")
    assert held(long, lambda: wait_for_older(long, "#m-msg-old-0170")) <= 2


def wait_for_older(chat: Chat, first: str) -> None:
    """Going near the top loads the page before."""
    expect(chat.page.locator(first)).to_be_attached()


def test_new_messages_do_not_move_a_reader_who_is_further_up(long: Chat) -> None:
    box = long.page.locator("#scroll")
    box.evaluate("(box) => { box.scrollTop = box.scrollHeight - 2500; }")
    expect(long.page.get_by_role("button", name="Latest")).to_be_visible()

    def told() -> None:
        long.product.say("run: echo news-for-later", "msg-news")
        expect(long.page.get_by_role("button", name="1 new")).to_be_visible()

    assert held(long, told) <= 2
    long.page.get_by_role("button", name="1 new").click()
    expect(long.told("news-for-later")).to_be_in_viewport()
    expect(long.page.get_by_role("button", name="Latest")).to_have_count(0)


def is_at_the_end(chat: Chat) -> None:
    """It follows within a frame or two of what grew."""
    box = chat.page.locator("#scroll")
    chat.product.wait_until(lambda: box.evaluate(LEFT) <= 2)


def test_a_reader_at_the_end_stays_there(long: Chat) -> None:
    long.send("run: seq 60")
    expect(long.told("60")).to_be_visible()
    is_at_the_end(long)
    long.field.fill("\n".join("a taller field" for _ in range(6)))
    expect(long.field).to_have_value("\n".join("a taller field" for _ in range(6)))
    is_at_the_end(long)
    long.page.set_viewport_size({"width": 700, "height": 500})
    is_at_the_end(long)
    long.field.fill("")
