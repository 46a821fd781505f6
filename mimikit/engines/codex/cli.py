"""Finds the codex program and builds its command lines.

The flags were tested with 0.163 and 0.169; with `--strict-config` codex rejects unknown keys, so a
newer codex fails with a reason instead of running with weaker rules.
"""

from __future__ import annotations

import functools
import json
import os
import re
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mimikit.engine_settings import CodexSettings
from mimikit.engines import process
from mimikit.engines.base import EngineOutage, RunSpec
from mimikit.engines.process_marks import MARK
from mimikit.engines.program import file_stamp
from mimikit.sandbox import programs

MIN_VERSION = (0, 163, 0)
PROFILE = "mimikit"
"""The permission profile of a Worker's shell."""
_API_KEY = "CODEX_API_KEY"
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "CODEX_CA_CERTIFICATE")
_SESSION_BUS = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
"""Where the keyring is asked."""
_LOGIN_STORE = "cli_auth_credentials_store"
_STATUS_TIMEOUT_S, _STATUS_CACHE_S = 5.0, 300.0
KEYRING = "codex keeps its login in the keyring, which the sandbox hides from Workers"
KEYRING_REMEDY = f'set `{_LOGIN_STORE} = "file"` in the config.toml of codex and log in again'
_LOGINS = ("auth.json", ".credentials.json")
_LOCKED = ("installation_id", "thread-writer-locks")
_NO_SEARCH = '"disabled"'
_EXEC = ("exec", "--json", "--skip-git-repo-check", "--ignore-user-config", "--strict-config")

_FAIL_FAST = {"features.unbounded_connection_retries": "false"}
"""Fail without a connection instead of retrying forever."""
_TALK_ONLY = (  # off for Teller and Planner: they have nothing but talk and our tools
    *("shell_tool", "unified_exec", "view_image", "goals", "multi_agent", "apps", "plugins"),
    *("tool_suggest", "image_generation", "sleep_tool", "skill_search", "hooks", "shell_snapshot"),
)
_UNSANDBOXED = (
    *("multi_agent", "apps", "plugins", "tool_suggest", "image_generation", "hooks", "goals"),
)
"""Features that leave the sandbox or start more agents: off for Workers."""
_STANDARD_OFF = ("sleep_tool", "skill_search", "shell_snapshot")
_NO_QUESTIONS = {
    "tools.experimental_request_user_input": "{enabled=false}",
    "tools.update_plan": "{enabled=false}",
    "include_apps_instructions": "false",
    "include_collaboration_mode_instructions": "false",
}
"""There is no user to answer questions or to read a plan."""
_TOOLS_TEXT = """## Your tools
Look and search by the shell (`rg` where it is there). Change files by `apply_patch` where you have
it, else by the shell. Long output is cut: look at parts. Nothing can be approved: what is refused
stays so."""
SPECIALIST = "specialist"
"""The profile whose Workers also have codex's own instructions."""


@dataclass(frozen=True, slots=True)
class CodexLocation:
    program: str
    home: Path
    own_home: bool
    """Whether the home was configured; else it is the default."""

    def denied(self) -> list[str]:
        """Paths its shells must not open: its logins and lock files."""
        home = Path(os.path.realpath(self.home))
        logins = [os.path.realpath(home / name) for name in _LOGINS if (home / name).exists()]
        return [*logins, *(str(home / name) for name in _LOCKED)]


def find(settings: CodexSettings) -> CodexLocation | None:
    """Find the configured program, else that of the installed package, else the one on PATH."""
    if settings.path:
        program = programs.find(str(Path(settings.path).expanduser()))
    else:
        program = programs.packaged("bin", "codex") or programs.find("codex")
    configured = settings.home or os.environ.get("CODEX_HOME")
    home = Path(configured or "~/.codex").expanduser()
    return CodexLocation(program, home, own_home=bool(configured)) if program else None


def version_of(program: str) -> tuple[int, ...] | None:
    """The version, if known; cached per installed file."""
    return _installed_version(program, file_stamp(Path(program)))


@functools.lru_cache(maxsize=8)
def _installed_version(program: str, _stamp: object) -> tuple[int, ...] | None:
    code, output, _ = process.output([program, "--version"])
    found = re.search(r"codex-cli (\d+)\.(\d+)\.(\d+)", output) if code == 0 else None
    return tuple(map(int, found.groups())) if found else None


