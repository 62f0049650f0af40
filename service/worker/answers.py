"""Results as docs/api.md shows them. Amounts are exact; vertices and edges carry the caller's names."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import numpy as np

from gpu_engine.checks.certificate import Certificate
from gpu_engine.checks.costs import CostProof
from gpu_engine.checks.flows import FlowProof
from gpu_engine.engine import Cut, SolveReport
from gpu_engine.matching import Matching
from gpu_engine.mincost.cheapest import CheapestFlow
from gpu_engine.networks.bipartite import unit
from gpu_engine.networks.costs import costs_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.networks.units import write_decimal, write_units
from gpu_engine.paths import Paths
from gpu_engine.text.names import Names
from gpu_engine.types import INFINITE, UnitArray
from gpu_engine.vertices.table import VertexTable
from service.protocol import TEXTS, CapacitiesArgs, Kind
from service.store.catalogue import GraphInfo
from service.store.listed import SnapshotInfo
from service.worker.columns import (
    AmountColumn,
    Column,
    FlagColumn,
    IntegerColumn,
    NameColumn,
    Rows,
    each,
    listed,
    marked,
    where,
)
from service.worker.cut_sides import cut_sides
from service.worker.graph import Answer, Graph, Solved
from service.worker.json_writer import Raw

TERMINALS_SHOWN: Final = 100
"""The answer of a PATCH lists at most so many sources, and so many sinks, of each flow state."""


def amount(network: Network, units: int) -> Raw:
    return Raw(write_units(units, network.decimals))


def amounts(network: Network, units: UnitArray, rows: Rows, table: str = "") -> Column:
    return AmountColumn(units, network.decimals, rows, table)


def decimals(units: UnitArray, places: int) -> Column:
    """A column of decimals with ``places`` of their own, which are not amounts of the network: costs and potentials."""
    return AmountColumn(units, places, each(units))


def labels(names: Names, rows: Rows, table: str = "") -> Column:
    return NameColumn(names, rows, table)


def certificate(network: Network, proof: Certificate) -> dict[str, object]:
    """The certificate of a flow as it is answered, with amounts in the caller's unit."""
    return {
        "valid": proof.valid,
        "complete": proof.complete,
        "value": amount(network, proof.value),
        "flow_across_cut": amount(network, proof.flow_across_cut),
    }


def cut(
    network: Network,
    found: Cut,
    paid: Terminals,
    limits: VertexTable | None = None,
    *,
    packed: bool = False,
    sides: bool = True,
) -> dict[str, object]:
    """``paid``: the terminals whose caps belong to the cut. All that is paid adds up to the value. ``limits``: the
    capacities of vertices, if there are any; those in the cut are `vertices`, or, ``packed``, `limited`.

    ``packed``: the vertices of the source side as bits, and the labels of all, if they have any, in place of two lists.
    Without ``sides`` neither, so that it takes O(edges of the cut).
    """
    edges, vertices = listed(found.edges), network.vertex_labels
    answer: dict[str, object] = {
        "value": amount(network, found.value),
        "edges": labels(network.edge_ids, edges),
        "pays": amounts(network, network.capacity, edges),
        "sources": labels(vertices, listed(paid.sources), "sources"),
        "source_pays": amounts(network, paid.supply, each(paid.supply), "sources"),
        "sinks": labels(vertices, listed(paid.sinks), "sinks"),
        "sink_pays": amounts(network, paid.demand, each(paid.demand), "sinks"),
        "unique": found.unique,
    }
    if limits is not None:
        cut_vertices, own = listed(found.vertices), limits.of_vertices(found.vertices)
        answer["limited" if packed else "vertices"] = labels(vertices, cut_vertices, "limited")
        answer["vertex_pays"] = amounts(network, own, each(own), "limited")
    return answer | cut_sides(network, found.source_side, packed=packed) if sides else answer


def flow(network: Network, units: UnitArray, *, zeros: bool, acyclic: bool) -> dict[str, object]:
    return flow_by_edge(network, units, zeros=zeros) | {"acyclic": acyclic}


def flow_by_edge(network: Network, units: UnitArray, *, zeros: bool) -> dict[str, object]:
    """The edges that carry flow, or with ``zeros`` all edges, and the amount on each."""
    rows = each(units) if zeros else where(units, lambda some: some)
    if zeros and len(network.deleted):
        rows = listed(network.live(np.arange(network.n_edges)))
    return {"edges": labels(network.edge_ids, rows), "amount": amounts(network, units, rows)}


