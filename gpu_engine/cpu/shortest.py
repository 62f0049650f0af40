"""The shortest flow between given excesses: shortest paths to all that lack something at once, on a small network."""

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.types import UnitArray, VertexArray

FAR: Final = 1 << 62
LOW: Final = (1 << 32) - 1
POLL_MASK: Final = (1 << 12) - 1
"""The cancel flag is read each time one more than this many vertices have been looked at."""


class Streets(NamedTuple):
    """Where flow can go, by street."""

    tail: VertexArray
    head: VertexArray
    length: UnitArray
    ahead: UnitArray
    """The capacity from tail to head."""
    back: UnitArray
    flow: UnitArray
    """The flow from tail to head, negative where it runs from head to tail."""


class Sides(NamedTuple):
    """Each street as its two ends see it, vertex by vertex."""

    offsets: VertexArray
    """int32[n+1]: the sides of each vertex."""
    number: VertexArray
    """Twice that of the street, and one more at its head."""
    mate: VertexArray
    """The other side of the street."""
    to: VertexArray
    room: UnitArray
    """How much more flow can leave by each side at one price: flow that comes the other way is given back first."""
    price: UnitArray
    """What a unit of that flow adds to the length."""


@njit(cache=True, nogil=True)
def settle(
    streets: Streets,
    sides: Sides,
    potential: UnitArray,
    excess: UnitArray,
    most_steps: int,
    slots: NDArray[np.int64],
) -> tuple[bool, int]:
    """Bring each positive ``excess`` int64[n] to where it is negative, so that the flow has the least total length.

    Primal-dual (Ahuja, Magnanti, Orlin: Network Flows, section 9.8): Dijkstra's distances from all that have too much,
    under potentials, up to the nearer half of what lacks something; then paths of that distance until none is left. No
    side with room may be a shortcut under ``potential`` int64[n] at first. Returns whether all is settled, and how many
    sides were looked at: it gives up after ``most_steps`` of them, where there is no way, and when ``slots[0]``
    (cancel) is raised.
    """
    n = len(excess)
    distance, heap = np.empty(n, np.int64), np.empty(n + len(sides.to), np.int64)
    lacking = 0
    for v in range(n):
        lacking += excess[v] < 0
    steps = 0
    while lacking > 0 and steps <= most_steps and slots[0] == 0:
        looked, furthest = _distances(sides, potential, excess, distance, heap, (lacking + 1) // 2, slots)
        steps += looked
        if furthest < 0:
            break
        for v in range(n):
            potential[v] += min(distance[v], furthest)
        looked, filled = _augment(streets, sides, potential, excess, most_steps - steps, slots)
        steps += looked
        lacking -= filled
    return lacking == 0, steps


@njit(cache=True, nogil=True)
def _distances(
    sides: Sides,
    potential: UnitArray,
    excess: UnitArray,
    distance: UnitArray,
    heap: UnitArray,
    wanted: int,
    slots: NDArray[np.int64],
) -> tuple[int, int]:
    """Reduced distances from all with too much, exact up to as many vertices that lack something as are ``wanted``.

    Returns how many sides were looked at, and the distance of the last of those; -1 if some of them are out of reach,
    and at a cancel.
    """
    distance[:] = FAR
    size, steps, furthest, taken = 0, 0, -1, 0
    for v in range(len(excess)):
        if excess[v] > 0:
            distance[v] = 0
            heap[size] = v
            size += 1
    while size > 0:
        taken += 1
        if taken & POLL_MASK == 0 and slots[0] != 0:
            break
        nearest = heap[0]
        size -= 1
        _sink(heap, size, heap[size])
        v, near = nearest & LOW, nearest >> 32
        if near > distance[v]:
            continue
        if excess[v] < 0:
            wanted -= 1
            if wanted == 0:
                furthest = near
                break
        base = near + potential[v]
        steps += sides.offsets[v + 1] - sides.offsets[v]
        for i in range(sides.offsets[v], sides.offsets[v + 1]):
            if sides.room[i] <= 0:
                continue
            w = sides.to[i]
            further = base + sides.price[i] - potential[w]
            if further < distance[w]:
                distance[w] = further
                _rise(heap, size, further << 32 | w)
                size += 1
    return steps, furthest


@njit(cache=True, nogil=True)
def _rise(heap: UnitArray, at: int, key: int) -> None:
    """Put a key into the heap, whose next free place is ``at``."""
    while at > 0:
        above = (at - 1) >> 1
        if heap[above] <= key:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = key


@njit(cache=True, nogil=True)
def _sink(heap: UnitArray, size: int, key: int) -> None:
    """Put a key in place of the least one."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= key:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = key


@njit(cache=True, nogil=True)
def _augment(
    streets: Streets,
    sides: Sides,
    potential: UnitArray,
    excess: UnitArray,
    most_steps: int,
    slots: NDArray[np.int64],
) -> tuple[int, int]:
    """Send excess along paths without reduced length, depth first, each vertex given up once.

    Returns how many sides were looked at, and how many vertices lack nothing any more; stops after ``most_steps`` or at
    a cancel.
    """
    n = len(potential)
    present, path = sides.offsets[:n].copy(), np.empty(n, np.int32)
    passed = np.zeros(n, np.bool_)  # on the path, or nothing was found beyond it
    steps, filled = 0, 0
    for root in range(n):
        if excess[root] <= 0 or passed[root]:
            continue
        v, depth = root, 0
        passed[root] = True
        while excess[root] > 0:
            steps += 1
            if steps & POLL_MASK == 0 and slots[0] != 0:
                return steps, filled
            if excess[v] < 0:
                steps += depth
                most = min(excess[root], -excess[v])
                amount, free = _send(streets, sides, potential, path, depth, most)
                excess[root] -= amount
                excess[v] += amount
                filled += excess[v] == 0
                if steps > most_steps or slots[0] != 0:
                    return steps, filled
                for i in range(free, depth):
                    passed[sides.to[path[i]]] = False
                depth = free
                v = root if depth == 0 else sides.to[path[depth - 1]]
            elif present[v] == sides.offsets[v + 1]:
                if depth == 0:
                    break
                depth -= 1
                v = sides.to[sides.mate[path[depth]]]
                present[v] += 1
            else:
                i = present[v]
                w = sides.to[i]
                if sides.room[i] > 0 and not passed[w] and sides.price[i] + potential[v] == potential[w]:
                    path[depth] = i
                    depth += 1
                    passed[w] = True
                    v = w
                else:
                    present[v] += 1
        if excess[root] == 0:  # what is on the path has not been given up
            passed[root] = False
            for i in range(depth):
                passed[sides.to[path[i]]] = False
    return steps, filled


@njit(cache=True, nogil=True)
def _send(
    streets: Streets, sides: Sides, potential: UnitArray, path: VertexArray, depth: int, most: int
) -> tuple[int, int]:
    """Send along the path as much as fits at its price; returns that, and the first place that takes no more at it, or
    ``depth``."""
    amount, full = most, depth
    for i in range(depth):
        amount = min(amount, sides.room[path[i]])
    for i in range(depth - 1, -1, -1):
        side = path[i]
        number, mate = sides.number[side], sides.mate[side]
        streets.flow[number >> 1] += amount if number & 1 == 0 else -amount
        _see(streets, sides, side)
        _see(streets, sides, mate)
        if sides.room[side] <= 0 or sides.price[side] + potential[sides.to[mate]] != potential[sides.to[side]]:
            full = i
    return amount, full


@njit(cache=True, nogil=True)
def sides_of(n: int, streets: Streets) -> Sides:
    """The streets as their ends see them now."""
    m = len(streets.tail)
    offsets = np.zeros(n + 1, np.int32)
    for street in range(m):
        offsets[streets.tail[street] + 1] += 1
        offsets[streets.head[street] + 1] += 1
    for v in range(n):
        offsets[v + 1] += offsets[v]
    at = offsets[:n].copy()
    number, mate, to = np.empty(2 * m, np.int32), np.empty(2 * m, np.int32), np.empty(2 * m, np.int32)
    sides = Sides(offsets, number, mate, to, np.empty(2 * m, np.int64), np.empty(2 * m, np.int64))
    for street in range(m):
        tail, head = streets.tail[street], streets.head[street]
        i = at[tail]
        at[tail] += 1
        j = at[head]
        at[head] += 1
        number[i], mate[i], to[i] = 2 * street, j, head
        number[j], mate[j], to[j] = 2 * street + 1, i, tail
        _see(streets, sides, i)
        _see(streets, sides, j)
    return sides


@njit(cache=True, nogil=True)
def _see(streets: Streets, sides: Sides, side: int) -> None:
    """Set the room and the price of a side."""
    street = sides.number[side] >> 1
    flow, room = streets.flow[street], streets.ahead[street]
    if sides.number[side] & 1:
        flow, room = -flow, streets.back[street]
    if flow < 0:
        sides.room[side], sides.price[side] = -flow, -streets.length[street]
    else:
        sides.room[side], sides.price[side] = room - flow, streets.length[street]
