"""Finds the opencode program; builds its configuration, environment and command line.

Only providers and models of the user's settings are used: no agents, MCP servers, plugins or
instructions. Its folders are in the state's `cache/`, with a link to the user's login. Variables
and keys were tested with 1.18.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from mimikit.engine_settings import OpencodeSettings
from mimikit.engines import process
from mimikit.engines.base import EngineOutage
from mimikit.errors import EngineError
from mimikit.protocol import paths
from mimikit.protocol.json import table_of
from mimikit.sandbox import programs

AGENT = "mimikit"
HOME = f"{paths.CACHE}/opencode"
"""Its folder in the state folder."""
_FILES = ("config.json", "opencode.json", "opencode.jsonc")
"""The user's settings files; later ones override earlier ones."""
_USED_KEYS = ("provider", "model", "enabled_providers", "disabled_providers")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_RELATIVE_FILE = re.compile(r"\{file:(?![~/])([^}]+)\}")
_MAX_BYTES = 2**20
_OWN_AGENTS = ("build", "plan", "general", "explore", "scout")
_START = """
umask 077
mkdir -p "$XDG_CONFIG_HOME/opencode/node_modules" "$XDG_DATA_HOME/opencode"
echo '{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"*"}}}}' \\
    > "$XDG_CONFIG_HOME/opencode/package-lock.json"
ln -sfn "$1" "$XDG_DATA_HOME/opencode/auth.json"
shift
exec "$@"
"""
"""Creates its folders, with files that it would else download, and the link to the login."""


@dataclass(frozen=True, slots=True)
class OpencodeLocation:
    """An installed opencode, and the user's folders."""

    program: str
    config: Path
    data: Path
    cache: Path

    @property
    def login(self) -> Path:
        return self.data / "auth.json"


def find(settings: OpencodeSettings) -> OpencodeLocation | None:
    path = str(Path(settings.path).expanduser()) if settings.path else "opencode"
    if (program := programs.find(path)) is None:
        return None
    folders = {"CONFIG": ".config", "DATA": ".local/share", "CACHE": ".cache"}
    at = [
        Path(os.environ.get(f"XDG_{name}_HOME") or Path.home() / folder) / "opencode"
        for name, folder in folders.items()
    ]
    return OpencodeLocation(program, *at)


def unavailable(settings: OpencodeSettings) -> str | None:
    """Why opencode is unavailable, with a remedy."""
    place = find(settings)
    if place is None:
        path = str(Path(settings.path).expanduser()) if settings.path else "opencode"
        reason = f"{programs.why_missing(path)}; install opencode (`opencode-ai` of npm)"
        return EngineOutage(reason, "missing")
    try:
        providers = owner_settings(place).get("provider")
        logins = _table(place.login)
    except EngineError as error:
        return EngineOutage(str(error), "unready")
    # Without a provider it would use a free model that the user has not chosen.
    if providers or logins or settings.model or any(os.environ.get(name) for name in settings.env):
        return None
    reason = f"opencode has no provider: no login in {place.login}, none in {place.config}"
    return EngineOutage(f"{reason}; run `opencode auth login`", "logged_out")


def owner_settings(place: OpencodeLocation) -> dict[str, object]:
    """The providers and models in the user's settings; EngineError for an unreadable file."""
    merged = dict[str, object]()
    for name in _FILES:
        table = _table(place.config / name)
        for key in (key for key in _USED_KEYS if key in table):
            merged[key] = table_of(merged.get(key)) | table_of(table[key]) or table[key]
    return merged


def watched(place: OpencodeLocation) -> list[Path]:
    return [place.login, *(place.config / name for name in _FILES)]


def _table(path: Path) -> dict[str, object]:
    """Parse a file of JSON with comments; empty when there is no file."""
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_BYTES).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"{path}: {error}; fix it") from None
    folder = json.dumps(str(path.parent))[1:-1]
    for pattern in (_COMMENT, _LAST_COMMA):
        text = pattern.sub(lambda match: match[1] or "", text)
    text = _RELATIVE_FILE.sub(lambda match: f"{{file:{folder}/{match[1]}}}", text)
    try:
        return table_of(json.loads(text) if text.strip() else {})
    except (ValueError, RecursionError) as error:
        raise EngineError(f"{path}: expected JSON, got {error}; fix it") from None


def content(settings: OpencodeSettings, place: OpencodeLocation) -> str:
    """The configuration, with only our tools; EngineError for unreadable user settings."""
    # `/mcp` offers only the tools of a run. doom_loop: repeated calls are allowed.
    rules = {"*": "deny", f"{AGENT}_*": "allow", "doom_loop": "allow"}
    agent = {
        "mode": "primary",
        "description": "One run of mimikit.",
        "prompt": "You carry out one run of mimikit, with the tools you are given.",
        "permission": rules,
    }
    config = owner_settings(place) | {
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "lsp": False,
        "formatter": False,
        # It saves what it cuts where none of our tools can read.
        "tool_output": {"max_lines": 100_000, "max_bytes": 2**20},
        "permission": rules,
        "default_agent": AGENT,
        "agent": {AGENT: agent, **{name: {"disable": True} for name in _OWN_AGENTS}},
    }
    if settings.model:
        config["model"] = settings.model
    return json.dumps(config)


def environment(
    settings: OpencodeSettings, place: OpencodeLocation, state: Path, password: str
) -> dict[str, str]:
    env = process.network_environment(("NODE_EXTRA_CA_CERTS", *settings.env))
    home = state / HOME
    env |= {f"XDG_{name.upper()}_HOME": str(home / name) for name in ("config", "data", "state")}
    env["XDG_CACHE_HOME"] = str(place.cache.parent if place.cache.is_dir() else home / "cache")
    switches = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "PROJECT_CONFIG", "CLAUDE_CODE")
    env |= {f"OPENCODE_DISABLE_{name}": "1" for name in (*switches, "EXTERNAL_SKILLS")}
    return env | {
        "OPENCODE_PURE": "1",
        "OPENCODE_CONFIG_CONTENT": content(settings, place),
        "OPENCODE_SERVER_PASSWORD": password,
    }


def serve_argv(place: OpencodeLocation) -> list[str]:
    """The command line of the server; it prints its port once it listens."""
    serve = [place.program, "serve", "--hostname", "127.0.0.1", "--port", "0"]
    return ["/bin/sh", "-c", _START, "sh", os.path.realpath(place.login), *serve]


def model_of(name: str | None) -> dict[str, str] | None:
    """A model in the server's format; None: the configured one. EngineError without provider."""
    if not name:
        return None
    provider, _, model = name.partition("/")
    if not provider or not model:
        raise EngineError(f"model: expected `provider/model` for opencode, got {name[:100]!r}")
    return {"providerID": provider, "modelID": model}
