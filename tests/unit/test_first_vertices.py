"""The first capacity of a vertex by an update: the network is split then, and nothing is lost on the way."""

from typing import Any

import pytest

from gpu_engine.footprint import Footprint
from gpu_engine.formats import pack, read_npz
from gpu_engine.select import load_network
from gpu_engine.types import MAX_TOTAL
from service.protocol import (
    CapacitiesArgs,
    EdgesArgs,
    EdgesOperation,
    EmptyArgs,
    ExportArgs,
    Kind,
    LoadArgs,
    MatchingArgs,
    MaxFlowArgs,
    Operation,
    PatchArgs,
    RestoreArgs,
    WatchArgs,
)
from service.store.blobs import Blobs
from service.store.keys import Keys
from service.worker.copies import Copies
from service.worker.graph import least_footprint
from tests.service_fixtures import Caller, StartWorker, code_of
from tests.unit.test_vertices import CITY, CUT, PLAIN, op, page, patch, whole

VALUE = MaxFlowArgs(sources=["s"], sinks=["t"])


def begin(caller: Caller, start_worker: StartWorker, **settings: Any) -> Any:
    worker = start_worker(**settings)
    caller.wait_ready()
    caller.load("g", PLAIN)
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["value"] == 6
    return worker


def limits(caller: Caller) -> dict[str, Any]:
    found = page(caller)
    return dict(zip(found["vertices"], found["capacity"], strict=True))


def test_flows_are_solved_anew_and_proven(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker)
    caller.ask(Kind.MAX_FLOW, "g", VALUE.model_copy(update={"sources": ["u"]}))
    done = patch(caller, op("set", ["v"], "3"), key="first")
    assert (done["version"], done["applied"], done["unchanged"]) == (2, 1, 0)
    told = [(s["sources"], s["old_value"], s["value"], s["mode"]) for s in done["flow_states"]]
    assert told == [(["u"], 4, 4, "cold"), (["s"], 6, 5, "cold")]
    assert all(state["certificate"]["valid"] and state["certificate"]["complete"] for state in done["flow_states"])
    assert patch(caller, op("set", ["v"], "3"), key="first")["version"] == 2
    answer = caller.ask(Kind.MAX_FLOW, "g", CUT)
    assert (answer["mode"], answer["cut"]["vertices"], answer["cut"]["vertex_pays"]) == ("unchanged", ["v"], [3])
    assert (limits(caller), page(caller)["version"]) == ({"v": 3}, 2)
    done = patch(caller, op("set", ["v", "u", "s"], "2.5", "3", "inf"), op("add", ["u"], "-0.5"))
    assert (done["applied"], done["unchanged"], limits(caller)) == (2, 1, {"u": 2.5, "v": 2.5})
    assert [(state["value"], state["mode"]) for state in done["flow_states"]] == [(4.5, "cold"), (2.5, "cold")]
    done = patch(caller, op("set", ["u"], "2"))
    assert {state["mode"] for state in done["flow_states"]} <= {"warm", "unchanged"}


def test_nothing_happens_where_nothing_changes(caller: Caller, start_worker: StartWorker) -> None:
    worker = begin(caller, start_worker)
    done = patch(caller, op("set", ["v"], "inf"), op("scale", ["u"], "3"))
    assert (done["applied"], done["unchanged"], limits(caller)) == (0, 2, {})
    assert done["flow_states"][0]["mode"] == "unchanged"
    for _ in ("in memory", "from the log"):
        assert code_of(lambda: caller.reply(Kind.MATCHING, "g", MatchingArgs())) == "not_bipartite"
        for version in (None, 2):
            assert caller.ask(Kind.EXPORT, "g", ExportArgs(format="dimacs", version=version))["version"] == 2
        worker.graphs.residents.drop("g")
    patch(caller, op("set", ["v"], "inf"))
    assert caller.ask(Kind.EXPORT, "g", ExportArgs(format="dimacs", version=2))["version"] == 2
    done = patch(caller, op("set", ["v"], "3"), solve="none")
    assert done["flow_states"] == []
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["mode"] == "cold"


