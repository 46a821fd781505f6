"""How the conformance suite puts its cases to each engine: one small driver for each of them.

To join, write a class with `engine`, name what it can not be asked, and add it to `DRIVERS`. What
a model says stands in the words of `FakeLLM` for all of them; whoever asks no server translates.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.config import Settings
from mimikit.engine_settings import CodexSettings, OpencodeSettings
from mimikit.engines.base import Engine, Outcome, Tools
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.openai.engine import OpenAIEngine
from mimikit.engines.opencode.engine import OpencodeEngine
from mimikit.engines.shell import ShellEngine
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Role, Task
from mimikit.protocol.triggers import Schedule, Trigger
from mimikit.tools.mcp import ToolServer
from mimikit.tools.planning import PlannerSession
from mimikit.tools.reader import RoleReader
from mimikit.tools.session import TellerSession, ToolCaller, ToolSession
from tests.support.engine_requests import NOW, Desk
from tests.support.fake_llm import Body, FakeLLM, Step, tool_outputs
from tests.support.memory_disk import MemoryDisk
from tests.support.opencode_ground import owner_config
from tests.support.programs import opencode
from tests.support.runs import Ground
from tests.support.searching import plain_search
from tests.support.twins import ScriptedEngine

ROLES: tuple[Role, ...] = ("teller", "planner", "worker")
KEY = "canary-key-of-the-server"
NOWHERE = "http://127.0.0.1:9/v1"
"""Where nobody takes connections."""


@dataclass
class Played:
    """How a case went: the outcome, what the model was asked, what was told on the way."""

    outcome: Outcome
    requests: list[Body]
    desk: Desk
    session: ToolSession | None

    @property
    def told(self) -> list[str]:
        """What tools answered, as the model was told it last."""
        return tool_outputs(self.requests[-1]) if self.requests else []

    def texts(self, kind: str) -> list[str]:
        return [text for told, text, _ in self.desk.events if told == kind]


@dataclass
class EngineDriver:
    """An engine at a workspace of its own, and the server that its model is."""

    here: Ground
    llm: FakeLLM
    door: ToolServer
    name: ClassVar[str] = ""
    roles: ClassVar[tuple[Role, ...]] = ROLES
    thinks: ClassVar[bool] = True
    """It has a model, which says what a case has it say."""
    by_server: ClassVar[bool] = True
    """What its model says comes over a network: it can fail as one does."""
    by_process: ClassVar[bool] = False
    """It is a program that can be killed."""
    takes_503_for: ClassVar[str] = "broken"
    """An endpoint's own trouble; codex takes it for a limit without an end."""
    streams: ClassVar[bool] = False
    """It tells a text in pieces as that comes."""
    ends_by_final: ClassVar[bool] = False
    """After a final tool it asks its model no more."""
    in_order: ClassVar[bool] = True
    """Calls of one answer are made in its order; codex makes them side by side."""
    cannot: ClassVar[frozenset[str]] = frozenset()
    """Cases and tests that can not be put to it, by their names."""
    everyday: ClassVar[frozenset[str] | None] = None
    """The tests that are put to it each time, where the others are nightly; None: all of them."""
    quick: ClassVar[Step] = {"text": "hello"}
    hanging: ClassVar[dict[Role, Body]] = {
        "teller": {"hang": 600},
        "planner": {"hang": 600},
        "worker": {"shell": "echo begun; sleep 600"},
    }
    apis: ClassVar[tuple[str, ...]] = ("/responses",)
    runs: Iterator[int] = field(default_factory=itertools.count)

    def engine(self, url: str | None = None) -> Engine:
        """One that can serve, whatever went before; `url`: of another server."""
        raise NotImplementedError

    def play(
        self,
        *steps: Step,
        role: Role | None = None,
        session: ToolSession | None = None,
        desk: Desk | None = None,
        engine: Engine | None = None,
        **fields: Any,
    ) -> Played:
        """Have the model say this, and see what comes of it."""
        self.llm.play(*steps)
        role = role or self.roles[0]
        session = session or open_session(role)
        desk = desk or Desk()
        if session is not None:
            desk.answer = session.call
        run_id = f"run-{next(self.runs)}"
        scratch = self.here.scratch / run_id
        scratch.mkdir()
        request = self.here.request(
            fields.pop("prompt", "go"),
            role=role,
            desk=desk,
            **{"run_id": run_id, "scratch": scratch, "model": "gpt-5.5", **fields},
        )
        request = replace(
            request,
            instructions="You are the role.",
            tools=Tools(
                request.tools.call, session.specs() if session else (), serve=self.door.offered
            ),
        )
        outcome = (engine or self.engine()).run(request)
        return Played(outcome, list(self.llm.requests), desk, session)

    def programs(self) -> list[psutil.Process]:
        """What it runs as: killed in the midst of a turn, that fails."""
        return []

    def close(self) -> None:
        """End what it has started for all its cases."""


class ScriptedDriver(EngineDriver):
    name = "scripted"
    by_server, streams = False, True
    cannot = frozenset({"no JSON", "no object", "tool without a turn"})

    def engine(self, url: str | None = None) -> Engine:
        def steps(_request: object) -> list[dict[str, Any]]:
            said = [step for step in self.llm.steps if isinstance(step, dict)]
            return [one for step in said for one in _script(step)]

        return ScriptedEngine(steps)


def _script(step: Body) -> list[dict[str, Any]]:
    """A step in the words of the scripted twin."""
    made: list[dict[str, Any]] = []
    if "tools" in step:
        made += [{"call": name, "args": given} for name, given in step["tools"]]
    if "text" in step:
        made.append({"say": step["text"]})
    if "hang" in step or "shell" in step:
        made += [{"say": "begun"}, {"hang": True}]
    counted = {"inputTokens": 100, "outputTokens": 10}
    return [*made, {"usage": counted}] if not step.get("hang") else made


