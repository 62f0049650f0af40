"""Vertices with capacities against NetworkX on a network split here, and against all cuts of small networks."""

from itertools import product

import networkx as nx
import numpy as np
import pytest

from gpu_engine.checks.flows import prove_flow
from gpu_engine.checks.throughput import prove_throughput
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.engine import Cut, Mode
from gpu_engine.errors import Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, EdgeArray, UnitArray, VertexArray
from gpu_engine.vertices.engine import SplitEngine, SplitState
from gpu_engine.vertices.split import split
from tests.cases import cases
from tests.random_networks import random_caps, random_edges, random_terminals, random_update

MUCH = 10**9
"""More than any flow here."""


def opened(edges: EdgeList, vertices: VertexArray, capacity: UnitArray) -> SplitEngine:
    halves, inside = split(edges, vertices, capacity)
    return SplitEngine(Network(edges), halves, CpuEngine(Network(inside)))


def random_vertices(rng: np.random.Generator, n: int) -> tuple[VertexArray, UnitArray]:
    """None, some or all of the vertices, with capacities some of which do not limit."""
    chosen = np.flatnonzero(rng.random(n) < rng.choice([0, 0.3, 1])).astype(np.int32)
    capacity = rng.integers(0, int(rng.choice([3, 20, 1000])), len(chosen)).astype(np.int64)
    capacity[rng.random(len(chosen)) < rng.choice([0, 0.2])] = INFINITE
    return chosen, capacity


def maximum(edges: EdgeList, capacity: UnitArray, ends: Terminals, vertices: VertexArray, limits: UnitArray) -> int:
    """By NetworkX, which takes an edge without a capacity as unlimited: none is needed here."""
    graph = nx.DiGraph()

    def add(u: object, v: object, units: int) -> None:
        before = graph.get_edge_data(u, v, {"capacity": 0})["capacity"]
        graph.add_edge(u, v, capacity=before + min(units, MUCH))

    limit = dict(zip(vertices.tolist(), limits.tolist(), strict=True))
    for v in range(edges.n_vertices):
        add((v, "in"), (v, "out"), limit.get(v, MUCH))
    undirected = np.broadcast_to(edges.undirected, edges.n_edges)
    for tail, head, units, both in zip(edges.tail, edges.head, capacity.tolist(), undirected, strict=True):
        add((int(tail), "out"), (int(head), "in"), units)
        if both:
            add((int(head), "out"), (int(tail), "in"), units)
    for v, cap in zip(ends.sources.tolist(), ends.supply.tolist(), strict=True):
        add("from", (v, "in"), cap)
    for v, cap in zip(ends.sinks.tolist(), ends.demand.tolist(), strict=True):
        add((v, "out"), "to", cap)
    return int(nx.maximum_flow_value(graph, "from", "to"))


def check_flow(
    engine: SplitEngine, state: SplitState, vertices: VertexArray, limits: UnitArray, value: int, at: str
) -> None:
    for acyclic in (True, False):
        flow = engine.flow(state, acyclic=acyclic)
        proof = prove_flow(engine.network, state.terminals, flow, acyclic=acyclic)
        assert (proof.failures, proof.value) == ((), value), at
        assert prove_throughput(engine.network, flow, vertices, limits) == [], at


def check_cut(
    engine: SplitEngine, state: SplitState, vertices: VertexArray, limits: UnitArray, value: int, at: str
) -> Cut:
    cut = engine.cut(state)
    paid, own = cut.paid(state.terminals), limits[np.searchsorted(vertices, cut.vertices)]
    pays = [engine.network.capacity[cut.edges], own, paid.supply, paid.demand]
    assert sum(int(part.sum()) for part in pays) == cut.value == value, at
    assert cut.source_side[cut.vertices].all(), at
    return cut


def check_unbounded(error: Unbounded, edges: EdgeList, ends: Terminals) -> None:
    """It names vertices of the caller, each once, and the caller's terminals."""
    named = list(error.where.vertices)
    assert set(named) <= set(range(edges.n_vertices))
    assert len(set(named)) == len(named)
    assert error.terminals == ends.key


