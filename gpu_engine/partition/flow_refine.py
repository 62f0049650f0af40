"""Two neighbouring parts divided anew by a minimum cut of the corridor between them (Sanders and Schulz, "Engineering
multilevel graph partitioning algorithms", 2011, section 4).

The corridor takes vertices of each part, from the border inwards, as long as all of them could change sides and the
limit would hold. The rest of each part is one terminal. So no cut of the corridor breaks the limit, and a minimum cut
takes the place of the border at hand if it is smaller.
"""

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.control import Control
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.partition.buckets import Buckets
from gpu_engine.partition.moves import Books, boundary, move
from gpu_engine.types import MAX_TOTAL, UnitArray, VertexArray

MOST_VERTICES: Final = 1 << 15
"""A corridor has at most this many vertices in each of its two parts."""

MOST_SLOTS: Final = 1 << 18
"""The vertices of a corridor have at most this many neighbours together, in each of its two parts."""

MOST_PAIRS: Final = 256
"""One round looks at this many pairs of parts at most, those with the heaviest links between them."""


def flow_refine_bytes(n_vertices: int, n_arcs: int, k: int) -> int:
    """Bytes that `flow_refine` takes at most."""
    corridor = 100 * min(n_arcs, 2 * MOST_SLOTS) + 300 * min(n_vertices, 2 * MOST_VERTICES)
    return corridor + 10 * n_vertices + 24 * k * k


def flow_refine(buckets: Buckets, books: Books, rounds: int, control: Control) -> VertexArray:
    """Divide pairs of neighbouring parts anew while it helps, in at most so many rounds. Returns the vertices that have
    moved, int32[...], of which some may be named more than once. Raises `Cancelled`. Each flow is of a corridor, which
    mostly takes milliseconds."""
    k = len(books.part_weight) - 1
    moved: list[VertexArray] = []
    mark = np.zeros(len(books.part), np.int32)
    stale = np.ones(k, np.bool_)
    for _ in range(rounds):
        border = boundary(buckets, books.part)
        between = _between(buckets, books.part, border, k)
        pairs = np.argsort(-between, axis=None, kind="stable")[: min(MOST_PAIRS, k * k)]
        changed = np.zeros(k, np.bool_)
        for p, q in zip(*np.divmod(pairs, k), strict=True):
            if between[p, q] and (stale[p] or stale[q]):
                gone = _divide(buckets, books, border, int(p), int(q), mark, control)
                if len(gone):
                    changed[p] = changed[q] = True
                    moved.append(gone)
        if not changed.any():
            break
        stale = changed
    return np.concatenate(moved) if moved else np.empty(0, np.int32)


def _divide(
    buckets: Buckets, books: Books, border: VertexArray, p: int, q: int, mark: NDArray[np.int32], control: Control
) -> VertexArray:
    """Divide parts p and q anew if that makes the cut smaller. Returns the vertices that have moved, int32[...]."""
    room = books.limit[0] - books.part_weight
    first = _grown(buckets, books, border, p, q, int(room[q]), mark, 0)
    second = _grown(buckets, books, border, q, p, int(room[p]), mark, len(first))
    corridor = np.concatenate([first, second])
    n = len(corridor)
    found = np.empty(0, np.int32)
    if n:
        tail, head, weight, to_p, to_q, now = _corridor(buckets, books.part, corridor, p, q, mark)
        from_p, from_q = np.flatnonzero(to_p).astype(np.int32), np.flatnonzero(to_q).astype(np.int32)
        before = side = np.arange(n) < len(first)
        if len(from_p) and len(from_q):
            tails = np.concatenate([tail, np.full(len(from_p), n, np.int32), from_q])
            heads = np.concatenate([head, from_p, np.full(len(from_q), n + 1, np.int32)])
            capacity = np.concatenate([weight, to_p[from_p], to_q[from_q]])
            undirected = np.arange(len(capacity)) < len(tail)
            half = int(weight.sum() + capacity.sum() > MAX_TOTAL)  # links count twice there, directed edges do not
            engine = CpuEngine(Network(EdgeList(n + 2, tails, heads, capacity >> half, undirected)))
            state = engine.open(Terminals.of([n], [n + 1]))
            if engine.solve(state, control).value << half < now:
                side = engine.cut(state).source_side[:n]
            if half and weight[side[tail] != side[head]].sum() + to_p[~side].sum() + to_q[side].sum() >= now:
                side = before
            found = corridor[side != before]
    mark[corridor] = 0
    _swap(buckets, books, found, p, q)
    return found


