"""The proof of an answer on the devices, by the capacities that are there."""

import cupy
import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks.certificate import Certificate, verdict
from gpu_engine.cuda.layout import OFFENDERS, SHARD_FINDINGS
from gpu_engine.cuda.sharded.launch import Shards
from gpu_engine.cuda.sharded.solving import own_supplies
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import BoolArray, VertexArray

ALL_ROWS = -1


def certify(shards: Shards, terminals: Terminals) -> Certificate:
    """Check conditions 1-5 of `gpu_engine.checks.certificate`; an offending arc is told by its place in a shard.

    O(n + m), waits. Takes 16 bytes a vertex.
    """
    places, blank = shards.places.all, np.zeros(1, SHARD_FINDINGS)
    for name in OFFENDERS:
        blank[name] = -1
    own, outflow, findings = own_supplies(shards.topology, terminals), [], []
    for shard, place in enumerate(places):
        with place.on():
            outflow.append(cupy.zeros(shards.topology.vertices(shard), np.int64))
            findings.append(cupy.asarray(blank.view(np.uint8)))
    shards.places.barrier()
    slot = shards.next_slot()
    shards.over_vertices("gather", ALL_ROWS, slot)
    shards.with_own(
        "certify_rows", [(np.int32(slot), *pair) for pair in zip(outflow, findings, strict=True)], items=True
    )
    shards.with_own("certify_vertices", list(zip(own, outflow, findings, strict=True)), items=False)
    found = []
    for place, finding in zip(places, findings, strict=True):
        with place.on():
            found.append(finding.get().view(SHARD_FINDINGS)[0])
    shards.clear_tally()
    first = [max(int(each[name]) for each in found) for name in OFFENDERS]
    across, cut_capacity = (sum(int(each[name]) for each in found) for name in ("across", "cut_capacity"))
    sides = sides_of(shards, terminals.sources), sides_of(shards, terminals.sinks)
    return verdict(terminals, *sides, across, cut_capacity, first)


def sides_of(shards: Shards, vertices: VertexArray) -> BoolArray:
    """bool[k]: which of these vertices lie in S."""
    side: NDArray[np.bool_] = np.zeros(len(vertices), np.bool_)
    for shard, place in enumerate(shards.places.all):
        begin, end = shards.topology.first_vertex[shard : shard + 2]
        here = (vertices >= begin) & (vertices < end)
        if here.any():
            with place.on():
                side[here] = shards.columns.source_side[shard][cupy.asarray(vertices[here] - begin)].get()
    return side
