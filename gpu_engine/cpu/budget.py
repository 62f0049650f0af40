"""How far an attempt of a small cut may go (`gpu_engine.cpu.smallcut`), by what the network looks like.

The budget is in arcs scanned, and grows where few phases are to be expected: where few paths can exist, where the sides
meet after few layers, and more of these where all capacities are equal. It is small where other algorithms do better:
in long and narrow networks, and where excesses or deficits stand everywhere, or many of them on wide arcs.
"""

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from gpu_engine.cpu.pseudoflow import Pseudoflow
from gpu_engine.cpu.reach import Ends

FREE_SHARE: Final = 0.1
"""The share of the network's size (n + arcs) that any attempt may scan. All shares below are of this size too."""

FEW_PATHS: Final = 64
"""A network has few paths if at most this many exist, each as wide as a narrow arc (`Widths.narrow`)."""
FEW_SHARE: Final = 2.5
"""The share that the first attempt may scan in a network of few paths."""
MORE_SHARE: Final = 13.5
"""The share that a second attempt may scan there, once `gpu_engine.cpu.drain` has tried other algorithms."""

FEW_PATHS_OF_REPAIR: Final = 8
"""`FEW_PATHS` of a repair. It is lower because the pseudoflow algorithm has little to do in a repair as well."""
REPAIR_SHARE: Final = 1.0
"""`FEW_SHARE` of a repair."""

SHALLOW: Final = 0.5
"""The sides meet after few layers if these are at most this factor times log2(n + arcs). Networks without long
distances are like that, and an attempt needs few phases there."""
SHALLOW_EQUAL: Final = 1.5
"""`SHALLOW` where all capacities are equal. It is higher because a phase then uses up every arc that it pushes over
(Even, Tarjan, "Network flow and testing graph connectivity", SIAM Journal on Computing 4, 1975)."""
SHALLOW_SHARE: Final = 6.0
"""The share that an attempt may scan once its sides have met after few layers."""

FORESEEN: Final = 4
"""Where all capacities are equal, the first phase goes on beyond its limit if it has grown no more than one in this
many of the layers that count as few."""

PHASE_SHARE: Final = 0.4
"""The share that the search of one phase may scan once the sides have met after few layers."""

CROWDED: Final = 4
"""The attempt is left out if more than one vertex in this many has an excess or a deficit."""
CROWDED_EQUAL: Final = 2
"""`CROWDED` where all capacities are equal."""

AMOUNTS: Final = 16
"""Capacities count as equal only if the mean excess, or the mean deficit, is at most this many times a capacity."""

TIGHTER: Final = 1.1
"""The pseudoflow algorithm starts from the deficits if their bound of the flow is lower by more than this factor."""

LONG: Final = 64
"""A network is long if the first phase has at least this many layers."""
NARROW: Final = 128
"""A long network is narrow if its layers have fewer vertices than this in the mean. A network with two to three arcs a
vertex, such as streets, counts as narrow only if it is thin: its layers widen, and crossings turn excess back."""
LONG_ONE_WAY: Final = 12
"""`LONG` where all capacities are equal and links are one-way: less excess is turned back half way there."""
NARROW_ONE_WAY: Final = 1024
"""`NARROW` where all capacities are equal and links are one-way."""
THIN: Final = 4
"""A long network is thin if its layers have fewer vertices than this in the mean: it is a few chains side by side."""
LONG_SPARSE: Final = 1024
"""Where vertices have two to three arcs, the attempt looks for a narrow network only after this many layers, because
streets are thin in their first layers."""

THIN_GLANCE: Final = 0.2
"""After this part of `Allowance.glance` the search ends already if the network is thin over `LONG_SPARSE` layers."""

NARROW_SHARE: Final = 0.5
"""The share that the attempt of a cold solve may scan in a narrow network: each phase is long there, and push-relabel
needs no phases."""
STREET_SHARE: Final = 2.5
"""`NARROW_SHARE` where vertices have two to three arcs."""

FANNED: Final = 1.8
"""A sparse network fans out if each layer of either side reaches this many times as many vertices in the mean, and the
sides do not meet within `FANNED_LAYERS` layers of the first phase: the sides are trees, which meet at their leaves."""
FANNED_LAYERS: Final = 16
"""See `FANNED`. A network that is not sparse does not count: in a solid the first layers widen as fast."""

WIDENING: Final = 1.5
"""A layer of the first phase widens if it has at least this many times the arcs of the layer before."""
PARTS: Final = 0.3
"""If layers still widen after this share, and the sides have not met, the network is shallow, and few arcs lead between
the parts in which the excesses and the deficits stand. This tells nothing where there are few of them
(`gpu_engine.cpu.smallcut.MANY`), as the layers around a few vertices widen for long in any network, nor in trees."""

