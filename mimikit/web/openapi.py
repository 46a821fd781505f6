"""The API as OpenAPI 3.1, made from the table of routes and the models of inputs and views."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from mimikit import __version__
from mimikit.views.base import View
from mimikit.web.api.routing import ErrorView, Input, Route

_REF = "#/components/schemas/{model}"


@functools.cache
def document_json(routes: tuple[Route, ...]) -> bytes:
    return json.dumps(document(routes), ensure_ascii=False, separators=(",", ":")).encode()


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """The whole document; its paths and schemas are sorted by name."""
    models: dict[tuple[type[Input] | type[View], JsonSchemaMode], None] = {}
    models[ErrorView, "serialization"] = None
    for route in routes:
        models |= dict.fromkeys((it, "validation") for it in (route.query, route.body) if it)
        models |= dict.fromkeys((it, "serialization") for it in route.answers.values() if it)
    refs, schema = models_json_schema(list(models), by_alias=True, ref_template=_REF)
    schemas = schema["$defs"]
    paths: dict[str, dict[str, Any]] = {}
    for route in sorted(routes, key=lambda it: it.path):
        query: dict[str, Any] = (
            schemas[_name(refs[route.query, "validation"])] if route.query else {}
        )
        operation: dict[str, Any] = {
            "operationId": route.name,
            "summary": route.text.partition("\n")[0],
            "parameters": [*_address(route.path), *_parameters(query)],
            "responses": {
                **{
                    str(status): _response(route, refs[view, "serialization"] if view else None)
                    for status, view in route.answers.items()
                },
                "default": _json("An error.", refs[ErrorView, "serialization"]),
            },
        }
        if route.body:
            operation["requestBody"] = {
                "required": not route.body.may_be_empty,
                **_content(refs[route.body, "validation"]),
            }
        paths.setdefault(route.path, {})[route.method.lower()] = operation
    queries = {_name(refs[it.query, "validation"]) for it in routes if it.query}
    bodies = {_name(refs[it.body, "validation"]) for it in routes if it.body}
    return {
        "openapi": "3.1.0",
        "info": {"title": "mimikit", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {
                name: made for name, made in sorted(schemas.items()) if name not in queries - bodies
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _address(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _parameters(query: dict[str, Any]) -> list[dict[str, Any]]:
    required = query.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in query.get("properties", {}).items()
    ]


def _response(route: Route, schema: dict[str, Any] | None) -> dict[str, Any]:
    text = route.text.partition("\n")[0]
    return _json(text, schema) if schema else {"description": text}


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, **_content(schema)}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]
