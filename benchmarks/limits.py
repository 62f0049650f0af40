"""What limits a flow, beside libraries that others would take: ``python -m benchmarks.limits``.

Three kinds of rows, each with equal answers of both sides, best of a few runs, one thread:

- bottlenecks of a solved network, beside the same from our flow by edge with SciPy's strongly connected components.
- the curve against a factor on these bottlenecks, warm and certified at each point, beside OR-tools at the same points,
  solved from zero in whole numbers (its time to build is not counted).
- capacity expansion, proven, beside NetworkX's network simplex on the network with doubled edges, where that ends
  within the time limit.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from benchmarks.answers import check, check_certificate
from benchmarks.peers import Directed, ortools
from benchmarks.results import DIRECTORY, Results, Row
from benchmarks.timing import timed
from gpu_engine import formats
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine, FlowState
from gpu_engine.mincost.expansion import Candidates, Expansion, cheapest_expansion
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.parametric.curve import Curve, Point, curve
from gpu_engine.parametric.probes import Prober, Scaled
from gpu_engine.parametric.spans import SpanProber
from gpu_engine.types import INFINITE, BoolArray

EXAMPLES = Path(__file__).parent.parent / "examples"
FIRST, LAST = Fraction(0), Fraction(3)
REPEATS = 5


def best(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[Any, float]:
    """The last answer, and the least milliseconds."""
    found = [timed(work) for _ in range(repeats)]
    return found[-1][0], min(ms for _, ms in found)


def by_scipy(network: Network, flow: NDArray[np.int64]) -> BoolArray:
    """bool[m]: full edges between two strongly connected components of the residual network (Picard and Queyranne)."""
    rows = np.arange(network.n_edges)
    tail, head = network.edge_tail(rows), network.edge_head(rows)
    ahead, back = flow < network.capacity, flow > 0
    arcs = np.concatenate([tail[ahead], head[back]]), np.concatenate([head[ahead], tail[back]])
    graph = csr_array((np.ones(len(arcs[0]), np.int8), arcs), (network.n_vertices, network.n_vertices))
    _, component = connected_components(graph, connection="strong")
    found: BoolArray = ~ahead & (network.capacity > 0) & (component[tail] != component[head])
    return found


def measure(name: str, edges: EdgeList, more: int, limit_s: float) -> Iterator[Row]:
    assert edges.source is not None
    assert edges.sink is not None
    network, terminals = Network(edges), Terminals.of([edges.source], [edges.sink])
    engine = CpuEngine(network)
    state = engine.open(terminals)
    value = engine.solve(state).value
    check_certificate(engine.certificate(state), value)
    flow = engine.flow(state)
    about: Row = {"network": name, "n_edges": network.n_edges, "value": value}

    found, ours_ms = best(lambda: engine.bottlenecks(state))
    other, peer_ms = best(lambda: by_scipy(network, flow))
    check(np.array_equal(np.flatnonzero(other), found.edges), f"{name}: bottlenecks differ")
    counts = {"bottlenecks": len(found.edges), "in_every": int(found.in_every.sum())}
    yield about | {"work": "bottlenecks", **counts, "headrace_ms": ours_ms, "scipy_ms": peer_ms}

    drawn, asked, ours_ms = curve_of(engine, state, terminals, found.edges)
    peer_ms = sum(by_ortools(edges, found.edges, point) for point in asked)
    segments = {"segments": len(drawn.lines), "flows": drawn.probes}
    yield about | {"work": "parametric", **segments, "headrace_ms": ours_ms, "ortools_ms": peer_ms}

    candidates = Candidates(found.edges, 1 + np.arange(len(found.edges)) % 9, np.full(len(found.edges), INFINITE))
    wider: Expansion
    wider, ours_ms = best(lambda: cheapest_expansion(network, terminals, candidates, value, more, flow=flow), 3)
    check(wider.proof.valid, f"{name}: {wider.proof.failures}")
    row = about | {"work": "expansion", "raise_by": more, "price": wider.proof.cost, "headrace_ms": ours_ms}
    simplex = within(limit_s, by_networkx, edges, candidates, value + more)
    if simplex is not None:
        check(simplex[0] == wider.proof.cost, f"{name}: NetworkX {simplex[0]}, ours {wider.proof.cost}")
    yield row | {"networkx_ms": None if simplex is None else simplex[1], "networkx_limit_s": limit_s}


def curve_of(
    engine: CpuEngine, state: FlowState, terminals: Terminals, rows: NDArray[np.int64]
) -> tuple[Curve, list[Point], float]:
    """The curve, the points that it was found by, and milliseconds with all proofs."""

    def solve(other: Engine, there: FlowState, ends: Terminals) -> int:
        found = other.solve(there).value
        check_certificate(other.certificate(there), found)
        return found

    asked: list[Point] = []

    def draw() -> Curve:
        prober = SpanProber(Prober.of(engine, state, terminals, Scaled(rows), solve))
        asked.clear()

        def probe(factor: Fraction) -> Point:
            asked.append(prober(factor))
            return asked[-1]

        return curve(probe, FIRST, LAST, 10_000)

    drawn, took_ms = best(draw)
    return drawn, asked, took_ms


def by_ortools(edges: EdgeList, rows: NDArray[np.int64], point: Point) -> float:
    """Milliseconds of a solve at one factor."""
    p, q = point.factor.numerator, point.factor.denominator
    capacity = edges.capacity * q
    capacity[rows] = edges.capacity[rows] * p
    scaled = EdgeList(edges.n_vertices, edges.tail, edges.head, capacity, edges.undirected)
    ended = EdgeList(**{**_fields(scaled), "source": edges.source, "sink": edges.sink})
    found, _ = best(lambda: ortools(Directed.of(ended, 0)), 3)
    check(Fraction(found.value, q) == point.value, f"{found.value}/{q} at {point.factor}, ours {point.value}")
    return float(found.solve_ms)


def _fields(edges: EdgeList) -> dict[str, Any]:
    return {name: getattr(edges, name) for name in ("n_vertices", "tail", "head", "capacity", "undirected")}


def by_networkx(edges: EdgeList, candidates: Candidates, value: int) -> tuple[int, float]:
    """The least price, and milliseconds without building."""
    import networkx as nx

    graph = nx.MultiDiGraph()
    graph.add_node(edges.source, demand=-value)
    graph.add_node(edges.sink, demand=value)
    columns = edges.tail.tolist(), edges.head.tolist(), edges.capacity.tolist()
    for tail, head, capacity in zip(*columns, strict=True):
        graph.add_edge(tail, head, capacity=capacity, weight=0)
    for row, price in zip(candidates.rows.tolist(), candidates.price.tolist(), strict=True):
        graph.add_edge(int(edges.tail[row]), int(edges.head[row]), weight=price)
    (price, _), took_ms = timed(lambda: nx.network_simplex(graph))
    return int(price), took_ms


def within(limit_s: float, work: Callable[..., Any], *given: Any) -> Any:
    """What the work gives in a process of its own; None if it is not done in time."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        try:
            return pool.apply_async(work, given).get(limit_s)
        except multiprocessing.TimeoutError:
            return None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("--limit-s", type=float, default=300.0, help="how long NetworkX may take")
    parser.add_argument("--out", type=Path, default=DIRECTORY / "limits-cpu.json")
    options = parser.parse_args()
    results = Results("limits", {"limit_s": options.limit_s, "first": str(FIRST), "last": str(LAST)}, options.out)
    for name, more in (("osm-andorra", 100), ("osm-heidelberg", 500)):
        edges = formats.read_file(EXAMPLES / f"{name}.npz")
        for row in measure(name, edges, more, options.limit_s):
            results.extend([row])
            print(row, flush=True)


if __name__ == "__main__":
    main()
