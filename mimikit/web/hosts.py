"""Names the page may be asked for: a foreign name that was pointed here is not answered."""

from __future__ import annotations

from mimikit.errors import BadSettings

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


def allowed_hosts(hosts: list[str]) -> frozenset[str]:
    """The names the page may be asked for: loopback's and the operator's.

    Raises:
        BadSettings: one of them is no plain host name.
    """
    names: set[str] = set(LOOPBACK_NAMES)
    for host in hosts:
        name = host_name(host)
        if name is None or name.startswith(".") or "*" in name:
            raise BadSettings(
                f"web.hosts: expected host names such as mimikit.home.lan, got {host!r}"
            )
        names.add(name)
    return frozenset(names)


def host_name(header: str | None) -> str | None:
    """The name in a Host header, lower case, without its port; None when it is malformed."""
    text = (header or "").lower()
    name, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        name, port = text, ""
    if colon and not text.endswith("]") and not (port.isascii() and port.isdigit()):
        return None
    bracketed = name.startswith("[") and name.endswith("]")
    inner = name[1:-1] if bracketed else name
    allowed = "0123456789abcdef:." if bracketed else "abcdefghijklmnopqrstuvwxyz0123456789.-_"
    return name if inner and all(letter in allowed for letter in inner) else None
