"""kill -9 of worker and Redis while costs are changed, each by an addition: what was acknowledged counts once."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu_engine.checks.costs import prove_cheapest
from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.generators import grid
from gpu_engine.mincost.cheapest import cheapest_flow
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from service.protocol import CapacitiesArgs, Kind, MinCostFlowArgs, Operation, PatchArgs
from service.settings import Settings
from tests.crash.test_worker_kill import Keeper, assert_keys_stand_once, patch_until_acknowledged, until_answered
from tests.service_fixtures import Caller, result

PATCHES = 16
KILLED = 1 / 4


@pytest.mark.crash
def test_no_acknowledged_cost_is_lost_or_added_twice(tmp_path: Path) -> None:
    keeper = Keeper(Settings(data_dir=tmp_path, redis_url=None))
    caller = Caller(keeper.settings)
    try:
        rng, moments = np.random.default_rng(5), random.Random(31)
        edges = grid(rows=12, columns=12, seed=5)
        cost = rng.integers(0, 50, edges.n_edges)
        edges = replace(edges, cost=cost.copy())
        caller.wait_ready()
        caller.load("g", edges)
        for i in range(PATCHES):
            rows = rng.choice(edges.n_edges, 20, replace=False)
            more = rng.integers(1, 100, 20)
            cost[rows] += more
            operation = Operation(op="add", edges=rows.tolist(), amounts=[str(units) for units in more])
            delay_s = moments.uniform(0, 0.01) if moments.random() < KILLED else None
            with keeper.killing(moments.choice(("worker", "worker", "redis")), delay_s):
                args = PatchArgs(batch=[operation], solve="none")
                answer = patch_until_acknowledged(caller, args, f"key-{i}", Kind.PATCH_COSTS)
            assert answer["version"] == i + 2
        keeper.kill("worker")
        assert sum(keeper.kills.values()) > 3
        page = result(until_answered(caller, Kind.CAPACITIES, CapacitiesArgs(limit=edges.n_edges)))
        assert (page["version"], page["cost"]) == (PATCHES + 1, cost.tolist())
        answer = result(until_answered(caller, Kind.MIN_COST_FLOW, MinCostFlowArgs()))
        assert answer["certificate"]["valid"]
        assert answer["cost"] == least_cost(Network(edges), cost)
        assert_keys_stand_once(keeper.settings)
    finally:
        caller.close()
        keeper.close()


def least_cost(network: Network, cost: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> int:
    """Of a maximum flow, proven here."""
    assert network.source is not None
    assert network.sink is not None
    terminals, engine = Terminals.of([network.source], [network.sink]), CpuEngine(network)
    value = engine.solve(engine.open(terminals)).value
    found = cheapest_flow(network, cost, terminals, value)
    proof = prove_cheapest(network, cost, terminals, found.flow, value, found.potential, found.sink_potential)
    assert proof.valid, proof.failures
    return proof.cost
