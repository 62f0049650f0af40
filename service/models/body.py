"""The base of all JSON bodies, and the one way in: bytes -> exact JSON -> strict model."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from service.errors import ServiceError
from service.models.faults import refusal
from service.models.flat import Kind, read_flat
from service.models.numbers import loads_exact


class Body(BaseModel):
    """The base of strict models: unknown fields are refused, `true` is no number, "1" is no number."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


B = TypeVar("B", bound=Body)


def parse_body(
    model: type[B],
    body: bytes | bytearray | memoryview,
    columns: Mapping[str, Kind] = MappingProxyType({}),
    look: Callable[[dict[str, Any]], None] | None = None,
) -> B:
    """Read a JSON object into `model`; raises `ServiceError` invalid_body naming the fields at fault.

    `columns` are members that may be long, and are read as arrays if they are plain. `look` may refuse the members
    before they become a model, which takes far longer than to read them.
    """
    members = (read_flat(body, columns) if columns else None) or loads_exact(body)
    if not isinstance(members, dict):
        given = "an array" if isinstance(members, list) else "a single value"
        example = ", as in {'edges': ['a'], 'set': [4]}".replace("'", '"') if "edges" in model.model_fields else ""
        raise ServiceError("invalid_body", f"the body has to be a JSON object{example}, not {given}")
    if look is not None:
        look(members)
    try:
        return model.model_validate(members)
    except ValidationError as error:
        raise refusal(model, error) from None
