"""A Gomory-Hu tree: n - 1 minimum cuts that hold the minimum cut of every two vertices.

Gusfield's version with his swap of parents: each vertex in turn is cut from its parent by any minimum cut, the other
children of that parent that lie on its side become its own, and if the parent's parent lies there too then the two
change places. Unlike his shorter version, whose tree has the right values only, removing a row of this tree splits the
vertices into the two sides of a minimum cut of its ends. Vertices that are no terminals are never cut off themselves;
they go with a terminal. Vertices that are joined by unlimited edges are one vertex to any finite cut; the first
terminal among them stands for the others, which hang on it without limit. Terminals that are linked with one vertex
only are peeled off first, again and again: of a network that is a tree, nothing is left to cut.

A step costs no more than its cut lists: children of a parent share a *slot*, in which the parent may be replaced by
another without a look at the children.

Gomory, Hu, "Multi-terminal network flows", Journal of SIAM 9 (1961). Gusfield, "Very simple methods for all pairs
network flow analysis", SIAM Journal on Computing 19 (1990).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.checks.cut_trees import flows_straight, tree_failures
from gpu_engine.engine import Control
from gpu_engine.errors import EngineError, InvalidTerminals
from gpu_engine.networks.network import Network
from gpu_engine.pairs.joined import joined_without_limit
from gpu_engine.pairs.pendants import pendants
from gpu_engine.pairs.solver import Seat
from gpu_engine.types import INFINITE, BoolArray, UnitArray, VertexArray

NONE: Final = -1


class Slots(NamedTuple):
    """The tree while it grows. Each vertex owns a slot, and its children name that slot."""

    own: VertexArray
    """int32[n]: the slot that a vertex owns."""
    owner: VertexArray
    """int32[n]: whose a slot is."""
    parent: VertexArray
    """int32[n]: the slot that a vertex hangs in, `NONE` for the root."""


@dataclass(frozen=True, eq=False, slots=True)
class CutTree:
    """Rows of a tree, one for each terminal but the root."""

    tail: VertexArray
    head: VertexArray
    value: UnitArray
    """Of the minimum cut of the two; `INFINITE` if there is none that is finite."""
    group: VertexArray
    """int32[n]: the terminal with which each vertex goes, a terminal with itself."""


class TreeGrower:
    """Makes the tree of some terminals, row by row, in a network whose edges are all undirected."""

    def __init__(self, network: Network, terminals: VertexArray) -> None:
        """Raises `InvalidTerminals` for no terminals, or if one is named twice."""
        if not len(terminals) or len(np.unique(terminals)) < len(terminals):
            raise InvalidTerminals("a tree has one terminal or more, and each is named once")
        n = network.n_vertices
        every, root = np.arange(n, dtype=np.int32), terminals[0]
        self._network, self._terminals = network, terminals
        self._slots = Slots(every, every.copy(), np.full(n, root, np.int32))
        self._slots.parent[root] = NONE
        self._value = np.zeros(n, np.int64)
        self._inside = np.zeros(n, np.bool_)
        joined = joined_without_limit(network)
        first = np.full(n, NONE, np.int32)
        first[joined[terminals[::-1]]] = terminals[::-1]
        self._twin = first[joined]
        """int32[n]: the first terminal joined to a vertex without limit, perhaps itself."""
        self._onto = pendants(network, terminals)
        """int32[n]: the terminal that a peeled one hangs on, -1 for all others."""
        self._proven: list[tuple[int, int, int]] = []

    @property
    def kept(self) -> VertexArray:
        """The terminals between which cuts are looked for."""
        return self._terminals[self._onto[self._terminals] < 0]

    def add(self, row: int, seat: Seat, control: Control) -> None:
        """Cut the terminal of this row, from 1 on, from its parent. Raises `Cancelled`; then it can be cut again."""
        source = int(self._terminals[row])
        if self._onto[source] >= 0:
            return
        if self._twin[source] != source:
            self._value[source] = INFINITE
            return
        sink = int(self._slots.owner[self._slots.parent[source]])
        value, side, holds_sink = seat.cut(source, sink, control)
        if value == INFINITE:
            raise EngineError(f"vertices {source} and {sink} have no finite cut, but are not joined without limit")
        split(self._slots, self._value, self._inside, source, sink, value, side, holds_sink)
        self._proven.append((source, sink, value))

    def finish(self) -> CutTree:
        """The tree, proven. O((n + m) log n). Raises `EngineError` if it is none."""
        slots, rows = self._slots, self._terminals[1:]
        is_terminal = np.zeros(self._network.n_vertices, np.bool_)
        is_terminal[self._terminals] = True
        peeled = np.flatnonzero(self._onto >= 0).astype(np.int32)
        straight = flows_straight(self._network, peeled, self._onto)
        goes_with = np.where(self._onto >= 0, self._onto, slots.owner[slots.parent])
        self._value[peeled] = straight[:, 2]
        group = np.where(is_terminal, np.arange(len(is_terminal), dtype=np.int32), goes_with)
        tree = CutTree(rows, goes_with[rows], self._value[rows], group.astype(np.int32))
        proven = np.concatenate((np.array(self._proven, np.int64).reshape(-1, 3), straight))
        failures = tree_failures(self._network, self._terminals, tree.tail, tree.head, tree.value, tree.group, proven)
        if failures:
            raise EngineError(f"the tree could not be proven: {'; '.join(failures)}")
        return tree


@njit(cache=True, nogil=True)
def split(
    slots: Slots,
    values: UnitArray,
    inside: BoolArray,
    source: int,
    sink: int,
    value: int,
    side: VertexArray,
    holds_sink: bool,
) -> None:
    """Hang ``source`` on ``sink``, its parent, by the cut of which ``side`` lists one side. ``inside`` is false before
    and after. O(side)."""
    own, owner, parent = slots
    for v in side:
        inside[v] = True
    above = parent[sink]
    if holds_sink:  # the source takes over the slot and the children in it; the sink keeps those on its side
        own[source], own[sink] = own[sink], own[source]
        owner[own[source]], owner[own[sink]] = source, sink
    keeper, other = (sink, source) if holds_sink else (source, sink)
    for v in side:
        if v != keeper and parent[v] == own[other]:
            parent[v] = own[keeper]
    parent[source] = own[sink]
    values[source] = value
    if above != NONE and inside[owner[above]] != holds_sink:  # the sink's parent lies with the source
        parent[source], parent[sink] = above, own[source]
        values[source], values[sink] = values[sink], value
    for v in side:
        inside[v] = False
