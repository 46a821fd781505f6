"""Turns: an attempt is never forgotten, a commit is made once, an applied turn rests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mimikit.conversation import turns
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import TurnRecord
from tests.support.memory_disk import Crash, MemoryDisk

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)
ID = turns.turn_id(["m1", "m2"])


def record(id_: str = ID, at: datetime = NOW) -> TurnRecord:
    return TurnRecord(
        id=id_, author="teller", started_at=at, completed_at=at, consumed=["m1", "m2"]
    )


def test_a_turns_id_follows_from_its_inputs_in_any_order() -> None:
    assert turns.turn_id(["m2", "m1"]) == ID
    assert turns.turn_id(["m1"]) != ID


def test_an_attempt_that_began_is_found_with_its_inputs(files: Files) -> None:
    assert turns.open_turns(files) == []
    turns.start(files, ID, 1, ["m1", "m2"], NOW)
    assert turns.open_turns(files) == [turns.OpenTurn(ID, ["m1", "m2"], 1)]
    turns.start(files, ID, 2, ["m1", "m2"], NOW + timedelta(seconds=1))
    assert turns.open_turns(files) == [turns.OpenTurn(ID, ["m1", "m2"], 2)]


def test_an_attempt_whose_mark_is_torn_does_not_lower_the_count(files: Files) -> None:
    turns.start(files, ID, 1, ["m1"], NOW)
    turns.start(files, ID, 2, ["m1"], NOW)
    files.write(paths.turn_started(ID, 1), b"{")
    assert [turn.attempts for turn in turns.open_turns(files)] == [2]


def test_an_attempt_in_which_nothing_was_tried_is_forgotten(files: Files) -> None:
    mark = turns.start(files, ID, 1, ["m1"], NOW)
    turns.forget_attempt(files, mark)
    assert turns.open_turns(files) == []


def test_an_attempt_that_a_stop_cut_short_keeps_its_number_and_does_not_count(files: Files) -> None:
    for number in (1, 2, 3):
        turns.excuse_attempt(files, turns.start(files, ID, number, ["m1"], NOW))
    turns.start(files, ID, 4, ["m1"], NOW)
    assert turns.open_turns(files) == [turns.OpenTurn(ID, ["m1"], 4, 3)]
    turns.start(files, f"{ID}.1", 1, ["m2"], NOW)
    turns.drop_marks(files, ID)
    assert [turn.id for turn in turns.open_turns(files)] == [f"{ID}.1"]


def test_a_turn_is_committed_once_and_the_first_commit_counts(files: Files) -> None:
    assert not turns.is_committed(files, ID)
    assert turns.commit(files, record())
    assert not turns.commit(files, record().but(engine="other"))
    assert turns.unapplied(files) == [record()]
    assert turns.is_committed(files, ID)
    turns.mark_applied(files, ID)
    assert not turns.commit(files, record().but(engine="other"))
    assert turns.unapplied(files) == []
    assert turns.is_committed(files, ID)
    assert files.load(paths.turn_done(ID), TurnRecord) == record()


def test_wherever_the_end_of_a_turn_is_cut_short_it_is_committed_and_not_begun_again() -> None:
    for at in range(40):
        disk = MemoryDisk()
        files = Files(disk)
        files.make_folders()
        turns.start(files, ID, 1, ["m1", "m2"], NOW)
        turns.start(files, ID, 2, ["m1", "m2"], NOW)
        turns.commit(files, record())
        disk.crash_at = len(disk.log) + at
        try:
            turns.mark_applied(files, ID)
        except Crash:
            for image in [disk.after_kill(), *disk.after_power_loss()]:
                left = Files(image)
                assert turns.is_committed(left, ID)
                assert turns.open_turns(left) == []
        else:
            assert turns.open_turns(files) == []
            return
    raise AssertionError("expected the end of the turn within 40 changes")
