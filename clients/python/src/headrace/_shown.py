"""Options of the fields of an answer: how each is shown."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headrace._errors import InvalidInput
from headrace._mistakes import one_or_many

SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "flow": ("zeros", "acyclic"),
    "cut": ("near", "sides"),
    "paths": ("top",),
    "bottlenecks": ("up_to",),
}
"""Which options each member of a question has."""


def shown(options: Mapping[str, Any]) -> dict[str, object]:
    """The members of a question that say how its fields are shown. Raises `InvalidInput` for `top` without paths."""
    refuse_top(options)
    members: dict[str, object] = {}
    for member, names in SHOWN.items():
        if said := {name: options[name] for name in names if name in options}:
            members[member] = said
    return members


def refuse_top(options: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for `top` where no paths are asked for: the service refuses any such option but this one."""
    if "top" in options and "paths" not in one_or_many(options.get("fields") or ()):
        raise InvalidInput("top= says how many paths are shown, and 'paths' is not among the fields asked for")


def refuse_shown(what: str, options: Mapping[str, Any], others: Sequence[str]) -> None:
    """Raise `InvalidInput` for the first of the `others` that is given: ``what`` is answered has nothing of it."""
    for name in others:
        if name in options:
            raise InvalidInput(f"{what}: {name}= is for max_flow()")
