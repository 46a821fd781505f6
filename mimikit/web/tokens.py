"""The token, browser sessions and one-time login codes, in `secrets/`.

Codes and session keys are stored as hashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from datetime import datetime, timedelta

from mimikit.config import local_host
from mimikit.errors import StorageError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.models import Instant, Record

TOKEN_VARIABLE = "MIMIKIT_TOKEN"  # noqa: S105 - a variable's name
OPERATOR_TOKEN_CHARACTERS = 24
CODE_LIFE = timedelta(hours=1)
SESSION_LIFE = timedelta(days=30)
"""Since its last use, to within a day."""
_GRANTS = ("login-", "session-")


class LoginGrant(Record):
    """`secrets/login-{hash}.json`: a login code; `secrets/session-{hash}.json`: a session."""

    expires_at: Instant


def operator_token() -> str | None:
    return os.environ.get(TOKEN_VARIABLE) or None


def load_token(files: Files) -> str:
    """The operator's token, else the stored one; an invalid one is replaced."""
    if (token := operator_token()) is not None:
        return token
    files.create(paths.TOKEN, _new_token())
    if len(token := _read_token(files)) < OPERATOR_TOKEN_CHARACTERS:
        files.write(paths.TOKEN, _new_token())
        token = _read_token(files)
    return token


def renew_token(files: Files) -> str:
    """Replace the stored token; sessions and login codes become invalid.

    Crash: they are removed first, so that none outlives the old token.
    """
    for name in files.names(paths.SECRETS):
        if name.startswith(_GRANTS):
            files.remove(f"{paths.SECRETS}/{name}")
    files.write(paths.TOKEN, _new_token())
    return _read_token(files)


def _new_token() -> bytes:
    return secrets.token_urlsafe(32).encode() + b"\n"


def _read_token(files: Files) -> str:
    text = (files.read(paths.TOKEN) or b"").decode("ascii", "replace").strip()
    return text if text.isprintable() and "\ufffd" not in text else ""


class CurrentToken:
    """The valid token: the operator's, or the stored one, which may be renewed."""

    def __init__(self, files: Files, token: str) -> None:
        self._files, self._token = files, token
        self._is_in_file = _read_token(files) == token

    def get(self) -> str:
        if not self._is_in_file:
            return self._token
        token = _read_token(self._files)
        return token if len(token) >= OPERATOR_TOKEN_CHARACTERS else load_token(self._files)

    def matches(self, text: str) -> bool:
        """Compare with the token in constant time."""
        return hmac.compare_digest(_digest(text), _digest(self.get()))


def new_login_code(files: Files, now: datetime) -> str:
    code = secrets.token_urlsafe(18)
    _grant(files, _code_path(code), CODE_LIFE, now)
    return code


def spend_login_code(files: Files, code: str, now: datetime) -> bool:
    """Whether the code is valid; only the process that removes its file gets True."""
    path = _code_path(code)
    record = files.peek(path, LoginGrant)
    return record is not None and files.remove(path) and now < record.expires_at


def login_link(host: str, port: int, code: str) -> str:
    """The one-time login address; its code is in the fragment, which browsers never send."""
    name = local_host(host)
    name = f"[{name}]" if ":" in name and not name.startswith("[") else name
    return f"http://{name}:{port}/#login={code}"


def begin_session(files: Files, token: str, now: datetime) -> str:
    """The key of a new session, valid as long as this token."""
    key = secrets.token_urlsafe(32)
    _grant(files, _session_path(token, key), SESSION_LIFE, now)
    return key


def is_session(files: Files, token: str, key: str, now: datetime) -> bool:
    """Whether the session is valid; extends it once a day."""
    path = _session_path(token, key)
    session = files.peek(path, LoginGrant)
    if session is None or session.expires_at <= now:
        return False
    if session.expires_at - now < SESSION_LIFE - timedelta(days=1):
        with contextlib.suppress(StorageError):  # a full disk: retried at the next request
            files.save(path, LoginGrant(expires_at=now + SESSION_LIFE))
    return True


def end_session(files: Files, token: str, key: str) -> None:
    files.remove(_session_path(token, key))


def _grant(files: Files, path: str, life: timedelta, now: datetime) -> None:
    for name in files.names(paths.SECRETS):
        if name.startswith(_GRANTS):
            record = files.peek(f"{paths.SECRETS}/{name}", LoginGrant)
            if record is None or record.expires_at <= now:
                files.remove(f"{paths.SECRETS}/{name}")
    files.save_new(path, LoginGrant(expires_at=now + life))


def _code_path(code: str) -> str:
    return f"{paths.SECRETS}/login-{_digest(code).hex()}.json"


def _session_path(token: str, key: str) -> str:
    return f"{paths.SECRETS}/session-{_digest(f'{len(token)} {token} {key}').hex()}.json"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
