"""What holds for every test: which are skipped where, and that a skip is shown and fails in CI."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest

from mimikit.engines import process_tree
from tests.support import summaries
from tests.support.pace import within
from tests.support.programs import is_installed
from tests.support.runs import zombies

for profile, is_same in (("day", True), ("night", False)):
    hypothesis.settings.register_profile(
        profile,
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
        derandomize=is_same,
    )

EXEMPT = "skip-exempt"
BY_MARKER = {"browser": "chromium", "codex": "codex"}
"""Markers that name a program by themselves."""
LONG_FIRST = (
    "tests/crash/test_crash.py",
    "tests/soak/",
    "tests/process/test_kills.py",
    "tests/browser/",
    "tests/memory/test_search.py",
    "tests/web/test_serve.py",
    "tests/crash/",
    "tests/web/test_fuzz.py",
    "tests/process/",
    "tests/cli/",
    "tests/engines/",
    "tests/contract/",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--size`, the scale of the tests that can be as long as one likes, and `--table`."""
    parser.addoption(
        "--size", type=int, default=1, help="multiply the work of the tests marked slow (1)"
    )
    parser.addoption("--table", default="", help="write what was proved there, as Markdown")


@pytest.fixture(scope="session")
def size(pytestconfig: pytest.Config) -> int:
    """How many times the normal amount of work a slow test shall do."""
    return pytestconfig.option.size


@pytest.fixture
def proof(record_property: Callable[[str, object], None]) -> Callable[[dict[str, float]], None]:
    """Tell what was counted, by its name, for the table at the end (tests/support/summaries)."""
    return lambda counts: record_property("proof", counts)


@pytest.fixture(scope="session", autouse=True)
def no_weights_of_this_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A small model that whoever runs the tests has fetched answers in none of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module", autouse=True)
def waits_for_what_it_starts() -> Iterator[None]:
    """What a file left unwaited for is told there, not by a later one that looks for such.

    As in a consumer, orphans become ours: else which file is first would count.
    """
    process_tree.reap_orphans()
    yield
    pause, until = threading.Event(), time.monotonic() + within(2)
    while (left := dict(unwaited())) and time.monotonic() < until:
        pause.wait(0.01)  # a thread that waits for it may be a moment behind
    for pid in left:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    assert [*left.values()] == []


def unwaited() -> Iterator[tuple[int, str]]:
    """Children that have ended, with their names; but for those of another session."""
    for pid in zombies():
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if os.getsid(pid) == os.getsid(0):
                yield pid, Path(f"/proc/{pid}/comm").read_text().strip()


def pytest_configure(config: pytest.Config) -> None:
    """Watch for skips and sum up, once: in the process that reports, not in its workers.

    By day Hypothesis tries the same examples each time, so that no change fails by what it has not
    touched; by night new ones.
    """
    hypothesis.settings.load_profile("day" if config.option.size == 1 else "night")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipWatch(), "skip-watch")
        config.pluginmanager.register(summaries, "summaries")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Have the collector of garbage look at what tests make alone.

    Thousands of tests and all modules are millions of objects that stay: each of its full rounds
    went through all of them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first, and skip what lacks its program or its platform."""
    items.sort(key=_turn)
    for item in items:
        if summaries.proof_of(item.nodeid) is not None:
            item.add_marker("proof")
        markers = list(item.iter_markers())  # once: there are thousands of tests
        for marker in markers:
            if marker.name == "needs_platform" and sys.platform not in marker.args:
                item.add_marker(pytest.mark.skip(reason=f"only on {', '.join(marker.args)}"))
                item.user_properties.append((EXEMPT, True))
        for program in _programs(markers):
            if not _is_here(program):
                item.add_marker(pytest.mark.skip(reason=f"{program} is not installed"))


def _turn(item: pytest.Item) -> int:
    """A long file that begins late keeps one process busy when the others are done."""
    return next((n for n, start in enumerate(LONG_FIRST) if item.nodeid.startswith(start)), 99)


_is_here = functools.cache(is_installed)


def _programs(markers: list[pytest.Mark]) -> Iterator[str]:
    """The programs that a test's markers name."""
    for marker in markers:
        if marker.name == "needs_program":
            yield from map(str, marker.args)
        elif marker.name in BY_MARKER:
            yield BY_MARKER[marker.name]


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
