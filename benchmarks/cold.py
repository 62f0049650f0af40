"""Cold solves: our engine and its peers side by side, building not counted.

Solve time is `Engine.solve(state, cold=True)` with network and flow state resident, after one solve that is not
counted. The certificate of every solve must hold, and every solver must give the same value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from benchmarks.answers import check, check_certificate
from benchmarks.instances import Instance
from benchmarks.peers import Directed, Peer
from benchmarks.results import Row
from benchmarks.timing import repeat, timed
from gpu_engine import select
from gpu_engine.engine import Engine, FlowState
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE

WARM_UPS = (Instance("infinite", "grid", {"rows": 6, "columns": 6}), Instance("finite", "ac", {"n_vertices": 8}))
"""Solved before any clock runs or memory is read: they compile the kernels, or load them compiled."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How often to repeat: at most ``repeats`` times, and no further run after ``limit_s`` seconds of them."""

    repeats: int = 5
    limit_s: float = 20.0


def warm_up() -> None:
    """Call everything once that is measured later."""
    select.prepare()
    for instance in WARM_UPS:
        edges = instance.load()
        assert edges is not None
        engine, state = open_engine(edges)
        finite = np.flatnonzero(edges.capacity != INFINITE)
        for factor in (1, 0, 2):
            engine.update(finite, edges.capacity[finite] * factor)
            engine.solve(state)
            engine.certificate(state)
        engine.cut(state)
        engine.flow(state)


def measure(
    instance: Instance, edges: EdgeList, engines: Sequence[str], peers: dict[str, Peer], effort: Effort
) -> list[Row]:
    """One row for each solver, ours first. Raises `WrongAnswer` if a certificate fails or two values differ."""
    asked = asked_of(instance, edges)
    rows = [{"solver": f"headrace-{choice}"} | measure_engine(asked, choice, effort) for choice in engines]
    ours = rows[0]
    for row in rows:
        check(row["value"] == ours["value"], f"{instance.name}: {row} and {ours}")
    network = Directed.of(edges, ours["value"])
    for name, peer in peers.items():
        reason = peer.refuses(network)
        row = {"skipped": reason} if reason else measure_peer(peer, network, effort)
        check(bool(reason) or row["value"] == ours["value"], f"{instance.name}: {name} {row}, ours {ours}")
        rows.append({"solver": name} | row)
    return [describe(instance, edges) | row for row in rows]


def describe(instance: Instance, edges: EdgeList) -> Row:
    """What was measured: enough to draw it again."""
    return {
        "instance": instance.name,
        "family": instance.family,
        "parameters": dict(instance.parameters),
        "seed": None if instance.file else instance.seed,
        "n": edges.n_vertices,
        "m": edges.n_edges,
    }


@dataclass(frozen=True, eq=False, slots=True)
class Asked:
    """A network and the terminals asked for."""

    edges: EdgeList
    terminals: Terminals

    @classmethod
    def of(cls, edges: EdgeList) -> "Asked":
        """From source to sink; both must be set."""
        assert edges.source is not None
        assert edges.sink is not None
        return cls(edges, Terminals.of([edges.source], [edges.sink]))

    @classmethod
    def capped(cls, edges: EdgeList) -> "Asked":
        """The same flow with caps in the place of the edges at source and sink, one edge for each other end."""
        first, last = edges.tail == edges.source, edges.head == edges.sink
        inner = ~(first | last)
        columns = {name: getattr(edges, name)[inner] for name in ("tail", "head", "capacity")}
        undirected = np.broadcast_to(edges.undirected, edges.n_edges)[inner].copy()
        terminals = Terminals.of(edges.head[first], edges.tail[last], edges.capacity[first], edges.capacity[last])
        return cls(replace(edges, **columns, undirected=undirected), terminals)


def asked_of(instance: Instance, edges: EdgeList) -> Asked:
    """How our engines are asked for this instance."""
    return Asked.capped(edges) if instance.capped else Asked.of(edges)


def measure_engine(asked: Asked, choice: str, effort: Effort) -> Row:
    """Build, solve and certificate times of one of our engines."""
    (engine, state), build_ms = timed(lambda: opened(asked, choice))
    first = engine.solve(state, cold=True)
    certificate_ms = []

    def once() -> float:
        report, elapsed_ms = timed(lambda: engine.solve(state, cold=True))
        certificate, checked_ms = timed(lambda: engine.certificate(state))
        check_certificate(certificate, report.value)
        check(report.value == first.value, f"{report.value} after {first.value}")
        certificate_ms.append(checked_ms)
        return elapsed_ms

    solve_ms = repeat(once, effort.repeats, effort.limit_s)
    return {
        "arcs": engine.network.n_arcs,
        "value": first.value,
        "build_ms": build_ms,
        "solve_ms_best": min(solve_ms),
        "solve_ms_median": median(solve_ms),
        "repeats": len(solve_ms),
        "certificate_ms_median": median(certificate_ms),
        "certificate_valid": True,
        "counters": dict(first.counters),
        "engine": engine.name,
        "engine_bytes_per_arc": (engine.device_nbytes or engine.nbytes) / engine.network.n_arcs,
    }


def open_engine(edges: EdgeList, choice: str = "cpu") -> tuple[Engine, FlowState]:
    """The engine with its one flow state, from source to sink, not solved."""
    return opened(Asked.of(edges), choice)


def opened(asked: Asked, choice: str = "cpu") -> tuple[Engine, FlowState]:
    """The engine with its one flow state, not solved."""
    engine = select.open_engine(select.load_network(asked.edges, choice), choice)
    return engine, engine.open(asked.terminals)


def measure_peer(peer: Peer, network: Directed, effort: Effort) -> Row:
    """Build and solve times of a peer, built anew for every run."""
    build_ms: list[float] = []
    values: set[int] = set()

    def once() -> float:
        timing = peer.solve(network)
        build_ms.append(timing.build_ms)
        values.add(timing.value)
        return timing.solve_ms

    solve_ms = repeat(once, effort.repeats, effort.limit_s)
    check(len(values) == 1, f"different values in different runs: {values}")
    return {
        "value": values.pop(),
        "build_ms": min(build_ms),
        "solve_ms_best": min(solve_ms),
        "solve_ms_median": median(solve_ms),
        "repeats": len(solve_ms),
    }
