"""Edges to rows in shards, on the devices and without a `Network`: for networks of more arcs than that may have.

The same as `gpu_engine.cuda.build`, shard by shard: each half of an edge goes to the shard of the vertex that it
leaves, where one sort brings the halves of a link together. The reverse of an arc is found by a search in the keys of
the shard that has it.
"""

from collections.abc import Iterable
from typing import Any, Final

import cupy
import numpy as np

from gpu_engine.cuda.launch.arrays import Array, new_arcs
from gpu_engine.cuda.sharded.places import Places
from gpu_engine.cuda.sharded.topology import Topology

AT_ONCE: Final = 1 << 26
"""Arcs whose reverses are looked for together."""

HEAD: Final = 0xFFFFFFFF
"""The lower half of a key: the key of an arc is its tail's number in its shard, and its head."""


def build(
    n_vertices: int, edges: Iterable[tuple[Any, Any, Any]], places: Places, *, wide: bool = False
) -> tuple[Topology, list[Array]]:
    """The topology, and the records of each shard's arcs without residuals.

    ``edges`` are columns of directed edges, a part at a time: tail and head, capacity in units, on the host or complete
    on any device. Shards have equally many vertices. Loops are left out, and capacities of parallel edges added up;
    unless ``wide``, no link may have 2**30 units or more. Scratch: about 45 bytes for each edge end in a shard, one
    shard of a device after the other, and 12 for each in all.
    """
    first_vertex = np.linspace(0, n_vertices, len(places) + 1).astype(np.int64)
    halves: list[list[tuple[Array, Array]]] = [[] for _ in places.all]
    for columns in edges:
        for shard, place in enumerate(places.all):
            with place.on():
                begin, end = first_vertex[shard : shard + 2].tolist()
                halves[shard] += _own_halves(begin, end, columns, wide)
        places.wait()
    keys, capacity, row_offsets = [], [], []
    for shard, place in enumerate(places.all):
        with place.on():
            key, total = _merged(halves[shard])
            keys.append(key)
            capacity.append(total)
            rows = cupy.arange(int(first_vertex[shard + 1] - first_vertex[shard]) + 1, dtype=np.int64) << 32
            row_offsets.append(cupy.searchsorted(key, rows).astype(np.int32))
        places.wait()
        places.trim()
    first_arc = np.concatenate([[0], np.cumsum([len(key) for key in keys])]).astype(np.int64)
    topology = Topology(places, first_vertex, first_arc, row_offsets, capacity, wide)
    arcs = []
    for shard, place in enumerate(places.all):
        reverse = _reverses(topology, keys, shard)
        with place.on():
            arcs.append(new_arcs((keys[shard] & HEAD).astype(np.int32), reverse, wide))
    del keys
    places.wait()
    places.trim()
    return topology, arcs


def _own_halves(begin: int, end: int, columns: tuple[Any, Any, Any], wide: bool) -> list[tuple[Array, Array]]:
    """Keys and capacities of the halves that leave these vertices; only the first half of an edge has its capacity."""
    tail, head, capacity = (cupy.array(column) for column in columns)
    found = []
    for from_, to, units in ((tail, head, capacity), (head, tail, None)):
        own = (from_ >= begin) & (from_ < end) & (from_ != to)
        key = (from_[own].astype(np.int64) - begin) << 32 | to[own].astype(np.int64)
        kind = np.int64 if wide else np.int32
        found.append((key, cupy.zeros(len(key), kind) if units is None else units[own].astype(kind)))
    return found


def _merged(halves: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Distinct keys, rising, and the sum of the capacities of each. Empties the list."""
    keys, capacity = (cupy.concatenate(parts) for parts in zip(*halves, strict=True))
    halves.clear()
    order = cupy.argsort(keys)
    keys, capacity = keys[order], capacity[order]
    del order
    first = cupy.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    place = cupy.cumsum(first, dtype=np.int32) - np.int32(1)
    distinct = keys[first]
    del keys, first
    total = cupy.zeros(len(distinct), capacity.dtype)
    cupy.add.at(total, place, capacity)
    return distinct, total


def _reverses(topology: Topology, keys: list[Array], shard: int) -> Array:
    """int32[arcs]: the places of the reverses of a shard's arcs."""
    places, begin = topology.places, int(topology.first_vertex[shard])
    own = places.all[shard]
    with own.on():
        reverse = cupy.empty(len(keys[shard]), np.int32)
    for at in range(0, len(keys[shard]), AT_ONCE):
        with own.on():
            part = keys[shard][at : at + AT_ONCE]
            tail, head = (part >> 32) + begin, part & HEAD
        for other, place in enumerate(places.all):
            first, last = topology.first_vertex[other : other + 2].tolist()
            with own.on():
                which = cupy.flatnonzero((head >= first) & (head < last))
                wanted = (head[which] - first) << 32 | tail[which]
            places.wait()
            with place.on():
                found = cupy.searchsorted(keys[other], cupy.array(wanted)).astype(np.int32)
            places.wait()
            with own.on():
                reverse[at + which] = cupy.array(found)
            places.wait()
    return reverse
