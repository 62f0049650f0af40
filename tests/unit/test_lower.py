"""Lower bounds of edges that stay with a graph: formats, batches, and what becomes of them through log and restarts."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import zstandard

from gpu_engine import formats
from gpu_engine.errors import CapacityOverflow, EngineError, InvalidNetwork, NotDirected, UnknownEdge
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.lowers import LowerTable, lowers_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.rounding import Precision
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.networks.validate import check
from gpu_engine.types import INFINITE, MAX_TOTAL
from service.protocol import (
    CapacitiesArgs,
    CirculationArgs,
    EdgesArgs,
    EmptyArgs,
    ExportArgs,
    Kind,
    MaxFlowArgs,
    Operation,
    PatchArgs,
    RestoreArgs,
)
from service.store.applied import Applied
from service.store.blobs import Blobs
from service.store.keys import Keys
from service.store.log import BrokenLog, Entry, _read_entry, pack
from service.store.snapshots import Capacities, pack_capacities, unpack_capacities
from service.store.structures import pack_structure, unpack_structure
from tests.service_fixtures import Caller, StartWorker
from tests.unit.test_costs import op
from tests.unit.test_structure import COSTLY, NAMED, delete, edge

BOUNDED = replace(COSTLY, lower=np.array([0, 5, 0, 10, 0]))
WRITERS: dict[str, Callable[[EdgeList], bytes]] = {
    "application/json": formats.write_json,
    "application/x-npz": formats.write_npz,
    "application/vnd.apache.arrow.stream": formats.write_arrow,
    "text/csv": formats.write_csv,
}


@pytest.mark.parametrize("media_type", WRITERS)
def test_every_format_has_them(media_type: str) -> None:
    again = formats.read(WRITERS[media_type](BOUNDED), media_type)
    assert again.lower is not None
    scale = 10 ** (again.decimals - BOUNDED.decimals)
    assert (again.lower * scale).tolist() == (np.array([0, 5, 0, 10, 0]) * scale * scale).tolist()
    plain = formats.read(WRITERS[media_type](COSTLY), media_type)
    assert plain.lower is None


def test_the_packed_edges_and_a_min_problem_have_them() -> None:
    again = formats.unpack(formats.pack(BOUNDED))
    assert again.lower is not None
    assert (again.lower.tolist(), again.decimals) == ([0, 5, 0, 10, 0], BOUNDED.decimals)
    whole = replace(BOUNDED, decimals=0, edge_ids=None, vertex_labels=None)
    problem = formats.read(formats.write_dimacs_min(whole), "text/x-dimacs")
    assert problem.lower is not None
    assert problem.lower[:5].tolist() == [0, 5, 0, 10, 0]


def body(lower: str, **more: str) -> bytes:
    rest = "".join(f', "{name}": {text}' for name, text in more.items())
    return f'{{"tail": [0, 1], "head": [1, 2], "capacity": [1, 2], "lower": {lower}{rest}}}'.encode()


def test_they_are_in_the_units_of_the_capacities() -> None:
    read = partial(formats.read, media_type="application/json")
    finer = read(body("[0.25, 1]"))
    assert finer.lower is not None
    assert (finer.decimals, finer.capacity.tolist(), finer.lower.tolist()) == (2, [100, 200], [25, 100])
    coarser = read(body("[1, 1]").replace(b'[1, 2], "lower"', b'[1.5, 2], "lower"'))
    assert coarser.lower is not None
    assert (coarser.decimals, coarser.lower.tolist()) == (1, [10, 10])
    rounded = formats.read(body("[0.26, 1]"), "application/json", precision=Precision(1, "nearest"))
    assert rounded.lower is not None
    assert (rounded.lower.tolist(), rounded.rounded.rows) == ([3, 10], 1)


@pytest.mark.parametrize(
    ("lower", "error"),
    [
        ('["inf", 0]', InvalidNetwork),
        ("[-1, 0]", InvalidNetwork),
        ("[1]", InvalidNetwork),
        ("3", InvalidNetwork),
        ("[true, 0]", InvalidNetwork),
        ("[1e30, 0]", CapacityOverflow),
    ],
)
def test_what_is_none_is_refused(lower: str, error: type[EngineError]) -> None:
    with pytest.raises(error) as refused:
        formats.read(body(lower), "application/json")
    assert refused.value.where.field == "/lower"


def test_a_network_is_checked() -> None:
    edges = replace(NAMED, lower=np.array([0, 0, 0, 0, 1]))
    check(edges)
    for wrong, error in (
        (replace(edges, undirected=True), NotDirected),
        (replace(edges, lower=np.full(5, MAX_TOTAL // 4)), CapacityOverflow),
        (replace(edges, lower=np.full(5, INFINITE)), CapacityOverflow),
        (replace(edges, lower=np.full(5, -1)), InvalidNetwork),
        (replace(edges, lower=np.full(5, 0.5)), InvalidNetwork),
    ):
        with pytest.raises(error):
            check(wrong)


def table(edges: EdgeList = BOUNDED) -> tuple[LowerTable, CapacityTable]:
    network = Network(edges)
    return lowers_of(LowerTable.of(network, edges), network), CapacityTable(network)


def test_batches() -> None:
    lowers, edges = table()
    change = lowers.resolve(edges, [op("set", ["a", "b"], "2.5", "0.5"), op("add", ["d"], "-0.5")])
    assert (change.rows.tolist(), change.lower.tolist(), change.unchanged) == ([0, 3], [25, 5], 1)
    change = lowers.resolve(edges, [op("scale", ["b"], "3"), op("set", ["zz"], "3")], on_missing="skip")
    assert (change.rows.tolist(), change.lower.tolist(), change.skipped) == ([1], [15], 1)
    assert lowers.lower.tolist() == [0, 5, 0, 10, 0]


@pytest.mark.parametrize(
    ("operation", "error", "told"),
    [
        (op("set", ["a"], "inf"), InvalidNetwork, "finite"),
        (op("add", ["b"], "-1"), InvalidNetwork, "lower bound would be negative"),
        (op("set", ["a"], "0.25"), InvalidNetwork, "decimal"),
        (op("set", ["z"], "1"), UnknownEdge, "'z'"),
        (Operation(op="close", edges=["a"]), InvalidNetwork, "not on lower bounds"),
        (op("set", ["a", "b"], *2 * [str(MAX_TOTAL // 15)]), CapacityOverflow, "add up"),
    ],
)
def test_refused_batches(operation: Operation, error: type[EngineError], told: str) -> None:
    lowers, edges = table()
    with pytest.raises(error, match=told):
        lowers.resolve(edges, [operation])


def test_deletions_one_after_the_other_are_seen() -> None:
    """Rows 1 and 3 have lower bounds, and row 0 has none: what is deleted, what is back, and whether some are left."""
    lowers, _ = table()
    none: list[int] = []
    for deleted, revived, some in [
        (none, none, True),
        ([0], none, True),
        ([1, 3], none, False),
        (none, [3], True),
        ([3], [0], False),
        ([0], [1], True),
    ]:
        lowers.network.mark(np.array(deleted, np.int64), np.array(revived, np.int64))
        assert lowers.some == some


def test_an_undirected_edge_has_none() -> None:
    lowers, edges = table(replace(NAMED, undirected=True))
    assert not len(lowers.resolve(edges, [op("set", ["a"], "0")]).rows)
    with pytest.raises(NotDirected):
        lowers.resolve(edges, [op("set", ["a"], "1")])


def test_an_earlier_release_reads_no_half_of_it() -> None:
    """Each of its names for the rest is missing, in an entry, in a snapshot, and in what a batch has inserted."""
    lowers, edges = table()
    lower = lowers.resolve(edges, [op("set", ["a"], "2")])
    said = {"key": "k", "applied": 1, "skipped": 0, "unchanged": 0}
    nothing = edges.resolve([])
    gone = Structure(deleted=np.array([1]), deleted_vertices=np.array([2], np.int32))
    for structure in (None, gone):
        _, fields = pack(Entry(2, said_as(said), nothing, structure=structure, lower=lower))
        written = {name.encode(): as_bytes(value) for name, value in fields.items()}
        again = _read_entry(2, written).lower
        assert again is not None
        assert (again.rows.tolist(), again.lower.tolist()) == ([0], [20])
        assert written.keys().isdisjoint({b"change", b"values"})
        del written[b"lower"]  # which it passes by
        with pytest.raises(BrokenLog):
            _read_entry(2, written)
    inserted = Structure(tail=gone.deleted_vertices, head=gone.deleted_vertices, lower=np.array([5]))
    assert unpack_structure(pack_structure(inserted)).lower is not None
    for unread in (b"n_vertices.npy", b"n_inserted.npy"):
        assert unread not in decompressed(pack_structure(inserted))
    saved = Capacities(version=2, own=np.arange(3), closed=np.zeros(3, np.bool_), known=[], lower=np.array([1, 0, 2]))
    again_saved = unpack_capacities(pack_capacities(saved))
    assert again_saved.lower is not None
    assert again_saved.lower.tolist() == [1, 0, 2]
    for unread in (b"count.npy", b"rows.npy"):
        assert unread not in decompressed(pack_capacities(saved))


def said_as(said: dict[str, Any]) -> Any:
    return Applied.model_validate(said)


def as_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def decompressed(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(data)


def patch(caller: Caller, *batch: Operation, kind: Kind = Kind.PATCH_LOWER, **more: Any) -> dict[str, Any]:
    return caller.ask(kind, "g", PatchArgs(batch=list(batch), solve="none", **more))


def lower_of(caller: Caller) -> dict[str, Any]:
    page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
    return dict(zip(page["edge_ids"], page.get("lower", [None] * len(page["edge_ids"])), strict=True))


def feasible(caller: Caller, **more: Any) -> bool:
    found: bool = caller.ask(Kind.CIRCULATION, "g", CirculationArgs(sources=["s"], sinks=["t"], **more))["feasible"]
    return found


def test_through_log_snapshots_and_restarts(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    worker = start_worker()
    caller.wait_ready()
    for edges in (NAMED, BOUNDED):
        caller.load("g", edges)
        caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=["s"], sinks=["t"]))
        loaded = lower_of(caller)
        assert loaded == dict.fromkeys("abcde") if edges is NAMED else loaded["d"] == 1
        tried = patch(caller, op("set", ["a"], "2"), kind=Kind.DRY_RUN_LOWER)
        assert (tried["version"], tried["dry_run"], lower_of(caller)) == (1, True, loaded)
        assert patch(caller, op("set", ["a", "b"], "2", "1"))["version"] == 2
        cost = {} if edges is NAMED else {"cost": ["1"]}
        insertion = edge("f", "s", "t", "3", lower=["1.5"], **cost)
        answer = caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[insertion, edge("h", **cost), delete("c")]))
        assert (answer["version"], answer["flow_states"][0]["mode"]) == (3, "warm")
        wanted = {"a": 2, "b": 1, "d": loaded["d"] or 0, "e": 0, "f": 1.5, "h": 0}
        assert lower_of(caller) == wanted
        worker.graphs.residents.drop("g")
        assert lower_of(caller) == wanted, "from the log"
        caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        patch(caller, op("add", ["f"], "0.5"))
        worker.graphs.residents.drop("g")
        assert lower_of(caller) == wanted | {"f": 2}, "from a snapshot and the log"
        blob = caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz"))["blob"]
        written = formats.read(Blobs(client, keys).get(blob), "application/x-npz")
        assert written.lower is not None
        assert written.lower.tolist() == [20, 10, 10 * (loaded["d"] or 0), 0, 20, 0]
        caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
        back = {name: bound or 0 for name, bound in loaded.items()}
        assert lower_of(caller) == back
        caller.ask(Kind.RESTORE, "g", RestoreArgs(version=4))
        assert {n: b for n, b in lower_of(caller).items() if n != "c"} == wanted | {"f": 2}
        worker.graphs.residents.drop("g")
        assert {n: b for n, b in lower_of(caller).items() if n != "c"} == wanted | {"f": 2}


def test_a_circulation_keeps_them_unless_it_names_others(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", NAMED)
    assert feasible(caller)
    patch(caller, op("set", ["a"], "99"))
    assert not feasible(caller)
    assert feasible(caller, edges=["a"], lower=["0"])
    assert feasible(caller, edges=[], lower=[])
    caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[delete("a")]))
    assert feasible(caller), "a deleted edge asks for nothing"
    patch(caller, op("set", ["b"], "0.1"))
    found = caller.ask(Kind.CIRCULATION, "g", CirculationArgs(sources=["s"], sinks=["t"], fields=frozenset({"flow"})))
    assert dict(zip(found["flow"]["edges"], found["flow"]["amount"], strict=True))["b"] >= 0.1


def test_what_ever_was_does_not_keep_a_graph_from_coming_back(caller: Caller, start_worker: StartWorker) -> None:
    """Lower bounds that were taken back are too much together, and are not added up."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", NAMED)
    most = str(MAX_TOTAL // 20)
    for i in range(3):
        caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[edge(f"f{i}", lower=[most])]))
        caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[delete(f"f{i}")]))
    three = EdgesArgs(batch=[edge("x", lower=[most]), edge("y", lower=[most]), edge("z", lower=[most])])
    problem = caller.reply(Kind.PATCH_EDGES, "g", three).problem
    assert problem is not None
    assert problem.code == "capacity_overflow"
    undirected = caller.reply(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[edge("u", lower=["1"], undirected=True)])).problem
    assert undirected is not None
    assert (undirected.code, undirected.field) == ("not_directed", "/lower")
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    worker.graphs.residents.drop("g")
    assert lower_of(caller) == dict.fromkeys("abcde", 0)
