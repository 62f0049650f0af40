"""Commands of many callers that are queued together: each is queued once, or its caller hears why not."""

import asyncio
from typing import Any

import pytest
import redis

from service.errors import ServiceError
from service.protocol import Kind, MaxFlowArgs, Operation, PatchArgs
from service.queue.grouped import SHORT_BYTES, SLOW_S, Group, Waiting
from service.queue.placement import Placement, Seen
from service.settings import Settings
from service.store.keys import Keys
from service.store.ownership import Ownership
from tests.service_fixtures import PATIENCE_S, Caller

ASK = MaxFlowArgs()


@pytest.fixture
def known(caller: Caller, client: Any, keys: Keys) -> Caller:
    """A caller that has sent one command to each of the graphs g and h, which are served by w0 and w1."""
    for graph, worker in (("g", "w0"), ("h", "w1")):
        client.set(keys.lease(worker), "somebody")
        client.hset(keys.owners, graph, worker)
        client.hset(keys.names, graph, f"id of {graph}")
        caller.submit(Kind.MAX_FLOW, graph, ASK)
    return caller


def all_at_once(caller: Caller, *graphs: str) -> list[Any]:
    async def submit() -> list[Any]:
        work = (caller.dispatcher.submit(Kind.MAX_FLOW, graph, ASK) for graph in graphs)
        return await asyncio.gather(*work, return_exceptions=True)

    return caller.run(submit())


def multis(client: Any) -> int:
    return int(client.info("commandstats")["cmdstat_multi"]["calls"])


def test_many_are_queued_in_few_round_trips_and_in_order(known: Caller, client: Any, keys: Keys) -> None:
    before = multis(client)
    jobs = all_at_once(known, *["g", "h"] * 10)
    assert multis(client) - before <= 3
    assert len(set(jobs)) == 20
    for worker, sent in (("w0", jobs[::2]), ("w1", jobs[1::2])):
        entries = client.xrange(keys.commands(worker))
        assert [job for job in sent if job.encode() in b"".join(fields[b"command"] for _, fields in entries)] == sent
        assert len(entries) == 11
        assert client.zcard(keys.waiting(worker)) == 11
    assert all(client.hget(keys.job(job), "status") == b"queued" for job in jobs)


def test_each_hears_its_own_refusal(known: Caller, client: Any, keys: Keys) -> None:
    client.delete(keys.lease("w1"))
    first, second = all_at_once(known, "g", "h")
    assert isinstance(first, str)
    assert isinstance(second, ServiceError)
    assert second.code == "worker_unavailable"
    client.hdel(keys.owners, "g")
    (gone,) = all_at_once(known, "g")
    assert gone.code == "unknown_graph"


def test_the_line_of_a_worker_has_its_limit(known: Caller, settings: Settings, client: Any, keys: Keys) -> None:
    known.dispatcher._submission._placement._queue_limit = 5
    answers = all_at_once(known, *["g"] * 8)
    assert sum(isinstance(answer, str) for answer in answers) == 4
    assert {answer.code for answer in answers if isinstance(answer, ServiceError)} == {"rate_limited"}
    assert client.xlen(keys.commands("w0")) == 5


@pytest.mark.parametrize("error", [redis.WatchError, redis.ConnectionError])
def test_a_lost_answer_queues_nothing_twice(
    known: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    execute, lost = redis.asyncio.client.Pipeline.execute, []

    async def lose_the_answer(pipe: Any, *args: Any) -> Any:
        answer = await execute(pipe, *args)
        if not lost:
            lost.append(answer)
            raise error
        return answer

    monkeypatch.setattr(redis.asyncio.client.Pipeline, "execute", lose_the_answer)
    jobs = all_at_once(known, *["g"] * 5)
    assert lost
    assert all(isinstance(job, str) for job in jobs)
    assert client.xlen(keys.commands("w0")) == 6


def test_a_graph_that_moves_meanwhile_gets_its_commands_at_its_new_owner(
    known: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, moved = Placement.checked, []

    def move_meanwhile(placement: Placement, graph: str, seen: Seen) -> str:
        if not moved:
            client.delete(keys.lease("w0"))
            moved.append(Ownership(client, keys).take_over("g", "w1", "w0"))
        return checked(placement, graph, seen)

    monkeypatch.setattr(Placement, "checked", move_meanwhile)
    jobs = all_at_once(known, *["g"] * 3)
    assert moved == [True]
    assert all(client.hget(keys.job(job), "worker") == b"w1" for job in jobs)


def test_a_round_that_hangs_keeps_no_later_command(
    known: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that comes while another round is under way, nor one that comes just after that."""
    go_round, hung = Group._round, asyncio.Event()

    async def hang_at_first(group: Group, some: list[Waiting]) -> None:
        if not begun:
            begun.append(some)
            await hung.wait()
        await go_round(group, some)

    async def submit() -> list[str]:
        first = asyncio.create_task(known.dispatcher.submit(Kind.MAX_FLOW, "g", ASK))
        await asyncio.sleep(2 * SLOW_S)
        async with asyncio.timeout(PATIENCE_S):
            later = [await known.dispatcher.submit(Kind.MAX_FLOW, "g", ASK) for _ in range(5)]
        hung.set()
        return [await first, *later]

    begun: list[object] = []
    monkeypatch.setattr(Group, "_round", hang_at_first)
    assert len(set(known.run(submit()))) == 6
    assert len(begun) == 1
    assert client.xlen(keys.commands("w0")) == 7


def test_a_long_command_goes_by_itself(known: Caller, client: Any, keys: Keys) -> None:
    edges = list(range(SHORT_BYTES // 4))
    job = known.submit(Kind.PATCH, "g", PatchArgs(batch=[Operation(op="close", edges=edges)]))
    assert client.hget(keys.job(job), "worker") == b"w0"
    assert client.xlen(keys.commands("w0")) == 2
