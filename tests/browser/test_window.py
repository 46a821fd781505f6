"""A long conversation, of which a part is drawn: the reader's place, finding, long texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.protocol.models import Message
from tests.browser.pages import DRAWN, Chat, OpenChat
from tests.browser.product import Product, lay_history, make_product

pytestmark = pytest.mark.browser

MESSAGES = 2000
MOST_NODES = 3000
NODES = """() => {
  const all = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
  let count = 1;
  while (all.nextNode()) count += 1;
  return count;
}"""
SEEN = """() => {
  const box = document.getElementById("scroll").getBoundingClientRect();
  return Object.fromEntries([...document.querySelectorAll("#timeline .message")]
    .map((one) => [one.id, one.getBoundingClientRect().top - box.top])
    .filter(([, top]) => top > 0 && top < box.height - 20));
}"""


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with a very long past, and one long message before its last."""
    product = make_product(tmp_path_factory.mktemp("very-talkative"))
    lay_history(product, MESSAGES)
    now = SystemClock().now()
    long = "\n\n".join(f"Paragraph {n} of many. It goes on." for n in range(400))
    HistoryStore(product.files).add(
        Message(id=id_, role="agent", text=text, created_at=now + timedelta(seconds=n))
        for n, (id_, text) in enumerate([("msg-old-long", long), ("msg-old-z-end", "The end.")])
    )
    try:
        product.start()
        yield product
    finally:
        product.stop()


@pytest.fixture
def long(talkative: Product, open_chat: OpenChat) -> Chat:
    """The page with all of it loaded."""
    chat = open_chat(talkative)

    def whole(route: Route) -> None:
        answer = route.fetch()
        data: dict[str, Any] = answer.json()
        while data["before"]:
            page = talkative.call("GET", f"/api/messages?limit=200&before={data['before']}")
            data["messages"] = page["messages"] + data["messages"]
            data["before"] = page["before"]
        route.fulfill(json=data)

    chat.page.route("**/api/snapshot", whole)
    chat.reload()
    expect(chat.page.locator("#m-msg-old-z-end")).to_be_in_viewport()
    chat.page.unroute("**/api/snapshot")
    return chat


def scroll(page: Page, by: str) -> None:
    """Go to a place, given as an expression of the box; returns when all is drawn there."""
    page.locator("#scroll").evaluate(f"(box) => {{ box.scrollTop = {by}; }}")
    page.evaluate(DRAWN)


def moved(before: dict[str, float], after: dict[str, float]) -> float:
    """By how much what was seen has moved most. Units: pixels."""
    both = before.keys() & after.keys()
    assert both, (before, after)
    return max((after[name] - before[name] for name in both), key=abs)


@pytest.mark.fault("complaint 20")
def test_of_two_thousand_messages_few_are_drawn_and_each_is_where_one_scrolls_to(
    long: Chat,
) -> None:
    page = long.page
    assert page.evaluate(NODES) <= MOST_NODES
    for share in (0.5, 0.1, 0.9, 0, 1):
        scroll(page, f"(box.scrollHeight - box.clientHeight) * {share}")
        seen = page.evaluate(SEEN)
        assert len(seen) >= 2, (share, seen)
        assert page.evaluate(NODES) <= MOST_NODES
    scroll(page, "0")
    expect(page.locator("#m-msg-old-0000")).to_be_in_viewport()
    scroll(page, "box.scrollHeight")
    expect(page.locator("#m-msg-old-z-end")).to_be_in_viewport()


def test_what_is_read_moves_with_the_wheel_alone_whatever_is_drawn_above(long: Chat) -> None:
    page = long.page
    scroll(page, "box.scrollHeight / 2")
    for by in (-250, -400, -400, -400, -400, -400, 300, 300):
        before = page.evaluate(SEEN)
        scroll(page, f"box.scrollTop + {by}")
        assert abs(moved(before, page.evaluate(SEEN)) + by) <= 2


def kept(page: Page, change: Callable[[], object]) -> None:
    """What is read stays where it is, whatever changes around it."""
    before = page.evaluate(SEEN)
    change()
    page.evaluate(DRAWN)
    assert abs(moved({k: before[k] for k in list(before)[:1]}, page.evaluate(SEEN))) <= 2


