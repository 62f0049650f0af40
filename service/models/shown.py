"""Options of fields: how a field of the answer is shown, which says nothing where the field is not asked for."""

from collections.abc import Collection
from typing import Final

from pydantic import BaseModel

from service.errors import ServiceError

OPTIONS: Final = (("cut", "near"), ("cut", "sides"), ("flow", "zeros"), ("bottlenecks", "up_to"))
"""A field, and an option that changes what is shown of it and nothing else. `paths.top` is none of these: it bounds an
answer, and older shells send it with every question."""


def refuse_unshown(body: BaseModel, fields: Collection[str]) -> None:
    """Raise invalid_body for an option that is other than by default, of a field that is not among the ``fields`` of
    the answer: whoever says it waits for that field."""
    for field, option in OPTIONS:
        options: BaseModel | None = getattr(body, field, None)
        if options is None or field in fields or option not in type(options).model_fields:
            continue
        if getattr(options, option) != type(options).model_fields[option].default:
            detail = f"`{field}.{option}` says how `{field}` is shown, which is not among the `fields` asked for"
            raise ServiceError("invalid_body", detail, field=f"/{field}/{option}")
