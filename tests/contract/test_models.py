"""What is on disk and goes over HTTP: each model is sound, although it is built when first used."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

import mimikit.conversation
import mimikit.protocol
import mimikit.tasks
import mimikit.views
import mimikit.web.api
from mimikit.protocol.models import Record
from mimikit.views.base import View
from mimikit.web.api.routing import Input

for _package in (
    mimikit.conversation, mimikit.protocol, mimikit.tasks, mimikit.views, mimikit.web.api
):  # fmt: skip
    for _module in pkgutil.iter_modules(_package.__path__, f"{_package.__name__}."):
        importlib.import_module(_module.name)


def _below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for one in model.__subclasses__():
        yield from _below(one)


@pytest.mark.parametrize("root", [Record, View, Input], ids=lambda root: root.__name__)
def test_every_model_can_be_built(root: type[BaseModel]) -> None:
    found = {one for one in _below(root) if one.__module__.startswith("mimikit.")}
    assert len(found) > 20
    assert [one.__name__ for one in found if one.model_rebuild() is False] == []
