"""Fuzzing by command: ``python -m tests.fuzz formats|api|sequences [--cases N] [--seed S]``; ``make fuzz`` runs all.

`formats` needs nothing but this checkout. `api` starts `headrace serve` with an embedded Redis and lets schemathesis
follow the OpenAPI document and its links; it needs the dependency group `fuzz`. `sequences` starts one as well, and
holds what it answers against a model of its graph (`tests/sequences`). Exit status 0: nothing was found.
With `--out FILE` the counts are kept, one row a round or reader.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from benchmarks.results import Results
from tests.fuzz import api, formats
from tests.sequences import runs

KINDS: Final = {"formats": formats.run, "api": api.run, "sequences": runs.run}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", choices=list(KINDS))
    parser.add_argument("--cases", type=int, default=20_000, help="about so many in all")
    parser.add_argument("--seed", type=int, default=None, help="a run can be repeated with the seed it printed")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"{options.what}: seed {seed}", flush=True)
    results = Results(
        "fuzz", {"what": options.what, "cases": options.cases, "seed": seed}, options.out or Path(os.devnull)
    )
    failed = 0
    for row in KINDS[options.what](options.cases, seed):
        failed += row["failed"]
        print(row, flush=True)
        results.rows.append(row)
        if options.out is not None:
            results.extend([])
    print(f"{options.what}: {sum(row['cases'] for row in results.rows)} cases, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
