"""The page while nobody looks at it, and as an app of its own."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

HIDE = """
Object.defineProperty(document, "hidden", {get: () => window.away === true});
Object.defineProperty(document, "visibilityState", {get: () => window.away ? "hidden" : "visible"});
window.look = (away) => {
  window.away = away;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""
RECORD = """
window.notes = [];
window.Notification = class {
  static get permission() { return localStorage.getItem("permission") ?? "default"; }
  static async requestPermission() {
    window.asked = true;
    localStorage.setItem("permission", "granted");
    return "granted";
  }
  constructor(title, options) {
    Object.assign(this, {title, ...options});
    window.notes.push(this);
    document.documentElement.dataset.notes = window.notes.map((one) => one.body).join("|");
  }
  close() {}
};
"""
"""The browser's own, which a browser without a screen always refuses."""
ASK = {"call": "ask_user", "args": {"question": "Which heron?", "options": ["grey", "white"]}}


def hide(page: Page, *, away: bool = True) -> None:
    page.evaluate("(away) => window.look(away)", away)


def icon_of(page: Page) -> str:
    return page.locator("link[rel=icon]").get_attribute("href") or ""


def test_what_comes_unseen_is_counted_in_every_tab_until_one_is_looked_at(
    product: Product, context: BrowserContext, open_chat: OpenChat
) -> None:
    context.add_init_script(HIDE)
    one = open_chat(product).page
    two = context.new_page()
    two.goto(product.url)
    expect(two.locator(".connection.is-online")).to_be_attached()
    own = icon_of(one)
    for page in (one, two):
        expect(page).to_have_title("mimikit")
        hide(page)
    product.say("status", "msg-unread-1")
    for page in (one, two):
        expect(page).to_have_title("(1) mimikit")
        expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("^data:image"))
        assert icon_of(page) == icon_of(one)
    one.reload()  # what nobody saw stays unseen
    hide(two, away=False)
    for page in (one, two):
        expect(page).to_have_title("mimikit")
        assert icon_of(page) == own
    hide(two)
    product.say("status", "msg-unread-2")
    expect(two).to_have_title("mimikit")  # the other is looked at


def test_a_failure_is_told_once_while_nobody_looks_and_leads_to_it(
    product: Product, context: BrowserContext, open_chat: OpenChat
) -> None:
    context.add_init_script(HIDE)
    context.add_init_script(RECORD)
    chat = open_chat(product)
    one = chat.page
    two = context.new_page()
    two.goto(product.url)
    expect(two.locator(".connection.is-online")).to_be_attached()
    one.goto(f"{product.url}/#/settings")
    switch = one.get_by_role("switch", name="Notify me while hidden")
    expect(switch).to_have_attribute("aria-checked", "false")
    assert not one.evaluate("() => window.asked"), "only a click asks"
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    one.goto(f"{product.url}/#/tasks")
    hide(one)
    product.say("run: exit 41", "msg-told-1")  # the other tab is looked at: not a word
    heard = one.locator("#panel-body li", has_text="exit 41").filter(has_text="ended with an error")
    expect(heard.first).to_be_attached()
    hide(two)
    product.say("run: exit 42", "msg-told-2")
    told = one.locator("html[data-notes]")
    expect(told).to_be_attached()
    expect(one).to_have_title(re.compile(r"^\(\d"))
    notes = [page.evaluate("() => window.notes.map((one) => one.body)") for page in (one, two)]
    assert [len(each) for each in notes] == [1, 0], "by one of the tabs"
    assert "exit 42" in notes[0][0]
    one.evaluate("() => window.notes[0].onclick()")
    expect(one).to_have_url(re.compile("#/task/"))


def test_a_question_is_told_and_its_click_leads_to_the_answer(
    fresh: Callable[..., Product], context: BrowserContext, open_chat: OpenChat
) -> None:
    product = fresh({"teller": [[ASK]]})
    product.start()
    context.add_init_script(HIDE)
    context.add_init_script(RECORD)
    for key, value in (("mimikit.notify", "on"), ("permission", "granted")):
        script = f"localStorage.setItem('{key}', '{value}')"
        context.add_init_script(f"if (location.origin === '{product.url}') {script}")
    page = open_chat(product).page
    hide(page)
    product.say("which one shall I count?", "msg-asks")
    expect(page.locator("html")).to_have_attribute("data-notes", "Which heron?")
    expect(page).to_have_title(re.compile(r"^\(\d\) mimikit"))
    hide(page, away=False)
    page.evaluate("() => window.notes[0].onclick()")
    expect(page.locator(":focus")).to_be_attached()


