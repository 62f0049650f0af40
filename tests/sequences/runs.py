"""Runs of updates and questions, one for each seed."""

import tempfile
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import httpx

from benchmarks.results import Row
from tests.sequences.sequence import Run, Wrong
from tests.sequences.studies import QUESTIONS
from tests.sequences.updates import UPDATES, load
from tests.serving import serving

LENGTH: Final = (4, 14)
"""Of a sequence, at least and at most."""
IN_A_ROW: Final = 100
GRAPHS: Final = 5
"""Of so many names: each is loaded again and again."""


def run_one(http: httpx.Client, name: str, seed: int) -> int:
    """Load the graph of this name anew, and go through a sequence; how many requests that took. Raises `Wrong`."""
    run = Run(http, name, seed)
    load(run)
    for _ in range(run.rng.randint(*LENGTH)):
        run.rng.choice(UPDATES + QUESTIONS)(run)
    return len(run.said)


def run(cases: int, seed: int) -> Iterator[Row]:
    """About so many requests to a service of its own: a row for each `IN_A_ROW` sequences, and one that went wrong is
    printed."""
    done = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headrace-sequences-")))
        service = stack.enter_context(serving(folder / "data", folder / "log"))
        while done < cases:
            row: Row = {"what": "sequences", "seed": seed, "cases": 0, "failed": 0}
            for each in range(seed, seed + IN_A_ROW):
                try:
                    row["cases"] += run_one(service.http, f"g{each % GRAPHS}", each)
                except Wrong:
                    traceback.print_exc()
                    row["failed"] += 1
            yield row
            done, seed = done + row["cases"] + 1, seed + IN_A_ROW
