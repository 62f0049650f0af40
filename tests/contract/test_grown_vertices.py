"""Insertions where vertices have capacities, through all real parts: SDK, API, Redis, worker; and after kill -9."""

import asyncio
import math
import os
import signal
from typing import Any

import httpx
import numpy as np
import pytest
from headrace import AsyncClient, Client, InvalidInput, NewEdges

from tests.contract.test_vertices import CITY, LIMITED, G, maximum
from tests.serving import Service

INSERT = [
    {"op": "insert", "vertices": ["w"], "capacity": [1.5]},
    {"op": "insert", "edge_ids": ["f", "g"], "tail": ["s", "w"], "head": ["w", "t"], "capacity": ["inf", 9]},
]


@pytest.fixture
def http(service: Service) -> httpx.Client:
    response = service.http.put(G, json=LIMITED | {"decimals": 1})
    assert response.status_code in (200, 201), response.text
    return service.http


def patch(http: httpx.Client, body: Any, **more: Any) -> httpx.Response:
    return http.patch(f"{G}/edges", json=body, **more)


def test_a_batch(http: httpx.Client) -> None:
    assert http.post(f"{G}/max-flow", json={}).json()["value"] == 6
    response = patch(http, {"batch": INSERT}, headers={"Idempotency-Key": "k1"})
    done = response.json()
    assert (response.status_code, done["version"], done["applied"]) == (200, 2, 3)
    (state,) = done["flow_states"]
    assert (state["value"], state["mode"], state["certificate"]["valid"]) == (7.5, "cold", True)
    cut = http.post(f"{G}/min-cut", json={}).json()["cut"]
    assert (cut["vertices"], cut["vertex_pays"]) == (["w"], [1.5])
    assert http.get(f"{G}/vertices").json()["vertices"] == ["u", "v", "w"]
    again = patch(http, {"batch": INSERT}, headers={"Idempotency-Key": "k1"}).json()
    assert again["version"] == 2
    copied = http.post(f"{G}:copy", json={"to": "town"}).json()
    assert copied["n_vertices"] == 5
    assert http.get("/v1/graphs/town/vertices").json()["capacity"] == [5, "inf", 1.5]
    http.delete("/v1/graphs/town")
    assert http.post(f"{G}:restore", json={"version": 1}).json()["flow_states"][0]["value"] == 6


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"op": "insert", "vertices": ["w"], "capacity": [1, 2]}, "invalid_body", "/capacity"),
        ({"op": "insert", "vertices": ["w"], "capacity": [-1]}, "invalid_body", "/capacity"),
        ({"op": "insert", "vertices": ["w"], "capacity": [0.25]}, "invalid_body", "/capacity"),
        ({"op": "insert", "vertices": ["w"], "capacity": [2**60]}, "capacity_overflow", None),
        ({"op": "insert", "vertices": ["w"], "capacity": 1}, "invalid_body", "/capacity"),
        ({"op": "insert", "count": 1, "capacity": [1]}, "invalid_body", "/count"),
        ({"op": "insert", "vertices": ["u"], "capacity": [1]}, "already_exists", "/vertices"),
        ({"op": "insert", "vertices": ["w"], "capacity": [1], "cost": [1]}, "invalid_body", None),
        ({"batch": [*INSERT, {"op": "delete", "edges": ["z"]}]}, "unknown_edge", None),
    ],
)
def test_refusals(http: httpx.Client, body: Any, code: str, field: str | None) -> None:
    problem = patch(http, body).json()
    assert problem["code"] == code, problem
    if field is not None:
        assert problem["field"].startswith(field)
    assert http.get(f"{G}/vertices").json()["version"] == 1


def test_long_columns(http: httpx.Client) -> None:
    """They travel packed."""
    n = 1500
    body = {"op": "insert", "vertices": [f"w{i}" for i in range(n)], "capacity": [i % 7 for i in range(n)]}
    assert patch(http, body).json()["inserted"]["vertices"] == n
    page = http.get(f"{G}/vertices").json()
    assert page["capacity"][2:] == body["capacity"]


