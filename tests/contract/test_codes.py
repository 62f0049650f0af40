"""Every refusal the API process decides: its status, its code, its shape. Never a 500 for bad input."""

import gzip
import json
import pickle
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import zstandard

from gpu_engine.errors import MESSAGE_CHARS, InvalidNetwork
from service.errors import STATUS, TITLES, ServiceError
from service.protocol import Kind, Problem, Status
from tests.contract.fakes import MAX_BODY_BYTES, WORKER, Api

ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}
EDGES = {"tail": [0, 1], "head": [1, 2], "capacity": [3, 2.5]}
PATCH = {"edges": [0], "set": [1]}


def check_problem(response: Any, code: str) -> dict[str, Any]:
    problem: dict[str, Any] = response.json()
    assert problem["code"] == code
    assert response.status_code == STATUS[code] == problem["status"]
    assert response.headers["content-type"] == "application/problem+json"
    assert problem["title"] == TITLES[code]
    assert problem["request_id"] == response.headers["x-request-id"]
    assert problem["detail"]
    assert len(problem["rows"]) <= 10
    return problem


@pytest.mark.parametrize("code", sorted(STATUS))
def test_a_worker_refusal_becomes_the_http_status(api: Api, code: str) -> None:
    api.fakes.dispatcher.answer = lambda _: Problem(code=code, detail="because", rows=[1, "a"])
    problem = check_problem(api.http.post("/v1/graphs/city/max-flow", json={}), code)
    assert (problem["detail"], problem["rows"]) == ("because", [1, "a"])


def test_no_refusal_is_longer_than_a_page() -> None:
    """Whatever of a caller's text stands in it; and on its way through other processes it stays what it was."""
    for refusal in (ServiceError("invalid_body", 100_000 * "x"), InvalidNetwork(100_000 * "x")):
        assert len(str(refusal)) <= MESSAGE_CHARS
        assert str(refusal).endswith("x... (95968 characters left out)")
        assert str(pickle.loads(pickle.dumps(refusal))) == str(refusal)
    assert str(InvalidNetwork(MESSAGE_CHARS * "x")) == MESSAGE_CHARS * "x"


@pytest.mark.parametrize("code", ["rate_limited", "worker_unavailable", "unknown_graph", "idempotency_conflict"])
def test_a_refusal_to_queue(api: Api, code: str) -> None:
    retry_after_s = 2.5 if code in ("rate_limited", "worker_unavailable") else None
    api.fakes.dispatcher.answer = lambda _: ServiceError(code, "no", retry_after_s=retry_after_s)
    response = api.http.patch("/v1/graphs/city/capacities", json=PATCH)
    check_problem(response, code)
    assert response.headers.get("retry-after") == ("3" if retry_after_s else None)


@pytest.mark.parametrize(
    ("code", "after"), [("worker_unavailable", "1"), ("rate_limited", "1"), ("out_of_memory", None), ("timeout", None)]
)
def test_what_may_be_sent_again_says_when(api: Api, code: str, after: str | None) -> None:
    """A worker's own refusal says no time: it is added on the way out."""
    api.fakes.dispatcher.answer = lambda _: Problem(code=code, detail="by the worker")
    response = api.http.post("/v1/graphs/city/max-flow")
    assert response.json()["code"] == code
    assert response.headers.get("Retry-After") == after


