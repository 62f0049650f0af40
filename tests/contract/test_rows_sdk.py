"""Rows of the client as they are made, through lost connections too: real Redis, worker and uvicorn."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from headrace import (
    AsyncClient,
    Cancelled,
    Client,
    ConnectionFailed,
    Retry,
    Scenario,
    UnknownVertex,
    Update,
    WaitTimeout,
    WorkerUnavailable,
)

from service.api.replies import rows
from tests.gated_rows import VALUES, Running, running_with
from tests.serving import eventually

SCENARIOS = [Scenario(id=count, updates=[Update(edges=["e"], set=[count])]) for count in range(5)]


@pytest.fixture(scope="module")
def shared(redis_url: str) -> Iterator[Running]:
    with running_with(redis_url) as running:
        yield running


@pytest.fixture
def running(shared: Running) -> Iterator[Running]:
    yield shared
    shared.begin_again()


@pytest.fixture
def own(redis_url: str) -> Iterator[Running]:
    """A service whose worker the test ends."""
    with running_with(redis_url) as running:
        yield running


@pytest.fixture
def client(running: Running) -> Iterator[Client]:
    with Client(str(running.http.base_url)) as client:
        yield client


def test_rows_are_given_while_others_are_made(running: Running, client: Client) -> None:
    running.gate.let(2)
    with client.graph("city").what_if(SCENARIOS, stream=True) as stream:
        assert (stream.version, stream.head["base"]["value"]) == (1, 6)
        first = [next(stream), next(stream)]
        assert running.status(f"/v1/jobs/{stream.job_id}") == "running"
        running.gate.open()
        found = [*first, *stream]
    assert [(row.row, row.id, row.value) for row in found] == [(i, i, value) for i, value in enumerate(VALUES)]
    assert found == list(client.graph("city").what_if(SCENARIOS))


def test_all_questions_of_rows_are_read_so(running: Running, client: Client) -> None:
    running.gate.open()
    city = client.graph("city")
    assert list(city.pairs(["s", "t"], ["u", "v"], stream=True)) == list(city.pairs(["s", "t"], ["u", "v"]))
    assert list(city.closure_study(stream=True)) == list(city.closure_study())
    assert list(city.what_if([], stream=True)) == []


def test_the_asynchronous_client_gives_the_same(running: Running) -> None:
    async def asked() -> None:
        running.gate.let(2)
        async with AsyncClient(str(running.http.base_url)) as client:
            city = await client.graph("city")
            async with await city.what_if(SCENARIOS, stream=True) as stream:
                first = await anext(stream)
                running.gate.open()
                found = [first, *[row async for row in stream]]
            assert (stream.version, [row.value for row in found]) == (1, VALUES)
            pairs = [row async for row in await city.pairs(["s"], ["t"], stream=True)]
            assert pairs == list(await city.pairs(["s"], ["t"]))
            study = [row async for row in await city.closure_study(stream=True)]
            assert study == list(await city.closure_study())
            running.gate.close()
            running.gate.let(1)
            stream = await city.what_if(SCENARIOS, stream=True)
            assert (await anext(stream)).row == 0
            await stream.cancel()
            with pytest.raises(Cancelled):
                await anext(stream)

    asyncio.run(asked())


def test_a_lost_connection_goes_on_behind_the_last_row(
    running: Running, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service breaks each answer off after a row, in the middle of the next line."""
    lines = rows.lines_behind

    async def broken(pieces: Any, count: int) -> Any:
        async for piece in lines(pieces, count):
            for line in piece.splitlines(keepends=True):
                yield line
                if b'"row"' in line:
                    yield b'{"ro'
                    raise RuntimeError("as if the process were gone")

    monkeypatch.setattr(rows, "lines_behind", broken)
    running.gate.let(5)
    stream = client.graph("city").what_if([*SCENARIOS, *SCENARIOS], stream=True)
    found = [next(stream) for _ in range(5)]
    running.gate.open()
    found += stream
    assert [row.row for row in found] == list(range(10))
    assert [row.value for row in found] == 2 * VALUES


def test_errors_are_raised_where_they_are(running: Running, client: Client) -> None:
    city = client.graph("city")
    with pytest.raises(UnknownVertex):
        city.what_if(SCENARIOS, "nobody", stream=True)
    running.gate.let(2)
    stream = city.what_if(SCENARIOS, stream=True)
    assert [next(stream).row, next(stream).row] == [0, 1]
    stream.cancel()
    with pytest.raises(Cancelled) as cancelled:
        next(stream)
    assert cancelled.value.status == 409
    with pytest.raises(WaitTimeout) as late:
        city.what_if(SCENARIOS, stream=True, timeout_s=1)  # nothing has passed the gate
    assert late.value.job_id is not None


def test_rows_of_two_tries_are_never_mixed(own: Running) -> None:
    own.gate.let(2)
    with Client(str(own.http.base_url)) as client:
        stream = client.graph("city").what_if(SCENARIOS, stream=True)
        assert [next(stream).row, next(stream).row] == [0, 1]
        stream._reading._source.end()  # it hears nothing of what comes now, and goes on at another version
        client.graph("city").patch(edges=["d"], set=1)
        own.worker.stop()
        eventually(lambda: own.http.get("/readyz").status_code == 503)
        own.gate.open()
        own.start_worker()
        eventually(lambda: own.status(f"/v1/jobs/{stream.job_id}") == "succeeded")
        with pytest.raises(WorkerUnavailable, match="begun again"):
            next(stream)


def test_what_ends_without_saying_so_is_an_error(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*given: Any) -> Any:
        return
        yield b""

    monkeypatch.setattr(rows, "lines_behind", nothing)
    running.gate.let(1)
    with (
        Client(str(running.http.base_url), retry=Retry(attempts=2, base_s=0.01)) as client,
        pytest.raises(ConnectionFailed, match="broke off after 0"),
    ):
        client.graph("city").what_if(SCENARIOS, stream=True)
