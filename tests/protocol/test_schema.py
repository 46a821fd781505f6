"""A state of an older version is brought up to date, wherever a start of that is cut short."""

from __future__ import annotations

import functools
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimikit.errors import NewerState, StorageError
from mimikit.protocol import paths, schema
from mimikit.protocol.files import TEMP_PREFIX, Files
from mimikit.protocol.json import Json
from mimikit.protocol.models import History, Record, Task, TurnRecord
from mimikit.protocol.records import decode
from mimikit.protocol.results import StatusCheckpoint, TaskResult
from mimikit.protocol.runtime import RuntimeState
from mimikit.protocol.schema import MigrationStep, StateSchema
from mimikit.protocol.triggers import PlanResult, Trigger, TriggerState
from mimikit.testing.memory_disk import Crash, MemoryDisk

OLD = Path(__file__).parents[1] / "data" / "state-0.1.0.zip"
PRODUCT = schema.STEPS, schema.STATE_SCHEMA
NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = timedelta(minutes=1)


def marked(record: dict[str, Json]) -> dict[str, Json]:
    return record if "of" in record else {**record, "of": 2}


def named_anew(record: dict[str, Json]) -> dict[str, Json]:
    return {"label" if key == "title" else key: value for key, value in record.items()}


MADE_UP = (
    MigrationStep(
        to=2,
        places=(paths.HISTORY, f"{paths.TRANSCRIPT}/*.jsonl"),
        change=marked,
        prepare=lambda files: files.make_folders(["shelf"]),
    ),
    MigrationStep(
        to=3, places=(f"{paths.TRIGGERS}/*.json", "worker/ended/*.json"), change=named_anew
    ),
)


