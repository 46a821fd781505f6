"""Triggers and chains on the page: made, explained, edited, drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.looking import for_everyone, looking
from tests.browser.pages import Chat
from tests.browser.product import Product, running

pytestmark = pytest.mark.browser


def form_of(chat: Chat) -> Locator:
    """The form of a new trigger, opened as a user opens it."""
    page = chat.page
    page.get_by_role("link", name="Triggers").click()
    page.get_by_role("link", name="New trigger").click()
    expect(page.get_by_role("heading", name="New trigger")).to_be_focused()
    return page.locator("#trigger-form")


def fill_command(form: Locator, command: str) -> None:
    form.get_by_label("Done by").select_option("command")
    form.get_by_label("Command").fill(command)


def stored(product: Product, text: str) -> dict[str, Any]:
    """The trigger whose prompt holds a text."""
    triggers = product.call("GET", "/api/triggers")["triggers"]
    return next(one for one in triggers if text in one["prompt"])


def make_trigger(product: Product, id_: str, prompt: str, **more: Any) -> None:
    """One that is there: made by a script, seen by the consumer."""
    body = {"id": id_, "prompt": prompt, "profile": "command", **more}
    product.call("POST", "/api/triggers", body)
    product.wait_until(lambda: any(one["id"] == id_ for one in listed(product)))


def listed(product: Product) -> list[dict[str, Any]]:
    return product.call("GET", "/api/triggers")["triggers"]


def exists(path: str) -> dict[str, Any]:
    return {"type": "file_exists", "params": {"path": path}}


# ---- making and changing


def test_one_is_made_in_plain_words_with_its_next_times(chat: Chat) -> None:
    page = chat.page
    form = form_of(chat)
    fill_command(form, "echo in-plain-words")
    form.get_by_label("Title").fill("Morning")
    form.get_by_role("textbox", name="Time").fill("每天早上 9 点")
    preview = form.locator("#preview")
    times = preview.locator(".preview-times li")
    expect(times).to_have_count(3)
    expect(times.first).to_contain_text("09:00")
    expect(preview).to_contain_text("Asia/Shanghai")
    form.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="Morning")).to_be_visible()
    expect(page.locator(".trigger-full .trigger-words")).to_contain_text("9:00")
    page.get_by_role("link", name="All triggers").click()
    card = page.locator(".trigger", has_text="Morning")
    expect(card).to_contain_text("next")
    expect(card).to_contain_text("has not fired yet")
    made = stored(chat.product, "in-plain-words")
    assert made["schedule"]["cron"] == "0 9 * * *"
    assert made["schedule"]["timezone"] == "Asia/Shanghai"
    assert made["profile"] == "command"


def test_a_cron_expression_is_refused_at_its_field_and_nothing_typed_is_lost(chat: Chat) -> None:
    chat.complaints.expect("422")
    page = chat.page
    form = form_of(chat)
    form.get_by_role("button", name="Create").click()
    prompt = form.get_by_label("Command")
    expect(prompt).to_be_focused()
    expect(prompt).to_have_attribute("aria-invalid", "true")
    expect(form).to_contain_text("Say what is to be done.")
    fill_command(form, "echo by-cron")
    form.get_by_label("Starts").select_option("cron")
    cron = form.get_by_label("Cron expression")
    cron.fill("0 9 * *")
    expect(form.locator("#cron-error")).to_contain_text("five fields")
    form.get_by_role("button", name="Create").click()
    expect(cron).to_be_focused()
    expect(cron).to_have_value("0 9 * *")
    expect(form.get_by_label("Command")).to_have_value("echo by-cron")
    cron.fill("30 18 * * 1-5")
    form.get_by_label("Time zone").fill("Europe/Berlin")
    expect(form.locator("#cron-error")).to_have_count(0)
    expect(form.locator(".preview-times li")).to_have_count(3)
    form.get_by_role("button", name="Create").click()
    expect(page.locator(".trigger-full .trigger-words")).to_contain_text("18:30")
    made = stored(chat.product, "by-cron")["schedule"]
    assert (made["cron"], made["timezone"]) == ("30 18 * * 1-5", "Europe/Berlin")


def test_one_is_made_by_the_keyboard_alone(chat: Chat) -> None:
    page = chat.page
    form = form_of(chat)
    keys = page.keyboard
    keys.press("Tab")
    keys.type("by hand")
    for _ in range(3):
        keys.press("Tab")  # who does it, its title, when
    expect(form.get_by_label("Starts")).to_be_focused()
    keys.type("When several")
    add = form.get_by_role("button", name="Add a condition")
    add.focus()
    keys.press("Enter")
    expect(form.get_by_role("combobox", name="Condition 3")).to_be_focused()
    for number in (3, 2):
        remove = form.get_by_role("button", name=f"Remove condition {number}")
        remove.focus()
        keys.press("Enter")
        before = form.get_by_role("combobox", name=f"Condition {number - 1}")
        expect(before).to_be_focused()
    keys.type("When a file exists")
    for _ in range(2):
        keys.press("Tab")  # past the button that removes it
    keys.type("by-hand.flag")
    keys.press("Enter")
    expect(page.locator(".nodes .node")).to_contain_text("by-hand.flag")
    assert stored(chat.product, "by hand")["condition"] == exists("by-hand.flag")


def test_one_is_paused_run_and_deleted_where_it_is_shown_and_its_past_stays(chat: Chat) -> None:
    make_trigger(
        chat.product, "trig-whole", "echo whole-life", schedule={"interval": 2}, title="Whole"
    )
    page = chat.page
    page.goto(f"{chat.product.url}/#/trigger/trig-whole")
    shown = page.locator(".trigger-full")
    slot = shown.locator(".slots tbody tr", has_text="ran").last
    expect(slot).to_be_visible()
    shown.get_by_role("button", name="Pause").click()
    expect(shown.locator(".badge", has_text="paused")).to_be_visible()
    shown.get_by_role("button", name="Resume").click()
    expect(shown.locator(".badge", has_text="paused")).to_have_count(0)
    shown.get_by_role("button", name="Pause").click()
    shown.get_by_role("button", name="Run now").click()
    expect(page.locator(".notice", has_text="Started.")).to_be_visible()
    slot.get_by_role("link").click()
    expect(page.locator(".task .badge")).to_have_text("Done")
    page.locator(".facts").get_by_role("link", name="Whole").click()
    shown.get_by_role("button", name="Delete").click()
    shown.get_by_role("group").get_by_role("button", name="Delete").click()
    expect(shown.locator(".badge", has_text="gone")).to_be_visible()
    expect(slot).to_be_visible()
    assert all(one["id"] != "trig-whole" for one in listed(chat.product))


# ---- conditions


def test_a_condition_of_several_is_made_explained_and_fires(chat: Chat) -> None:
    page, workspace = chat.page, chat.product.workspace
    form = form_of(chat)
    fill_command(form, "echo both-are-there")
    form.get_by_label("Starts").select_option("several")
    rows = form.locator(".condition")
    expect(rows).to_have_count(2)
    for number, name in enumerate(("first.flag", "second.flag")):
        rows.nth(number).get_by_role("combobox").first.select_option("file_exists")
        rows.nth(number).get_by_label("Path").fill(name)
    expect(form.locator("#preview")).to_contain_text("second.flag")
    expect(form.locator("#preview")).to_have_attribute("aria-busy", "false")
    form.get_by_role("button", name="Create").click()
    nodes = page.locator(".nodes .node")
    expect(nodes).to_have_count(3)
    (workspace / "first.flag").touch()
    expect(page.locator("[data-path='$.0'] .state-holds")).to_be_visible()
    expect(page.locator("[data-path='$.1'] .state-holdsNot")).to_be_visible()
    expect(page.locator("[data-path='$.1']")).to_contain_text("second.flag")
    (workspace / "second.flag").touch()
    expect(page.locator(".slots tbody tr", has_text="ran").first).to_be_visible()
    expect(page.locator("#timeline .job", has_text="both-are-there")).to_contain_text("1 run")


# ---- chains


def test_a_chain_is_a_list_and_leads_to_its_steps(chat: Chat) -> None:
    product, page = chat.product, chat.page
    first = product.call(
        "POST",
        "/api/tasks",
        {"prompt": "echo the-first-step", "profile": "command", "title": "First step"},
    )["id"]
    make_trigger(
        product,
        "trig-second",
        "echo the-second-step",
        condition={"type": "task_done", "params": {"taskId": first}},
        title="Second step, with a title that is far too long for its box",
    )
    make_trigger(
        product,
        "trig-third",
        "echo the-third-step",
        condition={"type": "task_done", "params": {"taskId": "trig-second"}},
        title="Third step",
    )
    page.goto(f"{product.url}/#/trigger/trig-second")
    rows = page.get_by_role("list", name="Chain")
    own = rows.get_by_role("link", name=re.compile("far too long for its box.*trigger"))
    expect(own).to_have_attribute("aria-current", "true")
    expect(
        rows.get_by_role("link", name=re.compile("Third step.*trigger · Waiting"))
    ).to_be_visible()
    step = rows.get_by_role("link", name=re.compile("First step.*task · Done"))
    step.focus()
    step.press("Enter")
    expect(page.get_by_role("heading", name="First step")).to_be_visible()
    here = page.locator(".trace a[aria-current=true]")
    expect(here).to_have_attribute("href", f"#/task/{first}")


# ---- for everyone


@dataclass
class Scene:
    """A product with triggers of every kind."""

    product: Product
    task: str


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with running(tmp_path_factory.mktemp("triggers")) as product:
        task = product.call(
            "POST", "/api/tasks", {"prompt": "exit 3", "profile": "command", "title": "It fails"}
        )["id"]
        after = {"type": "task_done", "params": {"taskId": task}}
        either = {"type": "or", "params": {"conditions": [after, exists("never.flag")]}}
        make_trigger(product, "trig-daily", "true", schedule={"cron": "0 9 * * *"}, title="Daily")
        make_trigger(product, "trig-after", "true", condition=either, title="After it 失败之后")
        make_trigger(product, "trig-blocked", "true", condition=after, title="Blocked by it")
        make_trigger(product, "trig-paused", "true", schedule={"interval": 3600}, title="Paused")
        product.call("POST", "/api/triggers/trig-paused/pause", {})
        product.call("POST", "/api/triggers/trig-after/run", {})
        broken = product.state / "triggers" / "trig-broken.json"
        broken.write_text('{\n "prompt": "x",\n "schedule": {"cron": "never"}\n}\n')
        product.wait_until(lambda: any(one["broken"] for one in listed(product)))
        yield Scene(product, task)


@for_everyone
def test_axe_finds_nothing_serious_and_nothing_goes_sideways(
    browser: Browser, scene: Scene, scheme: Any, language: str, width: int
) -> None:
    product = scene.product
    with looking(browser, scheme, language, width, expected="422") as (page, look):
        page.goto(product.link())
        expect(page.locator(".connection.is-online")).to_be_attached()
        page.goto(f"{product.url}/#/triggers")
        expect(page.locator(".trigger")).to_have_count(5)
        expect(page.locator(".badge-danger")).to_have_count(1)
        look("list")
        for place in ("trigger/trig-after", "trigger/trig-broken", f"task/{scene.task}"):
            page.goto(f"{product.url}/#/{place}")
            expect(page.locator("#panel :is(.facts, .trigger-headline)").first).to_be_visible()
            look(place)
        page.goto(f"{product.url}/#/trigger/trig-after")
        expect(page.locator(".trace")).to_be_visible()
        look("chain")
        look_at_forms(page, product, look)


def look_at_forms(page: Page, product: Product, look: Any) -> None:
    """Each kind of time and condition, with what is wrong shown, and one that is edited."""
    page.goto(f"{product.url}/#/triggers/new")
    form = page.locator("#trigger-form")
    for kind in ("plain", "every", "cron", "at", "task_done", "llm_eval", "several"):
        form.locator("#when").select_option(kind)
        form.locator("button[type=submit]").click()
        expect(form.locator("#prompt-error")).to_be_visible()
        if kind in ("cron", "several"):
            look(f"form: {kind}")
    form.locator("#when").select_option("plain")
    form.locator("#plain").fill("every day at 9:00")
    expect(form.locator(".preview-times li")).to_have_count(3)
    look("form: preview")
    page.goto(f"{product.url}/#/trigger/trig-after/edit")
    expect(form.locator(".condition")).to_have_count(2)
    look("form: edit")


def test_a_reminder_is_made_told_in_its_words_and_put_off(chat: Chat) -> None:
    page = chat.page
    form = form_of(chat)
    form.get_by_label("Done by").select_option("a reminder for you")
    form.get_by_label("Words").fill("5 - 3, **mum**")
    form.get_by_role("textbox", name="Time").fill("in 2 seconds")
    form.get_by_role("button", name="Create").click()
    told = page.locator(".message", has_text="Reminder: 5 - 3, **mum**")
    expect(told).to_have_count(1)
    told.get_by_role("button", name="In 10 minutes").click()
    expect(page.locator(".notices")).to_contain_text("reminded again")
    page.goto(page.url.partition("#")[0] + "#/triggers")
    card = page.locator(".trigger", has_text="5 - 3, **mum**")
    expect(card).to_contain_text("Reminds you once on")
    again = stored(chat.product, "**mum**")
    assert (again["profile"], again["type"]) == ("reminder", "scheduled")
