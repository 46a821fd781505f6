"""An endpoint against a real llama.cpp server with a real model, in both of its APIs."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.engines.base import CancelToken, Outcome, ToolReply, ToolSpec
from mimikit.engines.local import model_server, weights
from mimikit.engines.local.server import ModelServer, ServedModel
from mimikit.errors import EngineError
from tests.support import llama
from tests.support.endpoint import EndpointGround, endpoint_ground
from tests.support.engine_requests import Desk

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(0)]

WINDOW = 2048
SLOW_S = 1800
"""The machine may have much else to do."""
SAY = ToolSpec(
    "say",
    "Say a word to the user.",
    {
        "type": "object",
        "properties": {"word": {"type": "string"}},
        "required": ["word"],
        "additionalProperties": False,
    },
)


class Llama:
    """The server, and turns that are put to it."""

    def __init__(self, here: EndpointGround, model: Path) -> None:
        self.here = here
        self.server = ModelServer(here.state, idle_s=SLOW_S, program=Path(llama.__file__))
        self._model = ServedModel(str(model), 2, WINDOW)

    def turn(
        self, api: str, prompt: str, desk: Desk, *, right_key: bool = True, **fields: Any
    ) -> Outcome:
        """One turn; the server is begun anew where it has ended."""
        with self.server.serving(self._model, CancelToken()) as (url, key):
            (self.here.state / "secrets/mine.key").write_text(key if right_key else "another")
            engine = self.here.engine(None, base_url=url, api=api)
            times = {"timeout_s": SLOW_S, "idle_timeout_s": SLOW_S}
            fields = {"instructions": "You are a helpful assistant.", **times, **fields}
            return engine.run(self.here.ask(prompt, desk, **fields))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Llama]:
    if importlib.util.find_spec(model_server.PACKAGE) is None:
        pytest.skip(f"{model_server.PACKAGE} is not installed: it has no wheel for this machine")
    try:
        path = weights.set_up(
            weights.SMALL, weights.folder_of_user(), weights.download, lambda _done, _all: None
        )
    except EngineError as error:
        pytest.skip(f"the weights can not be fetched: {error}")
    made = Llama(endpoint_ground(tmp_path_factory.mktemp("llama")), path)
    yield made
    made.server.close()


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("api", ["auto", "chat", "responses"])
def test_its_words_stream_and_are_counted(server: Llama, api: str) -> None:
    desk = Desk()
    outcome = server.turn(api, "What are the capitals of France and of Italy?", desk)
    assert outcome.status == "done", outcome
    assert "Paris" in outcome.text
    deltas = [text for kind, text, _ in desk.events if kind == "delta"]
    assert len(deltas) > 1
    assert "".join(deltas).strip() == outcome.text
    assert outcome.usage.input_tokens > 10
    assert outcome.usage.output_tokens > 1


def test_it_calls_a_tool_and_a_final_one_ends_the_turn(server: Llama, api: str) -> None:
    desk = Desk(lambda _name, _arguments: ToolReply(True, "said", final=True))
    prompt = "Call the tool say with the word hello."
    outcome = server.turn(api, prompt, desk, tools=(SAY,), instructions="You call tools.")
    assert outcome.status == "done", outcome
    assert desk.calls == [("say", {"word": "hello"})]
    assert outcome.requests == 1


def test_a_wrong_key_is_a_login_that_is_missing(server: Llama, api: str) -> None:
    outcome = server.turn(api, "hello", Desk(), right_key=False)
    assert (outcome.status, outcome.want) == ("failed", "logged_out"), outcome


def test_more_than_its_window_is_told_as_that(server: Llama, api: str) -> None:
    outcome = server.turn(api, "one two three " * WINDOW, Desk())
    assert outcome.status == "failed"
    assert outcome.too_long, outcome


def test_canceled_as_it_speaks_it_ends(server: Llama, api: str) -> None:
    cancel, desk = CancelToken(), Desk()
    desk.event = lambda *_: cancel.cancel("canceled")  # type: ignore[method-assign]
    outcome = server.turn(api, "Count from one to a thousand.", desk, cancel=cancel)
    assert (outcome.status, outcome.failure_reason) == ("canceled", "canceled"), outcome


def test_killed_as_it_speaks_it_can_not_be_reached(server: Llama, api: str) -> None:
    desk = Desk()

    def kill(*_: object) -> None:
        if server.server.pid is not None:
            psutil.Process(server.server.pid).kill()

    desk.event = kill  # type: ignore[method-assign]
    outcome = server.turn(api, "Count from one to a thousand.", desk)
    assert (outcome.status, outcome.want) == ("failed", "unreachable"), outcome
    assert server.turn(api, "What is the capital of France?", Desk()).status == "done"