def test_a_code_the_api_does_not_know_is_our_fault(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: Problem(code="engine_error", detail="a secret of the inside")
    problem = check_problem(api.http.post("/v1/graphs/city/max-flow"), "internal_error")
    assert "secret" not in problem["detail"]


def test_a_cancelled_job_ends_its_waiting_call(api: Api) -> None:
    api.fakes.dispatcher.answer = lambda _: Status.CANCELLED
    check_problem(api.http.post("/v1/graphs/city/max-flow"), "cancelled")


def test_the_unexpected_is_a_500_without_internals(api: Api) -> None:
    response = api.http.get("/v1/graphs/explode", headers={"X-Request-Id": "r-1"})
    problem = check_problem(response, "internal_error")
    assert problem["request_id"] == "r-1"
    assert "secret" not in response.text


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/v1/nothing", "not_found"),
        ("GET", "/v1/graphs/", "not_found"),
        ("GET", "/v1/graphs/a%2Fb", "invalid_request"),
        ("GET", "/v1/graphs/city%2fcapacities", "invalid_request"),
        ("DELETE", "/v1/graphs/city%2Fwatches%2Fmain", "invalid_request"),
        ("DELETE", "/v1/graphs/city/watches/..%2f..%2fcity", "invalid_request"),
        ("GET", "/v1%2Fgraphs/city", "not_found"),
        ("POST", "/v1/graphs/city", "method_not_allowed"),
        ("PATCH", "/livez", "method_not_allowed"),
        ("GET", "/v1/graphs/unknown", "unknown_graph"),
        ("GET", "/v1/graphs/away", "worker_unavailable"),
        ("GET", "/v1/graphs/unknown/snapshots", "unknown_graph"),
        ("GET", "/v1/graphs/-x", "invalid_request"),
        ("GET", "/v1/graphs/a%0A", "invalid_request"),
        ("GET", "/v1/graphs/" + "x" * 129, "invalid_request"),
        ("GET", "/v1/graphs/caf%C3%A9", "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?limit=0", "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?limit=1&limit=2", "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?offset=1&limit=1&offset=1", "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?limit=100001", "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?offset=-1", "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?offset=" + "9" * 30, "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?limit=1_0", "invalid_request"),
        ("GET", "/v1/graphs/city/capacities?offset=1.0", "invalid_request"),
        ("GET", "/v1/graphs/city/export?version=%2B1", "invalid_request"),
        ("GET", "/v1/jobs/unknown", "unknown_job"),
        ("GET", "/v1/jobs/unknown/events", "unknown_job"),
        ("DELETE", "/v1/jobs/unknown", "unknown_job"),
        ("GET", "/v1/jobs/a*b", "invalid_request"),
        ("GET", "/v1/jobs?limit=0", "invalid_request"),
    ],
)
def test_paths_and_parameters(api: Api, method: str, path: str, code: str) -> None:
    response = api.http.request(method, path)
    check_problem(response, code)
    if code == "method_not_allowed":
        assert response.headers["allow"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/graphs/city/capacities?solve=some",
        "/v1/graphs/city/capacities?solve=all&solve=none",
        "/v1/graphs/city/capacities?solve=none&%73olve=none",
        "/v1/graphs/.x/capacities",
    ],
)
def test_parameters_of_patch(api: Api, path: str) -> None:
    check_problem(api.http.patch(path, json=PATCH), "invalid_request")


def test_which_words_are_true_and_false(api: Api) -> None:
    """Those that docs/api.md names, and no others: what is taken for false by mistake changes the graph."""
    told = (ROOT / "docs" / "api.md").read_text().partition("\n| true and false |")[2].partition("\n")[0]
    yes, no = re.findall(r"`1`.*?`yes`|`0`.*?`no`", told)
    for words, kind in ((yes, Kind.DRY_RUN), (no, Kind.PATCH)):
        for word in ("true" if words is yes else "false", *re.findall(r"`(\w+)`", words)):
            for written in (word, word.upper(), word.title()):
                path = f"/v1/graphs/city/capacities?dry_run={written}"
                assert api.http.patch(path, json=PATCH).status_code == 200, written
                assert api.fakes.dispatcher.sent[-1].kind is kind, written
    for word in ("", "2", "-1", "ja", "none", "null", "tru", "%20true"):
        problem = api.http.patch(f"/v1/graphs/city/capacities?dry_run={word}", json=PATCH)
        check_problem(problem, "invalid_request")
        assert problem.json()["detail"] == "query.dry_run: should be true or false"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 50_000,
        b'{"edges": [0], "set": [NaN]}',
        b'{"edges": [0], "set": [true]}',
        b'{"edges": [0], "set": [-1]}',
        b'{"edges": [0], "set": [1], "colour": "red"}',
        b'{"edges": ["\\ud800"], "set": [1]}',
        b'{"edges": ["a"], "set": [1], "\\ud800": 1}',
        b'{"edges": [0], "set": [1], "edges": [1]}',
    ],
)
def test_bad_patches(api: Api, content: bytes) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", content=content, headers=JSON)
    check_problem(response, "invalid_body")
    assert not api.fakes.dispatcher.sent


