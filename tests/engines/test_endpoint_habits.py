"""The engine `openai`: shapes of answers, failures and refusals that endpoints really send."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from mimikit.engines.base import UNSEEN_PICTURES, Attachment, Failed, Outcome, ToolReply
from mimikit.engines.openai.endpoint import proxy_of
from mimikit.engines.openai.failure import message_of
from mimikit.protocol.models import FileRef
from mimikit.tools.session import TellerSession
from tests.support.endpoint import LOOK, REPLY, EndpointGround, delta, here, stream
from tests.support.engine_requests import NOW, Desk
from tests.support.fake_llm import Body, FakeLLM
from tests.support.twins import FakeClock

__all__ = ["here"]

HELLO: Body = {"text": "Hello"}


def call(name: str = "", arguments: str = "", **fields: Any) -> Body:
    return {"function": {"name": name, "arguments": arguments}, **fields}


def ran(
    here: EndpointGround,
    *steps: Any,
    desk: Desk | None = None,
    tools: Any = (REPLY, LOOK),
    **more: Any,
) -> tuple[Outcome, FakeLLM]:
    facts = {name: more.pop(name) for name in ("effort", "max_tokens") if name in more}
    with FakeLLM(list(steps)) as llm:
        engine = here.engine(llm, api="chat", **facts)
        return engine.run(here.ask(desk=desk, tools=tools, **more)), llm


# ---- answers

ARGS_A, ARGS_B = '{"text": "a"}', '{"text": "b"}'
TWO_CALLS = {
    "one index, other ids": [
        [call("look", ARGS_A, index=0, id="a")],
        [call("look", ARGS_B, index=0, id="b")],
    ],
    "one index, other names": [[call("look", ARGS_A, index=0)], [call("reply", ARGS_B, index=0)]],
    "one index, no ids": [[call("look", ARGS_A, index=0)], [call("look", ARGS_B, index=0)]],
    "no index": [[call("look", ARGS_A, id="a")], [call("look", ARGS_B, id="b")]],
    "pieces": [
        [call("look", '{"text":', index=0, id="a")],
        [call("", ' "a"}', index=0)],
        [call("look", '{"text":', index=1, id="b")],
        [call("", ' "b"}', index=1, id="b")],
    ],
    "id and name with each piece": [
        [call("look", '{"text":', index=0, id="a")],
        [call("look", ' "a"}', index=0, id="a")],
        [call("look", ARGS_B, index=1, id="b")],
    ],
    "raw line breaks, odd names": [
        [call("look()", '{"text": "a", "more": "1\n2"}', index=0, id="a")],
        [call("default_api:look:0", ARGS_B, index=1, id="b")],
    ],
    "objects": [
        [{"index": 0, "id": "a", "function": {"name": "look", "arguments": {"text": "a"}}}],
        [call("functions.look", ARGS_B, index=1, id="b")],
    ],
}


@pytest.mark.parametrize("chunks", TWO_CALLS.values(), ids=TWO_CALLS)
def test_calls_are_told_apart_by_id_name_and_index(here: EndpointGround, chunks: Any) -> None:
    desk = Desk(lambda _name, _arguments: ToolReply(True, "ok"))
    step = stream(*(delta(tool_calls=calls) for calls in chunks), delta("tool_calls"))
    ran(here, step, {"text": "done"}, desk=desk)
    assert [arguments["text"] for _, arguments in desk.calls] == ["a", "b"]


TEXTS = {
    "a closing mark only": (["weighing it…", "</think>", "Hello"], {}),
    "other marks": (["<thinking>hm", "</thinking>\n", "Hello"], {}),
    "several blocks": (["<think>a</think>", "<think>b</think>Hello"], {}),
    "channels": (
        [
            "<|channel|>analysis<|message|>hm<|end|>",
            "<|start|>assistant<|channel|>final<|message|>Hello",
        ],
        {},
    ),
    "a field": (["Hello"], {"reasoning": "hm"}),
    "parts": ([[{"type": "text", "text": "Hel"}], [{"type": "text", "text": "lo"}]], {}),
    "an end token": (["Hello", "<|im_end|>\n"], {}),
    "a part": ([{"type": "text", "text": "Hello"}], {}),
    "parts of thought": (
        [[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}], [{"text": "Hello"}]],
        {},
    ),
}


@pytest.mark.parametrize(("pieces", "fields"), TEXTS.values(), ids=TEXTS)
def test_only_the_answer_is_shown_of_text_with_thoughts(
    here: EndpointGround, pieces: Any, fields: Body
) -> None:
    desk = Desk()
    chunks = [delta(content=piece) for piece in pieces]
    outcome, _ = ran(here, stream(delta(**fields), *chunks, delta("stop")), desk=desk)
    assert outcome.text == "Hello"
    assert shown(desk) == "Hello"


def test_halves_of_a_character_are_joined(here: EndpointGround) -> None:
    desk = Desk()
    chunks = [delta(content=half) for half in ("\ud83d", "\ude00", "\ud83d")]
    assert ran(here, stream(*chunks, delta("stop")), desk=desk)[0].text == "😀\ufffd"
    assert shown(desk) == "😀\ufffd"


@pytest.mark.parametrize(
    "text",
    [
        "Use the `</think>` mark.",
        "A:\n```\n<think>x</think>\n```",
        "1 < 2",
        "{not a call}",
        "[1] a",
    ],
)
def test_marks_within_an_answer_stay(here: EndpointGround, text: str) -> None:
    desk = Desk()
    outcome, _ = ran(here, {"text": text}, desk=desk)
    assert outcome.text == text
    assert shown(desk) == text


def shown(desk: Desk) -> str:
    """What the deltas amount to."""
    text = ""
    for kind, piece, _ in desk.events:
        text = "" if kind == "reset" else text + piece if kind == "delta" else text
    return text


WHOLE = {
    "no finish reason": stream(delta(content="Hello")),
    "no [DONE]": stream(delta(content="Hello"), delta("stop"), done=False),
    "the whole after its deltas": stream(
        delta(content="Hel"),
        delta(content="lo"),
        {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]},
    ),
    "a byte order mark": {"raw": "\ufeff" + stream(delta("stop", content="Hello"))["raw"]},
    "not streamed": {
        "status": 200,
        "body": {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]},
    },
}


@pytest.mark.parametrize("step", WHOLE.values(), ids=WHOLE)
def test_an_answer_ends_by_its_reason_or_done(here: EndpointGround, step: Body) -> None:
    outcome, llm = ran(here, step)
    assert (outcome.text, len(llm.requests)) == ("Hello", 1)


def test_a_cut_stream_is_retried_and_its_deltas_are_withdrawn(here: EndpointGround) -> None:
    desk = Desk()
    outcome, _ = ran(here, stream(delta(content="Hel"), done=False), {"text": "Hello"}, desk=desk)
    assert outcome.text == "Hello"
    assert shown(desk) == "Hello"
    assert "reset" in [kind for kind, _, _ in desk.events]


WRITTEN = {
    "JSON": '{"name": "reply", "arguments": {"text": "hi"}}',
    "fenced": '```json\n{"name": "reply", "arguments": {"text": "hi"}}\n```',
    "tag": '<tool_call>\n{"name": "reply", "arguments": {"text": "hi"}}\n</tool_call>',
    "parameters": '[{"name": "functions.reply", "parameters": {"text": "hi"}}]',
    "XML": "<function=reply><parameter=text>\nhi\n</parameter></function>",
    "list": '[TOOL_CALLS] [{"name": "reply", "arguments": {"text": "hi"}}]',
    "named": "<|tool_calls_section_begin|><|tool_call_begin|>functions.reply:0"
    '<|tool_call_argument_begin|>{"text": "hi"}<|tool_call_end|><|tool_calls_section_end|>',
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_call_written_as_text_is_carried_out(here: EndpointGround, text: str) -> None:
    desk = Desk(lambda name, _: ToolReply(True, "sent", final=name == "reply"))
    outcome, _ = ran(here, {"text": text}, desk=desk)
    assert outcome.status == "done"
    assert desk.calls == [("reply", {"text": "hi"})]
    assert shown(desk) == ""


def test_a_call_as_text_of_an_unknown_tool_is_withheld(here: EndpointGround) -> None:
    desk = Desk()
    outcome, llm = ran(here, {"text": '{"name": "rm", "arguments": {"path": "/"}}'}, desk=desk)
    assert "rm" not in outcome.text
    assert "tool calls" in outcome.text
    assert shown(desk) == ""
    assert len(llm.requests) == 3
    prose = 'To reply, send {"name": "reply", "arguments": {"text": "hi"}} to it.'
    assert ran(here, {"text": prose})[0].text == prose


def test_unknown_fields_of_a_call_are_sent_back(here: EndpointGround) -> None:
    sign = {"google": {"thought_signature": "s"}}
    details = [{"type": "reasoning.encrypted", "data": "d"}]
    first = stream(
        delta(reasoning_details=details),
        delta(tool_calls=[call("look", ARGS_A, index=0, id="a", extra_content=sign)]),
        delta("tool_calls"),
    )
    _, llm = ran(here, first, {"text": "done"})
    message = llm.requests[1]["messages"][2]
    assert message["tool_calls"][0]["extra_content"] == sign
    assert message["reasoning_details"] == details


def test_usage_is_its_largest_sum(here: EndpointGround) -> None:
    bare, total = {"prompt_tokens": 100, "completion_tokens": 10}, {"total_tokens": 1110}
    details = {"completion_tokens_details": {"reasoning_tokens": 1000}}
    for usage in (bare | total, bare | total | details, bare | details):
        step = stream(delta("stop", content="a"), {"choices": [], "usage": usage})
        assert ran(here, step)[0].usage.output_tokens == 1010


# ---- no progress


@pytest.mark.parametrize(
    "step",
    [
        stream(delta(tool_calls=[call("look", '{"text": "a', index=0, id="a")]), delta("length")),
        {"call": {"name": "look", "arguments": {"text": "a"}}},
    ],
    ids=["cut calls", "refused calls"],
)
@pytest.mark.parametrize("role", ["teller", "planner"])
def test_three_rounds_without_progress_end_a_run(
    here: EndpointGround, step: Body, role: Any
) -> None:
    desk = Desk(lambda _name, _arguments: ToolReply(False, "not now"))
    outcome, llm = ran(here, step, desk=desk, role=role)
    assert len(llm.requests) == 3
    assert outcome.status == ("done" if role == "teller" else "failed")
    assert "cut off" in str(outcome.error or outcome.text) or "not now" in str(
        outcome.error or outcome.text
    )


def test_an_answer_at_the_output_limit_is_marked(here: EndpointGround) -> None:
    outcome, _ = ran(here, stream(delta(content="Hel"), delta("length")))
    assert outcome.text.startswith("Hel\n\n(cut off")
    outcome, _ = ran(here, stream(delta(content="Hel"), delta("content_filter")))
    assert "content filter" in outcome.text


def test_thinking_that_uses_up_the_limit_is_named(here: EndpointGround) -> None:
    outcome, _ = ran(here, stream(delta(reasoning_content="hm"), delta("length")))
    assert outcome.status == "failed"
    assert "max_tokens" in str(outcome.error)


# ---- failures: words before the status

FAILURES: dict[str, tuple[int, Any, str]] = {
    "region": (403, {"error": {"message": "Country, region not supported"}}, "region"),
    "balance": (403, {"error": {"message": "Insufficient balance"}}, "account"),
    "balance as 500": (500, {"base_resp": {"status_msg": "insufficient balance"}}, "account"),
    "quota": (429, {"error": {"message": "You exceeded your current quota"}}, "account"),
    "key": (400, [{"error": {"code": 400, "message": "API key not valid."}}], "logged_out"),
    "model": (404, {"error": {"message": "model 'm' not found"}}, "unknown_model"),
    "page": (404, "<html><h1>Not Found</h1></html>", "unreachable"),
    "JSON error": (200, {"error": "Unexpected endpoint or method."}, "unreachable"),
    "other JSON": (200, ["hello"], "unreachable"),
    "limited beside choices": (
        200,
        {
            "error": {"code": 429, "message": "Rate limit"},
            "choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
        },
        "limited",
    ),
    "limited within 200": (200, {"error": {"code": 429, "message": "Rate limit"}}, "limited"),
}


@pytest.mark.parametrize(("status", "body", "want"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_known_by_its_words(
    here: EndpointGround, status: int, body: Any, want: str
) -> None:
    outcome, llm = ran(here, {"status": status, "body": body})
    assert isinstance(outcome, Failed)
    assert outcome.want == want, outcome.error
    assert len(llm.requests) <= 2
    assert want == "unreachable" or message_of(body)[:30] in outcome.error


def test_a_redirect_is_named(here: EndpointGround) -> None:
    outcome, _ = ran(here, {"status": 308, "headers": {"location": "https://a.example/v1"}})
    assert "it redirects to https://a.example/v1" in str(outcome.error)


TOO_LONG = {
    "Groq": (413, "Request too large on tokens per minute (TPM): Limit 8000, Requested 9001"),
    "Groq, used": (429, "tokens per day (TPD): Limit 8000, Used 7000, Requested 9001"),
    "asked first": (400, "You requested 9,001 tokens, more than the limit of 8,000"),
    "GLM in Chinese": (400, "输入内容的长度超过了模型的上限"),
    "xAI": (400, "This model's maximum prompt length is 131072 but it contains 152345 tokens."),
    "Gemini": (400, "The input token count (12) exceeds the maximum number of tokens allowed (9)."),
    "Anthropic": (400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "empty": (413, ""),
}


@pytest.mark.parametrize(("status", "message"), TOO_LONG.values(), ids=TOO_LONG)
def test_a_too_long_prompt_is_known_by_words_numbers_or_413(
    here: EndpointGround, status: int, message: str
) -> None:
    step = {"status": status, "body": {"error": {"message": message}}}
    outcome, llm = ran(here, step | {"headers": {"retry-after": "1"}})
    assert isinstance(outcome, Failed)
    assert outcome.too_long, outcome.error
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    ("headers", "body", "after_s"),
    [
        ({"retry-after": "90"}, {}, 90),
        ({"retry-after-ms": "1500"}, {}, 1.5),
        ({"retry-after": "Sun, 31 Dec 9999 23:59:59 GMT"}, {}, 366 * 86400),
        ({"retry-after": "Sat, 21 Nov 2026 09:40:00 GMT"}, {}, 600),
        ({}, {"error": {"message": "Limit reached, try again in 2m30s."}}, 150),
        ({}, {"error": {"message": "slow down"}}, None),
        ({}, [{"error": {"code": 429, "message": "Quota exceeded. Retry in 47.4s."}}], 47.4),
        ({"x-ratelimit-reset-requests": "6m0s"}, {}, 360),
        ({"x-ratelimit-reset-tokens": "20ms", "x-ratelimit-remaining-tokens": "5"}, {}, None),
        ({}, {"error": {"message": "limited", "details": [{"retryDelay": "30s"}]}}, 30),
        ({}, {"error": {"message": "请求过多，请在 30 秒后重试"}}, 30),
        ({}, {"error": {"message": "Limit 8000 tokens, Used 7000. Try again in 7s"}}, 7),
    ],
)
def test_a_limit_ends_when_the_endpoint_says(
    here: EndpointGround, headers: Body, body: Any, after_s: float | None
) -> None:
    outcome, llm = ran(here, {"status": 429, "headers": headers, "body": body})
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("rate_limited", "limited")
    assert outcome.retry_at == (after_s and NOW + timedelta(seconds=after_s))
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    "error",
    [
        {"code": "data_inspection_failed", "message": "Input data is not appropriate."},
        {"message": "Content Exists Risk"},
        {"code": "content_filter", "message": "The response was filtered"},
    ],
)
def test_a_refused_text_is_no_trouble_of_the_engine(here: EndpointGround, error: Body) -> None:
    outcome, llm = ran(here, {"status": 400, "body": {"error": error}})
    assert isinstance(outcome, Failed)
    assert (outcome.refused, outcome.want, len(llm.requests)) == (True, None, 1)
    assert error["message"] in str(outcome.error)


def test_silence_is_trouble_of_the_engine(here: EndpointGround) -> None:
    outcome, _ = ran(here, {"hang": 30}, idle_timeout_s=0.2)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "broken")
    assert "silent" in outcome.error


# ---- refused fields


def refusing(*fields: str, message: str = "", status: int = 400) -> Any:
    def step(body: Body) -> Body:
        wrong = next((name for name in fields if name in body), None)
        if wrong is None:
            return {"text": "Hello"}
        return {
            "status": status,
            "body": {"error": {"message": message or f"Unknown field: {wrong}"}},
        }

    return step


@pytest.mark.parametrize(
    ("step", "missing"),
    [
        (refusing("stream_options"), {"stream_options"}),
        (refusing("reasoning_effort", status=422), {"reasoning_effort"}),
        (refusing("reasoning_effort", "stream_options"), {"reasoning_effort", "stream_options"}),
        (refusing("max_tokens"), {"max_tokens"}),
        (refusing("stream_options", message="Bad request"), {"stream_options"}),
        (refusing("tools", message="m does not support tools"), {"tools"}),
        (refusing("tools", message="tools param requires --jinja flag", status=500), {"tools"}),
        (refusing("tools", message="Bad request"), {"tools"}),
    ],
)
def test_a_refused_field_is_left_out_once_and_remembered(
    here: EndpointGround, step: Any, missing: set[str]
) -> None:
    with FakeLLM([step]) as llm:
        engine = here.engine(llm, api="chat", effort="low", max_tokens=4000)
        desks = Desk(), Desk()
        first, later = [engine.run(here.ask(desk=desk, tools=(REPLY,))) for desk in desks]
        before = len(llm.requests) - 1
        assert before <= 4
        assert engine.run(here.ask(tools=(REPLY,))).status == "done"
        assert len(llm.requests) == before + 2
        assert not missing & set(llm.requests[-1])
    assert ("takes no tools" in "".join(first.notices)) == ("tools" in missing)
    assert (first.text, later.text, later.notices) == ("Hello", "Hello", ())


PNG = FileRef(id=f"{'0' * 32}.png", name="a.png", kind="image", bytes=3)
URL = "data:image/png;base64,AAAA"
SHOWN: dict[str, list[Body]] = {
    "chat": [{"type": "text", "text": "go"}, {"type": "image_url", "image_url": {"url": URL}}],
    "responses": [{"type": "input_text", "text": "go"}, {"type": "input_image", "image_url": URL}],
}


def looking(
    here: EndpointGround, llm: FakeLLM, api: str = "chat", engine: Any = None, **facts: Any
) -> Any:
    """The content of the user's message in the last request of a run with a picture."""
    request = here.ask(tools=(REPLY,))
    given = replace(request.input, attachments=(Attachment(PNG, picture=URL),))
    engine = engine or here.engine(llm, api=api, **facts)
    assert engine.run(replace(request, input=given)).status == "done"
    body = llm.requests[-1]
    return (body["messages"][1:] if api == "chat" else body["input"])[0]["content"]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "messages[1]: unknown variant `image_url`, expected `text`"),
        (404, "No endpoints found that support image input"),
        (500, "image input is not supported - hint: provide the mmproj"),
        (400, "Bad request"),
    ],
)
def test_pictures_are_shown_to_a_model_that_takes_them(
    here: EndpointGround, status: int, message: str
) -> None:
    def step(body: Body) -> Body:
        is_seen = "image_url" in str(body["messages"])
        return {"status": status, "body": {"error": {"message": message}}} if is_seen else HELLO

    with FakeLLM([step]) as llm:
        engine = here.engine(llm, api="chat")
        assert looking(here, llm, engine=engine) == f"go\n\n{UNSEEN_PICTURES}"
        before = len(llm.requests)
        assert "say that you cannot see them" in looking(here, llm, engine=engine)
        assert len(llm.requests) == before + 1
    with FakeLLM([HELLO]) as llm:
        assert "cannot see" in looking(here, llm, model="other", vision=False)
        for api, shown in SHOWN.items():
            assert looking(here, llm, api, model=api, vision=True) == shown


