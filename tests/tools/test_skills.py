"""Skills: what is one, how it comes into the state folder and goes, and what is read of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mimikit.errors import BadInput, Conflict, NotFound, StorageError, UnsafeFile
from mimikit.protocol import folders, paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.roles.scratch import make_scratch, remove_scratch
from mimikit.testing.memory_disk import Crash, MemoryDisk
from mimikit.tools import skills
from mimikit.tools.skill_reader import lay_out
from mimikit.tools.skills import Skill, front_matter

TEXT = """---
name: weekly-report
description: How the weekly report is made.
license: MIT
metadata:
  author: somebody
allowed-tools:
  - Bash
---
# The weekly report

Run `scripts/count.sh`, and say what it prints.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "anything"
    (made / "scripts").mkdir(parents=True)
    (made / "SKILL.md").write_text(TEXT)
    (made / "scripts" / "count.sh").write_text("#!/bin/sh\necho 7\n")
    (made / "data.bin").write_bytes(b"\x00\xff")
    (made / ".git").mkdir()
    (made / ".git" / "config").write_text("[core]")
    return made


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (made := tmp_path / paths.STATE_FOLDER).mkdir()
    return made


@pytest.fixture
def files(state: Path) -> Files:
    made = Files(RealDisk(state), durable=False)
    made.make_folders()
    return made


def put(files: Files, name: str, text: str) -> None:
    files.make_folders([f"skills/{name}"])
    files.write(f"skills/{name}/SKILL.md", text.encode())


# ---- what is one


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("description: plain # not this", "plain"),
        ("description: of two\n  lines", "of two lines"),
        ('description: "a: b \\"c\\" #d"', 'a: b "c" #d'),
        ("description: 'it''s'", "it's"),
        ("description: >-\n  folded\n  over lines\n", "folded over lines"),
        ("description: |\n  as it\n  stands\n", "as it\nstands"),
        ("description:\n  below", "below"),
        ("description: 中文说明：做周报", "中文说明：做周报"),
    ],
)
def test_front_matter_is_read_as_it_is_usually_written(written: str, meant: str) -> None:
    found = front_matter(f"---\nname: a\n{written}\nmore: x\n---\ntext", "SKILL.md")
    assert found["description"] == meant
    assert found["more"] == "x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no front matter", "to begin with `name` and `description`"),
        ("---\nname: a\n", "to begin with `name` and `description`"),
        ("---\nnonsense\n---\n", "`key: value` on line 2"),
        ("---\ndescription: x\n---\n", "a `name` of small letters"),
        ("---\nname: Not This\ndescription: x\n---\n", "a `name` of small letters"),
        ("---\nname: broken\n---\n", "a `description`"),
        ("---\nname: other\ndescription: x\n---\n", "expected `name: broken`"),
    ],
)
def test_what_is_wrong_with_a_broken_one_is_said_and_the_others_are_offered(
    files: Files, text: str, said: str
) -> None:
    put(files, "broken", text)
    put(files, "weekly-report", TEXT)
    found, faults = skills.look(files)
    assert [one.name for one in found] == ["weekly-report"]
    assert [fault.name for fault in faults] == ["broken"]
    assert said in faults[0].reason


def test_a_description_is_one_plain_line_of_bounded_length(files: Files) -> None:
    said = "do\u202e this\x1b[31m " * 300
    put(files, "a", f"---\nname: a\ndescription: |\n  {said}\n  # Input\n---\n")
    skill = skills.load(files, "a")
    assert len(skill.description) == skills.MOST_DESCRIPTION
    assert not {"\u202e", "\x1b", "\n"} & set(skill.description)


def test_a_folder_that_is_empty_a_file_and_a_link_are_none(state: Path, files: Files) -> None:
    (state / "skills" / "file").touch()
    (state / "skills" / "empty").mkdir()
    (state / "skills" / "link").symlink_to("/etc")
    found, faults = skills.look(files)
    assert found == []
    assert {fault.name for fault in faults} == {"file", "empty", "link"}


def test_of_too_many_the_first_are_offered(files: Files) -> None:
    for number in range(skills.MOST_SKILLS + 1):
        put(files, f"s-{number:03}", f"---\nname: s-{number:03}\ndescription: x\n---\n")
    found, faults = skills.look(files)
    assert len(found) == skills.MOST_SKILLS
    assert [fault.name for fault in faults] == [f"s-{skills.MOST_SKILLS:03}"]


# ---- how it comes and goes


def test_a_folder_is_copied_under_the_name_it_gives_itself(folder: Path, files: Files) -> None:
    skill = skills.add(files, folder)
    assert skill == Skill("weekly-report", "How the weekly report is made.", TEXT)
    assert skills.entries(files, skill.name) == ["SKILL.md", "data.bin", "scripts/count.sh"]
    assert skills.read(files, skill.name, "data.bin") == b"\x00\xff"
    assert not [name for name, _ in folders.listed(files, paths.CACHE) if name.startswith("skill-")]
    with pytest.raises(Conflict, match="skills remove weekly-report"):
        skills.add(files, folder)
    skills.remove(files, skill.name)
    assert skills.look(files) == ([], [])
    assert folders.listed(files, paths.SKILLS) == []
    assert not [name for name, _ in folders.listed(files, paths.CACHE) if name.startswith("skill-")]
    with pytest.raises(NotFound, match="none yet"):
        skills.remove(files, skill.name)


