"""Changes of structure through all real parts: SDK, command line, API, Redis, worker; and after kill -9."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from headrace import AlreadyExists, AsyncClient, Client, Graph, InvalidInput, NewEdges, UnknownEdge, VersionConflict
from typer.testing import CliRunner

from service.cli.connection import MISWRITTEN, REFUSED
from service.cli.main import app
from tests.graphs import CITY as COSTLY
from tests.serving import Service, eventually

ROOT = Path(__file__).parents[2]
CITY = {name: column for name, column in COSTLY.items() if not name.startswith("cost")}


@pytest.fixture
def http(service: Service) -> httpx.Client:
    response = service.http.put("/v1/graphs/city", json=CITY)
    assert response.status_code in (200, 201), response.text
    return service.http


@pytest.fixture
def city(service: Service, http: httpx.Client) -> Iterator[Graph]:
    with Client(service.url) as client:
        yield client.graph("city")


def patch(http: httpx.Client, body: Any, **more: Any) -> httpx.Response:
    return http.patch("/v1/graphs/city/edges", json=body, **more)


BATCH = [
    {"op": "insert", "vertices": ["w"]},
    {"op": "insert", "edge_ids": ["f", "g"], "tail": ["s", "w"], "head": ["w", "t"], "capacity": [2, 1]},
    {"edges": ["c"], "op": "delete"},
]


def test_a_batch(http: httpx.Client) -> None:
    asked = {"sources": ["s"], "sinks": ["t"]}
    assert http.post("/v1/graphs/city/max-flow", json=asked).json()["value"] == 6
    response = patch(http, {"batch": BATCH}, headers={"Idempotency-Key": "b1"})
    answer = response.json()
    assert (response.status_code, answer["version"], answer["applied"]) == (200, 2, 4)
    assert response.headers["etag"] == f'"{answer["generation"]}-2"'
    assert (answer["inserted"], answer["deleted"]) == ({"vertices": 1, "edges": 2}, {"edges": 1, "vertices": 0})
    (state,) = answer["flow_states"]
    assert (state["old_value"], state["value"], state["mode"], state["certificate"]["valid"]) == (6, 6, "warm", True)
    again = patch(http, {"batch": BATCH}, headers={"Idempotency-Key": "b1"})
    assert (again.status_code, again.json()["version"]) == (200, 2)
    info = http.get("/v1/graphs/city").json()
    assert (info["n_vertices"], info["n_edges"], info["version"]) == (5, 6, 2)
    page = http.get("/v1/graphs/city/capacities").json()
    assert page["edge_ids"] == ["a", "b", "d", "e", "f", "g"]
    flow = http.post("/v1/graphs/city/max-flow", json=asked | {"fields": ["flow", "cut"], "flow": {"zeros": True}})
    assert flow.json()["flow"]["edges"] == page["edge_ids"]
    copied = http.post("/v1/graphs/city:copy", json={"to": "town"}).json()
    assert (copied["n_vertices"], copied["n_edges"], copied["version"]) == (5, 6, 1)
    assert http.get("/v1/graphs/town/capacities").json()["edge_ids"] == page["edge_ids"]
    http.delete("/v1/graphs/town")


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({}, 422, "invalid_body", None),
        ({"batch": []}, 200, None, None),
        ({"op": "insert"}, 422, "invalid_body", None),
        ({"op": "delete"}, 422, "invalid_body", None),
        ({"op": "delete", "vertices": ["u"], "edges": ["c"]}, 422, "invalid_body", None),
        ({"op": "delete", "vertices": ["u"], "count": 1}, 422, "invalid_body", None),
        ({"op": "delete", "vertices": ["u", "z"]}, 422, "unknown_vertex", "/vertices"),
        ({"op": "delete", "vertices": ["u", "u"]}, 422, "invalid_body", "/vertices"),
        ({"op": "delete", "edges": ["c"], "capacity": [1]}, 422, "invalid_body", None),
        ({"op": "drop", "edges": ["c"]}, 422, "invalid_body", "/op"),
        ({"op": "insert", "edges": ["f"]}, 422, "invalid_body", "/edges"),
        ({"op": "insert", "vertices": ["w"], "count": 1}, 422, "invalid_body", None),
        ({"op": "insert", "vertices": ["w"], "z": [8.5]}, 422, "invalid_body", "/z"),
        ({"op": "insert", "vertices": "w"}, 422, "invalid_body", "/vertices"),
        ({"op": "insert", "count": -1}, 422, "invalid_body", "/count"),
        ({"op": "insert", "vertices": ["w"], "on_missing": "skip"}, 200, None, None),
        ({"batch": [BATCH[0], {"op": "delete", "edges": ["z"]}], "on_missing": "skip"}, 200, None, None),
        ({"batch": [{"op": "delete", "edges": ["z"]}]}, 422, "unknown_edge", "/batch/0/edges"),
        ({"batch": [{"op": "delete", "vertices": ["z"]}]}, 422, "unknown_vertex", "/batch/0/vertices"),
        ({"batch": [{"op": "delete", "edges": ["c"]}], "on_missing": "no"}, 422, "invalid_body", "/on_missing"),
        ({"batch": [], "on_missing": "skip"}, 200, None, None),
        ({"op": "insert", "count": 2001}, 413, "too_large", None),
        ({"batch": [{"op": "delete", "edges": ["c"]}], "op": "delete"}, 422, "invalid_body", None),
        ({"op": "delete", "edges": ["c", "z"]}, 422, "unknown_edge", "/edges"),
        ({"op": "insert", "edge_ids": ["a"], "tail": ["s"], "head": ["t"], "capacity": [1]}, 409, "already_exists",
         "/edge_ids"),
        ({"op": "insert", "edge_ids": ["f"], "tail": ["s"], "head": ["x"], "capacity": [1]}, 422, "unknown_vertex",
         "/head"),
        ({"op": "insert", "edge_ids": ["f"], "tail": ["s"], "head": ["t"], "capacity": [-1]}, 422, "invalid_body",
         "/capacity"),
        ({"op": "insert", "edge_ids": ["f"], "tail": ["s"], "head": ["t"], "capacity": [1, 2]}, 422, "invalid_body",
         "/capacity"),
        ({"op": "insert", "edge_ids": ["f"], "tail": ["s", "s"], "head": ["t"], "capacity": [1]}, 422, "invalid_body",
         "/head"),
        ({"op": "insert", "edge_ids": ["f"], "tail": ["s"], "head": ["t"], "capacity": [0.5]}, 422, "invalid_body",
         "/capacity"),
        ({"op": "insert", "edge_ids": ["f"], "tail": ["s"], "head": ["t"], "capacity": [1], "undirected": [1]}, 422,
         "invalid_body", None),
    ],
)  # fmt: skip
def test_refusals(http: httpx.Client, body: Any, status: int, code: str | None, field: str | None) -> None:
    response = patch(http, body)
    assert response.status_code == status, response.text
    if code is not None:
        assert response.json()["code"] == code
        if field is not None:
            assert response.json()["field"].startswith(field)
        assert http.get("/v1/graphs/city").json()["version"] == 1


def test_what_is_no_body_of_this_route(http: httpx.Client) -> None:
    dry = patch(http, BATCH[0], params={"dry_run": "true"}, headers={"Idempotency-Key": "k"}).json()
    assert (dry["version"], dry["dry_run"], dry["inserted"]["vertices"]) == (1, True, 1)
    stale = patch(http, BATCH[0], headers={"If-Match": '"7"'})
    assert (stale.status_code, stale.json()["code"]) == (412, "version_conflict")
    arrow = http.patch(
        "/v1/graphs/city/edges", content=b"x", headers={"Content-Type": "application/vnd.apache.arrow.stream"}
    )
    assert arrow.status_code == 415
    assert http.patch("/v1/graphs/none/edges", json=BATCH[0]).status_code == 404


def test_the_client(city: Graph) -> None:
    assert city.max_flow("s", "t").value == 6
    tried = city.insert_edges(["s", "u"], ["t", "t"], [1.0, 5], edge_ids=["x", "y"], dry_run=True)
    assert (tried.version, tried.dry_run, tried.inserted_edges, tried.flow_states[0].value) == (1, True, 2, 8)
    assert city.delete_vertices(["t"], dry_run=True).flow_states[0].mode == "dropped"
    done = city.insert_edges(["s", "u"], ["t", "t"], [1.0, 5], edge_ids=["x", "y"])
    assert (done.version, done.inserted_edges, done.edges, done.flow_states[0].value) == (2, 2, None, 8)
    assert done.flow_states[0].mode == "warm"
    assert city.insert_vertices(["w"]).inserted_vertices == 1
    assert city.delete_edges(["x"]).deleted_edges == 1
    assert city.max_flow("s", "t").value == 7
    with pytest.raises(AlreadyExists):
        city.insert_edges(["s"], ["t"], 1, edge_ids=["x"])
    with pytest.raises(UnknownEdge):
        city.delete_edges(["x"])
    with pytest.raises(VersionConflict):
        city.delete_edges(["y"], if_version=1)
    with pytest.raises(InvalidInput, match="NewEdges"):
        city.restructure(edges=[("s", "t")])  # type: ignore[arg-type]
    both = NewEdges(tail=["s"], head=["w"], capacity=[float("inf")], edge_ids=["z"], undirected=[True])
    assert city.restructure(edges=both, delete=["y"], solve="none").applied == 2
    page = city.capacities()
    assert (page.edge_ids[-1], page.capacity[-1], page.undirected[-1]) == ("z", float("inf"), True)
    assert city.restore(1).applied == 1
    assert list(city.capacities().edge_ids) == list("abcde")


def test_numbers(service: Service) -> None:
    async def grow() -> None:
        async with AsyncClient(service.url) as client:
            numbered = await client.put_graph("n", tail=[0, 1], head=[1, 2], capacity=[3, 3], source=0, sink=2)
            done = await numbered.restructure(vertices=2, edges=NewEdges(tail=[0, 3], head=[3, 2], capacity=2))
            assert (done.vertices, done.edges) == (range(3, 5), range(2, 4))
            assert (await numbered.max_flow()).value == 5
            assert (await numbered.delete_edges([2])).deleted_edges == 1
            assert (await numbered.insert_edges([0], [2], [9])).edges == range(4, 5)
            assert (await numbered.insert_vertices(1)).vertices == range(5, 6)
            assert (await numbered.max_flow()).value == 12
            await numbered.delete()

    asyncio.run(grow())


@pytest.mark.usefixtures("beside_examples")
def test_the_example_of_the_docs(service: Service) -> None:
    text = (ROOT / "docs/api.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", text[text.index("## Structure") :], re.S)[:1]
    program = program.replace("http://127.0.0.1:8080", service.url)
    exec(program, {})
    service.http.delete("/v1/graphs/heidelberg")


def test_the_command(service: Service, city: Graph) -> None:
    def shell(*words: str, expect: int = 0) -> str:
        done = CliRunner(env={"HEADRACE_URL": service.url}).invoke(app, list(words))
        assert done.exit_code == expect, done.output
        return done.output

    told = json.loads(
        shell("edges", "insert", "city", "f:s,w=2", "g:w,t=inf", "--vertex", "w", "--undirected", "--json")
    )
    assert (told["version"], told["inserted_edges"], told["inserted_vertices"]) == (2, 2, 1)
    tried = json.loads(shell("edges", "delete", "city", "c", "f", "--dry-run", "--json"))
    assert (tried["version"], tried["dry_run"], tried["deleted_edges"]) == (2, True, 2)
    assert "nothing was changed" in shell("edges", "insert", "city", "h:s,t=1", "--dry-run")
    assert "version" in shell("edges", "delete", "city", "c", "f")
    shell("edges", "delete", "city", "c", expect=REFUSED)
    shell("edges", "insert", "city", "s-t=1", expect=MISWRITTEN)
    shell("edges", "insert", "city", "h:s,t=1", "s,t=1", expect=MISWRITTEN)
    assert city.refresh().n_edges == 5


def test_scenarios_beside_it_keep_their_version(http: httpx.Client, city: Graph) -> None:
    """Many scenarios run on copies of the state, while edges come and go."""
    with Client(str(http.base_url)) as client:
        job = client.graph("city")
        scenarios = [{"id": i, "batch": [{"edges": ["abcde"[i % 5]], "op": "close"}]} for i in range(2000)]
        body = {"sources": ["s"], "sinks": ["t"], "scenarios": scenarios}
        begun = http.post("/v1/graphs/city/what-if", json=body, headers={"Prefer": "respond-async"})
        for i in range(5):
            job.restructure(
                vertices=[f"v{i}"], edges=NewEdges(tail=["s"], head=["t"], capacity=[5], edge_ids=[f"n{i}"])
            )
        job.delete_edges(["e"])
        answer = begun
        if begun.status_code == 202:
            path = begun.headers["location"]
            eventually(lambda: http.get(path).json()["status"] in ("succeeded", "failed"))
            answer = http.get(f"{path}/result")
        told = answer.json()
        assert (told["version"], told["base"]["value"], len(told["answers"])) == (1, 6, 2000)
        expected = {"a": -3, "b": -2, "c": -1, "d": -2, "e": -4}
        assert all(row["change"] == expected["abcde"[row["row"] % 5]] for row in told["answers"])


def test_a_random_history_with_kills(service: Service) -> None:
    """Against a graph that is loaded anew at each step: values and cuts are equal. The worker is killed on the way."""
    rng = np.random.default_rng(5)
    n, edges = 12, {}
    for i in range(30):
        tail, head = rng.integers(0, n, 2).tolist()
        edges[f"e{i}"] = [f"v{tail}", f"v{head}", int(rng.integers(1, 20)), bool(rng.random() < 0.3)]
    with Client(service.url, timeout_s=60) as client:
        graph = client.put_graph("random", **columns(n, edges))
        for step in range(30):
            if step in (5, 18):
                os.kill(service.children()["worker"], signal.SIGKILL)
                service.wait_ready()
            new = {}
            for i in range(int(rng.integers(0, 6))):
                tail, head = rng.integers(0, n + 1, 2).tolist()
                new[f"n{step}.{i}"] = [f"v{tail}", f"v{head}", int(rng.integers(0, 20)), bool(rng.random() < 0.3)]
            gone = rng.choice(list(edges), int(rng.integers(0, 4)), replace=False).tolist()
            rows = list(new.values())
            inserted = NewEdges(
                tail=[row[0] for row in rows],
                head=[row[1] for row in rows],
                capacity=[row[2] for row in rows],
                undirected=[row[3] for row in rows],
                edge_ids=list(new),
            )
            done = graph.restructure(vertices=[f"v{n}"], edges=inserted if new else None, delete=gone)
            assert all(state.certificate is not None and state.certificate.valid for state in done.flow_states)
            n += 1
            edges = {name: row for name, row in (edges | new).items() if name not in gone}
            changed = rng.choice(list(edges), min(3, len(edges)), replace=False).tolist()
            graph.patch(edges=changed, set=[int(c) for c in rng.integers(0, 20, len(changed))])
            for name, page in zip(graph.capacities().edge_ids, graph.capacities().capacity, strict=True):
                edges[name][2] = int(page)
            fresh = client.put_graph("fresh", **columns(n, edges))
            for source, sink in (("v0", "v1"), ("v2", f"v{n - 1}"), ("v3", "v4")):
                one = graph.max_flow(source, sink, fields=["cut", "flow"])
                other = fresh.max_flow(source, sink, fields=["cut", "flow"])
                assert (one.value, one.cut.edges, one.cut.unique) == (other.value, other.cut.edges, other.cut.unique)
                assert one.certificate.valid
        assert list(graph.capacities().edge_ids) == list(edges)


def test_the_first_names_say_whether_they_are_text(service: Service) -> None:
    """A graph that is loaded without a vertex or an edge, but with lists of names, grows from nothing."""
    http = service.http
    empty: dict[str, list[Any]] = {"tail": [], "head": [], "capacity": []}
    assert http.put("/v1/graphs/seed", json=empty | {"vertex_labels": [], "edge_ids": []}).status_code in (200, 201)
    mixed = [{"op": "insert", "vertices": ["a"]}, {"op": "insert", "vertices": [7]}]
    refused = http.patch("/v1/graphs/seed/edges", json={"batch": mixed}).json()
    assert (refused["code"], refused["field"]) == ("invalid_body", "/batch/1/vertices")
    edges = {"op": "insert", "edge_ids": ["ab", "bc"], "tail": ["a", "b"], "head": ["b", "c"], "capacity": [3, 2]}
    vertices = [{"op": "insert", "vertices": ["a", "b"]}, {"op": "insert", "vertices": ["c"]}]
    assert http.patch("/v1/graphs/seed/edges", json={"batch": [*vertices, edges]}).json()["applied"] == 5
    asked = {"sources": ["a"], "sinks": ["c"], "fields": ["cut"]}
    told = http.post("/v1/graphs/seed/max-flow", json=asked).json()
    assert (told["value"], told["cut"]["edges"]) == (2, ["bc"])
    assert http.post("/v1/graphs/seed/snapshots").is_success
    assert http.patch("/v1/graphs/seed/edges", json={"op": "insert", "vertices": [7]}).json()["code"] == "invalid_body"
    assert http.patch("/v1/graphs/seed/edges", json={"op": "insert", "vertices": ["d"]}).is_success
    os.kill(service.children()["worker"], signal.SIGKILL)
    service.wait_ready()
    told = http.post("/v1/graphs/seed/max-flow", json=asked).json()
    assert (told["value"], told["cut"]["edges"]) == (2, ["bc"])
    assert http.get("/v1/graphs/seed/capacities").json()["edge_ids"] == ["ab", "bc"]


def test_a_graph_that_begins_with_nothing_and_without_lists_of_names_says_what_to_load(service: Service) -> None:
    """It numbers what it gets for good."""
    http = service.http
    empty: dict[str, Any] = {"tail": [], "head": [], "capacity": []}

    def refused(operation: dict[str, Any]) -> dict[str, Any]:
        answer = http.patch("/v1/graphs/mute/edges", json={"op": "insert"} | operation)
        assert answer.status_code == 422
        told: dict[str, Any] = answer.json()
        return told

    assert http.put("/v1/graphs/mute", json=empty).status_code in (200, 201)
    edge = {"tail": ["a"], "head": ["b"], "capacity": [1]}
    told = refused({"vertices": ["a"]})
    assert (told["code"], told["field"]) == ("invalid_body", "/vertices")
    assert told["detail"].endswith('or while it has no vertices with `"vertex_labels": []`')
    told = refused(edge | {"edge_ids": ["e"]})
    assert (told["code"], told["field"]) == ("invalid_body", "/edge_ids")
    assert told["detail"].endswith('or while it has no edges with `"edge_ids": []`')
    told = refused(edge)
    assert (told["code"], told["field"]) == ("unknown_vertex", "/tail")
    assert told["detail"].endswith('or while it has no vertices with `"vertex_labels": []`')
    http.put("/v1/graphs/mute", json={"tail": [0], "head": [1], "capacity": [1]}).raise_for_status()
    assert refused({"vertices": ["a"]})["detail"].endswith("for names of your own load the graph with `vertex_labels`")


def columns(n: int, edges: dict[str, list[Any]]) -> dict[str, Any]:
    return {
        "tail": [row[0] for row in edges.values()],
        "head": [row[1] for row in edges.values()],
        "capacity": [row[2] for row in edges.values()],
        "undirected": [row[3] for row in edges.values()],
        "edge_ids": list(edges),
        "vertex_labels": [f"v{i}" for i in range(n)],
    }
