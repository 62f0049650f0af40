"""What the CUDA engine holds is what it says beforehand; a device that is full refuses, and nothing is half done."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")

from gpu_engine.cpu.engine import CpuEngine  # noqa: E402
from gpu_engine.cuda.engine import CudaEngine  # noqa: E402
from gpu_engine.cuda.launch.certify import certify  # noqa: E402
from gpu_engine.cuda.module import device_available  # noqa: E402
from gpu_engine.cuda.transfer import own_supply  # noqa: E402
from gpu_engine.errors import OutOfMemory  # noqa: E402
from gpu_engine.footprint import Footprint, arranging_bytes, on_cuda  # noqa: E402
from gpu_engine.generators import generate  # noqa: E402
from gpu_engine.networks.edgelist import EdgeList  # noqa: E402
from gpu_engine.networks.network import Network  # noqa: E402
from gpu_engine.networks.terminals import Terminals  # noqa: E402
from gpu_engine.select import device_bytes, open_engine  # noqa: E402
from gpu_engine.types import INFINITE  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not device_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

FAMILIES = [
    ("grid", {"rows": 300, "columns": 300}),
    ("rmat", {"scale": 14}),
    ("ac", {"n_vertices": 1000}),
    ("road", {"rows": 200, "columns": 200, "terminals": 20}),
]


class Peak(cupy.cuda.MemoryHook):  # type: ignore[misc]  # CuPy has no types
    """The most that was allocated at once since it was entered."""

    name = "Peak"

    def __init__(self) -> None:
        self._now = self.bytes = 0

    def malloc_postprocess(self, **told: Any) -> None:
        self._now += told["mem_size"]
        self.bytes = max(self.bytes, self._now)

    def free_postprocess(self, **told: Any) -> None:
        self._now -= told["mem_size"]


@contextmanager
def device_with(free_bytes: int) -> Iterator[None]:
    """As if the pool could grow by so much and no more."""
    pool = cupy.get_default_memory_pool()
    gc.collect()  # what earlier tests have left in cycles would come free in between
    pool.free_all_blocks()
    pool.set_limit(size=pool.total_bytes() + free_bytes)
    try:
        yield
    finally:
        pool.set_limit(size=0)


def edges_of(family: str, wide: bool, **parameters: int) -> EdgeList:
    """All finite capacities together below 2**30, or pairs that have more than that between them."""
    edges = generate(family, seed=5, **parameters)
    few = np.minimum(edges.capacity, 1000)
    return replace(edges, capacity=np.where(edges.capacity == INFINITE, INFINITE, few << 28 if wide else few))


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_what_it_holds_and_takes_is_what_it_says(family: str, parameters: dict[str, int], wide: bool) -> None:
    edges = edges_of(family, wide, **parameters)
    network = Network(edges)
    engine = CudaEngine(network)
    terminals = Terminals.of([edges.source], [edges.sink])
    states = [engine.open(terminals), engine.open(terminals)]
    assert {state.wide for state in states} == {wide}
    needs = on_cuda(replace(network.counts, wide=wide))
    assert engine.needs == needs
    assert engine.nbytes == pytest.approx(needs.network.host, rel=0.05)
    assert engine.device_nbytes == pytest.approx((needs.network + needs.state + needs.state).device, rel=0.05)
    engine.close(states.pop())
    assert engine.device_nbytes == pytest.approx((needs.network + needs.state).device, rel=0.05)
    engine.solve(states[0])
    with Peak() as peak:
        engine.solve(states[0], cold=True)
        engine.certificate(states[0])
        certify(engine._topology, states[0], own_supply(edges.n_vertices, terminals))  # as where something is wrong
    assert peak.bytes == pytest.approx(needs.scratch.device, rel=0.05)
    assert engine.device_nbytes == pytest.approx((needs.network + needs.state).device, rel=0.05)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_reading_an_answer_takes_no_more_than_it_asked_for(family: str, parameters: dict[str, int], wide: bool) -> None:
    edges = edges_of(family, wide, **parameters)
    asked: list[Footprint] = []
    engine = CudaEngine(Network(edges), room=asked.append)
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    engine.solve(state)
    for read, needed in ((engine.flow, engine.needs.flow), (engine.cut, engine.needs.cut)):
        read(state)  # loads the kernels
        asked.clear()
        with Peak() as peak:
            read(state)
        assert asked == [needed]
        assert peak.bytes <= 1.2 * needed.device + 65_536


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("family", "parameters"), FAMILIES)
def test_a_fork_takes_no_more_than_it_says(family: str, parameters: dict[str, int], wide: bool) -> None:
    edges = edges_of(family, wide, **parameters)
    engine = CudaEngine(Network(edges))
    terminals = Terminals.of([edges.source], [edges.sink])
    state = engine.open(terminals)
    engine.solve(state)
    rows = np.flatnonzero(edges.capacity != INFINITE)[::7]

    def tried() -> None:
        fork = engine.fork(state)
        assert len(fork.trials(2)) == 2
        for other in (None, terminals, Terminals.of([edges.sink], [edges.source])):
            overlay = fork.overlay(rows, edges.capacity[rows] // 2, other)
            fork.engine.solve(overlay)
            assert fork.engine.certificate(overlay).valid
            del overlay

    tried()  # loads the kernels
    with Peak() as peak:
        tried()
    assert peak.bytes <= 1.1 * engine.needs.fork.device + 65_536
    with Peak() as peak:
        engine.fork(state, on_host=True)
    assert peak.bytes <= engine.needs.cut.device + 65_536


def test_it_asks_for_room_before_it_allocates() -> None:
    edges = generate("grid", seed=1, rows=100, columns=100)
    asked: list[Footprint] = []
    engine = CudaEngine(Network(edges), room=asked.append)
    needs = engine.needs
    state = engine.open(Terminals.of([edges.source], [edges.sink]))
    engine.solve(state)
    arranging = Footprint(device=arranging_bytes(engine.network.n_vertices, engine.network.n_arcs))
    assert asked == [Footprint(device=needs.network.device), needs.state + arranging, needs.scratch]
    engine.solve(state)
    assert len(asked) == 3


def test_a_full_device_refuses_with_numbers_and_all_can_go_on() -> None:
    edges = generate("grid", seed=2, rows=500, columns=500)
    terminals = Terminals.of([edges.source], [edges.sink])
    host, network = CpuEngine(Network(edges)), Network(edges)
    with device_with(1 << 20), pytest.raises(OutOfMemory, match=r"bytes in use by this process, \d+ of \d+ free"):
        CudaEngine(network)
    engine = CudaEngine(network)
    with device_with(1 << 20), pytest.raises(OutOfMemory, match="the device is full"):
        engine.open(terminals)
    assert engine.device_nbytes == engine._topology.nbytes
    state = engine.open(terminals)
    with device_with(1 << 20), pytest.raises(OutOfMemory, match="the device is full"):
        engine.solve(state)
    assert not state.solved
    wanted = host.open(terminals)
    assert engine.solve(state).value == host.solve(wanted).value
    with device_with(1 << 20), pytest.raises(OutOfMemory, match="the device is full"):
        engine.certificate(state)
    assert engine.certificate(state).valid


def test_an_update_without_room_changes_nothing() -> None:
    edges = generate("grid", seed=3, rows=300, columns=300)
    terminals = Terminals.of([edges.source], [edges.sink])
    host, engine = CpuEngine(Network(edges)), CudaEngine(Network(edges))
    wanted, state = host.open(terminals), engine.open(terminals)
    value = engine.solve(state).value
    rows = np.flatnonzero(edges.capacity != INFINITE)[: 1 << 18]
    before = engine.network.capacity.copy()
    with device_with(1 << 10), pytest.raises(OutOfMemory, match="the device is full"):
        engine.update(rows, np.ones(len(rows), np.int64))
    np.testing.assert_array_equal(engine.network.capacity, before)
    assert engine.solve(state).value == value
    for each in (host, engine):
        each.update(rows, np.ones(len(rows), np.int64))
    assert engine.solve(state).value == host.solve(wanted).value
    assert engine.certificate(state).valid


def test_a_warm_solve_without_room_leaves_a_state_that_can_be_solved() -> None:
    edges = generate("genrmf-wide", seed=4, a=32)
    terminals = Terminals.of([edges.source], [edges.sink])
    host, engine = CpuEngine(Network(edges)), CudaEngine(Network(edges))
    wanted, state = host.open(terminals), engine.open(terminals)
    engine.solve(state)
    rows = np.flatnonzero((engine.flow(state) > 0) & (edges.capacity != INFINITE))[:100]
    for each in (host, engine):
        each.update(rows, np.zeros(len(rows), np.int64))
    with device_with(1 << 16), pytest.raises(OutOfMemory, match="the device is full"):
        engine.solve(state)
    assert not state.solved
    assert engine.solve(state).value == host.solve(wanted).value
    assert engine.certificate(state).valid


def test_auto_stays_on_the_host_where_the_device_has_no_room() -> None:
    def no_device(needed: Footprint) -> None:
        if needed.device:
            raise OutOfMemory(f"{needed.device} more bytes of device memory are needed, 0 of 1000 are in use")

    edges = generate("rmat", seed=8, scale=14)
    engine = open_engine(Network(edges), "auto", no_device)
    report = engine.solve(engine.open(Terminals.of([edges.source], [edges.sink])))
    assert report.engine == "cpu"
    assert "0 of 1000 are in use" in report.reason


def test_saved_states_come_back_on_the_device() -> None:
    edges = generate("grid", seed=6, rows=100, columns=100)
    terminals = Terminals.of([edges.source], [edges.sink])
    engine = CudaEngine(Network(edges))
    state = engine.open(terminals)
    value = engine.solve(state).value
    saved = engine.export(state)
    engine.close(state)
    held = engine.device_nbytes
    with device_with(1 << 16), pytest.raises(OutOfMemory):
        engine.restore(terminals, saved)
    assert engine.device_nbytes == held
    assert engine.solve(engine.restore(terminals, saved)).value == value


def test_a_device_has_memory() -> None:
    assert device_bytes("auto") == device_bytes("cuda") > 1 << 30
    assert device_bytes("cpu") == 0
