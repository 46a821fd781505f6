"""Errors as the page tells them: each has a code, and each code has words in both languages."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mimikit.errors import ErrorCode
from mimikit.protocol.ids import ID_PATTERN
from mimikit.protocol.models import Instant
from mimikit.protocol.records import bad_record
from tests.web.conftest import Web, error_of
from tests.web.test_inputs import GOOD_ANSWER, GOOD_INPUT

REPO = Path(__file__).parents[2]


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, Field(min_length=2, max_length=5)] = "abc"
    word: Annotated[str, Field(pattern="^[a-z]*$")] = "a"
    number: Annotated[float, Field(ge=1, le=9)] = 1
    kind: Literal["skip", "queue"] = "skip"
    id: Annotated[str, Field(pattern=ID_PATTERN)] = "a"
    instant: Instant | None = None
    needed: bool


VALIDATION: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    ({"needed": None}, "wrong_type", {"expected": "bool"}),
    ({}, "missing", {}),
    ({"needed": True, "more": 1}, "unknown_field", {}),
    ({"needed": True, "text": "abcdef"}, "too_long", {"max": 5}),
    ({"needed": True, "text": "a"}, "too_short", {"min": 2}),
    ({"needed": True, "word": "A"}, "bad_format", {}),
    ({"needed": True, "number": 10}, "too_large", {"max": 9.0}),
    ({"needed": True, "number": 0}, "too_small", {"min": 1.0}),
    ({"needed": True, "kind": "x"}, "not_one_of", {"allowed": "skip, queue"}),
    ({"needed": True, "id": "../x"}, "bad_id", {}),
    ({"needed": True, "instant": "2300-01-01T00:00Z"}, "bad_time", {}),
]


@pytest.mark.parametrize(("values", "code", "params"), VALIDATION)
def test_an_error_of_validation_has_a_code(
    values: dict[str, Any], code: str, params: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError) as caught:
        Form.model_validate(values)
    bad = bad_record(caught.value)
    assert (bad.code, bad.params) == (code, params)


def params_by_code() -> dict[str, set[str]]:
    """What every place that raises a code gives for it."""
    found, nothing = {code: set(params) for _, code, params in VALIDATION}, ast.Tuple([])
    for path in (REPO / "mimikit").rglob("*.py"):
        calls = [it for it in ast.walk(ast.parse(path.read_text())) if isinstance(it, ast.Call)]
        for given in ({it.arg: it.value for it in call.keywords} for call in calls):
            params = set(re.findall(r"'(\w+)':", ast.unparse(given.get("params", nothing))))
            for code in re.findall(r"'(\w+)'", ast.unparse(given.get("code", nothing))):
                found[code] = found.get(code, params) & params
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_has_words_for_each_code(language: str) -> None:
    words = json.loads((REPO / f"webui/i18n/{language}.json").read_text())
    given = params_by_code()
    for code in get_args(ErrorCode):
        places = set(re.findall(r"\{(\w+)\}", words[f"error.{code}"]))
        assert places <= given.get(code, set()) | {"field", "message"}, code
    of_page = {f"error.{code}" for code in (*get_args(ErrorCode), "unknown")}
    assert {key for key in words if key.startswith("error.")} == of_page


TRIGGER = {"prompt": "do it"}
AFTER = {"condition": {"type": "task_done", "params": {}}}


@pytest.mark.parametrize(
    ("address", "body", "code", "field", "params"),
    [
        ("/api/input", GOOD_INPUT | {"text": " "}, "missing", "text", {}),
        ("/api/input", GOOD_INPUT | {"text": "x" * 200_001}, "too_long", "text", {"max": 200_000}),
        ("/api/input", GOOD_INPUT | {"text": "x" * 2**20}, "body_too_large", None, {"max": 1024}),
        ("/api/answer", GOOD_ANSWER, "question_closed", "questionId", {}),
        ("/api/tasks/task-9/cancel", {}, "not_found", "id", {}),
        ("/api/triggers/preview", {"when": "soonish"}, "bad_when", "when", {}),
        ("/api/triggers", TRIGGER | {"when": "today 1:00"}, "no_future_time", "when", {}),
        ("/api/triggers", TRIGGER | {"schedule": {"cron": "x"}}, "bad_cron", "schedule.cron", {}),
        ("/api/triggers/preview", {"when": "at 9", "timezone": "Mars"}, "bad_zone", "timezone", {}),
        ("/api/triggers/preview", AFTER, "missing", "condition.params.taskId", {}),
    ],
)
def test_a_refused_request_names_its_code(
    web: Web, address: str, body: dict[str, Any], code: str, field: str, params: dict[str, Any]
) -> None:
    told = error_of(web.ask("POST", address, body))
    assert (told["code"], told["field"], told["params"]) == (code, field, params)
