"""Ids: names that are safe as file names, made fresh or derived from what they stand for."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from datetime import datetime

from mimikit.errors import BadInput

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


def is_id(text: str) -> bool:
    """Whether `text` may be used as an id, and so as a file name."""
    return _ID.fullmatch(text) is not None


def check_id(text: str, *, field: str = "id") -> str:
    """Give `text` back if it is an id.

    Raises:
        BadInput: it is not; the message says what an id looks like.
    """
    if not is_id(text):
        shown = text[:40] + ("…" if len(text) > 40 else "")
        raise BadInput(
            f"{field}: expected 1 to 128 letters, digits, '.', '_' or '-', starting with a letter "
            f"or digit; got {shown!r}",
            field=field,
        )
    return text


def new_id(prefix: str, now: datetime) -> str:
    """A fresh id that sorts by time: the prefix and a ULID.

    Shape: `prefix-` + 10 characters of milliseconds + 16 of randomness, in lower-case base32.
    """
    value = (int(now.timestamp() * 1000) << 80) | int.from_bytes(os.urandom(10))
    return f"{prefix}-" + "".join(_CROCKFORD[(value >> shift) & 31] for shift in range(125, -5, -5))


def derived_id(prefix: str, *parts: str) -> str:
    """The id that always follows from `parts`: replaying what made it makes no second one.

    Shape: `prefix-` + 26 base32 characters of a SHA-256 over the parts.
    """
    digest = hashlib.sha256("\x00".join(parts).encode()).digest()
    return f"{prefix}-" + base64.b32encode(digest).decode().lower()[:26]