SPARSE_ENDS: Final = 16
"""Where sides have met after few layers but many phases are needed, the network counts as shallow too if at most one
vertex in this many has an excess or a deficit."""

SAMPLE: Final = 256
"""Arcs whose capacities `widths` looks at, at most."""


class Widths(NamedTuple):
    """What a sample of the capacities between ordinary vertices says."""

    narrow: int
    """The capacity that one in ten of the sample does not exceed, in units; 1 if the sample is empty."""
    equal: bool
    """Whether nine in ten of the capacities are the same."""
    one_way: bool
    """Whether nine in ten links can be used in one direction only."""


class Budget(NamedTuple):
    """How much an attempt may scan, in arcs."""

    limit: float
    """The limit of the whole attempt."""
    phase: float
    """The limit of the search of one phase."""
    may_grow: bool
    """Whether the attempt may scan more once its sides have met after few layers."""
    equal: bool
    """Whether all capacities are the same: then few phases are needed even if there are more layers."""
    one_way: bool
    """Whether all capacities are the same and links are one-way."""


class Allowance(NamedTuple):
    """How many arcs the search of one phase may scan."""

    most: float
    """The limit, unless one of the following fields raises or lowers it."""
    glance: float
    """After this many arcs the search ends if the network is seen to be narrow (`shape`)."""
    one_way: bool
    """`Budget.one_way`, by which `shape` judges."""
    parts: float
    """The limit while layers still widen (`WIDENING`), if it is above ``most``; 0 if that makes no difference."""
    whole: float
    """The limit if ``most`` is reached within ``layers`` layers."""
    layers: float
    """See ``whole``; -1 if that is not to be used."""


@njit(nogil=True, cache=True)
def widths(flow: Pseudoflow) -> Widths:
    """The `Widths` of up to `SAMPLE` arcs at equal distances. O(`SAMPLE` log `SAMPLE`)."""
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
    """Whether few paths can exist, by what the excesses and the deficits add up to, and are needed, by what each of
    them holds in the mean; ``narrow`` as in `budget_for`. A repair has few ends, so the latter is left out there."""
    if repair:
        return bool(min(ends.up, ends.down) <= FEW_PATHS_OF_REPAIR * narrow)
    held = min(ends.up / max(1, ends.n_excesses), ends.down / max(1, ends.n_deficits))
    return bool(min(ends.up, ends.down) <= FEW_PATHS * min(held, narrow))


@njit(nogil=True, cache=True)
def are_wide(ends: Ends, narrow: int) -> bool:
    """Whether arcs are wide for all that is to move, and yet it takes many paths, one for each end: then amounts had
    better go on together, as they do in push-relabel and in the pseudoflow algorithm. Not of a repair."""
    return bool(min(ends.up, ends.down) <= FEW_PATHS * narrow) and not are_few(ends, narrow, repair=False)


@njit(nogil=True, cache=True)
def move_together(ends: Ends, narrow: int) -> bool:
    """Whether arcs are wide, as `are_wide` has it, and the side with fewer ends may let pass all that the other has. If
    it may not, its own arcs are the cut, as far as is known, and the pseudoflow algorithm has next to nothing to do."""
    if not are_wide(ends, narrow):
        return False
    if ends.n_deficits < ends.n_excesses:
        return bool(ends.up <= TIGHTER * ends.down)
    return bool(ends.down <= TIGHTER * ends.up)


@njit(nogil=True, cache=True)
def budget_for(flow: Pseudoflow, ends: Ends, capacities: Widths, repair: bool) -> Budget:
    """How far an attempt may go before its first phase has shown the shape of the network.

    `Widths.narrow` stands for the capacity of the narrowest arc of a short path. All excess divided by it is about the
    number of paths that the flow needs.
    """
    size = float(len(flow.role) + len(flow.head))
    share = FREE_SHARE
    amounts = min(ends.up / max(1, ends.n_excesses), ends.down / max(1, ends.n_deficits))
    equal = capacities.equal and amounts <= AMOUNTS * capacities.narrow
    crowded = (ends.n_excesses + ends.n_deficits) * (CROWDED_EQUAL if equal else CROWDED) > len(flow.role)
    if are_few(ends, capacities.narrow, repair):
        share = REPAIR_SHARE if repair else FEW_SHARE
    elif crowded or (not repair and are_wide(ends, capacities.narrow)):
        share = 0.0
    most, one_way = share * size, equal and capacities.one_way
    return Budget(limit=most, phase=most, may_grow=not repair, equal=equal, one_way=one_way)


@njit(nogil=True, cache=True)
def settled(budget: Budget, limit: float, phase: float) -> Budget:
    """The budget with these bounds, which do not grow any more."""
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
