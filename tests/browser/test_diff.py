"""What a task changed, on its page: files, lines, folds, and what is missing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from mimikit.clock import SystemClock
from mimikit.protocol import paths
from mimikit.protocol.models import Task
from mimikit.protocol.results import DiffHunk, FileDiff, TaskDiff, TaskResult
from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat
from tests.browser.product import Product

pytestmark = pytest.mark.browser


def hunk(*lines: str, at: int = 1) -> DiffHunk:
    old, new = (sum(line[0] in signs for line in lines) for signs in (" -", " +"))
    return DiffHunk(old_start=at, old_lines=old, new_start=at, new_lines=new, lines=list(lines))


DIFF = TaskDiff(
    id="task-diff",
    files=[
        FileDiff(
            path="src/app.py",
            action="modified",
            added=1,
            removed=1,
            hunks=[hunk(" a", "-<b>old</b>", "+new ‹U+202E› " + "long " * 100, " c", at=7)],
        ),
        FileDiff(
            path="long.txt",
            action="added",
            added=150,
            shared=True,
            hunks=[hunk(*(f"+line {number}" for number in range(150)))],
        ),
        FileDiff(
            path="huge.txt",
            action="added",
            added=900,
            cut_lines=1234,
            hunks=[hunk(*(f"+row {number}" for number in range(900)))],
        ),
        FileDiff(path="logo.png", action="deleted", unshown="binary", old_size=2048, attempt=1),
        FileDiff(path="b.txt", from_path="a.txt", action="renamed"),
    ],
    more_files=2,
    unseen=["node_modules"],
)


def lay(product: Product) -> None:
    """A task that has ended and changed files, as the consumer leaves it."""
    files, now = product.files, SystemClock().now()
    task = Task(id="task-diff", prompt="mend it", created_at=now, trace_id="task-diff")
    result = TaskResult.of(task, "done", attempts=1, started_at=now, completed_at=now)
    files.save(paths.diff(task.id), DIFF)
    files.save(
        paths.result("worker", task.id),
        result.but(result_type="code_change", result={"text": "Mended."}, diff=paths.diff(task.id)),
    )
    files.save(paths.ended("worker", task.id), task)


@pytest.fixture
def opened(chat: Chat) -> Chat:
    lay(chat.product)
    chat.page.goto(f"{chat.product.url}/#/task/task-diff")
    expect(chat.page.get_by_role("heading", name="7 changed files")).to_be_visible()
    return chat


def test_changed_lines_stand_with_their_numbers_and_are_told_apart_without_colour(
    opened: Chat,
) -> None:
    page = opened.page
    expect(page.get_by_role("heading", name="Result: files changed")).to_be_visible()
    table = page.get_by_role("region", name="Changes in src/app.py").get_by_role("table")
    rows = table.locator("tr")
    expect(rows.nth(1)).to_have_text("From line 7")
    expect(table.locator("del")).to_have_text("<b>old</b>")
    numbers = table.locator(".diff-number")
    expect(numbers).to_have_text(["7", "7", "8", "", "", "8", "9", "9"])
    texts = ["a", "−<b>old</b>", re.compile(r"^\+new ‹U\+202E› long"), "c"]
    expect(table.locator(".diff-text")).to_have_text(texts)
    added, same = (
        page.evaluate(f"getComputedStyle(document.querySelector('{row}')).backgroundColor")
        for row in (".diff-added", ".diff-same")
    )
    assert added != same


def test_a_long_part_is_unfolded_by_the_keyboard(opened: Chat) -> None:
    page = opened.page
    file = page.locator("[data-file='long.txt']")
    expect(file.locator(".diff-added")).to_have_count(40)
    more = file.get_by_role("button", name="Show 110 more lines")
    more.focus()
    page.keyboard.press("Enter")
    expect(file.locator(".diff-added")).to_have_count(150)
    expect(file).to_contain_text("Other work ran meanwhile")


def test_what_has_no_lines_is_told_in_words(opened: Chat) -> None:
    diff = opened.page.locator(".diff")
    expect(diff).to_contain_text("Binary file: 2,048 bytes")
    expect(diff).to_contain_text("a.txt → b.txt")
    expect(diff).to_contain_text("2 more files changed and are not listed.")
    expect(diff).to_contain_text("Not looked at: node_modules")


@for_everyone
def test_a_diff_is_for_everyone(
    browser: Browser, product: Product, scheme: Any, language: str, width: int
) -> None:
    lay(product)
    with looking(browser, scheme, language, width, expected="401") as (page, look):
        page.goto(product.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        page.goto(f"{product.url}/#/task/task-diff")
        expect(page.locator(".diff-added").first).to_be_visible()
        look("diff")
        heading = {"en-GB": "7 changed files", "zh-CN": "改动了 7 个文件"}[language]
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
