"""What an API process makes of replies and jobs that it cannot read, of many that do not end, and of a slow Redis."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from service.protocol import Kind, Operation, PatchArgs, Reply, Status
from service.settings import Settings
from service.store.connection import CONNECTIONS, connect
from service.store.jobs.events import JobEvent
from service.store.keys import Keys
from tests.service_fixtures import Caller

ADD_1 = PatchArgs(batch=[Operation(op="add", edges=[0], amounts=["1"])])


@pytest.fixture
def client(settings: Settings, keys: Keys) -> Iterator[Any]:
    """With a graph whose worker lives and does nothing."""
    client = connect(settings)
    client.set(keys.lease("w0"), "somebody")
    client.hset(keys.owners, "g", "w0")
    yield client
    client.close()


UNREADABLE: list[dict[str, str]] = [
    {"reply": "nonsense"},
    {"reply": '{"id": "x", "status": "succeeded", "of_a_later_version": 1}'},
    {"reply": '{"id": "x", "status": "succeeded"}', "result": "{}", "envelope": "nonsense"},
    {},
]


@pytest.mark.parametrize("fields", UNREADABLE)
def test_a_reply_that_cannot_be_read_ends_its_own_job_only(
    caller: Caller, client: Any, keys: Keys, fields: dict[str, str]
) -> None:
    first, second = (caller.submit(Kind.PATCH, "g", ADD_1) for _ in range(2))
    replies = keys.replies(caller.dispatcher.id)
    client.xadd(replies, {"something": "else"})
    client.xadd(replies, {"id": first} | fields)
    client.xadd(replies, {"id": second, "reply": Reply(id=second, status=Status.SUCCEEDED).model_dump_json()})
    reply = caller.run(caller.dispatcher.wait(second, 5))
    assert reply is not None
    assert reply.status is Status.SUCCEEDED
    failed = caller.run(caller.dispatcher.wait(first, 5))
    assert failed is not None
    assert failed.problem is not None
    assert (failed.status, failed.problem.code) == (Status.FAILED, "internal_error")


def test_replies_are_heard_once_their_stream_was_begun_anew_by_a_clock_that_is_behind(
    caller: Caller, client: Any, keys: Keys
) -> None:
    """It expires while nobody asks for anything. Each answer came two seconds late, until the clock was where it had
    been."""
    replies = keys.replies(caller.dispatcher.id)
    for entry_id in ("9999999999999-0", "*"):
        job = caller.submit(Kind.PATCH, "g", ADD_1)
        said = Reply(id=job, status=Status.SUCCEEDED).model_dump_json()
        client.xadd(replies, {"id": job, "reply": said}, id=entry_id)
        assert caller.run(caller.dispatcher.wait(job, 10)) is not None, entry_id
        client.unlink(replies)


def test_what_was_missed_is_asked_for_together(
    caller: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies wait meanwhile: one way to Redis and back for each job would keep them for seconds."""
    ids = [caller.submit(Kind.PATCH, "g", ADD_1) for _ in range(50)]
    client.hset(keys.job(ids[7]), "reply", Reply(id=ids[7], status=Status.SUCCEEDED).model_dump_json())
    pool: Any = caller.dispatcher.client.connection_pool
    ways: list[Any] = []
    take = pool.get_connection

    async def counted(*args: Any, **more: Any) -> Any:
        ways.append(args)
        return await take(*args, **more)

    monkeypatch.setattr(pool, "get_connection", counted)
    caller.run(caller.dispatcher.replies.catch_up())
    assert len(ways) <= 2
    assert ids[7] in caller.dispatcher.replies.latest


def test_probes_do_not_wait_for_the_connections_of_callers(caller: Caller, client: Any) -> None:
    async def ask() -> bool:
        pool: Any = caller.dispatcher.client.connection_pool
        taken = [await pool.get_connection() for _ in range(CONNECTIONS)]
        try:
            async with asyncio.timeout(10):
                return await caller.dispatcher.watch.has_ready_worker()
        finally:
            for connection in taken:
                await pool.release(connection)

    assert not caller.run(ask())


def test_jobs_that_do_not_end_do_not_keep_all_others(caller: Caller, client: Any, keys: Keys) -> None:
    for number in range(600):
        ended = number >= 500
        client.hset(keys.job(f"j{number}"), mapping={"status": "succeeded" if ended else "queued", "graph": "g"})
        client.zadd(keys.jobs, {f"j{number}": number})
    client.zadd(keys.jobs, {f"forgotten{number}": 600 + number for number in range(5000)})
    for _ in range(5600 // 256 + 2):
        caller.run(caller.dispatcher._job_list.trim(10, 256))
    assert client.zcard(keys.jobs) <= 510
    assert client.zscore(keys.jobs, "j0") == 0


@pytest.mark.parametrize("mark", ["5-99999999999999999999", "99999999999999999999-1", "99999999999999999999"])
def test_an_event_id_that_no_stream_has_is_from_the_beginning(
    caller: Caller, client: Any, keys: Keys, mark: str
) -> None:
    job_id = caller.submit(Kind.PATCH, "g", ADD_1)
    client.xadd(keys.events(job_id), {"event": "progress", "data": "{}"})

    async def first() -> JobEvent:
        async with aclosing(caller.dispatcher.events(job_id, mark)) as events:  # type: ignore[type-var]
            return await anext(events)

    assert caller.run(first()).event == "progress"


def test_a_key_is_kept_while_its_command_waits(caller: Caller, client: Any, keys: Keys, settings: Settings) -> None:
    """Else a load or a delete that waits for long would be done twice."""
    caller.submit(Kind.PATCH, "g", ADD_1, "key", "digest")
    assert client.ttl(keys.idempotency("g", "key")) > 10 * settings.job_ttl_s
