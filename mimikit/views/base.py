"""The base model of all views: the JSON of the HTTP API and of `--json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel

from mimikit.language.plain_text import plain
from mimikit.protocol.json import Json

Render: TypeAlias = Callable[[str], str]

CUT = "\n\n… (cut here: the text is longer than can be shown)"

_LANGUAGES = {lang: {"type": "string"} for lang in ("en", "zh")}

Words = Annotated[
    dict[str, str],
    WithJsonSchema({"type": "object", "properties": _LANGUAGES, "required": [*_LANGUAGES]}),
]

Title = Annotated[str, AfterValidator(plain)]
"""An untrusted title, without control characters."""


class View(BaseModel):
    """An answer: camelCase keys, no key left out."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True)

    @classmethod
    def of(cls, record: object, **more: object) -> Self:
        return cls.model_validate(vars(record) | more)

    def to_json(self) -> bytes:
        return self.model_dump_json(by_alias=True).encode()

    def to_dict(self) -> dict[str, Json]:
        return self.model_dump(mode="json", by_alias=True)
