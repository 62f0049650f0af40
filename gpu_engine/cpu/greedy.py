"""A first flow where excesses lie beside deficits, as left vertices of a matching beside right ones.

Karp and Sipser's rule: a vertex with one partner left is served first, since that choice cannot be wrong; only when
there is none does the next excess take any partner. On random bipartite graphs next to nothing is left to be found, and
on paths and trees nothing at all. Where partners are near each other, as on a map, they share their partners, and the
rule has little to go by. There, fewest first: excesses with the shortest rows are served first, each by the deficits
with the shortest rows. That costs a quarter and leaves no more. First fit, where each excess takes what its row has,
costs half of that, and is enough where one side is plentiful. Short paths mend what is left (`gpu_engine.cpu.ibfs`);
`first_flow` chooses. What each pushes is a flow like any other: residuals stay >= 0, no excess or deficit changes its
sign. O(arcs of excesses and deficits).

Karp, Sipser, "Maximum matching in sparse random graphs", FOCS 1981. Fewest first is the static mindegree heuristic of
Langguth, Manne, Sanders, "Heuristic initialization for bipartite matching problems", ACM JEA 15 (2010).
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.cpu.pseudoflow import CANCEL, ORDINARY, POLL_MASK, Index, Pseudoflow
from gpu_engine.cpu.reach import Ends, Reach

Partners = NDArray[np.int32]
"""int32[n]: 1 + how many partners an excess still has, the negative of that for a deficit; 0 for a vertex that is
neither, or used up, or found to have none."""

CHAIN: Final = 1.75
"""Karp and Sipser's rule is followed where the branching of excesses times that of deficits (`branching`) is at most
this: such graphs are chains, in which the other rules leave long paths."""
BUSH: Final = 4.0
"""Karp and Sipser's rule is followed where that product is at least this as well: there it leaves next to nothing."""

CLUSTERED: Final = 0.25
"""Karp and Sipser's rule is not followed where two partners of a vertex share at least this part of their partners:
there it leaves as much as fewest first, and takes four times as long."""

EVEN: Final = 0.9
"""Karp and Sipser's rule is followed only if at least this share of partners use each other up: it does not hold for
unequal amounts."""

PLENTY: Final = 1.5
"""Karp and Sipser's rule is not needed where one side has at least this many times what the other side has."""

POLL_EACH: Final = 255
"""Vertices whose whole rows are looked through between two looks at the cancel flag, less one."""

SAMPLED_VERTICES: Final = 64
SAMPLED_ARCS: Final = 64
SHARED_ARCS: Final = 16
"""How many arcs of each row are looked at when two rows are compared."""

SHORT_ROW: Final = 64
"""Rows of at most this many arcs are served by fewest first; vertices with longer rows are served last, by first
fit."""

CHOICES: Final = 4
"""An excess that is left after this many choices takes further deficits in the order of its row, because each choice
looks at the whole row."""


@njit(nogil=True, cache=True)
def stand_beside(flow: Pseudoflow, ends: Ends, reach: Reach) -> bool:
    """Whether residual arcs join excesses and deficits, and hardly anything else to either, by a sample. Where there is
    a deficit at each vertex and one excess, say, that lies beside deficits, but most deficits beside others."""
    ahead = lead_across(flow, reach.excesses, ends.n_excesses, 1)
    return bool(ahead and lead_across(flow, reach.deficits, ends.n_deficits, -1))


