"""Coordinates of vertices through all real parts: load, pages, files, copies, insertions, maps; and after kill -9."""

import asyncio
import io
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
import pytest
from headrace import AsyncClient, Client, InvalidBody, InvalidInput, NotAcceptable, from_osmnx
from headrace._columns import columns_of
from typer.testing import CliRunner

from gpu_engine.formats import read_arrow, read_npz, write_arrow, write_npz
from gpu_engine.networks.coordinates import Coordinates
from service.cli.connection import REFUSED as REFUSED_STATUS
from service.cli.main import app
from tests.graphs import CITY as COSTLY
from tests.serving import Service, eventually

ROOT = Path(__file__).parents[2]
PLAIN: dict[str, Any] = {name: column for name, column in COSTLY.items() if not name.startswith("cost")}
X, Y = [8.69, 8.7, -181.5, 1e-7], [49.41, 49.4, 95.25, -0.5]
PLAIN["vertex_labels"] = list("suvt")
CITY = PLAIN | {"x": X, "y": Y}
G = "/v1/graphs/city"
MAP = {"Accept": "application/geo+json"}


@pytest.fixture
def http(service: Service) -> httpx.Client:
    response = service.http.put(G, json=CITY)
    assert response.status_code in (200, 201), response.text
    assert response.json()["coordinates"] == "EPSG:4326"
    return service.http


def places(http: httpx.Client, graph: str = G) -> tuple[list[float], list[float]]:
    page = http.get(f"{graph}/vertices", params={"all": True}).json()
    return page["x"], page["y"]


def test_a_vertex_that_is_deleted_lies_nowhere(service: Service, http: httpx.Client) -> None:
    """Neither in pages nor in files nor on maps, also after a kill; and there again with its place by a restore."""
    done = http.patch(f"{G}/edges", json={"batch": [{"op": "delete", "vertices": ["u"]}]})
    assert done.status_code == 200, done.text
    kept = [X[0], *X[2:]], [Y[0], *Y[2:]]

    def check() -> None:
        page = http.get(f"{G}/vertices", params={"all": True}).json()
        assert (page["vertices"], page["x"], page["y"]) == (list("svt"), *kept)
        exported = read_npz(io.BytesIO(http.get(f"{G}/export").content))
        assert exported.coordinates is not None
        assert (exported.coordinates.x.tolist(), exported.coordinates.y.tolist()) == kept
        body = {"sources": ["s"], "sinks": ["t"], "fields": ["value", "flow", "cut"]}
        shown = http.post(f"{G}/max-flow", json=body, headers=MAP).json()
        points = {tuple(end) for line in shown["features"] for end in line["geometry"]["coordinates"]}
        assert points == {(X[0], Y[0]), (X[2], Y[2]), (X[3], Y[3])}

    check()
    os.kill(service.children()["worker"], signal.SIGKILL)
    service.wait_ready()
    check()
    restored = http.post(f"{G}:restore", json={"version": 1})
    assert restored.status_code == 200, restored.text
    assert places(http) == (X, Y)


def test_pages(http: httpx.Client) -> None:
    page = http.get(f"{G}/vertices", params={"all": True, "limit": 3}).json()
    assert page == {
        "version": 1,
        "vertices": ["s", "u", "v"],
        "capacity": ["inf"] * 3,
        "x": X[:3],
        "y": Y[:3],
        "next": 3,
    }
    last = http.get(f"{G}/vertices", params={"all": True, "offset": 3}).json()
    assert (last["vertices"], last["x"], last["y"], last["next"]) == (["t"], X[3:], Y[3:], None)
    assert http.get(f"{G}/vertices", params={"all": True, "offset": 9}).json()["x"] == []
    http.patch(f"{G}/vertices", json={"vertices": ["v"], "set": [3]})
    limited = http.get(f"{G}/vertices").json()
    assert (limited["vertices"], limited["capacity"], limited["x"]) == (["v"], [3], X[2:3])
    as_npz = http.get(f"{G}/vertices", params={"all": True}, headers={"Accept": "application/x-npz"})
    arrays = np.load(io.BytesIO(as_npz.content))
    assert (arrays["x"].tolist(), arrays["y"].tolist(), arrays["unlimited"].tolist()) == (
        X,
        Y,
        [True, True, False, True],
    )
    http.put("/v1/graphs/bare", json=PLAIN)
    assert http.get("/v1/graphs/bare").json()["coordinates"] is None
    assert http.get("/v1/graphs/bare/vertices", params={"all": True}).json().keys() == {
        "version",
        "vertices",
        "capacity",
        "next",
    }


