"""The codex program: where it is, the command lines it is started with, and what it says.

What each flag is for was measured with 0.163 and 0.169; `--strict-config` makes codex refuse a key
it does not know, so a newer codex fails with a reason and never with looser rules.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimikit.config import CodexSettings
from mimikit.engines import process
from mimikit.engines.base import EngineAbsence, EngineRequest, EventKind, OnEvent
from mimikit.engines.codex.workspace import CodexLocation
from mimikit.engines.process_table import MARK
from mimikit.engines.sandbox import packaged_program
from mimikit.errors import BadRecord
from mimikit.language.plain_text import plain
from mimikit.protocol.json import Json, parse_object
from mimikit.protocol.models import Usage

LEAST_VERSION = (0, 163, 0)
PROFILE = "mimikit"
"""What the permissions of a Worker's shell are named in codex."""
TOOLS_TOKEN = "MIMIKIT_TOOLS_TOKEN"  # noqa: S105 - a variable's name
_API_KEY = "CODEX_API_KEY"
_NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CODEX_CA_CERTIFICATE"),
)
"""What codex itself may need to reach its server; shells it starts are not given them."""
_NO_SEARCH = '"disabled"'
_EXEC = ("exec", "--json", "--skip-git-repo-check", "--ignore-user-config", "--strict-config")

_TALK_ONLY = (  # off for Teller and Planner: they have nothing but talk and our tools
    *("shell_tool", "unified_exec", "view_image", "goals", "multi_agent", "apps", "plugins"),
    *("tool_suggest", "image_generation", "sleep_tool", "skill_search", "hooks", "shell_snapshot"),
)
_ABROAD = ("multi_agent", "apps", "plugins", "tool_suggest", "image_generation", "hooks", "goals")
"""What leads out of the sandbox, or starts more agents: off for the Worker."""


def find(settings: CodexSettings) -> CodexLocation | None:
    """The program of the settings, else that of the installed package, else the one on PATH."""
    if settings.path:
        program = shutil.which(str(Path(settings.path).expanduser()))
    else:
        program = packaged_program("bin", "codex") or shutil.which("codex")
    given = settings.home or os.environ.get("CODEX_HOME")
    home = Path(given or "~/.codex").expanduser()
    return CodexLocation(program, home, own_home=bool(given)) if program else None


def version_of(program: str) -> tuple[int, ...] | None:
    """The version it tells; None when it tells none. Asked once of each installed file."""
    try:
        installed = Path(program).stat()
    except OSError:
        return None
    return _told_version(program, installed.st_mtime_ns, installed.st_size)


@functools.lru_cache(maxsize=8)
def _told_version(program: str, _mtime_ns: int, _size: int) -> tuple[int, ...] | None:
    code, said, _ = process.output([program, "--version"])
    found = re.search(r"codex-cli (\d+)\.(\d+)\.(\d+)", said) if code == 0 else None
    return tuple(map(int, found.groups())) if found else None


def unavailable(settings: CodexSettings) -> str | None:
    """Why codex can not serve, and what to do about it."""
    place = find(settings)
    if place is None:
        wanted = settings.path or "codex"
        said = f"expected {wanted}, got no such program; pip install 'mimikit[codex]'"
        return EngineAbsence(said, "missing")
    version = version_of(place.program)
    if version is None:
        said = f"expected a version from {place.program}, got none; install codex again"
        return EngineAbsence(said, "missing")
    if version < LEAST_VERSION:
        least, got = (".".join(map(str, v)) for v in (LEAST_VERSION, version))
        return f"expected codex {least} or newer, got {got}; update it"
    if odd := re.search(r"[*?\[{]", os.path.realpath(place.home)):
        return (
            f"expected a home whose path is no pattern to codex, got {odd[0]!r} in {place.home}: "
            "its login could not be kept from shells; name another by `codex.home`"
        )
    elsewhere = os.environ.get(_API_KEY) or "model_provider" in settings.config
    if not elsewhere and not (place.home / "auth.json").exists():
        said = f"codex is not logged in: no {place.home / 'auth.json'}; run `codex login`"
        return EngineAbsence(said, "logged_out")
    return None


def surroundings(
    settings: CodexSettings, place: CodexLocation, request: EngineRequest
) -> dict[str, str]:
    """The environment codex itself is given."""
    env = process.environment(names=(*_NETWORK, _API_KEY, *settings.env))
    for name in ("NO_PROXY", "no_proxy"):  # tools are served on this machine
        env[name] = ",".join(filter(None, (env.get(name), "127.0.0.1", "localhost")))
    if place.own_home:
        env["CODEX_HOME"] = str(place.home)
    if request.tools_token:
        env[TOOLS_TOKEN] = request.tools_token
    if request.role != "worker":
        env["CODEX_EXEC_SERVER_URL"] = "none"  # no place to run anything in
    return env


