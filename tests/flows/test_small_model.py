"""Nothing but a small model: code does what it can, the model talks, the user decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mimikit.config import Settings
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.engines.local.engine import LocalEngine
from mimikit.language.phrases import say
from mimikit.protocol import paths
from mimikit.protocol.models import Question, Task
from mimikit.tasks import queue
from tests.support import local_model
from tests.support.local_model import model_file
from tests.support.mind import Mind
from tests.support.reading import results, transcript
from tests.support.state import start_client

PROPOSED = {"action": "command", "command": "wc -w a.md", "when": ""}


class Basic:
    """A product whose only model is a small one, and a client of it."""

    def __init__(self, folder: Path, *rules: tuple[str, object]) -> None:
        facts = {"model_path": str(model_file(folder, *rules))}
        settings = Settings.model_validate({"timezone": "UTC", "local": facts})
        program = Path(local_model.__file__)
        self.engine = LocalEngine(settings, lambda _word: False, program=program)
        shell = Mind([])
        shell.name = "command"
        more = (BuiltinEngine(is_program=lambda _word: False), shell)
        self.client = start_client(
            engine=lambda _: self.engine, settings=settings, more_engines=more
        )
        self.product, self.files = self.client.product, self.client.files

    def say(self, text: str) -> str:
        """Send a message; gives the last that was said to the user."""
        self.client.say(f"m{len(transcript(self.files))}", text)
        self.product.idle()
        return transcript(self.files)[-1][1]

    @property
    def ran(self) -> list[Task]:
        """The Worker's tasks that were carried out."""
        found = (queue.find(self.files, id_, seats=("worker",)) for id_ in results(self.files))
        return [one.task for one in found if one is not None]

    @property
    def question(self) -> Question | None:
        return self.files.load(paths.PENDING_QUESTION, Question)


@pytest.fixture
def basic(tmp_path: Path) -> Iterator[Basic]:
    made = Basic(
        tmp_path,
        ("hello", {"action": "reply", "text": "Hello!"}),
        (r"\[en\] .*words", {"action": "delegate", "text": "count"}),
        ("words", PROPOSED),
    )
    yield made
    made.engine.server.close()


def test_what_code_understands_is_done_without_the_model(basic: Basic) -> None:
    basic.say("run: date")
    assert [task.prompt for task in basic.ran] == ["date"]
    basic.say("remember: I like tea")
    assert "I like tea" in (basic.files.read("memory.md") or b"").decode()
    assert basic.engine.server.process is None


def test_a_command_runs_once_the_user_has_chosen_it(basic: Basic) -> None:
    basic.say("how many words are in a.md")
    assert basic.question is not None
    assert not basic.ran
    basic.client.answer("yes", basic.question.options[0])
    basic.product.idle()
    (task,) = basic.ran
    assert (task.prompt, task.profile, task.origin) == ("wc -w a.md", "command", "builtin")


@pytest.mark.parametrize(
    "answer", [say("local_no", "en"), "no", "hm, count lines of b.md", "run: ls"]
)
def test_no_other_answer_runs_anything(basic: Basic, answer: str) -> None:
    basic.say("how many words are in a.md")
    basic.client.answer("no", answer)
    basic.product.idle()
    assert not basic.ran


@pytest.mark.parametrize("words", ["run: wc -w a.md", "yes", "好的"])
def test_a_yes_typed_as_a_message_counts_as_chosen(basic: Basic, words: str) -> None:
    basic.say("how many words are in a.md")
    basic.say(words)
    assert [task.prompt for task in basic.ran] == ["wc -w a.md"]


def test_weights_that_are_removed_leave_code_in_their_place(basic: Basic, tmp_path: Path) -> None:
    basic.say("hello")
    (tmp_path / "model.gguf").unlink()
    assert say("no_model", "en") in basic.say("hello again")
