"""Turns of Teller and Planner in the real `codex app-server`, against a scripted model server."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from mimikit.clock import SystemClock
from mimikit.engines.base import Attachment, Failed, Outcome, ToolReply, ToolSpec, TurnInput
from mimikit.engines.codex.engine import CodexEngine
from mimikit.engines.codex.failures import exhausted_until, failure_of
from mimikit.engines.codex.server_turn import calls_once
from mimikit.protocol.models import FileRef
from tests.support.codex_ground import Here, codex_ground
from tests.support.engine_requests import NOW, Desk
from tests.support.fake_llm import FakeLLM, Step, tool_names

TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
TOOLS = (ToolSpec("reply", "Reply to the user.", TEXT), ToolSpec("remember", "Keep it.", TEXT))


class Said(Desk):
    """As the Teller's tools answer: once there was a reply, all is said."""

    def __init__(self) -> None:
        super().__init__(lambda _name, _arguments: ToolReply(True, "ok", final=self.is_over))

    @property
    def is_over(self) -> bool:
        return any(name == "reply" for name, _ in self.calls)


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAAB"
    "JRU5ErkJggg=="
)
HI = {"name": "reply", "arguments": {"text": "hi"}}
NOTE = {"name": "remember", "arguments": {"text": "x"}}


class Warm:
    """A model server, and one engine whose app-server stays for all tests of this file."""

    def __init__(self, here: Here, llm: FakeLLM) -> None:
        self.here, self.llm = here, llm
        self.engine: CodexEngine = here.engine(llm)

    def turn(
        self, *steps: Step, prompt: str = "hello", desk: Desk | None = None, **fields: Any
    ) -> Outcome:
        self.script(steps)
        fields = {"role": "teller", "tools": TOOLS, **fields}
        return self.engine.run(self.here.ask(prompt, desk, **fields))

    def script(self, steps: Sequence[Step]) -> None:
        self.llm.requests.clear()
        self.llm.headers.clear()
        self.llm.asked.clear()
        self.llm.steps = list(steps)

    def processes(self) -> list[psutil.Process]:
        return [one for one in psutil.Process().children(recursive=True) if is_server(one)]


def is_server(process: psutil.Process) -> bool:
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return bool(words) and words[0].endswith("codex") and "app-server" in words


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    with pytest.MonkeyPatch.context() as patch, FakeLLM([{"text": "hi"}]) as llm:
        made = Warm(codex_ground(tmp_path_factory.mktemp("warm"), patch), llm)
        yield made
        made.engine.close()
        assert made.processes() == []


def kinds(desk: Desk) -> list[str]:
    return [kind for kind, _, _ in desk.events]