def models(place: CodexLocation) -> bytes | None:
    """The catalogue of models, changed so that our tools are shown and not only searched for."""
    env = process.environment(more={"CODEX_HOME": str(place.home)} if place.own_home else {})
    _, said, _ = process.output([place.program, "debug", "models"], env=env)
    try:
        catalogue = json.loads(said)
        for model in catalogue["models"]:
            model["supports_search_tool"] = False
    except (ValueError, KeyError, TypeError):
        return None
    return json.dumps(catalogue).encode()


def is_confined(settings: CodexSettings, request: EngineRequest) -> bool:
    """Whether a Worker's shell runs in codex's own sandbox, inside the outer one."""
    return request.read_only or settings.sandbox != "danger-full-access"


def confinement(
    settings: CodexSettings,
    place: CodexLocation,
    request: EngineRequest,
    writable: Sequence[Path] = (),
) -> dict[str, str]:
    """The keys of codex's own sandbox: what its shells may read and write.

    Its login they may not read, nor lock its files. Only here can that be said: codex itself has
    to read them.
    """
    rules = {":root": '"read"'}
    if not request.read_only:
        rules |= {":workspace_roots": '{"."="write"}'}
        rules |= {str(path): '"write"' for path in (_temporary(request), *writable)}
    rules |= dict.fromkeys(place.closed(), '"deny"')
    listed = ",".join(f"{_toml(path)}={rule}" for path, rule in rules.items())
    network = "true" if settings.network and not request.read_only else "false"
    profile = f"{{filesystem={{{listed}}},network={{enabled={network}}}}}"
    return {f"permissions.{PROFILE}": profile, "default_permissions": f'"{PROFILE}"'}


def confined_argv(
    settings: CodexSettings, place: CodexLocation, request: EngineRequest
) -> list[str]:
    """The start of a command line that runs another as a Worker's shell would."""
    keys = confinement(settings, place, request).items()
    given = [part for key, value in keys for part in ("-c", f"{key}={value}")]
    head = [place.program, "sandbox", *given, "-P", PROFILE]
    return [*head, "-C", str(request.workspace), "--"]


def talk_argv(
    settings: CodexSettings, place: CodexLocation, request: EngineRequest, catalogue: Path | None
) -> list[str]:
    """The command line for a Teller or Planner, prompt on stdin. Writes the role's text."""
    empty = request.scratch / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    instructions = request.scratch / "instructions.md"
    said = request.instructions.strip() or "Do what the prompt asks."  # codex takes no empty file
    instructions.write_text(said, encoding="utf-8", errors="replace")
    config = {f"features.{name}": "false" for name in _TALK_ONLY} | {
        "agents.enabled": "false",
        "web_search": _NO_SEARCH,
        "tools.experimental_request_user_input": "{enabled=false}",
        "tools.update_plan": "{enabled=false}",
        "skills.bundled": "{enabled=false}",
        "include_permissions_instructions": "false",
        "include_apps_instructions": "false",
        "include_collaboration_mode_instructions": "false",
        "include_environment_context": "false",
        "project_doc_max_bytes": "0",
        "model_instructions_file": _toml(str(instructions)),
    }
    head = ["--ephemeral", "-s", "read-only", "-C", str(empty)]
    return [place.program, *_EXEC, *head, *_rest(settings, request, config, catalogue), "-"]


