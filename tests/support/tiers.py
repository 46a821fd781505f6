"""Test tiers: the gate (`make test`) runs in process, the rest in `make nightly`.

A test outside the smokes that starts a process, forks or sleeps fails and says where it belongs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mimikit.sandbox import worker

NIGHTLY = (
    "tests/browser/",
    "tests/process/",
    "tests/security/",
    "tests/soak/",
    "tests/cli/test_process_group.py",
    "tests/cli/test_speed.py",
    "tests/cli/test_up.py",
    "tests/contract/test_huey_suite.py",
    "tests/contract/test_layers.py",
    "tests/contract/test_wheel.py",
    "tests/crash/test_crash.py",
    "tests/crash/test_faults.py",
    "tests/engines/conformance/",
    "tests/engines/test_codex.py",
    "tests/engines/test_codex_server.py",
    "tests/engines/test_local.py",
    "tests/engines/test_local_real.py",
    "tests/engines/test_openai_worker.py",
    "tests/engines/test_opencode.py",
    "tests/engines/test_opencode_settings.py",
    "tests/engines/test_process.py",
    "tests/engines/test_shell.py",
    "tests/flows/test_confined.py",
    "tests/flows/test_engine_journeys.py",
    "tests/flows/test_odd_files.py",
    "tests/flows/test_small_model.py",
    "tests/hueyfiles/test_page.py",
    "tests/hueyfiles/test_processes.py",
    "tests/language/test_other_readers.py",
    "tests/web/test_fuzz.py::test_many_odd_requests_cause_no_server_error",
    "tests/web/test_serve.py",
    # Single tests that start processes, fork or sleep.
    "tests/cli/test_backlog.py::test_chat_and_command_share_one_backlog",
    "tests/cli/test_chat.py::test_a_consumer_that_dies_meanwhile_ends_the_wait",
    "tests/cli/test_chat.py::test_a_conversation_may_come_through_a_pipe",
    "tests/cli/test_chat.py::test_a_conversation_shows_questions_and_later_results",
    "tests/cli/test_chat.py::test_json_has_the_whole_reply_and_nothing_else",
    "tests/cli/test_chat.py::test_waiting_reports_the_result_of_work_that_ends_immediately",
    "tests/cli/test_engines.py::test_it_is_tried_and_written_with_the_key_apart",
    "tests/cli/test_errors.py::test_a_closed_output_is_no_error",
    "tests/cli/test_errors.py::test_a_reader_that_leaves_early_is_no_error",
    "tests/cli/test_notify.py::test_a_real_child_sends_by_http",
    "tests/cli/test_notify.py::test_a_real_child_sends_by_smtp",
    "tests/cli/test_work.py::test_reading_commands_quarantine_nothing",
    "tests/cli/test_work.py::test_logs_are_shown_by_type_and_followed",
    "tests/cli/test_work.py::test_paused_queues_are_seen_everywhere_and_nothing_starts",
    "tests/cli/test_work.py::test_the_life_of_a_task_can_be_followed",
    "tests/cli/test_work.py::test_waiting_prints_the_result_and_nothing_else",
    "tests/engines/test_openai.py::test_an_answer_without_end_is_cut_off",
    "tests/engines/test_openai.py::test_nothing_of_the_client_is_imported_before_it_is_used",
    "tests/flows/test_writes.py::test_the_builtin_engine_and_commands_write_through_the_one_room",
    "tests/memory/test_search.py::test_threads_find_what_is_there_while_it_changes",
    "tests/memory/test_search.py::test_search_works_without_optional_packages",
    "tests/memory/test_tokens.py::test_counting_imports_no_tokenizer_by_itself",
    "tests/memory/test_tokens.py::test_the_ranks_load_and_count_with_every_socket_forbidden",
    "tests/protocol/test_real_disk.py::test_a_folder_that_is_closed_is_named",
    "tests/protocol/test_real_disk.py::test_a_lock_is_free_as_soon_as_its_holder_is_killed",
    "tests/protocol/test_real_disk.py::test_a_program_started_meanwhile_does_not_keep_the_lock",
    "tests/runner/test_consumer.py::test_each_signal_ends_it_in_good_order",
    "tests/sandbox/test_box.py::test_with_write_what_names_programs_stays_shut",
    "tests/web/test_engines.py::test_a_trial_lists_models_and_reports_the_result_of_a_test_turn",
    "tests/web/test_engines.py::test_a_trial_that_never_ends_times_out",
    "tests/web/test_markdown.py::test_pathological_texts_render_in_time",
)
"""Node id prefixes of tests with real processes or programs, long runs, durations, CPU, memory."""

MAX_SLEEP_S = 0.5
"""Total sleep allowed in a test of the gate: enough to poll for an event."""
SMOKES = "tests/smoke/"
MAX_UNSTEADY = 2
RETRY_S = 180
_STARTS = {"os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen"}
_seen: dict[str, float] = {}
"""What the running test has started, and its total sleep in seconds."""


def is_nightly(nodeid: str) -> bool:
    """Whether a test is left out of the gate by its place."""
    return nodeid.split("[")[0].startswith(NIGHTLY)


def watch_processes_and_sleeps() -> None:
    """Record started processes and sleeps from now on, for the life of this process."""

    def noted(event: str, arguments: tuple[object, ...]) -> None:
        if event in _STARTS:
            program = Path(str(arguments[0])).name if arguments else ""
            if program not in ("ldconfig", "uname"):  # ctypes and platform ask once a process
                _seen.setdefault(f"{event} {program}".strip(), 0.0)

    sys.addaudithook(noted)
    sleep = time.sleep

    def counted_sleep(seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():  # others do not hold up the test
            _seen["time.sleep"] = _seen.get("time.sleep", 0.0) + seconds
        sleep(seconds)

    time.sleep = counted_sleep


def fault_of_place(seen: dict[str, float]) -> str | None:
    """Why a test that did this does not belong in the gate; None if it does."""
    faults = [name for name in seen if name != "time.sleep"]
    if (slept := seen.get("time.sleep", 0.0)) > MAX_SLEEP_S:
        faults.append(f"time.sleep of {slept:g} s in all")
    if not faults:
        return None
    place = "mark it `nightly`, or add it to NIGHTLY in tests/support/tiers.py"
    return f"the gate runs in process, this test used {', '.join(sorted(faults))}: {place}"


@pytest.fixture(autouse=True)
def stays_in_process(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fails a test of the gate that starts a process, forks or really sleeps.

    Whether bubblewrap works is asked of a process: here it is taken for granted.
    """
    markers = ("real", "smoke", "slow", "nightly")
    if any(request.node.get_closest_marker(name) for name in markers):
        yield
        return
    monkeypatch.setattr(worker, "_probe", lambda *_flags: None)
    _seen.clear()
    yield
    if fault := fault_of_place(_seen):
        pytest.fail(fault, pytrace=False)


