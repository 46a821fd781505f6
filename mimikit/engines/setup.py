"""Sets up engines: tries an endpoint, and edits config.toml, keeping the owner's comments."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import BaseModel, ValidationError

from mimikit import config
from mimikit.clock import SystemClock
from mimikit.config import Settings
from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import tool_spec
from mimikit.errors import BadInput, BadSettings, Conflict, EngineError
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.records import bad_record

if TYPE_CHECKING:
    from mimikit.engines.openai.endpoint import EndpointClient, EndpointError

EndpointFact: TypeAlias = str | float | bool | dict[str, float]
Table: TypeAlias = Any
"""A tomlkit table."""
Facts: TypeAlias = dict[str, EndpointFact]
"""The keys of `[engines.NAME]`."""
_TRY_S = 60.0
LONGEST_S = 45.0
"""A trial in a child is ended then."""
_MOST_MODELS = 500
_one = threading.Lock()
_EXPECTED = f"{paths.CONFIG}: expected settings that can be added to, got others"
SEATS = {
    "teller": "roles",
    "planner": "roles",
    "standard": "profiles",
    "specialist": "profiles",
    "deferred": "profiles",
}
"""Roles and profiles that may have their own engines, with their table."""


def with_order(text: str, names: Sequence[str], seat: str | None = None) -> str:
    """Set the engines, best first, of a role or profile or of all. Raises BadSettings, BadInput."""

    def change(document: Table) -> None:
        table = document
        if seat is not None:
            table = _below(_below(document, SEATS[seat]), seat)
            table.pop("engine", None)
            table.pop("engines", None)
        key = "engine" if seat is None or len(names) == 1 else "engines"
        table[key] = list(names) if len(names) > 1 else names[0]

    if seat is None and "engine" not in _loaded(text):
        text = f'engine = ""\n{text}'  # at its end it would belong to the last table
    return _changed(text, change)


def with_endpoint(text: str, name: str, facts: Mapping[str, EndpointFact]) -> str:
    """Add or change an endpoint. Raises BadSettings, BadInput."""

    def change(document: Table) -> None:
        table = _below(_below(document, "engines"), name)
        for key in ("api_key_env", "api_key_file"):  # they exclude each other
            table.pop(key, None)
        for key, value in facts.items():
            table[key] = value

    return _changed(text, change)


def with_caps(text: str, caps: Mapping[str, int | None]) -> str:
    """Set the keys of `[budget]`; None removes one. Raises BadSettings, BadInput."""

    def change(document: Table) -> None:
        table = _below(document, "budget")
        for key, tokens in caps.items():
            table.pop(key, None)
            if tokens is not None:
                table[key] = tokens

    return _changed(text, change)


def without_endpoint(text: str, name: str) -> str:
    """Remove an endpoint everywhere. Raises BadSettings, BadInput."""

    def change(document: Table) -> None:
        engines = document.get("engines", {})
        engines.pop(name, None)
        if not engines:
            document.pop("engines", None)
        places = [(document, "engine")]
        for seat, room in SEATS.items():
            table = document.get(room, {}).get(seat, {})
            places += [(table, "engine"), (table, "engines")]
        for table, key in places:
            value = table.get(key)
            if value == name:
                del table[key]
            elif isinstance(value, list) and name in value:
                left = [one for one in cast("list[Any]", value) if one != name]
                if left:
                    table[key] = left if key == "engines" or len(left) > 1 else left[0]
                else:
                    del table[key]

    return _changed(text, change)


def check_seat(seat: str | None) -> None:
    """Raises BadInput."""
    if seat is not None and seat not in SEATS:
        raise BadInput(f"expected one of {', '.join(SEATS)}; got {seat[:40]!r}", field="seat")


def checked_name(name: str) -> str:
    """Raises BadInput."""
    if not config.is_valid_endpoint_name(name):
        message = "expected a free name of lower-case letters, digits, - and _, at most 32"
        raise BadInput(f"{message}, that begins with a letter; got {name[:40]!r}", field="name")
    return name


def settings_text(files: Files) -> str:
    """Raises BadSettings if it is no text."""
    try:
        return (files.read(paths.CONFIG) or b"").decode()
    except UnicodeDecodeError as error:
        raise BadSettings(f"{paths.CONFIG}: {error}") from None


def checked_key(given: str) -> str:
    """Raises BadInput."""
    key = given.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        message = "expected a key of visible ASCII characters in one line, got something else"
        raise BadInput(message, field="key")
    return key


def key_file(name: str) -> str:
    """In `secrets/`."""
    return f"engine-{name}.key"


def key_facts(
    name: str, base_url: str, key: str | None, variable: str | None, known: EndpointSettings | None
) -> Facts:
    """Where its key is kept. Raises BadInput: a known key would go to another address."""
    if variable:
        return {"api_key_env": variable}
    if key is not None:
        return {"api_key_file": key_file(name)}
    kept = known.model_dump(include={"api_key_env", "api_key_file"}) if known else {}
    facts: Facts = {fact: value for fact, value in kept.items() if value is not None}
    if facts and known and known.base_url != base_url.rstrip("/"):
        raise BadInput("expected the key again, as the address is another one", field="key")
    return facts


def orders(settings: Settings) -> dict[str, list[str]]:
    """Engines, best first: `all`, and each role or profile with its own."""
    found = {"all": settings.engine_order}
    for seat, room in SEATS.items():
        order = getattr(getattr(settings, room), seat).order
        if order != ["auto"]:
            found[seat] = order
    return found


def _changed(text: str, change: Callable[[Table], None]) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    _loaded(text)
    try:
        document = tomlkit.parse(text)
        change(document)
        new = tomlkit.dumps(document)
    except (TOMLKitError, RecursionError, TypeError, AttributeError) as error:
        raise BadSettings(f"{_EXPECTED}: {error}") from None
    try:
        config.parsed(new, Path(paths.CONFIG))
    except BadSettings as error:
        raise BadInput(str(error)) from None
    return new


def _loaded(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSettings(f"{_EXPECTED}: {error}") from None


def _below(table: Table, key: str) -> Table:
    import tomlkit

    if key not in table:
        table[key] = tomlkit.table(is_super_table=key in ("engines", "roles", "profiles"))
    return table[key]


# ---- trying an endpoint


@dataclass(frozen=True, slots=True)
class EndpointTest:
    """A trial turn."""

    api: str
    text: str
    calls_tools: bool
    took_s: float


class EndpointTrial:
    """Asks an endpoint before anything is written."""

    def __init__(
        self, name: str, facts: Mapping[str, EndpointFact], key: str | None, state: Path
    ) -> None:
        """`key`: one that is not stored yet; None: as the facts say."""
        self.name, self.facts, self._key, self._state = name, dict(facts), key, state

    def models(self) -> list[str]:
        """Raises BadInput if it cannot be asked."""
        with self._asked() as (_, client):
            return [str(model["id"]) for model in client.models()]

    def turn(self) -> EndpointTest:
        """A short turn with a tool call. Raises BadInput if there is no answer."""
        from mimikit.engines.openai.dialogue import PATHS, AnswerReader, ModelDialogue
        from mimikit.engines.openai.engine import api_of

        began = time.monotonic()
        with self._asked() as (settings, client):
            api = api_of(settings, client)
            spec = tool_spec("say", _SayArguments)
            dialogue = ModelDialogue(
                "You are being tried out.", "Call the tool `say` with the word hello.", [spec], None
            )
            body = dialogue.body(api, settings.model, settings.effort, "mimikit-test")
            reader = AnswerReader(lambda _text: None, set())
            answer = reader.read(api, client.stream(PATHS[api], body), client.told_error)
        said = answer.text or ", ".join(call.name for call in answer.calls)
        return EndpointTest(api, said, bool(answer.calls), time.monotonic() - began)

    @contextlib.contextmanager
    def _asked(self) -> Generator[tuple[EndpointSettings, EndpointClient]]:
        from mimikit.engines.openai import endpoint, engine

        if not endpoint.is_installed():
            raise BadInput(endpoint.MISSING)
        try:
            settings = EndpointSettings.model_validate({"model": "unknown", **self.facts})
        except ValidationError as error:
            raise bad_record(error) from None
        try:
            key = self._key or engine.key_of(self.name, settings, self._state)
            now = SystemClock().now
            with endpoint.EndpointClient(settings.base_url, key, idle_s=_TRY_S, now=now) as client:
                yield settings, client
        except endpoint.EndpointError as error:
            raise BadInput(self._advice(error), field=_FIELDS.get(error.trouble)) from None
        except EngineError as error:
            raise BadInput(str(error)) from None

    def _advice(self, error: EndpointError) -> str:
        if error.trouble == "unknown_model":
            with contextlib.suppress(BadInput):
                return f"{error}; it has {', '.join(self.models()[:20]) or 'none it tells of'}"
        cures = {
            "logged_out": "check the key",
            "unreachable": "check the address, and whether it runs",
            "absent": "check the address; it often ends in /v1",
        }
        cure = cures.get(error.trouble)
        return f"{error}; {cure}" if cure else str(error)


_FIELDS = {
    "logged_out": "key",
    "unreachable": "baseUrl",
    "absent": "baseUrl",
    "unknown_model": "model",
}
"""The field of the form that a trouble is likely about."""


class _SayArguments(BaseModel):
    """Say a word."""

    word: str


# ---- the same in a child process
#
# The page asks so: the client takes 30 MB, and an address may never answer. The child reads the
# request, with the key in it, from stdin: never from an argument, a file or a variable.


class TrialRequest(BaseModel):
    """Without a model in `facts` its models are listed alone."""

    name: str
    facts: dict[str, EndpointFact]
    key: str | None = None


class TrialReport(BaseModel):
    """`message` and `field`: why it could not be tried."""

    models: list[str] = []
    test: EndpointTest | None = None
    message: str = ""
    field: str | None = None


def tried_apart(request: TrialRequest, state: Path) -> TrialReport:
    """Try it in a child, ended after `LONGEST_S`. Raises Conflict if another trial is running."""
    if not _one.acquire(blocking=False):
        raise Conflict("another endpoint is being tried; wait for it")
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "mimikit.engines.setup", str(state)],
            input=request.model_dump_json().encode(),
            capture_output=True,
            timeout=LONGEST_S,
            check=True,
        )
        return TrialReport.model_validate_json(ended.stdout)
    except subprocess.TimeoutExpired:
        late = f"it gave no whole answer within {LONGEST_S:.0f} s"
        return TrialReport(message=late, field="baseUrl")
    except (subprocess.CalledProcessError, OSError, ValueError):
        return TrialReport(message="it could not be tried: the trial ended without output")
    finally:
        _one.release()


def tried(request: TrialRequest, state: Path) -> TrialReport:
    """List its models and ask the given one."""
    trial = EndpointTrial(request.name, request.facts, request.key, state)
    model = request.facts.get("model")
    models: list[str] = []
    try:
        try:
            models = trial.models()[:_MOST_MODELS]
        except BadInput:
            if model is None:  # some endpoints cannot list their models
                raise
        return TrialReport(models=models, test=trial.turn() if model else None)
    except BadInput as error:
        return TrialReport(models=models, message=str(error), field=error.field)


def main() -> None:
    """The child ends by itself, as its parent may be gone."""
    signal.alarm(int(LONGEST_S) + 5)
    request = TrialRequest.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(tried(request, Path(sys.argv[1])).model_dump_json())


if __name__ == "__main__":
    main()
