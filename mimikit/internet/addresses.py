"""Which addresses of the web a run may reach. Pure: names are resolved elsewhere.

What an address is called is no protection: whatever a name leads to is judged when a connection is
about to be made, and the connection goes to the address that was judged.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

import httpx

from mimikit.errors import BadInput, Refused

MOST_URL = 2000
"""Characters: what a run knows goes out in an address, too."""
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NOT_THE_WEB = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # answers on every machine of one cloud, for that machine
        *("192.0.0.0/24", "192.88.99.0/24"),
        *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
    )
)
"""Besides what Python knows: tunnels that hold an IPv4 address (Teredo, 6to4), and documentation.
NAT64 and IPv4-mapped addresses lie outside of global unicast."""
_HERE = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa", "onion")
"""Ends of names that mean something of this machine or its network, or nothing on the web."""
_IPv4 = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")
_HOST = re.compile(r"[a-z0-9._-]+|\[?[0-9a-f:.]+(?:%25[a-z0-9]+)?\]?")
_ODD = re.compile(r"[\x00-\x20\x7f\\]")

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


def address_refusal(text: str) -> str | None:
    """Why no connection is made to an address; None where it is one of the open web."""
    try:
        address: Address = ipaddress.ip_address(text)
    except ValueError:
        return f"expected an address, got {text[:60]!r}"
    is_public = address.is_global and not (
        address.is_multicast
        or address.is_reserved
        or address.is_loopback
        or address.is_link_local
        or address.is_unspecified
    )
    if isinstance(address, ipaddress.IPv6Address):
        is_public = is_public and address.scope_id is None and address in _GLOBAL_UNICAST
    if not is_public or any(address in network for network in _NOT_THE_WEB):
        return f"{address} is not of the open web but private, of this machine, or reserved"
    return None


@dataclass(frozen=True, slots=True)
class UrlRules:
    """What the settings say of addresses."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ports: Collection[int] = (80, 443)


def checked_url(text: str, rules: UrlRules) -> httpx.URL:
    """An address that may be asked for, without its fragment.

    Raises:
        BadInput: it is none.
        Refused: it is of a kind, a port or a site that is not read.
    """
    text = text.strip()
    if len(text) > MOST_URL or _ODD.search(text):
        raise BadInput(
            f"url: expected an address of at most {MOST_URL} characters without blanks", field="url"
        )
    try:
        url = httpx.URL(text)
        host = url.raw_host.decode("ascii").lower()
    except (httpx.InvalidURL, UnicodeError, ValueError) as error:
        raise BadInput(
            f"url: expected an address, got {text[:100]!r}: {error}", field="url"
        ) from None
    if host and not _HOST.fullmatch(host):
        raise BadInput(f"url: expected the name of a site, got {host[:80]!r}", field="url")
    if url.scheme not in ("http", "https") or not host:
        raise Refused(
            f"expected an address that begins with http:// or https://, got {text[:60]!r}"
        )
    if url.userinfo or "@" in url.netloc.decode("ascii", "replace"):
        raise Refused("expected an address without a name or password in it")
    port = url.port if url.port is not None else 443 if url.scheme == "https" else 80
    if port not in rules.ports:
        allowed = ", ".join(map(str, rules.ports))
        raise Refused(f"expected a port of {allowed}, got {port}; `internet.ports` may allow it")
    if reason := host_refusal(host, rules):
        raise Refused(reason)
    return url.copy_with(fragment=None)


def host_refusal(host: str, rules: UrlRules) -> str | None:
    """Why a site is not read, by its name alone."""
    name = host.strip("[]").rstrip(".").lower()
    if ":" in host:
        if reason := address_refusal(name):
            return reason
    elif re.fullmatch(r"(?:0x[0-9a-f]*|[0-9]+)", name.rpartition(".")[2]):
        # Such names are numbers to some, in octal, in hexadecimal, or with parts left out.
        if not _IPv4.fullmatch(name):
            return f"expected a name or a plain address, got {name[:60]!r}"
        if reason := address_refusal(name):
            return reason
    elif "." not in name or name.rpartition(".")[2] in _HERE:
        return f"{name[:80]!r} is no name of the open web"
    if is_below(name, rules.deny):
        return f"{name[:80]} is denied by `internet.deny`"
    if rules.allow and not is_below(name, rules.allow):
        return f"{name[:80]} is not among the sites of `internet.allow`"
    return None


def is_below(name: str, sites: Collection[str]) -> bool:
    """Whether a name is one of these sites, or below one."""
    return any(name == site or name.endswith(f".{site}") for site in sites)
