"""The list of jobs, filtered before it is cut to its limit, in pages."""

from typing import Any

import pytest

from service.protocol import Kind, MaxFlowArgs, Status
from service.store.jobs import listing
from service.store.jobs.listing import JobPage, Mark
from service.store.keys import Keys
from tests.service_fixtures import Caller

BEGAN = 1_795_000_000.25


def add(client: Any, keys: Keys, number: int, graph: str, **more: str) -> str:
    """The older the higher the number."""
    job_id, created_at = f"{number:032x}", BEGAN - number / 7
    fields = {"kind": "max-flow", "graph": graph, "worker": "w0", "created_at": created_at, "status": "succeeded"}
    client.hset(keys.job(job_id), mapping=fields | more)
    client.zadd(keys.jobs, {job_id: created_at})
    return job_id


def page(caller: Caller, limit: int, prefix: str = "", after: Mark | None = None) -> JobPage:
    return caller.run(caller.dispatcher.jobs(limit, lambda graph: graph.startswith(prefix), after))


def test_jobs_of_others_do_not_crowd_out_ones_own(caller: Caller, client: Any, keys: Keys) -> None:
    """A hundred of another key came after them; and a job that was forgotten meanwhile is no job."""
    mine = [add(client, keys, 1000 + number, "mine") for number in range(3)]
    for number in range(700):
        add(client, keys, number, "others")
    client.delete(keys.job(f"{5:032x}"))
    found = page(caller, 100, "mine")
    assert ([job.id for job in found.jobs], found.next) == (mine, None)
    assert len(page(caller, 1000).jobs) == 702


def test_pages_have_every_job_once(caller: Caller, client: Any, keys: Keys) -> None:
    """Some of the very same moment, and new ones while the pages are read."""
    expected = [add(client, keys, number, "g" if number % 3 else "other") for number in range(60)]
    client.zadd(keys.jobs, dict.fromkeys(expected[35:45], BEGAN - 5))
    client.hset(keys.job(expected[0]), "created_at", BEGAN)
    for limit in (1, 4, 7, 100):
        seen: list[str] = []
        mark = None
        while True:
            found = page(caller, limit, "g", mark)
            seen += [job.id for job in found.jobs]
            add(client, keys, -len(seen) - 1000, "g")  # newer than all
            if found.next is None:
                break
            mark = Mark.parse(str(found.next))
            assert mark == found.next
        ours = [job_id for job_id in seen if job_id in expected]
        assert sorted(ours) == sorted(job for number, job in enumerate(expected) if number % 3)
        assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("prefix", ["", "mine"])
def test_many_jobs_of_one_moment(caller: Caller, client: Any, keys: Keys, prefix: str) -> None:
    """Several steps of them: the same page does not come again and again."""
    n = 4 * listing.STEP
    jobs = [add(client, keys, number, "mine" if number % 5 == 0 else "other") for number in range(n)]
    client.zadd(keys.jobs, dict.fromkeys(jobs, BEGAN))
    last = add(client, keys, n, "mine")
    seen: list[str] = []
    mark = None
    for _ in range(n):
        found = page(caller, 7, prefix, mark)
        seen += [job.id for job in found.jobs]
        if (mark := found.next) is None:
            break
    assert mark is None
    assert seen == [job for job in reversed(jobs) if not prefix or int(job, 16) % 5 == 0] + [last]


def test_one_page_looks_at_so_many_jobs(
    caller: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "STEP", 10)
    monkeypatch.setattr(listing, "LOOKED_AT", 30)
    mine = add(client, keys, 1000, "mine")
    for number in range(95):
        add(client, keys, number, "others")
    mark, pages = None, 0
    while True:
        found = page(caller, 5, "mine", mark)
        pages += 1
        if found.next is None:
            break
        assert found.jobs == []
        mark = found.next
    assert ([job.id for job in found.jobs], pages) == ([mine], 4)


def test_no_page_names_a_job_of_others(
    caller: Caller, client: Any, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a page ends with one, the next one begins behind it all the same, though others are of the same moment."""
    monkeypatch.setattr(listing, "STEP", 10)
    monkeypatch.setattr(listing, "LOOKED_AT", 20)
    mine, others = [], []
    for number in range(100):
        job_id = f"{number * 7919 % 100:02d}{number:030x}"
        (others if number % 15 else mine).append(job_id)
        client.hset(keys.job(job_id), mapping={"kind": "max-flow", "graph": "others" if number % 15 else "mine"})
        client.hset(keys.job(job_id), mapping={"worker": "w0", "created_at": BEGAN - number // 4, "status": "failed"})
        client.zadd(keys.jobs, {job_id: BEGAN - number // 4})
    mark: Mark | None = None
    seen: list[str] = []
    named: set[str] = set()
    for _ in range(10):
        found = page(caller, 100, "mine", mark)
        seen += [job.id for job in found.jobs]
        if found.next is None:
            break
        mark = Mark.parse(str(found.next))
        named.add(mark.job_id)
    assert sorted(seen) == sorted(mine)
    assert len(named) > 3
    assert named.isdisjoint(others)


def test_a_job_is_shown_without_its_result(caller: Caller, client: Any, keys: Keys) -> None:
    reply = '{"id":"x","status":"failed","problem":{"code":"timeout","detail":"too slow"}}'
    add(client, keys, 1, "g", result="{}" * 4000, reply=reply, status="failed", progress='{"pushes":3}')
    client.hset(keys.owners, "g", "w0")
    client.set(keys.lease("w0"), "somebody")
    waiting = [caller.submit(Kind.MAX_FLOW, "g", MaxFlowArgs()) for _ in range(2)]
    assert caller.run(caller.dispatcher.cancel(waiting[0]))
    second, first, old = page(caller, 10).jobs
    assert ([first.id, second.id], first.cancelling, second.cancelling) == (waiting, True, False)
    assert (first.position, second.position, old.position) == (0, 1, None)
    assert (old.status, old.result_json, old.progress) == (Status.FAILED, None, {"pushes": 3})
    assert old.error is not None
    assert old.error.code == "timeout"
