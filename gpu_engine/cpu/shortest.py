"""The shortest flow of a value: successive shortest paths, several at each distance, on a small network."""

from heapq import heappop, heappush
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.types import BoolArray, UnitArray, VertexArray

FAR: Final = 1 << 62
LOW: Final = (1 << 32) - 1


class Streets(NamedTuple):
    """Where flow can go, by street; ``flow`` is negative from head to tail.

    A *side* is a street as one of its ends sees it: twice its number, and one more at its head.
    """

    tail: VertexArray
    head: VertexArray
    length: UnitArray
    ahead: UnitArray
    back: UnitArray
    flow: UnitArray
    offsets: VertexArray
    sides: VertexArray


@njit(cache=True, nogil=True)
def shortest_flow(
    n: int,
    tail: VertexArray,
    head: VertexArray,
    length: UnitArray,
    ahead: UnitArray,
    back: UnitArray,
    source: int,
    sink: int,
    value: int,
    most_steps: int,
    slots: NDArray[np.int64],
) -> UnitArray:
    """The flow of ``value`` from source to sink on each street, negative from head to tail, of the least total length.

    Primal-dual (Ahuja, Magnanti, Orlin: Network Flows, section 9.8): Dijkstra's distances under potentials, then paths
    of that distance until none is left. Where all lengths but those at source and sink are positive, a least flow has
    no cycle. ``ahead`` and ``back`` are the capacities from tail to head and from head to tail. Gives up with an empty
    array when it has looked at ``most_steps`` sides, there is no such flow, or ``slots[0]`` (cancel) is raised.
    """
    flow = np.zeros(len(tail), np.int64)
    streets = Streets(tail, head, length, ahead, back, flow, *_incidence(n, tail, head))
    potential, distance = np.zeros(n, np.int64), np.empty(n, np.int64)
    left, steps = value, 0
    while left > 0:
        steps += _distances(streets, potential, distance, source, sink)
        if distance[sink] == FAR or steps > most_steps or slots[0] != 0:
            return np.empty(0, np.int64)
        for v in range(n):
            potential[v] += min(distance[v], distance[sink])
        sent, looked = _augment(streets, potential, source, sink, left, most_steps - steps, slots)
        left -= sent
        steps += looked
    return flow


@njit(cache=True, nogil=True)
def _distances(streets: Streets, potential: UnitArray, distance: UnitArray, source: int, sink: int) -> int:
    """Reduced distances from the source, exact up to that of the sink; returns how many sides were looked at."""
    distance[:] = FAR
    distance[source] = 0
    heap = [np.int64(source)]  # distance and vertex in one number
    steps = 0
    while heap:
        nearest = int(heappop(heap))
        v = nearest & LOW
        if v == sink:
            break
        if nearest >> 32 > distance[v]:
            continue
        for i in range(streets.offsets[v], streets.offsets[v + 1]):
            steps += 1
            w, room, cost = _look(streets, streets.sides[i])
            further = distance[v] + cost + potential[v] - potential[w]
            if room > 0 and further < distance[w] and further <= distance[sink]:
                distance[w] = further
                heappush(heap, np.int64(further << 32 | w))
    return steps


@njit(cache=True, nogil=True)
def _augment(
    streets: Streets,
    potential: UnitArray,
    source: int,
    sink: int,
    most: int,
    most_steps: int,
    slots: NDArray[np.int64],
) -> tuple[int, int]:
    """Send up to ``most`` along paths without reduced length, depth first, each vertex given up once.

    Returns how much was sent, and how many sides were looked at; stops at ``most_steps`` or a cancel.
    """
    n = len(potential)
    present, path = streets.offsets[:n].copy(), np.empty(n, np.int32)
    passed = np.zeros(n, np.bool_)  # on the path, or nothing was found beyond it
    passed[source] = True
    v, depth, left, steps = source, 0, most, 0
    while left > 0:
        steps += 1
        if v == sink:
            steps += depth
            amount, depth = _send(streets, potential, path, depth, left, passed)
            left -= amount
            if steps > most_steps or slots[0] != 0:
                break
            v = _other(streets, path[depth])
        elif present[v] == streets.offsets[v + 1]:
            if depth == 0:
                break
            depth -= 1
            v = _other(streets, path[depth])
            present[v] += 1
        else:
            side = streets.sides[present[v]]
            w, room, cost = _look(streets, side)
            if room > 0 and not passed[w] and cost + potential[v] == potential[w]:
                path[depth] = side
                depth += 1
                passed[w] = True
                v = w
            else:
                present[v] += 1
    return most - left, steps


@njit(cache=True, nogil=True)
def _send(
    streets: Streets, potential: UnitArray, path: VertexArray, depth: int, most: int, passed: BoolArray
) -> tuple[int, int]:
    """Send along the path as much as fits at its price; returns that, and the first place that takes no more at it.

    What lies beyond that place is off the path again.
    """
    amount = most
    for i in range(depth):
        amount = min(amount, _look(streets, path[i])[1])
    for i in range(depth):
        streets.flow[path[i] >> 1] += amount if path[i] & 1 == 0 else -amount
    full = depth - 1
    for i in range(depth - 1, -1, -1):
        w, room, cost = _look(streets, path[i])
        if room <= 0 or cost + potential[_other(streets, path[i])] != potential[w]:
            full = i
    for i in range(full, depth):
        passed[_look(streets, path[i])[0]] = False
    return amount, full


@njit(cache=True, nogil=True)
def _incidence(n: int, tail: VertexArray, head: VertexArray) -> tuple[VertexArray, VertexArray]:
    """Offsets int32[n+1] into the sides of each vertex: see `Streets`."""
    offsets = np.zeros(n + 1, np.int32)
    for street in range(len(tail)):
        offsets[tail[street] + 1] += 1
        offsets[head[street] + 1] += 1
    for v in range(n):
        offsets[v + 1] += offsets[v]
    at, sides = offsets[:n].copy(), np.empty(2 * len(tail), np.int32)
    for street in range(len(tail)):
        sides[at[tail[street]]] = 2 * street
        at[tail[street]] += 1
        sides[at[head[street]]] = 2 * street + 1
        at[head[street]] += 1
    return offsets, sides


@njit(cache=True, nogil=True)
def _look(streets: Streets, side: int) -> tuple[int, int, int]:
    """Where a street leads to from this side, how much more it takes at one price, and that price: flow that comes the
    other way is given back first."""
    street = side >> 1
    flow, length = streets.flow[street], streets.length[street]
    if side & 1 == 0:
        if flow < 0:
            return streets.head[street], -flow, -length
        return streets.head[street], streets.ahead[street] - flow, length
    if flow > 0:
        return streets.tail[street], flow, -length
    return streets.tail[street], streets.back[street] + flow, length


@njit(cache=True, nogil=True)
def _other(streets: Streets, side: int) -> int:
    """The end that sees the street on this side."""
    return int(streets.tail[side >> 1] if side & 1 == 0 else streets.head[side >> 1])
