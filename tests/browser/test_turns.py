"""A reply that comes word by word, over any reload; stopped, failed, asked for again."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product, make_product
from tests.support.fake_llm import FakeLLM
from tests.support.pace import within

pytestmark = pytest.mark.browser

CALM_S = 0.02
"""Between two words; longer where the page is slower, which is to see them come."""


def letter(words: int) -> str:
    """A reply of so many numbered words in blocks of every kind."""
    tokens = iter(f"w{number:04d}" for number in range(words))

    def some(count: int) -> str:
        return " ".join(islice(tokens, count))

    parts: list[str] = []
    while first := some(7):
        parts += [f"## {first}", f"{some(9)} **{some(2)}** {some(5)}"]
        parts += [f"- {some(3)}\n- {some(4)}\n\n- {some(3)}"]
        parts += [f"```python\n{some(4)}\n\n{some(5)}\n```", f"> {some(6)}"]
        parts += [f"| {some(1)} | {some(1)} |\n|---|---|\n| {some(1)} | {some(1)} |"]
    return "\n\n".join(parts)


@dataclass
class Slow:
    """A product whose mind writes as slowly as it is told."""

    product: Product
    llm: FakeLLM

    def writes(self, text: str) -> dict[str, Any]:
        """Gives the step that is played: its `chunk_delay` may be changed meanwhile."""
        step = {"text": text, "chunk_delay": within(CALM_S)}
        self.llm.play(step)
        return step


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slow]:
    with FakeLLM([{"text": "Hello."}]) as llm:
        settings = (
            f'[engines.slow]\ntype = "openai"\nbase_url = "{llm.url}"\nmodel = "fake-model"\n'
            '[roles.teller]\nengine = "slow"'
        )
        product = make_product(tmp_path_factory.mktemp("slow"), settings)
        try:
            product.start()
            yield Slow(product, llm)
        finally:
            product.stop()


def draft(page: Page) -> Locator:
    return page.locator(".is-draft .message-body")


def told(text: str) -> list[str]:
    return re.findall(r"w\d{4}", text)


def each_once(locator: Locator) -> int:
    """How many words there are; they are the first ones, each once."""
    words = told(locator.inner_text())
    assert words == [f"w{number:04d}" for number in range(len(words))]
    return len(words)


@pytest.mark.fault("complaint 20")
@pytest.mark.parametrize("reloads", [12, pytest.param(100, marks=pytest.mark.nightly)])
def test_each_word_is_shown_once_over_reloads_and_stays_when_it_is_stopped(
    slow: Slow, open_chat: OpenChat, reloads: int
) -> None:
    dice, chat = random.Random(reloads), open_chat(slow.product)
    slow.writes(letter(600 * reloads))  # more than there is time for: it is stopped
    chat.send(f"write a letter, {reloads} times")
    seen = 0
    for _ in range(reloads):
        expect(draft(chat.page)).to_contain_text("w0000")
        chat.page.wait_for_timeout(dice.randrange(400))
        chat.reload()
        expect(draft(chat.page)).to_contain_text("w0000")
        now = each_once(draft(chat.page))
        assert now >= seen
        seen = now
    for block in ("h2", "table"):  # however fast the page was
        expect(draft(chat.page).locator(block).first).to_be_attached()
    stopped_is_kept(chat, seen)


def stopped_is_kept(chat: Chat, seen: int) -> None:
    """Stop ends the reply; what had come stays over a reload, and says so on the message."""
    page = chat.page
    page.get_by_role("button", name="Stop", exact=True).click()
    asked = page.locator(".is-user", has_text="write a letter").last
    expect(asked).to_contain_text("Stopped by you")
    kept = page.locator(".message.is-agent").last
    expect(kept).to_contain_text("stopped here")
    expect(page.locator("#live")).to_have_count(0)
    assert each_once(kept.locator(".prose")) >= seen
    whole = kept.locator(".prose").inner_html()
    chat.reload()
    expect(kept.locator(".prose")).to_have_js_property("innerHTML", whole)
    expect(page.locator(".is-system", has_text="Stopped.")).to_have_count(0)


def test_a_reply_is_stopped_from_the_palette(slow: Slow, open_chat: OpenChat) -> None:
    chat = open_chat(slow.product)
    page = chat.page
    slow.writes(letter(900))
    chat.send("stop me by a key")
    expect(draft(page)).to_contain_text("w0000")
    page.keyboard.press("Control+k")
    first = page.locator(".palette [role=option][aria-selected=true]")
    expect(first).to_contain_text("Stop the reply")
    page.keyboard.press("Enter")
    asked = page.locator(".is-user", has_text="stop me by a key").last
    expect(asked).to_contain_text("Stopped by you")
    expect(page.locator("#live")).to_have_count(0)


def test_all_tabs_show_each_word_once_and_the_reply_in_the_end(
    slow: Slow, open_chat: OpenChat
) -> None:
    first = open_chat(slow.product)
    step = slow.writes(letter(900))
    first.send("to all of you")
    expect(draft(first.page)).to_contain_text("w0003")
    step["chunk_delay"] *= 10  # it goes on while the other tabs open, however long that takes
    pages = [first.page]
    for _ in range(3):
        page = first.page.context.new_page()
        page.goto(slow.product.url)
        pages.append(page)
        expect(draft(page)).to_contain_text("w0010")
    for page in pages:
        each_once(draft(page))
    shown = draft(first.page).locator(".prose").first.inner_html()
    step["chunk_delay"] = 0
    for page in pages:
        reply = page.locator(".message.is-agent:not(.is-draft)").last
        expect(reply).to_contain_text("w0899")
        assert each_once(reply.locator(".prose").first) == 900
        assert reply.locator(".prose").first.inner_html().startswith(shown.rstrip())
        expect(draft(page)).to_have_count(0)


def test_a_page_without_a_stream_shows_each_word_once(slow: Slow, open_chat: OpenChat) -> None:
    chat = open_chat(slow.product)
    chat.complaints.expect("503")
    full = {"error": {"message": "16 streams are open already", "field": None}}
    chat.page.route("**/api/events?*", lambda route: route.fulfill(status=503, json=full))
    slow.writes(letter(6000))
    chat.reload()
    expect(chat.page.locator(".connection.is-polling")).to_be_attached()
    chat.send("by polling")
    expect(draft(chat.page)).to_contain_text("w0000")
    begun = each_once(draft(chat.page))
    expect(draft(chat.page)).to_contain_text(f"w{begun:04d}")
    assert each_once(draft(chat.page)) > begun
    chat.page.get_by_role("button", name="Stop", exact=True).click()
    expect(chat.page.locator(".is-user", has_text="by polling")).to_contain_text("Stopped by you")


def test_stop_ends_this_reply_only_and_all_else_by_a_second_step(
    slow: Slow, open_chat: OpenChat
) -> None:
    chat, page = (opened := open_chat(slow.product)), opened.page
    task = {"id": "task-backup", "prompt": "sleep 600", "title": "Nightly backup"}
    slow.product.call("POST", "/api/tasks", {**task, "profile": "command"})
    slow.writes(letter(6000))
    chat.send("tell me all of it")
    expect(draft(page)).to_contain_text("w0005")
    live = page.locator("#live")
    expect(live).to_contain_text("also running: Nightly backup")
    page.get_by_role("button", name="Stop", exact=True).click()
    asked = page.locator(".is-user", has_text="tell me all of it")
    expect(asked).to_contain_text("Stopped by you")
    expect(live).to_contain_text("running: Nightly backup")
    assert state_of(slow.product, "task-backup") == "running"
    live.get_by_role("button", name="stop all").click()
    live.get_by_role("button", name="Keep running").click()
    assert state_of(slow.product, "task-backup") == "running"
    live.get_by_role("button", name="stop all").click()
    live.get_by_role("button", name="Stop it").click()
    expect(live).to_have_count(0)
    assert state_of(slow.product, "task-backup") == "canceled"
    answered_again(slow, chat, asked)


def answered_again(slow: Slow, chat: Chat, asked: Locator) -> None:
    """Edit takes the words; Retry has them answered, in place."""
    asked.locator(".meta-actions").get_by_role("button", name="Edit").click()
    expect(chat.field).to_have_value("tell me all of it")
    expect(chat.field).to_be_focused()
    chat.field.fill("")
    slow.writes("All of it, then.")
    asked.locator(".meta-actions").get_by_role("button", name="Retry").click()
    expect(chat.message("All of it, then.")).to_be_visible()
    expect(asked).to_have_attribute("data-delivery", "answered")
    expect(asked).to_have_count(1)
    chat.reload()
    expect(asked).to_have_count(1)
    expect(asked).to_have_attribute("data-delivery", "answered")


def state_of(product: Product, task: str) -> str:
    return product.call("GET", f"/api/tasks/{task}")["task"]["state"]


def test_a_turn_that_fails_says_so_on_its_message_in_the_readers_language(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    says: list[dict[str, Any]] = [
        {"event": "delta", "text": "It begins well"},
        {"fail": "error", "error": "no more"},
    ]
    product = fresh({"teller": [says, says, [{"say": "Better now."}]]})
    product.start()
    chat = open_chat(product)
    chat.send("go on, please")
    asked = chat.page.locator(".is-user", has_text="go on, please")
    expect(asked).to_contain_text("Could not be answered: ")
    expect(chat.page.locator(".message.is-agent")).to_contain_text("It begins well")
    expect(chat.page.locator(".message.is-agent")).to_contain_text("broke off here")
    expect(chat.page.locator(".is-system")).to_have_count(0)
    chat.complaints.expect(r"net::ERR_|Failed to load resource")
    product.stop()
    product.start()
    chat.reload()
    expect(asked).to_contain_text("Could not be answered: ")
    expect(chat.page.locator(".message.is-agent")).to_contain_text("It begins well")
    asked.locator(".meta-actions").get_by_role("button", name="Retry").click()
    expect(chat.page.locator(".message.is-agent")).to_have_count(2)  # it began anew, and fails
    expect(asked).to_contain_text("Could not be answered: ")
    asked.locator(".meta-actions").get_by_role("button", name="Retry").click()
    expect(chat.message("Better now.")).to_be_visible()
    expect(asked).to_have_attribute("data-delivery", "answered")


def test_what_a_mind_refuses_is_told_in_the_language_of_the_page(
    slow: Slow, open_chat: OpenChat
) -> None:
    chat = open_chat(slow.product)
    slow.llm.play({"status": 400})
    chat.send("what will never do")
    asked = chat.page.locator(".is-user", has_text="what will never do")
    expect(asked).to_contain_text("Could not be answered: slow failed at it")
    chat.page.evaluate("localStorage.setItem('mimikit.language', 'zh')")
    chat.reload()
    expect(asked).to_contain_text("未能回答：slow 处理时出了错")
    chat.page.evaluate("localStorage.removeItem('mimikit.language')")


def test_what_had_been_said_when_its_process_died_is_shown_and_the_reply_begins_anew(
    slow: Slow, open_chat: OpenChat
) -> None:
    chat, product = open_chat(slow.product), slow.product
    slow.writes(letter(6000))
    chat.send("over a death")
    expect(draft(chat.page)).to_contain_text("w0020")
    dead = product.processes.pop("consumer")
    dead.kill()
    dead.wait(20)
    before = each_once(draft(chat.page))
    chat.reload()
    expect(draft(chat.page)).to_contain_text("w0020")
    assert each_once(draft(chat.page)) >= before
    slow.writes("In short: all is well.")
    product.start("consumer")
    expect(chat.message("In short: all is well.")).to_have_count(1)
    expect(draft(chat.page)).to_have_count(0)
    asked = chat.page.locator(".is-user", has_text="over a death")
    expect(asked).to_have_attribute("data-delivery", "answered")
    expect(asked).to_have_count(1)


def test_a_question_stays_with_its_answer(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    ask = {"question": "Which branch?", "options": ["left", "right"], "timeout": 600}
    product = fresh({"teller": [[{"call": "ask_user", "args": ask}], [{"say": "Thank you."}]]})
    product.start()
    chat = open_chat(product)
    chat.send("go on")
    card = chat.page.get_by_role("region", name="Which branch?")
    card.get_by_role("button", name="right").click()
    expect(chat.message("Thank you.")).to_be_visible()
    answered = chat.page.locator(".answered-card")
    expect(answered).to_contain_text("Which branch?")
    expect(answered.locator("li")).to_have_count(2)
    expect(answered.locator(".is-chosen")).to_contain_text("right")
    expect(chat.message("Which branch?")).to_have_count(1)
    chat.reload()
    expect(answered).to_contain_text("You answered this.")


@for_everyone
def test_turns_look_right_to_everyone(
    slow: Slow, browser: Browser, scheme: str, language: str, width: int
) -> None:
    product, name = slow.product, f"{scheme}-{language}-{width}"
    task = {"id": f"task-{name}", "prompt": "sleep 600", "title": "Nightly backup of all that is"}

    def send(text: str) -> None:
        page.locator("#composer").fill(text)
        page.locator("#composer").press("Enter")

    with looking(browser, scheme, language, width, expected="400") as (page, look):
        page.goto(product.link())
        product.call("POST", "/api/tasks", {**task, "profile": "command"})
        step = slow.writes(letter(3000))
        send(f"first of {name}")
        expect(draft(page)).to_contain_text("w0045")
        step["chunk_delay"] *= 10  # it goes on while it is looked at, however long that takes
        expect(page.locator("#live .also")).to_contain_text("Nightly backup")
        look("a reply that comes")
        page.locator("#live .stop").click()
        expect(page.locator(".is-user").last.locator(".turn-end")).to_be_visible()
        look("a reply that was stopped")
        page.locator("#live .link.all").click()
        look("asked back")
        page.locator("#live .stop.is-all").click()
        expect(page.locator("#live")).to_have_count(0)
        slow.llm.play({"status": 400})
        send(f"second of {name}")
        expect(page.locator(".is-user").last.locator(".turn-end.is-failed")).to_be_visible()
        ask = {"question": "Which one of these?", "options": ["this", "that"], "timeout": 600}
        slow.llm.play({"tools": [["ask_user", ask]]}, {"text": "Thank you."})
        send(f"third of {name}")
        expect(page.locator("#question")).to_be_visible()
        answer = {"questionId": product.call("GET", "/api/snapshot")["question"]["questionId"]}
        product.call("POST", "/api/answer", {**answer, "id": f"msg-{name}", "text": "that"})
        expect(page.locator(".answered-card .is-chosen").last).to_contain_text("that")
        expect(page.locator(".message.is-agent").last).to_contain_text("Thank you.")
        look("a turn that failed, and a question with its answer")
