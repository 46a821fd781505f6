"""Notifications outside the chat: what is sent when, merged how, and never lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from mimikit.cli import doctor
from mimikit.config import Settings
from mimikit.engine_settings import NotifySettings
from mimikit.notifications import DeliveryReport
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Task
from mimikit.protocol.notify import ChannelQueue, Notice, NoticeKind, NotificationState
from mimikit.protocol.results import TaskResult
from mimikit.protocol.triggers import EndIntent
from mimikit.roles.run import LiveRuns
from mimikit.supervisor.notifier import (
    LONGEST_BACK_OFF,
    MAX_MERGED,
    Notifier,
    after_report,
    message_of,
    next_batch,
)
from mimikit.supervisor.run_end import notice_kind
from mimikit.supervisor.store import Store
from tests.crash.driver import Client
from tests.support.memory_disk import Crash, MemoryDisk
from tests.support.product import START, NoisyLog
from tests.support.twins import FakeClock

SENT = DeliveryReport(outcome="sent")
FAILED, UNKNOWN = (DeliveryReport(outcome=o, error="no route") for o in ("failed", "unknown"))


class InPlace(Executor):
    """Runs what is submitted at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class World:
    """What arrives outside; `reports` are given for the next messages, then they arrive."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str, str]] = []
        self.reports: list[DeliveryReport] = []
        self.down: set[str] = set()

    def send(self, _files: Files, name: str, title: str, text: str) -> DeliveryReport:
        report = self.reports.pop(0) if self.reports else FAILED if name in self.down else SENT
        if report.outcome == "sent":
            self.messages.append((name, title, text))
        return report

    @property
    def titles(self) -> list[str]:
        return [title for _, title, _ in self.messages]


def notice(kind: NoticeKind, ago_s: float = 0, id_: str = "") -> Notice:
    at = START - timedelta(seconds=ago_s)
    return Notice(id=id_ or f"{kind}-{ago_s:g}", kind=kind, at=at, title=f"{kind} {ago_s:g}")


@pytest.mark.parametrize(
    ("waiting", "more", "quiet", "expected"),
    [
        ([("failed", 0)], {}, False, ["failed-0"]),
        ([("canceled", 0), ("breaker", 0)], {}, False, ["canceled-0", "breaker-0"]),
        ([("done", 4)], {}, False, None),
        ([("done", 5), ("done", 1)], {}, False, ["done-5", "done-1"]),
        ([("done", 4), ("failed", 0)], {}, False, ["failed-0"]),
        ([("failed", 9), ("reminder", 0), ("question", 0)], {}, False, ["reminder-0"]),
        ([("done", -60)], {}, False, ["done--60"]),  # the clock was set back
        ([("failed", 0)], {"sent_at": START - timedelta(seconds=1)}, False, None),
        ([("failed", 0)], {"sent_at": START - timedelta(seconds=1.5)}, False, ["failed-0"]),
        ([("failed", 0)], {"sent_at": START + timedelta(hours=1)}, False, ["failed-0"]),
        ([("failed", 0)], {"retry_at": START + timedelta(seconds=1)}, False, None),
        ([("failed", 0)], {"retry_at": START + timedelta(hours=1)}, False, ["failed-0"]),
        ([("failed", 9), ("breaker", 9), ("done", 9)], {}, True, None),
        ([("failed", 9), ("question", 9)], {}, True, ["question-9"]),
        ([("failed", 0), ("done", 0)], {"in_flight": ["done-0"]}, False, ["done-0"]),
        ([("failed", 0)], {"in_flight": ["gone"]}, False, ["failed-0"]),
        ([], {}, False, None),
    ],
)
def test_what_is_sent_now(
    waiting: list[tuple[NoticeKind, float]],
    more: dict[str, Any],
    quiet: bool,
    expected: list[str] | None,
) -> None:
    channel = ChannelQueue(waiting=[notice(kind, ago) for kind, ago in waiting], **more)
    batch = next_batch(channel, START, is_quiet=quiet)
    assert [one.id for one in batch] == (expected or [])


def test_a_failing_channel_backs_off_and_is_given_up_after_a_day() -> None:
    channel = ChannelQueue(waiting=[notice("failed")], in_flight=["failed-0"])
    now, waits = START, list[float]()
    while channel.waiting:
        channel = after_report(channel, FAILED, now, again=False)
        assert channel.in_flight == []
        if channel.retry_at:
            waits.append((channel.retry_at - now).total_seconds())
            now = channel.retry_at
    assert waits[:4] == [10, 20, 40, 80]
    assert max(waits) == LONGEST_BACK_OFF.total_seconds()
    assert timedelta(days=1) <= now - START < timedelta(days=1, minutes=15)
    assert channel.error == "1 notifications were given up: no route"
    assert after_report(channel, SENT, now, again=False) == ChannelQueue(sent_at=now)


def test_what_may_have_arrived_stays_marked_until_it_arrives() -> None:
    channel = ChannelQueue(waiting=[notice("done")], in_flight=["done-0"])
    for report, again in ((UNKNOWN, False), (FAILED, True), (UNKNOWN, True)):
        channel = after_report(channel, report, START, again=again)
        assert channel.in_flight == ["done-0"]


def test_words_of_a_message() -> None:
    many = [notice("failed", number) for number in range(MAX_MERGED + 2)]
    title, text = message_of(many, again=True)
    assert title == "12 messages of mimikit (again)"
    assert text.splitlines()[::10] == ["failed 0", "… and 2 more"]
    zh = notice("failed").but(title="失败：备份", text="exit code 3", language="zh")
    assert message_of([zh], again=True) == ("失败：备份（重复）", "exit code 3")


@pytest.mark.parametrize(
    ("facts", "status", "end", "expected"),
    [
        ({}, "failed", {"told": "teller"}, "failed"),
        ({}, "canceled", {"told": "message"}, "canceled"),
        ({}, "failed", {"told": None}, None),
        ({}, "failed", {"told": "message", "trips": True}, "breaker"),
        ({}, "done", {"told": "teller"}, None),
        ({"seconds": 60}, "done", {"told": "teller"}, "done"),
        ({"profile": "specialist"}, "done", {"told": "teller"}, "done"),
        ({"profile": "deferred", "seconds": 90}, "done", {"told": "message"}, None),
        ({"profile": "specialist", "internal": True}, "done", {"told": "message"}, None),
        ({"profile": "reminder"}, "done", {"told": "message"}, "reminder"),
    ],
)
def test_what_of_a_tasks_end_is_sent(
    facts: dict[str, Any], status: Any, end: dict[str, Any], expected: NoticeKind | None
) -> None:
    seconds = facts.pop("seconds", 59)
    task = Task(id="t1", prompt="x", created_at=START, trace_id="t", **facts)
    until = START + timedelta(seconds=seconds)
    result = TaskResult.of(task, status, attempts=1, started_at=START, completed_at=until)
    assert notice_kind(task, result, EndIntent(**end)) == expected


@pytest.mark.parametrize(
    ("quiet", "clock", "expected"),
    [
        ("22:00-08:00", "23:30", True), ("22:00-08:00", "07:59", True),
        ("22:00-08:00", "08:00", False), ("22:00-08:00", "21:59", False),
        ("12:00-14:00", "13:00", True), ("12:00-14:00", "14:00", False), ("", "03:00", False),
    ],
)  # fmt: skip
def test_quiet_hours(quiet: str, clock: str, expected: bool) -> None:
    assert NotifySettings(quiet=quiet).is_quiet(time.fromisoformat(clock)) == expected


# ---- the loop


def set_up(files: Files, *names: str) -> None:
    for name in names:
        files.write(paths.channel(name), b"json://127.0.0.1/secret\n")


def begin(client: Client, *names: str) -> World:
    """Add channels to a product; their messages arrive in the world that is given back."""
    world, notifier = World(), client.product.consumer.notifier
    notifier._executor, notifier._send = InPlace(), world.send
    set_up(client.files, *names)
    client.product.tick()
    return world


def wait(client: Client, *seconds: float) -> None:
    for one in seconds:
        client.product.clock.advance(one)
        client.product.idle()


def test_events_are_sent_by_kind_from_the_moment_a_channel_is_added(client: Client) -> None:
    client.submit("old", "bad old")
    client.product.idle()
    world = begin(client, "phone")
    client.submit("t1", "quick")
    client.submit("t2", "bad build", title="build")
    client.submit("t3", "bad secret", notify="none")
    client.say("m1", "ask: Which colour? | default")
    client.trigger("g1", 60, "喝水", profile="reminder")
    client.product.idle()
    wait(client, 2, 60, 2)
    assert world.messages == [
        ("phone", "Question", "Which colour?"),
        ("phone", "Failed: build", "it broke"),
        ("phone", "提醒", "喝水"),
    ]
    for name in client.files.names(paths.ROOT, suffix=""):
        assert b"127.0.0.1/secret" not in (client.files.read(name) or b"")


def test_a_trigger_that_is_paused_after_failures_is_sent_as_that(client: Client) -> None:
    world = begin(client, "phone")
    client.trigger("g1", 60, "bad", title="backup")
    wait(client, *[60] * 4, 2)
    assert world.titles == ["Failed: backup", "Failed: backup", "Paused after 3 failures: backup"]


def test_a_channel_that_fails_is_tried_again_and_holds_up_no_other(client: Client) -> None:
    world = begin(client, "mail", "phone")
    world.down = {"mail"}
    client.submit("t1", "bad one", title="one")
    client.product.idle()
    wait(client, 2)
    assert [name for name, *_ in world.messages] == ["phone"]
    (finding,) = doctor.notify(client.product.consumer.state)
    assert finding.text == "mail: no route"
    world.down = set()
    wait(client, 9, 2)
    assert world.messages[1:] == [("mail", "Failed: one", "it broke")]
    failures = [line for line in client.product.log.errors if line["event"] == "notify_failed"]
    assert [line["channel"] for line in failures] == ["mail"]
    client.product.log.errors.clear()
    client.files.remove(paths.channel("mail"))
    client.product.idle()
    saved = client.files.load(paths.NOTIFICATION_STATE, NotificationState)
    assert saved is not None
    assert list(saved.channels) == ["phone"]


class Life:
    """A process that ends tasks and sends; it is killed at chosen changes of its disk."""

    def __init__(self, disk: MemoryDisk, clock: FakeClock, world: World) -> None:
        files = Files(disk)
        files.make_folders()
        log = NoisyLog(files, clock, quiet=True)
        settings = Settings(timezone="UTC")
        self.store = Store(files, settings, clock, live=LiveRuns(), log=log)
        self.store.ledger.load()
        self.notifier = Notifier(self.store, InPlace(), world.send)
        self.notifier.follow_channels()

    def end_task(self, id_: str, now: datetime) -> None:
        if self.store.ledger.end_of(id_) is None:
            facts = {"status": "failed", "traceId": "t", "notice": "failed", "title": f"<{id_}>"}
            self.store.ledger.write("ended", id_, now, **facts)


def test_of_a_thousand_events_none_is_lost_by_kills_and_each_doubled_one_is_marked() -> None:
    clock, world, disk = FakeClock(START.astimezone(UTC)), World(), MemoryDisk()
    (files := Files(disk)).make_folders()
    set_up(files, "phone")
    life, ended, kills = None, 0, 0
    disk.crash_at = len(disk.log) + 400
    while ended < 1000 or not life or life.notifier._state.channels["phone"].waiting:
        clock.advance(2)
        try:
            life = life or Life(disk, clock, world)
            if ended < 1000:
                life.end_task(f"e{ended}", clock.now())
                ended += 1
            life.notifier.step(clock.now())  # sends
            life.notifier.step(clock.now())  # settles
        except Crash:
            kills += 1
            disk, life = disk.after_kill(), None
            disk.crash_at = 400 + kills  # so that each step of a message is met
    words = [f"{title}\n{text}" for _, title, text in world.messages]
    counts = {number: [w for w in words if f"e{number}>" in w] for number in range(1000)}
    doubled = [found for found in counts.values() if len(found) > 1]
    assert kills >= 20, len(doubled)
    assert [number for number, found in counts.items() if not found] == []
    assert 0 < len(doubled) <= 10
    assert all("(again)" in one for found in doubled for one in found[1:])
