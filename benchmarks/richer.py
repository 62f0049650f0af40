"""Vertices with capacities, lower bounds and changes of structure on road networks, beside OR-tools.

    python -m benchmarks.richer [--out FILE]

OR-tools gets the network that one would write down for the same answer: every vertex split into two; edges with their
lower bounds taken out, and a vertex more on either side; the whole network after each batch. `thread_ms` is CPU time of
one thread, which other work on the machine does not lengthen. Ours has the proof in it, and the engine of a network
that is resident; that of OR-tools is its call that solves, `build_ms` what it takes to give it the network. Values must
be equal.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeAlias

import numpy as np
from ortools.graph.python.max_flow import SimpleMaxFlow

from benchmarks.answers import check, check_certificate
from benchmarks.many_pairs import spent
from benchmarks.peers import Directed
from benchmarks.results import DIRECTORY, Results, Row
from gpu_engine import formats
from gpu_engine.checks.circulations import Barrier, prove_circulation
from gpu_engine.circulations.solver import find_circulation
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Engine, FlowState
from gpu_engine.networks.bounds import LowerBounds
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.restructure import Limits, resolve
from gpu_engine.networks.structure import present_of
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.text.texts import Texts
from gpu_engine.types import UnitArray
from gpu_engine.vertices.engine import SplitEngine
from gpu_engine.vertices.split import split
from service.worker.graph import Graph
from service.worker.structure import Columns

EXAMPLES: Final = Path(__file__).parent.parent / "examples"
SEED: Final = 7
CHANGES: Final = 50
BATCH: Final = 100
"""Edges inserted, and as many deleted."""
LIMITS: Final = Limits(1 << 31, 1 << 31)

Timed: TypeAlias = tuple[int, float, float]
"""A value, and milliseconds to build and to solve."""


def ends_of(edges: EdgeList) -> tuple[int, int]:
    assert edges.source is not None
    assert edges.sink is not None
    return edges.source, edges.sink


def by_ortools(network: Directed) -> Timed:
    """CPU time of the best of three runs."""

    def build() -> SimpleMaxFlow:
        solver = SimpleMaxFlow()
        solver.add_arcs_with_capacity(network.tail, network.head, network.capacity)
        return solver

    solver, build_ms, _ = spent(build)
    status, solve_ms, _ = spent(lambda: solver.solve(network.source, network.sink))
    check(status == SimpleMaxFlow.OPTIMAL, "OR-tools failed")
    return int(solver.optimal_flow()), build_ms, solve_ms


def proven(engine: Engine, state: FlowState, *, cold: bool = False) -> int:
    value = engine.solve(state, cold=cold).value
    check_certificate(engine.certificate(state), value)
    return value


def thread_ms(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.thread_time()
    found = work()
    return found, 1e3 * (time.thread_time() - began)


def of_vertices(edges: EdgeList) -> Iterator[Row]:
    """Every junction has a capacity: the flow from zero, and after each of some single changes."""
    rng, (source, sink) = np.random.default_rng(SEED), ends_of(edges)
    inner = np.setdiff1d(np.arange(edges.n_vertices, dtype=np.int32), [source, sink]).astype(np.int32)
    limits = rng.integers(12, 40, len(inner)) * 100
    halves, inside = split(edges, inner, limits)
    engine = SplitEngine(Network(edges), halves, CpuEngine(Network(inside)))
    state = engine.open(Terminals.of([source], [sink]))
    proven(engine, state)
    value, cold_ms, _ = spent(lambda: proven(engine, state, cold=True))
    theirs, build_ms, solve_ms = by_ortools(split_by_hand(edges, inner, limits))
    check(value == theirs, f"vertices: {value}, OR-tools {theirs}")
    peer = {"ortools_build_ms": build_ms, "ortools_ms": solve_ms}
    yield {"work": "vertex capacities", "value": value, "thread_ms": cold_ms} | peer
    passed = np.flatnonzero(np.bincount(edges.head, engine.flow(state), edges.n_vertices)[inner])
    took = []
    for at in rng.choice(passed, CHANGES).tolist():
        limits[at] = int(rng.integers(0, 40)) * 100

        def changed(at: int = at) -> int:
            engine.update(np.array([edges.n_edges + at]), limits[at : at + 1])
            return proven(engine, state)

        value, ms = thread_ms(changed)
        took.append(ms)
    theirs, build_ms, solve_ms = by_ortools(split_by_hand(edges, inner, limits))
    check(value == theirs, f"vertices changed: {value}, OR-tools {theirs}")
    peer = {"ortools_build_ms": build_ms, "ortools_ms": solve_ms}
    yield {"work": "one vertex changed", "value": value, "thread_ms": round(median(took), 3)} | peer


def split_by_hand(edges: EdgeList, vertices: Any, limits: UnitArray) -> Directed:
    """Vertex v comes in at v and leaves from n + v."""
    n, (source, sink), given = edges.n_vertices, ends_of(edges), Directed.of(edges, 0)
    beyond = int(given.capacity.sum()) + 1
    passing = np.full(n, beyond)
    passing[vertices] = limits
    every = np.arange(n, dtype=np.int32)
    tail, head = np.concatenate([given.tail + n, every]), np.concatenate([given.head, every + n])
    return Directed(2 * n, tail, head, np.concatenate([given.capacity, passing]), source, sink + n, 0)


def of_bounds(edges: EdgeList) -> Iterator[Row]:
    """A tenth of the edges with flow carry at least half of it, which can be had; then one of them more than it can."""
    rng, (source, sink) = np.random.default_rng(SEED), ends_of(edges)
    network, ends = Network(edges), Terminals.of([source], [sink])
    engine = CpuEngine(network)
    state = engine.open(ends)
    engine.solve(state)
    flow = engine.flow(state)
    used = np.flatnonzero(flow)
    rows = np.sort(rng.choice(used, max(1, len(used) // 10), replace=False))
    lower = flow[rows] // 2
    into = np.flatnonzero(edges.head[rows] != sink)[0]
    too_much = lower.copy()
    leaving = edges.tail == edges.head[rows[into]]
    too_much[into] = int(edges.capacity[leaving].sum()) + 1
    wider = edges.capacity.copy()
    wider[rows[into]] = max(int(wider[rows[into]]), int(too_much[into]))
    for work, bound, capacity in (("lower bounds", lower, edges.capacity), ("what cannot be had", too_much, wider)):
        asked = Network(replace(edges, capacity=capacity))
        bounds = LowerBounds.of(asked, ends, rows, bound)

        def found(asked: Network = asked, bounds: LowerBounds = bounds) -> bool:
            answer = find_circulation(asked, bounds)
            if isinstance(answer, Barrier):
                check(answer.valid, "a barrier that proves nothing")
                return False
            proof = prove_circulation(asked, bounds, answer)
            check(not proof.failures, proof.failures)
            return True

        found()
        feasible, ours_ms, _ = spent(found)
        needed, given = without_bounds(replace(edges, capacity=capacity), bounds)
        theirs, build_ms, solve_ms = by_ortools(given)
        check(feasible == (theirs == needed), f"{work}: {feasible}, OR-tools {theirs} of {needed}")
        peer = {"ortools_build_ms": build_ms, "ortools_ms": solve_ms}
        yield {"work": work, "bounds": len(rows), "feasible": feasible, "thread_ms": ours_ms} | peer


def without_bounds(edges: EdgeList, bounds: LowerBounds) -> tuple[int, Directed]:
    """What must flow from a vertex more to another one, and the network in which it does if the bounds can be kept."""
    n, (source, sink) = edges.n_vertices, ends_of(edges)
    balance = np.bincount(edges.head, bounds.lower, n) - np.bincount(edges.tail, bounds.lower, n)
    excess, lack = np.flatnonzero(balance > 0).astype(np.int32), np.flatnonzero(balance < 0).astype(np.int32)
    rest = Directed.of(replace(edges, capacity=edges.capacity - bounds.lower), 0)
    beyond = int(edges.capacity.sum()) + 1
    tail = np.concatenate([rest.tail, np.full(len(excess), n), lack, [sink]]).astype(np.int32)
    head = np.concatenate([rest.head, excess, np.full(len(lack), n + 1), [source]]).astype(np.int32)
    amounts = balance[excess].astype(np.int64), -balance[lack].astype(np.int64)
    capacity = np.concatenate([rest.capacity, *amounts, [beyond]])
    return int(amounts[0].sum()), Directed(n + 2, tail, head, capacity, n, n + 1, 0)


def of_structure(edges: EdgeList) -> Iterator[Row]:
    """Batches that insert edges between near junctions, and delete as many."""
    rng, (source, sink) = np.random.default_rng(SEED), ends_of(edges)
    network = Network(edges)
    graph = Graph("g", "0" * 32, 1, 1, network, CpuEngine(network), CapacityTable(network, edges))
    solved = graph.open(Terminals.of([source], [sink]))
    graph.solve(solved, Control(), lambda: None)
    took = []
    for _ in range(CHANGES):
        tail = rng.integers(0, edges.n_vertices, BATCH)
        head = (tail + rng.integers(1, 50, BATCH)) % edges.n_vertices
        amounts = Texts.of([str(100 * units) for units in rng.integers(1, 20, BATCH)])
        live = graph.network.live(np.arange(graph.network.n_edges))
        gone = Columns("delete", edges=np.sort(rng.choice(live, BATCH, replace=False)))
        batch = [gone, Columns("insert", tail=tail, head=head, capacity=amounts)]

        def changed(batch: list[Columns] = batch) -> int:
            found = resolve(graph.table, graph.costs, batch, LIMITS)
            graph.restructure(found.structure, found.change, lambda needed: None)
            answer = graph.solve(solved, Control(), lambda: None, complete=True)
            check(answer.certificate.valid, answer.certificate.failures)
            return int(answer.report.value)

        value, ms = thread_ms(changed)
        took.append(ms)
    after = replace(present_of(graph.network.edge_list(), graph.network), source=source, sink=sink)
    theirs, build_ms, solve_ms = by_ortools(Directed.of(after, 0))
    check(value == theirs, f"structure: {value}, OR-tools {theirs}")
    peer = {"ortools_build_ms": build_ms, "ortools_ms": solve_ms}
    yield {"work": "structure changed", "batch": 2 * BATCH, "value": value, "thread_ms": round(median(took), 3)} | peer


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.richer", description=__doc__)
    parser.add_argument("--out", type=Path, default=DIRECTORY / "richer-cpu.json")
    options = parser.parse_args()
    results = Results("richer", {"seed": SEED, "changes": CHANGES, "batch": BATCH}, options.out)
    for name in ("osm-andorra", "osm-heidelberg"):
        edges = formats.read_file(EXAMPLES / f"{name}.npz")
        about: Row = {"network": name, "n": edges.n_vertices, "m": edges.n_edges}
        for measure in (of_vertices, of_bounds, of_structure):
            for row in measure(edges):
                results.extend([about | row])
                print(results.rows[-1], flush=True)


if __name__ == "__main__":
    main()
