"""The service under attack, and one row of figures for each attack."""

import http.client
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from benchmarks.results import Results, Row
from tests.attacks.control import control
from tests.attacks.memory import using
from tests.attacks.wire import NOTHING, Address, Answer, send
from tests.prober import Watch, watching
from tests.serving import Service, serving

GOALS: Final = {"refused_ms": 100, "grew_mib": 50, "livez_ms": 100, "readyz_ms": 100, "one_edge_ms": 250}
"""At most. A row has those that are asked of it."""
GOODPUT: Final = 0.8
"""At least, of what there is without callers who come back."""

NICENESS: Final = 10
"""Of the attacker, who stands for other machines but shares the cores of the service."""

CORES: Final = 2
FILES: Final = 1024
"""The limit of open files that the service starts with; it raises it itself."""

SETTINGS: Final = {
    "HEADRACE_DEFAULT_WAIT_S": "15",
    "HEADRACE_MAX_WAIT_S": "15",
    "HEADRACE_MEMORY_BUDGET_BYTES": str(4 << 30),
}
"""So that neither a wait nor a graph of the fuzzer's is taken for a fault."""

CITY: Final = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, "inf", 2], "source": 0, "sink": 3}
BREAKS: Final = (
    OSError,
    http.client.HTTPException,
    httpx.HTTPError,
    AssertionError,
    TimeoutError,
    ValueError,
    LookupError,
)


class Attack:
    """What one attack finds out; it fills `row`, and `broken` with what must never be."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.row: Row = {}
        self.broken: list[str] = []
        self._answers: Counter[str] = Counter()
        self._lock = threading.Lock()

    def send(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = NOTHING) -> Answer:
        """The answer is counted; one of 5xx is a fault."""
        answer = send(self.address, method, path, body, headers)
        self.count(answer.status, answer.said)
        return answer

    def count(self, status: int, said: str) -> None:
        with self._lock:
            self._answers[said] += 1
            if status >= 500:
                self.broken.append(f"answered {said}")

    @property
    def status(self) -> str:
        return ", ".join(said if n == 1 else f"{n} x {said}" for said, n in sorted(self._answers.items()))


@dataclass
class House:
    """A service that runs, who watches it, and where figures go."""

    service: Service
    results: Results
    log: Path
    probe_urls: dict[str, str]
    watch: Watch

    @property
    def address(self) -> Address:
        url = self.service.http.base_url
        return url.host, url.port or 80

    @contextmanager
    def attack(self, name: str, *, is_bomb: bool = False) -> Iterator[Attack]:
        """Measure what happens in the block. What it raises is a fault of the service, and the next attack follows."""
        attack, children, load = Attack(self.address), self.service.children(), os.getloadavg()[0]
        began_s, errors = time.monotonic(), self._unexpected_errors()
        with using(children["api"]) as usage:
            try:
                yield attack
            except BREAKS as error:
                attack.broken.append(f"{type(error).__name__}: {error}"[:300])
            ended_s = time.monotonic()
            probes = self.watch.between(began_s, ended_s)
        if (now := self.service.children()) != children:
            attack.broken.append(f"a process was lost: {children} are {now}")
        if more := self._unexpected_errors() - errors:
            attack.broken.append(f"{more} unexpected errors are in the log")
        row: Row = {"attack": name, "status": attack.status, "seconds": round(ended_s - began_s, 3)} | attack.row
        row |= {f"{probe}_ms": round(1e3 * probes[url].worst_s, 1) for probe, url in self.probe_urls.items()}
        failed = sum(probes[url].failed for probe, url in self.probe_urls.items() if probe != "control")
        row |= {"probes": sum(found.count for found in probes.values()), "failed_probes": failed}
        row |= {("grew_mib" if is_bomb else "memory_mib"): round(usage.grew_bytes / 2**20, 1)}
        row |= {"cpu_ms": round(1e3 * usage.cpu_s, 1), "api_ms": round(1e3 * usage.api_s, 1)}
        row |= {"api_waited_ms": round(1e3 * usage.api_waited_s, 1), "load": round(load, 2)}
        if failed:
            attack.broken.append(f"{failed} probes failed")
        self._judge(row, attack.broken)

    def _judge(self, row: Row, broken: list[str]) -> None:
        missed = [name for name, most in GOALS.items() if row.get(name, 0) > most]
        missed += ["goodput"] if row.get("goodput", 1) < GOODPUT else []
        row |= {"missed": missed, "broken": broken}
        self.results.extend([row])
        print(line(row), flush=True)

    def _unexpected_errors(self) -> int:
        return self.log.read_bytes().count(b"unexpected error")


def line(row: Row) -> str:
    """A row of the table."""
    grew = row.get("grew_mib", row.get("memory_mib", 0))
    refused = f"{row['refused_ms']:.0f}" if "refused_ms" in row else ""
    figures = [refused, f"{grew:.0f}", *(f"{row[name]:.0f}" for name in ("livez_ms", "readyz_ms", "control_ms"))]
    figures += [str(row["failed_probes"]), f"{row['cpu_ms']:.0f}"]
    also = [f"{name} {row[name]}" for name in ("one_edge_ms", "goodput", "slowest_ms") if name in row]
    also += [f"missed: {', '.join(row['missed'])}"] if row["missed"] else []
    also += [f"BROKEN: {'; '.join(row['broken'][:3])}"] if row["broken"] else []
    cells = [row["attack"], row["status"][:60], *figures, ", ".join(also)]
    return "| " + " | ".join(cells) + " |"


HEAD: Final = (
    "| attack | answers | refused ms | more MiB | /livez ms | /readyz ms | control ms | failed | CPU ms | |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


@contextmanager
def open_house(folder: Path, results: Results) -> Iterator[House]:
    """`headrace serve` with its own Redis on `CORES` cores, beside whoever attacks it there."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))
    log = folder / "log"
    with serving(folder / "data", log, SETTINGS) as service, control() as control_url:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        service.wait_ready()
        urls = {"livez": f"{service.url}/livez", "readyz": f"{service.url}/readyz", "control": control_url}
        with watching(*urls.values()) as watch:
            os.nice(NICENESS)  # from here on: not the service, and not who watches it
            yield House(service, results, log, urls, watch)
