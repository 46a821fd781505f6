"""Skills: folders of the user's with a `SKILL.md`, which tells how a kind of work is done here.

Each lies in `skills/NAME/` of the state folder: front matter with `name` and `description`, the
text, and whatever other files it speaks of. A model is told their names and descriptions, and reads
one when its work is of that kind.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mimikit.errors import BadInput, Conflict, NotFound, StorageError, UnsafeFile
from mimikit.language.plain_text import plain, size_words
from mimikit.protocol import folders, paths
from mimikit.protocol.files import Files

SKILL_FILE = "SKILL.md"
MOST_SKILLS = 64
MOST_DESCRIPTION = 1024
MOST_FILES, MOST_BYTES, MOST_DEPTH = 200, 20 * 2**20, 8
"""Of all files of one skill."""
MOST_TEXT_BYTES = 256 * 1024
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_NAMED_SO = "small letters, digits and hyphens, at most 64 of them"
_KEY = re.compile(r"([A-Za-z_][\w-]*):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"[|>][+-]?[0-9]?[+-]?(?:\s+#.*)?")
_UNWANTED = frozenset({".git", ".DS_Store", "__pycache__", ".venv", "node_modules"})
"""What lies beside a skill that is worked on, and is none of it."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One that can be read."""

    name: str
    description: str
    text: str
    """All of its `SKILL.md`."""


@dataclass(frozen=True, slots=True)
class SkillFault:
    """A folder that is no skill, and why."""

    name: str
    reason: str


def look(files: Files) -> tuple[list[Skill], list[SkillFault]]:
    """The skills that can be read, by name, and what is wrong with the others."""
    found: list[Skill] = []
    faults: list[SkillFault] = []
    for name, kind in folders.listed(files, paths.SKILLS):
        if name.startswith("."):
            continue
        shown = plain(name.encode(errors="replace").decode())[:80]
        if kind != "folder":
            faults.append(SkillFault(shown, f"expected a folder with a {SKILL_FILE}, got a file"))
            continue
        if len(found) >= MOST_SKILLS:
            faults.append(SkillFault(shown, f"expected at most {MOST_SKILLS} skills, got more"))
            continue
        try:
            found.append(load(files, name))
        except (BadInput, StorageError) as error:
            faults.append(SkillFault(shown, str(error)))
    return found, faults


def load(files: Files, name: str) -> Skill:
    """A skill by its name.

    Raises:
        NotFound: there is none.
        BadInput: what there is can not be used.
        UnsafeFile: it is no file of ours, or too long.
    """
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"expected a name of {_NAMED_SO}, got {name[:80]!r}", field="name")
    found = files.stat(f"{paths.SKILLS}/{name}")
    if found is None:
        raise NotFound(f"expected a skill that is there, got {name!r}", field="name")
    path = f"{paths.SKILLS}/{name}/{SKILL_FILE}"
    data = files.read(path, most=MOST_TEXT_BYTES)
    if data is None:
        raise BadInput(f"expected {path}, got none; add the skill again, or remove it")
    skill = _parsed(data, path)
    if skill.name != name:
        raise BadInput(
            f"{path}: expected `name: {name}`, as its folder is called, got {skill.name}"
        )
    return skill


def entries(files: Files, name: str) -> list[str]:
    """The paths of all files of a skill, below its folder; links and what is hidden are none."""
    found: list[str] = []
    inside = [""]
    while inside:
        folder = inside.pop()
        below = f"{folder}/" if folder else ""
        if below.count("/") >= MOST_DEPTH or len(found) > MOST_FILES:
            continue
        for entry, kind in folders.listed(files, f"{paths.SKILLS}/{name}/{folder}".rstrip("/")):
            if entry.startswith(".") or not entry.isprintable():
                continue
            if kind == "folder":
                inside.append(below + entry)
            elif kind == "file":
                found.append(below + entry)
    return sorted(found)[:MOST_FILES]


def read(files: Files, name: str, file: str) -> bytes:
    """The bytes of one file of a skill.

    Raises:
        BadInput: it is no path below the skill's folder, or there is no such file.
        UnsafeFile: it is no plain file, or too large.
    """
    parts = file.split("/")
    if len(parts) > MOST_DEPTH or any(
        part in ("", ".", "..") or not part.isprintable() for part in parts
    ):
        raise BadInput(
            f"expected the path of a file of the skill, got {file[:200]!r}", field="file"
        )
    try:
        data = files.read(f"{paths.SKILLS}/{name}/{file}", most=MOST_BYTES)
    except UnsafeFile:
        raise
    except StorageError:  # a part of it is a link, or no folder
        data = None
    if data is None:
        known = ", ".join(entries(files, name)[:20])
        raise BadInput(f"expected one of {known}; got {file[:200]!r}", field="file")
    return data