def unavailable(settings: CodexSettings) -> str | None:
    place = find(settings)
    if place is None:
        wanted = str(Path(settings.path).expanduser()) if settings.path else "codex"
        reason = f"{programs.why_missing(wanted)}; pip install 'mimikit-assistant[codex]'"
        return EngineOutage(reason, "missing")
    version = version_of(place.program)
    if version is None:
        reason = f"expected a version from {place.program}, got none; install codex again"
        return EngineOutage(reason, "missing")
    if version < MIN_VERSION:
        least, got = (".".join(map(str, v)) for v in (MIN_VERSION, version))
        return f"expected codex {least} or newer, got {got}; update it"
    if glob := re.search(r"[*?\[{]", os.path.realpath(place.home)):
        return (
            f"expected a home without {glob[0]!r} in its path, got {place.home}: for codex it is a "
            "pattern, so its login is not hidden from shells; set `codex.home` to another"
        )
    if (temporary := _temporary_around(place.home)) is not None:
        return EngineOutage(
            f"expected a home outside of {temporary}, the folder of temporary files, got "
            f"{place.home}: codex runs no commands from there; set `codex.home` to another",
            "unready",
        )
    if not _needs_keyring(settings, place):
        return None
    argv = (place.program, "login", *_keys(_login_store(place) | settings.config), "status")
    env = environment(settings, place, is_talk=True)
    reason = _why_logged_out(argv, tuple(env.items()), time.monotonic() // _STATUS_CACHE_S)
    if reason is None:
        return None
    reason = reason or f"no {place.home / 'auth.json'}"
    return EngineOutage(f"codex is not logged in: {reason}; run `codex login`", "logged_out")


def is_in_keyring(settings: CodexSettings) -> bool:
    place = find(settings)
    return place is not None and _needs_keyring(settings, place)


def _needs_keyring(settings: CodexSettings, place: CodexLocation) -> bool:
    elsewhere = os.environ.get(_API_KEY) or "model_provider" in settings.config
    return not elsewhere and not (place.home / "auth.json").exists()


def _login_store(place: CodexLocation) -> dict[str, str]:
    """The store of the login, as a key: codex runs without the owner's config.toml."""
    try:
        known = tomllib.loads((place.home / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {_LOGIN_STORE: _toml(str(known[_LOGIN_STORE]))} if _LOGIN_STORE in known else {}


@functools.lru_cache(maxsize=8)
def _why_logged_out(
    argv: tuple[str, ...], env: tuple[tuple[str, str], ...], _slot: float
) -> str | None:
    """None if codex says that it is logged in; empty without a particular reason."""
    code, _, errors = process.output(argv, env=dict(env), timeout_s=_STATUS_TIMEOUT_S)
    if code is None:
        return f"no answer within {_STATUS_TIMEOUT_S:g} s; unlock the keyring"
    last = errors.strip().rpartition("\n")[2][:200]
    return None if code == 0 else last.replace("Not logged in", "")


def recheck_login() -> None:
    _why_logged_out.cache_clear()


def _temporary_around(home: Path) -> str | None:
    """The temporary folder around codex's home, if any: codex creates no helper programs there."""
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - as codex takes it
    real = os.path.realpath(temporary)
    return temporary if Path(os.path.realpath(home)).is_relative_to(real) else None


def environment(settings: CodexSettings, place: CodexLocation, *, is_talk: bool) -> dict[str, str]:
    """The environment of codex; with `is_talk` it cannot run commands."""
    bus = _SESSION_BUS if is_talk else ()
    env = process.network_environment((*_CERTIFICATES, _API_KEY, *bus, *settings.env))
    if place.own_home:
        env["CODEX_HOME"] = str(place.home)
    if is_talk:
        env["CODEX_EXEC_SERVER_URL"] = "none"
    return env


def shown_to(place: CodexLocation) -> list[Path]:
    """Paths that codex needs in the box, beside its home."""
    certificates = [os.environ.get(name) for name in _CERTIFICATES]
    return [*programs.folders_of(place.program), *map(Path, filter(None, certificates))]


def is_confined(settings: CodexSettings, request: RunSpec) -> bool:
    """Whether a Worker's shell runs in codex's own sandbox, inside the box."""
    return request.read_only or settings.sandbox != "danger-full-access"


def confinement(
    settings: CodexSettings, place: CodexLocation, request: RunSpec, writable: Sequence[Path] = ()
) -> dict[str, str]:
    """The config of codex's own sandbox: what its shells may read and write.

    Only this can deny its logins to shells: codex itself, in the same box, has to read them.
    """
    rules = {":root": '"read"'}
    if not request.read_only:
        rules |= {":workspace_roots": '{"."="write"}'}
        rules |= {str(path): '"write"' for path in (_temporary(request), *writable)}
    rules |= dict.fromkeys(place.denied(), '"deny"')
    listed = ",".join(f"{_toml(path)}={rule}" for path, rule in rules.items())
    network = "true" if settings.network and not request.read_only else "false"
    profile = f"{{filesystem={{{listed}}},network={{enabled={network}}}}}"
    return {f"permissions.{PROFILE}": profile, "default_permissions": f'"{PROFILE}"'}


def confined_argv(settings: CodexSettings, place: CodexLocation, request: RunSpec) -> list[str]:
    """Command line prefix that runs a command as a Worker's shell would."""
    keys = confinement(settings, place, request)
    head = [place.program, "sandbox", *_keys(keys), "-P", PROFILE]
    return [*head, "-C", str(request.workspace), "--"]


def server_argv(settings: CodexSettings, place: CodexLocation) -> list[str]:
    """The command line of the app-server for Teller and Planner, with only our tools."""
    config = {f"features.{name}": "false" for name in _TALK_ONLY} | {
        "agents.enabled": "false",
        "web_search": _NO_SEARCH,
        **_NO_QUESTIONS,
        "skills.bundled": "{enabled=false}",
        "include_permissions_instructions": "false",
        "include_environment_context": "false",
        "project_doc_max_bytes": "0",
        "thread_unload_delay_secs": "0",
        **_FAIL_FAST,
        **_login_store(place),
        **settings.config,
    }
    config.pop("sandbox_mode", None)
    return [place.program, "app-server", "--strict-config", *_keys(config)]


def work_argv(
    settings: CodexSettings,
    place: CodexLocation,
    request: RunSpec,
    writable: Sequence[Path],
) -> list[str]:
    """The command line of a Worker, prompt on stdin; `writable`: git folders it commits in."""
    temporary = _temporary(request)
    temporary.mkdir(parents=True, exist_ok=True)
    shell = f"{{TMPDIR={_toml(str(temporary))},{MARK}={_toml(os.environ.get(MARK, ''))}}}"
    config = {f"features.{name}": "false" for name in _UNSANDBOXED} | {
        "agents.enabled": "false",
        "skills.bundled": "{enabled=false}",
        **_instructions(request),
        "shell_environment_policy.inherit": '"core"',
        "shell_environment_policy.set": shell,
    }
    if request.read_only or not settings.network:
        config["web_search"] = _NO_SEARCH
    head, last = ["-C", str(request.workspace)], dict[str, str]()
    if is_confined(settings, request):
        last = confinement(settings, place, request, writable)
    else:
        head += ["-s", "danger-full-access"]
    tail = ["resume", request.resume, "-"] if request.resume else ["-"]
    config |= _FAIL_FAST
    if request.effort:
        config["model_reasoning_effort"] = _toml(request.effort)
    config = {**config, **settings.config, **last}
    if request.read_only:
        config["web_search"] = _NO_SEARCH
    config.pop("sandbox_mode", None)  # the flag or the profile holds
    model = ["-m", request.model] if request.model else []
    return [place.program, *_EXEC, *head, *model, *_keys(config), *tail]


def _instructions(request: RunSpec) -> dict[str, str]:
    """Our instructions instead of codex's; a specialist has both.

    Codex's are five times as long, and about software.
    """
    task = request.input.task
    if task is not None and task.profile == SPECIALIST:
        return {"developer_instructions": _toml(request.instructions)}
    path = request.scratch / "instructions.md"
    text = f"{request.instructions.strip()}\n\n{_TOOLS_TEXT}"
    path.write_text(text, encoding="utf-8", errors="replace")
    off = {f"features.{name}": "false" for name in _STANDARD_OFF}
    return off | _NO_QUESTIONS | {"model_instructions_file": _toml(str(path))}


def _temporary(request: RunSpec) -> Path:
    return request.scratch / "tmp"


def _toml(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def _keys(config: dict[str, str]) -> list[str]:
    return [part for key, value in config.items() for part in ("-c", f"{key}={value}")]
