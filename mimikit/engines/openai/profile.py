"""What is known of an endpoint: its key, its API, its context window."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Literal

from pydantic import Field

from mimikit.engine_settings import EndpointSettings
from mimikit.engines.cache import write_cache
from mimikit.engines.openai.dialogue import PATHS, Api, table_of
from mimikit.engines.openai.endpoint import EndpointClient, EndpointError
from mimikit.errors import EngineError, MimikitError
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.models import Record

_WINDOWS = ("context_length", "max_model_len", "context_window", "n_ctx", "max_context_length")
"""Names of the context window in model lists."""


class EndpointProfile(Record):
    """`cache/endpoint-{name}.json`; losing it costs two requests."""

    base_url: str
    model: str
    api: Literal["responses", "chat"]
    window: int | None = Field(default=None, ge=256)
    """Tokens, where the endpoint says so."""


def key_of(name: str, settings: EndpointSettings, state: Path) -> str | None:
    """None where none is configured. Raises EngineError if it is configured and missing."""
    if variable := settings.api_key_env:
        if key := os.environ.get(variable, "").strip():
            return key
        raise EngineError(f"expected the key of {name} in {variable}, got no such variable")
    if settings.api_key_file is None:
        return None
    place = f"{paths.SECRETS}/{settings.api_key_file}"
    with contextlib.closing(RealDisk(state)) as disk:
        key = (Files(disk).read(place, most=10_000) or b"").decode("ascii", "replace").strip()
    if not key or not key.isprintable():
        raise EngineError(
            f"expected the key of {name} in {place}, got none; `mimikit engine add {name}`"
        )
    return key


def learn(
    name: str, settings: EndpointSettings, state: Path, client: EndpointClient
) -> EndpointProfile:
    """The cached profile, else a new one. Raises EndpointError."""
    place = f"{paths.CACHE}/endpoint-{name}.json"
    window = settings.context_tokens
    with contextlib.closing(RealDisk(state)) as disk:
        kept = Files(disk).peek(place, EndpointProfile)
    if kept and (kept.base_url, kept.model) == (settings.base_url, settings.model):
        return kept.but(window=window or kept.window)
    api = api_of(settings, client)
    found = EndpointProfile(
        base_url=settings.base_url, model=settings.model, api=api, window=_window(settings, client)
    )
    with contextlib.suppress(MimikitError):  # it is asked again, no more
        write_cache(state, place, found.to_json())
    return found.but(window=window or found.window)


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
    """From the endpoint's list of models."""
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
