"""The version of the file protocol that a state folder was written by, and the way to the newest.

`schema.json` tells it; where there is none it is the first one's. A newer folder is shown and never
changed. An older one is brought up to date at the consumer's start, before recovery, by steps; each
takes it from one version to the next:

1. `schema.json` names the new version, the old one, and the folder below `backups/`. From here on
   nobody older writes to the state, whatever becomes of the rest.
2. Each record that the step changes is copied to that folder, once, and only then rewritten.
3. All of it is flushed, and `schema.json` says that the step is done.

Whoever dies in between is followed by a start that does the step again: what is in its new form
stays as it is, and so does a copy that is there. No step touches what its user writes too (memory,
backlog, settings, skills).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import Field

from mimikit.errors import BadRecord, NewerState, StorageError, UnsafeFile
from mimikit.protocol import paths
from mimikit.protocol.files import Files, OnEvent
from mimikit.protocol.json import Json, dump_line, parse_object
from mimikit.protocol.models import History, Instant, Record
from mimikit.protocol.results import StatusCheckpoint

STATE_SCHEMA = 1
"""What this mimikit writes: one more with each of `STEPS`."""
_HEAD_BYTES = 4096
_LINE = re.compile(rb"[^\n]+\n")
_VERSION = re.compile(rb'"schemaVersion"\s*:\s*(\d{1,9})')


class StateSchema(Record):
    """`schema.json`: written before the first record of a newer version is."""

    schema_version: int = Field(default=1, ge=1)
    """By which the folder is to be read; nobody older writes to it."""
    migrating_from: int | None = Field(default=None, ge=1)
    """While records of this version may still be among them."""
    backup: str | None = None
    """Where the records lie that the last migration rewrote, as they were."""
    migrated_at: Instant | None = None

    @property
    def oldest(self) -> int:
        """The version of its oldest records."""
        return self.migrating_from or self.schema_version


def schema_of(files: Files) -> StateSchema:
    """What a folder tells of itself; the first version where it tells nothing."""
    return files.peek(paths.SCHEMA, StateSchema) or StateSchema()


def why_newer(files: Files, carriers: Iterable[str] | None = None) -> str | None:
    """Why this mimikit must not write to a folder; None: it may.

    carriers: look at these files only. A file's first bytes tell: the rest may be of any form.
    """
    known = {
        paths.SCHEMA: STATE_SCHEMA,
        paths.HISTORY: int(History.model_fields["schema_version"].default),
        paths.TASK_STATUS: int(StatusCheckpoint.model_fields["schema_version"].default),
    }
    for path in carriers or known:
        try:
            found = _VERSION.search(files.part(path, 0, _HEAD_BYTES))
        except StorageError:
            if path != paths.TASK_STATUS:
                raise
            continue  # an index, which is made anew where it can not be read
        if found and (got := int(found[1])) > known[path]:
            return (
                f"{path}: expected schemaVersion {known[path]} or older, got {got}; a newer "
                "mimikit wrote this state: here it is shown, and nothing in it is changed; use the "
                "newer mimikit that wrote it"
            )
    return None


def check_not_newer(files: Files, carriers: Iterable[str] | None = None) -> None:
    """Raise NewerState where `why_newer` says why."""
    if (reason := why_newer(files, carriers)) is not None:
        raise NewerState(reason)


@dataclass(frozen=True)
class MigrationStep:
    """From version `to` - 1 to version `to`.

    Each part finds nothing to do where it was done before, wholly or in part.
    """

    to: int
    places: tuple[str, ...] = ()
    """What is rewritten: paths, or `folder/*.suffix`; of names with `.jsonl` each line."""
    change: Callable[[dict[str, Json]], dict[str, Json]] = dict
    """A record in its new form. Pure; one that has it, or is of no known form, as it is."""
    prepare: Callable[[Files], None] = Files.make_folders
    """What is done to the folder before: to make folders, to move files."""


STEPS: tuple[MigrationStep, ...] = ()
"""All there ever were, oldest first; the last one leads to `STATE_SCHEMA`."""


def pending(files: Files) -> list[MigrationStep]:
    """The steps that a folder still needs."""
    version = schema_of(files).oldest
    return [step for step in STEPS if step.to > version]


def migrate(files: Files, now: datetime, tell: OnEvent) -> None:
    """Bring a folder up to date, as its one consumer; `tell` hears what begins and what is done.

    Crash: the next start goes on; a record is old or new, and whatever is new has its copy.

    Raises:
        NewerState: a newer mimikit wrote it; nothing was changed.
        StorageError: the disk refused; the next start goes on.
    """
    check_not_newer(files)
    known = files.load(paths.SCHEMA, StateSchema) or StateSchema()
    for step in pending(files):
        version = step.to - 1
        if known.migrating_from != version or known.backup is None:
            backup = f"{paths.BACKUPS}/{now.astimezone(UTC):%Y-%m-%dT%H%M%S.%fZ}-from-{version}"
            known = known.but(schema_version=step.to, migrating_from=version, backup=backup)
            files.save(paths.SCHEMA, known)
        facts: dict[str, object] = {"from": version, "to": step.to, "backup": known.backup}
        tell("migration_begun", facts)
        rewritten = _carry_out(files, step, str(known.backup))
        known = known.but(migrating_from=None, migrated_at=now)
        files.save(paths.SCHEMA, known)
        tell("migrated", {**facts, "rewritten": rewritten})


def _carry_out(files: Files, step: MigrationStep, backup: str) -> int:
    """Do what a step does; gives how many files were rewritten now."""
    step.prepare(files)
    found = [path for place in step.places for path in _found(files, place)]
    folders = {path.rpartition("/")[0] for path in found}
    for folder in (*folders, *(f"{backup}/{folder}".rstrip("/") for folder in folders)):
        if folder == paths.ROOT or files.stat(folder) is not None:
            files.sweep_temps(folder)
    rewritten, copied = 0, set[str]()
    for path in found:
        try:
            data = files.read(path)
        except UnsafeFile:
            continue  # no record; whoever reads it sets it aside
        if data is None or (new := _changed(path, data, step.change)) == data:
            continue
        if (folder := f"{backup}/{path}".rpartition("/")[0]) not in copied:
            _make(files, folder)
            copied.add(folder)
        files.create(f"{backup}/{path}", data)
        files.write(path, new)
        rewritten += 1
    # What an attempt before this one rewrote may not be flushed yet.
    files.settle(folders, ())
    return rewritten


def _found(files: Files, place: str) -> list[str]:
    """The plain files that a place means."""
    folder, _, name = place.rpartition("/")
    if not name.startswith("*"):
        return [place] if files.exists(place) else []
    if files.stat(folder) is None:
        return []
    return [f"{folder}/{one}" for one in sorted(files.stats(folder, suffix=name[1:]))]


def _make(files: Files, folder: str) -> None:
    """Make a folder of copies and those above it, flushed: a copy is found after a power cut."""
    parts = folder.split("/")
    wanted = ["/".join(parts[:number]) for number in range(1, len(parts) + 1)]
    files.make_folders(wanted)
    files.settle((paths.ROOT, *wanted), ())


def _changed(path: str, data: bytes, change: Callable[[dict[str, Json]], dict[str, Json]]) -> bytes:
    """The bytes of a file in their new form; what can not be read stays as it is."""
    if not path.endswith(".jsonl"):
        return _changed_one(data, change, _dump)
    # A torn last line is none yet: whoever appends next closes it.
    return _LINE.sub(lambda line: _changed_one(line[0], change, dump_line), data)


def _changed_one(
    data: bytes,
    change: Callable[[dict[str, Json]], dict[str, Json]],
    dump: Callable[[object], bytes],
) -> bytes:
    try:
        new = change(parse_object(data))
        return data if new == parse_object(data) else dump(new)
    except BadRecord:
        return data


def _dump(record: object) -> bytes:
    return json.dumps(record, indent=2, ensure_ascii=False).encode() + b"\n"
