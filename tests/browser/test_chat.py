"""The chat: messages sent, answered, lost on the way."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
KEYDOWN = """(field, given) => field.dispatchEvent(
  new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true, ...given}))"""


def test_an_empty_conversation_offers_examples_that_can_be_sent(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh()
    product.start()
    chat = open_chat(product)
    expect(chat.page.get_by_role("heading", name="Hello")).to_be_visible()
    examples = chat.page.get_by_role("list", name="Examples").get_by_role("button")
    expect(examples).to_have_count(3)
    examples.first.click()
    expect(chat.field).to_be_focused()
    expect(chat.field).to_have_value("run: ls -la | head -3")
    chat.field.press("Enter")
    expect(chat.told("total")).to_be_visible()
    expect(chat.page.get_by_role("heading", name="Hello")).to_have_count(0)


def test_a_reply_is_rendered_and_its_code_can_be_copied(chat: Chat) -> None:
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.send("run: printf 'copy-%s\\n' me twice")
    reply = chat.told("copy-twice")
    expect(reply.locator(".prose pre code")).to_contain_text("copy-me")
    reply.locator(".code-box").hover()
    reply.get_by_role("button", name="Copy", exact=True).click()
    expect(reply.get_by_role("button", name="Copied")).to_be_visible()
    assert chat.page.evaluate("navigator.clipboard.readText()") == "copy-me\ncopy-twice"


HAND_OVER = """(field, [kind, name, bytes]) => {
  const given = new DataTransfer();
  given.items.add(new File([Uint8Array.from(bytes)], name));
  const types = kind === "paste" ? [kind] : ["dragover", kind];
  const event = (type) => kind === "paste"
    ? new ClipboardEvent(type, {clipboardData: given, bubbles: true, cancelable: true})
    : new DragEvent(type, {dataTransfer: given, bubbles: true, cancelable: true});
  return types.every((type) => !field.dispatchEvent(event(type)));
}"""


def test_files_are_dropped_pasted_removed_and_sent(chat: Chat) -> None:
    page, png = chat.page, base64.b64decode(PNG)
    gif = list(b"GIF89a")
    assert page.locator("header").first.evaluate(HAND_OVER, ["drop", "a.md", list(b"Milk")])
    assert chat.field.evaluate(HAND_OVER, ["paste", "dot.png", list(png)])
    assert chat.field.evaluate(HAND_OVER, ["drop", "no.gif", gif])
    chips = page.get_by_role("list", name="Files").get_by_role("listitem")
    expect(chips).to_have_text([re.compile("a.md"), re.compile("dot.png"), re.compile("no.gif")])
    page.get_by_role("button", name="Remove no.gif").click()
    page.reload()  # they stay beside the draft
    expect(chips).to_have_count(2)
    chat.field.press("Enter")
    sent = page.locator("#timeline .is-user", has_text="a.md").last
    expect(sent.get_by_role("img", name="dot.png")).to_have_attribute(
        "src", f"data:image/png;base64,{PNG}"
    )
    expect(page.locator(".dock .files")).to_have_count(0)
    with page.expect_download() as download:
        sent.get_by_role("button", name="Save a.md").click()
    assert download.value.suggested_filename == "a.md"
    expect(chat.message("I have kept")).to_be_visible()


def test_what_is_no_markup_stays_text_whoever_wrote_it(chat: Chat) -> None:
    hostile = "<img src=x onerror=alert(1)> <b>bold</b> <script>alert(2)</script>"
    chat.send(f"run: printf '%s' '{hostile}'")
    expect(chat.told("<script>alert(2)</script>")).to_be_visible()
    expect(chat.page.locator(".is-user", has_text="onerror").locator(".plain")).to_contain_text(
        hostile
    )
    assert chat.page.locator("#timeline :is(.prose, .plain) :is(img, script, b)").count() == 0


@pytest.mark.parametrize("own_sanitiser", [True, False], ids=["browser", "policy"])
def test_html_of_a_server_that_lies_runs_nothing(chat: Chat, own_sanitiser: bool) -> None:
    """The server sanitises; where the browser can as well, it is asked to."""
    # The policy stops the handler while the text is read, before any sanitiser sees it.
    chat.complaints.expect("content policy: script-src-attr|Executing inline event handler")
    if not own_sanitiser:
        chat.page.add_init_script("delete Element.prototype.setHTML;")
        chat.complaints.expect("404")  # the picture, from our own server
    lie = (
        "<p>fine <em>text</em></p><script>document.title='ran'</script>"
        "<img src=x onerror=\"document.title='ran'\"><pre><code>code</code></pre>"
        '<a href="https://example.com/">link</a>'
    )
    message = {"id": "msg-lie", "role": "agent", "text": "x", "html": lie, "taskIds": []}

    def lied(route: Route) -> None:
        answer = route.fetch()
        data = answer.json()
        data["messages"].append({**message, "createdAt": data["now"]})
        route.fulfill(json=data)

    chat.page.route("**/api/snapshot", lied)
    chat.reload()
    shown = chat.page.locator("#m-msg-lie .prose")
    expect(shown.locator("em")).to_have_text("text")
    expect(shown.locator(".code-box button")).to_have_count(1)
    expect(shown.locator("a")).to_have_attribute("rel", "noopener noreferrer")
    expect(shown.locator("script, img")).to_have_count(0 if own_sanitiser else 2)
    assert chat.page.title() == "mimikit"


def height_of(chat: Chat) -> float:
    box = chat.field.bounding_box()
    assert box
    return box["height"]


def test_enter_sends_and_shift_enter_makes_a_line(chat: Chat) -> None:
    chat.field.fill("run: echo first")
    chat.field.press("Shift+Enter")
    chat.field.press_sequentially("echo second")
    expect(chat.field).to_have_value("run: echo first\necho second")
    tall = height_of(chat)
    chat.field.press("Enter")
    expect(chat.field).to_have_value("")
    assert height_of(chat) < tall


@pytest.mark.parametrize("sign", ["isComposing", "keyCode"])
def test_enter_that_picks_a_candidate_sends_nothing(chat: Chat, sign: str) -> None:
    chat.field.fill("ni hao")
    chat.field.evaluate(KEYDOWN, {sign: True if sign == "isComposing" else 229})
    expect(chat.field).to_have_value("ni hao")
    chat.field.evaluate(KEYDOWN, {})
    expect(chat.field).to_have_value("")
    expect(chat.message("ni hao").first).to_be_visible()


def test_an_answer_that_was_lost_on_the_way_makes_no_second_message(chat: Chat) -> None:
    """The server took the message and the page never heard: sending again changes nothing."""
    chat.complaints.expect("net::ERR_FAILED")

    def lost(route: Route) -> None:
        route.fetch()
        route.abort()

    chat.page.route("**/api/input", lost)
    chat.send("run: echo only-once")
    expect(chat.page.locator(".is-user", has_text="only-once")).to_have_attribute(
        "data-delivery", "answered"
    )
    chat.page.unroute("**/api/input")
    chat.reload()
    expect(chat.page.locator(".is-user", has_text="only-once")).to_have_count(1)


def test_a_message_lost_with_its_page_is_offered_again(chat: Chat) -> None:
    chat.complaints.expect("net::ERR_FAILED")
    chat.page.route("**/api/input", lambda route: route.abort())
    chat.send("run: echo not-forgotten")
    expect(chat.message("not-forgotten")).to_contain_text("Not sent")
    chat.page.unroute("**/api/input")
    chat.reload()
    lost = chat.page.locator("[data-delivery=failed]", has_text="not-forgotten")
    lost.get_by_role("button", name="Edit").click()
    expect(chat.field).to_have_value("run: echo not-forgotten")
    expect(lost).to_have_count(0)
    chat.field.fill("")


def test_a_letter_with_very_many_marks_is_shown_with_some_and_stays_whole(chat: Chat) -> None:
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    said = "hello e" + "\u0301" * 150_000
    chat.product.say(said, "msg-marks")
    mine = chat.page.locator("#m-msg-marks .plain")
    expect(mine).to_have_text(re.compile("hello e\u0301{32}…"))
    answered = chat.page.locator("#m-msg-marks")
    expect(answered).to_have_attribute("data-delivery", "answered", timeout=30_000)
    kept = chat.product.call("GET", "/api/messages")["messages"]
    assert [message["text"] for message in kept if message["id"] == "msg-marks"] == [said]
    chat.send("run: python3 -c \"print('many-' + 'o' + chr(0x302) * 1000)\"")
    reply = chat.told("many-o")
    expect(reply.locator("pre code")).to_have_text(re.compile("^many-o\u0302{32}…\\s*$"))
    assert not re.search("\u0302{33}", chat.page.locator("#timeline").text_content() or "")
    reply.locator(".code-box").hover()
    reply.get_by_role("button", name="Copy").click()
    expect(reply.get_by_role("button", name="Copied")).to_be_visible()
    assert chat.page.evaluate("navigator.clipboard.readText()") == "many-o" + "\u0302" * 1000


def test_a_message_can_be_quoted_and_edited_and_a_reply_explains_itself(chat: Chat) -> None:
    chat.send("run: echo to-quote")
    reply = chat.told("to-quote").first
    own = chat.page.locator(".is-user", has_text="to-quote")
    own.hover()
    own.get_by_role("button", name="Quote").click()
    expect(chat.field).to_have_value("> run: echo to-quote\n\n")
    chat.field.fill("")
    own.hover()
    own.get_by_role("button", name="Edit and send").click()
    expect(chat.field).to_have_value("run: echo to-quote")
    reply.hover()
    chat.page.locator(".is-agent").last.get_by_role("button", name="Why this reply").click()
    expect(chat.page.locator(".why:visible")).to_contain_text("without a model")


def test_the_palette_goes_where_it_is_told(chat: Chat) -> None:
    chat.page.keyboard.press("Control+k")
    chat.page.keyboard.type("trig")
    expect(chat.page.get_by_role("option")).to_contain_text(
        ["Go to triggers", "New trigger", "Search"]
    )
    chat.page.keyboard.press("Enter")
    expect(chat.page).to_have_url(re.compile("#/triggers$"))
    chat.page.locator("#scroll").focus()
    chat.page.keyboard.press("?")
    expect(chat.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(chat.page.get_by_role("dialog")).to_have_count(0)


def test_the_panel_has_one_width_of_the_readers_choice_or_the_whole_page(chat: Chat) -> None:
    page = chat.page
    edge = page.get_by_role("separator", name="Width of the side panel")

    def width() -> float:
        box = page.locator("#panel").bounding_box()
        assert box is not None
        return box["width"]

    before = width()
    edge.press("ArrowLeft")
    assert width() == pytest.approx(before + 24, abs=1)
    for place in ("Tasks", "Triggers", "Memory"):
        page.get_by_role("link", name=place).click()
        assert width() == pytest.approx(before + 24, abs=1)
    chat.reload()
    assert width() == pytest.approx(before + 24, abs=1)
    edge.dblclick()
    assert width() == pytest.approx(before, abs=1)
    page.get_by_role("button", name="Use the whole page").click()
    expect(page.locator("#composer")).not_to_be_visible()
    page.get_by_role("link", name="Chat").click()
    expect(page.locator("#panel")).not_to_be_visible()
    page.get_by_role("button", name="Show the side panel").click()
    expect(page.locator("#composer")).to_be_visible()
    assert width() == pytest.approx(before, abs=1)
