"""Many pairs, a Gomory-Hu tree and the global minimum cut of one network, beside OR-tools and NetworkX.

    python -m benchmarks.many_pairs --real DIR [--pairs 100] [--only road-luxembourg,...] [--device] [--out FILE]

All pairs are one question: ours counts the capacities of arcs, the reduced network and the proofs; OR-tools has the
network already and solves pair by pair. `thread_ms` is CPU time of one thread, which other work on the machine does not
lengthen; `wall_ms` with two threads is what a caller waits. Every value must be that of the peer. With ``--device``
only pairs are asked for, of a CUDA device beside one thread of the host: `wall_ms` counts everything from the network
on the host to values on the host, `kernel_ms` the searches and proofs alone, when they are asked for once more.
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks import instances
from benchmarks.answers import check
from benchmarks.peers import Directed
from benchmarks.results import Results, Row
from gpu_engine.control import Control
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.pairs.cut_tree import TreeGrower
from gpu_engine.pairs.global_cut import global_cut
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.types import UnitArray, VertexArray

T = TypeVar("T")

SEED = 7
BLOCK = 16
DEVICE_BYTES = 16 << 30


def main() -> None:
    top = argparse.ArgumentParser(prog="python -m benchmarks.many_pairs", description=__doc__)
    top.add_argument("--real", type=Path)
    top.add_argument("--pairs", type=int, default=100)
    top.add_argument("--only", default="road-luxembourg,osm-heidelberg,osm-andorra,power-pegase9241,as-caida20070917")
    top.add_argument("--device", action="store_true")
    top.add_argument("--out", type=Path)
    options = top.parse_args()
    results = Results("many-pairs", {"pairs": options.pairs, "seed": SEED}, options.out)
    for name in options.only.split(","):
        (instance,) = instances.choose("small", [name])
        edges = instance.load(instances.real_directory(options.real))
        if edges is not None and options.device:
            results.extend([{"instance": name} | row for row in on_device(edges, options.pairs)])
        elif edges is not None:
            results.extend([{"instance": name} | row for row in (*pairs(edges, options.pairs), *cuts(edges))])
    if not options.device:
        results.extend(networkx_rows())
    print(*results.document["rows"], sep="\n")


def on_device(edges: EdgeList, count: int) -> list[Row]:
    """All pairs as one question on a device, and on one thread of the host."""
    from gpu_engine.cuda.pairs import DeviceSeat

    rng, network = np.random.default_rng(SEED), Network(edges)
    sources = rng.integers(0, edges.n_vertices, count).astype(np.int32)
    sinks = ((sources + rng.integers(1, edges.n_vertices, count)) % edges.n_vertices).astype(np.int32)
    answered(network, sources[:2], sinks[:2], 1)

    def asked() -> tuple[DeviceSeat, UnitArray]:
        solver = PairSolver.of(network, np.unique(np.concatenate((sources, sinks))))
        seat = DeviceSeat(solver, solver.seat(), DEVICE_BYTES)
        return seat, seat.values(sources, sinks, Control())

    (seat, values), _, wall_ms = spent(asked)
    left = seat.left
    again, _, kernel_ms = spent(lambda: seat.values(sources, sinks, Control()))
    one, thread_ms, alone_ms = spent(lambda: answered(network, sources, sinks, 1))
    check(one.tolist() == values.tolist() == again.tolist(), "device and host disagree")
    common = {"n": network.n_vertices, "arcs": network.n_arcs, "pairs": count}
    return [
        common | {"solver": "headrace on a device", "wall_ms": wall_ms, "kernel_ms": kernel_ms, "by_the_host": left},
        common | {"solver": "headrace", "threads": 1, "thread_ms": thread_ms, "wall_ms": alone_ms},
    ]


def pairs(edges: EdgeList, count: int) -> list[Row]:
    """All pairs as one question, on one thread and on two, and OR-tools."""
    rng, network = np.random.default_rng(SEED), Network(edges)
    drawn = np.array([rng.choice(edges.n_vertices, 2, replace=False) for _ in range(count)], np.int32)
    sources, sinks = (np.ascontiguousarray(column) for column in drawn.T)
    answered(network, sources[:2], sinks[:2], 1)  # compiled
    one, thread_ms, alone_ms = spent(lambda: answered(network, sources, sinks, 1))
    two, _, wall_ms = spent(lambda: answered(network, sources, sinks, 2))
    theirs, peer_thread_ms, peer_ms = spent(lambda: ortools(edges, sources, sinks))
    check(one.tolist() == two.tolist() == theirs, "two solvers disagree")
    common = {"n": network.n_vertices, "arcs": network.n_arcs, "pairs": count}
    return [
        common | {"solver": "headrace", "threads": 1, "thread_ms": thread_ms, "wall_ms": alone_ms},
        common | {"solver": "headrace", "threads": 2, "wall_ms": wall_ms},
        common | {"solver": "ortools", "threads": 1, "thread_ms": peer_thread_ms, "wall_ms": peer_ms},
    ]


def answered(network: Network, sources: VertexArray, sinks: VertexArray, threads: int) -> UnitArray:
    solver = PairSolver.of(network, np.unique(np.concatenate((sources, sinks))))
    seats = [solver.seat() for _ in range(threads)]
    values = np.empty(len(sources), np.int64)
    blocks = [slice(at, at + BLOCK) for at in range(0, len(sources), BLOCK)]

    def work(k: int) -> None:
        for block in blocks[k::threads]:
            values[block] = seats[k].values(sources[block], sinks[block], Control())

    if threads == 1:
        work(0)
        return values
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return values


def ortools(edges: EdgeList, sources: VertexArray, sinks: VertexArray) -> list[int]:
    from ortools.graph.python.max_flow import SimpleMaxFlow

    network = Directed.of(replace(edges, source=0, sink=1), 1 << 40)
    solver = SimpleMaxFlow()
    solver.add_arcs_with_capacity(network.tail, network.head, network.capacity)
    found = []
    for source, sink in zip(sources.tolist(), sinks.tolist(), strict=True):
        check(solver.solve(source, sink) == SimpleMaxFlow.OPTIMAL, "OR-tools failed")
        found.append(int(solver.optimal_flow()))
    return found


def cuts(edges: EdgeList) -> list[Row]:
    """The global minimum cut, and the tree of 200 vertices, of the network with undirected edges."""
    network = Network(replace(edges, undirected=True, closed=None, cost=None))
    rng = np.random.default_rng(SEED)
    terminals = np.sort(rng.choice(network.n_vertices, 200, replace=False)).astype(np.int32)
    grown(network, terminals[:2])
    found, tree_ms, _ = spent(lambda: grown(network, terminals))
    cut, cut_ms, _ = spent(lambda: global_cut(network, Control()).value)
    common = {"n": network.n_vertices, "arcs": network.n_arcs, "solver": "headrace", "threads": 1}
    return [
        common | {"question": "gomory-hu-tree", "terminals": 200, "thread_ms": tree_ms, "rows": len(found)},
        common | {"question": "global-min-cut", "thread_ms": cut_ms, "value": cut},
    ]


def networkx_rows() -> list[Row]:
    """A network that NetworkX can solve while one waits: 300 vertices, 900 edges."""
    import networkx as nx

    drawn = nx.gnm_random_graph(300, 900, seed=SEED)
    for u, w in drawn.edges:
        drawn[u][w]["capacity"] = drawn[u][w]["weight"] = (7 * u + 3 * w) % 100 + 1
    tail, head = np.array(list(drawn.edges), np.int32).T
    capacity = np.array([drawn[u][w]["capacity"] for u, w in drawn.edges], np.int64)
    network = Network(EdgeList(300, tail, head, capacity, True))
    values, ours_ms, _ = spent(lambda: grown(network, np.arange(300, dtype=np.int32)))
    theirs, theirs_ms, _ = spent(lambda: sorted(w for _, _, w in nx.gomory_hu_tree(drawn).edges(data="weight")))
    check(values == theirs, "the trees differ")
    row: Row = {"question": "gomory-hu-tree", "of": "gnm 300 900", "thread_ms": ours_ms, "networkx_ms": theirs_ms}
    if nx.is_connected(drawn):
        least, cut_ms, _ = spent(lambda: global_cut(network, Control()).value)
        other, other_ms, _ = spent(lambda: nx.stoer_wagner(drawn)[0])
        check(least == other, "the cuts differ")
        row |= {"global_cut_thread_ms": cut_ms, "networkx_stoer_wagner_ms": other_ms}
    return [row]


def grown(network: Network, terminals: VertexArray) -> list[int]:
    """The values of a tree, rising."""
    grower = TreeGrower(network, terminals)
    for _ in grower.grow(grower.seat(), Control()):
        pass
    return sorted(grower.finish().value.tolist())


def spent(work: Callable[[], T]) -> tuple[T, float, float]:
    """What comes of it, and the best of three runs in ms: CPU time of this thread, and wall time."""
    times = []
    for _ in range(3):
        began = time.thread_time(), time.perf_counter()
        found = work()
        times.append((time.thread_time() - began[0], time.perf_counter() - began[1]))
    best = [round(1e3 * min(column), 3) for column in zip(*times, strict=True)]
    return found, best[0], best[1]


if __name__ == "__main__":
    main()
