"""The doctor's look at tools that are carried out for Planner and Workers."""

from __future__ import annotations

from collections.abc import Iterator

from mimikit.cli.checks import Finding, note, ok
from mimikit.config import Settings
from mimikit.extras import install_line
from mimikit.providers import missing_for_web


def web_tools(settings: Settings) -> Iterator[Finding]:
    """Whether Planner and Workers have the web, and by what they search."""
    web, missing = settings.internet, missing_for_web()
    if not web.enabled:
        yield note("web tools", "off by `internet.enabled`: Planner and Workers read no pages")
    elif missing:
        said = f"none for Planner and Workers: {', '.join(missing)} not installed"
        yield note("web tools", said, f"`{install_line('web')}` gives them the web")
    else:
        search = "no search" if web.search == "off" else f"search by {web.search}"
        sites = f"{', '.join(web.allow)} alone" if web.allow else "public addresses alone"
        roles = ", ".join(role.capitalize() for role in web.roles) or "nobody"
        yield ok("web tools", f"for {roles}: {search}, pages of {sites}")
