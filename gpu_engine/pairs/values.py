"""Values of many terminal pairs, one after the other in one kernel call, each proven before it is returned."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.checks.pairs import WRONG, Ledger, Witness, ledger, prove_pair
from gpu_engine.cpu.pair_search import MORE, UNLIMITED, Log, Pair, search_pair, take_back
from gpu_engine.cpu.pseudoflow import CANCEL, Pseudoflow
from gpu_engine.cpu.reach import MARK, Reach
from gpu_engine.cpu.smallcut import GAVE_UP, SINK_CUT
from gpu_engine.pairs.reduced import Reduced
from gpu_engine.types import ArcArray, UnitArray, VertexArray

OPEN: Final = -1
"""In place of a value: the search was given up, or the proof failed."""
NO_LIMIT: Final = -2
"""In place of a value: no cut of the pair is finite."""

MOST: Final = 16.0
"""The first search may scan this many sizes of the network (n + arcs). The limit is halved after a search that has
reached it, and doubled after any other, between `LEAST` and `MOST`."""
LEAST: Final = 0.5

LAST_EPOCH: Final = 1 << 30
"""Marks are cleared once the numbers of searches reach this."""


class Whole(NamedTuple):
    """The whole network."""

    row_offsets: ArcArray
    head: VertexArray
    reverse_arc: ArcArray
    capacity: UnitArray
    """int64[arcs]"""


class Desk(NamedTuple):
    """The memory of one thread. After each pair it is as it was before."""

    flow: Pseudoflow
    """A flow on the reduced network, zero between two pairs."""
    reach: Reach
    log: Log
    bounds: NDArray[np.float64]
    through: UnitArray
    """int64[arcs]: what flows on each arc of the whole network; 0 between two pairs."""
    arcs: ArcArray
    units: UnitArray
    side: VertexArray
    mark: NDArray[np.int32]
    """int32[n]: the number of the last search that found each vertex."""
    ledger: Ledger
    memory: NDArray[np.float64]
    """float64[3]: the last numbers of marks, in the reduced network and in the whole, and how many sizes a search may
    scan."""


def desk(whole: Whole, small: Reduced) -> Desk:
    """The memory for one thread: at most 45 bytes for each arc and 80 for each vertex."""
    n, arcs = len(whole.row_offsets) - 1, len(whole.head)
    n_small, arcs_small = len(small.row_offsets) - 1, len(small.head)
    flow = Pseudoflow(
        small.row_offsets.view(np.uint32),
        small.head.view(np.uint32),
        small.reverse_arc.view(np.uint32),
        small.capacity.copy(),
        np.zeros(n_small, np.int64),
        np.zeros(n_small, np.int8),
    )
    reach = Reach(
        node=np.zeros((n_small, 4), np.int32),
        ahead=np.empty(n_small, np.uint32),
        behind=np.empty(n_small, np.uint32),
        excesses=np.empty(1, np.uint32),
        deficits=np.empty(1, np.uint32),
        trail=np.empty(2 * n_small, np.uint32),
        meeting=np.empty(n_small, np.uint32),
    )
    return Desk(
        flow,
        reach,
        Log(np.empty(arcs_small + 1, np.uint32), np.empty(arcs_small + 1, np.int64)),
        np.zeros(2),
        np.zeros(arcs, np.int64),
        np.empty(arcs // 2, np.int32),
        np.empty(arcs // 2, np.int64),
        np.empty(n, np.int32),
        np.zeros(n, np.int32),
        ledger(n, arcs),
        np.array([0.0, 0.0, MOST]),
    )


def desk_nbytes(n_vertices: int, n_arcs: int) -> int:
    """Bytes that `desk` takes at most."""
    return 45 * n_arcs + 80 * n_vertices + 4096


def reduced_nbytes(n_vertices: int, n_arcs: int) -> int:
    """Bytes that the reduced network takes at most while it is made, the capacities of the arcs included."""
    return 52 * n_arcs + 24 * n_vertices + 4096


@njit(cache=True, nogil=True)
def solve_pairs(
    whole: Whole,
    small: Reduced,
    desk: Desk,
    sources: VertexArray,
    sinks: VertexArray,
    values: UnitArray,
    slots: NDArray[np.int64],
) -> int:
    """Fill ``values`` with proven values, `OPEN` or `NO_LIMIT`; returns how many were done before a cancel."""
    for i in range(len(sources)):
        value, _, _ = solve_pair(whole, small, desk, int(sources[i]), int(sinks[i]), slots)
        if slots[CANCEL] != 0:
            return i
        values[i] = value
    return len(sources)


@njit(cache=True, nogil=True)
def solve_pair(
    whole: Whole, small: Reduced, desk: Desk, source: int, sink: int, slots: NDArray[np.int64]
) -> tuple[int, int, bool]:
    """The value, and one side of a minimum cut: how many vertices are listed in `Desk.side`, and whether the sink is
    one of them."""
    flow, memory = desk.flow, desk.memory
    size = float(len(flow.role) + len(flow.head))
    if memory[0] > LAST_EPOCH:
        desk.reach.node[:, MARK] = 0
        memory[0] = 0
    found = search_pair(
        flow,
        desk.reach,
        desk.log,
        Pair(small.number[source], small.number[sink], MORE, MORE),
        int(memory[0]),
        memory[2] * size,
        desk.bounds,
        slots,
    )
    memory[0] = found.epoch
    if found.kind == GAVE_UP or found.kind == UNLIMITED:
        take_back(flow, desk.log, found.noted)
        memory[2] = max(LEAST, memory[2] / 2) if found.kind == GAVE_UP else memory[2]
        return NO_LIMIT if found.kind == UNLIMITED else OPEN, 0, False
    memory[2] = min(MOST, memory[2] * 2)
    n_arcs = write_out(small, desk, found.noted)
    holds_sink = found.kind == SINK_CUT
    n_side = list_side(whole, desk, n_arcs, sink if holds_sink else source, holds_sink)
    witness = Witness(desk.arcs, desk.units, n_arcs, desk.side, n_side, holds_sink)
    proven = prove_pair(
        whole.row_offsets, whole.head, whole.reverse_arc, whole.capacity, source, sink, witness, desk.ledger
    )
    return OPEN if proven == WRONG or proven != found.value else proven, n_side, holds_sink


@njit(cache=True, nogil=True)
def write_out(small: Reduced, desk: Desk, noted: int) -> int:
    """List the flow on the arcs of the whole network, and set the flow back to zero. Returns how many arcs carry
    flow."""
    residual, count = desk.flow.residual, 0
    for i in range(noted):
        a = desk.log.arcs[i]
        r = desk.flow.reverse_arc[a]
        units = small.capacity[a] - residual[a]
        if units == 0:
            continue  # noted before, or taken back by the search
        residual[a], residual[r] = small.capacity[a], small.capacity[r]
        if units < 0:
            a, units = r, -units
        for k in range(small.offsets[a], small.offsets[a + 1]):
            desk.arcs[count] = small.chain[k]
            desk.units[count] = units
            count += 1
    return count


@njit(cache=True, nogil=True)
def list_side(whole: Whole, desk: Desk, n_arcs: int, start: int, holds_sink: bool) -> int:
    """Fill `Desk.side` with the vertices that ``start`` reaches by arcs that are not full, or that so reach it."""
    if desk.memory[1] > LAST_EPOCH:
        desk.mark[:] = 0
        desk.memory[1] = 0
    desk.memory[1] += 1
    epoch = int(desk.memory[1])
    for i in range(n_arcs):
        desk.through[desk.arcs[i]] = desk.units[i]
    desk.mark[start] = epoch
    desk.side[0] = start
    end, k = 1, 0
    while k < end:
        v = desk.side[k]
        k += 1
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            w = whole.head[a]
            if desk.mark[w] == epoch:
                continue
            r = whole.reverse_arc[a]
            b = r if holds_sink else a
            flows = desk.through[b] - desk.through[a if holds_sink else r]
            if whole.capacity[b] > flows:
                desk.mark[w] = epoch
                desk.side[end] = w
                end += 1
    for i in range(n_arcs):
        desk.through[desk.arcs[i]] = 0
    return end
