"""A proof of what has changed says what a complete one says, and sees each harm that is done where it looks."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.errors import Unbounded
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE

N, M = 600, 2400
Rng: TypeAlias = np.random.Generator


def bounded_engine(rng: Rng) -> tuple[CpuEngine, CpuFlowState]:
    """The first random one in which no path of edges without limit leads from a source to a sink."""
    while True:
        with suppress(Unbounded):
            return random_engine(rng)


def random_engine(rng: Rng) -> tuple[CpuEngine, CpuFlowState]:
    """Directed and undirected edges, parallel ones and loops, a few without limit, capped and uncapped terminals."""
    capacity = rng.integers(0, 30, M)
    tail, head = rng.integers(0, N, M, np.int32), rng.integers(0, N, M, np.int32)
    near = rng.random(M) < 0.8  # long paths
    head[near] = np.minimum(N - 1, tail[near] + rng.integers(0, 9, near.sum(), np.int32))
    if rng.random() < 0.3:
        capacity[rng.integers(0, M, 3)] = INFINITE
    edges = EdgeList(n_vertices=N, tail=tail, head=head, capacity=capacity, undirected=rng.random(M) < 0.4)
    vertices = rng.permutation(N)
    k = int(rng.integers(1, 8))
    sources, sinks = vertices[:k], vertices[k : 2 * k]
    caps = [np.where(rng.random(k) < 0.7, rng.integers(0, 60, k), INFINITE) for _ in range(2)]
    engine = CpuEngine(Network(edges))
    return engine, engine.open(Terminals.of(sources.tolist(), sinks.tolist(), *caps))


def change(engine: CpuEngine, rng: Rng) -> None:
    """A few finite edges."""
    finite = np.flatnonzero(engine.network.capacity != INFINITE)
    rows = rng.choice(finite, int(rng.integers(1, 6)), replace=False)
    engine.update(rows, rng.integers(0, 40, len(rows)))


@pytest.mark.parametrize("seed", range(30))
def test_it_says_what_a_complete_proof_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    engine, state = bounded_engine(rng)
    engine.solve(state)
    assert engine.certificate(state).complete
    partial = 0
    for _ in range(60):
        for _ in range(int(rng.integers(1, 3))):
            change(engine, rng)
        value = engine.solve(state).value
        proven = engine.certificate(state, complete=False)
        partial += not proven.complete
        assert proven.valid
        assert proven.value == proven.flow_across_cut == value
        assert state.audit is not None
        audit = state.audit
        complete = engine.certificate(state)
        assert (complete.valid, complete.complete, complete.value) == (True, True, value)
        state.audit = audit  # goes on as if nobody had asked for a complete one
    assert partial > 20


def settled(seed: int) -> tuple[CpuEngine, CpuFlowState]:
    """A state whose cut has arcs, and of which everything was proven."""
    rng = np.random.default_rng([seed, 1])
    while True:
        engine, state = bounded_engine(rng)
        if engine.solve(state).value and len(engine.cut(state).edges) and engine.certificate(state).valid:
            return engine, state


def inner(engine: CpuEngine, state: CpuFlowState, *, crossing: bool) -> int:
    """An arc between ordinary vertices, from S to T or within S or T."""
    tails, side = engine.network.head[engine.network.reverse_arc], state.source_side
    heads = engine.network.head
    ordinary = (state.role[tails] == 0) & (state.role[heads] == 0) & (engine._capacity > 0)
    if crossing:
        return int(np.flatnonzero(ordinary & side[tails] & ~side[heads])[0])
    return int(np.flatnonzero(ordinary & (side[tails] == side[heads]))[0])


def break_residual(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    a = inner(engine, state, crossing=False)
    state.residual[a] += 1
    return [int(engine.network.head[a])]


def break_sign(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    """More flow than an arc can carry, from an excess that is larger still, so that only the residual tells."""
    heads, tails = engine.network.head, engine.network.head[engine.network.reverse_arc]
    moved = state.residual + 1
    ordinary = (state.role[tails] == 0) & (state.role[heads] == 0)
    a = int(
        np.flatnonzero(ordinary & state.source_side[tails] & state.source_side[heads] & (state.excess[tails] >= moved))[
            0
        ]
    )
    state.residual[engine.network.reverse_arc[a]] += moved[a]
    state.excess[tails[a]] -= moved[a]
    state.excess[heads[a]] += moved[a]
    state.residual[a] = -1
    return [int(tails[a]), int(heads[a])]


def break_excess(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    v = int(np.flatnonzero((state.role == 0) & state.source_side)[0])
    state.excess[v] += 1
    return [v]


def break_saturation(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    a = inner(engine, state, crossing=True)
    r = int(engine.network.reverse_arc[a])
    state.residual[a] += 1
    state.residual[r] -= 1
    state.excess[engine.network.head[r]] += 1
    state.excess[engine.network.head[a]] -= 1
    return [int(engine.network.head[r]), int(engine.network.head[a])]


def break_side(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    """A vertex comes to S over an arc that is not saturated any more."""
    a = inner(engine, state, crossing=True)
    v = int(engine.network.head[a])
    row = slice(engine.network.row_offsets[v], engine.network.row_offsets[v + 1])
    if state.source_side[engine.network.head[row]].all() or not state.residual[row].any():
        raise IndexError("all of it lies in S then")
    state.source_side[v] = True
    return [v]


def break_balance(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    """Flow on one arc that only one of its ends is named for."""
    a = next(
        a
        for a in range(engine.network.n_arcs)
        if state.residual[a] > 0
        and (state.role[engine.network.head[[a, engine.network.reverse_arc[a]]]] == 0).all()
        and state.source_side[engine.network.head[a]]
        and state.source_side[engine.network.head[engine.network.reverse_arc[a]]]
        and state.excess[engine.network.head[engine.network.reverse_arc[a]]] > 0
    )
    r = int(engine.network.reverse_arc[a])
    u, v = int(engine.network.head[r]), int(engine.network.head[a])
    state.residual[a] -= 1
    state.residual[r] += 1
    state.excess[u] -= 1
    state.excess[v] += 1
    return [u]


def break_credit(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    """A unit goes back to a source, whose excess is no condition, and is written down for another vertex: no vertex has
    less than has come to it, and all together have what they had."""
    heads, tails = engine.network.head, engine.network.head[engine.network.reverse_arc]
    back = (state.residual > 0) & (state.role[tails] == 0) & (state.role[heads] != 0) & state.source_side[heads]
    a = int(np.flatnonzero(back & state.source_side[tails] & (state.excess[tails] > 0))[0])
    u, s = int(tails[a]), int(heads[a])
    others = (state.role == 0) & state.source_side
    others[u] = False
    v = int(np.flatnonzero(others)[0])
    state.residual[a] -= 1
    state.residual[engine.network.reverse_arc[a]] += 1
    state.excess[u] -= 1
    state.excess[v] += 1
    return [u, v, s]


def break_free(engine: CpuEngine, state: CpuFlowState) -> list[int]:
    v = int(np.flatnonzero(state.role)[0])
    state.source_side[v] ^= True
    return [v]


HARMS: list[Callable[[CpuEngine, CpuFlowState], list[int]]] = [
    break_residual,
    break_sign,
    break_excess,
    break_saturation,
    break_side,
    break_balance,
    break_credit,
    break_free,
]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_harm_is_seen(harm: Callable[[CpuEngine, CpuFlowState], list[int]]) -> None:
    seen = 0
    for seed in range(12):
        engine, state = settled(seed)
        audit = state.audit
        assert audit is not None
        try:
            vertices = harm(engine, state)
        except (IndexError, StopIteration):
            continue  # there is no such place
        audit.note(np.array(vertices, np.int32))
        proven = audit.certificate(
            engine.network, state.terminals, engine._capacity, state.residual, state.excess, state.source_side
        )
        assert not proven.valid
        assert engine.certificate(state).valid == (harm is break_balance)  # that is a flow, but not what was said
        seen += 1
    assert seen >= 3


def test_what_nobody_named_is_seen_by_a_complete_proof() -> None:
    engine, state = settled(0)
    break_excess(engine, state)
    assert engine.certificate(state, complete=False).valid
    assert not engine.certificate(state).valid


def test_a_changed_edge_between_free_vertices_is_looked_at() -> None:
    """Neither of their rows is read."""
    tail, head = np.array([0, 0, *range(2, 40)], np.int32), np.array([1, 1, *range(3, 41)], np.int32)
    edges = EdgeList(n_vertices=41, tail=tail, head=head, capacity=np.full(40, 5))
    engine = CpuEngine(Network(edges))
    state = engine.open(Terminals.of([0], [1]))
    assert engine.solve(state).value == 10
    assert engine.certificate(state).valid
    engine.update(np.array([1]), np.array([9]))
    assert engine.solve(state).value == 14
    state.residual[engine.network.edge_arc[1]] += 1
    assert state.audit is not None
    arrays = state.residual, state.excess, state.source_side
    assert not state.audit.certificate(engine.network, state.terminals, engine._capacity, *arrays).valid


def test_much_change_is_proven_completely() -> None:
    engine, state = settled(1)
    finite = np.flatnonzero(engine.network.capacity != INFINITE)[: N // 10]
    engine.update(finite, engine.network.capacity[finite])
    engine.solve(state)
    assert engine.certificate(state, complete=False).complete
