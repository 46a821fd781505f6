"""Accessibility and layout checks: two languages, two themes, wide and narrow."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.browser.pages import Complaints

TAGS = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]
TOO_WIDE = """() => [...document.querySelectorAll("body *")].filter((one) => {
  const style = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  return box.width > 1 && style.visibility !== "hidden" && !one.closest("pre, .output, .table-box")
    && (box.right > innerWidth + 1 || box.left < -1);
}).map((one) => `${one.tagName}.${one.className}`)"""


def violations(page: Page) -> list[str]:
    """What axe calls serious or critical."""
    settle = "() => Promise.all(document.getAnimations().map((one) => one.finished.catch(() => 0)))"
    page.emulate_media(reduced_motion="reduce")
    page.evaluate(settle)
    found = Axe().run(page, options={"runOnly": TAGS}).response["violations"]
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')[:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


# Each theme, language and width is looked at in every run; all that go together, by night.
for_everyone = pytest.mark.parametrize(
    ("scheme", "language", "width"),
    [
        ("light", "en-GB", 1280),
        ("dark", "zh-CN", 360),
        pytest.param("light", "zh-CN", 360, marks=pytest.mark.nightly),
        pytest.param("dark", "en-GB", 360, marks=pytest.mark.nightly),
        pytest.param("dark", "zh-CN", 1280, marks=pytest.mark.nightly),
    ],
)


@contextmanager
def looking(
    browser: Browser, scheme: Any, language: str, width: int, *, expected: str
) -> Generator[tuple[Page, Callable[[str], None]]]:
    """A page, and a function that checks it as it is; any finding fails the test at the end.

    expected: a pattern of the complaints that belong to the test.
    """
    context = browser.new_context(
        locale=language,
        timezone_id="Asia/Shanghai",
        viewport={"width": width, "height": 740},
        color_scheme=scheme,
    )
    complaints = Complaints(expected=[expected])
    page = context.new_page()
    complaints.watch(page)
    found: dict[str, list[str]] = {}

    def look(name: str) -> None:
        found[name] = violations(page) + page.evaluate(TOO_WIDE)

    yield page, look
    context.close()
    assert {name: bad for name, bad in found.items() if bad} == {}
    assert complaints.unexpected() == []
