"""The two parts of a solve over shards: the start from zero flow, and the drains of one side of the cut or both."""

from collections.abc import Sequence

import cupy
import numpy as np

from gpu_engine.control import WORK_DONE, Control
from gpu_engine.cuda.launch.arrays import Array
from gpu_engine.cuda.sharded.drain import drain
from gpu_engine.cuda.sharded.launch import Shards
from gpu_engine.cuda.sharded.topology import Topology
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE


def start_from_zero(shards: Shards, terminals: Terminals) -> None:
    """Zero flow, own supplies as excess, the free sources as S, and all arcs out of it filled. O(n + m)."""
    shards.zero_flow(sum_pairs=False)
    supplies = own_supplies(shards.topology, terminals)
    for place, excess, supply in zip(shards.places.all, shards.columns.excess, supplies, strict=True):
        with place.on():
            excess[:] = supply
    shards.over_vertices("mark_sources")
    shards.places.barrier()
    slot = shards.next_slot()
    shards.over_vertices("gather", 0, slot)
    shards.over_items("saturate", slot)
    shards.places.barrier()


def own_supplies(topology: Topology, terminals: Terminals) -> list[Array]:
    """`gpu_engine.checks.certificate.own_supply` for each shard, int64: only terminals are sent to the devices."""
    found = []
    for shard, place in enumerate(topology.places.all):
        begin, end = topology.first_vertex[shard : shard + 2]
        with place.on():
            own = cupy.zeros(topology.vertices(shard), np.int64)
            for vertices, caps in ((terminals.sources, terminals.supply), (terminals.sinks, -terminals.demand)):
                kept = (np.abs(caps) != INFINITE) & (vertices >= begin) & (vertices < end)
                if kept.any():
                    own[cupy.asarray(vertices[kept] - begin)] += cupy.asarray(caps[kept])
            found.append(own)
    return found


def settle(shards: Shards, control: Control, sides: Sequence[bool], until_s: float) -> dict[str, int]:
    """Drain S (True: its deficits) or T (of its excess), in this order; returns the counters.

    Raises `Stopped` if ``control`` is cancelled or ``perf_counter()`` is past ``until_s``; a pseudoflow is left that
    can be settled later.
    """
    done, total = control.slots.copy(), dict.fromkeys((*WORK_DONE, "rounds", "levels"), 0)
    try:
        for mirrored in sides:
            work = drain(shards, control, mirrored=mirrored, until_s=until_s)
            total = {name: total[name] + work[name] for name in total}
            for at, name in enumerate(WORK_DONE, Control.PUSHES):
                control.slots[at] = done[at] + total[name]
    finally:
        shards.places.wait()
    return total
