"""Tests an endpoint, and edits the engines in config.toml, keeping the owner's comments."""

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
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

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
    from mimikit.engines.openai.endpoint import EndpointClient
    from mimikit.engines.openai.failure import EndpointError

EndpointFact: TypeAlias = str | float | bool | dict[str, float] | dict[str, str]
TomlTable: TypeAlias = Any
Facts: TypeAlias = dict[str, EndpointFact]
_IDLE_TIMEOUT_S = 60.0
TEST_TIMEOUT_S = 45.0
"""Of a test in a child process."""
_MAX_MODELS = 500
_test_lock = threading.Lock()
_EXPECTED = f"{paths.CONFIG}: expected settings that can be added to, got others"
_PROVIDERS = Path(__file__).with_name("providers.toml")
SEATS = {
    "teller": "roles",
    "planner": "roles",
    "standard": "profiles",
    "specialist": "profiles",
    "deferred": "profiles",
}
"""The table of each role or profile that may have its own engines."""


def with_order(text: str, names: Sequence[str], seat: str | None = None) -> str:
    """Set the engines of a role or profile, or the default ones. Raises BadSettings, BadInput."""

    def change(document: TomlTable) -> None:
        table = document
        if seat is not None:
            table = _subtable(_subtable(document, SEATS[seat]), seat)
            table.pop("engine", None)
            table.pop("engines", None)
        key = "engine" if seat is None or len(names) == 1 else "engines"
        table[key] = list(names) if len(names) > 1 else names[0]

    if seat is None and "engine" not in _parsed(text):
        text = f'engine = ""\n{text}'  # at its end it would belong to the last table
    return _edited(text, change)


def with_endpoint(text: str, name: str, facts: Mapping[str, EndpointFact]) -> str:
    """Add or change an endpoint. Raises BadSettings, BadInput."""

    def change(document: TomlTable) -> None:
        table = _subtable(_subtable(document, "engines"), name)
        for key in ("api_key_env", "api_key_file"):  # they exclude each other
            table.pop(key, None)
        for key, value in facts.items():
            table[key] = value

    return _edited(text, change)


def with_values(text: str, section: str, values: Mapping[str, int | str | None]) -> str:
    """Set keys of a section; None removes one. Raises BadSettings, BadInput."""

    def change(document: TomlTable) -> None:
        table = _subtable(document, section)
        for key, value in values.items():
            table.pop(key, None)
            if value is not None:
                table[key] = value

    return _edited(text, change)


def without_endpoint(text: str, name: str) -> str:
    """Remove an endpoint, also where roles use it. Raises BadSettings, BadInput."""

    def change(document: TomlTable) -> None:
        engines = document.get("engines", {})
        engines.pop(name, None)
        if not engines:
            document.pop("engines", None)
        places = [(document, "engine")]
        for seat, section in SEATS.items():
            table = document.get(section, {}).get(seat, {})
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

    return _edited(text, change)


def default_facts(base_url: str) -> Facts:
    """What the settings of an address need besides: Azure takes the key in a header of its own."""
    host = (urlsplit(base_url).hostname or "").lower()
    return {"api_key_header": "api-key"} if host.endswith(".azure.com") else {}


def check_seat(seat: str | None) -> None:
    """Raises BadInput."""
    if seat is not None and seat not in SEATS:
        allowed = ", ".join(SEATS)
        message = f"expected one of {allowed}; got {seat[:40]!r}"
        raise BadInput(message, field="seat", code="not_one_of", params={"allowed": allowed})


def checked_name(name: str) -> str:
    """Raises BadInput."""
    if not config.is_valid_endpoint_name(name):
        expected = "expected a free name of lower-case letters, digits, - and _, at most 32"
        message = f"{expected}, that begins with a letter; got {name[:40]!r}"
        raise BadInput(message, field="name", code="bad_name")
    return name


