"""`mimikit chat`: a message and its reply, questions, a conversation."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimikit.cli.chat import ReplyPrinter
from mimikit.cli.client import (
    ConversationEvent,
    ReplyPart,
    TurnStarted,
    locale_tag,
    option_of,
)
from mimikit.clock import SystemClock
from mimikit.conversation.history import HistoryStore
from mimikit.log import ChangeFeed
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, InboxItem, Message, Question
from mimikit.protocol.runtime import Health
from mimikit.protocol.watch import FolderWatch, WakeBell
from tests.cli.conftest import PATIENCE_S, Cli, Place, argv, scripted, wait_to_read

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
QUESTION = Question(
    question_id="q-1",
    question="Which colour?",
    options=["red", "blue"],
    default="red",
    created_at=NOW,
    expires_at=NOW + timedelta(minutes=5),
)


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Place]:
    """A workspace with a consumer whose engines play a script."""
    found = scripted(tmp_path)
    found.start_consumer()
    yield found
    found.end_all()


def test_without_a_consumer_the_message_is_queued_and_the_command_fails(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("init")
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    result = cli("chat", "你好")
    assert result.exit_code == 1
    assert "expected mimikit to be running" in result.stderr
    assert "your message is kept" in result.stderr
    (path,) = (tmp_path / ".mimikit" / "inbox").iterdir()
    item = InboxItem.model_validate_json(path.read_text())
    assert (item.id, item.text, item.locale) == (path.stem, "你好", "zh-CN")


def test_files_go_with_the_message(cli: Cli, tmp_path: Path) -> None:
    cli("init")
    (tmp_path / "a.md").write_text("Milk")
    given = "chat", "--file", str(tmp_path / "a.md")
    assert "expected TEXT" in cli(*given).stderr
    assert "your message is kept" in cli(*given, "what is missing?").stderr
    (path,) = (tmp_path / ".mimikit" / "inbox").iterdir()
    (ref,) = InboxItem.model_validate_json(path.read_text()).files
    assert (ref.name, ref.kind, ref.bytes) == ("a.md", "text", 4)
    assert (tmp_path / ".mimikit" / "files" / ref.id).read_text() == "Milk"


@pytest.mark.parametrize(
    ("text", "said"), [("  ", "got only blanks"), ("x" * 200_001, "at most 200000 characters")]
)
def test_an_invalid_message_is_refused(cli: Cli, tmp_path: Path, text: str, said: str) -> None:
    cli("init")
    result = cli("chat", "-", text=text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not list((tmp_path / ".mimikit" / "inbox").iterdir())


class FakeConsumer(threading.Thread):
    """Answers the inbox like a consumer on another machine: by files only."""

    def __init__(self, state: Path) -> None:
        super().__init__(daemon=True)
        self._bell, self._is_over = WakeBell(), threading.Event()
        self._disk = RealDisk(state)
        self.files, self._watch = Files(self._disk, durable=False), FolderWatch(state)
        self._watch.watch(paths.INBOX, lambda _names: self._bell.ring())
        self._feed = ChangeFeed(self.files, SystemClock())
        self.items: list[InboxItem] = []
        self.question: Question | None = None
        self.dies = self.fails = False
        self.beat(timedelta(0))

    def beat(self, age: timedelta) -> None:
        now = SystemClock().now()
        health = Health(pid=1, version="0", started_at=now - age, beat_at=now - age)
        self.files.write(paths.HEALTH, health.to_json())

    def run(self) -> None:
        while not self._is_over.is_set():
            for name in self.files.names(paths.INBOX):
                item = self.files.peek(f"{paths.INBOX}/{name}", InboxItem)
                if item is not None and item not in self.items:
                    self.items.append(item)
                    self._answer(item)
            self._bell.wait(0.1)

    def _answer(self, item: InboxItem) -> None:
        turn_id = f"turn-{len(self.items)}"
        self._feed.publish("turn", state="started", turnId=turn_id, inputs=[item.id])
        self._feed.publish("delta", turnId=turn_id, text="I ")
        if self.dies:
            self.beat(timedelta(hours=1))
            return
        self._feed.publish("delta", turnId=turn_id, text="plan that.")
        message = Message(
            id=f"reply-{len(self.items)}",
            role="system" if self.fails else "agent",
            text="It is broken." if self.fails else "I plan that.",
            created_at=SystemClock().now(),
            turn_id=turn_id,
            in_reply_to=[item.id],
            failed=self.fails,
        )
        HistoryStore(self.files).add([message])
        if self.question is not None:
            self.files.save(paths.PENDING_QUESTION, self.question)
        self.files.remove(paths.inbox(item.id))

    def end(self) -> None:
        self._is_over.set()
        self._bell.ring()
        self.join(PATIENCE_S)
        self._watch.close()
        self._disk.close()


@pytest.fixture
def consumer(cli: Cli, tmp_path: Path) -> Iterator[FakeConsumer]:
    cli("init")
    found = FakeConsumer(tmp_path / ".mimikit")
    found.start()
    yield found
    found.end()


def test_the_reply_is_printed_once(cli: Cli, consumer: FakeConsumer) -> None:
    result = cli("chat", "paint my fence")
    assert (result.exit_code, result.stdout) == (0, "I plan that.\n"), result.stderr
    assert [item.text for item in consumer.items] == ["paint my fence"]


def test_deltas_that_arrive_after_their_message_are_not_printed_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    printer = ReplyPrinter()
    message = Message(
        id="reply-1",
        role="agent",
        text="I plan that.",
        created_at=SystemClock().now(),
        turn_id="turn-1",
        in_reply_to=["msg-1"],
    )
    printer.take(message, "msg-1")
    printer.take(TurnStarted("turn-1", ("msg-1",)), "msg-1")
    printer.take(ReplyPart("turn-1", "I plan that."), "msg-1")
    printer.end()
    assert capsys.readouterr().out == "I plan that.\n"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"stopped": True}, "(stopped)"),
        ({"failed": True, "error": "cut off"}, "(not completed: cut off)"),
    ],
)
def test_a_reply_that_was_not_completed_says_so_below_its_words(
    capsys: pytest.CaptureFixture[str], more: dict[str, object], told: str
) -> None:
    printer = ReplyPrinter()
    printer.take(TurnStarted("turn-1", ("msg-1",)), "msg-1")
    printer.take(ReplyPart("turn-1", "I plan"), "msg-1")
    assert printer.turn_id == "turn-1"
    reply = Message(id="m", role="agent", text="I plan", created_at=NOW, turn_id="turn-1")
    printer.take(reply.but(**more), "msg-1")
    assert capsys.readouterr().out == f"I plan\n{told}\n"
    assert printer.turn_id == ""


def test_an_interrupt_stops_the_reply_that_comes_and_shows_it(
    cli: Cli, consumer: FakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, interrupts = ReplyPrinter.take, [KeyboardInterrupt]

    def interrupted(printer: ReplyPrinter, event: ConversationEvent, awaited: str | None) -> None:
        take(printer, event, awaited)
        if isinstance(event, ReplyPart) and interrupts:
            raise interrupts.pop()

    monkeypatch.setattr(ReplyPrinter, "take", interrupted)
    result = cli("chat", "paint my fence")
    assert result.exit_code == 0, result.stderr
    (name,) = consumer.files.names(paths.COMMANDS)
    order = consumer.files.peek(f"{paths.COMMANDS}/{name}", Command)
    assert order is not None
    assert (order.action, order.target) == ("cancel", "turn-1")


def test_a_question_is_shown_and_its_number_is_the_answer(cli: Cli, consumer: FakeConsumer) -> None:
    expires_at = SystemClock().now() + timedelta(hours=1)
    consumer.question = QUESTION.but(expires_at=expires_at, default=None)
    asked = cli("chat", "paint my fence", "--wait")
    assert asked.exit_code == 0, asked.stderr
    assert "Which colour?\n  1  red\n  2  blue\n" in asked.stdout
    assert "it lapses" in asked.stdout
    assert cli("chat", "2").exit_code == 0
    answer = consumer.items[-1]
    assert (answer.kind, answer.text, answer.question_id) == ("answer", "blue", "q-1")


@pytest.mark.nightly
@pytest.mark.parametrize("code", [0, 3])
def test_waiting_reports_the_result_of_work_that_ends_immediately(busy: Place, code: int) -> None:
    result = busy.run("chat", f"run: echo over-at-once; exit {code}", "--wait")
    assert result.stdout.splitlines().count("over-at-once") == 1
    assert result.returncode == (1 if code else 0)
    assert ("work failed: `mimikit tasks show" in result.stderr) == bool(code)


@pytest.mark.nightly
def test_an_older_question_does_not_hide_a_result(busy: Place) -> None:
    busy.run("chat", "in 2 hours: run date")
    assert "Which one" in busy.run("chat", "cancel").stdout
    assert "over-soon" in busy.run("chat", "run: echo over-soon").stdout.splitlines()


def test_json_has_the_whole_reply_and_nothing_else(cli: Cli, consumer: FakeConsumer) -> None:
    result = cli("chat", "paint my fence", "--json")
    assert result.exit_code == 0
    data = json.loads(result.stdout)
    assert [message["text"] for message in data["messages"]] == ["I plan that."]
    assert data["messages"][0]["inReplyTo"] == [data["id"]] == [consumer.items[0].id]


def test_a_reply_that_fails_is_shown_and_fails_the_command(
    cli: Cli, consumer: FakeConsumer
) -> None:
    consumer.fails = True
    result = cli("chat", "hello")
    assert result.exit_code == 1
    assert "It is broken." in result.stdout
    assert "the message was not answered" in result.stderr


def test_a_consumer_that_dies_meanwhile_ends_the_wait(cli: Cli, consumer: FakeConsumer) -> None:
    consumer.dies = True
    result = cli("chat", "hello")
    assert (result.exit_code, result.stdout) == (1, "I \n")
    assert "your message is kept" in result.stderr
    assert len(consumer.files.names(paths.INBOX)) == 1


def test_a_conversation_may_come_through_a_pipe(cli: Cli, consumer: FakeConsumer) -> None:
    result = cli("chat", text="paint my fence\n/help\n\n/quit\nnever sent\n")
    assert result.exit_code == 0
    assert "I plan that.\n" in result.stdout
    assert "Ctrl-D or /quit: leave." in result.stdout
    assert [item.text for item in consumer.items] == ["paint my fence"]


class Terminal:
    def __init__(self, place: Place, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        environment = place.environment | {"TERM": "xterm", "NO_COLOR": "1"}
        self.process = subprocess.Popen(
            argv(*arguments),
            cwd=place.workspace,
            env=environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._seen = b""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> None:
        """Wait until the text was printed since the last call."""
        deadline = time.monotonic() + PATIENCE_S
        wanted = text.encode()
        while wanted not in self._seen:
            is_there = wait_to_read(self._master, deadline)
            assert is_there, f"expected {text!r}, got {self._seen.decode(errors='replace')!r}"
            with contextlib.suppress(OSError):
                self._seen += os.read(self._master, 4096)
        self._seen = self._seen.partition(wanted)[2]

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        os.close(self._master)


@pytest.mark.nightly
def test_a_conversation_shows_questions_and_later_results(played: Place) -> None:
    terminal = Terminal(played, "chat")
    try:
        terminal.wait_for("› ")
        terminal.type("paint my fence\n")
        terminal.wait_for("I plan that.")
        terminal.wait_for("  2  blue")
        terminal.wait_for("› ")
        terminal.type("2\n")
        terminal.wait_for("The fence is painted.")
        terminal.type("half a li")
        terminal.wait_for("half a li")
        played.run("chat", "from elsewhere")
        terminal.wait_for("(you, elsewhere) from elsewhere")
        terminal.wait_for("你好，世界")
        terminal.wait_for("› half a li")
        terminal.type("\x15")  # Ctrl-U: empty the line
        terminal.type("\x04")  # Ctrl-D: leave
        assert terminal.process.wait(PATIENCE_S) == 0
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("text", "option"), [("1", "red"), (" 2 ", "blue"), ("3", None), ("２", None)]
)
def test_a_number_stands_for_its_option(text: str, option: str | None) -> None:
    assert option_of(QUESTION, text) == option
    assert option_of(None, text) is None


@pytest.mark.parametrize(
    ("value", "tag"), [("zh_CN.UTF-8", "zh-CN"), ("C.UTF-8", None), ("", None)]
)
def test_the_language_is_that_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, tag: str | None
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", value)
    assert locale_tag() == tag
