"""`headrace demo`: a real road network through the whole service, a kill -9 of the worker included.

How many vehicles per hour can leave 2,000 junctions of Andorra for 12 shelters, and what happens to that when
roads close or get more lanes? Every figure comes over HTTP, through the Python client.
"""

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
from headrace import CannotStart, Client, FlowState, Graph, HeadraceError, Local, MaxFlowResult, PatchResult, local

from service.cli.meter import Meter

Say: TypeAlias = Callable[[str], None]

ROADS = Path(__file__).resolve().parents[2] / "examples" / "osm-andorra.npz"
N_HOMES = 2_000
N_SHELTERS = 12
SEED = 1
N_CLOSED = 3
RETURN_S = 60.0
"""How long a killed worker may be away."""
PAGE = 100_000


class DemoFailed(Exception):
    """Something was not as promised; the text says what."""


@dataclass
class Summary:
    """The rows of the last table."""

    rows: list[str] = field(default_factory=list)

    def add(self, what: str, solved: MaxFlowResult | FlowState, elapsed_s: float) -> None:
        """A solve, the solver's own time, and the time the caller waited."""
        solve_ms = solved.timings_ms.get("solve", 0.0)
        columns = f"{what:22}{solved.value:>12,}{solved.mode or '':>12}{solve_ms:>11.2f}"
        self.rows.append(f"{columns}{elapsed_s * 1e3:>11.1f}")

    def lines(self) -> Iterator[str]:
        yield f"{'':22}{'vehicles/h':>12}{'mode':>12}{'solve, ms':>11}{'HTTP, ms':>11}"
        yield from self.rows


def run(say: Say = print) -> int:
    """Run the demo and tell each step; 0 if all was as promised. Takes a minute the first time, then ten seconds."""
    if not ROADS.is_file():
        say(f"demo failed: {ROADS} is not there; run it from a clone of the repository")
        return 1
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
        log = Path(folder) / "serve.log"
        try:
            start = time.perf_counter()
            say("Starting Redis, a worker and the API. The first start compiles the solver: a minute or two.")
            with _served(Path(folder)) as client:
                say(f"Headrace (API, worker, Redis) is ready on {client.url} after {time.perf_counter() - start:.1f} s")
                _show(client, say)
        except (DemoFailed, HeadraceError, OSError) as error:
            say(f"\ndemo failed: {error}")
            if not isinstance(error, CannotStart):
                say("The last lines of the service's log:")
                for line in _tail(log):
                    say(f"  {line}")
            return 1
    return 0


def _served(folder: Path) -> Local:
    """The service; while it starts for the first time it is shown how far it is."""
    with Meter(sys.stderr) as meter:

        def tell(done: int, of: int, seconds: float) -> None:
            meter.show(done, of, "kernels compiled", seconds)

        settings = {name: value for name, value in os.environ.items() if name.startswith("HEADRACE_")}
        return local(folder, settings=settings, on_compiling=tell)


def _show(client: Client, say: Say) -> None:
    summary = Summary()
    graph = _load(client, say)
    homes, shelters = _places()
    first = _solve(graph, homes, shelters, say, summary)
    patched = _update(graph, first, say, summary)
    value = patched.flow_states[0].value
    _check_cold(client, graph, homes, shelters, value, say, summary)
    _kill_worker(client, say)
    _check_restored(graph, homes, shelters, patched.version, value, say, summary)
    say("\nSummary")
    for line in summary.lines():
        say(f"  {line}")
    say("  Same version and value after kill -9; every certificate valid; warm equals cold.")


def _load(client: Client, say: Say) -> Graph:
    say("\n1. Load the roads of Andorra (OpenStreetMap contributors, ODbL)")
    start = time.perf_counter()
    graph = client.put_graph("andorra", ROADS)
    info = graph.info
    say(f"   {info.n_vertices:,} vertices, {info.n_edges:,} edges in {time.perf_counter() - start:.2f} s,")
    say(f"   resident on {info.worker} ({info.bytes / 2**20:.1f} MiB, engine {info.engine}), version {info.version}")
    return graph


def _places() -> tuple[list[int], list[int]]:
    """Junctions drawn with a fixed seed: shelters where four roads meet, homes at any junction."""
    with np.load(ROADS, allow_pickle=False) as roads:
        tail, head, n_vertices = roads["src"], roads["dst"], int(roads["n"])
        ends = [int(roads["s"]), int(roads["t"])]
    inner = ~np.isin(tail, ends) & ~np.isin(head, ends)
    degree = np.bincount(tail[inner], minlength=n_vertices)
    rng = np.random.default_rng(SEED)
    shelters = rng.choice(np.nonzero(degree >= 4)[0], N_SHELTERS, replace=False)
    homes = rng.choice(np.setdiff1d(np.nonzero(degree >= 2)[0], shelters), N_HOMES, replace=False)
    return homes.tolist(), shelters.tolist()


