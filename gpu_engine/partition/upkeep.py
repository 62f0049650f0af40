"""When a partition that is brought up to date is refined as a whole, compared with one from nothing, or made anew.

What tells that the parts should lie otherwise is the share of all weight that is cut: where a graph only grows, a good
cut grows with it.
"""

from typing import Final

MOST_AT_ONCE: Final = 0.05
"""Of the links, how many may have changed since the last answer for it to be brought up to date: see `MOST_IN_ALL`."""

MOST_IN_ALL: Final = 0.5
"""And how many since it was made from nothing. Beyond that one from nothing has a cut that is clearly smaller
(benchmarks/partition.py measures both)."""

LOOSE: Final = 0.025
"""When the share that is cut has grown by so much since all borders were looked at, they are looked at again."""

WORSE: Final = 0.04
MOST_WORSE: Final = 0.08
"""A share that has grown by so much in spite of that may mean that the parts should lie otherwise as a whole, which no
refinement finds: the partition is compared with one from nothing then. If that one is no better, the share may grow by
twice as much until the next comparison, at most by `MOST_WORSE`."""

CLEARLY: Final = 0.01
"""One from nothing that cuts less by no more than this has not helped."""

UNTRIED: Final = 0.25
"""It is compared with one as well when so many of the links have changed since that was done."""

THOROUGH: Final = 0.15
"""When so many have changed since all borders were looked at, they are looked at again as well."""

SOME: Final = 0.01
"""Not again before so many have changed."""

FEW: Final = 16
"""So many may always have changed."""


class Upkeep:
    """How much one partition has changed, and what share of all weight it cut when. Numbers of changes are held against
    how many links there were when it was made."""

    def __init__(self) -> None:
        self.begin(0, 0, 0)

    def begin(self, n_links: int, weight: int, cut: int) -> None:
        """It was made from nothing, of edges that weigh so much together."""
        self._n_links, self._weight, self._may_grow = n_links, weight, WORSE
        self._changed_in_all = self._unseen = self._untried = 0
        self._least = self._looked = self._share(cut)

    def change(self, n_edges: int, n_vertices: int) -> bool:
        """So many have changed; returns whether that is too much to bring it up to date."""
        self._changed_in_all += n_edges
        self._unseen += n_edges
        self._untried += n_edges + n_vertices
        at_once, in_all = (max(FEW, share * self._n_links) for share in (MOST_AT_ONCE, MOST_IN_ALL))
        return n_edges > at_once or self._changed_in_all > in_all

    def weigh(self, more: int) -> None:
        """All edges weigh so much more together."""
        self._weight += more

    @property
    def is_due(self) -> bool:
        """Whether all borders are to be looked at, whatever is cut."""
        return self._unseen > THOROUGH * self._n_links

    def has_grown(self, cut: int) -> bool:
        """Whether they are because so much is cut."""
        return self._share(cut) > (1 + LOOSE) * self._looked and self._unseen > self._some

    def looked(self, cut: int) -> None:
        """All borders have been looked at, and this is cut now."""
        self._unseen, self._looked = 0, self._share(cut)

    def wants_trial(self, cut: int) -> bool:
        """Whether it is to be compared with one from nothing."""
        grown = self._share(cut) > (1 + self._may_grow) * self._least
        return (grown and self._untried > self._some) or self._untried > max(FEW, UNTRIED * self._n_links)

    def tried(self, before: int, cut: int) -> None:
        """It was, cut so much before and cuts this now, whichever of the two was kept."""
        if cut > (1 - CLEARLY) * before:
            self._may_grow = min(2 * self._may_grow, MOST_WORSE)
        self._untried, self._least = 0, self._share(cut)

    def replaced(self, cut: int) -> None:
        """The one from nothing was kept."""
        self._changed_in_all = 0
        self.looked(cut)

    def settle(self, cut: int) -> None:
        """It is up to date, and cuts so much."""
        share = self._share(cut)
        self._least, self._looked = min(self._least, share), min(self._looked, share)

    @property
    def _some(self) -> float:
        """So many changes are enough to do something about a cut that has grown."""
        return max(FEW, SOME * self._n_links)

    def _share(self, cut: int) -> float:
        return cut / max(1, self._weight)
