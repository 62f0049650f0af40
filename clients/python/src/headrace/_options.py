"""Keyword options by name: one that is not known is an error that says which was meant, never dropped in silence."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, getmembers, isfunction, signature
from typing import Any, TypeVar

T = TypeVar("T")

ELSEWHERE: Mapping[str, str] = {
    "sources": "use source=, for one vertex or many",
    "sinks": "use sink=, for one vertex or many",
    "flow": "use zeros=True to list edges without flow, and fields=['flow'] for the flow itself",
    "bottlenecks": "use up_to=10, and fields=['bottlenecks']",
    "from_": "use start=",
    "lower_bounds": "use lower={edge: amount}",
    "min_flow": "use lower={edge: amount} for edges, min_supply= and min_demand= for terminals",
    "if_match": "use if_version=7",
    "op": "use close() and reopen()",
    "batch": "use apply() with one Update for each operation",
    "tail": "use patch_endpoints(tail=..., head=...)",
    "head": "use patch_endpoints(tail=..., head=...)",
    "labels": "use vertex_labels=",
    "directed": "use undirected=False, or leave it out",
    "weight": "use capacity=",
    "decimals": "a graph's decimals are fixed when it is loaded: put_graph(decimals=...); rounding= is for each update",
    "if_none_match": "use must_be_new=True",
    "wait": "it returns with its answer; stream=True of what_if, closure_study and pairs gives rows as they come",
    "replace": "use must_be_new=True to replace no graph",
}
"""Names of the REST API and of other libraries, and what this client has for them."""


def check_options(what: str, given: Iterable[str], known: Iterable[str], others: Iterable[str] = ()) -> None:
    """Raise `TypeError` for the first name that is not `known`.

    Args:
        what: the method, as callers write it.
        others: further parameters of the method, which may have been meant as well.
    """
    names = list(known)
    for name in given:
        if name in names:
            continue
        near = get_close_matches(name, [*names, *others], 1)
        if name in ELSEWHERE:
            hint = ELSEWHERE[name]
        elif near and near[0] != name:
            hint = f"did you mean {near[0]!r}?"
        else:
            hint = f"the options are {', '.join(names)}"
        raise TypeError(f"{what} has no option {name!r}: {hint}")


def suggesting(cls: type[T]) -> type[T]:
    """Have the methods of a class, inherited ones too, and the class itself, refuse unknown keywords as `check_options`
    does: Python names the wrong one alone. Methods that take any keyword check theirs."""
    for name, method in getmembers(cls, isfunction):
        if method.__module__.startswith("headrace.") and (name == "__init__" or not name.startswith("_")):
            parameters = signature(method).parameters.values()
            if not any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters):
                known = [each.name for each in parameters if each.kind is not Parameter.POSITIONAL_ONLY][1:]
                what = cls.__name__ if name == "__init__" else f"{name}()"
                setattr(cls, name, _suggesting(method, what, known))
    return cls


def _suggesting(method: Callable[..., Any], what: str, known: list[str]) -> Callable[..., Any]:
    @wraps(method)
    def checked(self: object, *args: Any, **options: Any) -> Any:
        check_options(what, options, known)
        return method(self, *args, **options)

    return checked
