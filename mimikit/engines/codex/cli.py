"""The codex program: where it is, and the command lines it is started with.

What each flag is for was measured with 0.163 and 0.169; `--strict-config` makes codex refuse a key
it does not know, so a newer codex fails with a reason and never with looser rules.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mimikit.engine_settings import CodexSettings
from mimikit.engines import process
from mimikit.engines.base import EngineAbsence, RunSpec
from mimikit.engines.process_marks import MARK
from mimikit.sandbox import programs

LEAST_VERSION = (0, 163, 0)
PROFILE = "mimikit"
"""What the permissions of a Worker's shell are named in codex."""
TOOLS_TOKEN = "MIMIKIT_TOOLS_TOKEN"  # noqa: S105 - a variable's name
_API_KEY = "CODEX_API_KEY"
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "CODEX_CA_CERTIFICATE")
_NETWORK = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *_CERTIFICATES,
)
"""What codex itself may need to reach its server; shells it starts are not given them."""
_LOGINS = ("auth.json", ".credentials.json")
"""Where codex keeps its own login, and those to servers of tools."""
_LOCKED = ("installation_id", "thread-writer-locks")
_NO_SEARCH = '"disabled"'
_EXEC = ("exec", "--json", "--skip-git-repo-check", "--ignore-user-config", "--strict-config")

_QUICK = {"features.unbounded_connection_retries": "false"}
"""Where nobody answers it says so, and does not try for ever."""
_TALK_ONLY = (  # off for Teller and Planner: they have nothing but talk and our tools
    *("shell_tool", "unified_exec", "view_image", "goals", "multi_agent", "apps", "plugins"),
    *("tool_suggest", "image_generation", "sleep_tool", "skill_search", "hooks", "shell_snapshot"),
)
_ABROAD = ("multi_agent", "apps", "plugins", "tool_suggest", "image_generation", "hooks", "goals")
"""What leads out of the sandbox, or starts more agents: off for the Worker."""
_EVERYDAY_OFF = ("sleep_tool", "skill_search", "shell_snapshot")
_NO_QUESTIONS = {
    "tools.experimental_request_user_input": "{enabled=false}",
    "tools.update_plan": "{enabled=false}",
    "include_apps_instructions": "false",
    "include_collaboration_mode_instructions": "false",
}
"""Nobody answers, and nobody looks at a list of steps."""
_TOOLS_TOLD = """## Your tools
Look and search by the shell (`rg` where it is there). Change files by `apply_patch` where you have
it, else by the shell. Long output is cut: look at parts. Nothing can be approved: what is refused
stays so."""
SPECIALIST = "specialist"
"""The profile whose Workers have codex's own instructions, those of a programmer."""


@dataclass(frozen=True, slots=True)
class CodexLocation:
    """An installed codex, and where it keeps its login."""

    program: str
    home: Path
    own_home: bool
    """Whether the settings name its home; else it is the user's."""

    def closed(self) -> list[str]:
        """What codex opens and its shells must not: its logins, and what each codex waits for."""
        home = Path(os.path.realpath(self.home))
        logins = [os.path.realpath(home / name) for name in _LOGINS if (home / name).exists()]
        return [*logins, *(str(home / name) for name in _LOCKED)]


def find(settings: CodexSettings) -> CodexLocation | None:
    """The program of the settings, else that of the installed package, else the one on PATH."""
    if settings.path:
        program = programs.find(str(Path(settings.path).expanduser()))
    else:
        program = programs.packaged("bin", "codex") or programs.find("codex")
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
        wanted = str(Path(settings.path).expanduser()) if settings.path else "codex"
        said = f"{programs.why_missing(wanted)}; pip install 'mimikit-assistant[codex]'"
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
    if (temporary := _temporary_around(place.home)) is not None:
        return EngineAbsence(
            f"expected a home outside of {temporary}, the folder of temporary files, got "
            f"{place.home}: codex runs no commands from there; name another by `codex.home`",
            "unready",
        )
    elsewhere = os.environ.get(_API_KEY) or "model_provider" in settings.config
    if not elsewhere and not (place.home / "auth.json").exists():
        said = f"codex is not logged in: no {place.home / 'auth.json'}; run `codex login`"
        return EngineAbsence(said, "logged_out")
    return None


def _temporary_around(home: Path) -> str | None:
    """The folder of temporary files that codex would find its home in, and then make no helpers."""
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - as codex takes it
    real = os.path.realpath(temporary)
    return temporary if Path(os.path.realpath(home)).is_relative_to(real) else None


def surroundings(
    settings: CodexSettings, place: CodexLocation, *, talks: bool, tools_token: str | None = None
) -> dict[str, str]:
    """The environment codex itself is given; one that only `talks` has no place to run anything."""
    env = process.environment(names=(*_NETWORK, _API_KEY, *settings.env))
    for name in ("NO_PROXY", "no_proxy"):  # tools are served on this machine
        env[name] = ",".join(filter(None, (env.get(name), "127.0.0.1", "localhost")))
    if place.own_home:
        env["CODEX_HOME"] = str(place.home)
    if tools_token:
        env[TOOLS_TOKEN] = tools_token
    if talks:
        env["CODEX_EXEC_SERVER_URL"] = "none"
    return env


