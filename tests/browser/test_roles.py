"""What an engine does, as the page shows it, with a scripted engine."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from mimikit.protocol import paths
from mimikit.protocol.models import EngineStatus
from mimikit.protocol.runtime import RuntimeState
from tests.browser.pages import OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

ASK = {
    "call": "ask_user",
    "args": {
        "question": "Which branch shall I take?",
        "options": ["left", "right"],
        "default": "right",
        "timeout": 600,
    },
}
REPLY = {"call": "reply", "args": {"text": "**Thank** you."}}


@pytest.mark.parametrize("way", ["button", "words"])
def test_a_question_is_answered_by_a_button_or_in_words(
    fresh: Callable[..., Product], open_chat: OpenChat, way: str
) -> None:
    product = fresh({"teller": [[ASK], [REPLY]]})
    product.start()
    chat = open_chat(product)
    chat.send("go on")
    card = chat.page.get_by_role("region", name="Which branch shall I take?")
    expect(card).to_be_visible()
    expect(card.get_by_role("timer")).to_have_text(re.compile(r"^(10:00|9:5\d)$"))
    expect(card.get_by_role("button", name="right")).to_contain_text("default")
    if way == "button":
        card.get_by_role("button", name="left").click()
    else:
        card.get_by_role("textbox").fill("straight on")
        card.get_by_role("textbox").press("Enter")
    answer = "left" if way == "button" else "straight on"
    expect(card).to_have_count(0)
    expect(chat.page.locator(".is-user .plain", has_text=answer)).to_be_visible()
    expect(chat.message("Thank you.").locator("strong")).to_have_text("Thank")
    options = chat.page.get_by_role("list", name="The options")
    expect(options.get_by_role("listitem")).to_have_count(2)
    expect(options.locator(".is-default")).to_have_count(1 if way == "button" else 0)


def test_a_reply_shows_as_it_grows_and_is_replaced_by_what_was_committed(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    steps = [
        {"event": "delta", "text": "Let me **th"},
        {"wait": 2.0},
        {"event": "delta", "text": "ink**"},
        {"wait": 1.5},
        REPLY,
    ]
    product = fresh({"teller": [steps]})
    product.start()
    chat = open_chat(product)
    chat.send("hello")
    draft = chat.page.locator(".is-draft")
    expect(draft).to_contain_text("Let me **th")
    live = chat.page.locator("#live")
    expect(live).to_contain_text("Replying")
    expect(live.locator(".ticking").first).to_have_text(re.compile(r"^0:0\d$"))
    expect(chat.message("hello").first).to_have_attribute("data-delivery", "answering")
    chat.reload()
    expect(draft).to_contain_text("Let me **think**")
    expect(draft).not_to_contain_text("…")
    expect(chat.message("Thank you.")).to_be_visible()
    expect(draft).to_have_count(0)
    expect(live).to_have_count(0)
    chat.page.get_by_role("button", name="Why this reply").click()
    expect(chat.page.locator(".why")).to_contain_text("What the model was given")
    expect(chat.page.locator(".why .prompt")).to_contain_text("hello")


def test_stop_ends_the_reply_and_nothing_else(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh({"teller": [[{"event": "delta", "text": "Endless"}, {"hang": True}]]})
    product.start()
    backup = {"prompt": "sleep 60", "profile": "command", "title": "Nightly backup"}
    product.call("POST", "/api/tasks", backup)
    chat = open_chat(product)
    live = chat.page.locator("#live")
    expect(live).to_contain_text("also running")
    chat.send("hello")
    expect(chat.page.locator(".is-draft")).to_contain_text("Endless")
    live.get_by_role("button", name="Stop", exact=True).click()
    for _ in range(2):  # so it stands on disk, too
        expect(chat.message("Endless")).to_contain_text("Stopped")
        expect(chat.message("hello").first).to_have_attribute("data-delivery", "stopped")
        expect(chat.page.locator(".is-draft")).to_have_count(0)
        expect(live).to_contain_text("also running")
        chat.reload()
    live.get_by_role("button", name="stop", exact=True).click()
    live.get_by_role("button", name="Stop", exact=True).click()
    expect(live).to_have_count(0)


def test_a_reply_that_breaks_off_says_so_at_its_words_and_can_be_had_again(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    broken = [{"event": "delta", "text": "This is "}, {"fail": "error", "error": "cut off"}]
    product = fresh({"teller": [broken, broken, [REPLY]]})
    product.start()
    chat = open_chat(product)
    chat.send("hello")
    reply = chat.message("This is")
    expect(reply).to_contain_text("Not answered: cut off")
    expect(chat.page.locator(".is-draft")).to_have_count(0)
    expect(chat.message("hello").first).to_have_attribute("data-delivery", "unanswered")
    reply.get_by_role("button", name="Retry").click()
    expect(chat.message("Thank you.")).to_be_visible()
    reply.get_by_role("button", name="Edit").click()
    expect(chat.field).to_have_value("hello")


def test_a_message_that_waits_for_its_engine_says_so_and_why(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    broken = {"fail": "rate_limited", "error": "its line is busy", "retryAfter": 60}
    product = fresh({"teller": [[{"event": "delta", "text": "This is "}, broken]]})
    product.start()
    chat = open_chat(product)
    chat.send("hello")
    for _ in range(2):
        expect(chat.message("hello").first).to_have_attribute("data-delivery", "waiting")
        expect(chat.message("hello").first).to_contain_text("its line is busy")
        expect(chat.page.locator(".is-draft")).to_have_count(0)
        chat.reload()


@pytest.mark.timeout(180)
def test_a_hundred_reloads_in_mid_stream_show_each_word_once(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    words = [{"event": "delta", "text": f"word{number} "} for number in range(1200)]
    steps = [step for word in words for step in (word, {"wait": 0.1})]
    product = fresh({"teller": [[*steps, {"hang": True}]]})
    product.start()
    chat = open_chat(product)
    chat.send("hello")
    draft, dice = chat.page.locator(".is-draft .plain"), random.Random(7)
    for _ in range(100):
        expect(draft).to_be_visible()
        chat.page.wait_for_timeout(dice.randrange(400))
        shown = (draft.text_content() or "").split()
        assert shown == [f"word{number}" for number in range(len(shown))]
        chat.reload()


def test_what_waits_for_an_engine_stands_on_top_with_the_way_out(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh()
    served = RuntimeState(engines={"codex": EngineStatus(engine="codex")})
    product.files.save(paths.RUNTIME, served)
    product.start()
    chat = open_chat(product)
    chat.send("how are you today, my friend?")
    banner = chat.page.locator(".banner", has_text="codex is not there any more")
    expect(banner).to_contain_text("1 message")
    expect(chat.message("Waiting for it: 1 message.")).to_be_visible()
    chat.send("status")
    expect(chat.message("This is how things are")).to_be_visible()
    banner.get_by_role("button", name="Try now").click()
    expect(chat.page.locator(".notice", has_text="It is tried now.")).to_be_visible()
    banner.get_by_role("button", name="Go on without it").click()
    expect(chat.message("no language model is connected")).to_be_visible()
    expect(banner).to_have_count(0)
