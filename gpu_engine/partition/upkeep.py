"""When a partition that is kept is refined at all borders, compared with a new one, or replaced by a new one.

A *new* partition is one that is made from nothing, without the one at hand. The measure is the share of the weight of
all edges that is cut, and not the cut itself, because the cut of a graph that grows has to grow as well.
"""

from typing import Final

MOST_AT_ONCE: Final = 0.05
"""A new partition is made if more than this share of the links has changed since the last answer."""

MOST_IN_ALL: Final = 0.5
"""A new partition is made if more than this share of the links has changed since the partition was made. The cut of a
new one is clearly smaller then; benchmarks/partition.py measures this share and `MOST_AT_ONCE`."""

LOOSE: Final = 0.025
"""All borders are refined if the share that is cut has grown by this fraction since they were refined last."""

WORSE: Final = 0.04
"""The partition is compared with a new one if the share that is cut has grown by this fraction, although borders were
refined: no refinement finds parts that lie elsewhere altogether."""
MOST_WORSE: Final = 0.08
"""Each comparison that was in vain doubles the fraction for the next one, up to this bound."""

CLEARLY: Final = 0.01
"""A comparison was in vain if the new partition has reduced the cut by no more than this fraction."""

UNTRIED: Final = 0.25
"""The partition is compared with a new one if this share of the links has changed since the last comparison."""

THOROUGH: Final = 0.15
"""All borders are refined if this share of the links has changed since they were refined last."""

SOME: Final = 0.01
"""A cut that has grown leads to a refinement, or to a comparison, only after this share of the links has changed since
the last one."""

FEW: Final = 16
"""The shares above stand for no fewer links than this."""


class Upkeep:
    """The changes of one partition since it was made, refined and compared, and the shares of all weight that it cut
    then. Shares of links are of those that there were when the partition was made."""

    def __init__(self) -> None:
        self.begin(0, 0, 0)

    def begin(self, n_links: int, weight: int, cut: int) -> None:
        """Note that a new partition was made; ``weight`` is that of all edges, ``cut`` of those between parts."""
        self._n_links, self._weight, self._may_grow = n_links, weight, WORSE
        self._changed_in_all = self._unseen = self._untried = 0
        self._least = self._looked = self._share(cut)

    def change(self, n_edges: int, n_vertices: int) -> bool:
        """Count edges and vertices that have changed; returns whether a new partition has to be made."""
        self._changed_in_all += n_edges
        self._unseen += n_edges
        self._untried += n_edges + n_vertices
        at_once, in_all = (max(FEW, share * self._n_links) for share in (MOST_AT_ONCE, MOST_IN_ALL))
        return n_edges > at_once or self._changed_in_all > in_all

    def weigh(self, more: int) -> None:
        """Note that the weight of all edges together has risen by ``more``, which may be negative."""
        self._weight += more

    @property
    def is_due(self) -> bool:
        """Whether all borders are to be refined, whatever the cut is."""
        return self._unseen > THOROUGH * self._n_links

    def has_grown(self, cut: int) -> bool:
        """Whether all borders are to be refined because this ``cut`` is too large."""
        return self._share(cut) > (1 + LOOSE) * self._looked and self._unseen > self._some

    def looked(self, cut: int) -> None:
        """Note that all borders were refined, which has left this ``cut``."""
        self._unseen, self._looked = 0, self._share(cut)

    def wants_trial(self, cut: int) -> bool:
        """Whether the partition, with this ``cut``, is to be compared with a new one."""
        grown = self._share(cut) > (1 + self._may_grow) * self._least
        return (grown and self._untried > self._some) or self._untried > max(FEW, UNTRIED * self._n_links)

    def tried(self, before: int, cut: int) -> None:
        """Note a comparison with a new partition: the cut ``before`` it, and the ``cut`` of the partition that was
        kept."""
        if cut > (1 - CLEARLY) * before:
            self._may_grow = min(2 * self._may_grow, MOST_WORSE)
        self._untried, self._least = 0, self._share(cut)

    def replaced(self, cut: int) -> None:
        """Note that a comparison has ended with the new partition, which has this ``cut``."""
        self._changed_in_all = 0
        self.looked(cut)

    def settle(self, cut: int) -> None:
        """Note the ``cut`` after the partition was brought up to date."""
        share = self._share(cut)
        self._least, self._looked = min(self._least, share), min(self._looked, share)

    @property
    def _some(self) -> float:
        """The number of changes that `SOME` stands for."""
        return max(FEW, SOME * self._n_links)

    def _share(self, cut: int) -> float:
        return cut / max(1, self._weight)
