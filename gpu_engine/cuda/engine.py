"""The CUDA engine: the state machine of `gpu_engine.cpu.engine` with every array on the device.

A cold solve is one drain; an update is applied and classified in one launch; a warm solve drains only the sides on
which the update left a deficit or an excess. Nothing but a few counters is read back. Edge flows and uniqueness of
the cut are derived on the host from a copy of the state, so they do not disturb it.
"""

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Final

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks import Certificate, verdict
from gpu_engine.cpu.engine import CpuEngine, CpuFlowState, Patience
from gpu_engine.cuda import launch
from gpu_engine.cuda.arrange import as_given, sinks_first
from gpu_engine.cuda.launch import Array, Batch, Drains, LoadedBatch, Topology
from gpu_engine.cuda.memory import DeviceFull, device_call, next_stream
from gpu_engine.cuda.preset_drain import PresetDrain
from gpu_engine.cuda.presets import DEFAULT, find
from gpu_engine.engine import WORK_DONE, Control, Cut, Engine, FlowState, KeptState, Mode, SolveReport
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, Needs, Room, arranging_bytes, on_cuda, unlimited
from gpu_engine.networks.free import SOURCE, free_vertices
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, EdgeArray, UnitArray

NARROW_LIMIT = 1 << 30
"""Pair sums below this fit int32 residuals."""

SPIN_S = 0.001
POLL_S = 0.0002
TELL_S = 0.05
"""How often a running solve tells its counters."""

FEW_BROKEN: Final = 32
"""Fewer broken ends than this are always repaired, at first."""

GIVE_UP_MS: Final = 1.0
GIVE_UP_SHARE: Final = 1.5
"""A repair is given up after so much more than this share of a cold solve's time."""

WORK = slice(Control.PUSHES, Control.ARCS_SCANNED + 1)
"""Where a control has these."""

COUNTERS = (*WORK_DONE, "rounds", "levels")


@dataclass(eq=False, slots=True)
class CudaFlowState(KeptState):
    """Device arrays: arcs (16 bytes each, 24 if wide) in an order of their own (`gpu_engine.cuda.arrange`), edge_arc
    int32[m] into them, excess int64[n], role int8[n], source_side bool[n]."""

    terminals: Terminals
    role: Array
    excess: Array
    source_side: Array
    wide: bool
    arcs: Array = None
    edge_arc: Array = None
    value: int = 0
    settled_value: int = 0
    solved: bool = False
    lacking: int = 0
    """How many ends of changed edges had a deficit in S, counted for each edge; 0: there is none in S."""
    holding: int = 0
    """How many ends of changed edges had an excess in T, likewise."""
    patience: Patience = field(default_factory=lambda: Patience(least=FEW_BROKEN))
    touched: bool = False

    @property
    def nbytes(self) -> int:
        at_rest = self.role.nbytes + self.excess.nbytes + self.source_side.nbytes
        return int(at_rest + (0 if self.arcs is None else self.arcs.nbytes + self.edge_arc.nbytes))


class _TooSlow(Exception):
    """A repair has taken longer than a cold solve."""


