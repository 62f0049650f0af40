"""Workers in a Ray cluster: machines that are killed, workers that are, and ends on purpose. Nothing is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from headrace import Client, HeadraceError, Retry

from tests.api_process import api_process
from tests.serving import eventually

pytest.importorskip("ray")

import ray
from ray.cluster_utils import Cluster

from service.cluster.actor import SHARING
from service.cluster.fleet import Fleet, NoCluster
from service.machine import memory_bytes

AGAIN_S = 10.0
"""Within which the graphs of a machine that is gone answer again."""
NODES = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    "RAY_health_check_timeout_ms": "1500",
    "HEADRACE_ENGINE": "cpu",
}
GRAPHS = [f"g{number}" for number in range(6)]


@dataclass
class Fixture:
    cluster: Any
    fleet: Fleet
    client: Client
    url: str


@pytest.fixture
def three(redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fixture]:
    """A head without room for workers, and three machines; an API process beside them, in Redis with all."""
    prefix = f"{tmp_path.name}:"
    environment = NODES | {"HEADRACE_REDIS_URL": redis_url, "HEADRACE_REDIS_PREFIX": prefix, "HOME": str(tmp_path)}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    own = {"HEADRACE_REDIS_PREFIX": prefix}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "num_gpus": 0})
    try:
        for _ in range(3):
            cluster.add_node(num_cpus=1, num_gpus=0)
        with api_process(redis_url, environment=own) as api, Fleet(cluster.address) as fleet:
            url = f"http://127.0.0.1:{api.address[1]}"
            with Client(url, retry=Retry(attempts=1)) as client:
                yield Fixture(cluster, fleet, client, url)
    finally:
        ray.shutdown()
        cluster.shutdown()


class Patching:
    """Adds 1 to an edge of each graph in turns until `stop`, and counts what was acknowledged; the client tries again
    under the same key what it does not know the outcome of."""

    def __init__(self, url: str) -> None:
        self._client = Client(url, retry=Retry(attempts=100, longest_s=1.0))
        self._stop = threading.Event()
        self.acknowledged = dict.fromkeys(GRAPHS, 0)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for name in cycle(GRAPHS):
            if self._stop.wait(0.01):
                return
            self._client.graph(name).patch(edges=[0], add=[1])
            self.acknowledged[name] += 1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()


def load(client: Client) -> None:
    for name in GRAPHS:
        client.put_graph(name, tail=[0, 1], head=[1, 2], capacity=[1000, 10**6], source=0, sink=2).max_flow()


def capacity(client: Client, name: str) -> int:
    return int(client.graph(name).capacities(limit=1).capacity[0])


def holds(client: Client, patching: Patching) -> None:
    """What was acknowledged is there, once."""
    for name, added in patching.acknowledged.items():
        assert capacity(client, name) == 1000 + added
        assert client.graph(name).max_flow().value == 1000 + added


def test_a_machine_that_is_killed_loses_nothing(three: Fixture) -> None:
    fleet, client = three.fleet, three.client
    names = [f"ray-{number}" for number in range(3)]
    for name in names:
        fleet.start(name, gpu=False)
    assert sorted(fleet.wait_ready(names, 120)) == fleet.names() == names
    load(client)
    homes = {graph.name: graph.worker for graph in client.graphs()}
    assert {*homes.values()} == {*names}  # placed by what each has
    victim = next(name for name in names if fleet.where(name)["node"] != three.cluster.head_node.node_id)
    said = fleet.where(victim)
    assert said is not None
    (node,) = (node for node in three.cluster.list_all_nodes() if node.node_id == said["node"])
    patching = Patching(three.url)
    time.sleep(1.0)
    began = time.monotonic()
    os.kill(said["pid"], signal.SIGKILL)  # at once, as its machine: Ray ends it later than its node
    three.cluster.remove_node(node, allow_graceful=False)
    for graph, worker in homes.items():
        if worker == victim:
            eventually(lambda graph=graph: answers(client, graph))
    took_s = time.monotonic() - began
    time.sleep(1.0)
    patching.stop()
    updates = sum(patching.acknowledged.values())
    print(f"answered again after {took_s:.1f} s, {updates} updates")
    holds(client, patching)
    assert took_s < 2 * AGAIN_S  # on a machine that does other things too


def test_a_worker_that_is_killed_comes_back_and_one_that_leaves_does_not(three: Fixture) -> None:
    fleet, client = three.fleet, three.client
    names = ["ray-0", "ray-1"]
    for name in names:
        fleet.start(name, gpu=False)
    assert sorted(fleet.wait_ready(names, 120)) == names
    load(client)
    patching = Patching(three.url)
    said = fleet.where("ray-0")
    assert said is not None
    os.kill(said["pid"], signal.SIGKILL)
    eventually(lambda: (fleet.where("ray-0") or said)["pid"] != said["pid"])
    assert sorted(fleet.wait_ready(names, 60)) == names
    fleet.leave("ray-1")
    assert fleet.names() == ["ray-0"]
    eventually(lambda: {graph.worker for graph in client.graphs()} == {"ray-0"})
    time.sleep(1.0)
    patching.stop()
    holds(client, patching)
    with pytest.raises(NoCluster, match="there is no worker ray-1"):
        fleet.leave("ray-1")


def test_there_is_no_room_for_a_gpu(three: Fixture) -> None:
    three.fleet.start("ray-gpu-0", gpu=True)
    with pytest.raises(NoCluster, match=r"not ready in 1 s: ray-gpu-0; they start when a machine has room"):
        list(three.fleet.wait_ready(["ray-gpu-0"], 1))


def test_the_commands(three: Fixture) -> None:
    def headrace(*words: str) -> str:
        command = [sys.executable, "-m", "service.cli", *words, "--ray", three.cluster.address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert sorted(headrace("up", "--workers", "2").splitlines()) == ["ray-0 is ready", "ray-1 is ready"]
    workers = three.client.status().workers
    assert [worker["name"] for worker in workers] == ["ray-0", "ray-1"]
    assert [worker["budget_bytes"] for worker in workers] == 2 * [memory_bytes() // 2 // SHARING]
    assert headrace("down", "ray-1") == "ray-1 has left\n"
    assert headrace("down") == "ray-0 has left\n"
    assert three.fleet.names() == []


def answers(client: Client, name: str) -> bool:
    try:
        return client.graph(name).max_flow(timeout_s=1).certificate.valid
    except HeadraceError:
        return False
