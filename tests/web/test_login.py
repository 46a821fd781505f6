"""Login by token or link, and its rate limit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.web import tokens
from mimikit.web.guard import KEY_HEADER
from tests.support.memory_disk import MemoryDisk
from tests.web.conftest import TOKEN

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def files_in_memory() -> Files:
    files = Files(MemoryDisk())
    files.make_folders()
    return files


def log_in(web, **body: str):
    return web.ask("POST", "/api/login", body, login=False)


@pytest.mark.parametrize("token", ["wrong", "A-TOKEN-LONG-ENOUGH-FOR-AN-OPERATOR", "é", "\x00"])
def test_a_wrong_token_is_refused(web, token: str) -> None:
    response = log_in(web, token=token)
    assert response.status_code == 401
    assert response.get_json()["error"]["field"] == "token"
    assert "key" not in response.get_json()


@pytest.mark.parametrize("body", [{}, {"token": "a", "code": "b"}, {"token": None}])
def test_a_login_needs_exactly_one_credential(web, body: dict[str, str]) -> None:
    assert web.ask("POST", "/api/login", body, login=False).status_code == 422


def test_a_link_logs_in_once(web) -> None:
    code = tokens.new_login_code(web.files, web.clock.now())
    assert log_in(web, code=code).status_code == 200
    again = log_in(web, code=code)
    assert again.status_code == 401
    assert "mimikit token" in again.get_json()["error"]["message"]


def test_a_login_link_expires_after_an_hour(web) -> None:
    code = tokens.new_login_code(web.files, web.clock.now())
    web.clock.advance(3600)
    assert log_in(web, code=code).status_code == 401


def test_renewing_the_token_invalidates_login_links(web) -> None:
    links = [tokens.new_login_code(web.files, web.clock.now()) for _ in range(3)]
    tokens.renew_token(web.files)
    assert [log_in(web, code=code).status_code for code in links] == [401] * 3
    after = tokens.new_login_code(web.files, web.clock.now())
    assert log_in(web, code=after).status_code == 200


def test_renewing_the_token_invalidates_a_login_in_progress(
    make_web, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = make_web()
    web.files.write(paths.TOKEN, b"a-token-long-enough-for-an-operator\n")
    web = make_web(disk=web.disk)
    code = tokens.new_login_code(web.files, web.clock.now())
    spend = tokens.spend_login_code

    def renewed_then(files: Files, code: str, now: datetime) -> bool:
        is_good = spend(files, code, now)
        tokens.renew_token(files)
        return is_good

    monkeypatch.setattr(tokens, "spend_login_code", renewed_then)
    response = log_in(web, code=code)
    assert response.status_code == 200
    session = {KEY_HEADER: response.get_json()["key"]}
    assert web.ask("GET", "/api/status", headers=session).status_code == 401


def test_codes_and_keys_are_stored_as_hashes_and_expire() -> None:
    files = files_in_memory()
    secrets = [tokens.new_login_code(files, NOW), tokens.begin_session(files, TOKEN, NOW)]
    assert len(files.names(paths.SECRETS)) == 2
    kept = repr(files.fs.contents())  # pyright: ignore[reportAttributeAccessIssue]
    assert not any(secret in kept for secret in secrets)
    tokens.new_login_code(files, NOW + timedelta(days=31))
    assert len(files.names(paths.SECRETS)) == 1


@pytest.mark.parametrize("kept", [b"", b"short\n", b"\xff" * 64, b"a" * 30 + b"\x00" * 10])
def test_a_damaged_token_is_replaced(kept: bytes) -> None:
    files = files_in_memory()
    files.write(paths.TOKEN, kept)
    token = tokens.load_token(files)
    assert len(token) >= tokens.OPERATOR_TOKEN_CHARACTERS
    assert files.read(paths.TOKEN) == token.encode() + b"\n"


def test_the_token_is_created_once_and_private(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    files = Files(RealDisk(tmp_path))
    token = tokens.load_token(files)
    assert tokens.load_token(files) == token
    assert (tmp_path / "secrets" / "token").stat().st_mode & 0o777 == 0o600


def test_the_operators_token_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMIKIT_TOKEN", "the operator's own token, long enough")
    files = files_in_memory()
    assert tokens.load_token(files) == "the operator's own token, long enough"
    assert not files.exists(paths.TOKEN)


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("127.0.0.1", "http://127.0.0.1:80/#login=c"),
        ("0.0.0.0", "http://127.0.0.1:80/#login=c"),  # noqa: S104 - shown, not bound
        ("::1", "http://[::1]:80/#login=c"),
        ("::", "http://[::1]:80/#login=c"),
    ],
)
def test_the_link_can_be_opened(host: str, shown: str) -> None:
    assert tokens.login_link(host, 80, "c") == shown


def wrong_bearer(web, guess: str, address: str = "127.0.0.1") -> int:
    headers = {"Authorization": f"Bearer {guess}"}
    return web.ask("GET", "/api/status", headers=headers, address=address).status_code


def test_wrong_tokens_never_lock_out_the_right_one(web) -> None:
    code = tokens.new_login_code(web.files, web.clock.now())
    codes = [wrong_bearer(web, f"guess {number}") for number in range(7)]
    assert codes == [401] * 5 + [429] * 2
    assert [log_in(web, token=f"guess {number}").status_code for number in range(9)] == [429] * 9
    assert log_in(web, code="x").status_code == 429
    assert web.ask("GET", "/api/status").status_code == 200
    assert log_in(web, token="a-token-long-enough-for-an-operator").status_code == 200
    assert log_in(web, code=code).status_code == 200
    assert log_in(web, code=code).status_code == 429


def test_five_wrong_tokens_a_minute_are_rate_limited(web) -> None:
    for number in range(5):
        assert log_in(web, token=f"guess {number}").status_code == 401
    closed = log_in(web, token="another")
    assert closed.status_code == 429
    assert int(closed.headers["Retry-After"]) == 61
    web.clock.advance(60)
    assert log_in(web, token="another").status_code == 401


def test_a_short_token_is_rate_limited_too(make_web) -> None:
    # Only at loopback, and only if the operator set it: elsewhere 24 characters are asked for.
    web = make_web(token="short")
    assert log_in(web, token="short").status_code == 200
    for number in range(5):
        assert wrong_bearer(web, f"guess {number}") == 401
    assert wrong_bearer(web, "short") == 429
    assert log_in(web, token="short").status_code == 429
    web.clock.advance(60)
    assert wrong_bearer(web, "short") == 200


def test_a_login_fails_while_the_disk_fails(make_web) -> None:
    web = make_web()
    code = tokens.new_login_code(web.files, web.clock.now())
    web.disk.fail = lambda _n, step: OSError(5, "I/O error") if "unlink" in step.operation else None
    assert log_in(web, code=code).status_code == 503
    with pytest.raises(StorageError):
        tokens.spend_login_code(web.files, code, web.clock.now())