@pytest.mark.parametrize("form", ["npz", "arrow"])
def test_files(http: httpx.Client, form: str) -> None:
    media = {"npz": "application/x-npz", "arrow": "application/vnd.apache.arrow.stream"}[form]
    file = http.get(f"{G}/export", params={"format": form}).content
    edges = {"npz": read_npz, "arrow": read_arrow}[form](file)
    assert edges.coordinates is not None
    assert (edges.coordinates.x.tolist(), edges.coordinates.y.tolist(), edges.coordinates.crs) == (X, Y, "EPSG:4326")
    again = http.put("/v1/graphs/again", content=file, headers={"Content-Type": media})
    assert again.json()["coordinates"] == "EPSG:4326", again.text
    assert places(http, "/v1/graphs/again") == (X, Y)


def test_a_copy_and_an_earlier_version(http: httpx.Client) -> None:
    inserted = http.patch(f"{G}/edges", json={"op": "insert", "vertices": ["w"], "x": [1], "y": [2.5]})
    assert inserted.status_code == 200, inserted.text
    http.delete("/v1/graphs/copy")
    assert http.post(f"{G}:copy", json={"to": "copy"}).json()["coordinates"] == "EPSG:4326"
    assert places(http, "/v1/graphs/copy") == ([*X, 1], [*Y, 2.5])
    then = read_npz(http.get(f"{G}/export", params={"version": 1}).content)
    assert then.coordinates is not None
    assert then.coordinates.x.tolist() == X
    assert http.post(f"{G}:restore", json={"version": 1}).status_code == 200
    assert places(http) == ([*X, 1], [*Y, 2.5]), "inserted vertices stay, without edges"


def test_insertions(http: httpx.Client) -> None:
    two = [
        {"op": "insert", "vertices": ["w"], "x": [1], "y": [2.5]},
        {"op": "insert", "vertices": ["z", "q"], "x": [3, 4e-3], "y": [5, 6]},
        {"op": "insert", "edge_ids": ["f"], "tail": ["s"], "head": ["z"], "capacity": [2]},
    ]
    assert http.patch(f"{G}/edges", json={"batch": two}).json()["inserted"] == {"vertices": 3, "edges": 1}
    assert places(http) == ([*X, 1, 3, 4e-3], [*Y, 2.5, 5, 6])
    numbered = {"tail": [0], "head": [1], "capacity": [1], "x": [1, 2], "y": [3, 4]}
    http.put("/v1/graphs/n", json=numbered)
    answer = http.patch("/v1/graphs/n/edges", json={"op": "insert", "count": 2, "x": [5, 6], "y": [7, 8]})
    assert answer.json()["inserted"]["first_vertex"] == 2
    many = {"op": "insert", "count": 2000, "x": [0.5] * 2000, "y": [0.25] * 2000}
    assert http.patch("/v1/graphs/n/edges", json=many).status_code == 200
    before = places(http, "/v1/graphs/n")
    assert (len(before[0]), before[0][:5]) == (2004, [1, 2, 5, 6, 0.5])


def test_they_survive_kills(http: httpx.Client, service: Service) -> None:
    """From the base, from the log, and from a snapshot with a log behind it."""
    expected = [*X], [*Y]
    for step in range(8):
        if step in (0, 3):
            os.kill(service.children()["worker"], signal.SIGKILL)
            service.wait_ready()
        assert places(http) == expected
        new = {"op": "insert", "vertices": [f"n{step}"], "x": [step / 3], "y": [-step / 7]}
        assert http.patch(f"{G}/edges", json=new).status_code == 200
        expected[0].append(step / 3)
        expected[1].append(-step / 7)
    eventually(lambda: bool(http.get(f"{G}/snapshots").json()["snapshots"]))
    assert http.get(f"{G}/snapshots").json()["snapshots"][0]["version"] > 1
    os.kill(service.children()["worker"], signal.SIGKILL)
    service.wait_ready()
    assert places(http) == expected
    assert http.get(G).json()["coordinates"] == "EPSG:4326"
    found = http.post(f"{G}/max-flow", json={}, headers=MAP).json()
    assert found["features"][0]["geometry"]["coordinates"][0] == [X[0], Y[0]]


