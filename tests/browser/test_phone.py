"""On a phone: every place can be touched and read, and one writes in one field only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from mimikit.clock import SystemClock
from mimikit.protocol import paths
from mimikit.protocol.models import Question
from tests.browser.looking import TOO_WIDE, violations
from tests.browser.pages import DRAWN, Chat, OpenChat
from tests.browser.product import Product, make_product

PHONE: dict[str, Any] = {
    "viewport": {"width": 360, "height": 740},
    "has_touch": True,
    "is_mobile": True,
}
pytestmark = [pytest.mark.browser, pytest.mark.browser_context_args(**PHONE)]

ROUTES = Path(__file__).parents[2] / "webui/js/route.js"
SMALL = """() => {
  const named = (one) => `${one.tagName.toLowerCase()}.${one.className} "${
    (one.ariaLabel || one.textContent || one.placeholder || one.id).trim().slice(0, 40)}"`;
  const seen = (one) => one.checkVisibility({opacityProperty: true, visibilityProperty: true})
    && !one.closest("[inert], .sr-only, .skip") && !one.disabled;
  const isInText = (one) => getComputedStyle(one).display === "inline"
    && [...one.parentElement.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const bad = [];
  const targets = document.querySelectorAll(
    "a[href], button, select, summary, textarea, input, [role=button]");
  for (const one of targets) {
    if (!seen(one) || one.closest(".prose a, .prose input")) continue;
    if (one.tagName === "A" && isInText(one)) continue;
    const ticks = one.matches("[type=checkbox], [type=radio]");
    const place = ticks ? one.closest("label") ?? one : one;
    const {width, height} = place.getBoundingClientRect();
    if (width < 43.5 || height < 43.5) {
      bad.push(`${named(one)} is ${Math.round(width)} x ${Math.round(height)}`);
    }
    const size = parseFloat(getComputedStyle(one).fontSize);
    if (one.matches("input:not([type=checkbox], [type=radio]), textarea, select") && size < 16) {
      bad.push(`${named(one)} has ${size} px`);
    }
  }
  return bad;
}"""
SIDEWAYS = "() => document.documentElement.scrollWidth - innerWidth"


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product with something of everything, and a question that waits."""
    product = make_product(tmp_path_factory.mktemp("phone"))

    def there() -> bool:
        tasks = product.call("GET", "/api/tasks")["tasks"]
        states = {task["state"] for task in tasks}
        triggers = product.call("GET", "/api/triggers")["triggers"]
        return {"running", "failed", "done"} <= states and bool(triggers)

    try:
        product.start()
        product.say("run: echo a; exit 4", "msg-failed")
        product.say("run: echo fine", "msg-done")
        product.say("run: sleep 300", "msg-running")
        product.say("every 3 hours run true", "msg-trigger")
        product.say("remember that the phone of the test is small", "msg-note")
        product.wait_until(there)
        ask(product)
        yield product
    finally:
        product.stop()


def ask(product: Product) -> None:
    now = SystemClock().now()
    question = Question(
        question_id="ques-phone",
        question="Which branch shall I take, now that both are there?",
        options=["left", "right, as always before"],
        default="left",
        timeout=3600,
        created_at=now,
        expires_at=now + timedelta(hours=1),
    )
    product.files.save(paths.PENDING_QUESTION, question)


def places(product: Product) -> Iterator[str]:
    """All places that have an address, each of those that show one thing with one."""
    yield from ("", *sorted(re.findall(r'"#/([\w/]+)":', ROUTES.read_text())))
    tasks = product.call("GET", "/api/tasks")["tasks"]
    for state in ("running", "failed", "done"):
        yield next(f"task/{task['id']}" for task in tasks if task["state"] == state)
    (trigger, *_) = product.call("GET", "/api/triggers")["triggers"]
    yield from (f"trigger/{trigger['id']}", f"trigger/{trigger['id']}/edit")
    yield from ("logs", "memory/memory.md", "memory/memory.md?edit", "search?q=fine")
    messages = product.call("GET", "/api/messages")["messages"]
    yield next(f"reason/{one['turnId']}" for one in messages if one["role"] == "agent")


def faults(page: Page) -> list[str]:
    sideways = page.evaluate(SIDEWAYS)
    return [
        *page.evaluate(SMALL),
        *page.evaluate(TOO_WIDE),
        *([f"the page scrolls sideways by {sideways}"] if sideways > 0 else []),
    ]


def test_everything_can_be_touched_and_read(lived_in: Product, open_chat: OpenChat) -> None:
    page = open_chat(lived_in).page
    page.emulate_media(reduced_motion="reduce")
    found: dict[str, list[str]] = {}
    for place in places(lived_in):
        page.goto(f"{lived_in.url}/#/{place}")
        page.evaluate(DRAWN)
        if place:
            expect(page.locator("#panel-body > *").first).to_be_visible()
        expect(page.locator("#app :is(.loading, .spinner):visible")).to_have_count(0)
        found[place or "chat"] = faults(page)
    page.goto(f"{lived_in.url}/#/")
    page.locator(".tool").last.click()
    expect(page.locator("#message-sheet")).to_be_visible()
    found["sheet"] = faults(page)
    page.keyboard.press("Escape")
    page.locator(".engines").click()
    found["engines-box"] = faults(page)
    assert {name: bad for name, bad in found.items() if bad} == {}


def test_the_login_can_be_touched(lived_in: Product, page: Page) -> None:
    page.goto(lived_in.url)
    expect(page.locator("#token")).to_be_visible()
    assert faults(page) == []


def press_long(page: Page, selector: str) -> Callable[[], None]:
    """A finger lies on it; what is given lifts it."""
    page.locator(selector).hover(trial=True)  # once it stays where it is
    box = page.locator(selector).bounding_box()
    assert box
    point = {"x": box["x"] + 12, "y": box["y"] + 12}
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})

    def lift() -> None:
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    return lift


