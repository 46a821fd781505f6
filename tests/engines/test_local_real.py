"""The real small model: fetched, proved, served, and asked in English and Chinese."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator

import pytest

from mimikit.config import Settings
from mimikit.engines.base import TurnInput
from mimikit.engines.builtin import grammar, intents
from mimikit.engines.local import model_server, weights
from mimikit.engines.local.engine import LocalEngine
from mimikit.errors import EngineError
from tests.support.engine_requests import NOW, Desk, inputs, make_request, task

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(0)]

TALK = ("hello", "What is the capital of France?", "how are you?", "你好", "法国的首都是哪里？")
WORK = (
    "count the lines of README.md",
    "run the tests and tell me what fails",
    "帮我看看这个目录下有哪些文件",
    "把 notes.txt 复制到 backup 文件夹",
)
SLOW_S = 1800
"""The machine may have much else to do."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    if importlib.util.find_spec(model_server.PACKAGE) is None:
        pytest.skip(f"{model_server.PACKAGE} is not installed: it has no wheel for this machine")
    try:
        path = weights.set_up(
            weights.SMALL, weights.folder_of_user(), weights.download, lambda _done, _all: None
        )
    except EngineError as error:
        pytest.skip(f"the weights cannot be fetched: {error}")
    settings = Settings.model_validate({"local": {"model_path": str(path)}})
    made = LocalEngine(settings, lambda _word: False)
    yield made
    made.close()


def test_it_tells_talk_from_work_in_both_languages(engine: LocalEngine) -> None:
    wrong: list[str] = []
    for text in (*TALK, *WORK):
        desk = Desk()
        turn = TurnInput(now=NOW, inputs=inputs(text))
        outcome = engine.run(make_request("teller", turn, desk, timeout_s=SLOW_S))
        assert outcome.status == "done", outcome.error
        assert outcome.text
        if [name for name, _ in desk.calls] != (["delegate"] if text in WORK else []):
            wrong.append(text)
    assert len(wrong) <= 2, wrong


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("count the lines of README.md", "wc"),
        ("how many words are in report.md?", "wc"),
        ("列出最近修改的十个文件", "ls|find"),
    ],
)
def test_it_proposes_a_command_that_code_understands(
    engine: LocalEngine, text: str, holds: str
) -> None:
    desk = Desk()
    turn = TurnInput(now=NOW, task=task(text))
    engine.run(make_request("planner", turn, desk, timeout_s=SLOW_S))
    ((tool, given),) = desk.calls
    intent = grammar.parse(given["options"][0])
    assert tool == "needs_input"
    assert isinstance(intent, intents.RunIntent)
    assert re.search(holds, intent.command)


def test_it_finds_the_time_in_what_is_asked(engine: LocalEngine) -> None:
    desk = Desk()
    turn = TurnInput(now=NOW, task=task("every monday at 8:00 show the disk usage"))
    engine.run(make_request("planner", turn, desk, timeout_s=SLOW_S))
    ((_, given),) = desk.calls
    intent = grammar.parse(given["options"][0])
    assert isinstance(intent, intents.AtIntent)
    assert "monday" in intent.when
