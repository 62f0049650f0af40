"""What is answered when all is well: bodies, headers, waiting, jobs and their events."""

import gzip
import io
import json
import re
import socket
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from headrace import Client, _calls

from gpu_engine import formats
from gpu_engine.types import INFINITE
from service.protocol import Kind, PatchArgs, Problem, Status
from tests import bombs
from tests.contract.fakes import CITY, Api

JSON = {"Content-Type": "application/json"}
EDGES = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 2.5], "source": 0, "sink": 2}
PATCH = {"edges": [0], "set": [1]}
ARROW = "application/vnd.apache.arrow.stream"


def never(_: object) -> Status:
    return Status.RUNNING


def arrow(**columns: Any) -> bytes:
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


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
    assert one.headers["etag"] == '"7"'
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
    answer = api.http.post("/v1/graphs:estimate", json={"n_vertices": 10, "n_edges": 100}).json()
    assert answer["fits"]
    assert 0 < answer["bytes"] < 5000
    assert 0 < answer["bytes_per_flow_state"] < 5000
    large = api.http.post("/v1/graphs:estimate", json={"n_vertices": 10, "n_edges": 10**9}).json()
    assert not large["fits"]
    assert large["free_bytes"] == answer["free_bytes"]


def test_patch_as_json(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: {"version": 8, "applied": 2}
    body = b'{"batch": [{"edges": ["a"], "add": [-2.50]}, {"tail": ["A"], "head": ["B"], "op": "close"}]}'
    headers = JSON | {"If-Match": '"7"', "Idempotency-Key": "k 1"}
    response = api.http.patch("/v1/graphs/city/capacities?solve=none", content=body, headers=headers)
    assert (response.status_code, response.headers["etag"]) == (200, '"8"')
    (sent,) = api.fakes.dispatcher.sent
    args = PatchArgs.model_validate_json(sent.args.model_dump_json())
    assert (args.if_match, args.solve) == (7, "none")
    assert args.batch[0].amounts == ["-2.50"]
    assert sent.idempotency_key == "k 1"


@pytest.mark.parametrize(
    ("columns", "op", "amounts"),
    [
        ({"edge": [5, 6], "set": [1, 2]}, "set", ["1", "2"]),
        ({"edge": ["a", "b"], "set": [0.1, float("inf")]}, "set", ["0.1", "inf"]),
        ({"edge": [5, 6], "set": [1, 0], "unlimited": [False, True]}, "set", ["1", "inf"]),
        ({"tail": [0, 1], "head": [1, 2], "add": [-1e-7, 1e22]}, "add", ["-0.0000001", "10000000000000000000000"]),
        ({"edge": pa.array(["a", "b"]).dictionary_encode(), "scale": [2.0, 0.5]}, "scale", ["2.0", "0.5"]),
        ({"edge": [1, 2], "set": pa.array([3, 4], pa.decimal128(10, 2))}, "set", ["3.00", "4.00"]),
    ],
)
def test_patch_as_arrow(api: Api, columns: dict[str, Any], op: str, amounts: list[str]) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", content=arrow(**columns), headers={"Content-Type": ARROW})
    assert response.status_code == 200, response.text
    operation = api.fakes.dispatcher.sent[0].args.batch[0]
    assert (operation.op, operation.amounts) == (op, amounts)


@pytest.mark.parametrize(
    ("column", "verb", "amounts"),
    [
        (pa.array([150, 7, 2**60], pa.int64()), "set", ["1.50", "0.07", "11529215046068469.76"]),
        (pa.array([150, 2**63 - 1], pa.int64()), "set", ["1.50", "92233720368547758.07"]),
        (pa.array([-150, 1], pa.int16()), "add", ["-1.50", "0.01"]),
        (pa.array([2**64 - 1], pa.uint64()), "add", ["184467440737095516.15"]),
        (pa.array([150, 7]), "scale", ["150", "7"]),
        (pa.array([150.0, 0.1], pa.float32()), "set", ["150.0", "0.1"]),
        (pa.array([1, 2], pa.decimal128(4, 0)), "set", ["1", "2"]),
    ],
)
def test_whole_numbers_of_an_arrow_patch_are_units_of_its_decimals(
    api: Api, column: pa.Array, verb: str, amounts: list[str]
) -> None:
    """As in a load, so that a page of capacities can be sent back as it came."""
    content = bombs.stream({"edge": list(range(len(column))), verb: column}, metadata={"decimals": "2", "version": "7"})
    response = api.http.patch("/v1/graphs/city/capacities", content=content, headers={"Content-Type": ARROW})
    assert response.status_code == 200, response.text
    assert api.fakes.dispatcher.sent[0].args.batch[0].amounts == amounts


@pytest.mark.parametrize("decimals", ["10", "-1", "two", ""])
def test_decimals_of_an_arrow_patch_are_checked(api: Api, decimals: str) -> None:
    content = bombs.stream({"edge": [0], "set": [1]}, metadata={"decimals": decimals})
    response = api.http.patch("/v1/graphs/city/capacities", content=content, headers={"Content-Type": ARROW})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")


def test_rounding_beside_the_body(api: Api) -> None:
    """It counts for more than the body's own, and Arrow has no other."""
    url = "/v1/graphs/city/capacities"
    for query, body, meant in (
        ("", {}, "error"),
        ("", {"rounding": "up"}, "up"),
        ("?rounding=down", {"rounding": "up"}, "down"),
        ("?rounding=error", {"rounding": "up"}, "error"),
    ):
        assert api.http.patch(url + query, json={"edges": [1], "set": [2], **body}).status_code == 200
        assert api.fakes.dispatcher.sent[-1].args.rounding == meant
    content = arrow(edge=[5], set=[1 / 3])
    assert (
        api.http.patch(f"{url}?rounding=nearest", content=content, headers={"Content-Type": ARROW}).status_code == 200
    )
    assert api.fakes.dispatcher.sent[-1].args.rounding == "nearest"
    for query in ("?rounding=exact", "?rounding="):
        assert api.http.patch(url + query, json={"edges": [1], "set": [2]}).status_code == 400
    assert api.http.patch(url, json={"edges": [1], "set": [2], "rounding": "exact"}).status_code == 422


def test_the_smallest_amounts_reach_the_worker(api: Api) -> None:
    """It refuses them as too fine or rounds them: both alike for whatever is below every unit."""
    for literal, sent in (("1e-99", "0.000000000000000000001"), ("-1e-999999999", "-0.000000000000000000001")):
        body = f'{{"edges": [1], "add": [{literal}]}}'
        assert api.http.patch("/v1/graphs/city/capacities", content=body, headers=JSON).status_code == 200
        assert api.fakes.dispatcher.sent[-1].args.batch[0].amounts == [sent]


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


@pytest.mark.parametrize("tag", ["*", '"7"'])
def test_a_condition_that_would_not_be_looked_at_is_refused(api: Api, tag: str) -> None:
    headers = {"If-None-Match": tag}
    patched = api.http.patch("/v1/graphs/city/capacities", json={"edges": [1], "set": [2]}, headers=headers)
    for response in (patched, api.http.delete("/v1/graphs/city", headers=headers)):
        assert (response.status_code, response.json()["code"]) == (400, "invalid_request")
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize(
    "columns",
    [
        {"edge": [5, 6]},
        {"edge": [5, None], "set": [1, 2]},
        {"edge": [5, 6], "set": [1, None]},
        {"edge": [5, 6], "set": [1.0, float("nan")]},
        {"edge": [5, 6], "add": [1.0, float("-inf")]},
        {"edge": [5, 6], "set": [1, -2]},
        {"edge": [5, 6], "set": [True, False]},
        {"edge": [5, 6], "set": ["1", "2"]},
        {"edge": [5.0, 6.0], "set": [1, 2]},
        {"edge": pa.array([2**63, 6], pa.uint64()), "set": [1, 2]},
        {"edge": [5, 6], "set": [1, 2], "add": [1, 2]},
        {"edge": [5, 6], "set": [1, 2], "colour": [1, 2]},
        {"tail": [5, 6], "set": [1, 2]},
        {"edge": [5, 6], "set": [1, 2], "unlimited": [0, 1]},
        {"edge": [5, 6], "set": [1, 2], "unlimited": [True, None]},
        {"edge": [5, 6], "add": [1, 2], "unlimited": [True, False]},
        {"edge": [5, 6], "unlimited": [True, False]},
    ],
)
def test_bad_arrow_patches(api: Api, columns: dict[str, Any]) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", content=arrow(**columns), headers={"Content-Type": ARROW})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_body")


