"""Vertices that are deleted, through all real parts: SDK, command line, API, Redis, worker; and after kill -9."""

import asyncio
import io
import json
import os
import signal
from typing import Any

import httpx
import numpy as np
import pytest
from headrace import AsyncClient, Client, InvalidInput, NewEdges, UnknownVertex
from typer.testing import CliRunner

from service.cli.connection import MISWRITTEN, REFUSED
from service.cli.main import app
from tests.contract.test_structure import CITY, columns
from tests.serving import Service

G = "/v1/graphs/city"
CUT = {"sources": ["s"], "sinks": ["t"], "fields": ["value", "cut"]}


@pytest.fixture
def http(service: Service) -> httpx.Client:
    response = service.http.put(G, json=CITY | {"source": "s", "sink": "t"})
    assert response.status_code in (200, 201), response.text
    return service.http


def patch(http: httpx.Client, body: Any, **more: Any) -> httpx.Response:
    return http.patch(f"{G}/edges", json=body, **more)


def test_a_dry_run_tells_of_flows_in_the_order_of_the_patch(http: httpx.Client) -> None:
    for sinks in (["u"], ["v", "u"], ["t"]):
        http.post(f"{G}/max-flow", json={"sources": ["s"], "sinks": sinks})
    told = [patch(http, {"op": "delete", "vertices": ["u"]}, params=params).json() for params in ({"dry_run": "1"}, {})]
    first, second = ([(state["sinks"], state["mode"]) for state in each["flow_states"]] for each in told)
    assert first == second == [(["u", "v"], "dropped"), (["u"], "dropped"), (["t"], "warm")]


def test_a_batch(http: httpx.Client) -> None:
    assert http.post(f"{G}/max-flow", json=CUT).json()["value"] == 6
    batch = [
        {"op": "delete", "vertices": ["u"]},
        {"op": "insert", "vertices": ["w"]},
        {"op": "insert", "edge_ids": ["f", "g"], "tail": ["s", "w"], "head": ["w", "t"], "capacity": [2, 1]},
    ]
    response = patch(http, {"batch": batch}, headers={"Idempotency-Key": "k"})
    done = response.json()
    assert (response.status_code, done["version"], done["applied"]) == (200, 2, 7)
    assert (done["inserted"], done["deleted"]) == ({"vertices": 1, "edges": 2}, {"edges": 3, "vertices": 1})
    (state,) = done["flow_states"]
    assert (state["value"], state["mode"], state["certificate"]["valid"]) == (4, "warm", True)
    assert patch(http, {"batch": batch}, headers={"Idempotency-Key": "k"}).json()["deleted"] == done["deleted"]
    cut = http.post(f"{G}/max-flow", json=CUT).json()["cut"]
    assert sorted([*cut["source_side"], *cut["sink_side"]]) == [*"stvw"]
    info = http.get(G).json()
    assert (info["n_vertices"], info["n_edges"], info["source"], info["sink"]) == (4, 4, "s", "t")
    copied = http.post(f"{G}:copy", json={"to": "town"}).json()
    assert (copied["n_vertices"], copied["n_edges"]) == (4, 4)
    town = http.post("/v1/graphs/town/max-flow", json=CUT).json()
    assert (town["value"], sorted([*town["cut"]["source_side"], *town["cut"]["sink_side"]])) == (4, [*"stvw"])
    http.delete("/v1/graphs/town")


def test_a_lost_default_terminal(http: httpx.Client) -> None:
    assert http.post(f"{G}/max-flow", json={}).json()["value"] == 6
    (state,) = patch(http, {"op": "delete", "vertices": ["t"]}).json()["flow_states"]
    assert (state["mode"], state["value"], state["certificate"]) == ("dropped", None, None)
    info = http.get(G).json()
    assert (info["source"], info["sink"], info["n_vertices"]) == ("s", None, 3)
    assert http.post(f"{G}/max-flow", json={}).json()["code"] == "invalid_body"
    asked = http.post(f"{G}/max-flow", json={"sinks": ["t"]}).json()
    assert (asked["code"], asked["field"], asked["vertices"]) == ("unknown_vertex", "/sinks", ["t"])
    assert "deleted" in asked["detail"]
    taken = patch(http, {"op": "insert", "vertices": ["t"]})
    assert (taken.status_code, taken.json()["code"]) == (409, "already_exists")
    assert http.get(f"{G}/export", params={"version": 1}).status_code == 200
    restored = http.post(f"{G}:restore", json={"version": 1}).json()
    assert restored["version"] == 3
    info = http.get(G).json()
    assert (info["sink"], info["n_vertices"]) == ("t", 4)
    assert http.post(f"{G}/max-flow", json={}).json()["value"] == 6