def test_a_long_press_brings_the_actions_from_below(chat: Chat) -> None:
    page = chat.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.product.say("run: echo pressed-long", "msg-pressed")
    mine = page.locator("#m-msg-pressed")
    expect(mine).to_have_attribute("data-delivery", "answered")
    expect(chat.told("pressed-long")).to_be_visible()
    expect(chat.field).not_to_be_focused()  # else the keyboard covers half of the page
    sheet = page.get_by_role("dialog", name="Actions for this message")
    lift = press_long(page, "#m-msg-pressed .plain")
    expect(sheet).to_be_visible()
    lift()
    expect(sheet.locator(".sheet-text")).to_have_text("run: echo pressed-long")
    assert violations(page) == []
    sheet.get_by_role("button", name="Copy message").tap()
    expect(sheet.get_by_role("button", name="Message copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "run: echo pressed-long"
    sheet.get_by_role("button", name="Edit and send again").tap()
    expect(sheet).not_to_be_visible()
    expect(chat.field).to_be_focused()
    expect(chat.field).to_have_value("run: echo pressed-long")
    page.get_by_role("button", name="Stop editing").tap()
    expect(chat.field).to_have_value("")
    mine.get_by_role("button", name="Actions for this message").tap()
    expect(sheet).to_be_visible()
    page.touchscreen.tap(180, 60)  # beside it
    expect(sheet).not_to_be_visible()
    chat.send("help")  # what is answered is shown as one reads it, not as it is written
    reply = page.locator("#timeline .message.is-agent:has(code)").last
    reply.get_by_role("button", name="Actions for this message").tap()
    expect(sheet.locator(".sheet-text code").first).to_be_visible()
    expect(sheet.locator(".sheet-text")).not_to_contain_text("`")


def test_an_open_question_is_answered_in_the_one_field(
    lived_in: Product, open_chat: OpenChat
) -> None:
    chat = open_chat(lived_in)
    page = chat.page
    card = page.get_by_role("region", name="Which branch shall I take")
    answer = page.get_by_role("textbox", name="Your answer")
    expect(answer).to_be_visible()
    assert page.locator("#chat :is(input, textarea):visible").count() == 1
    card.get_by_role("button", name="Write something else").tap()
    expect(chat.field).to_be_focused()
    chat.send("run: echo in-between")
    expect(page.locator(".is-user", has_text="in-between")).to_have_count(1)
    expect(card).to_be_visible()
    card.get_by_role("button", name="Answer in your own words").tap()
    expect(answer).to_be_focused()
    page.route("**/api/answer", lambda _: None)  # it is on its way
    answer.fill("straight on")
    with page.expect_request("**/api/answer") as asked:
        page.get_by_role("button", name="Answer", exact=True).tap()
    said: Any = asked.value.post_data_json
    assert said["text"] == "straight on"
    expect(card.get_by_role("button", name="left")).to_be_disabled()
    expect(chat.field).to_have_value("")


COVERED = """Object.defineProperty(VisualViewport.prototype, "height", {
  get: () => window.seen ?? innerHeight, configurable: true});"""


def test_a_keyboard_over_the_page_does_not_cover_where_one_writes(
    lived_in: Product, open_chat: OpenChat
) -> None:
    page = open_chat(lived_in).page
    page.add_init_script(COVERED)
    page.reload()
    field = page.locator("#composer")
    expect(field).to_be_visible()
    seen = (
        "(height) => { window.seen = height; visualViewport.dispatchEvent(new Event('resize')); }"
    )
    for height in (400, 740):
        page.evaluate(seen, height)
        expect(page.locator("#app")).to_have_js_property("clientHeight", height)
        box = field.bounding_box()
        assert box
        assert height - 120 < box["y"] + box["height"] <= height


def test_the_header_stays_whatever_is_scrolled_to(lived_in: Product, open_chat: OpenChat) -> None:
    page = open_chat(lived_in, "/#/engines").page
    page.locator("#engine-add").click()
    page.locator("#engine-form").evaluate("(one) => one.scrollIntoView({block: 'start'})")
    expect(page.locator("#engine-form")).to_be_in_viewport()
    expect(page.locator(".bar")).to_be_in_viewport(ratio=1)