def test_through_restarts(caller: Caller, start_worker: StartWorker) -> None:
    """From the log, from a snapshot, and from a snapshot and the log; with vertices that came by an update too."""
    worker = begin(caller, start_worker)
    insert = EdgesOperation(op="insert", vertices=["w"])
    edges = EdgesOperation(op="insert", edge_ids=["f", "g"], tail=["s", "w"], head=["w", "t"], capacity=["9", "9"])
    caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[insert, edges]))
    caller.ask(Kind.PATCH, "g", PatchArgs(batch=[Operation(op="close", edges=["c"])]))
    for step, expected in (("w", 9), ("saved", 9), ("v", 7), ("saved", 7), ("u", 5.5)):
        if step == "saved":
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        else:
            patch(caller, op("set", [step], {"w": "4", "v": "1", "u": "0.5"}[step]), key=step)
        before = whole(caller)
        assert before[1] == expected, step
        worker.graphs.residents.drop("g")
        assert whole(caller) == before, step
    assert patch(caller, op("set", ["w"], "4"), key="w")["version"] == 4
    assert limits(caller) == {"u": 0.5, "v": 1, "w": 4}


def test_earlier_versions(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    begin(caller, start_worker)
    patch(caller, op("set", ["v"], "3"))
    patch(caller, op("set", ["u"], "2"))

    def exported(version: int) -> Any:
        made = caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz", version=version))
        found = read_npz(Blobs(client, keys).get(made["blob"]))
        return None if found.limited is None else (found.limited.tolist(), found.vertex_capacity.tolist())  # type: ignore[union-attr]

    for _ in ("from the log", "from a snapshot"):
        assert [exported(version) for version in (1, 2, 3)] == [None, ([2], [30]), ([1, 2], [20, 30])]
        caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    assert caller.ask(Kind.EXPORT, "g", ExportArgs(format="dimacs", version=1))["version"] == 1
    done = caller.ask(Kind.RESTORE, "g", RestoreArgs(version=2))
    assert (done["applied"], done["flow_states"][0]["value"], limits(caller)) == (1, 5, {"u": "inf", "v": 3})
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
    assert (caller.ask(Kind.MAX_FLOW, "g", CUT)["value"], limits(caller)) == (6, {"u": "inf", "v": "inf"})
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=3))
    assert limits(caller) == {"u": 2, "v": 3}


def test_a_dry_run_says_what_the_update_does(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker)
    caller.ask(Kind.MAX_FLOW, "g", VALUE.model_copy(update={"sources": ["u"]}))
    before, args = whole(caller), PatchArgs(batch=[op("set", ["v", "t"], "3", "4.5")])
    tried = caller.ask(Kind.DRY_RUN_VERTICES, "g", args)
    assert (tried["version"], tried["applied"], whole(caller)) == (1, 2, before)
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["mode"] == "unchanged"
    done = patch(caller, *args.batch)

    def shown(answer: dict[str, Any]) -> list[Any]:
        states = sorted(answer["flow_states"], key=lambda state: str(state["sources"]))
        return [[state[name] for name in ("sources", "old_value", "value", "mode", "certificate")] for state in states]

    assert shown(done) == shown(tried)
    assert [state[2] for state in shown(done)] == [4.5, 4]


@pytest.mark.parametrize("kind", [Kind.PATCH_VERTICES, Kind.DRY_RUN_VERTICES])
def test_nothing_is_lost_where_memory_is_short(caller: Caller, start_worker: StartWorker, kind: Kind) -> None:
    worker = begin(caller, start_worker)
    before, residents, budget = whole(caller), worker.graphs.residents, worker.graphs.residents.budget
    residents.resize(Footprint(residents.held.host + 100))
    assert code_of(lambda: caller.reply(kind, "g", PatchArgs(batch=[op("set", ["v"], "3")]))) == "out_of_memory"
    assert residents.get("g") is not None
    residents.resize(budget)
    assert whole(caller) == before
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["mode"] == "unchanged"
    assert patch(caller, op("set", ["v"], "3"))["version"] == 2


