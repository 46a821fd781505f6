"""What can be done with a message: by pointer and keyboard; and why a reply says what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from mimikit.protocol import paths
from tests.browser.looking import TOO_WIDE, violations
from tests.browser.pages import DRAWN, Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

MARKDOWN = """**So** it is:

- [x] tea at four
- [ ] milk, `2 l`

| when | what | amount | remark |
|---|---|---:|---|
| 2026-11-23 | build-server-a | -1.234.567,89 | a remark long enough to be broken into lines |
| 2026-11-24 | 测试服务器 | 12 | 这是一段比较长的说明文字可以在需要的时候换行显示不影响其他列 |

Then $x_1 * y_1 = z^*$ and \\(a_1 * b_2 * c\\).
"""
LINES = """(cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
}"""
QUESTION = {"question": "Which branch?", "options": ["left", "right"], "timeout": 600}


def say(chat: Chat, text: str, id_: str) -> None:
    chat.product.say(text, id_)
    expect(chat.page.locator(f"#m-{id_}")).to_have_attribute("data-delivery", "answered")


def test_a_message_is_copied_quoted_and_said_anew_by_the_pointer(
    product: Product, open_chat: OpenChat
) -> None:
    chat = open_chat(product)
    page = chat.page
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: undefined});"
        "document.addEventListener('copy', () =>"
        " { window.copied = document.activeElement.value; });"
    )
    chat.reload()
    say(chat, "run: printf '**%s**' by-pointer", "msg-pointer")
    expect(chat.told("by-pointer")).to_be_visible()
    reply = page.locator("#timeline .message.is-agent", has_text="by-pointer")
    tools = reply.get_by_role("toolbar", name="Actions for this message")
    page.mouse.move(0, 0)
    expect(tools).to_have_css("opacity", "0")
    place = reply.bounding_box()
    reply.hover()
    expect(tools).to_have_css("opacity", "1")
    assert reply.bounding_box() == place, "nothing moves for it"
    tools.get_by_role("button", name="Copy message").click()
    expect(tools.get_by_role("button", name="Message copied")).to_be_visible()
    assert "`" in page.evaluate("window.copied"), "as it was written, not as it is shown"
    tools.get_by_role("button", name="Quote").click()
    expect(chat.field).to_be_focused()
    quoted = page.locator(".composer-about")
    expect(quoted).to_contain_text("Quoting")
    chat.field.fill("run: echo about-that")
    chat.reload()
    expect(quoted).to_contain_text("by-pointer")
    chat.field.press("Enter")
    expect(quoted).to_have_count(0)
    mine = page.locator(".is-user", has_text="about-that")
    expect(mine.locator(".quote")).to_contain_text("by-pointer")
    expect(chat.told("about-that")).to_be_visible()

    chat.field.fill("half a thought")
    mine.hover()
    mine.get_by_role("button", name="Edit and send again").click()
    expect(chat.field).to_have_value("run: echo about-that")
    chat.field.press("Escape")
    expect(chat.field).to_have_value("half a thought")
    mine.hover()
    mine.get_by_role("button", name="Edit and send again").click()
    chat.send("run: echo about-this")
    expect(chat.field).to_have_value("half a thought")
    anew = page.locator(".is-user", has_text="about-this")
    expect(anew).to_have_attribute("data-delivery", "answered")
    chat.reload()
    anew.get_by_role("button", name="Said anew").click()
    expect(mine).to_have_class(re.compile("is-shown"))
    kept = product.call("GET", "/api/messages")["messages"]
    (old,) = [one for one in kept if one["text"] == "run: echo about-that"]
    (new,) = [one for one in kept if one["text"] == "run: echo about-this"]
    assert (new["edits"], new["quote"]) == (old["id"], "run: echo about-that")


def test_the_actions_of_all_messages_are_one_stop_of_the_tab_key(chat: Chat) -> None:
    page = chat.page
    say(chat, "run: echo by-keyboard", "msg-keyboard")
    expect(chat.told("by-keyboard")).to_be_visible()
    page.mouse.move(0, 0)
    chat.reload()
    expect(chat.field).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("button", name="Attach files")).to_be_focused()
    last = page.locator("#timeline .tools").last
    for _ in range(12):  # what cards offer lies between
        page.keyboard.press("Shift+Tab")
        if page.locator(".tools > :focus").count():
            break
    expect(last.get_by_role("button", name="Copy message")).to_be_focused()
    expect(last).to_have_css("opacity", "1")
    expect(last.get_by_role("button", name="Quote")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(last.get_by_role("button", name="Quote")).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")
    expect(last.get_by_role("button", name="Copy message")).to_be_focused()
    assert page.locator(".tools > [tabindex='0']").count() == 1
    page.keyboard.press("ArrowUp")
    above = page.locator("#timeline .tools").nth(-2)
    expect(above.get_by_role("button", name="Copy message")).to_be_focused()
    page.keyboard.press("Escape")
    expect(chat.field).to_be_focused()
    above.get_by_role("button", name="Copy message").focus()
    page.keyboard.press("j")  # the message after it, by the page's own key
    expect(last.get_by_role("button", name="Quote")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(last.get_by_role("button", name="Copy message")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(above.get_by_role("button", name="Copy message")).to_be_focused()
    expect(above.get_by_role("button", name="Quote")).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".composer-about")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.locator(".composer-about")).to_have_count(0)


def test_who_comes_for_something_else_is_not_drawn_to_the_field(chat: Chat) -> None:
    chat.reload()
    expect(chat.field).to_be_focused()
    chat.page.goto(f"{chat.product.url}/#/triggers")
    chat.page.reload()
    expect(chat.page.locator("#panel-body > *").first).to_be_visible()
    expect(chat.field).to_be_visible()
    expect(chat.field).not_to_be_focused()


def test_why_a_reply_says_what_it_says(fresh: Callable[..., Product], open_chat: OpenChat) -> None:
    remember = {"call": "remember", "args": {"text": "The otter is the staging server."}}
    replies = [{"call": "reply", "args": {"text": text}} for text in (MARKDOWN, "Two.")]
    product = fresh({"teller": [[remember, replies[0]], [replies[1]]]})
    product.start()
    chat = open_chat(product)
    page = chat.page
    chat.send("so how is the otter?")
    reply = page.locator(".message.is-agent").last
    expect(reply.locator("strong")).to_have_text("So")

    cells = reply.locator("td")
    for number in range(3):
        assert cells.nth(number).evaluate(LINES) == 1
        assert cells.nth(number + 4).evaluate(LINES) == 1
    expect(reply.get_by_role("checkbox", name="tea at four")).to_be_checked()
    expect(reply.get_by_role("checkbox", name="milk, 2 l")).not_to_be_checked()
    expect(reply.get_by_role("checkbox", name="milk, 2 l")).to_be_disabled()
    expect(reply).to_contain_text("Then $x_1 * y_1 = z^*$ and \\(a_1 * b_2 * c\\).")

    reply.hover()
    reply.get_by_role("link", name="Why this reply").click()
    reason = page.locator(".reason")
    expect(page.get_by_role("heading", name="Why this reply")).to_be_focused()
    expect(reason.locator(".facts")).to_contain_text("scripted")
    expect(reason.locator(".facts")).to_contain_text("Took")
    call = reason.locator(".reason-calls li").first
    call.locator("summary").click()
    expect(call).to_contain_text("remember")
    expect(call.locator("pre").first).to_contain_text("The otter is the staging server.")
    said = reason.locator("details", has_text="What you said")
    expect(said.locator("pre")).not_to_be_visible()
    said.locator("summary").click()
    expect(said.locator("pre")).to_contain_text("so how is the otter?")
    expect(said.locator(".part-tokens")).to_have_text(re.compile(r"^\d+ tokens$"))
    assert violations(page) == []

    for prompt in (product.state / paths.TURN_PROMPTS).iterdir():
        prompt.unlink()
    page.reload()
    expect(reason).to_contain_text("no longer kept")
    page.set_viewport_size({"width": 360, "height": 740})
    page.evaluate(DRAWN)
    assert page.evaluate(TOO_WIDE) == []
    assert violations(page) == []
    page.goto(f"{product.url}/#/reason/turn-that-never-was")
    chat.complaints.expect("404")
    expect(reason).to_contain_text("Nothing is kept of this")
    page.get_by_role("link", name="Chat").first.click()
    box = reply.locator(".table-box")
    assert box.evaluate("(one) => one.scrollWidth > one.clientWidth"), "it scrolls in its box"
    assert cells.nth(2).evaluate(LINES) == 1
    assert page.evaluate(TOO_WIDE) == []


def test_what_is_being_written_when_a_question_comes_is_not_its_answer(
    fresh: Callable[..., Product], open_chat: OpenChat, tmp_path: Path
) -> None:
    written = tmp_path / "written"
    ask = [{"hold": str(written)}, {"call": "ask_user", "args": QUESTION}]
    product = fresh({"teller": [ask, [{"call": "reply", "args": {"text": "Thank you."}}]]})
    product.start()
    chat = open_chat(product)
    page = chat.page
    chat.send("go on")
    chat.field.fill("buy milk")
    written.touch()
    card = page.get_by_role("region", name="Which branch?")
    expect(card).to_be_visible()
    expect(chat.field).to_have_value("buy milk")
    card.get_by_role("button", name="Answer in your own words").click()
    answer = page.get_by_role("textbox", name="Your answer")
    expect(answer).to_be_focused()
    answer.fill("straight on")
    answer.press("Enter")
    expect(card).to_have_count(0)
    expect(page.locator(".is-user", has_text="straight on")).to_be_visible()
    expect(chat.message("Thank you.")).to_be_visible()
