"""How far an attempt of a small cut may go (`gpu_engine.cpu.smallcut`), by what the network looks like.

The budget is in arcs scanned, and grows where few phases are to be expected: where few paths can exist, where the sides
meet after few layers, and more of these where all capacities are equal. It is small where other algorithms do better:
in long and narrow networks, and where excesses or deficits stand everywhere.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.cpu.pseudoflow import Pseudoflow
from gpu_engine.cpu.reach import Ends

FREE_SHARE: Final = 0.1
"""Any attempt may scan this share of the network's size (n + arcs)."""

FEW_PATHS: Final = 64
FEW_SHARE: Final = 2.5
MORE_SHARE: Final = 13.5
"""Where at most so many paths can exist, each as wide as a narrow arc, an attempt may scan this many sizes, and a
second one so many more: between the two `gpu_engine.cpu.drain` tries other ways."""

FEW_PATHS_OF_REPAIR: Final = 8
REPAIR_SHARE: Final = 1.0
"""What stands for these two in a repair, where the pseudoflow algorithm has little to do as well."""

SHALLOW: Final = 0.5
SHALLOW_EQUAL: Final = 1.5
SHALLOW_SHARE: Final = 6.0
"""An attempt may scan this many sizes where the sides meet after few layers, as they do in networks without long
distances: few phases are needed there. Few are so many times the logarithm of the size, and more where all capacities
are equal: a phase then uses up every arc that it pushes over (Even, Tarjan, "Network flow and testing graph
connectivity", SIAM Journal on Computing 4, 1975)."""

FORESEEN: Final = 4
"""Where all capacities are equal, the first phase goes on if it has grown only so small a part of these layers when it
should end."""

PHASE_SHARE: Final = 0.4
"""The search of one phase may scan this many sizes where the sides meet after few layers."""

CROWDED: Final = 4
CROWDED_EQUAL: Final = 2
"""With more than one vertex in so many an excess or a deficit, only the first layers are looked at; the second one
where all capacities are equal."""

AMOUNTS: Final = 16
"""Where all capacities are equal, that counts if an excess or a deficit is at most so many of them in the mean."""

LONG: Final = 64
NARROW: Final = 128
LONG_ONE_WAY: Final = 12
NARROW_ONE_WAY: Final = 1024
"""A network is long and narrow if the first phase has so many layers, with fewer vertices each in the mean; the second
pair is for equal capacities of one-way links, where less is turned back half way. Streets, with two to three arcs a
vertex, never are unless they are thin: their layers widen, and excess is turned back at many a crossing."""
THIN: Final = 4
LONG_SPARSE: Final = 1024
"""A network is thin if these layers have fewer vertices than this in the mean: it is a few chains side by side. Where
vertices have two to three arcs, as in a ladder, an attempt that may scan more does not end for that before there are so
many layers: streets are thin for a while."""

NARROW_SHARE: Final = 0.5
STREET_SHARE: Final = 2.5
"""In narrow networks a cold solve's attempt may scan so many sizes, as each phase is long and push-relabel needs no
phases; the second one is for streets. Elsewhere the first phase ends after `FREE_SHARE`."""

FANNED: Final = 1.8
FANNED_LAYERS: Final = 16
"""A sparse network fans out if the first phase does not meet in so many layers, of which each reaches so many times as
many vertices in the mean: the sides are trees, which meet at their leaves. In a solid, which is not sparse, the first
layers widen as fast."""

WIDENING: Final = 1.5
PARTS: Final = 0.3
"""Where each layer of the first phase still has so many times the arcs of the one before, and the sides have not met
after so many sizes, the network is shallow, and the ends stand in parts of it between which few arcs lead. That says
nothing of a few ends (`gpu_engine.cpu.smallcut.MANY`), around which the layers of any network widen for long, nor of
trees."""

SPARSE_ENDS: Final = 16
"""Where sides that meet after few layers need many phases, the same is so if at most one vertex in so many is an excess
or a deficit."""

SAMPLE: Final = 256


class Widths(NamedTuple):
    """What a sample of the capacities between ordinary vertices says."""

    narrow: int
    """The tenth of a hundred; 1 if there is none."""
    equal: bool
    """Whether nine in ten are the same."""
    one_way: bool
    """Whether nine in ten links can be used in one direction only."""


