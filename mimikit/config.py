"""Settings: environment `MIMIKIT_*` over `.mimikit/config.toml` over the defaults here."""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import re
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import TZPATH, ZoneInfo

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
    NotifySettings,
    OpencodeSettings,
    PriceSettings,
    SandboxSettings,
    Seconds,
    SettingsSection,
)
from mimikit.errors import BadSettings, NotFound

EngineName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,31}$")]
OWN_ENGINES = ("auto", "codex", "opencode", "local", "builtin", "command")
TEST_ENGINE = "scripted"


def is_valid_endpoint_name(name: str) -> bool:
    """Whether an endpoint may have this name, which becomes part of a file name."""
    is_taken = name in OWN_ENGINES or name == TEST_ENGINE
    return re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", name) is not None and not is_taken


_PACKAGE = Path(__file__).resolve().parent
_STATE_ONLY = frozenset({"MIMIKIT_STATE", "MIMIKIT_WORKSPACE", "MIMIKIT_TOKEN", "MIMIKIT_RUN"})


class ProfileSettings(SettingsSection):
    engine: EngineName = "auto"
    engines: list[EngineName] = Field(default_factory=list[EngineName])
    """In order of preference; the first that is available is used."""
    model: str | None = None
    effort: str | None = None
    timeout_s: Seconds | None = None

    @property
    def order(self) -> list[str]:
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
    """Housekeeping: by code if possible, else by a model at low effort."""

    effort: str | None = "low"


class ShellSettings(ProfileSettings):
    """The owner's shell commands, without a model."""

    engine: EngineName = "command"


class RoleSettings(SettingsSection):
    teller: TellerSettings = TellerSettings()
    planner: PlannerSettings = PlannerSettings()


class ProfilesSettings(SettingsSection):
    deferred: DeferredSettings = DeferredSettings()
    standard: ProfileSettings = ProfileSettings()
    specialist: ProfileSettings = ProfileSettings()
    command: ShellSettings = ShellSettings()


class WebSettings(SettingsSection):
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8787
    hosts: list[str] = Field(default_factory=list[str])
    """Allowed host names besides the loopback ones; required at other addresses."""
    allow_commands: bool = False
    """Whether chat and HTTP may run shell commands at an address that is not loopback."""
    max_streams: Annotated[int, Field(ge=1, le=64)] = 16
    inputs_per_minute: Annotated[int, Field(ge=1)] = 30
    failed_logins_per_minute: Annotated[int, Field(ge=1)] = 5
    stream_minutes: Seconds = 10


def local_host(host: str) -> str:
    """The address to connect to for a server bound to `host`, which may be a wildcard."""
    wildcards = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104 - not bound
    return wildcards.get(host, host)


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
    """Interval of a condition's evaluation by a model; it grows while the result is no."""
    settle_s: Annotated[float, Field(ge=0, le=3600)] = 2
    """How long size and time of a file must rest before it counts as changed or there."""


class BudgetSettings(SettingsSection):
    """Limits of a turn's prompt. Units: tokens, unless the name says otherwise."""

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
    """`[budget]`: usage caps. Units: tokens; None: no cap."""

    daily_tokens: Tokens | None = None
    per_task_tokens: Tokens | None = None
    per_trigger_daily_tokens: Tokens | None = None


class FileSettings(SettingsSection):
    """Files that the user sends with messages."""

    max_mb: Annotated[int, Field(ge=1)] = 500
    """Of all of them together, in megabytes."""


class RetentionSettings(SettingsSection):
    """When ended tasks and logs are deleted. Units: days, megabytes."""

    days: Annotated[int, Field(ge=1)] = 30
    log_file_mb: Annotated[int, Field(ge=1)] = 10
    logs_mb: Annotated[int, Field(ge=1)] = 500


class SelfAwakeSettings(SettingsSection):
    """Improvements of the workspace's repository while nothing else is to do. Units: seconds."""

    enabled: bool = False
    idle_after: Seconds = 300
    checks: list[str] = Field(default_factory=list[str])
    """Shell lines that must succeed with a change, each in the box."""
    timeout: Seconds = 1800
    """Of the task, and of each check."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix="MIMIKIT_", env_nested_delimiter="__", extra="forbid", frozen=True
    )

    durability: Literal["full", "fast"] = "full"
    """`fast` skips fsync: a power cut may lose the last seconds."""
    timezone: str = ""
    """IANA name; empty: the system's."""
    engine: EngineName | list[EngineName] = "auto"
    """The default of roles and profiles; of several the first that is available is used."""
    max_concurrency: Annotated[int, Field(ge=1, le=64)] = 3
    allow_llm_commands: bool = False
    """Whether a model may create tasks with the `command` profile."""
    engines: dict[EngineName, EndpointSettings] = {}
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
    files: FileSettings = FileSettings()
    retention: RetentionSettings = RetentionSettings()
    self_awake: SelfAwakeSettings = SelfAwakeSettings()
    notify: NotifySettings = NotifySettings()

    def price_of(self, engine: str) -> PriceSettings | None:
        """The price of an engine's tokens; None when it is not set."""
        if engine == "local":
            return PriceSettings(input=0, output=0)
        own = {"codex": self.codex, "opencode": self.opencode}
        settings = own.get(engine) or self.engines.get(engine)
        return settings.price if settings else None

    def model_of(self, engine: str) -> str:
        """The default model of an engine; empty: the engine decides."""
        endpoint = self.engines.get(engine)
        return endpoint.model if endpoint else ""

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        if name and not _is_zone(name):
            raise ValueError("expected an IANA time zone such as Asia/Shanghai")
        return name

    @model_validator(mode="after")
    def _known_engines(self) -> Self:
        if bad := next((name for name in self.engines if not is_valid_endpoint_name(name)), None):
            raise ValueError(f"engines.{bad}: expected a name of your own, {bad!r} is taken")
        check_engines("engine", self.engine_order, self.engines)
        for section in ("roles", "profiles"):
            table: SettingsSection = getattr(self, section)
            for seat in type(table).model_fields:
                order: list[str] = getattr(table, seat).order
                check_engines(f"{section}.{seat}.engine", order, self.engines)
        return self

    @property
    def engine_order(self) -> list[str]:
        return self.engine if isinstance(self.engine, list) else [self.engine]

    @property
    def zone(self) -> ZoneInfo:
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
        return env_settings, init_settings