def test_the_clients(service: Service) -> None:
    with Client(service.url) as client:
        numbers = client.put_graph(
            "sdk", tail=[0, 1], head=[1, 2], capacity=[2, 3], x=[1, 2.5, 3], y=np.array([4, 5, 6.0])
        )
        assert numbers.info.coordinates == "EPSG:4326"
        page = numbers.vertices(limit=2)
        assert page.x is not None
        assert page.y is not None
        assert ([*page.vertices], [*page.capacity]) == ([0, 1], [math.inf] * 2)
        assert ([*page.x], [*page.y], page.next) == ([1, 2.5], [4, 5], 2)
        done = numbers.insert_vertices(1, x=[7], y=[8])
        assert done.vertices == range(3, 4)
        page = numbers.vertices(offset=3)
        assert ([*(page.x or [])], [*(page.y or [])]) == ([7], [8])
        with pytest.raises(InvalidInput, match="x and y are of vertices to insert"):
            numbers.restructure(x=[1], y=[1])
        with pytest.raises(InvalidBody, match="give those of new ones"):
            numbers.insert_vertices(1)
        found = numbers.flow_map(0, 2)
        assert json.loads(json.dumps(found))["features"][0] == {
            "type": "Feature",
            "geometry": {"type": "LineString", "coordinates": [[1, 4], [2.5, 5]]},
            "properties": {"id": 0, "flow": 2, "capacity": 2, "in_cut": True},
        }
        named = client.put_graph("named", **CITY, crs="EPSG:32632")
        assert named.info.coordinates == "EPSG:32632"
        with pytest.raises(NotAcceptable, match="EPSG:32632"):
            named.flow_map()
        assert client.put_graph("bare", **PLAIN).vertices().x is None

    async def in_turn() -> None:
        async with AsyncClient(service.url) as client:
            city = await client.put_graph("async", **CITY)
            await city.insert_vertices(["w"], x=[1], y=[2])
            page = await city.vertices()
            assert [*(page.x or [])] == [*X, 1]
            assert (await city.flow_map())["value"] == 6

    asyncio.run(in_turn())


def test_the_command(service: Service, http: httpx.Client) -> None:
    def shell(*words: str, expect: int = 0) -> str:
        done = CliRunner(env={"HEADRACE_URL": service.url}).invoke(app, list(words))
        assert done.exit_code == expect, done.output
        return done.output

    assert "EPSG:4326" in shell("info", "city")
    shell("edges", "insert", "city", "f:s,w=2", "--vertex", "w", "--x", "8.5", "--y", "-49.5")
    assert places(http) == ([*X, 8.5], [*Y, -49.5])
    shell("edges", "insert", "city", "g:s,z=2", "--vertex", "z", expect=REFUSED_STATUS)


def test_the_program_of_the_page(service: Service, capsys: pytest.CaptureFixture[str], beside_examples: Path) -> None:
    section = (ROOT / "docs/api.md").read_text().partition("\n## Coordinates\n")[2].partition("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", section, re.S)
    exec(compile(program.replace("http://127.0.0.1:8080", service.url), "api.md", "exec"), {})
    assert capsys.readouterr().out.strip() == re.findall(r"print\(.*\)  # (.+)", program)[0]
    told = json.loads((beside_examples / "flow.geojson").read_text())
    load, answer, *_ = re.findall(r"```json\n(.*?)```", section, re.S)
    found = service.http.put("/v1/graphs/town", json=json.loads(load)).json()
    assert found["coordinates"] == "EPSG:4326"
    shown = service.http.post("/v1/graphs/town/max-flow", headers=MAP).json()
    assert (told["value"], told["features"][0].keys()) == (6000, shown["features"][0].keys())
    said = answer.partition('"features": [')[2].rpartition(", ...]")[0]
    assert shown["features"][0] == json.loads(said)


REFUSED: list[tuple[Any, str, str]] = [
    ({"op": "insert", "vertices": ["w"]}, "/x", "give those of new ones"),
    ({"op": "insert", "vertices": ["w"], "x": [1]}, "/y", "come together"),
    ({"op": "insert", "vertices": ["w"], "y": [1]}, "/x", "come together"),
    ({"op": "insert", "vertices": ["w"], "x": [1, 2], "y": [1]}, "/x", "2 rows for 1 vertex"),
    ({"op": "insert", "vertices": ["w"], "x": ["1"], "y": [1]}, "/x", "is no number"),
    ({"op": "insert", "vertices": ["w"], "x": [None], "y": [1]}, "/x", "is no number"),
    ({"op": "insert", "vertices": ["w"], "x": [1], "y": [10**999]}, "/y", "too large"),
    ({"op": "insert", "vertices": ["w"], "x": 1, "y": 1}, "/x", "array"),
    ({"op": "delete", "edges": ["a"], "x": [1], "y": [1]}, "", "no meaning"),
    (
        {"op": "insert", "edge_ids": ["f"], "tail": ["s"], "head": ["t"], "capacity": [2], "x": [1], "y": [1]},
        "/x",
        "vertices are inserted",
    ),
]


