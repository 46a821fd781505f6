"""What waits is sent once, whatever fails and whenever the product dies; and what fails is said."""

from __future__ import annotations

import errno
from datetime import timedelta
from typing import Any

import pytest

from mimikit.config import Settings
from mimikit.notifications.ledger import read_lines
from mimikit.notify_settings import ChannelSettings, NotifySettings
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Command, Question, Task
from mimikit.protocol.notifications import MOST_ATTEMPTS, NotificationEvent, NotificationSend
from mimikit.tasks import queue
from mimikit.testing.memory_disk import MemoryDisk
from mimikit.testing.twins import FakeClock
from tests.support.mind import Mind
from tests.support.product import START, Product, scripted_settings

ADDRESS = "json://127.0.0.1:9/a-secret-place"


class ShyDisk(MemoryDisk):
    """Refuses to read what is secret, so many times."""

    refusals = 0

    def read(self, path: str, *args: Any, **more: Any) -> bytes:
        if path.startswith(paths.SECRETS) and self.refusals:
            self.refusals -= 1
            raise OSError(errno.EIO, "refused")
        return super().read(path, *args, **more)


def settings(*names: str, **more: Any) -> Settings:
    channels = {name: ChannelSettings(url_file=f"notify-{name}.url") for name in names}
    notify = NotifySettings.model_validate({"channels": channels, **more})
    return scripted_settings().model_copy(update={"notify": notify})


def product_of(files: Files, clock: FakeClock, given: Settings) -> Product:
    product = Product(files, clock, Mind([]), settings=given, quiet=False)
    product.start()
    return product


@pytest.fixture
def disk() -> ShyDisk:
    return ShyDisk()


@pytest.fixture
def files(disk: ShyDisk) -> Files:
    files = Files(disk)
    files.make_folders()
    for name in ("phone", "desk"):
        files.write(f"{paths.SECRETS}/notify-{name}.url", f"{ADDRESS}\n".encode())
    return files


@pytest.fixture
def product(files: Files) -> Product:
    return product_of(files, FakeClock(START), settings("phone"))


def submit(product: Product, id_: str, prompt: str = "bad", **more: Any) -> None:
    now = product.clock.now()
    task = Task(id=id_, prompt=prompt, created_at=now, trace_id=id_, origin="cli", **more)
    queue.submit(product.files, task)


def arrived(product: Product) -> list[str]:
    return [send.title for send in product.courier.arrived]


def said(product: Product) -> list[str]:
    return [m.text for m in product.store.conversation.messages if "channel" in m.text]


def outcomes(product: Product) -> list[str]:
    return [line.outcome for line in read_lines(product.files, START)]


def down(send: NotificationSend) -> str:
    return "nobody is there"


def test_a_failure_is_told_once_with_its_reason_and_leaves_a_line(product: Product) -> None:
    submit(product, "t1")
    product.idle()
    send = product.courier.arrived[0]
    assert (send.title, send.text) == ("Failed: bad", "it broke")
    assert outcomes(product) == ["sent"]
    assert product.files.names(paths.NOTIFICATIONS_NEW) == []
    assert product.files.names(paths.NOTIFICATIONS_SENDING) == []
    assert product.files.names(paths.NOTIFICATIONS_DONE) == [f"{send.events[0]}.json"]


def test_what_waits_at_the_start_is_told_and_what_was_told_is_not(
    files: Files, product: Product
) -> None:
    submit(product, "t1")
    product.idle()
    product.courier.deliver = down
    submit(product, "t2")
    product.idle(patience_s=5)
    again = product_of(files, product.clock, product.settings)
    again.idle(patience_s=100)
    assert [len(send.events) for send in again.courier.arrived] == [1]
    assert outcomes(again) == ["sent", "failed", "sent"]


def test_without_channels_nothing_is_written(files: Files) -> None:
    product = product_of(files, FakeClock(START), settings())
    submit(product, "t1")
    product.idle()
    assert product.files.names(paths.NOTIFICATIONS_NEW) == []
    assert product.files.names(paths.NOTIFICATIONS, suffix=".jsonl") == []


@pytest.mark.fault("openclaw#90233")
def test_a_send_that_was_cut_short_is_sent_again_and_says_so(
    files: Files, product: Product
) -> None:
    product.courier.deliver = _die
    submit(product, "t1")
    with pytest.raises(_Killed):
        product.idle()
    again = product_of(files, FakeClock(START), product.settings)
    again.idle()
    assert [send.attempt for send in again.courier.arrived] == [2]
    assert [(it.outcome, it.doubtful) for it in read_lines(files, START)] == [("sent", True)]
    assert "notification_in_doubt" in [line["event"] for line in again.log.audits]


