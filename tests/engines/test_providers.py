"""The habits of known services, scripted: what each answers to chat, tools and trouble."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from mimikit.engines import process
from mimikit.engines.base import CancelToken, Failed, Outcome, ToolReply
from mimikit.engines.process import OnOutput, Program, ProgramOutcome
from mimikit.sandbox.worker import WorkerSandbox
from tests.support.endpoint import LOOK, REPLY, EndpointGround, delta, here, stream
from tests.support.engine_requests import Desk
from tests.support.fake_llm import Body, FakeLLM

__all__ = ["here"]
ARGUMENTS = '{"text": "a"}'


@dataclass(frozen=True)
class Provider:
    """How one service answers; `refuses`: fields that it does not know."""

    chat: tuple[Body, ...]
    calls: tuple[Body, ...]
    too_long: tuple[int, Any]
    limit: tuple[int, Any]
    account: tuple[int, Any] | None = None
    refuses: tuple[str, ...] = ()
    ends: bool = True
    """It ends a stream with [DONE]."""
    facts: Body = field(default_factory=dict[str, Any])

    def step(self, body: Body, chunks: tuple[Body, ...]) -> Body:
        if wrong := next((name for name in self.refuses if name in body), None):
            return {"status": 400, "body": {"error": {"message": f"Unrecognized: {wrong}"}}}
        return stream(*chunks, done=self.ends)


def calls(*ids: str | None, index: int | None = None, **more: Any) -> tuple[Body, ...]:
    """One chunk for each call, whole; `index`: the same for all."""
    function = {"name": "look", "arguments": ARGUMENTS}
    pieces = [
        {
            **({"index": number if index is None else index} if index != -1 else {}),
            **({"id": id_} if id_ else {}),
            "function": function,
            **more,
        }
        for number, id_ in enumerate(ids)
    ]
    return (*(delta(tool_calls=[piece]) for piece in pieces), delta("tool_calls"))


HELLO = (delta(role="assistant", content="Hel"), delta(content="lo"), delta("stop", content=""))
TWO = calls("call_a", "call_b")


def error(message: str, **more: Any) -> Body:
    return {"error": {"message": message, **more}}


PROVIDERS = {
    "Ollama": Provider(
        HELLO,
        calls("call_a", "call_b", index=0),
        (400, error("prompt too long; exceeded max context length by 512 tokens")),
        (503, error("server busy, please try again. maximum pending requests exceeded")),
    ),
    "llama.cpp": Provider(
        (*HELLO[:2], delta("stop")),
        TWO,
        (400, error("the request exceeds the available context size", code=400)),
        (503, error("Loading model", code=503, type="unavailable_error")),
    ),
    "vLLM": Provider(
        (delta(reasoning_content="hm"), *HELLO),
        TWO,
        (400, {"message": "This model's maximum context length is 4096 tokens.", "code": 400}),
        (429, {"detail": "Too many requests"}),
        refuses=("prompt_cache_key",),
    ),
    "LM Studio": Provider(
        (delta(content="<think>hm</think>"), *HELLO),
        TWO,
        (400, {"error": "The number of tokens to keep is greater than the context length"}),
        (429, error("Too many requests")),
        refuses=("stream_options",),
    ),
    "DeepSeek": Provider(
        (delta(reasoning_content="hm", content=None), *HELLO),
        TWO,
        (400, error("This model's maximum context length is 65536 tokens.")),
        (429, error("Rate limit reached")),
        (402, error("Insufficient Balance", code="invalid_request_error")),
    ),
    "Qwen": Provider(
        HELLO,
        (
            delta(
                tool_calls=[
                    {"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}}
                ]
            ),
            delta(tool_calls=[{"index": 0, "id": "", "function": {"arguments": ARGUMENTS}}]),
            *calls("a", "b")[1:],
        ),
        (400, error("Range of input length should be [1, 30720]")),
        (429, error("Requests rate limit exceeded", code="limit_requests")),
        (400, error("Access denied, your account is in arrears", code="Arrearage")),
    ),
    "Kimi": Provider(
        HELLO,
        TWO,
        (400, error("Invalid request: Your request exceeded model token limit: 8192")),
        (429, error("max RPM reached, please try again after 1 seconds")),
        (429, error("account suspended: insufficient balance", type="exceeded_current_quota")),
    ),
    "GLM": Provider(
        HELLO,
        TWO,
        (400, error("Prompt exceeds max length", code="1261")),
        (429, error("您当前使用该API的并发数过高，请降低并发", code="1302")),
        (429, error("您的账户已欠费，请充值后重试。", code="1113")),
        refuses=("stream_options",),
    ),
    "MiniMax": Provider(
        (delta(content="<think>hm</think>\n\nHel"), *HELLO[1:]),
        TWO,
        (200, {"base_resp": {"status_code": 2013, "status_msg": "context window exceeds limit"}}),
        (200, {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "choices": None}),
        (200, {"base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}),
    ),
    "Mistral": Provider(
        (delta(content=[{"type": "thinking", "thinking": [{"text": "hm"}]}]), *HELLO),
        TWO,
        (400, {"message": "Prompt contains 40000 tokens, too large for 32768 context length"}),
        (429, {"message": "Requests rate limit exceeded"}),
        refuses=("stream_options",),
    ),
    "Gemini": Provider(
        HELLO,
        calls("a", "b", index=0, extra_content={"google": {"thought_signature": "s"}}),
        (400, [error("The input token count exceeds the maximum allowed", code=400)]),
        (429, [error("Quota exceeded. Please retry in 47.4s.", code=429)]),
    ),
    "OpenRouter": Provider(
        ({"choices": [], "id": "x"}, *HELLO),
        calls(None, None, index=-1),
        (400, error("Provider error", metadata={"raw": "prompt is too long: 9 > 8"})),
        (429, error("Rate limit exceeded: free-models-per-min", code=429)),
        (402, error("This request requires more credits, or fewer max_tokens.", code=402)),
    ),
    "Azure": Provider(
        ({"choices": [], "prompt_filter_results": []}, *HELLO),
        TWO,
        (400, error("Reduce the length of the messages", code="context_length_exceeded")),
        (429, error("Requests have exceeded rate limit. Please retry after 7 seconds.")),
        refuses=("max_tokens",),
        facts={"api_key_header": "api-key", "query": {"api-version": "2024-10-21"}},
    ),
}  # fmt: skip


@pytest.fixture(params=PROVIDERS.values(), ids=list(PROVIDERS))
def provider(request: pytest.FixtureRequest) -> Provider:
    return request.param


def asked(
    here: EndpointGround, provider: Provider, *steps: Any, desk: Desk | None = None, **more: Any
) -> Outcome:
    with FakeLLM(list(steps)) as llm:
        facts: dict[str, Any] = {"effort": "low", "max_tokens": 4000, **provider.facts}
        engine = here.engine(llm, api="chat", **facts)
        return engine.run(here.ask(desk=desk, tools=(REPLY, LOOK), **more))


def test_it_talks(here: EndpointGround, provider: Provider) -> None:
    outcome = asked(here, provider, lambda body: provider.step(body, provider.chat))
    assert (outcome.status, outcome.text) == ("done", "Hello")


def test_it_calls_two_tools_at_once(here: EndpointGround, provider: Provider) -> None:
    def step(body: Body) -> Body:
        is_first = all(message["role"] != "tool" for message in body["messages"])
        return provider.step(body, provider.calls if is_first else HELLO)

    desk = Desk(lambda _name, _arguments: ToolReply(True, "ok"))
    outcome = asked(here, provider, step, desk=desk)
    assert outcome.text == "Hello"
    assert desk.calls == [("look", {"text": "a"})] * 2


def test_a_worker_runs_commands_and_gives_its_result(
    here: EndpointGround, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(program: Program, take: OnOutput, _cancel: CancelToken) -> ProgramOutcome:
        take("stdout", f"ran {program.argv[-1]}\n".encode())
        return ProgramOutcome(0, None)

    def step(body: Body) -> Body:
        outputs.extend(one["content"] for one in body["messages"] if one["role"] == "tool")
        return provider.step(body, HELLO if outputs else shell_calls)

    outputs: list[str] = []
    written = json.dumps(provider.calls).replace('"look"', '"shell"').replace("text", "command")
    shell_calls = tuple(json.loads(written))
    monkeypatch.setattr(process, "run", run)
    for name in ("unavailable", "why_unsafe"):
        monkeypatch.setattr(WorkerSandbox, name, lambda *_: None)
    monkeypatch.setattr(WorkerSandbox, "argv", lambda _self, argv, _box: argv)
    desk = Desk()
    outcome = asked(here, provider, step, desk=desk, role="worker")
    assert (outcome.status, outcome.text) == ("done", "Hello")
    assert outputs == ["exit code 0\nran a"] * 2
    assert [text for kind, text, _ in desk.events if kind == "command"] == ["a"] * 4


@pytest.mark.parametrize("trouble", ["too_long", "limit", "account"])
def test_its_trouble_is_named_in_its_words(
    here: EndpointGround, provider: Provider, trouble: str
) -> None:
    answer = getattr(provider, trouble)
    if answer is None:
        return
    status, body = answer
    outcome = asked(here, provider, {"status": status, "body": body})
    assert isinstance(outcome, Failed)
    match trouble:
        case "too_long":
            assert outcome.too_long, outcome.error
        case "limit":
            assert outcome.want in ("limited", "broken"), outcome.error
            assert outcome.reason in ("rate_limited", "engine_unavailable")
        case _:
            assert outcome.want == "account", outcome.error
    assert "{" not in outcome.error
