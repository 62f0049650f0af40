"""Proof of the value of one terminal pair in proportion to what the proof names, not to the network.

A list of arcs with what flows on each, and a list of vertices that are one side of a cut, are all that is looked at.
The flow is feasible if no arc is named twice, each carries at least 0 and at most its capacity, and what comes into a
vertex leaves it again, but for the source and the sink. The cut separates them if the list holds one of the two and
not the other; what it pays is added up over the rows of the vertices listed. If both have the same value then both are
optimal (weak duality). A vertex listed twice is paid twice, which cannot make a wrong cut look cheaper than the flow.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.checks.certificate import Certificate
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE_RESIDUAL, ArcArray, BoolArray, UnitArray, VertexArray

WRONG: Final = -1


class Witness(NamedTuple):
    """A flow and one side of a cut, from which a value is proven."""

    arcs: ArcArray
    units: UnitArray
    """int64: what flows on each of ``arcs``."""
    n_arcs: int
    side: VertexArray
    n_side: int
    holds_sink: bool
    """``side`` is the sink's side of the cut, else the source's."""


class Ledger(NamedTuple):
    """Memory of the proof, all zero before and after: ``used`` bool[arcs], ``net`` int64[n], ``inside`` bool[n]. Where
    the arcs of a witness rise, ``used`` may be empty."""

    used: BoolArray
    net: UnitArray
    inside: BoolArray


def ledger(n_vertices: int, n_arcs: int) -> Ledger:
    """A ledger for networks of at most this size."""
    return Ledger(np.zeros(n_arcs, np.bool_), np.zeros(n_vertices, np.int64), np.zeros(n_vertices, np.bool_))


def certify_pair(
    network: Network, terminals: Terminals, capacity: UnitArray, witness: Witness, ledger: Ledger
) -> Certificate:
    """The certificate of a flow and a cut between one source and one sink, either of which may have a cap.

    A side without vertices stands for the cut that pays the cap of its terminal, and no edge. ``capacity`` int64[arcs]
    is taken as it is, so the certificate does not call itself complete. O(arcs of the flow and of the rows of the
    side).
    """
    links = network.row_offsets, network.head, network.reverse_arc
    source, sink = int(terminals.sources[0]), int(terminals.sinks[0])
    supply, demand = int(terminals.supply[0]), int(terminals.demand[0])
    arrives = int(prove_units(*links[1:], capacity, source, sink, witness, ledger))
    if witness.n_side:
        paid = int(price_side(*links, capacity, source, sink, witness, ledger))
    else:
        paid = demand if witness.holds_sink else supply
    failures: list[str] = []
    if arrives == WRONG or arrives > min(supply, demand):
        failures.append("the flow exceeds a capacity, or does not arrive")
    if paid == WRONG:
        failures.append("the cut does not part the source from the sink, or has no bound")
    if arrives != paid:
        failures.append("the flow and the cut differ in value")
    return Certificate(not failures, paid, arrives, tuple(failures), complete=False)


@njit(cache=True, nogil=True)
def prove_pair(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    source: int,
    sink: int,
    witness: Witness,
    ledger: Ledger,
) -> int:
    """The value of the pair, proven, or `WRONG`. ``capacity`` int64[arcs], of at most 2**60 units in all but for
    unlimited arcs, which have more. O(arcs of the flow and of the rows of the side)."""
    arrives = prove_units(head, reverse_arc, capacity, source, sink, witness, ledger)
    paid = price_side(row_offsets, head, reverse_arc, capacity, source, sink, witness, ledger)
    return arrives if arrives == paid else WRONG


@njit(cache=True, nogil=True)
def prove_units(
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    source: int,
    sink: int,
    witness: Witness,
    ledger: Ledger,
) -> int:
    """How many units arrive at the sink by a feasible flow; `WRONG` if it is no such flow."""
    good, last, rising = source != sink, -1, len(ledger.used) == 0
    for i in range(witness.n_arcs):
        a, units = witness.arcs[i], witness.units[i]
        good = good and units >= 0 and units <= capacity[a] and (a > last if rising else not ledger.used[a])
        if not rising:
            ledger.used[a] = True
        last = a
        ledger.net[head[a]] += units
        ledger.net[head[reverse_arc[a]]] -= units
    arrives = ledger.net[sink]
    good = good and ledger.net[source] == -arrives
    for i in range(witness.n_arcs):
        a = witness.arcs[i]
        for v in (head[a], head[reverse_arc[a]]):
            good = good and (ledger.net[v] == 0 or v in (source, sink))
    for i in range(witness.n_arcs):
        a = witness.arcs[i]
        if not rising:
            ledger.used[a] = False
        ledger.net[head[a]] = 0
        ledger.net[head[reverse_arc[a]]] = 0
    return arrives if good and arrives >= 0 else WRONG


@njit(cache=True, nogil=True)
def price_side(
    row_offsets: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    source: int,
    sink: int,
    witness: Witness,
    ledger: Ledger,
) -> int:
    """The capacity of the cut; `WRONG` if it does not separate the two terminals, or an unlimited arc crosses it."""
    for i in range(witness.n_side):
        ledger.inside[witness.side[i]] = True
    holds, lacks = (sink, source) if witness.holds_sink else (source, sink)
    good = ledger.inside[holds] and not ledger.inside[lacks]
    paid = 0
    for i in range(witness.n_side):
        v = witness.side[i]
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if ledger.inside[head[a]]:
                continue
            units = capacity[reverse_arc[a] if witness.holds_sink else a]
            if units >= INFINITE_RESIDUAL or paid >= INFINITE_RESIDUAL:
                good = False
            else:
                paid += units
    for i in range(witness.n_side):
        ledger.inside[witness.side[i]] = False
    return paid if good else WRONG
