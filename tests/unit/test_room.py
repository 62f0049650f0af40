"""A Redis that fills up: what makes it grow is refused while there is room for what frees it."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
import structlog

from gpu_engine.formats import pack
from gpu_engine.networks.edgelist import EdgeList
from service.errors import ServiceError
from service.host import redis_server
from service.protocol import CapacitiesArgs, EmptyArgs, Kind, LoadArgs, MaxFlowArgs, Operation, PatchArgs, Status
from service.settings import Settings
from service.store.blobs import CHUNK_BYTES, AsyncBlobs
from service.store.connection import connect, connect_async
from service.store.keys import Keys
from service.store.room import RESERVE_LEAST_BYTES, RESERVE_MOST_BYTES, AsyncRoom, Memory, Need, Room
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of

MIB = 1 << 20
PATIENCE_S = 60.0
ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


@pytest.mark.parametrize(
    ("limit", "reserve"),
    [
        (0, 0),
        (8 * MIB, 4 * MIB),
        (100 * MIB, RESERVE_LEAST_BYTES),
        (1 << 30, 107_374_182),
        (64 << 30, RESERVE_MOST_BYTES),
    ],
)
def test_the_reserve(limit: int, reserve: int) -> None:
    assert Memory(0, limit).reserve == reserve


def test_who_has_room() -> None:
    def needs_with(used: int, more: int = 0) -> set[Need]:
        return {need for need in Need if Memory(used, 1000).has_room(more, need)}

    everything = set(Need)
    assert needs_with(500) == everything
    assert needs_with(400, 101) == {Need.ANSWER, Need.RELEASE}
    assert needs_with(501) == {Need.ANSWER, Need.RELEASE}
    assert needs_with(751) == needs_with(999) == {Need.RELEASE}
    assert needs_with(999, 10**6) == {Need.RELEASE}
    assert needs_with(1000) == everything  # it will refuse by itself, which is another error
    assert Memory(10**15, 0).has_room(10**15, Need.GROWTH)


def test_what_was_taken_since_counts(settings: Settings) -> None:
    client = connect(settings)
    room = Room(client)
    room.heard({"used_memory": 5 * MIB, "mem_not_counted_for_evict": 5 * MIB, "maxmemory": 100 * MIB})
    for _ in range(8):
        room.take(10 * MIB, Need.GROWTH)
    with pytest.raises(ServiceError) as refused:
        room.take(10 * MIB, Need.GROWTH)
    assert refused.value.code == "out_of_memory"
    room.take(1000, Need.ANSWER)
    room._asked_at = -1e9  # asked again: this server has no limit
    room.take(10 * MIB, Need.GROWTH)
    client.close()


def test_a_server_that_does_not_tell_has_room(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked once."""
    client, asked = connect(settings), []

    def denied(section: str) -> None:
        asked.append(section)
        raise redis.exceptions.NoPermissionError

    monkeypatch.setattr(client, "info", denied)
    room = Room(client)
    for _ in range(3):
        room.take(1 << 60, Need.GROWTH)
        room._asked_at = -1e9
    assert asked == ["memory"]
    client.close()


def test_submissions_go_on_where_info_is_denied(caller: Caller, settings: Settings, full: "Full") -> None:
    full.admin.execute_command("ACL", "SETUSER", "headrace", "-info")
    client, keys = connect(settings), Keys(settings.redis_prefix)
    client.hset(keys.owners, "g", "w0")
    client.set(keys.lease("w0"), "somebody")
    for _ in range(3):
        caller.submit(Kind.PATCH, "g", ADD_1)
        caller.run(caller.dispatcher.blobs.put(b"x"))
    assert client.xlen(keys.commands("w0")) == 3
    client.close()


