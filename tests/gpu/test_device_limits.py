"""What a device does that a host does not: races to provoke, cancels, long lives, networks built by a sort."""

import threading
from time import perf_counter

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.control import Control  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.build import build_csr  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.errors import Cancelled  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.incremental import Patience  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.select import open_engine  # noqa: E402
from tests.random_networks import random_edges  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]


def edge_list(n: int, tail: object, head: object, capacity: object, source: int, sink: int) -> EdgeList:
    columns = np.broadcast_arrays(np.asarray(tail), np.asarray(head), np.asarray(capacity))
    return EdgeList(
        n,
        columns[0].astype(np.int32),
        columns[1].astype(np.int32),
        columns[2].astype(np.int64),
        source=source,
        sink=sink,
    )


def star() -> EdgeList:
    """A hub of degree 200,000 between source and sink."""
    leaves = np.arange(3, 100_003)
    rng = np.random.default_rng(1)
    tail = np.concatenate(([0], np.full(100_000, 2), leaves))
    head = np.concatenate(([2], leaves, np.full(100_000, 1)))
    capacity = np.concatenate(([400_000], rng.integers(0, 10, 200_000)))
    return edge_list(100_003, tail, head, capacity, 0, 1)


def hubs() -> EdgeList:
    """Three hubs of degree 60,000 in a row, each to each next one over 30,000 vertices, with links back."""
    rng = np.random.default_rng(9)
    middle = [np.arange(4 + 30_000 * i, 4 + 30_000 * (i + 1)) for i in range(4)]
    ends = [0, 1, 2, 3]  # source, hub, hub, sink; the third hub is the sink
    tail = [np.full(30_000, end) for end in ends[:3]] + middle[:3] + [middle[2][::2]]
    head = middle[:3] + [np.full(30_000, end) for end in ends[1:]] + [middle[1][::2]]
    tails, heads = np.concatenate(tail), np.concatenate(head)
    return edge_list(4 + 120_000, tails, heads, rng.integers(0, 10, len(tails)), 0, 3)


def bipartite() -> EdgeList:
    """Complete, 300 by 300, all capacities equal."""
    left, right = np.repeat(np.arange(300), 300) + 2, np.tile(np.arange(300), 300) + 302
    tail = np.concatenate((np.zeros(300, int), left, np.arange(302, 602)))
    head = np.concatenate((np.arange(2, 302), right, np.ones(300, int)))
    return edge_list(602, tail, head, 7, 0, 1)


def path() -> EdgeList:
    """20,000 vertices in a row, with a side edge back to the start at each."""
    at = np.arange(20_000)
    tail, head = np.concatenate((at, at + 1)), np.concatenate((at + 1, np.zeros(20_000, int)))
    return edge_list(20_001, tail, head, np.random.default_rng(2).integers(5, 50, 40_000), 0, 20_000)


def empty_edges() -> EdgeList:
    """Half of the edges of a random network have no capacity."""
    rng = np.random.default_rng(3)
    tail, head = rng.integers(0, 3_000, (2, 40_000))
    return edge_list(3_000, tail, head, rng.integers(0, 2, 40_000) * rng.integers(1, 9, 40_000), 0, 1)


@pytest.mark.parametrize("make", [star, hubs, bipartite, path, empty_edges])
def test_networks_that_provoke_races(make: object) -> None:
    edges = make()  # type: ignore[operator]
    terminals = Terminals.of([edges.source], [edges.sink])
    host, engine = CpuEngine(Network(edges)), CudaEngine(Network(edges))
    wanted, state = host.open(terminals), engine.open(terminals)
    rng = np.random.default_rng(4)
    for _ in range(10):
        value = host.solve(wanted, cold=True).value
        for cold in (False, True):
            assert engine.solve(state, cold=cold).value == value
            certificate = engine.certificate(state)
            assert certificate.valid, certificate.failures
        rows = rng.choice(edges.n_edges, 50, replace=False)
        capacity = rng.integers(0, 20, 50)
        host.update(rows, capacity)
        engine.update(rows, capacity)


def test_ten_thousand_batches_on_one_state() -> None:
    edges = generate("rlg-wide", seed=5, rows=40)
    terminals = Terminals.of([edges.source], [edges.sink])
    host, engine = CpuEngine(Network(edges)), CudaEngine(Network(edges))
    wanted, state = host.open(terminals), engine.open(terminals)
    rng = np.random.default_rng(5)
    finite = np.flatnonzero(edges.capacity < 1 << 60)
    for batch in range(10_000):
        rows = rng.choice(finite, int(rng.integers(1, 30)), replace=False)
        capacity = (edges.capacity[rows] * rng.uniform(0, 2, len(rows))).astype(np.int64)
        for each in (host, engine):
            each.update(rows, capacity)
        value = engine.solve(state).value
        certificate = engine.certificate(state)
        assert certificate.valid, f"batch {batch}: {certificate.failures}"
        assert value == host.solve(wanted).value, f"batch {batch}"


