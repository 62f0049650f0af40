"""kill -9 of the worker and of Redis at random moments while PATCHes run, at the level of the queue.

Every PATCH *adds* to capacities, so applying one twice, or losing one that was acknowledged, shows in the sums.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_engine.generators import grid
from gpu_engine.networks.terminals import Terminals
from service.errors import ServiceError
from service.host import redis_server
from service.protocol import CapacitiesArgs, EdgesArgs, Kind, MaxFlowArgs, Operation, PatchArgs, RestoreArgs, Status
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from tests.oracle import maximum_flow
from tests.service_fixtures import Caller, result

PATCHES = 30
KILLED = 1 / 5
"""Share of PATCHes during which somebody is killed, up to 10 ms after it was sent: most take 2 to 5 ms."""

PATIENCE_S = 120.0


class Keeper:
    """Keeps a worker and a Redis process alive, as a supervisor would, until closed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        environment = {"HEADRACE_DATA_DIR": str(settings.data_dir), "HEADRACE_SNAPSHOT_EVERY_UPDATES": "11"}
        self._environment = {name: value for name, value in os.environ.items() if name != "REDIS_URL"} | environment
        self._stop = threading.Event()
        starts: dict[str, Callable[[], subprocess.Popen[bytes]]] = {
            "redis": lambda: redis_server.start(settings),
            "worker": self._start_worker,
        }
        self._starts = starts
        self.processes = {name: start() for name, start in starts.items()}
        redis_server.wait_until_ready(settings, self.processes["redis"])
        self.kills = dict.fromkeys(starts, 0)
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()

    def _start_worker(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "service.worker", "--name", "w0"]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, env=self._environment, stdin=quiet, stdout=quiet, stderr=quiet)

    def _keep(self) -> None:
        while not self._stop.wait(0.02):
            for name, process in self.processes.items():
                if process.poll() is not None:
                    self.processes[name] = self._starts[name]()

    def kill(self, name: str) -> None:
        process = self.processes[name]
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            self.kills[name] += 1

    @contextmanager
    def killing(self, name: str, after_s: float | None) -> Iterator[None]:
        """Kill it so long after now; None: not at all."""
        if after_s is None:
            yield
            return
        killer = threading.Timer(after_s, self.kill, [name])
        killer.start()
        yield
        killer.join()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for process in reversed(list(self.processes.values())):
            process.terminate()
        for process in self.processes.values():
            process.wait(30)


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(Settings(data_dir=tmp_path, redis_url=None))
    yield keeper
    keeper.close()


@pytest.fixture
def keeper_caller(keeper: Keeper) -> Iterator[Caller]:
    caller = Caller(keeper.settings)
    yield caller
    caller.close()


def patch_until_acknowledged(
    caller: Caller, args: PatchArgs | EdgesArgs | RestoreArgs, key: str, kind: Kind = Kind.PATCH
) -> dict[str, Any]:
    """Send the same PATCH under one key until it is answered."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            job = caller.submit(kind, "g", args, key, "digest")
            reply = caller.run(caller.dispatcher.wait(job, 20))
        except ServiceError as error:
            if error.code != "worker_unavailable":
                raise
            time.sleep(0.05)
            continue
        if reply is not None and reply.status is Status.SUCCEEDED:
            return result(reply)
        assert reply is None or (reply.problem is not None and reply.problem.code == "worker_unavailable"), reply
    raise AssertionError(f"{key} was never acknowledged")


@pytest.mark.crash
@pytest.mark.parametrize(("victims", "seed"), [(("worker",), 16), (("redis",), 16), (("worker", "redis"), 18)])
def test_no_acknowledged_patch_is_lost_or_applied_twice(
    keeper: Keeper, keeper_caller: Caller, victims: tuple[str, ...], seed: int
) -> None:
    caller = keeper_caller
    rng, moments = np.random.default_rng(seed), random.Random(seed)
    edges = grid(rows=30, columns=30, seed=seed)
    capacity = edges.capacity.copy()
    finite = np.flatnonzero(capacity < 1 << 40)
    caller.wait_ready()
    caller.load("g", edges)
    caller.value("g")
    acknowledged = []
    for i in range(PATCHES):
        rows = rng.choice(finite, 20, replace=False)
        more = rng.integers(1, 1000, 20)
        capacity[rows] += more
        operation = Operation(op="add", edges=rows.tolist(), amounts=[str(units) for units in more])
        delay_s = moments.uniform(0, 0.01) if moments.random() < KILLED else None
        with keeper.killing(moments.choice(victims), delay_s):
            answer = patch_until_acknowledged(caller, PatchArgs(batch=[operation]), f"key-{i}")
        acknowledged.append(answer["version"])
    assert sum(keeper.kills.values()) > 3
    caller.wait_ready()
    assert acknowledged == list(range(2, PATCHES + 2))
    page = result(until_answered(caller, Kind.CAPACITIES, CapacitiesArgs(limit=edges.n_edges)))
    assert page["version"] == PATCHES + 1
    numbers = [capacity[i] if amount == "inf" else amount for i, amount in enumerate(page["capacity"])]
    assert numbers == capacity.tolist()
    assert edges.source is not None
    assert edges.sink is not None
    answer = result(until_answered(caller, Kind.MAX_FLOW, MaxFlowArgs()))
    assert answer["certificate"]["valid"]
    assert answer["value"] == maximum_flow(edges, capacity, Terminals.of([edges.source], [edges.sink]))
    assert_keys_stand_once(keeper.settings)


def until_answered(caller: Caller, kind: Kind, args: Any) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            return caller.reply(kind, "g", args)
        except ServiceError:
            time.sleep(0.05)
    raise AssertionError(f"{kind} was never answered")


def assert_keys_stand_once(settings: Settings) -> None:
    client, keys = connect(settings), Keys(settings.redis_prefix)
    graph_id = client.hget(keys.names, "g").decode()  # type: ignore[union-attr]
    logged = [json.loads(fields[b"applied"])["key"] for _, fields in client.xrange(keys.log(graph_id))]  # type: ignore[union-attr]
    assert len(logged) == len(set(logged))
    client.close()
