"""A device's certificate refuses a state in which one place is wrong, by sums as well as place by place."""

from collections.abc import Callable

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.checks.certificate import Certificate  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine, CudaFlowState  # noqa: E402
from gpu_engine.cuda.launch.arrays import heads_and_reverses, residuals  # noqa: E402
from gpu_engine.cuda.launch.certify import certify, prove  # noqa: E402
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
            assert proven.tolist() == looked_at.tolist()


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
