"""The least cut of all: of every two vertices in an undirected network, of every ordered pair in a directed one.

The best cut known is at first the cheapest around a single vertex. From one vertex on, the others join a set: at once
if arcs from the set carry as much as the best cut to them, else after a search for flows to them, which is mostly
short since they lie beside the set. Where less arrives than the best cut, what was reached is a better one. A vertex to
which arcs from the set carry no less than its own carry to others outside joins at once as well: without it the other
side of a cut pays no more, and alone it is no better (Padberg and Rinaldi's second test). So rings of equal capacities
ask for no flow. Each that joins is proven (`gpu_engine.checks.global_cuts`). Vertices that are tightly bound come
first, as in maximum adjacency order, so that in dense networks nearly all join at once. Where flows in an undirected
network take long all the same, vertices of it are drawn together (`gpu_engine.pairs.drawing`), and it goes on there.

Padberg, Rinaldi, "An efficient algorithm for the minimum capacity cut problem", Mathematical Programming 47 (1990).
Nagamochi, Ibaraki, "Computing edge-connectivity in multigraphs and capacitated graphs", SIAM Journal on Discrete
Mathematics 5 (1992). Hao, Orlin, "A faster algorithm for finding the minimum cut in a directed graph", Journal of
Algorithms 17 (1994).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from numba import njit

from gpu_engine.checks.global_cuts import cut_capacity
from gpu_engine.checks.pairs import ledger
from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError, InvalidTerminals, Unbounded
from gpu_engine.footprint import Footprint, Room, unlimited
from gpu_engine.networks.network import Network
from gpu_engine.pairs.drawing import IN_VAIN, ROUNDS, Smaller, next_round, of_joined
from gpu_engine.pairs.joining import BEST, BROKEN, Joining, join, join_some
from gpu_engine.pairs.values import Whole
from gpu_engine.text.counted import counted
from gpu_engine.types import INFINITE_RESIDUAL, MAX_TOTAL, BoolArray, UnitArray, VertexArray

STEPS: Final = 256
"""The kernel returns to its caller after so many vertices have joined."""

SIZES: Final = 4
"""Vertices of an undirected network are drawn together once the search has scanned this many times n + arcs."""

WORTH: Final = 2
"""They are drawn together again if at most one vertex in this many was left the last time."""

FEWEST: Final = 2
"""The smallest number of vertices of a network that has a cut."""


@dataclass(frozen=True, eq=False, slots=True)
class GlobalCut:
    """A global minimum cut, proven. ``source_side`` is bool[n]."""

    value: int
    source_side: BoolArray


def global_cut_nbytes(n_vertices: int, n_arcs: int) -> int:
    """At most what `global_cut` takes."""
    return 64 * n_arcs + 112 * n_vertices + 4096


def global_cut(
    network: Network,
    control: Control,
    tell: Callable[[int, int], None] = lambda done, of: None,
    room: Room = unlimited,
) -> GlobalCut:
    """A global minimum cut of a network. ``tell`` is called with the number of vertices that have joined, and of all.
    Raises `InvalidTerminals` for a network of fewer than two vertices, `Unbounded` if no cut is finite, and
    `Cancelled`. In practice nearly linear."""
    n = network.n_vertices
    if n < 2:
        raise InvalidTerminals(f"a network of {counted(n, 'vertex', 'vertices')} has no cut")
    room(Footprint(global_cut_nbytes(n, network.n_arcs)))
    capacity = network.arc_capacity()
    ahead = Whole(network.row_offsets, network.head, network.reverse_arc, capacity)
    both_ways = network.has_directed_edges
    found = _Search(ahead, control, *cheapest_around_one(ahead), may_draw=not both_ways)
    found.run(lambda done: tell(done, (n - 1) * (1 + both_ways)))
    side, best = found.side, found.best
    if both_ways:
        backward = ahead._replace(capacity=capacity[network.reverse_arc])
        turned = _Search(backward, control, ~side, best, may_draw=False)
        turned.run(lambda done: tell(done + n - 1, 2 * (n - 1)))
        side, best = ~turned.side, turned.best
    if best > MAX_TOTAL:
        raise Unbounded("every cut of the network holds an edge without limit")
    if not both_ways and 2 * int(side.sum()) > n:
        side = ~side
    if cut_capacity(network.row_offsets, network.head, capacity, side) != best:
        raise EngineError("a global minimum cut could not be proven: its edges have another capacity")
    return GlobalCut(best, side)


class _Search:
    """The best cut that holds a vertex on its source side, or any, and the network in which a better one is looked for:
    the whole one, or one in which vertices are drawn together (`gpu_engine.pairs.drawing`)."""

    def __init__(self, whole: Whole, control: Control, side: BoolArray, best: int, *, may_draw: bool) -> None:
        """``side`` bool[n] is the source side of a cut of this value, from which the search begins."""
        self._whole, self._control, self._may_draw = whole, control, may_draw
        self.side, self.best = side, best
        self._n = len(whole.row_offsets) - 1
        self._group: VertexArray | None = None
        """int32[n]: which vertex of the network at hand each one is; None: itself."""

    def run(self, tell: Callable[[int], None]) -> None:
        """Look for it; ``tell`` hears how many vertices have joined, or been drawn to others. Raises `Cancelled`."""
        joining, slots = begin(self._whole, self.best), self._control.slots
        begun = slots[Control.ARCS_SCANNED]
        while True:
            n = len(self._whole.row_offsets) - 1
            most = begun + SIZES * (n + len(self._whole.head)) if self._may_draw else inf
            done = join_some(self._whole, joining, STEPS, slots, float(most - slots[Control.ARCS_SCANNED]))
            if done == BROKEN:
                raise EngineError("a global minimum cut could not be proven")
            if joining.counts[BEST] < self.best:
                self._note(int(joining.counts[BEST]), ~joining.best_side)
            if done == n or self.best == 0:
                return
            if self._control.cancelled:
                raise Cancelled("cancelled between two vertices")
            tell(self._n - n + done - 1)
            if slots[Control.ARCS_SCANNED] > most:
                joined = joining.joined
                del joining
                self._draw(joined)
                joining, begun = begin(self._whole, self.best), slots[Control.ARCS_SCANNED]
                self._may_draw = WORTH * (len(self._whole.row_offsets) - 1) < n

    def _draw(self, joined: BoolArray) -> None:
        """Go on in a network in which all that have joined are one vertex, and so are others. Raises `EngineError`."""
        self._enter(of_joined(self._whole, joined))
        number, in_vain = 0, 0
        while number < ROUNDS and in_vain < IN_VAIN and len(self._whole.row_offsets) > FEWEST + 1:
            smaller = next_round(self._whole, self.best, number)
            number, in_vain = number + 1, in_vain + 1 if smaller is None else 0
            if smaller is not None:
                self._enter(smaller)

    def _enter(self, smaller: Smaller) -> None:
        self._whole = smaller.whole
        self._group = smaller.group if self._group is None else smaller.group[self._group]
        if len(smaller.whole.row_offsets) > FEWEST:
            side, value = cheapest_around_one(smaller.whole)
            if value < self.best:
                self._note(value, side)

    def _note(self, value: int, side: BoolArray) -> None:
        """A better cut, of the network at hand."""
        self.best, self.side = value, side if self._group is None else side[self._group]


def begin(whole: Whole, best: int) -> Joining:
    """The set that holds the first vertex alone, where the best cut known has this value."""
    joining = nothing_joined(whole)
    joining.counts[BEST] = best
    join(whole, joining, 0)
    return joining


def nothing_joined(whole: Whole) -> Joining:
    """The empty set. O(n + arcs)."""
    n, arcs = len(whole.row_offsets) - 1, len(whole.head)
    return Joining(
        joined=np.zeros(n, np.bool_),
        bound=np.zeros(n, np.int64),
        rest=leaving(whole),
        listed=np.zeros(n, np.bool_),
        edge=np.empty(n, np.int32),
        ready=np.empty(2 * n, np.int32),
        counts=np.zeros(6, np.int64),
        best_side=np.zeros(n, np.bool_),
        residual=whole.capacity.copy(),
        mark=np.zeros(n, np.int32),
        level=np.empty(n, np.int32),
        found_by=np.empty(n, np.int32),
        present=np.empty(n, np.int32),
        trail=np.empty(n + 1, np.int32),
        queue=np.empty(n, np.int32),
        log=np.empty(arcs + 1, np.int32),
        units=np.empty(arcs + 1, np.int64),
        ledger=ledger(n, arcs),
    )


@njit(cache=True, nogil=True)
def leaving(whole: Whole) -> UnitArray:
    """int64[n]: what the arcs of each vertex carry, `INFINITE_RESIDUAL` where one has no limit."""
    out = np.zeros(len(whole.row_offsets) - 1, np.int64)
    for v in range(len(out)):
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            out[v] = min(out[v] + min(whole.capacity[a], INFINITE_RESIDUAL), INFINITE_RESIDUAL)
    return out


@njit(cache=True, nogil=True)
def cheapest_around_one(whole: Whole) -> tuple[BoolArray, int]:
    """The source side of the cheapest cut with one vertex on a side, and its value, at most `INFINITE_RESIDUAL`."""
    n = len(whole.row_offsets) - 1
    best, at, leaves = INFINITE_RESIDUAL, 0, True
    for v in range(n):
        out, back = 0, 0
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            out = min(out + min(whole.capacity[a], INFINITE_RESIDUAL), INFINITE_RESIDUAL)
            back = min(back + min(whole.capacity[whole.reverse_arc[a]], INFINITE_RESIDUAL), INFINITE_RESIDUAL)
        if min(out, back) < best:
            best, at, leaves = min(out, back), v, out <= back
    side = np.full(n, not leaves)
    side[at] = leaves
    return side, best
