"""What may be set of the web for Planner and Workers: `[internet]` of config.toml."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from mimikit.engine_settings import SettingsSection


def _host_name(name: str) -> str:
    name = name.strip().lower().rstrip(".")
    if not re.fullmatch(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9-]{1,63}", name):
        raise ValueError(
            f"expected the name of a site such as example.org (in ASCII), got {name[:80]!r}"
        )
    return name


HostName = Annotated[str, AfterValidator(_host_name)]
"""It means itself and all below it."""
Port = Annotated[int, Field(ge=1, le=65535)]


class InternetSettings(SettingsSection):
    """Units: seconds, megabytes, characters, minutes, as the names say."""

    enabled: bool = True
    """Where the extra `web` is installed."""
    roles: tuple[Literal["planner", "worker"], ...] = ("planner", "worker")
    profiles: tuple[Literal["deferred", "standard", "specialist"], ...] = (
        *("deferred", "standard", "specialist"),
    )
    """Of Workers."""
    allow: tuple[HostName, ...] = ()
    """If there are any, pages of these sites alone are read."""
    deny: tuple[HostName, ...] = ()
    ports: tuple[Port, ...] = (80, 443)
    search: Literal["ddgs", "searxng", "brave", "tavily", "off"] = "ddgs"
    search_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s@?#]+$")] | None = None
    """Where your SearXNG is; it may be on this machine."""
    search_key_env: (
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None
    ) = None
    """The environment variable of the consumer that holds the key of a provider that wants one."""
    search_key_file: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]{1,60}$")] | None = None
    """The file in `secrets/` that does."""
    timeout_s: Annotated[float, Field(ge=1, le=120)] = 30
    page_mb: Annotated[float, Field(gt=0, le=50)] = 10
    """As it comes over the network; unpacked it may be four times as much."""
    page_characters: Annotated[int, Field(ge=500, le=200_000)] = 20_000
    """Of a page's text in one answer; the rest is had by asking on."""
    redirects: Annotated[int, Field(ge=0, le=20)] = 5
    fetches_per_run: Annotated[int, Field(ge=1)] = 60
    searches_per_run: Annotated[int, Field(ge=1)] = 30
    cache_minutes: Annotated[float, Field(ge=0)] = 60
    cache_mb: Annotated[float, Field(ge=0)] = 50

    @model_validator(mode="after")
    def _search_is_whole(self) -> Self:
        if self.search == "searxng" and self.search_url is None:
            raise ValueError("search_url: expected the address of your SearXNG, got none")
        if self.search_key_env and self.search_key_file:
            raise ValueError("expected `search_key_env` or `search_key_file`, got both")
        has_key = self.search_key_env or self.search_key_file
        if self.search in ("brave", "tavily") and not has_key:
            raise ValueError(
                f"expected the key of {self.search} by search_key_env or search_key_file, got none"
            )
        return self
