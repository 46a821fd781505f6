"""What a view looks like in a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import click
import pytest

from mimikit.cli import doctor, render, terminal
from mimikit.cli.doctor import DoctorReport, SettingView, broken, warning
from mimikit.views.backlog import BacklogItem, BacklogView
from mimikit.views.base import View

CONTEXT = render.RenderContext(datetime(2026, 12, 1, tzinfo=UTC), ZoneInfo("UTC"), empty="Nothing.")
BACKLOG = BacklogView(items=[BacklogItem(number=3, text="买牛奶" * 30, done=False)], hash="h")


@pytest.mark.parametrize("columns", [40, 80])
def test_lines_fit_the_terminal_in_wide_characters_too(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(terminal, "room", lambda: columns)
    findings = [broken("状态", "磁盘已满" * 30, "mend it " * 20), warning("b", "c")]
    report = DoctorReport(settings=[], findings=findings)
    for view in (BACKLOG, report):
        lines = "\n".join(render.render(view, CONTEXT)).split("\n")
        assert all(terminal.width(click.unstyle(line)) <= columns for line in lines), lines


def test_what_is_piped_is_whole() -> None:
    _, line = render.render(BACKLOG, CONTEXT)
    assert BACKLOG.items[0].text in line


def test_an_empty_list_says_so() -> None:
    assert list(render.render(BacklogView(items=[], hash="h"), CONTEXT)) == ["Nothing."]


def test_findings_are_counted_and_settings_named_with_their_origin() -> None:
    setting = SettingView(key="web.port", value=9000, origin="config.toml")
    report = DoctorReport(settings=[setting], findings=[broken("a", "b"), warning("c", "d")])
    text = click.unstyle("\n".join(doctor.render.render(report, CONTEXT)))
    assert "port = 9000 (config.toml)" in text
    assert text.endswith("1 thing is broken, 1 warning.")


def test_a_view_without_lines_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a view that has lines, got View"):
        render.render(View(), CONTEXT)


def test_a_long_heading_does_not_run_into_its_fact() -> None:
    (line,) = terminal.facts([("reminds you", "every 2 hours")])
    assert click.unstyle(line).strip() == "reminds you every 2 hours"
