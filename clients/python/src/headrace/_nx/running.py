"""Which calls the backend can answer, and why not the others."""

from collections.abc import Mapping, Sequence
from typing import Any

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("maximum_flow", "maximum_flow_value", "minimum_cut", "minimum_cut_value"),
        ("flowG", "_s", "_t", "capacity", "flow_func"),
    ),
    "max_flow_min_cost": ("G", "s", "t", "capacity", "weight"),
    **dict.fromkeys(("network_simplex", "min_cost_flow", "min_cost_flow_cost"), ("G", "demand", "capacity", "weight")),
    "capacity_scaling": ("G", "demand", "capacity", "weight", "heap"),
    "gomory_hu_tree": ("G", "capacity", "flow_func"),
    "stoer_wagner": ("G", "weight", "heap"),
    **dict.fromkeys(("hopcroft_karp_matching", "eppstein_matching"), ("G", "top_nodes")),
}
"""What each function takes by position."""

ATTRIBUTES = ("capacity", "weight", "demand")
OF_FUNCTIONS = frozenset({"maximum_flow", "maximum_flow_value", "minimum_cut", "minimum_cut_value", "gomory_hu_tree"})
"""Whose capacity may be a function, as in NetworkX from 3.7 on."""
ANSWERED = frozenset({"flowG", "_s", "_t", "G", "s", "t", "top_nodes", "heap", *ATTRIBUTES})
WHY_NOT: Mapping[str, str] = {
    "flow_func": "flow_func= names an algorithm of NetworkX's own",
    "residual": "residual= is a network in which NetworkX's own algorithms leave their flow",
}


def can_run(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool | str:
    """True, or the reason why the service cannot answer this call: NetworkX logs it and goes on to the next backend."""
    parameters = PARAMETERS.get(name)
    if parameters is None:
        return f"{name} is no question of the service"
    for parameter, value in {**dict(zip(parameters, args, strict=False)), **kwargs}.items():
        of_function = parameter == "capacity" and name in OF_FUNCTIONS and callable(value)
        if parameter in ATTRIBUTES and not isinstance(value, str) and not of_function:
            return f"{parameter}= names an attribute, it is not {type(value).__name__}"
        if parameter not in ANSWERED and value is not None:
            return WHY_NOT.get(parameter, f"{parameter}= steers NetworkX's own algorithms")
    return True
