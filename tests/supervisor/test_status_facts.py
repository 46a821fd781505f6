"""What a status answer says of who thinks: in plain words, in both languages."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mimikit.protocol.runtime import EngineStatus
from mimikit.supervisor.code_turns import status_facts

NOW, ZONE = datetime(2026, 1, 28, 9, tzinfo=UTC), ZoneInfo("UTC")
ALL = ("teller", "planner", "deferred", "standard", "specialist")


def told(engines: dict[str, EngineStatus]) -> tuple[list[str], list[str]]:
    facts = status_facts(["teller", "worker"], 4, 3, engines, NOW, ZONE)
    return [fact["en"] for fact in facts], [fact["zh"] for fact in facts]


def serving(**others: str) -> dict[str, EngineStatus]:
    engines = dict.fromkeys(ALL, "codex") | others | {"command": "command"}
    return {name: EngineStatus(engine=engine) for name, engine in engines.items()}


@pytest.mark.parametrize(
    ("engines", "english", "chinese"),
    [
        (serving(), "codex does the thinking", "由 codex 负责思考"),
        (
            serving(**dict.fromkeys(ALL, "builtin")),
            "no language model is set up: I understand plain sentences",
            "没有设置语言模型：我只理解简单的句子",
        ),
    ],
)
def test_one_for_all_is_told_at_once(
    engines: dict[str, EngineStatus], english: str, chinese: str
) -> None:
    work = "1 running, 4 queued; 1 of at most 3 at a time"
    assert told(engines) == (
        [work, english],
        ["正在执行 1 个，排队 4 个；同时进行 1 个，最多 3 个", chinese],
    )


def test_several_are_told_with_what_each_does() -> None:
    english, chinese = told(serving(planner="deep", deferred="builtin"))
    assert english[1:] == [
        "codex does: conversation, everyday work, demanding work",
        "deep does: planning",
        "without a language model: housekeeping",
    ]
    assert chinese[2] == "deep 负责：规划"


def test_what_waits_is_told_with_the_reason() -> None:
    waiting = EngineStatus(engine="codex", state="waiting", want="logged_out")
    english, _ = told(dict.fromkeys(ALL, waiting))
    assert english[1].startswith("waiting, as ")
    assert english[1].endswith(
        ": conversation, planning, housekeeping, everyday work, demanding work"
    )
