"""Options of fields: how a field of the answer is shown, which says nothing where the field is not asked for."""

from collections.abc import Collection, Mapping
from typing import Final

from pydantic import BaseModel

from service.errors import ServiceError

OPTIONS: Final[Mapping[tuple[str, str], Collection[str]]] = {
    ("cut", "near"): ("cut",),
    ("cut", "sides"): ("cut",),
    ("flow", "zeros"): ("flow",),
    ("flow", "acyclic"): ("flow", "terminals"),
    ("bottlenecks", "up_to"): ("bottlenecks",),
}
"""A member and an option of it that changes what is shown and nothing else, and the fields that show it. `paths.top` is
none of these: it bounds an answer, and older shells send it with every question."""


def refuse_unshown(body: BaseModel, fields: Collection[str]) -> None:
    """Raise invalid_body for an option that is other than by default, of a field that is not among the ``fields`` of
    the answer: whoever says it waits for that field."""
    for (member, option), shows in OPTIONS.items():
        options: BaseModel | None = getattr(body, member, None)
        if options is None or not set(shows).isdisjoint(fields) or option not in type(options).model_fields:
            continue
        if getattr(options, option) != type(options).model_fields[option].default:
            asked = " or ".join(f"`{field}`" for field in shows)
            detail = f"`{member}.{option}` says how {asked} is shown, which is not among the `fields` asked for"
            raise ServiceError("invalid_body", detail, field=f"/{member}/{option}")
