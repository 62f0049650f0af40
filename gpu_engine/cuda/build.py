"""Edges to links to bidirectional CSR on the device, by one sort: what `networks.links.build_csr` gives."""

import cupy
import numpy as np

from gpu_engine.types import ArcArray, VertexArray


def build_csr(
    n_vertices: int, tail: VertexArray, head: VertexArray
) -> tuple[ArcArray, VertexArray, ArcArray, ArcArray]:
    """Host arrays ``row_offsets`` int32[n+1], ``head``, ``reverse_arc`` int32[arcs] and ``edge_arc`` int32[m].

    Each edge gives two half-arcs, keyed by (from, to); equal keys become one arc, in the order of the keys. Device
    scratch: about 50 bytes an edge. Raises ``cupy.cuda.memory.OutOfMemoryError`` if that is too much.
    """
    m = len(tail)
    ends = cupy.asarray(tail), cupy.asarray(head)
    loop = ends[0] == ends[1]
    keys = cupy.empty(2 * m, np.int64)
    for half, (from_, to) in enumerate((ends, ends[::-1])):
        keys[half * m : (half + 1) * m] = cupy.where(loop, np.int64(-1), from_.astype(np.int64) << 32 | to)
    order = cupy.argsort(keys)
    keys = keys[order]
    n_loops = 2 * int(loop.sum())  # they sort before all others
    first = cupy.ones(2 * m, np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    first[:n_loops] = False
    half_arc = cupy.empty(2 * m, np.int32)
    half_arc[order] = cupy.cumsum(first, dtype=np.int32) - np.int32(1)
    del order
    distinct = keys[first]
    del keys, first
    rows = cupy.arange(n_vertices + 1, dtype=np.int64) << 32
    row_offsets = cupy.searchsorted(distinct, rows).astype(np.int32)
    arc_head = (distinct & 0xFFFFFFFF).astype(np.int32)
    forward, backward = half_arc[:m], half_arc[m:]
    reverse_arc = cupy.empty(len(distinct), np.int32)
    links = ~loop
    reverse_arc[forward[links]], reverse_arc[backward[links]] = backward[links], forward[links]
    edge_arc = cupy.where(loop, np.int32(-1), forward)
    return row_offsets.get(), arc_head.get(), reverse_arc.get(), edge_arc.get()
