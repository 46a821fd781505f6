"""The side panel: tasks and triggers."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from mimikit.clock import SystemClock
from tests.browser.looking import TOO_WIDE
from tests.browser.pages import DRAWN, Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

SLOW = "run: for n in $(seq 600); do echo step $n; sleep 0.2; done"


@pytest.fixture
def chat(product: Product, open_chat: OpenChat) -> Chat:
    """The page of the shared product, with its list of work open."""
    return open_chat(product, "/#/tasks")


def row(page: Page, group: str, text: str) -> Locator:
    """Where a task stands in the list."""
    return page.locator(f"[data-group={group}] .row", has_text=text).first


def test_a_task_is_watched_and_canceled(chat: Chat) -> None:
    page = chat.page
    chat.send(SLOW)
    running = row(page, "running", "seq 600")
    expect(running.locator(".ticking")).to_have_text(re.compile(r"^0:\d\d$"))
    expect(page.locator("#live")).to_contain_text("running: ")
    running.get_by_role("link").click()
    expect(page.get_by_role("heading", name=re.compile("seq 600"))).to_be_focused()
    expect(page.get_by_role("region", name="Output")).to_contain_text("step 3")
    expect(page.locator(".task .steps li")).to_have_text(
        [re.compile("Planning"), re.compile("seq")]
    )
    expect(page.locator(".task .row-headline")).to_contain_text("step ")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator(".notice")).to_contain_text("Canceled")  # for some seconds only
    expect(page.locator(".task .badge")).to_have_text("Canceled")
    expect(page.locator("#live")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(
        page.locator("[data-group=ended] .row.is-canceled", has_text="seq 600").first
    ).to_be_visible()
    expect(page.locator("[data-group=running] .row")).to_have_count(0)


def test_what_has_ended_never_ends_in_the_future(chat: Chat) -> None:
    chat.page.clock.set_fixed_time(SystemClock().now() - timedelta(minutes=5))
    chat.send("run: echo ahead of the page")
    expect(row(chat.page, "ended", "ahead of the page")).to_contain_text("just now")


def test_stop_ends_the_running_task(chat: Chat) -> None:
    chat.send(SLOW.replace("600", "700"))
    expect(row(chat.page, "running", "seq 700")).to_be_visible()
    expect(chat.page.locator("#live")).to_contain_text("running: ")
    chat.page.get_by_role("button", name="stop all").click()
    chat.page.get_by_role("button", name="Stop it").click()
    expect(
        chat.page.locator("[data-group=ended] .row.is-canceled", has_text="seq 700")
    ).to_be_visible()


def test_a_failure_is_told_in_words_and_can_be_tried_again(chat: Chat) -> None:
    page = chat.page
    chat.send("run: echo why-not >&2; exit 3")
    failed = page.locator("[data-group=ended] .row.is-failed", has_text="why-not").first
    expect(failed).to_contain_text("ended with an error")
    failed.get_by_role("link").click()
    expect(page.locator(".failure")).to_contain_text("exit code 3")
    expect(page.locator(".failure")).to_contain_text("Mend the cause, then retry")
    expect(page.locator("#output .stderr")).to_contain_text("why-not")
    first = page.url
    page.locator("#panel").get_by_role("button", name="Retry").click()
    expect(page).not_to_have_url(first)
    expect(page.locator(".task .badge")).to_have_text("Failed")
    expect(page.locator(".facts")).to_contain_text("Starts again")
    page.go_back()
    expect(page).to_have_url(first)


def test_a_long_name_stays_where_it_stands_on_every_screen(chat: Chat) -> None:
    page = chat.page
    chat.send(f"run: test -e /{'a-long-way/' * 12}down || exit 9")
    failed = page.locator("[data-group=ended] .row.is-failed", has_text="a-long-way").first
    failed.get_by_role("link").click()
    step = page.locator(".task .step", has_text="a-long-way")
    expect(step).to_contain_text("It ended with an error")
    chat.send(f"run: sleep 300; echo {'a-long-time-' * 12}")
    expect(page.locator("#live .live-name")).to_contain_text("a-long-time")
    for width in (1440, 768, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(DRAWN)
        assert page.evaluate(TOO_WIDE) == []
        box, panel = step.bounding_box(), page.locator("#panel").bounding_box()
        assert box
        assert panel
        assert box["x"] + box["width"] <= panel["x"] + panel["width"]
    page.goto(f"{chat.product.url}/#/")
    expect(page.locator("#live .ticking").first).to_be_in_viewport(ratio=1)
    assert page.evaluate(TOO_WIDE) == []


def test_chat_and_task_lead_to_each_other(chat: Chat) -> None:
    page = chat.page
    chat.send("run: echo there-and-back")
    told = chat.told("there-and-back")
    told.locator(".card-open").click()
    expect(page.locator(".task h2")).to_contain_text("there-and-back")
    expect(page.get_by_role("region", name="Output")).to_contain_text("there-and-back")
    for number in range(8):
        chat.send(f"run: seq {30 + number}")
    expect(chat.told("37")).to_be_visible()
    expect(told).not_to_be_in_viewport()
    page.get_by_role("button", name="In the chat").click()
    expect(told).to_be_in_viewport()


def test_a_task_that_is_not_there_says_so(chat: Chat) -> None:
    chat.complaints.expect("404")
    chat.page.goto(f"{chat.product.url}/#/task/task-that-never-was")
    expect(chat.page.locator("#panel")).to_contain_text("No such task")


def test_a_trigger_is_paused_resumed_run_and_deleted(chat: Chat) -> None:
    page = chat.page
    chat.send("every 3 hours run echo from-the-trigger")
    page.get_by_role("link", name="Triggers").click()
    card = page.locator(".trigger", has_text="from-the-trigger")
    expect(card).to_contain_text("every 3 hours")
    expect(card).to_contain_text("has not fired yet")
    expect(card).to_contain_text("in 3 hours")  # the next run
    card.get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("paused")
    expect(card.get_by_role("button", name="Resume")).to_be_visible()
    card.get_by_role("button", name="Resume").click()
    expect(card.get_by_role("button", name="Pause")).to_be_visible()
    card.get_by_role("button", name="Run now").click()
    expect(page.locator("#timeline .fold", has_text="from-the-trigger")).to_be_visible()
    card.get_by_role("button", name="Delete").click()
    card.get_by_role("button", name="Keep").click()
    expect(card.get_by_role("group")).to_have_count(0)
    card.get_by_role("button", name="Delete").click()
    card.get_by_role("group").get_by_role("button", name="Delete").click()
    expect(card).to_have_count(0)
    assert chat.product.call("GET", "/api/triggers")["triggers"] == []
