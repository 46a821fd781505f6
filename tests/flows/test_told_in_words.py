"""A user without a model sets work up in plain sentences, and hears of it as was agreed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from mimikit.config import Settings
from mimikit.conversation import history
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.language.phrases import Language
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Message
from tests.crash.driver import Client
from tests.crash.oracle import Oracle
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START, Product
from tests.support.reading import loaded, results
from tests.support.twins import FakeClock


class Talk:
    """A conversation with the engine `builtin`; commands are carried out by a mind of the tests."""

    def __init__(self, language: Language) -> None:
        files = Files(MemoryDisk())
        files.make_folders()
        oracle = Oracle()
        self.shell = Mind(oracle.runs)
        self.shell.name = "command"
        self.product = Product(
            files,
            FakeClock(START),
            BuiltinEngine(is_program=lambda _: False),
            settings=Settings(timezone="UTC"),
            more_engines=(self.shell,),
        )
        self.product.start()
        self.client, self.files, self.locale = Client(self.product, oracle), files, language
        self.count = 0

    def ask(self, text: str) -> str:
        """Say something; what is answered."""
        self.count += 1
        self.client.say(f"m{self.count}", text, locale=self.locale)
        self.product.idle()
        replies = [m for m in self._messages() if f"m{self.count}" in m.in_reply_to]
        return replies[-1].text

    def at(self, seconds: float) -> list[str]:
        """What code tells of work up to then, from the start."""
        self.client.at(seconds)
        self.product.idle()
        return self.told()

    def told(self) -> list[str]:
        return [m.text for m in self._messages() if m.role == "system"]

    def _messages(self) -> list[Message]:
        return history.page(self.files, limit=1000).messages

    @property
    def trigger_id(self) -> str:
        (name,) = self.files.names(paths.TRIGGERS)
        return name.removesuffix(".json")


@dataclass(frozen=True)
class Words:
    language: Language
    hourly: str
    minutely: str
    each: str
    on_change: str
    steps: tuple[str, str]
    lost: str
    failing: str
    only_failure: str
    in_a_row: str
    resume: str


EN = Words(
    "en",
    "every hour: run: date",
    "every minute: run: date",
    "I'll tell you each time it has run.",
    "I'll tell you when the output changes, and when it fails.",
    ("after one: run: two", "after two: run: three"),
    "What waited for it will not run: `two`, `three`.",
    "every hour: run: bad, only tell me if it fails",
    "I'll tell you only if it fails.",
    "It failed the same way 3 times in a row",
    "resume",
)
ZH = Words(
    "zh",
    "每小时运行：date",
    "每分钟运行：date",
    "每次运行后我都会告诉你。",
    "输出有变化或失败时我会告诉你。",
    ("one 完成后运行：two", "two 完成后运行：three"),
    "等它完成的步骤不会再运行：`two`、`three`。",
    "每小时运行：bad，只有失败才告诉我",
    "只有失败时我才会告诉你。",
    "它已经连续 3 次以同样的方式失败",
    "恢复",
)
both = pytest.mark.parametrize("words", [EN, ZH], ids=["en", "zh"])


@both
def test_an_hourly_command_is_told_each_time(words: Words) -> None:
    talk = Talk(words.language)
    assert words.each in talk.ask(words.hourly)
    assert [len(talk.at(3600 * hour)) for hour in (1, 2, 3)] == [1, 2, 3]


@both
def test_a_minutely_command_is_told_when_its_output_changes_and_the_answer_says_so(
    words: Words,
) -> None:
    talk = Talk(words.language)
    assert words.on_change in talk.ask(words.minutely)
    assert [len(talk.at(60 * minute)) for minute in (1, 2, 3)] == [1, 1, 1]
    talk.client.order("o1", "trigger_edit", talk.trigger_id, prompt="another")
    assert [len(talk.at(60 * minute)) for minute in (4, 5)] == [2, 2]


@both
@pytest.mark.parametrize("breaks", [False, True])
def test_a_chain_of_three_is_told_once(words: Words, breaks: bool) -> None:
    talk = Talk(words.language)
    later, prompt = START + timedelta(hours=1), "bad" if breaks else "one"
    talk.client.submit("t1", prompt, title="one", profile="command", not_before=later)
    for sentence in words.steps:
        talk.ask(sentence)
    assert talk.told() == []
    talk.at(3600)
    (message,) = talk.told()
    assert (words.lost in message) == breaks
    assert sorted(set(results(talk.files).values())) == (
        ["canceled", "failed"] if breaks else ["done"]
    )


@both
def test_three_failures_pause_a_command_and_a_word_lets_it_go_on(words: Words) -> None:
    talk = Talk(words.language)
    assert words.only_failure in talk.ask(words.failing)
    told = [len(talk.at(3600 * hour)) for hour in (1, 2, 3, 4, 5)]
    assert told == [1, 2, 3, 3, 3]
    (broken,) = [text for text in talk.told() if words.in_a_row in text]
    id_ = talk.trigger_id
    assert f"`{words.resume} {id_}`" in broken
    assert loaded(talk.files, paths.trigger(id_))["enabled"] is False
    talk.shell.heals = True
    talk.ask(f"{words.resume} {id_}")
    assert loaded(talk.files, paths.trigger(id_))["enabled"] is True
    assert len(talk.at(3600 * 7)) == 3
    assert len(results(talk.files)) == 4
