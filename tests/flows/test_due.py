"""What of the backlog is due is told at its time, as the list says it then."""

from __future__ import annotations

from mimikit.protocol import paths
from mimikit.triggers import registry
from tests.crash.driver import Client
from tests.support.product import START
from tests.support.reading import transcript

AT = "2026-12-01 09:10"
ITEM = f"call mum (due {AT})"


def at(client: Client, minutes: float) -> None:
    client.at(minutes * 60)
    client.product.idle()


def told(client: Client) -> list[str]:
    return [text for _, text in transcript(client.files)]


def reminders(client: Client) -> list[str]:
    found = (registry.read(client.files, id_)[0] for id_ in registry.ids(client.files))
    return [trigger.prompt for trigger in found if trigger]


def test_an_item_is_told_once_at_its_time(judged: Client) -> None:
    assert f"{START:%Y-%m-%d %H:%M}" == "2026-12-01 09:00"
    judged.jot("add", ITEM)
    at(judged, 9.9)
    assert (reminders(judged), told(judged)) == (["call mum"], [])
    at(judged, 10)
    assert len(told(judged)) == 1
    assert "call mum" in told(judged)[0]
    for minutes, item in ((11, "another"), (12, "a third (due 2026-12-01 09:13)")):
        judged.jot("add", item)  # the list is looked at again
        at(judged, minutes)
    judged.restart()
    at(judged, 20)
    assert len(told(judged)) == 2


def test_what_is_done_removed_or_put_off_is_not_told_then(judged: Client) -> None:
    for name in ("one", "two", "three"):
        judged.jot("add", f"{name} (due {AT})")
    at(judged, 1)
    assert sorted(reminders(judged)) == ["one", "three", "two"]
    judged.jot("done", "one")
    judged.jot("remove", "two")
    judged.jot("due", "three (due 2026-12-01 09:30)")
    at(judged, 11)
    assert (reminders(judged), told(judged)) == (["three"], [])
    at(judged, 30)
    assert len(told(judged)) == 1
    judged.jot("undone", "one")  # it was due a while ago, and nobody was told
    at(judged, 31)
    assert len(told(judged)) == 2


def test_a_list_edited_by_hand_counts_also_where_nobody_saw_it(judged: Client) -> None:
    judged.stop()
    judged.at(15 * 60)
    judged.put(paths.BACKLOG, f"* [ ] by hand (due {AT})\n* [ ] old (due 2020-01-01)\n".encode())
    judged.restart()
    judged.product.idle()
    assert len(told(judged)) == 1
    assert "by hand" in told(judged)[0]
    judged.files.write(paths.BACKLOG, b"- [ ] new (due 2026-12-01 10:00)\n")
    judged.product.idle()
    assert reminders(judged) == ["new"]
    judged.files.remove(paths.BACKLOG)
    judged.product.idle()
    assert reminders(judged) == []


def test_a_slip_of_the_pen_holds_up_no_other_item(judged: Client) -> None:
    slips = "- [ ] a (due 0202-12-01)\n- [ ] b (due 9999-12-31 23:00)\n"
    judged.files.write(paths.BACKLOG, f"{slips}- [ ] call mum (due {AT})\n".encode())
    at(judged, 1)
    assert reminders(judged) == ["call mum"]
