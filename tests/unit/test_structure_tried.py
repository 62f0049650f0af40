"""Dry runs of changes of structure: they say what the PATCH does, and leave nothing behind."""

from dataclasses import replace
from typing import Any

import numpy as np

from gpu_engine.footprint import Footprint
from gpu_engine.types import MAX_TOTAL
from service.protocol import EdgesArgs, EdgesOperation, Kind, MatchingArgs, MaxFlowArgs
from service.worker.graph import Graph
from tests.graphs import drawn
from tests.service_fixtures import Caller, StartWorker
from tests.unit.test_deleted_vertices import without
from tests.unit.test_structure import COSTLY, NAMED, delete, edge, insert, patch
from tests.unit.test_vertices import CITY

BATCHES: list[tuple[Any, list[EdgesOperation]]] = [
    (NAMED, [insert(vertices=["w"]), edge("f", "s", "w", "2.5"), edge("g", "w", "t", "1"), delete("c")]),
    (NAMED, [delete("a", "e")]),
    (NAMED, [without("u")]),
    (NAMED, [edge(capacity="inf")]),
    (NAMED, []),
    (COSTLY, [edge(cost=["1.5"]), without("v")]),
    (NAMED, [insert(vertices=["w"], vertex_capacity=["1"]), edge("f", "s", "w", "9"), edge("g", "w", "t", "9")]),
    (CITY, [edge(capacity="2"), without("u")]),
    (CITY, [without("u")]),
]
"""On graphs in which flows run from s to t and from u to t."""


def tried(caller: Caller, *batch: EdgesOperation, **more: Any) -> dict[str, Any]:
    return caller.ask(Kind.DRY_RUN_EDGES, "g", EdgesArgs(batch=list(batch), **more))


def told(answer: dict[str, Any]) -> list[Any]:
    """What becomes of each flow state, by its terminals; one that is dropped is told of first."""
    states = [{name: of for name, of in state.items() if name != "timings_ms"} for state in answer["flow_states"]]
    for state in states:
        if state["certificate"]:
            state["certificate"].pop("complete", None)
    return sorted(states, key=lambda state: (state["kind"], state["sources"]))


def held(graph: Graph) -> list[Any]:
    """All that a change of structure could touch."""
    network, costs = graph.network, None if graph.costs is None else graph.costs.cost.tolist()
    arrays = network.capacity, network.head, network.row_offsets, network.edge_arc, network.deleted, graph.table.closed
    named = (
        [*network.vertex_labels.of(np.arange(network.n_vertices))],
        [*network.edge_ids.of(np.arange(network.n_edges))],
    )
    flows = [graph.engine.export(solved.state)["flow"].tolist() for solved in graph.states.values()]
    counts = network.n_live_vertices, network.n_live_edges, network.source, network.sink, graph.version, graph.unsaved
    return [
        *(array.tolist() for array in arrays),
        *named,
        costs,
        flows,
        counts,
        network.there.tolist(),
        [*graph.states],
    ]


def test_what_is_tried_is_what_is_done(caller: Caller, start_worker: StartWorker, client: Any) -> None:
    worker = start_worker()
    caller.wait_ready()
    for edges, batch in BATCHES:
        caller.load("g", edges)
        for source in ("s", "u"):
            caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[source], sinks=["t"]))
        graph = worker.graphs.residents.get("g")
        log = [key for key in client.scan_iter("*", _type="stream") if b":log" in key]
        before, lengths, unused = held(graph), [client.xlen(key) for key in log], worker.graphs.residents.unused
        answers = [tried(caller, *batch) for _ in range(2)]
        assert worker.graphs.residents.get("g") is graph
        assert (held(graph), [client.xlen(key) for key in log]) == (before, lengths)
        assert worker.graphs.residents.unused == unused
        done = patch(caller, *batch)
        assert (done["version"], [answer["version"] for answer in answers]) == (2, [1, 1])
        for answer in answers:
            assert (answer["dry_run"], told(answer)) == (True, told(done))
            for name in ("applied", "skipped", "unchanged", "inserted", "deleted", "generation"):
                assert answer[name] == done[name], name


def test_matchings_and_what_is_not_asked_for(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", drawn(4, [(0, 2, 1), (0, 3, 1), (1, 2, 1)]))
    assert caller.ask(Kind.MATCHING, "g", MatchingArgs(left=[0, 1]))["size"] == 2
    (state,) = tried(caller, delete(1))["flow_states"]
    assert (state["kind"], state["value"]) == ("matching", 1)
    for batch in ([insert(count=1)], [insert(tail=[1], head=[3], capacity=["1"])]):
        (state,) = tried(caller, *batch)["flow_states"]
        assert (state["kind"], state["mode"], state["value"]) == ("matching", "dropped", None)
    assert tried(caller, delete(1), solve="none")["flow_states"] == []
    assert len(worker.graphs.residents.get("g").states) == 1
    assert caller.page("g")["version"] == 1


def test_it_is_refused_as_the_change_is(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker(max_edges=7, max_vertices=5)
    caller.wait_ready()
    caller.load("g", replace(NAMED, capacity=np.full(5, MAX_TOTAL // 6)))
    refused: list[tuple[EdgesArgs, str]] = [
        (EdgesArgs(batch=[edge("a")]), "already_exists"),
        (EdgesArgs(batch=[delete("z")]), "unknown_edge"),
        (EdgesArgs(batch=[without("z")]), "unknown_vertex"),
        (EdgesArgs(batch=[edge(head="w")]), "unknown_vertex"),
        (EdgesArgs(batch=[insert(vertices=["w", "x"])]), "too_large"),
        (EdgesArgs(batch=[edge(cost=["1"])]), "no_costs"),
        (EdgesArgs(batch=[edge(capacity=str(MAX_TOTAL // 10))]), "capacity_overflow"),
        (EdgesArgs(batch=[delete("a")], if_match=7), "version_conflict"),
    ]
    for args, code in refused:
        problems = [caller.reply(kind, "g", args).problem for kind in (Kind.DRY_RUN_EDGES, Kind.PATCH_EDGES)]
        assert [problem and problem.code for problem in problems] == [code, code], args
        assert problems[0] == problems[1]
    room = worker.graphs.residents
    room.resize(room.held + Footprint(100, 100))
    grown = EdgesArgs(batch=[edge("f", "s", "u", "0")])
    problem = caller.reply(Kind.DRY_RUN_EDGES, "g", grown).problem
    assert problem is not None
    assert problem.code == "out_of_memory"
    assert caller.page("g")["version"] == 1
