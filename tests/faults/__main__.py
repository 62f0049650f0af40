"""``python -m tests.faults --seeds 0:1000``: seeded fault histories, each checked; exit status 1 if one fails,
or if enough of them never did some kind of what is to be tried."""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.results import Results
from tests.faults.house import House
from tests.faults.injector import FAULTS
from tests.faults.runner import Outcome, run_history, save_failure, summary, total
from tests.faults.variety import ENOUGH, never_done

HISTORIES_PER_HOUSE = 100
"""Then the service starts on an empty directory again, so that the append-only file stays short."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seeds", default="0:10", help="FIRST:END, END not included")
    parser.add_argument("--faults", help=f"these instead of the seed's own, with commas: {', '.join(FAULTS)}")
    parser.add_argument("--beside", type=Path, help="a checkout of another release, of which half of the processes are")
    parser.add_argument("--failures", type=Path, default=Path("fault-failures"), help="where failing histories go")
    parser.add_argument("--out", type=Path, help="a JSON file for the counts")
    options = parser.parse_args()
    first, _, end = options.seeds.partition(":")
    seeds = range(int(first), int(end or int(first) + 1))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and the service ends with us
    began = time.monotonic()
    outcomes: list[Outcome] = []
    for start in range(seeds.start, seeds.stop, HISTORIES_PER_HOUSE):
        part = seeds[start - seeds.start :][:HISTORIES_PER_HOUSE]
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            house = House(Path(folder), options.beside)
            try:
                for seed in part:
                    try:
                        outcomes.append(run_history(house, seed, options.faults and options.faults.split(",")))
                    except BaseException:
                        _keep(house, options.failures / f"seed-{seed}")
                        raise
                    _tell(outcomes[-1], options.faults, options.failures)
                    if outcomes[-1].verdict.faults:
                        _keep(house, options.failures / f"seed-{seed}")
                    outcomes[-1].forget_questions()
            finally:
                house.close()
        if options.out is not None:
            results = Results("faults", {"seeds": options.seeds, "faults": options.faults}, options.out)
            results.extend([summary(outcomes) | {"seconds": round(time.monotonic() - began)}])
    for name, counts in total(outcomes).items():
        print(f"{name}: {', '.join(f'{key} {count}' for key, count in sorted(counts.items())) or 'none'}")
    failed = sum(bool(outcome.verdict.faults) for outcome in outcomes)
    print(f"{len(outcomes)} histories in {time.monotonic() - began:.0f} s, {failed} failed")
    missing = never_done(total(outcomes)["counts"]) if len(outcomes) >= ENOUGH else []
    if missing:
        print(f"never done: {', '.join(missing)}")
    return 1 if failed or missing else 0


def _keep(house: House, path: Path) -> None:
    """The service's log and the append-only file, beside the history."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".log").write_bytes((house.folder / "service.log").read_bytes())
    path.with_suffix(".aof").write_bytes(house.append_only_file.read_bytes())


def _tell(outcome: Outcome, faults: str | None, folder: Path) -> None:
    seed, verdict = outcome.history.seed, outcome.verdict
    print(f"seed {seed}: {outcome.seconds:.1f} s, {' '.join(outcome.history.faults)}", flush=True)
    if verdict.faults:
        for text in verdict.faults[:10]:
            print(f"  {text}")
        again = f" --faults {faults}" if faults else ""
        print(f"  history in {save_failure(outcome, folder)}; again: ", end="")
        print(f"python -m tests.faults --seeds {seed}:{seed + 1}{again}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
