"""Random insertions and deletions where vertices have capacities, mixed with updates, against a load from scratch."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_engine.checks.flows import prove_flow
from gpu_engine.checks.throughput import prove_throughput
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Unbounded
from gpu_engine.footprint import Footprint
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import present_of
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.types import INFINITE
from gpu_engine.vertices.engine import SplitEngine
from gpu_engine.vertices.split import split
from gpu_engine.vertices.table import VertexChange, VertexTable, vertices_of
from service.settings import Settings
from service.store.keys import Keys
from service.worker.copies import Copies
from service.worker.counters import Counters
from service.worker.graph import Graph
from service.worker.memory import Residents
from tests.cases import cases
from tests.property.test_structure import random_structure
from tests.random_networks import random_edges, random_terminals

BATCHES = 8
PLENTY = Footprint(1 << 50, 1 << 50)


def open_engine(network: Network, *, room: Callable[..., None]) -> CpuEngine:
    return CpuEngine(network, room=room)


def copies() -> Copies:
    """Nothing of it asks Redis here."""
    nothing: Any = None
    residents = Residents(PLENTY, lambda graph: None)
    return Copies(nothing, Keys("t"), "w", Settings(), open_engine, residents, Counters())


def graph_of(made: Copies, edges: EdgeList) -> Graph:
    network = made.network(edges)
    vertices = VertexTable.of(network, edges)
    engine = made.engine("g", network, None, vertices)
    return Graph("g", "0" * 32, 1, 1, network, engine, CapacityTable(network, edges), vertices=vertices)


def random_limits(rng: np.random.Generator, vertices: Any) -> VertexChange | None:
    chosen = vertices[rng.random(len(vertices)) < rng.choice([0, 0.5, 1])].astype(np.int32)
    capacity = rng.integers(0, int(rng.choice([3, 20, 1000])), len(chosen)).astype(np.int64)
    capacity[rng.random(len(chosen)) < 0.2] = INFINITE
    return VertexChange(chosen, capacity) if len(chosen) else None


def fresh(graph: Graph) -> SplitEngine:
    """An engine for what the graph is now, which never was anything else."""
    edges = present_of(replace(graph.network.edge_list(), vertex_labels=None, edge_ids=None), graph.network)
    table = vertices_of(graph.vertices, graph.network)
    halves, inside = split(edges, table.vertices, table.capacity)
    return SplitEngine(Network(edges), halves, CpuEngine(Network(inside)))


def check_states(graph: Graph, at: str) -> None:
    table = vertices_of(graph.vertices, graph.network)
    for solved in list(graph.states.values()):
        answer = graph.solve(solved, Control(), lambda: None, complete=True)
        again = fresh(graph)
        state = again.open(solved.terminals)
        assert answer.report.value == answer.certificate.value == again.solve(state).value, at
        one, other = graph.engine.cut(solved.state), again.cut(state)
        assert (one.source_side == other.source_side).all(), at
        assert (one.value, one.unique, one.vertices.tolist()) == (other.value, other.unique, other.vertices.tolist()), (
            at
        )
        rows = graph.network.live(np.arange(graph.network.n_edges))
        assert one.edges.tolist() == rows[other.edges].tolist(), at
        flow = graph.engine.flow(solved.state)
        proof = prove_flow(graph.network, solved.terminals, flow, acyclic=True)
        assert (proof.failures, proof.value) == ((), answer.report.value), at
        assert prove_throughput(graph.network, flow, table.vertices, table.capacity) == [], at


@pytest.mark.parametrize("first", range(0, cases(150), 25))
def test_batches_agree_with_a_load_from_scratch(first: int) -> None:
    for seed in range(first, first + 25):
        rng, made = np.random.default_rng(seed), copies()
        loaded = random_edges(rng, 10)
        limits = random_limits(rng, np.arange(loaded.n_vertices))
        if limits is not None:
            loaded = replace(loaded, limited=limits.vertices, vertex_capacity=limits.capacity)
        graph = graph_of(made, loaded)
        for _ in range(3):
            try:
                graph.open(random_terminals(rng, loaded.n_vertices))
            except Unbounded:
                continue
        for step in range(BATCHES):
            structure, change = random_structure(rng, graph)
            vertices = random_limits(rng, graph.network.n_vertices + np.arange(structure.n_vertices))
            if structure.grows and (graph.vertices is not None or vertices is not None):
                made.go_on(graph, made.grown(graph, structure, change, vertices))
            else:
                graph.restructure(structure, change, lambda needed: None)
            table = graph.vertices
            if table is not None and rng.random() < 0.5:
                changed = random_limits(rng, table.vertices)
                if changed is not None:
                    graph.update(
                        replace(change, rows=change.rows[:0], own=change.own[:0], closed=change.closed[:0]), changed
                    )
            check_states(graph, f"seed {seed} step {step}")
