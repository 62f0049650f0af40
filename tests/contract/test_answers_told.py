"""The OpenAPI document tells of every member that answers have: real answers of each route are held against it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service.api.app import create_app
from service.settings import Settings
from tests.serving import eventually
from tests.shared_services import WEBHOOKS, Services

N = "/v1/graphs/{name}"

#        3, 1          2, 2
#   s ---------> a ----------> t       capacity, cost; b lets 4 pass
#    \                        ^
#     \  4, 1          5, 1  /
#      +------> b ----------+
FULL: dict[str, Any] = {
    "tail": ["s", "a", "s", "b"],
    "head": ["a", "t", "b", "t"],
    "capacity": [3, 2, 4, 5.12],
    "edge_ids": ["s-a", "a-t", "s-b", "b-t"],
    "vertex_labels": ["s", "a", "b", "t"],
    "source": "s",
    "sink": "t",
    "vertices": ["b"],
    "vertex_capacity": [4],
    "x": [0, 1, 1, 2],
    "y": [0, 1, -1, 0],
    "decimals": 2,
}
COSTLY = {name: FULL[name] for name in ("tail", "head", "edge_ids", "vertex_labels", "source", "sink")} | {
    "capacity": [3, 2, 4, 5],
    "cost": [1, 2, 1, 1],
}
UNDIRECTED = {"tail": [0, 1, 2], "head": [1, 2, 0], "capacity": [3, 2, 4], "undirected": True}
PAIRED = {"tail": [0, 0, 1], "head": [2, 3, 3], "capacity": [1, 1, 1]}
SHOPPED = {"tail": ["w", "w"], "head": ["c", "d"], "capacity": [5, 5], "lower": [1, 0]}

GRAPHS = {"told": FULL, "costly": COSTLY, "ring": UNDIRECTED, "shift": PAIRED, "shop": SHOPPED}
FIELDS = ["value", "cut", "flow", "terminals", "paths"]
ENDS: dict[str, Any] = {"sources": ["s"], "sinks": ["t"], "supply": [7], "demand": ["inf"]}
CLOSED: dict[str, Any] = {"batch": [{"edges": ["s-a"], "op": "close"}]}
GROWN = [
    {"op": "insert", "vertices": ["w"], "x": [1], "y": [1], "capacity": [2.001]},
    {"op": "insert", "edge_ids": ["s-w"], "tail": ["s"], "head": ["w"], "capacity": [2]},
]
NEW = {"op": "insert", "edge_ids": ["a-b"], "tail": ["a"], "head": ["b"], "capacity": [1], "cost": [1]}

QUESTIONS: list[tuple[str, str, dict[str, Any]]] = [
    *((name, path, {}) for name in ("told", "costly") for path in ("max-flow", "min-cut")),
    *(("costly", path, ENDS | {"fields": [*FIELDS, "bottlenecks"]}) for path in ("max-flow", "min-cut")),
    ("told", "max-flow", {"fields": [*FIELDS, "bottlenecks"]}),
    ("costly", "max-flow", {"fields": ["bottlenecks"], "bottlenecks": {"up_to": 2}}),
    ("shop", "max-flow", {"sources": [0], "sinks": [1]}),
    ("costly", "min-cost-flow", {"fields": ["value", "cost", "flow", "terminals", "dual", "paths"]}),
    ("costly", "min-cost-flow", {}),
    ("shift", "matching", {}),
    ("told", "what-if", {"scenarios": [CLOSED | {"vertex_batch": [{"vertices": ["b"], "set": [1]}]}]}),
    ("costly", "what-if", ENDS | {"fields": [*FIELDS, "bottlenecks"], "scenarios": [CLOSED | {"id": 1}]}),
    ("costly", "what-if", {"scenarios": [{"batch": [{"edges": ["x"], "op": "close"}]}]}),
    *((name, "closure-study", {"close": of}) for name in ("told", "costly") for of in ("edges", "vertices")),
    ("costly", "closure-study", {"candidates": [["s-a", "s-b"]]}),
    ("costly", "pairs", {"among": ["s", "a", "t"], "fields": FIELDS}),
    ("costly", "pairs", {"source": ["s", "x", "s"], "sink": ["t", "t", "s"]}),
    ("ring", "gomory-hu-tree", {"terminals": [0, 1], "fields": ["tree", "groups"]}),
    ("ring", "global-min-cut", {}),
    ("costly", "parametric", {"edges": ["s-a"], "to": 2}),
    ("costly", "capacity-expansion", {"raise_by": 1, "edges": ["a-t", "s-a"], "price": [1, 1]}),
    ("shop", "circulation", {}),
    ("shop", "circulation", {"supply": [1, 2], "sources": [0], "sinks": [1, 2], "demand": [1, 1]}),
    ("costly", "circulation", {"lower_edges": ["s-a"], "lower": [1]}),
    ("costly", "partition", {"k": 2}),
]


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent(WEBHOOKS) as service:
        yield service.http


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app(Settings()).openapi()


def untold(document: dict[str, Any], schema: dict[str, Any], value: Any, place: str = "") -> list[str]:
    """The members of a value of which its schema says nothing, each with its place."""
    if "$ref" in schema:
        return untold(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], value, place)
    if "anyOf" in schema:
        return min((untold(document, each, value, place) for each in schema["anyOf"]), key=len)
    if isinstance(value, list):
        items = schema.get("items", {})
        return [found for i, each in enumerate(value) for found in untold(document, items, each, f"{place}/{i}")]
    if not isinstance(value, dict):
        return [place] if schema.get("type") in ("object", "array") else []
    told, rest = schema.get("properties", {}), schema.get("additionalProperties", False)
    found: list[str] = []
    for name, member in value.items():
        if name in told or isinstance(rest, dict):
            found += untold(document, told.get(name, rest), member, f"{place}/{name}")
        elif not rest:
            found.append(f"{place}/{name}")
    return found


class Tour:
    """Asks a service, and holds its answers against the document."""

    def __init__(self, http: httpx.Client, document: dict[str, Any]) -> None:
        self._http = http
        self._document = document
        self.answered: set[tuple[str, str, str]] = set()

    def ask(self, method: str, path: str, body: object = None, query: str = "", **names: str) -> Any:
        """The answer, whatever it is. Asserts that the document tells of all of it."""
        answer = self._http.request(method, path.format(**names) + query, json=body)
        if answer.status_code == 204:
            return None
        responses, status = self._document["paths"][path][method.lower()]["responses"], str(answer.status_code)
        told = responses.get(status, responses["default"])["content"]
        schema = told[answer.headers["content-type"]]["schema"]
        found = answer.json()
        assert not untold(self._document, schema, found), (method, path, found)
        self.answered.add((method.lower(), path, status))
        return found


@pytest.fixture(scope="module")
def tour(http: httpx.Client, document: dict[str, Any]) -> Tour:
    tour = Tour(http, document)
    for name, columns in GRAPHS.items():
        assert not tour.ask("PUT", N, columns, name=name)["replaced"]
    assert tour.ask("PUT", N, FULL, "?decimals=1&rounding=down", name="told")["rounded"]
    return tour


@pytest.mark.parametrize(("name", "path", "body"), QUESTIONS, ids=[f"{path} {name}" for name, path, _ in QUESTIONS])
def test_of_questions(tour: Tour, name: str, path: str, body: dict[str, Any]) -> None:
    tour.ask("POST", f"{N}/{path}", body, name=name)
    assert ("post", f"{N}/{path}", "200") in tour.answered


def test_of_graphs_and_their_pages(tour: Tour) -> None:
    tour.ask("GET", "/v1/graphs")
    tour.ask("POST", "/v1/graphs:estimate", {"n_vertices": 10, "n_edges": 10})
    for name in GRAPHS:
        tour.ask("GET", N, name=name)
        for page in ("capacities", "vertices"):
            tour.ask("GET", f"{N}/{page}", name=name)
    assert tour.ask("GET", f"{N}/vertices", query="?all=true", name="told")["x"]
    tour.ask("POST", f"{N}:copy", {"to": "copied"}, name="told")
    tour.ask("POST", f"{N}/snapshots", name="told")
    tour.ask("GET", f"{N}/snapshots", name="told")
    assert tour.ask("GET", N, name="nobody")["code"] == "unknown_graph"


def test_of_updates(tour: Tour) -> None:
    tour.ask("POST", f"{N}/max-flow", {}, name="told")
    for query in ("?rounding=down&dry_run=true", "?rounding=down"):
        tour.ask("PATCH", f"{N}/capacities", {"edges": ["s-a"], "set": [2.001]}, query, name="told")
        tour.ask("PATCH", f"{N}/vertices", {"vertices": ["b"], "set": [2]}, query, name="told")
        tour.ask("PATCH", f"{N}/costs", {"edges": ["s-a"], "set": [2.5]}, query, name="costly")
        tour.ask("PATCH", f"{N}/lower", {"edges": [0], "set": [0]}, query, name="shop")
        tour.ask("PATCH", f"{N}/edges", {"batch": GROWN}, query, name="told")
        tour.ask("PATCH", f"{N}/edges", NEW, query, name="costly")
        tour.ask("PATCH", f"{N}/edges", {"op": "insert", "count": 1}, query, name="ring")
    assert tour.ask("PATCH", f"{N}/edges", {"op": "delete", "vertices": ["b"]}, name="told")["deleted"]["edges"]
    assert tour.ask("PATCH", f"{N}/capacities", {"edges": ["x"], "set": [1]}, name="told")["edges"] == ["x"]


def test_of_a_restore(tour: Tour) -> None:
    """It brings back what was deleted, and takes away what came."""
    told = tour.ask("PUT", N, FULL, name="told")
    for body in ({"batch": GROWN}, {"op": "delete", "vertices": ["b"]}):
        tour.ask("PATCH", f"{N}/edges", body, "?rounding=down", name="told")
    restored = tour.ask("POST", f"{N}:restore", {"version": told["version"]}, name="told")
    assert restored["inserted"] == {"vertices": 0, "edges": 0}
    assert restored["deleted"] == {"edges": 1, "vertices": 0}
    assert restored["applied"] == 5  # three edges, b, and w, which is unlimited now


def test_of_workers_and_the_service(tour: Tour, http: httpx.Client) -> None:
    worker = tour.ask("GET", "/v1/workers")["workers"][0]["name"]
    tour.ask("GET", "/v1/workers/{worker}", worker=worker)
    tour.ask("DELETE", "/v1/workers/{worker}/drain", worker=worker)
    tour.ask("POST", f"{N}:move", {"to": worker}, name="told")
    for path in ("/livez", "/readyz", "/health", "/status"):
        tour.ask("GET", path)


def test_of_watches_webhooks_and_jobs(tour: Tour) -> None:
    for _ in range(2):
        tour.ask("PUT", f"{N}/watches/{{watch}}", ENDS, name="shift", watch="w")  # of unknown vertices
        tour.ask("PUT", f"{N}/watches/{{watch}}", ENDS, name="costly", watch="w")
        shown = tour.ask(
            "PUT", "/v1/webhooks/{webhook}", {"url": "http://127.0.0.1:9/", "graphs": ["costly"]}, webhook="h"
        )
    assert "secret" not in shown
    tour.ask("PATCH", f"{N}/capacities", {"edges": ["s-a"], "add": [1]}, name="costly")
    tour.ask("GET", f"{N}/watches/{{watch}}", name="costly", watch="w")
    tour.ask("GET", f"{N}/watches", name="costly")
    tour.ask("GET", "/v1/webhooks/{webhook}", webhook="h")
    tour.ask("GET", "/v1/webhooks")
    tour.ask("POST", "/v1/webhooks/{webhook}:rotate", webhook="h")
    listed = "/v1/webhooks/{webhook}/deliveries"
    eventually(lambda: bool(tour.ask("GET", listed, webhook="h")["deliveries"]))
    first = tour.ask("GET", listed, webhook="h")["deliveries"][0]["id"]
    tour.ask("POST", f"{listed}/{{delivery}}:redeliver", webhook="h", delivery=first)
    for job in tour.ask("GET", "/v1/jobs")["jobs"]:
        tour.ask("GET", "/v1/jobs/{job_id}", job_id=job["id"])
    tour.ask("DELETE", "/v1/jobs/{job_id}", job_id=job["id"])


NOT_ASKED = {
    ("get", "/v1/jobs/{job_id}/result", "200"),  # any of the others
    ("put", "/v1/workers/{worker}/drain", "200"),  # as of DELETE; the only worker is not drained
}


def test_all_were_asked(tour: Tour, document: dict[str, Any]) -> None:
    """The last test of this module: a new route has a place in one of those above."""
    told = {
        (method, path, status)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
        if status in ("200", "201") and "application/json" in answer.get("content", {})
    }
    assert told - tour.answered == NOT_ASKED
