"""Fuzzing by command: ``python -m tests.fuzz formats|api [--cases N] [--seed S]``; ``make fuzz`` runs both.

`formats` needs nothing but this checkout. `api` starts `headrace serve` with an embedded Redis and lets schemathesis
follow the OpenAPI document and its links; it needs the dependency group `fuzz`. Exit status 0: nothing was found.
"""

import argparse
import os
import sys

from tests.fuzz import api, formats


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("what", choices=["formats", "api"])
    parser.add_argument("--cases", type=int, default=20_000, help="about so many in all")
    parser.add_argument("--seed", type=int, default=None, help="a run can be repeated with the seed it printed")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else int.from_bytes(os.urandom(4), "little")
    print(f"{options.what}: seed {seed}", flush=True)
    run = formats.run if options.what == "formats" else api.run
    return run(options.cases, seed)


if __name__ == "__main__":
    sys.exit(main())
