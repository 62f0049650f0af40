"""Graphs that are loaded, listed, estimated and deleted: bodies, headers and what the worker is told."""

import gzip
import io
import json
import re

import numpy as np
import pytest
from headrace import Client, _calls

from gpu_engine import formats
from service.protocol import Kind
from tests.contract.bodies import ARROW, EDGES, JSON, arrow
from tests.contract.fakes import CITY, Api


def npz() -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **{name: np.array(column) for name, column in EDGES.items()})
    return sink.getvalue()


GRAPHS = {
    "application/json": json.dumps(EDGES).encode(),
    "application/json; charset=utf-8": json.dumps(EDGES).encode(),
    ARROW: arrow(tail=[0, 1], head=[1, 2], capacity=[3.0, 2.5]),
    "application/x-npz": npz(),
    "text/x-dimacs": b"p max 3 2\nn 1 s\nn 3 t\na 1 2 30\na 2 3 25\n",
    "text/x-matrix-market": b"%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 3\n2 3 2.5\n",
    "text/csv": b"tail,head,capacity\n0,1,3\n1,2,2.5\n",
}


@pytest.mark.parametrize("media_type", list(GRAPHS))
@pytest.mark.parametrize(("name", "status"), [("new", 201), ("city", 200)])
def test_put_in_every_format(api: Api, media_type: str, name: str, status: int) -> None:
    api.fakes.dispatcher.answer = lambda sent: {"version": 1, "replaced": sent.graph == "city"}
    response = api.http.put(f"/v1/graphs/{name}", content=GRAPHS[media_type], headers={"Content-Type": media_type})
    assert response.status_code == status, response.text
    assert response.headers["etag"] == '"1"'
    (sent,) = api.fakes.dispatcher.sent
    assert (sent.kind, sent.graph, sent.args.blob) == (Kind.LOAD, name, "blob-1")
    edges = formats.unpack(api.fakes.blobs.blobs[0])
    assert edges.tail.tolist() == [0, 1]
    assert edges.head.tolist() == [1, 2]
    assert edges.capacity.tolist() == [30, 25]


