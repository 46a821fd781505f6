"""The house keeps its shape: what `make figures` counts, held here where it is reached."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import pytest

from scripts import figures


@cache
def counted() -> tuple[dict[str, int], dict[str, list[str]]]:
    return figures.figures()


def git(*arguments: str) -> str:
    run = ["git", "-C", str(figures.ROOT), *arguments]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "name",
    [
        "modules in an import cycle",
        "imports cli -> web",
        "class names without a known word",
        "class names that stand twice",
        "dict[str, Any] between rooms",
    ],
)
def test_what_the_layout_forbids_is_nowhere(name: str) -> None:
    assert counted()[1][name] == []


def test_no_figure_exceeds_its_limit() -> None:
    limits = figures.read_limits(figures.LIMITS.read_text())
    values = counted()[0]
    assert limits.keys() <= values.keys()
    assert {name: values[name] for name in limits if values[name] > limits[name]} == {}


@pytest.mark.real
@pytest.mark.needs_program("git")
def test_no_limit_is_higher_than_in_any_version_before() -> None:
    if not (figures.ROOT / ".git").exists():
        return  # unpacked without its history: nothing to compare with
    place = str(figures.LIMITS.relative_to(figures.ROOT))
    limits = figures.read_limits(figures.LIMITS.read_text(), with_allowances=False)
    for commit in git("log", "--format=%h", "--", place).split():
        before = figures.read_limits(git("show", f"{commit}:{place}"), with_allowances=False)
        raised = {name for name in before if limits.get(name, before[name] + 1) > before[name]}
        assert not raised, f"higher than at {commit}, or gone: {sorted(raised)}"


def test_a_name_without_a_known_word_and_an_untyped_signature_are_found(tmp_path: Path) -> None:
    package = tmp_path / "room"
    package.mkdir()
    (package / "__init__.py").write_text('"""Only its docstring: no module."""\n')
    (package / "part.py").write_text(
        "from typing import Any\n\n\nclass Wibble:\n    pass\n\n\n"
        "class TaskWibble:\n    def given(self, facts: dict[str, Any]) -> None: ...\n"
    )
    found = figures.measure(package)
    assert list(found.modules) == ["room.part"]
    assert found.untyped == [("room.part", "TaskWibble.given")]
    words = figures.known_words()
    assert figures.unknown_names(found.public_classes, words) == ["room.part.Wibble"]