def test_a_worker_without_tools_costs_no_attempt(here: EndpointGround) -> None:
    step = refusing("tools", message="m does not support tools")
    outcome, _ = ran(here, step, role="planner")
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.want) == ("engine_unavailable", "unready")
    assert "takes no tools" in outcome.error


# ---- guesses


def test_a_wrong_guess_is_undone(here: EndpointGround) -> None:
    with FakeLLM([{"text": "hi"}], apis=["/chat/completions"]) as llm:
        engine = here.engine(llm)
        assert engine.run(here.ask()).text == "hi"
        llm.apis = ("/responses",)
        assert engine.run(here.ask()).text == "hi"


def test_an_empty_probe_answered_by_an_unknown_model_shows_the_api(here: EndpointGround) -> None:
    class Gateway(FakeLLM):
        probe: ClassVar = {"error": {"message": "Invalid model name passed in model=None"}}

    with Gateway([{"text": "hi"}]) as llm:
        assert here.engine(llm).run(here.ask()).text == "hi"


@pytest.mark.parametrize("api", ["/responses", "/chat/completions"])
def test_an_empty_probe_answered_by_a_stream_shows_the_api(here: EndpointGround, api: str) -> None:
    class Stub(FakeLLM):
        probe: ClassVar = None

    with Stub([{"text": "probed"}, {"text": "hi"}], apis=[api]) as llm:
        assert here.engine(llm).run(here.ask()).text == "hi"


