"""The list of work: one line for what came of one request, narrowed, counted, to the very first."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from mimikit.clock import SystemClock
from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.protocol.results import TaskResult
from mimikit.tasks import queue
from mimikit.tasks.ledger import Ledger
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser

MANY = 130
RUNS = "jobs?trigger=trig-runs&state=done"


def lay_work(product: Product, count: int) -> None:
    """Commands that ended in the last hours; each fiftieth has failed."""
    files, ledger = product.files, Ledger(product.files)
    for number in range(count):
        at = SystemClock().now() - timedelta(minutes=2 * (count - number))
        id_, failed = f"task-laid-{number:03d}", number % 50 == 0
        task = Task(
            id=id_,
            prompt=f"echo {number}",
            title=f"Work {number}",
            profile="command",
            created_at=at,
            trace_id=id_,
        )
        queue.submit(files, task)
        files.move(paths.queued("worker", id_), paths.running("worker", id_))
        result = TaskResult(
            id=id_,
            status="failed" if failed else "done",
            failure_reason="timeout" if failed else None,
            trace_id=id_,
            started_at=at,
            completed_at=at + timedelta(seconds=3),
        )
        queue.finish(files, result)
        told = {"status": result.status, "seat": "worker", "traceId": id_, "title": task.title}
        ledger.write("queued", id_, at, traceId=id_, seat="worker", title=task.title)
        ledger.write("ended", id_, result.completed_at, **told)
        queue.leave_running(files, "worker", id_)


def filters(page: Page, name: str) -> Locator:
    return page.get_by_role("navigation", name="Show").get_by_role("link", name=name)


def titles(page: Page) -> Locator:
    return page.locator(".work-row .row-title")


def test_all_work_is_counted_narrowed_by_the_address_and_loaded_to_the_first(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh()
    lay_work(product, MANY)
    product.start()
    page = open_chat(product, "/#/tasks").page
    expect(filters(page, "All 130")).to_have_attribute("aria-current", "true")
    expect(titles(page)).to_have_count(50)
    expect(titles(page).first).to_have_text("Work 129")
    page.get_by_role("button", name="Load older (80 more)").click()
    expect(titles(page)).to_have_count(100)
    page.get_by_role("button", name="Load older (30 more)").click()
    expect(titles(page)).to_have_count(MANY)
    expect(titles(page).last).to_have_text("Work 0")
    expect(page.get_by_role("button", name=re.compile("older"))).to_have_count(0)
    filters(page, "Failed 3").click()
    expect(titles(page)).to_have_text(["Work 100", "Work 50", "Work 0"])
    expect(page).to_have_url(re.compile(r"#/tasks\?state=failed$"))
    page.get_by_placeholder("Find work").fill("work 5")
    expect(titles(page)).to_have_text(["Work 50"])
    expect(filters(page, "All 11")).to_be_visible()
    expect(page).to_have_url(re.compile(r"#/tasks\?state=failed&q=work\+5$"))
    page.reload()
    expect(titles(page)).to_have_text(["Work 50"])
    expect(page.locator(".work-row")).to_contain_text("It took longer than it may")
    page.get_by_role("button", name="Retry: Work 50").click()
    expect(page.get_by_role("heading", name="Work 50")).to_be_focused()
    expect(page.locator(".task .badge").first).to_have_text("Done")
    page.get_by_role("link", name="All work").click()
    page.get_by_placeholder("Find work").fill("nothing at all")
    expect(page.locator("#panel")).to_contain_text("Nothing fits")
    page.get_by_role("link", name="Show all").click()
    expect(filters(page, "Failed 2")).to_be_visible()


def test_a_plan_is_a_step_of_its_work_and_work_of_a_trigger_is_one_line(
    product: Product, open_chat: OpenChat
) -> None:
    chat: Chat = open_chat(product, "/#/tasks")
    page = chat.page
    chat.send("run: echo one-line-of-work")
    row = page.locator(".work-row", has_text="one-line-of-work")
    expect(row.locator(".row.is-done")).to_be_visible()
    expect(row).to_have_count(1)
    row.get_by_role("button", name=re.compile("2 steps of")).click()
    expect(row.locator(".step")).to_have_text(
        [re.compile("Planning"), re.compile("one-line-of-work")]
    )
    row.locator(".step a").first.click()
    expect(page.locator(".task .step a[aria-current=true]")).to_contain_text("Planning")
    body = {"id": "trig-runs", "prompt": "echo tick", "profile": "command", "title": "Ticking"}
    product.call("POST", "/api/triggers", body | {"schedule": {"interval": 3600}})
    for number in range(3):
        product.wait_until(
            lambda: any(one["id"] == "trig-runs" for one in listed(product, "triggers"))
        )
        product.call("POST", "/api/triggers/trig-runs/run", {})
        product.wait_until(lambda n=number: len(listed(product, RUNS)) > n)
    page.get_by_role("link", name="All work").click()
    ticking = page.locator(".work-row", has_text="Ticking")
    expect(ticking).to_have_count(1)
    ticking.get_by_role("link", name="3 runs").click()
    expect(page).to_have_url(re.compile(r"#/tasks\?trigger=trig-runs$"))
    expect(page.locator(".work-row", has_text="Ticking")).to_have_count(3)
    expect(page.get_by_label("Runs of a trigger")).to_have_value("trig-runs")


def listed(product: Product, what: str) -> list[dict[str, str]]:
    return product.call("GET", f"/api/{what}")[what.partition("?")[0]]


def test_the_address_of_whole_work_shows_its_step(product: Product, open_chat: OpenChat) -> None:
    chat: Chat = open_chat(product, "/#/tasks")
    chat.complaints.expect("404")
    chat.send("run: echo by-its-own-address")
    page = chat.page
    row = page.locator(".work-row", has_text="by-its-own-address")
    expect(row.locator(".row.is-done")).to_be_visible()
    job = row.get_attribute("data-job")
    page.goto(f"{product.url}/#/task/{job}")
    expect(page.get_by_role("region", name="Output")).to_contain_text("by-its-own-address")
