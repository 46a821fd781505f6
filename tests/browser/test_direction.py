"""Bidirectional control characters in a title do not reorder the text beside it."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.pages import OpenChat
from tests.browser.product import Product, running

pytestmark = pytest.mark.browser

TURNED = "tea \u2069\u2069\u202e\u2067\u200f leaf"
"""It ends each isolation around it, then writes from right to left."""
BACKWARDS = r"""(alone) => {
  const found = [], range = document.createRange();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const at = (node, n) => {
    range.setStart(node, n);
    range.setEnd(node, n + 1);
    return range.getBoundingClientRect();
  };
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (alone.includes(node.data.trim())) continue; // turns itself at most
    if (/[\u0590-\u05ff]/.test(node.data)) continue; // goes from right to left by itself
    if (node.parentElement.closest(".prompt, .plain, pre, .sr-only, [hidden]")) continue;
    for (let n = 1; n < node.data.length; n += 1) {
      const [one, two] = [at(node, n - 1), at(node, n)];
      const seen = one.width > 0 && two.width > 0 && Math.abs(one.top - two.top) < 2;
      if (seen && two.left < one.left) { found.push(node.data.trim()); break; }
    }
  }
  return found;
}"""
ALONE = [TURNED, f"memory/{TURNED}.md"]
"""What may be turned around in itself, in a box of its own: a file's path, an item of a list."""
PLACES = {
    "tasks": ".row-title",
    "task/task-turned": "article.task h2",
    "triggers": ".trigger-title",
    "trigger/after": "[data-trigger=after] h2",
    "trigger/there": "[data-trigger=there] h2",
    "memory": "[data-note] .row-title",
    quote(f"memory/memory/{TURNED}.md"): ".note h2",
    "backlog": ".backlog-item",
}


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Tasks, a chain, a note and more of that name."""
    with running(tmp_path_factory.mktemp("turned")) as product:
        product.files.write(f"memory/{TURNED}.md", f"# {TURNED}\n\nRead it.\n".encode())
        product.files.write("backlog.md", f"- [ ] {TURNED}\n".encode())
        asked = {"id": "task-turned", "prompt": "exit 3", "profile": "command", "title": TURNED}
        product.call("POST", "/api/tasks", asked)
        after = {"type": "task_done", "params": {"taskId": "task-turned"}}
        there = {"type": "file_exists", "params": {"path": f"{TURNED}.md"}}
        for id_, condition in (("after", after), ("there", there)):
            asked = {"id": id_, "title": TURNED, "prompt": "true", "profile": "command"}
            product.call("POST", "/api/triggers", {**asked, "condition": condition})
        yield product


def test_no_title_turns_around_what_stands_beside_it(turned: Product, open_chat: OpenChat) -> None:
    page = open_chat(turned).page
    expect(page.locator("#timeline code", has_text="leaf").first).to_be_visible()
    seen = {"chat": page.evaluate(BACKWARDS, ALONE)}
    for path, selector in PLACES.items():
        page.evaluate("(path) => { location.hash = `#/${path}`; }", path)
        expect(page.locator(f".panel {selector}", has_text="leaf").first).to_be_visible()
        seen[path] = page.evaluate(BACKWARDS, ALONE)
    assert {path: found for path, found in seen.items() if found} == {}
