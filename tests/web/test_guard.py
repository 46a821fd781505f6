"""Host, origin, method, content type and login are checked on every route."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from werkzeug.wrappers import Response

from mimikit.errors import BadSettings
from mimikit.protocol import paths
from mimikit.web import tokens
from mimikit.web.app import HEADERS
from mimikit.web.guard import KEY_HEADER, OPEN, SAFE_METHODS, allowed_hosts
from tests.web.conftest import HOST, ORIGIN, TOKEN

# Every route with an address to try it at and, where it takes one, a body that is good.
ROUTES: dict[str, tuple[str, dict[str, Any] | None]] = {
    "/": ("/", None),
    "/assets/<tree_hash>/<path:name>": ("/assets/x/dist/main.js", None),
    "/healthz": ("/healthz", None),
    "/api/login": ("/api/login", {"token": "a-token-long-enough-for-an-operator"}),
    "/api/logout": ("/api/logout", {}),
    "/api/snapshot": ("/api/snapshot", None),
    "/api/messages": ("/api/messages", None),
    "/api/input": ("/api/input", {"id": "msg-1", "text": "hello"}),
    "/api/files": ("/api/files", {}),
    "/api/files/<file_id>": ("/api/files/x.txt", None),
    "/api/answer": ("/api/answer", {"id": "msg-1", "questionId": "q-1", "text": "yes"}),
    "/api/tasks": ("/api/tasks", {"prompt": "do it", "id": "task-1"}),
    "/api/home": ("/api/home", None),
    "/api/jobs": ("/api/jobs", None),
    "/api/jobs/<job_id>": ("/api/jobs/task-0", None),
    "/api/tasks/<task_id>": ("/api/tasks/task-0", None),
    "/api/tasks/<task_id>/output": ("/api/tasks/task-0/output", None),
    "/api/tasks/<task_id>/diff": ("/api/tasks/task-0/diff", None),
    "/api/tasks/<task_id>/snooze": ("/api/tasks/task-0/snooze", {}),
    "/api/tasks/<task_id>/cancel": ("/api/tasks/task-0/cancel", {}),
    "/api/tasks/<task_id>/retry": ("/api/tasks/task-0/retry", {}),
    "/api/triggers": (
        "/api/triggers",
        {"id": "trig-1", "prompt": "do it", "schedule": {"interval": 60}},
    ),
    "/api/triggers/preview": ("/api/triggers/preview", {"when": "tomorrow 9:00"}),
    "/api/triggers/<trigger_id>/pause": ("/api/triggers/trig-0/pause", {}),
    "/api/triggers/<trigger_id>/resume": ("/api/triggers/trig-0/resume", {}),
    "/api/triggers/<trigger_id>/run": ("/api/triggers/trig-0/run", {}),
    "/api/triggers/<trigger_id>": ("/api/triggers/trig-0", {}),
    "/api/memory": ("/api/memory", None),
    "/api/memory/<path:path>": ("/api/memory/memory.md", {"text": "- a note\n", "hash": None}),
    "/api/search": ("/api/search", None),
    "/api/backlog": ("/api/backlog", {"action": "add", "item": "sweep"}),
    "/api/traces/<trace_id>": ("/api/traces/task-0", None),
    "/api/events": ("/api/events", None),
    "/api/changes": ("/api/changes", None),
    "/api/status": ("/api/status", None),
    "/api/engines": ("/api/engines", {"use": "builtin"}),
    "/api/engines/try": ("/api/engines/try", {}),
    "/api/engines/trial": ("/api/engines/trial", {"name": "deep", "baseUrl": "http://127.0.0.1:9"}),
    "/api/engines/<name>": ("/api/engines/deep", {"baseUrl": "http://127.0.0.1:9", "model": "m"}),
    "/api/self-awake": ("/api/self-awake", {"action": "on"}),
    "/api/self-awake/diff": ("/api/self-awake/diff", None),
    "/api/notify": ("/api/notify", {"action": "remove", "name": "phone"}),
    "/api/settings": ("/api/settings", {"key": "retention.days", "value": 9}),
    "/api/turns/<turn_id>": ("/api/turns/turn-0", None),
    "/api/usage": ("/api/usage", None),
    "/api/openapi.json": ("/api/openapi.json", None),
}
# Where another method takes another body than the row's.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PATCH", "/api/triggers/trig-0"): {"title": "new"},
    ("DELETE", "/api/engines/deep"): {},
}
OPEN_ADDRESSES = {"/", "/assets/<tree_hash>/<path:name>", "/healthz", "/api/login"}

WRONG_HOSTS = [
    None,
    "",
    "evil.example",
    "127.0.0.1.evil.example",
    "evil.example@127.0.0.1",
    "127.0.0.1:8787:8787",
    "127.0.0.1, evil.example",
    "0.0.0.0",  # noqa: S104 - a name that is asked for
    "169.254.169.254",
    "127.0.0.1\x00",
    "2130706433",
]
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://127.0.0.1:8787"},
    {"Origin": "http://127.0.0.1:8787.evil.example"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8787"},
    {"Sec-Fetch-Site": ""},
]
WRONG_TYPES = [
    None,
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/json-patch+json",
    "text/plain; application/json",
]


def every_request(web: Any) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Method, address and body for each method of each route; fails for a route without a row."""
    found: list[tuple[str, str, dict[str, Any] | None]] = []
    for rule in web.app.url_map.iter_rules():
        assert rule.rule in ROUTES, f"{rule.rule} has no row in this test"
        address, body = ROUTES[rule.rule]
        for method in sorted(rule.methods or ()):
            sent = BODIES.get((method, address), body or {})
            found.append((method, address, None if method in SAFE_METHODS else sent))
    return found