def test_one_that_is_cut_short_again_and_again_is_left_at_that(
    files: Files, product: Product
) -> None:
    submit(product, "t1")
    for _ in range(MOST_ATTEMPTS):
        product.courier.deliver = _die
        with pytest.raises(_Killed):
            product.idle()
        product = product_of(files, FakeClock(START), product.settings)
    product.idle()
    assert product.courier.arrived == []
    assert outcomes(product) == ["unknown"]
    assert "notification_unknown" in [line["event"] for line in product.log.audits]


def test_a_process_that_ends_without_a_word_leaves_the_same_doubt(product: Product) -> None:
    product.courier.silent = 1
    submit(product, "t1")
    product.idle()
    assert product.clock.now() - START >= timedelta(seconds=30)
    assert [(it.outcome, it.doubtful) for it in read_lines(product.files, START)] == [
        ("sent", True)
    ]


def test_what_the_disk_refuses_at_its_time_goes_later(disk: ShyDisk, product: Product) -> None:
    product.courier.deliver = down
    submit(product, "t1")
    product.idle(patience_s=5)
    product.courier.deliver, disk.refusals = product.courier.take, 1
    product.idle()
    assert (disk.refusals, arrived(product)) == (0, ["Failed: bad"])


def test_what_was_cut_short_stays_so_where_the_disk_refuses(
    disk: ShyDisk, product: Product
) -> None:
    product.courier.silent = 1
    submit(product, "t1")
    product.idle(patience_s=5)
    disk.refusals = 1
    product.idle()
    assert disk.refusals == 0
    assert [send.attempt for send in product.courier.arrived] == [2]
    lines = read_lines(product.files, START)
    assert [(it.outcome, it.doubtful) for it in lines] == [("sent", True)]
    assert product.files.names(paths.NOTIFICATIONS_SENDING) == []


def unbegun(product: Product) -> list[object]:
    named = [it for it in product.log.audits if it["event"] == "notification_not_begun"]
    return [it["times"] for it in named]


def test_what_can_not_begin_is_tried_ever_less_often_and_logged_now_and_then(
    disk: ShyDisk, product: Product
) -> None:
    disk.fail = lambda _, step: OSError(errno.EIO, "no") if "/sending/" in step.path else None
    submit(product, "t1")
    begun = product.clock.now()
    product.idle(patience_s=200)
    assert timedelta(seconds=255) <= product.clock.now() - begun < timedelta(seconds=300)
    assert unbegun(product) == [1, 2, 4, 8]
    product.idle(patience_s=299)
    assert product.supervisor.notifications.due_at is not None
    assert (product.supervisor.notifications.due_at - product.clock.now()).total_seconds() == 300
    disk.fail = None
    product.idle(patience_s=300)
    assert arrived(product) == ["Failed: bad"]
    disk.fail = lambda _, step: OSError(errno.EIO, "no") if "/sending/" in step.path else None
    submit(product, "t2")
    product.idle()
    assert unbegun(product) == [1, 2, 4, 8, 1, 2, 4]


def test_what_is_done_with_is_not_kept_in_memory(product: Product) -> None:
    ledger = product.store.notifications
    product.courier.silent, product.courier.deliver = 1, down
    submit(product, "t1")
    product.idle(patience_s=30)
    assert len(ledger._doubted) == 1
    product.courier.deliver = product.courier.take
    product.idle(patience_s=100)
    assert arrived(product) == ["Failed: bad"]
    assert (ledger.waiting, ledger._doubted, ledger._over) == ({}, set(), set())


def test_what_need_not_be_told_any_more_is_not_kept_either(files: Files) -> None:
    product = product_of(files, FakeClock(START), settings("phone", "desk"))
    ledger = product.store.notifications
    product.courier.deliver = lambda send: down(send) if send.channel == "desk" else None
    ask(product, "q1")
    product.idle(patience_s=5)
    assert len(ledger._over) == 1
    files.remove(paths.PENDING_QUESTION)
    product.idle()
    assert (ledger.waiting, ledger._over) == ({}, set())


def test_a_channel_that_fails_is_told_once_and_so_is_that_it_works_again(product: Product) -> None:
    product.courier.deliver = down
    submit(product, "t1")
    product.idle(patience_s=500)
    assert len(said(product)) == 1
    assert "phone" in said(product)[0]
    assert "nobody is there" in said(product)[0]
    assert ADDRESS not in said(product)[0]
    product.courier.deliver = product.courier.take
    product.idle(patience_s=2000)
    assert len(said(product)) == 2
    assert "again" in said(product)[1]
    assert len(product.courier.arrived) == 1


