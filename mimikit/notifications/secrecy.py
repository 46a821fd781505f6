"""What of a channel's address may be said: its service, and nothing else. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

from mimikit.errors import BadInput
from mimikit.language.plain_text import plain

MOST_URL = 2000
HIDDEN = "•••"
_LEAST = 3
"""Shorter parts of an address are no secret, and stand in every other word."""
_MOST_ERROR = 200
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]{0,31})://")


def checked_url(given: str) -> str:
    """An address as it may be kept.

    Raises:
        BadInput: it is none; it is not repeated, as it may be a secret.
    """
    url = given.strip()
    if not url.isprintable() or len(url) > MOST_URL or not _SCHEME.match(url):
        raise BadInput(
            "expected the address of a channel in one line, such as ntfy://my-topic or desktop://, "
            "got something else; the addresses of each service are described by Apprise",
            field="url",
            code="bad_channel_url",
        )
    return url


def service_of(url: str) -> str:
    """What an address leads to, by its first word: `ntfy`, `mailto`; empty where it is none."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def url_file(name: str) -> str:
    """Where the address of a channel is kept, in `secrets/`."""
    return f"notify-{name}.url"


def redacted(text: str, url: str) -> str:
    """A complaint, without whatever stands in the address; in one line."""
    secret = url.partition("://")[2]
    parts = {url, secret, *re.split(r"[/?&=@:,+#]+", secret)}
    parts |= {unquote(part) for part in parts}
    for part in sorted((it for it in parts if len(it) >= _LEAST), key=len, reverse=True):
        text = re.sub(re.escape(part), HIDDEN, text, flags=re.IGNORECASE)
    return " ".join(plain(text).split())[:_MOST_ERROR]