def settings_text(files: Files) -> str:
    """Raises BadSettings if it is not UTF-8."""
    try:
        return (files.read(paths.CONFIG) or b"").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadSettings(f"{paths.CONFIG}: {error}") from None


def provider_address(name: str) -> str | None:
    return tomllib.loads(_PROVIDERS.read_text("utf-8")).get(name)


def checked_key(text: str) -> str:
    """Raises BadInput."""
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        message = "expected a key of visible ASCII characters in one line, got something else"
        raise BadInput(message, field="key", code="bad_key")
    return key


def key_file(name: str) -> str:
    """In `secrets/`."""
    return f"engine-{name}.key"


def key_facts(
    name: str, base_url: str, key: str | None, variable: str | None, known: EndpointSettings | None
) -> Facts:
    """The settings of its API key. Raises BadInput if a stored key would go to a new address."""
    if variable:
        return {"api_key_env": variable}
    if key is not None:
        return {"api_key_file": key_file(name)}
    stored = known.model_dump(include={"api_key_env", "api_key_file"}) if known else {}
    facts: Facts = {fact: value for fact, value in stored.items() if value is not None}
    if facts and known and known.base_url != base_url.rstrip("/"):
        message = "expected the key again, as the address is another one"
        raise BadInput(message, field="key", code="key_again")
    return facts


def orders(settings: Settings) -> dict[str, list[str]]:
    """Preferred engines: of `all`, and of each role or profile that has its own."""
    found = {"all": settings.engine_order}
    for seat, section in SEATS.items():
        order = getattr(getattr(settings, section), seat).order
        if order != ["auto"]:
            found[seat] = order
    return found


def _edited(text: str, change: Callable[[TomlTable], None]) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    _parsed(text)
    try:
        document = tomlkit.parse(text)
        change(document)
        new = tomlkit.dumps(document)
    except (TOMLKitError, RecursionError, TypeError, AttributeError) as error:
        raise BadSettings(f"{_EXPECTED}: {error}") from None
    try:
        config.parsed(new, Path(paths.CONFIG))
    except BadSettings as error:
        raise BadInput(str(error), code=error.code) from None
    return new


