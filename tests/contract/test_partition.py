"""Partitions through all real parts: API, Redis, worker, METIS in its process, client and shell; and after kill -9."""

import asyncio
import io
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from headrace import AsyncClient, Client, InvalidInput, NewEdges
from typer.testing import CliRunner

from service.cli.connection import MISWRITTEN
from service.cli.main import app
from tests.contract.asking import refusal
from tests.serving import Service

ROOT = Path(__file__).parents[2]
SIDE = 12
"""A grid of so many times so many crossings, row by row, named "r c"."""
NAMES = [f"{row} {column}" for row in range(SIDE) for column in range(SIDE)]
ALONG = [(a, a + 1) for a in range(SIDE * SIDE) if (a + 1) % SIDE]
DOWN = [(a, a + SIDE) for a in range(SIDE * (SIDE - 1))]
GRID: dict[str, Any] = {
    "tail": [NAMES[a] for a, _ in ALONG + DOWN],
    "head": [NAMES[b] for _, b in ALONG + DOWN],
    "capacity": [1.5] * len(ALONG + DOWN),
    "edge_ids": [f"e{i}" for i in range(len(ALONG + DOWN))],
    "decimals": 1,
}
G = "/v1/graphs/grid"


@pytest.fixture
def http(service: Service) -> httpx.Client:
    response = service.http.put(G, json=GRID)
    assert response.status_code in (200, 201), response.text
    return service.http


@pytest.fixture
def sdk(service: Service) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