def headers_are_there(response: Response) -> bool:
    return all(response.headers.get(name) == value for name, value in HEADERS.items())


def test_every_route_has_a_row_and_every_row_a_route(web) -> None:
    assert {rule.rule for rule in web.app.url_map.iter_rules()} == set(ROUTES)


def test_only_these_routes_are_open(web) -> None:
    rules = web.app.url_map.iter_rules()
    assert {rule.rule for rule in rules if rule.endpoint in OPEN} == OPEN_ADDRESSES


@pytest.mark.parametrize("host", WRONG_HOSTS)
def test_every_route_refuses_a_wrong_host(web, host: str | None) -> None:
    session, before = web.log_in(), web.contents()
    for method, address, body in every_request(web):
        for who in ({}, session):
            response = web.ask(method, address, body, host=host, headers=who)
            assert response.status_code == 400, (method, address, host)
            assert headers_are_there(response)
    assert web.contents() == before


@pytest.mark.parametrize("foreign", FOREIGN, ids=str)
def test_every_route_with_an_effect_refuses_another_site(web, foreign: dict[str, str]) -> None:
    session, before = web.log_in(), web.contents()
    for method, address, body in every_request(web):
        if method in SAFE_METHODS:
            continue
        for who in (session, {"Authorization": f"Bearer {TOKEN}"}):
            response = web.ask(method, address, body, headers=who | foreign)
            assert response.status_code == 403, (method, address)
    assert web.contents() == before


@pytest.mark.parametrize("type_", WRONG_TYPES)
def test_every_route_with_an_effect_takes_json_only(web, type_: str | None) -> None:
    session, before = web.log_in(), web.contents()
    for method, address, body in every_request(web):
        if method in SAFE_METHODS:
            continue
        response = web.ask(method, address, body, type_=type_, headers=session)
        assert response.status_code == 415, (method, address)
    assert web.contents() == before


