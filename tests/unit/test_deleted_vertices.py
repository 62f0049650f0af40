"""Vertices that are deleted with their edges: batches, and what becomes of them through the log and restarts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import zstandard

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure, present_of, since_load
from service.protocol import (
    CapacitiesArgs,
    CutTreeArgs,
    EdgesArgs,
    EdgesOperation,
    EmptyArgs,
    ExportArgs,
    GlobalCutArgs,
    Kind,
    MatchingArgs,
    MaxFlowArgs,
    Message,
    MinCostFlowArgs,
    Operation,
    PairsArgs,
    PatchArgs,
    RestoreArgs,
    WatchArgs,
)
from service.store.keys import Keys
from service.store.log import BrokenLog, _read_entry
from service.store.structures import pack_structure, unpack_structure
from tests.graphs import drawn
from tests.service_fixtures import Caller, StartWorker, code_of
from tests.unit.test_first_vertices import limits
from tests.unit.test_structure import COSTLY, NAMED, PLAIN, delete, edge, exported, insert, patch, resolved, whole
from tests.unit.test_vertices import CITY

CUT = MaxFlowArgs(sources=["s"], sinks=["t"], fields=frozenset({"value", "cut", "flow"}))


def without(*vertices: Any) -> EdgesOperation:
    return EdgesOperation(op="delete", vertices=list(vertices))


def test_a_batch() -> None:
    """Its edges go as well, each once, whoever else names them."""
    structure, change = resolved(NAMED, without("u"), delete("c", "e"), insert(vertices=["w"]), edge(head="w"))
    assert structure.deleted_vertices.tolist() == [1]
    assert structure.deleted.tolist() == [0, 2, 3, 4]
    assert (change.rows.tolist(), change.own.tolist()) == ([0, 2, 3, 4, 5], [0, 0, 0, 0, 10])
    structure, change = resolved(NAMED, without("u", "x"), without("u"), on_missing="skip")
    assert (structure.deleted_vertices.tolist(), change.skipped) == ([1], 1)
    loop = drawn(2, [(0, 0, 1), (0, 1, 1), (1, 1, 1)])
    assert resolved(loop, without(0))[0].deleted.tolist() == [0, 1]


@pytest.mark.parametrize("names", [None, list("suvt"), np.array([7, 5, 3, 1])])
def test_what_is_left(names: Any) -> None:
    """Vertices that were numbered keep their numbers as labels, unless those that are there are the first ones."""
    edges = replace(PLAIN, vertex_labels=names, limited=np.array([1, 3], np.int32), vertex_capacity=np.array([4, 6]))
    network = Network(edges)
    network.mark(np.array([0, 2, 3]), np.empty(0, np.int64))
    network.mark_vertices(np.array([1], np.int32), np.empty(0, np.int32))
    left = present_of(
        replace(network.edge_list(), limited=edges.limited, vertex_capacity=edges.vertex_capacity), network
    )
    assert (left.n_vertices, left.tail.tolist(), left.head.tolist()) == (3, [0, 1], [1, 2])
    assert list(left.vertex_labels) == (
        ["s", "v", "t"] if isinstance(names, list) else [0, 2, 3] if names is None else [7, 3, 1]
    )  # type: ignore[arg-type]
    assert left.limited is not None
    assert left.vertex_capacity is not None
    assert (left.limited.tolist(), left.vertex_capacity.tolist()) == ([2], [6])
    assert (network.source, network.sink, left.source, left.sink) == (0, 3, 0, 2)
    network.mark_vertices(np.array([3], np.int32), np.array([1], np.int32))
    network.mark(np.array([0, 1, 2, 3, 4]), np.empty(0, np.int64))
    left = present_of(network.edge_list(), network)
    assert (left.n_vertices, network.source, network.sink, left.sink) == (3, 0, None, None)
    assert (left.vertex_labels is None) == (names is None)
    network.mark_vertices(np.arange(3, dtype=np.int32), np.empty(0, np.int32))
    left = present_of(network.edge_list(), network)
    assert (left.n_vertices, left.n_edges, left.source) == (0, 0, None)
    assert (left.vertex_labels is None) == (names is None)


def test_an_earlier_release_reads_no_half_of_it() -> None:
    """It looks for a member that is not there, in an entry and in a snapshot alike."""
    gone = Structure(2, deleted=np.array([1]), deleted_vertices=np.array([3, 5], np.int32))
    back = Structure(revived_vertices=np.array([3], np.int32))
    for structure in (gone, back):
        packed = pack_structure(structure)
        again = unpack_structure(packed)
        for name in ("n_vertices", "deleted", "deleted_vertices", "revived_vertices"):
            assert np.array_equal(getattr(again, name), getattr(structure, name)), name
        plain = unpack_structure(
            pack_structure(replace(structure, deleted_vertices=back.tail, revived_vertices=back.tail))
        )
        assert not len(plain.deleted_vertices)
    assert b"n_vertices.npy" not in zstandard.ZstdDecompressor().decompress(pack_structure(gone))
    said = b'{"key":"k","applied":1,"skipped":0,"unchanged":0}'
    with pytest.raises(BrokenLog):
        _read_entry(2, {b"applied": said, b"change": b"", b"structure": pack_structure(gone)})


def begin(caller: Caller, start_worker: StartWorker, edges: EdgeList = NAMED, **settings: Any) -> Any:
    worker = start_worker(**settings)
    caller.wait_ready()
    caller.load("g", edges)
    return worker


def refused(caller: Caller, kind: Kind, args: Message) -> Any:
    problem = caller.reply(kind, "g", args).problem
    assert problem is not None
    return problem


def test_flows_without_their_terminals_are_dropped(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker)
    first = whole(caller)
    caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=["u"], sinks=["t"]))
    caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=["s"], sinks=["u", "t"]))
    done = patch(caller, without("u"), key="k")
    assert (done["version"], done["applied"], done["deleted"]) == (2, 4, {"edges": 3, "vertices": 1})
    told = {(*state["sources"], *state["sinks"]): state for state in done["flow_states"]}
    assert {ends: state["mode"] for ends, state in told.items()} == {
        ("s", "t"): "warm",
        ("u", "t"): "dropped",
        ("s", "u", "t"): "dropped",
    }
    assert told["s", "t"]["value"] < first[1]
    assert told["s", "t"]["certificate"]["valid"]
    again = patch(caller, without("u"), key="k")
    assert (again["version"], again["deleted"]) == (2, done["deleted"])
    cut = caller.ask(Kind.MAX_FLOW, "g", CUT)["cut"]
    assert sorted([*cut["source_side"], *cut["sink_side"]]) == ["s", "t", "v"]
    near = caller.ask(Kind.MAX_FLOW, "g", CUT.model_copy(update={"near": "sinks"}))["cut"]
    assert sorted([*near["source_side"], *near["sink_side"]]) == ["s", "t", "v"]


def test_nobody_finds_one(caller: Caller, start_worker: StartWorker) -> None:
    worker = begin(caller, start_worker, COSTLY)
    patch(caller, without("u"))
    road = edge(head="u", cost=["1"])
    asked: list[tuple[Kind, Message]] = [
        (Kind.MAX_FLOW, MaxFlowArgs(sources=["u"], sinks=["t"])),
        (Kind.MAX_FLOW, MaxFlowArgs(sources=["s"], sinks=["u"], demand=["1"])),
        (Kind.MIN_COST_FLOW, MinCostFlowArgs(sources=["s"], sinks=["u"])),
        (Kind.PAIRS, PairsArgs(among=["s", "u"], most=9)),
        (Kind.PATCH_EDGES, EdgesArgs(batch=[without("u")])),
        (Kind.PATCH_EDGES, EdgesArgs(batch=[road])),
        (Kind.PATCH, PatchArgs(batch=[Operation(op="set", tail=["u"], head=["v"], amounts=["1"])])),
        (Kind.PATCH_VERTICES, PatchArgs(batch=[Operation(op="set", edges=["u"], amounts=["1"])])),
        (Kind.DRY_RUN_VERTICES, PatchArgs(batch=[Operation(op="set", edges=["u"], amounts=["1"])])),
        (Kind.WATCH, WatchArgs(watch="w", sources=["u"], sinks=["t"], on=["value"])),
    ]
    for _ in range(2):
        for kind, args in asked:
            problem = refused(caller, kind, args)
            assert (problem.code, "deleted" in problem.detail) == ("unknown_vertex", True), (kind, problem)
        taken = EdgesArgs(batch=[insert(vertices=["u"])])
        assert refused(caller, Kind.PATCH_EDGES, taken).code == "already_exists"
        worker.graphs.residents.drop("g")
    assert caller.page("g")["version"] == 2
    skipped = patch(caller, without("u", "v"), on_missing="skip")
    assert (skipped["skipped"], skipped["deleted"]["vertices"]) == (1, 1)


def test_a_batch_cannot_join_what_it_deletes(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker)
    before = whole(caller)
    for batch, code, field in (
        ([without("u"), edge(head="u")], "unknown_vertex", "/batch/1/head"),
        ([insert(vertices=["w"]), without("w")], "unknown_vertex", "/batch/1/vertices"),
        ([without("u", "u")], "invalid_body", "/vertices"),
        ([delete("a"), without("u", "x")], "unknown_vertex", "/batch/1/vertices"),
    ):
        problem = refused(caller, Kind.PATCH_EDGES, EdgesArgs(batch=batch))
        assert (problem.code, problem.where["field"]) == (code, field)
    assert whole(caller) == before


def test_default_terminals(caller: Caller, start_worker: StartWorker) -> None:
    worker = begin(caller, start_worker, PLAIN)
    assert caller.value("g") == 5
    info = worker.graphs._copies.residents.get("g")
    (state,) = patch(caller, without(3))["flow_states"]
    assert (state["mode"], state["value"], state["old_value"], state["sinks"]) == ("dropped", None, 5, [3])
    for _ in range(2):
        problem = refused(caller, Kind.MAX_FLOW, MaxFlowArgs())
        assert (problem.code, "no sink is given" in problem.detail) == ("invalid_body", True)
        worker.graphs.residents.drop("g")
    assert info is not None
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
    for _ in range(2):
        assert caller.value("g") == 5
        worker.graphs.residents.drop("g")


@pytest.mark.parametrize(
    "edges", [COSTLY, replace(CITY, cost=np.array([1, 2, 3, 4, 5]), cost_decimals=1)], ids=["plain", "limited"]
)
def test_through_restarts(caller: Caller, start_worker: StartWorker, edges: EdgeList) -> None:
    """From the log, from a snapshot, and from a snapshot and the log."""
    worker = begin(caller, start_worker, edges)

    def seen() -> list[Any]:
        exported = caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz"))["bytes"]
        return [whole(caller), caller.ask(Kind.VERTICES, "g", CapacitiesArgs()), exported]

    for step in range(7):
        name = f"w{step}"
        ends: dict[str, Any] = {"tail": ["s", name, name], "head": [name, "t", name], "capacity": ["2.5", "1", "1"]}
        limit = {"vertex_capacity": ["0.5"]} if edges.limited is not None and step % 2 else {}
        batch = [
            insert(vertices=[name], **limit),
            insert(edge_ids=[name, name + "x", name + "o"], cost=["0.5", "1", "1"], **ends),
        ]
        gone = {2: ["w0", "v"], 3: ["w1"], 5: ["u", "w3", "w4"]}.get(step, [])
        done = patch(caller, *batch, *([without(*gone)] if gone else []))
        assert done["deleted"]["vertices"] == len(gone)
        if step in (2, 4):
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        before = seen()
        assert all(state["certificate"]["valid"] for state in done["flow_states"])
        worker.graphs.residents.drop("g")
        assert seen() == before, step
    assert whole(caller)[0]["tail"] == ["s", "w2", "w2", "s", "w5", "w5", "s", "w6", "w6"]
    if edges.limited is not None:
        assert limits(caller) == {"w5": 0.5}


@pytest.mark.parametrize(
    "edges", [COSTLY, replace(PLAIN, limited=CITY.limited, vertex_capacity=np.array([3, 4]))], ids=["named", "numbered"]
)
def test_earlier_versions(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys, edges: EdgeList) -> None:
    """An export of each is what there was; a restore brings back what was deleted, with capacities and terminals."""
    worker = begin(caller, start_worker, edges)
    u, v, w = ("u", "v", "w") if edges is COSTLY else (1, 2, 4)
    road: Callable[..., EdgesOperation] = (
        partial(edge, cost=["7"]) if edges is COSTLY else lambda _, head: insert(tail=[0], head=[head], capacity=["1"])
    )
    files, pages = {}, {}

    def keep(version: int) -> None:
        files[version], pages[version] = exported(caller, client, keys), (caller.page("g"), limits(caller))

    keep(1)
    patch(caller, without(u))
    keep(2)
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    patch(caller, insert(vertices=[w]) if edges is COSTLY else insert(count=1), road("f", head=w))
    keep(3)
    patch(caller, without(v, w))
    keep(4)
    assert [files[version].n_vertices for version in (1, 2, 3, 4)] == [4, 3, 4, 2]
    for version, file in files.items():
        again = exported(caller, client, keys, version)
        for name in EdgeList.__dataclass_fields__:
            same = np.array_equal(getattr(again, name), getattr(file, name))
            assert same or (edges is not COSTLY and name == "edge_ids"), (version, name)  # where others came since
    for at, version in enumerate((1, 2, 4, 3, 1), 5):
        assert caller.ask(Kind.RESTORE, "g", RestoreArgs(version=version))["version"] == at
        for _ in range(2):
            assert (caller.page("g"), limits(caller)) == (
                pages[version][0] | {"version": at, "next": None},
                pages[version][1],
            )
            worker.graphs.residents.drop("g")
    assert caller.ask(Kind.RESTORE, "g", RestoreArgs(version=4))["applied"] > 0
    counted = caller.ask(Kind.RESTORE, "g", RestoreArgs(version=4))
    assert (counted["applied"], counted.get("deleted")) == (0, None)


def test_numbers_are_not_given_twice(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    begin(caller, start_worker, PLAIN, max_vertices=6)
    patch(caller, without(1), insert(count=1))
    assert exported(caller, client, keys).vertex_labels.tolist() == [0, 2, 3, 4]  # type: ignore[union-attr]
    patch(caller, without(4))
    done = patch(caller, insert(count=1), insert(tail=[0], head=[5], capacity=["1"]))
    assert done["inserted"]["first_vertex"] == 5
    file = exported(caller, client, keys)
    caller.load("h", file)
    assert caller.value("h") == caller.value("g")
    assert caller.ask(Kind.CAPACITIES, "h", CapacitiesArgs())["head"] == caller.page("g")["head"]
    assert refused(caller, Kind.PATCH_EDGES, EdgesArgs(batch=[insert(count=1)])).code == "too_large"


def test_a_matching_without_one(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker, drawn(5, [(0, 2, 1), (1, 2, 1), (1, 3, 1)]))
    everything = MatchingArgs(fields=frozenset({"size", "matching", "cover"}))
    assert caller.ask(Kind.MATCHING, "g", everything)["size"] == 2
    (state,) = patch(caller, without(4))["flow_states"]
    assert (state["kind"], state["mode"]) == ("matching", "unchanged")
    (state,) = patch(caller, without(2))["flow_states"]
    assert (state["kind"], state["mode"]) == ("matching", "dropped")
    answer = caller.ask(Kind.MATCHING, "g", everything)
    assert (answer["size"], answer["matching"]["edges"]) == (1, [2])
    assert 2 not in [*answer["cover"]["left"], *answer["cover"]["right"]]
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
    assert caller.ask(Kind.MATCHING, "g", everything)["size"] == 2


def test_questions_about_all_vertices(caller: Caller, start_worker: StartWorker) -> None:
    """A path of four: without the third the rest is in two parts, without the last in one."""
    path = replace(drawn(4, [(0, 1, 3), (1, 2, 2), (2, 3, 1)]), undirected=True, vertex_labels=list("abcd"))
    worker = begin(caller, start_worker, path)
    cut = GlobalCutArgs(fields=frozenset({"value", "cut"}))
    tree = CutTreeArgs(fields=frozenset({"tree", "groups"}), most=9)
    assert caller.ask(Kind.GLOBAL_MIN_CUT, "g", cut)["value"] == 1
    patch(caller, without("d"))
    for _ in range(2):
        found = caller.ask(Kind.GLOBAL_MIN_CUT, "g", cut)
        assert (found["value"], found["certificate"]["rows"]) == (2, 2)
        assert sorted([found["cut"]["source_side"], found["cut"]["sink_side"]]) == [["a", "b"], ["c"]]
        grown = caller.ask(Kind.GOMORY_HU_TREE, "g", tree)
        assert (sorted(grown["tree"]["tail"]), sorted(grown["tree"]["value"])) == (["b", "c"], [2, 3])
        some = caller.ask(Kind.GOMORY_HU_TREE, "g", tree.model_copy(update={"terminals": ["a", "c"]}))
        assert some["groups"] == {"vertices": ["b"], "terminal": ["a"]}
        assert code_of(
            lambda: caller.reply(Kind.GOMORY_HU_TREE, "g", tree.model_copy(update={"terminals": ["d"]}))
        ) == ("unknown_vertex")
        worker.graphs.residents.drop("g")
    patch(caller, without("b", "c"))
    assert refused(caller, Kind.GLOBAL_MIN_CUT, cut).code == "invalid_body"


def test_a_watch_says_what_is_wrong(caller: Caller, start_worker: StartWorker) -> None:
    worker = begin(caller, start_worker)
    watch = WatchArgs(watch="w", sources=["u"], sinks=["t"], on=["value"])
    assert caller.ask(Kind.WATCH, "g", watch)["error"] is None
    assert [state["mode"] for state in patch(caller, without("u"))["flow_states"]] == ["dropped"]
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    assert graph.feed is not None
    assert graph.feed.seen["w"].error == "unknown_vertex"
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
    assert caller.ask(Kind.WATCH, "g", watch)["error"] is None


def test_potentials_of_what_is_there(caller: Caller, start_worker: StartWorker) -> None:
    begin(caller, start_worker, COSTLY)
    patch(caller, without("u"))
    asked = MinCostFlowArgs(sources=["s"], sinks=["t"], fields=frozenset({"value", "dual"}))
    dual = caller.ask(Kind.MIN_COST_FLOW, "g", asked)["dual"]
    assert (dual["vertices"], len(dual["potential"])) == (["s", "v", "t"], 3)


def test_since_the_load() -> None:
    network = Network(PLAIN)
    assert since_load(network, None) is None
    network.mark_vertices(np.array([2], np.int32), np.empty(0, np.int32))
    found = since_load(network, None)
    assert found is not None
    assert (found.deleted_vertices.tolist(), found.n_vertices) == ([2], 0)
