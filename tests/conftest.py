"""What holds for every test: its tier, where it is skipped, and that a skip fails in CI."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Iterator

import hypothesis
import pytest

from tests.support import summaries, tiers
from tests.support.programs import is_installed
from tests.support.runs import zombies
from tests.support.state import client, disk, files, judged
from tests.support.tiers import stays_in_process

__all__ = ["client", "disk", "files", "judged", "stays_in_process"]

hypothesis.settings.register_profile("gate", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("nightly", deadline=None)
hypothesis.settings.load_profile("gate")
tiers.watch_processes_and_sleeps()

EXEMPT = "skip-exempt"
LONG_FIRST = (
    "tests/crash/test_crash.py", "tests/soak/", "tests/process/test_kills.py", "tests/browser/",
    "tests/smoke/", "tests/crash/", "tests/memory/test_search.py", "tests/triggers/test_cron.py",
    "tests/web/", "tests/process/", "tests/engines/", "tests/language/", "tests/cli/",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--size`, the scale of the tests that can be as long as one likes, and `--table`."""
    parser.addoption(
        "--size", type=int, default=1, help="multiply the work of the tests marked slow (1)"
    )
    parser.addoption("--once", action="store_true", help="retry no smoke")
    parser.addoption("--table", default="", help="write one row per suite there, as Markdown")


@pytest.fixture(scope="session")
def size(pytestconfig: pytest.Config) -> int:
    """How many times the normal amount of work a slow test shall do."""
    return pytestconfig.option.size


@pytest.fixture(scope="module", autouse=True)
def waits_for_what_it_starts() -> Iterator[None]:
    """Fails the file that left a zombie process, not a later one."""
    yield
    left: list[int] = []
    for pid in zombies():
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if os.getsid(pid) == os.getsid(0):  # what is of another session any run takes note of
                os.waitpid(pid, os.WNOHANG)
                left.append(pid)
    assert left == []


def pytest_configure(config: pytest.Config) -> None:
    """Watch for skips and sum up, once: in the process that reports, not in its workers."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    soft = hard if 0 <= hard < 16384 else 16384  # thousands of tests in one process
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipWatch(), "skip-watch")
        config.pluginmanager.register(summaries, "summaries")
        if not config.option.once:
            config.pluginmanager.register(tiers.SmokeRetry(), "smoke-retry")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test its tier, put long files first, skip what lacks its program or platform."""
    items.sort(key=_turn)
    for item in items:
        if item.nodeid.startswith(tiers.SMOKES):
            item.add_marker("smoke")
        elif tiers.is_nightly(item.nodeid):
            item.add_marker("nightly")
        for marker in item.iter_markers("needs_platform"):
            if sys.platform not in marker.args:
                item.add_marker(pytest.mark.skip(reason=f"only on {', '.join(marker.args)}"))
                item.user_properties.append((EXEMPT, True))
        for program in _programs(item):
            if not is_installed(program):
                item.add_marker(pytest.mark.skip(reason=f"{program} is not installed"))


def _turn(item: pytest.Item) -> int:
    """Sort key: long files first, so that none runs alone at the end."""
    return next((n for n, start in enumerate(LONG_FIRST) if item.nodeid.startswith(start)), 99)


def _programs(item: pytest.Item) -> list[str]:
    """The programs that this test's markers name."""
    named = [str(name) for marker in item.iter_markers("needs_program") for name in marker.args]
    by_marker = {"browser": "chromium", "codex": "codex"}
    return named + [program for name, program in by_marker.items() if item.get_closest_marker(name)]


class SkipWatch:
    """Lists the skipped tests at the end; where `CI` is set, one is enough to fail the run.

    A test that another platform alone can run (`needs_platform`) is listed and forgiven.
    """

    def __init__(self) -> None:
        self.forgiven: list[str] = []
        self.counted: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a skipped test; one that is expected to fail is not a skip."""
        if report.skipped and not hasattr(report, "wasxfail"):
            exempt = (EXEMPT, True) in [tuple(pair) for pair in report.user_properties]
            self._note(report, self.forgiven if exempt else self.counted)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a file that skipped itself whole."""
        if report.skipped:
            self._note(report, self.counted)

    def _note(self, report: pytest.TestReport | pytest.CollectReport, skips: list[str]) -> None:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        skips.append(f"{report.nodeid}: {reason}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run in CI that would have passed with tests left out."""
        if self.counted and os.environ.get("CI") and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the list."""
        if not self.counted and not self.forgiven:
            return
        failing = bool(self.counted and os.environ.get("CI"))
        terminalreporter.section(
            "not run here: a failure, since CI is set" if failing else "not run here"
        )
        for line in self.counted + self.forgiven:
            terminalreporter.line(line, red=failing)