def bad_logins(web) -> dict[str, dict[str, str]]:
    good, ended = web.log_in(), web.log_in()
    web.ask("POST", "/api/logout", {}, headers=ended)
    key = good[KEY_HEADER]
    return {
        "nothing": {},
        "wrong token": {"Authorization": "Bearer wrong"},
        "token of another scheme": {"Authorization": f"Basic {TOKEN}"},
        "wrong token beside a good session": {"Authorization": "Bearer no", **good},
        "no ASCII": {"Authorization": "Bearer \xe9\xff"},
        "key as a token": {"Authorization": f"Bearer {key}"},
        "key as a cookie": {"Cookie": f"{KEY_HEADER}={key}; mimikit-8787={key}"},
        "token as a key": {KEY_HEADER: TOKEN},
        "empty key": {KEY_HEADER: ""},
        "no text": {KEY_HEADER: "\xe9\xff"},
        "a path": {KEY_HEADER: "../token"},
        "cut": {KEY_HEADER: key[:-1]},
        "ended": ended,
    }


def test_every_closed_route_requires_a_login(make_web) -> None:
    web = make_web(web={"failed_logins_per_minute": 10**6})
    logins = bad_logins(web)
    before = web.contents()
    for method, address, body in every_request(web):
        if address in {ROUTES[open_][0] for open_ in OPEN_ADDRESSES}:
            continue
        for name, headers in logins.items():
            response = web.ask(method, address, body, headers=headers, login=False)
            assert response.status_code == 401, (method, address, name)
            assert headers_are_there(response)
        query = {"token": TOKEN}
        response = web.ask(method, address, body, login=False, query=query)
        assert response.status_code == 401, (method, address, "token in the address")
    assert web.contents() == before


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]
)
def test_every_route_refuses_a_method_it_has_not(web, method: str) -> None:
    session, before = web.log_in(), web.contents()
    # An address may be matched by more than one rule: /api/triggers/preview is a name, too.
    allowed = web.app.url_map.bind(HOST).allowed_methods
    for address, body in ROUTES.values():
        if method in allowed(address):
            continue
        response = web.ask(method, address, body or {}, headers=session)
        assert response.status_code == 405, (method, address)
    assert web.contents() == before


@pytest.mark.parametrize("path", ["/api/nothing", "/api/", "/api/tasks/a/b/c", "/api"])
def test_an_unknown_route_is_404_only_with_a_login(web, path: str) -> None:
    outside = web.ask("GET", path, login=False)
    assert outside.status_code == (401 if path.startswith("/api/") else 404)
    assert web.ask("GET", path).status_code == 404


@pytest.mark.parametrize(
    "path", ["/static/x", "/assets/x/../../secrets/token", "//api/status", "////"]
)
def test_paths_outside_the_routes_are_404(web, path: str) -> None:
    assert web.ask("GET", path).status_code == 404


@pytest.mark.parametrize("own", [{"Sec-Fetch-Site": "same-origin"}, {"Origin": ORIGIN}], ids=str)
def test_the_page_itself_may_do_everything(web, own: dict[str, str]) -> None:
    """On plain http beyond loopback, browsers send Origin but no Sec-Fetch-Site."""
    body = {"id": "msg-1", "text": "hello"}
    assert web.ask("POST", "/api/input", body, headers=web.log_in() | own).status_code == 202


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "LocalHost:8787", "[::1]:8787", "localhost"])
def test_loopback_names_are_answered(web, host: str) -> None:
    assert web.ask("GET", "/api/status", host=host).status_code == 200


@pytest.mark.parametrize("host", ["LocalHost:8787", "[::1]:8787", "localhost"])
def test_the_page_redirects_to_127_0_0_1(web, host: str) -> None:
    """Browsers try `[::1]` for `localhost` first, where another program may listen."""
    port = host.lower().removeprefix("[::1]").removeprefix("localhost")
    page = web.ask("GET", "/", host=host, login=False)
    assert (page.status_code, page.headers["Location"]) == (307, f"http://127.0.0.1{port}/")
    assert web.ask("GET", "/", login=False).status_code == 200


