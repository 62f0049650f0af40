"""What histories must have done, so that finding nothing wrong with them shows something."""

from collections.abc import Mapping
from typing import Final

from tests.faults.questions import KINDS

ENOUGH: Final = 60
"""So many histories do each of `wanted` several times."""

COUNTED: Final = (
    "asked again",
    "cancels accepted",
    "edges deleted",
    "edges inserted",
    "edges inserted with a lower bound",
    "edges there again",
    "events followed",
    "jobs",
    "large",
    "lower bounds changed",
    "vertices deleted",
    "vertices inserted",
    "vertices inserted with a capacity",
    "vertices inserted with coordinates",
    "vertices there again",
)
"""Counts of the checker, beside the kinds of questions."""


def wanted() -> list[str]:
    """The counts that must not be zero: every kind of question acknowledged, and `COUNTED`."""
    return [*(f"acknowledged {kind}" for kind in sorted({kind.partition(" ")[0] for kind in KINDS})), *COUNTED]


def never_done(counts: Mapping[str, int]) -> list[str]:
    """What none of the histories did, by the sums of their counts."""
    return [name for name in wanted() if not counts.get(name)]
