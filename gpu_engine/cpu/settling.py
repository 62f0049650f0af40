"""One side of a state's cut is settled: near searches, far ones, then a drain."""

from typing import Final

import numpy as np

from gpu_engine.control import Control
from gpu_engine.cpu import repair, sides
from gpu_engine.cpu.drain import TOO_LONG, drain
from gpu_engine.cpu.pseudoflow import steps_taken
from gpu_engine.cpu.scratch import SCRATCH
from gpu_engine.cpu.state import CpuFlowState
from gpu_engine.errors import Cancelled
from gpu_engine.incremental import TooSlow
from gpu_engine.networks.free import ORDINARY
from gpu_engine.networks.network import Network
from gpu_engine.types import VertexArray

SEARCH_SHARE: Final = 16
"""`repair.search` may scan one in this many of the arcs that the last cold solve scanned; then `drain` takes over."""

NEAR: Final = 1024
"""Arcs a first search scans around each broken vertex."""

PATIENT: Final = 1.5
"""A repair may take this many times the steps of the last solve from zero. One in fourteen of 1,226 repairs of 62
networks takes more; the mean time is longer if repairs are given up sooner, and if they are given up later."""

_NOTHING: Final[VertexArray] = np.empty(0, np.int32)


def broken(network: Network, state: CpuFlowState, deficits: bool) -> VertexArray:
    """The vertices that break invariant (b) of `repair`, if ``deficits``, else (c): int32[...], possibly repeated."""
    if state.interrupted:
        lacks = state.source_side & (state.excess < 0)
        holds = ~state.source_side & (state.excess > 0)
        return np.flatnonzero((lacks if deficits else holds) & (state.role == ORDINARY)).astype(np.int32)
    if not state.touched:
        return _NOTHING
    rows = state.touched[0] if len(state.touched) == 1 else np.concatenate(state.touched)
    return repair.broken(
        rows,
        network.edge_arc,
        network.head,
        network.reverse_arc,
        state.excess,
        state.role,
        state.source_side,
        deficits,
    )


def repair_sides(network: Network, state: CpuFlowState, control: Control) -> None:
    """Settle both sides, within `PATIENT` times what the last solve from zero took; raises as `drain_side`.

    What deficits draw from T, T may lack or hold afterwards: so S comes first.
    """
    until = steps_taken(control.slots) + PATIENT * max(state.cold_steps, network.n_vertices)
    for deficits in (True, False):
        settle(network, state, control, until, deficits=deficits)


def settle(network: Network, state: CpuFlowState, control: Control, until: float, *, deficits: bool) -> None:
    """Restore invariant (b) if ``deficits``, else (c), of `repair`: near targets first, then far ones.

    A drain gives up when `steps_taken` comes to ``until``.
    """
    start, limit = broken(network, state, deficits), state.cold_arcs_scanned // SEARCH_SHARE
    for reach in (NEAR, limit):
        if not len(start):
            return
        start = start[: _search(network, state, control, start, deficits, reach, limit)]
    if not len(start):
        return
    drain_side(network, state, control, deficits=deficits, limit=until - steps_taken(control.slots))


def _search(
    network: Network,
    state: CpuFlowState,
    control: Control,
    start: VertexArray,
    deficits: bool,
    reach: int,
    limit: int,
) -> int:
    SCRATCH.reserve(network.n_vertices)
    left, SCRATCH.epoch, gained, n_changed = repair.search(
        network.row_offsets,
        network.head,
        network.reverse_arc,
        state.residual,
        state.excess,
        state.role,
        state.source_side,
        start,
        deficits,
        SCRATCH.epoch,
        SCRATCH.stamp,
        SCRATCH.via,
        SCRATCH.queue,
        SCRATCH.changed,
        control.slots,
        reach,
        limit,
        _NOTHING,
    )
    state.value += gained
    if n_changed > len(SCRATCH.changed):
        state.audit = None
    elif state.audit:
        state.audit.note(SCRATCH.changed[:n_changed].copy())
    return left


def drain_side(
    network: Network, state: CpuFlowState, control: Control, *, deficits: bool, limit: float | None = None
) -> None:
    """Settle one whole side; raises `Cancelled` with the state a pseudoflow that can be settled later, or `TooSlow`.

    ``limit``: of a repair, which gives up after about so many steps.
    """
    state.audit = None
    if not control.cancelled:
        role = sides.drain_roles(state.role, state.source_side, deficits)
        arrays, repair = (state.residual, state.excess, role), limit is not None
        control.slots[Control.NARROW] = 0
        moved = drain(
            network,
            *arrays,
            control,
            SCRATCH,
            mirrored=deficits,
            repair=repair,
            narrow=repair and state.narrow,
            limit=np.inf if limit is None else limit,
        )
        if control.slots[Control.NARROW] == TOO_LONG:
            raise TooSlow
        if not control.cancelled:
            held = sides.move(moved, state.source_side, state.excess, not deficits)
            state.value += held if deficits else -held
            return
    state.interrupted = True
    raise Cancelled("the solve was cancelled")
