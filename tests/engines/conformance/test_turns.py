"""What every engine makes of what its model says: words, tools rightly and wrongly called."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mimikit import permission
from mimikit.engines.base import CancelToken, Outcome
from mimikit.protocol.models import MAX_TEXT, Role
from mimikit.tools.session import Effects
from tests.engines.conformance.drivers import ROLES, EngineDriver, open_session
from tests.support.engine_requests import Desk
from tests.support.fake_llm import Body
from tests.support.runs import open_files, zombies

UNICODE = "你好，世界 🐟 e\u0301 한국 \U0001f468\u200d\U0001f469\u200d\U0001f467 end"
HUGE = f"{'长' * 499}{'x' * 500}\n" * 700
MINDS: tuple[Role, ...] = ("teller", "planner")

WORDS: dict[str, tuple[Body, str]] = {
    "a word": ({"text": "hello"}, "hello"),
    "many tongues": ({"text": UNICODE}, UNICODE),
    "a zero byte": ({"text": "before\x00after 好"}, "好"),
    "a huge answer": ({"text": HUGE}, HUGE[:1000]),
}
RIGHT: dict[str, list[list[tuple[str, Body]]]] = {
    "teller": [
        [("remember", {"content": "likes tea", "longTerm": True})],
        [("forget", {"what": "likes coffee"})],
        [("update_backlog", {"action": "add", "item": "call Li"})],
        [("list_tasks", {"scope": "triggers"})],
        [("cancel_task", {"id": "trig-1"})],
        [("answer_question", {"questionId": "q-1", "text": "blue"})],
        [("delegate", {"prompt": "make a table", "title": "table", "priority": 7})],
        [
            ("ask_user", {"question": "Which?", "options": ["a", "b"], "default": "a"}),
            ("reply", {"text": "first 你好"}),
            ("reply", {"text": "second 🐟"}),
        ],
    ],
    "planner": [
        [("list_tasks", {})],
        [("get_recent_history", {"count": 5, "offset": 0})],
        [("get_history_by_time", {"after": "2026-01-28T09:30:00+08:00"})],
        [("search_memory", {"query": "tea", "limit": 3})],
        [("delegate", {"prompt": "build", "label": "b", "maxAttempts": 2, "more": True})],
        [("delegate", {"prompt": "test", "after": ["b"], "notify": "failure", "more": True})],
        [("schedule", {"prompt": "look", "cron": "0 9 * * 1-5", "more": True})],
        [("cancel_task", {"id": "trig-1"})],
        [
            ("change_trigger", {"id": "trig-1", "action": "pause"}),
            ("needs_input", {"question": "Which colour?", "timeout": 600}),
        ],
    ],
}
"""The answers of a turn, each with its calls; the last leaves nothing to say or to read."""
TOOL: dict[str, tuple[str, str, str]] = {
    "teller": ("remember", "content", "schedule"),
    "planner": ("search_memory", "query", "remember"),
}
"""A tool, its text, and a tool that another role has."""
NO_OBJECT = ("expected", "must be", "pars")
"""What of the words is told of arguments that are no object: whoever reads them first says so."""
WRONG: dict[str, Any] = {
    "no JSON": lambda tool, text, _: (tool, f'{{"{text}": "a', NO_OBJECT),
    "no object": lambda tool, text, _: (tool, f'["{text}"]', NO_OBJECT),
    "a field missing": lambda tool, text, _: (tool, {}, text),
    "a wrong type": lambda tool, text, _: (tool, {text: {"a": 1}}, text),
    "an unknown field": lambda tool, text, _: (tool, {text: "a", "colour": "red"}, "colour"),
    "beyond what is listed": lambda *_: ("list_tasks", {"scope": "everything"}, "scope"),
    "out of range": lambda *_: ("delegate", {"prompt": "a", "priority": 11}, "priority"),
    "far too long": lambda tool, text, _: (tool, {text: "x" * (MAX_TEXT + 1)}, text),
    "an unknown tool": lambda *_: ("delete_everything", {"path": "/"}, "delete_everything"),
    "another role's tool": lambda tool, text, other: (other, {"content": "a"}, other),
}


@pytest.mark.put_to(thinks=True, cases=WORDS)
def test_what_the_model_says_is_the_text(driver: EngineDriver, case: tuple[Body, str]) -> None:
    step, expected = case
    played = driver.play(step)
    outcome = played.outcome
    assert (outcome.status, outcome.error, outcome.reason) == ("done", None, None)
    assert expected in outcome.text
    outcome.text.encode()
    assert played.desk.events


@pytest.mark.put_to(thinks=True, cases={"a lone surrogate": "half \ud83d of it 好"})
def test_what_is_no_text_harms_nobody(driver: EngineDriver, case: str) -> None:
    """An engine may pass over what can not be said; it neither raises nor hangs."""
    for asked in (driver.play({"text": case}), driver.play({"text": "hello"}, prompt=case)):
        assert asked.outcome.status == "done" or asked.outcome.error
        (asked.outcome.text + str(asked.outcome.error)).encode(errors="surrogatepass")


@pytest.mark.put_to(by_server=True)
def test_a_text_is_told_in_its_order_as_it_comes(driver: EngineDriver) -> None:
    said = "One, two, three and four, five, six and so on."
    played = driver.play({"text": said, "chunk_delay": 0.06 if driver.streams else 0})
    deltas = played.texts("delta")
    if driver.streams:
        assert len(deltas) > 1
        assert "".join(deltas) == said
    assert played.texts("message") == [said]
    kinds = [kind for kind, _, _ in played.desk.events if kind in ("delta", "message")]
    assert kinds == ["delta"] * len(deltas) + ["message"]


@pytest.mark.put_to(by_server=True)
def test_a_turn_without_a_word_has_failed(driver: EngineDriver) -> None:
    outcome = driver.play({"text": ""}).outcome
    assert (outcome.status, outcome.reason) == ("failed", "error")
    assert "without an answer" in str(outcome.error)


@pytest.mark.put_to(roles=MINDS)
def test_each_tool_of_a_role_is_carried_out(driver: EngineDriver, role: Role) -> None:
    session = open_session(role)
    if session is None:
        pytest.fail("a role of minds has tools")
    answers = RIGHT[role]
    assert {name for calls in answers for name, _ in calls} == set(permission.TOOLS[role])
    steps = [{"tools": calls} for calls in answers]
    played = driver.play(*steps, {"text": "done"}, role=role, session=session)
    assert played.outcome.status == "done", played.outcome
    made = session.close()
    if role == "teller":
        replies = made.replies if driver.in_order else sorted(made.replies)
        assert replies == ["first 你好", "second 🐟"]
        assert [note.content for note in made.remembered] == ["likes tea"]
        assert [task.priority for task in made.tasks] == [7]
        assert (len(made.backlog), len(made.answers)) == (1, 1)
    else:
        assert [task.prompt for task in made.tasks] == ["build"]
        assert [trigger.prompt for trigger in made.triggers] == ["test", "look"]
        assert [command.action for command in made.commands] == ["trigger_pause"]
    assert made.cancels == ["trig-1"]
    assert made.question is not None
    if driver.by_server:
        assert len(played.requests) == len(answers) + (not driver.ends_by_final)
    asked = max(1, len(played.requests))
    usage = played.outcome.usage
    assert (usage.input_tokens, usage.output_tokens) == (100 * asked, 10 * asked)
    assert len(played.texts("tool")) >= sum(map(len, answers))


@pytest.mark.put_to(roles=MINDS)
def test_wrong_calls_are_told_to_the_model_and_nothing_happens(
    driver: EngineDriver, role: Role
) -> None:
    """All of them in one turn: it goes on after each, and its last word counts."""
    session = open_session(role)
    assert session is not None
    made = {name: make(*TOOL[role]) for name, make in WRONG.items() if name not in driver.cannot}
    steps = [{"tools": [[tool, given]]} for tool, given, _ in made.values()]
    played = driver.play(*steps, {"text": "sorry"}, role=role, session=session)
    assert (played.outcome.status, played.outcome.text) == ("done", "sorry"), played.outcome
    assert session.close() == Effects()
    if not driver.by_server:
        return
    assert len(played.told) == len(made)
    for (name, (_, _, said)), told in zip(made.items(), played.told, strict=True):
        words = said if isinstance(said, tuple) else (said,)
        assert any(word in told.lower() for word in words), (name, told)
        assert len(told) < 2000, name


@pytest.mark.put_to(roles=ROLES)
def test_several_at_once_do_not_meet_and_leave_nothing_open(
    driver: EngineDriver, role: Role
) -> None:
    engine = driver.engine()
    driver.play(driver.quick, role=role, engine=engine)
    before = open_files()

    def one(_number: int) -> str:
        outcome = driver.play(driver.quick, role=role, engine=engine).outcome
        return outcome.text.strip() or str(outcome)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(one, range(4))) == ["hello"] * 4
    for _ in range(200):  # servers here, whose clients have gone, close their side a moment later
        if not open_files() - before:
            break
        threading.Event().wait(0.05)
    assert not open_files() - before
    assert zombies() == []


# ---- how a run is stopped


@pytest.mark.put_to(roles=ROLES)
def test_it_says_whether_it_can_serve(driver: EngineDriver, role: Role) -> None:
    engine = driver.engine()
    assert engine.name
    assert engine.unavailable(role) is None
    assert engine.unavailable() is None


@pytest.mark.put_to(roles=ROLES)
def test_canceled_before_its_start_it_does_nothing(driver: EngineDriver, role: Role) -> None:
    cancel = CancelToken()
    cancel.cancel("canceled")
    played = driver.play(driver.hanging[role], role=role, cancel=cancel)
    assert (played.outcome.status, played.outcome.reason) == ("canceled", "canceled")
    assert [kind for kind, _, _ in played.desk.events if kind != "note"] == []
    assert played.requests == []


STOPS = {"canceled": "canceled", "killed": "failed"}


@pytest.mark.put_to(roles=ROLES, cases={reason: reason for reason in STOPS})
def test_stopped_on_its_way_it_ends_soon_and_says_why(
    driver: EngineDriver, role: Role, case: str
) -> None:
    outcome = stopped(driver, role, case)
    assert (outcome.status, outcome.reason) == (STOPS[case], case)
    assert outcome.error


def stopped(driver: EngineDriver, role: Role, reason: str) -> Outcome:
    """Of a run that is stopped as soon as it has begun; its deadline is far off."""
    cancel, desk = CancelToken(), Desk()
    begins = "command" if role == "worker" and driver.by_server else ""

    def event(kind: str, *_: object) -> None:
        if kind == begins or not begins:
            cancel.cancel(reason)

    desk.event = event  # type: ignore[method-assign]
    hanging: Body = driver.hanging[role]

    def answer(_body: Body) -> Body:
        if not begins:
            cancel.cancel(reason)
        return hanging

    step = answer if driver.by_server else hanging
    return driver.play(step, role=role, desk=desk, cancel=cancel, timeout_s=600.0).outcome


@pytest.mark.put_to(roles=("teller", "worker"))
def test_over_its_deadline_it_ends_with_a_timeout(driver: EngineDriver, role: Role) -> None:
    outcome = driver.play(driver.hanging[role], role=role, timeout_s=1.5).outcome
    assert (outcome.status, outcome.reason) == ("failed", "timeout")


@pytest.mark.put_to(roles=("teller", "worker"))
def test_without_its_folders_it_does_not_raise(driver: EngineDriver, role: Role) -> None:
    nowhere = driver.here.root / "nowhere"
    outcome = driver.play(
        driver.quick, role=role, workspace=nowhere / "workspace", scratch=nowhere / "scratch"
    ).outcome
    assert outcome.status in ("done", "failed")
    assert outcome.status == "done" or outcome.error