def shown_to(place: CodexLocation) -> list[Path]:
    """What codex itself needs to see, beside its home."""
    certificates = [os.environ.get(name) for name in _CERTIFICATES]
    return [*programs.folders_of(place.program), *map(Path, filter(None, certificates))]


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


def is_confined(settings: CodexSettings, request: RunSpec) -> bool:
    """Whether a Worker's shell runs in codex's own sandbox, inside the outer one."""
    return request.read_only or settings.sandbox != "danger-full-access"


def confinement(
    settings: CodexSettings,
    place: CodexLocation,
    request: RunSpec,
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


def confined_argv(settings: CodexSettings, place: CodexLocation, request: RunSpec) -> list[str]:
    """The start of a command line that runs another as a Worker's shell would."""
    keys = confinement(settings, place, request)
    head = [place.program, "sandbox", *_keys(keys), "-P", PROFILE]
    return [*head, "-C", str(request.workspace), "--"]


def _lean() -> dict[str, str]:
    """What leaves a turn with nothing but what we give it: talk, and our tools."""
    return {f"features.{name}": "false" for name in _TALK_ONLY} | {
        "agents.enabled": "false",
        "web_search": _NO_SEARCH,
        **_NO_QUESTIONS,
        "skills.bundled": "{enabled=false}",
        "include_permissions_instructions": "false",
        "include_environment_context": "false",
        "project_doc_max_bytes": "0",
    }


def server_argv(settings: CodexSettings, place: CodexLocation) -> list[str]:
    """The command line of the app-server in which Teller and Planner have their turns."""
    config = {**_lean(), **_QUICK, "thread_unload_delay_secs": "0", **settings.config}
    config.pop("sandbox_mode", None)
    return [place.program, "app-server", "--strict-config", *_keys(config)]


def talk_argv(
    settings: CodexSettings, place: CodexLocation, request: RunSpec, catalogue: Path | None
) -> list[str]:
    """The command line for a Teller or Planner, prompt on stdin. Writes the role's text."""
    empty = request.scratch / "empty"
    empty.mkdir(parents=True, exist_ok=True)
    config = _lean() | _instead_of_its_own(request, request.instructions.strip())
    head = ["--ephemeral", "-s", "read-only", "-C", str(empty)]
    return [place.program, *_EXEC, *head, *_rest(settings, request, config, catalogue), "-"]


def work_argv(
    settings: CodexSettings,
    place: CodexLocation,
    request: RunSpec,
    catalogue: Path | None,
    *,
    mark: str,
    writable: Sequence[Path],
) -> list[str]:
    """The same for a Worker; `writable`: the git folders it commits in."""
    temporary = _temporary(request)
    temporary.mkdir(parents=True, exist_ok=True)
    shell = f"{{TMPDIR={_toml(str(temporary))},{MARK}={_toml(mark)}}}"
    config = {f"features.{name}": "false" for name in _ABROAD} | {
        "agents.enabled": "false",
        "skills.bundled": "{enabled=false}",
        **_of_the_work(request),
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
    rest = _rest(settings, request, config, catalogue, last)
    return [place.program, *_EXEC, *head, *rest, *tail]


def _of_the_work(request: RunSpec) -> dict[str, str]:
    """What a Worker is told, and offered: all of codex's own for a specialist alone.

    That is five times as much, and about software: everyday work has no use for it.
    """
    task = request.input.task
    if task is not None and task.profile == SPECIALIST:
        return {"developer_instructions": _toml(request.instructions)}
    off = {f"features.{name}": "false" for name in _EVERYDAY_OFF} | _NO_QUESTIONS
    return off | _instead_of_its_own(request, f"{request.instructions.strip()}\n\n{_TOOLS_TOLD}")


def _instead_of_its_own(request: RunSpec, said: str) -> dict[str, str]:
    """Our text in the place of codex's own, which is a programmer's; it takes no empty file."""
    instructions = request.scratch / "instructions.md"
    text = said or "Do what the prompt asks."
    instructions.write_text(text, encoding="utf-8", errors="replace")
    return {"model_instructions_file": _toml(str(instructions))}


def _temporary(request: RunSpec) -> Path:
    return request.scratch / "tmp"


def _toml(text: str) -> str:
    clean = text.encode(errors="replace").decode()
    return json.dumps(clean, ensure_ascii=False).replace("\x7f", "\\u007f")


def _rest(
    settings: CodexSettings,
    request: RunSpec,
    config: dict[str, str],
    catalogue: Path | None,
    last: dict[str, str] | None = None,
) -> list[str]:
    """What both kinds of command line share: model, tools, the owner's own settings, and `last`."""
    config |= _QUICK
    if request.effort:
        config["model_reasoning_effort"] = _toml(request.effort)
    if request.tools.specs and request.tools.url and request.tools.token:
        config["mcp_servers.mimikit"] = (
            f"{{url={_toml(request.tools.url)},bearer_token_env_var={_toml(TOOLS_TOKEN)},"
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
    return [*model, *_keys(given)]


def _keys(config: dict[str, str]) -> list[str]:
    return [part for key, value in config.items() for part in ("-c", f"{key}={value}")]
