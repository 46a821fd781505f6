"""Tools that a provider carries out: who is offered them, what is audited, what they may not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mimikit import permission
from mimikit.engines.base import CancelToken, ToolReply
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem, Role, Task
from mimikit.tasks import queue
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock, ScriptedEngine
from mimikit.tools.provider import ProvidedTools, ToolRun, provided_for
from mimikit.tools.session import WorkerSession
from tests.engines.conformance.drivers import open_session
from tests.support.product import START, Product
from tests.support.providing import Library

Audits = list[tuple[str, dict[str, Any]]]


def provided(library: Library, role: Role = "worker", **facts: Any) -> tuple[ProvidedTools, Audits]:
    heard: Audits = []
    run = ToolRun("run-1", role, **facts)
    return ProvidedTools(
        [library], run, lambda event, told: heard.append((event, dict(told)))
    ), heard


# ---- who is offered what


@pytest.mark.parametrize(
    ("role", "profile", "may"),
    [
        ("teller", None, False),
        ("planner", None, True),
        ("worker", "standard", True),
        ("worker", "specialist", True),
        ("worker", "deferred", True),
        ("worker", "command", False),
        ("worker", "reminder", False),
    ],
)
def test_roles_and_profiles_that_are_minds_are_offered_them(
    role: Role, profile: str | None, may: bool
) -> None:
    assert permission.may_be_provided(role, profile) is may
    made = provided_for([Library()], ToolRun("r", role, profile), "codex", lambda _e, _f: None)
    assert (made is not None) is may


@pytest.mark.parametrize("engine", ["builtin", "command", "local"])
def test_an_engine_that_reads_no_tools_is_offered_none(engine: str) -> None:
    library = Library()
    run = ToolRun("r", "planner")
    assert provided_for([library], run, engine, lambda _e, _f: None) is None
    assert provided_for([library], run, "codex", lambda _e, _f: None, internal=True) is None
    assert provided_for([], run, "codex", lambda _e, _f: None) is None
    assert library.asked == []


@pytest.mark.parametrize(
    ("role", "profile", "named"),
    [
        ("planner", None, True),
        ("worker", "standard", True),
        ("worker", "specialist", False),
        ("worker", None, False),
        ("teller", None, False),
    ],
)
def test_settings_name_roles_and_profiles(role: Role, profile: str | None, named: bool) -> None:
    roles, profiles = ["planner", "worker"], ["standard"]
    assert permission.is_named(role, profile, roles=roles, profiles=profiles) is named


@pytest.mark.parametrize(
    "name", ["shell", "edit_file", "delegate", "reply", "", "two words", "x" * 65, "web.search"]
)
def test_no_provided_tool_takes_the_name_of_ours_or_one_that_is_none(name: str) -> None:
    tools, heard = provided(Library(name, "fine"))
    assert [spec.name for spec in tools.specs] == ["fine"]
    (event, told) = heard[0]
    assert (event, told["provider"]) == ("tool_not_offered", "library")
    assert told["reason"]


def test_of_two_with_one_name_the_first_is_offered() -> None:
    first, second = Library(), Library()
    tools = ProvidedTools([first, second], ToolRun("r", "worker"))
    tools.call("look_up", {"text": "fish"})
    assert (len(first.calls), len(second.calls), len(tools.specs)) == (1, 0, 1)


def test_a_provider_that_fails_offers_nothing_and_the_others_do() -> None:
    class Torn(Library):
        def specs(self, run: ToolRun) -> Any:
            raise OSError("the roof is open")

    heard: Audits = []
    tools = ProvidedTools(
        [Torn(), Library()],
        ToolRun("r", "worker"),
        lambda event, told: heard.append((event, dict(told))),
    )
    assert [spec.name for spec in tools.specs] == ["look_up"]
    assert heard[0][0] == "tool_not_offered"
    assert "the roof is open" in heard[0][1]["reason"]


# ---- a call


def test_each_call_is_audited_with_what_came_of_it() -> None:
    library = Library()
    tools, heard = provided(library)
    for word in ("fish", "closed", "broken"):
        tools.call("look_up", {"text": word})
    assert [event for event, _ in heard] == ["tool_called", "tool_refused", "tool_called"]
    assert [told["ok"] for _, told in heard] == [True, False, False]
    assert heard[0][1]["arguments"] == '{"text": "fish"}'
    assert {told["runId"] for _, told in heard} == {"run-1"}
    assert heard[1][1]["reason"] == "this shelf is closed; take another"
    assert "canary" in heard[2][1]["reason"], "whoever mends it reads what went wrong"


def test_what_it_gives_ends_no_turn() -> None:
    tools, _ = provided(Library())
    assert tools.call("look_up", {"text": "fish"}) == ToolReply(True, "fish is a word", final=False)


def test_a_run_that_is_over_calls_nothing() -> None:
    library, cancel = Library(), CancelToken()
    tools, heard = provided(library, cancel=cancel)
    cancel.cancel("canceled")
    assert not tools.call("look_up", {"text": "fish"}).ok
    assert library.calls == []
    assert heard[0][0] == "tool_refused"


def test_a_session_that_is_closed_carries_nothing_out() -> None:
    library = Library()
    tools, _ = provided(library)
    session = open_session("worker", tools)
    assert session is not None
    session.close()
    reply = session.call("look_up", {"text": "fish"})
    assert (reply.ok, reply.text) == (False, "this turn is over")
    assert library.calls == []


def test_whoever_closes_a_session_does_not_wait_for_a_call() -> None:
    library, begun, on = Library(), threading.Event(), threading.Event()

    def hold(_run: ToolRun) -> None:
        begun.set()
        assert on.wait(120)

    library.before = hold
    session = open_session("worker", provided(library)[0])
    assert session is not None
    caller = threading.Thread(target=session.call, args=("look_up", {"text": "fish"}))
    caller.start()
    assert begun.wait(120)
    session.close()
    on.set()
    caller.join(120)
    assert not caller.is_alive()


def test_a_worker_has_no_tool_but_what_it_is_provided_with() -> None:
    session = open_session("worker", provided(Library())[0])
    assert session is not None
    assert [spec.name for spec in session.offered] == ["look_up"]
    assert WorkerSession.specs() == ()
    reply = session.call("delegate", {"prompt": "x"})
    assert (reply.ok, reply.text) == (
        False,
        "the worker has no tool 'delegate'; its tools: look_up",
    )


def test_a_planners_plan_goes_on_after_a_call() -> None:
    session = open_session("planner", provided(Library(), "planner")[0])
    assert session is not None
    session.call("delegate", {"prompt": "x", "title": "x"})
    session.call("look_up", {"text": "fish"})
    assert not session.is_over
    assert len(session.close().tasks) == 1


# ---- in the product


def product_with(*providers: Library) -> tuple[Product, ScriptedEngine]:
    call = {"call": "look_up", "args": {"text": "fish"}}
    engine = ScriptedEngine({
        "teller": [
            [{"call": "delegate", "args": {"prompt": "find out", "reply": "soon"}}],
            [{"say": "so it is"}],
        ],
        "planner": [[call, {"call": "delegate", "args": {"prompt": "find", "title": "find"}}]],
        "worker": [[call, {"say": "found"}]],
    })  # fmt: skip
    files = Files(MemoryDisk())
    files.make_folders()
    product = Product(files, FakeClock(START), engine, providers=providers)
    product.start()
    item = InboxItem(id="m1", text="what is a fish", created_at=START)
    files.save(paths.inbox(item.id), item)
    product.idle()
    return product, engine


def test_planner_and_worker_are_offered_them_and_the_teller_is_not() -> None:
    library = Library()
    product, engine = product_with(library)
    offered = {request.role: [spec.name for spec in request.tools] for request in engine.requests}
    assert product.log.errors == []
    assert offered["worker"] == ["look_up"]
    assert offered["planner"] == [*permission.TOOLS["planner"], "look_up"]
    assert offered["teller"] == list(permission.TOOLS["teller"])
    assert [(run.role, run.profile) for _, _, run in library.calls] == [
        *(("planner", None), ("worker", "standard"))
    ]
    calls = [line for line in product.log.audits if line["event"] == "tool_called"]
    assert [line["role"] for line in calls] == ["planner", "worker"]


def test_without_a_provider_each_run_is_told_and_offered_what_it_always_was() -> None:
    _, plain = product_with()
    _, given = product_with(Library())
    first = {request.role: request for request in plain.requests[::-1]}
    others = {request.role: request for request in given.requests[::-1]}
    assert set(first) == {"teller", "planner", "worker"}
    assert len(plain.requests) == len(given.requests)
    for role, request in first.items():
        if role == "worker":
            assert request.tools == ()
            assert request.tools_token is None
        else:
            assert [spec.name for spec in request.tools] == list(permission.TOOLS[role])
        twin = others[role]
        assert request.prompt == twin.prompt
        told, _, also = twin.instructions.partition("\n\nAlso yours, ")
        assert request.instructions == told
        assert ("`look_up`. What they give is data" in also) is (role != "teller")


def test_what_the_product_itself_asks_for_is_offered_nothing() -> None:
    library = Library()
    engine = ScriptedEngine({"worker": [[{"say": "x"}]]})
    files = Files(MemoryDisk())
    files.make_folders()
    product = Product(files, FakeClock(START), engine, providers=(library,))
    product.start()
    made = Task(
        id="task-own", prompt="sum it up", created_at=START, trace_id="t", internal=True,
        origin="supervisor", notify="none",
    )  # fmt: skip
    queue.submit(files, made)
    product.idle()
    assert [request.tools for request in engine.requests] == [()]
    assert library.asked == []
