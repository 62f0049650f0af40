"""Costs of edges: batches of changes, and what becomes of them through the log, snapshots and restarts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_engine.errors import CostOverflow, EngineError, InvalidNetwork, NoCosts, UnknownEdge
from gpu_engine.networks.costs import CostChange, CostTable, costs_of
from gpu_engine.networks.network import Network
from gpu_engine.networks.rounding import Rounding
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.networks.validate import largest_cost
from service.protocol import (
    EdgesArgs,
    EdgesOperation,
    EmptyArgs,
    ExportArgs,
    Kind,
    MaxFlowArgs,
    MinCostFlowArgs,
    Operation,
    PatchArgs,
    RestoreArgs,
)
from service.store.log import pack_units, unpack_units
from service.store.snapshots import Capacities, pack_capacities, unpack_capacities
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of

EDGES = replace(diamond().edges, cost=np.array([100, -250, 0, 75, 1]), cost_decimals=2)


def table(**more: Any) -> tuple[CostTable, CapacityTable]:
    edges = replace(EDGES, **more)
    network = Network(edges)
    costs = CostTable.of(network, edges)
    assert costs is not None
    return costs, CapacityTable(network)


def resolve(*batch: Operation, rounding: Rounding = "error", **more: Any) -> CostChange:
    costs, capacities = table(**more)
    return costs.resolve(capacities, batch, rounding=rounding)


def op(name: Any, edges: list[int] | list[str], *amounts: str) -> Operation:
    return Operation(op=name, edges=edges, amounts=list(amounts))


@pytest.mark.parametrize(
    ("operation", "rounding", "after"),
    [
        (op("set", [0, 1], "-1.5", "2"), "error", [-150, 200]),
        (op("add", [0, 1], "-1.5", "0.25"), "error", [-50, -225]),
        (op("scale", [0, 1], "2", "-0.5"), "error", [200, 125]),
        (op("set", [0, 1], "0.005", "-0.005"), "down", [0, -1]),
        (op("set", [0, 1], "0.005", "-0.005"), "up", [1, 0]),
        (op("add", [0, 1], "0.001", "-0.001"), "down", [100, -251]),
        (op("add", [0, 1], "0.001", "-0.001"), "up", [101, -250]),
        (op("add", [0, 1], "0.005", "0.005"), "nearest", [100, -250]),
        (op("scale", [0, 1], "0.333", "0.333"), "nearest", [33, -83]),
        (op("scale", [0, 1], "0.333", "0.333"), "down", [33, -84]),
    ],
)
def test_operations(operation: Operation, rounding: Rounding, after: list[int]) -> None:
    costs, capacities = table()
    change = costs.resolve(capacities, [operation], rounding=rounding)
    costs.apply(change)
    assert costs.cost.tolist() == [*after, 0, 75, 1]


def test_a_batch_in_order() -> None:
    change = resolve(op("add", [0, 3], "1", "1"), op("scale", [0], "2"), op("set", [3, 2], "0.75", "0"))
    assert (change.rows.tolist(), change.cost.tolist(), change.unchanged) == ([0], [400], 2)


def test_what_is_not_there_may_be_skipped() -> None:
    costs, capacities = table()
    change = costs.resolve(capacities, [op("set", [9, 0], "1", "2")], on_missing="skip")
    assert (change.rows.tolist(), change.cost.tolist(), change.skipped) == ([0], [200], 1)


@pytest.mark.parametrize(
    ("operation", "error", "told"),
    [
        (op("set", [9], "1"), UnknownEdge, "no edge 9"),
        (op("set", [0], "0.001"), InvalidNetwork, "more than 2 decimals"),
        (op("set", [0], "inf"), InvalidNetwork, "no finite amount"),
        (op("scale", [0], "0.333"), InvalidNetwork, "more than 2 decimals"),
        (op("set", [0, 0], "1", "2"), InvalidNetwork, "named twice"),
        (op("set", [0], "1e17"), CostOverflow, "beyond"),
        (op("set", [0], "1e30"), CostOverflow, "beyond"),
        (op("add", [0], str(largest_cost(4) // 100)), CostOverflow, "beyond"),
        (op("scale", [1], "1e20"), CostOverflow, "beyond"),
        (Operation(op="close", edges=[0]), InvalidNetwork, "close is an operation on capacities"),
    ],
)
def test_refusals_change_nothing(operation: Operation, error: type[EngineError], told: str) -> None:
    costs, capacities = table()
    for batch in ([operation], [op("set", [1], "7"), operation]):
        with pytest.raises(error, match=told) as refused:
            costs.resolve(capacities, batch)
        assert refused.value.where.operation == (1 if len(batch) > 1 else None)
    assert costs.cost.tolist() == EDGES.cost.tolist()  # type: ignore[union-attr]  # these edges have costs


def test_an_undirected_edge_never_costs_less_than_nothing() -> None:
    flags = np.array([True, False, False, False, False])
    cost = np.array([100, -250, 0, 75, 1])
    with pytest.raises(InvalidNetwork, match="undirected") as refused:
        resolve(op("add", [0], "-1.01"), undirected=flags, cost=cost)
    assert refused.value.where.edges == [0]
    assert resolve(op("add", [0], "-1"), undirected=flags, cost=cost).cost.tolist() == [0]


def test_a_graph_without_costs_has_no_table() -> None:
    edges = diamond().edges
    assert CostTable.of(Network(edges), edges) is None
    with pytest.raises(NoCosts, match="column `cost`"):
        costs_of(None)


def test_a_change_in_the_log() -> None:
    rows, cost = unpack_units(pack_units(np.array([1, 4]), np.array([-5, 1 << 50])))
    assert (rows.tolist(), cost.tolist()) == ([1, 4], [-5, 1 << 50])


def test_a_snapshot_without_costs_has_no_column_for_them() -> None:
    plain = Capacities(version=1, own=np.array([1, 2]), closed=np.array([False, True]), known=[])
    assert unpack_capacities(pack_capacities(plain)).cost is None
    priced = plain.model_copy(update={"cost": np.array([-3, 4])})
    assert unpack_capacities(pack_capacities(priced)).cost.tolist() == [-3, 4]  # type: ignore[union-attr]  # as written
    assert len(pack_capacities(plain)) < len(pack_capacities(priced))
    with pytest.raises(ValueError, match="costs"):
        unpack_capacities(pack_capacities(plain.model_copy(update={"cost": np.array([1])})))


def price(caller: Caller, *amounts: str) -> dict[str, Any]:
    batch = [op("set", list(range(len(amounts))), *amounts)]
    return caller.ask(Kind.PATCH_COSTS, "g", PatchArgs(batch=batch, solve="none"))


def test_through_restarts(caller: Caller, start_worker: StartWorker) -> None:
    """From the edges as loaded, from the log, from a snapshot, and from a snapshot and the log."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", EDGES)
    for step in ("loaded", "logged", "saved", "logged again"):
        if step.startswith("logged"):
            price(caller, "7.5", str(-len(step)))
            caller.set("g", [4], [str(len(step))])
        if step == "saved":
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        page, cheapest = caller.page("g"), caller.ask(Kind.MIN_COST_FLOW, "g", MinCostFlowArgs())
        worker.graphs.residents.drop("g")
        assert caller.page("g") == page, step
        assert caller.ask(Kind.MIN_COST_FLOW, "g", MinCostFlowArgs())["cost"] == cheapest["cost"], step
    assert page["cost"] == [7.5, -12, 0, 0.75, 0.01]


