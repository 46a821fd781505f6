"""OpenAPI 3.1 from the routes and the models of inputs and views; make_http_docs.py writes it."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema
from pydantic_core import core_schema

from mimikit import __version__
from mimikit.web.api.routing import Endpoint, ErrorView, Input, Shown

_REF = "#/components/schemas/{model}"


def document(routes: Sequence[Endpoint]) -> dict[str, Any]:
    models: dict[tuple[type[Input] | type[Shown], JsonSchemaMode], None] = {}
    models[ErrorView, "serialization"] = None
    for route in routes:
        models |= dict.fromkeys((it, "validation") for it in (route.query, route.body) if it)
        models |= dict.fromkeys((it, "serialization") for it in route.answers.values() if it)
    refs, schema = models_json_schema(
        list(models), by_alias=True, ref_template=_REF, schema_generator=_SchemaWriter
    )
    schemas = schema["$defs"]
    paths: dict[str, dict[str, Any]] = {}
    for route in sorted(routes, key=lambda it: it.path):
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs, schemas)
    queries = {_name(refs[it.query, "validation"]) for it in routes if it.query}
    bodies = {_name(refs[it.body, "validation"]) for it in routes if it.body}
    return {
        "openapi": "3.1.0",
        "info": {"title": "mimikit", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {
                name: schema_
                for name, schema_ in sorted(schemas.items())
                if name not in queries - bodies
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(
    route: Endpoint, refs: Mapping[Any, dict[str, Any]], schemas: dict[str, Any]
) -> dict[str, Any]:
    summary = route.text.partition("\n")[0]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]
    if route.query:
        query = schemas[_name(refs[route.query, "validation"])]
        required = query.get("required", [])
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in query.get("properties", {}).items()
        ]
    responses: dict[str, Any] = {}
    for status, view in route.answers.items():
        content = _content(refs[view, "serialization"]) if view else {}
        responses[str(status)] = {"description": summary, **content}
    error = _content(refs[ErrorView, "serialization"])
    responses["default"] = {"description": "An error.", **error}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": summary,
        "parameters": parameters,
        "responses": responses,
    }
    if route.body:
        content = _content(refs[route.body, "validation"])
        required = any(field.is_required() for field in route.body.model_fields.values())
        operation["requestBody"] = {"required": required, **content}
    return operation


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


class _SchemaWriter(GenerateJsonSchema):
    """Adds the docstring below each field as its description; leaves titles out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> dict[str, Any]:
        result = super().model_schema(schema)
        result.pop("title", None)
        for base in schema["cls"].__mro__:
            if issubclass(base, BaseModel) and base is not BaseModel:
                for field, text in _texts(base).items():
                    if field in result.get("properties", {}):
                        result["properties"][field].setdefault("description", text)
        return result


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings below the fields of a class, by JSON name."""
    source = ast.parse(textwrap.dedent(inspect.getsource(model)))
    body = source.body[0].body if isinstance(source.body[0], ast.ClassDef) else []
    texts: dict[str, str] = {}
    for field, below in itertools.pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            info = model.model_fields.get(field.target.id)
            name = (info and info.serialization_alias) or field.target.id
            texts[name] = inspect.cleandoc(str(below.value.value)).replace("\n", " ")
    return texts
