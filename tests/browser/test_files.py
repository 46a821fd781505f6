"""Files and pictures: attached, sent, shown, opened, saved; whatever they are called and hold."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, FilePayload, Locator, expect

from mimikit.protocol import paths
from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat
from tests.browser.product import Product
from tests.support.pictures import GIF, png

pytestmark = pytest.mark.browser

PHOTO: FilePayload = {"name": "photo.png", "mimeType": "image/png", "buffer": png(640, 400)}
HUGE = b"x" * (10 * 2**20 + 1)
NOTES: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"buy tea\n"}
GIVE = """([kind, name, type, data]) => {
  const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
  const given = new DataTransfer();
  given.items.add(new File([bytes], name, {type}));
  const more = kind === "paste" ? {clipboardData: given} : {dataTransfer: given};
  const Kind = kind === "paste" ? ClipboardEvent : DragEvent;
  const target = document.getElementById("composer");
  target.dispatchEvent(new Kind(kind, {bubbles: true, cancelable: true, ...more}));
}"""
SIZE = "async (one) => (await one.decode(), [one.naturalWidth, one.naturalHeight])"


def file(name: str, data: bytes, kind: str = "text/plain") -> FilePayload:
    return {"name": name, "mimeType": kind, "buffer": data}


def attach(chat: Chat, *files: FilePayload) -> None:
    chat.page.locator("#attach").set_input_files(list(files))


def give(chat: Chat, kind: str, name: str, type_: str, data: bytes) -> None:
    """Drop or paste a file, as a browser tells it; or hold it over the page."""
    chat.page.evaluate(GIVE, [kind, name, type_, base64.b64encode(data).decode()])


def chips(chat: Chat) -> Locator:
    return chat.page.locator(".attachments .attachment")


def are_ready(chat: Chat, count: int) -> None:
    expect(chat.page.locator(".attachment[data-state=ready]")).to_have_count(count)
    expect(chips(chat)).to_have_count(count)


def size_of(picture: Locator) -> list[int]:
    """What is drawn, once its bytes have come."""
    expect(picture).to_have_attribute("src", re.compile("^blob:"))
    return picture.evaluate(SIZE)


def test_files_go_with_a_message_and_are_shown_opened_and_saved(chat: Chat, tmp_path: Path) -> None:
    page = chat.page
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files([PHOTO, NOTES, file("away.txt", b"no")])
    are_ready(chat, 3)
    expect(chat.field).to_be_focused()
    expect(page.locator(".attachments")).to_contain_text("photo.png")
    page.get_by_role("button", name="Remove away.txt").click()
    are_ready(chat, 2)
    chat.send("two things")
    expect(chips(chat)).to_have_count(0)
    mine = chat.message("two things").first
    assert size_of(mine.locator(".file-picture img")) == [640, 400]
    expect(chat.message("language model").last).to_be_visible()
    expect(mine.locator(".file-card")).to_have_text(re.compile("notes.txt.*8B", re.DOTALL))
    with page.expect_download() as saved:
        mine.get_by_role("button", name="Download notes.txt").click()
    saved.value.save_as(tmp_path / "saved")
    assert saved.value.suggested_filename == "notes.txt"
    assert (tmp_path / "saved").read_bytes() == b"buy tea\n"
    chat.reload()
    opens = page.get_by_role("button", name="Open photo.png").last
    opens.click()
    viewer = page.locator("dialog.viewer")
    assert size_of(viewer.locator("img")) == [640, 400]
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    expect(opens).to_be_focused()


def test_what_is_attached_stays_over_a_reload_and_goes_without_a_word(chat: Chat) -> None:
    attach(chat, file("kept.txt", b"kept\n"))
    are_ready(chat, 1)
    chat.reload()
    are_ready(chat, 1)
    send = chat.page.get_by_role("button", name="Send", exact=True)
    expect(send).to_be_enabled()
    send.click()
    last = chat.page.locator("#timeline .message.is-user").last
    expect(last.locator(".file-card")).to_contain_text("kept.txt")
    expect(last.locator(".plain")).to_have_count(0)
    expect(chips(chat)).to_have_count(0)


def test_files_are_dropped_anywhere_and_pictures_pasted(chat: Chat) -> None:
    over = chat.page.locator(".drop-here")
    give(chat, "dragover", "x.txt", "text/plain", b"x")
    expect(over).to_be_visible()
    give(chat, "drop", "dropped.txt", "text/plain", b"dropped")
    expect(over).to_have_count(0)
    give(chat, "paste", "image.png", "image/png", png(20, 10))
    are_ready(chat, 2)
    expect(chips(chat).first).to_contain_text("dropped.txt")
    assert size_of(chips(chat).last.locator("img")) == [20, 10]
    for left in (1, 0):
        chips(chat).first.get_by_role("button", name="Remove").click()
        expect(chips(chat)).to_have_count(left)


def test_an_upload_that_fails_says_why_on_the_file_and_goes_again(chat: Chat) -> None:
    page = chat.page
    chat.complaints.expect("Failed to load resource")
    attach(chat, file("big.bin", HUGE))
    bad = page.locator(".attachment.is-bad")
    expect(bad).to_contain_text("too large: at most 10 MB")
    chat.field.fill("words")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    bad.get_by_role("button", name="Remove big.bin").click()
    page.route("**/api/files?*", lambda route: route.abort())
    attach(chat, NOTES)
    expect(bad).to_contain_text("cannot be reached")
    page.unroute("**/api/files?*")
    bad.get_by_role("button", name="Send notes.txt again").click()
    are_ready(chat, 1)
    page.get_by_role("button", name="Remove notes.txt").click()
    chat.field.fill("")


HOSTILE = [
    ('"><img src=x onerror=alert(1)>.png', b"<svg onload=alert(1)>"),
    ("javascript:alert(1).html", b"<script>alert(1)</script>"),
    ("\u202egnp.exe", b"MZ\x00\x01"),
    ("a.gif", GIF + b"<script>alert(1)</script>"),
    ("../../../secrets/token", b"%PDF-1.4 <script>alert(1)</script>"),
    ("pixel.svg", b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'),
]


def test_no_name_and_no_content_is_more_than_text_or_a_picture(chat: Chat) -> None:
    page = chat.page
    page.on(
        "dialog", lambda dialog: chat.complaints.found.append(f"a script ran: {dialog.message}")
    )
    kinds = {"a.gif": "image/gif"}
    attach(
        chat,
        *(file(name, data, kinds.get(name, "image/svg+xml")) for name, data in HOSTILE),
    )
    are_ready(chat, len(HOSTILE))
    chat.send("hostile ones")
    mine = chat.message("hostile ones").first
    expect(mine.locator(".sent-files > li")).to_have_count(len(HOSTILE))
    expect(mine.locator(".sent-files img")).to_have_count(1)  # of the one that is a picture
    assert size_of(mine.locator(".sent-files img")) == [1, 1]
    expect(mine.locator(".sent-files :is(script, svg script, a, iframe)")).to_have_count(0)
    assert "\u202e" not in mine.inner_text()


def test_a_picture_that_is_no_longer_kept_is_told_by_its_name(chat: Chat) -> None:
    picture = png(31, 17)
    attach(chat, file("gone.png", picture, "image/png"))
    are_ready(chat, 1)
    chat.send("soon gone")
    expect(chat.message("soon gone").first.locator("img")).to_have_attribute(
        "src", re.compile("^blob:")
    )
    id_ = hashlib.sha256(picture).hexdigest()
    chat.product.files.remove(paths.file_record(id_))
    chat.reload()
    gone = chat.message("soon gone").first.locator(".file-gone")
    expect(gone).to_have_text("gone.png · no longer kept")


@for_everyone
def test_everyone_can_attach_and_see_files(
    browser: Browser, product: Product, scheme: Any, language: str, width: int
) -> None:
    with looking(browser, scheme, language, width, expected="401") as (page, look):
        page.goto(product.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        long = file(f"{'long-name-' * 9}.txt", b"long")
        huge = file("big.bin", HUGE)
        page.locator("#attach").set_input_files([PHOTO, long, huge])
        expect(page.locator(".attachment.is-bad")).to_be_visible()
        look("attached")
        page.locator(".attachment.is-bad button").last.click()
        expect(page.locator(".attachment[data-state=ready]")).to_have_count(2)
        page.locator(".send").click()
        picture = page.locator("#timeline .message.is-user .file-picture").last
        expect(picture.locator("img")).to_have_attribute("src", re.compile("^blob:"))
        look("sent")
        picture.click()
        expect(page.locator("dialog.viewer")).to_be_visible()
        look("viewed")
