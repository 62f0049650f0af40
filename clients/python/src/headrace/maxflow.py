"""The interface of PyMaxflow for graph cuts, answered by the service that the environment names (`HEADRACE_URL`).

```python
from headrace import maxflow

graph = maxflow.GraphInt()
pixels = graph.add_grid_nodes((3, 4))
graph.add_grid_edges(pixels, weights=50, symmetric=True)
graph.add_grid_tedges(pixels, foreground, background)
graph.maxflow()
mask = graph.get_grid_segments(pixels)  # True: on the sink's side
```
Here no code of PyMaxflow is used, nor is it needed. A graph whose capacities change again and again is better put into
the service once, as a `headrace.Grid`, and updated there.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from headrace._columns import GraphColumns
from headrace._errors import InvalidInput
from headrace._floats import MOST_UNITS, rounded
from headrace._kept import Content, kept

__all__ = ["Graph", "GraphFloat", "GraphInt", "moore_structure", "vonNeumann_structure"]

Ids: TypeAlias = NDArray[np.int64]

BEYOND_INT64: Final = 2.0**63


def vonNeumann_structure(ndim: int = 2, directed: bool = False) -> NDArray[np.int64]:
    """Neighbours along the axes; directed: the later ones alone."""
    return _structure(ndim, directed, n_axes=1)


def moore_structure(ndim: int = 2, directed: bool = False) -> NDArray[np.int64]:
    """All neighbours, across corners too; directed: the later ones alone."""
    return _structure(ndim, directed, n_axes=ndim)


class _Kinds(type):
    """What `Graph` is, so that the type of its amounts is chosen as in PyMaxflow, where it is a dict."""

    def __getitem__(cls, kind: type) -> "type[Graph]":
        if kind not in (int, float):
            raise InvalidInput(f"a graph is Graph[int] or Graph[float], not Graph[{getattr(kind, '__name__', kind)}]")
        return GraphInt if kind is int else GraphFloat


class Graph(metaclass=_Kinds):
    """Nodes with an edge from the source and one to the sink each, and edges between them. `dtype` is that of amounts.

    Floats are kept to as many decimal places as they have, nine at most. Capacities between nodes are not negative;
    those of terminals may be, as in PyMaxflow: what both have of the same node is part of every cut. ``Graph[int]`` is
    `GraphInt`, and ``Graph[float]`` is `GraphFloat`.
    """

    dtype: Any = np.float64

    def __init__(self, est_node_num: int = 0, est_edge_num: int = 0) -> None:
        """The estimates are not needed."""
        self.reset()

    def reset(self) -> None:
        """Forget all nodes and edges."""
        self._n_nodes = 0
        self._edges: list[tuple[Ids, Ids, NDArray[Any]]] = []
        self._terms: list[tuple[Ids, NDArray[Any], NDArray[Any]]] = []
        self._on_sink_side: NDArray[np.bool_] | None = None

    def get_node_count(self) -> int:
        """The number of nodes, without source and sink."""
        return self._n_nodes

    get_node_num = get_node_count

    def get_edge_count(self) -> int:
        """Edges between nodes, one for each direction, as PyMaxflow counts them."""
        return sum(len(tail) for tail, _, _ in self._edges)

    get_edge_num = get_edge_count

    def add_nodes(self, num_nodes: int) -> Ids:
        """Add nodes; returns their numbers, int64[num_nodes]. Raises `InvalidInput` for fewer than none."""
        return self.add_grid_nodes((num_nodes,))

    def add_grid_nodes(self, shape: int | Sequence[int]) -> Ids:
        """Add a node for each place of an array of this shape; returns their numbers, int64 of this shape.

        Raises `InvalidInput` for a size below 0.
        """
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(size < 0 for size in sizes):
            raise InvalidInput(f"nodes cannot be taken away: there is no shape {shape}")
        first, n_new = self._n_nodes, int(np.prod(sizes))
        self._n_nodes += n_new
        return np.arange(first, first + n_new).reshape(sizes)

    def add_edge(self, i: int, j: int, capacity: float, rev_capacity: float) -> None:
        """Add an edge from node `i` to node `j`, and one back. Raises `InvalidInput` for a negative capacity."""
        self.add_edges([i], [j], [capacity], [rev_capacity])

    def add_edges(self, i: ArrayLike, j: ArrayLike, capacity: ArrayLike, rev_capacity: ArrayLike) -> None:
        """Add an edge from each node of `i` to the node at the same place of `j`, and one back. A capacity is one
        number for all, or one for each. Raises `InvalidInput` for a negative one, and for an unknown node."""
        tail, head = self._nodes(i).ravel(), self._nodes(j).ravel()
        for start, end, given in ((tail, head, capacity), (head, tail, rev_capacity)):
            amounts = np.broadcast_to(self._amounts(given).ravel(), start.shape)
            if amounts.size and amounts.min() < 0:
                raise InvalidInput("the capacity of an edge between nodes is not negative")
            self._edges.append((start, end, amounts))

    def add_tedge(self, i: int, cap_source: float, cap_sink: float) -> None:
        """Add an edge from the source to node `i`, and one from it to the sink."""
        self.add_grid_tedges(np.array([i]), [cap_source], [cap_sink])

    def add_grid_tedges(self, nodeids: ArrayLike, sourcecaps: ArrayLike, sinkcaps: ArrayLike) -> None:
        """Add edges from the source to these nodes, and from these to the sink, to those that they have already."""
        nodes = self._nodes(nodeids)
        source, sink = (np.broadcast_to(self._amounts(given), nodes.shape).ravel() for given in (sourcecaps, sinkcaps))
        self._terms.append((nodes.ravel(), source, sink))

    def add_grid_edges(
        self,
        nodeids: ArrayLike,
        weights: ArrayLike = 1,
        structure: ArrayLike | None = None,
        symmetric: bool = False,
        periodic: bool | Sequence[bool] = False,
    ) -> None:
        """Add edges from each node to its neighbours. The capacity of an edge is the weight of its node, times the
        value of `structure` at the place of the neighbour.

        Args:
            structure: the neighbourhood, with the node in its middle; by default the neighbours along the axes.
            symmetric: whether each edge has one back with the same capacity.
            periodic: whether nodes at one border are neighbours of those at the other; one flag, or one for each axis.

        Raises `InvalidInput` for a structure with other dimensions than `nodeids`, or with an even size, and for
        capacities beyond what a graph can have.
        """
        nodes = self._nodes(nodeids)
        shaped = vonNeumann_structure(nodes.ndim, symmetric) if structure is None else self._amounts(structure)
        if shaped.ndim != nodes.ndim or not all(n % 2 for n in shaped.shape):
            raise InvalidInput(f"structure has {nodes.ndim} dimensions, each of an odd size, not {shaped.shape}")
        each = np.broadcast_to(self._amounts(weights), nodes.shape)
        if (
            each.dtype.kind == "i"
            and int(np.abs(each).max(initial=0)) * int(np.abs(shaped).max(initial=0)) > MOST_UNITS
        ):
            raise InvalidInput(f"a capacity, a weight times its place in structure, is {MOST_UNITS} at most")
        around = np.broadcast_to(np.asarray(periodic, bool), nodes.ndim)
        for place in np.argwhere(shaped):
            step = tuple(int(at) - n // 2 for at, n in zip(place, shaped.shape, strict=True))
            if any(step):
                start, end = _pairs(nodes.shape, step, around)
                capacity = each[start] * shaped[tuple(place)]
                self.add_edges(nodes[start], nodes[end], capacity, capacity if symmetric else np.zeros_like(capacity))

    def maxflow(self, reuse_trees: bool = False) -> Any:
        """Find a minimum cut; returns its value. `reuse_trees` changes nothing: the service decides what it repairs.

        Raises `InvalidInput` for a node without a limit both ways, and for terminals beyond 64 bits.
        """
        n = self._n_nodes
        if not n:
            return self.dtype(0).item()
        source, sink = self._terminals()
        paid = np.minimum(source, sink)
        content = Content.of(self._columns(source - paid, sink - paid))
        found = kept("maxflow").ask(self, content, lambda graph: graph.min_cut(n, n + 1))
        assert found.cut is not None
        self._on_sink_side = ~found.cut.mask[:n]
        return self.dtype(found.value).item() + paid.sum().item()

    def get_segment(self, i: int) -> int:
        """The side of one node: 0 for the source's, 1 for the sink's. Raises as `get_grid_segments`."""
        return int(self.get_grid_segments(np.array([i]))[0])

    def get_grid_segments(self, nodeids: ArrayLike) -> NDArray[np.bool_]:
        """bool, of the shape of `nodeids`: whether each node is on the sink's side of the cut that `maxflow` has found.

        If several cuts are minimum, PyMaxflow may find another one. Raises `InvalidInput` before `maxflow` was called.
        """
        if self._on_sink_side is None or len(self._on_sink_side) != self._n_nodes:
            raise InvalidInput("call maxflow() before you ask for segments")
        return self._on_sink_side[self._nodes(nodeids)]

    def _terminals(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """What each node has from the source, and what it has to the sink, each `dtype[n]`."""
        source, sink = np.zeros(self._n_nodes, self.dtype), np.zeros(self._n_nodes, self.dtype)
        largest = sum(float(np.abs(amounts.astype(np.float64)).sum()) for _, *both in self._terms for amounts in both)
        if source.dtype.kind == "i" and largest >= BEYOND_INT64:
            raise InvalidInput("the capacities of terminals add up to 2**63 or more: too much for int64")
        for nodes, from_source, to_sink in self._terms:
            np.add.at(source, nodes, from_source)
            np.add.at(sink, nodes, to_sink)
        both_ways = np.flatnonzero(np.isinf(source) & np.isinf(sink))
        if len(both_ways):
            raise InvalidInput(f"node {both_ways[0]} has no limit from the source nor to the sink: no cut has a value")
        return source, sink

    def _columns(self, source: NDArray[Any], sink: NDArray[Any]) -> GraphColumns:
        """Edges between nodes that can carry something, then those of terminals: source n, sink n + 1."""
        n = self._n_nodes
        from_source, to_sink = np.flatnonzero(source), np.flatnonzero(sink)
        edges = [
            *((tail[used], head[used], amounts[used]) for tail, head, amounts in self._edges for used in [amounts > 0]),
            (np.full_like(from_source, n), from_source, source[from_source]),
            (to_sink, np.full_like(to_sink, n + 1), sink[to_sink]),
        ]
        tail, head, capacity = (np.concatenate(column) for column in zip(*edges, strict=True))
        return {
            "n_vertices": n + 2,
            "tail": tail,
            "head": head,
            "capacity": capacity if capacity.dtype.kind == "i" else rounded(capacity.tolist()),
        }

    def _nodes(self, given: ArrayLike) -> Ids:
        numbers = np.asarray(given)
        if numbers.dtype.kind not in "biuf" or (numbers % 1).any():
            raise InvalidInput("a node is a whole number, as add_nodes() and add_grid_nodes() have answered it")
        nodes = numbers.astype(np.int64)
        if nodes.size and not 0 <= nodes.min() <= nodes.max() < self._n_nodes:
            raise InvalidInput(f"a node is one of 0 to {self._n_nodes - 1}: add nodes first")
        return nodes

    def _amounts(self, given: ArrayLike) -> NDArray[Any]:
        amounts = np.asarray(given)
        if amounts.dtype.kind not in "biuf":
            raise InvalidInput(f"a capacity is a number, not {amounts.dtype}")
        if np.isnan(amounts).any() or np.isneginf(amounts).any():
            raise InvalidInput("a capacity is a number, not nan or -inf")
        if np.dtype(self.dtype).kind == "i" and amounts.size:
            if np.isposinf(amounts).any():
                raise InvalidInput("a whole number is not inf: use GraphFloat, or a capacity that is large enough")
            if max(abs(int(amounts.min())), abs(int(amounts.max()))) > MOST_UNITS:
                raise InvalidInput(f"a capacity is {MOST_UNITS} at most")
        return amounts.astype(self.dtype)


class GraphFloat(Graph):
    """Capacities are floats."""

    dtype = np.float64


class GraphInt(Graph):
    """Capacities are whole numbers; the fractions of others are cut off."""

    dtype = np.int64


def _structure(ndim: int, directed: bool, n_axes: int) -> NDArray[np.int64]:
    """Ones where a step leads along `n_axes` axes at most; directed: if it leads to a later node."""
    found = np.zeros((3,) * ndim, np.int64)
    for step in product((-1, 0, 1), repeat=ndim):
        is_later = next((s > 0 for s in step if s), False)
        if 0 < sum(map(abs, step)) <= n_axes and (is_later or not directed):
            found[tuple(s + 1 for s in step)] = 1
    return found


def _pairs(shape: tuple[int, ...], step: tuple[int, ...], around: NDArray[np.bool_]) -> tuple[Any, Any]:
    """Places of all nodes from which the step leads to a node, and of those to which it leads."""
    axes = list(_axes(shape, step, around))
    return np.ix_(*(start for start, _ in axes)), np.ix_(*(end for _, end in axes))


def _axes(shape: tuple[int, ...], step: tuple[int, ...], around: NDArray[np.bool_]) -> Iterator[tuple[Ids, Ids]]:
    for n, s, wraps in zip(shape, step, around.tolist(), strict=True):
        start = np.arange(n)
        end = (start + s) % n if wraps else start + s
        inside = (end >= 0) & (end < n)
        yield start[inside], end[inside]
