"""The repository holds on every machine: it names no path or host of the one it was made on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]

# Written in pieces, so that this file does not hold what it looks for.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"(?<![\w.~}-])/" + "work/",
            "/root/" + r"\.pyenv",
            "/opt/" + "(wheels|pypi)",
            "pypi" + r"\.org",
            "python" + r"hosted\.org",
            "registry" + r"\.(npmjs\.org|yarnpkg\.com)",
            r"(deb|security|snapshot)\." + r"debian\.org",
            "proxy" + r"\.golang\.org",
            "static" + r"\.crates\.io",
        ]
    )
)


def repository_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    return [REPO / name for name in listed.stdout.split("\0") if name]


@pytest.mark.real
def test_no_file_names_a_machine_path_or_a_registry_host() -> None:
    files = [path for path in repository_files() if path.is_file()]
    found = [
        f"{path.relative_to(REPO)}:{number}: {match.group()}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if (match := FORBIDDEN.search(line))
    ]
    assert files
    assert not found


def test_no_group_is_possessive() -> None:
    """CPython before 3.11.5 matches `(...)*+` wrongly: write `(?>(...)*)`."""
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")
    files = [*(REPO / "mimikit").rglob("*.py"), *(REPO / "mimikit").rglob("*.toml")]
    assert [path for path in files if possessive.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.real
@pytest.mark.needs_program("git")
def test_no_instruction_installs_the_package_that_only_shares_our_name() -> None:
    """`mimikit` on the package index is another project; ours is `mimikit-assistant`."""
    wrong = re.compile(
        r"\bmimikit" + r"\[|install\b[^\n`]*?[ '\"=]mimikit(?=['\"`]|==|$)", re.MULTILINE
    )
    found = [
        f"{path.relative_to(REPO)}: {match.group()}"
        for path in repository_files()
        if path.is_file() and path.suffix in {".md", ".py", ".toml", ".js", ".json", ".html", ".sh"}
        for match in wrong.finditer(path.read_text(errors="replace"))
    ]
    assert not found
