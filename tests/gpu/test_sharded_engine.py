"""The engine over shards, on the devices at hand: what it answers does not depend on how many shards there are, and the
kernels do not care whether two of them share a device."""

from collections.abc import Callable

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.control import Control  # noqa: E402
from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.layout import SHARD_THREADS  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.cuda.sharded.build import build  # noqa: E402
from gpu_engine.cuda.sharded.drain import Kernels  # noqa: E402
from gpu_engine.cuda.sharded.engine import ShardedEngine  # noqa: E402
from gpu_engine.cuda.sharded.launch import Shards  # noqa: E402
from gpu_engine.cuda.sharded.places import Places  # noqa: E402
from gpu_engine.devices import devices  # noqa: E402
from gpu_engine.engine import Mode  # noqa: E402
from gpu_engine.errors import Cancelled, EngineError, Unbounded  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.growing import grow  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.structure import Structure  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from tests.random_networks import random_edges, random_terminals, random_update  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

SHARDS = (1, 2, 3, 5)

SPIN = cupy.RawKernel(
    r"""
extern "C" __global__ void spin(long long ns) {
    long long began, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - began < ns);
}
""",
    "spin",
)
"""Keeps its stream busy for so long."""

FAMILIES = [
    ("genrmf-wide", {"a": 12}),
    ("rlg-wide", {"rows": 40}),
    ("ac", {"n_vertices": 400}),
    ("rmat", {"scale": 12}),
    ("vision", {"rows": 60, "columns": 60}),
    ("road", {"rows": 30, "columns": 30, "terminals": 20}),
]


def sharded(shards: int) -> Callable[[Network], ShardedEngine]:
    """Shards on all devices in turn."""
    return lambda network: ShardedEngine(network, [shard % len(devices()) for shard in range(shards)])