def check_sequence(seed: int, steps: int) -> None:
    """Solve, compare, change edges or vertices, and again. What is repaired is as what is solved anew."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 12)
    vertices, limits = random_vertices(rng, edges.n_vertices)
    ends = random_terminals(rng, edges.n_vertices)
    engine = opened(edges, vertices, limits)
    try:
        state = engine.open(ends)
    except Unbounded as error:
        check_unbounded(error, edges, ends)
        return
    for step in range(steps):
        at = f"seed {seed} step {step}"
        report, certificate = engine.solve(state), engine.certificate(state)
        value = maximum(edges, engine.network.capacity, ends, vertices, limits)
        assert certificate.valid, f"{at}: {certificate.failures}"
        assert report.value == certificate.value == value, at
        assert engine.solve(state).mode is Mode.UNCHANGED, at
        check_flow(engine, state, vertices, limits, value, at)
        cut = check_cut(engine, state, vertices, limits, value, at)
        found = engine.bottlenecks(state)
        assert set(cut.edges) <= set(found.edges), at
        assert set(cut.vertices) <= set(found.vertices), at
        every = engine.network.n_edges + len(vertices)
        if not every:
            return
        rows, new = random_update(rng, np.concatenate([engine.network.capacity, limits]))
        try:
            engine.update(rows, new)
        except Unbounded as error:
            check_unbounded(error, edges, ends)
            continue
        inner = rows >= engine.network.n_edges
        limits[rows[inner] - engine.network.n_edges] = new[inner]
        assert np.array_equal(engine.capacity(rows), new), at
        if rng.random() < 0.1:
            engine.solve(state)
            saved = engine.export(state)
            engine.close(state)
            state = engine.restore(ends, saved)


@pytest.mark.parametrize("first", range(0, cases(150), 25))
def test_updates_agree_with_networkx(first: int) -> None:
    for seed in range(first, first + 25):
        check_sequence(seed, steps=6)


def all_cuts(edges: EdgeList, ends: Terminals, vertices: VertexArray, limits: UnitArray) -> list[tuple[int, object]]:
    """The capacity of every cut, and what it pays. A vertex lies beyond, is cut itself, or lies on the source side."""
    limit = dict(zip(vertices.tolist(), limits.tolist(), strict=True))
    cuts: list[tuple[int, object]] = []
    places = [(0, 1, 2) if v in limit else (0, 2) for v in range(edges.n_vertices)]
    undirected = np.broadcast_to(edges.undirected, edges.n_edges)
    for place in product(*places):
        pays: list[tuple[str, int, int]] = [("vertex", v, limit[v]) for v, at in enumerate(place) if at == 1]
        for row, (u, v, units) in enumerate(zip(edges.tail, edges.head, edges.capacity.tolist(), strict=True)):
            if (place[u] == 2 and place[v] == 0) or (undirected[row] and place[v] == 2 and place[u] == 0):
                pays.append(("edge", row, units))
        pays += [("source", v, cap) for v, cap in zip(ends.sources, ends.supply.tolist(), strict=True) if not place[v]]
        pays += [("sink", v, cap) for v, cap in zip(ends.sinks, ends.demand.tolist(), strict=True) if place[v] == 2]
        paid = frozenset((kind, int(row)) for kind, row, units in pays if units)
        cuts.append((sum(units for _, _, units in pays), paid))
    return cuts


@pytest.mark.parametrize("first", range(0, cases(100), 25))
def test_cuts_agree_with_all_cuts(first: int) -> None:
    for seed in range(first, first + 25):
        rng = np.random.default_rng(seed)
        edges = random_edges(rng, 7)
        vertices, limits = random_vertices(rng, edges.n_vertices)
        limits = np.minimum(limits, 8)  # or nothing but edges is ever cut
        ends = random_terminals(rng, edges.n_vertices)
        engine = opened(edges, vertices, limits)
        try:
            state = engine.open(ends)
        except Unbounded:
            continue
        value = engine.solve(state).value
        cuts = all_cuts(edges, ends, vertices, limits)
        assert min(units for units, _ in cuts) == value, seed
        least = {paid for units, paid in cuts if units == value}
        cut = check_cut(engine, state, vertices, limits, value, f"seed {seed}")
        named = cut.paid(ends)
        paid = [("edge", cut.edges), ("vertex", cut.vertices), ("source", named.sources), ("sink", named.sinks)]
        assert frozenset((kind, int(row)) for kind, rows in paid for row in rows) in least, seed
        assert cut.unique == (len(least) == 1), seed
        found = engine.bottlenecks(state)
        some, every = frozenset[object]().union(*least), frozenset[object].intersection(*least)  # type: ignore[arg-type]
        parts: list[tuple[str, EdgeArray | VertexArray, BoolArray]] = [
            ("edge", found.edges, found.in_every),
            ("vertex", found.vertices, found.vertex_in_every),
            ("source", found.sources, found.source_in_every),
            ("sink", found.sinks, found.sink_in_every),
        ]
        assert {(kind, int(row)) for kind, rows, _ in parts for row in rows} == some, seed
        assert {(kind, int(row)) for kind, rows, always in parts for row in rows[always]} == every, seed


def check_forks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, 12)
    vertices, limits = random_vertices(rng, edges.n_vertices)
    ends = random_terminals(rng, edges.n_vertices)
    engine = opened(edges, vertices, limits)
    m = engine.network.n_edges
    if not m + len(vertices):
        return
    try:
        state = engine.open(ends)
    except Unbounded:
        return
    value = engine.solve(state).value
    fork, base = engine.fork(state), np.concatenate([engine.network.capacity, limits])
    for trial in range(5):
        rows, new = random_update(rng, base)
        tried = None if rng.random() < 0.5 else random_caps(rng, ends)
        changed = base.copy()
        changed[rows] = new
        try:
            overlay = fork.overlay(rows, new, tried)
        except Unbounded:
            fork.drop()
            continue
        expected = maximum(edges, changed[:m], tried or ends, vertices, changed[m:])
        assert fork.engine.solve(overlay).value == expected, f"seed {seed} trial {trial}"
        assert fork.engine.certificate(overlay).valid
        fork.drop()
    assert engine.solve(state).mode is Mode.UNCHANGED
    assert engine.solve(state).value == value
    assert engine.certificate(state).valid


@pytest.mark.parametrize("first", range(0, cases(100), 25))
def test_overlays_agree_with_networkx(first: int) -> None:
    for seed in range(first, first + 25):
        check_forks(seed)
