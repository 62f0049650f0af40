"""Proof of a partition: its cut and the weights of its parts are counted anew from the edges."""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpu_engine.networks.network import Network
from gpu_engine.types import ArcArray, BoolArray, UnitArray, VertexArray


@dataclass(frozen=True, slots=True)
class PartitionProof:
    """The cut and the weights of a partition as they were counted, and how they differ from what was claimed."""

    cut: int
    """The weight of the edges between parts."""
    part_weight: UnitArray
    """int64[k]: the weight of the vertices of each part."""
    n_cut: int
    """The number of edges between parts."""
    n_of_part: UnitArray
    """int64[k]: the number of vertices of each part."""
    failures: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Whether all counts are as claimed."""
        return not self.failures


def prove_partition(
    network: Network,
    edge_weight: NDArray[np.integer],
    vertex_weight: UnitArray,
    part: VertexArray,
    k: int,
    claimed: tuple[int, UnitArray],
) -> PartitionProof:
    """Count the cut and the weights of the parts and compare them with those ``claimed``. ``edge_weight`` int[m] and
    ``vertex_weight`` int64[n] as the question has them, ``part`` int32[n], -1 for vertices that are not there.
    O(n + m).
    """
    gone, place = network.deleted_vertices, (network.edge_arc, network.reverse_arc, network.head)
    if len(part) != network.n_vertices:
        nothing = np.zeros(k, np.int64)
        return PartitionProof(0, nothing, 0, nothing, ("it is not one of these vertices",))
    misplaced, part_weight, n_of_part = _weigh(part, vertex_weight, gone, k)
    failures = [f"{misplaced} vertices have no part"] if misplaced else []
    cut, n_cut = (0, 0) if misplaced else _count(*place, edge_weight, part)
    if not misplaced and cut != claimed[0]:
        failures.append(f"the cut is {cut}, not {claimed[0]}")
    if not np.array_equal(part_weight, claimed[1]):
        failures.append("the parts have other weights")
    return PartitionProof(int(cut), part_weight, int(n_cut), n_of_part, tuple(failures))


@njit(cache=True, nogil=True)
def _weigh(part: VertexArray, weight: UnitArray, gone: BoolArray, k: int) -> tuple[int, UnitArray, UnitArray]:
    total = np.zeros(k, np.int64)
    count = np.zeros(k, np.int64)
    misplaced = 0
    for v in range(len(part)):
        if len(gone) and gone[v]:
            misplaced += part[v] != -1
        elif part[v] < 0 or part[v] >= k:
            misplaced += 1
        else:
            total[part[v]] += weight[v]
            count[part[v]] += 1
    return misplaced, total, count


@njit(cache=True, nogil=True)
def _count(
    edge_arc: ArcArray, reverse_arc: ArcArray, head: VertexArray, weight: NDArray[np.integer], part: VertexArray
) -> tuple[int, int]:
    cut = 0
    count = 0
    for e in range(len(edge_arc)):
        a = edge_arc[e]
        if a >= 0 and weight[e] > 0 and part[head[a]] != part[head[reverse_arc[a]]]:
            cut += weight[e]
            count += 1
    return cut, count
