"""A shell line runs as its owner would run it; what it prints is shown and kept within limits."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mimikit.config import LimitSettings, Settings
from mimikit.engine_settings import CommandSettings
from mimikit.engines import process, sandbox, shell
from mimikit.engines.base import CancelToken, Outcome
from mimikit.engines.shell import ShellEngine
from tests.support.engine_requests import Desk
from tests.support.pace import within
from tests.support.runs import Ground, alive, ground, tag


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return ground(tmp_path)


def engine(command: str = "auto", **limits: float) -> ShellEngine:
    settings = CommandSettings.model_validate({"sandbox": command})
    return ShellEngine(Settings(limits=LimitSettings.model_validate(limits), command=settings))


def run(here: Ground, line: str, desk: Desk | None = None, **limits: float) -> Outcome:
    return engine("auto", **limits).run(here.request(line, desk=desk))


def test_the_output_is_the_result(here: Ground) -> None:
    outcome = run(here, "pwd; echo to stderr >&2")
    assert outcome.status == "done"
    assert sorted(outcome.text.splitlines()) == sorted([str(here.workspace), "to stderr"])
    assert (outcome.exit_code, outcome.error, outcome.failure_reason) == (0, None, None)


def test_a_failing_line_tells_its_code_and_its_last_complaints(here: Ground) -> None:
    complaints = "; ".join(f"echo complaint {number} >&2" for number in range(9))
    outcome = run(here, f"echo out; {complaints}; exit 3")
    assert (outcome.status, outcome.failure_reason, outcome.exit_code) == ("failed", "error", 3)
    told = [f"complaint {number}" for number in range(4, 9)]
    assert outcome.error == "\n".join(["exit code 3", *told])
    assert "out\n" in outcome.text


def test_a_line_ended_by_a_signal_says_so(here: Ground) -> None:
    outcome = run(here, "kill -9 $$")
    assert (outcome.error, outcome.exit_code) == ("ended by SIGKILL", 137)


def test_output_is_shown_while_it_comes_but_not_in_crumbs(here: Ground) -> None:
    desk, enough = Desk(), here.workspace / "enough"
    keep = desk.event

    def see(kind: str, text: str, data: dict[str, Any]) -> None:
        keep(kind, text, data)
        if len(desk.events) >= 4:  # it comes while the line goes on
            enough.touch()

    desk.event = see  # type: ignore[method-assign]
    begun = time.monotonic()
    go_on = "i=$((i+1)); echo $i; echo e$i >&2; sleep 0.01"
    run(here, f"i=0; while [ $i -lt 60 ] || [ ! -e enough ]; do {go_on}; done", desk)
    took_s = time.monotonic() - begun
    assert {kind for kind, _, _ in desk.events} == {"output"}
    shown = dict.fromkeys(("stdout", "stderr"), "")
    for _, text, data in desk.events:
        shown[data["stream"]] += text
    count = len(shown["stdout"].split())
    assert shown["stdout"].split() == [str(number) for number in range(1, count + 1)]
    assert shown["stderr"].split() == [f"e{number}" for number in range(1, count + 1)]
    batches = took_s / 0.11 + 2  # with the first and the last, which do not wait
    assert 4 <= len(desk.events) <= 2 * batches


def test_colours_and_broken_bytes_are_made_plain(here: Ground) -> None:
    outcome = run(here, r"printf '\033[31mred\033[0m \377\n'")
    assert outcome.text == "red \ufffd\n"


def test_a_long_result_is_its_end(here: Ground) -> None:
    desk = Desk()
    outcome = run(here, "seq 200000", desk, result_bytes=5000, output_bytes=200_000)
    assert outcome.text.endswith("\n199999\n200000\n")
    assert outcome.text.startswith("[the first ")
    assert 4900 < len(outcome.text) < 5100
    assert outcome.data["cutCharacters"] > 1_000_000
    shown = "".join(text for _, text, _ in desk.events)
    assert shown == "".join(f"{number}\n" for number in range(1, 200_001))  # each line of it


def test_an_endless_line_is_ended(here: Ground) -> None:
    outcome = run(here, "yes", output_bytes=500_000, result_bytes=1000)
    assert (outcome.status, outcome.failure_reason) == ("failed", "error")
    assert outcome.error == "ended: it printed more than 5000000 bytes"


@pytest.mark.fault("codex#7846")
@pytest.mark.parametrize("command", ["auto", "off"])
def test_what_the_line_leaves_running_ends_with_it(here: Ground, command: str) -> None:
    name = tag()
    outcome = engine(command).run(here.request(f"sleep {name} & echo started"))
    assert (outcome.status, outcome.text) == ("done", "started\n")
    assert outcome.data == {}
    assert alive(name) == []


ESCAPES = {
    "no environment": "env -i setsid sleep {tag} &",
    "no mark": "(unset MIMIKIT_RUN; setsid nohup sleep {tag} >/dev/null 2>&1 &)",
    "neither": "(env -i setsid sh -c '(setsid sh -c \"sleep {tag} & sleep {tag}\" &)' &)",
    "neither, deaf": "(env -i setsid sh -c 'trap \"\" TERM; while :; do sleep {tag}; done' &)",
}


def cancel_when(cancel: CancelToken, ready: Path) -> None:
    for _ in range(5000):
        if ready.exists():
            break
        time.sleep(0.02)
    cancel.cancel("canceled")


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap", "setsid")
@pytest.mark.parametrize("ends", ["by itself", "canceled", "killed", "in time"])
@pytest.mark.parametrize("way", ESCAPES)
@pytest.mark.parametrize("command", ["auto", "off"])
def test_nothing_outlives_its_run_though_it_hides_and_another_run_is_older(
    here: Ground, way: str, ends: str, command: str
) -> None:
    """What has left session, parent and mark could then be the older run's."""
    name, older, up, cancel = tag(), CancelToken(), threading.Event(), CancelToken()
    desk = Desk()
    desk.event = lambda *_: up.set()  # type: ignore[method-assign]
    first = here.request("echo up; sleep 600", desk=desk, cancel=older, timeout_s=600)
    thread = threading.Thread(target=engine(command).run, args=(first,))
    thread.start()
    try:
        assert up.wait(within(20))
        last = {"by itself": "true", "killed": "kill -9 $$"}.get(ends, "sleep 500")
        line = f"{ESCAPES[way].format(tag=name)}\nsleep 0.3; touch ready; {last}"
        timeout_s = min(within(4), 15) if ends == "in time" else 300
        request = here.request(line, cancel=cancel, timeout_s=timeout_s)
        if ends == "canceled":
            ready = here.workspace / "ready"
            threading.Thread(target=cancel_when, args=(cancel, ready)).start()
        outcome = engine(command).run(request)
        assert (here.workspace / "ready").exists()
        assert (
            outcome.failure_reason
            == {
                "by itself": None,
                "killed": "error",
                "canceled": "canceled",
                "in time": "timeout",
            }[ends]
        )
        assert alive(name) == []
        assert thread.is_alive()
    finally:
        older.cancel("canceled")
        thread.join(60)


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap")
def test_a_line_is_no_deputy_of_who_wrote_its_script(here: Ground) -> None:
    """It has its owner's rights, but what a Worker put into a script does not reach the state."""
    (here.state / "secret").write_text("canary")
    (here.scratch / "upstream").mkdir()
    (here.scratch / "upstream" / "one.txt").write_text("built on\n")
    at = here.state
    attack = (
        f"cat {at}/secret; echo x > {at}/forged; umount {at}; umount -l {at}; cat {at}/secret; "
        f"for p in /proc/[0-9]*; do cat $p/root{at}/secret; done; "
        f"unshare -m sh -c 'umount {at}; cat {at}/secret'; "
        f"unshare -Urm sh -c 'umount {at}; cat {at}/secret'; nsenter -t 1 -m cat {at}/secret; "
        f"mv {at} {at}2; mknod disk b 254 0; echo end; "
        'cat "$MIMIKIT_UPSTREAM/one.txt"; echo x > "$HOME/made"; echo x > made'
    )
    (here.workspace / "script.sh").write_text(attack)
    desk = Desk()
    outcome = run(here, "sh script.sh", desk)
    assert "end" in outcome.text
    assert "built on" in outcome.text
    assert "canary" not in outcome.text
    assert not (here.state / "forged").exists()
    assert not (here.workspace / "disk").exists()
    assert (here.workspace / "made").exists()
    assert (here.root / "home" / "made").exists()
    assert {kind for kind, _, _ in desk.events} == {"output"}


