"""What a site's robots.txt asks of readers (RFC 9309). Pure."""

from __future__ import annotations

import re

MOST_BYTES = 512 * 1024
"""More of a file is not read, as the standard has it."""
OUR_NAME = "mimikit"
_LINE = re.compile(r"\s*([A-Za-z-]+)\s*:\s*([^#]*)")


def may_read(robots: str, path: str, name: str = OUR_NAME) -> bool:
    """Whether the reader `name` may read a path, with its query; the longest rule that fits says.

    Of groups those that name it count, together; where none does, those for everybody.
    """
    groups: dict[str, list[tuple[bool, str]]] = {}
    agents: set[str] = set()
    is_heading = False
    for line in robots[:MOST_BYTES].lstrip("\ufeff").splitlines():
        if (match := _LINE.match(line)) is None:
            continue
        key, value = match[1].lower(), match[2].strip()
        if key == "user-agent":
            agent = value.lower().partition("/")[0]
            agents = agents if is_heading else set()
            is_heading = True
            if agent in (name, "*"):  # no other counts: a file of many names costs nothing more
                agents.add(agent)
                groups.setdefault(agent, [])
        elif key in ("allow", "disallow"):
            is_heading = False
            for named in agents if value else ():
                groups[named].append((key == "allow", value))
    rules = groups.get(name, groups.get("*", []))
    best = max(
        ((len(rule), allows) for allows, rule in rules if _fits(rule, path)), default=(0, True)
    )
    return path == "/robots.txt" or best[1]


def _fits(rule: str, path: str) -> bool:
    """Whether a path begins as the rule says; `*` is anything, `$` at its end the end.

    The parts between stars are looked for in order, each where it comes first: no rule takes long.
    """
    is_whole = rule.endswith("$")
    first, *rest = rule.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for number, part in enumerate(rest):
        if is_whole and number == len(rest) - 1:
            return len(path) - len(part) >= at and path.endswith(part)
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not is_whole or at == len(path)