def test_put_gzipped_and_with_its_version(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: {"version": 1, "replaced": True}
    headers = JSON | {"Content-Encoding": "gzip", "If-Match": '"7"'}
    response = api.http.put("/v1/graphs/city", content=gzip.compress(json.dumps(EDGES).encode()), headers=headers)
    assert response.status_code == 200
    assert api.fakes.dispatcher.sent[0].args.if_match == 7  # the worker has the last word


def test_delete_with_its_version(api: Api) -> None:
    assert api.http.delete("/v1/graphs/city", headers={"If-Match": '"7"'}).status_code == 204
    assert api.http.delete("/v1/graphs/city", headers={"If-Match": "*"}).status_code == 204
    assert [sent.args.if_match for sent in api.fakes.dispatcher.sent] == [7, "*"]


@pytest.mark.parametrize(
    ("tag", "wanted"),
    [
        ('"7"', 7),
        ('"5", "7"', [5, 7]),
        ('"5","7",', [5, 7]),
        (', "7" ,\t"8"', [7, 8]),
        ('W/"7", "7"', 7),
        ('"x", "7", "a,b"', 7),
        ('"7",' * 100, [7] * 100),
    ],
)
def test_lists_of_versions(api: Api, tag: str, wanted: object) -> None:
    api.fakes.dispatcher.answer = lambda _: {"version": 8, "applied": 1, "replaced": True}
    headers, body = JSON | {"If-Match": tag}, json.dumps(EDGES).encode()
    assert api.http.put("/v1/graphs/city", content=body, headers=headers).status_code == 200
    patch = json.dumps({"edges": ["a"], "set": [1]}).encode()
    assert api.http.patch("/v1/graphs/city/capacities", content=patch, headers=headers).status_code == 200
    assert api.http.delete("/v1/graphs/city", headers=headers).status_code == 204
    assert [sent.args.if_match for sent in api.fakes.dispatcher.sent] == [wanted] * 3


def test_a_graph_that_must_be_new(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: {"version": 1, "replaced": False}
    body = json.dumps(EDGES).encode()
    assert api.http.put("/v1/graphs/new", content=body, headers=JSON | {"If-None-Match": "*"}).status_code == 201
    assert api.fakes.dispatcher.sent[0].args.if_match == "absent"  # the worker has the last word


def test_graphs(api: Api) -> None:
    expected = json.loads(CITY.model_dump_json())
    assert api.http.get("/v1/graphs").json() == {"graphs": [expected], "next": None}
    one = api.http.get("/v1/graphs/city")
    assert one.json() == expected
    assert re.fullmatch(r'"[0-9a-f]{12}\.7"', one.headers["etag"])
    assert one.json()["created_at"] == "2026-01-31T12:00:00Z"
    gone = api.http.delete("/v1/graphs/city", headers={"If-Match": '"7"'})
    assert (gone.status_code, gone.content) == (204, b"")
    assert api.fakes.dispatcher.sent[0].kind is Kind.DELETE


def test_pages_of_graphs(api: Api) -> None:
    api.fakes.catalogue.graphs |= {name: CITY.model_copy(update={"name": name}) for name in ("a", "b", "z")}
    first = api.http.get("/v1/graphs?limit=2").json()
    assert ([graph["name"] for graph in first["graphs"]], first["next"]) == (["a", "b"], "b")
    second = api.http.get("/v1/graphs?limit=2&after=b").json()
    assert ([graph["name"] for graph in second["graphs"]], second["next"]) == (["city", "z"], None)
    with Client(str(api.http.base_url)) as client:
        call = client._caller.ask(_calls.graphs("b"))
    assert ([graph.name for graph in call.graphs], call.next) == (["city", "z"], None)
    api.fakes.catalogue.graphs |= {f"n{number}": CITY for number in range(300)}
    status = api.http.get("/status").json()
    assert (status["n_graphs"], len(status["graphs"])) == (304, 200)
    for path in ("limit=0", "limit=1001", "after=" + "x" * 129):
        assert api.http.get(f"/v1/graphs?{path}").json()["code"] == "invalid_request"


def test_estimate(api: Api) -> None:
    answer = api.http.post("/v1/graphs:estimate", json={"n_vertices": 10, "n_edges": 100}).json()["host"]
    assert answer["fits"]
    assert 0 < answer["bytes"] < 5000
    assert 0 < answer["bytes_per_flow_state"] < 5000
    large = api.http.post("/v1/graphs:estimate", json={"n_vertices": 10, "n_edges": 10**9}).json()["host"]
    assert not large["fits"]
    assert large["free_bytes"] == answer["free_bytes"]


@pytest.mark.parametrize(
    ("counts", "field"),
    [
        ({"n_vertices": 0, "n_edges": 5}, "/n_vertices"),
        ({"n_vertices": 3, "n_edges": 9, "n_links": 4}, "/n_links"),
        ({"n_vertices": 3, "n_edges": 5, "n_twins": 1}, "/n_twins"),
        ({"n_vertices": 3, "n_edges": 5, "n_two_way": 1}, "/n_two_way"),
        ({"n_vertices": 3, "n_edges": 5, "n_limited": 1, "n_two_way": 6}, "/n_two_way"),
    ],
)
def test_an_estimate_for_what_no_graph_can_be_is_refused(api: Api, counts: dict[str, int], field: str) -> None:
    refused = api.http.post("/v1/graphs:estimate", json=counts).json()
    assert (refused["code"], refused["field"]) == ("invalid_body", field)
    whole = {"n_vertices": 3, "n_edges": 5, "n_links": 3, "n_limited": 1, "n_twins": 5, "n_two_way": 5}
    assert api.http.post("/v1/graphs:estimate", json=whole).status_code == 200


def test_decimals_and_rounding_of_a_load(api: Api) -> None:
    url, body = "/v1/graphs/city", {"tail": [0], "head": [1], "capacity": [1 / 3]}
    refused = api.http.put(url, json=body).json()
    assert (refused["code"], refused["rows"]) == ("invalid_body", [0])
    assert "decimals=6 and rounding=nearest" in refused["detail"]
    for query in ("?rounding=nearest", "?decimals=6", "?decimals=6&rounding=error"):
        assert api.http.put(url + query, json=body).json()["code"] == "invalid_body"
    for query in ("?decimals=10", "?decimals=-1", "?decimals=a", "?decimals=1&rounding=exact"):
        assert api.http.put(url + query, json=body).json()["code"] == "invalid_request"
    digests = []
    for query in ("?decimals=6&rounding=nearest", "?decimals=6&rounding=up", "?decimals=5&rounding=nearest"):
        assert api.http.put(url + query, json=body, headers={"Idempotency-Key": "k"}).status_code == 201
        digests.append(api.fakes.dispatcher.sent[-1].body_digest)
    assert len(set(digests)) == 3