def test_masks(http: httpx.Client, service: Service) -> None:
    """In arrays a deleted vertex is on neither side, by names and by numbers."""
    patch(http, {"op": "delete", "vertices": ["u"]})
    answer = http.post(f"{G}/max-flow", json=CUT, headers={"Accept": "application/x-npz"})
    arrays = np.load(io.BytesIO(answer.content))
    sides = [np.unpackbits(arrays[f"cut.{side}_side"], count=4, bitorder="little") for side in ("source", "sink")]
    assert (sides[0] + sides[1]).tolist() == [1, 0, 1, 1]
    with Client(service.url) as client:
        for graph, ends in (
            (client.graph("city"), ("s", "t")),
            (client.put_graph("numbered", tail=[0, 0, 1], head=[1, 2, 2], capacity=[1, 2, 3], n_vertices=5), (0, 2)),
        ):
            if graph.name == "numbered":
                assert graph.delete_vertices([1, 4]).deleted_vertices == 2
            cut = graph.min_cut(*ends).cut
            assert cut is not None
            assert sorted([*cut.source_side, *cut.sink_side]) == ([*"stv"] if graph.name == "city" else [0, 2, 3])
            assert cut.mask.sum() == len(cut.source_side)


def test_none_is_left(http: httpx.Client) -> None:
    """Numbered vertices that are all deleted: each file and each copy has no vertex, and none of them fails."""
    numbered = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 2], "cost": [1, 1]}
    assert http.put("/v1/graphs/numbered", json=numbered).status_code in (200, 201)
    assert http.patch("/v1/graphs/numbered/edges", json={"op": "delete", "vertices": [0, 1, 2]}).status_code == 200
    for form in ("npz", "arrow", "dimacs", "dimacs-min"):
        file = http.get("/v1/graphs/numbered/export", params={"format": form})
        assert file.status_code == 200, file.text
    copied = http.post("/v1/graphs/numbered:copy", json={"to": "bare"}).json()
    assert (copied["n_vertices"], copied["n_edges"]) == (0, 0)
    assert http.post("/v1/graphs/numbered/global-min-cut").json()["code"] == "invalid_body"
    assert http.patch("/v1/graphs/numbered/edges", json={"op": "insert", "count": 1}).status_code == 200
    for name in ("numbered", "bare"):
        http.delete(f"/v1/graphs/{name}")


def test_dimacs_has_what_is_left_where_no_vertex_with_a_capacity_is(http: httpx.Client) -> None:
    #   s ---> a ---> t       a lets 2 pass; b is behind it in the order
    #    \---> b ---/
    limited = {
        "tail": ["s", "a", "s", "b"],
        "head": ["a", "t", "b", "t"],
        "capacity": [3, 2, 4, 5],
        "cost": [1, 1, 1, 1],
    }
    limited |= {"vertex_labels": list("sabt"), "vertices": ["a"], "vertex_capacity": [2], "source": "s", "sink": "t"}
    assert http.put("/v1/graphs/limited", json=limited).status_code in (200, 201)
    for form in ("dimacs", "dimacs-min"):
        refused = http.get("/v1/graphs/limited/export", params={"format": form}).json()
        assert (refused["code"], "npz and Arrow" in refused["detail"]) == ("has_vertex_capacities", True)
    assert http.patch("/v1/graphs/limited/edges", json={"op": "delete", "vertices": ["a"]}).status_code == 200
    file = http.get("/v1/graphs/limited/export", params={"format": "dimacs"}).text.splitlines()
    assert file[-5:] == ["p max 3 2", "n 1 s", "n 3 t", "a 1 2 4", "a 2 3 5"]
    assert http.get("/v1/graphs/limited/export", params={"format": "dimacs-min"}).text.endswith("a 2 3 0 5 1\n")
    assert http.get("/v1/graphs/limited/export", params={"format": "dimacs", "version": 1}).status_code == 422
    http.delete("/v1/graphs/limited").raise_for_status()


