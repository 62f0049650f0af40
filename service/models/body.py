"""The base of all JSON bodies, and the one way in: bytes -> exact JSON -> strict model."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from gpu_engine.errors import ROWS_SHOWN
from service.errors import ServiceError
from service.models.numbers import loads_exact


class Body(BaseModel):
    """Strict: unknown fields are refused, `true` is no number, "1" is no number."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


B = TypeVar("B", bound=Body)


def parse_body(model: type[B], body: bytes | bytearray | memoryview) -> B:
    """Read a JSON object into `model`; raises `ServiceError` invalid_body naming the fields at fault."""
    members = loads_exact(body)
    if not isinstance(members, dict):
        raise ServiceError("invalid_body", "the body is a JSON object")
    try:
        return model.model_validate(members)
    except ValidationError as error:
        raise ServiceError("invalid_body", explain(error)) from None


def explain(error: ValidationError) -> str:
    """One line for a caller: each field at fault (at most ten) and what is wrong with it."""
    parts = []
    for item in error.errors(include_url=False, include_input=False, include_context=False)[:ROWS_SHOWN]:
        place = ".".join(map(str, item["loc"])) or "body"
        parts.append(f"{place}: {item['msg'].removeprefix('Value error, ')}")
    return "; ".join(parts)