@pytest.mark.parametrize("name", ["../inbox", "..", "", ".", "a/b"])
def test_nothing_else_is_removed(files: Files, name: str) -> None:
    with pytest.raises(NotFound):
        skills.remove(files, name)
    assert files.exists(paths.INBOX)


def test_a_link_too_much_and_too_deep_are_refused_and_leave_no_skill(
    folder: Path, files: Files
) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(BadInput, match="got a link"):
        skills.add(files, folder)
    (folder / "link").unlink()
    (folder / "linked").symlink_to("/etc", target_is_directory=True)
    with pytest.raises(BadInput, match="got a link"):
        skills.add(files, folder)
    (folder / "linked").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(BadInput, match="something else"):
        skills.add(files, folder)
    (folder / "pipe").unlink()
    for number in range(skills.MOST_FILES):
        (folder / f"{number}.txt").touch()
    with pytest.raises(BadInput, match="at most 200 files"):
        skills.add(files, folder)
    for number in range(skills.MOST_FILES):
        (folder / f"{number}.txt").unlink()
    (folder / "big").write_bytes(b"")
    os.truncate(folder / "big", skills.MOST_BYTES)
    with pytest.raises(BadInput, match="too large"):
        skills.add(files, folder)
    (folder / "big").unlink()
    (folder / "/".join("abcdefgh")).mkdir(parents=True)
    with pytest.raises(BadInput, match="at most 8 levels"):
        skills.add(files, folder)
    assert skills.look(files) == ([], [])


def test_a_crash_leaves_the_whole_skill_or_none(folder: Path) -> None:
    step = 0
    while True:
        disk = MemoryDisk()
        files = Files(disk)
        files.make_folders()
        disk.crash_at = len(disk.log) + step
        try:
            skills.add(files, folder)
            skills.remove(files, "weekly-report")
        except Crash:
            left = [disk.after_kill(), *disk.after_power_loss()]
        else:
            break
        for image in left:
            found, faults = skills.look(Files(image))
            assert faults == []
            for skill in found:
                assert skills.entries(Files(image), skill.name) == [
                    *("SKILL.md", "data.bin", "scripts/count.sh")
                ]
                assert skill.text == TEXT
        step += 1
    assert step > 20


# ---- what is read of it


@pytest.mark.parametrize(
    "file",
    ["../../inbox", "/etc/passwd", "scripts/../../x", "", "scripts//count.sh", "a\0b", "scripts",
     "SKILL.md/x", "no.txt", "a/" * 20 + "b"],
)  # fmt: skip
def test_nothing_outside_of_a_skill_is_read(folder: Path, files: Files, file: str) -> None:
    skills.add(files, folder)
    with pytest.raises((BadInput, UnsafeFile)):
        skills.read(files, "weekly-report", file)


def test_links_in_a_skill_are_not_followed(state: Path, folder: Path, files: Files) -> None:
    skills.add(files, folder)
    place = state / "skills" / "weekly-report"
    (place / "passwd").symlink_to("/etc/passwd")
    (place / "etc").symlink_to("/etc", target_is_directory=True)
    for file in ("passwd", "etc/passwd"):
        with pytest.raises((BadInput, UnsafeFile)):
            skills.read(files, "weekly-report", file)
    assert "passwd" not in " ".join(skills.entries(files, "weekly-report"))
    (state / "skills" / "weekly-report").rename(state / "elsewhere")
    place.symlink_to(state / "elsewhere", target_is_directory=True)
    with pytest.raises((BadInput, StorageError)):
        skills.load(files, "weekly-report")


def test_a_run_gets_copies_that_are_read_only_and_run_as_scripts(
    state: Path, folder: Path, files: Files
) -> None:
    skills.add(files, folder)
    scratch = make_scratch(state)
    for _ in range(2):  # it may be read again
        place = lay_out(files, "weekly-report", scratch)
        assert place == scratch / "skills" / "weekly-report"
        assert (place / "scripts/count.sh").stat().st_mode & 0o777 == 0o500
        assert (place / "data.bin").stat().st_mode & 0o777 == 0o400
        assert (place / "SKILL.md").read_text() == TEXT
    remove_scratch(scratch)
    assert not scratch.exists()


@pytest.mark.parametrize(
    "where", ["skills", "skills/weekly-report", "skills/weekly-report/scripts"]
)
def test_a_run_can_not_have_copies_written_elsewhere(
    state: Path, folder: Path, files: Files, tmp_path: Path, where: str
) -> None:
    skills.add(files, folder)
    scratch, outside = make_scratch(state), tmp_path / "outside"
    outside.mkdir()
    (scratch / where).parent.mkdir(parents=True, exist_ok=True)
    (scratch / where).symlink_to(outside, target_is_directory=True)
    with pytest.raises(StorageError):
        lay_out(files, "weekly-report", scratch)
    assert list(outside.iterdir()) == []
    remove_scratch(scratch)
