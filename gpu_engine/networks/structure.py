"""What a change of structure consists of: vertices and edges that are inserted, and such that are deleted.

Rows are never given twice. An inserted vertex or edge has the next one, and the row of a deleted edge stays: it has no
capacity, no question names it, and its id is not given to another edge. So does the row of a deleted vertex, which has
no edges. That lets a capacity, a flow or a name be kept by row through all changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.coordinates import Coordinates, Floats
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.text.names import joined
from gpu_engine.text.taken import take_texts
from gpu_engine.text.texts import Texts
from gpu_engine.types import BoolArray, EdgeArray, UnitArray, VertexArray

NO_ROWS: EdgeArray = np.empty(0, np.int64)
_NO_VERTICES: VertexArray = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True)
class Structure:
    """A change that was checked. The capacities that edges get, or lose, are a change of capacities beside it."""

    n_vertices: int = 0
    """How many vertices are inserted, as the last ones."""
    vertex_labels: NDArray[np.int64] | Sequence[str] | None = None
    """Their names; None where the vertices of the network are numbered."""
    tail: VertexArray = field(default_factory=lambda: _NO_VERTICES)
    """int32[k], the tails of the inserted edges, which become the last rows."""
    head: VertexArray = field(default_factory=lambda: _NO_VERTICES)
    undirected: BoolArray = field(default_factory=lambda: np.empty(0, np.bool_))
    edge_ids: NDArray[np.int64] | Sequence[str] | None = None
    """Their ids; None where the edges of the network are numbered."""
    cost: UnitArray | None = None
    """int64[k], their costs; None where the edges have none."""
    lower: UnitArray | None = None
    """int64[k], their lower bounds; None: they have none."""
    deleted: EdgeArray = field(default_factory=lambda: NO_ROWS)
    """Rising rows of the edges that are deleted."""
    revived: EdgeArray = field(default_factory=lambda: NO_ROWS)
    """Rising rows of deleted edges that are there again, as an earlier version had them."""
    x: Floats | None = None
    """float64[...] with `y`: where the inserted vertices lie; None where the vertices of the network lie nowhere, and
    where none is inserted."""
    y: Floats | None = None
    deleted_vertices: VertexArray = field(default_factory=lambda: _NO_VERTICES)
    """int32[k], rising: vertices that are deleted; their edges are among `deleted`."""
    revived_vertices: VertexArray = field(default_factory=lambda: _NO_VERTICES)
    """int32[k], rising: deleted vertices that are there again."""

    @property
    def n_edges(self) -> int:
        """How many edges are inserted."""
        return len(self.tail)

    @property
    def grows(self) -> bool:
        """Whether anything is inserted."""
        return self.n_edges > 0 or self.n_vertices > 0


def since_load(network: Network, cost: UnitArray | None) -> Structure | None:
    """All that the network has beyond what it was made of, as one change; None: nothing. ``cost`` int64[m]. O(m)."""
    n_vertices, n_edges = network.loaded
    marks = len(network.deleted) + len(network.deleted_vertices)
    if network.loaded == (network.n_vertices, network.n_edges) and not marks:
        return None
    rows = np.arange(n_edges, network.n_edges)
    vertices = np.arange(n_vertices, network.n_vertices)
    return Structure(
        n_vertices=len(vertices),
        vertex_labels=None if network.vertex_labels.column is None else network.vertex_labels.take(vertices),
        x=None if network.coordinates is None else network.coordinates.x[n_vertices:],
        y=None if network.coordinates is None else network.coordinates.y[n_vertices:],
        tail=network.edge_tail(rows),
        head=network.edge_head(rows),
        undirected=np.array(network.is_undirected(rows)),
        edge_ids=None if network.edge_ids.column is None else network.edge_ids.take(rows),
        cost=None if cost is None else cost[rows],
        deleted=np.flatnonzero(network.deleted),
        deleted_vertices=np.flatnonzero(network.deleted_vertices).astype(np.int32),
    )


def with_inserted(edges: EdgeList, changes: Sequence[Structure]) -> EdgeList:
    """The edges with all that was inserted, at capacity 0, the edges that were deleted among them. Where anything was,
    without lower bounds: those of all that ever were may be too much together. O(n + m)."""
    changes = [change for change in changes if change.grows]
    if not changes:
        return edges
    n_more = sum(change.n_edges for change in changes)
    m = edges.n_edges
    undirected = [np.broadcast_to(edges.undirected, m), *(change.undirected for change in changes)]
    zeros = np.zeros(n_more, np.int64)
    costs = [change.cost for change in changes if change.cost is not None]
    return EdgeList(
        n_vertices=edges.n_vertices + sum(change.n_vertices for change in changes),
        tail=np.concatenate([edges.tail, *(change.tail for change in changes)]),
        head=np.concatenate([edges.head, *(change.head for change in changes)]),
        capacity=np.concatenate([edges.capacity, zeros]),
        undirected=alike(np.concatenate(undirected)),
        decimals=edges.decimals,
        edge_ids=joined(edges.edge_ids, [change.edge_ids for change in changes]),
        vertex_labels=joined(edges.vertex_labels, [change.vertex_labels for change in changes]),
        source=edges.source,
        sink=edges.sink,
        closed=None if edges.closed is None else np.concatenate([edges.closed, zeros.astype(np.bool_)]),
        cost=None if edges.cost is None else np.concatenate([edges.cost, *costs]),
        cost_decimals=edges.cost_decimals,
        limited=edges.limited,
        vertex_capacity=edges.vertex_capacity,
        coordinates=placed(edges.coordinates, changes),
    )


def placed(coordinates: Coordinates | None, changes: Sequence[Structure]) -> Coordinates | None:
    """The coordinates with those of all inserted vertices. O(n) if there are any."""
    given = [(change.x, change.y) for change in changes if change.n_vertices]
    if coordinates is None or not given:
        return coordinates
    x, y = ([column for column in columns if column is not None] for columns in zip(*given, strict=True))
    return coordinates.extended(np.concatenate(x), np.concatenate(y))


def only(edges: EdgeList, there: BoolArray, vertices: BoolArray, n_edges: int) -> EdgeList:
    """The edges that are there, bool[m], by the ids that they have, and the same of ``vertices``, bool[n], without
    which no edge is there. Rows from ``n_edges`` on had not come yet: they are not there, and were not deleted.
    O(n + m)."""
    found = _only_vertices(_only_edges(edges, there, n_edges), vertices)
    return found if isinstance(found.undirected, bool) else replace(found, undirected=alike(found.undirected))


def present_of(edges: EdgeList, network: Network) -> EdgeList:
    """The ``edges`` of the network, all that ever were, without what was deleted. O(n + m)."""
    gone = network.deleted if len(network.deleted) else np.zeros(network.n_edges, np.bool_)
    return only(edges, ~gone, network.there, network.n_edges)


def _only_vertices(edges: EdgeList, there: BoolArray) -> EdgeList:
    if there.all():
        return edges
    rows, labels = np.flatnonzero(there), edges.vertex_labels
    place = (np.cumsum(there) - 1).astype(np.int32)
    if labels is not None:
        labels = _taken(labels, rows)
    elif rows.max(initial=-1) >= len(rows):  # else they are the first ones, and keep their numbers anyway
        labels = rows
    places = None if edges.coordinates is None else edges.coordinates.taken(rows)
    limited, capacity = edges.limited, edges.vertex_capacity
    if limited is not None and capacity is not None:
        kept = there[limited]
        limited, capacity = place[limited[kept]], capacity[kept]
    ends = (None if end is None or not there[end] else int(place[end]) for end in (edges.source, edges.sink))
    source, sink = ends
    return replace(
        edges,
        n_vertices=len(rows),
        tail=place[edges.tail],
        head=place[edges.head],
        vertex_labels=labels,
        coordinates=places,
        source=source,
        sink=sink,
        limited=limited,
        vertex_capacity=capacity,
    )


def _only_edges(edges: EdgeList, there: BoolArray, n_edges: int) -> EdgeList:
    if there.all():
        return edges
    rows, ids = np.flatnonzero(there), edges.edge_ids
    if ids is not None:
        ids = _taken(ids, rows)
    elif len(rows) < n_edges:  # else none was deleted, and they keep their numbers anyway
        ids = rows
    undirected = edges.undirected
    return replace(
        edges,
        tail=edges.tail[rows],
        head=edges.head[rows],
        capacity=edges.capacity[rows],
        undirected=undirected[rows] if isinstance(undirected, np.ndarray) else undirected,
        edge_ids=ids,
        closed=None if edges.closed is None else edges.closed[rows],
        cost=None if edges.cost is None else edges.cost[rows],
        lower=None if edges.lower is None else edges.lower[rows],
    )


def _taken(column: NDArray[np.int64] | Sequence[str], rows: EdgeArray) -> NDArray[np.int64] | Texts:
    return column[rows] if isinstance(column, np.ndarray) else take_texts(Texts.of(column), rows)


def alike(flags: BoolArray) -> bool | BoolArray:
    """One flag if all are equal."""
    if flags.all():
        return bool(len(flags))
    return flags if flags.any() else False
