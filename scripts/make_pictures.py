"""Makes the pictures of the docs anew, from the product as it runs.

Run by hand when the page has changed (`python scripts/make_pictures.py`), and look at them. Needs
Chromium, as the tests of the page do.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

REPO = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPO))

from tests.browser.pages import DRAWN  # noqa: E402 - a script's folder is not the repository
from tests.browser.product import make_product  # noqa: E402
from tests.support import programs  # noqa: E402

PICTURES = REPO / "docs" / "images"
BEFORE = """Staging is called otter; ansible brings it up: `make staging`.

Production: only on Thursdays, after the backup.
"""
ENGLISH = (
    "every 10 seconds run: date +%H:%M",
    "every weekday at 9 run: ./report.sh",
    "run: ./deploy.sh staging",
    "remind me tomorrow at 9 to call Bob",
    'run: for i in $(seq 400); do echo "checked page $i of 400"; sleep 0.5; done',
)
CHINESE = (
    "每 10 秒执行 date +%H:%M",
    "每个工作日早上 9 点执行 ./report.sh",
    "执行 ./deploy.sh staging",
    "明天早上 9 点提醒我给小王打电话",
    '执行：for i in $(seq 400); do echo "第 $i 页，共 400 页"; sleep 0.5; done',
)
NOTES = (
    "记住：生产环境只在周四部署",
    "remember that the deploy to otter takes 4 minutes",
    "remember that Ada reviews every schema change",
    "what do you know about the deploy to otter?",
)


@contextmanager
def page_of(scheme: str, language: str, height: int, says: tuple[str, ...]) -> Generator[Page]:
    """The page of a product of its own, to which all this was said."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        product = make_product(Path(folder))
        (product.workspace / "docs").mkdir()
        (product.workspace / "docs" / "deploy.md").write_text(f"# Deploying\n\n{BEFORE}")
        browser = driver.chromium.launch(executable_path=programs.browser(), chromium_sandbox=False)
        try:
            product.start()
            page = browser.new_page(
                viewport={"width": 1280, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
                locale=language,
                timezone_id="Etc/UTC",
            )
            page.goto(product.link())
            replies = page.locator("#timeline .message:not(.is-user)")
            for number, text in enumerate(says):
                page.locator("#composer").fill(text)
                page.locator("#composer").press("Enter")
                page.wait_for_function(
                    "([chosen, least]) => document.querySelectorAll(chosen).length > least",
                    arg=["#timeline .message:not(.is-user)", number],
                    timeout=60_000,
                )
            replies.last.wait_for()
            yield page
        finally:
            browser.close()
            product.stop()


def shoot(page: Page, name: str) -> None:
    """Once everything on it stands still but what ticks."""
    page.mouse.move(640, 5)
    page.wait_for_timeout(25_000)  # the ten-second trigger has fired, and some output come
    page.evaluate(DRAWN)
    page.screenshot(path=PICTURES / f"{name}.png")


def home() -> None:
    with page_of("light", "en-GB", 860, ENGLISH) as page:
        shoot(page, "home")


def chat_dark() -> None:
    with page_of("dark", "zh-CN", 820, CHINESE) as page:
        shoot(page, "chat-dark")


def memory() -> None:
    with page_of("light", "en-GB", 760, NOTES) as page:
        page.goto(f"{page.url.split('#')[0]}#/search?q=部署 otter deploy")
        page.locator(".hit, .found").first.wait_for()
        shoot(page, "memory")


MADE: dict[str, Callable[[], None]] = {"home": home, "chat-dark": chat_dark, "memory": memory}


def main() -> None:
    """Make those that are named, or all."""
    for name in sys.argv[1:] or MADE:
        MADE[name]()


if __name__ == "__main__":
    main()