def paths(network: Network, found: Paths) -> dict[str, object]:
    """A row for each path, and the edges of all paths in one column."""
    return {
        "source": labels(network.vertex_labels, listed(found.sources)),
        "sink": labels(network.vertex_labels, listed(found.sinks)),
        "amount": amounts(network, found.amounts, each(found.amounts)),
        "offsets": IntegerColumn(found.offsets, "offsets"),
        "edges": labels(network.edge_ids, listed(found.edges), "edges"),
        "of": found.count,
        "rest": amount(network, found.rest),
    }


def terminals(network: Network, ends: Terminals, proof: FlowProof) -> dict[str, object]:
    """The rows of sources and sinks with what leaves or arrives at each. Terminals without a cap are left out where
    nothing does."""
    sources = np.flatnonzero((proof.supplied != 0) | (ends.supply != INFINITE))
    sinks = np.flatnonzero((proof.delivered != 0) | (ends.demand != INFINITE))
    return {
        "sources": labels(network.vertex_labels, listed(ends.sources[sources]), "sources"),
        "supplied": amounts(network, proof.supplied, listed(sources), "sources"),
        "sinks": labels(network.vertex_labels, listed(ends.sinks[sinks]), "sinks"),
        "delivered": amounts(network, proof.delivered, listed(sinks), "sinks"),
    }


def about(graph: Graph) -> dict[str, object]:
    """What the answer of a question that keeps no lower bounds is about: it says so where edges have some."""
    return {"graph": graph.name, "version": graph.version, **ignored(graph)}


def ignored(graph: Graph) -> dict[str, object]:
    """What is said beside flows that keep no lower bounds, where edges have some."""
    return ignored_if(graph.lowers is not None and graph.lowers.some)


def ignored_if(bounded: bool) -> dict[str, object]:
    """`ignored`, for callers that know whether edges have lower bounds."""
    return {"lower": "ignored"} if bounded else {}


def max_flow(graph: Graph, answer: Answer, timings_ms: Mapping[str, float]) -> dict[str, object]:
    """All fields of the answer except those that were asked for by name."""
    return _solved(graph, {"value": amount(graph.network, answer.report.value)}, answer, timings_ms)


def matching(graph: Graph, answer: Answer, timings_ms: Mapping[str, float]) -> dict[str, object]:
    """All fields of the answer except those of `matched` and `cover`."""
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
    return {side: labels(network.vertex_labels, marked(covers), side) for side, covers in sides.items()}


def min_cost_flow(
    graph: Graph, found: CheapestFlow, proof: CostProof, maximum: Answer | None, timings_ms: Mapping[str, float]
) -> dict[str, object]:
    """All but the fields that were asked for by name. There is no ``maximum`` where the flow has no bound."""
    network, costs = graph.network, costs_of(graph.costs)
    value, places = amount(network, proof.terminals.value), network.decimals + costs.decimals
    cost, bound = (Raw(write_decimal(units, places)) for units in (proof.cost, proof.dual_bound))
    most = None if maximum is None else amount(network, maximum.report.value)
    return about(graph) | {
        "value": value,
        "maximum": most,
        "cost": cost,
        "mode": "cold",
        "engine": "or-tools" if found.by_solver else "cpu",
        "reason": "cheapest flows are solved from zero",
        "certificate": {
            "valid": proof.valid,
            "complete": True,
            "value": value,
            "flow_across_cut": None if maximum is None else amount(network, maximum.certificate.flow_across_cut),
            "cost": cost,
            "dual_bound": bound,
        },
        "counters": {} if maximum is None else dict(maximum.report.counters),
        "timings_ms": rounded(timings_ms),
    }


def dual(graph: Graph, found: CheapestFlow) -> dict[str, object]:
    """The potential of each vertex; before the sources it is 0, and beyond the sinks ``beyond``."""
    network, places = graph.network, costs_of(graph.costs).decimals
    rows = marked(network.there)
    return {
        "vertices": labels(network.vertex_labels, rows),
        "potential": AmountColumn(found.potential, places, rows),
        "beyond": Raw(write_decimal(found.sink_potential, places)),
    }


