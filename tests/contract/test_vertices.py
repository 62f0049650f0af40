"""Capacities of vertices through all real parts: SDK, command line, API, Redis, worker; and after kill -9."""

import asyncio
import json
import math
import os
import re
import signal
from pathlib import Path
from typing import Any

import httpx
import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
from headrace import AsyncClient, Client, HasVertexCapacities, InvalidInput, Scenario, Update
from typer.testing import CliRunner

from service.cli.main import app
from tests.graphs import CITY as COSTLY
from tests.serving import Service

ROOT = Path(__file__).parents[2]
CITY: dict[str, Any] = {name: column for name, column in COSTLY.items() if not name.startswith("cost")}
LIMITED = CITY | {"vertices": ["u", "v"], "vertex_capacity": [5, "inf"]}
G = "/v1/graphs/city"


@pytest.fixture
def http(service: Service) -> httpx.Client:
    response = service.http.put(G, json=LIMITED)
    assert response.status_code in (200, 201), response.text
    return service.http


def cut_of(http: httpx.Client) -> dict[str, Any]:
    answer = http.post(f"{G}/min-cut", json={}).json()
    assert answer["certificate"]["valid"]
    cut: dict[str, Any] = answer["cut"]
    assert answer["value"] == cut["value"] == sum(cut["pays"]) + sum(cut["vertex_pays"])
    return cut


def test_capacities_of_no_vertex_are_none(http: httpx.Client) -> None:
    """Pairs are not for networks whose vertices have capacities."""
    assert http.put(G, json=CITY | {"vertices": [], "vertex_capacity": []}).status_code == 200
    answer = http.post(f"{G}/pairs", json={"source": ["s"], "sink": ["t"]})
    assert answer.status_code == 200, answer.text
    assert [row["value"] for row in answer.json()["answers"]] == [6]


def test_a_batch(http: httpx.Client) -> None:
    assert (cut_of(http)["value"], cut_of(http)["vertices"]) == (6, [])
    response = http.patch(f"{G}/vertices", json={"vertices": ["v"], "set": [3]}, headers={"Idempotency-Key": "v1"})
    done = response.json()
    (state,) = done["flow_states"]
    assert (response.status_code, done["version"], done["applied"], state["value"]) == (200, 2, 1, 5)
    assert response.headers["etag"] == f'"{done["generation"]}-2"'
    cut = cut_of(http)
    assert (cut["edges"], cut["pays"], cut["vertices"], cut["vertex_pays"]) == (["d"], [2], ["v"], [3])
    again = http.patch(f"{G}/vertices", json={"vertices": ["v"], "set": [3]}, headers={"Idempotency-Key": "v1"})
    assert (again.status_code, again.json()["version"]) == (200, 2)
    two = {"batch": [{"vertices": ["v"], "add": [-1]}, {"vertices": ["u", "v"], "scale": [0.2, 2]}]}
    done = http.patch(f"{G}/vertices", json=two, params={"rounding": "down"}).json()
    assert (done["applied"], [s["mode"] for s in done["flow_states"]]) == (2, ["warm"])
    page = http.get(f"{G}/vertices").json()
    assert page == {"version": 3, "vertices": ["u", "v"], "capacity": [1, 4], "next": None}
    first = http.get(f"{G}/vertices", params={"limit": 1}).json()
    assert (first["vertices"], first["next"]) == (["u"], 1)
    old = http.patch(f"{G}/vertices", json={"vertices": ["v"], "set": [1]}, headers={"If-Match": '"2"'})
    assert old.json()["code"] == "version_conflict"


