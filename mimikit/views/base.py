"""What the views share: a model that goes over HTTP and out of `--json` as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, WithJsonSchema
from pydantic.alias_generators import to_camel

from mimikit.language.plain_text import plain
from mimikit.protocol.json import Json
from mimikit.protocol.models import BUILT_LATE

Render: TypeAlias = Callable[[str], str]
"""Makes safe HTML of markdown; whoever shows HTML hands it in."""

CUT = "\n\n… (cut here: the text is longer than can be shown)"

_SAID = {lang: {"type": "string"} for lang in ("en", "zh")}

Words = Annotated[
    dict[str, str], WithJsonSchema({"type": "object", "properties": _SAID, "required": [*_SAID]})
]
"""The same said in each language."""

Title = Annotated[str, AfterValidator(plain)]
"""A name that others gave: it stands beside other texts, and turns none of them around."""


class View(BaseModel):
    """The root of all answers: camelCase keys, every key always there."""

    model_config = ConfigDict(
        frozen=True, alias_generator=to_camel, populate_by_name=True, defer_build=BUILT_LATE
    )

    @classmethod
    def of(cls, record: object, **more: object) -> Self:
        """What it has in common with a record, field by field, and `more`."""
        return cls.model_validate(vars(record) | more)

    def to_json(self) -> bytes:
        return self.model_dump_json(by_alias=True).encode()

    def to_dict(self) -> dict[str, Json]:
        """Plain data, as in `to_json`."""
        return self.model_dump(mode="json", by_alias=True)
