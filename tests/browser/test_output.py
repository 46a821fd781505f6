"""What a task put out: whole or marked, loaded in pages, followed, saved and copied."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from mimikit.protocol import paths
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product

pytestmark = pytest.mark.browser


def ran(product: Product, id_: str, line: str) -> str:
    """A command that has ended."""
    product.call("POST", "/api/tasks", {"id": id_, "prompt": line, "profile": "command"})
    shown = f"/api/tasks/{id_}"
    product.wait_until(lambda: product.call("GET", shown)["task"]["completedAt"] is not None)
    return f"/#/task/{id_}"


def box(chat: Chat) -> Locator:
    return chat.page.get_by_role("region", name="Output")


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def test_a_long_output_is_loaded_from_both_ends_and_is_whole_as_a_file(
    product: Product, open_chat: OpenChat
) -> None:
    most = 120_000
    chat = open_chat(product, ran(product, "task-long-output", f"seq {most}"))
    page, more = chat.page, chat.page.locator(".output-more")
    expect(box(chat)).to_contain_text(f"\n{most}")
    expect(more).to_contain_text("kB between are not loaded")
    expect(page.locator("#output .out-flow")).to_have_count(2)
    assert page.locator("#output *").count() < 50
    shown = [*map(numbers, page.locator("#output .out-flow").all_inner_texts())]
    assert (shown[0][0], shown[-1][-1]) == (1, most)
    while more.count():
        before, lacking = page.locator("#output .out-flow").count(), more.inner_text()
        more.click()
        expect(more.filter(has_text=lacking)).to_have_count(0)
        assert page.locator("#output .out-flow").count() >= before
    texts = page.locator("#output .out-flow").all_text_contents()
    assert numbers("".join(texts)) == [*range(1, most + 1)]
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download", exact=True).click()
    assert saved.value.suggested_filename == "task-long-output.txt"
    whole = Path(saved.value.path()).read_text()
    assert whole == "".join(f"{number}\n" for number in range(1, most + 1))


def test_what_is_not_kept_is_marked_with_its_size_and_errors_are_told_apart(
    product: Product, open_chat: OpenChat
) -> None:
    address = ran(product, "task-gap", "echo fine; sleep 0.3; echo oh >&2")
    gap = {"at": "x", "type": "gap", "text": "", "data": {"bytes": 3_200_000}}
    product.files.append(paths.run_output("task-gap"), gap)
    after = {"at": "x", "type": "output", "text": "\x1b[31mthe end\x1b[0m\n", "stream": "stdout"}
    product.files.append(paths.run_output("task-gap"), after)
    chat = open_chat(product, address)
    expect(box(chat).locator(".out-gap")).to_have_text("… 3.2MB not kept …")
    expect(box(chat).get_by_role("group", name="error output")).to_have_text("oh\n")
    expect(box(chat)).to_contain_text("the end")
    assert "31m" not in box(chat).inner_text()
    wrap = chat.page.get_by_role("button", name="Wrap lines")
    wrap.click()
    expect(box(chat)).to_have_class(re.compile("is-unwrapped"))
    chat.reload()
    expect(box(chat)).to_have_class(re.compile("is-unwrapped"))
    wrap.click()
    chat.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    chat.page.get_by_role("button", name="Copy all").click()
    expect(chat.page.locator(".notice")).to_contain_text("Copied")
    copied = chat.page.evaluate("navigator.clipboard.readText()")
    assert copied == "fine\noh\n[… 3.2 MB not kept …]\nthe end\n"


def test_running_output_is_followed_only_by_who_is_at_its_end(
    product: Product, open_chat: OpenChat
) -> None:
    line = "for n in $(seq 90000); do echo line $n; sleep 0.05; done"
    body = {"id": "task-followed", "prompt": line, "profile": "command"}
    product.call("POST", "/api/tasks", body)
    chat = open_chat(product, "/#/task/task-followed")
    expect(box(chat)).to_contain_text("line 60")

    def left(chat: Chat) -> float:
        return box(chat).evaluate("it => it.scrollHeight - it.scrollTop - it.clientHeight")

    assert left(chat) < 30
    box(chat).evaluate("it => (it.scrollTop = 40)")
    expect(box(chat)).to_have_attribute("data-away", "yes")
    expect(box(chat)).to_contain_text("line 110")
    assert box(chat).evaluate("it => it.scrollTop") == 40
    product.call("POST", "/api/tasks/task-followed/cancel", {"id": "cmd-followed"})
    expect(chat.page.locator(".task .badge").first).to_have_text("Canceled")
