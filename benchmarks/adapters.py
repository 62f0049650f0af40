"""Calls of NetworkX, SciPy and igraph answered by a service, beside these libraries: ``python -m benchmarks.adapters``.

`first_ms` is a call with a graph that the service has not seen: columns, upload, solve, proof and the answer in the
form of the library; `again_ms` the same call once more. `peer_ms` is the library's own. All are CPU time, of client and
service together, which other work on the machine lengthens less than the time of a call. Values are compared.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import igraph
import networkx as nx
import numpy as np
import scipy.sparse as sp
from headrace import csgraph
from headrace import igraph as headrace_igraph
from scipy.sparse.csgraph import maximum_flow

from benchmarks.answers import check
from benchmarks.cpu import cpu_ms
from benchmarks.results import DIRECTORY, Results, Row
from benchmarks.serve import service

ROADS: Final = Path(__file__).parents[1] / "examples" / "osm-andorra.npz"
SEED: Final = 7
REPEATS: Final = 5


def spent(work: Callable[[], Any]) -> tuple[Any, float]:
    """What comes of it, and CPU milliseconds of this process and its children."""
    before = cpu_ms()
    found = work()
    return found, cpu_ms() - before


def compared(call: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> Row:
    value, first_ms = spent(ours)
    again, again_ms = spent(lambda: [ours() for _ in range(REPEATS)])
    peer, peer_ms = spent(theirs)
    check({*again, peer} == {value}, f"{call}: {value} and {again}, the library {peer}")
    times = {"first_ms": first_ms, "again_ms": again_ms / REPEATS, "peer_ms": peer_ms}
    return {"call": call, "value": value, **times}


def rows(unit: int) -> Iterator[Row]:
    """All capacities are multiplied by ``unit``, so that the service has not seen these graphs."""
    roads = np.load(ROADS)
    tail, head, capacity, n = roads["src"], roads["dst"], unit * roads["cap"], int(roads["n"])
    source, sink = int(roads["s"]), int(roads["t"])
    streets = nx.DiGraph()
    for edge in zip(tail.tolist(), head.tolist(), capacity.tolist(), strict=True):
        u, w, units = edge
        before = streets.get_edge_data(u, w, {"capacity": 0})["capacity"]
        streets.add_edge(u, w, capacity=before + units)
    names = source, sink
    yield compared(
        "networkx.maximum_flow_value",
        lambda: nx.maximum_flow_value(streets, *names, backend="headrace"),
        lambda: nx.maximum_flow_value(streets, *names),
    )
    matrix = sp.coo_array((capacity.astype(np.int32), (tail, head)), shape=(n, n)).tocsr()
    yield compared(
        "scipy.sparse.csgraph.maximum_flow",
        lambda: csgraph.maximum_flow(matrix, *names).flow_value,
        lambda: maximum_flow(matrix, *names).flow_value,
    )
    graph = igraph.Graph(n, np.column_stack([tail, head]), directed=True, edge_attrs={"width": capacity.tolist()})
    yield compared(
        "igraph.Graph.maxflow",
        lambda: headrace_igraph.maxflow(graph, *names, capacity="width").value,
        lambda: graph.maxflow(*names, capacity="width").value,
    )
    drawn = nx.gnm_random_graph(300, 900, seed=SEED)
    for u, w in drawn.edges:
        drawn[u][w]["capacity"] = drawn[u][w]["weight"] = unit * ((7 * u + 3 * w) % 100 + 1)
    yield compared(
        "networkx.gomory_hu_tree",
        lambda: int(nx.gomory_hu_tree(drawn, backend="headrace").size("weight")),
        lambda: int(nx.gomory_hu_tree(drawn).size("weight")),
    )
    yield compared(
        "networkx.stoer_wagner",
        lambda: nx.stoer_wagner(drawn, backend="headrace")[0],
        lambda: nx.stoer_wagner(drawn)[0],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adapters", description=__doc__)
    parser.add_argument("--out", type=Path, default=DIRECTORY / "adapters-cpu.json")
    options = parser.parse_args()
    nx.config.warnings_to_ignore.add("cache")
    results = Results("adapters", {"seed": SEED, "repeats": REPEATS}, options.out)
    with service() as url:
        os.environ["HEADRACE_URL"] = url
        list(rows(1))  # each process has answered one of each kind
        found = list(rows(2))
    results.extend(found)
    print(*found, sep="\n")


if __name__ == "__main__":
    main()