def check_engines(key: str, names: Sequence[str], endpoints: Collection[str]) -> None:
    known = [*OWN_ENGINES, *endpoints]
    if key == "engine":
        known.remove("command")  # for shell commands only
    for name in names or [""]:
        if name not in known and name != TEST_ENGINE:
            hint = _did_you_mean(name, known, "")
            raise ValueError(f"{key}: expected one of {', '.join(known)}; got {name[:60]!r}{hint}")


def load(state: Path) -> Settings:
    """Read the settings of a state folder; BadSettings when they are invalid."""
    path = state / "config.toml"
    try:
        return parsed(file_text(path), path)
    except (ValueError, OSError) as error:
        raise BadSettings(f"{path}: {error}") from None


def parsed(text: str, path: Path) -> Settings:
    """The settings from a file's text and the environment; BadSettings when they are invalid."""
    try:
        values: dict[str, Any] = tomllib.loads(text)
    except ValueError as error:
        raise BadSettings(f"{path}: {error}") from None
    keys = known_keys()
    known = {"MIMIKIT_" + key.upper().replace(".", "__") for key in keys}
    sections = {"MIMIKIT_" + key.upper().split(".")[0] for key in keys}
    for name in os.environ:
        if name.startswith("MIMIKIT_") and name not in known | sections | _STATE_ONLY:
            hint = _did_you_mean(name, sorted(known))
            raise BadSettings(f"environment: {name} is not a setting{hint}")
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            what = f"{key} is not a setting{_did_you_mean(key, keys)}"
        elif not key:  # from a validator of the whole model
            what = message
        else:
            got = repr(first.get("input"))
            what = f"{key}: {message}, got {got if len(got) <= 100 else got[:100] + '…'}"
        raise BadSettings(f"{path}: {what}") from None
    except ValueError as error:
        expected = f"expected JSON in MIMIKIT_* variables of tables and lists: {error}"
        raise BadSettings(f"environment: {expected}") from None


_FIXED_ZONE = re.compile(r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)([+-]?\d{1,2})")


def file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""


def system_zone() -> str:
    return find_system_zone() or "UTC"


def find_system_zone(etc: Path = Path("/etc")) -> str | None:
    """The system's IANA zone, from TZ or the files below `etc`; None: not found."""
    if given := os.environ.get("TZ", "").lstrip(":"):
        fixed = _FIXED_ZONE.fullmatch(given)  # `CST-8`: no summer time, the sign as in `Etc/GMT-8`
        name = f"Etc/GMT{int(fixed[1]):+d}" if fixed and int(fixed[1]) else given
        return name if _is_zone(name) else None
    link = os.path.realpath(etc / "localtime").partition("zoneinfo/")[2]
    if _is_zone(link):
        return link
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if _is_zone(name := file_text(etc / "timezone").strip()):
            return name
    with contextlib.suppress(OSError):
        return _zone_with((etc / "localtime").read_bytes())
    return None


@functools.lru_cache(maxsize=4)
def _zone_with(data: bytes) -> str | None:
    """The zone whose file has this content; of several the one that `zone.tab` lists."""
    folder = next(filter(Path.is_dir, map(Path, TZPATH)), Path("/nowhere"))
    listed = set(file_text(folder / "zone.tab").split())
    same = [
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
    ]
    known = sorted(filter(_is_zone, same), key=lambda name: (name not in listed, name != "UTC"))
    return next(iter(known), None)


def _is_zone(name: str) -> bool:
    # Faster than zoneinfo.available_timezones().
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def known_keys(model: type[BaseModel] = Settings, prefix: str = "") -> list[str]:
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
    hint = difflib.get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {hint[0]}?" if hint else otherwise


@functools.cache
def asset_folder(name: str) -> Path:
    """The folder `webui` or `prompts` of the installation."""
    places = (_PACKAGE / "_assets" / name, _PACKAGE.parent / name)
    for place in places:
        if place.is_dir():
            return place
    tried = " or ".join(map(str, places))
    raise NotFound(f"expected the folder {name!r} at {tried}, found none; install mimikit again")