def test_the_window_is_asked_again_each_day(here: EndpointGround) -> None:
    clock = FakeClock(NOW)
    with FakeLLM([{"text": "hi"}], models=[{"id": "m", "max_model_len": 8192}]) as llm:
        engine = here.engine(llm, clock)
        engine.run(here.ask())
        llm.models[0]["max_model_len"] = 27000
        clock.advance(86401)
        engine.run(here.ask())
    assert engine._profile is not None
    assert engine._profile.window == 27000


def test_a_prompt_that_the_server_cuts_is_reported_once(here: EndpointGround) -> None:
    usage = {"prompt_tokens": 2050, "completion_tokens": 1}
    step = stream(delta("stop", content="hi"), {"choices": [], "usage": usage})
    with FakeLLM([step]) as llm:
        engine = here.engine(llm, api="chat")
        first, later = [engine.run(here.ask("word " * 10_000)) for _ in range(2)]
    assert "context window" in first.notices[0]
    assert (first.text, later.text, later.notices) == ("hi", "hi", ())


# ---- this machine's proxies


@pytest.mark.parametrize(
    ("url", "env", "proxy"),
    [
        ("http://127.0.0.1:11434/v1", {"HTTP_PROXY": "http://127.0.0.1:9"}, None),
        ("http://[::1]:11434/v1", {"ALL_PROXY": "socks5://127.0.0.1:9"}, None),
        ("http://localhost:11434/v1", {"http_proxy": "http://127.0.0.1:9"}, None),
        ("https://a.example/v1", {"HTTP_PROXY": "http://127.0.0.1:9"}, None),
        ("https://a.example/v1", {"https_proxy": "127.0.0.1:9"}, "http://127.0.0.1:9"),
        ("https://a.example/v1", {"ALL_PROXY": "socks5://127.0.0.1:9"}, "socks5://127.0.0.1:9"),
        ("https://a.example/v1", {"ALL_PROXY": "http://127.0.0.1:9", "NO_PROXY": ".example"}, None),
    ],
)
def test_the_proxy_of_an_address(
    url: str, env: dict[str, str], proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    found = proxy_of(url)
    assert (found and found[0]) == proxy


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("http://127.0.0.1:9", "the proxy http://127.0.0.1:9 of ALL_PROXY"),
        ("socks5://me:word@127.0.0.1:9", "the proxy socks5://127.0.0.1:9 of ALL_PROXY"),
        ("nonsense://x", "not ready: ALL_PROXY: expected a proxy"),
        ("http://", "not ready: ALL_PROXY"),
    ],
)
def test_the_failure_of_a_proxy_names_it(
    here: EndpointGround, proxy: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    outcome = here.engine(None, base_url="http://a.example/v1").run(here.ask())
    assert isinstance(outcome, Failed)
    assert outcome.reason == "engine_unavailable"
    assert words in outcome.error


def test_headers_query_and_options_are_sent(here: EndpointGround) -> None:
    with FakeLLM([{"text": "hi"}]) as llm:
        engine = here.engine(
            llm,
            api="chat",
            headers={"X-Title": "mimikit"},
            query={"api-version": "1"},
            api_key_header="api-key",
            temperature=0.2,
            max_tokens=500,
        )
        engine.run(here.ask(tools=TellerSession.specs()))
        sent = {name.lower(): value for name, value in llm.headers[0].items()}
        assert sent["x-title"] == "mimikit"
        assert ("api-key" in sent, "authorization" in sent) == (True, False)
        assert (llm.requests[0]["temperature"], llm.requests[0]["max_tokens"]) == (0.2, 500)
