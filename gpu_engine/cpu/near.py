"""A first look for the flow between two terminals, which costs what it looks at and not the size of the network.

Where the number of vertices grows with each step, as it does in social networks, in the internet and in random
graphs, a search from both ends is through after some thousand arcs. Just to set up the arrays of a flow state takes
longer, and so does the proof of the whole state. So a solve from zero between one source and one sink begins with the
search alone. It takes the capacities of the arcs for the residuals of zero flow, and puts them back. What it finds is
kept as a list: the arcs that carry flow, and one side of a minimum cut. From these and the network the value is proven
(`gpu_engine.checks.pairs`). The arrays of the state are filled from the list once anything else is asked for, or an
update changes an arc of the flow or of the cut.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate
from gpu_engine.checks.pairs import Ledger, Witness, certify_pair
from gpu_engine.control import Control
from gpu_engine.cpu.pair_search import MORE, Found, Log, Pair, search_pair, take_back
from gpu_engine.cpu.pseudoflow import Pseudoflow
from gpu_engine.cpu.reach import Reach
from gpu_engine.cpu.smallcut import GAVE_UP, SINK_CUT
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, ArcArray, BoolArray, EdgeArray, UnitArray, VertexArray

SHARE: Final = 1 / 16
"""The look may scan this share of the size of the network (n + arcs). Of 200 random pairs, 99 in 100 of a random
digraph and 90 in 100 of an R-MAT network end within it, and 3 in 100 of a grid or a triangulation."""
STREET_SHARE: Final = 1 / 128
"""`SHARE` where vertices have two to three arcs in the mean: streets do not widen, so the look ends only between
neighbours."""
MOST_ARCS: Final = 16
"""There is no look if both terminals have more arcs than this: then many paths are to be found, and one look in five
would end."""


class Desk:
    """The memory of one thread for such looks: 28 bytes a vertex of the largest network, beside what it borrows.
    Between two looks all marks are older than those to come, and the columns of the ledger are zero."""

    def __init__(self, n_vertices: int) -> None:
        self.node = np.zeros((n_vertices, 4), np.int32)
        self.epoch = 0
        net, inside = np.zeros(n_vertices, np.int64), np.zeros(n_vertices, np.bool_)
        self.ledger = Ledger(np.empty(0, np.bool_), net, inside)
        room = n_vertices // 5 + 8
        self.log = Log(np.empty(room, np.uint32), np.empty(room, np.int64))

    def fits(self, n_vertices: int) -> bool:
        """Whether it is large enough, and has not used up the numbers of marks."""
        return len(self.node) >= n_vertices and self.epoch < LAST_EPOCH


LAST_EPOCH: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Near:
    """A maximum flow and a minimum cut between one source and one sink, as lists."""

    arcs: ArcArray
    """int32[k], rising: the arcs that carry flow."""
    units: UnitArray
    """int64[k]: what they carry, above 0."""
    side: VertexArray
    """int32[...], rising: the sink's side of the cut if `holds_sink`, else the source's. Empty if the cap of that
    terminal limits the flow."""
    holds_sink: bool
    value: int

    @classmethod
    def look(
        cls,
        network: Network,
        capacity: UnitArray,
        terminals: Terminals,
        limit: float,
        desk: Desk,
        reach: Reach,
        control: Control,
    ) -> Self | None:
        """Search for the flow; None if there is more than one source or sink, an infinite edge, many arcs at both
        terminals, or more than about ``limit`` arcs to look at, or if ``control`` is cancelled. ``capacity``
        int64[arcs] is the same afterwards. ``reach``: only its lists are used, and they mean nothing afterwards."""
        pair = _pair(network, terminals)
        if pair is None or min(_degree(network, pair.source), _degree(network, pair.sink)) > MOST_ARCS:
            return None
        n, ledger = network.n_vertices, desk.ledger
        flow = Pseudoflow(
            network.row_offsets.view(np.uint32),
            network.head.view(np.uint32),
            network.reverse_arc.view(np.uint32),
            capacity,
            ledger.net[:n],
            ledger.inside[:n].view(np.int8),
        )
        found = _look(flow, reach._replace(node=desk.node), desk.log, pair, limit, desk.epoch, control.slots)
        desk.epoch = found.epoch
        if found.kind == GAVE_UP:
            return None
        holds_sink = found.kind == SINK_CUT
        side = np.sort((reach.behind if holds_sink else reach.ahead)[: found.reached]).view(np.int32)
        return cls(*_added_up(desk.log, found.noted, network.reverse_arc), side, holds_sink, found.value)

    def certificate(self, network: Network, capacity: UnitArray, terminals: Terminals, ledger: Ledger) -> Certificate:
        """Prove the value from the lists, with the ``capacity`` int64[arcs] of all arcs."""
        lists = Witness(self.arcs, self.units, len(self.arcs), self.side, len(self.side), self.holds_sink)
        return certify_pair(network, terminals, capacity, lists, ledger)

    def changes_with(self, network: Network, rows: EdgeArray) -> bool:
        """Whether any of the edges ``rows`` int64[k] carries flow, or leads from one side of the cut to the other.
        O(k log(arcs and vertices listed))."""
        return bool(_changes_with(rows, network.edge_arc, network.head, network.reverse_arc, self.arcs, self.side))

    def fill(
        self,
        network: Network,
        capacity: UnitArray,
        own: UnitArray,
        terminals: Terminals,
        arrays: tuple[UnitArray, UnitArray, BoolArray],
    ) -> None:
        """Write residuals int64[arcs], excesses int64[n] and sides bool[n] of this flow and cut. ``own`` int64[n]: the
        supplies less the demands. O(n + arcs)."""
        residual, excess, source_side = arrays
        residual[:] = capacity
        residual[self.arcs] -= self.units
        residual[network.reverse_arc[self.arcs]] += self.units
        excess[:] = own
        excess[terminals.sources] -= self.value
        excess[terminals.sinks] += self.value
        source_side[:] = self.holds_sink
        source_side[self.side] = not self.holds_sink


def _pair(network: Network, terminals: Terminals) -> Pair | None:
    """The source and the sink with their caps; None unless there is one of each, and no infinite edge."""
    if network.n_infinite or len(terminals.sources) != 1 or len(terminals.sinks) != 1:
        return None
    supply, demand = int(terminals.supply[0]), int(terminals.demand[0])
    caps = (MORE if cap == INFINITE else cap for cap in (supply, demand))
    return Pair(int(terminals.sources[0]), int(terminals.sinks[0]), *caps)


def _degree(network: Network, vertex: int) -> int:
    return int(network.row_offsets[vertex + 1] - network.row_offsets[vertex])


def limit_for(network: Network) -> float:
    """How many arcs a look may scan before all of the network is solved."""
    n, arcs = network.n_vertices, network.n_arcs
    return (STREET_SHARE if 2 * n <= arcs < 3 * n else SHARE) * (n + arcs)


@njit(nogil=True, cache=True)
def _look(
    flow: Pseudoflow, reach: Reach, log: Log, pair: Pair, limit: float, epoch: int, slots: NDArray[np.int64]
) -> Found:
    """Search, and put all residuals back; what was pushed is in the log."""
    found = search_pair(flow, reach, log, pair, epoch, limit, np.empty(2), slots)
    take_back(flow, log, found.noted)
    return found


@njit(nogil=True, cache=True)
def _added_up(log: Log, noted: int, reverse_arc: ArcArray) -> tuple[ArcArray, UnitArray]:
    """The arcs that carry flow, int32[k], rising, and what they carry, int64[k], above 0. O(k log(k)) for k entries."""
    link = np.empty(noted, np.int32)
    for i in range(noted):
        a = np.int32(log.arcs[i])
        link[i] = min(a, reverse_arc[a])
    order = np.argsort(link)
    arcs, units, count, i = np.empty(noted, np.int32), np.empty(noted, np.int64), 0, 0
    while i < noted:
        a, carried = link[order[i]], 0
        while i < noted and link[order[i]] == a:
            entry = order[i]
            carried += log.units[entry] if log.arcs[entry] == a else -log.units[entry]
            i += 1
        if carried != 0:
            arcs[count], units[count] = (a, carried) if carried > 0 else (reverse_arc[a], -carried)
            count += 1
    order = np.argsort(arcs[:count])
    return arcs[order], units[order]


@njit(nogil=True, cache=True)
def _changes_with(
    rows: EdgeArray, edge_arc: ArcArray, head: VertexArray, reverse_arc: ArcArray, arcs: ArcArray, side: VertexArray
) -> bool:
    for row in rows:
        a = edge_arc[row]
        if a < 0:
            continue
        r = reverse_arc[a]
        if _holds(arcs, a) or _holds(arcs, r) or _holds(side, head[a]) != _holds(side, head[r]):
            return True
    return False


@njit(nogil=True, cache=True)
def _holds(rising: NDArray[np.int32], value: int) -> bool:
    at = np.searchsorted(rising, value)
    return bool(at < len(rising) and rising[at] == value)
