"""What is known of an endpoint: its API, its context window, the fields that it refuses."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from mimikit.engine_settings import EndpointSettings
from mimikit.engines.openai.answer import Api
from mimikit.engines.openai.dialogue import PATHS
from mimikit.engines.openai.endpoint import EndpointClient
from mimikit.engines.openai.failure import EndpointError
from mimikit.errors import EngineError
from mimikit.protocol import paths
from mimikit.protocol.disk import RealDisk
from mimikit.protocol.files import Files
from mimikit.protocol.json import table_of

_WINDOWS = ("context_length", "max_model_len", "context_window", "n_ctx", "max_context_length")
"""Names of the context window in model lists."""


@dataclass(frozen=True, slots=True)
class EndpointProfile:
    api: Api
    window: int | None = None
    """In tokens; None: unknown."""
    omitted: frozenset[str] = frozenset()
    """Optional fields of a request that this model refuses."""


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


def profile_of(settings: EndpointSettings, client: EndpointClient) -> EndpointProfile:
    """Raises EndpointError."""
    return EndpointProfile(
        api_of(settings, client), settings.context_tokens or _window(settings, client)
    )


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
