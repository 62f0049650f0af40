"""Results as docs/api.md shows them. Amounts are exact; vertices and edges carry the caller's names."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpu_engine.checks import Certificate
from gpu_engine.engine import Cut, SolveReport
from gpu_engine.flow_checks import FlowProof
from gpu_engine.matching import Matching
from gpu_engine.networks.bipartite import unit
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.units import write_units
from gpu_engine.paths import Paths
from gpu_engine.text.json_text import write_amounts, write_integers
from gpu_engine.text.names import Names
from gpu_engine.types import INFINITE, BoolArray, EdgeArray, UnitArray, VertexArray
from service.protocol import CapacitiesArgs, Kind
from service.store.catalogue import GraphInfo
from service.store.snapshots import SnapshotInfo
from service.worker.graph import Answer, Graph, Solved
from service.worker.json_writer import Column, Raw

STEP: Final = 1 << 14
"""Rows of an answer that are written at a time, in a fraction of a millisecond."""

TERMINALS_SHOWN: Final = 100
"""Sources, and sinks, of each flow state that the answer of a PATCH lists."""

Rows = Callable[[], Iterator[EdgeArray]]
"""Row numbers, `STEP` or fewer at a time; each call begins anew."""


def amount(network: Network, units: int) -> Raw:
    return Raw(write_units(units, network.decimals))


def amounts(network: Network, units: UnitArray, rows: Rows) -> Column:
    return Column(lambda: (write_amounts(units[some], network.decimals) for some in rows()))


def labels(names: Names, rows: Rows) -> Column:
    return Column(lambda: (names.write(some) for some in rows()))


def listed(rows: EdgeArray | VertexArray) -> Rows:
    """These rows."""
    return lambda: (rows[at : at + STEP].astype(np.int64) for at in range(0, len(rows), STEP))


def each(column: NDArray[np.generic]) -> Rows:
    """Every row of the column."""
    return where(column, np.ones_like)


def where(column: NDArray[np.generic], holds: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Rows:
    """The rows in which something ``holds`` of the column, looked for as they are written: no list of them is made."""
    return lambda: (at + np.flatnonzero(holds(column[at : at + STEP])) for at in range(0, len(column), STEP))


def marked(flags: BoolArray) -> Rows:
    return where(flags, lambda some: some)


def unmarked(flags: BoolArray) -> Rows:
    return where(flags, np.logical_not)


def certificate(network: Network, proof: Certificate) -> dict[str, object]:
    return {
        "valid": proof.valid,
        "complete": proof.complete,
        "value": amount(network, proof.value),
        "flow_across_cut": amount(network, proof.flow_across_cut),
    }


def cut(network: Network, found: Cut, paid: Terminals) -> dict[str, object]:
    """``paid``: the terminals whose caps belong to the cut. All that is paid adds up to the capacity."""
    edges = listed(found.edges)
    return {
        "capacity": amount(network, found.capacity),
        "edges": labels(network.edge_ids, edges),
        "pays": amounts(network, network.capacity, edges),
        "sources": labels(network.vertex_labels, listed(paid.sources)),
        "source_pays": amounts(network, paid.supply, each(paid.supply)),
        "sinks": labels(network.vertex_labels, listed(paid.sinks)),
        "sink_pays": amounts(network, paid.demand, each(paid.demand)),
        "source_side": labels(network.vertex_labels, marked(found.source_side)),
        "sink_side": labels(network.vertex_labels, unmarked(found.source_side)),
        "unique": found.unique,
    }


def flow(network: Network, units: UnitArray, *, zeros: bool, acyclic: bool) -> dict[str, object]:
    rows = each(units) if zeros else where(units, lambda some: some)
    edges, carried = labels(network.edge_ids, rows), amounts(network, units, rows)
    return {"edges": edges, "flow": carried, "acyclic": acyclic}


def paths(network: Network, found: Paths) -> dict[str, object]:
    """By path, and the edges of all of them in one column."""
    offsets = found.offsets
    return {
        "source": labels(network.vertex_labels, listed(found.sources)),
        "sink": labels(network.vertex_labels, listed(found.sinks)),
        "amount": amounts(network, found.amounts, each(found.amounts)),
        "offsets": Column(lambda: (write_integers(offsets[at : at + STEP]) for at in range(0, len(offsets), STEP))),
        "edges": labels(network.edge_ids, listed(found.edges)),
        "of": found.count,
        "rest": amount(network, found.rest),
    }


def terminals(network: Network, ends: Terminals, proof: FlowProof) -> dict[str, object]:
    """What leaves each source and arrives at each sink; those without a cap are left out where that is nothing."""
    sources = np.flatnonzero((proof.supplied != 0) | (ends.supply != INFINITE))
    sinks = np.flatnonzero((proof.delivered != 0) | (ends.demand != INFINITE))
    return {
        "sources": labels(network.vertex_labels, listed(ends.sources[sources])),
        "supplied": amounts(network, proof.supplied, listed(sources)),
        "sinks": labels(network.vertex_labels, listed(ends.sinks[sinks])),
        "delivered": amounts(network, proof.delivered, listed(sinks)),
    }


def max_flow(graph: Graph, answer: Answer, timings_ms: Mapping[str, float]) -> dict[str, object]:
    """All but the fields that were asked for by name."""
    return _solved(graph, {"value": amount(graph.network, answer.report.value)}, answer, timings_ms)


def matching(graph: Graph, answer: Answer, timings_ms: Mapping[str, float]) -> dict[str, object]:
    """All but what `matched` and `cover` show."""
    return _solved(graph, {"size": answer.report.value // unit(graph.network)}, answer, timings_ms)


def matched(network: Network, found: Matching) -> dict[str, object]:
    """The matched edges with their ends, row by row."""
    return {
        "edges": labels(network.edge_ids, listed(found.edges)),
        "left": labels(network.vertex_labels, listed(network.edge_tail(found.edges))),
        "right": labels(network.vertex_labels, listed(network.edge_head(found.edges))),
    }


def cover(network: Network, found: Matching) -> dict[str, object]:
    sides = {"left": found.cover_left, "right": found.cover_right}
    return {side: labels(network.vertex_labels, marked(covers)) for side, covers in sides.items()}


def _solved(
    graph: Graph, result: Mapping[str, object], answer: Answer, timings_ms: Mapping[str, float]
) -> dict[str, object]:
    report = answer.report
    return {
        "graph": graph.name,
        "version": graph.version,
        **result,
        "mode": report.mode.value,
        "engine": report.engine,
        "reason": report.reason,
        "certificate": certificate(graph.network, answer.certificate),
        "counters": dict(report.counters),
        "timings_ms": rounded(timings_ms),
    }


def solved_state(graph: Graph, solved: Solved, old: SolveReport | None, answer: Answer | None) -> dict[str, object]:
    """One resident flow state after a PATCH; `answer` is None if its solve was cancelled: it is solved when asked."""
    network, common = graph.network, _named_state(graph, solved, old)
    if answer is None:
        return common | {"value": None, "mode": "pending", "certificate": None, "timings_ms": {}}
    timings_ms = {"solve": answer.solve_ms, "certificate": answer.certificate_ms}
    return common | {
        "value": amount(network, answer.report.value),
        "mode": answer.report.mode.value,
        "certificate": certificate(network, answer.certificate),
        "timings_ms": rounded(timings_ms),
    }


def unbounded_state(graph: Graph, solved: Solved) -> dict[str, object]:
    """A flow state that a PATCH left without a bound: it is not kept, and a question for it is refused."""
    nothing: dict[str, object] = {"value": None, "mode": "unbounded", "certificate": None, "timings_ms": {}}
    return _named_state(graph, solved, solved.report) | nothing


def _named_state(graph: Graph, solved: Solved, old: SolveReport | None) -> dict[str, object]:
    """Which state it is: its first terminals by name, and how many there are.

    A graph has 16 states of up to a million terminals each, and each PATCH answers with all of them. The terminals of
    a matching are not listed: they are all vertices with edges, at each PATCH the same.
    """
    network, ends = graph.network, solved.terminals
    most = 0 if solved.kind is Kind.MATCHING else TERMINALS_SHOWN
    return {
        "kind": solved.kind.value,
        "sources": labels(network.vertex_labels, listed(ends.sources[:most])),
        "n_sources": len(ends.sources),
        "sinks": labels(network.vertex_labels, listed(ends.sinks[:most])),
        "n_sinks": len(ends.sinks),
        "old_value": None if old is None else amount(network, old.value),
    }


def capacities(graph: Graph, page: CapacitiesArgs) -> dict[str, object]:
    network = graph.network
    rows = np.arange(min(page.offset, network.n_edges), min(page.offset + page.limit, network.n_edges))
    own = graph.table.own(rows)
    return {
        "version": graph.version,
        "edge_ids": labels(network.edge_ids, listed(rows)),
        "tail": labels(network.vertex_labels, listed(network.edge_tail(rows))),
        "head": labels(network.vertex_labels, listed(network.edge_head(rows))),
        "capacity": amounts(network, own, listed(np.arange(len(own)))),
        "closed": graph.table.closed[rows].tolist(),
        "undirected": network.is_undirected(rows).tolist(),
    }


def snapshot(info: SnapshotInfo) -> dict[str, object]:
    return {"version": info.version, "bytes": info.bytes, "created_at": iso(info.created_at)}


def graph_info(graph: Graph, worker: str, created_at: float) -> GraphInfo:
    network, footprint = graph.network, graph.footprint
    return GraphInfo(
        name=graph.name,
        version=graph.version,
        n_vertices=network.n_vertices,
        n_edges=network.n_edges,
        n_arcs=network.n_arcs,
        decimals=network.decimals,
        bytes=footprint.host,
        device_bytes=footprint.device,
        created_at=datetime.fromtimestamp(created_at, UTC),
        updated_at=datetime.fromtimestamp(time.time(), UTC),
        engine=graph.engine.name,
        worker=worker,
        source=None if network.source is None else network.vertex_labels.of(np.array([network.source]))[0],
        sink=None if network.sink is None else network.vertex_labels.of(np.array([network.sink]))[0],
        flow_states=len(graph.states),
    )


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def rounded(timings_ms: Mapping[str, float]) -> dict[str, float]:
    return {name: round(ms, 3) for name, ms in timings_ms.items()}
