"""What the edges of a cut add up to, those that are scaled apart from the others."""

from numba import njit

from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray


@njit(cache=True, nogil=True)
def crossing_sums(
    edge_arc: ArcArray,
    head: VertexArray,
    reverse_arc: ArcArray,
    capacity: UnitArray,
    undirected: BoolArray,
    scaled: BoolArray,
    source_side: BoolArray,
) -> tuple[int, int]:
    """The capacities of the edges that leave ``source_side`` bool[n]: of those that are not ``scaled``, and of those
    that are. ``undirected`` and ``scaled`` are bool[m], or bool[1] when all edges agree. O(m)."""
    constant, rate = 0, 0
    all_undirected, all_scaled = len(undirected) == 1, len(scaled) == 1
    for row in range(len(edge_arc)):
        arc = edge_arc[row]
        if arc < 0:
            continue
        begins, ends = source_side[head[reverse_arc[arc]]], source_side[head[arc]]
        if begins == ends or (ends and not undirected[0 if all_undirected else row]):
            continue
        if scaled[0 if all_scaled else row]:
            rate += capacity[row]
        else:
            constant += capacity[row]
    return constant, rate


@njit(cache=True, nogil=True)
def crossing_arcs(
    row_offsets: ArcArray, head: VertexArray, constant: UnitArray, rate: UnitArray, source_side: BoolArray
) -> tuple[int, int]:
    """The sums of both columns int64[arcs] over the arcs that leave ``source_side`` bool[n]. O(n + arcs)."""
    constants, rates = 0, 0
    for v in range(len(source_side)):
        if not source_side[v]:
            continue
        for a in range(row_offsets[v], row_offsets[v + 1]):
            if not source_side[head[a]]:
                constants += constant[a]
                rates += rate[a]
    return constants, rates
