"""Who may come in: the token, the key that signs sessions, and login codes for one use.

All of it lies in `secrets/`. Nothing here knows of HTTP. Codes are kept as hashes only; a code is
spent by renaming its file, so it is spent once, whichever process sees it first.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
from datetime import datetime, timedelta

from mimikit.config import local_host
from mimikit.errors import NewerState
from mimikit.protocol import paths
from mimikit.protocol.disk import FileStat
from mimikit.protocol.files import Files
from mimikit.protocol.ids import is_id
from mimikit.protocol.models import Instant, Record

TOKEN_VARIABLE = "MIMIKIT_TOKEN"  # noqa: S105 - a variable's name
OPERATOR_TOKEN_CHARACTERS = 24
CODE_LIFE = timedelta(hours=1)
SESSION_LIFE = timedelta(days=30)


class LoginCode(Record):
    """`secrets/login-{hash}.json`: a code that was given out."""

    expires_at: Instant


class EndedSession(Record):
    """`secrets/ended-{session}.json`: a session that was logged out; kept as long as its cookie."""

    ended_at: Instant


def operator_token() -> str | None:
    """The token the operator set in the environment; None when there is none."""
    return os.environ.get(TOKEN_VARIABLE) or None


def load_token(files: Files) -> str:
    """The token in force: the operator's, else the one in `secrets/`, made at first."""
    return operator_token() or _kept_secret(files, paths.TOKEN)


def load_session_key(files: Files) -> bytes:
    """The key kept for signing sessions, made at first; a passing one where nothing is written."""
    try:
        return _kept_secret(files, paths.SESSION_KEY).encode()
    except NewerState:
        return _new_secret()


def renew_token(files: Files) -> str:
    """Replace the kept token; every session, link and script of the old one is out.

    Crash: the links go first, so that none stands beside a new token.
    """
    for name in files.names(paths.SECRETS):
        if name.startswith("login-"):
            files.remove(f"{paths.SECRETS}/{name}")
    files.write(paths.TOKEN, _new_secret())
    return _read_secret(files, paths.TOKEN)


def _kept_secret(files: Files, path: str) -> str:
    """The secret in a file; made when missing, made anew when cut short or not text."""
    files.create(path, _new_secret())
    text = _read_secret(files, path)
    if len(text) < OPERATOR_TOKEN_CHARACTERS:
        files.write(path, _new_secret())
        text = _read_secret(files, path)
    return text


def _new_secret() -> bytes:
    return secrets.token_urlsafe(32).encode() + b"\n"


def _read_secret(files: Files, path: str) -> str:
    text = (files.read(path) or b"").decode("ascii", "replace").strip()
    return text if text.isprintable() and "\ufffd" not in text else ""


class Keys:
    """The token and the key of the sessions, seen anew when the token's file changes."""

    def __init__(self, files: Files, token: str, session_key: bytes) -> None:
        """A token that is not the one in the file is the operator's, and stays."""
        self._files = files
        self._session_key = session_key
        self._lock = threading.Lock()
        self._seen: FileStat | None = files.stat(paths.TOKEN)
        kept = (files.read(paths.TOKEN) or b"").strip()
        self._follows_file = kept == token.encode()
        self._token = token

    @property
    def token(self) -> str:
        if not self._follows_file:
            return self._token
        with self._lock:
            stat = self._files.stat(paths.TOKEN)
            if stat is not None and stat != self._seen:
                self._token = _kept_secret(self._files, paths.TOKEN)
                self._seen = stat
            return self._token

    @property
    def signing_key(self) -> bytes:
        """Follows from token and session key, so that a new token ends every session."""
        return hmac.digest(self._session_key, b"session\x00" + self.token.encode(), "sha256")

    def is_token(self, given: str) -> bool:
        """Whether this is the token; takes the same time wherever it differs."""
        return hmac.compare_digest(_digest(given), _digest(self.token))


def new_login_code(files: Files, now: datetime) -> str:
    """Make a code for one login within the hour; only its hash is kept."""
    _sweep(files, now)
    code = secrets.token_urlsafe(18)
    files.save_new(_code_path(code), LoginCode(expires_at=now + CODE_LIFE))
    return code


def spend_login_code(files: Files, code: str, now: datetime) -> bool:
    """Whether the code was good; it is not a second time.

    Crash: a code whose file was renamed is spent, also when nobody came in by it.
    """
    path = _code_path(code)
    record = files.peek(path, LoginCode)
    claimed = f"{paths.SECRETS}/spent-{secrets.token_hex(8)}.json"
    if record is None or not files.move(path, claimed):
        return False
    files.remove(claimed)
    return now < record.expires_at


def login_link(host: str, port: int, code: str) -> str:
    """The address that logs a browser in once; the code is in the fragment, which is never sent."""
    shown = local_host(host)
    if ":" in shown and not shown.startswith("["):
        shown = f"[{shown}]"
    return f"http://{shown}:{port}/#login={code}"


def end_session(files: Files, session_id: str, now: datetime) -> None:
    """Let a session's cookie no longer count, wherever a copy of it may be."""
    files.save_new(_ended_path(session_id), EndedSession(ended_at=now))


def is_session_ended(files: Files, session_id: str) -> bool:
    return not is_id(session_id) or files.exists(_ended_path(session_id))


def _sweep(files: Files, now: datetime) -> None:
    """Remove codes and marks whose time is over."""
    for name in files.names(paths.SECRETS):
        path = f"{paths.SECRETS}/{name}"
        if name.startswith("login-"):
            code = files.peek(path, LoginCode)
            gone = code is None or code.expires_at <= now
        elif name.startswith("ended-"):
            mark = files.peek(path, EndedSession)
            gone = mark is None or mark.ended_at + SESSION_LIFE <= now
        else:
            gone = name.startswith("spent-")
        if gone:
            files.remove(path)


def _code_path(code: str) -> str:
    return f"{paths.SECRETS}/login-{_digest(code).hex()[:40]}.json"


def _ended_path(session_id: str) -> str:
    return f"{paths.SECRETS}/ended-{session_id}.json"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
