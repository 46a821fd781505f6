"""What is known of an endpoint: its API, its context window, the fields that it refuses."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field

from mimikit.engine_settings import EndpointSettings
from mimikit.engines.openai.answer import Api
from mimikit.engines.openai.dialogue import PATHS
from mimikit.engines.openai.endpoint import EndpointClient
from mimikit.engines.openai.failure import EndpointError
from mimikit.errors import EngineError, MimikitError
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.json import table_of
from mimikit.protocol.models import Instant, Record

_RECHECK = timedelta(days=1)
_WINDOWS = ("context_length", "max_model_len", "context_window", "n_ctx", "max_context_length")
"""Names of the context window in model lists."""


class EndpointProfile(Record):
    """`cache/endpoint-{name}.json`."""

    base_url: str
    model: str
    api: Literal["responses", "chat"]
    window: int | None = Field(default=None, ge=256)
    """In tokens; None: unknown."""
    omitted: list[str] = Field(default_factory=list[str])
    """Optional fields of a request that this model refuses."""
    learned_at: Instant | None = None


def key_of(name: str, settings: EndpointSettings, state: Path) -> str | None:
    """The API key; None if none is configured. Raises EngineError if it is missing."""
    if variable := settings.api_key_env:
        if key := os.environ.get(variable, "").strip():
            return key
        raise EngineError(f"expected the key of {name} in {variable}, got no such variable")
    if settings.api_key_file is None:
        return None
    place = f"{paths.SECRETS}/{settings.api_key_file}"
    with contextlib.closing(RealDisk(state)) as disk:
        key = (Files(disk).read(place, max_bytes=10_000) or b"").decode("ascii", "replace").strip()
    if not key or not key.isprintable():
        raise EngineError(
            f"expected the key of {name} in {place}, got none; `mimikit engine add {name}`"
        )
    return key


class ProfileCache:
    """The profile of one endpoint. Not thread-safe."""

    def __init__(self, name: str, settings: EndpointSettings, state: Path) -> None:
        self._place = f"{paths.CACHE}/endpoint-{name}.json"
        self._settings, self._state = settings, state
        self._profile: EndpointProfile | None = None

    def learn(self, client: EndpointClient, now: datetime) -> EndpointProfile:
        """The current profile. The window is asked again at a start, all of it each day.

        Raises EndpointError.
        """
        profile = self._profile
        if profile is None and (profile := self._cached(now)) is not None:
            profile = profile.but(window=_window(self._settings, client) or profile.window)
        if profile is None or not _is_fresh(profile, now):
            profile = EndpointProfile(
                base_url=self._settings.base_url,
                model=self._settings.model,
                api=api_of(self._settings, client),
                window=_window(self._settings, client),
                learned_at=now,
            )
        if profile != self._profile:
            self._save(profile)
        return profile.but(window=self._settings.context_tokens or profile.window)

    def omit(self, fields: Collection[str]) -> None:
        if self._profile is not None:
            self._save(self._profile.but(omitted=sorted(fields)))

    def forget(self) -> None:
        self._profile = None
        with contextlib.closing(RealDisk(self._state)) as disk, contextlib.suppress(MimikitError):
            Files(disk, durable=False).remove(self._place)

    def _cached(self, now: datetime) -> EndpointProfile | None:
        with contextlib.closing(RealDisk(self._state)) as disk:
            known = Files(disk, durable=False).peek(self._place, EndpointProfile)
        is_same = known is not None and (known.base_url, known.model) == (
            self._settings.base_url,
            self._settings.model,
        )
        return known if is_same and _is_fresh(known, now) else None

    def _save(self, profile: EndpointProfile) -> None:
        self._profile = profile
        with contextlib.closing(RealDisk(self._state)) as disk, contextlib.suppress(MimikitError):
            files = Files(disk, durable=False)
            files.make_folders()
            files.write(self._place, profile.to_json())


def _is_fresh(profile: EndpointProfile | None, now: datetime) -> bool:
    learned_at = profile.learned_at if profile else None
    return learned_at is not None and timedelta() <= now - learned_at < _RECHECK


def api_of(settings: EndpointSettings, client: EndpointClient) -> Api:
    """The API of the endpoint, probed by empty requests. Raises EndpointError."""
    if settings.api != "auto":
        return settings.api
    is_openai = settings.base_url.split("/")[2].endswith(("openai.com", "openai.azure.com"))
    order: tuple[Api, ...] = ("responses", "chat") if is_openai else ("chat", "responses")
    for api in order:
        if client.has(PATHS[api]):
            return api
    wanted = " or ".join(f"{settings.base_url}{PATHS[api]}" for api in order)
    raise EndpointError("absent", f"expected {wanted}, found neither")


def _window(settings: EndpointSettings, client: EndpointClient) -> int | None:
    try:
        listed = client.models()
    except EndpointError:
        return None
    for model in (it for it in listed if it["id"] == settings.model):
        for table in (model, table_of(model.get("meta"))):
            for name in _WINDOWS:
                if type(size := table.get(name)) is int and size >= 256:
                    return size
    return None
