"""kill -9 of worker and Redis while edges come and go: what was acknowledged is there once, and numbers go on."""

import random
from pathlib import Path

import numpy as np
import pytest

from gpu_engine.cpu.engine import CpuEngine
from gpu_engine.generators import grid
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE
from service.protocol import CapacitiesArgs, EdgesArgs, EdgesOperation, Kind, MaxFlowArgs, RestoreArgs
from service.settings import Settings
from tests.crash.test_worker_kill import Keeper, assert_keys_stand_once, patch_until_acknowledged, until_answered
from tests.service_fixtures import Caller, result

PATCHES = 16
KILLED = 1 / 4


@pytest.mark.crash
def test_no_acknowledged_edge_is_lost_or_inserted_twice(tmp_path: Path) -> None:
    keeper = Keeper(Settings(data_dir=tmp_path, redis_url=None, snapshot_every_updates=8))
    caller = Caller(keeper.settings)
    try:
        rng, moments = np.random.default_rng(7), random.Random(31)
        edges = grid(rows=12, columns=12, seed=7)
        n = edges.n_vertices
        ends = list(zip(edges.tail.tolist(), edges.head.tolist(), strict=True))
        capacity = edges.capacity.tolist()
        there = [True] * len(ends)
        caller.wait_ready()
        caller.load("g", edges)
        for i in range(PATCHES):
            tail, head = rng.integers(0, n + 1, (2, 10)).tolist()
            more = rng.integers(0, 100, 10).tolist()
            gone = rng.choice(np.flatnonzero(there), 5, replace=False).tolist()
            amounts = [str(units) for units in more]
            batch = [
                EdgesOperation(op="insert", count=1),
                EdgesOperation(op="insert", tail=tail, head=head, capacity=amounts),
                EdgesOperation(op="delete", edges=gone),
            ]
            delay_s = moments.uniform(0, 0.01) if moments.random() < KILLED else None
            with keeper.killing(moments.choice(("worker", "worker", "redis")), delay_s):
                answer = patch_until_acknowledged(caller, EdgesArgs(batch=batch), f"key-{i}", Kind.PATCH_EDGES)
            assert (answer["version"], answer["inserted"]["first_edge"]) == (i + 2, len(ends))
            assert (answer["inserted"]["first_vertex"], answer["applied"]) == (n, 16)
            n += 1
            ends += list(zip(tail, head, strict=True))
            capacity += more
            there += [True] * 10
            for row in gone:
                there[row] = False
        keeper.kill("worker")
        assert sum(keeper.kills.values()) > 3
        rows = np.flatnonzero(there)
        page = result(until_answered(caller, Kind.CAPACITIES, CapacitiesArgs(limit=len(ends))))
        assert (page["version"], page["edge_ids"]) == (PATCHES + 1, rows.tolist())
        assert list(zip(page["tail"], page["head"], strict=True)) == [ends[row] for row in rows]
        assert page["capacity"] == ["inf" if capacity[row] == INFINITE else capacity[row] for row in rows]
        columns = (np.array(column, np.int32) for column in zip(*(ends[row] for row in rows), strict=True))
        live = EdgeList(n, *columns, np.array([capacity[row] for row in rows]), edges.undirected)
        assert edges.source is not None
        assert edges.sink is not None
        answer = result(until_answered(caller, Kind.MAX_FLOW, MaxFlowArgs()))
        assert answer["certificate"]["valid"]
        assert answer["value"] == value_of(live, edges.source, edges.sink)
        back = patch_until_acknowledged(caller, RestoreArgs(version=PATCHES), "back", Kind.RESTORE)
        assert back["inserted"] == {"vertices": 0, "edges": 0}
        assert back["deleted"]["edges"] == 10
        assert_keys_stand_once(keeper.settings)
    finally:
        caller.close()
        keeper.close()


def value_of(edges: EdgeList, source: int, sink: int) -> int:
    engine = CpuEngine(Network(edges))
    return engine.solve(engine.open(Terminals.of([source], [sink]))).value
