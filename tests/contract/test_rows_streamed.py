"""Answers in lines, read while their rows are made: real Redis, worker and uvicorn; each row waits for the test."""

import asyncio
import json
import re
import socket
import time
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest
from fastapi import Request

from gpu_engine.control import Control
from service.api.replies.rows import HELD_BYTES, _lines
from service.errors import ServiceError
from service.store.api_keys import Scope
from service.worker.questions.pairs import Values
from service.worker.running import rows
from tests.gated_rows import LINES, VALUES, Running, parsed, running_with
from tests.serving import eventually


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
    """A service that the test may close, or whose worker it may end."""
    with running_with(redis_url) as running:
        yield running


def test_rows_come_before_the_last_of_them_is_made(running: Running) -> None:
    running.gate.let(2)
    with running.asking() as response:
        lines = response.iter_lines()
        head, *first = parsed(lines, 3)
        assert (head["version"], head["base"]["value"], head["rows"]) == (1, 6, 5)
        assert [(row["row"], row["value"]) for row in first] == [(0, 2), (1, 3)]
        assert response.status_code == 200
        assert response.headers["content-type"] == LINES["Accept"]
        assert (response.headers["etag"][-3:], response.headers["vary"]) == ('-1"', "Accept")
        assert response.headers["x-accel-buffering"] == "no"
        job = response.headers["content-location"].removesuffix("/result")
        assert running.status(job) == "running"
        running.gate.let(1)
        assert parsed(lines, 1)[0]["row"] == 2
        running.gate.open()
        *rest, end = parsed(lines)
    assert [row["row"] for row in rest] == [3, 4]
    assert end == {"done": True, "rows": 5}
    eventually(lambda: running.status(job) == "succeeded")
    whole = running.http.get(f"{job}/result", headers=LINES)
    kept = [json.loads(line) for line in whole.text.splitlines()]
    assert kept == [head, *first, kept[3], *rest, end]
    assert [row["value"] for row in kept[1:-1]] == VALUES
    behind = running.http.get(f"{job}/result", headers=LINES, params={"after": 3})
    for answer in (whole, behind):  # whoever is cut off here knows as well where to go on
        assert answer.headers["content-location"] == f"{job}/result"


def test_a_job_that_runs_is_read_from_behind_a_row_on(running: Running) -> None:
    job = running.submitted()
    running.gate.let(3)
    running.at_its_rows(job, 3)
    with running.reading(job, Prefer="wait=60") as whole, running.reading(job, after=1) as behind:
        assert [line.get("row") for line in parsed(whole.iter_lines(), 4)] == [None, 0, 1, 2]
        lines = behind.iter_lines()
        assert [row["row"] for row in parsed(lines, 1)] == [2]
        running.gate.open()
        assert [line.get("row", "end") for line in parsed(lines)] == [3, 4, "end"]
    assert running.http.get(f"{job}/result", params={"after": 3}).text.count("\n") == 2
    for beyond in (4, 5, 99):
        assert running.http.get(f"{job}/result", params={"after": beyond}).text == '{"done":true,"rows":5}\n'


def test_who_does_not_ask_for_lines_is_told_to_wait(running: Running) -> None:
    job = running.submitted()
    assert running.http.get(f"{job}/result", headers=LINES).status_code == 202  # there is no row yet
    running.gate.let(3)
    running.at_its_rows(job, 3)
    for accepted in ("*/*", "application/json"):
        assert running.http.get(f"{job}/result", headers={"Accept": accepted}).status_code == 202
    strings = {"Accept": "application/x-ndjson; numbers=string"}
    assert running.http.get(f"{job}/result", headers=strings).status_code == 406


