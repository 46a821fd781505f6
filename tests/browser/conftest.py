"""The real product, the page over a consumer and gunicorn, in a real browser.

A page that logs an error, throws, or breaks its content policy fails its test, whatever the test
looks at. `page.wait_for_function` needs eval, which the policy forbids: wait for what is shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect

from tests.browser.pages import Chat, Complaints, OpenChat
from tests.browser.product import Product, make_product, running
from tests.support import programs

ENGLISH: dict[str, Any] = {
    "locale": "en-GB",
    "timezone_id": "Asia/Shanghai",
    "viewport": {"width": 1280, "height": 820},
}
VIOLATIONS = """addEventListener("securitypolicyviolation", (event) => {
  const {violatedDirective, blockedURI, sample} = event;
  console.error(`content policy: ${violatedDirective} ${blockedURI} ${sample}`);
});"""
KEPT = """{
  const [origin, key] = %s;
  if (location.origin === origin && !localStorage.getItem(`seen ${key}`)) {
    localStorage.setItem(`seen ${key}`, "1");
    localStorage.setItem("mimikit.session", key);
  }
}"""
expect.set_options(timeout=15_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test reports the address and text of its pages."""
    report = yield
    browser = item.funcargs.get("browser")
    if call.when == "call" and report.failed and isinstance(browser, Browser):
        pages = [page for context in browser.contexts for page in context.pages]
        report.sections += [("the page as it was left", as_left(page)) for page in pages]
    return report


def as_left(page: Page) -> str:
    """A page's address, and the text one sees on it."""
    try:
        text = page.locator("body").inner_text(timeout=2000)
    except Error as error:
        text = f"(cannot be read: {error})"
    return f"{page.url}\n\n{text}"


@pytest.fixture(scope="session")
def browser_type_launch_args() -> dict[str, Any]:
    """Debian's Chromium, as it runs in a container."""
    quiet = "gpu quic background-networking component-update sync"
    return {
        "executable_path": programs.browser(),
        "chromium_sandbox": False,
        "args": ["--no-first-run", *(f"--disable-{word}" for word in quiet.split())],
    }


@pytest.fixture(scope="session")
def browser_context_args() -> dict[str, Any]:
    """English, in the time zone of Shanghai."""
    return ENGLISH


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """One product for all tests that leave it working; its messages stay."""
    with running(tmp_path_factory.mktemp("shared")) as product:
        yield product


@pytest.fixture
def product(shared: Product) -> Iterator[Product]:
    """The shared product, running before and after; its triggers are removed in between."""
    yield shared
    for name in ("consumer", "web"):
        if name not in shared.processes:
            shared.start(name)
    for trigger in shared.call("GET", "/api/triggers")["triggers"]:
        shared.call("DELETE", f"/api/triggers/{trigger['id']}")


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[..., Product]]:
    """Makes separate products, not started, so that a test may prepare their state first."""
    made: list[Product] = []

    def make(script: object = None) -> Product:
        settings = (
            '[roles.teller]\nengine = "scripted"\n[roles.planner]\nengine = "scripted"\n'
            '[profiles.standard]\nengine = "scripted"'
        )
        root = tmp_path / f"product-{len(made)}"
        product = make_product(root, settings if script is not None else "")
        if script is not None:
            product.script = tmp_path / "script.json"
            product.script.write_text(json.dumps(script))
        made.append(product)
        return product

    yield make
    for product in made:
        product.stop()


@pytest.fixture
def complaints(context: BrowserContext) -> Iterator[Complaints]:
    """Fails the test for every complaint it did not expect."""
    kept = Complaints()
    context.add_init_script(VIOLATIONS)
    context.on("page", kept.watch)
    yield kept
    assert kept.unexpected() == []


@pytest.fixture
def open_chat(context: BrowserContext, complaints: Complaints) -> OpenChat:
    """Opens the page of a product, logged in."""

    def opened(product: Product, path: str = "/") -> Chat:
        answer = context.request.post(
            f"{product.url}/api/login",
            data={"token": product.token},
            headers={"Origin": product.url, "Sec-Fetch-Site": "same-origin"},
        )
        assert answer.ok, answer.text()
        # Once for each login: what the page itself keeps later is not written over.
        context.add_init_script(KEPT % json.dumps([product.url, answer.json()["key"]]))
        page = context.new_page()
        page.goto(product.url + path)
        expect(page.locator("#composer")).to_be_attached()
        expect(page.locator(".connection.is-online")).to_be_attached()
        return Chat(page, product, complaints)

    return opened


@pytest.fixture
def chat(product: Product, open_chat: OpenChat) -> Chat:
    """The page of the shared product, logged in."""
    return open_chat(product)
