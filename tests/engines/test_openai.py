"""The engine `openai`: what it asks, what it makes of any answer, and how it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit.engines.base import EngineOutage, Failed, Outcome, ToolReply, ToolSpec, TurnInput
from mimikit.engines.openai.dialogue import DROPPED
from mimikit.tools.session import TellerSession
from tests.support.endpoint import KEY, EndpointGround, endpoint_ground
from tests.support.engine_requests import NOW, Desk, inputs
from tests.support.fake_llm import USAGE, Body, FakeLLM

CHAT, RESPONSES = "/chat/completions", "/responses"
SPECS = TellerSession.specs()
ONE_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
LOOK = ToolSpec("look", "Look.", ONE_SCHEMA)
SAY = ToolSpec("say", "Say.", ONE_SCHEMA)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EndpointGround:
    monkeypatch.setattr("mimikit.engines.openai.engine.BACKOFF_S", (0.0,))
    return endpoint_ground(tmp_path)


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


def test_which_api_it_has_is_asked_once_and_kept(here: EndpointGround) -> None:
    with FakeLLM([{"text": "hi"}], apis=[RESPONSES]) as llm:
        for _ in range(2):
            carried_out(here, llm)
        assert llm.looks == ["/v1/chat/completions", "/v1/responses"]
        kept = json.loads((here.state / "cache/endpoint-mine.json").read_text())
        assert (kept["api"], kept["baseUrl"]) == ("responses", llm.url)


def test_an_endpoint_with_neither_api_is_told(here: EndpointGround) -> None:
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


def test_a_call_whose_answer_is_to_be_read_ends_nothing(here: EndpointGround) -> None:
    desk = Desk(lambda name, _arguments: ToolReply(True, "ok", final=name == "say"))
    calls = [{"name": n, "arguments": {"text": n}} for n in ("say", "look")]
    with FakeLLM([{"call": calls}, {"text": "seen"}]) as llm:
        assert carried_out(here, llm, desk, tools=(LOOK, SAY)).text == "seen"


def test_what_stays_the_same_stands_first(here: EndpointGround, api: str) -> None:
    steps = [{"call": {"name": "look", "arguments": {"text": "a"}}}, {"text": "seen"}]
    with FakeLLM(steps, apis=[api]) as llm:
        carried_out(here, llm, tools=SPECS)
        first, second = (json.dumps(body) for body in llm.requests)
    end = first.rindex("go") + 2
    assert first[:end] == second[:end]


WRONG_ARGUMENTS = {
    "no JSON": "{text: a",
    "a list": '["a"]',
    "a text": '"a"',
    "null": "null",
    "a number": "1e999",
    "too deep": "[" * 100_000,
    "nothing where something is needed": "",
}


@pytest.mark.parametrize("given", WRONG_ARGUMENTS.values(), ids=WRONG_ARGUMENTS)
@pytest.mark.parametrize("form", ["chat", "responses"])
def test_wrong_arguments_are_told_to_the_model_and_nothing_else_happens(
    here: EndpointGround, given: str, form: str
) -> None:
    desk = Desk(
        lambda _name, arguments: ToolReply(bool(arguments.get("text")), "text: expected a value")
    )
    with FakeLLM([{"raw": raw_call(form, given)}, {"text": "sorry"}]) as llm:
        engine = here.engine(llm, api=form)
        outcome = engine.run(here.ask(desk=desk, tools=(LOOK,)))
        assert "expected" in said(llm.requests[1])
        assert json.dumps(llm.requests[1])
    assert outcome.text == "sorry"
    assert all(not arguments for _, arguments in desk.calls)


def raw_call(form: str, arguments: str) -> str:
    if form == "responses":
        call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": arguments}
        events = [
            {"type": "response.output_item.done", "item": call},
            {"type": "response.completed", "response": {"usage": USAGE}},
        ]
    else:
        call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": arguments}}
        events = [
            {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        ]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def test_ids_that_repeat_or_are_none_get_their_own(here: EndpointGround) -> None:
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


def test_what_a_model_thinks_aloud_is_neither_streamed_nor_told(here: EndpointGround) -> None:
    desk = Desk()
    with FakeLLM([{"text": "<think> the user is rude </think> Good day to you."}]) as llm:
        outcome = carried_out(here, llm, desk)
    assert outcome.text == "Good day to you."
    shown = "".join(text for kind, text, _ in desk.events if kind == "delta")
    assert shown == "Good day to you."


def test_a_model_that_never_ends_is_ended(here: EndpointGround) -> None:
    with FakeLLM([{"call": {"name": "look", "arguments": {"text": "a"}}}]) as llm:
        outcome = carried_out(here, llm, tools=(LOOK,))
        assert len(llm.requests) == 12
    assert outcome.status == "failed"
    assert "12 requests" in str(outcome.error)


def test_the_oldest_outputs_go_when_the_window_is_nearly_full(here: EndpointGround) -> None:
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


def test_a_wrong_key_is_a_login_that_is_missing_until_the_key_changes(
    here: EndpointGround,
) -> None:
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


def test_an_endpoint_that_takes_no_connection_is_seen_to_be_back(here: EndpointGround) -> None:
    outcome = here.engine(None).run(here.ask())
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "unreachable")
    assert not here.engine(None).has_recovered("unreachable")
    with FakeLLM([]) as llm:
        assert here.engine(llm).has_recovered("unreachable")
        assert not llm.requests


@pytest.mark.parametrize(
    ("headers", "body", "after_s"),
    [
        ({"retry-after": "90"}, {}, 90),
        ({"retry-after-ms": "1500"}, {}, 1.5),
        ({"retry-after": "Sat, 21 Nov 2026 09:40:00 GMT"}, {}, 600),
        ({}, {"error": {"message": "Limit reached, try again in 2m30s."}}, 150),
        ({}, {"error": {"message": "slow down"}}, None),
    ],
)
def test_when_a_limit_ends_is_told(
    here: EndpointGround, headers: Body, body: Body, after_s: float | None
) -> None:
    outcome, llm = failing(here, {"status": 429, "headers": headers, "body": body})
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("rate_limited", "limited")
    assert outcome.retry_at == (after_s and NOW + timedelta(seconds=after_s))
    assert len(llm.requests) == 1, "what is limited is not asked again"


@pytest.mark.parametrize("step", [{"status": 500}, {"status": 503}, {"drop": True, "text": "a b"}])
def test_what_passes_is_asked_again(here: EndpointGround, api: str, step: Body) -> None:
    with FakeLLM([step, {"text": "hi"}], apis=[api]) as llm:
        outcome = carried_out(here, llm)
    assert (outcome.status, outcome.text) == ("done", "hi")


def test_whoever_waits_for_a_reply_reads_in_plain_words_that_it_is_asked_for_again(
    here: EndpointGround,
) -> None:
    desk, given = Desk(), TurnInput(now=NOW, inputs=inputs("你好"))
    with FakeLLM([{"status": 500}, {"text": "hi"}]) as llm:
        here.engine(llm).run(here.ask(desk=desk, input=given))
    assert ("note", "没有答完，正在再次请求") in [(event[0], event[1]) for event in desk.events]


@pytest.mark.parametrize("step", [{"status": 502}, {"drop": True, "text": "a b"}])
def test_what_does_not_pass_is_told_as_broken_after_three_more_times(
    here: EndpointGround, step: Body
) -> None:
    outcome, llm = failing(here, step)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "broken")
    assert len(llm.requests) == 4


def test_an_unknown_model_is_told(here: EndpointGround) -> None:
    error = {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}}
    outcome, _ = failing(here, {"status": 404, "body": error})
    assert outcome.reason == "engine_unavailable"
    assert "does not exist" in str(outcome.error)
    assert "mimikit engine test mine" in str(outcome.error)


def test_too_long_a_context_may_be_asked_again_in_short(here: EndpointGround) -> None:
    error = {"error": {"message": "too long", "code": "context_length_exceeded"}}
    outcome, _ = failing(here, {"status": 400, "body": error})
    assert isinstance(outcome, Failed)
    assert outcome.too_long
    assert not outcome.acted
    outcome, _ = failing(here, {"failed": {"code": "context_length_exceeded", "message": "x"}})
    assert isinstance(outcome, Failed)
    assert outcome.too_long


def test_too_long_on_its_way_half_of_what_tools_said_goes(here: EndpointGround) -> None:
    desk = Desk(lambda _name, _arguments: ToolReply(True, "x" * 3000))
    call = {"call": {"name": "look", "arguments": {"text": "a"}}}
    error = {"error": {"message": "the prompt exceeds the context window"}}
    outcome, llm = failing(
        here, call, call, {"status": 400, "body": error}, {"text": "ok"}, desk=desk, tools=(LOOK,)
    )
    assert outcome.text == "ok"
    assert said(llm.requests[-1]).count("x" * 3000) == 1


def test_a_stream_that_only_lives_is_no_silence_but_has_a_deadline(here: EndpointGround) -> None:
    outcome, _ = failing(here, {"endless": ": alive\n\n"}, idle_timeout_s=0.5, timeout_s=2.0)
    assert outcome.reason in ("timeout", "error")


# ---- a hostile endpoint

HOSTILE = {
    "no JSON": "data: {nonsense\n\n",
    "other types": 'data: [1]\n\ndata: "a"\n\ndata: {"choices": {"a": 1}, "usage": []}\n\n',
    "odd deltas": 'data: {"choices": [{"delta": {"content": 5, "tool_calls": [7, null]}}]}\n\n',
    "deep": "data: " + "[" * 50_000 + "\n\n",
    "no text": "\x00\xff\xfe" * 1000,
    "nothing": "",
    "a page": "<html><body>Welcome</body></html>",
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("form", ["chat", "responses"])
def test_what_is_no_answer_fails_and_harms_nobody(
    here: EndpointGround, raw: str, form: str
) -> None:
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


def test_a_huge_error_is_told_in_short_without_the_key(here: EndpointGround) -> None:
    words = f"your key {KEY} is \x1b[31mwrong " + "a" * 5_000_000
    outcome, _ = failing(here, {"status": 403, "body": {"error": {"message": words}}})
    assert outcome.error is not None
    assert len(outcome.error) < 1000
    assert KEY not in outcome.error
    assert "\x1b" not in outcome.error


def test_the_key_is_in_no_event_and_no_file_of_the_cache(here: EndpointGround) -> None:
    desk = Desk()
    with FakeLLM([{"status": 500}, {"text": "hi"}], key=KEY) as llm:
        carried_out(here, llm, desk)
        assert (
            llm.headers[0][
                "authorization" if "authorization" in llm.headers[0] else "Authorization"
            ]
            == f"Bearer {KEY}"
        )
    assert KEY not in str(desk.events)
    kept = [path.read_text() for path in (here.state / "cache").iterdir() if path.is_file()]
    assert KEY not in "".join(kept)


def test_redirects_lead_nowhere(here: EndpointGround) -> None:
    with FakeLLM([{"text": "stolen"}]) as other:
        step = {"status": 307, "headers": {"location": f"{other.url}/chat/completions"}}
        outcome, _ = failing(here, step)
        assert not other.requests
    assert outcome.status == "failed"


def test_without_the_package_it_says_what_to_install(
    here: EndpointGround, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mimikit.engines.openai.endpoint.PACKAGE", "openai_is_not_here")
    reason = here.engine(None).unavailable()
    assert isinstance(reason, EngineOutage)
    assert (reason.want, "pip install 'mimikit-assistant[openai]'" in reason) == ("missing", True)


def test_a_missing_key_is_told_by_its_name(
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
        "sys.exit(str([n for n in ('openai', 'httpx2', 'tomlkit') if n in sys.modules] or ''))"
    )
    said = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=False)
    assert said.stderr.strip() == ""
