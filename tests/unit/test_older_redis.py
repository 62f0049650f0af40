"""A Redis that came back older: what a copy in memory has beyond it never comes into the graph's new history."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.host import redis_server
from service.protocol import EmptyArgs, Kind, Operation, PatchArgs
from service.settings import Settings
from service.store.connection import connect
from service.store.keys import Keys
from service.store.listed import SnapshotInfo, read_listed
from service.worker.graph import Graph
from service.worker.process import Worker
from service.worker.saving import REPLAYED_AT_ONCE
from tests.service_fixtures import Caller

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


class Server:
    """A Redis of its own, whose files can be put back to what they were."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings(data_dir=folder / "now", redis_url=None)
        self._kept = folder / "kept"
        self._process = self._start()

    def _start(self) -> Any:
        process = redis_server.start(self.settings)
        redis_server.wait_until_ready(self.settings, process)
        return process

    def keep(self) -> None:
        shutil.copytree(redis_server.data_of(self.settings), self._kept)

    def come_back_older(self) -> None:
        """As after a power loss that took what was written since `keep`."""
        self.stop()
        shutil.rmtree(redis_server.data_of(self.settings))
        shutil.copytree(self._kept, redis_server.data_of(self.settings))
        self._process = self._start()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


@pytest.fixture
def settings(server: Server) -> Settings:
    return Settings(redis_url=server.settings.redis_location, lease_s=60)


def resident(worker: Worker) -> Graph:
    graph = worker.graphs.residents.get("g")
    assert graph is not None
    return graph


def listed(settings: Settings, graph: Graph) -> list[SnapshotInfo]:
    client: Any = connect(settings)
    try:
        key = Keys(settings.redis_prefix).snapshots(graph.graph_id)
        return read_listed(client.get(key), key)
    finally:
        client.close()


def test_a_copy_from_before_is_not_saved_as_what_the_graph_is_now(
    caller: Caller, worker: Worker, server: Server, settings: Settings
) -> None:
    """It gave way, and while it is written Redis goes and comes, and other updates lead to the copy's version."""
    assert caller.ask(Kind.PATCH, "g", ADD_1)["version"] == 2
    server.keep()
    assert caller.ask(Kind.PATCH, "g", ADD_1)["version"] == 3
    copy = resident(worker)
    server.come_back_older()
    assert caller.set("g", [0], ["50"])["version"] == 3
    assert caller.first_capacity("g") == (3, 50)  # whose copy may have been given up with the first run of Redis
    now = resident(worker)
    assert now is not copy
    assert (copy.version, copy.epoch) == (now.version, now.epoch)
    copy.unsaved = REPLAYED_AT_ONCE
    worker.graphs._spilled(copy)
    assert worker.graphs.counters["snapshots_failed"] == 1
    assert listed(settings, now) == []
    worker.graphs.residents.drop("g")
    assert caller.first_capacity("g") == (3, 50)
    assert caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())["version"] == 3
    worker.graphs.residents.drop("g")
    assert caller.first_capacity("g") == (3, 50)
    assert caller.ask(Kind.PATCH, "g", ADD_1)["version"] == 4
    assert caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())["version"] == 4
    assert [info.version for info in listed(settings, now)] == [4, 3]


def test_a_copy_that_redis_has_kept_is_saved_while_others_go_on(
    caller: Caller, worker: Worker, settings: Settings
) -> None:
    """Its version has its own update in the log still, though the graph is further."""
    for _ in range(2):
        caller.ask(Kind.PATCH, "g", ADD_1)
    copy = resident(worker)
    worker.graphs.residents.drop("g")
    caller.ask(Kind.PATCH, "g", ADD_1)
    copy.unsaved = REPLAYED_AT_ONCE
    worker.graphs._spilled(copy)
    assert [info.version for info in listed(settings, copy)] == [3]
