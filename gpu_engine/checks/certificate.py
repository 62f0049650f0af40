"""Independent proofs: nothing here knows how an answer was made.

A flow state claims a pseudoflow (residuals and excesses) and a cut (S, T). It is optimal if and only if

1. every residual is >= 0 and each link's two residuals add up to its two capacities;
2. each vertex's excess is its own supply (minus its demand) plus what flows in minus what flows out;
3. every free source vertex (an uncapped source, or reached from one by infinite arcs) lies in S, every free sink
   vertex in T;
4. every arc from S to T is saturated;
5. no vertex of S lacks flow (excess < 0) and no vertex of T holds any (excess > 0), free vertices aside.

Then the net flow over the cut equals its capacity (4). What stays behind in S came from sources by paths inside
S, and what is missing in T goes to sinks by paths inside T, because no flow runs from T to S (4 again);
so the excesses can be undone without touching the cut (flow decomposition; Hochbaum 2008, section 4), a feasible
flow of the cut's value remains, and by weak duality both are optimal.
The value is the capacity of the cut: its arcs, the supply caps of sources in T, the demand caps of sinks in S.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_engine.checks import fingerprints
from gpu_engine.checks.scans import by_row, by_vertex, first_broken
from gpu_engine.networks.free import free_roles
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, BoolArray, UnitArray

FEW: Final = 8
"""The cut is looked for from the sink side if that has at most one in so many of all vertices: from there, each arc of
the cut costs more, as it lies at another place than the arc back."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The outcome of every check. `valid` only if none failed; `failures` name the first broken place each."""

    valid: bool
    value: int
    """Capacity of the cut in units, equal to the flow across it when valid."""
    flow_across_cut: int
    failures: tuple[str, ...] = ()
    complete: bool = True
    """False: what the last complete check has seen and nothing has changed since was not looked at, or not all of it
    (`gpu_engine.cpu.audit`, `gpu_engine.cuda.proving`)."""


def certify(
    network: Network,
    terminals: Terminals,
    residual: UnitArray,
    excess: UnitArray,
    source_side: BoolArray,
    claimed: UnitArray | None = None,
) -> Certificate:
    """Check conditions 1-5 from scratch. ``residual`` int64[arcs], ``excess`` int64[n], ``source_side`` bool[n].

    The capacities of arcs are added up from those of edges, in 8 bytes an arc, unless those that an engine has
    ``claimed``, int64[arcs], are found right. Condition 1 and what is claimed are compared by random sums, so that a
    wrong one is missed once in 2**23 times, if all that is wrong are multiples of 2**40, and else more rarely
    (`gpu_engine.checks.fingerprints`). Time O(n + m), each column read from end to end.
    """
    role = free_roles(network, terminals)
    balance = own_supply(network.n_vertices, terminals)
    first = np.full(5, -1, np.int64)
    capacity = _arc_capacity(network, claimed)
    if not fingerprints.flows_cancel(network.reverse_arc, capacity, residual, _seed()):
        first[0] = first_broken(network.reverse_arc, capacity, residual)
    from_sources = bool(FEW * np.count_nonzero(~source_side) > len(source_side))
    links = network.row_offsets, network.head, network.reverse_arc
    across, cut_capacity = by_row(*links, capacity, residual, source_side, from_sources, balance, first)
    by_vertex(role, balance, excess, source_side, first)
    sides = source_side[terminals.sources], source_side[terminals.sinks]
    return verdict(terminals, *sides, int(across), int(cut_capacity), first.tolist())


def verdict(
    terminals: Terminals,
    sources_in_s: BoolArray,
    sinks_in_s: BoolArray,
    across: int,
    cut_capacity: int,
    first: Sequence[int],
) -> Certificate:
    """The certificate for what a scan found: net flow and capacity over the cut, and the first offender against
    each of the conditions 1-5 (-1: none)."""
    capped = _capped(terminals.supply[~sources_in_s]) + _capped(terminals.demand[sinks_in_s])
    found, value, flow = failures(first), cut_capacity + capped, across + capped
    return Certificate(not found and flow == value, value, flow, found)


def failures(first: Sequence[int]) -> tuple[str, ...]:
    """One text for each of the conditions 1-5 that ``first`` has an offender against (-1: none)."""
    texts = (
        "a residual is negative or a link's residuals do not add up to its capacities: arc {}",
        "the excess does not match the flow: vertex {}",
        "a free terminal vertex lies on the wrong side of the cut: vertex {}",
        "an arc from the source side to the sink side is not saturated: arc {}",
        "the source side lacks flow or the sink side holds some back: vertex {}",
    )
    return tuple(text.format(at) for text, at in zip(texts, first, strict=True) if at >= 0)


def own_supply(n_vertices: int, terminals: Terminals) -> UnitArray:
    """int64[n]: capped supply minus capped demand of each vertex; 0 at uncapped terminals."""
    own = np.zeros(n_vertices, np.int64)
    capped = terminals.supply != INFINITE
    own[terminals.sources[capped]] += terminals.supply[capped]
    capped = terminals.demand != INFINITE
    own[terminals.sinks[capped]] -= terminals.demand[capped]
    return own


def _arc_capacity(network: Network, claimed: UnitArray | None) -> UnitArray:
    """int64[arcs]: ``claimed`` if it is right, and no link has several edges of which one is infinite."""
    if claimed is not None and not (network.n_infinite and network.has_shared_links):
        seed, columns = _seed(), (network.edge_arc, network.reverse_arc, network.capacity, network.undirected)
        if fingerprints.of_edges(*columns, seed) == fingerprints.of_arcs(claimed, seed):
            return claimed
    return network.arc_capacity()


def _seed() -> np.uint64:
    """Known to nobody before the columns are."""
    return np.uint64(secrets.randbits(64))


def _capped(caps: UnitArray) -> int:
    """Sum of the finite caps: virtual arcs the cut crosses. Exact, as `Terminals.of` bounds it."""
    return int(caps[caps != INFINITE].sum())