@pytest.fixture(autouse=True)
def of_a_version_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this mimikit wrote version 3."""
    monkeypatch.setattr(schema, "STEPS", MADE_UP)
    monkeypatch.setattr(schema, "STATE_SCHEMA", 3)


@functools.cache
def written_by_0_1_0() -> MemoryDisk:
    disk = MemoryDisk()
    files = Files(disk)
    files.make_folders()
    with zipfile.ZipFile(OLD) as archive:
        for name in archive.namelist():
            path = name.removeprefix("state/")
            if path.startswith(("history", "triggers/", "worker/", "memory.md")):
                files.write(path, archive.read(name))
    files.write("worker/ended/broken.json", b'{"title": ')
    files.write("history/2026-11-27.jsonl", b'{"id": "m1"}\nno line\n{"id": "torn')
    return disk


def old_disk() -> MemoryDisk:
    return written_by_0_1_0().after_kill()


def settled(disk: MemoryDisk) -> dict[str, bytes]:
    """What is read of a disk: all but half-made files."""
    found = disk.contents().items()
    return {
        path: data for path, data in found if not path.rpartition("/")[2].startswith(TEMP_PREFIX)
    }


def start(disk: MemoryDisk, now: datetime = NOW) -> list[tuple[str, dict[str, object]]]:
    """What a start does before recovery; what it told."""
    told: list[tuple[str, dict[str, object]]] = []
    schema.migrate(Files(disk), now, lambda event, facts: told.append((event, facts)))
    return told


@functools.cache
def whole() -> dict[str, bytes]:
    """The state after a start that nothing cut short."""
    disk = old_disk()
    start(disk)
    return settled(disk)


def backups(contents: dict[str, bytes]) -> dict[str, bytes]:
    """The copies, by the path of what they are of."""
    prefix = f"{paths.BACKUPS}/"
    return {p.split("/", 2)[2]: data for p, data in contents.items() if p.startswith(prefix)}


def test_each_record_has_its_new_form_and_what_it_was_is_kept() -> None:
    disk, before = old_disk(), settled(old_disk())
    told = start(disk)
    after = settled(disk)
    rewritten = {path for path in before if after[path] != before[path]}
    assert json.loads(after[paths.HISTORY]) == {**json.loads(before[paths.HISTORY]), "of": 2}
    (ended,) = (path for path in rewritten if path.startswith("worker/ended/"))
    assert json.loads(after[ended])["label"] == json.loads(before[ended])["title"]
    assert after["history/2026-11-27.jsonl"] == b'{"id":"m1","of":2}\nno line\n{"id": "torn'
    assert {path.partition("/")[0] for path in rewritten} == {
        *("history.json", "history", "triggers", "worker")
    }
    assert backups(after) == {path: before[path] for path in rewritten}
    assert disk.stat("shelf") is not None
    known = StateSchema.model_validate_json(after[paths.SCHEMA])
    assert (known.schema_version, known.migrating_from, known.migrated_at) == (3, None, NOW)
    assert [
        (event, facts["from"], facts["to"], facts.get("rewritten")) for event, facts in told
    ] == [
        ("migration_begun", 1, 2, None),
        ("migrated", 1, 2, 3),
        ("migration_begun", 2, 3, None),
        ("migrated", 2, 3, 3),
    ]


def test_a_state_that_is_up_to_date_is_not_touched() -> None:
    disk = old_disk()
    start(disk)
    steps = len(disk.log)
    assert start(disk, NOW + LATER) == []
    assert len(disk.log) == steps


def test_without_a_step_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "STEPS", ())
    disk = old_disk()
    assert start(disk) == []
    assert not disk.log


def crashes(disk: MemoryDisk, *, every: int = 1) -> Iterator[tuple[int, MemoryDisk]]:
    """What is left by a death before each operation of a start, and by each power cut there."""
    before = disk.after_kill()
    number = 0
    while True:
        for torn in (0.0, 0.5):
            life = before.after_kill()
            life.crash_at, life.torn = number, torn
            try:
                start(life, NOW + LATER)
            except Crash:
                yield number, life.after_kill()
                if not torn:
                    for image in life.after_power_loss():
                        yield number, image
            else:
                return
        number += every


def judged(disk: MemoryDisk) -> None:
    """Each record is old or new, and what is new has its copy."""
    before, found = settled(old_disk()), settled(disk)
    copies = backups(found)
    for path, data in before.items():
        assert found[path] in (data, whole()[path]), path
        if found[path] != data:
            assert copies[path] == data, path
    known = schema.schema_of(Files(disk))
    if found.keys() - before.keys():
        assert known.schema_version > 1, "older mimikits would write to it"


def finished(disk: MemoryDisk) -> None:
    """After the next start nothing tells that one was cut short, but the hour of the copies."""
    start(disk, NOW + 2 * LATER)
    found = settled(disk)
    folders = {path.split("/")[1] for path in found if path.startswith(f"{paths.BACKUPS}/")}
    assert len(folders) == len(MADE_UP), "the copies of a step lie in the folder that it names"
    assert not others(backups(found), backups(whole()))
    assert not others(bare(found), bare(whole()))
    assert start(disk, NOW + 3 * LATER) == []


def others(one: dict[str, bytes], two: dict[str, bytes]) -> set[str]:
    """The paths under which they hold something else."""
    return {path for path in one.keys() | two.keys() if one.get(path) != two.get(path)}


def bare(contents: dict[str, bytes]) -> dict[str, bytes]:
    own = (paths.SCHEMA, f"{paths.BACKUPS}/")
    return {path: data for path, data in contents.items() if not path.startswith(own)}


@pytest.mark.fault(25, 60)
def test_wherever_a_start_dies_the_next_one_goes_on_also_when_that_dies(size: int) -> None:
    seen: set[int] = set()
    operations: set[int] = set()
    for operation, left in crashes(old_disk()):
        operations.add(operation)
        mark = hash(frozenset(settled(left).items()))
        if mark in seen:
            continue
        seen.add(mark)
        judged(left)
        for _, again in crashes(left, every=max(41 // size, 1)):
            judged(again)
            finished(again)
        finished(left)
    assert len(operations) > 60
    assert len(seen) > 15


@pytest.mark.fault(9, 25)
def test_a_power_cut_after_the_start_that_follows_a_kill_takes_nothing_back() -> None:
    """What the killed one had not flushed is flushed by who goes on, before it is called done."""
    number = 0
    while True:
        disk = old_disk()
        disk.crash_at = number
        try:
            start(disk)
        except Crash:
            disk.dead, disk.crash_at = False, None  # the machine goes on, and so do its buffers
            disk._locks.clear()
            start(disk, NOW + LATER)
            for image in disk.after_power_loss():
                assert schema.schema_of(Files(image)).schema_version == 3
                finished(image)
        else:
            assert number > 60
            return
        number += 1


@dataclass
class FlushedDisk(MemoryDisk):
    """Knows after how many changes each folder was flushed first; one in memory lasts at once."""

    flushed: dict[str, int] = field(default_factory=dict[str, int])

    def sync_dir(self, path: str) -> None:
        self.flushed.setdefault(path, len(self.log))
        super().sync_dir(path)


def test_the_folders_of_the_copies_are_flushed_before_there_is_a_copy_in_them() -> None:
    disk = FlushedDisk()
    files = Files(disk)
    files.make_folders()
    for path in (paths.HISTORY, "worker/ended/t1.json"):
        files.write(path, b'{"title": "x"}')
    disk.flushed.clear()
    start(disk)
    copied = [path for path in disk.contents() if path.startswith(f"{paths.BACKUPS}/")]
    assert len(copied) == 2
    for path in copied:
        first = next(n for n, step in enumerate(disk.log) if step.path.endswith(f" → {path}"))
        parts = path.split("/")
        for number in range(1, len(parts)):
            assert disk.flushed["/".join(parts[:number])] < first


@pytest.mark.fault(15, 25)
def test_a_disk_that_refuses_once_costs_one_start() -> None:
    number, refused = 0, 1
    while refused:
        disk, refused = old_disk(), 0

        def refuse(at: int, _step: object, where: int = number) -> OSError | None:
            return OSError(28, "no space") if at == where else None

        disk.fail = refuse
        try:
            start(disk)
        except StorageError:
            refused = 1
        judged(disk)
        disk.fail = None
        finished(disk)
        number += 3


def test_a_newer_state_is_left_alone() -> None:
    disk = old_disk()
    Files(disk).save(paths.SCHEMA, StateSchema(schema_version=4))
    before = disk.contents()
    with pytest.raises(NewerState, match=r"schema\.json: expected schemaVersion 3 or older, got 4"):
        start(disk)
    assert not others(disk.contents(), before)


@pytest.mark.fault(22)
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"schemaVersion": "x"}', b"\xff\x00"])
def test_a_schema_that_can_not_be_read_is_set_aside_and_the_steps_find_what_is_to_do(
    data: bytes,
) -> None:
    disk = old_disk()
    start(disk)
    Files(disk).write(paths.SCHEMA, data)
    start(disk, NOW + LATER)
    found = settled(disk)
    kept = {path for path in found if path.startswith(f"{paths.CORRUPT}/")}
    assert {path.endswith(paths.REASON) for path in kept} == {True, False}
    assert others(bare(found), bare(whole())) == kept


def test_the_steps_of_the_product_lead_one_by_one_to_what_it_writes() -> None:
    steps, version = PRODUCT
    assert [step.to for step in steps] == list(range(2, version + 1))


READ_AS: dict[str, type[Record]] = {
    paths.HISTORY: History,
    paths.RUNTIME: RuntimeState,
    paths.TASK_STATUS: StatusCheckpoint,
    "planner/done/": PlanResult,
    "planner/ended/": Task,
    "worker/ended/": Task,
    "worker/running/": Task,
    "worker/results/": TaskResult,
    "triggers/state/": TriggerState,
    "triggers/": Trigger,
    "turns/done/": TurnRecord,
}


def test_each_record_of_0_1_0_is_one_of_today_and_keeps_all_that_it_says() -> None:
    with zipfile.ZipFile(OLD) as archive:
        names = [name.removeprefix("state/") for name in archive.namelist()]
        for path in names:
            if path.endswith(".json") and not path.startswith(("manifest", "inbox/")):
                model = next(READ_AS[begin] for begin in READ_AS if path.startswith(begin))
                data = archive.read(f"state/{path}")
                assert holds(decode(data, model).to_dict(), json.loads(data)), path


def holds(new: Any, old: Any) -> bool:
    """Whether all that an old value says stands in a new one."""
    if isinstance(old, dict):
        return all(key in new and holds(new[key], old[key]) for key in old)
    if isinstance(old, list):
        return len(new) == len(old) and all(map(holds, new, old))
    return new == old