class Full:
    """A Redis of this test's own, whose memory its administrator limits."""

    def __init__(self, settings: Settings) -> None:
        self.admin: Any = redis.Redis.from_url(settings.redis_location.replace("headrace@", ""))

    def limit(self, more: int) -> None:
        """So much more than it holds now; 0: none."""
        now = self.admin.info("memory")["used_memory"]
        self.admin.config_set("maxmemory", now + more if more else 0)

    def memory(self) -> Memory:
        return Memory.of(self.admin.info("memory"))


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    server = Settings(data_dir=tmp_path, redis_url=None)
    with redis_server.running(server):
        yield server.redis_location


@pytest.fixture
def full(settings: Settings) -> Iterator[Full]:
    full = Full(settings)
    yield full
    full.admin.close()


def large(seed: int) -> EdgeList:
    """A megabyte that does not get smaller."""
    rng = np.random.default_rng(seed)
    n = 40_000
    tail, head = rng.integers(0, n, n).astype(np.int32), rng.integers(0, n, n).astype(np.int32)
    return EdgeList(n, tail, head, rng.integers(0, 1 << 62, n) >> 20, source=0, sink=n - 1)


def load(caller: Caller, name: str, data: bytes) -> str:
    """The code it is refused with, or ""."""
    try:
        blob = caller.run(caller.dispatcher.blobs.put(data))
        reply = caller.reply(Kind.LOAD, name, LoadArgs(blob=blob))
    except ServiceError as error:
        return error.code
    return "" if reply.problem is None else reply.problem.code


def test_a_full_redis_is_emptied_by_deletes(caller: Caller, start_worker: StartWorker, full: Full) -> None:
    """Growth is refused first, then questions; deletes and cancels go through to the last, and open it again."""
    start_worker()
    caller.wait_ready()
    caller.load("small", diamond().edges)
    data = pack(large(1))
    full.limit(60 * MIB)
    names: list[str] = []
    while not (refusal := load(caller, f"g{len(names)}", data)):
        names.append(f"g{len(names)}")
        assert len(names) < 200, "nothing is ever refused"
    assert refusal == "out_of_memory"
    assert len(names) > 10
    # 10 MiB: what Redis has for connections comes and goes, and a tenth of that might just fit.
    long = PatchArgs(batch=[Operation(op="close", edges=list(range(1_500_000)))])
    assert code_of(lambda: caller.reply(Kind.PATCH, "small", long)) == "out_of_memory"
    assert caller.value("small") == 5
    assert caller.ask(Kind.CAPACITIES, "small", CapacitiesArgs())["version"] == 1
    memory = full.memory()
    assert memory.used < memory.limit - memory.reserve // 2
    _fill(full, Need.ANSWER)
    time.sleep(0.3)
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "small", MaxFlowArgs())) == "out_of_memory"
    assert code_of(lambda: caller.reply(Kind.SNAPSHOT, "small", EmptyArgs())) == "out_of_memory"
    assert code_of(lambda: caller.reply(Kind.PATCH, "small", ADD_1)) == "out_of_memory"
    for name in names[:10]:
        assert caller.reply(Kind.DELETE, name, EmptyArgs()).status is Status.SUCCEEDED
    full.admin.delete("filling")
    time.sleep(0.3)
    assert load(caller, "again", data) == ""
    assert caller.ask(Kind.PATCH, "small", ADD_1)["version"] == 2
    assert caller.value("small") == 5


def _fill(full: Full, need: Need) -> None:
    """By somebody else, until what needs this is refused, and would be if a client's buffer were let go."""
    while (memory := full.memory()).has_room(-MIB, need):
        missing = memory.limit - int(need.value * memory.reserve) - memory.used + MIB
        full.admin.rpush("filling", bytes(min(missing + 1000, 50_000)))