def _solve(graph: Graph, homes: list[int], shelters: list[int], say: Say, summary: Summary) -> MaxFlowResult:
    say(f"\n2. How many vehicles per hour get from {N_HOMES:,} junctions to {N_SHELTERS} shelters?")
    start = time.perf_counter()
    first = graph.max_flow(homes, shelters, fields=["value", "cut"])
    summary.add("first solve, with cut", first, time.perf_counter() - start)
    start = time.perf_counter()
    again = graph.max_flow(homes, shelters)
    summary.add("the same again", again, time.perf_counter() - start)
    certificate, cut = first.certificate, first.cut
    _require(certificate.valid and again.certificate.valid and cut is not None, "the certificate is not valid")
    assert cut is not None
    say(f"   {first.value:,} ({first.mode}); asked again: {again.value:,} ({again.mode})")
    say(f"   the bottleneck, a minimum cut: {len(cut.edges)} roads with {cut.value:,} vehicles/h together")
    say(f"   certificate: flow {certificate.value:,} = flow across the cut {certificate.flow_across_cut:,}, valid")
    return first


def _update(graph: Graph, first: MaxFlowResult, say: Say, summary: Summary) -> PatchResult:
    assert first.cut is not None
    closed, widened = first.cut.edges[:N_CLOSED], first.cut.edges[N_CLOSED:]
    say(f"\n3. PATCH: close {len(closed)} roads of the cut, then double the other {len(widened)}")
    start = time.perf_counter()
    patched = graph.close(closed)
    _tell_patch(f"close {len(closed)} roads", patched, time.perf_counter() - start, say, summary)
    start = time.perf_counter()
    patched = graph.patch(edges=widened, scale=2)
    _tell_patch(f"double {len(widened)} roads", patched, time.perf_counter() - start, say, summary)
    return patched


def _tell_patch(what: str, patched: PatchResult, elapsed_s: float, say: Say, summary: Summary) -> None:
    _require(len(patched.flow_states) == 1, f"{len(patched.flow_states)} flows are kept solved, not 1")
    state = patched.flow_states[0]
    _require(state.certificate is not None and state.certificate.valid, "the certificate is not valid")
    summary.add(what, state, elapsed_s)
    say(f"   version {patched.version}, {what}: {state.old_value:,} -> {state.value:,} vehicles/h")
    say(f"   logged, re-solved ({state.mode}) and certified in {elapsed_s * 1e3:.1f} ms over HTTP")


def _check_cold(
    client: Client,
    graph: Graph,
    homes: list[int],
    shelters: list[int],
    value: object,
    say: Say,
    summary: Summary,
) -> None:
    say("\n4. Check: a second graph with the patched capacities, solved from nothing")
    page = graph.capacities(limit=PAGE)
    capacity = [0 if closed else amount for amount, closed in zip(page.capacity, page.closed, strict=True)]
    second = client.put_graph(
        "andorra-check",
        n_vertices=graph.info.n_vertices,
        tail=page.tail,
        head=page.head,
        capacity=capacity,
        edge_ids=page.edge_ids,
    )
    start = time.perf_counter()
    result = second.max_flow(homes, shelters)
    elapsed_s = time.perf_counter() - start
    summary.add("check, from nothing", result, elapsed_s)
    say(f"   {result.value:,} vehicles/h ({result.mode})")
    _require(result.value == value, f"warm gave {value}, cold gives {result.value}")
    second.delete()


def _kill_worker(client: Client, say: Say) -> None:
    worker = client.status().workers[0]
    say(f"\n5. kill -9 {worker['pid']} (worker {worker['name']})")
    start = time.perf_counter()
    os.kill(worker["pid"], signal.SIGKILL)
    while not _ready_without(client, worker["pid"]):
        if time.perf_counter() - start > RETURN_S:
            raise DemoFailed(f"no worker came back within {RETURN_S:.0f} s")
        time.sleep(0.1)
    say(f"   a new worker is ready, its graphs restored, after {time.perf_counter() - start:.1f} s")


def _ready_without(client: Client, dead_pid: int) -> bool:
    workers = client.status().workers
    return any(worker["ready"] and worker["pid"] != dead_pid for worker in workers)


def _check_restored(
    graph: Graph,
    homes: list[int],
    shelters: list[int],
    version: int,
    value: object,
    say: Say,
    summary: Summary,
) -> None:
    start = time.perf_counter()
    result = graph.max_flow(homes, shelters)
    elapsed_s = time.perf_counter() - start
    summary.add("after kill -9", result, elapsed_s)
    say(f"   version {result.version}, {result.value:,} vehicles/h ({result.mode})")
    _require(result.certificate.valid, "the certificate is not valid")
    _require(result.version == version, f"version {version} was acknowledged, {result.version} came back")
    _require(result.value == value, f"value {value} before, {result.value} after")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise DemoFailed(otherwise)


def _tail(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-20:] if log.is_file() else []