def test_where_the_browser_refuses_the_switch_is_closed_and_says_why(
    product: Product, context: BrowserContext, open_chat: OpenChat
) -> None:
    context.add_init_script(
        "Object.defineProperty(Notification, 'permission', {get: () => 'denied'})"
    )
    page = open_chat(product).page
    page.goto(f"{product.url}/#/settings")
    switch = page.get_by_role("switch", name="Notify me while hidden")
    expect(switch).to_be_disabled()
    expect(page.locator("#notify-hint")).to_contain_text("told to block it")


def test_over_plain_http_from_afar_it_is_greyed_and_says_why(
    product: Product, context: BrowserContext, open_chat: OpenChat
) -> None:
    context.add_init_script("Object.defineProperty(window, 'isSecureContext', {get: () => false})")
    page = open_chat(product).page
    page.goto(f"{product.url}/#/settings")
    expect(page.get_by_role("switch", name="Notify me while hidden")).to_be_disabled()
    expect(page.locator("#notify-hint")).to_contain_text("only over https")
    expect(page.get_by_role("button", name="Install as an app")).to_be_disabled()


# ---- an app of its own


def test_it_can_be_installed_as_far_as_the_browser_judges(chat: Chat) -> None:
    page = chat.page
    address = page.locator("link[rel=manifest]").get_attribute("href") or ""
    assert re.fullmatch(r"/assets/[0-9a-f]{16}/manifest\.webmanifest", address)
    answer = page.context.request.get(chat.product.url + address)
    assert answer.headers["content-type"] == "application/manifest+json"
    manifest = answer.json()
    base = address.rpartition("/")[0]
    sizes: dict[str, set[str]] = {}
    for icon in manifest["icons"]:
        picture = page.context.request.get(f"{chat.product.url}{base}/{icon['src']}")
        assert picture.ok
        sizes.setdefault(icon["purpose"], set()).add(icon["sizes"])
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", picture.body()[16:24])
            assert f"{width}x{height}" == icon["sizes"]
    assert {"192x192", "512x512"} <= sizes["any"] & (sizes["maskable"] | {"192x192", "512x512"})
    session = page.context.new_cdp_session(page)
    told = session.send("Page.getAppManifest")
    assert told["errors"] == []
    errors: list[dict[str, Any]] = session.send("Page.getInstallabilityErrors")[
        "installabilityErrors"
    ]
    # A window of tests is a private one, which the browser never installs from.
    assert {error["errorId"] for error in errors} <= {"in-incognito"}


def test_its_worker_tells_that_the_server_is_away_and_keeps_nothing(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh()
    product.start()
    chat = open_chat(product)
    page = chat.page
    chat.complaints.expect("ERR_CONNECTION_REFUSED|503|ERR_FAILED")
    assert page.evaluate("() => navigator.serviceWorker.ready.then((one) => one.scope)") == (
        f"{product.url}/"
    )
    chat.reload()
    chat.send("status")
    expect(page.locator(".message.is-agent").first).to_be_visible()
    past = """() => performance.getEntriesByType("resource").filter(
      (one) => one.workerStart > 0 && one.workerFinalSourceType !== "network")"""
    assert page.evaluate(past) == [], "only the page itself is its business"
    stored = "() => caches.keys()"
    assert page.evaluate(stored) == []
    product.stop("web")
    page.reload()
    expect(page.get_by_role("heading", name="mimikit cannot be reached")).to_be_visible()
    assert "status" not in page.content().replace('role="status"', ""), "nothing of what was said"
    product.start("web")
    expect(page.locator("#composer")).to_be_visible()  # by itself
    expect(page.locator(".connection.is-online")).to_be_attached()


def test_the_worker_is_asked_for_anew_each_time_and_has_no_store(chat: Chat) -> None:
    page = chat.page
    worker = page.context.request.get(f"{chat.product.url}/sw.js")
    assert worker.headers["cache-control"] == "no-cache"
    assert "caches." not in worker.text()


def test_signing_out_leaves_nothing_for_the_worker_to_show(chat: Chat) -> None:
    chat.complaints.expect("401")
    page = chat.page
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    chat.reload()
    page.goto(f"{chat.product.url}/#/settings")
    page.get_by_role("button", name="Log out").click()
    expect(page.locator(".login")).to_be_visible()
    page.reload()
    expect(page.locator(".login")).to_be_visible()
    assert page.evaluate("() => caches.keys()") == []
