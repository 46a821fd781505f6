"""Work in the conversation: one card for each job, one line for the runs of a trigger."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.pages import Chat

pytestmark = pytest.mark.browser


def card(page: Page, title: str) -> Locator:
    return page.locator("#timeline .card", has_text=title)


def test_a_command_is_one_card_that_runs_and_then_shows_its_output_once(chat: Chat) -> None:
    page = chat.page
    goes_on = chat.product.workspace / "card-goes-on"
    line = f"until test -e {goes_on}; do sleep 0.1; done"  # it runs until it was looked at
    chat.send(f"run: for n in 1 2 3 4 5 6 7 8; do echo card-line-$n; {line}; done")
    one = card(page, "card-line")
    expect(one).to_have_class(re.compile("is-running"))
    expect(one.locator(".card-lines")).to_contain_text(re.compile(r"card-line-\d"))
    expect(one.locator(".card-state")).to_contain_text(re.compile(r"Running · \d+:\d\d"))
    expect(page.locator("#live")).to_contain_text("running: for n in")
    goes_on.touch()
    expect(one).to_have_class(re.compile("is-done"))
    expect(one.locator(".card-result pre")).to_contain_text("card-line-8")
    expect(page.locator("#timeline pre", has_text="card-line-8")).to_have_count(1)
    expect(one).to_have_count(1)
    one.get_by_role("button", name="2 steps").click()
    expect(one.locator(".steps li")).to_have_text([re.compile("Plan"), re.compile("for n in")])
    chat.reload()
    expect(card(page, "card-line").locator(".card-result pre")).to_contain_text("card-line-8")
    expect(page.locator("#timeline pre", has_text="card-line-8")).to_have_count(1)


def test_a_failure_is_red_says_why_and_can_be_tried_again(chat: Chat) -> None:
    page = chat.page
    marker = chat.product.workspace / "may-succeed"
    chat.send(f"run: echo tried-it; test -e {marker}")
    one = card(page, "tried-it")
    expect(one).to_have_class(re.compile("is-failed"))
    expect(one.locator(".card-result")).to_contain_text("exit code 1")
    marker.touch()
    one.get_by_role("button", name=re.compile("^Retry")).click()
    expect(one).to_have_class(re.compile("is-done"))
    expect(one.locator(".card-result")).not_to_contain_text("exit code 1")
    expect(one).to_have_count(1)


def test_of_several_that_were_asked_at_once_the_failure_is_told(chat: Chat) -> None:
    chat.product.stop("consumer")  # so that one turn takes both
    chat.product.say("run: echo went-wrong; exit 5", "msg-both-1")
    chat.product.say("run: sleep 1; echo went-well", "msg-both-2")
    chat.product.start("consumer")
    one = card(chat.page, "went-wrong")
    expect(one).to_have_class(re.compile("is-failed"))
    expect(one.locator(".card-result")).to_contain_text("exit code 5")
    expect(one.locator(".card-result")).to_contain_text("went-wrong")


def test_work_is_canceled_where_it_is_shown_and_its_end_told_where_one_is(chat: Chat) -> None:
    page = chat.page
    chat.send("run: echo begun; sleep 600")
    one = card(page, "sleep 600").last
    expect(one.locator(".card-lines")).to_contain_text("begun")
    chat.send("memory")  # one goes on talking
    expect(page.locator("#timeline .message.is-user").last).to_have_attribute(
        "data-delivery", "answered"
    )
    one.get_by_role("button", name=re.compile("^Cancel")).click()
    expect(one).to_have_class(re.compile("is-canceled"))
    one.get_by_role("link", name=re.compile("^Open")).click()
    expect(page.locator("#panel")).to_contain_text("Canceled")


def test_a_trigger_is_one_line_that_opens_and_its_failure_stands_on_top(chat: Chat) -> None:
    page = chat.page
    chat.product.say("every 1 second run: date +%N", "msg-often")
    fold = page.locator("#timeline .fold", has_text="date")
    expect(fold).to_contain_text(re.compile(r"[4-9] runs today · last \d\d:\d\d · changed"))
    expect(fold).to_have_count(1)
    rows = page.locator("#timeline > li:not(.room)")
    above = rows.nth(-2).get_attribute("id") or ""
    expect(fold).to_contain_text(re.compile(r"(\d\d|[7-9]) runs today"))
    expect(fold).to_have_count(1)  # no run has a row of its own, above it or below
    expect(rows.last.locator(".fold", has_text="date")).to_be_visible()
    expect(rows.nth(-2)).to_have_attribute("id", above)
    fold.click()
    firings = page.locator("#timeline .firings li")
    expect(firings.nth(3)).to_be_visible()
    expect(firings.first).to_be_in_viewport()  # though its line stood at the bottom
    expect(firings.first.get_by_role("link")).to_have_attribute("href", re.compile("#/task/"))


def test_a_trigger_that_fails_is_red_above_its_line(chat: Chat) -> None:
    page = chat.page
    chat.product.say("every 2 seconds run: echo no-luck; exit 3", "msg-unlucky")
    failed = page.locator("#timeline .fold-failed").last
    expect(failed).to_contain_text("exit code 3")
    expect(failed.get_by_role("button", name=re.compile("^Retry"))).to_be_enabled()
