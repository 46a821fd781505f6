"""The palette, the keys, the side panel's width: by keyboard first, and nothing of it is dead."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.looking import for_everyone, looking
from tests.browser.pages import DRAWN, SLOW_FRAMES, Chat
from tests.browser.product import Product

pytestmark = pytest.mark.browser


def open_palette(page: Page) -> Locator:
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search and commands")
    expect(field).to_be_focused()
    return field


def chosen(page: Page) -> Locator:
    return page.locator(".palette [role=option][aria-selected=true]")


def add_trigger(chat: Chat, id_: str, title: str) -> None:
    body = {"id": id_, "title": title, "prompt": "run: true", "schedule": {"interval": 86400}}
    chat.product.call("POST", "/api/triggers", body)


def test_it_opens_by_key_and_button_and_gives_the_focus_back(chat: Chat) -> None:
    page = chat.page
    chat.field.focus()
    open_palette(page)
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(chat.field).to_be_focused()
    page.get_by_role("button", name="Search and commands").click()
    expect(page.get_by_role("combobox")).to_be_focused()
    page.keyboard.press("Control+k")  # and it closes by the same key
    expect(page.locator("dialog[open]")).to_have_count(0)
    open_palette(page)
    page.mouse.click(5, 400)  # beside it
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_the_list_is_commanded_from_the_field(chat: Chat) -> None:
    page = chat.page
    field = open_palette(page)
    options = page.locator(".palette [role=option]")
    first, second = options.nth(0), options.nth(1)
    for key, option in (
        ("ArrowDown", second), ("ArrowUp", first), ("ArrowUp", options.last), ("ArrowDown", first),
    ):  # fmt: skip
        page.keyboard.press(key)
        expect(option).to_have_attribute("aria-selected", "true")
        expect(chosen(page)).to_have_count(1)
        id_ = option.get_attribute("id") or ""
        expect(field).to_have_attribute("aria-activedescendant", id_)
        expect(option).to_be_in_viewport()
        expect(field).to_be_focused()


def test_places_and_deeds_are_reached_by_a_few_letters(chat: Chat) -> None:
    page = chat.page
    for letters, shown in (
        ("mem", "#/memory"), ("usa", "#/usage"), ("newt", "#/triggers/new"), ("chat", "#/"),
    ):  # fmt: skip
        open_palette(page)
        page.keyboard.type(letters)
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{chat.product.url}/{shown}")
        expect(page.locator("dialog[open]")).to_have_count(0)
    open_palette(page)
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    open_palette(page)
    page.keyboard.type("zhongwen")
    page.keyboard.press("Enter")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.keyboard.press("Control+k")
    expect(page.locator("dialog[open] input")).to_be_focused()
    chat.complaints.expect("401")  # what is under way when one signs out
    page.keyboard.type("退出")
    expect(chosen(page)).to_have_text(re.compile("退出登录"))
    page.keyboard.press("Enter")
    expect(page.locator(".login")).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_a_trigger_is_opened_run_and_paused_from_it(chat: Chat) -> None:
    page = chat.page
    add_trigger(chat, "trig-palette", "Count the herons")
    expect(page.get_by_role("button", name="Search and commands")).to_be_visible()
    open_palette(page)
    page.keyboard.type("heron")
    expect(chosen(page)).to_contain_text("Count the herons")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/trigger/trig-palette$"))
    open_palette(page)
    page.keyboard.type("pause heron")
    page.keyboard.press("Enter")
    resume = page.locator("#panel").get_by_role("button", name="Resume")
    expect(resume).to_be_visible()
    open_palette(page)
    page.keyboard.type("resume heron")
    page.keyboard.press("Enter")
    expect(page.locator("#panel").get_by_role("button", name="Pause")).to_be_visible()


def test_what_was_said_is_found_below_and_all_of_it_by_the_last_line(chat: Chat) -> None:
    page = chat.page
    chat.send("the bittern booms")
    answered = page.locator('[data-delivery="answered"]', has_text="the bittern booms")
    expect(answered.first).to_be_visible()  # what waits in the inbox is not searched
    open_palette(page)
    page.keyboard.type("bittern")
    hit = page.locator(".palette [role=option]", has_text="booms").first
    expect(hit.locator("mark").first).to_have_text("bittern")
    hit.click()
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(chat.message("the bittern booms").first).to_be_in_viewport()
    open_palette(page)
    page.keyboard.type("bittern")
    page.locator(".palette [role=option]", has_text="Search everything for").click()
    expect(page).to_have_url(f"{chat.product.url}/#/search?q=bittern")
    expect(page.get_by_role("searchbox")).to_be_focused()


WATCH = """() => {
  const told = () => setTimeout(() => { document.documentElement.dataset.moved = "yes"; });
  const ours = (one) => one.closest?.("#over-palette") || one.dataset?.moved !== undefined;
  new MutationObserver((all) => all.some((one) => !ours(one.target)) && told()).observe(
    document.getElementById("app"), {subtree: true, childList: true, attributes: true});
  new MutationObserver((all) => all.some((one) => one.attributeName !== "data-moved") && told())
    .observe(document.documentElement, {attributes: true});
  const meant = (one) => one.matches("#composer, .keys-dialog *");
  addEventListener("focusin", (event) => meant(event.target) && told());
}"""
"""Marks the page once something outside the palette is drawn anew, or takes the focus."""
SETTLED = {"usage": ".usage-page .facts", "engines": "[data-engine=builtin]"}
"""Where the page stands before, and what is seen there once it is drawn."""


def test_nothing_it_offers_is_dead(chat: Chat) -> None:
    page = chat.page
    add_trigger(chat, "trig-alive", "Alive")
    offered: dict[str, str] = {}
    open_palette(page)
    for letter in "eoa":
        page.get_by_role("combobox").fill(letter)
        expect(page.locator("#palette-everywhere")).to_contain_text(f"“{letter}”")
        options = page.locator(".palette [role=option]:not([id^=palette-found])")
        ids = options.evaluate_all("(all) => all.map((one) => one.id)")
        offered = dict.fromkeys(ids, letter) | offered
    page.keyboard.press("Escape")
    assert len(offered) > 18
    del offered["palette-logout"]  # tried apart
    # What a trigger does goes on by itself: it comes last, else it counts for what follows.
    for id_ in sorted(offered, key=lambda id_: id_.endswith("trig-alive")):
        place = "engines" if id_ == "palette-place-usage" else "usage"  # one is not there yet
        page.goto(f"{chat.product.url}/#/{place}")
        expect(page.locator(SETTLED[place])).to_be_visible()
        page.locator("#scroll").focus()
        page.evaluate(DRAWN)
        page.evaluate(WATCH)
        open_palette(page).fill(offered[id_])
        option = page.locator(f'[id="{id_}"]')
        if id_ == "palette-export":  # what it does is a file: the page itself stays as it is
            with page.expect_download() as saved:
                option.evaluate("(one) => one.click()")
            assert saved.value.suggested_filename.endswith(".md")
            continue
        option.evaluate("(one) => one.click()")
        expect(page.locator("dialog.palette[open]")).to_have_count(0)
        expect(page.locator("html[data-moved]"), f"{id_} does nothing").to_be_attached()
        if id_ == "palette-help":  # it opens a moment after it is there: Escape is to close it
            expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        page.evaluate("() => { delete document.documentElement.dataset.moved; }")
        if "language" in id_:
            expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
            page.evaluate("() => localStorage.removeItem('mimikit.language')")
            chat.reload()


COMPOSING = """(key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown",
  {key, keyCode: 229, isComposing: true, bubbles: true, cancelable: true}))"""


def test_an_input_methods_keys_are_its_own(chat: Chat) -> None:
    page = chat.page
    open_palette(page)
    page.keyboard.type("mem")
    expect(chosen(page)).to_contain_text("Memory")
    for key in ("Enter", "ArrowDown", "Escape"):
        page.evaluate(COMPOSING, key)
    expect(page.locator("dialog[open]")).to_have_count(1)
    expect(chosen(page)).to_contain_text("Memory")
    page.keyboard.press("Escape")
    page.locator("#scroll").focus()
    for key in ("n", "?", "/", "p"):
        page.evaluate(COMPOSING, key)
    expect(page.locator("#scroll")).to_be_focused()
    expect(page.locator("dialog[open]")).to_have_count(0)


# ---- keys


def test_the_keys_lead_where_their_list_says(chat: Chat) -> None:
    page, keys = chat.page, chat.page.keyboard
    chat.field.focus()
    keys.type("gt?/n")
    expect(chat.field).to_have_value("gt?/n")  # while one types they are letters
    chat.field.fill("")
    page.locator("#scroll").focus()
    keys.press("?")
    list_ = page.get_by_role("dialog", name="Keys")
    expect(list_).to_be_visible()
    expect(list_.locator(".keys-row", has_text="Tasks")).to_contain_text("GthenT")
    keys.press("n")  # it is meant for what lies above
    expect(list_).to_be_visible()
    keys.press("Escape")
    expect(list_).to_be_hidden()
    for press, place in (("gm", "memory"), ("gr", "triggers"), ("gu", "usage"), ("gt", "tasks")):
        page.locator("#scroll").focus()
        keys.type(press)
        expect(page).to_have_url(f"{chat.product.url}/#/{place}")
    expect(page.locator(".places [aria-current=page]")).to_have_text("Tasks")
    page.locator("#scroll").focus()
    keys.press("n")
    expect(chat.field).to_be_focused()


def test_keys_of_one_letter_can_be_put_off(chat: Chat) -> None:
    page, keys = chat.page, chat.page.keyboard
    page.locator("#scroll").focus()
    keys.press("?")
    page.get_by_role("checkbox", name="Use keys of one letter").uncheck()
    keys.press("Escape")
    chat.reload()
    page.locator("#scroll").focus()
    keys.press("?")
    keys.press("n")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(chat.field).not_to_be_focused()
    open_palette(page)  # of more than one letter: it stays, and leads back
    keys.type("keys")
    keys.press("Enter")
    page.get_by_role("checkbox", name="Use keys of one letter").check()


def test_messages_are_walked_by_keys_and_each_is_in_sight(chat: Chat) -> None:
    page, keys = chat.page, chat.page.keyboard
    for number in range(8):
        chat.send(f"a walk, {number}" + "\n\nstep" * 6)
        expect(chat.message(f"a walk, {number}").first).to_be_visible()
    expect(page.locator("[data-delivery]:not([data-delivery=answered])")).to_have_count(0)
    page.locator("#scroll").focus()
    own = page.locator("#timeline > li:focus")
    seen: list[str] = []
    for _ in range(10):
        keys.press("k")
        expect(own).to_have_count(1)
        if seen:
            expect(own).not_to_have_attribute("id", seen[-1])
        expect(own).to_be_in_viewport(ratio=0.3)
        seen.append(own.get_attribute("id") or "")
    assert len(set(seen)) == 10, "one after the other"
    for id_ in reversed(seen[:-1]):
        keys.press("j")
        expect(own).to_have_attribute("id", id_)
    keys.press("l")
    expect(page.get_by_role("button", name="Latest")).to_have_count(0)


# ---- the side panel's width


def width(page: Page) -> float:
    return page.locator("#panel").evaluate("(one) => one.getBoundingClientRect().width")


def test_the_panel_is_drawn_wider_kept_and_set_back(chat: Chat) -> None:
    page = chat.page
    edge = page.get_by_role("separator", name="Width of the side panel")
    usual = width(page)
    box = edge.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 200
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 60, y)
    page.mouse.move(x - 120, y)
    page.mouse.up()
    assert width(page) == pytest.approx(usual + 120, abs=1)
    expect(edge).to_have_attribute("aria-valuenow", str(round(usual + 120)))
    chat.reload()
    assert width(page) == pytest.approx(usual + 120, abs=1)
    edge.dblclick()
    assert width(page) == pytest.approx(usual, abs=1)
    edge.focus()
    page.keyboard.press("ArrowLeft")
    assert width(page) == pytest.approx(usual + 24, abs=1)
    page.keyboard.press("End")
    assert width(page) == 300
    page.keyboard.press("Home")
    assert page.locator("#chat").bounding_box()["width"] >= 350  # pyright: ignore[reportOptionalSubscript]
    page.set_viewport_size({"width": 1000, "height": 800})  # what was drawn on a wider screen fits
    assert page.locator("#chat").bounding_box()["width"] >= 350  # pyright: ignore[reportOptionalSubscript]
    edge.focus()
    page.keyboard.press("Enter")


def test_the_panel_takes_the_full_page_and_escape_gives_it_back(chat: Chat) -> None:
    page = chat.page
    page.get_by_role("button", name="On the full page").click()
    expect(page.locator("#chat")).to_be_hidden()
    assert width(page) == 1280
    page.keyboard.press("Escape")
    expect(page.locator("#chat")).to_be_visible()
    page.locator("#scroll").focus()
    page.keyboard.press("f")
    expect(page.locator("#chat")).to_be_hidden()
    page.keyboard.press("n")  # what is in the chat is shown with it
    expect(chat.field).to_be_focused()
    expect(page.locator("#chat")).to_be_visible()


def test_one_writes_in_the_chat_again_however_late_it_is_drawn(chat: Chat) -> None:
    chat.page.add_init_script(SLOW_FRAMES)
    chat.reload()
    chat.page.get_by_role("button", name="On the full page").click()
    expect(chat.page.locator("#chat")).to_be_hidden()
    chat.page.keyboard.press("n")
    expect(chat.field).to_be_focused()


@for_everyone
def test_axe_finds_nothing_serious_in_palette_keys_and_search(
    browser: Browser, shared: Product, scheme: str, language: str, width: int
) -> None:
    with looking(browser, scheme, language, width, expected="^$") as (page, look):
        page.goto(shared.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        page.locator(".finder").click()
        expect(page.locator(".palette [role=option]").first).to_be_visible()
        look("palette")
        page.keyboard.type("t")
        expect(page.locator("#palette-everywhere")).to_be_visible()
        look("palette, asked")
        page.keyboard.press("Escape")
        page.locator("#scroll").focus()
        page.keyboard.press("?")
        expect(page.locator(".keys-dialog")).to_be_visible()
        look("keys")
        page.keyboard.press("Escape")
        page.keyboard.press("/")
        expect(page.locator("#search-field")).to_be_visible()
        look("search, empty")
        page.keyboard.press("f")
        look("search, full")
