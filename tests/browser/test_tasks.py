"""The side panel: tasks and triggers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import Chat

pytestmark = pytest.mark.browser

SLOW = "run: for n in $(seq 600); do echo step $n; sleep 0.2; done"


def row(page: Page, group: str, text: str) -> Locator:
    """Where a task stands in the list."""
    return page.locator(f"[data-group={group}] .row", has_text=text).first


def test_a_task_is_watched_and_canceled(chat: Chat) -> None:
    page = chat.page
    chat.send(SLOW)
    running = row(page, "running", "seq 600")
    expect(running.locator(".ticking")).to_have_text(re.compile(r"^0:\d\d$"))
    expect(page.locator("#live")).to_contain_text("1 worker")
    running.get_by_role("link").click()
    expect(page.get_by_role("heading", name=re.compile("seq 600"))).to_be_focused()
    expect(page.get_by_role("region", name="Output")).to_contain_text("step 3")
    expect(page.locator(".facts")).to_contain_text("1 of 1")
    expect(page.locator(".trace li")).to_have_count(2)
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator(".task .badge")).to_have_text("Canceled")
    expect(page.locator(".notice")).to_contain_text("Canceled")
    expect(page.locator("#live")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(
        page.locator("[data-group=ended] .row.is-canceled", has_text="seq 600").first
    ).to_be_visible()
    expect(page.locator("[data-group=running] .row")).to_have_count(0)


def test_a_failure_is_told_in_words_and_can_be_tried_again(chat: Chat) -> None:
    page = chat.page
    chat.send("run: echo why-not >&2; exit 3")
    failed = page.locator("[data-group=ended] .row.is-failed", has_text="why-not").first
    expect(failed).to_contain_text("ended with an error")
    failed.get_by_role("link").click()
    expect(page.locator(".failure")).to_contain_text("exit code 3")
    expect(page.locator("#output .stderr")).to_contain_text("why-not")
    first = page.url
    page.get_by_role("button", name="Retry").click()
    expect(page).not_to_have_url(first)
    expect(page.locator(".task .badge")).to_have_text("Failed")
    expect(page.locator(".facts")).to_contain_text("Retry of")
    page.go_back()
    expect(page).to_have_url(first)


def test_chat_and_task_lead_to_each_other(chat: Chat) -> None:
    page = chat.page
    chat.send("run: echo there-and-back")
    told = chat.told("there-and-back")
    told.locator(".chip").click()
    expect(page.locator(".task h2")).to_contain_text("there-and-back")
    expect(page.get_by_role("region", name="Output")).to_contain_text("there-and-back")
    for number in range(8):
        chat.send(f"run: seq {30 + number}")
    expect(chat.told("37")).to_be_visible()
    expect(told).not_to_be_in_viewport()
    page.get_by_role("button", name="In the chat").click()
    expect(told).to_be_in_viewport()
