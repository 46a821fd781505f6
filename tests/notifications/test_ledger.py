"""What is kept so that each event is told once: marks, and events that are known already."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mimikit.notifications.ledger import NotificationLedger
from mimikit.notify_settings import ChannelSettings, NotifySettings
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.notifications import NotificationEvent
from mimikit.testing.memory_disk import MemoryDisk

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
EVENT = NotificationEvent(
    id="e1", kind="failed", title="Failed", channels=["phone"], created_at=NOW
)


@pytest.fixture
def files() -> Files:
    made = Files(MemoryDisk())
    made.make_folders()
    return made


def ledger_of(files: Files) -> NotificationLedger:
    channels = {"phone": ChannelSettings(url_file="notify-phone.url")}
    return NotificationLedger(files, NotifySettings(channels=channels))


def test_a_mark_stays_until_it_is_known_what_came_of_it(files: Files) -> None:
    ledger = ledger_of(files)
    ledger.add(EVENT)
    send = ledger.new_send("phone", [EVENT], NOW)
    mark = paths.notification_sending(send.id)
    files.save(mark, send)
    assert ledger_of(files).load(NOW) == [send]
    assert files.exists(mark), "who dies now leaves the next one without a sign of it"
    ledger.settle(send, "sent", NOW)
    files.save(mark, send)  # its removal was lost
    assert ledger_of(files).load(NOW) == []
    assert not files.exists(mark)


def test_an_event_that_is_known_is_not_added_again(files: Files) -> None:
    ledger = ledger_of(files)
    ledger.add(None)
    assert ledger.changes == 0
    ledger.add(EVENT)
    ledger.add(EVENT)
    assert ledger.changes == 1
    ledger.drop(EVENT.id)
    ledger.add(EVENT)
    assert ledger.waiting == {}
    assert files.names(paths.NOTIFICATIONS_NEW) == []