def test_a_huge_amount_overflows(api: Api) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", content=b'{"edges": [5], "set": [1e99]}', headers=JSON)
    assert check_problem(response, "capacity_overflow")["rows"] == [0]


def test_too_many_rows(api: Api) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", json={"edges": list(range(101)), "op": "close"})
    check_problem(response, "too_large")


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b'{"source": [0]}', b'{"sources": [true]}', b'{"min_version": 1.5}', b'{"fields": ["x"]}'],
)
@pytest.mark.parametrize("path", ["max-flow", "min-cut", "matching"])
def test_bad_questions(api: Api, path: str, content: bytes) -> None:
    check_problem(api.http.post(f"/v1/graphs/city/{path}", content=content, headers=JSON), "invalid_body")


@pytest.mark.parametrize(
    ("media_type", "content", "code"),
    [
        ("application/json", b"{", "invalid_body"),
        ("application/json", b'{"tail": [0], "head": [1]}', "invalid_body"),
        ("application/json", b'{"tail": [0], "head": [1], "capacity": [true]}', "invalid_body"),
        ("application/json", b'{"tail": [0], "head": [1], "capacity": [-1]}', "invalid_body"),
        ("application/json", b'{"tail": [0], "head": [1], "capacity": [NaN]}', "invalid_body"),
        ("application/json", b'{"tail": [0], "head": [1], "capacity": [1], "x": 1}', "invalid_body"),
        ("application/json", b'{"tail": ["\\ud800"], "head": ["b"], "capacity": [1]}', "invalid_body"),
        ("application/json", b'{"tail": ["a"], "head": ["b"], "capacity": [1], "\\ud800": 1}', "invalid_body"),
        ("application/json", b'{"n_vertices": 1, "tail": [0], "head": [1], "capacity": [1]}', "invalid_body"),
        ("application/json", b'{"tail": [0], "head": [1], "capacity": [9e30]}', "capacity_overflow"),
        ("application/vnd.apache.arrow.stream", b"no arrow", "invalid_body"),
        ("application/x-npz", b"PK\x03\x04 cut off", "invalid_body"),
        ("text/x-dimacs", b"p max 2 1\n", "invalid_body"),
        ("text/x-matrix-market", b"%%MatrixMarket nonsense\n", "invalid_body"),
        ("text/csv", b"tail,head,capacity\n0,1,x\n", "invalid_body"),
        ("text/plain", b"0 1 2\n", "unsupported_media_type"),
        ("application/octet-stream", b"", "unsupported_media_type"),
    ],
)
def test_bad_graphs(api: Api, media_type: str, content: bytes, code: str) -> None:
    response = api.http.put("/v1/graphs/new", content=content, headers={"Content-Type": media_type})
    check_problem(response, code)
    assert not api.fakes.dispatcher.sent
    assert not api.fakes.blobs.blobs


@pytest.mark.parametrize("kind", ["application/xml", "application/graphml+xml", "application/x-ndjson", "image/png"])
def test_no_other_media_type_is_suggested_than_one_that_is_near(api: Api, kind: str) -> None:
    """That both begin with `application/` makes no two alike. Where CSV is not read, no workbook becomes one."""
    answer = api.http.put("/v1/graphs/new", content=b"x", headers={"Content-Type": kind})
    assert "did you mean" not in check_problem(answer, "unsupported_media_type")["detail"]
    headers = {"Content-Type": "application/vnd.ms-excel"}
    answer = api.http.post("/v1/graphs/city/max-flow", content=b"x", headers=headers)
    assert check_problem(answer, "unsupported_media_type")["detail"].endswith(": send application/json")


