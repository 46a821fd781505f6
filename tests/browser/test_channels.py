"""Channels of notifications on the page: set up, tried, removed; an address is never shown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.pages import Chat
from tests.support.receiver import Receiver

pytestmark = pytest.mark.browser

SECRET = "canary-topic-7fq2"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def test_a_channel_is_set_up_tried_and_removed(chat: Chat, receiver: Receiver) -> None:
    page, address = chat.page, receiver.url(f"/{SECRET}")
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="Notifications").click()
    expect(page.get_by_role("heading", name="Notifications", exact=True)).to_be_visible()
    expect(page.locator(".engines-page")).to_contain_text("No channel is set up yet.")
    page.get_by_role("button", name="Add a channel").click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#channel-form [aria-invalid=true]")).to_have_count(2)
    page.locator("#channel-name").fill("phone")
    page.locator("#channel-url").fill(address)
    page.get_by_role("checkbox", name="canceled work").uncheck()
    page.get_by_role("button", name="Save").click()
    card = page.locator("[data-channel=phone]")
    expect(card).to_contain_text("json")
    expect(card).to_contain_text("reminders, questions, failures, paused triggers, long work")
    assert (chat.product.state / "secrets/notify-phone.url").read_text() == f"{address}\n"
    card.get_by_role("button", name="Send a test by phone").click()
    expect(card).to_contain_text("The test was sent.")
    assert receiver.arrived[0]["message"] == "This is a test: notifications reach you here."
    card.get_by_role("button", name="Change phone").click()
    expect(page.locator("#channel-url")).to_have_value("")
    page.locator("#channel-url").fill(receiver.url(f"/refuse/{SECRET}"))
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#channel-form")).to_have_count(0)
    card.get_by_role("button", name="Send a test by phone").click()
    expect(card).to_contain_text("error=401")
    assert SECRET not in page.content()
    card.get_by_role("button", name="Remove phone").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(card).to_have_count(0)
    assert not (chat.product.state / "secrets/notify-phone.url").exists()
