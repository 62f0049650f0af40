"""Proof that between two factors a network may be solved without what lies beyond the cuts at both.

Where only what leaves sources is scaled, the cut of a set of vertices rises the less with the factor the more of the
sources it holds, so that minimum cuts grow with the factor. Let S be the source side of a minimum cut at the lesser
factor, and X any set of vertices. There the cut of S and X together costs no more than that of X, since the cut of what
they share costs no less than that of S. At a larger factor it costs no more either, as it has risen by no more. So all
of S may be drawn together to the source, and alike all beyond a minimum cut at a larger factor to the sink. Where only
what enters sinks is scaled, it is the other way round.

Gallo, Grigoriadis, Tarjan, "A fast parametric maximum flow algorithm", SIAM Journal on Computing 18 (1989), lemma 2.4.
"""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from gpu_engine.networks.free import SINK, SOURCE
from gpu_engine.networks.network import Network
from gpu_engine.types import EdgeArray


class Way(Enum):
    """What becomes of the source side of a minimum cut while the factor grows."""

    GROWS = "grows"
    SHRINKS = "shrinks"
    EITHER = "either"


def way_of_cuts(network: Network, role: NDArray[np.int8], rows: EdgeArray, *, supply: bool, demand: bool) -> Way:
    """``role`` int8[n]: that of free vertices, which each cut has on their side; ``rows``: edges that are scaled.

    An edge from a source may be scaled like its supply, one to a sink like its demand. O(rows).
    """
    tail, head = (role[end] for end in network.edge_ends(rows))
    both = network.is_undirected(rows)
    leave_sources = bool(((tail == SOURCE) | (both & (head == SOURCE))).all())
    enter_sinks = bool(((head == SINK) | (both & (tail == SINK))).all())
    if leave_sources and not demand:
        return Way.GROWS
    if enter_sinks and not supply:
        return Way.SHRINKS
    return Way.EITHER
