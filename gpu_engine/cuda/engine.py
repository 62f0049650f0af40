"""The CUDA engine: the state machine of `gpu_engine.cpu.engine` with every array on the device.

A cold solve is one drain; an update is applied and classified in one launch; a warm solve drains only the sides on
which the update left a deficit or an excess. Nothing but a few counters is read back. Edge flows and uniqueness of
the cut are derived on the host from a copy of the state, so they do not disturb it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks import Certificate, own_supply, verdict
from gpu_engine.cpu.engine import CpuEngine, CpuFlowState
from gpu_engine.cuda import launch
from gpu_engine.cuda.launch import CONTROL, FINDINGS, Array, DrainScratch, Topology
from gpu_engine.engine import Control, Cut, Engine, FlowState, Mode, SolveReport
from gpu_engine.errors import Cancelled, InvalidNetwork
from gpu_engine.free import SOURCE, free_vertices
from gpu_engine.network import Network
from gpu_engine.terminals import Terminals
from gpu_engine.types import INFINITE, EdgeArray, UnitArray

NARROW_LIMIT = 1 << 30
"""Pair sums below this fit int32 residuals."""

SPIN_S = 0.001
POLL_S = 0.0002
COUNTERS = ("pushes", "relabels", "global_relabels", "arcs_scanned", "rounds", "levels")


@dataclass(eq=False, slots=True)
class CudaFlowState(FlowState):
    """Device arrays: arcs (16 bytes each, 24 if wide), excess int64[n], role int8[n], source_side bool[n]."""

    terminals: Terminals
    role: Array
    excess: Array
    source_side: Array
    wide: bool
    arcs: Array = None
    value: int = 0
    settled_value: int = 0
    solved: bool = False
    lacking: bool = False
    """S may hold deficits since the last solve."""
    holding: bool = False
    """T may hold excess since the last solve."""
    touched: bool = False

    @property
    def nbytes(self) -> int:
        at_rest = self.role.nbytes + self.excess.nbytes + self.source_side.nbytes
        return int(at_rest + (0 if self.arcs is None else self.arcs.nbytes))


class CudaEngine(Engine):
    """One device, the current one of the calling thread."""

    name = "cuda"

    def __init__(self, network: Network) -> None:
        self.network = network
        self._states: list[CudaFlowState] = []
        self._topology = Topology(
            n=network.n_vertices,
            row_offsets=cupy.asarray(network.row_offsets),
            head=cupy.asarray(network.head),
            reverse_arc=cupy.asarray(network.reverse_arc),
            edge_arc=cupy.asarray(network.edge_arc),
            capacity=cupy.asarray(network.capacity),
            undirected=cupy.asarray(network.undirected),
        )
        self._scratch: DrainScratch | None = None
        self._stale_capacity: list[tuple[EdgeArray, UnitArray]] = []
        self._infinite_arcs = network.infinite_arcs()
        loops = int((network.edge_arc < 0).sum())
        self._parallel = network.n_arcs != 2 * (network.n_edges - loops)

    def open(self, terminals: Terminals) -> CudaFlowState:
        terminals.check(self.network.n_vertices)
        role = free_vertices(self.network, terminals).role
        n = self.network.n_vertices
        excess, side = cupy.empty(n, np.int64), cupy.empty(n, np.bool_)
        state = CudaFlowState(terminals, cupy.asarray(role), excess, side, self._needs_wide())
        self._states.append(state)
        return state

    def _needs_wide(self) -> bool:
        """Narrow if every pair sum and the whole flow stay below 2**30."""
        largest = self.network.capacity[self.network.capacity != INFINITE]
        if self.network.n_infinite:
            return bool(self.network.finite_total >= NARROW_LIMIT)
        if self.network.finite_total < NARROW_LIMIT:
            return False
        capacity = self.network.arc_capacity()
        pairs = capacity + capacity[self.network.reverse_arc]
        return bool(len(largest)) and int(pairs.max(initial=0)) >= NARROW_LIMIT

    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        network = self.network
        change = network.check_update(rows, capacity)
        if change.touches_infinite:
            self._update_infinite(rows, capacity)
            return
        solved = [state for state in self._states if state.solved]
        if solved and self._beside_infinite(rows):
            for state in solved:
                state.solved = False  # rare enough to be left to a cold solve
        elif solved and len(rows):
            links = self._links(rows)
            packed = launch.pack(rows, capacity - network.capacity[rows], links)
            for state in solved:
                self._apply(state, packed, len(rows), len(links))
        network.set_capacity(rows, capacity)
        self._stale_capacity.append((rows, capacity))

    def _beside_infinite(self, rows: EdgeArray) -> bool:
        """A finite edge of the batch shares its link with an infinite one."""
        if not (self.network.n_infinite and self._parallel):
            return False
        arcs = self.network.edge_arc[rows[self.network.capacity[rows] != INFINITE]]
        arcs = arcs[arcs >= 0]
        return bool((self._infinite_arcs[arcs] | self._infinite_arcs[self.network.reverse_arc[arcs]]).any())

    def _links(self, rows: EdgeArray) -> NDArray[np.int64]:
        """One arc of each link that carries these edges."""
        arcs = self.network.edge_arc[rows]
        arcs = arcs[arcs >= 0]
        if not self._parallel:
            return arcs.astype(np.int64)
        arcs = np.minimum(arcs, self.network.reverse_arc[arcs])
        if len(arcs) > launch.ONE_BLOCK_ROWS:
            unique: NDArray[np.int64] = cupy.unique(cupy.asarray(arcs)).get().astype(np.int64)
            return unique
        return np.unique(arcs).astype(np.int64)

    def _apply(self, state: CudaFlowState, packed: Array, k: int, n_links: int) -> None:
        told = launch.apply(self._topology, packed, k, n_links, state)
        state.touched = True
        if told["overflow"]:
            state.solved, state.wide, state.arcs = False, True, None
        state.value += int(told["gained"])
        state.lacking |= bool(told["lacking"])
        state.holding |= bool(told["holding"])

    def _capacity(self) -> Array:
        """int64[m] on the device, with all updates so far; only cold solves and certificates need it."""
        device = self._topology.capacity
        for rows, capacity in self._stale_capacity:
            device[cupy.asarray(rows)] = cupy.asarray(capacity)
        self._stale_capacity.clear()
        return device

    def _update_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """As in the CPU engine: the free vertices may change, so every state goes cold."""
        old = self.network.capacity[rows].copy()
        self.network.set_capacity(rows, capacity)
        try:
            roles = [free_vertices(self.network, state.terminals).role for state in self._states]
        except Exception:
            self.network.set_capacity(rows, old)
            raise
        self._stale_capacity.append((rows, capacity))
        self._infinite_arcs = self.network.infinite_arcs()
        for state, role in zip(self._states, roles, strict=True):
            state.role, state.solved, state.arcs = cupy.asarray(role), False, None
            state.wide = self._needs_wide()

    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        assert isinstance(state, CudaFlowState)
        control = control or Control()
        began = perf_counter()
        if cold or not state.solved:
            mode, reason = Mode.COLD, "asked for" if cold else "no earlier flow to start from"
            counters = self._solve_cold(state, control)
        else:
            mode, reason, counters = self._solve_warm(state, control)
        state.settled_value, state.touched = state.value, False
        elapsed_ms = (perf_counter() - began) * 1e3
        return SolveReport(mode, state.value, self.name, counters, {"solve": elapsed_ms}, reason)

    def _solve_cold(self, state: CudaFlowState, control: Control) -> dict[str, int]:
        state.solved = False
        state.arcs = launch.zero_flow(self._topology, self._capacity(), state.wide)
        state.excess[:] = cupy.asarray(own_supply(self.network.n_vertices, state.terminals))
        state.source_side[:] = state.role == SOURCE
        launch.saturate(state.arcs, state.excess, state.source_side, state.wide)
        counters = self._settle(state, control, deficits=False)
        demand = state.terminals.demand
        on_sink_side = int(cupy.where(state.source_side, 0, state.excess).sum())
        state.value = int(demand[demand != INFINITE].sum()) + on_sink_side
        state.lacking = state.holding = False
        state.solved = True
        return counters

    def _solve_warm(self, state: CudaFlowState, control: Control) -> tuple[Mode, str, dict[str, int]]:
        counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        if state.lacking:
            counters = self._settle(state, control, deficits=True)
            state.lacking, state.holding = False, True
        if state.holding:
            for name, count in self._settle(state, control, deficits=False).items():
                counters[name] += count
            state.holding = False
            return Mode.WARM, "repaired from the last flow", counters
        if state.value != state.settled_value:
            return Mode.WARM, "the cut is still minimum, its capacity changed", counters
        reason = "flow and cut are still optimal" if state.touched else "no change since the last solve"
        return Mode.UNCHANGED, reason, counters

    def _settle(self, state: CudaFlowState, control: Control, *, deficits: bool) -> dict[str, int]:
        """Drain one side; raises `Cancelled` with the state a pseudoflow that can be settled later."""
        if self._scratch is None:
            self._scratch = DrainScratch.of(self.network.n_vertices, self.network.n_arcs)
        launch.region(state, deficits, self._scratch.region)
        told = cupy.zeros(CONTROL.itemsize, np.uint8)
        launch.drain(
            self._topology.row_offsets, state.arcs, state.excess, self._scratch, told, state.wide, mirrored=deficits
        )
        self._wait(control, told)
        result = np.frombuffer(told.get().tobytes(), CONTROL)[0]
        if result["status"] != 0:
            raise Cancelled("the solve was cancelled")
        if result["cut_off"]:
            gained = cupy.zeros(1, np.int64)
            launch.move_cut_off(state, self._scratch, deficits, gained)
            state.value += int(gained[0])
        return {name: int(result[name]) for name in COUNTERS}

    def _wait(self, control: Control, told: Array) -> None:
        """Until the kernel has ended; passes a cancel on to it."""
        event = cupy.cuda.Event(disable_timing=True)
        event.record()
        began = perf_counter()
        sent = False
        while not event.done:
            if control.cancelled and not sent:
                with cupy.cuda.Stream(non_blocking=True) as stream:
                    told[:4].set(np.ones(1, np.int32).view(np.uint8), stream=stream)
                    stream.synchronize()
                sent = True
            if perf_counter() - began > SPIN_S:
                time.sleep(POLL_S)

    def certificate(self, state: FlowState) -> Certificate:
        assert isinstance(state, CudaFlowState)
        role = state.role  # what is free is an input: no kernel writes it
        own = cupy.asarray(own_supply(self.network.n_vertices, state.terminals))
        fresh = launch.zero_flow(self._topology, self._capacity(), state.wide)
        blank = np.zeros(1, FINDINGS)
        for name in ("residual", "balance", "terminal", "crossing", "side"):
            blank[name] = -1
        findings = cupy.asarray(blank.view(np.uint8))
        launch.certify(state, fresh, own, role, findings)
        found = np.frombuffer(findings.get().tobytes(), FINDINGS)[0]
        first = [int(found[name]) for name in ("residual", "balance", "terminal", "crossing", "side")]
        side = self._terminal_sides(state)
        return verdict(state.terminals, *side, int(found["across"]), int(found["cut_capacity"]), first)

    def _terminal_sides(self, state: CudaFlowState) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which sources and which sinks lie in S."""
        sources, sinks = (cupy.asarray(v) for v in (state.terminals.sources, state.terminals.sinks))
        return state.source_side[sources].get(), state.source_side[sinks].get()

    def cut(self, state: FlowState, control: Control | None = None) -> Cut:
        engine, copy = self._on_host(state)
        return engine.cut(copy, control)

    def flow(self, state: FlowState, control: Control | None = None) -> UnitArray:
        engine, copy = self._on_host(state)
        return engine.flow(copy, control)

    def _on_host(self, state: FlowState) -> tuple[CpuEngine, CpuFlowState]:
        assert isinstance(state, CudaFlowState)
        copy = CpuFlowState(
            state.terminals,
            role=state.role.get(),
            residual=self._residual(state),
            excess=state.excess.get(),
            source_side=state.source_side.get(),
            value=state.value,
        )
        return CpuEngine(self.network), copy

    def _residual(self, state: CudaFlowState) -> UnitArray:
        """int64[arcs] on the host, in the CPU engine's terms for infinite arcs."""
        column = state.arcs[:, 1] if state.wide else state.arcs[:, 2]
        residual: UnitArray = column.get().astype(np.int64)
        if self.network.n_infinite:
            fresh = launch.zero_flow(self._topology, self._capacity(), state.wide)
            base = (fresh[:, 1] if state.wide else fresh[:, 2]).get().astype(np.int64)
            residual += self.network.arc_capacity() - base
        return residual

    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        assert isinstance(state, CudaFlowState)
        if not state.solved:
            return {}
        flow = self.network.arc_capacity() - self._residual(state)
        return {"flow": flow, "excess": state.excess.get(), "source_side": state.source_side.get()}

    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> CudaFlowState:
        state = self.open(terminals)
        if not arrays:
            return state
        try:
            state.arcs = launch.zero_flow(self._topology, self._capacity(), state.wide)
            column: Any = state.arcs[:, 1] if state.wide else state.arcs[:, 2]
            column -= cupy.asarray(arrays["flow"].astype(column.dtype))
            state.excess[:] = cupy.asarray(arrays["excess"])
            state.source_side[:] = cupy.asarray(arrays["source_side"])
        except (KeyError, ValueError) as error:
            self.close(state)
            raise InvalidNetwork(f"the saved flow state does not fit the network: {error}") from None
        certificate = self.certificate(state)
        if not certificate.valid:
            self.close(state)
            raise InvalidNetwork(f"the saved flow state fails its checks: {'; '.join(certificate.failures)}")
        state.value = state.settled_value = certificate.value
        state.solved = True
        return state

    def close(self, state: FlowState) -> None:
        assert isinstance(state, CudaFlowState)
        self._states.remove(state)

    @property
    def nbytes(self) -> int:
        return self._topology.nbytes + sum(state.nbytes for state in self._states)
