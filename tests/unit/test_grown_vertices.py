"""Edges and vertices that come to a graph whose vertices have capacities, through the log, snapshots and restarts."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from gpu_engine.footprint import Footprint
from gpu_engine.formats import read_npz
from gpu_engine.types import MAX_TOTAL
from gpu_engine.vertices.table import VertexTable
from service.protocol import (
    CapacitiesArgs,
    EdgesArgs,
    EdgesOperation,
    EmptyArgs,
    ExportArgs,
    Kind,
    MatchingArgs,
    MaxFlowArgs,
    Operation,
    PatchArgs,
    RestoreArgs,
)
from service.store.blobs import Blobs
from service.store.keys import Keys
from tests.service_fixtures import Caller, StartWorker, code_of
from tests.unit.test_first_vertices import limits
from tests.unit.test_structure import patch as restructure
from tests.unit.test_vertices import CITY, CUT, PLAIN, op, patch, whole

NEW = EdgesOperation(op="insert", vertices=["w", "x"], vertex_capacity=["1.5", "inf"])
ROADS = EdgesOperation(op="insert", edge_ids=["f", "g"], tail=["s", "w"], head=["w", "t"], capacity=["9", "9"])


def begin(caller: Caller, start_worker: StartWorker, edges: Any = CITY, **settings: Any) -> Any:
    worker = start_worker(**settings)
    caller.wait_ready()
    caller.load("g", edges)
    return worker


@pytest.mark.parametrize("edges", [CITY, PLAIN], ids=["beside others", "the first one"])
def test_flows_are_solved_anew_and_proven(caller: Caller, start_worker: StartWorker, edges: Any) -> None:
    begin(caller, start_worker, edges)
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["value"] == 6
    done = restructure(caller, ROADS, NEW, EdgesOperation(op="delete", edges=["d"]), key="k")
    assert (done["version"], done["applied"]) == (2, 5)
    assert (done["inserted"]["vertices"], done["inserted"]["edges"], done["deleted"]["edges"]) == (2, 2, 1)
    (state,) = done["flow_states"]
    assert (state["old_value"], state["value"], state["mode"], state["certificate"]["valid"]) == (6, 5.5, "cold", True)
    cut = caller.ask(Kind.MAX_FLOW, "g", CUT)["cut"]
    assert (cut["edges"], cut["vertices"], cut["vertex_pays"]) == (["e"], ["w"], [1.5])
    assert limits(caller) == ({} if edges is PLAIN else {"u": 3.5, "v": "inf"}) | {"w": 1.5, "x": "inf"}
    (state,) = patch(caller, op("set", ["w"], "2"))["flow_states"]
    assert (state["value"], state["mode"]) == (6, "warm")
    assert restructure(caller, ROADS, NEW, EdgesOperation(op="delete", edges=["d"]), key="k")["version"] == 2
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["edge_ids"] == list("abcefg")


def test_edges_alone_and_vertices_alone(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker)
    caller.ask(Kind.MAX_FLOW, "g", CUT)
    more = EdgesOperation(op="insert", edge_ids=["f"], tail=["u"], head=["t"], capacity=["9"], undirected=True)
    (state,) = restructure(caller, more)["flow_states"]
    assert (state["value"], state["certificate"]["valid"]) == (6.5, True), "u lets 3.5 pass, and v 3"
    (state,) = restructure(caller, EdgesOperation(op="insert", vertices=["w"]))["flow_states"]
    assert state["value"] == 6.5
    assert restructure(caller)["flow_states"][0]["mode"] == "unchanged"
    assert restructure(caller, more.model_copy(update={"edge_ids": ["g"]}), solve="none")["flow_states"] == []
    assert limits(caller) == {"u": 3.5, "v": "inf"}
    answer = caller.ask(Kind.MAX_FLOW, "g", CUT)
    assert (answer["value"], answer["mode"]) == (6.5, "cold")


def test_through_restarts(caller: Caller, start_worker: StartWorker) -> None:
    """From the log, from a snapshot, and from a snapshot and the log; with costs and a closed edge."""
    costly = replace(CITY, cost=np.array([1, 2, 3, 4, 5]), closed=np.array([False, False, True, False, False]))
    worker = begin(caller, start_worker, costly)
    for step in range(6):
        name = f"w{step}"
        vertex = EdgesOperation(op="insert", vertices=[name], vertex_capacity=[str(step)])
        ends: dict[str, Any] = {"tail": ["s", name], "head": [name, "t"], "capacity": ["4", "2.5"]}
        road = EdgesOperation(
            op="insert", edge_ids=[name, name + "x"], cost=["1", "2"], undirected=[True, False], **ends
        )
        restructure(caller, vertex if step % 2 else EdgesOperation(op="insert", vertices=[name]), road)
        if step in (1, 4):
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        if step in (2, 4):
            patch(caller, op("set", [f"w{step - 1}", "v"], "1", "2"))
            restructure(caller, EdgesOperation(op="delete", edges=[f"w{step - 1}x"]))
            caller.ask(Kind.PATCH, "g", PatchArgs(batch=[Operation(op="set", edges=[name], amounts=["3.5"])]))
        before = whole(caller), caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
        worker.graphs.residents.drop("g")
        assert (whole(caller), caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())) == before, step
    assert limits(caller) == {"u": 3.5, "v": 2, "w1": 1, "w3": 1, "w5": 5}


def test_earlier_versions(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    begin(caller, start_worker, PLAIN)
    restructure(caller, NEW, ROADS)
    patch(caller, op("set", ["w"], "1"))

    def exported(version: int) -> Any:
        made = caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz", version=version))
        found = read_npz(Blobs(client, keys).get(made["blob"]))
        limited = None if found.limited is None else found.limited.tolist()
        return found.n_vertices, found.n_edges, limited, found.vertex_capacity is not None and found.vertex_capacity[0]

    for _ in ("from the log", "from a snapshot"):
        assert [exported(version) for version in (1, 2, 3)] == [
            (4, 5, None, False),
            (6, 7, [4, 5], 15),
            (6, 7, [4, 5], 10),
        ]
        caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
    assert (caller.ask(Kind.MAX_FLOW, "g", CUT)["value"], limits(caller)) == (6, {"w": "inf", "x": "inf"})
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=2))
    assert (caller.ask(Kind.MAX_FLOW, "g", CUT)["value"], limits(caller)) == (7.5, {"w": 1.5, "x": "inf"})


@pytest.mark.parametrize("edges", [CITY, PLAIN], ids=["beside others", "the first one"])
def test_refusals_change_nothing(caller: Caller, start_worker: StartWorker, edges: Any) -> None:
    worker = begin(caller, start_worker, edges, max_vertices=7)
    before = whole(caller)
    residents, budget = worker.graphs.residents, worker.graphs.residents.budget
    half = str(MAX_TOTAL // 20 + 1)
    heavy = EdgesOperation(op="insert", edge_ids=["f"], tail=["s"], head=["t"], capacity=[half])
    for batch, code in (
        ([EdgesOperation(op="insert", vertices=["u"], vertex_capacity=["1"])], "already_exists"),
        ([EdgesOperation(op="insert", vertices=["w"], vertex_capacity=["0.25"])], "invalid_body"),
        ([EdgesOperation(op="insert", vertices=["w"], vertex_capacity=["1e30"])], "capacity_overflow"),
        ([EdgesOperation(op="insert", vertices=["w", "x"], vertex_capacity=[half, half])], "capacity_overflow"),
        ([EdgesOperation(op="insert", vertices=["w"], vertex_capacity=[half]), heavy], "capacity_overflow"),
        ([EdgesOperation(op="insert", vertices=list("wxyz"), vertex_capacity=["1"] * 4)], "too_large"),
        ([NEW, ROADS.model_copy(update={"head": ["w", "z"]})], "unknown_vertex"),
    ):
        refused = caller.reply(Kind.PATCH_EDGES, "g", EdgesArgs(batch=batch)).problem
        assert refused is not None
        assert refused.code == code, batch
        if code == "capacity_overflow":
            assert "w" in refused.where["vertices"] or refused.where["field"].endswith("/capacity")
    residents.resize(Footprint(residents.held.host + 100))
    asked = EdgesArgs(batch=[NEW, ROADS])
    assert code_of(partial(caller.reply, Kind.PATCH_EDGES, "g", asked)) == "out_of_memory"
    assert residents.get("g") is not None, "the copy in memory is as it was"
    residents.resize(budget)
    assert whole(caller) == before
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["mode"] == "unchanged"
    assert restructure(caller, NEW, ROADS)["version"] == 2


def test_a_failure_half_way_changes_nothing(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(caller, start_worker)
    before = whole(caller)

    def fail(*_: object) -> None:
        raise ValueError("on the way")

    with monkeypatch.context() as patched:
        patched.setattr(VertexTable, "check_total", fail)
        assert code_of(partial(caller.reply, Kind.PATCH_EDGES, "g", EdgesArgs(batch=[NEW, ROADS]))) == "engine_error"
    assert whole(caller) == before
    assert restructure(caller, NEW, ROADS)["flow_states"][0]["value"] == 7.5


def test_a_matching_is_dropped(caller: Caller, start_worker: StartWorker) -> None:
    begin(
        caller,
        start_worker,
        replace(PLAIN, tail=np.array([0] * 5, np.int32), head=np.array([1, 2, 3] + [1] * 2, np.int32)),
    )
    assert caller.ask(Kind.MATCHING, "g", MatchingArgs())["size"] == 1
    (state,) = restructure(caller, NEW)["flow_states"]
    assert (state["kind"], state["mode"]) == ("matching", "dropped")
    assert code_of(lambda: caller.reply(Kind.MATCHING, "g", MatchingArgs())) == "has_vertex_capacities"


def test_numbered(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker, replace(CITY, vertex_labels=None, edge_ids=None))
    more = EdgesOperation(op="insert", tail=[0, 4], head=[4, 3], capacity=["9", "9"])
    done = restructure(caller, more, EdgesOperation(op="insert", count=2, vertex_capacity=["2", "inf"]))
    assert done["inserted"] == {"vertices": 2, "edges": 2, "first_vertex": 4, "first_edge": 5}
    assert caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=[0], sinks=[3]))["value"] == 8
    assert limits(caller) == {1: 3.5, 2: "inf", 4: 2, 5: "inf"}