class CommandDriver(EngineDriver):
    """The owner's own command lines: no model, so only how a run lives and ends."""

    name = "command"
    roles, by_server, thinks = ("worker",), False, False

    def engine(self, url: str | None = None) -> Engine:
        return ShellEngine(Settings())

    def play(self, *steps: Step, **fields: Any) -> Played:
        line = "echo hello" if steps == (self.quick,) else "echo begun; sleep 600"
        given: dict[str, Any] = {"role": "worker", **fields, "prompt": line}
        return super().play(*steps, **given)


class ChatDriver(EngineDriver):
    name = "openai-chat"
    streams = ends_by_final = True
    apis = ("/chat/completions",)

    def engine(self, url: str | None = None) -> Engine:
        facts = {"base_url": url or self.llm.url, "model": "m", "api_key_env": "FAKE_KEY"}
        settings = Settings.model_validate({"engines": {"mine": facts}})
        return OpenAIEngine("mine", settings, self.here.state, SystemClock())


class ResponsesDriver(ChatDriver):
    name = "openai-responses"
    apis = ("/responses",)


class CodexExecDriver(EngineDriver):
    """A Worker: each run is a `codex exec`."""

    name = "codex-exec"
    roles: ClassVar[tuple[Role, ...]] = ("worker",)
    by_process, in_order = True, False
    takes_503_for = "limited"

    def engine(self, url: str | None = None) -> CodexEngine:
        provider = (
            f'{{name="fake",base_url="{url or self.llm.url}",wire_api="responses",'
            'env_key="FAKE_KEY",requires_openai_auth=false,request_max_retries=0,'
            "stream_max_retries=0}"
        )
        config = {"model_provider": '"fake"', "model_providers.fake": provider}
        codex = CodexSettings(env=["FAKE_KEY"], config=config)
        return CodexEngine(Settings(codex=codex), self.here.state)

    def programs(self) -> list[psutil.Process]:
        return programs_named("codex")


class CodexServerDriver(CodexExecDriver):
    """Teller and Planner: turns in one app-server."""

    name = "codex-server"
    roles: ClassVar[tuple[Role, ...]] = ("teller", "planner")
    takes_503_for = "broken"
    streams = ends_by_final = True
    kept: CodexEngine | None = None

    def engine(self, url: str | None = None) -> CodexEngine:
        if url is None and self.kept is not None:
            return self.kept
        made = super().engine(url)
        self.kept = made if url is None else self.kept
        return made

    def close(self) -> None:
        if self.kept is not None:
            self.kept.close()


class OpencodeDriver(EngineDriver):
    """One `opencode serve` for all roles, whose owner has set up the server."""

    name = "opencode"
    by_process, in_order = True, False
    streams = ends_by_final = True
    apis = ("/chat/completions",)
    everyday = frozenset()
    # What it asks again it tells of in the server's words alone; those of the scripted one are
    # the same for each status.
    cannot = frozenset({
        *("401", "403", "429"),
        # It answers these itself, with the tools there are and not with what was wrong.
        *("no JSON", "an unknown tool", "another role's tool"),
        # It keeps its connections to the tools for the next run.
        "test_several_at_once_do_not_meet_and_leave_nothing_open",
    })  # fmt: skip
    kept: OpencodeEngine | None = None

    def engine(self, url: str | None = None) -> OpencodeEngine:
        owner_config(Path.home(), url or self.llm.url, key=KEY)  # a server that is begun reads it
        if url is None and self.kept is not None:
            return self.kept
        made = OpencodeEngine(Settings(opencode=OpencodeSettings(path=opencode())), self.here.state)
        self.kept = made if url is None else self.kept
        return made

    def play(self, *steps: Step, **fields: Any) -> Played:
        given: dict[str, Any] = {"model": None, **fields}
        return super().play(*steps, **given)

    def programs(self) -> list[psutil.Process]:
        return programs_named("opencode") + programs_named("opencode.exe")

    def close(self) -> None:
        if self.kept is not None:
            self.kept.close()


DRIVERS: tuple[type[EngineDriver], ...] = (
    ScriptedDriver,
    CommandDriver,
    ChatDriver,
    ResponsesDriver,
    CodexExecDriver,
    CodexServerDriver,
    OpencodeDriver,
)
_CODEX = (pytest.mark.codex, pytest.mark.needs_platform("linux"))
MARKS = {
    "codex-exec": _CODEX,
    "codex-server": _CODEX,
    "opencode": (pytest.mark.needs_program("opencode", "bwrap"),),
}


def programs_named(name: str) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.name() == name:
                found.append(process)
    return found


def open_session(role: Role) -> ToolSession | None:
    """The role's real tools, over a small state: a trigger, a history of nothing."""
    if role == "worker":
        return None
    files = Files(MemoryDisk())
    files.make_folders()
    trigger = Trigger(
        id="trig-1", type="recurring", prompt="look", created_at=NOW, trace_id="t", origin="http",
        schedule=Schedule(interval=3600),
    )  # fmt: skip
    files.save(paths.trigger(trigger.id), trigger)
    parent = Task(id="task-plan", role="planner", prompt="p", created_at=NOW, trace_id="t")
    caller = ToolCaller(
        "run", "t", NOW, parent=parent if role == "planner" else None, timezone="UTC"
    )
    kind = TellerSession if role == "teller" else PlannerSession
    return kind(caller, RoleReader(files, plain_search(files)), Settings())
