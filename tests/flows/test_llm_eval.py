"""A model is asked about conditions rarely, about all of them at once, and nobody hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.supervisor.llm_eval import parse_answers
from tests.crash.driver import Client
from tests.support.product import START
from tests.support.reading import fired, loaded, slots, transcript
from tests.support.state import start_client


def ask(prompt: str) -> dict[str, Any]:
    return {"type": "llm_eval", "params": {"prompt": prompt}}


def asked(client: Client) -> int:
    return sum(audit["event"] == "llm_eval_asked" for audit in client.product.log.audits)


def live(client: Client, seconds: float, step: float = 60) -> None:
    """Let time pass in steps, as ticks do."""
    end = (client.now - START).total_seconds() + seconds
    while (now := (client.now - START).total_seconds()) < end:
        client.at(min(now + step, end))
        client.product.idle()


def state(client: Client, trigger_id: str = "g1") -> dict[str, Any]:
    return loaded(client.files, paths.trigger_state(trigger_id))


def test_all_that_is_due_is_asked_in_one_run_of_which_nobody_hears(judged: Client) -> None:
    for number in range(5):
        judged.when(f"g{number}", "go", ask("yes" if number % 2 else "not now"))
    judged.product.idle()
    live(judged, 10)
    assert asked(judged) == 1
    assert [fired(judged, f"g{number}") for number in range(5)] == [0, 1, 0, 1, 0]
    batches = [run for run, _ in judged.oracle.runs if run not in _runs(judged)]
    assert len(batches) == 1
    assert not any("Decide for each" in text for _, text in transcript(judged.files))


def test_after_a_yes_it_rests_for_a_day(judged: Client) -> None:
    judged.when("g1", "go", ask("yes"))
    live(judged, 20)
    assert (fired(judged), asked(judged)) == (1, 1)
    live(judged, 86_000, step=3600)
    assert (fired(judged), asked(judged)) == (1, 1)
    live(judged, 1000)
    assert (fired(judged), asked(judged)) == (2, 2)


def test_while_the_answer_stays_no_it_is_asked_ever_less_often(judged: Client) -> None:
    judged.when("g1", "go", ask("never"))
    live(judged, 86_400, step=300)
    assert 24 <= asked(judged) <= 32
    assert state(judged)["falseStreak"] == asked(judged)
    judged.submit("t1", "something happens")
    judged.product.idle()
    before = asked(judged)
    live(judged, 700)
    assert asked(judged) >= before + 1, "soon again: something has happened"


def test_it_is_not_asked_while_the_others_decide(judged: Client) -> None:
    exists = {"type": "file_exists", "params": {"path": "a"}}
    both = {"type": "and", "params": {"conditions": [ask("yes"), exists]}}
    judged.when("g1", "go", both, cooldown=0)
    live(judged, 4000)
    assert asked(judged) == 0
    assert state(judged)["verdicts"]["$.0"]["why"] == "not_needed"
    judged.touch("a")
    live(judged, 30)
    assert (asked(judged), fired(judged)) == (1, 1)


def test_without_a_model_nobody_is_asked(files: Files) -> None:
    client = start_client(files, lambda _: BuiltinEngine(), settings=Settings(timezone="UTC"))
    client.when("g1", "go", ask("yes"))
    live(client, 100, step=10)
    assert asked(client) == 0
    assert client.product.llm_eval.unavailable()
    assert files.names("worker/queue") == []


def _runs(client: Client) -> set[str]:
    return {str(line["taskId"]) for n in range(5) for line in slots(client.files, f"g{n}")}


@pytest.mark.parametrize(("text", "answers"), [
    ('[{"id": "q-a", "result": true}]', {"q-a": True}),
    ('Sure!\n```json\n[{"id": "q-a", "result": false}]\n```', {"q-a": False}),
    ('[1] says so: [{"id": "q-b", "result": true}]', {"q-b": True}),
    ('[] or [{"id": "…", "result": true}]: [{"id": "q-a", "result": true}, {"x": 1}, 7]',
     {"q-a": True}),
    ('[{"id": "q-a", "result": "true"}]', None),
    ('[{"id": "q-other", "result": true}]', None),
    ("[]", None),
    ("yes", None),
    ('[{"result": true}]', None),
    ("[" * 100_000, None),
    ('{"id": "q-a", "result": true}', None),
])  # fmt: skip
def test_answers_are_found_in_what_a_model_says(text: str, answers: dict[str, bool] | None) -> None:
    assert parse_answers(text, '{"id": "q-a"} {"id": "q-b"}') == answers


def test_the_answer_to_an_edited_question_counts_for_nothing(judged: Client) -> None:
    judged.order("o1", "pause")
    judged.when("g1", "go", ask("yes"))
    live(judged, 10)
    judged.order("o2", "trigger_edit", "g1", condition=ask("never"))
    judged.product.idle()
    judged.order("o3", "resume")
    live(judged, 10)
    assert asked(judged) >= 1
    assert fired(judged) == 0
