"""The house keeps its shape: what `make figures` counts, held here where it is reached."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from scripts import figures


@cache
def counted() -> tuple[list[tuple[str, object, str]], dict[str, list[str]]]:
    return figures.figures()


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


def test_no_figure_is_beyond_its_limit() -> None:
    assert [row for row in counted()[0] if row[2] and int(str(row[1])) > int(row[2])] == []


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
