"""Drain: move all excess that can reach a deficit, from any pseudoflow. The one solver step of the CPU engine.

Where excesses lie beside deficits, as in an assignment: a greedy first flow (`gpu_engine.cpu.greedy`), then an
incremental search between what is left of both (`gpu_engine.cpu.ibfs`). Elsewhere: an attempt from both sides at once
(`gpu_engine.cpu.smallcut`). If either gives up, the pseudoflow algorithm does the rest, from the side that has the
tighter bound: there the minimum cut is expected, and what cannot pass it is found to be stuck with little work. In long
and narrow networks push-relabel goes first (`gpu_engine.cpu.push_relabel`), in their repairs as well, and in thin ones
where it does not come on, again after a while; where both sides fan out as trees do, or stand in parts of a shallow
network that few arcs join, the incremental search. Where few paths can exist and the attempt takes long, push-relabel
is tried, then the incremental search, then the attempt again. Where arcs are wide for all that is to move, and ends are
many (`gpu_engine.cpu.budget.are_wide`), there is no attempt: push-relabel is tried if all may arrive.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.cpu import greedy, ibfs
from gpu_engine.cpu.budget import MORE_SHARE, TIGHTER, Budget, are_few, budget_for, move_together, settled, widths
from gpu_engine.cpu.forests import Forests
from gpu_engine.cpu.pseudoflow import (
    CANCEL,
    NARROW,
    ORDINARY,
    Forest,
    Pseudoflow,
    saturate_unlimited,
    solve,
    undo_saturation,
)
from gpu_engine.cpu.push_relabel import push_excess
from gpu_engine.cpu.reach import Ends, Reach, list_ends
from gpu_engine.cpu.scratch import Scratch
from gpu_engine.cpu.smallcut import GAVE_UP, SOURCE_CUT, AttemptResult, attempt
from gpu_engine.types import BoolArray, Links, UnitArray

EITHER: Final = 0
AHEAD: Final = 1
BEHIND: Final = 2

STANDING_CLOSE: Final = 8
"""The greedy flow is tried if at least one vertex in this many has an excess or a deficit."""

MATCHED_SIZES: Final = 8.0
"""The incremental search may scan this many sizes of the network (n + arcs) after the greedy flow, or where the network
fans out. All limits below are in these sizes too, unless they say otherwise."""

PARTED_SIZES: Final = 1.25
"""The limit of the incremental search where few arcs join the parts of a shallow network: it looks at each part
once."""

PUSHED_SIZES: Final = 9.0
"""The limit of push-relabel in a long and narrow network."""

TRIAL: Final = 0.5
"""How long push-relabel is on trial: it goes on only if excess has come nearer to the deficits by then."""
THIN_TRIAL: Final = 0.2
"""`TRIAL` in thin networks, where it shows sooner whether push-relabel suits them."""

PATIENCE: Final = 2.0
"""If push-relabel fails its trial in a thin network, the pseudoflow algorithm may take this many times its limit before
push-relabel is tried again: the trees of the pseudoflow algorithm are as long as such a network."""

PUSHED_AGAIN: Final = 2.0
"""The limit of that second try, as a multiple of the first."""

TOO_LONG: Final = 2
"""The value of the slot `NARROW` of a `Control` after a repair has given up."""

BRIEFLY: Final = 2.0
"""The limit of push-relabel in repairs of long and narrow networks: beyond it a solve from zero is faster. It is also
the limit where few paths can exist and the attempt has given up: one pass of push-relabel is enough if all that the
terminals can give or take arrives, while the attempt needs a phase for each length of path."""


@njit(nogil=True, cache=True)
def negate(excess: UnitArray) -> None:
    """Change the plain problem into the mirrored one, or back."""
    for v in range(len(excess)):
        excess[v] = -excess[v]


@njit(nogil=True, cache=True)
def move_ahead(
    flow: Pseudoflow,
    forest: Forest,
    pushing: float,
    thin: bool,
    only: bool,
    limit: float,
    slots: NDArray[np.int64],
    mirror: int | None,
) -> bool:
    """Move all excess by push-relabel and the pseudoflow algorithm, each from where the other has ended; returns as
    `run`."""
    if pushing > 0 and push_excess(flow, forest, pushing, THIN_TRIAL if thin else TRIAL, slots, mirror):
        return True
    if only:
        return False
    if thin and (
        solve(flow, forest, PATIENCE * pushing, slots, mirror)
        or push_excess(flow, forest, PUSHED_AGAIN * pushing, np.inf, slots, mirror)
    ):
        return True
    return bool(solve(flow, forest, limit, slots, mirror))


@njit(nogil=True, cache=True)
def run(
    flow: Pseudoflow,
    forest: Forest,
    side: BoolArray,
    behind: bool,
    pushing: float,
    limit: float,
    slots: NDArray[np.int64],
    thin: bool,
    only: bool,
) -> bool:
    """Move all excess from the excesses, or (``behind``) from the deficits; False if cancelled, or if a limit was
    reached.

    Push-relabel may scan ``pushing`` arcs, and the pseudoflow algorithm takes ``limit`` steps at most for the rest,
    unless push-relabel is to be the ``only`` one. In a ``thin`` network, where the rest can take long, push-relabel is
    tried once more (`PATIENCE`).
    """
    n = len(flow.role)
    if behind:
        negate(flow.excess)
        done = move_ahead(flow, forest, pushing, thin, only, limit, slots, 0)
        negate(flow.excess)
    else:
        done = move_ahead(flow, forest, pushing, thin, only, limit, slots, None)
    if done:
        for v in range(n):
            side[v] = forest.label[v] <= n if behind else forest.label[v] == n + 1
    return bool(done)


@njit(nogil=True, cache=True)
def begins_behind(attempted: AttemptResult, begin: int) -> bool:
    """Whether the pseudoflow algorithm starts from the deficits, after an attempt that gave up."""
    return begin == BEHIND or (begin == EITHER and attempted.most_out > TIGHTER * attempted.most_in)


@njit(nogil=True, cache=True)
def less_behind(ends: Ends, begin: int) -> bool:
    """Whether push-relabel starts from the deficits, as there is less to move."""
    return begin == BEHIND or (begin == EITHER and ends.down < ends.up)


@njit(nogil=True, cache=True)
def mark_cut(flow: Pseudoflow, reach: Reach, attempted: AttemptResult, side: BoolArray) -> None:
    """Write the side of the excesses, after an attempt that has found a cut."""
    exhausted = attempted.kind == SOURCE_CUT
    for v in range(len(flow.role)):
        side[v] = not exhausted and flow.role[v] == ORDINARY
    reached = reach.ahead if exhausted else reach.behind
    for i in range(attempted.reached):
        side[reached[i]] = exhausted


@njit(nogil=True, cache=True)
def move_between_neighbours(
    flow: Pseudoflow,
    forest: Forest,
    reach: Reach,
    forests: Forests,
    side: BoolArray,
    ends: Ends,
    begin: int,
    limit: float,
    slots: NDArray[np.int64],
) -> bool:
    """`move_excess` where excesses stand beside deficits; ``limit`` as in `run`."""
    size = len(flow.role) + len(flow.head)
    greedy.first_flow(flow, ends, reach, forest.label, slots)
    if ibfs.search(flow, forests, side, MATCHED_SIZES * size, slots):
        return True
    return slots[CANCEL] == 0 and run(flow, forest, side, begin == BEHIND, 0.0, limit, slots, thin=False, only=False)


@njit(nogil=True, cache=True)
def move_excess(
    flow: Pseudoflow,
    forest: Forest,
    reach: Reach,
    forests: Forests,
    side: BoolArray,
    ends: Ends,
    begin: int,
    slots: NDArray[np.int64],
) -> bool:
    """Move excess to deficits until none can; returns False if cancelled: then ``side`` is not written.

    ``side`` bool[n] becomes the excesses' side of a minimum cut through the ordinary vertices; ``ends`` as `list_ends`
    has just listed them. ``begin``: the side from which the pseudoflow algorithm starts, AHEAD for the excesses, BEHIND
    for the deficits, or EITHER.
    """
    size, capacities = len(flow.role) + len(flow.head), widths(flow)
    attempted = attempt(flow, reach, ends, budget_for(flow, ends, capacities, repair=False), slots)
    together = move_together(ends, capacities.narrow)
    unsettled = attempted.kind == GAVE_UP and slots[CANCEL] == 0
    if attempted.narrow:
        slots[NARROW] = 1
    elif unsettled and not attempted.fanned and are_few(ends, capacities.narrow, repair=False):
        if run(flow, forest, side, less_behind(ends, begin), BRIEFLY * size, np.inf, slots, thin=False, only=True):
            return True
        if slots[CANCEL] == 0 and ibfs.search(flow, forests, side, MATCHED_SIZES * size, slots):
            return True
        more = Budget(limit=MORE_SHARE * size, phase=MORE_SHARE * size, may_grow=False, equal=False, one_way=False)
        attempted = attempt(flow, reach, list_ends(flow, reach), more, slots)
    if slots[CANCEL] != 0:
        return False
    if attempted.kind == GAVE_UP and (attempted.fanned or attempted.shallow):
        if ibfs.search(flow, forests, side, (MATCHED_SIZES if attempted.fanned else PARTED_SIZES) * size, slots):
            return True
        if slots[CANCEL] != 0:
            return False
    if attempted.kind == GAVE_UP:
        pushing = PUSHED_SIZES * size if attempted.narrow or together else 0.0
        thin = attempted.thin and attempted.narrow
        return run(flow, forest, side, begins_behind(attempted, begin), pushing, np.inf, slots, thin=thin, only=False)
    mark_cut(flow, reach, attempted, side)
    return True


@njit(nogil=True, cache=True)
def repair_excess(
    flow: Pseudoflow,
    forest: Forest,
    reach: Reach,
    side: BoolArray,
    ends: Ends,
    begin: int,
    narrow: bool,
    limit: float,
    slots: NDArray[np.int64],
) -> bool:
    """`move_excess` where most of the flow is there already; ``narrow`` and ``limit`` as in `drain`. False as well if
    it takes too long."""
    size, budget = len(flow.role) + len(flow.head), budget_for(flow, ends, widths(flow), repair=True)
    if not narrow:
        most = min(budget.limit, limit)
        budget = settled(budget, limit=most, phase=most)
    attempted = attempt(flow, reach, ends, budget, slots)
    if attempted.kind != GAVE_UP:
        mark_cut(flow, reach, attempted, side)
        return True
    if slots[CANCEL] != 0:
        return False
    if narrow:
        return run(flow, forest, side, less_behind(ends, begin), BRIEFLY * size, limit, slots, thin=False, only=True)
    return run(flow, forest, side, begins_behind(attempted, begin), 0.0, limit, slots, thin=False, only=False)


@njit(nogil=True, cache=True)
def drain_kernel(
    flow: Pseudoflow,
    forest: Forest,
    reach: Reach,
    forests: Forests,
    side: BoolArray,
    begin: int,
    repair: bool,
    narrow: bool,
    limit: float,
    slots: NDArray[np.int64],
    mirror: int | None,
) -> bool:
    """`drain` on arrays that are there already: marks ``side``, which `drain` returns. Returns False if it was
    cancelled or took too long; then nothing is marked."""
    if mirror is not None:
        negate(flow.excess)
    pushed = saturate_unlimited(flow, mirror)
    if mirror is not None:
        negate(flow.excess)
    ends = list_ends(flow, reach)
    stand_close = (ends.n_excesses + ends.n_deficits) * STANDING_CLOSE >= len(flow.role)
    if stand_close and greedy.stand_beside(flow, ends, reach):
        done = move_between_neighbours(flow, forest, reach, forests, side, ends, begin, limit, slots)
    elif repair:
        done = repair_excess(flow, forest, reach, side, ends, begin, narrow, limit, slots)
    else:
        done = move_excess(flow, forest, reach, forests, side, ends, begin, slots)
    if not done and slots[CANCEL] == 0:
        slots[NARROW] = TOO_LONG
    if mirror is not None:
        negate(flow.excess)
    undo_saturation(flow, pushed, mirror)
    if mirror is not None:
        negate(flow.excess)
        for v in range(len(side)):
            side[v] = done and flow.role[v] == ORDINARY and not side[v]
    return bool(done)


def drain(
    links: Links,
    residual: UnitArray,
    excess: UnitArray,
    role: NDArray[np.int8],
    control: Control,
    scratch: Scratch,
    *,
    mirrored: bool = False,
    exact: bool = False,
    repair: bool = False,
    narrow: bool = False,
    limit: float = np.inf,
) -> BoolArray:
    """Push positive excess to deficits and unlimited vertices until none can reach one (phase 1 only).

    ``residual`` int64[arcs] and ``excess`` int64[n], in units, are changed in place. ``role`` int8[n]: 0 ordinary,
    1 absorbs (mirrored: supplies) without limit, `gpu_engine.cpu.sides.OUTSIDE`: ignored with all its arcs.
    Returns R, bool[n]: it holds every ordinary vertex that still has excess, neither a deficit nor an unlimited
    vertex, and no residual arc leaves it except to vertices outside.
    Unless ``exact``, ordinary vertices outside R may lack more than before, and unlimited ones hold as much more.
    ``repair`` says that most of the flow is there already, which decides how long the attempt of a small cut may take,
    ``narrow`` that its solve from zero has found the network long and narrow. A repair that would take more than
    ``limit`` steps, or a narrow one more than `BRIEFLY`, ends with an R that is empty too, and says so (`TOO_LONG` in
    ``control``).
    Mirrored, deficits are filled from excess instead: swap excess and deficit, arc and reverse arc, above.

    Once ``control`` is cancelled it returns within about a millisecond; residuals and excess are then a valid
    pseudoflow from which a later drain can go on, and R is empty. Exact as long as the sum of all excess and every
    pair sum stay below 2**62. Releases the GIL. Deterministic. O(n^2 m), in practice close to linear; every call
    costs O(n) at least. Working memory is O(n), in ``scratch``, and 8 bytes for each arc of an unlimited
    vertex.
    """
    n = links.n_vertices
    side: BoolArray = np.zeros(n, np.bool_)
    flow = Pseudoflow(
        links.row_offsets.view(np.uint32),
        links.head.view(np.uint32),
        links.reverse_arc.view(np.uint32),
        residual,
        excess,
        role,
    )
    # If exact, it starts at the caller's excesses: deficits that the saturation made stay in place until it is undone.
    begin = (BEHIND if mirrored else AHEAD) if exact else EITHER
    memory = scratch.forest(n), scratch.reach(n), scratch.forests(n)
    drain_kernel(flow, *memory, side, begin, repair, narrow, limit, control.slots, 0 if mirrored else None)
    return side
