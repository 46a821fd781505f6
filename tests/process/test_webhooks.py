"""Webhooks over real processes: a sender's own program, a server, kills between the two."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from mimikit.protocol import paths
from tests.process.world import PATIENCE_S, World, until

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("openssl")), reason="curl or openssl is missing"
)


@pytest.fixture
def served(world: World) -> World:
    world.settings |= {"COMMAND__SANDBOX": "off"}
    world.start_consumer()
    world.start_web()
    return world


def add(world: World, name: str, *more: str) -> list[str]:
    """Set a webhook up; gives the lines that it says it is called by."""
    made = world.run("hooks", "add", name, *more)
    assert made.returncode == 0, made.stderr
    return [
        line
        for line in made.stdout.splitlines()
        if "curl" in line or line.startswith(("t=", "v1="))
    ]


def secret_of(world: World, name: str) -> str:
    return (world.state / paths.SECRETS / f"hook-{name}").read_text().strip()


def call(world: World, name: str, lines: list[str], *options: str) -> str:
    """Have a shell do what was said, and give what the server answered, its status last."""
    line = "\n".join(lines).replace("curl ", f"curl -sS -w '%{{http_code}}' {' '.join(options)} ")
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        env={**os.environ, "SECRET": secret_of(world, name), "no_proxy": "*"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def runs(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_the_lines_that_are_shown_start_a_command_that_is_given_the_body(served: World) -> None:
    out = served.root / "runs.txt"
    line = f'cat "$MIMIKIT_FILES"/1-webhook-* >> {out}; echo >> {out}'
    for name, more in (("plain", ()), ("signed", ("--hmac", "generic"))):
        lines = add(served, name, *more)
        made = served.run("enqueue", line, "--command", "--when-hook", name)
        assert made.returncode == 0, made.stderr
        assert call(served, name, lines).endswith("202")
    until(lambda: runs(out) == ["hello", "hello"], "both have run", facts=served.facts)
    assert served.run("hooks", "test", "signed").stdout.startswith("Taken as hook-")
    until(lambda: len(runs(out)) == 3, "the third has run", facts=served.facts)


def test_a_delivery_fires_once_over_kills_of_both_processes(served: World) -> None:
    out = served.root / "runs.txt"
    lines = add(served, "deploy")
    served.run("enqueue", f'cat "$MIMIKIT_FILES"/* >> {out}', "--command", "--when-hook", "deploy")
    for number in range(4):
        named = f"-H 'X-Mimikit-Delivery: d-{number}'"
        body = [lines[0].replace("'hello'", f"'call {number}\n'")]
        if number % 2 == 0 and served.consumer is not None:
            served.consumer.kill()
            served.consumer.wait()
        assert call(served, "deploy", body, named).endswith("202")
        if number % 3 == 0 and served.web is not None:
            os.killpg(served.web.pid, signal.SIGKILL)
            served.web.wait()
            served.start_web()
        assert call(served, "deploy", body, named)[-3:] == "200"
        if number % 2 == 0:
            served.clear_crashes()
            served.start_consumer()

    def firings() -> list[str]:
        return [line["taskId"] for line in served.ledger() if line["event"] == "slot"]

    until(lambda: len(firings()) >= 4, "each has its firing", facts=served.facts)
    until(lambda: served.names(paths.HOOKS_NEW) == [], "all are taken in", facts=served.facts)
    assert len(set(firings())) == len(firings()) == 4
    seen = runs(out)  # of a run that was killed nothing may be there
    assert len(set(seen)) == len(seen)
    assert set(seen) <= {f"call {number}" for number in range(4)}