@njit(nogil=True, cache=True)
def lead_across(flow: Pseudoflow, vertices: Index, count: int, sign: int) -> bool:
    """Whether residual arcs of excesses (``sign`` 1) lead to deficits and hardly to other ordinary vertices, or those
    into deficits (-1) come from excesses, by a sample."""
    good, bad = 0, 0
    for i in range(min(count, SAMPLED_VERTICES)):
        v = vertices[i * count // min(count, SAMPLED_VERTICES)]
        row = flow.row_offsets[v]
        for a in range(row, row + min(SAMPLED_ARCS, flow.row_offsets[v + 1] - row)):
            w = flow.head[a]
            if flow.role[w] != ORDINARY or flow.residual[a if sign > 0 else flow.reverse_arc[a]] == 0:
                continue
            if sign * flow.excess[w] < 0:
                good += 1
            else:
                bad += 1
    return good > 16 * bad


@njit(nogil=True, cache=True)
def branching(flow: Pseudoflow, vertices: Index, count: int, sign: int) -> tuple[float, float]:
    """How many further partners a partner of an excess (``sign`` 1) or deficit (-1) has, by a sample; and the share of
    partners that use each other up."""
    good, pairs, even = 0.0, 0.0, 0.0
    for i in range(min(count, SAMPLED_VERTICES)):
        v = vertices[i * count // min(count, SAMPLED_VERTICES)]
        partners = 0
        for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
            w = flow.head[a]
            if flow.role[w] != ORDINARY or sign * flow.excess[w] >= 0:
                continue
            if flow.residual[a if sign > 0 else flow.reverse_arc[a]] > 0:
                partners += 1
                even += flow.excess[v] == -flow.excess[w]
        good += partners
        pairs += partners * (partners - 1)
    return pairs / max(good, 1.0), even / max(good, 1.0)


@njit(nogil=True, cache=True)
def serve(flow: Pseudoflow, v: int, a: int) -> None:
    """Push what the excess v has, the arc ``a`` of its row admits, and the deficit at its end lacks."""
    w = flow.head[a]
    amount = min(flow.residual[a], min(flow.excess[v], -flow.excess[w]))
    flow.residual[a] -= amount
    flow.residual[flow.reverse_arc[a]] += amount
    flow.excess[v] -= amount
    flow.excess[w] += amount


@njit(nogil=True, cache=True)
def fit(flow: Pseudoflow, v: int) -> None:
    """The excess v takes the deficits beside it as its row has them."""
    for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
        w = flow.head[a]
        if flow.excess[w] >= 0 or flow.residual[a] == 0 or flow.role[w] != ORDINARY:
            continue
        serve(flow, v, a)
        if flow.excess[v] == 0:
            break


@njit(nogil=True, cache=True)
def first_fit(flow: Pseudoflow, excesses: Index, count: int, slots: NDArray[np.int64]) -> None:
    """Each excess takes the deficits beside it as its row has them."""
    for i in range(count):
        if i & POLL_EACH == 0 and slots[CANCEL] != 0:
            return
        fit(flow, excesses[i])


@njit(nogil=True, cache=True)
def row_length(flow: Pseudoflow, v: int) -> int:
    """How many arcs v has; `SHORT_ROW` + 1 if there are more than `SHORT_ROW`."""
    return min(int(np.int64(flow.row_offsets[v + 1]) - np.int64(flow.row_offsets[v])), SHORT_ROW + 1)


@njit(nogil=True, cache=True)
def by_row_length(flow: Pseudoflow, vertices: Index, count: int, order: Index) -> None:
    """Write the vertices in the order of their rows' lengths, those above `SHORT_ROW` last. O(count)."""
    start = np.zeros(SHORT_ROW + 3, np.int64)
    for i in range(count):
        start[row_length(flow, vertices[i]) + 1] += 1
    for length in range(SHORT_ROW + 1):
        start[length + 1] += start[length]
    for i in range(count):
        length = row_length(flow, vertices[i])
        order[start[length]] = vertices[i]
        start[length] += 1


@njit(nogil=True, cache=True)
def fewest_first(flow: Pseudoflow, excesses: Index, count: int, order: Index, slots: NDArray[np.int64]) -> None:
    """Excesses with the shortest rows come first, and each takes the deficit with the shortest row. ``order`` uint32[n]
    is working memory."""
    by_row_length(flow, excesses, count, order)
    for i in range(count):
        if i & POLL_EACH == 0 and slots[CANCEL] != 0:
            return
        v = order[i]
        row, end = np.int64(flow.row_offsets[v]), np.int64(flow.row_offsets[v + 1])
        for _ in range(CHOICES if end - row <= SHORT_ROW else 0):
            least, found = SHORT_ROW + 2, -1
            for a in range(row, end):
                w = flow.head[a]
                if flow.excess[w] >= 0 or flow.residual[a] == 0 or flow.role[w] != ORDINARY:
                    continue
                length = row_length(flow, w)
                if length < least:
                    least, found = length, a
            if found < 0:
                break
            serve(flow, v, found)
            if flow.excess[v] == 0:
                break
        if flow.excess[v] > 0:
            fit(flow, v)


@njit(nogil=True, cache=True)
def is_partner(flow: Pseudoflow, w: int, sign: int) -> bool:
    """Whether w is a deficit (``sign`` 1) or an excess (-1)."""
    return bool(flow.role[w] == ORDINARY and sign * flow.excess[w] < 0)


@njit(nogil=True, cache=True)
def clustering(flow: Pseudoflow, excesses: Index, count: int) -> float:
    """Which part of the excesses beside a deficit lies beside another one as well, if one excess lies beside both; by a
    sample."""
    near, shared = 0, 0
    for i in range(min(count, SAMPLED_VERTICES)):
        v = excesses[i * count // min(count, SAMPLED_VERTICES)]
        row = np.int64(flow.row_offsets[v])
        first, last = -1, -1
        for a in range(row, min(np.int64(flow.row_offsets[v + 1]), row + SAMPLED_ARCS)):
            w = int(np.int64(flow.head[a]))
            if is_partner(flow, w, 1):
                first, last = (w if first < 0 else first), w
        if first == last:
            continue
        here, there = np.int64(flow.row_offsets[first]), np.int64(flow.row_offsets[last])
        its_end = min(np.int64(flow.row_offsets[last + 1]), there + SHARED_ARCS)
        for a in range(here, min(np.int64(flow.row_offsets[first + 1]), here + SHARED_ARCS)):
            u = flow.head[a]
            if u == v or not is_partner(flow, u, -1):
                continue
            near += 1
            for b in range(there, its_end):
                if flow.head[b] == u:
                    shared += 1
                    break
    return shared / max(near, 1)


@njit(nogil=True, cache=True)
def count_partners(flow: Pseudoflow, partners: Partners, stack: Index, slots: NDArray[np.int64]) -> int:
    """Fill ``partners``, and the stack with vertices that have one; returns its top. Cancelled, they are of no use."""
    n = len(flow.role)
    for v in range(n):
        partners[v] = 0
        if flow.role[v] == ORDINARY and flow.excess[v] != 0:
            partners[v] = 1 if flow.excess[v] > 0 else -1
    for v in range(n):
        if v & POLL_EACH == 0 and slots[CANCEL] != 0:
            return 0
        if partners[v] <= 0:
            continue
        for a in range(flow.row_offsets[v], flow.row_offsets[v + 1]):
            w = flow.head[a]
            if partners[w] < 0 and flow.residual[a] > 0:
                partners[v] += 1
                partners[w] -= 1
    top = 0
    for v in range(n):
        if abs(partners[v]) == 2:
            stack[top] = v
            top += 1
    return top


@njit(nogil=True, cache=True)
def match(flow: Pseudoflow, partners: Partners, stack: Index, slots: NDArray[np.int64]) -> None:
    """Push from excesses to deficits beside them. ``partners`` int32[n] and ``stack`` uint32[n] are working memory.

    A vertex whose turn it is pushes to or from the partners beside it until it is used up or has none. Whoever is used
    up is no partner any more, and those left with one partner by that are next: they go on the stack.

    One loop, as in `gpu_engine.cpu.push_relabel.push_excess`, and for the same reason: with a call for each vertex it
    takes twice as long.
    """
    row_offsets, head, reverse_arc = flow.row_offsets, flow.head, flow.reverse_arc
    residual, excess = flow.residual, flow.excess
    n = len(flow.role)
    top, x, turns = count_partners(flow, partners, stack, slots), 0, 0
    while top > 0 or x < n:
        if turns & POLL_MASK == 0 and slots[CANCEL] != 0:
            return
        turns += 1
        if top > 0:
            top -= 1
            v = np.int64(stack[top])
        else:
            v = np.int64(x)
            x += 1
            if partners[v] < 0:
                continue  # deficits wait for their excesses
        if partners[v] == 0:
            continue
        sign = 1 if partners[v] > 0 else -1
        left = sign * excess[v]
        for a in range(np.int64(row_offsets[v]), np.int64(row_offsets[v + 1])):
            w = np.int64(head[a])
            if sign * partners[w] >= 0:
                continue
            forward, back = np.int64(a), np.int64(reverse_arc[a])
            if sign < 0:
                forward, back = back, forward
            wanted = -sign * excess[w]
            amount = min(residual[forward], min(left, wanted))
            if amount == 0:
                continue
            residual[forward] -= amount
            residual[back] += amount
            left -= amount
            excess[w] += sign * amount
            for end in range(2):
                used_up, its_sign = (w, -sign) if end == 0 else (v, sign)
                if (wanted > amount) if end == 0 else (left > 0):
                    continue
                partners[used_up] = 0
                for b in range(np.int64(row_offsets[used_up]), np.int64(row_offsets[used_up + 1])):
                    has = its_sign * partners[head[b]]
                    if has < -1:
                        partners[head[b]] += its_sign
                        if has == -3:
                            stack[top] = head[b]
                            top += 1
            if left == 0:
                break
        partners[v] = 0
        excess[v] = sign * left


@njit(nogil=True, cache=True)
def first_flow(flow: Pseudoflow, ends: Ends, reach: Reach, partners: Partners, slots: NDArray[np.int64]) -> None:
    """Push from excesses to deficits beside them, by the rule that leaves less for the time it takes."""
    ahead, even = branching(flow, reach.excesses, ends.n_excesses, 1)
    behind, _ = branching(flow, reach.deficits, ends.n_deficits, -1)
    if max(ends.up, ends.down) > PLENTY * min(ends.up, ends.down):
        first_fit(flow, reach.excesses, ends.n_excesses, slots)
    elif (
        even > EVEN
        and not CHAIN < ahead * behind < BUSH
        and clustering(flow, reach.excesses, ends.n_excesses) < CLUSTERED
    ):
        match(flow, partners, reach.trail, slots)
    else:
        fewest_first(flow, reach.excesses, ends.n_excesses, reach.trail, slots)
