"""The engine `openai`: requests, handling of any response, failures."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from mimikit.engines.base import Failed, Outcome, ToolReply, ToolSpec
from mimikit.engines.openai.dialogue import DROPPED
from mimikit.tools.session import TellerSession
from tests.support.endpoint import KEY, LOOK, TEXT, EndpointGround, delta, here, stream
from tests.support.engine_requests import Desk
from tests.support.fake_llm import USAGE, Body, FakeLLM

CHAT, RESPONSES = "/chat/completions", "/responses"
SPECS = TellerSession.specs()
SAY = ToolSpec("say", "Say.", TEXT)
__all__ = ["here"]


@pytest.fixture(params=[CHAT, RESPONSES])
def api(request: pytest.FixtureRequest) -> str:
    return request.param


def carried_out(
    here: EndpointGround, llm: FakeLLM, desk: Desk | None = None, **fields: Any
) -> Outcome:
    return here.engine(llm).run(here.ask(desk=desk, **fields))


def said(body: Body) -> str:
    return json.dumps(body.get("messages") or body.get("input"))


# ---- asking


def test_the_api_of_an_endpoint_is_detected_once(here: EndpointGround) -> None:
    with FakeLLM([{"text": "hi"}], apis=[RESPONSES]) as llm:
        engine = here.engine(llm)
        for _ in range(2):
            engine.run(here.ask())
        assert llm.looks == ["/v1/chat/completions", "/v1/responses"]


def test_an_endpoint_without_a_known_api_is_reported(here: EndpointGround) -> None:
    with FakeLLM([{"text": "hi"}], apis=["/nowhere"]) as llm:
        outcome = carried_out(here, llm)
    assert outcome.reason == "engine_unavailable"
    assert "found neither" in str(outcome.error)
    assert "/v1" in str(outcome.error)


@pytest.mark.parametrize("refused", ["look", "say"])
def test_a_final_tool_ends_nothing_where_a_call_beside_it_is_refused(
    here: EndpointGround, refused: str
) -> None:
    desk = Desk(lambda name, _: ToolReply(name != refused, "too long", name != refused))
    calls = [{"name": n, "arguments": {"text": n}} for n in ("look", "say")]
    with FakeLLM([{"call": calls}, {"text": "in short"}]) as llm:
        outcome = carried_out(here, llm, desk, tools=(LOOK, SAY))
        assert "error: too long" in said(llm.requests[1])
    assert outcome.text == "in short"


def test_a_call_beside_a_final_tool_continues_the_run(here: EndpointGround) -> None:
    desk = Desk(lambda name, _arguments: ToolReply(True, "ok", final=name == "say"))
    calls = [{"name": n, "arguments": {"text": n}} for n in ("say", "look")]
    with FakeLLM([{"call": calls}, {"text": "seen"}]) as llm:
        assert carried_out(here, llm, desk, tools=(LOOK, SAY)).text == "seen"


def test_the_constant_part_of_a_prompt_comes_first(here: EndpointGround, api: str) -> None:
    steps = [{"call": {"name": "look", "arguments": {"text": "a"}}}, {"text": "seen"}]
    with FakeLLM(steps, apis=[api]) as llm:
        carried_out(here, llm, tools=SPECS)
        first, second = (json.dumps(body) for body in llm.requests)
    end = first.rindex("go") + 2
    assert first[:end] == second[:end]


WRONG_ARGUMENTS = {
    "no JSON": "{text: a",
    "a list": '["a"]',
    "a number": "1e999",
    "too deep": "[" * 100_000,
}


@pytest.mark.parametrize("given", WRONG_ARGUMENTS.values(), ids=WRONG_ARGUMENTS)
@pytest.mark.parametrize("form", ["chat", "responses"])
def test_invalid_arguments_are_reported_to_the_model(
    here: EndpointGround, given: str, form: str
) -> None:
    desk = Desk(
        lambda _name, arguments: ToolReply(bool(arguments.get("text")), "text: expected a value")
    )
    with FakeLLM([raw_call(form, given), {"text": "sorry"}]) as llm:
        engine = here.engine(llm, api=form)
        outcome = engine.run(here.ask(desk=desk, tools=(LOOK,)))
        assert "expected" in said(llm.requests[1])
        assert json.dumps(llm.requests[1])
    assert outcome.text == "sorry"
    assert all(not arguments for _, arguments in desk.calls)


def raw_call(form: str, arguments: str) -> Body:
    if form == "chat":
        call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": arguments}}
        return stream(delta(tool_calls=[call]), delta("tool_calls"))
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": arguments}
    completed = {"type": "response.completed", "response": {"usage": USAGE}}
    return stream({"type": "response.output_item.done", "item": call}, completed)


def test_repeated_or_missing_call_ids_are_replaced(here: EndpointGround) -> None:
    calls = [
        {"index": n, "id": call_id, "function": {"name": "look", "arguments": '{"text": "a"}'}}
        for n, call_id in enumerate(["c", "c", "", "x" * 500, None])
    ]
    chunk = {"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    with FakeLLM([{"raw": f"data: {json.dumps(chunk)}\n\n"}, {"text": "ok"}]) as llm:
        engine = here.engine(llm, api="chat")
        engine.run(here.ask(tools=(LOOK,)))
        told = llm.requests[1]["messages"]
    ids = [message["tool_call_id"] for message in told if message["role"] == "tool"]
    assert len(set(ids)) == 5
    assert [call["id"] for call in told[2]["tool_calls"]] == ids


def test_a_model_that_never_ends_is_ended(here: EndpointGround) -> None:
    with FakeLLM([{"call": {"name": "look", "arguments": {"text": "a"}}}]) as llm:
        outcome = carried_out(here, llm, tools=(LOOK,))
        assert len(llm.requests) == 12
    assert outcome.status == "failed"
    assert "12 requests" in str(outcome.error)


def test_the_oldest_outputs_are_dropped_when_the_context_is_full(here: EndpointGround) -> None:
    desk = Desk(lambda _name, _arguments: ToolReply(True, "x" * 3000))
    steps: list[Any] = [{"call": {"name": "look", "arguments": {"text": str(n)}}} for n in range(6)]
    with FakeLLM([*steps, {"text": "done"}], models=[{"id": "m", "max_model_len": 4096}]) as llm:
        outcome = carried_out(here, llm, desk, tools=(LOOK,))
        sizes = [len(said(body)) for body in llm.requests]
        last = [m["content"] for m in llm.requests[-1]["messages"] if m["role"] == "tool"]
    assert outcome.text == "done"
    assert max(sizes) < 3 * 4096
    assert last[0] == DROPPED
    assert last[-1] == "x" * 3000


# ---- failing


def failing(here: EndpointGround, *steps: Any, **fields: Any) -> tuple[Outcome, FakeLLM]:
    with FakeLLM(list(steps)) as llm:
        return carried_out(here, llm, **fields), llm


def test_a_wrong_key_means_logged_out_until_the_key_changes(here: EndpointGround) -> None:
    with FakeLLM([{"text": "hi"}], key="the right key") as llm:
        engine = here.engine(llm)
        outcome = engine.run(here.ask())
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.want) == ("engine_unavailable", "logged_out")
        assert "401" in str(outcome.error)
        assert "mimikit engine add mine" in str(outcome.error)
        assert not engine.has_recovered("logged_out")
        (here.state / "secrets/mine.key").write_text("the right key")
        assert engine.has_recovered("logged_out")
        assert engine.run(here.ask()).text == "hi"


def test_a_reachable_endpoint_is_detected_again(here: EndpointGround) -> None:
    outcome = here.engine(None).run(here.ask())
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "unreachable")
    assert not here.engine(None).has_recovered("unreachable")
    with FakeLLM([]) as llm:
        assert here.engine(llm).has_recovered("unreachable")
        assert not llm.requests


@pytest.mark.parametrize("step", [{"status": 502}, {"drop": True, "text": "a b"}])
def test_an_error_is_reported_as_broken_after_three_retries(
    here: EndpointGround, step: Body
) -> None:
    outcome, llm = failing(here, step)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "broken")
    assert len(llm.requests) == 4


def test_a_context_that_grows_too_long_drops_half_of_the_tool_outputs(here: EndpointGround) -> None:
    desk = Desk(lambda _name, _arguments: ToolReply(True, "x" * 3000))
    call = {"call": {"name": "look", "arguments": {"text": "a"}}}
    error = {"error": {"message": "the prompt exceeds the context window"}}
    outcome, llm = failing(
        here, call, call, {"status": 400, "body": error}, {"text": "ok"}, desk=desk, tools=(LOOK,)
    )
    assert outcome.text == "ok"
    assert said(llm.requests[-1]).count("x" * 3000) == 1


def test_keepalives_prevent_the_idle_timeout_but_not_the_deadline(here: EndpointGround) -> None:
    outcome, _ = failing(here, {"endless": ": alive\n\n"}, idle_timeout_s=0.5, timeout_s=2.0)
    assert outcome.reason in ("timeout", "error")


# ---- a hostile endpoint

HOSTILE = {
    "no JSON": "data: {nonsense\n\n",
    "other types": 'data: [1]\n\ndata: "a"\n\ndata: {"choices": {"a": 1}, "usage": []}\n\n',
    "odd deltas": 'data: {"choices": [{"delta": {"content": 5, "tool_calls": [7, null]}}]}\n\n',
    "deep": "data: " + "[" * 50_000 + "\n\n",
    "nothing": "",
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("form", ["chat", "responses"])
def test_an_invalid_response_fails_the_run(here: EndpointGround, raw: str, form: str) -> None:
    with FakeLLM([{"raw": raw}]) as llm:
        outcome = here.engine(llm, api=form).run(here.ask(timeout_s=20.0))
    assert (outcome.status, outcome.reason) == ("failed", "engine_unavailable")
    assert outcome.error
    assert len(outcome.error) < 1000


@pytest.mark.parametrize(
    "event",
    ["data: {}\n\n" * 10_000, "x" * 2**20, 'data: {"choices":[{"delta":{"content":"aaaa"}}]}\n\n'],
)
def test_an_answer_without_end_is_cut_off(here: EndpointGround, event: str) -> None:
    with FakeLLM([{"endless": event}]) as llm:
        outcome = here.engine(llm, api="chat").run(here.ask(timeout_s=5.0))
    assert outcome.status == "failed"
    assert len(outcome.error or "") < 1000
    assert len(outcome.text) < 40 * 2**20


def test_a_huge_error_is_shortened_and_has_no_key(here: EndpointGround) -> None:
    words = f"your key {KEY} is \x1b[31mwrong " + "a" * 5_000_000
    outcome, _ = failing(here, {"status": 403, "body": {"error": {"message": words}}})
    assert outcome.error is not None
    assert len(outcome.error) < 1000
    assert KEY not in outcome.error
    assert "\x1b" not in outcome.error


def test_the_key_is_in_no_event_and_no_other_file(here: EndpointGround) -> None:
    desk = Desk()
    with FakeLLM([{"status": 500}, {"text": "hi"}], key=KEY) as llm:
        carried_out(here, llm, desk)
        sent = {name.lower(): value for name, value in llm.headers[0].items()}
        assert sent["authorization"] == f"Bearer {KEY}"
    assert KEY not in str(desk.events)
    holders = [p for p in here.state.rglob("*") if p.is_file() and KEY in p.read_text()]
    assert holders == [here.state / "secrets/mine.key"]


def test_redirects_are_not_followed(here: EndpointGround) -> None:
    with FakeLLM([{"text": "stolen"}]) as other:
        step = {"status": 307, "headers": {"location": f"{other.url}/chat/completions"}}
        outcome, _ = failing(here, step)
        assert not other.requests
    assert outcome.status == "failed"


def test_a_missing_key_is_reported_by_name(
    here: EndpointGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    engine = here.engine(None, api_key_file=None, api_key_env="NO_KEY")
    assert "NO_KEY" in str(engine.unavailable())
    (here.state / "secrets/mine.key").unlink()
    assert "secrets/mine.key" in str(here.engine(None).unavailable())


def test_nothing_of_the_client_is_imported_before_it_is_used() -> None:
    line = (
        "import sys, mimikit.app, mimikit.cli.engines, mimikit.engines.openai.engine\n"
        "sys.exit(str([n for n in ('httpx', 'tomlkit') if n in sys.modules] or ''))"
    )
    said = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert said.stderr.strip() == ""
