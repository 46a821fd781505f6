"""What a sentence made known, a sentence takes back."""

from __future__ import annotations

import pytest

from mimikit.config import Settings
from mimikit.engines.builtin.engine import BuiltinEngine
from mimikit.memory import markdown, notes
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import ForgottenNote, RememberedNote
from mimikit.protocol.triggers import Trigger
from tests.crash.driver import Client
from tests.support.memory_disk import MemoryDisk
from tests.support.mind import Mind
from tests.support.product import START
from tests.support.reading import transcript
from tests.support.state import start_client


@pytest.fixture
def client() -> Client:
    shell = Mind([])
    shell.name = "command"
    return start_client(
        engine=lambda _: BuiltinEngine(is_program=lambda _word: False),
        settings=Settings.model_validate({"timezone": "Asia/Shanghai"}),
        more_engines=(shell,),
    )


def ask(client: Client, *texts: str) -> str:
    for text in texts:
        client.say(f"msg-{len(transcript(client.product.files))}", text)
        client.product.idle()
    return next(
        said for role, said in reversed(transcript(client.product.files)) if role == "agent"
    )


def kept(client: Client) -> str:
    return (client.product.files.read("memory.md") or b"").decode()


@pytest.mark.parametrize(
    ("remembered", "sentence"),
    [
        ("remember: I live in Rome", "forget that I live in Rome"),
        ("remember: the user lives in Rome", "forget I live in Rome"),
        ("remember that my city is Rome", "please forget everything about Rome"),
        ("记住：我住在罗马", "忘掉我住在罗马"),
        ("记住：用户住在罗马", "忘记我住在罗马吧"),
        ("记住：我住在罗马", "把罗马这件事忘掉"),
    ],
)
def test_a_sentence_forgets_what_one_made_remembered(
    client: Client, remembered: str, sentence: str
) -> None:
    ask(client, remembered, "remember: tea is green")
    reply = ask(client, sentence)
    assert "forgotten" in reply or "已经忘掉" in reply
    assert [note.text for note in markdown.notes_in(kept(client))] == ["tea is green"]
    assert "history/" in reply, "the conversation still has it, and the reply says so"


def test_of_several_notes_it_asks_and_takes_the_id(client: Client) -> None:
    ask(client, "remember: Anna lives in Rome", "remember: the office is in Rome")
    reply = ask(client, "forget Rome")
    assert "More than one note" in reply
    assert "Anna lives in Rome" in reply
    assert len(markdown.notes_in(kept(client))) == 2
    note = markdown.notes_in(kept(client))[0]
    assert "forgotten: Anna" in ask(client, f"forget {note.id}")
    assert "No note of mine" in ask(client, "forget that pigs fly")
    ask(client, "remember: the office is in Rome")
    ask(client, "forget Rome")
    assert markdown.notes_in(kept(client)) == [], "a note that was made twice is one"


def test_users_own_lines_are_forgotten_and_all_else_stays() -> None:
    files = Files(MemoryDisk())
    files.make_folders()
    files.write("memory.md", b"# Mine\n\n- I live in Rome\n- I like tea\n\nA sentence.\n")
    note = RememberedNote(id="mem-1", content="two\nlines", long_term=True)
    notes.remember(files, note, START)
    for what in ("I live in Rome", "two\nlines"):
        (found,) = notes.find_notes(files, what)
        notes.forget(files, found)
        notes.forget(files, found)  # a replay
    assert (files.read("memory.md") or b"").rstrip() == b"# Mine\n\n- I like tea\n\nA sentence."
    notes.forget(files, ForgottenNote(path="memory/2026-01-01.md", content="none"))
    assert files.read("memory/2026-01-01.md") is None


@pytest.mark.parametrize(("answer", "left"), [("2", ["ls"]), ("date", ["ls"]), ("all", [])])
def test_what_is_scheduled_is_canceled_by_a_choice_of_titles(
    client: Client, answer: str, left: list[str]
) -> None:
    assert "Which one" in ask(
        client, "every 2 hours run: date", "every 3 hours run: ls", "delete all"
    )
    assert "canceling" in ask(client, answer)
    files = client.product.files
    assert [trigger.title for trigger in files.load_all(paths.TRIGGERS, Trigger)] == left
    assert files.read(paths.PENDING_QUESTION) is None
