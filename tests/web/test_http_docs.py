"""The OpenAPI document has every route; docs/http.md and the types of the page match it."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from mimikit.web.api.routing import Endpoint
from tests.web.conftest import Web

REPO = Path(__file__).parents[2]
PAGE = REPO / "webui" / "js"
NAMED = re.compile(r'import\("[./]*((?:state-)?types)\.js"\)\.(\w+)')
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


def test_the_types_of_the_page_are_those_of_the_api(script: ModuleType) -> None:
    assert script.types_js() == script.TYPES.read_text(), STALE


def test_every_type_the_page_names_exists() -> None:
    named = {pair for path in PAGE.rglob("*.js") for pair in NAMED.findall(path.read_text())}
    assert len(named) > 30
    for file, name in sorted(named):
        text = (PAGE / "core" / f"{file}.js").read_text()
        assert re.search(rf"@typedef [^@]*?\}}(?:\n \*)? *{name}\b", text), f"{file}.js: {name}"


def routes_of(web: Web) -> list[tuple[str, str]]:
    """Method and path of every route of the app that speaks JSON."""
    return sorted(
        (method, re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule))
        for rule in web.app.url_map.iter_rules()
        if rule.rule.startswith("/api/") or rule.rule == "/healthz"
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    )


def refs_in(part: object) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*map(refs_in, part.values()))
    return set().union(*map(refs_in, part)) if isinstance(part, list) else set()


def test_every_route_is_described(web: Web) -> None:
    document = web.get("/api/openapi.json")
    described = sorted(
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    )
    assert described == routes_of(web)
    assert document["openapi"].startswith("3.1")


def test_every_route_but_streams_answers_with_a_view(web: Web) -> None:
    table: list[Endpoint] = list(web.site.routes)
    without = {route.path for route in table if None in route.answers.values()}
    assert without == {"/api/events", "/api/openapi.json"}
    assert all(route.text for route in table), "the first line of the docs"


def test_every_reference_leads_somewhere(web: Web) -> None:
    document = web.get("/api/openapi.json")
    named = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert refs_in(document) <= named
