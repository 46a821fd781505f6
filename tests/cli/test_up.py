"""`mimikit up`, `web` and `consumer` as real processes."""

from __future__ import annotations

import http.client
import json
import re
import signal

from tests.cli.conftest import PATIENCE_S, Place, read_line


def test_the_banner_has_address_login_link_and_engines(place: Place) -> None:
    process = place.start("up", "--port", "0")
    assert str(place.workspace) in read_line(process, "is running in")
    link = read_line(process, "Log in")
    found = re.search(r"http://127\.0\.0\.1:(\d+)/#login=(\S+)", link)
    assert found is not None
    assert f"`mimikit token --link --port {found[1]}` makes another" in read_line(process, "once")
    assert "No model connected" in read_line(process, "Model")
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=PATIENCE_S)
    origin = f"http://127.0.0.1:{found[1]}"
    headers = {"Content-Type": "application/json", "Origin": origin}
    for expected in (200, 401):
        connection.request("POST", "/api/login", json.dumps({"code": found[2]}), headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == expected
    connection.close()


def test_the_page_alone_reports_a_missing_consumer(place: Place) -> None:
    process = place.start("web", "--port", "0")
    assert "http://127.0.0.1:" in read_line(process, "Page")
    read_line(process, "mimikit is not running; `mimikit up` starts it")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
