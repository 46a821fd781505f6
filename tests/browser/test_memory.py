"""Memory on the page: read, searched, edited, and the hits a reply was given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.protocol.models import Message
from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat, OpenChat
from tests.browser.product import Product, running

pytestmark = pytest.mark.browser

LONG_TERM = """# Long-term notes

- The user prefers pnpm to npm. <!-- note-01aaaaaaaaaaaaaaaaaaaaaaaa -->
- The staging server is called **otter**. <!-- note-01bbbbbbbbbbbbbbbbbbbbbbbb -->
- 周报每周五下午三点前发给李雷。 <!-- note-01cccccccccccccccccccccccc -->
"""
FILLER = "\n\n".join(
    f"Paragraph {number}, which says nothing that matters." for number in range(60)
)
# Days that no pass over memory rolls up while the tests run.
NOW = SystemClock().now().astimezone(ZoneInfo("Asia/Shanghai"))
YESTERDAY, EARLIER = (f"{NOW - timedelta(days=days):%Y-%m-%d}" for days in (1, 3))
DEPLOY = f"# Deploy notes\n\n{FILLER}\n\nThe zeppelin came back at half past nine.\n\n{FILLER}\n"
RAW = f"""# {YESTERDAY}

## 09:30 user <!-- msg-01raw {YESTERDAY}T01:30:00.123Z -->

测试服务器的证书放在哪里？

## 09:31 agent <!-- msg-02raw {YESTERDAY}T01:31:00.000Z -->

证书放在保险柜里。
"""
FAR_BACK = "the walrus was mentioned here"


def write(product: Product, path: str, text: str) -> None:
    """What an editor of the user's does; or the program, while a page is open."""
    place = product.state / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def read(product: Product, path: str) -> str:
    return (product.state / path).read_text()