def test_the_place_survives_another_size_language_theme_and_what_is_said_meanwhile(
    long: Chat,
) -> None:
    page = long.page
    scroll(page, "box.scrollHeight * 0.4")
    scroll(page, "box.scrollTop - 300")
    for width, height in ((900, 700), (420, 640), (1280, 820)):
        size: Any = {"width": width, "height": height}
        kept(page, lambda size=size: page.set_viewport_size(size))

    def choose(name: str) -> Callable[[], None]:
        button = page.locator("#panel").get_by_role("button", name=name, exact=True)
        return lambda: button.evaluate("(one) => one.click()")

    page.get_by_role("link", name="Settings").first.click()
    expect(page.locator("#panel").get_by_role("button", name="Dark", exact=True)).to_be_visible()
    kept(page, choose("Dark"))
    kept(page, choose("中文"))
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    kept(page, choose("English"))

    def told() -> None:
        long.product.say("run: echo said-meanwhile", "msg-meanwhile")
        expect(page.locator(".latest.has-new")).to_be_visible()

    kept(page, told)


def test_words_are_found_in_all_of_it_and_marked_where_they_are(long: Chat) -> None:
    page = long.page
    page.locator("#scroll").focus()
    page.keyboard.press("Control+f")
    field = page.get_by_role("textbox", name="Find in the conversation")
    expect(field).to_be_focused()
    field.fill("old message 77.")
    expect(page.locator(".find-count")).to_have_text("1 of 1")
    found = page.locator("#m-msg-old-0077")
    expect(found).to_be_in_viewport()
    assert page.evaluate("CSS.highlights.get('found-here').size") == 1
    field.fill("old message 7")
    expect(page.locator(".find-count")).to_have_text("111 of 111")
    expect(page.locator("#m-msg-old-0799")).to_be_in_viewport()
    field.press("Enter")
    expect(page.locator("#m-msg-old-0798")).to_be_in_viewport()
    expect(page.locator(".find-count")).to_have_text("110 of 111")
    field.fill("no such words")
    expect(page.locator(".find-count")).to_have_text("Not found")
    field.press("Escape")
    expect(field).to_have_count(0)
    assert page.evaluate("CSS.highlights.has('found')") is False


def height_of(one: Locator) -> float:
    box = one.bounding_box()
    assert box
    return box["height"]


def test_a_long_message_is_shown_in_part_until_one_asks_for_all(long: Chat) -> None:
    row = long.page.locator("#m-msg-old-long")
    button = row.get_by_role("button", name="Show all · 14kB")
    button.scroll_into_view_if_needed()
    assert height_of(row) < 600
    button.click()
    expect(row.get_by_text("Paragraph 399 of many")).to_be_attached()
    assert height_of(row) > 6000
    row.get_by_role("button", name="Show less").click()
    expect(button).to_be_visible()
    expect(row).to_be_in_viewport()


def test_older_ones_are_looked_at_when_the_words_are_not_among_what_is_loaded(
    talkative: Product, open_chat: OpenChat
) -> None:
    page = open_chat(talkative).page
    expect(page.locator("#m-msg-old-z-end")).to_be_in_viewport()
    page.locator("#scroll").focus()
    page.keyboard.press("Control+f")
    field = page.get_by_role("textbox", name="Find in the conversation")
    field.fill("old message 1777.")
    expect(page.locator(".find-count")).to_have_text("Not found")
    field.press("Enter")
    expect(page.locator("#m-msg-old-1777")).to_be_in_viewport()


FAST = """([key, times]) => {
  for (let n = 0; n < times; n += 1)
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""
"""Keys that come faster than the page is drawn."""


@pytest.mark.nightly  # a machine that draws very slowly gives up some of the keys
def test_messages_are_walked_by_keys_faster_than_they_are_drawn(long: Chat) -> None:
    page = long.page
    page.locator("#scroll").focus()
    own = page.locator("#timeline > li:focus")
    # The last two are no numbered ones: of 40 steps up 38 are, and 30 lead down again.
    for key, times, number in (("k", 40, MESSAGES - 38), ("j", 30, MESSAGES - 8)):
        page.evaluate(FAST, [key, times])
        expect(own).to_have_id(f"m-msg-old-{number:04}")
        expect(own).to_be_in_viewport(ratio=0.3)