def test_pairs_come_block_by_block(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    solved = Values._solved

    def when_let(values: Values, found: list[int], sources: Any, sinks: Any, control: Control) -> Any:
        running.gate.enter(control)
        return solved(values, found, sources, sinks, control)

    monkeypatch.setattr(Values, "_solved", when_let)
    running.gate.let(1)
    body = {"source": ["s", "u", "s"] * 70, "sink": ["t", "t", "v"] * 70}
    with running.http.stream("POST", "/v1/graphs/city/pairs", json=body, headers=LINES) as response:
        lines = response.iter_lines()
        _, *first = parsed(lines, 1 + rows.BLOCK_ROWS)
        assert [row["row"] for row in first] == list(range(rows.BLOCK_ROWS))
        running.gate.open()
        *rest, end = parsed(lines)
    assert end == {"done": True, "rows": 210}
    assert [row["row"] for row in rest] == list(range(rows.BLOCK_ROWS, 210))


def test_what_fails_before_the_first_row_is_a_refusal(running: Running) -> None:
    with running.asking(json={"sources": ["nobody"]}) as response:
        assert (response.status_code, json.loads(response.read())["code"]) == (422, "unknown_vertex")
    with running.asking(json={"time_limit_s": 1}) as response:
        assert (response.status_code, json.loads(response.read())["code"]) == (504, "timeout")
    job = running.submitted()
    eventually(lambda: running.status(job) == "running")
    running.http.delete(job)
    with running.reading(job, Prefer="wait=60") as response:
        assert (response.status_code, json.loads(response.read())["code"]) == (409, "cancelled")


def test_what_fails_later_is_the_last_line(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    running.gate.let(2)
    with running.asking() as response:
        lines = response.iter_lines()
        assert len(parsed(lines, 3)) == 3
        running.http.delete(response.headers["content-location"].removesuffix("/result"))
        (last,) = parsed(lines)
    assert (last["error"]["code"], last["error"]["status"]) == ("cancelled", 409)
    assert last["error"]["request_id"] == response.headers["x-request-id"]
    running.gate.close()
    running.gate.let(2)
    with running.asking(json={"time_limit_s": 1.5}) as response:
        *_, last = parsed(response.iter_lines())
    assert last["error"]["code"] == "timeout"
    monkeypatch.setattr(rows, "MOST_BYTES", 400)
    running.gate.close()
    running.gate.let(2)
    with running.asking() as response:
        lines = response.iter_lines()
        assert len(parsed(lines, 3)) == 3
        running.gate.open()
        *_, last = parsed(lines)
    assert (last["error"]["code"], last["error"]["field"]) == ("too_large", "/fields")


def test_a_question_that_is_begun_again_ends_the_lines_of_the_try_before(own: Running) -> None:
    own.gate.let(2)
    with own.asking() as response:
        lines = response.iter_lines()
        assert len(parsed(lines, 3)) == 3
        job = response.headers["content-location"].removesuffix("/result")
        changed = own.http.patch("/v1/graphs/city/capacities", json={"edges": ["d"], "set": [1]})
        assert changed.json()["version"] == 2
        own.worker.stop()
        own.gate.close()
        eventually(lambda: own.http.get("/readyz").status_code == 503)
        own.start_worker()
        (last,) = parsed(lines)
    assert (last["error"]["code"], last["error"]["status"]) == ("worker_unavailable", 503)
    own.gate.open()
    with own.reading(job, Prefer="wait=60") as response:
        head, *found, end = parsed(response.iter_lines())
    assert (head["version"], len(found), end) == (2, 5, {"done": True, "rows": 5})


def test_lines_end_with_the_key_of_their_reader(own: Running) -> None:
    key, token = own.api_keys.create("reader", Scope.READ)
    _, other = own.api_keys.create("other", Scope.ADMIN)
    own.gate.let(2)
    with own.asking(headers={"X-API-Key": token}) as response:
        lines = response.iter_lines()
        assert len(parsed(lines, 3)) == 3
        own.api_keys.revoke(key.id)
        assert parsed(lines) == []
    job = response.headers["content-location"]
    own.gate.open()
    whole = own.http.get(job, headers=LINES | {"X-API-Key": other, "Prefer": "wait=60"})
    assert [json.loads(line).get("value") for line in whole.text.splitlines()[1:-1]] == VALUES


def test_a_reader_who_takes_nothing_holds_little_and_keeps_nobody_waiting(running: Running) -> None:
    count, n_edges = 20, 20_000
    columns = {"tail": [0] * n_edges, "head": [1] * n_edges, "capacity": [1] * n_edges, "source": 0, "sink": 1}
    ids = {"edge_ids": [f"{number:060}" for number in range(n_edges)]}
    assert running.http.put("/v1/graphs/wide", json=columns | ids).status_code == 201
    running.gate.let(2)
    body: dict[str, Any] = {"scenarios": [{}] * count, "fields": ["flow"]}
    with running.http.stream("POST", "/v1/graphs/wide/what-if", json=body, headers=LINES) as response:
        assert response.status_code == 200
        job = response.headers["content-location"].removesuffix("/result")
        running.gate.open()
        eventually(lambda: running.status(job) == "succeeded")
        held = re.findall(r"^headrace_http_sending_bytes ([0-9.e+]+)", running.http.get("/metrics").text, re.M)
        assert float(held[0]) == HELD_BYTES
        head, *found, end = parsed(response.iter_lines())
    assert (head["rows"], end) == (count, {"done": True, "rows": count})
    assert [(row["row"], len(row["flow"]["edges"])) for row in found] == [(row, n_edges) for row in range(count)]


def test_lines_that_are_cut_in_the_middle_of_one_have_no_last_line(running: Running) -> None:
    """What would stand behind a part of a row is no line."""

    async def read() -> list[bytes]:
        async def pieces() -> AsyncGenerator[bytes, None]:
            yield b'{"graph":"g"}\n{"row":'
            raise ServiceError("cancelled", "as if")

        request = Request({"type": "http", "state": {"request_id": "r"}})
        return [line async for line in _lines(request, pieces(), None)]

    assert asyncio.run(read()) == [b'{"graph":"g"}\n{"row":']


def test_a_reader_who_goes_away_ends_nothing_and_gives_back_its_place(redis_url: str) -> None:
    """And while there is no place, the lines are sent once all are there."""
    with running_with(redis_url, max_event_streams=1) as running:
        running.gate.let(2)
        with running.asking() as response:
            lines = response.iter_lines()  # the connection ends with it
            assert len(parsed(lines, 3)) == 3
            job = response.headers["content-location"].removesuffix("/result")
            assert running.http.get(f"{job}/result", headers=LINES).status_code == 202

        def is_read() -> bool:
            with running.reading(job) as again:
                return again.status_code == 200 and len(parsed(again.iter_lines(), 3)) == 3

        eventually(is_read)
        assert running.status(job) == "running"
        running.gate.open()
        eventually(lambda: running.status(job) == "succeeded")


def test_a_reader_who_goes_before_its_answer_begins_gives_back_its_place(redis_url: str) -> None:
    """Each kept one until the next row was there, which may be an hour."""
    with running_with(redis_url, max_event_streams=2) as running:
        running.gate.let(2)
        job = running.submitted()
        running.at_its_rows(job, 2)
        url = running.http.base_url
        for path in (f"{job}/result?after=1", f"{job}/result?after=1"):
            with socket.create_connection((url.host, url.port or 80)) as gone:
                gone.sendall(f"GET {path} HTTP/1.1\r\nHost: {url.host}\r\nAccept: {LINES['Accept']}\r\n\r\n".encode())

        def is_read() -> bool:
            with running.reading(job) as again:
                return again.status_code == 200

        time.sleep(0.5)  # until these have been taken up
        eventually(is_read)
        assert running.status(job) == "running"
        running.gate.open()
        eventually(lambda: running.status(job) == "succeeded")