def lay_memory(product: Product) -> None:
    write(product, "memory.md", LONG_TERM)
    write(product, f"memory/{EARLIER}-deploy-notes.md", DEPLOY)
    write(product, f"memory/{YESTERDAY}.md", RAW)
    write(product, "memory/summary/2025-12.md", "# Summary of 2025-12\n\nIt was quiet.\n")
    write(product, "memory/summary/2025-12-03.md", "# Summary of 2025-12-03\n\nSnow fell.\n")
    write(product, "backlog.md", "# Mine\n\nKept as it is.\n\n* [ ] Renew the certificate\n")
    guide = product.workspace / "docs/guide"
    guide.mkdir(parents=True)
    (guide / "setup.md").write_text("# Setup\n\nInstall <b>pnpm</b>, then run `make`.\n")
    began = SystemClock().now() - timedelta(hours=130)
    HistoryStore(product.files).add(
        Message(
            id=f"msg-old-{number:04d}",
            role=("user", "agent")[number % 2],
            text=FAR_BACK if number == 2 else f"Old message {number}.",
            created_at=began + timedelta(hours=number),
            archived=True,
        )
        for number in range(130)
    )


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A product that remembers; each test that writes has a file of its own."""
    root = tmp_path_factory.mktemp("memory")
    with running(root, 'timezone = "Asia/Shanghai"', lay_memory) as product:
        yield product


@pytest.fixture
def chat(kept: Product, open_chat: OpenChat) -> Chat:
    return open_chat(kept)


def open_memory(chat: Chat) -> Page:
    """The list, as a user opens it."""
    chat.page.get_by_role("link", name="Memory").click()
    expect(chat.page.locator(".row", has_text="Long-term notes")).to_be_visible()
    return chat.page


def look_for(page: Page, words: str) -> Locator:
    """What is found; all of it."""
    page.get_by_role("searchbox").fill(words)
    expect(page.locator(".found[aria-busy=false]")).to_be_visible()
    return page.locator(".hit")


def edit(chat: Chat, path: str) -> Locator:
    """The editor of a file, as a user comes to it."""
    page = chat.page
    page.goto(f"{chat.product.url}/#/memory/{path}")
    page.get_by_role("link", name="Edit", exact=True).click()
    text = page.get_by_role("textbox", name="Text")
    expect(text).to_be_visible()
    return text


def save(page: Page) -> None:
    page.get_by_role("button", name="Save").click()


# ---- reading


def test_files_stand_in_groups_and_are_read_without_the_names_of_entries(chat: Chat) -> None:
    page = open_memory(chat)
    expect(page.get_by_role("heading", name="Memory")).to_be_focused()
    groups = page.locator("[data-group]")
    expect(groups).to_have_count(4)
    expect(groups.nth(1)).to_contain_text("deploy notes")
    hidden = groups.nth(2).locator(".row", has_text="3 December 2025")
    expect(hidden).to_contain_text("in its month's summary")
    expect(groups.nth(2)).to_contain_text("December 2025")
    row = page.get_by_role("link", name=re.compile("Long-term notes"))
    row.click()
    expect(page.get_by_role("heading", name="Long-term notes")).to_be_focused()
    text = page.locator(".note-text")
    expect(text.locator("li")).to_have_count(3)
    expect(text.locator("strong")).to_have_text("otter")
    expect(text.get_by_role("heading")).to_have_count(0)  # its title stands above
    expect(text).not_to_contain_text("note-01")
    page.keyboard.press("Escape")
    expect(row).to_be_focused()


# ---- searching


def test_what_is_found_is_marked_and_opens_at_its_line(chat: Chat) -> None:
    page = open_memory(chat)
    hit = look_for(page, "zeppelin").first
    expect(hit).to_contain_text("deploy notes")
    expect(hit).to_contain_text(f"{NOW - timedelta(days=3):%A} {(NOW - timedelta(days=3)).day} ")
    expect(hit.locator("mark")).to_have_text("zeppelin")
    hit.get_by_role("link").click()
    place = page.locator(".note-text p", has_text="zeppelin")
    expect(place).to_be_in_viewport()
    expect(place).to_be_focused()
    page.go_back()
    expect(page.get_by_role("searchbox")).to_have_value("zeppelin")
    expect(hit.get_by_role("link")).to_be_focused()


def test_chinese_is_found_and_marked_with_who_said_it(chat: Chat) -> None:
    page = open_memory(chat)
    hits = look_for(page, "证书")
    said = hits.filter(has_text="测试服务器的证书")
    expect(said.locator("mark")).to_have_text("证书")
    expect(said).to_contain_text("you")
    expect(said).to_contain_text("Yesterday")
    said.get_by_role("link").click()
    expect(page.locator(".note-text h2", has_text="09:30 you")).to_be_focused()
    expect(page.locator(".note-text p", has_text="测试服务器的证书")).to_be_in_viewport()
    expect(page.locator(".note-text")).not_to_contain_text("msg-01raw")
    expect(page.locator(".note-text h1")).to_have_count(0)


@pytest.mark.parametrize("late", [False, True])
def test_a_message_of_long_ago_is_found_and_shown_in_the_chat(chat: Chat, late: bool) -> None:
    if late:
        chat.page.add_init_script(SLOW_FRAMES)
        chat.reload()
    page = open_memory(chat)
    expect(page.locator("#m-msg-old-0002")).to_have_count(0)
    hits = look_for(page, "walrus").filter(has_text=FAR_BACK).filter(has_text="Conversation")
    hits.first.get_by_role("button").click()
    expect(page.locator("#m-msg-old-0002")).to_be_in_viewport()


SLOW_FRAMES = """
const soon = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (draw) => setTimeout(() => soon(draw), 300);
"""
"""Delays every animation frame, as on a busy machine."""


def test_a_search_needs_no_mouse(chat: Chat) -> None:
    page, keys = chat.page, chat.page.keyboard
    chat.field.focus()
    keys.type("a/b")
    expect(chat.field).to_have_value("a/b")  # in a field it is a letter
    chat.field.fill("")
    page.locator("#scroll").focus()
    keys.press("/")
    search = page.get_by_role("searchbox")
    expect(search).to_be_focused()
    keys.type("zeppelin")
    expect(page.locator(".hit mark").first).to_be_visible()
    keys.press("Escape")
    expect(search).to_have_value("")
    expect(search).to_be_focused()
    keys.type("zeppelin")
    expect(page.locator(".hit mark").first).to_be_visible()
    keys.press("Tab")  # what clears it
    keys.press("Tab")
    keys.press("Enter")
    expect(page.locator(".note-text p", has_text="zeppelin")).to_be_focused()
    keys.press("Escape")
    expect(page.locator(".hit a").first).to_be_focused()
    keys.press("Escape")
    expect(search).to_have_value("")


# ---- writing


def test_a_file_is_edited_and_saved(chat: Chat) -> None:
    path = f"memory/{YESTERDAY}-edited.md"
    write(chat.product, path, "# Edited\n\n- One. <!-- note-01edited -->\n")
    text = edit(chat, path)
    expect(chat.page.get_by_role("heading", name="Edit: edited")).to_be_focused()
    expect(text).to_have_value("# Edited\n\n- One.\n")
    text.press("Control+End")
    text.press_sequentially("- Two, 二。")
    save(chat.page)
    expect(chat.page.locator(".note-text li")).to_have_count(2)
    expect(chat.page.locator(".notice")).to_contain_text("Saved")
    saved = "# Edited\n\n- One. <!-- note-01edited -->\n- Two, 二。"
    assert read(chat.product, path) == saved


@pytest.mark.parametrize("choice", ["Overwrite with mine", "Take the other"])
def test_a_file_that_changed_meanwhile_is_laid_beside_and_one_chooses(
    chat: Chat, choice: str
) -> None:
    chat.complaints.expect("409")
    page, product = chat.page, chat.product
    path = f"memory/{YESTERDAY}-{choice.split()[0].lower()}.md"
    write(product, path, "One.\n")
    text = edit(chat, path)
    text.fill("One.\n\nMine.\n")
    write(product, path, "One.\n\nTheirs.\n")
    text.press("Control+s")
    conflict = page.get_by_role("region", name="It was changed meanwhile")
    expect(conflict).to_be_focused()
    expect(text).to_have_value("One.\n\nMine.\n")
    conflict.get_by_role("button", name="Look at the other version").click()
    other = page.get_by_role("region", name=re.compile("^The other version"))
    expect(other.locator("mark")).to_have_text("Theirs.")
    assert read(product, path) == "One.\n\nTheirs.\n"
    conflict.get_by_role("button", name=choice).click()
    if choice == "Take the other":
        expect(text).to_have_value("One.\n\nTheirs.\n")
        expect(text).to_be_focused()
        assert read(product, path) == "One.\n\nTheirs.\n"
    else:
        expect(page.locator(".note-text")).to_contain_text("Mine.")
        assert read(product, path) == "One.\n\nMine.\n"


def test_what_is_typed_outlives_a_reload_and_another_hand(chat: Chat) -> None:
    page, product = chat.page, chat.product
    path = f"memory/{YESTERDAY}-draft.md"
    write(product, path, "One.\n")
    text = edit(chat, path)
    text.fill("One, and a half")
    chat.reload()
    expect(text).to_have_value("One, and a half")
    expect(page.locator(".note-told")).to_contain_text("had typed and not saved")
    page.get_by_role("link", name="Tasks").click()
    page.go_back()
    expect(text).to_have_value("One, and a half")
    write(product, path, "Another.\n")
    chat.reload()
    conflict = page.get_by_role("region", name="It was changed meanwhile")
    expect(conflict).to_be_visible()
    expect(text).to_have_value("One, and a half")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("button", name="Go on writing")).to_be_focused()
    page.keyboard.press("Escape")
    expect(text).to_be_focused()
    expect(page.get_by_role("button", name="Go on writing")).to_have_count(0)
    page.get_by_role("button", name="Discard").click()
    page.get_by_role("group").get_by_role("button", name="Discard").click()
    expect(page.locator(".note-text")).to_have_text("Another.")
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(text).to_have_value("Another.\n")
    assert read(product, path) == "Another.\n"


# ---- behind a reply, and put off


def test_a_reply_shows_what_memory_it_was_given(chat: Chat) -> None:
    page = chat.page
    chat.send("what is the staging server called?")
    reply = page.locator("#timeline .message.is-agent", has_text="otter").last
    button = reply.get_by_role("button", name="Why this reply")
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    hits = reply.get_by_role("list", name="What memory this reply was given")
    expect(hits).to_contain_text("The staging server is called otter.")
    expect(hits).not_to_contain_text("<!--")
    page.get_by_role("button", name="Hide the side panel").click()
    hits.get_by_role("link", name="Long-term notes").first.click()
    expect(page.locator(".note-text")).to_contain_text("otter")
    button.click()
    expect(hits).to_have_count(0)


def test_the_backlog_is_kept_from_the_page_and_the_rest_of_its_file_stays(chat: Chat) -> None:
    page, product = open_memory(chat), chat.product
    page.get_by_role("link", name=re.compile("^Backlog")).click()
    expect(page.get_by_role("heading", name="Backlog")).to_be_focused()
    page.get_by_role("textbox", name="Something to be done").fill("写一份入门文档")
    page.keyboard.press("Enter")
    new = page.get_by_role("checkbox", name="写一份入门文档")
    expect(new).not_to_be_checked()
    expect(page.get_by_role("textbox", name="Something to be done")).to_be_focused()
    new.focus()
    page.keyboard.press("Space")
    expect(page.locator(".backlog-item.is-done", has_text="写一份入门文档")).to_be_visible()
    expect(new).to_be_focused()
    expect(page.locator(".found-count")).to_have_text("1 open")
    page.get_by_role("button", name="Remove: Renew the certificate").click()
    expect(page.get_by_role("button", name="Keep")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("checkbox")).to_have_count(2)
    page.get_by_role("button", name="Remove: Renew the certificate").click()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_role("checkbox")).to_have_count(1)
    assert read(product, "backlog.md") == "# Mine\n\nKept as it is.\n\n- [x] 写一份入门文档\n"


# ---- for everyone


@for_everyone
def test_axe_finds_nothing_serious_and_nothing_goes_sideways(
    browser: Browser, kept: Product, scheme: Any, language: str, width: int
) -> None:
    path = f"memory/{YESTERDAY}-{scheme}-{width}.md"
    long = "a-word-that-is-far-too-long-for-a-line-" * 6
    write(kept, path, f"# Wide\n\n{long}\n\n| {long} | b |\n|---|---|\n| 1 | 2 |\n")
    with looking(browser, scheme, language, width, expected="409") as (page, look):

        def go(place: str, shown: str) -> None:
            page.goto(f"{kept.url}/#/{place}")
            expect(page.locator(shown).first).to_be_visible()
            look(place)

        page.goto(kept.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        go("memory", "[data-group] .row")
        page.locator("#memory-search").fill("otter 证书")
        expect(page.locator(".hit mark").first).to_be_visible()
        look("found")
        page.locator("#memory-search").fill("xyzzyplugh")
        expect(page.locator(".empty")).to_be_visible()
        look("nothing found")
        page.locator("#memory-search").fill("")
        go("memory/memory.md", ".note-text")
        go(f"memory/{path}", ".note-text")
        go(f"memory/memory/{YESTERDAY}.md", ".note-text")
        go(f"memory/{path}?edit", "#note-text")
        page.locator("#note-text").fill(f"mine {long}")
        write(kept, path, f"theirs {long}\n")
        page.locator("#note-text").press("Control+s")
        page.locator(".conflict button").first.click()
        expect(page.locator(".other")).to_be_visible()
        look("conflict")
        page.locator(".form-actions button").last.click()
        expect(page.locator("#keep")).to_be_visible()
        look("discard?")
        go("memory/new", "#note-text")
        page.locator("#note-form [type=submit]").click()
        expect(page.locator("#note-error")).to_be_visible()
        look("an empty note")
        go("backlog", ".backlog-add")
