"""The OpenAPI document has every route; docs/http.md and the types of the page match it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from mimikit.web.api.routing import Endpoint
from mimikit.web.app import AREAS
from tests.web.conftest import Web

REPO = Path(__file__).parents[2]
PAGE = REPO / "webui" / "js"
TAG = re.compile(r"@(?:param|returns|type|property|typedef) (\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})")
OWN = re.compile(r"@typedef [^@]*?\}(?:\n \*)? *(\w+)\b|\b(?:class|type|interface) (\w+)")
BROWSER = {
    *(
        "Element",
        "Event",
        "HTMLElement",
        "HTMLFormElement",
        "KeyboardEvent",
        "PointerEvent",
        "MouseEvent",
    ),
    *("HTMLDialogElement", "HTMLLinkElement", "SubmitEvent"),
    *("Exclude", "Extract", "Map", "NonNullable", "Omit", "Partial", "Pick", "Promise", "Record"),
    *("ReturnType", "Set"),
    *("Intl", "DateTimeFormatOptions", "RegExpExecArray", "Uint8Array", "Storage"),
    *("ReadableStreamDefaultReader", "RequestInit", "Response"),
    *("ArrayLike", "Blob", "File"),
}
STALE = "it is stale: run `python scripts/make_http_docs.py`"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs", REPO / "scripts" / "make_http_docs.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_docs_are_those_of_the_api(script: ModuleType) -> None:
    made = script.http_md()
    assert made == script.DOCS.read_text(), STALE
    assert made.count("\n→ 2") == made.count("\n→ "), "an example that fails shows nothing"


def test_the_description_is_that_of_the_api(script: ModuleType) -> None:
    assert script.openapi_json() == script.OPENAPI.read_text(), STALE


def test_the_types_of_the_page_are_those_of_the_api(script: ModuleType) -> None:
    assert script.types_ts() == script.TYPES.read_text(), STALE


def test_every_type_the_page_names_exists() -> None:
    texts = [path.read_text() for path in PAGE.rglob("*.js")]
    declared = [path.read_text() for path in PAGE.rglob("*.d.ts")]
    own = {name for text in texts + declared for names in OWN.findall(text) for name in names}
    tags = "".join(re.sub(r'"[^"]*"', "", tag) for text in texts for tag in TAG.findall(text))
    named = set(re.findall(r"(?<!\.)\b[A-Z][a-z]\w+", tags))
    assert len(named) > 60
    assert named - BROWSER <= own


def routes_of(web: Web) -> list[tuple[str, str]]:
    """Method and path of every route of the app that speaks JSON."""
    return sorted(
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in web.app.url_map.iter_rules()
        if rule.rule.startswith("/api/") or rule.rule == "/healthz"
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    )


def test_every_route_is_described(web: Web) -> None:
    document = web.get("/api/openapi.json")
    described = sorted(
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    )
    assert described == routes_of(web)
    assert document["openapi"].startswith("3.1")


def test_every_route_but_streams_and_files_answers_with_a_view() -> None:
    table: list[Endpoint] = [route for area in AREAS for route in area.table]
    without = {route.path for route in table if None in route.answers.values()}
    assert without == {"/api/events", "/api/files/{file_id}", "/api/openapi.json"}
    assert all(route.text for route in table), "the first line of the docs"
