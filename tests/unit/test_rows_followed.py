"""How lines end that are read while they are written: what becomes of the job decides, as Redis has it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from service.errors import ServiceError
from service.protocol import Envelope, Problem, Reply, Status
from service.queue.rows import Ended
from service.store.blobs import Blobs, BlobWriter
from service.store.jobs.record import Draft, Result, reply_fields
from service.store.keys import Keys
from tests.service_fixtures import Caller

JOB = "j"
ENVELOPE = Envelope(version=1, media_type="application/x-ndjson")


class Worker:
    """What a worker writes of one job."""

    def __init__(self, client: Any, keys: Keys) -> None:
        self.client = client
        self.keys = keys
        self.blob: BlobWriter = Blobs(client, keys).begin(600)
        self.client.hset(keys.job(JOB), mapping={"status": "running", "kind": "pairs", "graph": "g"})

    def tell(self, chunk: bytes) -> Draft:
        self.blob.append(chunk)
        draft = Draft(blob=self.blob.name, envelope=ENVELOPE)
        self.client.hset(self.keys.job(JOB), "draft", draft.model_dump_json())
        self.event("progress")
        return draft

    def event(self, name: str) -> None:
        self.client.xadd(self.keys.events(JOB), {"event": name, "data": "{}"})

    def end(self, status: Status, problem: Problem | None = None, blob: str | None = None) -> None:
        result = Result(blob=blob, envelope=ENVELOPE) if problem is None else None
        fields = reply_fields(Reply(id=JOB, status=status, problem=problem), result)
        self.client.hset(self.keys.job(JOB), mapping=fields | {"status": status.value})
        self.event("done")


@pytest.fixture
def worker(client: Any, keys: Keys) -> Worker:
    return Worker(client, keys)


def read(caller: Caller, draft: Draft, then: Callable[[], None]) -> list[bytes]:
    """The pieces; `then` happens while the second one is waited for."""

    async def pieces() -> list[bytes]:
        following = caller.dispatcher.rows.pieces(JOB, draft)
        found = [await anext(following)]
        rest = asyncio.ensure_future(anext(following, None))
        await asyncio.sleep(0.05)
        then()
        while (piece := await rest) is not None:
            found.append(piece)
            rest = asyncio.ensure_future(anext(following, None))
        return found

    return caller.run(pieces())


def test_the_end_is_read_as_soon_as_it_is_there(caller: Caller, worker: Worker) -> None:
    def ends() -> None:
        worker.blob.append(b"row\n")
        worker.blob.end(b"end\n")
        worker.end(Status.SUCCEEDED, blob=worker.blob.name)

    draft = worker.tell(b"head\nrow\n")
    assert read(caller, draft, ends) == [b"head\nrow\n", b"row\n", b"end\n"]
    assert read(caller, draft, lambda: None) == [b"head\nrow\n", b"row\n", b"end\n"]  # by who comes later


def test_a_job_that_failed_says_why_behind_all_that_was_written(caller: Caller, worker: Worker) -> None:
    found: list[bytes] = []

    async def pieces() -> None:
        async for piece in caller.dispatcher.rows.pieces(JOB, draft):
            found.append(piece)
            if len(found) == 1:
                worker.blob.append(b"row\n")
                worker.end(Status.FAILED, Problem(code="timeout", detail="as if"))

    draft = worker.tell(b"head\nrow\n")
    with pytest.raises(Ended) as end:
        caller.run(pieces())
    assert end.value.reply.problem == Problem(code="timeout", detail="as if")
    assert found == [b"head\nrow\n", b"row\n"]


def test_lines_of_a_try_that_is_not_gone_on_with_have_no_end(caller: Caller, client: Any, keys: Keys) -> None:
    def begun_again(worker: Worker) -> None:
        worker.client.hdel(keys.job(JOB), "draft")
        worker.event("progress")

    def with_rows(worker: Worker) -> None:
        worker.blob = Blobs(client, keys).begin(600)
        worker.tell(b"head\nother\n")

    def over(worker: Worker) -> None:
        worker.end(Status.SUCCEEDED, blob="another")

    def short(worker: Worker) -> None:
        worker.end(Status.SUCCEEDED)

    def lost(worker: Worker) -> None:
        worker.client.delete(keys.job(JOB))
        worker.event("progress")

    for happens in (begun_again, with_rows, over, short, lost):
        client.delete(keys.job(JOB), keys.events(JOB))
        worker = Worker(client, keys)
        draft = worker.tell(b"head\nrow\n")
        with pytest.raises(ServiceError) as refused:
            read(caller, draft, lambda happens=happens, worker=worker: happens(worker))  # type: ignore[misc]  # of defaults
        assert refused.value.code == "worker_unavailable", happens.__name__


def test_what_is_not_kept_any_more_is_said_to_be_gone(caller: Caller, worker: Worker, client: Any, keys: Keys) -> None:
    def trimmed() -> None:
        client.delete(keys.blob(worker.blob.name))
        worker.end(Status.SUCCEEDED, blob=worker.blob.name)

    draft = worker.tell(b"head\nrow\n")
    with pytest.raises(ServiceError) as refused:
        read(caller, draft, trimmed)
    assert refused.value.code == "unknown_job"


def test_the_first_rows_are_waited_for_as_long_as_was_said(caller: Caller, worker: Worker) -> None:
    async def first(timeout_s: float) -> object:
        return await caller.dispatcher.rows.first(JOB, timeout_s)

    assert caller.run(first(0)) is None
    assert caller.run(first(0.4)) is None
    draft = worker.tell(b"head\nrow\n")
    assert caller.run(first(0)) == caller.run(first(60)) == draft
    worker.end(Status.SUCCEEDED, blob=worker.blob.name)
    reply = caller.run(first(0))
    assert isinstance(reply, Reply)
    assert reply.file_blob == worker.blob.name
