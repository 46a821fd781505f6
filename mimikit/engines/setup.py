"""Setting up engines: what `config.toml` is to say of them, and trying an endpoint."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import BaseModel, ValidationError

from mimikit import config_file
from mimikit.clock import SystemClock
from mimikit.config import OWN_ENGINES, Settings
from mimikit.config_file import Table
from mimikit.engine_settings import EndpointSettings
from mimikit.engines.base import tool_spec
from mimikit.errors import BadInput, EngineError
from mimikit.extras import missing
from mimikit.protocol import paths
from mimikit.protocol.files import Files
from mimikit.protocol.records import bad_record

if TYPE_CHECKING:
    from mimikit.engines.openai.endpoint import EndpointClient, EndpointError

EndpointFact: TypeAlias = str | float | bool | dict[str, float]
Facts: TypeAlias = dict[str, EndpointFact]
"""What `[engines.NAME]` is to say."""
_TRY_S = 60.0
SEATS = {
    "teller": "roles",
    "planner": "roles",
    "standard": "profiles",
    "specialist": "profiles",
    "deferred": "profiles",
}
"""The roles and profiles that may have engines of their own, and the table they stand in."""


def with_order(text: str, names: Sequence[str], seat: str | None = None) -> str:
    """Have these engines serve, the best first: a role or profile, or whatever names none.

    Raises:
        BadSettings: the text is no settings.
        BadInput: what comes of it is none.
    """

    def change(document: Table) -> None:
        table = document
        if seat is not None:
            table = config_file.table_at(document, (SEATS[seat], seat))
            table.pop("engine", None)
            table.pop("engines", None)
        key = "engine" if seat is None or len(names) == 1 else "engines"
        table[key] = list(names) if len(names) > 1 else names[0]

    if seat is None and "engine" not in config_file.loaded(text):
        text = f'engine = ""\n{text}'  # at its end it would stand in the last table
    return config_file.changed(text, change)


def with_endpoint(text: str, name: str, facts: Mapping[str, EndpointFact]) -> str:
    """Add an endpoint, or change what is known of one.

    Raises:
        BadSettings, BadInput: the same as above.
    """
    one_key = {"api_key_env": None, "api_key_file": None}
    return config_file.with_table(text, ("engines", name), {**one_key, **facts})


def without_endpoint(text: str, name: str) -> str:
    """Remove an endpoint, and its name wherever it was to serve.

    Raises:
        BadSettings, BadInput: the same as above.
    """

    def change(document: Table) -> None:
        config_file.drop_table(document, ("engines", name))
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

    return config_file.changed(text, change)


def check_seat(seat: str | None) -> None:
    """Raises a BadInput where an order is meant for what has none of its own."""
    if seat is not None and seat not in SEATS:
        raise BadInput(f"expected one of {', '.join(SEATS)}; got {seat[:40]!r}", field="seat")


def checked_name(name: str) -> str:
    """`name`, which an endpoint may have. Raises BadInput: it is none."""
    return config_file.checked_name(name, taken=OWN_ENGINES)


def key_file(name: str) -> str:
    """Where the key of an endpoint is kept, in `secrets/`."""
    return f"engine-{name}.key"


def key_facts(
    name: str, base_url: str, key: str | None, variable: str | None, known: EndpointSettings | None
) -> Facts:
    """Where its key is: given, in a variable, or as it was.

    Raises:
        BadInput: the key that is kept would go to another address than it was given for.
    """
    if variable:
        return {"api_key_env": variable}
    if key is not None:
        return {"api_key_file": key_file(name)}
    kept = known.model_dump(include={"api_key_env", "api_key_file"}) if known else {}
    facts: Facts = {fact: value for fact, value in kept.items() if value is not None}
    if facts and known and known.base_url != base_url.rstrip("/"):
        raise BadInput(
            "expected the key again, as the address is another one", field="key", code="key_again"
        )
    return facts


def orders(settings: Settings) -> dict[str, list[str]]:
    """Who serves what, the best first: `all`, and each seat that says so itself."""
    found = {"all": settings.engine_order}
    for seat, room in SEATS.items():
        order = getattr(getattr(settings, room), seat).order
        if order != ["auto"]:
            found[seat] = order
    return found


# ---- trying an endpoint


@dataclass(frozen=True, slots=True)
class EndpointTest:
    """What came of a turn that was tried."""

    api: str
    text: str
    calls_tools: bool
    took_s: float


class EndpointTrial:
    """An endpoint as it would be set up: asked before anything is written."""

    def __init__(
        self, name: str, facts: Mapping[str, EndpointFact], key: str | None, state: Path
    ) -> None:
        """`key`: one that is not kept yet; None: as the facts say."""
        self.name, self.facts, self._key, self._state = name, dict(facts), key, state

    def models(self) -> list[str]:
        """The models it lists.

        Raises:
            BadInput: why it can not be asked.
        """
        with self._asked() as (_, client):
            return [str(model["id"]) for model in client.models()]

    def turn(self) -> EndpointTest:
        """Ask for a word by a tool, in the API it has.

        Raises:
            BadInput: why it gave none.
        """
        from mimikit.engines.openai.dialogue import PATHS, AnswerReader, ModelDialogue
        from mimikit.engines.openai.profile import api_of

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
        from mimikit.engines.openai import endpoint, profile

        if not endpoint.is_installed():
            raise BadInput(missing("openai", "openai"))
        try:
            settings = EndpointSettings.model_validate({"model": "unknown", **self.facts})
        except ValidationError as error:
            raise bad_record(error) from None
        try:
            key = self._key or profile.key_of(self.name, settings, self._state)
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
"""What a trouble is likely to be about."""


class _SayArguments(BaseModel):
    """Say a word."""

    word: str


def forget(files: Files, name: str) -> None:
    """What was known of an endpoint is asked anew; a key that nothing names any more goes."""
    files.remove(f"{paths.CACHE}/endpoint-{name}.json")
    config_file.forget_secret(files, key_file(name))
