"""A phone under a finger, a hidden page, two tabs, and small promises of several pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ENGLISH
from tests.browser.looking import TOO_WIDE
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
TOO_SMALL = """() => [...document.querySelectorAll("button, a[href], input, select, textarea")]
  .filter((one) => !one.closest("[inert], .sr-only, label"))
  .map((one) => [one, one.getBoundingClientRect(), parseFloat(getComputedStyle(one).fontSize)])
  .filter(([one, box, font]) => box.width > 1
    && (box.height < 43.5 || (one.matches("input, select, textarea") && font < 16)))
  .map(([one, box, font]) => `${one.outerHTML.slice(0, 90)} ${box.height} ${font}`)"""
PLACES = ("home", "tasks", "triggers", "triggers/new", "memory", "backlog", "engines", "settings")
HIDE = """globalThis.shown = [];
globalThis.Notification = class {
  static permission = "granted";
  constructor(title, {body}) { shown.push(`${title}: ${body}`); }
};
Object.defineProperty(document, "hidden", {get: () => globalThis.hidden ?? false});
localStorage.setItem("mimikit.notify", "on");"""


@pytest.fixture
def browser_context_args(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {**ENGLISH, **getattr(request, "param", {})}


@pytest.mark.parametrize("browser_context_args", [PHONE], indirect=True)
def test_a_finger_hits_everything_and_a_long_press_shows_the_acts(chat: Chat) -> None:
    page, found = chat.page, dict[str, list[str]]()
    chat.field.fill("run: seq 9000;")
    chat.field.press("Enter")
    page.keyboard.type("echo " + "wide" * 40)
    expect(chat.field).to_have_value(re.compile("9000;\necho wide"))
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#timeline")).to_contain_text("more characters")
    for place in PLACES:
        page.goto(f"{chat.product.url}/#/{place}")
        expect(page.locator(".loading:visible")).to_have_count(0)
        found[place] = page.evaluate(TOO_SMALL) + page.evaluate(TOO_WIDE)
    page.goto(f"{chat.product.url}/#/")
    found["chat"] = page.evaluate(TOO_SMALL) + page.evaluate(TOO_WIDE)
    assert {place: bad for place, bad in found.items() if bad} == {}
    message = page.locator(".message.is-user").last
    message.dispatch_event("pointerdown", {"bubbles": True, "pointerType": "touch"})
    expect(message.get_by_role("button", name="Quote")).to_be_visible()


def test_a_hidden_page_counts_what_comes_and_notifies_of_what_is_urgent(chat: Chat) -> None:
    page, product = chat.page, chat.product
    page.add_init_script(HIDE)
    chat.reload()
    expect(page.locator(".connection.is-online")).to_be_attached()
    page.evaluate("globalThis.hidden = true")
    product.say("every 1 second run id -u", "msg-hidden-1")
    product.say("run: exit 5", "msg-hidden-2")
    product.say("remind me in 1 second to stretch", "msg-hidden-3")
    product.wait_until(lambda: bool(product.call("GET", "/api/triggers")["triggers"]))
    product.say("stop it", "msg-hidden-4")
    expect(page.locator("#question")).to_be_attached()
    expect(chat.message("Reminder: stretch").last).to_be_attached()
    expect(page).to_have_title(re.compile(r"^\([4-7]\) mimikit$"))
    expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("unread"))
    urgent = {"Reminder: stretch", "Failed: exit 5 failed: exit code 5."}
    assert urgent | {"mimikit asks: Which one shall I cancel?"} <= set(page.evaluate("shown"))
    page.evaluate("hidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page).to_have_title("mimikit")
    page.locator("#question").get_by_role("button", name="No, leave it").click()


def test_a_search_stands_in_the_address_and_a_draft_in_its_tab(chat: Chat) -> None:
    page, product = chat.page, chat.product
    chat.send("backlog add: feed the otter")
    page.goto(f"{product.url}/#/memory?q=otter")
    chat.reload()
    expect(page.get_by_role("searchbox")).to_have_value("otter")
    chat.field.fill("mine")
    other = page.context.new_page()
    other.goto(f"{product.url}/#/backlog")
    expect(other.locator("#composer")).to_have_value("")
    other.get_by_role("button", name="Let the assistant do it: feed the otter").click()
    expect(other.locator("#timeline .is-user", has_text="feed the otter")).to_have_count(2)
    chat.reload()
    expect(chat.field).to_have_value("mine")


def test_the_page_can_be_installed(chat: Chat) -> None:
    page, home = chat.page, f"{chat.product.url}/"
    link = page.locator("link[rel=manifest]").get_attribute("href")
    address = urljoin(home, link or "")
    manifest = page.request.get(address).json()
    (icon,) = manifest["icons"]
    assert page.request.get(urljoin(address, icon["src"])).ok
    assert manifest["display"] == "standalone"
    assert urljoin(address, manifest["start_url"]) == home


def test_chinese_emphasis_is_rendered_while_it_streams(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh({"teller": [{"say": "先看**重点。**然后\n\n再"}, {"hang": True}]})
    product.start()
    chat = open_chat(product)
    chat.send("说")
    expect(chat.page.locator("#timeline .prose strong", has_text="重点。")).to_be_visible()
    expect(chat.page.get_by_role("button", name="Stop", exact=True)).to_be_visible()


def test_a_schedule_shows_its_runs_as_marks_and_stands_next_at_home(chat: Chat) -> None:
    page, product = chat.page, chat.product
    chat.send("every 3 hours run true")
    product.wait_until(lambda: bool(product.call("GET", "/api/triggers")["triggers"]))
    (trigger,) = product.call("GET", "/api/triggers")["triggers"]
    page.goto(f"{product.url}/#/triggers")
    for runs in (1, 2):
        product.call("POST", f"/api/triggers/{trigger['id']}/run", {})
        expect(page.locator("#panel .marks .mark")).to_have_count(runs)
    page.goto(f"{product.url}/#/home")
    expect(page.locator("[data-group=next]")).to_contain_text("every 3 hours")
    expect(page.get_by_role("link", name="tokens")).to_be_visible()