def test_a_storm_does_not_use_up_the_reserve(
    caller: Caller, start_worker: StartWorker, full: Full, settings: Settings
) -> None:
    """All that can be asked, by several at once, for some seconds: heartbeats, cancels and deletes still go through."""
    start_worker()
    caller.wait_ready()
    for name in ("a", "b"):
        caller.load(name, diamond().edges)
    full.limit(36 * MIB)
    data, patch = pack(large(2)), PatchArgs(batch=[Operation(op="set", edges=[0], amounts=["1" * 15])] * 2000)
    stop, codes = threading.Event(), set()

    def storm(number: int) -> None:
        one = Caller(settings)
        asks = (
            lambda i: load(one, f"s{number}-{i}", data),
            lambda _: code_of(lambda: one.reply(Kind.PATCH, "a", patch)),
            lambda _: code_of(lambda: one.reply(Kind.MAX_FLOW, "a", MaxFlowArgs())),
        )
        i = 0
        while not stop.is_set():
            try:
                codes.add(asks[(i + number) % 3](i))
            except AssertionError:  # it succeeded
                codes.add("")
            i += 1
        one.close()

    threads = [threading.Thread(target=storm, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    lowest = full.memory().limit
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        memory = full.memory()
        lowest = min(lowest, memory.limit - memory.used)
        if "out_of_memory" in codes:
            end = min(end, time.monotonic() + 2)
        time.sleep(0.02)
    stop.set()
    for thread in threads:
        thread.join()
    assert "out_of_memory" in codes
    assert codes <= {"", "out_of_memory", "rate_limited"}, codes
    assert lowest > 0
    job_id = caller.submit(Kind.DELETE, "b", EmptyArgs())
    assert caller.run(caller.dispatcher.cancel(job_id)) is not None
    assert caller.reply(Kind.DELETE, "a", EmptyArgs()).status is Status.SUCCEEDED
    assert caller.run(caller.dispatcher.watch.workers())[0].alive


def test_a_long_result_that_has_no_room_is_refused(caller: Caller, start_worker: StartWorker, full: Full) -> None:
    """The question itself has room. The worker goes on."""
    start_worker()
    caller.wait_ready()
    caller.load("g", large(3))
    full.limit(40 * MIB)
    _fill(full, Need.GROWTH)
    time.sleep(0.3)
    flow = MaxFlowArgs(fields=frozenset({"flow"}), zeros=True)
    assert code_of(lambda: caller.reply(Kind.MAX_FLOW, "g", flow)) == "out_of_memory"
    assert "value" in caller.ask(Kind.MAX_FLOW, "g", MaxFlowArgs())


def test_an_upload_that_loses_its_room_leaves_nothing(settings: Settings, full: Full) -> None:
    """Somebody else takes the room between two of its chunks."""
    data = bytes(6 * CHUNK_BYTES)

    async def upload() -> None:
        client = connect_async(settings)
        blobs = AsyncBlobs(client, Keys(settings.redis_prefix))
        take, chunks = AsyncRoom.take, []

        async def taken_meanwhile(room: AsyncRoom, more: int, *args: Any, **options: Any) -> None:
            if len(chunks) == 3:
                room.heard({"used_memory": 99 * MIB, "maxmemory": 100 * MIB})
            chunks.append(more)
            await take(room, more, *args, **options)

        blobs._room.take = taken_meanwhile.__get__(blobs._room)  # type: ignore[method-assign]
        with pytest.raises(ServiceError):
            await blobs.put(data)
        assert chunks == [CHUNK_BYTES] * 4
        assert not [key async for key in client.scan_iter("*")]
        await client.aclose()

    asyncio.run(upload())


def test_a_process_warns_once_of_a_server_that_may_forget(settings: Settings) -> None:
    """Each API process hears of it with its first command, however Redis was set since it started."""
    with structlog.testing.capture_logs() as logs:
        for policy in ("noeviction", "allkeys-random", "allkeys-random"):
            Room(connect(settings)).heard({"maxmemory_policy": policy})
    told = [line["maxmemory_policy"] for line in logs if line["event"] == "redis_may_evict"]
    assert told == ["allkeys-random"]
