"""Random batches that insert and delete vertices and edges, as callers send them, against a load from scratch."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_engine.checks.flows import prove_flow
from gpu_engine.checks.throughput import prove_throughput
from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.restructure import Limits
from gpu_engine.networks.structure import present_of, since_load, with_inserted
from gpu_engine.networks.terminals import Terminals
from gpu_engine.pairs.global_cut import global_cut
from gpu_engine.types import INFINITE
from gpu_engine.vertices.engine import SplitEngine
from gpu_engine.vertices.split import split
from gpu_engine.vertices.table import vertices_of
from service.protocol import EdgesArgs, EdgesOperation, GlobalCutArgs, Kind
from service.worker.changes import Changes
from service.worker.copies import Copies
from service.worker.graph import Graph
from service.worker.structure import structure_change
from tests.cases import cases
from tests.property.test_grown_vertices import copies, graph_of, random_limits
from tests.random_networks import random_edges, random_terminals
from tests.service_fixtures import Caller, StartWorker

BATCHES = 8
PLENTY = Limits(10_000, 10_000)


def random_batch(rng: np.random.Generator, network: Network, limited: bool) -> list[EdgesOperation]:
    """Up to three vertices and fifteen edges come, up to a third of the vertices and a few edges go."""
    there, n = np.flatnonzero(network.there), network.n_vertices
    gone = rng.choice(there, int(rng.integers(0, len(there) // 3 + 1)), replace=False)
    count, k = int(rng.integers(0, 4)), int(rng.integers(0, 15))
    ends = np.concatenate([np.setdiff1d(there, gone), n + np.arange(count)])
    batch = [EdgesOperation(op="delete", vertices=gone.tolist())] if len(gone) else []
    capacity = rng.integers(0, 20, count).astype(str).tolist() if limited and rng.random() < 0.5 else None
    batch.append(EdgesOperation(op="insert", count=count, vertex_capacity=capacity))
    if len(ends):
        tail, head = rng.choice(ends, (2, k)).tolist()
        amounts = [str(units) if units else "inf" for units in rng.integers(rng.integers(2), 30, k)]
        flags = (rng.random(k) < rng.choice([0, 0.5])).tolist()
        batch.append(EdgesOperation(op="insert", tail=tail, head=head, capacity=amounts, undirected=flags))
    live = network.live(np.arange(network.n_edges))
    edges = rng.choice(live, min(len(live), int(rng.integers(0, 4))), replace=False).tolist()
    batch.append(EdgesOperation(op="delete", edges=edges))
    return [batch[at] for at in rng.permutation(len(batch))]


def apply(made: Copies, graph: Graph, changes: Changes) -> None:
    """As `service.worker.patching.Patcher` does."""
    change, structure, vertices = changes.change, changes.structure, changes.vertices
    assert structure is not None
    if structure.grows and (graph.vertices is not None or vertices is not None):
        made.go_on(graph, made.grown(graph, structure, change, vertices))
    else:
        graph.restructure(structure, change, lambda needed: None, vertices)


def fresh(graph: Graph) -> tuple[SplitEngine, EdgeList]:
    """An engine for what the graph is now, which never was anything else: vertices are the i-th that are there."""
    edges = replace(graph.network.edge_list(), vertex_labels=None, edge_ids=None)
    table = vertices_of(graph.vertices, graph.network)
    edges = present_of(replace(edges, limited=table.vertices, vertex_capacity=table.capacity), graph.network)
    assert edges.limited is not None
    assert edges.vertex_capacity is not None
    bare = replace(edges, limited=None, vertex_capacity=None, vertex_labels=None, edge_ids=None)
    halves, inside = split(bare, edges.limited, edges.vertex_capacity)
    return SplitEngine(Network(bare), halves, CpuEngine(Network(inside))), bare


def check_states(graph: Graph, at: str) -> None:
    there, table = graph.network.there, vertices_of(graph.vertices, graph.network)
    place = np.cumsum(there) - 1
    live = graph.network.live(np.arange(graph.network.n_edges))
    assert there[graph.network.edge_tail(live)].all(), at
    assert there[graph.network.edge_head(live)].all(), at
    for solved in list(graph.states.values()):
        ends = solved.terminals
        assert there[ends.sources].all(), at
        assert there[ends.sinks].all(), at
        answer = graph.solve(solved, Control(), lambda: None, complete=True)
        again, _ = fresh(graph)
        same = Terminals.of(place[ends.sources], place[ends.sinks], ends.supply, ends.demand)
        state = again.open(same)
        assert answer.report.value == answer.certificate.value == again.solve(state).value, at
        for near in ("sources", "sinks"):
            one, other = graph.engine.cut(solved.state, near=near), again.cut(state, near=near)  # type: ignore[arg-type]
            assert (one.source_side[there] == other.source_side).all(), at
            assert (one.value, one.unique) == (other.value, other.unique), at
            assert place[one.vertices].tolist() == other.vertices.tolist(), at
            assert one.edges.tolist() == live[other.edges].tolist(), at
        flow = graph.engine.flow(solved.state)
        proof = prove_flow(graph.network, ends, flow, acyclic=True)
        assert (proof.failures, proof.value) == ((), answer.report.value), at
        assert prove_throughput(graph.network, flow, table.vertices, table.capacity) == [], at


@pytest.mark.parametrize("first", range(0, cases(120), 20))
def test_batches_agree_with_a_load_from_scratch(first: int) -> None:
    for seed in range(first, first + 20):
        rng, made = np.random.default_rng(seed), copies()
        loaded = random_edges(rng, 12)
        limited = bool(rng.random() < 0.5)
        limits = random_limits(rng, np.arange(loaded.n_vertices)) if limited else None
        if limits is not None:
            loaded = replace(loaded, limited=limits.vertices, vertex_capacity=limits.capacity)
        graph = graph_of(made, loaded)
        for step in range(BATCHES):
            there = np.flatnonzero(graph.network.there)
            if len(there) > 2 and rng.random() < 0.6:
                drawn = random_terminals(rng, len(there))
                with suppress(Unbounded):
                    graph.open(Terminals.of(there[drawn.sources], there[drawn.sinks], drawn.supply, drawn.demand))
            args = EdgesArgs(batch=random_batch(rng, graph.network, limited))
            apply(made, graph, structure_change(graph, args, PLENTY))
            check_states(graph, f"seed {seed} step {step}")
        since = since_load(graph.network, None)
        if since is not None:
            again = Network(with_inserted(replace(loaded, limited=None, vertex_capacity=None), [since]))
            again.mark(since.deleted, since.revived)
            again.mark_vertices(since.deleted_vertices, since.revived_vertices)
            assert np.array_equal(again.edge_arc, graph.network.edge_arc)
            assert (again.there == graph.network.there).all()


def test_global_cuts_agree_with_a_load_from_scratch(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    for seed in range(15):
        rng, made = np.random.default_rng(seed), copies()
        edges = random_edges(rng, 9)
        edges = replace(edges, capacity=np.where(edges.capacity == INFINITE, 7, edges.capacity))
        caller.load("g", edges)
        gone = rng.choice(edges.n_vertices, edges.n_vertices // 3, replace=False).tolist()
        args = EdgesArgs(batch=[EdgesOperation(op="delete", vertices=gone)])
        caller.ask(Kind.PATCH_EDGES, "g", args)
        graph = graph_of(made, edges)
        apply(made, graph, structure_change(graph, args, PLENTY))
        if graph.network.n_live_vertices < 2:
            continue
        expected = global_cut(Network(fresh(graph)[1]), Control()).value
        asked = GlobalCutArgs(fields=frozenset({"value", "cut"}))
        answer: dict[str, Any] = caller.ask(Kind.GLOBAL_MIN_CUT, "g", asked)
        cut = answer["cut"]
        assert answer["value"] == cut["value"] == sum(cut["pays"]) == expected, seed
        sides = [*cut["source_side"], *cut["sink_side"]]
        assert sorted(sides) == np.flatnonzero(graph.network.there).tolist(), seed
        assert cut["source_side"]
        assert cut["sink_side"]
