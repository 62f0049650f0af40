"""Capacities of vertices: batches of changes, and what becomes of them through the log, snapshots and restarts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import zstandard

from gpu_engine.checks.throughput import prove_throughput
from gpu_engine.errors import (
    CapacityOverflow,
    EngineError,
    HasVertexCapacities,
    InvalidNetwork,
    TooLarge,
    UnknownVertex,
)
from gpu_engine.formats import (
    pack,
    read_arrow,
    read_json,
    read_npz,
    unpack,
    write_arrow,
    write_csv,
    write_dimacs,
    write_json,
    write_npz,
)
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.validate import check
from gpu_engine.types import INFINITE, MAX_TOTAL
from gpu_engine.vertices.table import VertexTable, vertices_of
from service.protocol import (
    CapacitiesArgs,
    CapacityExpansionArgs,
    ClosureStudyArgs,
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
    ParametricArgs,
    PatchArgs,
    RestoreArgs,
    Scenario,
    WatchArgs,
    WhatIfArgs,
)
from service.store.blobs import Blobs
from service.store.keys import Keys
from service.store.snapshots import Capacities, pack_capacities, unpack_capacities
from tests.service_fixtures import Caller, StartWorker, code_of

CITY = EdgeList(
    n_vertices=4,
    tail=np.array([0, 0, 1, 1, 2], np.int32),
    head=np.array([1, 2, 2, 3, 3], np.int32),
    capacity=np.array([40, 30, 20, 20, 40]),
    decimals=1,
    edge_ids=list("abcde"),
    vertex_labels=list("suvt"),
    limited=np.array([1, 2], np.int32),
    vertex_capacity=np.array([35, INFINITE]),
)
"""s to u 4, s to v 3, u to v 2, u to t 2, v to t 4: the flow is 6; 3.5 pass u at most, v has a limit that is none."""

CUT = MaxFlowArgs(sources=["s"], sinks=["t"], fields=frozenset({"value", "cut", "flow", "paths", "bottlenecks"}))


def table() -> VertexTable:
    found = VertexTable.of(Network(CITY), CITY)
    assert found is not None
    return found


def op(name: Any, vertices: list[str], *amounts: str) -> Operation:
    return Operation(op=name, edges=vertices, amounts=list(amounts))


@pytest.mark.parametrize(
    ("batch", "after"),
    [
        ([op("set", ["v", "u"], "3", "1.5")], [15, 30]),
        ([op("set", ["u"], "inf")], [INFINITE, INFINITE]),
        ([op("add", ["u", "v"], "-3.5", "1")], [0, INFINITE]),
        ([op("scale", ["u"], "2")], [70, INFINITE]),
        ([op("set", ["v"], "1"), op("add", ["v", "u"], "1", "1"), op("scale", ["u"], "2")], [90, 20]),
    ],
)
def test_operations(batch: list[Operation], after: list[int]) -> None:
    capacities = table()
    capacities.apply(capacities.resolve(batch))
    assert capacities.capacity.tolist() == after


def test_what_does_not_change_is_counted() -> None:
    change = table().resolve([op("set", ["u", "v"], "3.5", "2")])
    assert (change.vertices.tolist(), change.capacity.tolist(), change.unchanged) == ([2], [20], 1)
    change = table().resolve([op("set", ["x", "v"], "3.5", "2")], on_missing="skip")
    assert (change.vertices.tolist(), change.skipped) == ([2], 1)
    change = table().resolve([op("set", ["u"], "1.26")], rounding="nearest")
    assert (change.capacity.tolist(), change.rounded.rows) == ([13], 1)


@pytest.mark.parametrize(
    ("operation", "error", "told", "field"),
    [
        (op("set", ["x"], "1"), UnknownVertex, "'x' is no vertex", "/vertices"),
        (op("scale", ["s"], "0"), InvalidNetwork, "unlimited", "/scale"),
        (op("set", ["u"], "0.01"), InvalidNetwork, "more than 1 decimal", "/set"),
        (op("add", ["u"], "-4"), InvalidNetwork, "negative", "/add"),
        (op("set", ["u", "u"], "1", "2"), InvalidNetwork, "named twice", "/vertices"),
        (op("set", ["u"], str(MAX_TOTAL // 10)), CapacityOverflow, "add up to", None),
        (op("set", ["s"], str(MAX_TOTAL // 10)), CapacityOverflow, "add up to", None),
        (Operation(op="close", edges=["u"]), InvalidNetwork, "an amount for each", "/vertices"),
    ],
)
def test_refusals_change_nothing(operation: Operation, error: type[EngineError], told: str, field: str | None) -> None:
    capacities = table()
    with pytest.raises(error, match=told) as refused:
        capacities.resolve([operation])
    assert refused.value.where.field == field
    if field is not None and error is not UnknownVertex and operation.edges != ["u", "u"]:
        assert refused.value.where.vertices in (["u"], ["s"], [])
    with pytest.raises(error) as refused:
        capacities.resolve([op("set", ["v"], "7"), operation])
    assert refused.value.where.operation == (None if field is None else 1)
    assert capacities.capacity.tolist() == [35, INFINITE]


PLAIN = replace(CITY, limited=None, vertex_capacity=None)


def test_a_vertex_without_a_capacity_is_unlimited_until_it_gets_one() -> None:
    assert VertexTable.of(Network(PLAIN), PLAIN) is None
    for capacities in (table(), vertices_of(None, Network(PLAIN))):
        before = capacities.of_vertices(np.arange(4, dtype=np.int32)).tolist()
        for name, amount in (("set", "inf"), ("add", "5"), ("scale", "2")):
            change = capacities.resolve([op(name, ["s"], amount)])
            assert (change.vertices.tolist(), change.unchanged) == ([], 1)
        change = capacities.resolve([op("set", ["t", "s"], "3", "2"), op("add", ["t"], "1"), op("scale", ["s"], "2")])
        assert (change.vertices.tolist(), change.capacity.tolist()) == ([0, 3], [40, 40])
        later, earlier = capacities.after(change), capacities.vertices.tolist()
        assert later.of_vertices(np.array([3, 1, 0, 2], np.int32)).tolist() == [40, before[1], 40, INFINITE]
        assert (later.vertices.tolist(), capacities.vertices.tolist()) == (sorted({0, 3, *earlier}), earlier)
        assert later.has(np.arange(4, dtype=np.int32)).tolist() == [v in {0, 3, *earlier} for v in range(4)]
        assert later.edge_rows(change).tolist() == [5, 4 + len(later.vertices)]


@pytest.mark.parametrize(
    ("limited", "capacity", "error"),
    [
        ([1, 2], [1], InvalidNetwork),
        ([2, 1], [1, 1], InvalidNetwork),
        ([1, 4], [1, 1], InvalidNetwork),
        ([-1, 2], [1, 1], InvalidNetwork),
        ([1, 2], [1, -1], InvalidNetwork),
        ([1, 2], [1, MAX_TOTAL], CapacityOverflow),
    ],
)
def test_columns_are_checked(limited: list[int], capacity: list[int], error: type[EngineError]) -> None:
    edges = replace(CITY, limited=np.array(limited, np.int32), vertex_capacity=np.array(capacity))
    with pytest.raises(error):
        check(edges)


def test_halves_count_in_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    check(CITY)
    monkeypatch.setattr("gpu_engine.networks.validate.MAX_VERTICES", 5)
    with pytest.raises(TooLarge, match="second half"):
        check(CITY)
    monkeypatch.setattr("gpu_engine.networks.validate.MAX_VERTICES", 6)
    monkeypatch.setattr("gpu_engine.networks.validate.MAX_ARCS", 14)
    check(CITY)
    with pytest.raises(TooLarge, match="inside"):
        check(replace(CITY, undirected=True))


@pytest.mark.parametrize("labels", [None, list("suvt")])
def test_formats(labels: list[str] | None) -> None:
    edges = replace(CITY, vertex_labels=labels)
    pairs = (write_json, read_json), (write_npz, read_npz), (write_arrow, read_arrow), (pack, unpack)
    for write, read in pairs:
        again = read(write(edges))
        for name in ("tail", "capacity", "limited", "vertex_capacity"):
            assert np.array_equal(getattr(again, name), getattr(edges, name)), (write, name)
        assert (again.decimals, again.n_vertices) == (1, 4)
    for lossy in (write_dimacs, write_csv):
        with pytest.raises(HasVertexCapacities, match="no place"):
            lossy(edges)


def sent(vertices: object, amounts: object, capacity: str = "[1]") -> EdgeList:
    body = f'{{"tail":["a"],"head":["b"],"capacity":{capacity},"vertices":{vertices},"vertex_capacity":{amounts}}}'
    return read_json(body.encode())


def test_amounts_of_both_have_the_same_decimals() -> None:
    for capacity, amount in (("[1.25]", "[2]"), ("[1]", "[2.75]")):
        edges = sent('["b"]', amount, capacity)
        assert edges.decimals == 2
        assert edges.vertex_capacity is not None
        assert [edges.capacity[0] / 100, edges.vertex_capacity[0] / 100] == [float(capacity[1:-1]), float(amount[1:-1])]


@pytest.mark.parametrize(
    ("vertices", "amounts", "code", "field"),
    [
        ('["x"]', "[1]", "invalid_body", "/vertices"),
        ('["a","a"]', "[1,2]", "invalid_body", "/vertices"),
        ("[0]", "[1]", "invalid_body", "/vertices"),
        ("7", "[1]", "invalid_body", "/vertices"),
        ('["a"]', "null", "invalid_body", "/vertices"),
        ("null", "[1]", "invalid_body", "/vertex_capacity"),
        ('["a"]', "[-1]", "invalid_body", "/vertex_capacity"),
        ('["a"]', '["x"]', "invalid_body", "/vertex_capacity"),
        ('["a"]', "[1,2]", "invalid_body", "/vertex_capacity"),
        ('["a"]', "[1e30]", "capacity_overflow", "/vertex_capacity"),
    ],
)
def test_columns_that_are_none(vertices: str, amounts: str, code: str, field: str) -> None:
    with pytest.raises(EngineError) as refused:
        sent(vertices, amounts)
    assert (refused.value.code, refused.value.where.field) == (code, field)


def test_a_flow_through_a_vertex_is_proven() -> None:
    network, flow = Network(CITY), np.array([35, 30, 15, 20, 45])
    vertices = np.array([0, 1, 3], np.int32)
    assert prove_throughput(network, flow, vertices, np.array([65, 35, 65])) == []
    for at in range(3):
        less = np.array([65, 35, 65])
        less[at] -= 1
        assert len(prove_throughput(network, flow, vertices, less)) == 1
    back = Network(replace(CITY, undirected=True))
    assert prove_throughput(back, -flow, vertices, np.array([65, 35, 65])) == []
    assert len(prove_throughput(back, -flow, vertices, np.array([65, 34, 65]))) == 1


def test_a_snapshot_without_them_has_no_column() -> None:
    plain = Capacities(version=1, own=np.array([1, 2]), closed=np.array([False, True]), known=[])
    assert unpack_capacities(pack_capacities(plain)).vertex_capacity is None
    columns = {"limited": np.array([0, 2], np.int32), "vertex_capacity": np.array([3, INFINITE])}
    again = unpack_capacities(pack_capacities(plain.model_copy(update=columns)))
    assert again.limited is not None
    assert again.vertex_capacity is not None
    assert (again.limited.tolist(), again.vertex_capacity.tolist()) == ([0, 2], [3, INFINITE])
    for wrong in ({"vertex_capacity": np.array([1.5, 1])}, {"limited": np.array([1], np.int32)}):
        with pytest.raises(ValueError, match="vertices"):
            unpack_capacities(pack_capacities(plain.model_copy(update=columns | wrong)))


def test_an_earlier_release_reads_no_half_of_it(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    """It knows no vertices: it looks for a field of an entry, and a member of a snapshot, that are not there."""
    plain = Capacities(version=1, own=np.array([1, 2]), closed=np.array([False, True]), known=[])
    columns = {"limited": np.array([0], np.int32), "vertex_capacity": np.array([3])}
    for capacities, count in ((plain, b"count.npy"), (plain.model_copy(update=columns), b"rows.npy")):
        names = {b"count.npy", b"rows.npy"}
        packed = zstandard.ZstdDecompressor().decompress(pack_capacities(capacities))
        assert {name for name in names if name in packed} == {count}
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    patch(caller, op("set", ["v"], "3"))
    ((_, fields),) = client.xrange(keys.log(worker.graphs.graph_id("g") or ""))
    assert fields.keys() == {b"applied", b"values", b"vertices"}


def patch(caller: Caller, *batch: Operation, key: str | None = None, **more: Any) -> dict[str, Any]:
    return caller.ask(Kind.PATCH_VERTICES, "g", PatchArgs(batch=list(batch), **more), key)


def page(caller: Caller) -> dict[str, Any]:
    return caller.ask(Kind.VERTICES, "g", CapacitiesArgs())


def whole(caller: Caller) -> list[Any]:
    """All that questions tell of the graph."""
    answer = caller.ask(Kind.MAX_FLOW, "g", CUT)
    assert answer["certificate"]["valid"]
    return [page(caller), *(answer[name] for name in ("value", "cut", "bottlenecks"))]


def test_a_cut_through_a_vertex(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    answer = caller.ask(Kind.MAX_FLOW, "g", CUT)
    assert answer["value"] == 6
    assert (answer["cut"]["edges"], answer["cut"]["vertices"], answer["cut"]["unique"]) == (["d", "e"], [], True)
    done = patch(caller, op("set", ["v"], "3"))
    (state,) = done["flow_states"]
    assert (done["version"], done["applied"], state["old_value"], state["value"]) == (2, 1, 6, 5)
    answer = caller.ask(Kind.MAX_FLOW, "g", CUT)
    cut = answer["cut"]
    assert (cut["value"], cut["edges"], cut["pays"], cut["vertices"], cut["vertex_pays"]) == (5, ["d"], [2], ["v"], [3])
    assert cut["source_side"] == ["s", "u", "v"]
    assert sum(answer["paths"]["amount"]) == 5
    found = answer["bottlenecks"]
    assert (found["edges"], found["vertices"], found["vertex_in_every"], found["vertex_gain"]) == (
        ["d"],
        ["v"],
        [True],
        [1],
    )
    done = patch(caller, op("set", ["v"], "2.5"))
    assert [(s["value"], s["mode"], s["certificate"]["valid"]) for s in done["flow_states"]] == [(4.5, "warm", True)]
    done = patch(caller, op("add", ["v"], "0"), op("scale", ["u"], "1"))
    assert (done["applied"], done["unchanged"], done["flow_states"][0]["mode"]) == (0, 2, "unchanged")


def test_through_restarts(caller: Caller, start_worker: StartWorker) -> None:
    """From the vertices as loaded, from the log, from a snapshot, and from a snapshot and the log."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    for step in ("loaded", "logged", "saved", "logged again"):
        if step.startswith("logged"):
            patch(caller, op("set", ["v", "u"], f"{len(step) / 4}", "2"), key=step)
            caller.ask(Kind.PATCH, "g", PatchArgs(batch=[op("set", ["e"], str(len(step)))]))
        if step == "saved":
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        before = whole(caller)
        worker.graphs.residents.drop("g")
        assert whole(caller) == before, step
        if step.startswith("logged"):
            again = patch(caller, op("set", ["v", "u"], f"{len(step) / 4}", "2"), key=step)
            assert again["version"] == before[0]["version"] - 1, "a key is answered again"
    assert before[0]["capacity"] == [2, 3]


