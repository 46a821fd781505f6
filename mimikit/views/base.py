"""The base model of all views: the JSON of the HTTP API and of `--json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel

from mimikit.language.plain_text import plain
from mimikit.protocol.json import Json

Render: TypeAlias = Callable[[str], str]
"""Renders markdown as safe HTML."""

CUT = "\n\n… (cut here: the text is longer than can be shown)"

_SAID = {lang: {"type": "string"} for lang in ("en", "zh")}

Words = Annotated[
    dict[str, str], WithJsonSchema({"type": "object", "properties": _SAID, "required": [*_SAID]})
]
"""A text in each language."""

Title = Annotated[str, AfterValidator(plain)]
"""A name of any origin, without control characters that could affect the text beside it."""


class View(BaseModel):
    """The root of all answers: camelCase keys, every key always there."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    @classmethod
    def of(cls, record: object, **more: object) -> Self:
        """The fields it has in common with a record, and `more`."""
        return cls.model_validate(vars(record) | more)

    def to_json(self) -> bytes:
        return self.model_dump_json(by_alias=True).encode()

    def to_dict(self) -> dict[str, Json]:
        """Plain data, as in `to_json`."""
        return self.model_dump(mode="json", by_alias=True)
