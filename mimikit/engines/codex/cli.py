"""The codex program: where it is, whether it can serve, and the command lines it is started with.

What each flag is for was measured with 0.163 and 0.169; `--strict-config` makes codex refuse a key
it does not know, so a newer codex fails with a reason and never with looser rules.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mimikit.config import CodexSettings
from mimikit.engines import process
from mimikit.engines.base import EngineRequest
from mimikit.engines.process_tree import MARK
from mimikit.engines.sandbox import packaged_program

LEAST_VERSION = (0, 163, 0)
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


@dataclass(frozen=True, slots=True)
class CodexLocation:
    """An installed codex, and where it keeps its login."""

    program: str
    home: Path
    own_home: bool
    """Whether the settings name its home; else it is the user's."""


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
        return f"expected {wanted}, got no such program; pip install 'mimikit[codex]'"
    version = version_of(place.program)
    if version is None:
        return f"expected a version from {place.program}, got none; install codex again"
    if version < LEAST_VERSION:
        least, got = (".".join(map(str, v)) for v in (LEAST_VERSION, version))
        return f"expected codex {least} or newer, got {got}; update it"
    elsewhere = os.environ.get(_API_KEY) or "model_provider" in settings.config
    if not elsewhere and not (place.home / "auth.json").exists():
        return f"codex is not logged in: no {place.home / 'auth.json'}; run `codex login`"
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


def sandbox_mode(settings: CodexSettings, request: EngineRequest) -> str:
    """Which of codex's own sandboxes a Worker's run has."""
    return "read-only" if request.read_only else settings.sandbox


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
        "model_instructions_file": toml_text(str(instructions)),
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
) -> list[str]:
    """The command line for a Worker, prompt on stdin; the outer sandbox is not part of it."""
    temporary = request.scratch / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    shell = {"TMPDIR": str(temporary), MARK: mark}
    network = settings.network and not request.read_only
    config = {f"features.{name}": "false" for name in _ABROAD} | {
        "agents.enabled": "false",
        "skills.bundled": "{enabled=false}",
        "developer_instructions": toml_text(request.instructions),
        "sandbox_workspace_write.exclude_slash_tmp": "true",
        "sandbox_workspace_write.exclude_tmpdir_env_var": "true",
        "sandbox_workspace_write.network_access": "true" if network else "false",
        "shell_environment_policy.inherit": '"core"',
        "shell_environment_policy.set": toml_table(shell),
    }
    if not network:
        config["web_search"] = _NO_SEARCH
    head = ["-s", sandbox_mode(settings, request), "-C", str(request.workspace)]
    if not request.read_only:
        for folder in (temporary, *git_folders(request.workspace)):
            head += ["--add-dir", str(folder)]
    tail = ["resume", request.resume, "-"] if request.resume else ["-"]
    return [place.program, *_EXEC, *head, *_rest(settings, request, config, catalogue), *tail]


def git_folders(workspace: Path) -> list[Path]:
    """Where git keeps what belongs to a workspace; a linked worktree has two such places."""
    git = workspace / ".git"
    if git.is_dir():
        return [git.resolve()]
    try:
        said = git.read_text(encoding="utf-8", errors="replace")
        own = (workspace / said.removeprefix("gitdir:").strip()).resolve()
        common = (own / (own / "commondir").read_text().strip()).resolve()
    except OSError:
        return []
    return [folder for folder in (own, common) if folder.is_dir()]


def git_traps(workspace: Path) -> list[Path]:
    """What of them makes git run programs: not for an agent to change."""
    folders = git_folders(workspace)
    return [
        path for git in folders for name in ("hooks", "config") if (path := git / name).exists()
    ]


def toml_text(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_table(values: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{key}={toml_text(value)}" for key, value in values.items()) + "}"


def _rest(
    settings: CodexSettings, request: EngineRequest, config: dict[str, str], catalogue: Path | None
) -> list[str]:
    """What both kinds of command line share: model, tools, and the owner's own settings last."""
    config["features.unbounded_connection_retries"] = "false"
    if request.effort:
        config["model_reasoning_effort"] = toml_text(request.effort)
    if request.tools and request.tools_url and request.tools_token:
        config["mcp_servers.mimikit"] = _tool_server(request)
        if catalogue:
            config["model_catalog_json"] = toml_text(str(catalogue))
    model = ["-m", request.model] if request.model else []
    last = {"web_search": _NO_SEARCH} if request.read_only else {}
    given = {**config, **settings.config, **last}
    return [*model, *(part for key, value in given.items() for part in ("-c", f"{key}={value}"))]


def _tool_server(request: EngineRequest) -> str:
    seconds = max(1, int(request.timeout_s))
    return (
        f"{{url={toml_text(request.tools_url or '')},bearer_token_env_var={toml_text(TOOLS_TOKEN)},"
        f'required=true,default_tools_approval_mode="approve",tool_timeout_sec={seconds}}}'
    )
