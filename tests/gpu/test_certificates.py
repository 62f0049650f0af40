"""A device's certificate refuses a state in which one place is wrong, by sums as well as place by place."""

from collections.abc import Callable

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.checks.certificate import Certificate  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine, CudaFlowState  # noqa: E402
from gpu_engine.cuda.launch.arrays import heads_and_reverses, residuals  # noqa: E402
from gpu_engine.cuda.launch.certify import certify, prove, prove_again  # noqa: E402
from gpu_engine.cuda.launch.update import ONE_BLOCK_ROWS  # noqa: E402
from gpu_engine.cuda.layout import OFFENDERS  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.cuda.transfer import own_supply  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.types import INFINITE  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

N = 3_000


def solved(seed: int, *, wide: bool, undirected: bool | None) -> tuple[CudaEngine, CudaFlowState]:
    """Random edges, many of which share a link or are self-loops, and a hub with vertices without edges behind it."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, N - 500, (4 * N, 2)).astype(np.int32)
    ends[: N // 3, 0] = 1700
    capacity = rng.integers(0, 1 << (40 if wide else 10), len(ends))
    both_ways = rng.random(len(ends)) < 0.5 if undirected is None else undirected
    edges = EdgeList(N, ends[:, 0].copy(), ends[:, 1].copy(), capacity, both_ways)
    engine = CudaEngine(Network(edges))
    terminals = Terminals.of(list(range(40)), list(range(2000, 2040)), [INFINITE, *[1 << 9] * 39])
    state = engine.open(terminals)
    assert engine.solve(state).value > 0
    return engine, state


def residual_of_one_arc(engine: CudaEngine, state: CudaFlowState, arc: int) -> None:
    residuals(state.arcs, state.wide)[arc] += 1


def flow_of_one_link(engine: CudaEngine, state: CudaFlowState, arc: int) -> None:
    """Along one of its arcs, which has room: neither end knows."""
    rest, (_, reverse) = residuals(state.arcs, state.wide), heads_and_reverses(state.arcs)
    arc = int(cupy.flatnonzero(rest > 0)[arc % 1000])
    rest[arc] -= 1
    rest[int(reverse[arc])] += 1


def negative_residual(engine: CudaEngine, state: CudaFlowState, arc: int) -> None:
    """The flow is that of both ends."""
    rest, (head, reverse) = residuals(state.arcs, state.wide), heads_and_reverses(state.arcs)
    back = int(reverse[arc])
    more = int(rest[arc]) + 1
    rest[arc] -= more
    rest[back] += more
    state.excess[int(head[arc])] += more
    state.excess[int(head[back])] -= more


def capacity_of_one_edge(engine: CudaEngine, state: CudaFlowState, arc: int) -> None:
    rows = np.flatnonzero(engine.network.edge_arc >= 0)
    engine._topology.capacity[int(rows[arc % len(rows)])] += 1


def excess_of_one_vertex(engine: CudaEngine, state: CudaFlowState, arc: int) -> None:
    state.excess[arc % N] += 1


def side_of_a_source(engine: CudaEngine, state: CudaFlowState, arc: int) -> None:
    state.source_side[0] = False


def side_of_a_sink(engine: CudaEngine, state: CudaFlowState, arc: int) -> None:
    state.source_side[2000 + arc % 40] = True


SPOILT = [
    residual_of_one_arc,
    flow_of_one_link,
    negative_residual,
    capacity_of_one_edge,
    excess_of_one_vertex,
    side_of_a_source,
    side_of_a_sink,
]


@pytest.mark.parametrize("undirected", [False, True, None])
@pytest.mark.parametrize("wide", [False, True])
def test_what_is_right_is_proven_by_sums(wide: bool, undirected: bool | None) -> None:
    for seed in range(5):
        engine, state = solved(seed, wide=wide, undirected=undirected)
        supply = own_supply(N, state.terminals)
        for _ in range(5):
            proven, looked_at = prove(engine._topology, state, supply), certify(engine._topology, state, supply)
            assert proven is not None
            found, sums = proven
            again = prove_again(engine._topology, state, supply, sums)
            assert again is not None
            for name in (*OFFENDERS, "across", "cut_capacity"):
                assert found[name] == again[name] == looked_at[name]


def is_noted(spoil: Callable[..., None]) -> bool:
    """Whether it spoils what a proof of a repaired state reads; capacities change by updates alone."""
    return spoil is not capacity_of_one_edge


@pytest.mark.parametrize("undirected", [False, True, None])
@pytest.mark.parametrize("wide", [False, True])
def test_updates_keep_up_what_the_edges_add_up_to(wide: bool, undirected: bool | None) -> None:
    """Small and large batches, with links that several edges of a batch share; the sum is that of a new proof."""
    for seed in range(3):
        engine, state = solved(seed, wide=wide, undirected=undirected)
        rng = np.random.default_rng([7, seed])
        assert engine.certificate(state).complete
        for k in (1, 40, 4 * N, 3000, ONE_BLOCK_ROWS + 1):
            rows = np.sort(rng.permutation(4 * N)[:k]).astype(np.int32)
            engine.update(rows, rng.integers(0, 1 << (40 if wide else 10), k))
            value = engine.solve(state).value
            repaired, sums = engine.certificate(state, complete=False), state.sums
            assert sums is not None
            assert repaired.valid, repaired.failures
            assert (repaired.complete, repaired.value) == (False, value)
            whole = engine.certificate(state)
            assert (whole.valid, whole.complete, whole.value) == (True, True, value)
            assert state.sums is not None
            assert state.sums.seeds != sums.seeds


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("spoil", [spoil for spoil in SPOILT if is_noted(spoil)])
def test_one_wrong_place_of_a_repaired_state_is_seen(
    spoil: Callable[[CudaEngine, CudaFlowState, int], None], wide: bool
) -> None:
    for seed in range(5):
        engine, state = solved(seed, wide=wide, undirected=None)
        rng = np.random.default_rng([8, seed])
        assert engine.certificate(state).valid
        engine.update(np.arange(100, dtype=np.int32), rng.integers(0, 1 << 10, 100))
        engine.solve(state)
        sums = state.sums
        assert sums is not None
        spoil(engine, state, int(rng.integers(0, engine.network.n_arcs)))
        assert prove_again(engine._topology, state, own_supply(N, state.terminals), sums) is None
        wrong = engine.certificate(state, complete=False)
        assert not wrong.valid
        assert wrong.complete


def test_a_state_that_was_laid_out_anew_is_proven_as_a_whole() -> None:
    engine, state = solved(1, wide=False, undirected=False)
    assert engine.certificate(state).valid
    engine.update(np.array([5], np.int32), np.array([1 << 40]))  # residuals of 64 bits from here on
    engine.solve(state)
    proven = engine.certificate(state, complete=False)
    assert proven.valid
    assert proven.complete


@pytest.mark.parametrize("undirected", [False, True, None])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("spoil", SPOILT)
def test_one_wrong_place_is_seen(
    spoil: Callable[[CudaEngine, CudaFlowState, int], None], wide: bool, undirected: bool | None
) -> None:
    for seed in range(5):
        engine, state = solved(seed, wide=wide, undirected=undirected)
        assert engine.certificate(state).valid
        spoil(engine, state, int(np.random.default_rng(seed).integers(0, engine.network.n_arcs)))
        assert prove(engine._topology, state, own_supply(N, state.terminals)) is None
        certificate: Certificate = engine.certificate(state)
        assert not certificate.valid
        assert certificate.failures


@pytest.mark.parametrize("beside", [0, 3])
@pytest.mark.parametrize("least", [2, 1 << 40])
def test_an_infinite_edge_is_the_largest_of_its_link(least: int, beside: int) -> None:
    """With another one ``beside`` it, or residuals of 64 bits, all is looked at place by place."""
    tail, head = np.array([0, 1, 0], np.int32), np.array([1, 2, 1], np.int32)
    n_edges = 3 if beside else 2
    edges = EdgeList(3, tail[:n_edges], head[:n_edges], np.array([INFINITE, least, beside])[:n_edges])
    engine = CudaEngine(Network(edges))
    state = engine.open(Terminals.of([0], [2]))
    assert engine.solve(state).value == least
    supply = own_supply(3, state.terminals)
    assert engine.certificate(state) == Certificate(True, least, least)
    assert (prove(engine._topology, state, supply) is None) == bool(beside)
    residuals(state.arcs, state.wide)[int(engine.network.edge_arc[0])] -= 1
    assert not engine.certificate(state).valid
