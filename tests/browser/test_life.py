"""Settings on the page: a notification channel, an improvement's branch, and limits."""

from __future__ import annotations

import subprocess

import pytest
from playwright.sync_api import Page, expect

from mimikit.clock import SystemClock
from mimikit.protocol import paths
from mimikit.protocol.runtime import Improvement, SelfAwakeState
from mimikit.roles.worktree import BRANCHES
from tests.browser.pages import Chat

pytestmark = pytest.mark.browser
BRANCH = f"{BRANCHES}lint-1"
REPOSITORY = f"""
git init -qb main; echo a > main.py; git add main.py; git commit -qm 1
git checkout -qb {BRANCH}; echo better > main.py; git commit -qam 2; git checkout -q main
"""
GIT = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere"} | {
    f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def open_settings(page: Page) -> None:
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("link", name="Notifications and limits").click()
    expect(page.get_by_role("heading", name="Notifications", exact=True)).to_be_visible()


def test_a_channel_is_added_and_removed_and_its_address_is_hidden(chat: Chat) -> None:
    page = chat.page
    open_settings(page)
    add = page.get_by_role("button", name="Add a channel")
    page.locator("#notify-url").fill("nonsense")
    add.click()
    expect(page.locator("#notify-url-error")).to_be_visible()
    page.locator("#notify-url").fill("ntfy://127.0.0.1:9/a-long-topic-k9")
    add.click()
    card = page.locator("[data-channel=ntfy]")
    expect(card).to_contain_text("ntfy://•••k9")
    assert "a-long-topic" not in page.content()
    card.get_by_role("button", name="Send a test").click()
    expect(page.locator(".notice-error")).to_be_visible()
    card.get_by_role("button", name="Remove the channel ntfy?").click()
    card.get_by_role("button", name="Delete", exact=True).click()
    expect(card).to_have_count(0)


def test_an_improvement_is_read_and_its_branch_deleted(chat: Chat) -> None:
    page, product = chat.page, chat.product
    subprocess.run(["sh", "-ec", REPOSITORY], cwd=product.workspace, env=GIT, check=True)
    now = SystemClock().now()
    run = Improvement(
        id="lint-1", item="lint", started_at=now, plan="task-1", end="committed", branch=BRANCH
    )
    product.files.save(paths.SELF_AWAKE, SelfAwakeState(past=[run]))
    open_settings(page)
    card = page.locator(f"[data-branch='{BRANCH}']")
    expect(card).to_contain_text(f"git merge {BRANCH}")
    card.get_by_role("button", name="What changes").click()
    expect(card.locator(".diff-added")).to_contain_text("better")
    switch = page.get_by_role("button", name="Improve while idle")
    switch.click()
    expect(switch).to_have_attribute("aria-pressed", "true")
    card.get_by_role("button", name="Delete the branch").click()
    card.get_by_role("button", name="Delete the branch").click()
    expect(card).to_contain_text("merged or deleted")
    assert (product.workspace / "main.py").read_text() == "a\n"


def test_limits_are_set_and_stay(chat: Chat) -> None:
    page = chat.page
    open_settings(page)
    page.locator("#life-retention-days").fill("x")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#life-retention-days-error")).to_be_visible()
    page.locator("#life-retention-days").fill("7")
    page.locator("#life-notify-quiet").fill("22:00-08:00")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.").first).to_be_visible()
    page.reload()
    expect(page.locator("#life-retention-days")).to_have_value("7")
    expect(page.locator("#life-notify-quiet")).to_have_value("22:00-08:00")