def test_text_of_another_charset_is_refused(api: Api) -> None:
    """Its bytes may well be UTF-8 too, and name other vertices then. JSON has no charset (RFC 8259, section 11)."""
    body = "tail,head,capacity\nSüd,Nord,3\n".encode()
    for charset in ("iso-8859-1", '"Windows-1252"', "utf-16"):
        headers = {"Content-Type": f"text/csv; header=present; Charset={charset}"}
        told = check_problem(api.http.put("/v1/graphs/new", content=body, headers=headers), "unsupported_media_type")
        assert charset.strip('"').lower() in told["detail"]
        assert told["header"] == "Content-Type"
    for charset in ("utf-8", '"UTF-8"', "us-ascii"):
        headers = {"Content-Type": f"text/csv;charset={charset}"}
        assert api.http.put("/v1/graphs/new", content=body, headers=headers).status_code < 300, charset
    headers = {"Content-Type": "application/json; charset=iso-8859-1"}
    assert api.http.post("/v1/graphs/city/max-flow", content="{}", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PATCH", "/v1/graphs/city/capacities"),
        ("POST", "/v1/graphs/city/max-flow"),
        ("POST", "/v1/graphs/city/matching"),
        ("POST", "/v1/graphs:estimate"),
        ("PUT", "/v1/graphs/city"),
    ],
)
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/xml"}])
def test_other_media_types(api: Api, method: str, path: str, headers: dict[str, str]) -> None:
    check_problem(api.http.request(method, path, content=b"{}", headers=headers), "unsupported_media_type")


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_encoded_bodies(api: Api, encoding: str) -> None:
    compress = gzip.compress if encoding == "gzip" else zstandard.compress
    headers = JSON | {"Content-Encoding": encoding}
    url = "/v1/graphs/city/capacities"
    content = compress(json.dumps(PATCH).encode())
    assert api.http.patch(url, content=content, headers=headers).status_code == 200
    two = compress(b'{"edges": [0],') + compress(b' "set": [1]}')
    assert api.http.patch(url, content=two, headers=headers).status_code == 200
    check_problem(api.http.patch(url, content=content[:-5], headers=headers), "invalid_body")
    check_problem(api.http.patch(url, content=b"not compressed", headers=headers), "invalid_body")
    bomb = compress(bytes(MAX_BODY_BYTES + 1))
    assert len(bomb) < 1000
    check_problem(api.http.patch(url, content=bomb, headers=headers), "too_large")


def test_an_unknown_encoding(api: Api) -> None:
    """`Accept-Encoding` tells it from an unknown media type, whose refusal has none (RFC 7694)."""
    url = "/v1/graphs/city/capacities"
    for encoding in ("br", "gzip, zstd"):
        response = api.http.patch(url, json=PATCH, headers={"Content-Encoding": encoding})
        check_problem(response, "unsupported_media_type")
        assert response.headers["accept-encoding"] == "gzip, x-gzip, zstd"
    assert "accept-encoding" not in api.http.patch(url, content=b"x", headers={"Content-Type": "text/plain"}).headers


def test_a_body_over_the_limit_is_refused_by_its_length(api: Api) -> None:
    head = f"PUT /v1/graphs/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\nContent-Length: {10**12}\r\n\r\n"
    with socket.create_connection(api.address, timeout=10) as connection:
        connection.sendall(head.encode())  # and no byte of the body
        answer = connection.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"too_large"' in answer