def test_a_cancelled_solve_can_be_solved_again() -> None:
    edges = generate("grid", seed=6, rows=1000, columns=1000)
    engine = CudaEngine(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    value = engine.solve(state).value
    control = Control()
    cancelled_at: list[float] = []
    threading.Timer(0.05, lambda: (cancelled_at.append(perf_counter()), control.cancel())).start()
    with pytest.raises(Cancelled):
        engine.solve(state, control, cold=True)
    assert perf_counter() - cancelled_at[0] < 1
    assert engine.solve(state).value == value
    assert engine.certificate(state).valid


def test_a_repair_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no patience at all a repair may still end before anybody looks at the clock, so it has ten tries."""
    edges = generate("rlg-wide", seed=6, rows=250)
    terminals = Terminals.of([edges.source], [edges.sink])
    host, engine = CpuEngine(Network(edges)), CudaEngine(Network(edges))
    wanted, state = host.open(terminals), engine.open(terminals)
    engine.solve(state)
    rng = np.random.default_rng(6)
    finite = np.flatnonzero(edges.capacity < 1 << 60)

    def repair(give_up_ms: float, share: float) -> str:
        monkeypatch.setattr("gpu_engine.cuda.engine.GIVE_UP_MS", give_up_ms)
        rows = rng.choice(finite, int(share * len(finite)), replace=False)
        capacity = (edges.capacity[rows] * rng.uniform(0, 2, len(rows))).astype(np.int64)
        for each in (host, engine):
            each.update(rows, capacity)
        report = engine.solve(state)
        assert report.value == host.solve(wanted).value
        assert engine.certificate(state).valid
        return report.reason

    def try_impatiently() -> bool:
        state.patience = Patience(least=2 * edges.n_edges, cold_ms=state.patience.cold_ms)  # nothing learned
        return "took longer" in repair(-1e6, 0.1)

    assert any(try_impatiently() for _ in range(10))
    state.patience.least = state.patience.slow_from = 1
    assert "broken ends" in repair(1e6, 0.04)


@pytest.mark.parametrize("seed", range(40))
def test_the_device_builds_the_same_network(seed: int) -> None:
    """With loops, parallel, opposite and undirected edges."""
    edges = random_edges(np.random.default_rng(seed), 30)
    host, device = Network(edges), Network(edges, build_csr)
    for name in ("row_offsets", "head", "reverse_arc", "edge_arc"):
        np.testing.assert_array_equal(getattr(host, name), getattr(device, name))
        assert getattr(host, name).dtype == getattr(device, name).dtype


def test_sums_beyond_32_bits_move_a_state_to_wide_residuals() -> None:
    edges = generate("genrmf-wide", seed=7, a=6)
    terminals = Terminals.of([edges.source], [edges.sink])
    host, engine = CpuEngine(Network(edges)), CudaEngine(Network(edges))
    wanted, state = host.open(terminals), engine.open(terminals)
    rng = np.random.default_rng(7)
    for factor in (1, 1 << 20, 1 << 33, 1):
        rows = rng.choice(edges.n_edges, edges.n_edges // 2, replace=False)
        for each in (host, engine):
            each.update(rows, edges.capacity[rows] * factor)
        assert engine.solve(state).value == host.solve(wanted).value
        assert engine.certificate(state).valid


def test_auto_keeps_the_faster_engine() -> None:
    edges = generate("rmat", seed=8, scale=15)
    engine = open_engine(Network(edges), "auto")
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    report = engine.solve(state)
    assert "trial" in report.reason
    assert engine.certificate(state).valid
    assert report.engine == engine.name


def test_a_small_graph_is_served_while_a_large_one_solves() -> None:
    """Its update, drain and proof find room beside a drain that runs; that one tells how far it is."""
    large = generate("rlg-wide", seed=1, rows=1500)
    small = generate("road", seed=1, rows=60, columns=60, terminals=50)
    engines = [CudaEngine(Network(edges)) for edges in (large, small)]
    states = [
        engine.open(Terminals.of([edges.source], [edges.sink]))
        for engine, edges in zip(engines, (large, small), strict=True)
    ]
    values = [engine.solve(state).value for engine, state in zip(engines, states, strict=True)]
    control, seen = Control(), []
    solving = threading.Thread(target=lambda: seen.append(engines[0].solve(states[0], control, cold=True)))
    solving.start()
    while not control.progress()["global_relabels"]:
        assert solving.is_alive()
    assert engines[1].solve(states[1], cold=True).value == values[1]
    engines[1].update(np.arange(10), engines[1].network.capacity[:10])
    assert engines[1].certificate(states[1]).value == values[1]
    assert solving.is_alive()
    solving.join()
    (report,) = seen
    assert report.value == values[0]
    assert control.progress() == {name: report.counters[name] for name in control.progress()}
