"""Blobs, log and snapshots against a real Redis."""

import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
import redis

from gpu_engine.errors import Cancelled
from gpu_engine.networks.updates import Change
from service.errors import ServiceError
from service.settings import Settings
from service.store import snapshots
from service.store.applied import Applied, Fenced
from service.store.blobs import CHUNK_BYTES, Blobs, BrokenBlob
from service.store.catalogue import GraphInfo, Registry, read_info
from service.store.connection import connect
from service.store.jobs.outcomes import CANCELLED, Committed, Over
from service.store.keys import Keys
from service.store.log import BrokenLog, Entry, Log, pack_change, unpack_change
from service.store.ownership import Ownership
from service.store.snapshots import Capacities, KnownKey, Snapshots
from service.store.watched import watched

NOW = datetime.now(UTC)


class Store:
    """Every part of the store over one client, and a graph at version 1."""

    def __init__(self, settings: Settings) -> None:
        self.keys = Keys(settings.redis_prefix)
        self.client: redis.Redis = connect(settings)
        self.blobs = Blobs(self.client, self.keys)
        self.log = Log(self.client, self.keys)
        self.snapshots = Snapshots(self.client, self.keys)
        self.registry = Registry(self.client, self.keys)
        self.ownership = Ownership(self.client, self.keys)
        self.id = self.create("g")

    def info(self, name: str, worker: str = "w0") -> GraphInfo:
        sizes = {"n_vertices": 2, "n_edges": 3, "n_arcs": 6, "decimals": 0, "bytes": 100}
        return GraphInfo(
            name=name, version=1, created_at=NOW, updated_at=NOW, engine="cpu", worker=worker, flow_states=0, **sizes
        )

    def create(self, name: str, worker: str = "w0") -> str:
        graph_id = self.queue(uuid.uuid4().hex)
        self.registry.create(self.info(name, worker), graph_id, self.blobs.put(b"edges", 60))
        return graph_id

    def queue(self, job_id: str) -> str:
        self.client.hset(self.keys.job(job_id), "status", "queued")
        return job_id

    def end(self, job_id: str) -> None:
        """As the worker does once it has committed."""
        self.client.hset(self.keys.job(job_id), "status", "succeeded")
        self.client.delete(self.keys.outcome(job_id))

    def append(self, version: int, epoch: int = 1) -> None:
        self.log.append(self.id, epoch, [(entry(version), self.queue(uuid.uuid4().hex))], time.time())

    def capacities(self, version: int) -> Capacities:
        known = [KnownKey(version=version, applied=entry(version).applied)] if version > 1 else []
        own = np.arange(3) * version
        return Capacities(version=version, own=own, closed=np.array([True, False, False]), known=known)

    def save(self, version: int) -> None:
        self.snapshots.write("g", self.id, 1, self.capacities(version))

    def logged(self) -> list[int]:
        first = [int(entry_id.split(b"-")[0]) for entry_id, _ in self.client.xrange(self.keys.log(self.id))]  # type: ignore[union-attr]
        return first

    def all_keys(self) -> set[bytes]:
        """But those of commands, which go their own way."""
        commands = (self.keys.job("").encode(), self.keys.outcome("").encode())
        return {key for key in self.client.scan_iter(f"{self.keys.prefix}*") if not key.startswith(commands)}


