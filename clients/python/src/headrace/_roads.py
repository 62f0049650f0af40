"""Street networks of OSMnx as graphs. OSMnx is not needed: its graphs are NetworkX MultiDiGraphs."""

import re
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from headrace._amounts import Amount
from headrace._columns import GraphColumns
from headrace._errors import InvalidInput
from headrace._places import places_of_nodes

Street: TypeAlias = Mapping[str, Any]
"""The attributes of an edge of OSMnx."""

ONE_WAY = frozenset({"true", "yes", "1", "-1"})
NUMBER = re.compile(r"\d+")
COST_PLACES = 3
"""Milliseconds of travel time, millimetres of length."""


class Roads:
    """A graph for `put_graph`, made by `from_osmnx`: vertices are called by their OSM ids, edges by their rows."""

    def __init__(self, columns: GraphColumns, edges: list[tuple[Hashable, ...]], x: Any, y: Any) -> None:
        self.columns = columns
        """What `put_graph` takes."""
        self.edges = edges
        """(u, v, key) of each row: `roads.edges[row]` is the street of an answer's edge."""
        self.rows = {edge: row for row, edge in enumerate(edges)}
        """Row of each (u, v, key)."""
        self.x: NDArray[np.float64] = np.asarray(x, np.float64)
        """By vertex, in the order of the nodes: longitude, or as the graph was projected; NaN where it has none."""
        self.y: NDArray[np.float64] = np.asarray(y, np.float64)


def lanes(street: Street) -> int:
    """Lanes in one direction, at least 1: what `lanes` says, halved where the street is no one-way street.

    OSMnx has a list where it has joined streets with different numbers, and a tag may have several, as in 3;2: the
    least of them is what gets through. A tag without a number, and no tag, count as one lane for each direction.
    """
    tags = [part for tag in _tags(street, "lanes") for part in str(tag).split(";")]
    numbers = [int(found.group()) for tag in tags if (found := NUMBER.match(tag.strip()))]
    is_one_way = all(tag in (True, -1) or str(tag).lower() in ONE_WAY for tag in _tags(street, "oneway"))
    least = min(numbers, default=1 if is_one_way else 2)
    return max(least if is_one_way else least // 2, 1)


def _tags(street: Street, name: str) -> list[Any]:
    """What a street has of this name: one, or a list where OSMnx has joined some."""
    given = street.get(name)
    return list(given) if isinstance(given, list | tuple | set) else [given]


def from_osmnx(G: Any, *, capacity: str | Callable[[Street], Amount] = lanes, cost: str | None = None) -> Roads:
    """A street network that OSMnx has made, with its parallel streets, for `put_graph`. Its coordinates go with it if
    all nodes have some.

    Args:
        capacity: of an edge, from its attributes; or the attribute that has it. By default its lanes; of vehicles an
            hour it is, say, ``lambda street: 1800 * lanes(street)``.
        cost: the attribute with the cost of an edge, kept to three places: by default `travel_time`, if there is any.

    Raises `InvalidInput` with the first street that has no capacity or cost.
    """
    if not (hasattr(G, "is_multigraph") and G.is_multigraph()):
        raise InvalidInput("a graph of OSMnx is a MultiDiGraph, or a MultiGraph: send others to put_graph as they are")
    streets = [(tuple(edge), data) for *edge, data in G.edges(keys=True, data=True)]
    if cost is None and any("travel_time" in data for _, data in streets):
        cost = "travel_time"
    columns: GraphColumns = {
        "tail": [u for (u, _, _), _ in streets],
        "head": [v for (_, v, _), _ in streets],
        "capacity": [_capacity(edge, data, capacity) for edge, data in streets],
        "undirected": not G.is_directed(),
        "vertex_labels": list(G.nodes),
    }
    if cost is not None:
        columns["cost"] = [round(float(_attribute(edge, data, cost)), COST_PLACES) for edge, data in streets]
    columns |= places_of_nodes(G, list(G.nodes), {"crs": G.graph.get("crs", "EPSG:4326")})  # type: ignore[typeddict-item]  # of these
    ends = [[data.get(axis, np.nan) for _, data in G.nodes(data=True)] for axis in ("x", "y")]
    return Roads(columns, [edge for edge, _ in streets], *ends)


def _capacity(edge: tuple[Hashable, ...], street: Street, capacity: str | Callable[[Street], Amount]) -> Amount:
    found: Any = _attribute(edge, street, capacity) if isinstance(capacity, str) else capacity(street)
    if found is None:
        raise InvalidInput(f"the street {edge} has no capacity")
    return found  # type: ignore[no-any-return]  # what put_graph checks


def _attribute(edge: tuple[Hashable, ...], street: Street, name: str) -> Any:
    if street.get(name) is None:
        raise InvalidInput(f"the street {edge} has no attribute {name!r}")
    return street[name]
