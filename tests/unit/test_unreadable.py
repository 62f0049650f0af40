"""What lies in Redis and is of no form that this release knows: it is told, and stops nobody else."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from service.api.guards.access import KeyTable
from service.errors import ServiceError
from service.protocol import DeleteArgs, Kind, MaxFlowArgs
from service.settings import Settings
from service.store.api_keys import UNREADABLE, ApiKeys, Scope, fetch_keys
from service.store.connection import connect_async, connect_listeners
from service.store.feed.reading import FeedReader
from service.store.graphs import Catalogue
from service.store.hooks.hooks import Hooks
from service.store.hooks.record import Delivery, Webhook
from service.store.keys import Keys
from service.store.ownership import Ownership
from service.store.sessions import Sessions
from service.store.unreadable import Unreadable, readable
from service.worker.process import Worker
from service.worker.running.tries import WRONG_TYPE
from tests.graphs import diamond
from tests.service_fixtures import Caller, StartWorker
from tests.serving import eventually

JUNK = (b"junk", b"\xff\xfe", b"[1, 2]", b'{"name": "x"}', b"1 2 3")


def in_redis(settings: Settings, work: Callable[[Any, Keys], Awaitable[Any]]) -> Any:
    """What the work makes of a client of its own."""

    async def connected() -> Any:
        client = connect_async(settings)
        try:
            return await work(client, Keys(settings.redis_prefix))
        finally:
            await client.aclose()

    return asyncio.run(connected())


def fill(client: Any, key: str) -> None:
    """Rows of a table that are none, under names that are none too."""
    for number, row in enumerate(JUNK):
        client.hset(key, f"junk-{number}", row)
        client.hset(key, b"\xff%d" % number, row)


def test_junk_in_the_tables_of_all_stops_no_graph(
    client: Any, keys: Keys, caller: Caller, start_worker: StartWorker
) -> None:
    """A probe said 500, no graph could be loaded, and no worker took over or gave back any more."""
    tables = keys.workers, keys.placed, keys.absences, keys.names, keys.owners, keys.homes, keys.draining
    for key in tables:
        fill(client, key)
    client.hset(keys.placed, "of a later release", '{"worker": "w0", "n_bytes": 1, "at": 1.0, "more": 2}')
    with capture_logs() as logs:
        start_worker()
        caller.wait_ready()
        caller.load("g", diamond().edges)
        client.hset(keys.homes, "g", b"\xff")
        value = caller.value("g")
        caller.set("g", [0], ["1"])
        assert caller.run(caller.dispatcher.watch.has_ready_worker())
        assert [worker.name for worker in caller.run(caller.dispatcher.watch.workers())] == ["w0"]
        for _ in range(2):
            beat = client.hget(keys.workers, "w0")
            eventually(lambda beat=beat: client.hget(keys.workers, "w0") != beat)  # type: ignore[misc]  # of defaults
    assert value > 0
    assert [line for line in logs if line["event"] == "heartbeat_failed"] == []
    told = [(line["key"], line["field"]) for line in logs if line["event"] == "unreadable"]
    assert len(told) == len(set(told)), "each of them is told once"
    assert {key for key, _ in told} >= {keys.workers, keys.homes, keys.owners, keys.placed}


@pytest.mark.parametrize("field", ["version", "epoch", "base"])
def test_a_graph_whose_record_is_none_is_refused_and_can_be_deleted(
    client: Any, keys: Keys, caller: Caller, worker: Worker, field: str
) -> None:
    caller.load("other", diamond().edges)
    graph_id = client.hget(keys.names, "g").decode()
    client.hset(keys.graph(graph_id), field, b"\xff")
    client.set(keys.snapshots(graph_id), b"junk")
    reply = caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())
    assert reply.problem is not None
    assert (reply.problem.code, "the graph cannot be read" in reply.problem.detail) == ("internal_error", True)
    assert caller.value("other") > 0
    caller.ask(Kind.DELETE, "g", DeleteArgs())
    assert client.hkeys(keys.names) == [b"other"]


@pytest.mark.parametrize("field", ["info", "version", "updated_at", "measured_at", "bytes", "ends"])
def test_a_list_of_graphs_is_without_those_that_cannot_be_read(
    settings: Settings, client: Any, keys: Keys, caller: Caller, worker: Worker, field: str
) -> None:
    caller.load("other", diamond().edges)
    client.hset(keys.graph(client.hget(keys.names, "g").decode()), field, b"junk")
    client.hset(keys.names, b"\xff", b"\xff")

    async def work(redis: Any, keys: Keys) -> None:
        catalogue = Catalogue(redis, keys)
        page = await catalogue.page(lambda name: True)
        assert [info.name for info in page.graphs] == ["other"]
        with pytest.raises(Unreadable, match="graph 'g' cannot be read"):
            await catalogue.get("g")

    in_redis(settings, work)


def test_a_key_that_cannot_be_read_is_a_revoked_one(settings: Settings, client: Any, keys: Keys) -> None:
    """Nobody is let in with it, and the service is not open to all because of it."""
    table = ApiKeys(client, keys)
    made, token = table.create("ours", Scope.READ)
    client.hset(keys.api_keys, "0" * 12, b"junk")
    client.hset(keys.api_keys, "copied", client.hget(keys.api_keys, made.id))
    ring = in_redis(settings, fetch_keys)
    assert {key.label for key in ring.keys.values() if key.id != made.id} == {UNREADABLE}
    assert {key.id for key in table.list()} == {"0" * 12, "copied", made.id}
    client.hdel(keys.api_keys, made.id)

    async def caller(shown: str | None) -> None:
        async def fetch() -> Any:
            redis = connect_async(settings)
            try:
                return await fetch_keys(redis, keys)
            finally:
                await redis.aclose()

        await KeyTable(fetch, required=False).caller(shown)

    for shown in (None, token):
        with pytest.raises(ServiceError) as refused:
            asyncio.run(caller(shown))
        assert refused.value.code == "unauthorised"
    assert table.revoke("0" * 12)
    assert json.loads(client.hget(keys.api_keys, "0" * 12))["revoked_at"] is not None
    client.set(keys.opened, "junk")
    assert in_redis(settings, fetch_keys).opened_at is None


def test_sessions_that_cannot_be_read_are_closed(settings: Settings, client: Any, keys: Keys) -> None:
    async def work(redis: Any, keys: Keys) -> None:
        sessions, key_id = Sessions(redis, keys), 12 * "a"
        token = await sessions.open(key_id)
        fill(client, keys.sessions(key_id))
        assert await sessions.is_open(token)
        client.hset(keys.sessions(key_id), token.split("_")[2], b"junk")
        assert not await sessions.is_open(token)
        assert await sessions.is_open(await sessions.open(key_id))
        assert client.hget(keys.sessions(key_id), "junk-0") is None, "it was taken for one that is over"

    in_redis(settings, work)


def test_webhooks_and_deliveries_that_cannot_be_read_keep_no_other_waiting(
    settings: Settings, client: Any, keys: Keys
) -> None:
    hook = Webhook(id="h", url="https://a.example/", graphs=["g"], types=["version"], secret="s", created_at=1.0)

    async def work(redis: Any, keys: Keys) -> None:
        hooks = Hooks(redis, keys)
        fill(client, keys.webhooks)
        fill(client, keys.deliveries("h"))
        fill(client, keys.cursors("h"))
        assert await hooks.put(hook, None, 100, {"g": "0-0"})
        assert await hooks.all() == [hook]
        assert [standing.webhook for standing in await hooks.standings(5.0)] == ["h"]
        with pytest.raises(Unreadable, match="webhook 'junk-0' cannot be read"):
            await hooks.get("junk-0")
        late = Delivery(id="late", type="version", graph="g", body="{}", created_at=3.0)
        assert await hooks.queue(hook, "g", "0-0", "1-0", [late])
        client.zadd(keys.due("h"), {"junk-0": 1.0})
        assert await hooks.deliveries("h", "pending") == [late]
        assert await hooks.next_due("h", 5.0, 60.0) is None
        assert await hooks.next_due("h", 5.0, 60.0) == (hook, late), "what could not be read is not waited for"

    in_redis(settings, work)


def test_the_log_gets_nothing_of_what_was_read(client: Any, keys: Keys) -> None:
    """It may be a secret, as that of a webhook or the digest of a key."""
    rows = {b"a": b'{"secret": "whsec_Kept"}', b"b": b"whsec_Kept", b"c": b'["whsec_Kept"]'}
    with capture_logs() as logs:
        assert list(readable(rows.items(), keys.webhooks, lambda _, row: Webhook.model_validate_json(row))) == []
        assert list(readable(rows.items(), keys.webhooks, lambda _, row: float(row))) == []
        assert list(readable(rows.items(), keys.webhooks, lambda _, row: {}[row])) == []
    assert len(logs) == 9
    assert "Kept" not in repr(logs)


def test_a_feed_goes_on_behind_what_cannot_be_read(
    settings: Settings, client: Any, keys: Keys, caller: Caller, worker: Worker
) -> None:
    fill(client, keys.watches("g"))
    client.hset(keys.told("g"), "at", b"junk")
    client.xadd(keys.feed("g"), {"a": "b"})
    caller.set("g", [0], ["1"])

    async def work(redis: Any, keys: Keys) -> None:
        listeners: Any = connect_listeners(settings)
        reader = FeedReader(redis, listeners, keys)
        events = [event.type for _, event in await reader.after("g", "0-0")]
        followed: Any = reader.follow("g", "0-0")
        assert events == ["version", "version"]
        assert [(await anext(followed)).type for _ in range(2)] == events
        assert (await reader.place("g", None)).after == client.xrevrange(keys.feed("g"), count=1)[0][0].decode()
        client.xadd(keys.feed("g"), {"a": "b"})
        assert (await reader.place("g", None)).event_id == ""
        assert await reader.watches("g") == []
        await followed.aclose()
        await listeners.aclose()

    in_redis(settings, work)


def test_jobs_that_cannot_be_read_are_left_out_of_the_list(
    client: Any, keys: Keys, caller: Caller, worker: Worker
) -> None:
    caller.value("g")
    now = time.time()
    odd = {"kind": "odd", "graph": "g", "worker": "w0", "created_at": "1.0", "status": "odd"}
    broken = odd | {"kind": "max-flow", "status": "succeeded", "reply": "junk"}
    for name, fields in {"a" * 32: odd, "b" * 32: broken}.items():
        client.zadd(keys.jobs, {name: now})
        client.hset(keys.job(name), mapping=fields)
    client.zadd(keys.jobs, {b"\xff": now})
    page = caller.run(caller.dispatcher.jobs(10))
    assert {job.kind.value for job in page.jobs} == {"load", "max-flow"}
    assert len(page.jobs) == 2
    for name in ("a" * 32, "b" * 32):
        with pytest.raises(Unreadable, match=f"job {name} cannot be read"):
            caller.run(caller.dispatcher.job(name))
    caller.run(caller.dispatcher._job_list.trim(0, 100))
    assert client.zscore(keys.jobs, "a" * 32) is not None, "a status of a later release is none of an end"
    assert client.zscore(keys.jobs, b"\xff") is None


def test_a_key_that_stands_for_nothing_is_refused_alone(
    client: Any, keys: Keys, caller: Caller, worker: Worker
) -> None:
    client.set(keys.idempotency("g", "k"), b"junk")
    with pytest.raises(Unreadable, match="the Idempotency-Key cannot be read"):
        caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs(), key="k", digest="d")
    assert caller.value("g") > 0


def test_a_worker_hears_what_is_told_behind_what_cannot_be_read(
    client: Any, keys: Keys, caller: Caller, worker: Worker
) -> None:
    """The thread that reads it ended, and nothing was cancelled or handed over any more."""
    for fields in ({"a": "b"}, {"cancel": b"\xff"}, {"restore": b"\xff"}, {"prepare": "g", "answer_to": b"\xff"}):
        client.xadd(keys.control("w0"), fields)
    client.xadd(keys.control("w0"), {"prepare": "g", "answer_to": keys.reply("here")})
    eventually(lambda: client.get(keys.reply("here")) is not None)


def test_a_command_that_meets_a_key_of_another_kind_ends(
    client: Any, keys: Keys, caller: Caller, worker: Worker
) -> None:
    """It was tried again twenty times, and then said that others kept changing the graph."""
    caller.load("other", diamond().edges)
    worker.graphs.residents.drop("g")
    client.delete(keys.log(client.hget(keys.names, "g").decode()))
    client.set(keys.log(client.hget(keys.names, "g").decode()), "junk")
    reply = caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())
    assert reply.problem is not None
    assert (reply.problem.code, reply.problem.detail) == ("worker_unavailable", WRONG_TYPE)
    assert caller.value("other") > 0
    caller.ask(Kind.DELETE, "g", DeleteArgs())
    assert client.hkeys(keys.names) == [b"other"]


@pytest.mark.parametrize("is_resident", [True, False])
@pytest.mark.parametrize("which", ["graph", "snapshots", "log", "states"])
def test_a_graph_with_a_key_of_another_kind_can_be_deleted_and_replaced(
    settings: Settings, client: Any, keys: Keys, caller: Caller, worker: Worker, which: str, *, is_resident: bool
) -> None:
    """It could not be, and nothing said how else to get rid of it."""
    for get_rid in (lambda: caller.ask(Kind.DELETE, "g", DeleteArgs()), lambda: None):
        key = getattr(keys, which)(client.hget(keys.names, "g").decode())
        client.delete(key)
        client.sadd(key, "junk")
        if not is_resident:
            worker.graphs.residents.drop("g")
        if which == "graph":
            reply = caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())
            assert reply.problem is not None
            assert "the graph cannot be read" in reply.problem.detail
            with pytest.raises(Unreadable, match="graph 'g' cannot be read"):
                in_redis(settings, lambda redis, keys: Catalogue(redis, keys).get("g"))
        get_rid()
        caller.load("g", diamond().edges)
        assert caller.value("g") > 0
        assert not client.exists(key)


def test_a_key_of_another_kind_stops_no_other_graph(
    settings: Settings, client: Any, keys: Keys, caller: Caller, start_worker: StartWorker
) -> None:
    """No worker started any more, and the lists of graphs, jobs and workers were refused."""
    for name, key in {"bad": keys.graph("id-bad"), "worse": keys.graph("id-worse")}.items():
        client.hset(keys.names, name, f"id-{name}")
        client.hset(keys.owners, name, "w0")
        client.set(key, "junk")
    client.zadd(keys.jobs, {"a" * 32: time.time()})
    client.set(keys.job("a" * 32), "junk")
    client.set(keys.waiting("w1"), "junk")
    client.set(keys.commands("w1"), "junk")
    start_worker()
    caller.wait_ready()
    caller.load("g", diamond().edges)
    assert caller.value("g") > 0
    said = json.loads(client.hget(keys.workers, "w0")) | {"name": "w1"}
    client.hset(keys.workers, "w1", json.dumps(said))
    assert [(one.name, one.waiting) for one in caller.run(caller.dispatcher.watch.workers())] == [("w0", 0), ("w1", 0)]
    assert {job.graph for job in caller.run(caller.dispatcher.jobs(10)).jobs} == {"g"}
    caller.run(caller.dispatcher._job_list.trim(0, 100))
    assert Ownership(client, keys).loads().of_graph["bad"] == 0

    async def work(redis: Any, keys: Keys) -> None:
        assert [info.name for info in (await Catalogue(redis, keys).page(lambda name: True)).graphs] == ["g"]
        hooks = Hooks(redis, keys)
        hook = Webhook(id="h", url="https://a.example/", graphs=["g"], types=["version"], secret="s", created_at=1.0)
        assert await hooks.put(hook, None, 100, {"g": "0-0"})
        client.set(keys.due("h"), "junk")
        assert [standing.pending for standing in await hooks.standings(5.0)] == [0]

    in_redis(settings, work)


@pytest.mark.parametrize("field", ["chunks", "bytes", "sha256", "0"])
def test_a_blob_that_cannot_be_read_is_a_broken_one(
    client: Any, keys: Keys, caller: Caller, worker: Worker, field: str
) -> None:
    base = client.hget(keys.graph(client.hget(keys.names, "g").decode()), "base").decode()
    client.hset(keys.blob(base), field, b"\xff")
    worker.graphs.residents.drop("g")
    reply = caller.reply(Kind.MAX_FLOW, "g", MaxFlowArgs())
    assert reply.problem is not None
    assert (reply.problem.code, "cannot be restored" in reply.problem.detail) == ("worker_unavailable", True)