def test_a_load_whose_halves_cannot_fit_is_refused_before_it_is_built(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start_worker()
    caller.wait_ready()
    built: list[object] = []
    monkeypatch.setattr(Copies, "network", lambda self, edges: built.append(edges) or load_network(edges, "cpu"))
    worker.graphs.residents.resize(least_footprint("cpu", 4, 5))
    load = LoadArgs(blob=caller.run(caller.dispatcher.blobs.put(pack(CITY))))
    assert code_of(lambda: caller.reply(Kind.LOAD, "g", load)) == "out_of_memory"
    assert built == []
    assert caller.load("g", PLAIN)["version"] == 1
    assert len(built) == 1


def test_refusals_change_nothing(caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(caller, start_worker)
    before = whole(caller)
    most = str(MAX_TOTAL // 10)
    for kind in (Kind.PATCH_VERTICES, Kind.DRY_RUN_VERTICES):
        for batch, code in (
            ([op("set", ["v", "x"], "1", "1")], "unknown_vertex"),
            ([op("set", ["v"], most)], "capacity_overflow"),
        ):
            assert code_of(lambda kind=kind, batch=batch: caller.reply(kind, "g", PatchArgs(batch=batch))) == code  # type: ignore[misc]
        with monkeypatch.context() as small:
            small.setattr("gpu_engine.networks.validate.MAX_VERTICES", 4)
            args = PatchArgs(batch=[op("set", ["v"], "1")])
            assert code_of(lambda kind=kind, args=args: caller.reply(kind, "g", args)) == "too_large"  # type: ignore[misc]
    assert whole(caller) == before


def test_who_does_not_know_vertices_refuses_from_then_on(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    """A matching is dropped, and a watch of the cut says that it cannot be seen any more."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", PLAIN)
    delete = EdgesOperation(op="delete", edges=["a", "b", "c"])
    caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[delete]))
    assert caller.ask(Kind.MATCHING, "g", MatchingArgs())["size"] == 1
    watch = WatchArgs(watch="w", sources=["u"], sinks=["t"], on=("value",))
    assert caller.ask(Kind.WATCH, "g", watch)["value"] == 2
    done = patch(caller, op("set", ["u"], "1"))
    assert {(state["kind"], state["value"], state["mode"]) for state in done["flow_states"]} == {
        ("matching", None, "dropped"),
        ("flow", 1, "cold"),
    }
    refused = caller.reply(Kind.MATCHING, "g", MatchingArgs()).problem
    assert refused is not None
    assert (refused.code, refused.vertices) == ("has_vertex_capacities", ["u"])
    assert code_of(lambda: caller.reply(Kind.WATCH, "g", watch.model_copy(update={"on": ("cut",)}))) == (
        "has_vertex_capacities"
    )
    assert {key: len(solved.terminals.sources) for key, solved in worker.graphs.residents.get("g").states.items()}
    caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[EdgesOperation(op="delete", vertices=["u"])]))
    refused = caller.reply(Kind.MATCHING, "g", MatchingArgs()).problem
    assert refused is not None
    assert "a copy of the graph is made without them" in str(refused.detail)
    made = caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz"))  # of which a copy is made
    caller.load("without", read_npz(Blobs(client, keys).get(made["blob"])))  # type: ignore[arg-type]
    assert caller.ask(Kind.MATCHING, "without", MatchingArgs())["size"] == 1


def test_a_dry_run_of_edges_adds_up_what_vertices_have(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker)
    patch(caller, op("set", ["v"], str(MAX_TOTAL // 20)))
    too_much = PatchArgs(batch=[op("set", ["a"], str(MAX_TOTAL // 20))])
    for kind in (Kind.DRY_RUN, Kind.PATCH):
        problem = caller.reply(kind, "g", too_much).problem
        assert problem is not None
        assert (problem.code, problem.where["edges"][0]) == ("capacity_overflow", "a")
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["capacity"][0] == 4
    fits = PatchArgs(batch=[op("set", ["a"], str(MAX_TOTAL // 20 - 100))])
    assert caller.ask(Kind.DRY_RUN, "g", fits)["flow_states"][0]["value"] == 6
    assert caller.ask(Kind.PATCH, "g", fits)["version"] == 3
