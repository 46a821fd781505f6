"""A state that a newer mimikit wrote: each address shows it or refuses, nothing is changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mimikit.errors import NewerState
from mimikit.protocol import paths, schema
from mimikit.protocol.disk import LookingDisk, RealDisk
from mimikit.protocol.files import Files
from mimikit.web import tokens
from tests.web.conftest import START, TOKEN, MakeWeb, Web

NEWER = b'{"schemaVersion": 99, "ofThen": {"what": [1]}}\n'
ENDLESS = {"/api/events"}
"""An answer that goes on until its reader leaves."""
TYPES = {"/api/files": "application/octet-stream"}
OTHERS = ("/hooks/",)
"""Let in by a secret of its own, which is asked first."""


def tree(folder: Path) -> dict[str, bytes]:
    every = (path for path in folder.rglob("*"))
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in every}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / ".mimikit"
    folder.mkdir(mode=0o700)
    files = Files(RealDisk(folder))
    files.make_folders()
    files.write(paths.HISTORY, b'{"schemaVersion": 7, "threads": {}}')
    files.append("history/2026-12-01.jsonl", {"id": "m1", "role": "user", "text": "kept"})
    files.write(paths.TOKEN, TOKEN.encode())
    files.write(paths.inbox("m2"), b'{"words": "in another form"}')
    files.write(paths.SCHEMA, NEWER)
    return folder


@pytest.fixture
def newer(make_web: MakeWeb, state: Path) -> Web:
    reason = schema.why_newer(Files(RealDisk(state)))
    assert reason is not None
    disk: Any = LookingDisk(state, reason)
    return make_web(disk=disk)


@pytest.mark.fault(24, 60)
def test_each_address_shows_or_refuses_and_nothing_changes(newer: Web, state: Path) -> None:
    before, refused, shown = tree(state), 0, 0
    for rule in newer.app.url_map.iter_rules():
        if rule.rule in {*ENDLESS, "/api/login"}:
            continue
        address = re.sub(r"<[^>]+>", "x", rule.rule)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}:
            kind = TYPES.get(address, "application/json")
            answer = newer.ask(method, address, None if method == "GET" else {}, type_=kind)
            if method == "GET":
                assert answer.status_code < 500 or address == "/healthz", address
                shown += answer.status_code == 200
            elif not address.startswith(OTHERS):
                error = answer.get_json()["error"]
                assert (answer.status_code, error["code"]) == (503, "newer_state"), address
                assert "use the newer mimikit" in error["message"]
                refused += 1
    assert refused > 25
    assert shown > 10
    assert newer.ask("POST", "/api/login", {"token": TOKEN}, login=False).status_code == 200
    assert tree(state) == before


def test_it_is_said_where_everything_is_shown(newer: Web) -> None:
    (need,) = (one for one in newer.get("/api/home")["needs"] if one["kind"] == "degraded")
    assert "a newer mimikit wrote this state" in need["error"]
    assert "这些数据由更新版本的 mimikit 写入" in need["why"]["zh"]
    assert "请使用写入它的新版本" in need["why"]["zh"]
    assert "schemaVersion 1 or older, got 99" in newer.get("/api/status")["degraded"]


def test_a_code_is_not_spent_and_a_session_key_is_not_kept(state: Path) -> None:
    files = Files(LookingDisk(state, "because"))
    before = tree(state)
    assert len(tokens.load_session_key(files)) > 20
    assert tokens.load_token(files) == TOKEN
    with pytest.raises(NewerState, match="because"):
        tokens.new_login_code(files, START)
    assert tree(state) == before


def test_a_page_that_was_there_before_takes_nothing_either(web: Web) -> None:
    web.files.write(paths.SCHEMA, NEWER)
    before = web.contents()
    answer = web.ask("POST", "/api/input", {"id": "m3", "text": "hello"})
    assert (answer.status_code, answer.get_json()["error"]["code"]) == (503, "newer_state")
    assert web.contents() == before
