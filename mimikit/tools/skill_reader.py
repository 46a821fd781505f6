"""`read_skill`: what a Planner or Worker reads of a skill, and the copies that a Worker is given.

The state folder is closed to Workers: what a skill speaks of is copied into the run's own folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from mimikit import permission
from mimikit.engines.base import SKILLS, SkillLine, ToolReply, ToolSpec, tool_spec
from mimikit.errors import BadInput
from mimikit.language.plain_text import plain
from mimikit.protocol.disk import DiskErrors, RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.records import bad_record
from mimikit.tools import skills
from mimikit.tools.provider import ToolRun

MOST_SHOWN = 60_000
"""Characters of one file; of a longer one the beginning."""


class ReadSkillArguments(BaseModel):
    """Read a skill, which tells how the user wants a kind of work done; its files are listed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    file: (
        Annotated[
            str,
            StringConstraints(min_length=1, max_length=1000),
            Field(description="another file of it, by its path there"),
        ]
        | None
    ) = None


class SkillReader:
    """A provider of tools. It looks at the folder anew for each run and call."""

    name = "skills"
    works_in_tree = False

    def __init__(self, files: Files) -> None:
        self._files = files

    def specs(self, run: ToolRun) -> Sequence[ToolSpec]:
        """One tool; none where there is no skill."""
        del run
        is_any = bool(skills.look(self._files)[0])
        return [tool_spec(permission.READ_SKILL, ReadSkillArguments)] if is_any else []

    def call(self, name: str, given: Mapping[str, object], run: ToolRun) -> ToolReply:
        """Give the text of a skill or of a file of it; a Worker gets copies of all of them.

        Raises:
            BadInput: there is no such skill, or no such file.
            StorageError: it can not be read, or not be copied.
        """
        del name
        try:
            args = ReadSkillArguments.model_validate(given)
        except ValidationError as error:
            raise bad_record(error) from None
        try:
            skill = skills.load(self._files, args.name)
        except BadInput:
            known = ", ".join(one.name for one in skills.look(self._files)[0]) or "none"
            raise BadInput(f"expected a skill ({known}), got {args.name[:80]!r}") from None
        place, scratch = "", run.place.scratch
        if run.role == "worker" and scratch is not None:
            place = str(lay_out(self._files, skill.name, scratch))
        if args.file is not None and args.file != skills.SKILL_FILE:
            return ToolReply(True, self._file(skill.name, args.file, place))
        files = [one for one in skills.entries(self._files, skill.name) if one != skills.SKILL_FILE]
        where = f" in {place}, read-only" if place else ""
        told = f"Its files{where}: {', '.join(files)}" if files else "It has no other files."
        return ToolReply(True, f"The skill {skill.name}. {told}\n\n{_shown(skill.text)}")

    def _file(self, name: str, file: str, place: str) -> str:
        data = skills.read(self._files, name, file)
        where = f" It lies at {place}/{file}, read-only." if place else ""
        head = f"{file}, of the skill {name}.{where}"
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return f"{head} It is no text."
        return f"{head}\n\n{_shown(plain(text))}"


def lines(files: Files) -> tuple[SkillLine, ...]:
    """The skills that a run may read, as its prompt tells of them."""
    return tuple(SkillLine(one.name, one.description) for one in skills.look(files)[0])


def _shown(text: str) -> str:
    cut = len(text) - MOST_SHOWN
    return (
        f"{text[:MOST_SHOWN]}\n\n… (the last {cut:,} characters are left out)" if cut > 0 else text
    )


def lay_out(files: Files, name: str, scratch: Path) -> Path:
    """Put copies of a skill's files into a run's scratch folder, read-only; gives where.

    The run is going on, and may have put anything there: no link in it is followed, and what stands
    in the way of a copy stays.

    Raises:
        StorageError: something of the run's stands where the folder should.
    """
    folder = f"{SKILLS}/{name}"
    with contextlib.closing(RealDisk(scratch)) as disk, DiskErrors(folder):
        disk.make_dir(SKILLS)
        disk.make_dir(folder)
        for file in skills.entries(files, name):
            data = skills.read(files, name, file)
            *above, last = file.split("/")
            place = folder
            for part in above:
                place = f"{place}/{part}"
                disk.make_dir(place)
            mode = 0o500 if data.startswith(b"#!") else 0o400
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with contextlib.suppress(FileExistsError):  # it was read before
                number = os.open(last, flags, mode, dir_fd=disk.folder_fd(place))
                with os.fdopen(number, "wb") as copy:
                    copy.write(data)
    return scratch / folder