@pytest.mark.parametrize(("body", "field", "told"), REFUSED, ids=lambda value: str(value)[:50])
def test_insertions_that_are_refused(http: httpx.Client, body: Any, field: str, told: str) -> None:
    answer = http.patch(f"{G}/edges", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_body"), problem
    assert problem.get("field", "") == field
    assert told in problem["detail"]
    assert places(http) == (X, Y)


def test_a_graph_without_coordinates_takes_none(http: httpx.Client) -> None:
    http.put("/v1/graphs/bare", json=PLAIN)
    problem = http.patch("/v1/graphs/bare/edges", json={"op": "insert", "vertices": ["w"], "x": [1], "y": [1]}).json()
    assert (problem["code"], problem["field"]) == ("invalid_body", "/x")
    assert "have no coordinates" in problem["detail"]


CLUMSY: list[tuple[dict[str, Any], str, str]] = [
    ({"x": X}, "invalid_body", "/y"),
    ({"y": Y}, "invalid_body", "/x"),
    ({"x": X, "y": Y[:3]}, "invalid_body", "/y"),
    ({"x": X[:3], "y": Y}, "invalid_body", "/x"),
    ({"x": [*X[:3], None], "y": Y}, "invalid_body", "/x"),
    ({"x": X, "y": [*Y[:3], "49.4"]}, "invalid_body", "/y"),
    ({"x": X, "y": [*Y[:3], True]}, "invalid_body", "/y"),
    ({"x": [*X[:3], 10**400], "y": Y}, "invalid_body", "/x"),
    ({"x": {"s": 1}, "y": Y}, "invalid_body", "/x"),
    ({"crs": "EPSG:4326"}, "invalid_body", "/crs"),
    ({"x": X, "y": Y, "crs": 4326}, "invalid_body", "/crs"),
    ({"x": X, "y": Y, "crs": " "}, "invalid_body", "/crs"),
    ({"x": X, "y": Y, "crs": "E" * 65}, "too_large", "/crs"),
    ({"lon": X, "lat": Y}, "invalid_body", "/lat"),
]


@pytest.mark.parametrize(("columns", "code", "field"), CLUMSY, ids=lambda value: str(value)[:50])
def test_loads_that_are_refused(http: httpx.Client, columns: dict[str, Any], code: str, field: str) -> None:
    answer = http.put("/v1/graphs/clumsy", json=PLAIN | columns)
    problem = answer.json()
    assert (problem["code"], problem["field"]) == (code, field), problem
    assert http.get("/v1/graphs/clumsy").status_code == 404


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "1e999"])
def test_coordinates_are_finite(http: httpx.Client, literal: str) -> None:
    body = json.dumps(CITY).replace("1e-07", literal)
    problem = http.put("/v1/graphs/clumsy", content=body, headers={"Content-Type": "application/json"}).json()
    assert (problem["code"], problem["field"], problem["rows"]) == ("invalid_body", "/x", [3]), problem
    edges = read_npz(http.get(f"{G}/export").content)
    assert edges.coordinates is not None
    broken = edges.coordinates.y.copy()
    broken[1] = float(literal)
    object.__setattr__(edges, "coordinates", Coordinates(edges.coordinates.x, broken))
    for write, media in ((write_npz, "application/x-npz"), (write_arrow, "application/vnd.apache.arrow.stream")):
        problem = http.put("/v1/graphs/clumsy", content=write(edges), headers={"Content-Type": media}).json()
        assert (problem["code"], problem["field"], problem["rows"]) == ("invalid_body", "/y", [1]), problem


