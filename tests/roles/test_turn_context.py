"""What a turn knows: a conversation that grows at its end, its user's language, zone and time."""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from mimikit.config import BudgetSettings
from mimikit.conversation import inbox
from mimikit.engines.base import Outcome, RunSpec, TurnInput
from mimikit.memory import tokens
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import InboxItem, Message
from mimikit.roles.prompts import HistoryWindow, prompt_of
from mimikit.roles.turn_context import detect_locale
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.twins import FakeClock

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
BUDGETS = BudgetSettings()
TURNS = 300


def long_chat(seed: int, sentence: str, most: int) -> list[list[Message]]:
    """A chat as it stands before each turn: what was said, and now and then lines of code's."""
    dice = random.Random(seed)
    messages: list[Message] = []
    chats: list[list[Message]] = []

    def say(role: str, text: str) -> None:
        number = len(messages)
        at = NOW + timedelta(seconds=number)
        messages.append(
            Message.model_validate(
                {"id": f"m{number}", "role": role, "text": text, "created_at": at}
            )
        )

    for _ in range(TURNS):
        chats.append(list(messages))
        say("user", sentence * dice.randint(1, max(1, most // 3)))
        say("agent", sentence * dice.randint(1, most) + "```sh\nls\n```" * dice.randint(0, 1))
        for _ in range(dice.choice([0, 0, 0, 1, 5])):
            say("system", f"`backup` is done:\nwell {dice.random()}")
    return chats


@pytest.mark.parametrize(
    ("sentence", "most", "share"),
    [
        ("Look at the disk again. ", 20, 0.8),
        ("再看一下磁盘。", 20, 0.8),
        ("再看一下磁盘。", 120, 0.5),
    ],
    ids=["English", "Chinese", "long Chinese"],
)
def test_a_prompt_is_the_last_ones_beginning_with_more_said(
    sentence: str, most: int, share: float
) -> None:
    window, last, same = HistoryWindow(), "", 0
    for chat in long_chat(7, sentence, most):
        kept = window.select(chat[-60:], BUDGETS)
        told = TurnInput(NOW, user="- tea", conversation=tuple(kept))
        prompt = prompt_of("teller", told, BUDGETS, Path("x"))
        same += prompt.startswith(last)
        said = [message for message in kept if not message.is_by_code]
        assert len(said) <= BUDGETS.conversation_messages
        assert len(said) >= min(BUDGETS.conversation_least, sum(m.role != "system" for m in chat))
        assert kept == chat[len(chat) - len(kept) :], "nothing is left out between"
        assert tokens.spent(kept) <= BUDGETS.conversation_tokens or len(said) <= 6
        last = prompt.partition("\n`````\n\n## Environment")[0]
    assert same / TURNS >= share, f"{same} of {TURNS}"


def test_lines_of_code_are_one_short_line_each_group_and_push_nothing_out() -> None:
    chat = [
        Message(
            id=f"m{n}",
            role="user" if n % 12 == 0 else "system",
            text=f"line {n}\n" + "x" * 300,
            created_at=NOW,
        )
        for n in range(360)
    ]
    kept = tokens.fit(HistoryWindow().select(chat[-200:], BUDGETS), 10**6)
    assert [message.role for message in kept[-4:]] == ["user", "system"] * 2
    assert kept[-1].text.startswith("(and 8 before) · line 357 xxx")
    assert kept[-1].text.count("line ") == 3
    assert "\n" not in kept[-1].text
    assert len(kept[-1].text) < 3 * (tokens.FOLDED_CHARACTERS + 30)
    assert sum(message.role == "user" for message in kept) == 16, "all that there is"


@pytest.mark.parametrize(
    ("text", "locale", "tag"),
    [
        ("hello there", "en-US", "en-US"),
        ("hello there", "zh-CN", "en"),
        ("備份一下資料庫", "zh-TW", "zh-TW"),
        ("備份一下資料庫", "zh-CN", "zh-Hant"),
        ("备份一下数据库", "en-US", "zh-Hans"),
        ("好的", "en", "zh-Hans"),
        ("👍", "zh-Hant-TW", "zh-Hant-TW"),
    ],
)
def test_the_language_and_script_are_those_that_the_user_writes(
    text: str, locale: str, tag: str
) -> None:
    assert detect_locale(text, locale) == tag


@pytest.mark.parametrize(
    ("zone", "locale", "lines"),
    [
        ("Asia/Shanghai", "zh-Hant", ["now: Tuesday, 2026-12-01 17:00 +08:00",
         "timezone: Asia/Shanghai", "locale: zh-Hant (Chinese, traditional)"]),
        ("America/St_Johns", "en", ["now: Tuesday, 2026-12-01 05:30 -03:30",
         "timezone: America/St_Johns", "locale: en"]),
        ("Nowhere/At all", "de", ["now: Tuesday, 2026-12-01 09:00 +00:00",
         "timezone: Nowhere/At all", "locale: de"]),
    ],
)  # fmt: skip
def test_the_time_is_the_users_own_with_its_weekday_and_offset(
    zone: str, locale: str, lines: list[str]
) -> None:
    prompt = prompt_of("teller", TurnInput(NOW, zone, locale), BUDGETS, Path("x"))
    assert prompt.endswith("## Environment\n```text\n" + "\n".join(lines) + "\n```")


class Noting(Mind):
    """Keeps what each run was told of its user."""

    def __init__(self) -> None:
        super().__init__([])
        self.told: list[tuple[str, str, str, str]] = []
        self.prompts: defaultdict[str, list[str]] = defaultdict(list)

    def run(self, request: RunSpec) -> Outcome:
        asked = "results" if request.input.results else request.prompt
        self.prompts[request.role].append(request.prompt)
        self.told.append((request.role, request.input.timezone, request.input.locale, asked))
        return super().run(request)


@pytest.mark.parametrize("asks", ["chain: 備份資料庫 > 檢查備份", "every 60: 備份資料庫"])
def test_the_users_language_and_zone_travel_with_the_work_to_the_turn_that_tells_it(
    asks: str,
) -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    mind, clock = Noting(), FakeClock(START)
    product = Product(files, clock, mind)
    product.start()
    said = InboxItem(id="m1", text=asks, created_at=START)
    inbox.put(files, said.but(timezone="Asia/Taipei", locale="zh-CN"))
    product.idle()
    clock.advance(61)
    product.idle()
    assert {(zone, locale) for _, zone, locale, _ in mind.told} == {("Asia/Taipei", "zh-Hant")}
    assert {role for role, *_ in mind.told} == {"teller", "planner", "worker"}
    worker = next(asked for role, _, _, asked in mind.told if role == "worker")
    assert "timezone: Asia/Taipei\nlocale: zh-Hant (Chinese, traditional)" in worker
    if not asks.startswith("every"):
        assert "results" in [asked for *_, asked in mind.told]


def test_each_turn_has_what_stays_true_and_what_was_said_where_the_last_one_had_it() -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    files.write(paths.MEMORY, b"- The user likes green tea.\n")
    mind, clock = Noting(), FakeClock(START)
    product = Product(files, clock, mind)
    product.start()
    for number, text in enumerate(["hello", "plan: look", "which tea?", "cancel nothing", "so"]):
        clock.advance(100)
        inbox.put(files, InboxItem(id=f"m{number}", text=text, created_at=clock.now()))
        product.idle()
    prompts = mind.prompts["teller"]
    assert len(prompts) == 6, "one of them tells a result alone"
    assert all("## User\n`````text\n- The user likes green tea." in prompt for prompt in prompts)
    for before, prompt in pairwise(prompts[1:]):
        said, _, rest = before.partition("\n`````\n\n## ")[2].partition("\n`````\n\n")
        assert said
        assert rest
        assert prompt.startswith(before[: before.index(rest) - len("\n`````\n\n")])
