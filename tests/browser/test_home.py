"""Home and the log, as their user meets them: what needs him is mended where it stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from mimikit.clock import SystemClock
from mimikit.protocol import paths
from mimikit.protocol.models import time_text
from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product, make_product

pytestmark = pytest.mark.browser


def lay_runs(product: Product) -> None:
    """A day: a request that waited, a trigger that ran each minute and failed twice."""
    now = SystemClock().now()
    lines: list[tuple[int, dict[str, Any]]] = [
        (n * 60 + 30, {"id": f"tick-{n}", "sourceTriggerId": "trig-gone", "title": "Ping"})
        for n in range(1400)
    ]
    lines.append((7000, {"id": "own", "title": "llm-eval-batch", "internal": True}))
    lines.append((7200, {"id": "long-one", "title": "Compare three apps", "waits": 1800}))
    for ago, facts in sorted(lines, key=lambda it: it[0], reverse=True):
        ended = now - timedelta(seconds=ago)
        started = ended - timedelta(seconds=20)
        created = started - timedelta(seconds=facts.pop("waits", 1))
        line = {
            "at": time_text(ended),
            "event": "ended",
            "seat": "worker",
            "status": "failed" if facts["id"] in ("tick-300", "tick-700") else "done",
            "traceId": facts["id"],
            "createdAt": time_text(created),
            "startedAt": time_text(started),
        }
        product.files.append(paths.ledger(now), line | facts)


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = make_product(tmp_path_factory.mktemp("home"))
    lay_runs(product)
    try:
        product.start()
        yield product
    finally:
        product.stop()


ACTIVE_IS_SELECTED = """(chart) => document.getElementById(
  chart.getAttribute("aria-activedescendant")).getAttribute("aria-selected")"""
"""Read at once: a key moves both."""


def need(page: Page, text: str) -> Locator:
    return page.locator(".need", has_text=text)


def part(page: Page, name: str) -> Locator:
    return page.locator(f"[data-part={name}]")


def test_home_stands_beside_the_chat_and_says_when_nothing_needs_its_user(
    lived_in: Product, open_chat: OpenChat
) -> None:
    page = open_chat(lived_in).page
    expect(page.locator("#panel")).to_contain_text("Nothing needs you.")
    expect(page.locator(".places [aria-current=page]")).to_have_text("Home")
    expect(part(page, "health")).to_contain_text("Running")
    expect(part(page, "health")).to_contain_text("0 of at most 3 at once")
    expect(part(page, "usage").get_by_role("link", name="Usage")).to_be_visible()


def test_a_failure_is_retried_or_seen_where_it_stands(
    lived_in: Product, open_chat: OpenChat
) -> None:
    page = open_chat(lived_in).page
    lived_in.say("run: echo first-failure; exit 3", "msg-home-1")
    lived_in.say("run: echo second-failure; exit 4", "msg-home-2")
    lived_in.say("run: echo third-failure; exit 5", "msg-home-3")
    for text in ("first-failure", "second-failure", "third-failure"):
        expect(need(page, text)).to_be_visible()
    badge = page.locator(".places").get_by_role("img", name="3 things need you")
    expect(badge).to_be_visible()
    with page.expect_response("**/dismiss"):  # what is under way goes with its page
        need(page, "first-failure").get_by_role("button", name="Seen").click()
    expect(need(page, "first-failure")).to_have_count(0)
    # Whoever looks at the task has seen it, too.
    with page.expect_response("**/dismiss"):
        need(page, "second-failure").get_by_role("link").click()
    expect(page.locator(".task")).to_be_visible()
    page.locator(".places").get_by_role("link", name="Home").click()
    expect(need(page, "third-failure")).to_be_visible()
    expect(need(page, "second-failure")).to_have_count(0)
    page.reload()
    expect(need(page, "third-failure")).to_be_visible()
    expect(page.locator(".need")).to_have_count(1)
    # Done again it fails again: that is a new one, and stays until it is looked at.
    need(page, "third-failure").get_by_role("button", name="Retry").click()
    expect(page).to_have_url(lived_in.url + "/#/home")
    lived_in.wait_until(lambda: len(retried(lived_in)) == 1)
    anew = need(page, "third-failure").get_by_role("link")
    expect(anew).to_have_attribute("href", f"#/task/{retried(lived_in)[0]['id']}")
    need(page, "third-failure").get_by_role("button", name="Seen").click()
    expect(page.locator("#panel")).to_contain_text("Nothing needs you.")


def failures(product: Product, text: str) -> int:
    found = product.call("GET", "/api/tasks?state=failed")["tasks"]
    return sum(text in task["title"] for task in found)


def test_failures_of_one_command_are_one_line_and_told_in_the_reader_s_language(
    lived_in: Product, browser: Browser
) -> None:
    for number in range(3):  # two that are answered in one turn are one job
        lived_in.say("run: echo failed-again; exit 6", f"msg-again-{number}")
        lived_in.wait_until(lambda: failures(lived_in, "failed-again") > number)  # noqa: B023 - at once
    context = browser.new_context(locale="zh-CN", timezone_id="Asia/Shanghai")
    page = context.new_page()
    page.goto(lived_in.link())
    fold = page.get_by_role("button", name="2 个较早的失败")
    expect(fold).to_have_attribute("aria-expanded", "false")
    expect(need(page, "failed-again")).to_have_count(1)
    expect(need(page, "failed-again").locator(".needs-error")).to_have_text("退出码 6")
    fold.click()
    expect(need(page, "failed-again")).to_have_count(3)
    page.get_by_role("button", name="全部标为已看").click()
    expect(need(page, "failed-again")).to_have_count(0)
    lived_in.wait_until(lambda: not lived_in.call("GET", "/api/home")["needs"])
    context.close()


def retried(product: Product) -> list[dict[str, Any]]:
    """Ends of tasks that repeat another."""
    found = product.files.lines(paths.ledger(SystemClock().now()))
    return [line for _, line in found if line.get("retryOf") and line.get("event") == "ended"]


def test_a_question_is_answered_at_home(fresh: Callable[..., Product], open_chat: OpenChat) -> None:
    product = fresh()
    product.start()
    chat = open_chat(product)
    question = {
        "questionId": "q-home", "question": "Which colour?", "options": ["red", "blue"],
        "default": None, "timeout": 3600, "createdAt": time_text(SystemClock().now()),
        "expiresAt": time_text(SystemClock().now() + timedelta(hours=1)),
    }  # fmt: skip
    product.files.write(paths.PENDING_QUESTION, json.dumps(question).encode())
    chat.reload()
    asked = need(chat.page, "Which colour?")
    expect(asked.get_by_role("button", name="red")).to_be_visible()
    asked.get_by_role("button", name="Answer").click()
    expect(chat.page.locator("#question-answer, #composer").first).to_be_focused()
    asked.get_by_role("button", name="blue").click()
    expect(asked).to_have_count(0)


def test_what_runs_and_what_comes_is_told_and_stopped(
    lived_in: Product, open_chat: OpenChat
) -> None:
    page = open_chat(lived_in).page
    lived_in.call(
        "POST",
        "/api/triggers",
        {"id": "trig-next", "prompt": "true", "profile": "command", "title": "Sweep",
         "when": "every 3 hours"},
    )  # fmt: skip
    coming = part(page, "next").get_by_role("link", name="Sweep")
    expect(coming).to_contain_text("in 3 hours")
    lived_in.say("run: echo at-it; sleep 300", "msg-home-run")
    running = part(page, "running").locator(".row", has_text="at-it")
    expect(running).to_be_visible()
    running.get_by_role("button", name="Cancel").click()
    expect(running).to_have_count(0)
    coming.click()
    expect(page).to_have_url(lived_in.url + "/#/trigger/trig-next")
    lived_in.call("DELETE", "/api/triggers/trig-next")


def test_the_last_hours_are_told_bar_by_bar_and_as_a_table(
    lived_in: Product, open_chat: OpenChat
) -> None:
    page = open_chat(lived_in).page
    page.goto(lived_in.url + "/#/home")
    chart = page.get_by_role("listbox", name="What ran in the last 24 hours")
    row = chart.get_by_role("group", name="trig-gone")
    expect(row).to_contain_text("1,400")
    expect(row.locator(".day-bar.is-failed")).to_have_count(2)
    assert row.locator(".day-bar").count() < 400
    long = chart.get_by_role("option", name="Compare three apps")
    wait, run = (long.locator(f".day-{name}").bounding_box() for name in ("wait", "run"))
    assert wait is not None
    assert run is not None
    assert wait["width"] > run["width"]  # half an hour against seconds
    assert wait["x"] + wait["width"] <= run["x"] + 1.5
    long.hover()
    told = page.locator(".day-told")
    expect(told).to_contain_text("Compare three apps")
    expect(told).to_contain_text("waited 30m")
    page.mouse.move(0, 0)  # what is drawn anew under it would be pointed at
    chart.focus()
    page.keyboard.press("ArrowDown")
    expect(told).to_contain_text("trig-gone")
    page.keyboard.press("Home")
    expect(told).to_contain_text("trig-gone")
    assert chart.evaluate(ACTIVE_IS_SELECTED) == "true"
    page.get_by_role("button", name="Show as a table").click()
    table = page.locator(".day-table")
    expect(table.locator("tr", has_text="Compare three apps")).to_contain_text("30m")
    expect(table).to_contain_text("mimikit's own upkeep")
    expect(table).not_to_contain_text("llm-eval-batch")
    page.get_by_role("button", name="Show as a picture").click()
    expect(chart).to_be_visible()


def test_the_log_is_live_filtered_held_and_taken_away(
    lived_in: Product, open_chat: OpenChat, tmp_path: Path
) -> None:
    page = open_chat(lived_in).page
    page.goto(lived_in.url + "/#/logs")
    expect(page.locator(".log").first).to_be_visible()
    lived_in.say("run: echo for-the-log", "msg-log-1")
    line = page.locator(".log", has_text="for-the-log").first
    expect(line).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    lived_in.say("run: echo held-back", "msg-log-2")
    expect(page.get_by_text("held back")).to_be_visible()
    expect(page.locator(".log", has_text="held-back")).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(page.locator(".log", has_text="held-back").first).to_be_visible()
    page.get_by_label("Search in the log").fill("for-the-log")
    expect(page.locator(".log", has_text="held-back")).to_have_count(0)
    expect(line).to_be_visible()
    line.get_by_role("button", name="only this").click()
    page.get_by_label("Search in the log").fill("")
    expect(page.locator(".log", has_text="held-back")).to_have_count(0)
    expect(line).to_be_visible()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save").click()
    saving.value.save_as(tmp_path / "log.jsonl")
    kept = [json.loads(text) for text in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert kept
    assert all(one["type"] == "task" for one in kept)
    page.get_by_role("button", name="Errors").click()
    expect(page.locator(".log", has_text="for-the-log")).to_have_count(0)


def test_the_conversation_is_taken_away_from_the_settings(chat: Chat, tmp_path: Path) -> None:
    page = chat.page
    chat.send("hello from the settings")
    said = page.locator("[data-delivery=answered]", has_text="hello from the settings")
    expect(said.first).to_be_visible()  # what waits in the inbox is not in the conversation yet
    page.get_by_role("link", name="Settings").click()
    for name, ending in (("Markdown", "md"), ("JSON", "json")):
        with page.expect_download() as saving:
            page.get_by_role("button", name=name).click()
        assert saving.value.suggested_filename.endswith(f".{ending}")
        saving.value.save_as(tmp_path / f"chat.{ending}")
        assert "hello from the settings" in (tmp_path / f"chat.{ending}").read_text()


def test_a_consumer_that_is_gone_comes_first(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh()
    product.start()
    page = open_chat(product).page
    expect(page.locator("#panel")).to_contain_text("Nothing needs you.")
    product.stop("consumer")
    expect(page.locator(".need").first).to_contain_text("its background service is not running")
    product.start("consumer")
    expect(page.locator("#panel")).to_contain_text("Nothing needs you.")


def test_on_a_phone_the_places_stand_at_the_bottom_and_are_large_enough(
    lived_in: Product, open_chat: OpenChat
) -> None:
    page = open_chat(lived_in).page
    page.set_viewport_size({"width": 360, "height": 740})
    expect(page.locator("#chat")).to_be_visible()  # the chat comes first
    places = page.locator(".places a")
    expect(places).to_have_text(["Chat", "Home", "Tasks", "Triggers", "Memory", "More"])
    for place in places.all():
        box = place.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
    places.nth(1).click()
    expect(page.locator(".day-chart")).to_be_visible()
    expect(page.locator("#chat")).not_to_be_visible()
    small = page.locator("#panel :is(button, .button, .home-next a, .more-link):visible")
    for one in small.all():
        box = one.bounding_box()
        assert box is not None
        assert box["height"] >= 43.9, one.inner_text()
    places.nth(5).click()
    page.get_by_role("link", name="Engines").click()
    expect(page.get_by_role("heading", name="Engines", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()


@for_everyone
def test_axe_finds_nothing_serious_and_nothing_goes_sideways(
    browser: Browser, lived_in: Product, scheme: Any, language: str, width: int
) -> None:
    lived_in.say("run: echo looked-at; exit 9", "msg-home-look")
    with looking(browser, scheme, language, width, expected="401") as (page, look):
        page.goto(lived_in.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        page.goto(lived_in.url + "/#/home")
        expect(page.locator(".need").first).to_be_visible()
        expect(page.locator(".day-chart")).to_be_visible()
        look("home")
        page.locator(".day-chart").focus()
        page.keyboard.press("ArrowDown")
        look("a bar")
        page.locator(".day-head button").click()
        look("table")
        page.goto(lived_in.url + "/#/logs?type=task")
        expect(page.locator(".log").first).to_be_visible()
        look("log")
        page.goto(lived_in.url + "/#/settings")
        expect(page.locator(".more-link").first).to_be_visible()
        look("settings")
