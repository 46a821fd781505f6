"""The OpenAPI document has every route with its models."""

from __future__ import annotations

import re

from mimikit.web.api.routing import Endpoint
from tests.web.conftest import Web


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