def test_a_channel_that_fails_holds_up_no_other(files: Files) -> None:
    product = product_of(files, FakeClock(START), settings("phone", "desk"))
    product.courier.deliver = lambda send: (
        down(send) if send.channel == "phone" else product.courier.take(send)
    )
    submit(product, "t1")
    submit(product, "t2")
    product.idle(patience_s=5)
    assert {send.channel for send in product.courier.arrived} == {"desk"}
    assert sum(len(send.events) for send in product.courier.arrived) == 2
    assert len(product.files.names(paths.NOTIFICATIONS_NEW)) == 2


def test_after_a_day_it_is_given_up_with_an_entry_in_the_log(product: Product) -> None:
    product.courier.deliver = down
    submit(product, "t1")
    product.idle(patience_s=4000)
    assert product.clock.now() - START > timedelta(days=1)
    assert outcomes(product)[-1] == "given_up"
    assert product.files.names(paths.NOTIFICATIONS_NEW) == []
    given_up = [it for it in product.log.audits if it["event"] == "notifications_given_up"]
    assert len(given_up) == 1


def test_an_address_that_is_gone_is_a_failure_like_any_other(
    files: Files, product: Product
) -> None:
    files.remove(f"{paths.SECRETS}/notify-phone.url")
    submit(product, "t1")
    product.idle(patience_s=500)
    assert product.courier.arrived == []
    assert "its address can not be read" in said(product)[0]


def ask(product: Product, id_: str) -> None:
    now = product.clock.now()
    question = Question(
        question_id=id_, question="which?", created_at=now, expires_at=now + timedelta(hours=1)
    )
    product.files.save(paths.PENDING_QUESTION, question)


def test_an_open_question_is_told_once_also_when_the_product_died_before(
    files: Files, product: Product
) -> None:
    ask(product, "q1")
    product.idle()
    again = product_of(files, product.clock, product.settings)
    again.idle()
    assert arrived(product) == ["A question for you"]
    assert arrived(again) == []


def test_a_question_that_was_answered_in_quiet_hours_is_not_told_any_more(files: Files) -> None:
    quiet = settings("phone", quiet="09:00-09:30", quiet_events=[])
    product = product_of(files, FakeClock(START), quiet)
    ask(product, "q1")
    product.idle(patience_s=5)
    assert len(product.files.names(paths.NOTIFICATIONS_NEW)) == 1
    files.remove(paths.PENDING_QUESTION)
    product.idle(patience_s=4000)
    assert arrived(product) == []
    assert product.files.names(paths.NOTIFICATIONS_NEW) == []


def test_an_end_that_is_carried_out_again_after_it_was_told_is_not_told_again(
    files: Files, product: Product
) -> None:
    submit(product, "t1")
    product.idle()
    files.move(paths.ended("worker", "t1"), paths.running("worker", "t1"))
    again = product_of(files, product.clock, product.settings)
    again.idle()
    assert arrived(again) == []


def test_channels_are_set_up_and_removed_while_it_runs(files: Files) -> None:
    product = product_of(files, FakeClock(START), settings())
    order(product, "notify_set", "phone", events=["failed"])
    submit(product, "t1")
    product.idle()
    assert arrived(product) == ["Failed: bad"]
    product.courier.deliver = down
    submit(product, "t2")
    product.idle(patience_s=5)
    order(product, "notify_remove", "phone")
    assert product.files.names(paths.NOTIFICATIONS_NEW) == []
    assert not files.exists(f"{paths.SECRETS}/notify-phone.url")
    submit(product, "t3")
    product.idle()
    assert arrived(product) == ["Failed: bad"]


def test_what_no_channel_may_be_called_removes_no_file(files: Files, product: Product) -> None:
    order(product, "notify_remove", "../phone")
    done = [queue.command_result(files, "notify_remove")]
    assert done[0] is not None
    assert not done[0].ok
    assert files.exists(f"{paths.SECRETS}/notify-phone.url")


def test_odd_files_where_events_belong_hold_up_no_other(files: Files, product: Product) -> None:
    files.write(paths.notification_new("odd"), b"no event")
    files.write(paths.notification_sending("odd"), b"{}")
    files.write(f"{paths.NOTIFICATIONS}/2026-12-01.jsonl", b"no line\n{}\n")
    event = NotificationEvent(
        id="note-1", kind="failed", title="x", channels=["phone"], created_at=START
    )
    files.save(paths.notification_new("note-1"), event)
    again = product_of(files, product.clock, product.settings)
    again.idle()
    assert arrived(again) == ["x"]
    assert len([name for name in files.names("corrupt", suffix="") if "odd" in name]) == 4


def order(product: Product, action: Any, target: str, **args: Any) -> None:
    now = product.clock.now()
    command = Command(id=action, action=action, target=target, args=args, created_at=now)
    queue.give_command(product.files, command)
    product.idle()


class _Killed(BaseException):
    """The process dies while it sends."""


def _die(send: NotificationSend) -> str:
    raise _Killed