def work_argv(
    settings: CodexSettings,
    place: CodexLocation,
    request: EngineRequest,
    catalogue: Path | None,
    *,
    mark: str,
    writable: Sequence[Path],
    documents: bool,
) -> list[str]:
    """The same for a Worker; `writable` lies beside the workspace, or is closed without a word."""
    temporary = _temporary(request)
    temporary.mkdir(parents=True, exist_ok=True)
    shell = f"{{TMPDIR={_toml(str(temporary))},{MARK}={_toml(mark)}}}"
    config = {f"features.{name}": "false" for name in _ABROAD} | {
        "agents.enabled": "false",
        "skills.bundled": "{enabled=false}",
        "developer_instructions": _toml(request.instructions),
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
    last |= {} if documents else {"project_doc_max_bytes": "0"}
    tail = ["resume", request.resume, "-"] if request.resume else ["-"]
    rest = _rest(settings, request, config, catalogue, last)
    return [place.program, *_EXEC, *head, *rest, *tail]


def _temporary(request: EngineRequest) -> Path:
    return request.scratch / "tmp"


def _toml(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def _rest(
    settings: CodexSettings,
    request: EngineRequest,
    config: dict[str, str],
    catalogue: Path | None,
    last: dict[str, str] | None = None,
) -> list[str]:
    """What both kinds of command line share: model, tools, the owner's own settings, and `last`."""
    config["features.unbounded_connection_retries"] = "false"
    if request.effort:
        config["model_reasoning_effort"] = _toml(request.effort)
    if request.tools and request.tools_url and request.tools_token:
        config["mcp_servers.mimikit"] = (
            f"{{url={_toml(request.tools_url)},bearer_token_env_var={_toml(TOOLS_TOKEN)},"
            'required=true,default_tools_approval_mode="approve",'
            f"tool_timeout_sec={max(1, int(request.timeout_s))}}}"
        )
        if catalogue:
            config["model_catalog_json"] = _toml(str(catalogue))
    model = ["-m", request.model] if request.model else []
    given = {**config, **settings.config, **(last or {})}
    if request.read_only:
        given["web_search"] = _NO_SEARCH
    given.pop("sandbox_mode", None)  # codex takes one of these; the flag or the profile holds
    return [*model, *(part for key, value in given.items() for part in ("-c", f"{key}={value}"))]


# ---- what `codex exec --json` says, line by line

_SHOWN_CHARACTERS = 4000
_WORKING = frozenset({"command_execution", "mcp_tool_call", "web_search"})
_ACTS = frozenset({"command_execution", "mcp_tool_call", "file_change"})


@dataclass
class TurnReader:
    """Follows one turn, and tells what happens as it does."""

    on_event: OnEvent
    session_id: str | None = None
    message: str | None = None
    """The last thing it said: its answer."""
    completed: bool = False
    failed: str | None = None
    """Why it failed, in codex's words."""
    trouble: str = ""
    """What it complained of last, final or not."""
    acted: bool = False
    """Whether a tool, a command or a change of a file came to its end."""
    usage: Usage = field(default_factory=Usage)
    """Of the whole thread so far, turns before this one included."""
    working: set[str] = field(default_factory=set[str])
    """The commands and tools that run now."""

    def take(self, line: bytes) -> None:
        """Take one line; what is no event is passed over."""
        try:
            event = parse_object(line)
        except BadRecord:
            return
        kind, item = event.get("type"), event.get("item")
        if isinstance(item, dict):
            self._take_item(item, done=kind == "item.completed")
        elif kind == "thread.started":
            self.session_id = _text(event, "thread_id") or None
        elif kind == "turn.completed":
            self.completed = True
            self.usage = _usage(event.get("usage")) or self.usage
        elif kind == "turn.failed":
            self.failed = _text(event.get("error"), "message") or "the turn failed"
            self._tell("error", self.failed)
        elif kind == "error":  # not the end: it tries again, or turn.failed follows and repeats it
            self.trouble = _text(event, "message")
            if self.trouble.startswith("Reconnecting"):
                self._tell("note", self.trouble)

    def _take_item(self, item: dict[str, Json], *, done: bool) -> None:
        kind, number = _text(item, "type"), _text(item, "id")
        if kind in _WORKING:
            (self.working.discard if done else self.working.add)(number)
        self.acted |= done and kind in _ACTS
        facts: dict[str, Any] = {"status": _text(item, "status"), "id": number}
        if kind == "command_execution":
            if done:
                facts["exitCode"] = item.get("exit_code")
                facts["output"] = plain(_text(item, "aggregated_output"))[-_SHOWN_CHARACTERS:]
            self._tell("command", _text(item, "command"), facts)
        elif kind == "mcp_tool_call":
            facts["tool"] = _text(item, "tool")
            if done and (said := _text(item.get("error"), "message")):
                facts["error"] = plain(said)[:_SHOWN_CHARACTERS]
            self._tell("tool", facts["tool"], facts)
        elif done:
            self._take_done(kind, item)

    def _take_done(self, kind: str, item: dict[str, Json]) -> None:
        if kind == "agent_message":
            self.message = plain(_text(item, "text"))
            self.on_event("message", self.message, {})
        elif kind == "file_change":
            changes = item.get("changes")
            for change in changes if isinstance(changes, list) else []:
                if path := _text(change, "path"):
                    self._tell("file", path, {"kind": _text(change, "kind")})
        elif kind == "reasoning":
            self._tell("note", _text(item, "text"), {"reasoning": True})
        elif kind == "web_search":
            self._tell("tool", _text(item, "query"), {"tool": "web_search"})
        elif kind == "error":  # a warning, says experience
            self._tell("note", _text(item, "message"))

    def _tell(self, kind: EventKind, text: str, facts: dict[str, Any] | None = None) -> None:
        if text:
            self.on_event(kind, plain(text)[:_SHOWN_CHARACTERS], facts or {})


def minus(usage: Usage, earlier: Usage) -> Usage:
    names = Usage.model_fields
    return Usage(**{name: max(0, getattr(usage, name) - getattr(earlier, name)) for name in names})


def usage_in_rollout(lines: list[bytes]) -> Usage:
    """What a thread had used when the last of its recorded lines was written."""
    for line in reversed(lines):
        if b"total_token_usage" not in line:
            continue
        try:
            payload = parse_object(line).get("payload")
        except BadRecord:
            continue
        if used := _usage(_value(_value(payload, "info"), "total_token_usage")):
            return used
    return Usage()


def _usage(counts: Json) -> Usage | None:
    """The tokens that codex counts; None where it counts none."""
    if not isinstance(counts, dict):
        return None
    names = Usage.model_fields
    return Usage(**{name: n for name in names if type(n := counts.get(name)) is int})


def _value(holder: Json, key: str) -> Json:
    return holder.get(key) if isinstance(holder, dict) else None


def _text(holder: Json, key: str) -> str:
    value = _value(holder, key)
    return value if isinstance(value, str) else ""
