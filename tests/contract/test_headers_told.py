"""The OpenAPI document tells of the headers that answers have: real Redis, worker and uvicorn."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service.api.app import create_app
from service.api.openapi import HEADERS
from service.api.replies.signposts import _fits
from service.settings import Settings
from tests.shared_services import Services

G = "/v1/graphs/told"
LINES = {"Accept": "application/x-ndjson"}
GRAPH: dict[str, Any] = {"tail": [0, 0, 1], "head": [1, 2, 2], "capacity": [3, 4, 5], "cost": [1, 1, 1]}
GRAPH |= {"source": 0, "sink": 2, "undirected": True}
CHANGE: dict[str, Any] = {"edges": [0], "set": [9]}
CALLS: list[tuple[int, str, str, Any, dict[str, str]]] = [
    (200, "PUT", G, GRAPH, {}),
    (422, "PUT", G, {}, {}),
    (201, "POST", f"{G}:copy", {"to": "told-too"}, {}),
    (200, "PATCH", f"{G}/capacities", CHANGE, {}),
    (200, "PATCH", f"{G}/costs", CHANGE, {}),
    (412, "PATCH", f"{G}/lower", CHANGE, {"If-Match": '"99"'}),
    (200, "PATCH", f"{G}/vertices?dry_run=true", {"vertices": [1], "set": [1]}, {}),
    (200, "PATCH", f"{G}/edges", {"op": "insert", "tail": [0], "head": [2], "capacity": [1], "cost": [0]}, {}),
    (200, "POST", f"{G}:restore", {"version": 1}, {}),
    (202, "POST", f"{G}/max-flow", {}, {"Prefer": "respond-async"}),
    *((200, "POST", f"{G}/{asked}", {}, {}) for asked in ("max-flow", "min-cut", "gomory-hu-tree", "global-min-cut")),
    (200, "POST", f"{G}/min-cost-flow", {}, {}),
    (200, "POST", f"{G}/partition", {"k": 2}, {}),
    (200, "POST", f"{G}/parametric", {"edges": [0], "from": 0, "to": 1}, {}),
    (200, "POST", f"{G}/capacity-expansion", {"raise_by": 1, "edges": [0, 1], "price": [1, 1]}, {}),
    (200, "POST", f"{G}/closure-study", {}, {}),
    (200, "POST", f"{G}/pairs", {"among": [0, 1]}, LINES),
    (200, "POST", f"{G}/what-if", {"scenarios": []}, {}),
    (200, "POST", f"{G}/what-if", {"scenarios": [{}]}, LINES),
    (200, "POST", f"{G}/snapshots", None, {}),
    (200, "GET", f"{G}/snapshots", None, {}),
    (200, "GET", f"{G}/export", None, {}),
    (304, "GET", f"{G}/export", None, {"If-None-Match": "*"}),
    (304, "GET", f"{G}/capacities", None, {"If-None-Match": "*"}),
    (200, "GET", f"{G}/vertices", None, {}),
    (200, "GET", G, None, {}),
    (304, "GET", G, None, {"If-None-Match": "*"}),
    (405, "POST", G, None, {}),
    (201, "PUT", f"{G}/watches/one", {}, {}),
    (200, "PUT", f"{G}/watches/one", {}, {}),
    (200, "GET", f"{G}/watches/one", None, {}),
    (200, "GET", f"{G}/watches", None, {}),
    (200, "GET", "/v1/graphs", None, {}),
    (200, "GET", "/status", None, {}),
    (200, "GET", "/v1/jobs", None, {}),
]
ALWAYS = {"ETag", "Vary", "Content-Disposition", "Repr-Digest", "Location"}
"""Headers that all answers have of those that are said to have them."""


@pytest.fixture(scope="module")
def paths() -> Any:
    return create_app(Settings()).openapi()["paths"]


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent() as service, httpx.Client(base_url=service.url, timeout=60) as client:
        client.put(G, json=GRAPH)
        yield client


def check(paths: Any, answer: httpx.Response, method: str, path: str) -> None:
    """What an answer has, the document says; and the other way round where there is no condition."""
    template = max((template for template in paths if _fits(path.partition("?")[0], template)), key=len)
    told = paths[template][method.lower()]["responses"]
    said = told.get(str(answer.status_code), told["default"]).get("headers", {})
    has = {name for name in HEADERS if name in answer.headers}
    assert has <= set(said), (method, path, answer.status_code)
    assert ALWAYS & set(said) <= has, (method, path, answer.status_code)


def test_what_an_answer_has_is_in_the_document(http: httpx.Client, paths: Any) -> None:
    """In this order: what comes first makes what others ask for."""
    for status, method, path, body, headers in CALLS:
        answer = http.request(method, path, json=body, headers=headers)
        assert answer.status_code == status, (method, path, answer.text)
        if status != 405:
            check(paths, answer, method, path)
        if status == 202:
            check_job(paths, http, answer.headers["location"])


def check_job(paths: Any, http: httpx.Client, job: str) -> None:
    check(paths, http.get(job, headers={"Prefer": "wait=30"}), "GET", job)
    result = http.get(f"{job}/result", headers={"Prefer": "wait=30"})
    check(paths, result, "GET", f"{job}/result")
    held = http.get(f"{job}/result", headers={"If-None-Match": result.headers["etag"]})
    assert held.status_code == 304
    check(paths, held, "GET", f"{job}/result")


def test_all_headers_that_are_told_are_described(paths: Any) -> None:
    document = create_app(Settings()).openapi()
    assert document["components"]["headers"].keys() == HEADERS.keys()
    for operations in paths.values():
        for operation in operations.values():
            assert "Retry-After" in operation["responses"]["default"]["headers"]
            for answer in operation["responses"].values():
                for name, reference in answer.get("headers", {}).items():
                    assert reference == {"$ref": f"#/components/headers/{name}"}
