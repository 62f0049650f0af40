"""Memory of the CPU engine at rest, one process for each instance.

``engine_bytes_per_arc`` is `Engine.nbytes`, network and one solved flow state. ``scratch_bytes_per_arc`` is
what a solve with its proof takes beside that, by `gpu_engine.footprint`. ``resident_bytes_per_arc`` is the
growth of the process's resident set from before the edges are drawn until they are freed again and the state is
solved: it includes what the engine does not count (scratch memory, the allocator's leftovers). ``peak_bytes_per_arc``
is the highest it ever stood, drawing the edges included. Linux only.
"""

import gc
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.answers import check_certificate
from benchmarks.cold import describe, open_engine, warm_up
from benchmarks.instances import Instance
from benchmarks.results import Row
from gpu_engine.engine import Engine
from gpu_engine.networks.edgelist import EdgeList

MMAP_THRESHOLD_BYTES = 1 << 16
"""Arrays above it go back to the system when they are freed, so that the resident set says what is held."""


def measure(instance: Instance, real: Path | None) -> list[Row]:
    """One row, measured in a fresh process; none if the instance's file is absent."""
    os.environ["MALLOC_MMAP_THRESHOLD_"] = str(MMAP_THRESHOLD_BYTES)
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        row = pool.submit(measure_here, instance, real).result()
    return [] if row is None else [row]


def measure_here(instance: Instance, real: Path | None) -> Row | None:
    """The row, measured in this process."""
    warm_up()
    before = resident_bytes("VmRSS")
    edges = instance.load(real)
    if edges is None:
        return None
    row = describe(instance, edges)
    engine = solve(edges)
    del edges
    gc.collect()
    arcs = engine.network.n_arcs
    return row | {
        "arcs": arcs,
        "engine_bytes": engine.nbytes,
        "engine_bytes_per_arc": engine.nbytes / arcs,
        "scratch_bytes_per_arc": engine.needs.scratch.host / arcs,
        "resident_bytes_per_arc": (resident_bytes("VmRSS") - before) / arcs,
        "peak_bytes_per_arc": (resident_bytes("VmHWM") - before) / arcs,
    }


def solve(edges: EdgeList) -> Engine:
    """An engine with one solved flow state, its certificate checked."""
    engine, state = open_engine(edges)
    report = engine.solve(state)
    check_certificate(engine.certificate(state), report.value)
    return engine


def resident_bytes(field: str) -> int:
    """``VmRSS`` (now) or ``VmHWM`` (the most so far) of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(field + ":"))
    return int(kilobytes) * 1024
