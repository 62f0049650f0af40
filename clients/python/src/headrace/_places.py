"""Coordinates of vertices, as callers have them, and as they are sent; and flows as maps."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headrace._errors import InvalidInput
from headrace._mistakes import refuse_missing, refuse_set

MAX_CRS_CHARS: Final = 64
GEOJSON: Final = {"Accept": "application/geo+json"}


def place_column(column: Any, name: str) -> NDArray[np.float64]:
    """x or y of vertices. Raises `InvalidInput` for what is no column of finite numbers."""
    refuse_set(column, name)
    wanted = f"{name} is a column with one number for each vertex"
    if isinstance(column, str | Mapping) or not hasattr(column, "__len__"):
        raise InvalidInput(f"{wanted}, not {column!r:.80}")
    refuse_missing(column, name)
    if {bool, str} & set(map(type, column if isinstance(column, list | tuple) else ())):
        raise InvalidInput(f"{wanted}, not {column!r:.80}")
    try:
        numbers = np.asarray(column)
        if numbers.dtype.kind not in "iufO" or numbers.ndim != 1:
            raise InvalidInput(f"{wanted}, not {column!r:.80}")
        floats = numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{wanted}: {error}") from error
    odd = np.flatnonzero(~np.isfinite(floats))
    if len(odd):
        raise InvalidInput(f"row {odd[0]}: {name} is not finite ({floats[odd[0]]})")
    return floats


def crs_text(crs: Any) -> str:
    """The name of a coordinate reference system: a text, or what pyproj has. Raises `InvalidInput`."""
    text = crs.to_string() if hasattr(crs, "to_string") else crs
    if not isinstance(text, str) or not 0 < len(text) <= MAX_CRS_CHARS:
        raise InvalidInput(f"crs is a text of at most {MAX_CRS_CHARS} characters, as in 'EPSG:4326', not {text!r:.80}")
    return text


def places_of_nodes(graph: Any, nodes: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """`places` of the nodes of a NetworkX graph, in this order."""

    def column_of(name: str) -> list[Any]:
        return [graph.nodes[node].get(name) for node in nodes]

    return places(nodes, column_of, graph.graph.get("crs"), given)


def places(
    nodes: Sequence[Any], column_of: Callable[[str], list[Any]], crs: Any, given: Mapping[str, Any]
) -> dict[str, Any]:
    """x, y and crs of the nodes of a graph: the attributes that `x` and `y` name; by default "x" and "y", if all nodes
    have them and the graph or the caller says of which `crs` they are, as OSMnx does. ``column_of`` an attribute there
    is one value for each node, None where it has none."""
    crs = crs if given.get("crs") is None else given["crs"]
    names = {axis: given.get(axis) for axis in ("x", "y")}
    if any(name is not None for name in names.values()):
        found = {
            axis: _named(nodes, column_of, name) if isinstance(name, str) else name for axis, name in names.items()
        }
        return found | ({} if crs is None else {"crs": crs_text(crs)})
    columns = {axis: column_of(axis) for axis in ("x", "y")}
    if crs is None or not all(_is_place(value) for column in columns.values() for value in column):
        return {}
    try:
        return columns | {"crs": crs_text(crs)}
    except InvalidInput:
        if given.get("crs") is not None:
            raise
        return {}  # a system without a short name, which nobody has asked for


def _named(nodes: Sequence[Any], column_of: Callable[[str], list[Any]], name: str) -> list[Any]:
    column = column_of(name)
    if None in column:
        raise InvalidInput(f"the node {nodes[column.index(None)]!r} has no attribute {name!r}")
    return column


def _is_place(value: Any) -> bool:
    is_number = isinstance(value, int | float | Decimal | np.number) and not isinstance(value, bool)
    return is_number and bool(np.isfinite(float(value)))


def as_floats(body: Any) -> Any:
    """JSON with floats in place of decimals, as `json.dump` writes it and maps read it."""
    match body:
        case dict():
            return {name: as_floats(value) for name, value in body.items()}
        case list():
            return [as_floats(value) for value in body]
        case Decimal():
            return float(body)
    return body