def _solved(
    graph: Graph, result: Mapping[str, object], answer: Answer, timings_ms: Mapping[str, float]
) -> dict[str, object]:
    report = answer.report
    return {
        **about(graph),
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


def closed_state(graph: Graph, solved: Solved) -> dict[str, object]:
    """A flow state that a PATCH left without a bound: it is not kept, and a question for it is refused. A matching is
    not kept where anything was inserted, and is solved anew when it is asked for; nor is a flow without its terminals.
    """
    is_lost = solved.kind is Kind.MATCHING or graph.lacks(solved.terminals)
    mode = "dropped" if is_lost else "unbounded"
    nothing: dict[str, object] = {"value": None, "mode": mode, "certificate": None, "timings_ms": {}}
    return _named_state(graph, solved, solved.report) | nothing


def is_kept(shown: dict[str, object]) -> bool:
    """Whether a state in an answer is kept. An answer to an update lists first the states that are not."""
    return shown["mode"] not in ("dropped", "unbounded")


def _named_state(graph: Graph, solved: Solved, old: SolveReport | None) -> dict[str, object]:
    """Which state it is: its first terminals by name, and how many there are.

    A graph has 16 states of up to a million terminals each, and each PATCH answers with all of them. The terminals of
    a matching are not listed: they are all vertices with edges, at each PATCH the same.
    """
    network, ends = graph.network, solved.terminals
    most = 0 if solved.kind is Kind.MATCHING else TERMINALS_SHOWN
    return {
        "kind": "matching" if solved.kind is Kind.MATCHING else "flow",
        "sources": labels(network.vertex_labels, listed(ends.sources[:most])),
        "n_sources": len(ends.sources),
        "sinks": labels(network.vertex_labels, listed(ends.sinks[:most])),
        "n_sinks": len(ends.sinks),
        "old_value": None if old is None else amount(network, old.value),
    }


def capacities(graph: Graph, page: CapacitiesArgs) -> dict[str, object]:
    """A page of the edges; in arrays, the names are those by which a load reads them."""
    network = graph.network
    last = min(page.offset + page.limit, network.n_edges)
    rows = network.live(np.arange(min(page.offset, last), last))
    own, listing = graph.table.own(rows), listed(rows)
    unlimited = {} if page.encoding in TEXTS else {"unlimited": FlagColumn(own == INFINITE)}
    page_of: dict[str, object] = {
        "version": graph.version,
        "edge_ids": labels(network.edge_ids, listing),
        "tail": labels(network.vertex_labels, listed(network.edge_tail(rows))),
        "head": labels(network.vertex_labels, listed(network.edge_head(rows))),
        "capacity": amounts(network, own, listed(np.arange(len(own)))),
        **unlimited,
        "closed": FlagColumn(graph.table.closed[rows]),
        "undirected": FlagColumn(network.is_undirected(rows)),
        "next": last if last < network.n_edges else None,
    }
    if graph.costs is not None:
        page_of["cost"] = decimals(graph.costs.cost[rows], graph.costs.decimals)
        if page.encoding not in TEXTS:
            page_of["cost_decimals"] = graph.costs.decimals
    if graph.lowers is not None:
        page_of["lower"] = amounts(network, graph.lowers.lower[rows], listed(np.arange(len(rows))))
    return page_of


def snapshot(info: SnapshotInfo) -> dict[str, object]:
    return {"version": info.version, "bytes": info.bytes, "created_at": iso(info.created_at)}


def graph_info(graph: Graph, worker: str, created_at: float) -> GraphInfo:
    """The answer of a load."""
    network, footprint = graph.network, graph.footprint
    return GraphInfo(
        name=graph.name,
        version=graph.version,
        generation=graph.generation,
        n_vertices=network.n_live_vertices,
        n_edges=network.n_live_edges,
        n_arcs=network.n_arcs,
        decimals=network.decimals,
        cost_decimals=None if graph.costs is None else graph.costs.decimals,
        bytes=footprint.host,
        device_bytes=footprint.device,
        created_at=datetime.fromtimestamp(created_at, UTC),
        updated_at=(now := datetime.fromtimestamp(time.time(), UTC)),
        engine=graph.engine.name,
        worker=worker,
        source=network.vertex_labels.name(network.source),
        sink=network.vertex_labels.name(network.sink),
        flow_states=len(graph.states),
        measured_at=now,
        coordinates=None if network.coordinates is None else network.coordinates.crs,
    )


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def rounded(timings_ms: Mapping[str, float]) -> dict[str, float]:
    return {name: round(ms, 3) for name, ms in timings_ms.items()}
