"""Settings: environment `MIMIKIT_*` over `.mimikit/config.toml` over the defaults here.

Also where the installation has its page and prompts.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from mimikit.engine_settings import (
    CodexSettings,
    CommandSettings,
    EndpointSettings,
    LocalSettings,
    OpencodeSettings,
    PriceSettings,
    SandboxSettings,
    Seconds,
    SettingsSection,
)
from mimikit.errors import BadSettings, NotFound

EngineName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
OWN_ENGINES = ("auto", "codex", "opencode", "local", "builtin", "command")
"""Engines that need no table of their own; `auto` chooses."""
TEST_ENGINE = "scripted"
"""The engine that tests give to the consumer."""


def is_own_name(name: str) -> bool:
    """Whether an engine may have this name in the settings: it becomes part of a file's."""
    is_taken = name in OWN_ENGINES or name == TEST_ENGINE
    return re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", name) is not None and not is_taken


_PACKAGE = Path(__file__).resolve().parent
_STATE_ONLY = frozenset({"MIMIKIT_STATE", "MIMIKIT_WORKSPACE", "MIMIKIT_TOKEN", "MIMIKIT_RUN"})


class ProfileSettings(SettingsSection):
    """Which engine a role or profile uses, and how."""

    engine: EngineName = "auto"
    engines: list[EngineName] = Field(default_factory=list[EngineName])
    """Of several the first that is set up and works is used."""
    model: str | None = None
    effort: str | None = None
    timeout_s: Seconds | None = None

    @property
    def order(self) -> list[str]:
        """The engines that may be used, the best first."""
        return self.engines or [self.engine]

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.engines and "engine" in self.model_fields_set:
            raise ValueError("expected `engine` or `engines`, got both")
        return self


class TellerSettings(ProfileSettings):
    timeout_s: Seconds | None = 180


class PlannerSettings(ProfileSettings):
    timeout_s: Seconds | None = 600


class DeferredSettings(ProfileSettings):
    """Light housekeeping: by code where possible, else by a model at low effort."""

    effort: str | None = "low"


class ShellSettings(ProfileSettings):
    """The owner's command lines; no model is used."""

    engine: EngineName = "command"


class RoleSettings(SettingsSection):
    teller: TellerSettings = TellerSettings()
    planner: PlannerSettings = PlannerSettings()


class ProfilesSettings(SettingsSection):
    """How Worker tasks are carried out, by profile name."""

    deferred: DeferredSettings = DeferredSettings()
    standard: ProfileSettings = ProfileSettings()
    specialist: ProfileSettings = ProfileSettings()
    command: ShellSettings = ShellSettings()


class WebSettings(SettingsSection):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8787
    hosts: list[str] = Field(default_factory=list[str])
    """Host names the page may be asked for, besides loopback's; needed off loopback."""
    allow_commands: bool = False
    """Off loopback: may chat and HTTP run shell commands?"""
    max_streams: Annotated[int, Field(ge=1, le=64)] = 16
    inputs_per_minute: Annotated[int, Field(ge=1)] = 30
    failed_logins_per_minute: Annotated[int, Field(ge=1)] = 5
    stream_minutes: Seconds = 10


def local_host(host: str) -> str:
    """Where this machine reaches a server that is bound to an address; a wildcard is no place."""
    everywhere = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound
    return everywhere.get(host, host)


class LimitSettings(SettingsSection):
    worker_timeout_s: Seconds = 3600
    idle_timeout_s: Seconds = 300
    teller_idle_timeout_s: Seconds = 120
    shutdown_timeout_s: Seconds = 10
    kill_after_s: Seconds = 5
    result_bytes: Annotated[int, Field(ge=1000, le=8_000_000)] = 1_000_000
    output_bytes: Annotated[int, Field(ge=1000)] = 10_000_000
    retry_delay_s: Seconds = 60
    engine_retry_s: Seconds = 15
    delegations_per_turn: int = 3
    tasks_per_plan: int = 20
    tasks_per_trace: int = 50


