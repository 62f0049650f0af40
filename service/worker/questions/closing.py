"""Which of many closures costs most: candidates in the order of what each can cost at most, until none can matter."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.chains import closed_alike
from gpu_engine.checks.domains import Closures, Trees, closures_cost_the_most
from gpu_engine.checks.levels import cost_all_they_carry
from gpu_engine.closures.detours import go_another_way
from gpu_engine.closures.domains import ARC_BYTES, VERTEX_BYTES, domains
from gpu_engine.closures.nested import LEVEL_BYTES_ARC, LEVEL_BYTES_VERTEX, levels
from gpu_engine.control import Control
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.trials import Changes
from gpu_engine.types import BoolArray, EdgeArray, UnitArray
from service.protocol import Operation

Indices = NDArray[np.int64]
Found = tuple[Indices, UnitArray, NDArray[np.int8], NDArray[np.bool_]]
"""Candidates, their values, what was done for them, and whether everything was looked at to prove it."""

SKIPPED, CARRIES_NOTHING, UNCHANGED, WARM, COLD = range(5)
"""What was done for a candidate; of the first two nothing is solved."""

CROSSING_BYTES: Final = 64
"""Bytes of memory for each edge and each candidate while the candidates that cross a cut are looked for."""

MANY: Final = 2.0**61
"""A sum above this is not used as a bound, because no flow is as large."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate i closes ``rows[offsets[i] : offsets[i + 1]]``, distinct edges."""

    offsets: Indices
    rows: EdgeArray

    @classmethod
    def single(cls, rows: EdgeArray) -> Self:
        return cls(np.arange(len(rows) + 1), rows.astype(np.int64))

    @classmethod
    def named(cls, table: CapacityTable, given: Sequence[int | str] | Sequence[Sequence[int | str]]) -> Self:
        """Edges one by one, or lists of them that are closed together. Raises `UnknownEdge`."""
        sets = [each if isinstance(each, list) else [each] for each in given]
        names = [name for each in sets for name in each]
        if not names:
            return cls(np.zeros(len(sets) + 1, np.int64), np.empty(0, np.int64))
        (found,) = table.locate([Operation(op="close", edges=cast(list[int], names))], "error").found
        if len(names) == len(sets) and all(len(each) == 1 for each in sets):
            return cls.single(found)
        ends = np.cumsum([0, *map(len, sets)])
        distinct = [np.unique(found[begin:end]) for begin, end in pairwise(ends.tolist())]
        return cls(np.cumsum([0, *map(len, distinct)]), np.concatenate(distinct))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.rows.nbytes

    def edges(self, i: int) -> EdgeArray:
        """The edges of one candidate."""
        return self.rows[self.offsets[i] : self.offsets[i + 1]]

    def closing(self, chosen: Indices) -> Changes:
        """These candidates as changes."""
        lengths = self.offsets[chosen + 1] - self.offsets[chosen]
        offsets = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.repeat(self.offsets[chosen] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Changes.closing(offsets, self.rows[places])

    def told(self, network: Network, i: int) -> tuple[str, list[int] | list[str]]:
        """What one candidate closes, by its names, and what these are names of."""
        return "edges", network.edge_ids.of(self.edges(i))

    def carried(self, network: Network, flow: UnitArray, value: int) -> UnitArray:
        """int64[k]: what the flow int64[m] of this value carries on each candidate, which is the most it can cost."""
        return bounded(np.abs(flow[self.rows]), self.offsets, value)

    def certain(
        self, network: Network, terminals: Terminals, flow: UnitArray, value: int, most: UnitArray, control: Control
    ) -> BoolArray:
        """bool[k]: which are shown to cost ``most`` of the flow int64[m] of this value, without being tried. Takes
        `certain_nbytes`. Raises `Cancelled`."""
        shown, level = np.zeros(len(self), np.bool_), np.zeros(network.n_vertices, np.int32)
        for level in levels(network, terminals, flow, control):
            shown |= cost_all_they_carry(network, terminals, level, flow, value, self.offsets, self.rows, most)
        owner = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        amounts = np.minimum(np.abs(flow[self.rows]), value)
        closures = Closures(self.offsets, self.rows, most)
        single = Closures(np.arange(len(self.rows) + 1), self.rows, amounts)
        # The last levels, those of the components, are what trees of dominators stay within.
        for parent, holds_sinks in zip(domains(network, flow, level, control), (True, False), strict=True):
            trees = Trees(parent, holds_sinks)
            about = network, terminals, level, trees, flow, value
            alone = closures_cost_the_most(*about, single)
            # A candidate loses at least what one of its edges alone loses, and at most `most`.
            shown[owner[alone & (amounts >= most[owner])]] = True
            if len(self.rows) > len(self):
                shown |= closures_cost_the_most(*about, closures)
        return shown

    def costless(self, network: Network, flow: UnitArray, control: Control) -> BoolArray:
        """bool[k]: which single edges are shown to cost nothing of the flow int64[m], without being tried. Takes no
        more than `certain_nbytes`. Raises `Cancelled`."""
        single = np.flatnonzero(np.diff(self.offsets) == 1)
        found = np.zeros(len(self), np.bool_)
        rows, of_row = np.unique(self.rows[self.offsets[single]], return_inverse=True)
        found[single] = go_another_way(network, flow, rows, control)[of_row]
        return found

    def alike(self, network: Network, terminals: Terminals) -> Indices:
        """int64[k]: equal, from 0 to m, for candidates that are known to come to the same; -1 for all others. O(m)."""
        chain, count = closed_alike(network, terminals), len(self)
        if len(self.rows) == count and (np.diff(self.offsets) == 1).all():
            return chain[self.rows].astype(np.int64)
        owner = np.repeat(np.arange(count), np.diff(self.offsets))
        of_row = chain[self.rows]
        owner, of_row = owner[of_row >= 0], of_row[of_row >= 0]
        least, most = np.full(count, network.n_edges), np.full(count, -1)
        np.minimum.at(least, owner, of_row)
        np.maximum.at(most, owner, of_row)
        return np.where(least == most, least, -1)


def certain_nbytes(network: Network, candidates: Candidates) -> int:
    """At most what `Candidates.certain` takes."""
    own = LEVEL_BYTES_ARC * network.n_arcs + LEVEL_BYTES_VERTEX * network.n_vertices
    own += ARC_BYTES * network.n_arcs + VERTEX_BYTES * network.n_vertices
    return own + CROSSING_BYTES * (network.n_edges + len(candidates.rows) + len(candidates))


def bounded(amounts: UnitArray, offsets: Indices, value: int) -> UnitArray:
    """int64[k]: the sum of the amounts of each candidate, ``value`` where it would be more."""
    amounts = np.minimum(amounts, value)
    sums, about = (np.concatenate([[0], np.cumsum(amounts, dtype=kind)]) for kind in (np.int64, np.float64))
    most, roughly = np.diff(sums[offsets]), np.diff(about[offsets])
    return np.where(roughly > MANY, value, np.minimum(most, value))


@dataclass(eq=False, slots=True)
class Ranking:
    """What is known of the candidates. One thread enters results; any thread may ask which candidates still matter."""

    base: int
    """The value of the maximum flow with nothing closed, in units."""
    most: UnitArray
    """int64[k]: the most that the closure of each candidate can cost, in units."""
    top: int | None
    """The number of candidates that are answered; None for all."""
    value: UnitArray = field(init=False)
    """int64[k]: the value with each candidate closed, in units."""
    done: NDArray[np.int8] = field(init=False)
    complete: NDArray[np.bool_] = field(init=False)
    """bool[k]: whether everything was looked at to prove each value."""
    _best: list[tuple[int, int]] = field(default_factory=list)
    """The losses of the best candidates so far, each with its row as a negative number: a heap whose first item has the
    least loss."""

    def __post_init__(self) -> None:
        self.value = np.full(len(self.most), self.base, np.int64)
        self.done = np.where(self.most > 0, SKIPPED, CARRIES_NOTHING).astype(np.int8)
        self.complete = np.zeros(len(self.most), np.bool_)

    @property
    def order(self) -> Indices:
        """The candidates that can cost something, those that can cost most first."""
        some = np.flatnonzero(self.most > 0)
        return some[np.argsort(-self.most[some], kind="stable")]

    def mattering(self, chosen: Indices) -> Indices:
        """The candidates among ``chosen`` that may still be among the best, or tie with them in a lower row."""
        if self.top is None or len(self._best) < self.top:
            return chosen
        if not self.top:
            return chosen[:0]
        loss, row = self._best[0]
        most = self.most[chosen]
        kept: Indices = chosen[(most > loss) | ((most == loss) & (-chosen > row))]
        return kept

    def note(self, chosen: Indices, value: UnitArray, done: NDArray[np.int8], complete: NDArray[np.bool_]) -> None:
        """Note the results of these candidates."""
        self.value[chosen], self.done[chosen], self.complete[chosen] = value, done, complete
        if self.top is None:
            return
        for row, now in zip(chosen.tolist(), value.tolist(), strict=True):
            if len(self._best) < self.top:
                heapq.heappush(self._best, (self.base - now, -row))
            elif self._best:
                heapq.heappushpop(self._best, (self.base - now, -row))

    @property
    def ranked(self) -> Indices:
        """The best candidates, which cost most, ties by row."""
        known = np.flatnonzero(self.done != SKIPPED)
        order = known[np.argsort(self.value[known], kind="stable")]
        return order if self.top is None else order[: self.top]

    @property
    def skipped(self) -> int:
        """How many candidates were not solved."""
        return int((self.done <= CARRIES_NOTHING).sum())

    @property
    def skipped_at_most(self) -> int:
        """The most that any candidate costs whose cost is not known."""
        return int(self.most[self.done == SKIPPED].max(initial=0))