def test_the_owner_may_let_lines_see_the_state_and_is_told_so(here: Ground) -> None:
    (here.state / "secret").write_text("canary")
    desk = Desk()
    outcome = engine("off").run(here.request("cat .mimikit/secret", desk=desk))
    assert outcome.text == "canary"
    assert desk.events[0][:2] == ("note", "run without the sandbox: the settings say so")


def test_where_there_is_no_sandbox_no_line_runs_and_is_told_what_to_do(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: None)
    outcome = run(here, "touch made")
    assert (outcome.status, outcome.failure_reason) == ("failed", "refused")
    assert outcome.error == (
        "expected bubblewrap for the sandbox, got none; install its package; "
        '`command.sandbox = "off"` lets command lines run without it, and see the state folder'
    )
    assert not (here.workspace / "made").exists()
    assert engine().unavailable("worker") == outcome.error
    assert engine("off").unavailable("worker") is None
    assert engine("off").run(here.request("echo hi")).text == "hi\n"


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap")
def test_bubblewrap_that_is_installed_meanwhile_is_used(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(shell._REMEMBER_S, "not here", -1.0)
    lines = engine()
    with monkeypatch.context() as without:
        without.setattr(sandbox, "find_bwrap", lambda: None)
        assert lines.run(here.request("true")).failure_reason == "refused"
    assert lines.run(here.request("true")).status == "done"


WANTED = "import sys; from tests.engines.test_shell import wanting; wanting(*sys.argv[1:])"


def wanting(root: str) -> None:
    """In a user namespace of its own: other programs use all namespaces up between two lines."""
    here, lines, said = Ground(Path(root)), engine(), list[object]()
    (here.state / "secret").write_text("canary")
    assert lines.run(here.request("true")).status == "done"
    limit = Path("/proc/sys/user/max_pid_namespaces")
    limit.write_text("1")
    with contextlib.ExitStack() as stack:
        while True:  # until the kernel has done away with that of the line
            argv = ["unshare", "-pf", "--kill-child", "sh", "-c", "echo; sleep 60"]
            holder = subprocess.Popen(argv, stdout=subprocess.PIPE)
            stack.enter_context(holder)
            stack.callback(holder.kill)
            if holder.stdout and holder.stdout.readline():
                break
        cancel, desk = CancelToken(), Desk()
        request = here.request("touch made; cat .mimikit/secret", desk=desk, cancel=cancel)
        for _ in range(2):
            outcome = lines.run(request)
            said += [outcome.failure_reason, outcome.error, cancel.has_begun]
        limit.write_text("100")
        time.sleep(1.1)  # so long it is remembered
        said += [lines.run(request).status, [text for _, text, _ in desk.events]]
    sys.stdout.write(json.dumps(said))


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap", "unshare")
def test_a_line_whose_sandbox_is_used_up_by_others_waits_and_never_runs_without(
    here: Ground,
) -> None:
    inside = ["unshare", "--user", "--map-root-user", sys.executable, "-c", WANTED, str(here.root)]
    _, said, complaints = process.output(inside, cwd=Path.cwd(), timeout_s=60)
    *waits, status, output = json.loads(said or complaints)
    assert waits[::3] == ["engine_unavailable", "engine_unavailable"]
    assert waits[1].startswith("its sandbox could not be made: bwrap: Creating new namespace")
    assert waits[4].startswith("no sandbox can be made just now: bwrap: Creating new namespace")
    assert waits[2::3] == [False, False]
    assert status == "failed"
    assert "cat: .mimikit/secret: No such file" in "".join(output)
    assert "canary" not in said
    assert (here.workspace / "made").exists()


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap")
def test_what_a_line_says_of_a_sandbox_is_not_taken_for_the_sandboxs_word(here: Ground) -> None:
    line = "echo 'bwrap: Creating new namespace failed: No space left on device' >&2; exit 1"
    outcome = run(here, line)
    assert (outcome.status, outcome.failure_reason, outcome.exit_code) == ("failed", "error", 1)


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap")
def test_a_sandbox_that_can_not_be_made_for_one_line_costs_no_attempt(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, masked, cancel = engine(), sandbox.masked, CancelToken()
    assert lines.run(here.request("true")).status == "done"

    def gone(argv: Sequence[str], state: Path, **given: Any) -> list[str]:
        made = masked(argv, state, **given)
        at = made.index("--")
        return [*made[:at], *(["--bind", "/gone", "/gone"] if "true" in argv else []), *made[at:]]

    monkeypatch.setattr(sandbox, "masked", gone)
    outcome = lines.run(here.request("true", cancel=cancel))
    assert (outcome.status, outcome.failure_reason) == ("failed", "engine_unavailable")
    assert "source path /gone" in (outcome.error or "")
    assert not cancel.has_begun


@pytest.mark.needs_platform("linux")
@pytest.mark.parametrize("slow", ["sleep 60", "exec sh -c 'while :; do :; done'"])
def test_a_sandbox_that_is_slow_to_be_made_is_waited_for_not_left_out(
    here: Ground, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """Else whoever keeps the machine busy would have the owner's lines run without it."""
    program = here.root / "bwrap"
    program.write_text(f"#!/bin/sh\n{slow}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sandbox, "find_bwrap", lambda: str(program))
    monkeypatch.setattr(sandbox, "_PROBE_S", 0.2)
    outcome = run(here, "touch made")
    assert outcome.failure_reason == "engine_unavailable"
    assert outcome.error == "no sandbox can be made just now: it is slow"
    assert not (here.workspace / "made").exists()


@pytest.mark.needs_platform("linux")
@pytest.mark.needs_program("bwrap")
def test_a_mask_that_does_not_hold_is_no_reason_to_do_without(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "canary", lambda *_, **__: "a masked shell could read")
    (here.state / "secret").write_text("canary")
    assert "canary" not in run(here, f"cat {here.state}/secret").text


@pytest.mark.parametrize("command", ["auto", "off"])
@pytest.mark.parametrize(
    ("line", "said", "code"),
    [
        ("exit 1", "exit code 1", 1),
        ("exit 127", "exit code 127", 127),
        ("exit 128", "exit code 128", 128),
        ("exit 255", "exit code 255", 255),
        ("kill $$", "ended by SIGTERM", 143),
        ("kill -PIPE $$", "ended by SIGPIPE", 141),
        ("kill -INT $$", "ended by SIGINT", 130),
    ],
)
def test_how_a_line_ends_is_told_with_and_without_the_sandbox(
    here: Ground, line: str, said: str, code: int, command: str
) -> None:
    outcome = engine(command).run(here.request(line))
    assert (outcome.error, outcome.exit_code) == (said, code)


def test_a_cancel_lets_the_line_tidy_up(here: Ground) -> None:
    cancel, up = CancelToken(), threading.Event()
    desk = Desk()
    desk.event = lambda *_: up.set()  # type: ignore[method-assign]
    line = "trap 'echo bye > note; exit' TERM; echo up; while :; do sleep 0.01; done"
    threading.Thread(target=lambda: up.wait(25) and cancel.cancel("canceled")).start()
    outcome = engine().run(here.request(line, desk=desk, cancel=cancel))
    assert (outcome.status, outcome.failure_reason) == ("canceled", "canceled")
    assert (here.workspace / "note").read_text() == "bye\n"


def test_silence_is_no_reason_to_end_a_line(here: Ground) -> None:
    outcome = engine().run(here.request("sleep 0.5; echo x", idle_timeout_s=0.1))
    assert outcome.status == "done"


def test_the_line_has_no_input_and_no_secrets(
    here: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "canary")
    outcome = run(here, "cat; env")
    assert outcome.status == "done"
    assert "canary" not in outcome.text
    assert "MIMIKIT_RUN=" in outcome.text


@pytest.mark.parametrize(
    ("line", "said"),
    [("echo \0", "null byte"), ("x" * 140_000, "at most 131000 bytes, got 140000; put it into")],
    ids=["null byte", "too long"],
)
def test_a_line_that_can_not_be_run_is_refused_in_words(here: Ground, line: str, said: str) -> None:
    outcome = run(here, line)
    assert (outcome.status, outcome.failure_reason) == ("failed", "error")
    assert outcome.error
    assert said in outcome.error


def test_a_missing_workspace_is_said(here: Ground) -> None:
    here.state.rmdir()
    here.workspace.rmdir()
    outcome = run(here, "true")
    assert outcome.error == f"expected a folder to work in, got none at {here.workspace}; make it"


def test_there_is_a_shell() -> None:
    assert engine().unavailable() is None