def test_as_arrow(http: httpx.Client) -> None:
    table, sink = pa.table({"vertices": ["v", "u"], "set": [3, 2]}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body, media = sink.getvalue().to_pybytes(), {"Content-Type": "application/vnd.apache.arrow.stream"}
    assert http.patch(f"{G}/vertices", content=body, headers=media).json()["applied"] == 2
    assert http.get(f"{G}/vertices").json()["capacity"] == [2, 3]
    refused = http.patch(f"{G}/capacities", content=body, headers=media).json()
    assert (refused["code"], refused["field"]) == ("invalid_body", "/vertices")


REFUSED: list[tuple[Any, str, str | None]] = [
    ({"vertices": ["x"], "set": [1]}, "unknown_vertex", "/vertices"),
    ({"vertices": ["v"], "set": [-1]}, "invalid_body", "/set"),
    ({"vertices": ["v"], "set": [1.5]}, "invalid_body", "/set"),
    ({"vertices": ["v"], "set": [1, 2]}, "invalid_body", "/set"),
    ({"vertices": ["v", "v"], "set": [1, 2]}, "invalid_body", "/vertices"),
    ({"vertices": ["u"], "add": [-9]}, "invalid_body", "/add"),
    ({"vertices": ["u"], "set": [2**60]}, "capacity_overflow", None),
    ({"vertices": ["v"], "op": "close"}, "invalid_body", "/op"),
    ({"edges": ["a"], "set": [1]}, "invalid_body", "/edges"),
    ({"set": [1]}, "invalid_body", None),
    ({"batch": [{"vertices": ["v"], "set": [1]}, {"vertices": ["x"], "set": [1]}]}, "unknown_vertex", None),
    ({"batch": [], "vertices": ["v"]}, "invalid_body", None),
]


@pytest.mark.parametrize(("body", "code", "field"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals(http: httpx.Client, body: Any, code: str, field: str | None) -> None:
    response = http.patch(f"{G}/vertices", json=body)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (422, code), problem
    if field is not None:
        assert problem["field"] == field
    assert http.get(f"{G}/vertices").json()["version"] == 1


@pytest.mark.parametrize(
    "question",
    ["matching", "min-cost-flow", "pairs", "gomory-hu-tree", "global-min-cut", "parametric", "capacity-expansion"],
)
def test_questions_that_do_not_know_them(http: httpx.Client, question: str) -> None:
    bodies: dict[str, Any] = {
        "pairs": {"among": ["s", "t"]},
        "parametric": {"edges": ["d"], "to": 2},
        "capacity-expansion": {"raise_by": 1, "edges": ["d"], "price": [1]},
    }
    response = http.post(f"{G}/{question}", json=bodies.get(question, {}))
    assert (response.status_code, response.json()["code"]) == (422, "has_vertex_capacities")


@pytest.mark.parametrize("placed", [False, True], ids=["bare", "on a map"])
@pytest.mark.parametrize("library", ["networkx", "igraph"])
def test_they_go_to_other_libraries_and_back(service: Service, library: str, placed: bool) -> None:
    places: Any = {"vertex_labels": [*"suvt"], "x": [0, 1, 2, 3], "y": [0, 0, 0, 0]} if placed else {}
    limits = {"u": 2, "v": math.inf}

    async def apart(name: str) -> Any:
        async with AsyncClient(service.url) as other:
            graph = await other.graph(name)
            return await (graph.to_networkx(page=1) if library == "networkx" else graph.to_igraph(page=1))

    with Client(service.url) as client:
        city = client.put_graph("sdk", **CITY, **places, vertex_capacities=limits)
        drawn: Any = city.to_networkx(page=1) if library == "networkx" else city.to_igraph(page=1)
        for found in (drawn, asyncio.run(apart("sdk"))):
            if library == "networkx":
                kept = dict(found.nodes(data="capacity"))
            else:
                kept = dict(zip(found.vs["name"], found.vs["capacity"], strict=True))
            assert kept == {"s": None, "t": None} | limits
        back = client.put_graph("back", drawn, source="s", sink="t", vertex_capacities="capacity")
        page = back.vertex_capacities()
        assert dict(zip(page.vertices, page.capacity, strict=True)) == limits
        assert back.max_flow().value == city.max_flow().value == 5
        with pytest.raises(InvalidInput, match="no vertex has the attribute 'width'"):
            client.put_graph("back", drawn, vertex_capacities="width")
        without = client.put_graph("back", drawn, source="s", sink="t")
        assert [*without.vertex_capacities().vertices] == [], "nobody has asked for them, as with costs"
        plain = client.put_graph("back", **CITY)
        assert not any(data for _, data in plain.to_networkx().nodes(data=True))
        assert "capacity" not in plain.to_igraph().vs.attributes()
        with pytest.raises(InvalidInput, match="an attribute of a NetworkX or igraph graph"):
            client.put_graph("back", **CITY, vertex_capacities="capacity")


def test_vertices_without_edges_are_drawn(service: Service) -> None:
    lone = {"tail": ["s"], "head": ["t"], "capacity": [1], "vertex_labels": ["s", "t", "alone", "other"]}
    with Client(service.url) as client:
        city = client.put_graph("lone", **lone, vertex_capacities={"alone": 2})
        drawn, plotted = city.to_networkx(page=1), city.to_igraph(page=3)
        assert dict(drawn.nodes(data="capacity")) == {"s": None, "t": None, "alone": 2, "other": None}
        assert plotted.vs["name"] == ["s", "t", "alone", "other"]
        assert plotted.vs["capacity"] == [None, None, 2, None]
        for back in (drawn, plotted):
            again = client.put_graph("back", back, vertex_capacities="capacity")
            assert again.vertices().vertices == ["s", "t", "alone", "other"]
            again.delete()
        city.delete_vertices(["other"])
        assert [*city.to_networkx().nodes] == city.to_igraph().vs["name"] == ["s", "t", "alone"]


@pytest.mark.parametrize("library", ["networkx", "igraph"])
def test_ids_and_closed_edges_go_along_and_come_back(service: Service, library: str) -> None:
    with Client(service.url) as client:
        columns = {"tail": ["s", "s", "a"], "head": ["a", "t", "t"], "capacity": [1, 2, 3], "edge_ids": ["x", "y", "z"]}
        town = client.put_graph("shut", **columns, closed=[False, True, False])
        town.insert_edges(["s"], ["t"], [math.inf], edge_ids=["w"])
        town.close(["w"])
        drawn = town.to_networkx() if library == "networkx" else town.to_igraph()
        back = client.put_graph("back", drawn, edge_ids="id", closed="closed")
        page = back.capacities()
        assert dict(zip(page.edge_ids, page.closed, strict=True)) == {"x": False, "y": True, "z": False, "w": True}
        assert dict(zip(page.edge_ids, page.capacity, strict=True)) == {"x": 1, "y": 2, "z": 3, "w": math.inf}
        assert back.max_flow("s", "t").value == 1
        back.reopen(["y"])
        assert back.max_flow("s", "t").value == 3
        back.delete()
        town.delete()


def test_the_clients(service: Service) -> None:
    limits = {"u": 5, "v": math.inf}
    with Client(service.url) as client:
        city = client.put_graph("sdk", **CITY, vertex_capacities=limits)
        assert city.max_flow().value == 6
        assert city.patch(vertices=["v"], set=[3], dry_run=True).flow_states[0].value == 5
        assert city.patch(vertices=["v"], set=3).flow_states[0].value == 5
        cut = city.min_cut().cut
        assert cut is not None
        assert ([*cut.vertices], [*cut.vertex_pays], [*cut.edges], [*cut.source_side]) == (["v"], [3], ["d"], [*"suv"])
        found = city.bottlenecks()
        assert ([*found.vertices], [*found.vertex_in_every], [*found.vertex_gain]) == (["v"], [True], [1])
        page = city.vertex_capacities()
        assert ([*page.vertices], [*page.capacity], page.next) == (["u", "v"], [5, 3], None)
        assert city.apply([Update(vertices=["u"], add=[1]), Update(vertices=["v"], set=[math.inf])]).applied == 2
        assert [*city.vertex_capacities().capacity] == [6, math.inf]
        assert city.restore(2).applied == 2
        assert [*city.copy("sdk-copy").vertex_capacities().capacity] == [5, 3]
        with pytest.raises(HasVertexCapacities):
            city.matching()
        for wrong in (Update(vertices=["u"], edges=["a"], set=[1]), Update(vertices=["u"], op="close")):
            with pytest.raises(InvalidInput, match="alone"):
                city.apply([wrong])
        with pytest.raises(InvalidInput, match="of capacities of vertices, or"):
            city.apply([Update(vertices=["u"], set=[1]), Update(edges=["a"], set=[1])])
        plain = client.put_graph("plain", **CITY)
        assert (plain.max_flow().value, [*plain.vertex_capacities().vertices]) == (6, [])
        closed = [Update(vertices=["v"], set=[0]), Update(edges=["d"], add=[1])]
        rows = plain.what_if([Scenario(updates=closed), Scenario(close=["d"])], fields=["cut"])
        assert [(row.value, [*row.cut.vertices]) for row in rows if row.cut] == [(3, []), (4, [])]
        assert rows.value == 6
        assert plain.max_flow().mode == "unchanged"
        dry = plain.patch(vertices=["v"], set=[3], dry_run=True)
        assert (dry.version, dry.flow_states[0].value, dry.flow_states[0].mode) == (1, 5, "cold")
        done = plain.patch(vertices=["v"], set=[3])
        assert (done.version, done.flow_states[0].value, done.flow_states[0].mode) == (2, 5, "cold")
        assert ([*plain.vertex_capacities().vertices], plain.max_flow().mode) == (["v"], "unchanged")
        numbered = client.put_graph(
            "numbered", tail=[0, 1], head=[1, 2], capacity=[4, 2.5], vertex_capacities={1: 1.25}
        )
        assert numbered.max_flow(0, 2).value == 1.25

    async def asked() -> Any:
        async with AsyncClient(service.url) as client:
            city = await client.graph("sdk")
            done = await city.patch(vertices=["v"], set=[2])
            return done.flow_states[0].value, [*(await city.vertex_capacities()).capacity]

    assert asyncio.run(asked()) == (4, [5, 2])


def test_a_watch_that_is_refused_leaves_no_flow(http: httpx.Client) -> None:
    assert http.put(f"{G}/watches/w", json={"on": ["cut"]}).json()["code"] == "has_vertex_capacities"
    assert http.patch(f"{G}/capacities", json={"edges": ["a"], "add": [1]}).json()["flow_states"] == []


def test_exports_are_read_back(service: Service, tmp_path: Path) -> None:
    with Client(service.url) as client:
        city = client.put_graph("out", **CITY, vertex_capacities={"u": 5, "v": 3})
        for suffix in (".npz", ".arrow"):
            city.export(tmp_path / f"city{suffix}")
            again = client.put_graph("in", tmp_path / f"city{suffix}")
            assert (again.max_flow("s", "t").value, [*again.vertex_capacities().capacity]) == (5, [5, 3])
        with pytest.raises(HasVertexCapacities):
            city.export(tmp_path / "city.max")


def test_in_the_shell(service: Service, http: httpx.Client) -> None:
    def shell(*words: str) -> str:
        done = CliRunner(env={"HEADRACE_URL": service.url}).invoke(app, list(words))
        assert done.exit_code == 0, done.output
        return done.output

    cut_of(http)
    assert json.loads(shell("patch", "city", "u=4", "v=3", "--vertices", "--json"))["applied"] == 2
    assert http.get(f"{G}/vertices").json()["capacity"] == [4, 3]
    assert "vertex" in shell("bottlenecks", "city")
    found = json.loads(shell("what-if", "city", "u=0", "s=1", "--vertices", "--json"))
    assert [row["value"] for row in found["rows"]] == [3, 1]


def maximum(edges: list[list[Any]], limits: dict[str, int], source: str, sink: str) -> int:
    graph = nx.DiGraph()
    for v, limit in limits.items():
        graph.add_edge((v, "in"), (v, "out"), capacity=limit)
    for tail, head, capacity, both in edges:
        for u, v in ((tail, head), (head, tail)) if both else ((tail, head),):
            before = graph.get_edge_data((u, "out"), (v, "in"), {"capacity": 0})["capacity"]
            graph.add_edge((u, "out"), (v, "in"), capacity=before + capacity)
    return int(nx.maximum_flow_value(graph, (source, "in"), (sink, "out")))


@pytest.mark.parametrize("limited", ["from the load on", "by updates alone"])
def test_a_random_history_with_kills(service: Service, limited: str) -> None:
    """Against NetworkX on a network split here, at each step. The worker is killed on the way."""
    rng = np.random.default_rng(11)
    n = 12
    limits = {f"v{i}": int(rng.integers(3, 25)) for i in range(n)}
    edges: list[list[Any]] = []
    for _ in range(40):
        tail, head = rng.integers(0, n, 2).tolist()
        edges.append([f"v{tail}", f"v{head}", int(rng.integers(1, 20)), bool(rng.random() < 0.4)])
    columns = {name: [row[at] for row in edges] for at, name in enumerate(("tail", "head", "capacity", "undirected"))}
    with Client(service.url, timeout_s=60) as client:
        labels, known = list(limits), limits
        if limited == "by updates alone":
            limits, known = dict.fromkeys(labels, 10**6), {}
        graph = client.put_graph("random", **columns, vertex_labels=labels, vertex_capacities=known or None)
        for step in range(20):
            if step in (5, 12):
                os.kill(service.children()["worker"], signal.SIGKILL)
                service.wait_ready()
            changed = rng.choice(labels, 3, replace=False).tolist()
            amounts = [int(c) for c in rng.integers(0, 25, 3)]
            limits |= dict(zip(changed, amounts, strict=True))
            known |= dict(zip(changed, amounts, strict=True))
            done = graph.patch(vertices=changed, set=amounts)
            assert all(state.certificate is not None and state.certificate.valid for state in done.flow_states)
            rows = rng.choice(len(edges), 3, replace=False).tolist()
            for row in rows:
                edges[row][2] = int(rng.integers(0, 20))
            graph.patch(edges=rows, set=[edges[row][2] for row in rows])
            page = graph.vertex_capacities()
            assert dict(zip(page.vertices, page.capacity, strict=True)) == known
            for source, sink in (("v0", "v1"), ("v2", "v3")):
                answer = graph.max_flow(source, sink, fields=["cut", "flow"])
                assert answer.cut is not None
                assert answer.value == maximum(edges, limits, source, sink), step
                assert sum(answer.cut.pays) + sum(answer.cut.vertex_pays) == answer.value


@pytest.mark.usefixtures("beside_examples")
def test_the_program_of_the_page(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    section = (ROOT / "docs/api.md").read_text().partition("\n## Vertices\n")[2].partition("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", section, re.S)
    program = program.replace("http://127.0.0.1:8080", service.url)
    exec(compile(program, "api.md", "exec"), {"Client": Client, "np": np})
    before, after, mode = capsys.readouterr().out.split()
    assert int(after) < int(before)
    assert mode == "warm"