@njit(cache=True, nogil=True)
def _swap(buckets: Buckets, books: Books, vertices: VertexArray, p: int, q: int) -> None:
    """Put vertices of p into q, and those of q into p."""
    for v in vertices:
        move(buckets, books, v, p if books.part[v] == q else q)


@njit(cache=True, nogil=True)
def _between(buckets: Buckets, part: VertexArray, border: VertexArray, k: int) -> UnitArray:
    """int64[k, k]: the weight of links between parts p < q; 0 elsewhere."""
    total = np.zeros((k, k), np.int64)
    for v in border:
        p = part[v]
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            q = part[buckets.head[a]]
            if p < q:
                total[p, q] += buckets.weight[a]
    return total


@njit(cache=True, nogil=True)
def _grown(
    buckets: Buckets,
    books: Books,
    border: VertexArray,
    p: int,
    q: int,
    room: int,
    mark: NDArray[np.int32],
    before: int,
) -> VertexArray:
    """Vertices of part p from its border with q inwards, int32[...], which weigh at most ``room`` together and have at
    most `MOST_SLOTS` neighbours. Their numbers in the corridor, from ``before`` + 1 on, are left in ``mark``,
    int32[n]."""
    slots = MOST_SLOTS
    found = np.empty(MOST_VERTICES, np.int32)
    count = 0
    for v in border:
        if books.part[v] != p or books.vertex_weight[v] > room or buckets.used[v] > slots or count == MOST_VERTICES:
            continue
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            if books.part[buckets.head[a]] == q:
                found[count] = v
                count += 1
                mark[v] = before + count
                room -= books.vertex_weight[v]
                slots -= buckets.used[v]
                break
    at = 0
    while at < count and count < MOST_VERTICES:
        v = found[at]
        at += 1
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            u = buckets.head[a]
            if mark[u] != 0 or books.part[u] != p or count == MOST_VERTICES:
                continue
            if books.vertex_weight[u] <= room and buckets.used[u] <= slots:
                found[count] = u
                count += 1
                mark[u] = before + count
                room -= books.vertex_weight[u]
                slots -= buckets.used[u]
    return found[:count].copy()


@njit(cache=True, nogil=True)
def _corridor(
    buckets: Buckets, part: VertexArray, corridor: VertexArray, p: int, q: int, mark: NDArray[np.int32]
) -> tuple[VertexArray, VertexArray, UnitArray, UnitArray, UnitArray, int]:
    """The corridor as a graph: tails, heads and weights of the links within it; the weight of the links from each of
    its vertices to the rest of p, and to the rest of q; and what the border at hand cuts of all these links."""
    n = len(corridor)
    slots = 0
    for v in corridor:
        slots += buckets.used[v]
    tail = np.empty(slots, np.int32)
    head = np.empty(slots, np.int32)
    weight = np.empty(slots, np.int64)
    to_p = np.zeros(n, np.int64)
    to_q = np.zeros(n, np.int64)
    count = 0
    now = 0
    for i in range(n):
        v = corridor[i]
        for a in range(buckets.start[v], buckets.start[v] + buckets.used[v]):
            u = buckets.head[a]
            other = part[u]
            if other != p and other != q:  # Numba has no ``other not in (p, q)`` here
                continue
            j = mark[u] - 1
            if j < 0:
                if other == p:
                    to_p[i] += buckets.weight[a]
                else:
                    to_q[i] += buckets.weight[a]
            elif i < j:
                tail[count] = i
                head[count] = j
                weight[count] = buckets.weight[a]
                count += 1
            if other != part[v] and (j < 0 or i < j):
                now += buckets.weight[a]
    return tail[:count], head[:count], weight[:count], to_p, to_q, now
