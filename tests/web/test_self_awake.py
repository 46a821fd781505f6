"""Self-awake over HTTP: what it does and did, and what is asked of it."""

from __future__ import annotations

from mimikit.errors import ErrorParameter
from mimikit.protocol import paths
from mimikit.protocol.models import Command
from mimikit.protocol.results import CommandResult
from mimikit.protocol.self_awake import Improvement, PastImprovement, SelfAwakeState
from tests.web.conftest import START, Web

RUN = Improvement(
    id="awake-1", kind="docs", stage="work", title="mend links", prompt="do", started_at=START,
    branch="mimikit/self-awake-20261201-docs-aaaaaa", commit="1" * 40, end="committed",
)  # fmt: skip


def test_off_nothing_is_known_of_it(web: Web) -> None:
    found = web.get("/api/self-awake")
    assert (found["enabled"], found["run"], found["past"]) == (False, None, [])


def test_what_it_does_and_did_is_told_with_its_branches(web: Web) -> None:
    past = [PastImprovement.of(RUN.but(id=f"awake-{n}"), "task-1", START) for n in range(9)]
    web.files.save(paths.SELF_AWAKE, SelfAwakeState(run=RUN, past=past, blocked="no git"))
    web.files.write(paths.CONFIG, b"[self_awake]\nenabled = true\n")
    found = web.get("/api/self-awake")
    assert (found["enabled"], found["run"]["stage"], found["blocked"]) == (True, "work", "no git")
    assert [one["id"] for one in found["past"]] == [f"awake-{n}" for n in range(8, -1, -1)]
    assert found["past"][0]["branch"] == RUN.branch
    at_home = web.get("/api/home")["selfAwake"]
    assert len(at_home["past"]) == 5
    assert at_home["run"] == found["run"]


def test_settings_that_are_broken_meanwhile_show_those_of_the_start(web: Web) -> None:
    web.files.write(paths.CONFIG, b"[self_awake]\nenabled = 'perhaps'\n")
    assert web.get("/api/self-awake")["enabled"] is False


def test_it_is_switched_and_asked_for_by_a_command(web: Web) -> None:
    asked = (
        ({"action": "on", "id": "c1"}, ("self_awake_on", "")),
        ({"action": "off", "id": "c2"}, ("self_awake_off", "")),
        ({"action": "run", "item": "docs", "id": "c3"}, ("self_awake_run", "docs")),
    )
    for body, meant in asked:
        response = web.ask("POST", "/api/self-awake", body, headers={"Cookie": web.log_in()})
        assert response.status_code == 202
        command = web.files.load(paths.command(body["id"]), Command)
        assert command is not None
        assert (command.action, command.target) == meant


def test_what_makes_no_sense_is_refused(web: Web) -> None:
    for body in (
        {"action": "on", "item": "docs"},
        {"action": "sleep"},
        {"action": "run", "item": "x"},
    ):
        response = web.ask("POST", "/api/self-awake", body, headers={"Cookie": web.log_in()})
        assert response.status_code == 422


def test_why_none_begins_is_told_in_each_language(web: Web) -> None:
    """By a consumer that has carried the order out."""
    now = web.clock.now()
    command = Command(id="c1", action="self_awake_run", target="", created_at=now, origin="http")
    why: dict[str, ErrorParameter] = {"why": "the queues are paused"}
    done = CommandResult(
        command=command, ok=False, message="x", code="no_improvement", params=why, applied_at=now
    )
    web.files.save(paths.command_done("c1"), done)
    told = web.ask("POST", "/api/self-awake", {"action": "run", "id": "c1"}).get_json()
    assert told["params"] == why
    assert told["words"] == {"why": {"en": "the queues are paused", "zh": "队列已暂停"}}
