"""What may be set of each engine, and server of tools: tables of config.toml, units in names."""

from __future__ import annotations

import re
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
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
NAME_PATTERN = r"^[a-z][a-z0-9_-]{0,31}$"
"""What a table that is named by its owner may be called: it becomes part of a file's name."""


class SettingsSection(BaseModel):
    """A table of config.toml; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PriceSettings(SettingsSection):
    """`price = {input = 2, cached_input = 0.5, output = 8}`: of a million tokens each."""

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
    app_server: bool = True
    """Teller and Planner have their turns in one codex that stays; False: each starts its own."""
    sandbox: Literal["workspace-write", "danger-full-access"] = "workspace-write"
    network: bool = False
    secrets: list[str] = []
    """More files and folders that no Worker may read, besides the usual ones of the home."""
    sees_pictures: bool = True
    """Its own models all do; one of another provider may not."""
    price: PriceSettings | None = None


class OpencodeSettings(SettingsSection):
    path: str | None = None
    """The program; None looks on PATH."""
    model: Annotated[str, StringConstraints(pattern=r"^[^/\s]+/\S+$")] | None = None
    """As `provider/model`; None is what your own settings of opencode say."""
    env: list[str] = []
    """Names of environment variables opencode may see (an API key's, say)."""
    sees_pictures: bool = False
    """Does the model take pictures?"""
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
    effort: str | None = None
    context_tokens: Annotated[int, Field(ge=1024)] | None = None
    """How much the model takes; None is what the endpoint says."""
    sees_pictures: bool = False
    """Does the model take pictures?"""
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
        return url.rstrip("/")

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
    """After so long without a request it is no longer held in memory."""


class CommandSettings(SettingsSection):
    sandbox: Literal["auto", "off"] = "auto"
    """The owner's command lines do not see the state folder; `off` lets them."""


VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class McpServerSettings(SettingsSection):
    """`[mcp.NAME]`: a server of tools that speaks MCP. Nobody is offered its tools unasked."""

    command: Annotated[list[str], Field(max_length=100)] = []
    """The program that is started, and its arguments; it speaks by its input and output."""
    url: Annotated[str, StringConstraints(max_length=1000)] | None = None
    """Where one listens that runs already (streamable HTTP); in place of `command`."""
    env: dict[VariableName, str] = {}
    """More variables for the program, as they are."""
    env_from: list[VariableName] = []
    """Names of variables of the consumer's that it may see (an API key's, say)."""
    headers_file: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_.-]{1,60}$")] | None = None
    """The file in `secrets/` with headers for the `url`: `Name: value`, one on a line."""
    roles: list[Literal["planner", "worker"]] = ["worker"]
    """To whom its tools are offered; to a Worker only if its profile is named, too."""
    profiles: list[Literal["deferred", "standard", "specialist"]] = []
    """To Workers of which profiles; without one, to none."""
    tools: list[str] | None = None
    """The tools that are offered, by the server's own names; without it, all."""
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60
    """How long its start may take, and each call."""

    @field_validator("url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        if url is not None and not re.fullmatch(r"https?://[^\s/@?#]+(/[^\s@#]*)?", url):
            raise ValueError(
                "expected an address such as http://127.0.0.1:8000/mcp, without a name or a key "
                "in it; keys go into `headers_file`"
            )
        return url

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) == (self.url is not None):
            raise ValueError(
                f"expected `command` or `url`, got {'both' if self.url else 'neither'}"
            )
        if not all(self.command[:1]) or any("\0" in word for word in self.command):
            raise ValueError("command: expected the words of a command line, the program first")
        if self.url is None and self.headers_file is not None:
            raise ValueError("headers_file: expected it with a `url` alone")
        if self.url is not None and (self.env or self.env_from):
            raise ValueError("env, env_from: expected them with a `command` alone")
        return self
