"""Jobs: the card in the chat, the list, one task."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from mimikit.clock import SystemClock
from mimikit.tasks.ledger import Ledger
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

SLOW = "run: for n in $(seq 600); do echo step $n; sleep 0.2; done"


def row(page: Page, group: str, text: str) -> Locator:
    """Where a job stands in the list."""
    return page.locator(f"[data-group={group}] .row", has_text=text).first


def card(page: Page, text: str) -> Locator:
    return page.locator("#timeline .job", has_text=text).last


def test_a_job_is_one_card_from_its_request_to_its_end(chat: Chat) -> None:
    page = chat.page
    before = page.locator("#timeline > .message").count()
    chat.send(SLOW)
    running = card(page, "seq 600")
    expect(running.locator(".ticking")).to_have_text(re.compile(r"^0:\d\d$"))
    expect(running).to_contain_text("step 3")
    running.get_by_role("button", name="Cancel").click()
    expect(running).to_have_class(re.compile("is-canceled"))
    chat.send("run: echo why-not >&2; exit 3")
    failed = card(page, "why-not")
    expect(failed).to_contain_text("exit code 3")
    assert (failed.text_content() or "").count("why-not") == 2  # in its title, and printed
    failed.get_by_role("button", name="Retry").click()
    expect(failed.locator(".job-steps li")).to_have_count(2)
    expect(page.locator("#timeline > .message")).to_have_count(before + 2)
    expect(page.locator("#timeline")).not_to_contain_text("Planner")


def test_runs_of_a_trigger_are_one_line(chat: Chat) -> None:
    page = chat.page
    chat.send("every 1 second run date +%N")
    line = page.locator("#timeline [data-runs]", has_text="date")
    expect(line).to_contain_text(re.compile(r"[3-9] runs.*changed [2-9] ×"))
    chat.send("run: echo between")
    expect(chat.told("between")).to_be_visible()
    expect(line).to_have_count(1)
    line.get_by_role("button", name="date").click()
    expect(line.locator(".job-steps li").nth(2)).to_be_visible()
    page.get_by_role("link", name="Tasks").click()
    page.locator("#panel .chip", has_text="By trigger").click()
    expect(page.locator("[data-group] .row", has_text="date +%N")).to_have_count(1)


def test_the_list_is_whole_and_can_be_narrowed(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh()
    ledger, now = Ledger(product.files), SystemClock().now()
    for number in range(120):
        facts = {"traceId": f"t{number}", "title": f"old {number}", "seat": "worker"}
        ledger.write("ended", f"task-{number}", now, **facts, status="done")
    product.start()
    page = open_chat(product).page
    page.get_by_role("link", name="Tasks").click()
    expect(page.get_by_role("button", name="Done 120")).to_be_visible()
    rows = page.locator("[data-group=ended] .row")
    for count in (50, 100, 120):
        expect(rows).to_have_count(count)
        if count < 120:
            page.get_by_role("button", name="Load more").click()
    page.get_by_role("searchbox").fill("OLD 11")
    expect(rows).to_have_count(11)
    page.get_by_role("button", name="Failed 0").click()
    expect(page.locator("#panel")).to_contain_text("Nothing fits.")


def test_a_task_is_watched_and_canceled(chat: Chat) -> None:
    page = chat.page
    chat.send(SLOW)
    running = row(page, "running", "seq 600")
    expect(running.locator(".ticking")).to_have_text(re.compile(r"^0:\d\d$"))
    expect(page.locator("#live")).to_contain_text("1 running")
    running.get_by_role("link").click()
    expect(page.get_by_role("heading", name=re.compile("seq 600"))).to_be_focused()
    expect(page.get_by_role("region", name="Output")).to_contain_text("step 3")
    expect(page.locator(".facts")).to_contain_text("1 of 1")
    expect(page.locator(".trace")).to_have_count(0)  # its plan is no step
    page.locator("#panel").get_by_role("button", name="Cancel", exact=True).click()
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
    home = page.locator("[data-group=needs] .row", has_text="why-not")
    expect(home.get_by_role("button", name="Retry")).to_be_visible()
    page.get_by_role("link", name="Tasks").click()
    failed = page.locator("[data-group=ended] .row.is-failed", has_text="why-not").first
    expect(failed).to_contain_text("ended with an error")
    failed.get_by_role("link").click()
    expect(page.locator(".failure")).to_contain_text("exit code 3")
    expect(page.locator("#output .stderr")).to_contain_text("why-not")
    first = page.url
    page.locator(".task").get_by_role("button", name="Retry").click()
    expect(page).not_to_have_url(first)
    expect(page.locator(".task .badge")).to_have_text("Failed")
    expect(page.locator(".facts")).to_contain_text("Retry of")
    page.go_back()
    expect(page).to_have_url(first)


def test_much_output_is_whole_on_its_page(chat: Chat) -> None:
    page = chat.page
    chat.send("run: seq 60000")
    card(page, "seq 60000").get_by_role("link", name="more characters").click()
    page.get_by_role("button", name="Show all").click()
    output = page.get_by_role("region", name="Output")
    expect(output).to_contain_text(re.compile("^\\s*1\\s.*\\s60000\\s*$", re.DOTALL))
    assert (output.text_content() or "").split() == [str(n) for n in range(1, 60001)]
    runs = chat.product.call("GET", "/api/home")["timeline"]
    assert [run["title"] for run in runs].count("seq 60000") == 1  # its plan is no run


def test_chat_and_task_lead_to_each_other(chat: Chat) -> None:
    page = chat.page
    chat.send("run: echo there-and-back")
    told = chat.told("there-and-back")
    told.get_by_role("link", name="Open").click()
    expect(page.locator(".task h2")).to_contain_text("there-and-back")
    expect(page.get_by_role("region", name="Output")).to_contain_text("there-and-back")
    for number in range(8):
        chat.send(f"run: seq {30 + number}")
    expect(chat.told("37")).to_be_visible()
    expect(told).not_to_be_in_viewport()
    page.get_by_role("button", name="In the chat").click()
    expect(told).to_be_in_viewport()
