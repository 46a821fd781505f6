"""The API as OpenAPI 3.1, made from the table of routes and the models of inputs and views."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from mimikit import __version__
from mimikit.views.base import View
from mimikit.web.api.routing import Endpoint, ErrorView, Input

_REF = "#/components/schemas/{model}"


@functools.cache
def document_json(routes: tuple[Endpoint, ...]) -> bytes:
    return json.dumps(document(routes), ensure_ascii=False, separators=(",", ":")).encode()


def document(routes: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole document; its paths and schemas are sorted by name."""
    models: dict[tuple[type[Input] | type[View], JsonSchemaMode], None] = {}
    models[ErrorView, "serialization"] = None
    for route in routes:
        models |= dict.fromkeys((it, "validation") for it in (route.query, route.body) if it)
        models |= dict.fromkeys((it, "serialization") for it in route.answers.values() if it)
    refs, schema = models_json_schema(list(models), by_alias=True, ref_template=_REF)
    schemas = schema["$defs"]
    for name, made in schemas.items():
        _describe(name.partition("-")[0], made)
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


def _response(route: Endpoint, schema: dict[str, Any] | None) -> dict[str, Any]:
    text = route.text.partition("\n")[0]
    return _json(text, schema) if schema else {"description": text}


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, **_content(schema)}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


# ---- what the models' source says of their fields


def _describe(name: str, schema: dict[str, Any]) -> None:
    """Put the text below each field of a model into its schema; titles only repeat the names."""
    model = _models().get(name)
    texts = dict[str, str]()
    for base in reversed(model.__mro__) if model else ():
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= _texts(base)
    schema.pop("title", None)
    for field, made in schema.get("properties", {}).items():
        made.pop("title", None)
        if text := texts.get(field):
            made["description"] = text


@functools.cache
def _models() -> dict[str, type[BaseModel]]:
    """Every model by its name, which no two have."""

    def below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
        yield model
        for one in model.__subclasses__():
            yield from below(one)

    found = (one for one in below(BaseModel) if one.__module__.startswith("mimikit."))
    return {one.__name__: one for one in found}


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings below the fields of one class, by the fields' names in JSON."""
    source = ast.parse(textwrap.dedent(inspect.getsource(model)))
    body = source.body[0].body if isinstance(source.body[0], ast.ClassDef) else []
    found: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            info = model.model_fields.get(field.target.id)
            name = (info and info.alias) or field.target.id
            found[name] = inspect.cleandoc(str(below.value.value)).replace("\n", " ")
    return found
