"""``python -m tests.faults.soak --minutes 30``: fault histories without end, and what they leave behind.

The faults are those that let processes live, so that the memory of each can be followed; every history is checked
and its graphs are deleted. Once warm, memory must be flat and no key may stay that does not expire.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.results import Results
from tests.faults.house import House
from tests.faults.runner import Outcome, run_history, summary, total

SOFT: Final = (
    "pause_worker",
    "pause_api",
    "pause_redis",
    "fill_memory",
    "fill_disk",
    "drop_connections",
    "cut_answers",
    "slow_connections",
    "far_redis",
)
ROWS: Final = 12
JOB_TTL_S: Final = 20
FLAT: Final = 0.05
SPARE_KEYS: Final = 4
"""Replies of a process and the like, made once."""


@dataclass
class Sample:
    at_s: float
    rss_mib: dict[str, float]
    keys: int
    lasting: Counter[str]
    """Keys that never expire, by kind."""


def take(house: House, began: float) -> Sample:
    rss = {name: _rss_mib(process.pid) for name, process in house.processes.items()}
    client: Any = house.redis
    lasting: Counter[str] = Counter()
    keys = list(client.scan_iter(count=1000))
    pipe = client.pipeline(transaction=False)
    for key in keys:
        pipe.ttl(key)
    for key, ttl in zip(keys, pipe.execute(), strict=True):
        lasting[key.decode().split(":")[1]] += ttl == -1
    return Sample(time.monotonic() - began, rss, len(keys), +lasting)


def _rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def _row(sample: Sample) -> dict[str, Any]:
    rss = {name: round(mib, 1) for name, mib in sample.rss_mib.items()}
    return {"at_s": round(sample.at_s), "rss_mib": rss, "keys": sample.keys, "lasting_keys": sample.lasting.total()}


def _delete(house: House, outcome: Outcome) -> None:
    with httpx.Client(base_url=house.urls[0], trust_env=False, timeout=30) as http:
        for graph in {op.graph for op in outcome.history.ops}:
            http.delete(f"/v1/graphs/{graph}")


def soak(house: House, minutes: float, first_seed: int) -> tuple[list[Sample], list[Outcome]]:
    house.wait_ready()
    began = time.monotonic()
    every_s = 60 * minutes / ROWS
    samples, outcomes = [take(house, began)], []
    names = list(samples[0].rss_mib)
    print("   s  histories   keys  lasting  " + "  ".join(f"{name:>6} MiB" for name in names), flush=True)
    for seed in range(first_seed, first_seed + 1_000_000):
        rng = random.Random(f"{seed} soak")
        outcome = run_history(house, seed, rng.choices(SOFT, k=rng.randint(1, 2)))
        _delete(house, outcome)
        outcomes.append(outcome)
        for text in outcome.verdict.faults[:5]:
            print(f"seed {seed}: {text}")
        if time.monotonic() - began > every_s * len(samples):
            samples.append(take(house, began))
            last = samples[-1]
            rss = "  ".join(f"{last.rss_mib[name]:>10.1f}" for name in names)
            print(f"{last.at_s:4.0f}  {len(outcomes):9}  {last.keys:5}  {last.lasting.total():7}  {rss}", flush=True)
            if len(samples) > ROWS:
                return samples, outcomes
    raise AssertionError("more histories than numbers")


def growth(samples: list[Sample]) -> list[str]:
    """What has grown between the middle third and the last, beyond the bounds. Printed as well."""
    third = len(samples) // 3
    middle, end = samples[third : 2 * third], samples[2 * third :]
    found = []
    for name in samples[0].rss_mib:
        before = sum(sample.rss_mib[name] for sample in middle) / len(middle)
        after = sum(sample.rss_mib[name] for sample in end) / len(end)
        print(f"{name}: {before:.1f} -> {after:.1f} MiB, {100 * (after / before - 1):+.1f} %")
        if after > (1 + FLAT) * before:
            found.append(name)
    more = end[-1].lasting - middle[0].lasting
    print(f"lasting keys: {dict(end[-1].lasting)}, more than before: {dict(more)}")
    return found + [f"{kind} keys" for kind, count in more.items() if count > SPARE_KEYS]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a JSON file for the samples and counts")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        house = House(Path(folder), job_ttl_s=JOB_TTL_S)
        try:
            samples, outcomes = soak(house, options.minutes, options.seed)
        finally:
            house.close()
    for name, counts in total(outcomes).items():
        print(f"{name}: {', '.join(f'{key} {count}' for key, count in sorted(counts.items())) or 'none'}")
    grown = growth(samples)
    if options.out is not None:
        results = Results("soak", {"minutes": options.minutes, "seed": options.seed}, options.out)
        results.extend([_row(sample) for sample in samples] + [summary(outcomes) | {"grown": grown}])
    print(f"grown: {', '.join(grown) or 'nothing'}")
    failed = any(outcome.verdict.faults for outcome in outcomes)
    return 1 if grown or failed else 0


if __name__ == "__main__":
    sys.exit(main())