class CudaEngine(Engine):
    """One device, the current one of the calling thread.

    ``preset`` names a published system that does the drains (`gpu_engine.cuda.presets`); what it leaves, and the proof
    that nothing is left, is the default drain's. Reports then count the preset's work, and ``left_pushes``.
    Asks ``room`` before it takes memory, but for what presets take while they drain. Raises `UnknownEngine`; each call
    raises `OutOfMemory` if the device is full, and can then be made again.
    """

    name = "cuda"

    @cached_property
    def stream(self) -> Any:
        """Of all calls; a cupy.cuda.Stream."""
        return next_stream()

    @device_call
    def __init__(self, network: Network, preset: str = DEFAULT, room: Room = unlimited) -> None:
        named = find(preset) is not None
        self.name = f"cuda:{preset}" if named else "cuda"
        self.network = network
        self._room = room
        room(Footprint(device=on_cuda(network.counts).network.device))
        self._states: list[CudaFlowState] = []
        self._topology = Topology(
            n=network.n_vertices,
            n_arcs=network.n_arcs,
            row_offsets=cupy.asarray(network.row_offsets),
            capacity=cupy.asarray(network.capacity),
            undirected=cupy.asarray(network.undirected),
        )
        self._preset = PresetDrain(preset, self._topology) if named else None
        self._batch = Batch()
        self._infinite_arcs = network.infinite_arcs()
        loops = int((network.edge_arc < 0).sum())
        self._parallel = network.n_arcs != 2 * (network.n_edges - loops)

    @device_call
    def open(self, terminals: Terminals) -> CudaFlowState:
        terminals.check(self.network.n_vertices)
        role = free_vertices(self.network, terminals).role
        n = self.network.n_vertices
        wide = self._needs_wide()
        self._room(self._needs(wide).state + Footprint(device=arranging_bytes(n, self.network.n_arcs)))
        excess, side = cupy.empty(n, np.int64), cupy.empty(n, np.bool_)
        state = CudaFlowState(terminals, cupy.asarray(role), excess, side, wide)
        self._arrange(state)
        self._states.append(state)
        return state

    def _arrange(self, state: CudaFlowState) -> None:
        """Give the state its arcs. Presets get them as published codes have them."""
        if self._preset is not None:
            arranged = as_given(self.network)
        else:
            arranged = sinks_first(self.network, self._topology, state.terminals.sinks)
        state.edge_arc = arranged.edge_arc
        state.arcs = launch.new_arcs(arranged.head, arranged.reverse, state.wide)

    def _needs_wide(self) -> bool:
        """Narrow if every pair sum and the whole flow stay below 2**30."""
        if self.network.finite_total < NARROW_LIMIT:
            return False
        if self.network.n_infinite:
            return True
        # A pair sum has the capacities of two arcs, twice where edges are undirected. Mostly this bound will do.
        try:
            if 4 * launch.largest_sum(self._topology, cupy.asarray(self.network.edge_arc)) < NARROW_LIMIT:
                return False
        except DeviceFull:
            pass  # the host has room to look closer
        capacity = self.network.arc_capacity()
        pairs = capacity + capacity[self.network.reverse_arc]
        return int(pairs.max(initial=0)) >= NARROW_LIMIT

    @device_call
    def update(self, rows: EdgeArray, capacity: UnitArray) -> None:
        if len(rows) == 0:
            return
        batch = self._batch.load(rows, capacity)  # all the memory it takes, before anything changes
        if self.network.exchange(rows, capacity).touches_infinite:
            self._update_infinite(rows, capacity)
            return
        beside_infinite = self._beside_infinite(rows)
        for state in self._states:
            if beside_infinite:
                state.solved = False  # rare enough to be left to a cold solve
            elif state.solved:
                self._apply(state, batch)
        batch.store(self._topology)
        batch.wait()  # it is read before it is written again
        self._check_width()

    def _check_width(self) -> None:
        """States that were not there to be asked, or hold infinite arcs, may have to become wide."""
        if self.network.finite_total < NARROW_LIMIT:
            return
        narrow = [state for state in self._states if not state.wide and (not state.solved or self.network.n_infinite)]
        if narrow and self._needs_wide():
            for state in narrow:
                state.solved, state.wide, state.arcs, state.edge_arc = False, True, None, None

    def _beside_infinite(self, rows: EdgeArray) -> bool:
        """A finite edge of the batch shares its link with an infinite one."""
        if not (self.network.n_infinite and self._parallel):
            return False
        arcs = self.network.edge_arc[rows[self.network.capacity[rows] != INFINITE]]
        arcs = arcs[arcs >= 0]
        return bool((self._infinite_arcs[arcs] | self._infinite_arcs[self.network.reverse_arc[arcs]]).any())

    def _apply(self, state: CudaFlowState, batch: LoadedBatch) -> None:
        told = batch.apply(self._topology, state)
        state.touched = True
        if told["overflow"]:
            state.solved, state.wide, state.arcs, state.edge_arc = False, True, None, None
        state.value += int(told["gained"])
        state.lacking += int(told["lacking"])
        state.holding += int(told["holding"])

    def _update_infinite(self, rows: EdgeArray, capacity: UnitArray) -> None:
        """As in the CPU engine: the free vertices may change, so every state goes cold."""
        old = self.network.capacity[rows].copy()
        self.network.set_capacity(rows, capacity)
        try:
            roles = [cupy.asarray(free_vertices(self.network, state.terminals).role) for state in self._states]
            self._topology.capacity[cupy.asarray(rows)] = cupy.asarray(capacity)
        except Exception:
            self.network.set_capacity(rows, old)
            raise
        self._infinite_arcs = self.network.infinite_arcs()
        for state, role in zip(self._states, roles, strict=True):
            state.role, state.solved, state.arcs, state.edge_arc = role, False, None, None
            state.wide = self._needs_wide()

    @device_call
    def solve(self, state: FlowState, control: Control | None = None, *, cold: bool = False) -> SolveReport:
        assert isinstance(state, CudaFlowState)
        try:
            return self._solve(state, control or Control(), cold)
        except DeviceFull:
            state.solved = False  # wherever it ended, from zero it can be solved
            raise

    def _solve(self, state: CudaFlowState, control: Control, cold: bool) -> SolveReport:
        began = perf_counter()
        if self._preset is not None:
            self._preset.spent_ms = 0.0
        if cold or not state.solved:
            mode, reason = Mode.COLD, "asked for" if cold else "no earlier flow to start from"
            counters = self._solve_cold(state, control)
        else:
            mode, reason, counters = self._solve_warm(state, control)
        state.settled_value, state.touched = state.value, False
        timings_ms = {"solve": (perf_counter() - began) * 1e3}
        if self._preset is not None:
            timings_ms["preset"] = self._preset.spent_ms
        return SolveReport(mode, state.value, self.name, counters, timings_ms, reason)

    def _solve_cold(self, state: CudaFlowState, control: Control) -> dict[str, int]:
        began = perf_counter()
        state.solved = False
        needs = self._needs(state.wide)
        self._room(needs.scratch if state.arcs is not None else needs.scratch + needs.state)
        if state.arcs is None:
            self._arrange(state)
        launch.zero_flow(self._topology, state)
        state.excess[:] = self._own_supply(state.terminals)
        state.source_side[:] = state.role == SOURCE
        launch.saturate(state)
        counters = self._settle(state, control, [False])
        demand = state.terminals.demand
        on_sink_side = int(cupy.where(state.source_side, 0, state.excess).sum())
        state.value = int(demand[demand != INFINITE].sum()) + on_sink_side
        state.lacking = state.holding = 0
        state.solved = True
        state.patience.cold_ms = (perf_counter() - began) * 1e3
        return counters

    def _solve_warm(self, state: CudaFlowState, control: Control) -> tuple[Mode, str, dict[str, int]]:
        if n_broken := state.lacking + state.holding:
            return self._repair(state, control, n_broken)
        counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        if state.value != state.settled_value:
            return Mode.WARM, "the cut is still minimum, its capacity changed", counters
        reason = "flow and cut are still optimal" if state.touched else "no change since the last solve"
        return Mode.UNCHANGED, reason, counters

    def _repair(self, state: CudaFlowState, control: Control, n_broken: int) -> tuple[Mode, str, dict[str, int]]:
        """Drain the sides that an update left with a deficit or an excess, unless a cold solve is faster.

        A repair that takes much longer than the last cold solve did is given up, so that no update costs more than
        two and a half of them.
        """
        if not state.patience.allows(n_broken):
            return Mode.COLD, f"{n_broken} broken ends: solving anew is faster", self._solve_cold(state, control)
        began = perf_counter()
        self._room(self._needs(state.wide).scratch)
        # What deficits do not find in S they take from T, which may then hold excess for them.
        sides = [True, False] if state.lacking else [False]
        try:
            counters = self._settle(state, control, sides, GIVE_UP_SHARE * state.patience.cold_ms + GIVE_UP_MS)
        except _TooSlow:
            state.patience.learn(n_broken, math.inf)
            return Mode.COLD, "a repair took longer than a cold solve does", self._solve_cold(state, control)
        state.patience.learn(n_broken, (perf_counter() - began) * 1e3)
        state.lacking = state.holding = 0
        return Mode.WARM, "repaired from the last flow", counters

    def _settle(
        self, state: CudaFlowState, control: Control, sides: list[bool], limit_ms: float = math.inf
    ) -> dict[str, int]:
        """Drain S (True: its deficits) or T.

        Raises `Cancelled`, or `_TooSlow` once ``limit_ms`` has passed; a pseudoflow that can be settled later is left.
        """
        drains = Drains(self.network.n_vertices, self.network.n_arcs)
        done = control.slots[WORK].copy()
        counters = Counter(dict.fromkeys(COUNTERS, 0))
        cancelled = False
        try:
            if self._preset is not None and state.holding and len(sides) == 2:
                counters.update(self._preset.both(state, control))
            for deficits in sides:
                if self._preset is not None:
                    counters.update(self._preset.one(state, deficits, control))
                drains.start(self._topology.row_offsets, state, deficits=deficits)
        except Cancelled:
            cancelled = True  # in a preset; what the drains before it did counts all the same
        in_time = self._wait(control, drains, math.inf if self._preset is not None else limit_ms)
        stopped = False
        for told in drains.outcomes():
            stopped |= bool(told["status"] != 0)
            state.value += int(told["gained"])
            if self._preset is None:
                counters.update({name: int(told[name]) for name in COUNTERS})
            else:
                counters["left_pushes"] += int(told["pushes"])
        control.slots[WORK] = done + [counters[name] for name in WORK_DONE]
        if cancelled or stopped:
            state.holding = max(state.holding, 1)
            if cancelled or in_time:
                raise Cancelled("the solve was cancelled")
            raise _TooSlow
        return counters

    def _wait(self, control: Control, drains: Drains, limit_ms: float) -> bool:
        """Until the kernels have ended; passes a cancel on to them, and to the control how far they are.

        False if they were stopped because ``limit_ms`` had passed.
        """
        event = cupy.cuda.Event(disable_timing=True)
        event.record()
        began = told = perf_counter()
        done = control.slots[WORK].copy()
        sent, in_time = False, True
        while not event.done:
            now = perf_counter()
            late = (now - began) * 1e3 > limit_ms
            if (control.cancelled or late) and not sent:
                drains.cancel()
                sent, in_time = True, control.cancelled
            if now - began > SPIN_S:
                time.sleep(POLL_S)
            if now - told > TELL_S:
                told = now
                control.slots[WORK] = done + drains.progress()
        return in_time

    @device_call
    def certificate(self, state: FlowState) -> Certificate:
        assert isinstance(state, CudaFlowState)
        found = launch.certify(self._topology, state, self._own_supply(state.terminals))
        first = [int(found[name]) for name in ("residual", "balance", "terminal", "crossing", "side")]
        side = self._terminal_sides(state)
        return verdict(state.terminals, *side, int(found["across"]), int(found["cut_capacity"]), first)

    def _own_supply(self, terminals: Terminals) -> Array:
        """`gpu_engine.checks.own_supply`, without sending a vector of zeros."""
        own = cupy.zeros(self.network.n_vertices, np.int64)
        for vertices, caps in ((terminals.sources, terminals.supply), (terminals.sinks, -terminals.demand)):
            capped = np.abs(caps) != INFINITE
            if capped.any():
                own[cupy.asarray(vertices[capped])] += cupy.asarray(caps[capped])
        return own

    def _terminal_sides(self, state: CudaFlowState) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which sources and which sinks lie in S."""
        sources, sinks = (cupy.asarray(v) for v in (state.terminals.sources, state.terminals.sinks))
        return state.source_side[sources].get(), state.source_side[sinks].get()

    @device_call
    def cut(self, state: FlowState, control: Control | None = None) -> Cut:
        self._room(self.needs.cut)
        engine, copy = self._on_host(state)
        return engine.cut(copy, control)

    @device_call
    def flow(self, state: FlowState, control: Control | None = None) -> UnitArray:
        self._room(self.needs.flow)
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
        """int64[arcs] on the host in the network's order, in the CPU engine's terms for infinite arcs."""
        own = launch.residual(state.arcs, state.wide)
        if self.network.n_infinite:
            own = own - launch.arc_capacity(self._topology, state)
        given = cupy.empty(len(own), own.dtype)
        for there, here in self._same_arcs(state):
            given[there] = own[here]
        residual: UnitArray = given.get().astype(np.int64)
        if self.network.n_infinite:
            residual += self.network.arc_capacity()
        return residual

    def _same_arcs(self, state: CudaFlowState) -> Iterator[tuple[Array, Array]]:
        """Places of the same arcs in the network and in the state: those that carry edges, then their reverses."""
        given = cupy.asarray(self.network.edge_arc)
        kept = given >= 0
        there, here = given[kept], state.edge_arc[kept]
        yield there, here
        yield cupy.asarray(self.network.reverse_arc)[there], launch.columns(state.arcs)[1][here]

    @device_call
    def export(self, state: FlowState) -> dict[str, NDArray[np.generic]]:
        assert isinstance(state, CudaFlowState)
        if not state.solved:
            return {}
        flow = self.network.arc_capacity() - self._residual(state)
        return {"flow": flow, "excess": state.excess.get(), "source_side": state.source_side.get()}

    @device_call
    def restore(self, terminals: Terminals, arrays: Mapping[str, NDArray[np.generic]]) -> CudaFlowState:
        state = self.open(terminals)

        def fill() -> None:
            launch.zero_flow(self._topology, state)
            column = launch.residual(state.arcs, state.wide)
            capacity, flow = column.copy(), arrays["flow"].astype(column.dtype)
            if flow.shape != column.shape:
                raise ValueError(f"flow of {len(flow)} arcs")
            flow = cupy.asarray(flow)
            for there, here in self._same_arcs(state):
                column[here] = capacity[here] - flow[there]
            state.excess[:] = cupy.asarray(arrays["excess"])
            state.source_side[:] = cupy.asarray(arrays["source_side"])

        if arrays:
            self._keep_restored(state, fill)
        return state

    def close(self, state: FlowState) -> None:
        assert isinstance(state, CudaFlowState)
        self._states.remove(state)

    @property
    def nbytes(self) -> int:
        return self.network.nbytes + self._infinite_arcs.nbytes + self._batch.nbytes

    @property
    def device_nbytes(self) -> int:
        reversed_rows = 0 if self._preset is None else self._preset.nbytes
        return self._topology.nbytes + reversed_rows + sum(state.nbytes for state in self._states)

    @property
    @device_call
    def needs(self) -> Needs:
        return self._needs(self._needs_wide())

    def _needs(self, wide: bool) -> Needs:
        return on_cuda(replace(self.network.counts, wide=wide))
