"""Moves and drains over HTTP: by whom, with what in the answers, and by the client and the shell."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from headrace import AsyncClient, Client, UnknownWorker
from typer.testing import CliRunner

from service.cli.main import app
from service.machine import memory_bytes
from tests.serving import Service, eventually, serving

EDGES = {"tail": [0, 0, 1, 2], "head": [1, 2, 3, 3], "capacity": [3, 2.5, 4, 2], "source": 0, "sink": 3}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def service(data_dir: Path) -> Iterator[Service]:
    with serving(data_dir, environment={"HEADRACE_WORKERS": "2"}) as service:
        eventually(lambda: sum(worker["ready"] for worker in service.http.get("/v1/workers").json()["workers"]) == 2)
        yield service


def test_workers_and_the_embedded_redis_share_the_memory_there_is(service: Service) -> None:
    status = service.http.get("/status").json()
    assert [worker["budget_bytes"] for worker in status["workers"]] == 2 * [memory_bytes() // 4]
    assert status["redis"]["maxmemory_bytes"] == memory_bytes() // 2


def run(service: Service, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [*words, "--url", service.url])
    return done.exit_code, done.output


async def back_and_forth(url: str, here: str, there: str) -> list[bool]:
    """Whether the graph went each time, and what is said of a drain and its end."""
    async with AsyncClient(url) as client:
        city = await client.graph("city")
        moves = [await city.move(to) for to in (here, there)]
        drains = [await client.drain(here), await client.undrain(here)]
        assert len(await client.workers()) == 2
    return [*(move.moved for move in moves), *(drain.draining for drain in drains)]


def test_the_program_of_the_client_s_page(service: Service) -> None:
    page = (Path(__file__).parents[2] / "clients/python/README.md").read_text()
    (program,) = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "drain" in block]
    assert service.http.put("/v1/graphs/city", json=EDGES).status_code == 201
    with Client(service.url) as client:
        city = client.graph("city")
        here = city.info.worker
        there = {"cpu-0": "cpu-1", "cpu-1": "cpu-0"}[here]
        program = program.replace("gpu-0", here).replace("gpu-1", there)
        exec(compile(program, "README", "exec"), {"hr": client, "city": city})
        assert client.graph("city").info.worker == there
        city.delete()


def test_a_graph_moves_by_the_client_and_the_shell(service: Service) -> None:
    assert service.http.put("/v1/graphs/city", json=EDGES).status_code == 201
    with Client(service.url) as client:
        workers = client.workers()
        names = [worker["name"] for worker in workers]
        assert names == ["cpu-0", "cpu-1"]
        assert {worker["version"] for worker in workers} == {client.status().version}, "all have been upgraded"
        city = client.graph("city")
        city.max_flow()
        here = client.graph("city").info.worker
        (there,) = {*names} - {here}
        moved = city.move(there)
        assert (moved.graph, moved.from_worker, moved.to_worker, moved.moved) == ("city", here, there, True)
        assert isinstance(moved.pause_ms, float)
        assert client.graph("city").info.worker == there
        assert city.max_flow().mode == "unchanged"
        with pytest.raises(UnknownWorker):
            city.move("gpu-9")
        with pytest.raises(UnknownWorker):
            client.drain("gpu-9")
    assert asyncio.run(back_and_forth(service.url, here, there)) == [True, True, True, False]
    status, said = run(service, "move", "city", "--to", here)
    assert (status, "pause" in said) == (0, True)
    assert "already" in run(service, "move", "city", "--to", here)[1]
    assert run(service, "drain", here)[0] == 0
    assert service.http.get("/v1/graphs/city").json()["worker"] == there
    assert service.http.get(f"/v1/workers/{here}").json()["draining"] is True
    assert run(service, "move", "city", "--to", here)[0] != 0
    assert run(service, "drain", here, "--undo")[0] == 0
    assert service.http.get("/v1/workers/none").json()["code"] == "unknown_worker"


def test_a_worker_that_is_told_to_end_hands_its_graphs_over(service: Service) -> None:
    http = service.http
    assert http.put("/v1/graphs/left", json=EDGES).is_success
    value = http.post("/v1/graphs/left/max-flow", json={}).json()["value"]
    here = http.get("/v1/graphs/left").json()["worker"]
    pid = http.get(f"/v1/workers/{here}").json()["pid"]
    os.kill(pid, signal.SIGTERM)
    eventually(lambda: http.get("/v1/graphs/left").json()["worker"] != here)
    answer = http.post("/v1/graphs/left/max-flow", json={}).json()
    assert (answer["value"], answer["mode"]) == (value, "unchanged")

    def is_back() -> bool:
        worker = http.get(f"/v1/workers/{here}").json()
        return bool(worker["pid"] != pid and worker["ready"] and not worker["draining"])

    eventually(is_back)


def test_a_repeated_move_is_answered_as_the_first(service: Service) -> None:
    """Under its key a graph that has gone elsewhere since is not moved once more."""
    assert service.http.put("/v1/graphs/twice", json=EDGES).status_code == 201
    here = service.http.get("/v1/graphs/twice").json()["worker"]
    (there,) = {"cpu-0", "cpu-1"} - {here}

    def move(to: str, key: str) -> httpx.Response:
        return service.http.post("/v1/graphs/twice:move", json={"to": to}, headers={"Idempotency-Key": key})

    first = move(there, "go").json()
    assert (first["moved"], first["to"]) == (True, there)
    assert move(here, "back").json()["moved"]
    assert move(there, "go").json() == first
    assert service.http.get("/v1/graphs/twice").json()["worker"] == here
    assert move(here, "go").json()["code"] == "idempotency_conflict"
    assert service.http.delete("/v1/graphs/twice").status_code == 204


@pytest.mark.parametrize("body", [{}, {"to": 3}, {"to": ""}, {"to": "x" * 201}, {"to": "cpu-0", "from": "cpu-1"}])
def test_what_is_no_move_is_refused(service: Service, body: dict[str, object]) -> None:
    assert service.http.post("/v1/graphs/city:move", json=body).json()["code"] == "invalid_body"


def test_keys_for_some_graphs_move_nothing(service: Service, data_dir: Path) -> None:
    """Nor do keys that are not for whoever runs the service."""

    def key(*words: str) -> dict[str, str]:
        done = CliRunner().invoke(app, ["keys", "create", *words, "--data-dir", str(data_dir)])
        assert done.exit_code == 0, done.output
        return {"X-API-Key": done.stdout.split()[-1]}

    assert service.http.put("/v1/graphs/city", json=EDGES).is_success
    operator, tenant = key("op", "--scope", "admin"), key("t", "--scope", "admin", "--prefix", "ci")
    updater = key("u", "--scope", "update")
    eventually(lambda: service.http.get("/v1/workers").status_code == 401)
    for headers in (tenant, updater):
        for method, path in (("POST", "/v1/graphs/city:move"), ("PUT", "/v1/workers/cpu-0/drain")):
            answer = service.http.request(method, path, json={"to": "cpu-0"}, headers=headers)
            assert answer.json()["code"] == "forbidden", (method, path)
    assert service.http.post("/v1/graphs/city:move", json={"to": "cpu-0"}, headers=operator).status_code == 200
    assert len(service.http.get("/v1/workers", headers=updater).json()["workers"]) == 2
