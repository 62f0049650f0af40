"""A Gomory-Hu tree: n - 1 minimum cuts that hold the minimum cut of every two vertices.

A true cut tree: removing a row of it splits the vertices into the two sides of a minimum cut of its ends. Vertices that
are no terminals are never cut off themselves; they go with a terminal. Vertices that are joined by unlimited edges are
one vertex to any finite cut; the first terminal among them stands for the others, which hang on it without limit.
Vertices that are linked with one or two others are taken out first, again and again (`gpu_engine.pairs.series`): of a
network that is a tree of rings or a ladder nothing is left to cut. Of the others those hang on one, as long as that is
soon seen, that nothing cuts off for less than what leads to them (`gpu_engine.pairs.hanging`); the rest are cut from
one another (`gpu_engine.pairs.forest`); what takes long in one network goes on in networks around the parts of it
(`gpu_engine.pairs.around`). Then what was taken out is put into the tree.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

import numpy as np

from gpu_engine.checks.contractions import Slots, contraction_failures
from gpu_engine.checks.cut_trees import tree_failures
from gpu_engine.checks.series import flows_beside, series_failures
from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, EngineError, InvalidTerminals
from gpu_engine.footprint import Room, unlimited
from gpu_engine.networks.network import Network
from gpu_engine.pairs.around import drawn_around, edges_around
from gpu_engine.pairs.forest import (
    BLOCK_ARCS,
    CANCELLED,
    DONE,
    NONE,
    SINK,
    SLOTS,
    SOURCE,
    UNLIMITED,
    UNSOLVED,
    Forest,
    forest,
    grow_some,
    part,
    split,
)
from gpu_engine.pairs.global_cut import leaving, nothing_joined
from gpu_engine.pairs.hanging import hang
from gpu_engine.pairs.joined import joined_without_limit
from gpu_engine.pairs.series import ARC_BYTES, VERTEX_BYTES, put_in, taken_out, without_others
from gpu_engine.pairs.solver import PairSolver, Seat, seat_nbytes, solver_nbytes
from gpu_engine.types import INFINITE, UnitArray, VertexArray

SMALL: Final = 512
"""A network of at most so many vertices is divided to the end, and no networks around its parts are made."""

SIZES: Final = 64
"""Once a network has been scanned this many times (n + arcs each), the work goes on in networks around its parts."""

WAITING_BYTES: Final = 100
"""Bytes for each arc and vertex of the networks that wait and of the edges of those that are made; before there are
any, of the set that terminals join."""

PARENT: Final = -1
"""Stands for all that lies beyond the link of a slot with its parent; -2 - y stands for all beyond the link of slot
y."""


@dataclass(frozen=True, eq=False, slots=True)
class CutTree:
    """Rows of a tree, one for each terminal but the root."""

    tail: VertexArray
    head: VertexArray
    value: UnitArray
    """int64[k - 1]: the value of a minimum cut between tail and head; `INFINITE` if no cut is finite."""
    group: VertexArray
    """int32[n]: the terminal with which each vertex goes, a terminal with itself."""


@dataclass(eq=False, slots=True)
class Piece:
    """A network around one slot of the whole tree, and the tree in which that is divided."""

    seat: Seat
    forest: Forest
    stands_for: VertexArray
    """int32[n]: the vertex of the whole network for which each stands, or a number below zero as `PARENT` says."""
    slot: int
    root: int
    scanned: int = 0

    @classmethod
    def of(cls, network: Network, terminals: VertexArray, stands_for: VertexArray, slot: int, root: int) -> Self:
        seat = PairSolver.of(network, terminals).seat()
        return cls(seat, forest(seat.solver, terminals, root), stands_for, slot, root)

    @property
    def size(self) -> int:
        whole = self.seat.solver.whole
        return len(whole.row_offsets) + len(whole.head)


class TreeGrower:
    """Makes the tree of some terminals in a network whose edges are all undirected."""

    def __init__(self, network: Network, terminals: VertexArray) -> None:
        """Raises `InvalidTerminals` for no terminals, or if one is named twice."""
        if not len(terminals) or len(np.unique(terminals)) < len(terminals):
            raise InvalidTerminals("a tree has one terminal or more, and each is named once")
        n = network.n_vertices
        self._network, self._terminals = network, terminals
        joined = joined_without_limit(network)
        first = np.arange(n, dtype=np.int32)
        first[joined[terminals[::-1]]] = terminals[::-1]
        self._stands_for = first[joined]
        """int32[n]: the first terminal joined to a vertex without limit, else any vertex so joined, perhaps itself."""
        self._is_asked = np.zeros(n, np.bool_)
        self._is_asked[self._stands_for[terminals]] = True
        self._rest = taken_out(network, self._stands_for, self._is_asked)
        self._slot, k = np.zeros(n, np.int32), len(self.kept)
        self._up, self._value, self._count = np.full(k, NONE, np.int32), np.zeros(k, np.int64), 1
        self._piece: Piece | None = None
        """The piece that is divided now."""
        self._waiting: list[Callable[[], Piece]] | None = None
        """Functions that make the other pieces, whose memory is not there yet."""
        self._proven: list[UnitArray] = []

    @property
    def network(self) -> Network:
        """The network in which vertices are cut from one another."""
        return self._rest.network

    @property
    def kept(self) -> VertexArray:
        """The vertices of `network` that are cut from one another."""
        return np.flatnonzero(self._rest.is_node[self._rest.vertex]).astype(np.int32)

    def seat(self, room: Room = unlimited) -> Seat:
        """The memory in which one thread finds the cuts. O(n + m)."""
        return PairSolver.of(self.network, self.kept, room).seat()

    def grow(self, seat: Seat, control: Control) -> Iterator[int]:
        """Divide until each terminal lies in a slot of its own; yields now and then how many are cut off. ``seat`` is
        what `seat` has returned. Raises `Cancelled`; the next call goes on from there."""
        if self._waiting is None:
            self._piece, self._waiting = self._first(seat, control), []
        others = len(self._terminals) - len(self.kept)
        while self._piece is not None or self._waiting:
            piece = self._piece = self._piece or self._waiting.pop()()
            is_done = self._grown(piece, control)
            yield max(0, others + self._count + int(piece.forest.counts[SLOTS]) - 2)
            if is_done or (len(piece.stands_for) > SMALL and piece.scanned > SIZES * piece.size):
                self._put_off(piece, is_done, self._waiting)

    def _first(self, seat: Seat, control: Control) -> Piece:
        """The first piece: all vertices lie in one slot, except components without the root, and terminals that are
        seen to be leaves."""
        whole, kept = seat.solver.whole, self.kept
        leads, mixed = leaving(whole), np.arange(len(kept), dtype=np.uint32) * np.uint32(2654435769)
        order = kept[np.lexsort((mixed, -leads[kept]))]
        root = int(order[0])
        made = Piece(seat, forest(seat.solver, kept, root), self._rest.vertex, 0, root)
        part(whole, seat.desk, made.forest, root)
        hang(whole, nothing_joined(whole), made.forest, order, leads, control.slots)
        return made

    def _grown(self, piece: Piece, control: Control) -> bool:
        """Divide a piece for some steps; returns whether each of its terminals lies in a slot of its own. Raises
        `Cancelled`."""
        made, solver = piece.forest, piece.seat.solver
        before, most = int(control.slots[Control.ARCS_SCANNED]), min(BLOCK_ARCS, SIZES * piece.size)
        outcome = grow_some(solver.whole, solver.small, piece.seat.desk, made, control.slots, most)
        if outcome == CANCELLED or control.cancelled:
            raise Cancelled("cancelled between two rows")
        piece.scanned += int(control.slots[Control.ARCS_SCANNED]) - before
        value = INFINITE if outcome == UNLIMITED else 0
        if outcome == UNSOLVED:
            source, sink = int(made.counts[SOURCE]), int(made.counts[SINK])
            value, side = piece.seat.from_zero(source, sink, control)
            if value != INFINITE:
                split(made, source, sink, value, side, False)
        if value == INFINITE:
            raise EngineError("two terminals have no finite cut, but are not joined without limit")
        return bool(outcome == DONE)

    def _put_off(self, piece: Piece, is_done: bool, waiting: list[Callable[[], Piece]]) -> None:
        """Enter a piece into the tree, and let networks around those of its slots that hold several terminals wait."""
        whole, made = piece.seat.solver.whole, piece.forest
        edges = None if is_done else edges_around(whole, made)
        if edges is None and not is_done:
            piece.scanned = -piece.scanned  # networks around slots gain nothing: the piece gets as many steps again
            return
        self._piece = None
        number = self._entered(piece)
        if edges is None:
            return
        k = len(number)
        slots = Slots(made.slot, made.up[:k], made.pairs[made.made[:k]])
        failures = contraction_failures(*whole[1:], slots, edges.around)
        if failures:
            raise EngineError(f"a network around a part of a tree could not be proven: {'; '.join(failures)}")
        for z in np.flatnonzero(made.members[:k] > 1).tolist():
            drawn = drawn_around(whole, edges, z)
            within = drawn.end >= 0
            y = np.where(within, 0, -1 - drawn.end)
            beyond = np.where(y == z, PARENT, -2 - number[y])
            stands_for = np.where(within, piece.stands_for[np.where(within, drawn.end, 0)], beyond).astype(np.int32)
            terminals = np.flatnonzero(within & made.is_member[np.where(within, drawn.end, 0)]).astype(np.int32)
            roots = np.flatnonzero(drawn.end == (-1 - z if made.up[z] >= 0 else piece.root))
            root = int(roots[0]) if len(roots) else int(terminals[0])
            waiting.append(partial(Piece.of, drawn.network, terminals, stands_for, int(number[z]), root))

    def _entered(self, piece: Piece) -> VertexArray:
        """int32[k]: the slots of the whole tree that the slots of a piece have become."""
        made, k = piece.forest, int(piece.forest.counts[SLOTS])
        number = np.empty(k, np.int32)
        linked = made.up[:k] >= 0  # the one that is not keeps the number, by which the link with the parent is known
        number[linked], number[~linked] = np.arange(self._count, self._count + k - 1), piece.slot
        self._count += k - 1
        real, hangs = piece.stands_for >= 0, piece.stands_for < PARENT
        self._slot[piece.stands_for[real]] = number[made.slot[real]]
        self._up[-2 - piece.stands_for[hangs]] = number[made.slot[hangs]]
        up, above, value = made.up[:k], self._up[piece.slot], self._value[piece.slot]
        self._up[number] = np.where(up >= 0, number[up], above)
        self._value[number] = np.where(up >= 0, made.value[:k], value)
        proven = made.pairs[1:k].copy()
        proven[:, :2] = piece.stands_for[proven[:, :2]]
        self._proven.append(proven)
        return number

    def finish(self) -> CutTree:
        """The tree, after a proof. O((n + m) log n). Raises `EngineError` if it is no Gomory-Hu tree."""
        assert self._piece is None
        assert self._waiting == []
        network, rest, n = self._network, self._rest, self._network.n_vertices
        kept, slot = rest.vertex[self.kept], self._slot
        holder = np.empty(len(kept), np.int32)
        holder[slot[kept]] = kept
        up, value, group = np.full(n, NONE, np.int32), np.zeros(n, np.int64), np.arange(n, dtype=np.int32)
        group[rest.vertex] = holder[slot[rest.vertex]]
        linked = kept[self._up[slot[kept]] >= 0]
        up[linked], value[linked] = holder[self._up[slot[linked]]], self._value[slot[linked]]
        least = put_in(rest.steps, rest.is_node, up, value, group)
        head, label = without_others(up, value, self._is_asked, int(self._terminals[0]))
        group = label[group[self._stands_for]]
        group[self._terminals] = self._terminals
        twins = self._terminals[self._stands_for[self._terminals] != self._terminals]
        head[twins], value[twins] = self._stands_for[twins], INFINITE
        rows = self._terminals[1:]
        tree, proven = CutTree(rows, head[rows], value[rows], group), np.concatenate(self._proven)
        failures = series_failures(network, self._stands_for, rest.steps, rest.network, rest.vertex, least, proven)
        proven = np.concatenate((proven, flows_beside(rest.steps, least)))
        failures += tree_failures(network, self._terminals, tree.tail, tree.head, tree.value, tree.group, proven)
        if failures:
            raise EngineError(f"the tree could not be proven: {'; '.join(failures)}")
        return tree


def tree_nbytes(network: Network) -> int:
    """About how many bytes a tree takes while it is made: the network, the one around a part of it, and some that
    wait."""
    waiting = WAITING_BYTES * (network.n_arcs + network.n_vertices)
    waiting += ARC_BYTES * network.n_arcs + VERTEX_BYTES * network.n_vertices
    return 2 * (solver_nbytes(network) + seat_nbytes(network)) + waiting
