"""What a request asks: its JSON body and its query, checked by a model."""

from __future__ import annotations

from typing import Annotated, TypeVar

from flask import request
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel
from werkzeug.exceptions import BadRequest

from mimikit.errors import BadInput, BadRecord
from mimikit.protocol.files import bad_record
from mimikit.protocol.ids import ID_PATTERN, check_id
from mimikit.protocol.json import Json, parse_object

MESSAGE_ID_PATTERN = r"^msg-[A-Za-z0-9._-]{1,124}$"

ClientId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
MessageId = Annotated[str, StringConstraints(pattern=MESSAGE_ID_PATTERN)]


class Asked(BaseModel):
    """A body or query; a key it does not know is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=False
    )


A = TypeVar("A", bound=Asked)


def body(model: type[A], *, may_be_empty: bool = False) -> A:
    """The request's JSON body.

    Raises:
        BadRequest: it is no JSON object.
        BadInput: a value in it can not be used; names the field.
    """
    data = request.get_data(cache=False)
    try:
        values = {} if may_be_empty and not data else parse_object(data)
    except BadRecord as error:
        raise BadRequest(str(error)) from None
    return _checked(model, values)


def query(model: type[A]) -> A:
    """The request's query; each name once.

    Raises:
        BadInput: a name is not known, comes twice, or its value can not be used.
    """
    values: dict[str, Json] = {}
    for name, given in request.args.lists():
        if len(given) > 1:
            raise BadInput(f"{name[:40]}: expected one value, got {len(given)}", field=name[:40])
        values[name] = given[0]
    return _checked(model, values, strict=False)


def path_id(text: str) -> str:
    """An id out of the address, before it touches a file's name."""
    return check_id(text)


def _checked(model: type[A], values: dict[str, Json], *, strict: bool = True) -> A:
    try:
        return model.model_validate(values, strict=strict)
    except ValidationError as error:
        complaint = bad_record(error)
        raise BadInput(str(complaint), field=complaint.field) from None
