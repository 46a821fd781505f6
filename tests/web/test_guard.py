"""The door refuses what it must, on every route there is."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from itsdangerous import URLSafeSerializer
from werkzeug.wrappers import Response

from mimikit.errors import BadSettings
from mimikit.protocol import paths
from mimikit.web import tokens
from mimikit.web.app import HEADERS, HELD_HEADERS
from mimikit.web.guard import (
    BY_SECRET,
    KEY_HEADER,
    OPEN,
    SAFE_METHODS,
    allowed_hosts,
    host_name,
    is_same_origin,
)
from tests.web.conftest import HOST, TOKEN, error_of

# Every route with an address to try it at and, where it takes one, a body that is good.
ROUTES: dict[str, tuple[str, dict[str, Any] | None]] = {
    "/": ("/", None),
    "/assets/<tree_hash>/<path:name>": ("/assets/x/js/main.js", None),
    "/sw.js": ("/sw.js", None),
    "/healthz": ("/healthz", None),
    "/api/login": ("/api/login", {"token": "a-token-long-enough-for-an-operator"}),
    "/api/logout": ("/api/logout", {}),
    "/api/snapshot": ("/api/snapshot", None),
    "/api/messages": ("/api/messages", None),
    "/api/messages/<message_id>/retry": ("/api/messages/msg-0/retry", {"id": "msg-1"}),
    "/api/files": ("/api/files", {}),
    "/api/files/<file_id>": (f"/api/files/{'0' * 64}", None),
    "/api/input": ("/api/input", {"id": "msg-1", "text": "hello"}),
    "/api/answer": ("/api/answer", {"id": "msg-1", "questionId": "q-1", "text": "yes"}),
    "/api/jobs": ("/api/jobs", None),
    "/api/jobs/<job_id>": ("/api/jobs/task-0", None),
    "/api/tasks": ("/api/tasks", {"prompt": "do it", "id": "task-1"}),
    "/api/tasks/<task_id>": ("/api/tasks/task-0", None),
    "/api/tasks/<task_id>/output": ("/api/tasks/task-0/output", None),
    "/api/tasks/<task_id>/output.txt": ("/api/tasks/task-0/output.txt", None),
    "/api/tasks/<task_id>/diff": ("/api/tasks/task-0/diff", None),
    "/api/tasks/<task_id>/snooze": ("/api/tasks/task-0/snooze", {}),
    "/api/jobs/<job_id>/cancel": ("/api/jobs/task-0/cancel", {}),
    "/api/tasks/<task_id>/cancel": ("/api/tasks/task-0/cancel", {}),
    "/api/tasks/<task_id>/retry": ("/api/tasks/task-0/retry", {}),
    "/api/tasks/<task_id>/dismiss": ("/api/tasks/task-0/dismiss", {}),
    "/api/home": ("/api/home", None),
    "/api/timeline": ("/api/timeline", None),
    "/api/self-awake": ("/api/self-awake", {"action": "off", "id": "awake-1"}),
    "/api/logs": ("/api/logs", None),
    "/api/export": ("/api/export", None),
    "/api/triggers": (
        "/api/triggers",
        {"id": "trig-1", "prompt": "do it", "schedule": {"interval": 60}},
    ),
    "/api/triggers/preview": ("/api/triggers/preview", {"when": "tomorrow 9:00"}),
    "/api/triggers/<trigger_id>/messages": ("/api/triggers/trig-0/messages", None),
    "/api/triggers/<trigger_id>/pause": ("/api/triggers/trig-0/pause", {}),
    "/api/triggers/<trigger_id>/resume": ("/api/triggers/trig-0/resume", {}),
    "/api/triggers/<trigger_id>/run": ("/api/triggers/trig-0/run", {}),
    "/api/triggers/<trigger_id>": ("/api/triggers/trig-0", {}),
    "/api/memory": ("/api/memory", None),
    "/api/memory/<path:path>": ("/api/memory/memory.md", {"text": "- a note\n", "hash": None}),
    "/api/turns/<turn_id>/memory": ("/api/turns/turn-0/memory", None),
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
    "/api/notify": ("/api/notify", None),
    "/api/notify/<name>": ("/api/notify/phone", {"url": "desktop://"}),
    "/api/notify/<name>/test": ("/api/notify/phone/test", {}),
    "/api/turns/<turn_id>": ("/api/turns/turn-0", None),
    "/api/usage": ("/api/usage", None),
    "/hooks/<name>": ("/hooks/deploy", {}),
    "/api/openapi.json": ("/api/openapi.json", None),
}
# Where another method takes another body than the row's.
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    ("PATCH", "/api/triggers/trig-0"): {"title": "new"},
    ("DELETE", "/api/engines/deep"): {},
    ("DELETE", "/api/notify/phone"): {},
}
HOOK = "/hooks/deploy"
"""Whoever calls it proves themselves: a session, a site or a type of content does it no good."""
OPEN_ADDRESSES = {"/", "/assets/<tree_hash>/<path:name>", "/sw.js", "/healthz", "/api/login"}

WRONG_HOSTS = [
    None,
    "",
    "evil.example",
    "evil.example:8787",
    "127.0.0.1.evil.example",
    "localhost.evil.example:8787",
    "evil.example@127.0.0.1",
    "127.0.0.1:8787@evil.example",
    "127.0.0.1:x",
    "127.0.0.1:8787:8787",
    "127.0.0.1, evil.example",
    "127.0.0.2",
    "0.0.0.0",  # noqa: S104 - a name that is asked for
    "[::2]:8787",
    "[::1",
    "::1",
    "169.254.169.254",
    "127.0.0.1\x00",
    "2130706433",
]
FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Origin": "https://127.0.0.1:8787"},
    {"Origin": "http://localhost:8787"},
    {"Origin": "http://127.0.0.1:8787.evil.example"},
    {"Origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:8787"},
    {"Sec-Fetch-Site": "anything"},
    {"Sec-Fetch-Site": ""},
]
WRONG_TYPES = [
    None,
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonp",
    "text/json",
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
    """A style or a module opens no page: fewer do for it."""
    is_part = response.status_code == 200 and response.mimetype in ("text/css", "text/javascript")
    due = HELD_HEADERS if is_part else HEADERS
    return all(response.headers.get(name) == value for name, value in due.items())


def test_every_route_has_a_row_and_every_row_a_route(web) -> None:
    assert {rule.rule for rule in web.app.url_map.iter_rules()} == set(ROUTES)


def test_only_these_routes_are_open(web) -> None:
    rules = list(web.app.url_map.iter_rules())
    assert {rule.rule for rule in rules if rule.endpoint in BY_SECRET} == {"/hooks/<name>"}
    assert {rule.rule for rule in rules if rule.endpoint in OPEN} == OPEN_ADDRESSES


@pytest.mark.fault("complaint 14")
@pytest.mark.parametrize("host", WRONG_HOSTS)
def test_every_route_refuses_a_wrong_host(web, host: str | None) -> None:
    session, before = web.log_in(), web.contents()
    for method, address, body in every_request(web):
        for who in ({}, {"Cookie": session}):
            response = web.ask(method, address, body, host=host, headers=who)
            assert response.status_code == 400, (method, address, host)
            assert headers_are_there(response)
    assert web.contents() == before


@pytest.mark.fault("complaint 14")
@pytest.mark.parametrize("foreign", FOREIGN, ids=str)
def test_every_route_with_an_effect_refuses_another_site(web, foreign: dict[str, str]) -> None:
    session, before = web.log_in(), web.contents()
    with_bearer = {"Cookie": "x=1", "Authorization": "Bearer a-token-long-enough-for-an-operator"}
    for method, address, body in every_request(web):
        if method in SAFE_METHODS and not address.startswith("/api/"):
            continue
        for who in ({"Cookie": session}, with_bearer):
            response = web.ask(method, address, body, headers=who | foreign)
            assert response.status_code == (401 if address == HOOK else 403), (method, address)
    assert web.contents() == before


@pytest.mark.parametrize("type_", WRONG_TYPES)
def test_every_route_with_an_effect_takes_json_only(web, type_: str | None) -> None:
    session = web.log_in()
    before = web.contents()
    for method, address, body in every_request(web):
        if method in SAFE_METHODS:
            continue
        response = web.ask(method, address, body, type_=type_, headers={"Cookie": session})
        assert response.status_code == (401 if address == HOOK else 415), (method, address)
    assert web.contents() == before


def bad_logins(web) -> dict[str, dict[str, str]]:
    other = web.log_in() and web.key
    good = web.log_in()
    name, _, value = good.partition("=")
    # As the app signs, but with another key.
    forged = URLSafeSerializer(
        b"another key", salt="mimikit-session", signer_kwargs={"digest_method": hashlib.sha256}
    )
    payload, _, signature = value.rpartition(".")
    return {
        "nothing": {"Cookie": "other=1"},
        "wrong token": {"Authorization": "Bearer wrong"},
        "empty token": {"Authorization": "Bearer "},
        "token of another scheme": {"Authorization": "Basic a-token-long-enough-for-an-operator"},
        "wrong token beside a good session": {"Authorization": "Bearer no", "Cookie": good},
        "no ASCII": {"Authorization": "Bearer \xe9\xff"},
        "garbage": {"Cookie": f"{name}=garbage"},
        "forged": {"Cookie": f"{name}={forged.dumps(['abc', 1772366400])}"},
        "changed": {"Cookie": f"{name}={payload[:-1]}A.{signature}"},
        "cut": {"Cookie": f"{name}={value[:-2]}"},
        "token in the cookie": {"Cookie": f"{name}=a-token-long-enough-for-an-operator"},
        "no key": {"Cookie": good, KEY_HEADER: ""},
        "another session's key": {"Cookie": good, KEY_HEADER: other},
        "its name for a key": {"Cookie": good, KEY_HEADER: value},
        "a key that is no text": {"Cookie": good, KEY_HEADER: "\xe9\xff"},
        "a key alone": {"Cookie": "other=1", KEY_HEADER: web.key},
        "another port's": {"Cookie": good.replace("mimikit-8787", "mimikit-8788")},
    }


@pytest.mark.fault("complaint 14")
def test_every_closed_route_refuses_who_is_not_logged_in(make_web) -> None:
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
        query = {"token": "a-token-long-enough-for-an-operator"}
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
        response = web.ask(method, address, body or {}, headers={"Cookie": session})
        assert response.status_code == 405, (method, address)
    assert web.contents() == before


@pytest.mark.parametrize("path", ["/api/nothing", "/api/", "/api/tasks/a/b/c", "/api"])
def test_what_the_api_has_not_is_told_only_to_who_is_logged_in(web, path: str) -> None:
    outside = web.ask("GET", path, login=False)
    assert outside.status_code == (401 if path.startswith("/api/") else 404)
    assert web.ask("GET", path).status_code == 404


@pytest.mark.parametrize(
    "path", ["/static/x", "/assets/x/../../secrets/token", "//api/status", "////"]
)
def test_there_are_no_other_doors(web, path: str) -> None:
    assert web.ask("GET", path).status_code == 404


def test_the_page_itself_may_do_everything(web) -> None:
    headers = {"Cookie": web.log_in(), "Sec-Fetch-Site": "same-origin"}
    body = {"id": "msg-1", "text": "hello"}
    assert web.ask("POST", "/api/input", body, headers=headers).status_code == 202


def test_a_page_on_plain_http_is_known_by_its_origin(web) -> None:
    headers = {"Cookie": web.log_in(), "Origin": "http://127.0.0.1:8787"}
    body = {"id": "msg-1", "text": "hello"}
    assert web.ask("POST", "/api/input", body, headers=headers).status_code == 202


def test_a_cookie_that_another_server_set_shuts_nobody_out(web) -> None:
    """Of two of one name the browser sends that of the longer path first."""
    mine = web.log_in()
    name = mine.partition("=")[0]
    for cookies in (f"{name}=theirs; {mine}", f"{mine}; {name}=theirs"):
        headers = {"Cookie": cookies}
        assert web.ask("GET", "/api/status", headers=headers).status_code == 200
    assert web.ask("GET", "/api/status", headers={"Cookie": f"{name}=theirs"}).status_code == 401


def test_a_script_needs_no_origin(web) -> None:
    assert web.ask("POST", "/api/input", {"id": "msg-1", "text": "hello"}).status_code == 202


@pytest.mark.parametrize("host", ["127.0.0.1:8787", "LocalHost:8787", "[::1]:8787", "localhost"])
def test_loopback_names_are_answered(web, host: str) -> None:
    assert web.ask("GET", "/api/status", host=host).status_code == 200


@pytest.mark.parametrize("host", ["LocalHost:8787", "[::1]:8787", "localhost"])
def test_nobody_logs_in_where_another_program_may_listen(web, host: str) -> None:
    """A browser takes `[::1]` for `localhost` first, and whoever listens there for our page."""
    cookie, port = web.log_in(), host.lower().removeprefix("[::1]").removeprefix("localhost")
    page = web.ask("GET", "/", host=host, login=False)
    assert (page.status_code, page.headers["Location"]) == (307, f"http://127.0.0.1{port}/")
    assert web.ask("GET", "/healthz", host=host, login=False).status_code == 503  # no consumer
    for answer in (
        web.ask("POST", "/api/login", {"token": TOKEN}, host=host, login=False),
        web.ask("GET", "/api/status", headers={"Cookie": cookie}, host=host),
    ):
        assert answer.status_code == 403
        assert f"open http://127.0.0.1{port}/ instead" in error_of(answer)["message"]
    assert web.ask("GET", "/api/status", headers={"Cookie": cookie}).status_code == 200


def test_the_operators_names_are_answered(make_web) -> None:
    web = make_web(web={"hosts": ["Box.home.lan", "10.0.0.7:8080"]})
    assert web.ask("GET", "/api/status", host="box.home.lan:8787").status_code == 200
    assert web.ask("GET", "/api/status", host="10.0.0.7").status_code == 200
    assert web.ask("GET", "/api/status", host="x.box.home.lan").status_code == 400


@pytest.mark.parametrize("host", ["*", "*.lan", ".lan", "a b", "http://a", "", "a/b", "ü.de"])
def test_what_is_no_host_name_is_no_setting(host: str) -> None:
    with pytest.raises(BadSettings, match="expected host names"):
        allowed_hosts([host])


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("a.b:80", "a.b"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("A", "a"),
        (":80", None),
        ("a:", None),
        ("a:b", None),
        ("a:１", None),
        ("[]", None),
        ("[x]", None),
        ("", None),
        (None, None),
    ],
)
def test_host_name_reads_the_header(header: str | None, name: str | None) -> None:
    assert host_name(header) == name


def test_a_page_is_reached_from_anywhere_but_its_data_is_not() -> None:
    assert is_same_origin("GET", "cross-site", None, "http://a", is_api=False)
    assert not is_same_origin("GET", "cross-site", None, "http://a", is_api=True)


def test_a_new_token_ends_every_session(make_web) -> None:
    web = make_web()
    web.files.write(paths.TOKEN, b"a-token-long-enough-for-an-operator\n")
    again = make_web(disk=web.disk)
    session = again.log_in()
    assert again.ask("GET", "/api/status", headers={"Cookie": session}).status_code == 200
    new = tokens.renew_token(again.files)
    assert again.ask("GET", "/api/status", headers={"Cookie": session}).status_code == 401
    assert again.ask("GET", "/api/status").status_code == 401
    headers = {"Authorization": f"Bearer {new}"}
    assert again.ask("GET", "/api/status", headers=headers).status_code == 200


def test_the_operators_token_is_not_changed_by_the_file(web) -> None:
    web.files.write(paths.TOKEN, b"another-token-that-is-long-enough\n")
    assert web.ask("GET", "/api/status").status_code == 200


def test_a_session_ends_after_thirty_days(web) -> None:
    session = web.log_in()
    web.clock.advance(timedelta(days=30, seconds=1).total_seconds())
    assert web.ask("GET", "/api/status", headers={"Cookie": session}).status_code == 401


def test_a_session_in_use_goes_on(web) -> None:
    session = web.log_in()
    for _ in range(10):
        web.clock.advance(timedelta(days=20).total_seconds())
        response = web.ask("GET", "/api/status", headers={"Cookie": session})
        assert response.status_code == 200
        session = response.headers["Set-Cookie"].partition(";")[0]


def test_logging_out_ends_every_copy_of_the_session(web) -> None:
    session = web.log_in()
    out = web.ask("POST", "/api/logout", {}, headers={"Cookie": session})
    assert out.status_code == 200
    assert "Max-Age=0" in out.headers["Set-Cookie"]
    assert web.ask("GET", "/api/status", headers={"Cookie": session}).status_code == 401
    assert web.ask("GET", "/api/status", headers={"Cookie": web.log_in()}).status_code == 200


def test_the_cookie_is_out_of_reach(web) -> None:
    body = {"token": "a-token-long-enough-for-an-operator"}
    cookie = web.ask("POST", "/api/login", body, login=False).headers["Set-Cookie"]
    assert cookie.startswith("mimikit-8787=")
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie


def test_the_cookie_is_secure_under_https(web) -> None:
    from werkzeug.test import EnvironBuilder, run_wsgi_app

    environ = EnvironBuilder(
        path="/api/login",
        method="POST",
        json={"token": "a-token-long-enough-for-an-operator"},
        base_url="https://127.0.0.1:8787",
    ).get_environ()
    assert "Secure" in Response(*run_wsgi_app(web.app, environ)).headers["Set-Cookie"]


@pytest.mark.fault(58)
def test_no_secret_is_in_the_log_or_in_an_answer(web) -> None:
    session = web.log_in()
    for method, address, body in every_request(web):
        if address == "/api/events":
            continue
        text = web.ask(method, address, body, headers={"Cookie": session}).get_data(as_text=True)
        assert "a-token-long-enough" not in text
    web.ask("GET", "/api/tasks/a-token-long-enough-for-an-operator")
    web.ask("GET", "/api/a-token-long-enough-for-an-operator", login=False)
    log = web.disk.contents()[paths.LOG].decode()
    assert "refused" in log
    assert "a-token-long-enough" not in log
    assert session.partition("=")[2] not in log


def test_refusals_are_logged_but_do_not_flood(web) -> None:
    for _ in range(200):
        web.ask("GET", "/api/status", login=False, headers={"Cookie": "a=b"})
    told = [line for line in web.log_lines() if line["event"] == "refused"]
    assert len(told) == 60
    assert told[0]["type"] == "audit"
    assert told[0]["reason"] == "no login"
    assert told[0]["path"] == "/api/status"


def test_the_cookie_alone_opens_nothing_but_the_page(web) -> None:
    """Every server of this machine that the browser looks at is sent it."""
    cookie = {"Cookie": web.log_in(), KEY_HEADER: ""}
    body = {"id": "msg-1", "text": "run: id"}
    for made in ({}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": f"http://{HOST}"}):
        assert web.ask("POST", "/api/input", body, headers=cookie | made).status_code == 401
        assert web.ask("GET", "/api/events", headers=cookie | made).status_code == 401
        assert web.ask("POST", "/api/logout", {}, headers=cookie | made).status_code == 401
    assert web.ask("GET", "/", headers=cookie).status_code == 200
    whole = {"Cookie": cookie["Cookie"], KEY_HEADER: web.key}
    assert web.ask("POST", "/api/input", body, headers=whole).status_code == 202


def test_a_key_outlives_the_renewal_of_its_cookie_and_ends_with_the_token(make_web) -> None:
    web = make_web()
    web.files.write(paths.TOKEN, b"a-token-long-enough-for-an-operator\n")
    web = make_web(disk=web.disk)
    session, key = web.log_in(), web.key
    web.clock.advance(timedelta(days=2).total_seconds())
    response = web.ask("GET", "/api/status", headers={"Cookie": session})
    renewed = response.headers["Set-Cookie"].partition(";")[0]
    assert renewed != session
    both = {"Cookie": renewed, KEY_HEADER: key}
    assert web.ask("GET", "/api/status", headers=both).status_code == 200
    tokens.renew_token(web.files)
    assert web.ask("GET", "/api/status", headers=both).status_code == 401