def add(files: Files, folder: Path) -> Skill:
    """Copy a folder with a `SKILL.md` into the state folder.

    Crash: the whole skill is there or none; at most a half-made copy lies in `cache/`.

    Raises:
        BadInput: it is no skill, or holds more than one may.
        Conflict: there is one of that name.
    """
    skill = _parsed(_bytes_of(folder / SKILL_FILE, folder, MOST_TEXT_BYTES), SKILL_FILE)
    target = f"{paths.SKILLS}/{skill.name}"
    if files.exists(target):
        raise Conflict(
            f"expected a name that is free, got {skill.name!r}; `mimikit skills remove "
            f"{skill.name}` removes the one there is"
        )
    copy = f"{paths.CACHE}/skill-{secrets.token_hex(6)}"
    made = [paths.SKILLS, copy]
    files.make_folders(made)
    size = 0
    for count, name in enumerate(_names_of(folder), 1):
        if count > MOST_FILES:
            raise BadInput(f"{folder}: expected a skill of at most {MOST_FILES} files, got more")
        data = _bytes_of(folder / name, folder, MOST_BYTES - size)
        size += len(data)
        for depth in range(1, name.count("/") + 1):
            above = f"{copy}/{'/'.join(name.split('/')[:depth])}"
            if above not in made:
                files.make_folders([above])
                made.append(above)
        files.write(f"{copy}/{name}", data)
    files.move(copy, target)
    return load(files, skill.name)


def remove(files: Files, name: str) -> None:
    """Remove a skill, or what is none and lies in its place.

    Crash: it is there or gone; at most what is left of it lies in `cache/`.

    Raises:
        NotFound: there is nothing of that name.
    """
    if name in ("", ".", "..") or "/" in name or not files.exists(f"{paths.SKILLS}/{name}"):
        known = ", ".join(skill.name for skill in look(files)[0]) or "none yet"
        raise NotFound(f"expected a skill that is there ({known}), got {name[:80]!r}")
    gone = f"{paths.CACHE}/skill-{secrets.token_hex(6)}"
    files.move(f"{paths.SKILLS}/{name}", gone)
    folders.remove_all(files, gone)


def _parsed(data: bytes, where: str) -> Skill:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{where}: expected UTF-8 text, got byte {error.start} that is not"
        ) from None
    facts = front_matter(text, where)
    name, said = facts.get("name", ""), " ".join(plain(facts.get("description", "")).split())
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"{where}: expected a `name` of {_NAMED_SO}, got {name[:80]!r}")
    if not said:
        raise BadInput(f"{where}: expected a `description` of what it is for, got none")
    said = said if len(said) <= MOST_DESCRIPTION else f"{said[: MOST_DESCRIPTION - 1]}…"
    return Skill(name, said, plain(text))


def front_matter(text: str, where: str) -> dict[str, str]:
    """The texts between two lines `---` at the beginning, by key; of lists and tables nothing.

    Raises:
        BadInput: there is none.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    try:
        end = next(n for n, line in enumerate(lines) if n and line.rstrip() == "---")
    except StopIteration:
        end = 0
    if not end or lines[0].rstrip() != "---":
        raise BadInput(f"{where}: expected it to begin with `name` and `description` between `---`")
    found: dict[str, str] = {}
    number = 1
    while number < end:
        line, number = lines[number], number + 1
        if not line.strip() or line.startswith("#"):
            continue
        match = _KEY.fullmatch(line.rstrip())
        if match is None:
            raise BadInput(f"{where}: expected `key: value` on line {number}, got {line[:60]!r}")
        more: list[str] = []
        while number < end and (not lines[number].strip() or lines[number][:1] in " \t-"):
            more.append(lines[number])
            number += 1
        found[match[1]] = _value((match[2] or "").strip(), more)
    return found


def _value(first: str, more: list[str]) -> str:
    """A text as YAML has it: plain, in quotes, or a block of the lines below."""
    below = [line.strip() for line in more]
    if _BLOCK.fullmatch(first):
        return ("\n" if first[0] == "|" else " ").join(below).strip()
    whole = " ".join(part for part in (first, *below) if part)
    if whole[:1] == '"' and len(whole) > 1 and whole.endswith('"'):
        try:
            return str(json.loads(whole))
        except ValueError:
            return whole[1:-1]
    if whole[:1] == "'" and len(whole) > 1 and whole.endswith("'"):
        return whole[1:-1].replace("''", "'")
    return re.sub(r"\s#.*$", "", whole).strip()


def _names_of(folder: Path) -> Iterator[str]:
    """Every file below a folder that is to be copied, by its path there."""
    for top, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if name not in _UNWANTED)
        below = Path(top).relative_to(folder)
        if len(below.parts) >= MOST_DEPTH:
            raise BadInput(f"{folder}: expected folders of at most {MOST_DEPTH} levels, got more")
        for name in sorted([*names, *(n for n in inner if (Path(top) / n).is_symlink())]):
            if name not in _UNWANTED and not name.startswith("."):
                yield (below / name).as_posix()


def _bytes_of(path: Path, folder: Path, most: int) -> bytes:
    """What a file of the folder to be copied holds.

    Raises:
        BadInput: it is no plain file, or there is more than a skill may hold.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        what = "got a link" if path.is_symlink() else (error.strerror or "").lower()
        raise BadInput(f"{path}: expected a plain file of the skill, {what}") from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise BadInput(f"{path}: expected a plain file of the skill, got something else")
        data = file.read(most + 1)
    if len(data) > most:
        what = f"{path}: too long" if most == MOST_TEXT_BYTES else f"{folder}: too large"
        raise BadInput(f"{what}; a skill takes {size_words(MOST_BYTES)} at most")
    return data
