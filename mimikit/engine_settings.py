"""Settings of engines and notifications: tables of config.toml."""

from __future__ import annotations

import re
from datetime import time
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_HOUR = r"([01][0-9]|2[0-3]):[0-5][0-9]"
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SettingsSection(BaseModel):
    """A table of config.toml; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PriceSettings(SettingsSection):
    """`price = {input = 2, cached_input = 0.5, output = 8}`, per million tokens."""

    input: Price
    cached_input: Price | None = None
    """None: as any other input."""
    output: Price
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = "USD"


class CodexSettings(SettingsSection):
    path: str | None = None
    """The binary; None looks in the installed package, then on PATH."""
    home: str | None = None
    """CODEX_HOME; None is the user's own."""
    config: dict[str, str] = {}
    """More `-c key=value` pairs (values as TOML text), for instance a model provider."""
    env: list[str] = []
    """Names of environment variables codex itself may see (an API key's, say)."""
    sandbox: Literal["workspace-write", "danger-full-access"] = "workspace-write"
    network: bool = False
    price: PriceSettings | None = None


class OpencodeSettings(SettingsSection):
    path: str | None = None
    """The program; None looks on PATH."""
    model: Annotated[str, StringConstraints(pattern=r"^[^/\s]+/\S+$")] | None = None
    """As `provider/model`; None is what your own settings of opencode say."""
    env: list[str] = []
    """Names of environment variables opencode may see (an API key's, say)."""
    network: bool = False
    """May its Worker's shell reach the network?"""
    price: PriceSettings | None = None


class EndpointSettings(SettingsSection):
    """`[engines.NAME]`: a model behind an address, that speaks OpenAI's protocol."""

    type: Literal["openai"] = "openai"
    base_url: Annotated[str, StringConstraints(max_length=1000)]
    """Up to what stands before `/chat/completions`; often it ends in `/v1`."""
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    api: Literal["auto", "responses", "chat"] = "auto"
    """`auto` asks the endpoint, once."""
    api_key_env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = (
        None
    )
    """The environment variable of the consumer that holds the key."""
    api_key_file: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]{1,60}$")] | None = None
    """The file in `secrets/` that does."""
    api_key_header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,60}$")] = (
        "Authorization"
    )
    """The header of the key; `api-key` for Azure."""
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    """More headers and query parameters of each request."""
    effort: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Field(ge=16)] | None = None
    """The output limit of an answer, thinking included; None: the endpoint's."""
    context_tokens: Annotated[int, Field(ge=1024)] | None = None
    """The model's context window; None is what the endpoint says."""
    vision: bool | None = None
    """Whether the model takes pictures; None: tried, and a refusal remembered for a day."""
    network: bool = False
    """May its Worker's shell reach the network?"""
    price: PriceSettings | None = None

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        if not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@?#]*)?", url):
            raise ValueError(
                "expected an address such as http://127.0.0.1:11434/v1, without a name, a key or "
                "a query in it"
            )
        return re.sub(r"(/chat/completions|/responses)?/*\Z", "", url)

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.api_key_env and self.api_key_file:
            raise ValueError("expected `api_key_env` or `api_key_file`, got both")
        return self


class LocalSettings(SettingsSection):
    """The small model on this machine, of the engine `local`."""

    model_path: str | None = None
    """A GGUF file; None is what `mimikit local setup` has fetched."""
    threads: Annotated[int, Field(ge=1, le=64)] | None = None
    """None is as many as there are cores, at most four."""
    context_tokens: Annotated[int, Field(ge=2048, le=32768)] = 4096
    idle_minutes: Seconds = 10
    """Unload the model after so long without a request."""


class CommandSettings(SettingsSection):
    sandbox: Literal["auto", "off"] = "auto"
    """`auto`: a process namespace if bubblewrap makes one; `off`: a process group, for `sudo`."""


class SandboxSettings(SettingsSection):
    """`[sandbox]`: what Workers see of this machine."""

    mode: Literal["on", "off"] = "on"
    """`off`: Workers run without the box, as the owner."""
    show: list[str] = []
    """Files and folders outside the workspace that Workers read (`~/.cargo`, `/opt/go`)."""
    hide: list[str] = []
    """Files and folders that no Worker reads, also within what is shown or worked in."""
    git: Literal["read-only", "write"] = "read-only"
    """What Workers may do with the workspace's `.git`; hooks and configuration stay read-only."""


class NotifySettings(SettingsSection):
    quiet: Annotated[str, StringConstraints(pattern=rf"^({_HOUR}-{_HOUR})?$")] = ""
    """Quiet hours, `22:00-08:00`: only reminders and questions are sent meanwhile."""

    def is_quiet(self, local: time) -> bool:
        """Whether a local time is within the quiet hours, which may span midnight."""
        if not self.quiet:
            return False
        start, end = map(time.fromisoformat, self.quiet.split("-"))
        return start <= local < end if start <= end else local >= start or local < end
