"""Login by token and by link, and logout."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import Chat, Complaints
from tests.browser.product import Product

pytestmark = pytest.mark.browser

REFUSED = r"status of 401"


def test_the_token_logs_in_and_a_wrong_one_is_told(
    page: Page, product: Product, complaints: Complaints
) -> None:
    complaints.expect(REFUSED)
    page.goto(product.url)
    expect(page.get_by_label("Token")).to_be_focused()
    expect(page.locator(".hint")).to_contain_text("mimikit token")
    page.get_by_label("Token").fill("not the token")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("That is not the token")
    page.get_by_label("Token").fill(product.token)
    page.keyboard.press("Enter")
    expect(page.locator("#composer")).to_be_visible()
    assert product.token not in page.evaluate("JSON.stringify({...localStorage})")


def test_a_link_logs_in_once_and_leaves_no_trace_in_the_address(
    page: Page, product: Product, complaints: Complaints
) -> None:
    link = product.link()
    page.goto(link)
    expect(page.locator("#composer")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/$"))
    page.evaluate("localStorage.clear()")
    complaints.expect(REFUSED)
    page.goto("about:blank")
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("already used")


def test_another_server_of_this_machine_is_sent_nothing_of_the_session(chat: Chat) -> None:
    """A browser sends cookies to every port of their host; there are none."""
    sent: list[dict[str, str]] = []

    class Foreign(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append(dict(self.headers))
            self.send_response(200)
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            pass

    other = ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        page = chat.page.context.new_page()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
    finally:
        other.shutdown()
        other.server_close()
    assert "Cookie" not in sent[0]
    assert chat.page.evaluate("localStorage.getItem('mimikit.session')") not in json.dumps(sent)


def test_a_spent_link_does_no_harm_to_who_is_in(chat: Chat) -> None:
    chat.complaints.expect(REFUSED)
    link = chat.product.link()
    for status in (200, 401):
        with chat.page.expect_response("**/api/login") as answer:
            chat.page.goto(link)
        assert answer.value.status == status
        expect(chat.page.locator("#composer")).to_be_visible()
        chat.page.goto("about:blank")


def test_logging_out_leaves_in_every_tab_and_in_again_heals_them(
    chat: Chat, complaints: Complaints
) -> None:
    complaints.expect(REFUSED)
    other = chat.page.context.new_page()
    other.goto(chat.product.url)
    expect(other.locator(".connection.is-online")).to_be_attached()
    chat.field.fill("kept while away")
    chat.page.get_by_role("button", name="Settings").click()
    chat.page.get_by_role("button", name="Log out").click()
    expect(chat.page.get_by_label("Token")).to_be_visible()
    expect(other.get_by_label("Token")).to_be_visible()
    chat.page.get_by_label("Token").fill(chat.product.token)
    chat.page.keyboard.press("Enter")
    expect(chat.field).to_have_value("kept while away")
    expect(other.locator("#composer")).to_be_visible()
