"""Hostile texts, wherever others' words are shown: none runs, and all of them can be read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from mimikit.clock import SystemClock
from mimikit.conversation import inbox
from mimikit.conversation.history import HistoryStore
from mimikit.protocol import paths
from mimikit.protocol.json import dump_line
from mimikit.protocol.models import FileRef, Message, Question, Task, time_text
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import Trigger
from tests.browser.pages import OpenChat
from tests.browser.payloads import payloads
from tests.browser.product import Product, make_product

pytestmark = pytest.mark.browser

ALL = payloads()
NAMES = [text for text in ALL if "/" not in text and "\n" not in text and len(text) < 60][:20]
TITLES = 120
"""So many stand in titles and names, each in a task and a trigger of its own."""
WATCH = """
  window.ran = [];
  for (const name of ["alert", "prompt", "confirm", "print"]) {
    window[name] = (...given) => window.ran.push([name, ...given]);
  }
"""
DRAWN = """() => [
  [...document.querySelectorAll("#timeline [id^=m-]")].map((one) => one.id.slice(2)),
  document.querySelector("#scroll").scrollTop === 0,
]"""
UP = """async () => {
  const box = document.querySelector("#scroll");
  box.scrollTop -= box.clientHeight;
  for (let n = 0; n < 3; n += 1) await new Promise(requestAnimationFrame);
}"""
ARMED = """() => [...document.querySelectorAll("*")].flatMap((one) =>
  [...one.attributes].filter(({ name, value }) =>
    name.startsWith("on") || name === "srcdoc" ||
    ["href", "src", "action", "formaction", "data", "xlink:href", "poster"].includes(name) &&
      !/^(https?:|mailto:|#|\\/|data:image\\/(png|gif|jpeg|webp)|blob:)/i.test(value)
  ).map(({ name, value }) => `${one.tagName} ${name}=${value}`.slice(0, 200)),
).concat([...document.querySelectorAll("#app :is(script, iframe, object, embed, base, meta, link)")]
  .map((one) => one.outerHTML.slice(0, 200)))"""


def lay(product: Product) -> None:
    """The corpus in everything that another can have written."""
    files, now = product.files, SystemClock().now()
    files.make_folders()
    messages = [
        Message(
            id=f"msg-{role}-{number:04}",
            role=role,
            text=text,
            quote=text if role == "user" else None,
            files=[named(number, text)] if role == "user" else [],
            created_at=now - timedelta(minutes=len(ALL) - number, seconds=60 - place),
        )
        for number, text in enumerate(ALL)
        for place, role in enumerate(("user", "agent", "system"))
    ]
    HistoryStore(files).add(messages)
    ledger: list[bytes] = []
    for number, text in enumerate(ALL[:TITLES]):
        lay_task(product, f"task-{number:04}", text, text, ledger)
    lay_task(product, "task-whole", "all of them", "\n\n".join(ALL), ledger, profile="standard")
    lay_task(product, "task-output", "as output", "\n".join(ALL), ledger)
    files.write(paths.ledger(now), b"".join(ledger))
    for number, text in enumerate(ALL[:TITLES]):
        trigger = Trigger.model_validate(
            {"id": f"trig-{number:04}", "prompt": text, "title": text[:200], "enabled": False,
             "profile": "command", "origin": "cli", "createdAt": time_text(now), "traceId": "x",
             "type": "recurring", "schedule": {"interval": 86_400}},
            strict=False,
        )  # fmt: skip
        files.save(paths.trigger(trigger.id), trigger)
    items = [f"- [ ] {' '.join(text.split())}" for text in ALL]
    files.write(paths.BACKLOG, "\n".join(items).encode())
    whole = "\n\n".join([f"# {ALL[10]}", *ALL])
    files.write("memory.md", whole.encode())
    for number, text in enumerate(NAMES):
        (product.state / "memory" / f"2026-01-{number + 1:02}-{text}.md").write_text(whole)
    question = Question(
        question_id="q-hostile", question="\n\n".join(ALL[:40]), options=ALL[:6], default=ALL[0],
        created_at=now, expires_at=now + timedelta(hours=1),
    )  # fmt: skip
    inbox.ask(files, question)


def named(number: int, text: str) -> FileRef:
    """A file that is called so, and said to be of such a type; its like never came over HTTP."""
    return FileRef(id=f"{number:064x}", name=text[:200], media_type=text[:80], size=number)


def lay_task(
    product: Product, id_: str, title: str, text: str, ledger: list[bytes], profile: str = "command"
) -> None:
    files, now = product.files, SystemClock().now()
    is_failed = id_.endswith("3")
    task = Task(
        id=id_, title=title[:200], prompt=text, profile=profile, created_at=now, trace_id=id_,
        notify="none",
    )  # fmt: skip
    result = TaskResult(
        id=id_, status="failed" if is_failed else "done", trace_id=id_, started_at=now,
        completed_at=now, result={"text": text}, error=text if is_failed else None,
        failure_reason="error" if is_failed else None,
    )  # fmt: skip
    files.save(paths.ended("worker", id_), task)
    files.save(paths.result("worker", id_), result)
    told = {"at": time_text(now), "id": id_, "seat": "worker", "traceId": id_}
    ledger += [dump_line({"event": "queued", **told})]
    ledger += [dump_line({"event": "ended", "status": result.status, **told})]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    product = make_product(tmp_path_factory.mktemp("hostile"))
    lay(product)
    try:
        product.start()
        yield product
    finally:
        product.stop()


@pytest.fixture
def page(context: BrowserContext, hostile: Product, open_chat: OpenChat) -> Page:
    """The page, watched from its first moment on."""
    context.add_init_script(WATCH)
    return open_chat(hostile).page


def nothing_ran(page: Page, place: str) -> None:
    assert page.evaluate("() => window.ran") == [], place
    assert page.evaluate(ARMED) == [], place
    assert page.title().endswith("mimikit"), place


def test_there_are_more_than_enough_of_them() -> None:
    assert len(ALL) == len({*ALL}) > 400


def test_none_runs_in_the_whole_conversation(page: Page) -> None:
    """A part of it is drawn: page by page upwards all of it comes by, through a high window."""
    page.set_viewport_size({"width": 1280, "height": 3000})
    shown: set[str] = set()
    is_whole = False
    while not is_whole:  # however long what is older takes to come
        drawn, is_top = page.evaluate(DRAWN)
        shown |= set(drawn)
        nothing_ran(page, "chat")
        is_whole = is_top and page.locator(".beginning").is_visible()
        page.evaluate(UP)
    said = {f"msg-{role}-{n:04}" for role in ("user", "agent", "system") for n in range(len(ALL))}
    assert said <= shown


PLACES = [
    ("home", ".need"),
    ("tasks", ".row"),
    *((f"task/{id_}", f"[data-task='{id_}'] h2") for id_ in
      ("task-0000", "task-0003", "task-0050", "task-0083", "task-0119")),
    ("task/task-whole", "[data-task='task-whole'] .prose"),
    ("task/task-output", "[data-task='task-output'] .output"),
    ("triggers", ".trigger"),
    ("trigger/trig-0003", "h2"),
    ("trigger/trig-0050/edit", "#trigger-form"),
    ("memory", "[data-note]"),
    ("memory/memory.md", "#note-body"),
    ("backlog", "li"),
    ("search?q=alert", ".hit"),
    ("usage", "h2"),
    ("logs", ".log"),
    ("settings", ".more-link"),
]  # fmt: skip
"""Addresses, and what is seen there that is not seen at the one before."""


@pytest.mark.fault(57)
def test_none_runs_in_any_place(page: Page, hostile: Product) -> None:
    for place, seen in PLACES:
        page.goto(f"{hostile.url}/#/{place}")
        expect(page.locator(f"#panel {seen}").first, place).to_be_visible()
        nothing_ran(page, place)


def test_none_runs_when_it_is_said_and_answered(page: Page, hostile: Product) -> None:
    for number, text in enumerate(ALL[:12]):
        hostile.say(f"run: echo {number} {text!r}", f"msg-said-{number}")
        expect(page.locator(f"#m-msg-said-{number}")).to_be_visible()  # before more comes below it
    nothing_ran(page, "said")