def _parsed(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSettings(f"{_EXPECTED}: {error}") from None


def _subtable(table: TomlTable, key: str) -> TomlTable:
    import tomlkit

    if key not in table:
        table[key] = tomlkit.table(is_super_table=key in ("engines", "roles", "profiles"))
    return table[key]


# ---- test an endpoint


@dataclass(frozen=True, slots=True)
class EndpointTest:
    api: str
    text: str
    calls_tools: bool
    took_s: float


class EndpointTrial(BaseModel):
    name: str
    facts: Facts
    key: str | None = None
    """A new one; None: as `facts` say."""

    def models(self, state: Path) -> list[str]:
        """Raises BadInput."""
        with self._connected(state) as (_, client):
            return [str(model["id"]) for model in client.models()]

    def turn(self, state: Path) -> EndpointTest:
        """A short turn with a tool call. Raises BadInput."""
        from mimikit.engines.openai.answer import SPENT_ON_THOUGHTS, AnswerReader
        from mimikit.engines.openai.dialogue import ModelDialogue
        from mimikit.engines.openai.profile import api_of

        began = time.monotonic()
        with self._connected(state) as (settings, client):
            api = api_of(settings, client)
            prompt = "Call the tool `say` with the word hello."
            tool = tool_spec("say", _SayArguments)
            dialogue = ModelDialogue("This is a connection test.", prompt, [tool])
            reader = partial(AnswerReader, lambda _text: None, set[str]())
            answer = dialogue.ask(client, api, settings, reader)
            if not answer.text and not answer.calls:
                is_spent = answer.is_spent_on_thoughts
                message = f"its thinking {SPENT_ON_THOUGHTS}" if is_spent else "it gave no text"
                raise BadInput(message, field="model", params={"trouble": "broken"})
        text = answer.text or ", ".join(call.name for call in answer.calls)
        return EndpointTest(api, text, bool(answer.calls), time.monotonic() - began)

    @contextlib.contextmanager
    def _connected(self, state: Path) -> Generator[tuple[EndpointSettings, EndpointClient]]:
        from mimikit.engines.openai import endpoint, profile
        from mimikit.engines.openai.failure import EndpointError

        try:
            settings = EndpointSettings.model_validate({"model": "unknown", **self.facts})
        except ValidationError as error:
            raise bad_record(error) from None
        try:
            key = self.key or profile.key_of(self.name, settings, state)
            now = SystemClock().now
            with endpoint.EndpointClient(settings, key, idle_s=_IDLE_TIMEOUT_S, now=now) as client:
                yield settings, client
        except EndpointError as error:
            field, _ = _REMEDIES.get(error.trouble, (None, ""))
            params = {"trouble": error.trouble}
            raise BadInput(self._with_remedy(error, state), field=field, params=params) from None
        except EngineError as error:
            raise BadInput(str(error)) from None

    def _with_remedy(self, error: EndpointError, state: Path) -> str:
        if error.trouble == "unknown_model":
            with contextlib.suppress(BadInput):
                models = ", ".join(self.models(state)[:20])
                return f"{error}; it has {models or 'no listed models'}"
        _, remedy = _REMEDIES.get(error.trouble, (None, ""))
        return f"{error}; {remedy}" if remedy else str(error)


_REMEDIES: dict[str, tuple[str | None, str]] = {
    "logged_out": ("key", "check the key"),
    "unreachable": ("baseUrl", "check the address, and whether it runs"),
    "absent": ("baseUrl", "check the address; it often ends in /v1"),
    "unknown_model": ("model", ""),
}
"""The form field that is likely wrong, and what to do."""


class _SayArguments(BaseModel):
    """Say a word."""

    word: str


# ---- test in a child process: the client takes 30 MB, and an address may never answer.
# The key goes over stdin, never in an argument, a file or a variable.


class TrialReport(BaseModel):
    """`message`, `field` and `trouble`: the error."""

    models: list[str] = []
    test: EndpointTest | None = None
    message: str = ""
    field: str | None = None
    trouble: str = ""


def run_test_in_child(trial: EndpointTrial, state: Path) -> TrialReport:
    """Test it in a child process. Raises Conflict while another test is running."""
    if not _test_lock.acquire(blocking=False):
        raise Conflict("another endpoint is being tested; wait for it")
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "mimikit.engines.setup", str(state)],
            input=trial.model_dump_json().encode(),
            capture_output=True,
            timeout=TEST_TIMEOUT_S,
            check=True,
        )
        return TrialReport.model_validate_json(ended.stdout)
    except subprocess.TimeoutExpired:
        message = f"no complete answer within {TEST_TIMEOUT_S:.0f} s"
        return TrialReport(message=message, field="baseUrl", trouble="unreachable")
    except (subprocess.CalledProcessError, OSError, ValueError):
        return TrialReport(message="the test ended without output")
    finally:
        _test_lock.release()


def run_test(trial: EndpointTrial, state: Path) -> TrialReport:
    """Without a model in its facts only lists the models."""
    model = trial.facts.get("model")
    models: list[str] = []
    try:
        try:
            models = trial.models(state)[:_MAX_MODELS]
        except BadInput:
            if model is None:  # some endpoints cannot list their models
                raise
        return TrialReport(models=models, test=trial.turn(state) if model else None)
    except BadInput as error:
        trouble = str(error.params.get("trouble", ""))
        return TrialReport(models=models, message=str(error), field=error.field, trouble=trouble)


def main() -> None:
    signal.alarm(int(TEST_TIMEOUT_S) + 5)  # its parent may be gone
    trial = EndpointTrial.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(run_test(trial, Path(sys.argv[1])).model_dump_json())


if __name__ == "__main__":
    main()