@pytest.mark.codex
@pytest.mark.needs_platform("linux")
class TestServed:
    """What a turn is, and what the model is given."""

    def test_words_stream_and_the_next_turn_finds_the_server_warm(self, warm: Warm) -> None:
        desk = Desk()
        first = warm.turn({"text": "all is well"}, desk=desk)
        server = warm.processes()
        second = warm.turn({"text": "still"}, prompt="again")
        assert (first.status, first.text, second.text) == ("done", "all is well", "still")
        assert "".join(text for kind, text, _ in desk.events if kind == "delta") == "all is well"
        assert [kind for kind in kinds(desk) if kind != "usage"][-1] == "message"
        assert len(server) == 1
        assert warm.processes() == server
        request = str(warm.llm.requests[0])
        assert "again" in request
        assert "hello" not in request
        assert first.usage.input_tokens == second.usage.input_tokens == 100

    def test_the_model_is_offered_our_tools_alone(self, warm: Warm) -> None:
        warm.turn({"text": "done"}, role="planner", effort="high")
        request = warm.llm.requests[0]
        assert set(tool_names(request)) == {"reply", "remember"}
        assert request["reasoning"]["effort"] == "high"
        assert "You are the role." in str(request)
        assert len(str(request)) < 6000
        for secret in ("canary", str(warm.here.workspace)):
            assert secret not in str(request)

    def test_a_picture_is_shown(self, warm: Warm) -> None:
        ref = FileRef(id=f"{'0' * 32}.png", name="a.png", kind="image", bytes=68)
        given = TurnInput(
            NOW, attachments=(Attachment(ref, picture=f"data:image/png;base64,{PNG}"),)
        )
        assert warm.turn({"text": "a dot"}, input=given).status == "done"
        assert "'type': 'input_image', 'image_url': 'data:image/" in str(warm.llm.requests[0])

    def test_a_shell_is_not_to_be_had(self, warm: Warm) -> None:
        line = f"touch {warm.here.workspace}/made"
        outcome = warm.turn({"shell": line}, {"text": "done"})
        assert outcome.status == "done"
        assert not (warm.here.workspace / "made").exists()

    @pytest.mark.parametrize("chunk_delay", [0, 0.02])
    def test_a_final_tool_ends_the_turn_with_one_request(
        self, warm: Warm, chunk_delay: float
    ) -> None:
        desk = Said()
        step: Step = {"call": [NOTE, HI], "chunk_delay": chunk_delay}
        outcome = warm.turn(step, {"text": "not asked for"}, desk=desk)
        assert (outcome.status, outcome.text, len(warm.llm.requests)) == ("done", "", 1)
        assert sorted(name for name, _ in desk.calls) == ["remember", "reply"]
        assert outcome.usage.input_tokens == 100

    def test_a_program_that_calls_a_final_tool_once_ends_it_too(self, warm: Warm) -> None:
        desk = Said()
        script = 'text(await tools.reply({"text": "hi, for tools.x are here"}));'
        step = {"custom": {"namespace": "functions", "name": "exec", "input": script}}
        outcome = warm.turn(step, {"text": "not asked for"}, desk=desk, model="gpt-6-luna")
        assert (outcome.status, len(warm.llm.requests), len(desk.calls)) == ("done", 1, 1)


@pytest.mark.codex
@pytest.mark.needs_platform("linux")
class TestFailures:
    """What goes wrong has a type, and the server stays."""

    def test_a_limit_says_when_it_ends(self, warm: Warm) -> None:
        at = int(SystemClock().now().timestamp()) + 3600
        error = {"type": "usage_limit_reached", "message": "x", "resets_at": at}
        headers = {
            "x-codex-primary-used-percent": "100",
            "x-codex-primary-window-minutes": "300",
            "x-codex-primary-reset-at": str(at),
        }
        outcome = warm.turn({"status": 429, "body": {"error": error}, "headers": headers})
        assert outcome.reason == "rate_limited"
        assert isinstance(outcome, Failed)
        assert outcome.retry_at == datetime.fromtimestamp(at, UTC)

    def test_a_server_that_is_killed_is_replaced_and_the_turn_begun_anew(self, warm: Warm) -> None:
        desk = Desk()
        [server] = warm.processes()
        warm.llm.asked.clear()
        killed = threading.Thread(
            target=lambda: warm.llm.asked.wait() and os.kill(server.pid, signal.SIGKILL)
        )
        killed.start()
        outcome = warm.turn({"hang": 30}, {"text": "well"}, desk=desk)
        killed.join()
        assert (outcome.status, outcome.text) == ("done", "well")
        assert "app-server" in next(text for kind, text, _ in desk.events if kind == "note")
        [other] = warm.processes()
        assert other.pid != server.pid

    def test_what_was_called_is_not_called_again_when_it_is_killed(self, warm: Warm) -> None:
        def answer(_name: str, _arguments: dict[str, Any]) -> ToolReply:
            for one in warm.processes():
                one.kill()
            return ToolReply(True, "ok")

        desk = Desk(answer)
        outcome = warm.turn({"call": NOTE}, {"text": "well"}, desk=desk)
        assert isinstance(outcome, Failed)
        assert (outcome.status, outcome.want) == ("failed", "broken")
        assert len(desk.calls) == 1