@pytest.mark.parametrize(
    ("prefix", "path"), [("/assistant", "/assistant/"), ("/a/b/", "/a/b/"), ("//evil.example", "/")]
)
def test_a_redirect_keeps_the_prefix_of_a_proxy(web, prefix: str, path: str) -> None:
    given = {"X-Forwarded-Prefix": prefix}
    page = web.ask("GET", "/", host="localhost", login=False, headers=given)
    assert page.headers["Location"] == f"http://127.0.0.1{path}"


def test_the_operators_names_are_answered(make_web) -> None:
    web = make_web(web={"hosts": ["Box.home.lan", "10.0.0.7:8080"]})
    assert web.ask("GET", "/api/status", host="box.home.lan:8787").status_code == 200
    assert web.ask("GET", "/api/status", host="10.0.0.7").status_code == 200
    assert web.ask("GET", "/api/status", host="x.box.home.lan").status_code == 400


@pytest.mark.parametrize("host", ["*", "*.lan", ".lan", "a b", "http://a", "", "a/b", "ü.de"])
def test_an_invalid_host_name_is_refused(host: str) -> None:
    with pytest.raises(BadSettings, match="expected host names"):
        allowed_hosts([host])


def test_a_new_token_ends_every_session(make_web) -> None:
    web = make_web()
    web.files.write(paths.TOKEN, TOKEN.encode() + b"\n")
    again = make_web(disk=web.disk)
    session = again.log_in()
    assert again.ask("GET", "/api/status", headers=session).status_code == 200
    new = tokens.renew_token(again.files)
    assert again.ask("GET", "/api/status", headers=session).status_code == 401
    assert again.ask("GET", "/api/status").status_code == 401
    headers = {"Authorization": f"Bearer {new}"}
    assert again.ask("GET", "/api/status", headers=headers).status_code == 200


def test_a_session_outlives_the_server(make_web) -> None:
    web = make_web()
    session = web.log_in()
    again = make_web(disk=web.disk)
    assert again.ask("GET", "/api/status", headers=session).status_code == 200


def test_a_session_ends_after_thirty_days_without_use(web) -> None:
    session = web.log_in()
    web.clock.advance(timedelta(days=30).total_seconds())
    assert web.ask("GET", "/api/status", headers=session).status_code == 401


def test_a_session_in_use_goes_on(web) -> None:
    session = web.log_in()
    for _ in range(10):
        web.clock.advance(timedelta(days=20).total_seconds())
        assert web.ask("GET", "/api/status", headers=session).status_code == 200


def test_logging_out_ends_this_session_and_no_other(web) -> None:
    session, other = web.log_in(), web.log_in()
    assert web.ask("POST", "/api/logout", {}, headers=session).status_code == 200
    assert web.ask("GET", "/api/status", headers=session).status_code == 401
    assert web.ask("GET", "/api/status", headers=other).status_code == 200


def test_no_answer_sets_a_cookie(web) -> None:
    session = web.log_in()
    for method, address, body in every_request(web):
        response = web.ask(method, address, body, headers=session)
        assert "Set-Cookie" not in response.headers
        response.close()


def test_no_secret_is_in_the_log_or_in_an_answer(web) -> None:
    session = web.log_in()
    for method, address, body in every_request(web):
        if address == "/api/events":
            continue
        text = web.ask(method, address, body, headers=session).get_data(as_text=True)
        assert "a-token-long-enough" not in text
    web.ask("GET", "/api/tasks/a-token-long-enough-for-an-operator")
    web.ask("GET", "/api/a-token-long-enough-for-an-operator", login=False)
    log = web.disk.contents()[paths.LOG].decode()
    assert "refused" in log
    assert "a-token-long-enough" not in log
    assert session[KEY_HEADER] not in log


def test_refusals_are_logged_but_do_not_flood(web) -> None:
    for _ in range(200):
        web.ask("GET", "/api/status", login=False)
    told = [line for line in web.log_lines() if line["event"] == "refused"]
    assert len(told) == 60
    assert told[0]["type"] == "audit"
    assert told[0]["reason"] == "no login"
    assert told[0]["path"] == "/api/status"
