"""A Gomory-Hu tree: n - 1 minimum cuts that hold the minimum cut of every two vertices.

A true cut tree: removing a row of it splits the vertices into the two sides of a minimum cut of its ends. Vertices that
are no terminals are never cut off themselves; they go with a terminal. Vertices that are joined by unlimited edges are
one vertex to any finite cut; the first terminal among them stands for the others, which hang on it without limit.
Terminals that are linked with one vertex only are peeled off first, again and again: of a network that is a tree,
nothing is left to cut. The others are cut from one another (`gpu_engine.pairs.forest`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu_engine.checks.cut_trees import flows_straight, tree_failures
from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled, EngineError, InvalidTerminals
from gpu_engine.networks.network import Network
from gpu_engine.pairs.forest import (
    CANCELLED,
    DONE,
    LEFT,
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
from gpu_engine.pairs.joined import joined_without_limit
from gpu_engine.pairs.pendants import pendants
from gpu_engine.pairs.solver import Seat
from gpu_engine.types import INFINITE, UnitArray, VertexArray


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
    """Makes the tree of some terminals in a network whose edges are all undirected."""

    def __init__(self, network: Network, terminals: VertexArray) -> None:
        """Raises `InvalidTerminals` for no terminals, or if one is named twice."""
        if not len(terminals) or len(np.unique(terminals)) < len(terminals):
            raise InvalidTerminals("a tree has one terminal or more, and each is named once")
        self._network, self._terminals = network, terminals
        joined = joined_without_limit(network)
        first = np.full(network.n_vertices, NONE, np.int32)
        first[joined[terminals[::-1]]] = terminals[::-1]
        self._twin = first[joined]
        """int32[n]: the first terminal joined to a vertex without limit, perhaps itself."""
        self._onto = pendants(network, terminals)
        """int32[n]: the terminal that a peeled one hangs on, -1 for all others."""
        self._forest: Forest | None = None

    @property
    def kept(self) -> VertexArray:
        """The terminals that are cut from one another, the root first."""
        chosen = (self._onto[self._terminals] < 0) & (self._twin[self._terminals] == self._terminals)
        kept: VertexArray = self._terminals[chosen]
        return kept

    def grow(self, seat: Seat, control: Control) -> Iterator[int]:
        """Cut until each terminal lies alone; gives now and then how many are cut off. ``seat`` is of a solver for
        `kept`. Raises `Cancelled`; the next call goes on from there."""
        if self._forest is None:
            self._forest = forest(seat.solver, self.kept)
            part(seat.solver.whole, seat.desk, self._forest, int(self._terminals[0]))
        made, solver, value = self._forest, seat.solver, 0
        apart = len(self._terminals) - len(made.order)
        while (outcome := grow_some(solver.whole, solver.small, seat.desk, made, control.slots)) != DONE:
            if outcome == CANCELLED or control.cancelled:
                raise Cancelled("cancelled between two rows")
            if outcome == UNSOLVED:
                source, sink = int(made.counts[SOURCE]), int(made.counts[SINK])
                value, side = seat.from_zero(source, sink, control)
                if value != INFINITE:
                    split(made, source, sink, value, side, False)
            if outcome == UNLIMITED or value == INFINITE:
                raise EngineError("two terminals have no finite cut, but are not joined without limit")
            yield apart + int(made.counts[SLOTS]) - 1
        assert made.counts[LEFT] == 0

    def finish(self) -> CutTree:
        """The tree, proven. O((n + m) log n). Raises `EngineError` if it is none."""
        made, n = self._forest, self._network.n_vertices
        assert made is not None
        holder = np.empty(len(made.order), np.int32)
        holder[made.slot[made.order]] = made.order
        group, head = holder[made.slot], np.full(n, NONE, np.int32)
        value = np.zeros(n, np.int64)
        head[made.order] = holder[made.up[made.slot[made.order]]]
        value[made.order] = made.value[made.slot[made.order]]
        twins = self._terminals[self._twin[self._terminals] != self._terminals]
        head[twins], value[twins] = self._twin[twins], INFINITE
        peeled = np.flatnonzero(self._onto >= 0).astype(np.int32)
        straight = flows_straight(self._network, peeled, self._onto)
        head[peeled], value[peeled] = self._onto[peeled], straight[:, 2]
        group[self._terminals] = self._terminals
        rows = self._terminals[1:]
        tree = CutTree(rows, head[rows], value[rows], group)
        proven = np.concatenate((made.pairs[1:], straight))
        failures = tree_failures(self._network, self._terminals, tree.tail, tree.head, tree.value, tree.group, proven)
        if failures:
            raise EngineError(f"the tree could not be proven: {'; '.join(failures)}")
        return tree
