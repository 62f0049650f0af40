"""Vertices that no minimum cut divides at any factor between two.

Let two factors be solved, and X be a minimum cut somewhere between them. Its line is nowhere below the value, so at
either factor it costs no more than the cut of the other one does. There a maximum flow fills the arcs that X cuts,
except for this difference: hence an arc on which more is left is not cut by X, and a vertex in which more is stuck is
on the side where it is stuck. The vertices of a strongly connected component of such arcs lie on one side of X, and are
contracted to one. The nearer the factors, the less the cuts differ in cost, and the more is contracted: of a large
network what is left between two factors is where their cuts differ. `gpu_engine.checks.together` has the proof.

So are bounds used in integer programs to fix variables by their reduced costs: Dantzig, Fulkerson and Johnson,
"Solution of a large-scale traveling-salesman problem", Operations Research 2 (1954).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.checks.together import End
from gpu_engine.cpu.bottlenecks import BETWEEN, BEYOND, components
from gpu_engine.parametric.links import SINK, SOURCE, TERMINALS, Links
from gpu_engine.types import INFINITE_RESIDUAL, BoolArray, UnitArray, VertexArray


class Bound(NamedTuple):
    """Arcs that no minimum cut between two factors cuts, and vertices whose side is known."""

    uncut: BoolArray
    is_source: BoolArray
    is_sink: BoolArray


def together(links: Links, first: End, last: End, is_source: BoolArray, is_sink: BoolArray) -> tuple[VertexArray, int]:
    """int32[n]: a label for each vertex, equal for those on one side of every minimum cut between the two ends,
    `SOURCE` and `SINK` for those on the side of these; and how many labels there are. What is known of sides, bool[n]
    each, is overwritten. O(n + arcs)."""
    bound = Bound(np.zeros(len(links.head), np.bool_), is_source, is_sink)
    for end, other in ((first, last), (last, first)):
        p, q = end.factor.numerator, end.factor.denominator
        _bind(links, end.flow, p, q, int((other.line.at(end.factor) - end.value) * q), bound)
    place = _known_sides(links, bound)
    label = components(links.row_offsets, links.head, bound.uncut.astype(np.int64), place, np.zeros(8, np.int64))
    k = int(label.max(initial=-1)) + 1 + TERMINALS
    label += TERMINALS
    label[is_source], label[is_sink] = SOURCE, SINK
    return label, k


@njit(cache=True, nogil=True)
def _bind(links: Links, flow: UnitArray, p: int, q: int, gap: int, bound: Bound) -> None:
    """Enter what a flow, int64[arcs], shows of cuts that cost no more than ``gap`` above its value, all multiplied by
    q."""
    bound.is_source[SOURCE] = bound.is_sink[SINK] = True
    for v in range(len(bound.is_source)):
        excess = 0
        for a in range(links.row_offsets[v], links.row_offsets[v + 1]):
            excess -= flow[a]
            if links.constant[a] >= INFINITE_RESIDUAL or links.constant[a] * q + links.rate[a] * p - flow[a] > gap:
                bound.uncut[a] = True
        if v >= TERMINALS:
            bound.is_source[v] |= excess > gap
            bound.is_sink[v] |= -excess > gap


@njit(cache=True, nogil=True)
def _known_sides(links: Links, bound: Bound) -> NDArray[np.int8]:
    """Spread sides along arcs that are not cut, from the source and against them from the sink; int8[n]: `BETWEEN` for
    vertices of neither."""
    n = len(bound.is_source)
    place, queue = np.full(n, BETWEEN, np.int8), np.empty(n, np.int32)
    for behind in (False, True):
        known, end = bound.is_sink if behind else bound.is_source, 0
        for v in range(n):
            if known[v]:
                queue[end] = v
                end += 1
        i = 0
        while i < end:
            v = queue[i]
            i += 1
            place[v] = BEYOND
            for a in range(links.row_offsets[v], links.row_offsets[v + 1]):
                w = links.head[a]
                if not known[w] and bound.uncut[links.reverse_arc[a] if behind else a]:
                    known[w] = True
                    queue[end] = w
                    end += 1
    return place
