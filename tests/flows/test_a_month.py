"""A month with it, in both languages: what was agreed on the first day holds on the last."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engines.base import EngineAbsence
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.language.phrases import Language
from mimikit.memory.archive import summarise_prompt
from mimikit.memory.search import MemorySearch, open_index
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import loaded, result, results, transcript
from tests.support.twins import FakeClock

HOUR, DAY = 3600, 86400
LINES = 5000
_DONE = 3
"""Steps of the chain that went well."""


@dataclass(frozen=True)
class Words:
    """What the user says, and what is said in turn."""

    language: Language
    note: str
    remember: str
    question: str
    chatter: tuple[str, ...]
    remind: str
    reminder: str
    hourly: str
    each: str
    minutely: str
    on_change: str
    steps: tuple[str, str]
    lost: str
    failing: str
    in_a_row: str
    talk: str
    waits: str
    serves: str


EN = Words(
    language="en",
    note="The spare key is under the blue pot, 5 - 3 steps from the door (at 09:13. The left).",
    remember="remember that {note}",
    question="what do you know about the spare key?",
    chatter=(
        "The key of the API was changed at {n}:{m}, ask again later.",
        "I bought a blue pot for plant {n}, and a spare tyre.",
        "Step {n} of the build is done, the door of room {m} is shut.",
        "What do you think of idea {n}? It is the key question.",
        "Lunch at {n}, then the meeting about project {m}.",
    ),
    remind="remind me every day at 10 to drink water",
    reminder="Reminder: drink water",
    hourly="every hour: run: date",
    each="I'll tell you each time it has run.",
    minutely="every minute: run: uptime",
    on_change="I'll tell you when the output changes, and when it fails.",
    steps=("after one: run: two", "after two: run: three"),
    lost="What waited for it will not run: `two`, `three`.",
    failing="every hour: run: bad",
    in_a_row="It failed the same way 3 times in a row",
    talk="how are you, my friend?",
    waits="codex is logged out. Waiting for it: 1 message.",
    serves="serve again",
)
ZH = Words(
    language="zh",
    note="备用钥匙在蓝色花盆下面，离门左边 5 - 3 步（从周二 09:13 起）。",
    remember="记住：{note}",
    question="关于备用钥匙你知道什么？",
    chatter=(
        "API 的密钥在 {n}:{m} 换过了，晚点再问。",
        "我给植物 {n} 买了一个蓝色花盆，还有一个备用轮胎。",
        "构建的第 {n} 步完成了，{m} 号房间的门关着。",
        "你觉得想法 {n} 怎么样？这是关键问题。",
        "{n} 点吃午饭，然后开项目 {m} 的会。",
    ),
    remind="每天上午10点提醒我喝水",
    reminder="提醒：喝水",
    hourly="每小时运行：date",
    each="每次运行后我都会告诉你。",
    minutely="每分钟运行：uptime",
    on_change="输出有变化或失败时我会告诉你。",
    steps=("one 完成后运行：two", "two 完成后运行：three"),
    lost="等它完成的步骤不会再运行：`two`、`three`。",
    failing="每小时运行：bad",
    in_a_row="它已经连续 3 次以同样的方式失败",
    talk="你今天过得怎么样？",
    waits="codex 已退出登录，有 1 条消息在等它。",
    serves="又可以用了",
)


class Month:
    """One user and one product; a mind is there from the last day on."""

    def __init__(self, words: Words, folder: Path) -> None:
        self.words, self.files, self.clock = words, Files(MemoryDisk()), FakeClock(START)
        self.files.make_folders()
        oracle = Oracle()
        self.mind, shell = Mind(oracle.runs), Mind(oracle.runs)
        self.mind.name, shell.name = "codex", "command"
        self.mind.waiting = EngineAbsence("no such program", "missing")
        settings = Settings(timezone="UTC")
        code = BuiltinEngine(is_program=lambda _: False, summarise=summarise_prompt)
        self.search = MemorySearch(
            self.files,
            workspace=None,
            index=open_index(self.files, folder),
            zone=settings.zone,
            clock=self.clock,
        )
        self.product = Product(
            self.files,
            self.clock,
            self.mind,
            settings=settings,
            more_engines=(code, shell),
            search=self.search,
        )
        self.product.start()
        self.client = Client(self.product, oracle)
        self.count = 0

    def ask(self, text: str) -> str:
        """Say something; what is answered."""
        self.say(text)
        self.product.idle()
        page = self.product.store.conversation.messages
        return next(m.text for m in reversed(page) if f"m{self.count}" in m.in_reply_to)

    def say(self, text: str) -> None:
        self.count += 1
        self.client.say(f"m{self.count}", text, locale=self.words.language)

    def at(self, seconds: float) -> None:
        """Live on up to this time from the start."""
        self.client.at(seconds)
        self.product.idle()

    def told(self, what: str = "") -> list[str]:
        """What code told, as far as it says this."""
        said = transcript(self.files)
        return [text for role, text in said if role == "system" and what in text]

    def end_triggers(self) -> None:
        """All but the reminder are removed."""
        for name in self.files.names(paths.TRIGGERS):
            if loaded(self.files, f"{paths.TRIGGERS}/{name}")["profile"] != "reminder":
                self.client.order(f"end-{name}", "trigger_remove", name.removesuffix(".json"))
        self.product.idle()

    def chat(self, day: int, lines: int, dice: random.Random) -> None:
        """What else is said on one day, of which nothing is to be kept in mind."""
        now = START + timedelta(days=day)
        self.product.store.conversation.add(
            Message(
                id=f"chat-{day}-{number}",
                role=("user", "agent")[number % 2],
                text=dice.choice(self.words.chatter).format(n=number, m=dice.randrange(60)),
                created_at=now + timedelta(seconds=number),
            )
            for number in range(lines)
        )


@pytest.fixture
def month(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Month]:
    made = Month(request.param, tmp_path)
    yield made
    made.search.close()


@pytest.mark.slow
@pytest.mark.timeout(0)  # work for a processor: how long it takes is the machine's business
@pytest.mark.parametrize("month", [EN, ZH], ids=["en", "zh"], indirect=True)
def test_what_was_agreed_on_the_first_day_holds_on_the_last(month: Month) -> None:
    words = month.words
    month.ask(words.remember.format(note=words.note))
    month.ask(words.remind)
    _chains_are_told_once(month)
    _commands_are_told_as_agreed(month)
    for day in (1, 2):
        month.at(day * DAY + HOUR)
    assert month.told(words.reminder) == [words.reminder] * 3
    dice = random.Random(words.language)
    for day in range(3, 30):
        month.chat(day, LINES // 27 + 1, dice)
        month.at(day * DAY + HOUR)
        assert transcript(month.files)[-1] == ("system", words.reminder)
    assert {result(month.files, id_).status for id_ in _summaries(month)} == {"done"}
    assert words.note in month.ask(words.question)
    _a_mind_is_waited_for(month)


def _summaries(month: Month) -> list[str]:
    """The runs that summed old days up."""
    ended = ((id_, loaded(month.files, paths.ended("worker", id_))) for id_ in results(month.files))
    return [id_ for id_, task in ended if task["covers"]]


def _commands_are_told_as_agreed(month: Month) -> None:
    words = month.words
    assert words.on_change in month.ask(words.minutely)
    began = (month.clock.now() - START).total_seconds()
    for minute in (1, 2, 3):
        month.at(began + 60 * minute)
    assert len(month.told("uptime")) == 1, "its output was the same"
    assert len([end for end in results(month.files).values() if end == "done"]) == 3 + _DONE
    month.end_triggers()
    assert words.each in month.ask(words.hourly)
    month.ask(words.failing)
    month.at(HOUR)  # the reminder's time
    for hour in (1, 2, 3, 4):
        month.at(began + (hour + 0.1) * HOUR)
    assert len(month.told("date")) == 4, "told each time, though its output was the same"
    (paused,) = month.told(words.in_a_row)
    assert "bad" in paused
    month.end_triggers()


def _chains_are_told_once(month: Month) -> None:
    words = month.words
    for number, prompt in enumerate(("one", "bad")):
        before = len(month.told())
        now = month.clock.now()
        facts = {"title": "one", "profile": "command", "not_before": now + timedelta(minutes=2)}
        month.client.submit(f"chain-{number}", prompt, **facts)
        for sentence in words.steps:
            month.ask(sentence)
        assert len(month.told()) == before
        month.clock.advance(120)
        month.product.idle()
        (message,) = month.told()[before:]
        assert (words.lost in message) == (prompt == "bad")


def _a_mind_is_waited_for(month: Month) -> None:
    words, said = month.words, month.told
    month.mind.waiting = None
    month.clock.advance(10)
    assert month.ask("hello") == "heard hello"
    month.mind.waiting = EngineAbsence("codex is not logged in: run `codex login`", "logged_out")
    month.say(words.talk)
    for _ in range(60):
        month.product._pass()
        month.clock.advance(1)
    assert transcript(month.files)[-1] == ("system", said(words.waits)[0])
    assert len(said(words.waits)) == 1
    month.mind.waiting = None
    for _ in range(60):
        month.product._pass()
        month.clock.advance(1)
    assert ("agent", f"heard {words.talk}") in transcript(month.files)
    assert len(said(words.serves)) == 1
