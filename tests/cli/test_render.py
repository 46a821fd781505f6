"""Rendering of views in a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click
import pytest

from mimikit.cli import render, terminal
from mimikit.cli.doctor import DoctorReport, broken, warning
from mimikit.views.backlog import BacklogItem, BacklogView

CONTEXT = render.RenderContext(datetime(2026, 12, 1, tzinfo=UTC), ZoneInfo("UTC"), empty="Nothing.")
BACKLOG = BacklogView(items=[BacklogItem(number=3, text="买牛奶" * 30, done=False)], hash="h")


@pytest.mark.parametrize("columns", [40, 80])
def test_lines_fit_the_terminal_in_wide_characters_too(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(terminal, "terminal_width", lambda: columns)
    findings = [broken("状态", "磁盘已满" * 30, "mend it " * 20), warning("b", "c")]
    report = DoctorReport(settings=[], findings=findings)
    for view in (BACKLOG, report):
        lines = "\n".join(render.render(view, CONTEXT)).split("\n")
        assert all(terminal.width(click.unstyle(line)) <= columns for line in lines), lines


def test_piped_output_is_not_truncated() -> None:
    _, line = render.render(BACKLOG, CONTEXT)
    assert BACKLOG.items[0].text in line
