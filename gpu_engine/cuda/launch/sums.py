"""What a proof has added up of the edges, kept so that the next proof need not read them again."""

import secrets
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from gpu_engine.cuda.launch.arrays import as_struct

_SEEDS: Final = np.dtype([("vertex", "u8"), ("link", "u8")])
"""See `Seeds` in weights.cuh."""

_NO_SEEDS: Final = as_struct(np.zeros((), _SEEDS))


@dataclass(frozen=True, slots=True, eq=False)
class EdgeSums:
    """The capacities of all edges times the random weights of their ends and links, added up modulo 2**64.

    An update adds its share, which its kernel finds on the way, so the sum is that of the capacities of now. The seeds
    stay with the sum. They are secret, so that a later fault cannot depend on them.
    """

    seeds: NDArray[np.void]
    """The seeds of the weights, as an argument of a kernel."""
    total: int = 0

    @classmethod
    def drawn(cls) -> Self:
        """No edges yet, under seeds that nobody has seen."""
        return cls(as_struct(np.frombuffer(secrets.token_bytes(_SEEDS.itemsize), _SEEDS)[0]))

    def plus(self, share: int) -> Self:
        return replace(self, total=(self.total + share) % (1 << 64))


def seeds_of(sums: EdgeSums | None) -> Any:
    """The seeds for a kernel that adds an update's share up; any will do if no sum is kept."""
    return sums.seeds if sums else _NO_SEEDS
