"""Edges and vertices that come and go: batches, and what becomes of them through the log, snapshots and restarts."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.errors import (
    AlreadyExists,
    CapacityOverflow,
    CostOverflow,
    EngineError,
    InvalidNetwork,
    NoCosts,
    OutOfMemory,
    TooLarge,
    UnknownEdge,
    UnknownVertex,
)
from gpu_engine.formats import read_npz
from gpu_engine.networks.costs import CostTable
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.restructure import Limits, resolve
from gpu_engine.networks.structure import Structure
from gpu_engine.networks.updates import AmbiguousEdge, CapacityTable, Change
from gpu_engine.networks.validate import largest_cost
from gpu_engine.types import INFINITE
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
from service.store.log import BrokenLog, Log, _read_entry
from service.store.snapshots import Capacities, pack_capacities, unpack_capacities
from service.store.structures import pack_structure, unpack_structure
from service.worker.graph import Graph
from service.worker.structure import Columns
from tests.graphs import diamond, drawn
from tests.service_fixtures import Caller, StartWorker, code_of

PLAIN = diamond().edges
NAMED = replace(PLAIN, edge_ids=list("abcde"), vertex_labels=list("suvt"), decimals=1)
COSTLY = replace(NAMED, cost=np.array([1, 2, 3, 4, 5]), cost_decimals=2)
LIMITS = Limits(10, 10)


def insert(**columns: Any) -> EdgesOperation:
    return EdgesOperation(op="insert", **columns)


def delete(*edges: Any) -> EdgesOperation:
    return EdgesOperation(op="delete", edges=list(edges))


def resolved(edges: EdgeList, *batch: EdgesOperation, limits: Limits = LIMITS, **more: Any) -> tuple[Structure, Change]:
    network = Network(edges)
    columns = [Columns.of(operation) for operation in batch]
    found = resolve(CapacityTable(network, edges), CostTable.of(network, edges), columns, limits, **more)
    return found.structure, found.change


def edge(name: str = "f", tail: str = "s", head: str = "t", capacity: str = "1", **more: Any) -> EdgesOperation:
    return insert(edge_ids=[name], tail=[tail], head=[head], capacity=[capacity], **more)


def test_a_batch() -> None:
    """What is inserted may be named by what stands before it: the order does not matter."""
    structure, change = resolved(
        NAMED,
        delete("c"),
        edge("f", "s", "w", "2.5"),
        insert(vertices=["w", "x"]),
        insert(edge_ids=["g", "h"], tail=["w", "w"], head=["t", "w"], capacity=["inf", "0"], undirected=[True, False]),
    )
    assert (structure.n_vertices, structure.vertex_labels) == (2, ["w", "x"])
    assert (structure.tail.tolist(), structure.head.tolist()) == ([0, 4, 4], [4, 3, 4])
    assert structure.undirected.tolist() == [False, True, False]
    assert list(structure.edge_ids or []) == ["f", "g", "h"]
    assert structure.deleted.tolist() == [2]
    assert change.rows.tolist() == [2, 5, 6, 7]
    assert change.own.tolist() == [0, 25, INFINITE, 0]
    assert not change.closed.any()


def test_numbers_go_on() -> None:
    structure, change = resolved(PLAIN, insert(tail=[5, 0], head=[4, 0], capacity=["1", "2"]), insert(count=2))
    assert (structure.n_vertices, structure.vertex_labels, structure.edge_ids) == (2, None, None)
    assert change.rows.tolist() == [5, 6]


def test_rounded() -> None:
    structure, change = resolved(NAMED, edge(capacity="0.25"), rounding="up")
    assert (structure.n_edges, change.own.tolist(), change.rounded.rows) == (1, [3], 1)


@pytest.mark.parametrize(
    ("edges", "batch", "error", "told"),
    [
        (NAMED, [edge("a")], AlreadyExists, "'a' is taken"),
        (NAMED, [edge("f"), edge("f")], AlreadyExists, "inserted twice"),
        (NAMED, [insert(vertices=["u"])], AlreadyExists, "'u' is taken"),
        (NAMED, [insert(vertices=["w", "w"])], AlreadyExists, "inserted twice"),
        (NAMED, [insert(vertices=[7])], InvalidNetwork, "are text"),
        (NAMED, [insert(count=7)], InvalidNetwork, "have names"),
        (NAMED, [insert(tail=["s"], head=["t"], capacity=["1"])], InvalidNetwork, "have ids"),
        (PLAIN, [insert(vertices=[4])], InvalidNetwork, "are numbered"),
        (PLAIN, [insert(edge_ids=[9], tail=[0], head=[1], capacity=["1"])], InvalidNetwork, "are numbered"),
        (PLAIN, [insert(tail=[0], head=[4], capacity=["1"])], UnknownVertex, "4 is no vertex"),
        (PLAIN, [insert(tail=[0], head=[-1], capacity=["1"])], UnknownVertex, "-1 is no vertex"),
        (PLAIN, [insert(tail=["0"], head=["1"], capacity=["1"])], UnknownVertex, "'0' is no vertex"),
        (PLAIN, [insert(count=1), insert(tail=[0], head=[5], capacity=["1"])], UnknownVertex, "5 is no vertex"),
        (NAMED, [edge(head="w")], UnknownVertex, "'w' is no vertex"),
        (NAMED, [insert(vertices=["w"]), edge(head="W")], UnknownVertex, "'W' is no vertex"),
        (NAMED, [edge(capacity="0.25")], InvalidNetwork, "more than 1 decimal"),
        (NAMED, [edge(capacity="-1")], InvalidNetwork, "negative"),
        (NAMED, [edge(capacity="1e30")], EngineError, "beyond"),
        (NAMED, [edge(cost=["1"])], NoCosts, "no costs"),
        (COSTLY, [edge()], InvalidNetwork, "have costs"),
        (COSTLY, [edge(cost=["0.001"])], InvalidNetwork, "more than 2 decimals"),
        (COSTLY, [edge(cost=["-1"], undirected=True)], InvalidNetwork, "undirected"),
        (COSTLY, [edge(cost=["1e17"])], CostOverflow, "beyond"),
        (
            replace(COSTLY, cost=np.full(5, -largest_cost(4))),
            [insert(vertices=["w"])],
            CostOverflow,
            "so many vertices",
        ),
        (NAMED, [delete("z")], UnknownEdge, "no edge 'z'"),
        (NAMED, [delete("a", "a")], InvalidNetwork, "named twice"),
        (NAMED, [edge("f"), delete("f")], UnknownEdge, "no edge 'f'"),
        (NAMED, [EdgesOperation(op="delete", tail=["t"], head=["s"])], UnknownEdge, "no edge leads"),
        (
            drawn(2, [(0, 1, 1), (0, 1, 1)]),
            [EdgesOperation(op="delete", tail=[0], head=[1])],
            AmbiguousEdge,
            "parallel",
        ),
        (PLAIN, [insert(count=7)], TooLarge, "11 vertices"),
        (PLAIN, [insert(tail=[0] * 6, head=[1] * 6, capacity=["1"] * 6)], TooLarge, "11 edges"),
    ],
)
def test_refusals(edges: EdgeList, batch: list[EdgesOperation], error: type[EngineError], told: str) -> None:
    with pytest.raises(error, match=told) as refused:
        resolved(edges, *batch)
    if len(batch) > 1:
        assert refused.value.where.operation == 1
    with pytest.raises(error, match=told) as refused:
        resolved(edges, insert(count=0) if edges.vertex_labels is None else insert(vertices=[]), *batch)
    assert refused.value.where.operation == len(batch)


def test_a_structure_in_the_log() -> None:
    for names in (None, np.array([7, -8]), ["é", "x"]):
        two = np.array([0, 1], np.int32)
        rows, flags = np.array([3, 4]), np.array([True, False])
        one = Structure(2, names, two, two[::-1], flags, names, np.array([5, -6]), rows, rows[:1])
        other = unpack_structure(pack_structure(one))
        for name in Structure.__dataclass_fields__:
            assert (
                np.array_equal(getattr(one, name) or [], getattr(other, name) or [])
                if (getattr(one, name) is None or isinstance(getattr(one, name), list))
                else np.array_equal(getattr(one, name), getattr(other, name))
            ), name


def test_a_worker_that_knows_no_structures_reads_neither_entry_nor_snapshot() -> None:
    """It looks for members that are not there, and says so in place of serving half of the graph."""
    capacities = Capacities(version=1, own=np.array([1, 2]), closed=np.array([False, True]), known=[])
    grown = capacities.model_copy(update={"structure": Structure(deleted=np.array([1]))})
    read = unpack_capacities(pack_capacities(grown))
    assert read.structure is not None
    assert read.structure.deleted.tolist() == [1]
    assert unpack_capacities(pack_capacities(capacities)).structure is None
    assert b"count.npy" in _plain(pack_capacities(capacities))
    assert b"count.npy" not in _plain(pack_capacities(grown))
    with pytest.raises(BrokenLog):
        _read_entry(
            2, {b"applied": b'{"key":"k","applied":1,"skipped":0,"unchanged":0}', b"values": b"", b"structure": b"x"}
        )


def _plain(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompress(data)


def patch(caller: Caller, *batch: EdgesOperation, key: str | None = None, **more: Any) -> dict[str, Any]:
    return caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=list(batch), **more), key)


def whole(caller: Caller) -> list[Any]:
    """All that questions tell of the graph."""
    answer = caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs(sources=["s"], sinks=["t"], fields=frozenset({"cut", "flow"})))
    assert answer["certificate"]["valid"]
    return [caller.page("g"), answer["value"], answer["cut"]]


def test_a_graph_that_is_read_while_vertices_are_inserted(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that is read ahead of its move. Vertices without edges were counted in its version and were not there:
    found by seed 750171 of the fault histories."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", EdgeList(2, np.array([0], np.int32), np.array([1], np.int32), np.array([5])))
    copies, structures = worker.graphs._copies, Log.structures
    held = copies.find("g").held
    assert held is not None

    def then_goes_on(log: Log, graph_id: str, after: int) -> list[Structure]:
        found = [*structures(log, graph_id, after)]
        monkeypatch.setattr(Log, "structures", structures)
        assert patch(caller, insert(count=2))["version"] == 2
        return found

    monkeypatch.setattr(Log, "structures", then_goes_on)
    graph = copies._restorer.restore("g", held, [])
    assert (graph.version, graph.network.n_vertices) == (1, 2)
    later = copies.find("g").held
    assert later is not None
    graph = copies._restorer.restore("g", later, [])
    assert (graph.version, graph.network.n_vertices) == (2, 4)


def test_through_restarts(caller: Caller, start_worker: StartWorker) -> None:
    """From the log, from a snapshot, from a snapshot and the log; with names, costs and closed edges."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", replace(COSTLY, closed=np.array([False, False, False, False, True])))
    for step in range(8):
        name = f"f{step}"
        answer = patch(
            caller,
            insert(vertices=[f"w{step}"]),
            insert(edge_ids=[name, name + "x"], tail=["s", f"w{step}"], head=[f"w{step}", "t"], capacity=["2.5", "1"],
                   cost=["0.5", "1"]),
            *([] if step % 2 else [delete(["c", "a", "f1", "f4x"][step // 2])]),
        )  # fmt: skip
        assert answer["inserted"] == {"vertices": 1, "edges": 2}
        assert answer["deleted"] == {"edges": 1 - step % 2, "vertices": 0}
        if step in (2, 5):
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        if step in (3, 6):
            edges, amounts = [name, "b"], ["3.5", str(step)]
            set_ = Operation(op="set", edges=edges, amounts=amounts)
            caller.ask(Kind.PATCH, "g", PatchArgs(batch=[set_, Operation(op="close", edges=["d"])]))
        before = whole(caller)
        worker.graphs.residents.drop("g")
        assert whole(caller) == before, step
    ids = caller.page("g")["edge_ids"]
    assert ids == [*"bde", "f0", "f0x", "f1x", "f2", "f2x", "f3", "f3x", "f4", "f5", "f5x", "f6", "f6x", "f7", "f7x"]


def test_a_state_stays_warm(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", PLAIN)
    assert caller.value("g") == 5
    answer = patch(caller, insert(count=1), insert(tail=[0, 4], head=[4, 3], capacity=["9", "4"]))
    (state,) = answer["flow_states"]
    assert (state["old_value"], state["value"], state["mode"]) == (5, 9, "warm")
    assert state["certificate"]["valid"]
    assert answer["inserted"] == {"vertices": 1, "edges": 2, "first_vertex": 4, "first_edge": 5}
    (state,) = patch(caller, delete(5, 0))["flow_states"]
    assert (state["old_value"], state["value"], state["mode"]) == (9, 2, "warm")
    assert patch(caller, insert(count=3))["flow_states"][0]["mode"] == "unchanged"


def test_ids_are_not_given_twice(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", NAMED)
    patch(caller, delete("c"))
    again = EdgesArgs(batch=[edge("c")])
    for _ in range(2):
        assert code_of(lambda: caller.reply(Kind.PATCH_EDGES, "g", again)) == "already_exists"
        for kind, args in (
            (Kind.PATCH_EDGES, EdgesArgs(batch=[delete("c")])),
            (Kind.PATCH, PatchArgs(batch=[Operation(op="set", edges=["c"], amounts=["1"])])),
            (Kind.PATCH, PatchArgs(batch=[Operation(op="set", tail=["u"], head=["v"], amounts=["1"])])),
        ):
            reply = caller.reply(kind, "g", args)
            assert reply.problem is not None
            assert reply.problem.code == "unknown_edge"
        worker.graphs.residents.drop("g")
    gone = caller.reply(Kind.PATCH_EDGES, "g", EdgesArgs(batch=[delete("c")])).problem
    assert gone is not None
    assert "was deleted" in gone.detail
    skipped = patch(caller, delete("c", "e"), on_missing="skip")
    assert (skipped["applied"], skipped["skipped"]) == (1, 1)


def test_a_key_is_answered_again(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", PLAIN)
    one = patch(caller, insert(tail=[0], head=[3], capacity=["1"]), delete(0), key="k")
    worker.graphs.residents.drop("g")
    graph = worker.graphs._copies.ensure("g")
    known = graph.known["k"].applied.counts
    assert {name: one[name] for name in known} == known
    assert known["inserted"] == {"vertices": 0, "edges": 1, "first_edge": 5}
    assert known["deleted"] == {"edges": 1, "vertices": 0}


def test_earlier_versions(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    """An export of each is what there was; a restore revives what was deleted and deletes what came since."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", COSTLY)
    pages, files = {}, {}

    def keep(version: int) -> None:
        pages[version], files[version] = caller.page("g"), exported(caller, client, keys, None)

    keep(1)
    patch(caller, edge("f", capacity="5", cost=["7"]), delete("a", "b"), insert(vertices=["w"]))
    keep(2)
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    patch(caller, delete("c"), edge("g", head="w", cost=["2"]))
    keep(3)
    for version, file in files.items():
        again = exported(caller, client, keys, version)
        for name in EdgeList.__dataclass_fields__:
            assert np.array_equal(getattr(again, name), getattr(file, name)), (version, name)
    assert [file.n_vertices for file in files.values()] == [4, 5, 5]
    for at, version in enumerate((1, 3, 2, 1), 4):
        answer = caller.ask(Kind.RESTORE, "g", RestoreArgs(version=version))
        assert answer["version"] == at
        for _ in range(2):
            assert caller.page("g") == pages[version] | {"version": at, "next": None}
            worker.graphs.residents.drop("g")
    taken = EdgesArgs(batch=[edge("g", cost=["1"])])
    assert code_of(lambda: caller.reply(Kind.PATCH_EDGES, "g", taken)) == "already_exists"


def exported(caller: Caller, client: Any, keys: Keys, version: int | None = None) -> EdgeList:
    made = caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz", version=version))
    return read_npz(Blobs(client, keys).get(made["blob"]))


def test_an_export_is_the_same_graph(caller: Caller, start_worker: StartWorker, client: Any, keys: Keys) -> None:
    """Where all was numbered, edges have ids afterwards: those that they had."""
    start_worker()
    caller.wait_ready()
    caller.load("g", PLAIN)
    patch(caller, insert(count=1), insert(tail=[0, 4], head=[4, 3], capacity=["2", "2"]), delete(1))
    before, value = caller.page("g"), caller.value("g")
    caller.load("h", exported(caller, client, keys, None))
    assert caller.value("h") == value
    again = caller.ask(Kind.CAPACITIES, "h", CapacitiesArgs())
    assert {**again, "version": 2, "next": None} == {**before, "next": None}
    assert again["edge_ids"] == [0, 2, 3, 4, 5, 6]


def test_matchings_are_dropped_and_solved_anew(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", drawn(4, [(0, 2, 1), (1, 2, 1)]))
    everything = MatchingArgs(fields=frozenset({"size", "matching", "cover"}))

    def matched() -> tuple[int, list[int]]:
        answer = caller.ask(Kind.MATCHING, "g", everything)
        return answer["size"], answer["matching"]["edges"]

    assert matched()[0] == 1
    answer = patch(caller, insert(count=1), insert(tail=[1, 3], head=[4, 3], capacity=["1", "1"]))
    assert [state["mode"] for state in answer["flow_states"]] == ["dropped"]
    assert code_of(lambda: caller.reply(Kind.MATCHING, "g", everything)) == "not_bipartite"
    patch(caller, delete(3))
    assert matched() == (2, [0, 2])
    (state,) = patch(caller, delete(2))["flow_states"]
    assert (state["kind"], state["value"]) == ("matching", 1)
    assert matched()[0] == 1
    patch(caller, delete(0, 1))
    assert matched() == (0, [])


def test_what_is_too_much_leaves_the_graph_as_it_was(caller: Caller, start_worker: StartWorker) -> None:
    start_worker(max_edges=6, max_vertices=5)
    caller.wait_ready()
    caller.load("g", PLAIN)
    assert caller.value("g") == 5
    limit = 1 << 60
    for batch, code in (
        ([insert(count=2)], "too_large"),
        ([insert(tail=[0, 1], head=[1, 0], capacity=["1", "1"])], "too_large"),
        ([insert(tail=[0], head=[1], capacity=[str(limit)])], "capacity_overflow"),
        ([insert(count=1), delete(9)], "unknown_edge"),
    ):
        assert code_of(partial(caller.reply, Kind.PATCH_EDGES, "g", EdgesArgs(batch=batch))) == code
        assert (caller.page("g")["version"], caller.value("g")) == (1, 5)
    (state,) = patch(caller, insert(tail=[0], head=[3], capacity=["inf"]))["flow_states"]
    assert state["mode"] == "unbounded"


def test_memory_is_asked_for_before_it_is_taken(caller: Caller, start_worker: StartWorker) -> None:
    n = 20_000
    tail = np.arange(n, dtype=np.int32)
    edges = EdgeList(n, tail, (tail + 1) % n, np.ones(n, np.int64), source=0, sink=5)
    worker = start_worker(memory_budget_bytes=8_000_000)
    caller.wait_ready()
    caller.load("g", edges)
    assert caller.value("g") == 1
    more, version = EdgesArgs(batch=[insert(count=5000)]), 1
    while (reply := caller.reply(Kind.PATCH_EDGES, "g", more)).problem is None and version < 200:
        version += 1
    assert reply.problem is not None
    assert reply.problem.code == "out_of_memory"
    assert version > 1
    assert caller.page("g")["version"] == version
    assert worker.graphs.residents.held.within(worker.graphs.residents.budget)


def test_a_graph_that_fails_half_way_is_read_again(
    caller: Caller, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine has grown and the table has not: the copy is dropped, and the next question reads the graph again."""
    start_worker()
    caller.wait_ready()
    caller.load("g", PLAIN)
    caller.value("g")

    def fail(*_: object) -> None:
        raise OutOfMemory("no more")

    asked = EdgesArgs(batch=[insert(tail=[0], head=[3], capacity=["9"])])
    with monkeypatch.context() as patched:
        patched.setattr(CapacityTable, "grow", fail)
        assert code_of(partial(caller.reply, Kind.PATCH_EDGES, "g", asked)) == "out_of_memory"
    assert (caller.page("g")["version"], len(caller.page("g")["tail"]), caller.value("g")) == (1, 5, 5)
    assert patch(caller, *asked.batch)["inserted"]["first_edge"] == 5
    assert caller.value("g") == 14


def test_a_refusal_leaves_the_copy_as_it_is() -> None:
    network = Network(PLAIN)
    graph = Graph("g", "0" * 32, 1, 1, network, CpuEngine(network), CapacityTable(network))
    structure, change = resolved(PLAIN, insert(tail=[0], head=[3], capacity=[str(1 << 60)]))
    with pytest.raises(CapacityOverflow):
        graph.restructure(structure, change, lambda needed: None)
    assert graph.network is network
    assert graph.engine.network is network
