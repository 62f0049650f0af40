"""What formats hold of vertices beside their edges: labels, coordinates, capacities of some."""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, HasVertexCapacities, InvalidNetwork, pointer
from gpu_engine.formats import _capacity
from gpu_engine.formats._beyond import as_in, refuse_beyond
from gpu_engine.formats._capacity import Amounts
from gpu_engine.formats._names import Names, as_arrow, from_arrow
from gpu_engine.formats._place import ROWS, Place, shown
from gpu_engine.networks.coordinates import Coordinates, coordinates_of
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounding import Precision
from gpu_engine.text.counted import counted
from gpu_engine.types import INFINITE, MAX_TOTAL, BoolArray, UnitArray, VertexArray

VERTEX_ROWS: Final = Place(amounts="vertex_capacity")
COLUMNS: Final = ("label", "capacity", "unlimited", "x", "y")
"""Those of the second Arrow stream. A release before coordinates refuses one that has some."""


@dataclass(frozen=True, slots=True)
class Vertices:
    """What a stream with one row for each vertex says of them."""

    labels: Names | None = None
    limited: "Limited | None" = None
    coordinates: Coordinates | None = None


@dataclass(frozen=True, slots=True)
class Limited:
    """The vertices that have a capacity, int64[k] indices in any order, and which."""

    vertices: NDArray[np.int64]
    amounts: Amounts


def from_numbers(
    vertices: NDArray[Any],
    column: NDArray[Any],
    own_decimals: int | None,
    precision: Precision,
    unlimited: BoolArray | None,
) -> Limited:
    """Floats, or integers: units of the body's own decimals. Raises `InvalidNetwork` or `CapacityOverflow`."""
    precision = precision.of_body(own_decimals)
    if column.dtype.kind == "f":
        amounts = _capacity.from_floats(column, VERTEX_ROWS, precision, unlimited)
    else:
        amounts = _capacity.from_units(column, VERTEX_ROWS, own_decimals, precision, unlimited)
    return Limited(vertices.astype(np.int64), amounts)


def together(amounts: Amounts, limited: Limited | None) -> tuple[Amounts, Limited | None]:
    """Capacities of edges and of vertices in units of the same decimals, the finer ones, and all that was rounded.

    Raises `CapacityOverflow`.
    """
    if limited is None:
        return amounts, None
    decimals = max(amounts.decimals, limited.amounts.decimals)
    of_edges = finer(amounts, decimals, ROWS, VERTEX_ROWS.amounts)
    of_vertices = finer(limited.amounts, decimals, VERTEX_ROWS, ROWS.amounts)
    of_edges = replace(of_edges, rounded=amounts.rounded + limited.amounts.rounded)
    return of_edges, Limited(limited.vertices, of_vertices)


