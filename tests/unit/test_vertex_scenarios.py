"""Scenarios that change capacities of vertices, against NetworkX on a network split there; the graph stays as it is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_engine.footprint import Footprint
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE
from service.protocol import CapacitiesArgs, Kind, MatchingArgs, MaxFlowArgs, Operation, Scenario, WhatIfArgs
from tests.property.test_vertices import maximum
from tests.service_fixtures import Caller, StartWorker, code_of
from tests.unit.test_vertices import CITY, CUT, PLAIN, op, whole


def asked(*scenarios: Scenario, fields: tuple[Any, ...] = ("value",), **more: Any) -> WhatIfArgs:
    return WhatIfArgs(sources=["s"], sinks=["t"], scenarios=list(scenarios), fields=frozenset(fields), **more)


def test_vertices_alone_and_with_edges(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    for edges in (PLAIN, replace(CITY, vertex_capacity=np.array([INFINITE, INFINITE]))):
        caller.load("g", edges)
        before = whole(caller)
        scenarios = [
            Scenario(id="v is closed", vertex_batch=[op("set", ["v"], "0")]),
            Scenario(vertex_batch=[op("set", ["u", "v"], "1", "3"), op("scale", ["v"], "0.5")]),
            Scenario(vertex_batch=[op("set", ["v"], "3")], batch=[op("set", ["d"], "9")]),
            Scenario(vertex_batch=[op("set", ["s"], "1")], sources=["u"]),
            Scenario(batch=[Operation(op="close", edges=["d"])]),
            Scenario(vertex_batch=[op("set", ["x"], "1")]),
            Scenario(vertex_batch=[op("set", ["v", "v"], "1", "1")]),
            Scenario(vertex_batch=[op("set", ["v"], "1152921504606846976")]),
        ]
        found = caller.ask(Kind.WHAT_IF, "g", asked(*scenarios, fields=("value", "cut")))
        rows = found["answers"]
        assert [row["value"] for row in rows[:5]] == [2, 2.5, 7, 4, 4]
        assert [row["cut"]["vertices"] for row in rows[:3]] == [[], ["u", "v"], []]
        assert all(row["certificate"]["valid"] and row["certificate"]["complete"] for row in rows[:5])
        assert [row["error"]["code"] for row in rows[5:]] == ["unknown_vertex", "invalid_body", "capacity_overflow"]
        assert (found["base"]["value"], whole(caller)) == (6, before)
        assert caller.ask(Kind.MAX_FLOW, "g", CUT)["mode"] == "unchanged"
        skipped = asked(scenarios[5], on_missing="skip")
        assert caller.ask(Kind.WHAT_IF, "g", skipped)["answers"][0]["value"] == 6
    caller.load("g", PLAIN)
    caller.ask(Kind.WHAT_IF, "g", asked(scenarios[0]))
    assert code_of(lambda: caller.reply(Kind.MATCHING, "g", MatchingArgs())) == "not_bipartite"


def test_nothing_is_lost_where_memory_is_short(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", PLAIN)
    before, residents = whole(caller), worker.graphs.residents
    budget = residents.budget
    residents.resize(Footprint(residents.held.host + 100))
    question = asked(Scenario(vertex_batch=[op("set", ["v"], "0")]))
    assert code_of(lambda: caller.reply(Kind.WHAT_IF, "g", question)) == "out_of_memory"
    residents.resize(budget)
    assert whole(caller) == before
    assert caller.ask(Kind.WHAT_IF, "g", question)["answers"][0]["value"] == 2


def random_graph(rng: np.random.Generator) -> EdgeList:
    n, m = int(rng.integers(4, 9)), int(rng.integers(8, 24))
    ends = rng.integers(0, n, (2, m)).astype(np.int32)
    edges = EdgeList(n, ends[0], ends[1], rng.integers(0, 20, m), undirected=rng.random(m) < 0.4)
    limited = np.flatnonzero(rng.random(n) < rng.choice([0, 0.5])).astype(np.int32)
    if not len(limited):
        return edges
    return replace(edges, limited=limited, vertex_capacity=rng.integers(0, 30, len(limited)))


@pytest.mark.parametrize("first", [0, 10])
def test_random_scenarios(caller: Caller, start_worker: StartWorker, first: int) -> None:
    start_worker()
    caller.wait_ready()
    for seed in range(first, first + 10):
        rng = np.random.default_rng(seed)
        edges = random_graph(rng)
        caller.load("g", edges)
        n, m = edges.n_vertices, edges.n_edges
        limit = np.full(n, INFINITE)
        if edges.limited is not None and edges.vertex_capacity is not None:
            limit[edges.limited] = edges.vertex_capacity
        pairs = [rng.permutation(n)[:2].tolist() for _ in range(9)]
        scenarios, expected = [], []
        for source, sink in pairs:
            own, units = limit.copy(), edges.capacity.copy()
            vertices = rng.permutation(n)[: int(rng.integers(1, n))]
            own[vertices] = rng.integers(0, 20, len(vertices))
            ops = [op("set", vertices.tolist(), *map(str, own[vertices]))]
            batch = None
            if rng.random() < 0.5:
                rows = rng.permutation(m)[:3]
                units[rows] = rng.integers(0, 30, 3)
                batch = [op("set", rows.tolist(), *map(str, units[rows]))]
            terminals: dict[str, Any] = {}
            ends = pairs[0]
            if rng.random() < 0.4:
                ends = [source, sink]
                terminals = {"sources": [source], "sinks": [sink]}
            scenarios.append(Scenario(vertex_batch=ops, batch=batch, **terminals))
            known = np.arange(n, dtype=np.int32)
            expected.append(maximum(edges, units, Terminals.of(ends[:1], ends[1:]), known, own))
        question = WhatIfArgs(sources=pairs[0][:1], sinks=pairs[0][1:], scenarios=scenarios)
        for fields in (frozenset({"value"}), frozenset({"value", "cut", "flow"})):
            found = caller.ask(Kind.WHAT_IF, "g", question.model_copy(update={"fields": fields}))
            assert [row["value"] for row in found["answers"]] == expected, seed
            assert all(row["certificate"]["valid"] for row in found["answers"]), seed
            if "cut" in fields:
                cuts = [row["cut"] for row in found["answers"]]
                assert [sum(cut["pays"]) + sum(cut.get("vertex_pays", ())) for cut in cuts] == expected, seed
        page = caller.ask(Kind.VERTICES, "g", CapacitiesArgs())
        assert page["vertices"] == ([] if edges.limited is None else edges.limited.tolist())
        base = caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=pairs[0][:1], sinks=pairs[0][1:]))
        assert (base["value"], base["version"]) == (found["base"]["value"], 1)
