"""A restore that fails destroys nothing: whatever was in the way may be gone the next time."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from gpu_engine.errors import OutOfMemory
from service.protocol import CapacitiesArgs, EmptyArgs, Kind
from service.settings import Settings
from service.store.keys import Keys
from service.store.listed import SnapshotInfo, read_listed
from service.worker.process import Worker
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of

CHUNK = "0"


class Saved:
    """A graph at version 4 with snapshots of versions 3 and 2, so that its log has only version 3 and 4."""

    def __init__(self, caller: Caller, client: Any, keys: Keys) -> None:
        self._client, self._keys = client, keys
        caller.load("g", diamond().edges)
        for amount in ("7", "8"):
            caller.set("g", [0], [amount])
            caller.ask(Kind.SNAPSHOT, "g", EmptyArgs())
        caller.set("g", [1], ["9"])
        self.id = client.hget(keys.names, "g").decode()
        self.base = client.hget(keys.graph(self.id), "base").decode()

    def listed(self) -> list[SnapshotInfo]:
        key = self._keys.snapshots(self.id)
        return read_listed(self._client.get(key), key)

    def hide(self, blob: str) -> bytes:
        """A blob that cannot be read for now; its content."""
        content: bytes = self._client.hget(self._keys.blob(blob), CHUNK)
        self._client.hset(self._keys.blob(blob), CHUNK, b"nonsense")
        return content

    def show(self, blob: str, content: bytes) -> None:
        self._client.hset(self._keys.blob(blob), CHUNK, content)


@pytest.fixture
def worker(caller: Caller, start_worker: StartWorker) -> Worker:
    worker = start_worker()
    caller.wait_ready()
    return worker


@pytest.fixture
def saved(worker: Worker, caller: Caller, client: Any, settings: Settings) -> Saved:
    return Saved(caller, client, Keys(settings.redis_prefix))


def test_snapshots_stay_while_no_restore_has_succeeded(worker: Worker, caller: Caller, saved: Saved) -> None:
    before = saved.listed()
    hidden = {info.blob: saved.hide(info.blob) for info in before}
    worker.graphs.residents.drop("g")
    assert code_of(lambda: caller.reply(Kind.CAPACITIES, "g", CapacitiesArgs())) == "worker_unavailable"
    assert saved.listed() == before
    for blob, content in hidden.items():
        saved.show(blob, content)
    page = caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())
    assert (page["version"], page["capacity"][:2]) == (4, [8, 9])


def test_snapshots_stay_when_it_is_the_edges_that_cannot_be_read(worker: Worker, caller: Caller, saved: Saved) -> None:
    before = saved.listed()
    content = saved.hide(saved.base)
    worker.graphs.residents.drop("g")
    assert code_of(lambda: caller.reply(Kind.CAPACITIES, "g", CapacitiesArgs())) == "worker_unavailable"
    assert saved.listed() == before
    assert worker.graphs.counters.get("snapshots_broken", 0) == 0
    saved.show(saved.base, content)
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["version"] == 4


def test_a_broken_snapshot_goes_once_the_one_before_has_led_to_the_same_state(
    worker: Worker, caller: Caller, saved: Saved
) -> None:
    newest, older = saved.listed()
    saved.hide(newest.blob)
    worker.graphs.residents.drop("g")
    assert caller.ask(Kind.CAPACITIES, "g", CapacitiesArgs())["version"] == 4
    assert saved.listed() == [older]
    assert worker.graphs.counters["snapshots_broken"] == 1


def test_snapshots_stay_when_the_graph_finds_no_room(
    worker: Worker, caller: Caller, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, older = saved.listed()
    saved.hide(newest.blob)
    worker.graphs.residents.drop("g")

    def no_room(*_: object) -> None:
        raise OutOfMemory("no room")

    with monkeypatch.context() as full:
        full.setattr(worker.graphs.residents, "take", no_room)
        assert code_of(lambda: caller.reply(Kind.CAPACITIES, "g", CapacitiesArgs())) == "out_of_memory"
    assert saved.listed() == [newest, older]


def test_a_graph_that_is_deleted_while_it_is_read_is_no_damage(worker: Worker, caller: Caller, saved: Saved) -> None:
    """A worker that reads a graph ahead of a move has found it before, and its log and blobs are gone then."""
    copies = worker.graphs._copies
    held = copies.registry.find("g").held
    assert held is not None
    caller.ask(Kind.DELETE, "g", EmptyArgs())
    with capture_logs() as told:
        assert code_of(lambda: copies._restore("g", held)) == "unknown_graph"
    assert not [line for line in told if line["log_level"] == "error"]
    assert worker.graphs.counters.get("snapshots_broken", 0) == 0
    assert "g" not in copies.notes