def finer(amounts: Amounts, decimals: int, place: Place, other: str) -> Amounts:
    """The amounts in units of so many decimals, no fewer than theirs, as another column has them. Raises
    `CapacityOverflow`."""
    scale, unlimited = 10 ** (decimals - amounts.decimals), amounts.units == INFINITE
    finite = np.where(unlimited, 0, amounts.units)
    refuse_beyond(finite > MAX_TOTAL // scale, place, lambda: as_in(decimals, other))
    return Amounts(np.where(unlimited, INFINITE, finite * scale), decimals, amounts.rounded)


def rising(limited: Limited | None, n_vertices: int) -> tuple[VertexArray | None, UnitArray | None]:
    """int32[k] and int64[k] as `EdgeList` holds them, where capacities of no vertex are none. Raises `InvalidNetwork`
    for a vertex that is none, or is there twice, and for an amount that is none."""
    if limited is None or not len(limited.vertices) + len(limited.amounts.units):
        return None, None
    vertices, units = limited.vertices, limited.amounts.units
    if len(vertices) != len(units):
        detail = f"vertex_capacity has {counted(len(units), 'row')}, vertices has {len(vertices)}"
        raise InvalidNetwork(detail, field="/vertex_capacity")
    outside = (vertices < 0) | (vertices >= n_vertices)
    VERTEX_ROWS.refuse(outside, f"is no vertex 0 .. {n_vertices - 1}", what="vertices", value_of=vertices.__getitem__)
    VERTEX_ROWS.refuse(units < 0, "is negative", what="vertex_capacity")
    overflow = (units > MAX_TOTAL) & (units != INFINITE)
    VERTEX_ROWS.refuse(overflow, "is too large", CapacityOverflow, what="vertex_capacity")
    order = np.argsort(vertices, kind="stable")
    found = vertices[order]
    twice = order[1:][found[1:] == found[:-1]]
    if len(twice):
        row = int(twice.min())
        raise InvalidNetwork(f"row {row}: the vertex has a capacity already", rows=[row], field="/vertices")
    return found.astype(np.int32), units[order]


def from_table(
    table: pa.Table, own_decimals: int | None, precision: Precision, crs: str | None, *, packed: bool
) -> Vertices:
    """Labels, capacities and coordinates from a stream with one row for each vertex: a vertex without a capacity has a
    null.

    ``packed`` says that `table_of` wrote it so. Raises `InvalidNetwork` or `CapacityOverflow`.
    """
    names = table.column_names
    if not names or len(set(names)) < len(names) or not set(names) <= set(COLUMNS) or names == ["unlimited"]:
        wanted = "'label', 'capacity' or both, and 'unlimited', or 'x' and 'y'"
        raise InvalidNetwork(f"the second stream must have the columns {wanted}, not {shown(names)}")
    labels = from_arrow(table.column("label").combine_chunks(), "label") if "label" in names else None
    x, y = (_floats(table, name) if name in names else None for name in ("x", "y"))
    coordinates = coordinates_of(x, y, crs)
    if "capacity" not in names:
        return Vertices(labels, None, coordinates)
    limited = _limited(table, own_decimals, precision, packed=packed)
    return Vertices(labels, limited, coordinates)


def _floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    column = table.column(name).combine_chunks()
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidNetwork(f"{name} must be numbers, not {column.type}", field=pointer(name))
    ROWS.refuse(column.is_null().to_numpy(zero_copy_only=False), "is null", what=name)
    numbers: NDArray[np.float64] = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def _limited(table: pa.Table, own_decimals: int | None, precision: Precision, *, packed: bool) -> Limited:
    column = table.column("capacity").combine_chunks()
    there = column.is_valid().to_numpy(zero_copy_only=False)
    vertices, column = np.flatnonzero(there), column.drop_null()
    unlimited = None
    if "unlimited" in table.column_names:
        flags = table.column("unlimited").combine_chunks()
        if not pa.types.is_boolean(flags.type) or flags.null_count:
            raise InvalidNetwork("unlimited must be boolean, without nulls", field="/unlimited")
        unlimited = flags.to_numpy(zero_copy_only=False)[there]
    if pa.types.is_decimal128(column.type):
        amounts = _capacity.from_decimals(column, VERTEX_ROWS, precision.of_body(own_decimals), unlimited)
        return Limited(vertices, amounts)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidNetwork(f"capacity must be integer, decimal128 or float64, not {column.type}", field="/capacity")
    numbers = column.to_numpy(zero_copy_only=False)
    if packed:
        return Limited(vertices, Amounts(numbers.astype(np.int64), own_decimals or 0))
    return from_numbers(vertices, numbers, own_decimals, precision, unlimited)


def table_of(edges: EdgeList, *, packed: bool) -> pa.Table | None:
    """The inverse of `from_table`; None if there is nothing to say of vertices."""
    columns: dict[str, Any] = {}
    if edges.vertex_labels is not None:
        columns["label"] = as_arrow(edges.vertex_labels)
    if edges.limited is not None and edges.vertex_capacity is not None:
        dense, bare = np.zeros(edges.n_vertices, np.int64), np.ones(edges.n_vertices, np.bool_)
        dense[edges.limited], bare[edges.limited] = edges.vertex_capacity, False
        if not packed:
            dense, unlimited = _capacity.split_unlimited(dense)
            columns |= {} if unlimited is None else {"unlimited": unlimited}
        columns["capacity"] = pa.array(dense, mask=bare)
    if edges.coordinates is not None:
        columns |= {"x": edges.coordinates.x, "y": edges.coordinates.y}
    return pa.table(columns) if columns else None


def refuse_limited(edges: EdgeList, form: str) -> None:
    """Raises `HasVertexCapacities` for a network that this format would change: not for one whose vertices with
    capacities are all deleted."""
    if edges.limited is not None and len(edges.limited):
        raise HasVertexCapacities(f"{form} has no place for the capacities of vertices, which npz and Arrow have")
