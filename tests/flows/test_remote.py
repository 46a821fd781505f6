"""What came by a page that other machines reach runs no command, also when that page is gone."""

from __future__ import annotations

from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.conversation import inbox
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.protocol import paths
from mimikit.protocol.models import Command, CommandResult, Question, RoutedAnswer, Task
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import PlanResult
from mimikit.tasks import queue
from mimikit.tools.planning import PlannerSession
from mimikit.tools.session import ToolCaller
from mimikit.triggers import registry
from tests.crash.driver import Client
from tests.support.reading import record, unanswered
from tests.support.state import start_client


def client(**web: Any) -> Client:
    """A product that reads words by rules and is told where its commands would run."""
    builtin = {"engine": "builtin"}
    settings = Settings.model_validate(
        {
            "timezone": "UTC",
            "web": web,
            "roles": {"teller": builtin, "planner": builtin},
            "profiles": {
                "standard": builtin,
                "specialist": builtin,
                "command": {"engine": "scripted"},
            },
        }
    )
    return start_client(settings=settings, more_engines=(BuiltinEngine(),))


def outcomes(here: Client) -> list[tuple[str, str | None]]:
    """How the Workers' runs ended, oldest first."""
    names = here.files.names("worker/results")
    found = [here.files.load(f"worker/results/{name}", TaskResult) for name in names]
    ended = sorted((it for it in found if it is not None), key=lambda it: it.completed_at)
    return [(it.status, it.failure_reason) for it in ended]


@pytest.mark.parametrize(
    ("remote", "allowed", "ended"),
    [
        (False, False, ("done", None)),
        (True, False, ("failed", "refused")),
        (True, True, ("done", None)),  # the owner has allowed them since
    ],
)
def test_a_command_asked_for_from_afar_is_refused_at_home(
    *, remote: bool, allowed: bool, ended: tuple[str, str | None]
) -> None:
    here = client(allow_commands=allowed)
    here.say("m1", "run: date", remote=remote)
    here.product.idle()
    assert outcomes(here) == [ended]


def test_a_message_of_the_owner_in_between_does_not_lend_its_rights() -> None:
    here = client()
    here.say("m1", "run: date", remote=True)
    here.say("m2", "hello")
    here.product.idle()
    assert outcomes(here) == [("failed", "refused")]
    here.say("m3", "run: date")
    here.product.idle()
    assert outcomes(here)[-1] == ("done", None)


def test_a_trigger_made_from_afar_runs_no_command_and_stays_so_when_changed() -> None:
    here = client()
    here.say("m1", "every 10 minutes: run date", remote=True)
    here.product.idle()
    here.at(601)
    here.product.idle()
    assert outcomes(here) == [("failed", "refused")]
    (name,) = here.files.names(paths.TRIGGERS)
    here.order("o1", "trigger_edit", name.removesuffix(".json"), title="again", remote=False)
    here.product.idle()
    here.order("o2", "trigger_run", name.removesuffix(".json"))
    here.product.idle()
    assert outcomes(here) == [("failed", "refused")] * 2


def test_a_repetition_is_refused_as_the_first_was() -> None:
    here = client()
    here.say("m1", "run: date", remote=True)
    here.product.idle()
    (name,) = here.files.names("worker/results")
    here.order("o1", "retry", name.removesuffix(".json"))
    here.product.idle()
    assert outcomes(here) == [("failed", "refused")] * 2


def test_what_is_told_of_such_a_run_and_what_is_answered_is_marked_too() -> None:
    here = client()
    asker = Task(
        id="t1", role="planner", prompt="x", created_at=here.now, trace_id="t1", origin="builtin"
    )
    here.files.save_new(paths.running("planner", "t1"), asker.but(remote=True))
    plan = PlanResult.of(asker, "failed", attempts=1, started_at=here.now, completed_at=here.now)
    here.product.applier.apply(plan)
    assert [item.remote for item in unanswered(here.files)] == [True]
    here.files.save(paths.ended("planner", "t1"), asker)
    question = Question(
        question_id="q1",
        question="Which?",
        created_at=here.now,
        expires_at=here.now,
        planner_task_id="t1",
    )
    inbox.ask(here.files, question)
    answer = RoutedAnswer(question_id="q1", text="run: date", remote=True)
    here.product.applier._route_answer(answer, here.now)
    (name,) = here.files.names("planner/queue")
    task = record(here.files, f"planner/queue/{name}", Task)
    assert (task.remote, task.origin) == (True, "builtin")


def test_the_words_of_an_owners_command_are_not_changed_from_afar() -> None:
    here = client()
    here.trigger("g1", 600, "date", profile="command", origin="cli")
    for remote, ok in ((True, False), (False, True)):
        caller = ToolCaller("t9", "trace-9", here.now, by_user=True, remote=remote)
        session = here.product.context.open_session(PlannerSession, caller)
        reply = session.call(
            "change_trigger", {"id": "g1", "action": "edit", "changes": {"prompt": "rm -r x"}}
        )
        assert reply.ok is ok, reply.text


@pytest.mark.parametrize(
    ("change", "ended"),
    [
        ({"prompt": "echo b"}, ("failed", "refused")),
        ({"schedule": {"interval": 60}, "title": "t"}, ("done", None)),
    ],
)
def test_a_command_that_the_page_wrote_anew_has_the_rights_of_the_page(
    change: dict[str, Any], ended: tuple[str, str | None]
) -> None:
    """As one that was made by it: none while it can be reached from elsewhere."""
    here = client(host="192.168.7.7")
    here.trigger("g1", 6000, "echo a", profile="command", origin="cli")
    edit = Command(
        id="o1", action="trigger_edit", target="g1", args=change, created_at=here.now, origin="http"
    )
    queue.submit_command(here.files, edit)
    here.product.idle()
    here.order("o2", "trigger_run", "g1")
    here.product.idle()
    assert outcomes(here) == [ended]


@pytest.mark.parametrize("remote", [False, True])
def test_what_came_from_afar_changes_no_command_that_became_one_meanwhile(*, remote: bool) -> None:
    here = client()
    here.trigger("g1", 6000, "paint", origin="cli")
    edit = Command(id="o2", action="trigger_edit", target="g1", created_at=here.now, origin="http")
    here.order("o1", "trigger_edit", "g1", profile="command")
    queue.submit_command(here.files, edit.but(args={"prompt": "rm -r x"}, remote=remote))
    here.product.idle()
    assert record(here.files, paths.command_done("o2"), CommandResult).ok is not remote
    found, _ = registry.active(here.files, "g1")
    assert found is not None
    assert found.prompt == ("paint" if remote else "rm -r x")
