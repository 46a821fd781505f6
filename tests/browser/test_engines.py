"""Engines on the page: an endpoint is tried, set up, put first, removed; its key is never shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat
from tests.browser.product import Product
from tests.support.fake_llm import FakeLLM

pytestmark = pytest.mark.browser

KEY = "canary-key-7fq2"
FORM = "#engine-form"


@pytest.fixture(scope="module")
def llm() -> Iterator[FakeLLM]:
    steps = [{"call": {"name": "say", "arguments": {"word": "hello"}}}]
    models = [{"id": "m1"}, {"id": "m2"}]
    with FakeLLM(steps, apis=["/v1/chat/completions"], models=models, key=KEY) as server:
        yield server


def fill(page: Page, **values: str) -> None:
    for name, value in values.items():
        page.locator(f"#engine-{name}").fill(value)


def test_an_endpoint_is_tried_set_up_put_first_and_removed(chat: Chat, llm: FakeLLM) -> None:
    page = chat.page
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("link", name="Engines").click()
    expect(page.get_by_role("heading", name="Engines", exact=True)).to_be_visible()
    expect(page.locator("[data-engine=builtin]")).to_contain_text("serves")
    page.get_by_role("button", name="Add an endpoint").click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(f"{FORM} [aria-invalid=true]")).to_have_count(3)
    expect(page.locator("#engine-name")).to_be_focused()
    page.locator("#engine-keyIs").select_option("key")
    fill(page, name="deep", baseUrl=llm.url, key="wrong")
    page.get_by_role("button", name="List its models").click()
    expect(page.locator("#engine-key-error")).to_contain_text("The key was not accepted")
    fill(page, key=KEY)
    page.get_by_role("button", name="List its models").click()
    expect(page.locator(".engine-trial")).to_contain_text("It has 2 models: m1, m2")
    fill(page, model="m1")
    page.get_by_role("button", name="Try a turn").click()
    expect(page.locator(".engine-trial")).to_contain_text("It answers by Chat Completions")
    page.get_by_role("button", name="Save").click()
    card = page.locator("[data-engine=deep]")
    expect(card).to_contain_text(re.compile("ready.*m1.*key kept here", re.DOTALL))
    assert (chat.product.state / "secrets/engine-deep.key").read_text() == f"{KEY}\n"
    assert KEY not in page.content()
    card.get_by_role("button", name="Use deep first").click()
    expect(page.locator(".engine-names li").first).to_contain_text("deep")
    expect(card).to_contain_text("answering")
    page.locator("#engine-seat").select_option("planner")
    expect(page.locator(".engine-order")).to_contain_text("Served as the rest.")
    page.locator(".engine-order").get_by_role("button", name="without a model").click()
    expect(page.locator(".engine-names li")).to_have_text([re.compile("without a model")])
    page.get_by_role("button", name="As the rest").click()
    expect(page.locator(".engine-order")).to_contain_text("Served as the rest.")
    card.get_by_role("button", name="Remove deep").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(card).to_have_count(0)
    expect(page.locator("[data-engine=builtin]")).to_contain_text("answering")
    assert not (chat.product.state / "secrets/engine-deep.key").exists()


@for_everyone
def test_axe_finds_nothing_serious_and_nothing_goes_sideways(
    browser: Browser, product: Product, scheme: Any, language: str, width: int
) -> None:
    body = {"baseUrl": "http://127.0.0.1:9/a/rather/long/path/of/an/address/v1", "model": "m1"}
    product.call("PUT", "/api/engines/deep", body)
    with looking(browser, scheme, language, width, expected="nothing is expected") as (page, look):
        page.goto(f"{product.link()}")
        expect(page.locator("#composer")).to_be_attached()
        page.goto(f"{product.url}/#/engines")
        expect(page.locator("[data-engine=deep]")).to_be_visible()
        look("list")
        page.locator("#engine-add").click()
        page.locator("#engine-keyIs").select_option("key")
        page.locator(f"{FORM} [type=submit]").click()
        expect(page.locator(f"{FORM} [aria-invalid=true]").first).to_be_visible()
        look("form")
    product.call("DELETE", "/api/engines/deep", {})
