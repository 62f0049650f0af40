"""Edges that are closed from the beginning: as a PATCH closes them, through restarts and snapshots too."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_engine.errors import CapacityOverflow, InvalidNetwork
from gpu_engine.formats import from_columns
from gpu_engine.networks.network import Network
from gpu_engine.networks.updates import CapacityTable
from gpu_engine.networks.validate import check
from gpu_engine.types import INFINITE, MAX_TOTAL
from service.protocol import CapacitiesArgs, EmptyArgs, Kind, Operation, PatchArgs
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker

EDGES = replace(diamond().edges, closed=np.array([True, False, False, False, False]))
REOPEN = PatchArgs(batch=[Operation(op="reopen", edges=[0])])


def test_flows_see_zero_and_the_table_the_edge_s_own() -> None:
    network = Network(EDGES)
    table = CapacityTable(network, EDGES)
    assert network.capacity.tolist() == [0, 2, 1, 2, 3]
    assert table.own(np.arange(5)).tolist() == EDGES.capacity.tolist()
    change = table.resolve(REOPEN.batch)
    assert (change.rows.tolist(), change.own.tolist(), change.closed.tolist()) == ([0], [3], [False])


def test_what_is_closed_does_not_count_in_the_sum() -> None:
    capacity = EDGES.capacity.copy()
    capacity[:2] = MAX_TOTAL
    with pytest.raises(CapacityOverflow):
        check(replace(EDGES, capacity=capacity, closed=None))
    capacity[1] = 1
    large = replace(EDGES, capacity=capacity)
    check(large)
    assert Network(large).finite_total == 1 + 1 + 2 + 3
    capacity[0] = INFINITE
    assert Network(replace(EDGES, capacity=capacity)).n_infinite == 0


@pytest.mark.parametrize("closed", [[True], [True] * 6, True, [1, 0, 0, 0, 0], "x"])
def test_flags_out_of_form(closed: Any) -> None:
    columns = {"tail": [0, 0, 1, 1, 2], "head": [1, 2, 2, 3, 3], "capacity": [3, 2, 1, 2, 3], "closed": closed}
    with pytest.raises(InvalidNetwork, match="closed"):
        from_columns(columns)


def test_through_restarts(caller: Caller, start_worker: StartWorker) -> None:
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", EDGES)
    page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
    assert (page["closed"][:2], page["capacity"]) == ([True, False], EDGES.capacity.tolist())
    assert caller.value("g") == 2
    worker.graphs.residents.drop("g")
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs()) == page, "from the edges as loaded"
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    worker.graphs.residents.drop("g")
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs()) == page, "from a snapshot in which it is closed"
    caller.ask(Kind.PATCH, "g", REOPEN)
    worker.graphs.residents.drop("g")
    assert caller.value("g") == diamond().value, "from that snapshot and the log"
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    worker.graphs.residents.drop("g")
    again = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
    assert (again["closed"], again["capacity"]) == ([False] * 5, EDGES.capacity.tolist()), "from one where it is open"
    assert caller.value("g") == diamond().value


def test_an_edge_of_capacity_zero_stays_reopened(caller: Caller, start_worker: StartWorker) -> None:
    """Open or closed, nothing passes it: only the table tells, and the next capacity that it is set to."""
    worker = start_worker()
    caller.wait_ready()
    caller.load("g", EDGES)
    caller.ask(Kind.PATCH, "g", REOPEN)
    caller.set("g", [0], ["0"])
    caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
    worker.graphs.residents.drop("g")
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["closed"] == [False] * 5
    caller.set("g", [0], ["3"])
    assert caller.value("g") == diamond().value