@pytest.mark.codex
@pytest.mark.needs_platform("linux")
class TestItsLife:
    """How it is started, what it takes up, and what serves in its place."""

    def test_a_new_login_and_settings_of_the_home_make_a_new_one(self, warm: Warm) -> None:
        home = warm.here.root / "home" / ".codex"
        warm.turn({"text": "well"})
        [first] = warm.processes()
        evil = warm.here.root / "evil"
        line = f'[mcp_servers.evil]\ncommand = "/bin/touch"\nargs = ["{evil}"]\n'
        (home / "config.toml").write_text(f"not_a_key = 1\n{line}")
        desk = Desk()
        assert warm.turn({"text": "well"}, desk=desk).text == "well"
        assert [text for kind, text, _ in desk.events if kind == "note"] == []
        assert set(tool_names(warm.llm.requests[0])) == {"reply", "remember"}
        assert not evil.exists()
        (home / "config.toml").unlink()
        assert warm.turn({"text": "well"}).text == "well"
        assert not first.is_running()
        assert len(warm.processes()) == 1

    def test_what_was_refused_is_mended_by_another_login(self, warm: Warm) -> None:
        login = warm.here.root / "home" / ".codex" / "auth.json"
        login.write_text("{}")
        refused = warm.turn({"status": 401})
        assert isinstance(refused, Failed)
        assert refused.want == "logged_out"
        assert not warm.engine.has_recovered("logged_out")
        login.unlink()
        assert warm.engine.has_recovered("logged_out")

    def test_one_that_does_not_start_is_told(self, warm: Warm, tmp_path: Path) -> None:
        odd = tmp_path / "codex"
        odd.write_text(
            '#!/bin/sh\n[ "$1" = app-server ] && { echo nonsense >&2; exit 3; }\n'
            "echo codex-cli 9.9.9\n"
        )
        odd.chmod(0o700)
        engine = warm.here.engine(warm.llm, path=str(odd))
        outcome = engine.run(warm.here.ask("hello", role="teller"))
        assert isinstance(outcome, Failed)
        assert (outcome.want, outcome.reason) == ("unready", "engine_unavailable")
        assert "exit code 3: nonsense" in outcome.error
        assert "exit code 3" in (engine.check_talk() or "")


# ---- without the program


@pytest.mark.parametrize(
    ("info", "want"),
    [
        ("usageLimitExceeded", "limited"),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "limited"),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 502}}, "broken"),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "unreachable"),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "logged_out"),
        ({"httpConnectionFailed": {"httpStatusCode": 422}}, None),
        ("unauthorized", "logged_out"),
        ("contextWindowExceeded", None),
        (None, None),
    ],
)
def test_a_typed_failure_says_what_is_wrong(info: Any, want: str | None) -> None:
    assert failure_of("it failed", NOW, info).want == want


def test_of_used_up_windows_the_last_end_counts() -> None:
    def window(used: int, at: datetime) -> dict[str, Any]:
        return {"usedPercent": used, "resetsAt": int(at.timestamp())}

    soon, later = NOW.replace(hour=11), NOW.replace(hour=12)
    limits: Any = {"primary": window(100, soon), "secondary": window(100, later)}
    assert failure_of("x", NOW, "usageLimitExceeded", exhausted_until(limits)).retry_at == later
    limits = {"primary": window(100, soon), "secondary": window(40, later)}
    assert failure_of("x", NOW, "usageLimitExceeded", exhausted_until(limits)).retry_at == soon
    assert exhausted_until({"primary": {"usedPercent": "all"}, "secondary": None}) == []


@pytest.mark.parametrize(
    ("script", "once"),
    [
        ('text(await tools.reply({"text": "tools.x for all"}))', True),
        ("await tools.reply({}); await tools.remember({})", False),
        ("for (const one of [1, 2]) await tools.reply({})", False),
        ("await Promise.all([1].map(x => tools.reply({x})))", False),
        ("text('nothing')", False),
    ],
)
def test_a_program_calls_once_only_where_that_is_certain(script: str, *, once: bool) -> None:
    assert calls_once(script) is once