def test_a_map(http: httpx.Client) -> None:
    for question in ("max-flow", "min-cut"):
        answer = http.post(f"{G}/{question}", json={}, headers=MAP)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/geo+json"
        assert "Accept" in answer.headers["vary"]
        found = answer.json()
        plain = http.post(f"{G}/max-flow", json={"fields": ["flow", "cut"]}).json()
        assert (found["type"], found["value"], found["certificate"]["valid"]) == ("FeatureCollection", 6, True)
        flows = {f["properties"]["id"]: f["properties"]["flow"] for f in found["features"]}
        assert flows == dict(zip(plain["flow"]["edges"], plain["flow"]["amount"], strict=True))
        cut = {f["properties"]["id"] for f in found["features"] if f["properties"]["in_cut"]}
        assert cut == set(plain["cut"]["edges"])
        by_id = {f["properties"]["id"]: f for f in found["features"]}
        at = dict(zip(CITY["vertex_labels"], zip(X, Y, strict=True), strict=True))
        for edge, tail, head, capacity in zip(
            *(CITY[c] for c in ("edge_ids", "tail", "head", "capacity")), strict=True
        ):
            if edge in by_id:
                assert by_id[edge]["type"] == "Feature"
                assert by_id[edge]["properties"]["capacity"] == capacity
                assert by_id[edge]["geometry"] == {"type": "LineString", "coordinates": [[*at[tail]], [*at[head]]]}
    every = http.post(f"{G}/max-flow", json={"flow": {"zeros": True}}, headers=MAP).json()
    assert len(every["features"]) == len(CITY["tail"])


def test_a_map_is_not_asked_for_less(http: httpx.Client) -> None:
    """It shows the flow and the cut, and no sides, whatever is said."""
    for question in ("max-flow", "min-cut"):
        for body, field in (
            ({"fields": ["value"]}, "/fields"),
            ({"fields": ["cut"]}, "/fields"),
            ({"cut": {"sides": False}}, "/cut/sides"),
            ({"cut": {"sides": True}}, "/cut/sides"),
        ):
            problem = http.post(f"{G}/{question}", json=body, headers=MAP).json()
            assert (problem["status"], problem["code"], problem["field"]) == (422, "invalid_body", field)
        both = http.post(f"{G}/{question}", json={"fields": ["cut", "flow"]}, headers=MAP).json()
        assert both["features"] == http.post(f"{G}/{question}", json={}, headers=MAP).json()["features"]


def test_a_map_with_odd_names_and_unlimited_edges(http: httpx.Client) -> None:
    odd = ['a"b', "c\\d\n", "ü,", "plain"]
    body = {
        "tail": [0, 0, 1, 2],
        "head": [1, 2, 3, 3],
        "capacity": [0.25, 1, "inf", 3],
        "edge_ids": odd,
        "x": X,
        "y": Y,
    }
    http.put("/v1/graphs/odd", json=body | {"source": 0, "sink": 3, "closed": [False, False, False, False]})
    found = http.post("/v1/graphs/odd/min-cut", headers=MAP).json()["features"]
    assert [f["properties"] for f in found] == [
        {"id": odd[0], "flow": 0.25, "capacity": 0.25, "in_cut": True},
        {"id": odd[1], "flow": 1, "capacity": 1, "in_cut": True},
        {"id": odd[2], "flow": 0.25, "capacity": "inf", "in_cut": False},
        {"id": odd[3], "flow": 1, "capacity": 3, "in_cut": False},
    ]


def test_a_long_map(http: httpx.Client) -> None:
    n = 20_000
    body = {"tail": [0] * n + [*range(1, n + 1)], "head": [*range(1, n + 1)] + [n + 1] * n, "capacity": [1] * (2 * n)}
    places = {"x": [i / 7 for i in range(n + 2)], "y": [0.5] * (n + 2)}
    http.put("/v1/graphs/long", json=body | places)
    found = http.post("/v1/graphs/long/max-flow", json={"sources": [0], "sinks": [n + 1]}, headers=MAP).json()
    assert (found["value"], len(found["features"])) == (n, 2 * n)
    assert [f["geometry"]["coordinates"][1][0] for f in found["features"][:n]] == places["x"][1 : n + 1]
    http.delete("/v1/graphs/long")


def test_maps_that_are_refused(http: httpx.Client) -> None:
    http.put("/v1/graphs/bare", json=PLAIN)
    http.put("/v1/graphs/utm", json=CITY | {"crs": "EPSG:32632"})
    assert http.get("/v1/graphs/utm").json()["coordinates"] == "EPSG:32632"
    for graph, told in (("bare", "have no coordinates"), ("utm", "those of this graph are of EPSG:32632")):
        answer = http.post(f"/v1/graphs/{graph}/max-flow", json={}, headers=MAP)
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (406, "not_acceptable")
        assert told in problem["detail"]
    answer = http.post(f"{G}/max-flow", json={"fields": ["paths"]}, headers=MAP)
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")
    for other in ("matching", "min-cost-flow"):
        assert http.post(f"{G}/{other}", json={}, headers=MAP).status_code == 406
    hint = http.post(f"{G}/max-flow", json={}, headers={"Accept": "application/geojson"}).json()["detail"]
    assert "did you mean application/geo+json?" in hint
    http.put("/v1/graphs/lower", json=CITY | {"crs": "epsg:4326"})
    assert http.post("/v1/graphs/lower/max-flow", json={}, headers=MAP).status_code == 200


