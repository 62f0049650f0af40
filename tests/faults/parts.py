"""Partitions, checked from what a client is told alone: each vertex in one part, what parts weigh, what is cut."""

from typing import Any, Final

import numpy as np

from tests.faults.model import State

TENTHS: Final = 1
"""By how many tenths of its share a part may be heavier."""

BODY: Final[dict[str, Any]] = {"k": 3, "epsilon": TENTHS / 10, "fields": ["parts", "cut"]}
"""What is asked. Every graph has more vertices, and each weighs 1, so that parts can be equal."""


def partition_faults(body: dict[str, Any], state: State) -> list[str]:
    """What is wrong with an answer about this version."""
    k, there = BODY["k"], [v for v in range(state.edges.n_vertices) if v not in state.values.lost]
    if body["parts"]["vertices"] != there:
        return [f"the vertices are {there}"]
    part = np.full(state.edges.n_vertices, -1, np.int64)
    part[there] = body["parts"]["part"]
    if ((part[there] < 0) | (part[there] >= k)).any():
        return [f"there are {k} parts"]
    weight = np.bincount(part[there], minlength=k).tolist()
    faults = [] if body["part_weight"] == body["n_vertices"] == weight else [f"the parts weigh {weight}"]
    most = max(len(there) * (10 + TENTHS) // (10 * k), -(-len(there) // k))
    if body["limit"] != most or not body["balanced"] or max(weight) > most:
        faults.append(f"a part may weigh {most}")
    effective, ends = state.effective, (np.array(state.edges.tail), np.array(state.edges.head))
    crossing = np.flatnonzero((part[ends[0]] != part[ends[1]]) & (effective > 0))
    cut = int(effective[crossing].sum())
    if (body["value"], body["cut_edges"]) != (cut, len(crossing)):
        faults.append(f"{len(crossing)} edges of {cut} are cut")
    rows = state.values.rows(body["cut"]["edges"])
    if rows.tolist() != crossing.tolist() or body["cut"]["weight"] != effective[crossing].tolist():
        faults.append(f"the edges that are cut are {crossing.tolist()[:50]}")
    return faults if body["certificate"]["valid"] else [*faults, "the proof is said not to hold"]
