"""A partition from nothing by METIS, in a process of its own."""

import json
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.child import run
from gpu_engine.control import Control
from gpu_engine.errors import OutOfMemory
from gpu_engine.footprint import Footprint, Room
from gpu_engine.partition.buckets import Buckets, compressed
from gpu_engine.types import BoolArray, UnitArray, VertexArray

PROCESS: Final = "gpu_engine.partition.process"
PROCESS_BYTES: Final = 48 << 20
"""The process takes this many bytes at most before it is given a graph."""
SLOT_BYTES: Final = 100
"""The process takes this many bytes for each slot, with all levels and the columns it is sent, where each level has
about half the slots of the one before."""
VERTEX_BYTES: Final = 260
PART_BYTES: Final = 4096
SLACK_BYTES: Final = 32 << 20
"""The process may take this many bytes more than was reckoned before it is refused memory."""
MULTIPLES: Final = 1, 2, 4, 8
"""The process is given these multiples of what was reckoned, one after another, until that is enough: around hubs, few
vertices are matched in each level, so there are more levels and larger ones. 1.8 was the most that was seen."""

MOST_WEIGHT: Final = 1 << 44
"""METIS is given weights whose sum is at most about this: it reckons with some of them in single precision."""

FEW: Final = 4
"""METIS is not asked for a graph with fewer than this many vertices for each part: it makes no good parts of one vertex
or two."""


def multilevel_bytes(n_vertices: int, n_slots: int, k: int) -> int:
    """Bytes that `multilevel` takes here and in the other process."""
    here = 40 * n_vertices + 32 * n_slots
    return PROCESS_BYTES + (VERTEX_BYTES * n_vertices) + SLOT_BYTES * n_slots + PART_BYTES * k + here


def multilevel(
    buckets: Buckets,
    there: BoolArray,
    vertex_weight: UnitArray,
    k: int,
    thousandths: int,
    seed: int,
    control: Control,
    room: Room,
) -> VertexArray | None:
    """int32[n]: the parts, below k, of the vertices that are ``there``, bool[n], balanced to about so many
    ``thousandths``; the numbers of others mean nothing. Returns None where k is 1, no vertices are linked or there are
    too few of them. The same input has the same output. The caller has asked for `multilevel_bytes`; ``room`` is asked
    for what it takes beyond these. Raises `Cancelled` within 20 ms of a cancel, `OutOfMemory`."""
    offsets, head, weight, vertices = compressed(buckets, there)
    if k == 1 or not len(head) or len(vertices) < FEW * k:
        return None
    columns = offsets, head, scaled(weight), scaled(vertex_weight[vertices], least=0)
    first = json.dumps([len(vertices), len(head), k, max(1, min(thousandths, 1000)), seed]).encode() + b"\n"
    reckoned = multilevel_bytes(len(vertices), len(head), k) - PROCESS_BYTES
    data = b"".join([first, *(column.tobytes() for column in columns)])
    for multiple in MULTIPLES:
        beyond = Footprint((multiple - 1) * reckoned)
        room(beyond)
        try:
            answer, returncode = run(PROCESS, data, multiple * reckoned + SLACK_BYTES, control)
        finally:
            room(Footprint() - beyond)
        status, _, parts = answer.partition(b"\n")
        if not _wants_memory(status, returncode):
            break
    found = np.frombuffer(parts, np.int64) if status == b"OK" and len(parts) == 8 * len(vertices) else None
    if found is None or found.min() < 0 or found.max() >= k:
        raise _refusal(status, returncode)
    part = np.zeros(len(there), np.int32)
    part[vertices] = found
    return part


def scaled(weight: UnitArray, least: int = 1) -> NDArray[np.int64]:
    """int64[j]: the weights shifted right by as few bits as leave a sum of at most about `MOST_WEIGHT`; each is at
    least ``least``."""
    total = float(weight.sum(dtype=np.float64))
    if total <= MOST_WEIGHT:
        return weight
    shift = int(np.ceil(np.log2(total / MOST_WEIGHT)))
    fewer: NDArray[np.int64] = np.maximum(weight >> shift, least)
    return fewer


def _wants_memory(status: bytes, returncode: int) -> bool:
    return status == b"NO_MEMORY" or returncode in (-9, -6)


def _refusal(status: bytes, returncode: int) -> Exception:
    if _wants_memory(status, returncode):
        return OutOfMemory("the partition took more memory than there is for it")
    return RuntimeError(f"the partitioner ended with {returncode}: {status[:100].decode('ascii', 'replace')}")