def entry(version: int) -> Entry:
    change = Change(np.array([0, version]), np.array([5, version]), np.array([False, True]), skipped=1, unchanged=2)
    return Entry(version, Applied(key=f"k{version}", digest="d", applied=2, skipped=1, unchanged=2), change)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    store = Store(settings)
    yield store
    store.client.close()


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, 2 * CHUNK_BYTES + 1])
def test_blobs_come_back(store: Store, size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    name = store.blobs.put(data, 60)
    assert store.blobs.get(name) == data
    assert 0 < store.client.ttl(store.keys.blob(name)) <= 60
    store.blobs.delete(name)
    with pytest.raises(BrokenBlob):
        store.blobs.get(name)


@pytest.mark.parametrize("field", ["0", "1", "bytes", "chunks"])
def test_a_damaged_blob_is_refused(store: Store, field: str) -> None:
    name = store.blobs.put(bytes(CHUNK_BYTES + 5), 60)
    key = store.keys.blob(name)
    damages = {"0": b"\1" + bytes(CHUNK_BYTES - 1), "bytes": b"7"}
    if field in damages:
        store.client.hset(key, field, damages[field])
    else:
        store.client.hdel(key, field)
    with pytest.raises(BrokenBlob):
        store.blobs.get(name)


def test_the_log_replays_what_was_appended(store: Store) -> None:
    for version in range(2, 600):
        store.append(version)
    entries = list(store.log.replay(store.id, 300))
    assert [e.version for e in entries] == list(range(301, 600))
    assert entries[0].applied == entry(301).applied
    assert entries[0].change.rows.tolist() == [0, 301]
    assert entries[0].change.closed.tolist() == [False, True]
    held = store.registry.find("g", store.id).held
    assert held is not None
    assert held.version == 599


@pytest.mark.parametrize(("version", "epoch"), [(2, 1), (4, 1), (3, 2), (1, 1)])
def test_a_stale_writer_is_fenced(store: Store, version: int, epoch: int) -> None:
    """Of two writers at version 1, the second to append is refused, and so is one of another epoch."""
    store.append(2)
    with pytest.raises(Fenced):
        store.append(version, epoch)
    assert store.logged() == [2]


def test_a_log_that_cannot_be_written_fences_nobody(store: Store) -> None:
    """As on a full disk: the PATCH is tried again, not given up as another writer's."""
    store.client.set(store.keys.log(store.id), "no stream")
    with pytest.raises(redis.ResponseError):
        store.append(2)


def test_nothing_is_appended_to_a_graph_that_is_gone(store: Store) -> None:
    assert store.registry.remove("g", store.queue("job"), "w0")
    with pytest.raises(Fenced):
        store.append(2)
    assert not store.client.exists(store.keys.log(store.id))


def test_a_gap_in_the_log_is_noticed(store: Store) -> None:
    for version in (2, 3, 4):
        store.append(version)
    store.client.xdel(store.keys.log(store.id), "3-0")
    with pytest.raises(BrokenLog, match="version 3 is missing"):
        list(store.log.replay(store.id, 1))


def test_a_damaged_entry_is_noticed(store: Store) -> None:
    packed = bytearray(pack_change(entry(2).change))
    packed[len(packed) // 2] ^= 1
    fields = {"applied": entry(2).applied.model_dump_json(), "change": bytes(packed)}
    store.client.xadd(store.keys.log(store.id), fields, id="2-0")  # type: ignore[arg-type]
    with pytest.raises(BrokenLog):
        list(store.log.replay(store.id, 1))


def test_changes_of_no_edge_are_kept() -> None:
    nothing = Change(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))
    assert len(unpack_change(pack_change(nothing)).rows) == 0


def test_the_log_is_trimmed_to_the_snapshot_before_the_newest(store: Store) -> None:
    for version in range(2, 8):
        store.append(version)
        if version % 2 == 0:
            store.save(version)
    assert [s.version for s in store.snapshots.listed(store.id)] == [6, 4]
    assert store.logged() == [5, 6, 7]
    assert len([key for key in store.all_keys() if b":blob:" in key]) == 3  # two snapshots and the base
    assert all(store.client.ttl(key) == -1 for key in store.all_keys())
    read = store.snapshots.read(store.snapshots.listed(store.id)[0])
    assert (read.version, read.own.tolist(), read.closed.tolist()) == (6, [0, 6, 12], [True, False, False])
    assert read.known == store.capacities(6).known


def test_a_snapshot_does_not_come_after_a_newer_one(store: Store) -> None:
    for version in range(2, 5):
        store.append(version)
    store.save(4)
    with pytest.raises(Fenced, match="newer snapshot"):
        store.save(3)
    assert [s.version for s in store.snapshots.listed(store.id)] == [4]


def test_a_broken_snapshot_is_noticed_and_struck_off(store: Store) -> None:
    store.save(1)
    (listed,) = store.snapshots.listed(store.id)
    store.client.hset(store.keys.blob(listed.blob), "0", b"nonsense")
    with pytest.raises(BrokenBlob):
        store.snapshots.read(listed)
    store.snapshots.drop(store.id, listed)
    assert store.snapshots.listed(store.id) == []


def test_a_snapshot_that_is_not_read_back_as_written_is_not_listed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is not trimmed for it either."""
    store.append(2)
    store.save(1)
    get = Blobs.get
    monkeypatch.setattr(Blobs, "get", lambda blobs, name: get(blobs, name)[:-1] + b"?")
    with pytest.raises(BrokenBlob, match="read back"):
        store.save(2)
    assert [s.version for s in store.snapshots.listed(store.id)] == [1]
    assert store.logged() == [2]


def test_a_snapshot_of_a_graph_that_changed_hands_is_refused(store: Store) -> None:
    assert store.ownership.take_over("g", "w1", "w0")
    with pytest.raises(Fenced):
        store.save(1)
    assert not store.ownership.take_over("g", "w2", "w0")


def test_a_new_graph_of_an_old_name_starts_afresh(store: Store) -> None:
    store.append(2)
    store.save(2)
    old = store.id
    new = store.create("g")
    left = b" ".join(store.all_keys()).decode()
    assert old not in left
    assert store.registry.find("g", new).held is not None
    with pytest.raises(Fenced):
        store.append(3)  # to the old id


def test_what_a_graph_takes_is_told_with_its_time(store: Store) -> None:
    """An update has no part in it; of a row that an earlier release has written the time is not known better."""

    def told() -> GraphInfo:
        return read_info("g", store.id, store.client.hgetall(store.keys.graph(store.id)))  # type: ignore[arg-type]

    assert told().measured_at == told().updated_at == NOW
    before = time.time()
    store.registry.note(store.id, b"", bytes=200, device_bytes=0, flow_states=2)
    noted = told()
    assert (noted.bytes, noted.flow_states, noted.updated_at) == (200, 2, NOW)
    assert noted.measured_at is not None
    assert before - 1e-3 <= noted.measured_at.timestamp() <= time.time()
    store.append(2)
    assert told().measured_at == noted.measured_at < told().updated_at
    store.client.hdel(store.keys.graph(store.id), "measured_at")
    assert told().measured_at == told().updated_at


def test_a_removed_graph_leaves_nothing(store: Store) -> None:
    store.append(2)
    store.save(2)
    assert store.registry.remove("g", store.queue("job"), "w0")
    assert store.all_keys() == set()
    assert store.client.get(store.keys.outcome("job")) == b"{}"
    assert not store.registry.remove("g", store.queue("another job"), "w0")


def test_a_commit_is_not_made_again(store: Store) -> None:
    """As after a connection lost in the commit, or a pause in which another worker did it. Found by seeds 22, 118."""
    store.append(2)
    base = store.registry.find("g", store.id).held.base  # type: ignore[union-attr]
    info = store.info("g")
    with pytest.raises(Committed) as done:
        store.registry.create(info, store.id, base)
    assert json.loads(done.value.result)["replaced"] is False
    assert store.logged() == [2]
    assert store.registry.remove("g", store.queue("job"), "w0")
    new = store.create("g")
    with pytest.raises(Committed, match=r"\{\}"):
        store.registry.remove("g", "job", "w0")
    store.end("job")
    with pytest.raises(Over):
        store.registry.remove("g", "job", "w0")
    assert store.ownership.take_over("g", "w1", "w0")
    with pytest.raises(Fenced, match="w1"):
        store.registry.remove("g", store.queue("a job of before"), "w0")
    assert store.registry.find("g", new).graph_id == new


def test_an_update_is_the_outcome_of_its_command(store: Store) -> None:
    """A worker that has not heard of its commit, and has the graph at a later version by then, learns the answer."""
    job_id = store.queue("patch")
    store.log.append(store.id, 1, [(entry(2), job_id)], time.time())
    store.log.append(store.id, 1, [(entry(2), job_id)], time.time())  # the answer to the first try was lost
    store.append(3)
    with pytest.raises(Committed) as done:
        store.log.append(store.id, 1, [(entry(4), job_id)], time.time())
    assert done.value.result == entry(2).result_json(store.id)
    assert store.logged() == [2, 3]


@pytest.mark.parametrize("what", ["cancelled", "taken over", "removed", "appended to"])
def test_what_happens_just_before_an_append_decides_about_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Between the look at the graph and the MULTI."""
    job_id = store.queue("patch")
    acts: dict[str, Any] = {
        "cancelled": lambda: store.client.set(store.keys.outcome(job_id), CANCELLED),
        "taken over": lambda: store.ownership.take_over("g", "w1", "w0"),
        "removed": lambda: store.registry.remove("g", store.queue("delete"), "w0"),
        "appended to": lambda: store.append(2),
    }
    seen: list[Any] = []

    def meanwhile(*args: Any) -> list[Any]:
        answers = watched(*args)
        if not seen:
            seen.append(answers)
            acts[what]()
        return answers

    monkeypatch.setattr("service.store.log.watched", meanwhile)
    with pytest.raises(Cancelled if what == "cancelled" else Fenced):
        store.log.append(store.id, 1, [(entry(2), job_id)], time.time())
    assert store.logged() == ([2] if what == "appended to" else [])
    if what == "removed":
        assert store.all_keys() == set()


def test_what_redis_lost_is_not_committed(store: Store) -> None:
    """The worker was at it while Redis was away; its client has sent it again by now."""
    info, base = store.info("g"), store.blobs.put(b"edges", 60)
    with pytest.raises(Over):
        store.registry.create(info, "a lost job", base)
    with pytest.raises(Over):
        store.registry.remove("g", "a lost job", "w0")
    with pytest.raises(Over):
        store.log.append(store.id, 1, [(entry(2), "a lost job")], time.time())
    assert store.logged() == []
    assert store.registry.find("g", store.id).held is not None


def test_a_snapshot_of_what_redis_lost_is_refused(store: Store) -> None:
    """Found by seed 723: the end of the log was lost, and a copy in memory was ahead of it."""
    store.append(2)
    with pytest.raises(Fenced, match="version 2"):
        store.save(3)
    assert store.snapshots.listed(store.id) == []


@pytest.mark.parametrize("what", ["cancelled", "taken over", "replaced", "a new snapshot"])
def test_what_happens_just_before_a_commit_decides_about_it(
    store: Store, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Between the look at what a load replaces and its MULTI."""
    store.append(2)
    replaced, seen = Registry._replaced, []
    job_id, base = store.queue("load"), store.blobs.put(b"edges", 60)

    def meanwhile(registry: Registry, *args: Any) -> list[str]:
        doomed = replaced(registry, *args)
        if not seen:
            seen.append(doomed)
            acts[what]()
        return doomed

    acts: dict[str, Any] = {
        "cancelled": lambda: store.client.set(store.keys.outcome(job_id), CANCELLED),
        "taken over": lambda: store.ownership.take_over("g", "w1", "w0"),
        "replaced": lambda: store.create("g"),
        "a new snapshot": lambda: store.save(2),
    }
    monkeypatch.setattr(Registry, "_replaced", meanwhile)
    expected: dict[str, type[Exception]] = {"cancelled": Cancelled, "taken over": Fenced}
    if what in expected:
        with pytest.raises(expected[what]):
            store.registry.create(store.info("g"), job_id, base)
        assert store.registry.find("g", store.id).graph_id == store.id
        assert store.client.ttl(store.keys.blob(base)) > 0
        return
    assert store.registry.create(store.info("g"), job_id, base).replaced
    left = b" ".join(store.all_keys()).decode()
    assert store.id not in left
    assert len([key for key in store.all_keys() if b":blob:" in key]) == 1  # the base of the new one


def test_a_new_name_is_for_one_of_two_loads(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no graph yet whose change the commit could see: only the claim of the name tells."""
    replaced, other = Registry._replaced, []

    def meanwhile(registry: Registry, *args: Any) -> list[str]:
        doomed = replaced(registry, *args)
        if not other:
            other.append("")
            other[0] = store.create("new", "w1")
        return doomed

    base = store.blobs.put(b"edges", 60)
    monkeypatch.setattr(Registry, "_replaced", meanwhile)
    with pytest.raises(Fenced, match="w1"):
        store.registry.create(store.info("new"), store.queue("load"), base)
    found = store.registry.find("new", other[0])
    assert (found.graph_id, found.owner) == (other[0], "w1")


@pytest.mark.parametrize("if_match", [1, 3])
def test_a_commit_is_for_the_version_it_names(store: Store, if_match: int) -> None:
    """The worker has looked before it built the graph; what counts is the version at the commit."""
    store.append(2)
    base = store.blobs.put(b"edges", 60)
    for commit in (
        lambda: store.registry.create(store.info("g"), store.queue("load"), base, if_match),
        lambda: store.registry.remove("g", store.queue("delete"), "w0", if_match),
    ):
        with pytest.raises(ServiceError) as refused:
            commit()
        assert refused.value.code == "version_conflict"
    assert store.registry.find("g", store.id).graph_id == store.id
    assert store.registry.create(store.info("g"), store.queue("load"), base, 2).replaced


def test_a_name_without_a_graph_is_given_up_by_its_owner_alone(store: Store) -> None:
    for owner in ("w0", "w1"):
        store.client.hset(store.keys.owners, f"of {owner}", owner)
        store.registry.disown(f"of {owner}", "w0")
    store.registry.disown("g", "w0")
    assert store.client.hgetall(store.keys.owners) == {b"g": b"w0", b"of w1": b"w1"}


@pytest.mark.parametrize("what", ["updated", "taken over", "removed", "replaced"])
def test_what_happens_just_before_a_snapshot_is_adopted(
    store: Store, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """An update, which its graph gets all the time, does not disturb; a new owner or another graph does."""
    store.append(2)
    acts: dict[str, Any] = {
        "updated": lambda: store.append(3),
        "taken over": lambda: store.ownership.take_over("g", "w1", "w0"),
        "removed": lambda: store.registry.remove("g", store.queue("job"), "w0"),
        "replaced": lambda: store.create("g"),
    }
    done: list[str] = []

    def look_and_act(*args: Any) -> list[Any]:
        answers = watched(*args)
        if not done:
            done.append(what)
            acts[what]()
        return answers

    monkeypatch.setattr(snapshots, "watched", look_and_act)
    if what == "updated":
        adopt, tries = store.snapshots._adopt, []
        monkeypatch.setattr(store.snapshots, "_adopt", lambda *args: bool(tries.append(1) or adopt(*args)))
        store.save(2)
        assert tries == [1]
        assert [s.version for s in store.snapshots.listed(store.id)] == [2]
        return
    with pytest.raises(Fenced):
        store.save(2)
    assert store.snapshots.listed(store.id) == []
    if what != "taken over":
        assert store.id not in b" ".join(store.all_keys()).decode()