def test_the_clients(service: Service) -> None:
    with Client(service.url) as client:
        city = client.put_graph("sdk", **CITY, vertex_capacities={"u": 5})
        assert city.max_flow().value == 6
        assert city.insert_vertices(["w", "x"], capacity=[1, math.inf]).inserted_vertices == 2
        roads = NewEdges(tail=["s", "w"], head=["w", "t"], capacity=9, edge_ids=["f", "g"])
        assert city.restructure(edges=roads, delete=["a"]).flow_states[0].value == 4
        assert city.restructure(vertices=["y"], vertex_capacity=3).version == 4
        page = city.vertex_capacities()
        assert ([*page.vertices], [*page.capacity]) == ([*"uwxy"], [5, 1, math.inf, 3])
        with pytest.raises(InvalidInput, match="vertex_capacity"):
            city.restructure(vertex_capacity=3)

    async def grow() -> None:
        async with AsyncClient(service.url) as client:
            numbered = await client.put_graph("n", tail=[0, 1], head=[1, 2], capacity=[3, 3], source=0, sink=2)
            done = await numbered.insert_vertices(np.int64(2), capacity=[1, 2])
            assert done.vertices == range(3, 5)
            done = await numbered.insert_edges([0, 3], [3, 2], 9)
            assert (done.edges, (await numbered.max_flow()).value) == (range(2, 4), 4)
            await numbered.delete()

    asyncio.run(grow())


def test_a_random_history_with_kills(service: Service) -> None:
    """Against NetworkX on a network split here, at each step. The worker is killed on the way."""
    rng = np.random.default_rng(23)
    n = 10
    limits = {f"v{i}": int(rng.integers(3, 25)) for i in range(n)}
    edges: dict[str, list[Any]] = {}
    for i in range(25):
        tail, head = rng.integers(0, n, 2).tolist()
        edges[f"e{i}"] = [f"v{tail}", f"v{head}", int(rng.integers(1, 20)), bool(rng.random() < 0.4)]
    names = "tail", "head", "capacity", "undirected"

    def columns(rows: dict[str, list[Any]]) -> dict[str, Any]:
        made: dict[str, Any] = {name: [row[at] for row in rows.values()] for at, name in enumerate(names)}
        return made | {"edge_ids": list(rows)}

    with Client(service.url, timeout_s=60) as client:
        known = {"v0": limits["v0"]}
        limits = {v: known.get(v, 10**6) for v in limits}
        graph = client.put_graph("random", **columns(edges), vertex_labels=list(limits), vertex_capacities=known)
        for step in range(20):
            if step in (5, 12):
                os.kill(service.children()["worker"], signal.SIGKILL)
                service.wait_ready()
            vertex = f"v{n}"
            n += 1
            limit = int(rng.integers(0, 20)) if rng.random() < 0.7 else None
            limits[vertex] = 10**6 if limit is None else limit
            known |= {} if limit is None else {vertex: limit}
            new: dict[str, list[Any]] = {}
            for i in range(int(rng.integers(1, 6))):
                tail, head = rng.integers(0, n, 2).tolist()
                new[f"n{step}.{i}"] = [f"v{tail}", f"v{head}", int(rng.integers(0, 20)), bool(rng.random() < 0.4)]
            gone = rng.choice(list(edges), int(rng.integers(0, 3)), replace=False).tolist()
            done = graph.restructure(
                vertices=[vertex], vertex_capacity=limit, edges=NewEdges(**columns(new)), delete=gone
            )
            assert all(state.certificate is not None and state.certificate.valid for state in done.flow_states)
            edges = {name: row for name, row in (edges | new).items() if name not in gone}
            changed = rng.choice(list(known), min(2, len(known)), replace=False).tolist()
            amounts = [int(c) for c in rng.integers(0, 25, len(changed))]
            limits |= dict(zip(changed, amounts, strict=True))
            known |= dict(zip(changed, amounts, strict=True))
            graph.patch(vertices=changed, set=amounts)
            page = graph.vertex_capacities()
            assert dict(zip(page.vertices, page.capacity, strict=True)) == known
            for source, sink in (("v0", "v1"), ("v2", vertex)):
                answer = graph.max_flow(source, sink, fields=["cut", "flow"])
                assert answer.cut is not None
                assert answer.certificate.valid
                assert answer.value == maximum([*edges.values()], limits, source, sink), step
                assert sum(answer.cut.pays) + sum(answer.cut.vertex_pays) == answer.value