def test_a_body_over_the_limit_is_refused_as_it_streams(api: Api) -> None:
    chunks = (b"x" * 50_000 for _ in range(MAX_BODY_BYTES // 50_000 + 1))
    response = api.http.put("/v1/graphs/x", content=chunks, headers={"Content-Type": "text/csv"})
    check_problem(response, "too_large")


@pytest.mark.parametrize("key", ["", "x" * 257, "caf\u00e9".encode()])
def test_idempotency_keys_are_bounded(api: Api, key: str | bytes) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", json=PATCH, headers=[("Idempotency-Key", key)])
    check_problem(response, "invalid_request")


@pytest.mark.parametrize("tag", ['"x"', 'W/"7"', '"a,b", W/"7"', '"-1"', '""', '"' + "9" * 40 + '"'])
def test_if_match_that_is_no_version(api: Api, tag: str) -> None:
    response = api.http.patch("/v1/graphs/city/capacities", json=PATCH, headers={"If-Match": tag})
    check_problem(response, "version_conflict")


OUT_OF_FORM = ["7", "", ",", "'7'", '"7', '7"', '"7" "8"', '"7" x', '*, "7"', 'w/"7"', '"7 8"', '"7",' * 101]


@pytest.mark.parametrize("tag", OUT_OF_FORM)
@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", "city/capacities"), ("PUT", "city"), ("PUT", "new"), ("DELETE", "city")]
)
def test_if_match_out_of_its_form(api: Api, method: str, path: str, tag: str) -> None:
    content = json.dumps(PATCH if method == "PATCH" else EDGES).encode() if method != "DELETE" else b""
    response = api.http.request(method, f"/v1/graphs/{path}", content=content, headers=JSON | {"If-Match": tag})
    check_problem(response, "invalid_request")
    assert api.fakes.dispatcher.sent == []


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"If-None-Match": "*"}, "version_conflict"),
        ({"If-None-Match": '"7"'}, "invalid_request"),
        ({"If-None-Match": ""}, "invalid_request"),
        ({"If-None-Match": "*", "If-Match": '"7"'}, "invalid_request"),
    ],
)
def test_if_none_match_on_a_graph_that_is_there(api: Api, headers: dict[str, str], code: str) -> None:
    response = api.http.put("/v1/graphs/city", content=json.dumps(EDGES).encode(), headers=JSON | headers)
    check_problem(response, code)
    assert api.fakes.dispatcher.sent == []


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize(("name", "tag"), [("city", '"6"'), ("new", '"1"'), ("new", "*")])
def test_if_match_on_whole_graphs(api: Api, method: str, name: str, tag: str) -> None:
    content = json.dumps(EDGES).encode() if method == "PUT" else b""
    response = api.http.request(method, f"/v1/graphs/{name}", content=content, headers=JSON | {"If-Match": tag})
    check_problem(response, "version_conflict")


def test_not_ready(api: Api) -> None:
    api.fakes.dispatcher.known_workers = [WORKER.model_copy(update={"ready": False})]
    response = api.http.get("/readyz")
    check_problem(response, "worker_unavailable")
    assert response.headers["retry-after"] == "1"
    api.fakes.dispatcher.away = True
    for path in ("/readyz", "/status"):
        check_problem(api.http.get(path), "worker_unavailable")
    assert api.http.get("/livez").status_code == 200
    assert "headrace_redis_up 0" in api.http.get("/metrics").text


@pytest.mark.parametrize(
    ("code", "kept"), [("rate_limited", False), ("out_of_memory", False), ("worker_unavailable", True)]
)
@pytest.mark.parametrize("when", ["queued", "run"])
def test_the_edges_of_a_refused_load_do_not_stay(api: Api, code: str, kept: bool, when: str) -> None:
    """In Redis, for an hour: uploads that are refused would fill it. One whose outcome is unknown may yet be loaded."""
    refusal = ServiceError(code, "no") if when == "queued" else Problem(code=code, detail="no")
    api.fakes.dispatcher.answer = lambda _: refusal
    edges = {"tail": [0], "head": [1], "capacity": [3]}
    check_problem(api.http.put("/v1/graphs/new", json=edges), code)
    assert (api.fakes.blobs.deleted == []) is kept


def test_a_repeated_load_is_not_uploaded_again(api: Api) -> None:
    edges, headers = {"tail": [0], "head": [1], "capacity": [3]}, {"Idempotency-Key": "k"}
    for _ in range(2):
        assert api.http.put("/v1/graphs/new", json=edges, headers=headers).status_code == 201
    assert len(api.fakes.blobs.blobs) == 1