def passes_alone(nodeid: str, folder: Path) -> bool:
    """Run one smoke in a pytest of its own, and say whether it passed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "-m", "smoke", "--once", nodeid]
    env = {key: value for key, value in os.environ.items() if "XDIST" not in key}
    try:
        run = subprocess.run(command, cwd=folder, env=env, check=False, timeout=RETRY_S)
    except subprocess.TimeoutExpired:
        return False
    return run.returncode == 0


class SmokeRetry:
    """Runs a smoke that failed once more, alone, at the end; passing then, it is unsteady.

    At most two may be: a third fails the run. Nothing but smokes is retried.
    """

    def __init__(self, passes: Callable[[str, Path], bool] = passes_alone) -> None:
        self._passes = passes
        self.unsteady: list[str] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Before the summary: a smoke that passes on its retry is no failure any more."""
        reporter = session.config.pluginmanager.getplugin("terminalreporter")
        has_failed = session.exitstatus == pytest.ExitCode.TESTS_FAILED
        stats = reporter.stats if isinstance(reporter, pytest.TerminalReporter) else {}
        if has_failed and self.settle(stats, session.config.rootpath):
            session.exitstatus = pytest.ExitCode.OK
        return (yield)

    def settle(self, stats: dict[str, list[Any]], folder: Path) -> bool:
        """Retry the failed smokes and take the unsteady ones out of `stats`.

        Gives whether nothing else has failed.
        """
        failed = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())}
        smokes = sorted(name for name in failed if name.startswith(SMOKES))
        if len(smokes) <= MAX_UNSTEADY:
            self.unsteady = [name for name in smokes if self._passes(name, folder)]
        for kind in ("failed", "error"):
            kept = [one for one in stats.pop(kind, ()) if one.nodeid not in self.unsteady]
            if kept:
                stats[kind] = kept
        return bool(failed) and failed <= set(self.unsteady)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List what passed only on its retry."""
        if self.unsteady:
            terminalreporter.section("unsteady: failed, then passed alone")
            for name in self.unsteady:
                terminalreporter.line(name)
