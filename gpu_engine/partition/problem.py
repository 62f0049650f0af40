"""What is asked of a partition, and what vertices and edges weigh."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpu_engine.errors import InvalidNetwork
from gpu_engine.networks.network import Network
from gpu_engine.types import INFINITE, NO_ARC

Weights = Literal["capacity", "one"]
"""What an edge weighs: its capacity in units, which is 0 while it is closed; or 1."""


@dataclass(frozen=True, slots=True)
class Question:
    """Asks for a partition into ``k`` parts that weigh at most ``(1 + epsilon) / k`` of all vertices each."""

    k: int
    epsilon: Fraction
    weights: Weights = "capacity"
    seed: int = 0


def limit_of(total: int, k: int, epsilon: Fraction) -> int:
    """What a part may weigh at most: ``(1 + epsilon) total / k`` in whole units, but never less than equal parts
    take."""
    return max(int((1 + epsilon) * total / k), -(-total // k))


def edge_weights(network: Network, weights: Weights) -> NDArray[np.integer]:
    """What each edge weighs: int64[m] for capacities, else int8[m] of ones and zeros. An edge that was deleted weighs
    nothing. The column may be the network's own, and must not be changed. Raises `InvalidNetwork` for capacities
    without a limit. O(m)."""
    if weights == "one":
        if len(network.deleted):
            return (~network.deleted).view(np.int8)
        return np.ones(network.n_edges, np.int8)
    if network.n_infinite:
        rows = np.flatnonzero((network.capacity == INFINITE) & (network.edge_arc != NO_ARC))
        if len(rows):
            raise InvalidNetwork(
                "an edge without a limit has no weight: give it a capacity, or let each edge weigh 1",
                field="/weights",
                edges=network.edge_ids.of(rows[:10]),
            )
    return network.capacity


def edge_weight_bytes(n_edges: int, weights: Weights) -> int:
    """Bytes that the column of `edge_weights` takes, or a copy of it."""
    return n_edges * (1 if weights == "one" else 8)
