"""When a flow is repaired and when it is solved from zero, learned from how long either took."""

from dataclasses import dataclass, field
from typing import Final

MANY_BROKEN: Final = 100
"""Fewer broken ends than this count as few, unless an engine says otherwise (`Patience.least`)."""
SPARSE_DEGREE: Final = 16
"""A network with fewer arcs than this for each vertex counts as sparse."""
WEIGHT: Final = 0.25
"""The weight of the latest repair in the moving mean of the repairs of its size."""

WORSE: Final = 1.1
"""Repairs of a size are not tried while their mean time is above this multiple of a cold solve's time."""

TRIFLE_MS: Final = 1.0
"""Few broken ends are repaired even if the mean time is above that of a cold solve by less than this: other work on the
machine delays a solve by as much."""

MUCH_WORSE: Final = 1.5
"""A mean time above this multiple of a cold solve's time is tried again after `RETRY_LATE` refusals, else after
`RETRY_SOON`."""
RETRY_SOON: Final = 4
RETRY_LATE: Final = 32


@dataclass(slots=True)
class Patience:
    """The times of one flow state's solves: of cold ones, and of repairs by the size of what was to be repaired.

    The size is the number of broken ends (`gpu_engine.incremental`), in powers of two. A mean decides and not the last
    repair, because repairs of one size differ by a factor of five and more.
    """

    least: int = MANY_BROKEN
    """Fewer broken ends than this are repaired until repairs of their size have proven to be slower by `TRIFLE_MS`."""
    slow_from: int = 1 << 62
    """Broken ends from which on a repair that nobody has tried yet is expected to be slower than a cold solve."""
    cold_ms: float = float("inf")
    """The time of the last cold solve, in ms."""
    _means: dict[int, float] = field(default_factory=dict)
    """Bits of the number of broken ends -> mean time of repairs in ms."""
    _refused: int = 0

    def start_with(self, n_vertices: int, n_arcs: int) -> None:
        """Set a first guess from the counts: many small repairs cost more than one cold solve in sparse networks, where
        excess travels far."""
        if n_arcs < SPARSE_DEGREE * n_vertices:
            self.slow_from = max(self.least, n_vertices // 200)

    def allows(self, n_broken: int) -> bool:
        """Whether a state with so many broken ends should be repaired, and not be solved from zero. Now and then a
        repair is allowed that is expected to be slower."""
        expected_ms = self._expected_ms(n_broken)
        if n_broken < self.least:
            is_new = n_broken.bit_length() not in self._means
            if is_new or expected_ms - self.cold_ms < TRIFLE_MS:
                return True
        if expected_ms <= WORSE * self.cold_ms:
            return True
        self._refused += 1
        return self._refused % (RETRY_SOON if expected_ms < MUCH_WORSE * self.cold_ms else RETRY_LATE) == 0

    def learn(self, n_broken: int, repair_ms: float) -> None:
        """A repair of so many broken ends took so long, or was given up.

        One counts for at most twice a cold solve, so that few good ones outweigh a very bad one.
        """
        before = self._expected_ms(n_broken)
        self._means[n_broken.bit_length()] = before + WEIGHT * (min(repair_ms, 2 * self.cold_ms) - before)

    def _expected_ms(self, n_broken: int) -> float:
        """The mean of this size; of a size that is new, what fewer broken ends took, if it is more than the guess."""
        size = n_broken.bit_length()
        if size in self._means:
            return self._means[size]
        guess = (2 if n_broken >= self.slow_from else 0.5) * self.cold_ms
        return max([guess, *(mean for smaller, mean in self._means.items() if smaller < size)])
