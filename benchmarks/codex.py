"""A turn of a Teller with codex, against a model server that answers at once.

Beside it, in turn, a bare `codex exec` that is asked the same.
Run: python -m benchmarks.codex [--turns N]
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from mimikit.config import CodexSettings, Settings
from mimikit.engines.base import (
    Callbacks,
    CancelToken,
    RunSpec,
    ToolReply,
    Tools,
    ToolSpec,
    TurnInput,
)
from mimikit.engines.codex import cli as codex_cli
from mimikit.engines.codex.engine import CodexEngine
from tests.support.engine_requests import NOW
from tests.support.fake_llm import Body, FakeLLM

Ours: TypeAlias = tuple[Callable[[], None], Callable[[], None]]
_MODEL = "gpt-5.5"
_TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
_REPLY = ToolSpec("reply", "Say it to the user.", _TEXT)
_CALLS = {"mcp": ["mimikit", "reply", {"text": "hi"}]}


def provider(url: str) -> dict[str, str]:
    """The settings that have codex ask the scripted server."""
    told = (
        f'{{name="fake",base_url="{url}",wire_api="responses",env_key="FAKE_KEY",'
        "requires_openai_auth=false,request_max_retries=0,stream_max_retries=0}"
    )
    return {"model_provider": '"fake"', "model_providers.fake": told}


def bare(url: str, folder: Path) -> Callable[[], None]:
    """A `codex exec` as anybody would start one."""
    place = codex_cli.find(CodexSettings())
    if place is None:
        raise SystemExit("expected codex, got none; pip install 'mimikit-assistant[codex]'")
    keys = [part for key, value in provider(url).items() for part in ("-c", f"{key}={value}")]
    head = ["exec", "--json", "--ephemeral", "--skip-git-repo-check", "-s", "read-only"]
    argv = [place.program, *head, "-m", _MODEL, *keys, "-"]

    def turn() -> None:
        subprocess.run(argv, cwd=folder, input=b"hello", capture_output=True, check=True)

    return turn


def ours(url: str, folder: Path) -> Ours:
    """A turn of a Teller, as a consumer runs it; and what ends the engine."""
    codex = CodexSettings(env=["FAKE_KEY"], config=provider(url))
    state = folder / "work" / ".mimikit"
    state.mkdir(parents=True, exist_ok=True)
    engine = CodexEngine(Settings(codex=codex), state)

    def reply(_name: str, _arguments: dict[str, Any]) -> ToolReply:
        return ToolReply(True, "sent", final=True)

    def turn() -> None:
        scratch = Path(tempfile.mkdtemp(dir=folder))
        request = RunSpec(
            run_id="bench",
            attempt=1,
            role="teller",
            instructions="You are the teller.",
            prompt="hello",
            input=TurnInput(now=NOW),
            tools=Tools(reply, (_REPLY,)),
            callbacks=Callbacks(lambda _kind, _text, _data: None),
            cancel=CancelToken(),
            workspace=state.parent,
            scratch=scratch,
            timeout_s=60,
            idle_timeout_s=60,
            model=_MODEL,
        )
        outcome = engine.run(request)
        if outcome.status != "done":
            raise SystemExit(f"expected a turn to be done, got: {outcome.error}")
        shutil.rmtree(scratch)

    return turn, engine.close


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=15)
    turns = parser.parse_args().turns
    said: list[Body] = [{"text": "hi"}]

    def answer(body: Body) -> Body:
        """Words, or a call first and then, where it is asked for them, words."""
        was_called = "function_call_output" in str(body["input"])
        return {"text": "hi"} if was_called else said[0]

    # codex takes no home below the folder of temporary files
    with tempfile.TemporaryDirectory(prefix=".bench-codex-", dir=Path.home()) as made:
        folder = Path(made)
        os.environ |= {"FAKE_KEY": "x", "CODEX_HOME": str(folder / "home")}
        (folder / "home").mkdir()
        with FakeLLM([answer]) as llm:
            warm, end_warm = ours(llm.url, folder)
            ways: dict[str, tuple[Callable[[], None], Body]] = {
                "bare codex exec, words": (bare(llm.url, folder), {"text": "hi"}),
                "app-server, words": (warm, {"text": "hi"}),
                "app-server, one tool call": (warm, _CALLS),
            }
            took: dict[str, list[float]] = {name: [] for name in ways}
            asked = dict.fromkeys(ways, 0)
            for number in range(turns + 1):  # one after the other: all have the same neighbours
                for name, (turn, said[0]) in ways.items():
                    before, begun = len(llm.requests), time.perf_counter()
                    turn()
                    if number:  # the first warms up
                        took[name].append((time.perf_counter() - begun) * 1000)
                    asked[name] = len(llm.requests) - before
            end_warm()
    print(f"{'':32}{'p50 ms':>9}{'requests':>10}{'of bare':>9}")
    peer = statistics.median(took["bare codex exec, words"])
    for name, found in took.items():
        p50 = statistics.median(found)
        print(f"{name:32}{p50:>9.1f}{asked[name]:>10}{p50 / peer:>8.2f}×")
    print(f"load now: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