def ask(http: httpx.Client, **body: Any) -> dict[str, Any]:
    response = http.post(f"{G}/partition", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    assert answer["certificate"] == {"valid": True}
    assert answer["balanced"] is (max(answer["part_weight"]) <= answer["limit"])
    return answer


def test_two_halves_of_a_grid(http: httpx.Client) -> None:
    """Twelve streets divide it; each has 1.5."""
    answer = ask(http, k=2, fields=["parts", "cut"])
    assert (answer["mode"], answer["version"], answer["value"], answer["cut_edges"]) == ("full", 1, 18, 12)
    assert (answer["part_weight"], answer["limit"], answer["balanced"]) == ([72, 72], 74, True)
    part = dict(zip(answer["parts"]["vertices"], answer["parts"]["part"], strict=True))
    assert set(part) == set(NAMES)
    ends = dict(zip(GRID["edge_ids"], zip(GRID["tail"], GRID["head"], strict=True), strict=True))
    between = {edge for edge, (tail, head) in ends.items() if part[tail] != part[head]}
    assert set(answer["cut"]["edges"]) == between
    assert answer["cut"]["weight"] == [1.5] * 12
    assert ask(http, k=2)["mode"] == "unchanged"


def test_it_follows_the_graph(http: httpx.Client) -> None:
    before = ask(http, k=2, weights="one")
    http.patch(f"{G}/capacities", json={"edges": ["e0"], "set": [7]}).raise_for_status()
    assert ask(http, k=2, weights="one")["mode"] == "unchanged"  # which do not weigh capacities
    batch = [
        {"op": "delete", "vertices": [NAMES[0]]},
        {"op": "insert", "vertices": ["new"]},
        {"op": "insert", "edge_ids": ["f"], "tail": [NAMES[-1]], "head": ["new"], "capacity": [1]},
    ]
    http.patch(f"{G}/edges", json={"batch": batch}).raise_for_status()
    answer = ask(http, k=2, weights="one")
    assert (answer["mode"], answer["version"], answer["cut_edges"]) == ("incremental", 3, before["cut_edges"])
    parts = dict(zip(answer["parts"]["vertices"], answer["parts"]["part"], strict=True))
    assert parts["new"] == parts[NAMES[-1]]
    assert NAMES[0] not in parts
    assert sum(answer["n_vertices"]) == SIDE * SIDE


def test_vertices_with_capacities_change_nothing(http: httpx.Client) -> None:
    """The network is split inside then, and grows in another way: the partition knows neither."""
    before = ask(http, k=2)
    http.patch(f"{G}/vertices", json={"vertices": [NAMES[7]], "set": [2]}).raise_for_status()
    assert ask(http, k=2)["mode"] == "unchanged"
    batch = [
        {"op": "insert", "vertices": ["new"]},
        {"op": "insert", "edge_ids": ["f"], "tail": [NAMES[7]], "head": ["new"], "capacity": [1]},
    ]
    http.patch(f"{G}/edges", json={"batch": batch}).raise_for_status()
    after = ask(http, k=2)
    assert (after["mode"], after["value"], sum(after["n_vertices"])) == (
        "incremental",
        before["value"],
        SIDE * SIDE + 1,
    )


def test_vertices_with_weights_of_their_own(http: httpx.Client) -> None:
    heavy = {"vertices": NAMES[:SIDE], "vertex_weight": [11] * SIDE}
    answer = ask(http, k=2, epsilon=0.05, **heavy)
    assert sum(answer["part_weight"]) == 12 * 11 + 132
    assert answer["balanced"]
    lighter = ask(http, k=2, epsilon=0.05, vertices=NAMES[2:SIDE], vertex_weight=[11] * (SIDE - 2))
    assert (lighter["mode"], lighter["reason"]) == (
        "incremental",
        "2 edges and vertices have changed since the last answer",
    )
    alone = ask(http, k=3, vertices=NAMES[:1], vertex_weight=[1000])
    assert not alone["balanced"]
    assert "a vertex weighs 1000" in alone["reason"]
    assert ask(http, k=144, epsilon=0)["part_weight"] == [1] * 144
    assert ask(http, k=1)["value"] == 0


def test_files(http: httpx.Client) -> None:
    plain = ask(http, k=4, fields=["parts", "cut"])
    body = {"k": 4, "fields": ["parts", "cut"]}
    response = http.post(f"{G}/partition", json=body, headers={"Accept": "application/x-npz"})
    with np.load(io.BytesIO(response.content)) as columns:
        assert columns["parts.part"].tolist() == plain["parts"]["part"]
        assert columns["cut.weight"].tolist() == [15] * plain["cut_edges"]
    texts = http.post(f"{G}/partition", json=body, headers={"Accept": "application/json; numbers=string"}).json()
    assert (texts["value"], texts["cut"]["weight"][0]) == (str(plain["value"]), "1.5")
    assert (texts["part_weight"], texts["limit"]) == (list(map(str, plain["part_weight"])), str(plain["limit"]))
    response = http.post(f"{G}/partition", json=body, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert pa.ipc.open_stream(response.content).schema.metadata[b"decimals"] == b"1"


def test_one_part_of_no_vertex(http: httpx.Client) -> None:
    empty = {"tail": [], "head": [], "capacity": [], "n_vertices": 0}
    http.put("/v1/graphs/none", json=empty).raise_for_status()
    refused = http.post("/v1/graphs/none/partition", json={"k": 1}).json()
    assert (refused["code"], refused["detail"]) == ("invalid_body", "1 part is too many for 0 vertices")


def test_a_part_may_be_empty(http: httpx.Client) -> None:
    """Three parts within the limit of two vertices each cut less than four do."""
    edges = {"tail": [0, 0, 2, 3], "head": [1, 2, 3, 4], "capacity": [9, 1, 1, 9]}
    http.put("/v1/graphs/five", json=edges).raise_for_status()
    answer = http.post("/v1/graphs/five/partition", json={"k": 4, "epsilon": 0}).json()
    assert (sorted(answer["n_vertices"]), answer["limit"], answer["value"]) == ([0, 1, 2, 2], 2, 2)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, (422, "invalid_body", "/k")),
        ({"k": 0}, (422, "invalid_body", "/k")),
        ({"k": 145}, (422, "invalid_body", "/k")),
        ({"k": 1025}, (422, "invalid_body", "/k")),
        ({"k": "2"}, (422, "invalid_body", "/k")),
        ({"k": True}, (422, "invalid_body", "/k")),
        ({"k": 2.5}, (422, "invalid_body", "/k")),
        ({"k": 2, "epsilon": "much"}, (422, "invalid_body", "/epsilon")),
        ({"k": 2, "epsilon": None}, (422, "invalid_body", "/epsilon")),
        ({"k": 2, "epsilon": -0.1}, (422, "invalid_body", "/epsilon")),
        ({"k": 2, "epsilon": 1e40}, (422, "invalid_body", "/epsilon")),
        ({"k": 2, "epsilon": "inf"}, (422, "invalid_body", "/epsilon")),
        ({"k": 2, "weights": "two"}, (422, "invalid_body", "/weights")),
        ({"k": 2, "seed": 2**31}, (422, "invalid_body", "/seed")),
        ({"k": 2, "vertices": ["0 0"]}, (422, "invalid_body", "/vertex_weight")),
        ({"k": 2, "vertices": ["0 0"], "vertex_weight": [1.5]}, (422, "invalid_body", "/vertex_weight")),
        ({"k": 2, "vertices": ["0 0"], "vertex_weight": [-1]}, (422, "invalid_body", "/vertex_weight")),
        ({"k": 2, "vertices": ["0 0", "0 0"], "vertex_weight": [1, 2]}, (422, "invalid_body", "/vertices")),
        ({"k": 2, "vertices": ["no"], "vertex_weight": [1]}, (422, "unknown_vertex", "/vertices")),
        ({"k": 2, "vertices": ["0 0"] * 2001, "vertex_weight": [1] * 2001}, (413, "too_large", "/vertices")),
        ({"k": 2, "min_version": 9}, (409, "version_unavailable", None)),
        ({"k": 2, "wrong": 9}, (422, "invalid_body", "/wrong")),
    ],
)
def test_clumsy_questions(http: httpx.Client, body: dict[str, Any], expected: tuple[int, str, Any]) -> None:
    assert refusal(http.post(f"{G}/partition", json=body)) == expected