def test_the_clients(service: Service, http: httpx.Client) -> None:
    with Client(service.url) as client:
        city = client.graph("city")
        done = city.delete_vertices(["u"])
        assert (done.deleted_vertices, done.deleted_edges, done.version) == (1, 3, 2)
        with pytest.raises(UnknownVertex, match="deleted"):
            city.delete_vertices(["u"])
        assert city.delete_vertices(["u"], on_missing="skip").skipped == 1
        roads = NewEdges(tail=["s"], head=["w"], capacity=3, edge_ids=["f"])
        both = city.restructure(vertices=["w"], edges=roads, delete=["e"], delete_vertices=["v"], solve="none")
        assert (both.inserted_vertices, both.inserted_edges, both.deleted_edges, both.deleted_vertices) == (1, 1, 2, 1)
        assert [*city.capacities().edge_ids] == ["f"]
        with pytest.raises(InvalidInput):
            city.delete_vertices({"w"})  # type: ignore[arg-type]

    async def shrink() -> None:
        async with AsyncClient(service.url) as client:
            numbered = await client.put_graph("n", tail=[0, 1, 0], head=[1, 2, 2], capacity=[3, 3, 1], source=0, sink=2)
            assert (await numbered.max_flow()).value == 4
            done = await numbered.delete_vertices([1])
            assert (done.deleted_edges, done.flow_states[0].value) == (2, 1)
            assert (await numbered.insert_vertices(1)).vertices == range(3, 4)
            copied = await numbered.copy("n-copy")
            assert (copied.info.n_vertices, [*(await copied.capacities()).head]) == (3, [2])
            assert (await copied.max_flow()).value == 1
            with pytest.raises(UnknownVertex):
                await copied.max_flow(0, 1)
            assert (await copied.max_flow(0, 3)).value == 0
            await numbered.delete()

    asyncio.run(shrink())


def test_the_command(service: Service, http: httpx.Client) -> None:
    def shell(*words: str, expect: int = 0) -> str:
        done = CliRunner(env={"HEADRACE_URL": service.url}).invoke(app, list(words))
        assert done.exit_code == expect, done.output
        return done.output

    told = json.loads(shell("edges", "delete", "city", "e", "--vertex", "u", "--json"))
    assert (told["version"], told["deleted_edges"], told["deleted_vertices"]) == (2, 4, 1)
    shell("edges", "delete", "city", "--vertex", "u", expect=REFUSED)
    shell("edges", "delete", "city", expect=MISWRITTEN)
    assert "version" in shell("edges", "delete", "city", "--vertex", "v", "--vertex", "t")


def test_a_random_history_with_kills(service: Service) -> None:
    """Against a graph that is loaded anew at each step: values and cuts are equal. The worker is killed on the way."""
    rng = np.random.default_rng(8)
    names, limits = [f"v{i}" for i in range(14)], {"v3": 9, "v4": 0, "v5": 30}
    edges: dict[str, list[Any]] = {}

    def draw(prefix: str, count: int) -> dict[str, list[Any]]:
        return {
            f"{prefix}{i}": [*rng.choice(names, 2).tolist(), int(rng.integers(1, 20)), bool(rng.random() < 0.3)]
            for i in range(count)
        }

    def loaded() -> dict[str, Any]:
        return columns(0, edges) | {"vertex_labels": names, "vertex_capacities": limits}

    edges = draw("e", 40)
    with Client(service.url, timeout_s=60) as client:
        graph = client.put_graph("random", **loaded())
        for step in range(24):
            if step in (5, 16):
                os.kill(service.children()["worker"], signal.SIGKILL)
                service.wait_ready()
            gone = rng.choice(names[2:], int(rng.integers(0, 3)), replace=False).tolist()
            names = [name for name in names if name not in gone] + [f"w{step}"]
            limits = {name: limit for name, limit in limits.items() if name not in gone}
            limit = int(rng.integers(5, 30)) if rng.random() < 0.3 else None
            limits |= {} if limit is None else {f"w{step}": limit}
            new = draw(f"n{step}.", 6)
            rows = columns(0, new)
            del rows["vertex_labels"]
            done = graph.restructure(
                vertices=[f"w{step}"], vertex_capacity=limit, edges=NewEdges(**rows), delete_vertices=gone or None
            )
            assert all(s.mode == "dropped" or (s.certificate and s.certificate.valid) for s in done.flow_states)
            assert (done.deleted_vertices, graph.refresh().n_vertices) == (len(gone), len(names))
            kept = {name: row for name, row in edges.items() if not {*row[:2]} & {*gone}}
            assert done.deleted_edges == len(edges) - len(kept)
            edges = kept | new
            fresh = client.put_graph("fresh", **loaded())
            page = graph.vertex_capacities()
            assert dict(zip(page.vertices, page.capacity, strict=True)) == limits
            for source, sink in (("v0", "v1"), (names[2], names[-1])):
                one = graph.max_flow(source, sink, fields=["cut", "flow"])
                other = fresh.max_flow(source, sink, fields=["cut", "flow"])
                assert one.cut is not None
                assert other.cut is not None
                assert (one.value, one.cut.unique) == (other.value, other.cut.unique), step
                for told in ("edges", "vertices", "source_side", "sink_side"):
                    assert [*getattr(one.cut, told)] == [*getattr(other.cut, told)], (step, told)
                assert one.certificate.valid
        assert list(graph.capacities().edge_ids) == list(edges)
        graph.restore(1)
        assert len(graph.capacities().edge_ids) == 40
