"""Memory on the page: read, searched, written, and what a reply was given of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.protocol.models import Message
from tests.browser.looking import for_everyone, looking
from tests.browser.pages import SLOW_FRAMES, Chat, OpenChat
from tests.browser.product import Product, make_product

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
    product = make_product(tmp_path_factory.mktemp("memory"), 'timezone = "Asia/Shanghai"')
    lay_memory(product)
    try:
        product.start()
        yield product
    finally:
        product.stop()


@pytest.fixture
def chat(kept: Product, open_chat: OpenChat) -> Chat:
    return open_chat(kept)


def open_memory(chat: Chat) -> Page:
    """The list, as a user opens it."""
    chat.page.get_by_role("link", name="Memory", exact=True).click()
    expect(chat.page.locator(".row", has_text="Long-term notes")).to_be_visible()
    return chat.page


def look_for(page: Page, words: str) -> Locator:
    """What is found; all of it."""
    page.get_by_role("link", name="Search memory").click()
    page.get_by_role("searchbox").fill(words)
    page.get_by_role("link", name="Everything").click()
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


def test_a_document_of_the_workspace_is_read_only_and_its_html_is_text(chat: Chat) -> None:
    page = open_memory(chat)
    page.get_by_role("link", name="guide/setup").click()
    expect(page.locator(".note-text")).to_contain_text("Install <b>pnpm</b>, then run make.")
    expect(page.locator(".note-head")).to_contain_text("Read only")
    expect(page.get_by_role("link", name="Edit", exact=True)).to_have_count(0)
    page.goto(f"{chat.product.url}/#/memory/docs/guide/setup.md?edit")
    expect(page.locator(".note-page")).to_contain_text("Read only")
    expect(page.get_by_role("textbox", name="Text")).to_have_count(0)


def test_a_file_that_is_not_there_is_told_and_a_failed_load_is_tried_again(chat: Chat) -> None:
    chat.complaints.expect("404")
    chat.complaints.expect("ERR_FAILED")
    page = chat.page
    page.goto(f"{chat.product.url}/#/memory/memory/2026-01-01-none.md")
    expect(page.locator(".empty")).to_contain_text("No such file")
    page.route("**/api/memory", lambda route: route.abort())
    page.get_by_role("link", name="All of memory").click()
    expect(page.locator(".empty")).to_contain_text("could not be loaded")
    page.unroute("**/api/memory")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("[data-group]").first).to_be_visible()


def test_nothing_yet_says_what_will_be_here_and_how_it_comes(
    fresh: Callable[..., Product], open_chat: OpenChat
) -> None:
    product = fresh()
    product.start()
    chat = open_chat(product)
    page = chat.page
    page.get_by_role("link", name="Memory", exact=True).click()
    expect(page.locator(".empty")).to_contain_text("remember that")
    chat.send("remember that the heron is grey")
    row = page.get_by_role("link", name=re.compile("Long-term notes"))
    expect(row).to_be_visible()  # by itself
    row.click()
    expect(page.locator(".note-text")).to_contain_text("the heron is grey")
    page.goto(f"{product.url}/#/backlog")
    expect(page.locator(".empty")).to_contain_text("backlog")


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


@pytest.mark.fault("complaint 10")
def test_chinese_is_found_and_marked_with_who_said_it(chat: Chat) -> None:
    page = open_memory(chat)
    hits = look_for(page, "证书")
    said = hits.filter(has_text="测试服务器的证书")
    expect(said.locator("mark")).to_have_text("证书")
    expect(said).to_contain_text("you")
    day = re.compile(f"Yesterday|{NOW - timedelta(days=1):%A}")  # midnight may have passed
    expect(said).to_contain_text(day)
    said.get_by_role("link").click()
    expect(page.locator(".note-text h2", has_text="09:30 you")).to_be_focused()
    expect(page.locator(".note-text p", has_text="测试服务器的证书")).to_be_in_viewport()
    expect(page.locator(".note-text")).not_to_contain_text("msg-01raw")
    expect(page.locator(".note-text h1")).to_have_count(0)


def test_a_message_of_long_ago_is_found_and_shown_in_the_chat(chat: Chat) -> None:
    page = open_memory(chat)
    expect(page.locator("#m-msg-old-0002")).to_have_count(0)
    hits = look_for(page, "walrus").filter(has_text=FAR_BACK).filter(has_text="You")
    hits.first.get_by_role("button").click()
    expect(page.locator("#m-msg-old-0002")).to_be_in_viewport()


def test_the_search_has_the_focus_however_late_it_is_drawn(chat: Chat) -> None:
    chat.page.add_init_script(SLOW_FRAMES)
    chat.reload()
    chat.page.locator("#scroll").focus()
    chat.page.keyboard.press("/")
    expect(chat.page.get_by_role("searchbox")).to_be_focused()


def test_a_message_of_long_ago_is_shown_however_late_it_is_drawn(chat: Chat) -> None:
    chat.page.add_init_script(SLOW_FRAMES)
    chat.reload()
    test_a_message_of_long_ago_is_found_and_shown_in_the_chat(chat)


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
    keys.press("ArrowDown")
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
    expect(chat.page.locator(".notice")).to_contain_text("Saved")  # for some seconds only
    expect(chat.page.locator(".note-text li")).to_have_count(2)
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


def test_what_could_not_be_saved_is_still_there(chat: Chat) -> None:
    chat.complaints.expect("ERR_FAILED")
    page, product = chat.page, chat.product
    path = f"memory/{YESTERDAY}-lost.md"
    write(product, path, "One.\n")
    text = edit(chat, path)
    text.fill("Two.\n")

    def cut_off(route: Route) -> None:
        if route.request.method == "PUT":
            route.fetch()  # it arrives; its answer does not
            route.abort()
        else:
            route.continue_()

    page.route("**/api/memory/**", cut_off)
    save(page)
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    expect(text).to_have_value("Two.\n")
    page.unroute("**/api/memory/**")
    save(page)
    expect(page.locator(".note-text")).to_have_text("Two.")


def test_a_note_is_made_and_one_of_the_same_name_beside_it(chat: Chat) -> None:
    chat.complaints.expect("409")
    page = open_memory(chat)
    for number, name in ((1, "plan-b.md"), (2, "plan-b-2.md")):
        page.get_by_role("link", name="New note").click()
        expect(page.get_by_role("heading", name="New note")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.type("Plan B")
        page.keyboard.press("Tab")
        page.keyboard.type(f"计划 {number}")
        page.get_by_role("button", name="Keep note").click()
        expect(page.locator(".note-text p")).to_have_text(f"计划 {number}")
        expect(page.locator(".row-path")).to_have_text(re.compile(f"^memory/[0-9-]+{name}$"))
        page.get_by_role("link", name="All of memory").click()
    made = [path.read_text() for path in chat.product.state.glob("memory/*plan-b*.md")]
    assert sorted(made) == ["# Plan B\n\n计划 1\n", "# Plan B\n\n计划 2\n"]


# ---- behind a reply, and put off


def test_a_reply_shows_what_memory_it_was_given(chat: Chat) -> None:
    page = chat.page
    chat.send("what is the staging server called?")
    reply = page.locator("#timeline .message.is-agent", has_text="otter").last
    reply.get_by_role("link", name=re.compile(r"^\d+ memory hits?$")).click()
    expect(page.get_by_role("heading", name="Why this reply")).to_be_focused()
    hits = page.get_by_role("list", name="What memory this reply was given")
    expect(hits).to_contain_text("The staging server is called otter.")
    expect(hits).not_to_contain_text("<!--")
    expect(page.locator(".reason")).to_contain_text("Answered by code: no model was asked")
    hits.get_by_role("link", name="Long-term notes").first.click()
    expect(page.locator(".note-text")).to_contain_text("otter")


def test_the_backlog_is_kept_from_the_page_and_the_rest_of_its_file_stays(chat: Chat) -> None:
    page, product = open_memory(chat), chat.product
    page.get_by_role("link", name=re.compile("^Backlog")).click()
    expect(page.get_by_role("heading", name="Backlog")).to_be_focused()
    page.get_by_role("textbox", name="What is to be done some day").fill("写一份入门文档")
    page.keyboard.press("Enter")
    new = page.get_by_role("checkbox", name="写一份入门文档")
    expect(new).not_to_be_checked()
    expect(page.get_by_role("textbox", name="What is to be done some day")).to_be_focused()
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


def test_an_item_of_the_backlog_is_given_a_date_and_loses_it(chat: Chat) -> None:
    page, product = open_memory(chat), chat.product
    page.goto(f"{product.url}/#/backlog")
    page.get_by_role("textbox", name="What is to be done some day").fill("call mum")
    page.get_by_role("textbox", name="When it is due, such as").fill("2035-12-24 18:00")
    page.keyboard.press("Enter")
    item = page.locator(".backlog-item", has_text="call mum")
    expect(item.locator("time")).to_have_text("2035-12-24 18:00")
    assert "- [ ] call mum (due 2035-12-24 18:00)\n" in read(product, "backlog.md")
    page.get_by_role("button", name="When it is due: call mum").click()
    field = page.get_by_role("textbox", name="When it is due: call mum")
    expect(field).to_be_focused()
    expect(field).to_have_value("2035-12-24 18:00")
    field.fill("2035-01-01 9:00")
    page.get_by_role("button", name="Remind me").click()
    expect(item.locator("time")).to_have_text("2035-01-01 09:00")
    page.get_by_role("button", name="When it is due: call mum").click()
    page.get_by_role("button", name="No date").click()
    expect(item.locator("time")).to_have_count(0)
    assert "- [ ] call mum\n" in read(product, "backlog.md")


def test_a_date_is_told_in_the_workspace_s_time_which_is_named_where_it_is_another(
    browser: Browser, kept: Product
) -> None:
    write(kept, "backlog.md", "- [ ] call mum (due 2035-12-24 18:00)\n")
    for zone, told in (("Asia/Shanghai", False), ("Asia/Singapore", False), ("UTC", True)):
        context = browser.new_context(timezone_id=zone, locale="en-GB")
        page = context.new_page()
        page.goto(kept.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        page.goto(f"{kept.url}/#/backlog")
        words = "2035-12-24 18:00 Asia/Shanghai" if told else "2035-12-24 18:00"
        expect(page.locator(".backlog-item time")).to_have_text(words)
        expect(page.get_by_text("Times here are in Asia/Shanghai")).to_have_count(int(told))
        context.close()


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
        go("search?q=otter+证书", ".hit mark")
        expect(page.locator(".hit mark").first).to_be_visible()
        look("found")
        page.locator("#search-field").fill("xyzzyplugh")
        expect(page.locator(".empty")).to_be_visible()
        look("nothing found")
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
        expect(page.locator("#note-keep")).to_be_visible()
        look("discard?")
        go("memory/new", "#note-text")
        page.locator("#note-form [type=submit]").click()
        expect(page.locator("#note-error")).to_be_visible()
        look("an empty note")
        go("backlog", ".backlog-add")
