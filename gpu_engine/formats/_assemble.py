"""The last step of every reader: columns to a checked `EdgeList`."""

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow, InvalidNetwork, TooLarge, pointer
from gpu_engine.formats._capacity import Amounts
from gpu_engine.formats._names import Names, refuse_repeats
from gpu_engine.formats._place import ROWS, Place
from gpu_engine.formats._vertices import Limited, rising
from gpu_engine.formats.limits import Limits
from gpu_engine.formats.numbering import hint_of_names, refuse_likely_names
from gpu_engine.networks.coordinates import Coordinates, check_coordinates
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.rounded import UNROUNDED, Rounded
from gpu_engine.text.counted import counted
from gpu_engine.types import INFINITE, MAX_TOTAL, MAX_VERTICES, BoolArray, UnitArray


def assemble(
    tail: NDArray[np.integer],
    head: NDArray[np.integer],
    capacity: UnitArray,
    *,
    n_vertices: int | None,
    undirected: bool | BoolArray = False,
    decimals: int,
    edge_ids: Names | None = None,
    vertex_labels: Names | None = None,
    source: int | None = None,
    sink: int | None = None,
    place: Place = ROWS,
    first_vertex: int = 0,
    closed: BoolArray | None = None,
    costs: Amounts | None = None,
    lower: UnitArray | None = None,
    rounded: Rounded = UNROUNDED,
    limits: Limits,
    unique: bool = False,
    limited: Limited | None = None,
    coordinates: Coordinates | None = None,
) -> EdgeList:
    """Check lengths, vertex ranges, signs, limits and uniqueness; then narrow to the widths of `types`.

    `first_vertex` is subtracted from tails and heads (1 for formats that count from one). `n_vertices` None:
    one more than the largest index, or as many as have `coordinates` if these are more. `unique` says that the names
    are known to be.
    """
    check_edge_count(len(tail), limits)
    _check_lengths(len(tail), head=head, capacity=capacity, edge_ids=edge_ids, closed=closed)
    if costs is not None:
        _check_lengths(len(tail), cost=costs.units)
    if lower is not None:
        _check_lengths(len(tail), lower=lower)
        place.refuse(lower < 0, "is negative", what="lower")
        place.refuse(lower > MAX_TOTAL, "is too large", CapacityOverflow, what="lower")
    if not isinstance(undirected, bool):
        _check_lengths(len(tail), undirected=undirected)
    is_guessed = n_vertices is None and coordinates is None
    if n_vertices is None:
        largest = max(int(tail.max(initial=first_vertex - 1)), int(head.max(initial=first_vertex - 1)))
        n_vertices = max(largest - first_vertex + 1, 0 if coordinates is None else len(coordinates.x))
    check_vertex_count(n_vertices, limits, hint_of_names(n_vertices, len(tail)))
    if is_guessed:
        refuse_likely_names(n_vertices, len(tail))
    last = first_vertex + n_vertices - 1
    if vertex_labels is not None:  # before the ends, which may be numbers of labels that the caller never saw
        _check_count(n_vertices, vertex_labels)
    _check_ends(tail, head, first_vertex, last, place)
    place.refuse(capacity < 0, "is negative", what="capacity")
    overflow = (capacity > MAX_TOTAL) & (capacity != INFINITE)
    place.refuse(overflow, "is too large", CapacityOverflow, what="capacity")
    for name, terminal in (("source", source), ("sink", sink)):
        _check_terminal(name, terminal, n_vertices, first_vertex)
    vertices, vertex_capacity = rising(limited, n_vertices)
    _check_names(edge_ids, vertex_labels, unique, place)
    check_coordinates(coordinates, n_vertices)
    return EdgeList(
        n_vertices=n_vertices,
        tail=(tail - first_vertex).astype(np.int32),
        head=(head - first_vertex).astype(np.int32),
        capacity=capacity.astype(np.int64, copy=False),
        undirected=undirected,
        decimals=decimals,
        edge_ids=edge_ids,
        vertex_labels=vertex_labels,
        source=source,
        sink=sink,
        closed=closed if closed is not None and closed.any() else None,
        cost=None if costs is None else costs.units,
        cost_decimals=0 if costs is None else costs.decimals,
        lower=lower,
        limited=vertices,
        vertex_capacity=vertex_capacity,
        coordinates=coordinates,
        rounded=rounded,
        rounded_costs=UNROUNDED if costs is None else costs.rounded,
    )


def _check_ends(
    tail: NDArray[np.integer], head: NDArray[np.integer], first_vertex: int, last: int, place: Place
) -> None:
    for name, end in (("tail", tail), ("head", head)):
        outside = (end < first_vertex) | (end > last)
        if outside.any():
            hint = _counted(tail, head, first_vertex, last)
            place.refuse(
                outside, f"is no vertex {first_vertex} .. {last}", what=name, value_of=end.__getitem__, hint=hint
            )


def _check_terminal(name: str, terminal: int | None, n_vertices: int, first_vertex: int) -> None:
    if terminal is not None and not 0 <= terminal < n_vertices:
        named = terminal + first_vertex
        detail = f"{name} {named} is no vertex {first_vertex} .. {first_vertex + n_vertices - 1}"
        raise InvalidNetwork(detail, vertices=[named], field=pointer(name))


def _counted(tail: NDArray[np.integer], head: NDArray[np.integer], first: int, last: int) -> str:
    """A hint where somebody seems to count vertices from the other of 0 and 1."""
    smallest = min(int(end.min(initial=last)) for end in (tail, head))
    largest = max(int(end.max(initial=first)) for end in (tail, head))
    one_off = (smallest, largest) == (first + 1, last + 1) if first == 0 else (smallest, first) == (0, 1)
    return f"; vertices count from {first} here" if one_off else ""


def check_edge_count(n_edges: int, limits: Limits) -> None:
    """Raise `TooLarge` for more edges than the limit."""
    if n_edges > limits.max_edges:
        raise TooLarge(f"{n_edges} edges are more than the limit of {limits.max_edges} (max_edges)")


def check_vertex_count(n_vertices: int, limits: Limits, hint: str = "") -> None:
    """Raise `TooLarge` for more vertices than the limit or than 32 bits can number; ``hint`` ends the sentence.

    Raises `InvalidNetwork` for a negative number.
    """
    limit = min(limits.max_vertices, MAX_VERTICES)
    if n_vertices < 0:
        raise InvalidNetwork(f"n_vertices is negative: {n_vertices}")
    if n_vertices > limit:
        raise TooLarge(f"{n_vertices} vertices are more than the limit of {limit} (max_vertices){hint}")


def _check_lengths(n_edges: int, **columns: Names | NDArray[np.generic] | None) -> None:
    for name, column in columns.items():
        if column is not None and len(column) != n_edges:
            raise InvalidNetwork(f"{name} has {counted(len(column), 'row')}, tail has {n_edges}", field=pointer(name))


def _check_count(n_vertices: int, labels: Names) -> None:
    if len(labels) != n_vertices:
        detail = f"n_vertices is {n_vertices}, and there are {counted(len(labels), 'label')}: each vertex has one"
        raise InvalidNetwork(detail, field="/vertex_labels")


def _check_names(edge_ids: Names | None, vertex_labels: Names | None, unique: bool, place: Place) -> None:
    if edge_ids is not None and not unique:
        refuse_repeats(edge_ids, "edge id", "edges", place)
    if vertex_labels is not None and not unique:
        refuse_repeats(vertex_labels, "vertex label", "vertices")
