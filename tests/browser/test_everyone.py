"""Accessibility: both languages, both themes, small screens, keyboards, screen readers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat
from tests.browser.product import Product, running

pytestmark = pytest.mark.browser


@dataclass
class LivedIn:
    """A product with something of everything to look at."""

    product: Product
    running: str
    failed: str


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivedIn]:
    ids: dict[str, str] = {}

    def there(product: Product) -> bool:
        for task in product.call("GET", "/api/tasks")["tasks"]:
            if task["seat"] == "worker":
                ids[task["state"]] = task["id"]
        triggers = product.call("GET", "/api/triggers")["triggers"]
        return {"running", "failed"} <= ids.keys() and bool(triggers)

    with running(tmp_path_factory.mktemp("lived-in")) as product:
        product.say("run: echo ok; exit 4", "msg-failed")
        product.say("run: sleep 300", "msg-running")
        product.say("every 3 hours run true", "msg-trigger")
        product.wait_until(lambda: there(product))
        yield LivedIn(product, ids["running"], ids["failed"])


@for_everyone
def test_axe_finds_nothing_serious_and_nothing_goes_sideways(
    browser: Browser, lived_in: LivedIn, scheme: Any, language: str, width: int
) -> None:
    product = lived_in.product
    with looking(browser, scheme, language, width, expected="401") as (page, look):
        page.goto(product.url)
        expect(page.locator("#token")).to_be_visible()
        look("login")
        page.goto("about:blank")
        page.goto(product.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        look("chat")
        page.locator("[popovertarget=settings]").click()
        look("settings")
        page.keyboard.press("Escape")
        for place in (
            "home",
            "tasks",
            "triggers",
            f"task/{lived_in.running}",
            f"task/{lived_in.failed}",
        ):
            page.goto(f"{product.url}/#/{place}")
            expect(page.locator("#panel :is(.row, .trigger, .facts)").first).to_be_visible()
            look(place)


def test_the_language_is_changed_and_kept(chat: Chat) -> None:
    page = chat.page
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("textbox", name="消息")).to_have_attribute(
        "placeholder", "给 mimikit 发消息"
    )
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    chat.reload()
    expect(page.get_by_role("link", name="触发器")).to_be_visible()
    page.get_by_role("button", name="设置").click()
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("link", name="Triggers")).to_be_visible()


def test_the_theme_is_the_system_s_until_one_is_chosen_and_then_never_flashes(chat: Chat) -> None:
    page = chat.page
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(background)
    assert dark != light
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(background) == light
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => { window.early = document.body"
        " ? document.documentElement.dataset.theme : 'none'; });"
    )
    chat.reload()
    assert page.evaluate("window.early") == "light"
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="System").click()
    assert page.evaluate(background) == dark


def test_a_narrow_screen_shows_one_place_at_a_time_and_goes_back(chat: Chat) -> None:
    page = chat.page
    page.set_viewport_size({"width": 360, "height": 740})
    chat.send("run: echo on-a-phone")
    expect(chat.told("on-a-phone")).to_be_visible()
    expect(page.locator("#panel")).not_to_be_visible()
    page.get_by_role("link", name="Tasks").click()
    expect(page.locator("#chat")).not_to_be_visible()
    page.locator("[data-group=ended] .row-link").first.click()
    expect(page.locator(".task")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("[data-group=ended] .row-link").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#chat")).to_be_visible()
    expect(chat.field).to_be_focused()
    expect(chat.message("on-a-phone").last).to_be_in_viewport()


def test_everything_is_reached_by_the_keyboard(chat: Chat) -> None:
    page = chat.page
    chat.send("run: echo by-hand")
    expect(chat.told("by-hand")).to_be_visible()
    chat.reload()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to the message field")).to_be_focused()
    page.keyboard.press("Enter")
    expect(chat.field).to_be_focused()
    reached: set[str] = set()
    page.locator(".skip").focus()
    for _ in range(200):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(document.activeElement.getAttribute('aria-label') ||"
            " document.activeElement.textContent || document.activeElement.id).trim()"
        )
        reached.add(name)
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        is_field = page.evaluate("document.activeElement.id === 'composer'")
        assert (
            outline != "none"
            or is_field
            or page.evaluate("document.activeElement === document.body")
        ), name
        if "Triggers" in reached and any("by-hand" in one for one in reached):
            break
    assert {"Settings", "Conversation", "Hide the side panel", "Triggers"} <= reached
    page.get_by_role("button", name="Settings").press("Enter")
    expect(page.locator("#settings")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#settings")).not_to_be_visible()


def test_who_listens_hears_what_was_answered(chat: Chat) -> None:
    log = chat.page.get_by_role("log")
    expect(log).to_be_empty()
    chat.send("run: echo heard-by-ear")
    expect(log).to_contain_text("heard-by-ear")
    assert chat.page.locator("ul[role=log], ol[role=log]").count() == 0
