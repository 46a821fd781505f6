"""What every engine promises: an outcome for whatever happens, soon, and never an exception."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engine_settings import CodexSettings
from mimikit.engines.base import CancelToken, Engine, EngineRequest, Outcome
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.openai.engine import OpenAIEngine
from mimikit.engines.shell import ShellEngine
from mimikit.protocol.models import Role
from mimikit.testing.twins import ScriptedEngine
from tests.support.engine_requests import Desk
from tests.support.fake_llm import Body, FakeLLM
from tests.support.runs import Ground, ground, open_files, zombies

PATIENCE_S = 15


@dataclass
class Case:
    """An engine, and what makes it be quick or hang."""

    engine: Engine
    here: Ground
    role: Role
    quick: str
    hanging: str

    def request(self, prompt: str, desk: Desk | None = None, **fields: object) -> EngineRequest:
        made = self.here.request(prompt, role=self.role, desk=desk, model="gpt-5.5")
        return replace(made, **fields)


def command(here: Ground) -> Iterator[Case]:
    engine = ShellEngine(Settings())
    yield Case(engine, here, "worker", "echo hello", "echo begun; sleep 600")


def scripted(here: Ground) -> Iterator[Case]:
    def steps(request: EngineRequest) -> list[dict[str, object]]:
        hangs = request.prompt == "hang"
        return [{"say": "hello"}, *([{"hang": True}] if hangs else [])]

    yield Case(ScriptedEngine(steps), here, "worker", "go", "hang")


def codex(here: Ground, role: Role) -> Iterator[Case]:
    def answer(body: Body) -> Body:
        if "tarry" not in str(body["input"]):
            return {"text": "hello"}
        return {"hang": 600} if role != "worker" else {"shell": "sleep 600"}

    with FakeLLM([answer]) as llm:
        provider = f'{{name="fake",base_url="{llm.url}",wire_api="responses",env_key="FAKE_KEY"}}'
        config = {"model_provider": '"fake"', "model_providers.fake": provider}
        settings = Settings(codex=CodexSettings(env=["FAKE_KEY"], config=config))
        yield Case(CodexEngine(settings, here.state), here, role, "go", "tarry")


def openai(here: Ground, role: Role, api: str) -> Iterator[Case]:
    def answer(body: Body) -> Body:
        if "tarry" not in str(body):
            return {"text": "hello"}
        return {"hang": 600} if role != "worker" else {"shell": "sleep 600"}

    with FakeLLM([answer], apis=[api], key="a-key") as llm:
        facts = {"base_url": llm.url, "model": "m", "api_key_env": "FAKE_KEY"}
        settings = Settings.model_validate({"engines": {"mine": facts}})
        yield Case(OpenAIEngine("mine", settings, here.state), here, role, "go", "tarry")


@pytest.fixture(
    params=[
        "command",
        "scripted",
        "openai-teller",
        "openai-planner",
        pytest.param("openai-worker", marks=pytest.mark.needs_program("bwrap")),
        pytest.param("codex-teller", marks=pytest.mark.codex),
        pytest.param("codex-worker", marks=pytest.mark.codex),
    ]
)
def case(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Case]:
    here = ground(tmp_path)
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("FAKE_KEY", "a-key")
    monkeypatch.delenv("CODEX_HOME", raising=False)
    if request.param == "command":
        yield from command(here)
    elif request.param == "scripted":
        yield from scripted(here)
    elif request.param == "openai-teller":
        yield from openai(here, "teller", "/chat/completions")
    elif request.param == "openai-planner":
        yield from openai(here, "planner", "/responses")
    elif request.param == "openai-worker":
        yield from openai(here, "worker", "/chat/completions")
    elif request.param == "codex-teller":
        yield from codex(here, "teller")
    else:
        yield from codex(here, "worker")


def begun(case: Case, cancel: CancelToken, reason: str) -> Outcome:
    """Run what hangs, and stop it a moment after it has begun to say something."""
    saying = threading.Event()
    desk = Desk()
    desk.event = lambda *_: saying.set()  # type: ignore[method-assign]

    def stop() -> None:
        saying.wait(2)
        cancel.cancel(reason)

    threading.Thread(target=stop).start()
    return case.engine.run(case.request(case.hanging, desk, cancel=cancel, timeout_s=60.0))


def test_it_says_whether_it_can_serve(case: Case) -> None:
    assert case.engine.name
    assert case.engine.unavailable() is None
    assert case.engine.unavailable(case.role) is None


def test_what_is_done_has_a_text_and_no_error(case: Case) -> None:
    desk = Desk()
    outcome = case.engine.run(case.request(case.quick, desk))
    assert (outcome.status, outcome.text.strip()) == ("done", "hello")
    assert (outcome.error, outcome.failure_reason) == (None, None)
    assert desk.events


def test_canceled_before_its_start_it_does_nothing(case: Case) -> None:
    cancel, desk = CancelToken(), Desk()
    cancel.cancel("canceled")
    outcome = case.engine.run(case.request(case.hanging, desk, cancel=cancel))
    assert (outcome.status, outcome.failure_reason) == ("canceled", "canceled")
    assert [kind for kind, _, _ in desk.events if kind != "note"] == []


@pytest.mark.parametrize(
    ("reason", "status"), [("canceled", "canceled"), ("killed", "failed"), ("timeout", "failed")]
)
def test_stopped_on_its_way_it_ends_soon_and_says_why(case: Case, reason: str, status: str) -> None:
    began = time.monotonic()
    outcome = begun(case, CancelToken(), reason)
    assert (outcome.status, outcome.failure_reason) == (status, reason)
    assert outcome.error
    assert time.monotonic() - began < PATIENCE_S


def test_over_its_deadline_it_ends_with_a_timeout(case: Case) -> None:
    outcome = case.engine.run(case.request(case.hanging, timeout_s=1.5))
    assert (outcome.status, outcome.failure_reason) == ("failed", "timeout")


def test_it_serves_several_at_once_and_leaves_nothing_open(case: Case) -> None:
    case.engine.run(case.request(case.quick))
    before = open_files()

    def one(number: int) -> str:
        scratch = case.here.scratch / str(number)
        scratch.mkdir()
        outcome = case.engine.run(case.request(case.quick, run_id=f"r-{number}", scratch=scratch))
        return outcome.text or str(outcome)

    with ThreadPoolExecutor(4) as pool:
        assert [text.strip() for text in pool.map(one, range(8))] == ["hello"] * 8
    assert not open_files() - before
    assert zombies() == []


def test_without_its_folders_it_does_not_raise(case: Case, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    outcome = case.engine.run(
        case.request(case.quick, workspace=nowhere / "workspace", scratch=nowhere / "scratch")
    )
    assert outcome.status in ("done", "failed")
    assert outcome.status == "done" or outcome.error
