"""`mimikit up`, `web` and `consumer` as a user starts and ends them, in real processes."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import time

import psutil
import pytest

from mimikit.protocol import paths
from tests.cli.conftest import PATIENCE_S, Place, all_end, descendants, read_line

needs_web = pytest.mark.skipif(
    importlib.util.find_spec("mimikit.web.serve") is None, reason="the page is not there yet"
)


def start_up(place: Place) -> tuple[subprocess.Popen[str], int]:
    """A running `up` that has told all, and its port."""
    process = place.start("up", "--port", "0")
    line = read_line(process, "Page")
    found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
    assert found is not None, line
    read_line(process, "Ctrl-C ends both.")
    return process, int(found[1])


def family(process: subprocess.Popen[str], word: str) -> list[psutil.Process]:
    return [child for child in descendants(process.pid) if word in child.cmdline()]


def get(port: int, path: str, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@needs_web
def test_one_signal_ends_both_and_nothing_is_left(place: Place) -> None:
    """Which signal it is makes no difference: tests/process/test_lifecycle.py has them all."""
    process, port = start_up(place)
    status, body = get(port, "/healthz")
    assert (status, json.loads(body)["consumer"]) == (200, "ok")
    children = descendants(process.pid)
    assert len(children) >= 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0
    assert all_end(children, within_s=5)
    assert not (place.state / paths.HEALTH).exists()


@needs_web
def test_the_banner_says_where_and_how_to_come_in_and_who_serves(place: Place) -> None:
    process = place.start("up", "--port", "0")
    assert str(place.workspace) in read_line(process, "is running in")
    link = read_line(process, "Log in")
    found = re.search(r"http://127\.0\.0\.1:(\d+)/#login=(\S+)", link)
    assert found is not None
    assert f"`mimikit token --link --port {found[1]}` makes another" in read_line(process, "once")
    assert "Teller" in read_line(process, "Engines")
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=PATIENCE_S)
    origin = f"http://127.0.0.1:{found[1]}"
    headers = {"Content-Type": "application/json", "Origin": origin}
    for expected in (200, 401):
        connection.request("POST", "/api/login", json.dumps({"code": found[2]}), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == expected
    connection.close()


@needs_web
@pytest.mark.parametrize("part", ["consumer", "web"])
def test_what_is_killed_comes_back(place: Place, part: str) -> None:
    process, port = start_up(place)
    victim = family(process, part)[0]
    victim.kill()
    name = "page" if part == "web" else part
    line = read_line(process, "started again")
    assert line == f"The {name} was ended by SIGKILL; it is started again in 1 s.\n"
    place.until(lambda: is_served(place, port, victim.pid), "expected both to serve again")
    assert process.poll() is None


def is_served(place: Place, port: int, former_pid: int) -> bool:
    try:
        status, body = get(port, "/healthz")
    except OSError:
        return False
    health = json.loads((place.state / paths.HEALTH).read_text())
    return status == 200 and json.loads(body)["ok"] and health["pid"] != former_pid


@needs_web
def test_a_port_in_use_is_said_before_anything_starts(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = place.run("up", "--port", str(taken.getsockname()[1]))
    assert result.returncode == 1
    assert result.stdout == ""
    assert "the port is in use" in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (place.state / paths.CONSUMER_HOLDER).exists()


@needs_web
def test_an_address_for_all_is_refused_without_a_token(place: Place) -> None:
    result = place.run("up", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - refused
    assert result.returncode == 1
    assert "a token of at least 24 characters" in result.stderr


@needs_web
def test_up_refuses_beside_another_consumer_and_names_it(busy: Place) -> None:
    holder = json.loads((busy.state / paths.CONSUMER_HOLDER).read_text())
    result = busy.run("up", "--port", "0")
    assert result.returncode == 1
    assert f"got process {holder['pid']} on this machine" in result.stderr
    assert "`mimikit web`" in result.stderr


@needs_web
def test_the_page_alone_tells_that_nobody_works(place: Place) -> None:
    process = place.start("web", "--port", "0")
    assert "http://127.0.0.1:" in read_line(process, "Page")
    read_line(process, "no consumer is running; `mimikit up` starts one")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0


def test_a_second_consumer_leaves_at_once_and_names_the_first(busy: Place) -> None:
    holder = json.loads((busy.state / paths.CONSUMER_HOLDER).read_text())
    before = os.times()
    began = time.monotonic()
    result = busy.run("consumer")
    took = time.monotonic() - began
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user
    assert result.returncode == 1
    assert f"process {holder['pid']}" in result.stderr
    # On a machine that is busy with other things the clock runs on while it waits for its turn.
    assert min(took, cpu - before.children_system) <= 1.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_consumer_cleanly(place: Place, number: signal.Signals) -> None:
    process = place.start_consumer()
    process.send_signal(number)
    assert process.wait(PATIENCE_S) == 0
    assert not (place.state / paths.HEALTH).exists()
    assert json.loads((place.state / paths.RUNTIME).read_text())["starts"] == []


def test_a_run_that_must_end_gets_no_more_time_after_a_second_signal(place: Place) -> None:
    process, _ = start_up(place)
    place.run("enqueue", "--command", "sleep 600")
    running = place.state / "worker" / "running"
    place.until(lambda: list(running.glob("task-*")), "expected a run", "worker/running")
    place.until(lambda: any_sleep(process), "expected the program to run", "runs")
    children = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    read_line(process, "1 run has 10 s to finish")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    read_line(process, "Ending at once.")
    assert process.wait(PATIENCE_S) == 0
    assert time.monotonic() - began < 9
    assert all_end(children, within_s=5)


def any_sleep(process: subprocess.Popen[str]) -> bool:
    return any("sleep" in child.name() for child in descendants(process.pid))