def solved_alike(edges: EdgeList, shards: int, capacity: np.ndarray, steps: int, seed: int) -> None:
    """Cold, and warm after updates to capacities taken from ``capacity``: the CPU engine's values, with a proof."""
    terminals = Terminals.of([edges.source], [edges.sink])
    engines = [CpuEngine(Network(edges)), sharded(shards)(Network(edges))]
    states = [engine.open(terminals) for engine in engines]
    rng = np.random.default_rng(seed)
    finite = np.flatnonzero(edges.capacity < 1 << 60)
    for step in range(steps):
        values = [engine.solve(state).value for engine, state in zip(engines, states, strict=True)]
        assert values[0] == values[1], f"step {step}"
        certificate = engines[1].certificate(states[1])
        assert certificate.valid, f"step {step}: {certificate.failures}"
        assert certificate.value == values[1]
        rows = rng.choice(finite, int(rng.choice([1, 10, max(1, len(finite) // 100)])), replace=False)
        new = rng.choice(capacity, len(rows))
        for engine in engines:
            engine.update(rows, new)


@pytest.mark.parametrize("shards", SHARDS)
def test_update_sequences_agree_with_the_judge(shards: int) -> None:
    congruence = pytest.importorskip("tests.congruence", exc_type=ImportError)  # its judge is OR-tools
    for seed in range(100 * shards, 100 * shards + 25):
        congruence.check_sequence(sharded(shards), seed, steps=5)


@pytest.mark.parametrize("shards", SHARDS)
def test_random_networks_agree_with_the_cpu_engine_through_updates(shards: int) -> None:
    """Terminals with and without caps, infinite, undirected and parallel edges; where OR-tools is not at hand."""
    for seed in range(100 * shards, 100 * shards + 40):
        rng = np.random.default_rng(seed)
        edges = random_edges(rng)
        terminals = random_terminals(rng, edges.n_vertices)
        engines = [CpuEngine(Network(edges)), sharded(shards)(Network(edges))]
        try:
            states = [engine.open(terminals) for engine in engines]
            for step in range(4):
                values = [engine.solve(state).value for engine, state in zip(engines, states, strict=True)]
                assert values[0] == values[1], f"seed {seed} step {step}"
                assert engines[1].certificate(states[1]).valid, f"seed {seed} step {step}"
                if not edges.n_edges:
                    break
                changed = random_update(rng, engines[0].network.capacity)
                for engine in engines:
                    engine.update(*changed)
        except Unbounded:
            continue


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_families_agree_with_the_cpu_engine_through_updates(
    family: str, parameters: dict[str, int], shards: int
) -> None:
    edges = generate(family, seed=3, **parameters)
    finite = edges.capacity[edges.capacity < 1 << 60]
    solved_alike(edges, shards, finite, steps=8, seed=3)


def star_of_hubs(n: int) -> EdgeList:
    """A source, 3 hubs and n leaves, each joined to all hubs, and a sink: rows in many pieces."""
    hubs, leaves = np.arange(1, 4), np.arange(4, n + 4)
    tail = np.concatenate([np.zeros(3, int), np.repeat(hubs, n), leaves])
    head = np.concatenate([hubs, np.tile(leaves, 3), np.full(n, n + 4)])
    capacity = np.random.default_rng(5).integers(1, 100, len(tail))
    capacity[:3] = 40 * n
    ends = tail.astype(np.int32), head.astype(np.int32)
    return EdgeList(n + 5, *ends, capacity.astype(np.int64), False, source=0, sink=n + 4)


@pytest.mark.parametrize("shards", SHARDS)
def test_rows_in_many_pieces(shards: int) -> None:
    edges = star_of_hubs(20_000)
    solved_alike(edges, shards, edges.capacity[3:], steps=6, seed=1)


@pytest.mark.parametrize("shards", [1, 3])
def test_more_items_than_tiles(shards: int) -> None:
    """Tiles take turns at the pieces of hubs, and lanes of one tile arrive at them at different times."""
    edges = generate("rmat", seed=3, scale=18)
    solved_alike(edges, shards, edges.capacity[edges.capacity < 1 << 60], steps=2, seed=4)


@pytest.mark.parametrize("shards", [2, 3])
def test_residuals_become_wide_after_an_update(shards: int) -> None:
    edges = generate("genrmf-wide", seed=2, a=6)
    solved_alike(edges, shards, edges.capacity[edges.capacity < 1 << 60] << 35, steps=4, seed=2)


def test_more_shards_than_vertices() -> None:
    r"""0 --5--> 1 --3--> 2"""
    ends = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    engine = sharded(9)(Network(EdgeList(3, *ends, np.array([5, 3], np.int64), False)))
    state = engine.open(Terminals.of([0], [2]))
    assert engine.solve(state).value == 3
    assert engine.certificate(state).valid


def test_the_same_grid_ten_times() -> None:
    """Racy codes give another value now and then."""
    edges = generate("vision", seed=7, rows=200, columns=200)
    engine = sharded(2 * len(devices()))(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    values = set()
    for _ in range(10):
        values.add(engine.solve(state, cold=True).value)
        assert engine.certificate(state).valid
    assert len(values) == 1


def test_a_cancelled_solve_can_be_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = generate("vision", seed=7, rows=100, columns=100)
    engine = sharded(3)(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    control = Control()
    start = Kernels.start

    def cancelled_first(self: Kernels) -> None:
        self._shards.places.wait()
        self.cancel()
        control.cancel()
        start(self)

    with monkeypatch.context() as patched:
        patched.setattr(Kernels, "start", cancelled_first)
        with pytest.raises(Cancelled):
            engine.solve(state, control)
    report = engine.solve(state)
    assert report.mode is Mode.COLD
    other = CpuEngine(Network(edges))
    assert report.value == other.solve(other.open(state.terminals)).value


@pytest.mark.parametrize("busy_ms", [0, 200])
def test_a_kernel_that_waits_for_one_that_could_not_start_ends(monkeypatch: pytest.MonkeyPatch, busy_ms: int) -> None:
    edges = generate("vision", seed=7, rows=40, columns=40)
    engine = sharded(2)(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    begin = Kernels.__init__

    def begin_on_a_busy_device(self: Kernels, shards: Shards, name: str) -> None:
        with shards.places.all[0].on():
            SPIN((1,), (1,), (np.int64(busy_ms * 1_000_000),))
        begin(self, shards, name)

    def start_the_first_of_more(self: Kernels) -> None:
        self._shards.places.barrier()
        arguments = self._arguments(0)
        arguments["devices"] = len(self._places) + 1
        arguments["meetings"][len(self._places)] = arguments["meetings"][0]
        function, blocks = self._kernels[0]
        with self._places[0].on():
            function((blocks,), (SHARD_THREADS,), (arguments,))
        raise EngineError("the last one does not start")

    with monkeypatch.context() as patched:
        patched.setattr(Kernels, "__init__", begin_on_a_busy_device)
        patched.setattr(Kernels, "start", start_the_first_of_more)
        with pytest.raises(EngineError, match="does not start"):
            engine.solve(state)
    report = engine.solve(state, cold=True)
    other = CpuEngine(Network(edges))
    assert report.value == other.solve(other.open(state.terminals)).value


def test_there_are_no_more_shards_than_a_kernel_can_be_told_of() -> None:
    with pytest.raises(EngineError, match="17 shards"):
        sharded(17)(Network(star_of_hubs(3)))


def test_device_memory_is_what_is_foreseen() -> None:
    edges = generate("rmat", seed=3, scale=12)
    engine = sharded(4)(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    engine.solve(state)
    foreseen = engine.needs.network.device + engine.needs.state.device
    assert foreseen // 2 < engine.device_nbytes <= foreseen


@pytest.mark.parametrize("shards", [2, 3])
def test_overlays_on_forks_agree_with_the_judge(shards: int) -> None:
    congruence = pytest.importorskip("tests.congruence", exc_type=ImportError)
    for seed in range(10):
        congruence.check_forks(sharded(shards), seed, overlays=3)


@pytest.mark.parametrize("shards", SHARDS)
def test_a_network_that_has_grown_is_solved_anew(shards: int) -> None:
    edges = generate("rmat", seed=3, scale=9)
    engines = [CpuEngine(Network(edges)), sharded(shards)(Network(edges))]
    states = [engine.open(Terminals.of([edges.source], [edges.sink])) for engine in engines]
    n, m = edges.n_vertices, edges.n_edges
    ends = np.array([edges.source, n], np.int32), np.array([n, edges.sink], np.int32)
    values = []
    for engine, state in zip(engines, states, strict=True):
        before = engine.solve(state).value
        engine.grow(grow(engine.network, Structure(1, None, *ends, np.zeros(2, np.bool_))))
        engine.update(np.array([m, m + 1]), np.array([50, 40]))
        values.append((before, engine.solve(state).value))
        assert engine.certificate(state).valid
    assert values[0] == values[1]
    assert values[0][1] == values[0][0] + 40


@pytest.mark.parametrize("shards", SHARDS)
def test_what_is_wrong_is_found_on_the_devices(shards: int) -> None:
    edges = generate("rmat", seed=3, scale=10)
    engine = sharded(shards)(Network(edges))
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    value = engine.solve(state).value
    proof = engine.certificate(state, complete=False)
    assert (proof.valid, proof.value, proof.complete) == (True, value, False)
    assert state.columns is not None
    for column, text in (("excess", "excess does not match"), ("arcs", "do not add up")):
        array = getattr(state.columns, column)[-1]
        array = array[:, 2] if column == "arcs" else array
        with array.device:
            array[-1] += 1
            proof = engine.certificate(state, complete=False)
            assert not proof.valid
            assert any(text in failure for failure in proof.failures), proof.failures
            array[-1] -= 1
    assert engine.certificate(state, complete=False).valid


@pytest.mark.parametrize("shards", SHARDS)
def test_rows_from_edges_are_those_of_the_network(shards: int) -> None:
    rng = np.random.default_rng(shards)
    n, m = 97, 900
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    capacity = rng.integers(0, 50, m)
    network = Network(EdgeList(n, tail, head, capacity, False))
    parts = [(tail[i : i + 250], head[i : i + 250], capacity[i : i + 250]) for i in range(0, m, 250)]
    topology, arcs = build(n, parts, Places([shard % len(devices()) for shard in range(shards)]))
    assert topology.first_arc[-1] == network.n_arcs
    assert np.array_equal(topology.first_arc, network.row_offsets[topology.first_vertex])
    for shard, own in enumerate(arcs):
        records = own.get().view(np.int32)
        begin, end = topology.first_arc[shard : shard + 2]
        head = network.head[begin:end]
        owner = np.searchsorted(topology.first_vertex[1:], head, side="right")
        assert np.array_equal(records[:, 0], head)
        assert np.array_equal(records[:, 1], network.reverse_arc[begin:end] - topology.first_arc[owner])
        assert np.array_equal(topology.capacity[shard].get(), network.arc_capacity()[begin:end])
