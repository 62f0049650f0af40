"""Networks for the least cut of all that get smaller: vertices are drawn together that no better cut divides.

Rings, strips and clusters are long: a flow to a vertex beside the set that grows (`gpu_engine.pairs.joining`) may have
to go all the way round. Where such flows take long, all that have joined become one vertex, and so do others with a
neighbour to which they are bound by as much as the best cut costs, or by no less than to all others together (Padberg
and Rinaldi's first and second test). Each draws to its neighbours those for which one of both holds by then, so in each
round a part of the vertices is left. `gpu_engine.checks.global_cuts` proves the rounds, and draws together itself.

Padberg, Rinaldi, "An efficient algorithm for the minimum capacity cut problem", Mathematical Programming 47 (1990).
Which vertices stay in a round and which go is drawn by chance, as in Reif, "Optimal parallel algorithms for graph
connectivity" (1984): none that goes is one to which others go.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numba import njit

from gpu_engine.checks.global_cuts import belong_together, drawn_together
from gpu_engine.errors import EngineError
from gpu_engine.pairs.values import Whole
from gpu_engine.types import BoolArray, VertexArray

ROUNDS: Final = 64
"""The largest number of rounds after one another."""

IN_VAIN: Final = 3
"""The rounds end after this many in which too few vertices were drawn to others (`FEW`)."""

FEW: Final = 32
"""A round is in vain if it draws fewer than one in this many vertices to others."""


@dataclass(frozen=True, eq=False, slots=True)
class Smaller:
    """A network in which some vertices are one."""

    whole: Whole
    group: VertexArray
    """int32[n]: which vertex of it each one is."""


def together(whole: Whole, group: VertexArray) -> Smaller:
    """Vertices of one group, which are numbered from 0, are one. O(n + arcs)."""
    arrays = drawn_together(whole.row_offsets, whole.head, whole.capacity, group, int(group.max()) + 1)
    return Smaller(Whole(*arrays), group)


def of_joined(whole: Whole, joined: BoolArray) -> Smaller:
    """All that have joined are one vertex, the first one."""
    group = np.cumsum(~joined, dtype=np.int32)
    group[joined] = 0
    return together(whole, group)


def next_round(whole: Whole, least: int, number: int) -> Smaller | None:
    """Draw some vertices to others, which no cut of less than ``least`` divides; None if there are few such."""
    into = neighbours(whole, least, number)
    stays = into == np.arange(len(into), dtype=np.int32)
    if int(stays.sum()) * FEW > (FEW - 1) * len(into):
        return None
    if not belong_together(whole.row_offsets, whole.head, whole.capacity, into, least):
        raise EngineError("vertices that were to be drawn together could not be proven to belong together")
    return together(whole, (np.cumsum(stays, dtype=np.int32) - 1)[into].astype(np.int32))


@njit(cache=True, nogil=True)
def neighbours(whole: Whole, least: int, number: int) -> VertexArray:
    """int32[n]: with which neighbour each vertex may be drawn together in the round of this ``number``, or itself."""
    n = len(whole.row_offsets) - 1
    into, leads = np.arange(n).astype(np.int32), least
    for v in range(n):
        if _stays(v, number):
            continue
        leads = 0
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            leads = min(leads + min(whole.capacity[a], least), 2 * least)
        for a in range(whole.row_offsets[v], whole.row_offsets[v + 1]):
            units = min(whole.capacity[a], least)
            if _stays(whole.head[a], number) and (units == least or (2 * units >= leads >= least)):
                into[v] = whole.head[a]
                break
    return into


@njit(cache=True, nogil=True, inline="always")
def _stays(v: int, number: int) -> bool:
    """Whether a vertex stays in this round."""
    mixed = np.uint64(v) + np.uint64(number + 1) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return bool(mixed >> np.uint64(63))
