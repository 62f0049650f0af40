"""Other solvers on the same network, where they are installed: OR-tools, igraph and SciPy.

Every solver gets one directed edge per row (an undirected edge is two rows, a self-loop none), with unlimited
capacities replaced by a bound no flow reaches. Building is timed apart, as each library allows: OR-tools and igraph
make their residual graph inside the call that solves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from benchmarks.timing import timed
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.types import INFINITE, UnitArray, VertexArray

INT32_MAX = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, eq=False, slots=True)
class Directed:
    """The network a peer is given."""

    n_vertices: int
    tail: VertexArray
    head: VertexArray
    capacity: UnitArray
    source: int
    sink: int
    max_flow: int
    """The value every peer must find; a peer with narrow integers may cut capacities down to it."""

    @classmethod
    def of(cls, edges: EdgeList, max_flow: int) -> "Directed":
        """Directed rows with finite capacities; the terminals must be set."""
        assert edges.source is not None
        assert edges.sink is not None
        both = np.broadcast_to(edges.undirected, edges.n_edges)
        tail = np.concatenate([edges.tail, edges.head[both]])
        head = np.concatenate([edges.head, edges.tail[both]])
        capacity = np.concatenate([edges.capacity, edges.capacity[both]])
        unlimited = capacity == INFINITE
        capacity[unlimited] = capacity[~unlimited].sum() + 1
        rows = tail != head
        return cls(edges.n_vertices, tail[rows], head[rows], capacity[rows], edges.source, edges.sink, max_flow)

    @property
    def total(self) -> int:
        """Sum of the capacities as a Python integer, which cannot wrap."""
        return sum(self.capacity.tolist())


@dataclass(frozen=True, slots=True)
class Timing:
    """One run from nothing, milliseconds."""

    value: int
    build_ms: float
    solve_ms: float


def ortools(network: Directed) -> Timing:
    """OR-tools `SimpleMaxFlow`: push-relabel, int64; the flow of each edge is found too."""
    from ortools.graph.python.max_flow import SimpleMaxFlow

    def build() -> SimpleMaxFlow:
        solver = SimpleMaxFlow()
        solver.add_arcs_with_capacity(network.tail, network.head, network.capacity)
        return solver

    solver, build_ms = timed(build)
    status, solve_ms = timed(lambda: solver.solve(network.source, network.sink))
    if status != SimpleMaxFlow.OPTIMAL:
        raise RuntimeError(f"OR-tools ended with {status}")
    return Timing(int(solver.optimal_flow()), build_ms, solve_ms)


def igraph(network: Directed) -> Timing:
    """igraph `maxflow_value`: push-relabel on doubles, value only."""
    from igraph import Graph

    capacity = network.capacity.astype(float).tolist()

    def build() -> Graph:
        graph = Graph(n=network.n_vertices, edges=np.column_stack([network.tail, network.head]), directed=True)
        graph.es["capacity"] = capacity
        return graph

    graph, build_ms = timed(build)
    value, solve_ms = timed(lambda: graph.maxflow_value(network.source, network.sink, "capacity"))
    return Timing(round(value), build_ms, solve_ms)


def scipy(network: Directed) -> Timing:
    """SciPy `maximum_flow`: Dinic on int32 capacities, which are cut down to the value; parallel edges are added up."""
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    n = network.n_vertices

    def build() -> csr_array:
        matrix = coo_array((network.capacity, (network.tail, network.head)), shape=(n, n)).tocsr()
        capacity = np.minimum(matrix.data, network.max_flow).astype(np.int32)
        return csr_array((capacity, matrix.indices, matrix.indptr), shape=(n, n))

    matrix, build_ms = timed(build)
    result, solve_ms = timed(lambda: maximum_flow(matrix, network.source, network.sink))
    return Timing(int(result.flow_value), build_ms, solve_ms)


@dataclass(frozen=True, slots=True)
class Peer:
    """A solver, and for which networks it is exact and worth its time."""

    solve: Callable[[Directed], Timing]
    max_edges: int = INT32_MAX
    max_flow: int = 1 << 62
    max_total: int = 1 << 62

    def refuses(self, network: Directed) -> str:
        """Why this peer is left out for this network; empty if it is not."""
        if len(network.tail) > self.max_edges:
            return f"more than {self.max_edges} edges"
        if network.max_flow > self.max_flow or network.total > self.max_total:
            return "its numbers are too narrow"
        return ""


PEERS = {
    "ortools": Peer(ortools),
    "igraph": Peer(igraph, max_total=1 << 53),
    "scipy": Peer(scipy, max_edges=500_000, max_flow=INT32_MAX // 2),
}
"""SciPy takes about a minute for a million edges of most families."""


def installed() -> dict[str, Peer]:
    """Those of `PEERS` that can be imported here."""
    return {name: peer for name, peer in PEERS.items() if find_spec(name) is not None}