class TriggerSettings(SettingsSection):
    llm_eval_interval_s: Annotated[float, Field(ge=10, le=86400)] = 300
    """How often a model is asked about a condition; ever less often while it says no."""


class BudgetSettings(SettingsSection):
    """What is put into a turn's prompt. Units: tokens, unless the name says otherwise."""

    conversation_tokens: int = 4096
    conversation_messages: int = 20
    conversation_least: int = 5
    memory_tokens: int = 2048
    memory_hits: int = 5
    input_tokens: int = 8000
    results_tokens: int = 2048
    tasks_tokens: int = 1024


Tokens = Annotated[int, Field(ge=1)]


class TokenCapSettings(SettingsSection):
    """`[budget]`: how much may be used. Units: tokens; what is not set is only counted."""

    daily_tokens: Tokens | None = None
    per_task_tokens: Tokens | None = None
    """Of a task, over all its attempts."""
    per_trigger_daily_tokens: Tokens | None = None


class RetentionSettings(SettingsSection):
    """How long ended things are kept. Units: days, megabytes."""

    days: Annotated[int, Field(ge=1)] = 30
    log_file_mb: Annotated[int, Field(ge=1)] = 10
    logs_mb: Annotated[int, Field(ge=1)] = 500


class Settings(BaseSettings):
    """Every setting of one state folder."""

    model_config = SettingsConfigDict(
        env_prefix="MIMIKIT_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    durability: Literal["full", "fast"] = "full"
    """`fast` skips the flushes: a power cut may lose the last seconds, a kill never does."""
    timezone: str = ""
    """IANA name; empty is the system's."""
    engine: EngineName | list[EngineName] = "auto"
    """Used by each role and profile that names no engine of its own; of several the first that is
    set up and works."""
    max_concurrency: Annotated[int, Field(ge=1, le=64)] = 3
    allow_llm_commands: bool = False
    """May an LLM role name the `command` profile?"""
    engines: dict[EngineName, EndpointSettings] = {}
    """Endpoints by name, for `engine`, roles and profiles."""
    roles: RoleSettings = RoleSettings()
    profiles: ProfilesSettings = ProfilesSettings()
    web: WebSettings = WebSettings()
    codex: CodexSettings = CodexSettings()
    opencode: OpencodeSettings = OpencodeSettings()
    local: LocalSettings = LocalSettings()
    command: CommandSettings = CommandSettings()
    sandbox: SandboxSettings = SandboxSettings()
    limits: LimitSettings = LimitSettings()
    triggers: TriggerSettings = TriggerSettings()
    budget: TokenCapSettings = TokenCapSettings()
    budgets: BudgetSettings = BudgetSettings()
    retention: RetentionSettings = RetentionSettings()

    def price_of(self, engine: str) -> PriceSettings | None:
        """What an engine's tokens cost; None where nobody has said."""
        if engine == "local":
            return PriceSettings(input=0, output=0)
        own = {"codex": self.codex, "opencode": self.opencode}
        settings = own.get(engine) or self.engines.get(engine)
        return settings.price if settings else None

    def model_of(self, engine: str) -> str:
        """The model that an engine uses where a role or profile names none; empty: its own."""
        endpoint = self.engines.get(engine)
        return endpoint.model if endpoint else ""

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        if name and not _is_zone(name):
            raise ValueError(f"expected an IANA time zone such as Asia/Shanghai, got {name!r}")
        return name

    @model_validator(mode="after")
    def _known_engines(self) -> Self:
        if odd := next((name for name in self.engines if not is_own_name(name)), None):
            raise ValueError(f"engines.{odd}: expected a name of your own, {odd!r} is taken")
        check_engines("engine", self.engine_order, self.engines)
        for room in ("roles", "profiles"):
            table: SettingsSection = getattr(self, room)
            for seat in type(table).model_fields:
                order: list[str] = getattr(table, seat).order
                check_engines(f"{room}.{seat}.engine", order, self.engines)
        return self

    @property
    def engine_order(self) -> list[str]:
        """The default engines, the best first."""
        return self.engine if isinstance(self.engine, list) else [self.engine]

    @property
    def zone(self) -> ZoneInfo:
        """Else the system's as it is now: a machine may travel."""
        return ZoneInfo(self.timezone or system_zone())

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment first, then what `load` read from the file."""
        return env_settings, init_settings


def check_engines(key: str, names: Sequence[str], endpoints: Collection[str]) -> None:
    """Raise a ValueError unless each name is that of an engine."""
    known = [*OWN_ENGINES, *endpoints]
    if key == "engine":
        known.remove("command")  # it is for lines of the owner
    for name in names or [""]:
        if name not in known and name != TEST_ENGINE:
            near = _did_you_mean(name, known, "")
            said = f"{key}: expected one of {', '.join(known)}; got {name[:60]!r}{near}"
            raise ValueError(said)


def load(state: Path) -> Settings:
    """Read the settings of a state folder.

    Raises:
        BadSettings: with the key, what was expected and what was got.
    """
    path = state / "config.toml"
    try:
        return parsed(file_text(path), path)
    except (ValueError, OSError) as error:
        raise BadSettings(f"{path}: {error}") from None


def parsed(text: str, path: Path) -> Settings:
    """The settings of a file's text, and of the environment.

    Raises:
        BadSettings: with the key, what was expected and what was got.
    """
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:
        raise BadSettings(f"{path}: {error}") from None
    keys = known_keys()
    known = {"MIMIKIT_" + key.upper().replace(".", "__") for key in keys}
    sections = {"MIMIKIT_" + key.upper().split(".")[0] for key in keys}
    for name in os.environ:
        if name.startswith("MIMIKIT_") and name not in known | sections | _STATE_ONLY:
            near = _did_you_mean(name, sorted(known))
            raise BadSettings(f"environment: {name} is not a setting{near}")
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")  # pydantic's, before words of our own
        if first["type"] == "extra_forbidden":
            what = f"{key} is not a setting{_did_you_mean(key, keys)}"
        elif not key:  # of several together
            what = said
        else:
            got = repr(first.get("input"))
            what = f"{key}: {said}, got {got if len(got) <= 100 else got[:100] + '…'}"
        raise BadSettings(f"{path}: {what}") from None
    except ValueError as error:  # of the environment's: those of tables and lists
        said = f"expected JSON in MIMIKIT_* variables of tables and lists: {error}"
        raise BadSettings(f"environment: {said}") from None


def file_text(path: Path) -> str:
    """The text of a settings file; empty where there is none.

    Raises:
        OSError, UnicodeDecodeError: it is no file of text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def system_zone() -> str:
    """The system's IANA zone, from TZ or /etc/localtime; UTC when it does not say."""
    name = os.environ.get("TZ", "").lstrip(":")
    if _is_zone(name):
        return name
    name = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    return name if _is_zone(name) else "UTC"


def _is_zone(name: str) -> bool:
    # Asking for one is quick; listing all of them walks the whole database.
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def known_keys(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
    """Every key as it is written in config.toml, dotted."""
    keys: list[str] = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            keys += known_keys(inner, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys


def _did_you_mean(
    name: str, known: list[str], otherwise: str = "; `mimikit doctor` lists them all"
) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else otherwise


@functools.cache
def asset_folder(name: str) -> Path:
    """The folder of an asset, `webui` or `prompts`.

    Raises:
        NotFound: neither place has it, so the installation is broken.
    """
    places = (_PACKAGE / "_assets" / name, _PACKAGE.parent / name)
    for place in places:
        if place.is_dir():
            return place
    tried = " or ".join(map(str, places))
    raise NotFound(f"expected the folder {name!r} at {tried}, found none; install mimikit again")
