"""Proof that flow on an edge can go another way: a way round in the residual network that leads back over the edge.

Let arcs lead from vertex to vertex and back to the first, each with room for c units beside a feasible flow, no arc
twice and none with its reverse. Let an edge carry c units or fewer against one of them. If what it carries is sent
along all of them but that one, and no longer over the edge, then the flow stays feasible and of the same value. So
closing the edge costs nothing.
"""

from numba import njit

from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def room_round(head: VertexArray, reverse_arc: ArcArray, residual: UnitArray, way: ArcArray, used: BoolArray) -> int:
    """How many units there is room for along the arcs ``way``; 0 if they do not form a cycle over distinct links.
    ``used``, bool[arcs], is false before and after. O(way)."""
    room = residual[way[0]] if len(way) > 2 else 0
    for i in range(len(way)):
        a = way[i]
        if used[a] or used[reverse_arc[a]] or head[way[i - 1]] != head[reverse_arc[a]]:
            room = 0
        used[a] = True
        room = min(room, residual[a])
    for a in way:
        used[a] = False
    return int(room)
