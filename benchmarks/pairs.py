"""Point to point: cold solves between random pairs of vertices of one network, beside the peers.

Each pair is a question of its own, best of a few runs of each solver; building is not counted. The certificate of every
solve must hold, and every solver must give the same value.
"""

from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import numpy as np

from benchmarks.answers import check, check_certificate
from benchmarks.cold import Effort, describe, measure_peer
from benchmarks.instances import Instance
from benchmarks.peers import Directed, Peer
from benchmarks.results import Row
from benchmarks.timing import repeat, timed
from gpu_engine import select
from gpu_engine.engine import Engine
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals

PAIRS = 20
SEED = 7


def measure(
    instance: Instance, edges: EdgeList, choice: str, peers: dict[str, Peer], effort: Effort, count: int = PAIRS
) -> list[Row]:
    """One row for each solver, ours first. Raises `WrongAnswer` if a certificate fails or two values differ."""
    engine = select.open_engine(select.load_network(edges, choice), choice)
    found: dict[str, list[Row]] = {}
    for source, sink in drawn(edges, count):
        ours = measure_pair(engine, source, sink, effort)
        found.setdefault(f"headrace-{choice}", []).append(ours)
        network = Directed.of(replace(edges, source=source, sink=sink), ours["value"])
        for name, peer in peers.items():
            if not peer.refuses(network):
                row = measure_peer(peer, network, effort)
                check(row["value"] == ours["value"], f"{instance.name} {source} to {sink}: {name} {row}, ours {ours}")
                found.setdefault(name, []).append(row)
    common = describe(instance, edges) | {"arcs": engine.network.n_arcs, "seed": SEED, "pairs": count}
    return [common | {"solver": name} | summary(rows) for name, rows in found.items()]


def drawn(edges: EdgeList, count: int) -> Iterator[tuple[int, int]]:
    """Pairs of different vertices, the network's own source and sink left out."""
    rng = np.random.default_rng(SEED)
    inner = np.setdiff1d(np.arange(edges.n_vertices), [v for v in (edges.source, edges.sink) if v is not None])
    for _ in range(count):
        source, sink = rng.choice(inner, 2, replace=False).tolist()
        yield source, sink


def measure_pair(engine: Engine, source: int, sink: int, effort: Effort) -> Row:
    """Best and median of our engine, after one solve that is not counted."""
    state = engine.open(Terminals.of([source], [sink]))
    value = engine.solve(state, cold=True).value

    def once() -> float:
        report, elapsed_ms = timed(lambda: engine.solve(state, cold=True))
        check_certificate(engine.certificate(state), report.value)
        check(report.value == value, f"{report.value} after {value}")
        return elapsed_ms

    solve_ms = repeat(once, effort.repeats, effort.limit_s)
    engine.close(state)
    return {"value": value, "solve_ms_best": min(solve_ms), "solve_ms_median": median(solve_ms)}


def summary(rows: list[Row]) -> Row:
    """Sum, median and every pair of the best times, in the order in which pairs are drawn."""
    best = [row["solve_ms_best"] for row in rows]
    return {
        "solve_ms_sum": sum(best),
        "solve_ms_median": median(best),
        "pair_ms": [round(ms, 4) for ms in best],
        "values": [row["value"] for row in rows],
    }