def test_earlier_versions(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    start_worker(max_patch_rows=2)
    caller.wait_ready()
    caller.load("g", CITY)
    pages, files = {1: page(caller)}, {}
    patch(caller, op("set", ["v"], "3"))
    pages[2] = page(caller)
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    patch(caller, op("set", ["u"], "1"))
    caller.ask(Kind.PATCH, "g", PatchArgs(batch=[op("set", ["e"], "9")]))
    for version in (1, 2, None):
        made = caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz", version=version))
        files[version] = read_npz(Blobs(client, keys).get(made["blob"])).vertex_capacity.tolist()  # type: ignore[union-attr]
    assert files == {1: [35, INFINITE], 2: [35, 30], None: [10, 30]}
    assert code_of(lambda: caller.reply(Kind.RESTORE, "g", RestoreArgs(version=1))) == "too_large"
    done = caller.ask(Kind.RESTORE, "g", RestoreArgs(version=2))
    assert (done["version"], done["applied"]) == (5, 2)
    assert page(caller) == pages[2] | {"version": 5}
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["value"] == 5
    caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
    assert page(caller) == pages[1] | {"version": 6}
    refused = caller.reply(Kind.EXPORT, "g", ExportArgs(format="dimacs")).problem
    assert refused is not None
    assert refused.code == "has_vertex_capacities"


def test_a_dry_run_changes_nothing(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    before = whole(caller)
    done = caller.ask(Kind.DRY_RUN_VERTICES, "g", PatchArgs(batch=[op("set", ["u", "v"], "1", "3")]))
    (state,) = done["flow_states"]
    assert (done["version"], done["dry_run"], done["applied"], state["value"]) == (1, True, 2, 4)
    assert whole(caller) == before


def test_scenarios_and_closures(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    patch(caller, op("set", ["v"], "3"))
    scenarios = [Scenario(batch=[op("set", ["d"], "9")]), Scenario(batch=[Operation(op="close", edges=["d"])])]
    asked = WhatIfArgs(sources=["s"], sinks=["t"], scenarios=scenarios, fields=frozenset({"value", "cut"}))
    rows = caller.ask(Kind.WHAT_IF, "g", asked)["answers"]
    assert [(row["value"], row["cut"]["vertices"]) for row in rows] == [(6.5, ["u"]), (3, ["v"])]
    study = caller.ask(Kind.CLOSURE_STUDY, "g", ClosureStudyArgs(sources=["s"], sinks=["t"], candidates="all"))
    assert {row["edges"][0]: row["value"] for row in study["answers"]} == {"e": 2, "a": 3, "d": 3, "b": 3.5, "c": 5}


UNKNOWING: list[tuple[Kind, Message]] = [
    (Kind.MATCHING, MatchingArgs()),
    (Kind.MIN_COST_FLOW, MinCostFlowArgs(sources=["s"], sinks=["t"])),
    (Kind.PAIRS, PairsArgs(among=["s", "t"], most=9)),
    (Kind.GOMORY_HU_TREE, CutTreeArgs(most=9)),
    (Kind.GLOBAL_MIN_CUT, GlobalCutArgs()),
    (Kind.PARAMETRIC, ParametricArgs(sources=["s"], sinks=["t"], edges=["d"], first="0", last="2")),
    (
        Kind.CAPACITY_EXPANSION,
        CapacityExpansionArgs(sources=["s"], sinks=["t"], raise_by="1", edges=["d"], price=["1"]),
    ),
    (Kind.MAX_FLOW, CUT.model_copy(update={"up_to": 3})),
    (Kind.WATCH, WatchArgs(watch="w", sources=["s"], sinks=["t"], on=["value", "cut"])),
]


@pytest.mark.parametrize(("kind", "args"), UNKNOWING, ids=lambda value: getattr(value, "value", ""))
def test_who_does_not_know_them_refuses(caller: Caller, start_worker: StartWorker, kind: Kind, args: Message) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    for _ in range(2):
        problem = caller.reply(kind, "g", args).problem
        assert problem is not None
        assert problem.code == "has_vertex_capacities"
        worker.graphs.residents.drop("g")
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["value"] == 6


def test_edges_are_deleted_and_values_watched(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", CITY)
    watch = WatchArgs(watch="w", sources=["s"], sinks=["t"], on=["value"])
    assert caller.ask(Kind.WATCH, "g", watch)["value"] == 6
    caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[EdgesOperation(op="delete", edges=["b"])]))
    before = whole(caller)
    assert before[1] == 3.5
    worker.graphs.residents.drop("g")
    assert whole(caller) == before


def test_vertices_without_any(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    small = caller.load("g", PLAIN)["bytes"]
    assert page(caller) == {"version": 1, "vertices": [], "capacity": [], "next": None}
    assert "vertices" not in caller.ask(Kind.MAX_FLOW, "g", CUT)["cut"]
    assert caller.load("g", CITY)["bytes"] > small
    none = replace(CITY, limited=np.empty(0, np.int32), vertex_capacity=np.empty(0, np.int64))
    caller.load("g", none)
    assert "vertices" not in caller.ask(Kind.MAX_FLOW, "g", CUT)["cut"], "an empty table is none"
    patch(caller, op("set", ["v"], "3"))
    assert caller.ask(Kind.MAX_FLOW, "g", CUT)["cut"]["vertices"] == ["v"]