def test_who_takes_another_form_as_well_gets_it_where_there_is_no_map(http: httpx.Client) -> None:
    http.put("/v1/graphs/bare", json=PLAIN)
    http.put("/v1/graphs/utm", json=CITY | {"crs": "EPSG:32632"})
    either, arrow = f"{MAP['Accept']}, application/json;q=0.9", f"{MAP['Accept']}, application/*;q=0.1"

    def form(graph: str, accept: str, **body: Any) -> str:
        answer = http.post(f"/v1/graphs/{graph}/max-flow", json=body, headers={"Accept": accept})
        assert answer.status_code == 200, answer.text
        assert "Accept" in answer.headers["vary"]
        return answer.headers["content-type"]

    assert form("bare", either) == form("utm", either) == form("bare", arrow) == "application/json"
    assert form("bare", f"{MAP['Accept']}, application/x-npz;q=0.2") == "application/x-npz"
    assert form("city", either, fields=["paths"]) == form("city", either, fields=["value"]) == "application/json"
    assert form("city", either) == "application/geo+json"
    missing = http.post("/v1/graphs/none/max-flow", json={}, headers={"Accept": either})
    assert missing.json()["code"] == "unknown_graph"
    wrong = http.post(f"{G}/max-flow", json={"fields": ["path"]}, headers={"Accept": either})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_body")


def test_they_go_to_networkx_and_igraph_and_back(service: Service, http: httpx.Client) -> None:
    http.patch(f"{G}/lower", json={"edges": ["a"], "set": [1]}).raise_for_status()
    with Client(service.url) as client:
        city = client.graph("city")

        def same(name: str, **columns: Any) -> None:
            again = client.put_graph(name, source="s", sink="t", **columns)
            assert again.info.coordinates == "EPSG:4326"
            page = again.vertices()
            assert page.x is not None
            assert page.y is not None
            found = dict(zip(page.vertices, zip(page.x, page.y, strict=True), strict=True))
            assert found == dict(zip("suvt", zip(X, Y, strict=True), strict=True))
            assert again.max_flow().value == city.max_flow().value
            again.delete()

        drawn = city.to_networkx(page=3)
        assert (type(drawn), drawn.graph["crs"]) == (nx.DiGraph, "EPSG:4326")
        assert (drawn.nodes["v"], drawn.edges["s", "u"]["lower"]) == ({"x": X[2], "y": Y[2]}, 1)
        same("drawn", graph=drawn)
        streets = city.to_networkx(multigraph=True, page=2)
        assert type(streets) is nx.MultiDiGraph
        roads = from_osmnx(streets, capacity="capacity")
        assert (roads.x.tolist(), roads.y.tolist()) == (X, Y)
        same("streets", graph=roads)
        plotted = city.to_igraph(page=2)
        assert (plotted["crs"], plotted.vs["name"], plotted.vs["x"], plotted.vs["y"]) == ("EPSG:4326", [*"suvt"], X, Y)
        assert plotted.es["id"] == [*"abcde"]
        assert plotted.es["lower"] == [1, 0, 0, 0, 0]
        same("plotted", graph=plotted)
        plotted.vs["lon"] = plotted.vs["x"]
        del plotted["crs"]
        assert "x" not in columns_of(plotted, {})
        assert columns_of(plotted, {"x": "lon", "y": "y", "crs": "EPSG:32632"})["x"] == X
        with pytest.raises(InvalidInput, match="has no attribute 'lat'"):
            columns_of(plotted, {"x": "lon", "y": "lat"})

        async def apart() -> Any:
            async with AsyncClient(service.url) as other:
                return await (await other.graph("city")).to_igraph()

        assert asyncio.run(apart()).vs["y"] == Y
        plain = client.put_graph("plain", tail=[0, 1], head=[1, 2], capacity=[math.inf, 2], undirected=True)
        without = plain.to_igraph()
        assert (without.is_directed(), without.vcount(), without.es["capacity"]) == (False, 3, [math.inf, 2])
        assert not {"x", "name"} & {*without.vs.attributes()}
        assert "crs" not in plain.to_networkx().graph
        plain.delete()
