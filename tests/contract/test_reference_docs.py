"""docs/cli.md and docs/records.md say what the commands and the records are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mimikit.protocol import paths
from scripts import make_reference_docs as reference

REPO = Path(__file__).parents[2]
STALE = "it is stale: run `make docs`"


def test_the_reference_of_commands_is_that_of_the_program() -> None:
    made = reference.cli_md()
    assert made == reference.COMMANDS.read_text(), STALE
    assert made.count("## `mimikit enqueue`") == 1


def test_the_reference_of_records_is_that_of_the_models() -> None:
    made = reference.records_md()
    assert made == reference.RECORDS.read_text(), STALE
    assert "| `triggeredAt` |" in made


def test_no_record_is_shown_by_what_python_calls_it() -> None:
    shown = reference.RECORDS.read_text()
    assert not re.findall(r"Annotated|Undefined|object at|class '", shown)


@pytest.mark.parametrize(
    "path", [paths.HISTORY, paths.PENDING_QUESTION, paths.TRIGGERS, paths.INBOX, paths.COMMANDS]
)
def test_the_protocol_names_what_lies_on_disk(path: str) -> None:
    assert f"`{path}" in (REPO / "docs" / "protocol.md").read_text()