def test_a_time_limit_and_a_cancel_end_it(http: httpx.Client) -> None:
    """METIS has not even begun by then. What was there before is forgotten, and the next question has an answer."""
    assert refusal(http.post(f"{G}/partition", json={"k": 2, "time_limit_s": 0.02}))[1] == "timeout"
    job = http.post(f"{G}/partition", json={"k": 3}, headers={"Prefer": "wait=0"})
    assert job.status_code == 202
    http.delete(job.headers["Location"])
    assert ask(http, k=2)["mode"] == "full"


def test_edges_without_a_limit(http: httpx.Client) -> None:
    http.patch(f"{G}/capacities", json={"edges": ["e0"], "set": ["inf"]}).raise_for_status()
    refused = http.post(f"{G}/partition", json={"k": 2})
    assert refusal(refused) == (422, "invalid_body", "/weights")
    assert refused.json()["edges"] == ["e0"]
    assert ask(http, k=2, weights="one")["cut_edges"] == 12


def test_the_client_and_the_shell(http: httpx.Client, sdk: Client) -> None:
    grid = sdk.graph("grid")
    found = grid.partition(4, epsilon=0.1, fields=["parts", "cut"], vertex_weight={NAMES[3]: 2})
    assert (found.k, found.valid, found.balanced, found.mode) == (4, True, True, "full")
    assert set(found.part_of.values()) == {0, 1, 2, 3}
    assert found.part_of is found.part_of  # made once, however often one vertex is looked up in it
    assert found.value == sum(found.weight or ())
    grid.restructure(vertices=["x"], edges=NewEdges(tail=["x"], head=[NAMES[5]], capacity=[9], edge_ids=["x"]))
    again = grid.partition(4, epsilon=0.1, vertex_weight={NAMES[3]: 2})
    assert (again.mode, again.part_of["x"], again.version) == ("incremental", again.part_of[NAMES[5]], 2)
    job = grid.partition(3, wait=False)
    assert job.wait().k == 3

    async def session() -> int:
        async with AsyncClient(str(http.base_url).rstrip("/")) as client:
            return (await (await client.graph("grid")).partition(4)).k

    assert asyncio.run(session()) == 4
    with pytest.raises(InvalidInput, match="whole number"):
        grid.partition(2, vertex_weight={NAMES[3]: 0.5})
    url = ["--url", str(http.base_url).rstrip("/")]
    told = CliRunner().invoke(app, ["partition", "grid", "2", *url])
    assert told.exit_code == 0
    assert "between parts" in told.stdout
    listed = CliRunner().invoke(app, ["partition", "grid", "2", "--json", *url])
    assert len(json.loads(listed.stdout)["part"]) == SIDE * SIDE + 1
    assert CliRunner().invoke(app, ["partition", "grid", "two", *url]).exit_code == MISWRITTEN


def test_a_worker_that_was_killed_makes_it_anew(http: httpx.Client, service: Service, sdk: Client) -> None:
    grid = sdk.graph("grid")
    before = grid.partition(2)
    os.kill(service.children()["worker"], signal.SIGKILL)
    after = grid.partition(2)
    assert (after.mode, after.value, after.part_of) == ("full", before.value, before.part_of)


@pytest.mark.usefixtures("beside_examples")
def test_the_program_of_the_page(http: httpx.Client, service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    section = (ROOT / "docs/api.md").read_text().partition("\n## Partition\n")[2].partition("\n## ")[0]
    program = section.partition("```python\n")[2].partition("```")[0]
    exec(compile(program.replace("http://127.0.0.1:8080", service.url), "api.md", "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("(")
    assert second == "incremental"
