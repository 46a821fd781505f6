"""Arguments in the forms that models write them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from mimikit.tools.arguments import (
    AskArguments,
    BacklogArguments,
    DelegateArguments,
    ListTasksArguments,
    RememberArguments,
    ScheduleArguments,
    ToolArguments,
    validated,
)

CONDITION = {"type": "file_exists", "params": {"path": "a"}}
FORMS: list[tuple[type[ToolArguments], dict[str, Any], dict[str, Any]]] = [
    (AskArguments, {"question": "q", "options": '["a", "b"]'}, {"options": ["a", "b"]}),
    (
        DelegateArguments,
        {"prompt": "p", "condition": '{"type": "file_exists", "params": {"path": "a"}}'},
        {"condition": CONDITION},
    ),
    (
        DelegateArguments,
        {"prompt": "p", "title": "", "priority": "7"},
        {"title": None, "priority": 7},
    ),
    (DelegateArguments, {"prompt": "p", "after": "build"}, {"after": ["build"]}),
    (ListTasksArguments, {"scope": "Running "}, {"scope": "running"}),
    (RememberArguments, {"content": "c", "longTerm": "true"}, {"long_term": True}),
    (
        ScheduleArguments,
        {"prompt": "p", "cron": "", "interval": "600"},
        {"cron": None, "interval": 600},
    ),
    (BacklogArguments, {"action": "Add", "item": "x"}, {"action": "add"}),
]


@pytest.mark.parametrize(("model", "given", "wanted"), FORMS)
def test_arguments_that_can_mean_one_thing_are_corrected(
    model: type[ToolArguments], given: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert validated(model, given).model_dump(include=set(wanted)) == wanted


@pytest.mark.parametrize(
    ("model", "given"),
    [
        (AskArguments, {"question": ""}),
        (DelegateArguments, {"prompt": "p", "condition": "soon"}),
        (DelegateArguments, {"prompt": "p", "colour": "red"}),
        (DelegateArguments, {"prompt": None}),
    ],
)
def test_other_arguments_are_refused(model: type[ToolArguments], given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        validated(model, given)