class Budget(NamedTuple):
    """In arcs scanned."""

    limit: float
    """For the whole attempt."""
    phase: float
    """For the search of one phase."""
    may_grow: bool
    """Whether more may be scanned where the sides meet after few layers."""
    equal: bool
    """Whether all capacities are the same: then few phases are needed even if there are more layers."""
    one_way: bool
    """Whether that is so and links are one-way."""


class Allowance(NamedTuple):
    """How many arcs the search of one phase may scan."""

    most: float
    """So many, unless one of the following says otherwise."""
    glance: float
    """After so many it ends if the network is seen to be narrow (`shape`)."""
    one_way: bool
    """`Budget.one_way`, by which `shape` judges."""
    parts: float
    """While layers still widen (`WIDENING`) it may go on beyond ``most``, up to so many; 0: it may not."""
    whole: float
    """So many if ``most`` has not been enough for more than ``layers`` layers."""
    layers: float
    """-1: ``whole`` is not to be used."""


@njit(nogil=True, cache=True)
def widths(flow: Pseudoflow) -> Widths:
    """Sample up to `SAMPLE` arcs at equal distances."""
    arcs = len(flow.head)
    sample = np.empty(SAMPLE, np.int64)
    count, both = 0, 0
    for i in range(min(arcs, SAMPLE)):
        a = i * arcs // min(arcs, SAMPLE)
        r = flow.reverse_arc[a]
        capacity = max(flow.residual[a], flow.residual[r])
        if capacity > 0 and flow.role[flow.head[a]] == 0 and flow.role[flow.head[r]] == 0:
            sample[count] = capacity
            count += 1
            both += min(flow.residual[a], flow.residual[r]) > 0
    if count == 0:
        return Widths(1, equal=False, one_way=False)
    in_order = np.sort(sample[:count])
    equal = in_order[count // 20] == in_order[-1 - count // 20]
    return Widths(int(in_order[count // 10]), equal=bool(equal), one_way=both * 10 <= count)


@njit(nogil=True, cache=True)
def are_few(ends: Ends, narrow: int, repair: bool) -> bool:
    """Whether few paths can exist, by what the excesses and the deficits add up to; ``narrow`` as in `budget_for`."""
    return bool(min(ends.up, ends.down) <= (FEW_PATHS_OF_REPAIR if repair else FEW_PATHS) * narrow)


@njit(nogil=True, cache=True)
def budget_for(flow: Pseudoflow, ends: Ends, capacities: Widths, repair: bool) -> Budget:
    """How far an attempt may go before its first phase has shown the shape of the network.

    The narrow capacity stands for that of the narrowest arc of a short path: so many paths carry all that there is.
    """
    size = float(len(flow.role) + len(flow.head))
    share = FREE_SHARE
    amounts = min(ends.up / max(1, ends.n_excesses), ends.down / max(1, ends.n_deficits))
    equal = capacities.equal and amounts <= AMOUNTS * capacities.narrow
    if are_few(ends, capacities.narrow, repair):
        share = REPAIR_SHARE if repair else FEW_SHARE
    elif (ends.n_excesses + ends.n_deficits) * (CROWDED_EQUAL if equal else CROWDED) > len(flow.role):
        share = 0.0
    most, one_way = share * size, equal and capacities.one_way
    return Budget(limit=most, phase=most, may_grow=not repair, equal=equal, one_way=one_way)


@njit(nogil=True, cache=True)
def settled(budget: Budget, limit: float, phase: float) -> Budget:
    """The budget with these bounds, which stay."""
    return Budget(limit=limit, phase=phase, may_grow=False, equal=budget.equal, one_way=budget.one_way)


@njit(nogil=True, cache=True)
def is_sparse(flow: Pseudoflow) -> bool:
    """Whether vertices have two to three arcs in the mean, as those of streets and trees have."""
    return 2 * len(flow.role) <= len(flow.head) < 3 * len(flow.role)


@njit(nogil=True, cache=True)
def shape(flow: Pseudoflow, reached: int, depth: int, one_way: bool) -> tuple[bool, bool]:
    """Whether a network is narrow, and whether it is thin, where ``depth`` layers have ``reached`` vertices.

    ``one_way``: whether all capacities are the same, and links are one-way.
    """
    thin = depth >= LONG and reached < THIN * depth
    long, most = (LONG_ONE_WAY, NARROW_ONE_WAY) if one_way else (LONG, NARROW)
    return thin or (not is_sparse(flow) and depth >= long and reached < most * depth), thin
