"""Scenarios tried on a fork of a flow state that is on a device: there, or on the host as before.

    python -m benchmarks.scenarios [--only device/rmat-18,...] [--real DIR] [--out FILE]

Each scenario gives some edges other capacities, and its value is proven. `overlay` is one after the other on a fork,
and `side_by_side` by four forks at a time, each with a stream and a thread; `trials` is all scenarios on the threads of
the host, which leaves some to overlays (`left`). Milliseconds a scenario, wall clock; `fork_ms` once for all of them.
Values are compared.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from benchmarks import instances
from benchmarks.answers import check
from benchmarks.results import Results, Row
from gpu_engine.control import Control
from gpu_engine.cuda.engine import CudaEngine
from gpu_engine.engine import Fork
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.trials import Changes, Trials
from gpu_engine.types import INFINITE, EdgeArray, UnitArray

T = TypeVar("T")

Scenario = tuple[EdgeArray, UnitArray]

SIZES: Final = (1, 10, 100, 1_000, 10_000)
SCENARIOS: Final = 64
ON_HOST: Final = 4
"""Overlays that are tried on the host: each copies the state."""
FORKS: Final = 4
INSTANCES: Final = "device/osm-heidelberg,device/road,device/genrmf-long,device/vision,device/rmat-18,device/rmat-20"


def scenarios(network: Network, size: int) -> list[Scenario]:
    """Each edge of a scenario gets up to twice its capacity."""
    rng, finite = np.random.default_rng(size), np.flatnonzero(network.capacity != INFINITE)
    found = []
    for _ in range(SCENARIOS):
        rows = rng.choice(finite, min(size, len(finite)), replace=False)
        found.append((rows, (network.capacity[rows] * rng.uniform(0, 2, len(rows))).astype(np.int64)))
    return found


def overlaid(fork: Fork, some: Sequence[Scenario]) -> list[int]:
    """The values, each proven."""
    values = []
    for rows, capacity in some:
        state = fork.overlay(rows, capacity)
        value = fork.engine.solve(state).value
        check(fork.engine.certificate(state, complete=False).valid, "no proof")
        values.append(value)
    fork.drop()
    return values


def spent(work: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and the milliseconds it took."""
    began = time.perf_counter()
    found = work()
    return found, 1e3 * (time.perf_counter() - began)


def rows_of(name: str, network: Network, terminals: Terminals, threads: int) -> Iterator[Row]:
    engine = CudaEngine(network)
    state = engine.open(terminals)
    engine.solve(state)
    overlaid(engine.fork(state), scenarios(network, 1)[:2])  # loads the kernels
    on_device, fork_ms = spent(lambda: engine.fork(state))
    on_host, host_fork_ms = spent(lambda: engine.fork(state, on_host=True))
    beside, trials = [engine.fork(state) for _ in range(FORKS)], on_device.trials(threads)
    row: Row = {"instance": name, "arcs": network.n_arcs, "fork_ms": fork_ms, "host_fork_ms": host_fork_ms}
    for size in SIZES:
        some = scenarios(network, size)
        times = row | {"edges": size} | timed(on_device, on_host, beside, trials, some)
        yield {key: round(value, 3) if isinstance(value, float) else value for key, value in times.items()}


def timed(on_device: Fork, on_host: Fork, beside: list[Fork], trials: Sequence[Trials], some: list[Scenario]) -> Row:
    """The same scenarios tried each way."""
    values, overlay_ms = spent(lambda: overlaid(on_device, some))
    with ThreadPoolExecutor(FORKS) as pool:
        parts = [some[i::FORKS] for i in range(FORKS)]
        answers, beside_ms = spent(lambda: list(pool.map(overlaid, beside, parts)))
    check([answers[i % FORKS][i // FORKS] for i in range(SCENARIOS)] == values, "side by side they differ")
    first, host_ms = spent(lambda: overlaid(on_host, some[:ON_HOST]))
    check(first == values[:ON_HOST], "host and device disagree")
    threads = len(trials)
    with ThreadPoolExecutor(threads) as pool:
        changes = [Changes.of(some[i::threads]) for i in range(threads)]
        tried, trials_ms = spent(lambda: list(pool.map(lambda one, few: one.run(few, Control()), trials, changes)))
    for i, each in enumerate(tried):
        check((each.value[each.done] == np.array(values[i::threads])[each.done]).all(), "trials disagree")
    return {
        "overlay_ms": overlay_ms / SCENARIOS,
        "side_by_side_ms": beside_ms / SCENARIOS,
        "host_overlay_ms": host_ms / ON_HOST,
        "trials_ms": trials_ms / SCENARIOS,
        "left": sum(int((~each.done).sum()) for each in tried),
    }


def main() -> None:
    top = argparse.ArgumentParser(prog="python -m benchmarks.scenarios", description=__doc__)
    top.add_argument("--only", default=INSTANCES)
    top.add_argument("--real", type=Path)
    top.add_argument("--out", type=Path)
    options = top.parse_args()
    threads = len(os.sched_getaffinity(0))
    results = Results("scenarios", {"scenarios": SCENARIOS, "forks": FORKS, "threads": threads}, options.out)
    for each in options.only.split(","):
        size, _, name = each.partition("/")
        (instance,) = instances.choose(size, [name])
        edges = instance.load(instances.real_directory(options.real))
        if edges is not None:
            for row in rows_of(instance.name, Network(edges), Terminals.of([edges.source], [edges.sink]), threads):
                results.extend([row])
                print(row, flush=True)


if __name__ == "__main__":
    main()
