"""``python -m tests.faults.keyed --patches 100000``: keyed updates without end, and what they leave behind.

`headrace serve` gets PATCHes from several callers, each under an Idempotency-Key of its own; some are sent twice, and
must get the first answer again. An answer and its key are kept for `HEADRACE_JOB_TTL_S`, here a minute, so that after
it as many go as come. A worker remembers the last 10,000 keys of each graph for longer, with 1.7 kB each: from then on
the memory of each process and of Redis must be flat. At the end each graph must be what its updates make of it, and
have as many versions.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.results import Results, Row
from gpu_engine.formats import write_npz
from gpu_engine.generators import grid
from service.settings import Settings
from service.store.connection import connect
from service.worker.graph import MAX_KNOWN
from tests.serving import Service, serving

JOB_TTL_S: Final = 60
CALLERS: Final = 8
SIDE: Final = 40
ROWS_EACH: Final = 3
REPEATED: Final = 0.02
SAMPLES: Final = 24
FLAT: Final = 0.05
SPARE_MIB: Final = 2.0
"""A process may grow by this, or by `FLAT` of what it has, if that is more."""


class Caller:
    """One caller with a graph of its own, and what that graph must be."""

    def __init__(self, url: str, number: int, seed: int) -> None:
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=60)
        self.path = f"/v1/graphs/g{number}"
        self.random = random.Random(f"{seed} {number}")
        edges = grid(rows=SIDE, columns=SIDE, seed=seed + number)
        self.changeable = [edge for edge, capacity in enumerate(edges.capacity.tolist()) if 0 < capacity < 2**40]
        self.capacity = edges.capacity.tolist()
        self.version = 1
        self.sent = self.repeated = 0
        headers = {"Content-Type": "application/x-npz"}
        self.http.put(self.path, content=write_npz(edges), headers=headers).raise_for_status()

    def patch(self) -> None:
        """One update, twice if it is its turn. Raises AssertionError over an answer that is not right."""
        chosen = self.random.sample(self.changeable, ROWS_EACH)
        amounts = [self.random.randint(1, 10_000) for _ in chosen]
        body, key = {"edges": chosen, "set": amounts}, {"Idempotency-Key": uuid.uuid4().hex}
        answer = self._answer(body, key)
        self.version += 1
        assert answer["version"] == self.version, (answer["version"], self.version)
        for edge, amount in zip(chosen, amounts, strict=True):
            self.capacity[edge] = amount
        self.sent += 1
        if self.random.random() < REPEATED:
            assert self._answer(body, key) == answer
            self.repeated += 1

    def check(self) -> None:
        page = self.http.get(f"{self.path}/capacities", params={"limit": len(self.capacity)}).json()
        assert page["version"] == self.version
        given = dict(zip(self.changeable, (page["capacity"][edge] for edge in self.changeable), strict=True))
        assert given == {edge: self.capacity[edge] for edge in self.changeable}

    def _answer(self, body: Row, headers: dict[str, str]) -> Row:
        while (answer := self.http.patch(f"{self.path}/capacities", json=body, headers=headers)).status_code == 429:
            time.sleep(float(answer.headers["retry-after"]))
        assert answer.status_code == 200, answer.text
        found: Row = answer.json()
        return found


def sample(service: Service, client: Any, began: float, sent: int) -> Row:
    rss = {f"{role}_mib": _rss_mib(pid) for role, pid in service.children().items()}
    used_mib = round(client.info("memory")["used_memory"] / 2**20, 2)
    return (
        {"at_s": round(time.monotonic() - began, 1), "patches": sent, "redis_used_mib": used_mib}
        | rss
        | {"keys": client.dbsize()}
    )


def _rss_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS")), 1)


def growth(rows: list[Row]) -> list[str]:
    """What has grown between the two halves of the time in which as many keys went as came. Printed as well."""
    steady = [row for row in rows if row["at_s"] > 1.2 * JOB_TTL_S and row["patches"] > CALLERS * MAX_KNOWN]
    if len(steady) < 2:
        return ["too few updates to tell"]
    half = len(steady) // 2
    found = []
    for name in (name for name in rows[0] if name.endswith("_mib")):
        before, after = (sum(row[name] for row in part) / len(part) for part in (steady[:half], steady[half:]))
        print(f"{name}: {before:.1f} -> {after:.1f}, {100 * (after / before - 1):+.1f} %")
        if after - before > max(SPARE_MIB, FLAT * before):
            found.append(name)
    return found


def run(service: Service, client: Any, patches: int, seed: int, results: Results) -> None:
    callers = [Caller(service.url, number, seed) for number in range(CALLERS)]
    began, stop = time.monotonic(), threading.Event()

    def work(caller: Caller) -> None:
        while caller.sent < patches // CALLERS and not stop.is_set():
            caller.patch()

    with ThreadPoolExecutor(CALLERS) as pool:
        works = [pool.submit(work, caller) for caller in callers]
        try:
            while not all(work.done() for work in works):
                sent = sum(caller.sent for caller in callers)
                if sent >= len(results.rows) * patches / SAMPLES:
                    results.extend([sample(service, client, began, sent)])
                    print(results.rows[-1], flush=True)
                time.sleep(0.2)
        finally:
            stop.set()
        for done in works:
            done.result()
    for caller in callers:
        caller.check()
    results.extend([sample(service, client, began, sum(caller.sent for caller in callers))])
    print(f"{sum(caller.sent for caller in callers)} updates, {sum(caller.repeated for caller in callers)} sent twice")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.keyed", description=__doc__)
    parser.add_argument("--patches", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True, help="a JSON file for the samples")
    options = parser.parse_args()
    settings = {"patches": options.patches, "seed": options.seed, "job_ttl_s": JOB_TTL_S, "callers": CALLERS}
    results = Results("keyed", settings, options.out)
    with tempfile.TemporaryDirectory(prefix="keyed-") as name:
        folder = Path(name)
        with serving(folder / "data", folder / "log", {"HEADRACE_JOB_TTL_S": str(JOB_TTL_S)}) as service:
            service.wait_ready()
            client: Any = connect(Settings(data_dir=folder / "data", redis_url=None))
            run(service, client, options.patches, options.seed, results)
            client.close()
    grown = growth(results.rows)
    results.extend([{"grown": grown}])
    print(f"grown: {', '.join(grown) or 'nothing'}")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
