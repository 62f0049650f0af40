"""Commands get into the stream of whoever owns their graph at that moment, once, and in their order."""

import asyncio
import threading
from typing import Any

import pytest
import redis
import redis.asyncio

from gpu_engine.formats import pack
from service.errors import ServiceError
from service.protocol import Kind, LoadArgs, Operation, PatchArgs
from service.queue.placement import Placement, Seen
from service.settings import Settings
from service.store.connection import CONNECTIONS
from service.store.keys import Keys
from service.store.ownership import Ownership
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker, code_of

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


class Long:
    """Arguments that another process has written, and whether they were copied where the event loop runs."""

    def __init__(self) -> None:
        self.held_up: list[bool] = []

    def to_json(self) -> bytes:
        self.held_up.append(asyncio._get_running_loop() is not None)
        return ADD_1.to_json()


def alive(client: Any, keys: Keys, *workers: str) -> None:
    for worker in workers:
        client.set(keys.lease(worker), "somebody")


def test_no_command_is_queued_with_a_worker_that_has_just_handed_the_graph_on(
    caller: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would come to the new owner later than what is queued there from now on."""
    alive(client, keys, "w0", "w1")
    client.hset(keys.owners, "g", "w0")
    checked, moved = Placement.checked, []

    def move_meanwhile(placement: Placement, graph: str, seen: Seen) -> str:
        if not moved:
            moved.append(Ownership(client, keys).take_over("g", "w1", "w0"))
        return checked(placement, graph, seen)

    monkeypatch.setattr(Placement, "checked", move_meanwhile)
    caller.submit(Kind.PATCH, "g", ADD_1)
    assert moved == [True]
    assert (client.xlen(keys.commands("w0")), client.xlen(keys.commands("w1"))) == (0, 1)
    assert (client.zcard(keys.waiting("w0")), client.zcard(keys.waiting("w1"))) == (0, 1)


def test_long_arguments_are_not_copied_in_the_event_loop(caller: Caller, client: Any, keys: Keys) -> None:
    alive(client, keys, "w0")
    client.hset(keys.owners, "g", "w0")
    args = Long()
    caller.submit(Kind.PATCH, "g", args)
    assert args.held_up == [False]
    ((_, fields),) = client.xrange(keys.commands("w0"))
    assert ADD_1.to_json() in fields[b"command"]


@pytest.mark.parametrize("key", [None, "key"])
def test_a_lost_answer_does_not_queue_a_command_twice(
    key: str | None, caller: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive(client, keys, "w0")
    client.hset(keys.owners, "g", "w0")
    execute, lost = redis.asyncio.client.Pipeline.execute, []

    async def lose_the_answer(pipe: Any, *args: Any) -> Any:
        answer = await execute(pipe, *args)
        if not lost:
            lost.append(answer)
            raise redis.WatchError
        return answer

    monkeypatch.setattr(redis.asyncio.client.Pipeline, "execute", lose_the_answer)
    job_id = caller.submit(Kind.PATCH, "g", ADD_1, key, "digest")
    assert lost
    assert client.xlen(keys.commands("w0")) == 1
    assert client.exists(keys.job(job_id))


def test_a_new_name_has_one_owner_however_many_ask(caller: Caller, settings: Settings, client: Any, keys: Keys) -> None:
    """Two API processes place the same names at once, and find two workers that hold as much as each other."""
    for worker in ("w0", "w1"):
        alive(client, keys, worker)
        report = {"name": worker, "pid": 1, "ready": True, "engine": "cpu", "graphs": 0, "bytes": 0, "beat_at": 0}
        client.hset(keys.workers, worker, str(report).replace("'", '"').replace("True", "true"))
    other = Caller(settings)
    names = [f"g{i}" for i in range(20)]

    def load_all(who: Caller) -> None:
        async def all_of_them() -> None:
            await asyncio.gather(*(who.dispatcher.submit(Kind.LOAD, name, LoadArgs(blob="b")) for name in names))

        who.run(all_of_them())

    thread = threading.Thread(target=load_all, args=(other,))
    thread.start()
    load_all(caller)
    thread.join()
    other.close()
    for name in names:
        queued = []
        for worker in ("w0", "w1"):
            texts = [fields[b"command"] for _, fields in client.xrange(keys.commands(worker))]
            queued += [worker] * sum(f'"graph":"{name}"'.encode() in text for text in texts)
        assert queued == [client.hget(keys.owners, name).decode()] * 2
        assert client.exists(keys.claim(name))


def test_as_many_new_graphs_at_once_as_there_are_connections(caller: Caller, start_worker: StartWorker) -> None:
    """A submission that holds a connection never waits for another one."""
    start_worker()
    caller.wait_ready()
    data = pack(diamond().edges)

    async def load(name: str) -> None:
        blob = await caller.dispatcher.blobs.put(data)
        job_id = await caller.dispatcher.submit(Kind.LOAD, name, LoadArgs(blob=blob), idempotency_key=name)
        again = await caller.dispatcher.submit(Kind.LOAD, name, LoadArgs(blob=blob), idempotency_key=name)
        assert again == job_id
        reply = await caller.dispatcher.wait(job_id, 60)
        assert reply is not None
        assert reply.problem is None

    async def all_of_them() -> None:
        async with asyncio.timeout(25):  # less than a connection is waited for
            await asyncio.gather(*(load(f"g{i}") for i in range(3 * CONNECTIONS)))

    caller.run(all_of_them())


def test_a_graph_that_never_stays_where_it_is_is_said_to_be_away(
    caller: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive(client, keys, "w0")
    client.hset(keys.owners, "g", "w0")
    checked = Placement.checked

    def touch(placement: Placement, graph: str, seen: Seen) -> str:
        client.set(keys.claim("g"), "w0")
        return checked(placement, graph, seen)

    monkeypatch.setattr(Placement, "checked", touch)
    assert code_of(lambda: caller.submit(Kind.PATCH, "g", ADD_1)) == "worker_unavailable"  # type: ignore[arg-type,return-value]
    assert not client.xlen(keys.commands("w0"))


def test_a_load_that_is_refused_leaves_no_owner_behind(
    caller: Caller, start_worker: StartWorker, client: Any, keys: Keys
) -> None:
    """Else every name that anybody ever tried would stay in Redis."""
    start_worker()
    caller.wait_ready()
    assert code_of(lambda: caller.reply(Kind.LOAD, "g", LoadArgs(blob="gone"))) == "worker_unavailable"
    assert not client.hexists(keys.owners, "g")
    assert not client.exists(keys.claim("g"))


@pytest.mark.parametrize(("waiting", "code"), [(2, ""), (3, "rate_limited"), (4, "rate_limited")])
def test_a_queue_has_room_up_to_its_limit(waiting: int, code: str) -> None:
    nothing: Any = None
    placement = Placement(nothing, nothing, nothing, queue_limit=3)
    seen = Seen("w0", exists=True, alive=True, waiting=waiting)
    if not code:
        assert placement.checked("g", seen) == "w0"
        return
    with pytest.raises(ServiceError) as refused:
        placement.checked("g", seen)
    assert (refused.value.code, refused.value.retry_after_s) == (code, 1.0)