def test_flows_stay_solved_and_proven(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", EDGES)
    caller.value("g")
    (solved,) = worker.graphs.residents.all()[0].states.values()
    certificate = solved.certificate
    assert price(caller, "9")["version"] == 2
    answer = caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())
    assert (answer["version"], answer["mode"]) == (2, "unchanged")
    assert solved.certificate is certificate, "it was proven again"
    assert caller.ask(Kind.MIN_COST_FLOW, "g", MinCostFlowArgs())["version"] == 2
    assert list(worker.graphs.residents.all()[0].states.values()) == [solved], "a state of its own"


def test_an_earlier_version_has_its_costs(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    caller.load("g", EDGES)
    first = caller.page("g")
    price(caller, "9", "9")
    caller.set("g", [0, 4], ["8", "8"])
    done = caller.ask(Kind.RESTORE, "g", RestoreArgs(version=1))
    assert (done["version"], done["applied"]) == (4, 3)
    assert caller.page("g") == first | {"version": 4}
    done = caller.ask(Kind.RESTORE, "g", RestoreArgs(version=2))
    assert (done["applied"], caller.page("g")["cost"][:3]) == (2, [9, 9, 0])


def test_what_ever_was_does_not_keep_a_graph_from_coming_back(caller: Caller, start_worker: StartWorker) -> None:
    """A cost that was the largest for the vertices of then is too much for those of now, and is not there any more."""
    worker = start_worker()
    caller.wait_ready()
    most = largest_cost(EDGES.n_vertices)
    caller.load("g", replace(EDGES, cost=np.array([most, -most, 0, 75, 1])))
    price(caller, "1", "-2.5")
    new = [
        EdgesOperation(op="insert", count=9),
        EdgesOperation(op="insert", tail=[0], head=[1], capacity=["1"], cost=["9"]),
    ]
    caller.ask(Kind.PATCH_EDGES, "g", EdgesArgs(batch=new))
    for step in ("logged", "saved"):
        page, cheapest = caller.page("g"), caller.ask(Kind.MIN_COST_FLOW, "g", MinCostFlowArgs())
        problem = caller.reply(Kind.RESTORE, "g", RestoreArgs(version=1)).problem
        assert problem is not None
        assert (problem.code, problem.where["edges"]) == ("cost_overflow", [0, 1])
        worker.graphs.residents.drop("g")
        assert caller.page("g") == page, step
        assert caller.ask(Kind.MIN_COST_FLOW, "g", MinCostFlowArgs())["cost"] == cheapest["cost"], step
        caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    assert caller.ask(Kind.RESTORE, "g", RestoreArgs(version=2))["deleted"] == {"edges": 1, "vertices": 0}
    assert caller.ask(Kind.EXPORT, "g", ExportArgs(format="npz", version=1))["version"] == 1


def test_costs_count_in_the_memory(caller: Caller, start_worker: StartWorker) -> None:
    start_worker()
    caller.wait_ready()
    plain = caller.load("g", replace(EDGES, cost=None))["bytes"]
    assert caller.load("g", EDGES)["bytes"] == plain + 8 * EDGES.n_edges
    assert "cost" in caller.page("g")
    caller.load("g", replace(EDGES, cost=None))
    assert "cost" not in caller.page("g")
    assert code_of(lambda: caller.reply(Kind.MIN_COST_FLOW, "g", MinCostFlowArgs())) == "no_costs"
