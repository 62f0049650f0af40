"""Columns of tables that are almost called as one that counts: without them another graph would be loaded."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace._errors import InvalidInput

OF_EDGES: Final = ("undirected", "closed", "edge_ids", "unlimited", "cost", "lower")
"""Columns that a table may have beside tail, head and capacity."""
OF_THE_GRAPH: Final = (
    "n_vertices",
    "vertex_labels",
    "source",
    "sink",
    "vertices",
    "vertex_capacity",
    "vertex_unlimited",
    "decimals",
    "cost_decimals",
)
"""What a mapping may have beside its columns of edges."""

ONE_LETTER_CHARS: Final = 6
"""Where a known name is as long, one letter more, less or other is a mistake; in a shorter one two that changed places
alone, as "costs" and "lowest" are names of their own."""

ORDINARY: Final = frozenset({"close", "closes", "closer", "edge_id", "edge_idx", "edgeids", "decimal", "sources"})
"""Names that are near a known one, and mean something else in many tables."""


def refuse_misspelt(table: Any, names: Iterable[Any], given: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` for a column that is almost called as one that a table may have, and this one has not: what
    is not known is left alone. What the caller says beside the table is not missing."""
    there = [name for name in names if isinstance(name, str)]
    named = {value for value in given.values() if isinstance(value, str)}
    known = OF_EDGES + OF_THE_GRAPH if isinstance(table, Mapping) else OF_EDGES
    for meant in known:
        if meant in there or given.get(meant) is not None:
            continue
        for name in there:
            if name not in ORDINARY and name not in named and is_slip(name, meant):
                way = f"say {meant}={name!r}" if meant in OF_EDGES and meant != "unlimited" else "call it so"
                told = f"the table has a column {name!r}: did you mean {meant!r}?"
                raise InvalidInput(f"{told} Then {way}; if it is something else, call it otherwise or leave it out")


def is_slip(name: str, meant: str) -> bool:
    """Whether two neighbouring letters have changed places, or, in a long name, one letter is too much, missing or
    another. A name in capitals is none."""
    if name.lower() == meant or abs(len(name) - len(meant)) > 1:
        return False
    same = next((at for at, (one, two) in enumerate(zip(name, meant, strict=False)) if one != two), len(meant))
    left, right = name[same:], meant[same:]
    if len(left) == len(right) and left[1::-1] + left[2:] == right:
        return True
    return len(meant) >= ONE_LETTER_CHARS and (left[1:] in (right, right[1:]) or left == right[1:])
