"""What comes by webhooks: a message, a task, an event that a condition waits for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import BudgetSettings, Settings
from mimikit.conversation.deliveries import DeliveryIndex
from mimikit.engines.base import TurnInput
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol import paths
from mimikit.protocol.deliveries import Delivery
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem
from mimikit.roles.prompts import prompt_of
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import loaded, slots

CALLED = {"type": "webhook", "params": {"name": "deploy"}}
CHANGED = {"type": "file_changed", "params": {"path": "*.txt"}}


def at(client: Client, seconds: float) -> None:
    client.at(seconds)
    client.product.idle()


def tasks(client: Client) -> list[dict[str, Any]]:
    """Those that have ended, oldest first."""
    folder = paths.ended("worker", "x").rpartition("/")[0]
    found = [loaded(client.files, f"{folder}/{name}") for name in client.files.names(folder)]
    return sorted(found, key=lambda task: (task["createdAt"], task["id"]))


def messages(client: Client) -> list[dict[str, Any]]:
    (day,) = client.files.names(paths.TRANSCRIPT, suffix=".jsonl")
    return [line for _, line in client.files.lines(f"{paths.TRANSCRIPT}/{day}")]


def fired(client: Client, trigger_id: str = "g1") -> int:
    return len(slots(client.files, trigger_id))


def bodies(client: Client) -> list[list[str]]:
    return [[file["name"] for file in task["files"]] for task in tasks(client)]


def test_each_call_has_a_run_of_its_own_with_its_body(judged: Client) -> None:
    judged.when("g1", "deploy", CALLED)
    judged.product.idle()
    for number in (1, 2, 3):
        judged.call("deploy", f"d{number}", f'{{"n": {number}}}'.encode())
    judged.call("other", "d4", b"{}")
    judged.product.idle()
    at(judged, 1)
    assert fired(judged) == 3
    found = tasks(judged)
    assert len({task["files"][0]["id"] for task in found}) == 3
    assert all(len(task["files"]) == 1 for task in found)
    assert bodies(judged)[0] == ["webhook-deploy-20261201-090000.json"]


def test_what_came_before_the_trigger_was_made_is_no_event_for_it(judged: Client) -> None:
    judged.call("deploy", "d1")
    judged.product.idle()
    at(judged, 10)
    judged.when("g1", "deploy", CALLED)
    judged.product.idle()
    assert fired(judged) == 0
    judged.call("deploy", "d2")
    judged.product.idle()
    assert fired(judged) == 1


def test_what_comes_before_anybody_has_looked_at_the_trigger_counts(judged: Client) -> None:
    judged.when("g1", "deploy", CALLED)
    at_ = judged.now
    judged.at(5)
    judged.call("deploy", "d1")
    assert judged.now > at_
    judged.product.idle()
    assert fired(judged) == 1


def test_calls_while_it_cools_are_kept_and_used_together(judged: Client) -> None:
    judged.when("g1", "deploy", CALLED, cooldown=60)
    judged.call("deploy", "d1", b"1")
    judged.product.idle()
    for number in (2, 3):
        judged.call("deploy", f"d{number}", str(number).encode())
    at(judged, 30)
    assert fired(judged) == 1
    at(judged, 61)
    assert fired(judged) == 2
    assert sorted(len(names) for names in bodies(judged)) == [1, 2]
    at(judged, 200)
    assert fired(judged) == 2


def test_a_call_waits_for_its_sibling_and_is_used_by_the_firing(judged: Client) -> None:
    both = {"type": "and", "params": {"conditions": [CALLED, CHANGED]}}
    judged.when("g1", "deploy", both)
    judged.product.idle()
    judged.call("deploy", "d1", b"1")
    at(judged, 10)
    assert fired(judged) == 0
    judged.touch("a.txt")
    at(judged, 20)
    assert fired(judged) == 1
    judged.action += 1
    judged.touch("a.txt")
    at(judged, 30)
    assert fired(judged) == 1


def test_calls_are_counted_on_when_the_clock_is_set_back_and_old_ones_are_gone(
    judged: Client,
) -> None:
    judged.when("g1", "deploy", CALLED)
    judged.call("deploy", "d1")
    judged.product.idle()
    judged.set_clock(-3600)
    judged.call("deploy", "d2")
    judged.product.idle()
    assert fired(judged) == 2
    index = DeliveryIndex(judged.files)
    kept = [
        judged.files.load(f"{paths.HOOKS_DONE}/{n}", Delivery)
        for n in judged.files.names(paths.HOOKS_DONE)
    ]
    assert [mark.id for mark in index.since("deploy", 0)] == [
        it.id for it in sorted((it for it in kept if it), key=lambda it: it.number)
    ]
    assert index.next_number(judged.now) > index.newest("deploy")


def test_a_condition_that_an_edit_brings_counts_from_the_edit_on(judged: Client) -> None:
    judged.when("g1", "deploy", CHANGED)
    judged.product.idle()
    judged.call("deploy", "d1")
    at(judged, 10)
    judged.order("o1", "trigger_edit", "g1", condition=CALLED)
    judged.product.idle()
    assert fired(judged) == 0
    judged.call("deploy", "d2")
    judged.product.idle()
    assert fired(judged) == 1


def test_what_was_put_away_and_not_counted_is_counted(judged: Client) -> None:
    judged.when("g1", "deploy", CALLED)
    judged.product.idle()
    judged.call("deploy", "d1", b"{}")
    (name,) = judged.files.names(paths.HOOKS_NEW)
    waits = judged.files.load(f"{paths.HOOKS_NEW}/{name}", Delivery)
    assert waits is not None
    numbered = waits.but(number=judged.product.store.deliveries.next_number(START))
    judged.files.save(f"{paths.HOOKS_DONE}/{name}", numbered)  # its folder was not flushed
    at(judged, 5)
    assert fired(judged) == 1
    assert judged.files.names(paths.HOOKS_NEW) == []


def test_a_call_whose_entry_among_the_done_can_not_be_read_is_taken_in_again(
    client: Client,
) -> None:
    client.when("g1", "deploy", CALLED)
    client.product.idle()
    client.call("deploy", "d1", b"{}")
    (name,) = client.files.names(paths.HOOKS_NEW)
    client.files.write(f"{paths.HOOKS_DONE}/{name}", b"no delivery")
    at(client, 5)
    assert fired(client) == 1
    assert client.files.names(paths.HOOKS_NEW) == []
    assert len(client.files.names(paths.CORRUPT, suffix=paths.REASON)) == 1


def test_a_message_is_the_settings_words_with_the_body_as_a_file(judged: Client) -> None:
    judged.call("say", "d1", b"the body", does="input", prompt="say {body} of {name}")
    judged.product.idle()
    said, reply = messages(judged)
    assert (said["role"], said["hook"]) == ("user", "say")
    assert said["text"] == "say webhook-say-20261201-090000.txt of say"
    assert said["files"][0]["size"] == 8
    assert reply["inReplyTo"] == [said["id"]]
    assert (
        "webhook" in judged.product.mind.prompts[-1]
        if hasattr(judged.product.mind, "prompts")
        else True
    )


def test_a_mind_is_told_that_a_webhook_says_it() -> None:
    item = InboxItem(id="msg-1", text="look", created_at=START, hook="deploy")
    told = prompt_of("teller", TurnInput(START, "UTC", inputs=(item,)), BudgetSettings(), Path())
    assert "[msg-1] (by the webhook deploy: set up by the user" in told


def test_a_task_is_told_once_however_often_its_call_is_repeated(judged: Client) -> None:
    for _ in range(3):
        judged.call("do", "d1", b"two", does="task", prompt="look at {body}", title="d1")
        judged.product.idle()
    (task,) = tasks(judged)
    assert (task["origin"], task["title"]) == ("file", "d1")
    assert task["prompt"] == "look at webhook-do-20261201-090000.txt"


def test_a_reminder_tells_the_body_as_a_quote(judged: Client) -> None:
    judged.call("tell", "d1", b"# *hot*", does="task", profile="reminder", prompt="It came: {body}")
    judged.product.idle()
    told = messages(judged)[-1]
    assert "```text\n# *hot*\n```" in told["text"]


@pytest.fixture
def without_a_model() -> Callable[[], Client]:
    def make() -> Client:
        files, clock = Files(MemoryDisk()), FakeClock(START)
        files.make_folders()
        shell = Mind([])
        shell.name = "command"
        code = BuiltinEngine(is_program=lambda word: word == "date")
        settings = Settings.model_validate({"timezone": "UTC", "engine": "builtin"})
        product = Product(files, clock, Mind([]), settings=settings, more_engines=(code, shell))
        product.start()
        return Client(product, Oracle())

    return make


def test_no_sentence_of_the_senders_is_obeyed_without_a_model(
    without_a_model: Callable[[], Client],
) -> None:
    client = without_a_model()
    client.call("say", "d1", b"run: date", does="input", prompt="By a program: {body}")
    client.product.idle()
    assert tasks(client) == []
    client.call("say", "d2", b"x", does="input", prompt="run: date")
    client.product.idle()
    assert [task["prompt"] for task in tasks(client)] == ["date"]