def test_the_digest_is_of_the_meaning(api: Api) -> None:
    def digest(path: str, content: bytes, **headers: str) -> str | None:
        response = api.http.patch(path, content=content, headers=JSON | {"Idempotency-Key": "k"} | headers)
        assert response.status_code == 200
        return api.fakes.dispatcher.sent[-1].body_digest

    url = "/v1/graphs/city/capacities"
    first = digest(url, b'{"edges": [1], "set": [2]}')
    assert first is not None
    assert digest(url, b'{"set":[2],"edges":[1],"on_missing":"error"}') == first
    assert digest(url, gzip.compress(b'{"edges": [1], "set": [2]}'), **{"Content-Encoding": "gzip"}) == first
    assert digest(url, b'{"edges": [1], "set": [3]}') != first
    api.http.put("/v1/graphs/city", json=EDGES, headers={"Idempotency-Key": "k"})
    put = api.fakes.dispatcher.sent[-1].body_digest
    assert put is not None
    api.http.put("/v1/graphs/city", json=EDGES | {"sink": 1}, headers={"Idempotency-Key": "k"})
    assert api.fakes.dispatcher.sent[-1].body_digest not in (put, None)


def test_questions(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: {"graph": "city", "version": 7, "value": 6}
    response = api.http.post("/v1/graphs/city/max-flow")
    assert (response.json()["value"], response.headers["etag"]) == (6, '"7"')
    api.http.post("/v1/graphs/city/min-cut", json={"sources": ["A"], "sinks": ["B"], "supply": [2.5]})
    first, second = (sent.args for sent in api.fakes.dispatcher.sent)
    assert (first.fields, first.sources) == ({"value"}, None)
    assert (second.fields, second.sources, second.supply) == ({"value", "cut"}, ["A"], ["2.5"])


def test_numbers_of_the_worker_pass_unchanged(api: Api) -> None:
    text = '{"version": 7, "value": 1152921504606846975.000000001}'
    api.fakes.dispatcher.answer = lambda _: text
    assert api.http.post("/v1/graphs/city/max-flow").text == text
    assert f'"result":{text}' in api.http.get("/v1/jobs/job-0").text


def test_capacities_as_json_and_arrow(api: Api) -> None:
    page = {
        "version": 7,
        "edge_ids": ["a", "b"],
        "tail": [0, 1],
        "head": [1, 2],
        "capacity": [2.5, "inf"],
        "closed": [False, True],
    }
    api.fakes.dispatcher.answer = lambda _: page
    assert api.http.get("/v1/graphs/city/capacities?offset=2&limit=2").json() == page
    assert api.fakes.dispatcher.sent[0].args.model_dump() == {"offset": 2, "limit": 2}
    response = api.http.get("/v1/graphs/city/capacities", headers={"Accept": ARROW})
    assert (response.headers["content-type"], response.headers["etag"]) == (ARROW, '"7"')
    table = pa.ipc.open_stream(response.content).read_all()
    assert table.column("capacity").to_pylist() == [25, 0]
    assert table.column("unlimited").to_pylist() == [False, True]
    assert table.schema.metadata[b"decimals"] == b"1"
    assert formats.read(arrow_without(table, "closed"), ARROW).capacity.tolist() == [25, INFINITE]


@pytest.mark.parametrize(
    ("capacity", "stated", "units", "decimals"),
    [
        ([2.5, 0.25], 0, [250, 25], b"2"),
        ([2.5, "inf"], 2, [250, None], b"2"),
        ([2**61, 1], 9, [2**61, 1], b"0"),
        ([2**61, "inf"], 9, [2**61, None], b"0"),
        ([], 3, [], b"3"),
    ],
)
def test_a_page_of_a_graph_that_was_replaced_meanwhile_is_exact_as_arrow(
    api: Api, capacity: list[Any], stated: int, units: list[int | None], decimals: bytes
) -> None:
    """The catalogue then has the decimals of another graph."""
    ends = list(range(len(capacity)))
    page = {"version": 7, "edge_ids": ends, "tail": ends, "head": ends, "closed": len(ends) * [False]}
    api.fakes.dispatcher.answer = lambda _: page | {"capacity": capacity}
    api.fakes.catalogue.graphs["city"] = CITY.model_copy(update={"decimals": stated})
    response = api.http.get("/v1/graphs/city/capacities", headers={"Accept": ARROW})
    table = pa.ipc.open_stream(response.content).read_all()
    read = zip(table.column("capacity").to_pylist(), table.column("unlimited").to_pylist(), strict=True)
    assert [None if unlimited else amount for amount, unlimited in read] == units
    assert table.schema.metadata[b"decimals"] == decimals


def arrow_without(table: pa.Table, column: str) -> bytes:
    sink = pa.BufferOutputStream()
    table = table.drop_columns([column])
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def test_snapshots(api: Api) -> None:
    assert api.http.get("/v1/graphs/city/snapshots").json() == {"snapshots": []}
    assert api.http.post("/v1/graphs/city/snapshots").status_code == 200
    assert api.fakes.dispatcher.sent[0].kind is Kind.SNAPSHOT


@pytest.mark.parametrize(
    ("prefer", "waited_s", "applied"),
    [
        (None, 5, None),
        ("wait=2", 2, "wait=2"),
        ("wait=1000", 60, "wait=60"),
        ('Wait="3"; x=y', 3, "wait=3"),
        ("handling=strict, wait=4", 4, "wait=4"),
        ("wait=soon", 5, None),
        ("wait=-1", 5, None),
        ("wait=" + "9" * 100, 5, None),
        ("respond-async", None, "respond-async"),
        ("respond-async, wait=5", None, "respond-async"),
        ("wait=0", None, "wait=0"),
    ],
)
def test_waiting(api: Api, prefer: str | None, waited_s: float | None, applied: str | None) -> None:
    api.fakes.dispatcher.answer = never
    response = api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": prefer} if prefer else {})
    assert response.status_code == 202
    assert response.headers["location"] == "/v1/jobs/job-0" == response.json()["location"]
    assert response.json()["id"] == "job-0"
    assert response.headers.get("preference-applied") == applied
    assert api.fakes.dispatcher.waited_s == ([] if waited_s is None else [waited_s])


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_load_and_delete_may_take_longer(api: Api, method: str) -> None:
    api.fakes.dispatcher.answer = never
    content = json.dumps(EDGES).encode() if method == "PUT" else b""
    headers = JSON | {"Prefer": "respond-async"}
    assert api.http.request(method, "/v1/graphs/city", content=content, headers=headers).status_code == 202


def test_jobs(api: Api) -> None:
    outcomes: list[Any] = [{"version": 7, "value": 6}, Problem(code="timeout", detail="late"), Status.RUNNING]
    api.fakes.dispatcher.answer = lambda _: outcomes.pop(0)
    for _ in range(3):
        api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"})
    assert [job["id"] for job in api.http.get("/v1/jobs").json()["jobs"]] == ["job-2", "job-1", "job-0"]
    assert len(api.http.get("/v1/jobs?limit=1").json()["jobs"]) == 1
    done, failed, running = (api.http.get(f"/v1/jobs/job-{number}").json() for number in range(3))
    assert (done["status"], done["result"], done["error"]) == ("succeeded", {"version": 7, "value": 6}, None)
    assert (failed["status"], failed["result"]) == ("failed", None)
    assert (failed["error"]["code"], failed["error"]["status"]) == ("timeout", 504)
    assert (running["status"], running["kind"], running["graph"]) == ("running", "max-flow", "city")
    assert api.http.delete("/v1/jobs/job-2").json()["status"] == "cancelled"
    assert api.http.delete("/v1/jobs/job-0").json()["status"] == "succeeded"


def test_a_job_can_be_held(api: Api) -> None:
    api.fakes.dispatcher.answer = never
    api.http.post("/v1/graphs/city/max-flow", headers={"Prefer": "respond-async"})
    assert api.http.get("/v1/jobs/job-0").headers.get("preference-applied") is None
    held = api.http.get("/v1/jobs/job-0", headers={"Prefer": "wait=3"})
    assert (held.status_code, held.headers["preference-applied"]) == (200, "wait=3")
    assert api.fakes.dispatcher.waited_s == [3]


def test_events(api: Api) -> None:
    api.http.post("/v1/graphs/city/max-flow")
    with api.http.stream("GET", "/v1/jobs/job-0/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        text = response.read().decode()
    assert re.findall(r"event: (\w+)", text) == ["progress", "progress", "done"]
    assert re.findall(r"id: (.*)", text) == ["1-0", "2-0", "3-0"]
    assert 'data: {"pushes":1}' in text.replace(": 1", ":1")
    resumed = api.http.get("/v1/jobs/job-0/events", headers={"Last-Event-ID": "2-0"}).text
    assert re.findall(r"id: (.*)", resumed) == ["3-0"]
    odd = api.http.get("/v1/jobs/job-0/events", headers={"Last-Event-ID": "$; FLUSHALL"}).text
    assert re.findall(r"id: (.*)", odd) == ["1-0", "2-0", "3-0"]


def test_a_caller_that_goes_away_leaves_its_job(api: Api) -> None:
    head = b"POST /v1/graphs/city/max-flow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    with socket.create_connection(api.address, timeout=10) as connection:
        connection.sendall(head)
    deadline = time.monotonic() + 10
    while not api.fakes.dispatcher.sent and time.monotonic() < deadline:
        time.sleep(0.01)
    assert api.http.get("/v1/jobs/job-0").json()["status"] == "succeeded"


def test_a_caller_that_goes_away_in_its_own_body(api: Api) -> None:
    head = (
        b"PUT /v1/graphs/city HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: 100\r\n\r\ntail"
    )
    with socket.create_connection(api.address, timeout=10) as connection:
        connection.sendall(head)
    deadline = time.monotonic() + 10
    counted = 'headrace_http_request_seconds_count{method="PUT",route="/v1/graphs/{name}",status="499"} 1'
    while counted not in api.http.get("/metrics").text:
        assert time.monotonic() < deadline
    assert not api.fakes.dispatcher.sent


@pytest.mark.parametrize(
    ("asked", "kept"), [("abc-1", True), ("x" * 129, False), ("a b", False), ("caf\u00e9".encode(), False)]
)
def test_request_ids(api: Api, asked: str | bytes, kept: bool) -> None:
    response = api.http.get("/livez", headers=[("X-Request-Id", asked)])
    assert (response.headers["x-request-id"] == asked) is kept
    assert re.fullmatch(r"[\x21-\x7e]{1,128}", response.headers["x-request-id"])


def test_service(api: Api) -> None:
    assert api.http.get("/livez").json() == {"status": "live"}
    assert api.http.get("/readyz").json() == {"status": "ready"}
    status = api.http.get("/status").json()
    assert status["version"]
    assert status["redis"]["fsync"] == "everysec"
    assert status["workers"][0]["name"] == "cpu-0"
    assert status["graphs"][0]["name"] == "city"
    assert status["last_update"] == "2026-01-31T12:00:00Z"
    assert status["limits"]["max_patch_rows"] == 100


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/health"])
def test_probes_may_be_asked_by_head(api: Api, path: str) -> None:
    """Many monitors and load balancers ask so. The connection is good for what follows: there was no body."""
    asked, whole = api.http.head(path), api.http.get(path)
    assert (asked.status_code, asked.content, whole.status_code) == (200, b"", 200)
    assert asked.headers["content-length"] == whole.headers["content-length"]
    api.fakes.dispatcher.known_workers = []
    assert api.http.head(path).status_code == api.http.get(path).status_code == (200 if path == "/livez" else 503)
    with socket.create_connection(api.address) as connection:
        connection.sendall(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        said = b"".join(iter(lambda: connection.recv(65536), b""))
    assert said.endswith(b"\r\n\r\n")


def test_metrics(api: Api) -> None:
    api.http.get("/v1/graphs/city")
    api.http.get("/v1/graphs/whatever")
    api.http.request("INVENTED", "/v1/invented")
    response = api.http.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.e+-]+')
    for line in response.text.splitlines():
        assert line.startswith("# ") or sample.fullmatch(line), line
    assert 'route="/v1/graphs/{name}",status="404"' in response.text
    assert "INVENTED" not in response.text
    assert "whatever" not in response.text
    assert 'headrace_worker_ready{worker="cpu-0"} 1' in response.text
