"""Requests that people send by mistake, and what they get: a table to read, each row sent to a real service.

Each refusal has its status, its code, and a phrase that lets whoever sent it act; where something can be named, its
`field`. No answer tells of Python, Redis or the libraries within.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from tests.contract.clumsy_loads import CSV, FILES, JSON, LOADS, NEW, Clumsy, columns, put
from tests.shared_services import Services

CITY, TOWN = "/v1/graphs/city", "/v1/graphs/town"

LIMITS = {
    "HEADRACE_MAX_BODY_BYTES": "100000",
    "HEADRACE_MAX_JSON_BYTES": "20000",
    "HEADRACE_MAX_PATCH_ROWS": "100",
    "HEADRACE_MAX_EDGES": "1000",
}
INTERNALS = (
    "Traceback",
    "redis",
    "numpy",
    "pydantic",
    "NoneType",
    "Extra inputs",
    "Input should",
    "String should",
    "List should",
    "valid boolean",
    "codec",
    "object at 0x",
)

GRAPHS: Mapping[str, Any] = {
    # Numbered vertices; edges have ids, one decimal, b and e are parallel.
    "city": {
        "tail": [0, 0, 1, 2, 0],
        "head": [1, 2, 3, 3, 2],
        "capacity": [3, 2.5, 4, 2, 1],
        "edge_ids": ["a", "b", "c", "d", "e"],
        "source": 0,
        "sink": 3,
    },
    # Labelled vertices, whole amounts.
    "town": {
        "tail": ["S", "S", "Anna", "Bert"],
        "head": ["Anna", "Bert", "T", "T"],
        "capacity": [3, 2, 4, 3],
        "edge_ids": ["s-a", "s-b", "a-t", "b-t"],
        "source": "S",
        "sink": "T",
    },
    "without-terminals": {"tail": [0], "head": [1], "capacity": [1]},
    "endless": {"tail": ["S"], "head": ["T"], "capacity": ["inf"]},
}


def patch(body: Any, code: str, phrase: str, field: str | None = None, graph: str = TOWN, status: int = 422) -> Clumsy:
    return Clumsy("PATCH", f"{graph}/capacities", body, status, code, phrase, field)


def ask(body: Any, code: str, phrase: str, field: str | None = None, path: str = "town/max-flow") -> Clumsy:
    return Clumsy("POST", f"/v1/graphs/{path}", body, 422, code, phrase, field)


ONE = {"edges": ["s-a"], "set": [6]}

PATHS = [
    Clumsy("GET", "/graphs", None, 404, "not_found", "did you mean /v1/graphs?"),
    Clumsy("GET", "/v1/graph", None, 404, "not_found", "did you mean /v1/graphs?"),
    Clumsy("GET", "/v1/graphs/", None, 404, "not_found", "did you mean /v1/graphs?"),
    Clumsy("GET", f"{CITY}/", None, 404, "not_found", "did you mean /v1/graphs/city?"),
    Clumsy("GET", f"{CITY}/capacity", None, 404, "not_found", "did you mean /v1/graphs/city/capacities?"),
    Clumsy("POST", f"{CITY}:clone", {"to": "city-2"}, 405, "method_not_allowed", "and copied by {name}:copy"),
    Clumsy("PUT", "/login", None, 405, "method_not_allowed", "/login, which takes GET, HEAD and POST"),
    Clumsy("PATCH", f"{CITY}:copy", {"to": "city-2"}, 405, "method_not_allowed", "{name}:copy, which takes POST"),
    Clumsy("POST", f"{CITY}:copy", {"to": "city 2"}, 422, "invalid_body", "'city 2' is no graph name", "/to"),
    Clumsy("POST", f"{CITY}/maxflow", {}, 404, "not_found", "did you mean /v1/graphs/city/max-flow?"),
    Clumsy("POST", f"{CITY}/min_cut", {}, 404, "not_found", "did you mean /v1/graphs/city/min-cut?"),
    Clumsy("GET", "/v2/everything", None, 404, "not_found", "GET /openapi.json lists the paths"),
    Clumsy("PUT", "/v1/graphs/a%2Fb", columns(), 400, "invalid_request", "'a%2Fb' is no graph name"),
    Clumsy("PUT", f"{CITY}:copy", columns(), 405, "method_not_allowed", "{name}:copy, which takes POST"),
    Clumsy("DELETE", f"{CITY}:copy", None, 405, "method_not_allowed", "{name}:copy, which takes POST"),
    Clumsy("PATCH", f"{CITY}:restore", ONE, 405, "method_not_allowed", "{name}:restore, which takes POST"),
    Clumsy("GET", f"{CITY}:move", None, 405, "method_not_allowed", "{name}:move, which takes POST"),
    Clumsy("GET", f"{CITY}/max-flow", None, 405, "method_not_allowed", "questions are asked by POST"),
    Clumsy("POST", "/v1/graphs", columns(), 405, "method_not_allowed", "loaded by PUT /v1/graphs/{name}"),
    Clumsy("POST", CITY, columns(), 405, "method_not_allowed", "takes DELETE, GET, HEAD and PUT"),
    Clumsy("PATCH", CITY, ONE, 405, "method_not_allowed", "PATCH /v1/graphs/{name}/capacities"),
    Clumsy("PUT", f"{CITY}/capacities", ONE, 405, "method_not_allowed", "changed by PATCH"),
    Clumsy("POST", "/v1/jobs/1", None, 405, "method_not_allowed", "a job is cancelled by DELETE"),
    Clumsy("PUT", "/v1/graphs/my%20graph", columns(), 400, "invalid_request", "'my graph' is no graph name"),
    Clumsy("PUT", "/v1/graphs/_hidden", columns(), 400, "invalid_request", "first a letter or digit"),
    Clumsy("GET", "/v1/graphs/citty", None, 404, "unknown_graph", "there is no graph 'citty'"),
    Clumsy("DELETE", "/v1/graphs/citty", None, 404, "unknown_graph", "there is no graph 'citty'"),
    Clumsy("POST", "/v1/graphs/City/max-flow", {}, 404, "unknown_graph", "there is no graph 'City'"),
    Clumsy("POST", "/v1/graphs/citty/snapshots", None, 404, "unknown_graph", "there is no graph 'citty'"),
    Clumsy("GET", "/v1/jobs/nothing", None, 404, "unknown_job", "results are kept for a while only"),
    Clumsy("DELETE", "/v1/jobs/nothing", None, 404, "unknown_job", "there is no job 'nothing'"),
    Clumsy("GET", "/v1/jobs/a*b", None, 400, "invalid_request", "'a*b' is no id of a job"),
]

PARAMETERS = [
    Clumsy("GET", f"{CITY}/capacities?limit=0", None, 400, "invalid_request", "limit: should be greater than"),
    Clumsy("GET", f"{CITY}/capacities?limit=ten", None, 400, "invalid_request", "limit: should be a whole number"),
    Clumsy("GET", f"{CITY}/capacities?page=2", None, 400, "invalid_request", "did you mean 'offset'?"),
    Clumsy("GET", "/v1/jobs?limit=99999", None, 400, "invalid_request", "limit: should be less than or equal to 1000"),
    Clumsy("GET", "/v1/jobs?after=xyz", None, 400, "invalid_request", "send the `next` of the page before"),
    Clumsy("GET", "/v1/jobs?status=failed", None, 400, "invalid_request", "no query parameter 'status'"),
    Clumsy("PATCH", f"{TOWN}/capacities?solve=no", ONE, 400, "invalid_request", "did you mean 'none'?"),
    Clumsy("PATCH", f"{TOWN}/capacities?dry-run=1", ONE, 400, "invalid_request", "no query parameter 'dry-run'"),
    Clumsy("PUT", f"{NEW}?overwrite=true", columns(), 400, "invalid_request", "no query parameter 'overwrite'"),
]

HEADERS = [
    Clumsy("PUT", NEW, columns(), 415, "unsupported_media_type", "there is no Content-Type", kind=""),
    Clumsy("PUT", NEW, columns(), 415, "unsupported_media_type", "did you mean application/json?", kind="text/json"),
    Clumsy("PUT", NEW, b"x", 415, "unsupported_media_type", "did you mean application/x-npz?", kind="application/zip"),
    Clumsy("PUT", NEW, b"x", 415, "unsupported_media_type", "text/csv", kind="application/octet-stream"),
    *(
        Clumsy("PUT", NEW, b"x", 415, "unsupported_media_type", told, kind=kind)
        for kind, told in (
            ("application/graphml+xml", "loads what networkx.read_graphml or igraph.Graph.Read_GraphML has read"),
            ("text/gml", "loads what networkx.read_gml or igraph.Graph.Read_GML has read"),
            ("application/vnd.ms-excel", "a CSV file is text/csv, and the sheet of a workbook can be saved as one"),
            ("application/vnd.apache.parquet", "loads the table that pandas or Polars has read"),
            ("application/jsn", "did you mean application/json?"),
            ("text/x-csv", "did you mean text/csv?"),
            ("aplication/json", "did you mean application/json?"),
        )
    ),
    Clumsy(
        *("PATCH", f"{TOWN}/capacities", ONE, 415, "unsupported_media_type", "curl sends that with -d"),
        kind="application/x-www-form-urlencoded",
    ),
    Clumsy("POST", f"{TOWN}/max-flow", {}, 415, "unsupported_media_type", "send application/json", kind="text/plain"),
    Clumsy(
        *("PATCH", f"{TOWN}/capacities", ONE, 400, "invalid_request", 'as in If-Match: "7", not 7'),
        headers={"If-Match": "7"},
    ),
    Clumsy(
        *("PATCH", f"{TOWN}/capacities", ONE, 412, "version_conflict", "it is at version 1"),
        headers={"If-Match": '"99"'},
    ),
    Clumsy("PUT", CITY, columns(), 412, "version_conflict", "there is a graph 'city'", headers={"If-None-Match": "*"}),
    Clumsy("PUT", NEW, columns(), 400, "invalid_request", "1 to 256 printable", headers={"Idempotency-Key": "x" * 300}),
    Clumsy("PUT", NEW, columns(), 415, "unsupported_media_type", "gzip and zstd", headers={"Content-Encoding": "br"}),
    Clumsy("PUT", NEW, columns(), 422, "invalid_body", "the body is not gzip", headers={"Content-Encoding": "gzip"}),
    Clumsy("GET", CITY, None, 403, "forbidden", "the name of this machine", headers={"Host": "example.com"}),
]

NOT_JSON = [
    put(b"", "invalid_body", "the body is empty"),
    put(b"{", "invalid_body", "line 1, column 2"),
    put(b"// roads\n{}", "invalid_body", "JSON has no comments"),
    put(b"{'tail': [0]}", "invalid_body", "JSON has its texts in double quotes"),
    put(b'{"tail": [0], "undirected": True}', "invalid_body", "JSON has true, in lower case"),
    put(b"tail,head,capacity\n0,1,2\n", "invalid_body", "it begins like CSV (text/csv)"),
    put(b"[" * 10_000, "invalid_body", "nested too deep"),
    put(b"\xff\xfe{", "invalid_body", "no UTF-8"),
    put(b'{"tail": [0], "tail": [1]}', "invalid_body", "'tail' is there twice"),
    put(b'[["s", "t", 3]]', "invalid_body", "the body has to be a JSON object"),
    patch(b'["s-a", 3]', "invalid_body", "the body has to be a JSON object"),
    patch({"edges": ["s-a"], "add": ["-inf"]}, "invalid_body", '"inf" where there may be no limit', "/add"),
    patch(b"edges=s-a", "invalid_body", "not JSON"),
    patch(b'{"edges": ["s-a"], "set": [NaN]}', "invalid_body", "NaN is no JSON number"),
    patch(b'{"edges": ["s-a"], "edges": ["s-b"]}', "invalid_body", "'edges' is there twice", "/edges"),
    patch(
        b'{"batch": [{"edges": [1], "set": [1], "set": [2]}]}', "invalid_body", "'set' is there twice", "/batch/0/set"
    ),
    ask(b'{"cut": {"near": "sinks", "near": "sources"}}', "invalid_body", "'near' is there twice", "/cut/near"),
]

PATCHES = [
    patch([{"edge": "s-a", "set": 6}], "invalid_body", 'as in {"edges": ["a"], "set": [4]}, not an array'),
    patch({"s-a": 6}, "invalid_body", "there are edges, tail, head, set", "/s-a"),
    patch({"edges": "s-a", "set": 6}, "invalid_body", 'edges: should be an array, as in ["s-a"]', "/edges"),
    patch({"edges": ["s-a"], "set": 6}, "invalid_body", "one amount for each row, as in [6]", "/set"),
    patch({"edge": ["s-a"], "set": [6]}, "invalid_body", "did you mean 'edges'?", "/edge"),
    patch({"edges": ["s-a"], "capacity": [6]}, "invalid_body", "did you mean 'set'?", "/capacity"),
    patch({"edges": ["s-a"]}, "invalid_body", "one of `set`, `add`, `scale` or `op`, not none"),
    patch(ONE | {"add": [1]}, "invalid_body", "not `set` and `add`"),
    patch({"edges": ["s-a", "s-b"], "set": [6]}, "invalid_body", "1 amount for 2 edges", "/set"),
    patch({"edges": ["s-a", "s-a"], "set": [1, 2]}, "invalid_body", "edge 's-a' is named twice", "/edges"),
    patch({"edges": [1.0], "set": [6]}, "invalid_body", "row 0: 1.0 is neither an integer nor text", "/edges"),
    patch({"edges": ["s-a"], "op": "delete"}, "invalid_body", "did you mean 'close'?", "/op"),
    patch(ONE | {"on_missing": "ignore"}, "invalid_body", "did you mean 'skip'?", "/on_missing"),
    patch({"batch": [ONE, {"edges": ["s-b"], "sett": [1]}]}, "invalid_body", "did you mean 'set'?", "/batch/1/sett"),
    patch({"batch": [ONE, {"edges": ["s-b"], "set": [-1]}]}, "invalid_body", "-1 is negative", "/batch/1/set"),
    patch({"batch": [ONE, {"edges": ["sb"], "set": [1]}]}, "unknown_edge", "did you mean 's-b'?", "/batch/1/edges"),
    patch({"batch": [{"edges": ["sb"], "set": [1]}]}, "unknown_edge", "did you mean 's-b'?", "/batch/0/edges"),
    patch(
        {"on_missing": "error", "rounding": "error", "batch": [{"edges": ["sb"], "set": [1]}]},
        "unknown_edge",
        "did you mean 's-b'?",
        "/batch/0/edges",
    ),
    patch({"batch": [{"edges": ["s-a", "s-a"], "op": "close"}]}, "invalid_body", "named twice", "/batch/0/edges"),
    patch({"batch": [{"edges": ["batch"], "op": "close"}]}, "unknown_edge", "there is no edge", "/batch/0/edges"),
    patch({"edges": ["batch"], "op": "close"}, "unknown_edge", "there is no edge", "/edges"),
    patch({"batch": [ONE], "on_missing": "ignore"}, "invalid_body", "did you mean 'skip'?", "/on_missing"),
    patch({"batch": [ONE], "set": [1]}, "invalid_body", "`batch` stands alone"),
    patch({"batch": ONE}, "invalid_body", "batch: should be an array", "/batch"),
    patch({"edges": ["S-A"], "set": [6]}, "unknown_edge", "there is no edge 'S-A'; did you mean 's-a'?", "/edges"),
    patch({"edges": [0], "set": [6]}, "unknown_edge", "the edge names of this graph are text", "/edges"),
    patch({"tail": ["S"], "set": [6]}, "invalid_body", "`tail` and `head` come together"),
    patch({"tail": ["S"], "head": ["T"], "set": [6]}, "unknown_edge", "no edge leads from 'S' to 'T'", "/tail"),
    patch({"tail": ["s"], "head": ["T"], "set": [6]}, "unknown_vertex", "did you mean 'S'?", "/tail"),
    patch({"tail": [0], "head": [2], "set": [6]}, "ambiguous_edge", "by its id, 'b'", "/tail", CITY),
    patch({"edges": ["s-a"], "set": [1.5]}, "invalid_body", "fixed when the graph was loaded", "/set"),
    patch({"edges": ["a"], "set": [1.25]}, "invalid_body", "more than 1 decimal", "/set", CITY),
    patch({"edges": ["s-a"], "set": ["1,5"]}, "invalid_body", "the text of one with a decimal point", "/set"),
    patch({"edges": ["s-a"], "set": [-1]}, "invalid_body", "-1 is negative, and a capacity is not", "/set"),
    patch({"edges": ["s-a"], "add": [-100]}, "invalid_body", "would be negative", "/add"),
    patch({"edges": ["s-a"], "scale": [0.33]}, "invalid_body", "no whole number of units", "/scale"),
    patch({"edges": ["s-a"], "set": [2**63 - 1]}, "capacity_overflow", "beyond the limit of", "/set"),
    patch({"edges": ["s-a"], "set": [10**40]}, "capacity_overflow", "beyond the limit of", "/set"),
    patch({"edges": ["s-a"], "set": [10**30]}, "capacity_overflow", "beyond the limit of", "/set"),
    patch({"edges": list(range(101)), "op": "close"}, "too_large", "HEADRACE_MAX_PATCH_ROWS", status=413),
    patch(b" " * 20_001, "too_large", "send several batches, or an Arrow stream", status=413),
]

QUESTIONS = [
    ask({"source": "S", "sink": "T"}, "invalid_body", "did you mean 'sources'?", "/source"),
    ask({"sources": "S", "sinks": "T"}, "invalid_body", 'should be an array, as in ["S"]', "/sources"),
    ask({"sources": ["S"], "sinks": ["S"]}, "source_is_sink", "a vertex is both source and sink: 'S'"),
    ask(
        {"sources": ["S", "Anna"], "sinks": ["Anna", "S"]},
        "source_is_sink",
        "2 vertices are both source and sink: 'S', ",
    ),
    ask({"sources": ["S", "S"]}, "invalid_body", "a source stands twice or more: 'S'", "/sources"),
    ask(
        {"sources": ["anna"]},
        "unknown_vertex",
        "is no vertex of the graph; did you mean 'Anna'?",
        "/sources",
    ),
    ask({"sources": [0]}, "unknown_vertex", "the vertex names of this graph are text", "/sources"),
    ask({"sinks": [4]}, "unknown_vertex", "the numbers 0 .. 3", "/sinks", "city/max-flow"),
    ask({"sources": ["0"]}, "unknown_vertex", "the numbers 0 .. 3", "/sources", "city/max-flow"),
    ask({"sources": []}, "invalid_body", "1 to 1000000 vertices, not 0", "/sources"),
    ask({"sources": ["S"], "supply": 5}, "invalid_body", "as in [5]", "/supply"),
    ask({"sources": ["S"], "supply": [5, 6]}, "invalid_body", "one cap for each of `sources`, not 2 for 1", "/supply"),
    ask({"supply": [5]}, "invalid_body", "`sources`, which are missing", "/supply"),
    ask({"sources": ["S"], "supply": [-5]}, "invalid_body", "-5 is negative, and a cap is not", "/supply"),
    ask({"sources": ["S"], "supply": [2.5]}, "invalid_body", "more than 0 decimals", "/supply"),
    ask({"fields": ["flows"]}, "invalid_body", "did you mean 'flow'?", "/fields/0"),
    ask({"fields": "cut"}, "invalid_body", 'fields: should be an array, as in ["cut"]', "/fields"),
    ask({"time_limit_s": 0}, "invalid_body", "should be greater than 0", "/time_limit_s"),
    ask({"time_limit_s": 10**9}, "invalid_body", "less than or equal to 86400", "/time_limit_s"),
    ask({"time_limit_s": 10**400}, "invalid_body", "less than or equal to 86400", "/time_limit_s"),
    ask({"time_limit_s": "10"}, "invalid_body", "should be a finite number, not in quotes", "/time_limit_s"),
    ask({"timeout": 5}, "invalid_body", "did you mean 'time_limit_s'?", "/timeout"),
    ask({"min_version": "1"}, "invalid_body", "a whole number, not in quotes", "/min_version"),
    ask({"flow": True}, "invalid_body", "flow: should be an object", "/flow"),
    ask({"flow": {"zero": True}}, "invalid_body", "did you mean 'zeros'?", "/flow/zero"),
    ask({}, "invalid_body", "by --source in the shell", "/sources", "without-terminals/max-flow"),
    ask({"sources": ["S"], "sinks": ["T"]}, "unbounded", "a path of unlimited edges", None, "endless/max-flow"),
    ask({}, "not_bipartite", "both a tail and a head", None, "town/matching"),
    ask({"left": ["Anne"]}, "unknown_vertex", "did you mean 'Anna'?", "/left", "town/matching"),
    Clumsy("POST", "/v1/graphs:estimate", {"n_vertices": 5}, 422, "invalid_body", "n_edges: is missing", "/n_edges"),
    Clumsy("POST", f"{TOWN}/max-flow", {"min_version": 99}, 409, "version_unavailable", "the graph is at version 1"),
]

ONE_WORKER = "/v1/workers/cpu-0/drain"
HOOK, HOOKED = "/v1/webhooks/h", {"url": "https://192.0.2.1/", "graphs": ["city"]}
NEWER = [
    Clumsy("POST", f"{TOWN}/partitions", {"k": 2}, 404, "not_found", "did you mean /v1/graphs/town/partition?"),
    Clumsy("GET", f"{TOWN}/partition", None, 405, "method_not_allowed", "questions are asked by POST"),
    Clumsy("GET", f"{TOWN}/what-if", None, 405, "method_not_allowed", "questions are asked by POST"),
    Clumsy("POST", f"{TOWN}/watches", {}, 405, "method_not_allowed", "a watch is made by PUT"),
    Clumsy("POST", "/v1/webhooks", HOOKED, 405, "method_not_allowed", "a webhook is made by PUT"),
    Clumsy("POST", f"{TOWN}/edges", {}, 405, "method_not_allowed", "inserted and deleted by PATCH"),
    Clumsy("GET", f"{TOWN}/edges", None, 405, "method_not_allowed", "GET /v1/graphs/{name}/capacities"),
    Clumsy("POST", ONE_WORKER, None, 405, "method_not_allowed", "a worker is drained by PUT"),
    ask({"k": 2, "epsilon": "nan"}, "invalid_body", 'epsilon: "nan" is no amount', "/epsilon", "town/partition"),
    ask({"scenarios": [{"id": True}]}, "invalid_body", "or should be text", "/scenarios/0/id", "town/what-if"),
    Clumsy(
        "PATCH",
        f"{TOWN}/edges",
        {"op": "insert", "tail": ["S"], "head": ["T"], "capacity": [1], "edge_ids": ["x"], "undirected": "yes"},
        422,
        "invalid_body",
        'undirected: should be true or false; or should be an array, as in ["yes"]',
        "/undirected",
    ),
    Clumsy("PATCH", f"{TOWN}/edges?dry_run", {"op": "insert"}, 400, "invalid_request", "should be true or false"),
    Clumsy("PUT", f"{TOWN}/watches/a.b", {}, 400, "invalid_request", "'a.b' is no name of a watch"),
    Clumsy("PUT", f"{TOWN}/watches/w", {"on": []}, 422, "invalid_body", "on: should have at least 1 item", "/on"),
    Clumsy("PUT", "/v1/webhooks/a.b", HOOKED, 400, "invalid_request", "'a.b' is no name of a webhook"),
    Clumsy("PUT", HOOK, HOOKED | {"url": ""}, 422, "invalid_body", "url: should have at least 1 character", "/url"),
    Clumsy("PUT", HOOK, HOOKED | {"graphs": ["a b"]}, 422, "invalid_body", "'a b' is no graph name", "/graphs/0"),
    Clumsy("POST", f"{TOWN}:move", {"worker": "w"}, 422, "invalid_body", "such member; there is to", "/to"),
    Clumsy(
        "POST",
        "/v1/graphs:estimate",
        {"n_vertices": 5, "n_edges": 1, "n_links": 2},
        422,
        "invalid_body",
        "is more than `n_edges`",
        "/n_links",
    ),
    Clumsy(
        "POST",
        "/v1/graphs:estimate",
        {"n_vertices": 5, "n_edges": 1, "n_limited": 6},
        422,
        "invalid_body",
        "is more than `n_vertices`",
        "/n_limited",
    ),
]

TABLE = [*NEWER, *PATHS, *PARAMETERS, *HEADERS, *NOT_JSON, *LOADS, *FILES, *PATCHES, *QUESTIONS]


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent(LIMITS) as service:
        for name, content in GRAPHS.items():
            assert service.http.put(f"/v1/graphs/{name}", json=content).status_code == 201
        yield service.http


def test_the_table_has_more_than_eighty_rows() -> None:
    assert len(TABLE) >= 80


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.method} {row.path} {row.code}: {row.phrase}")
def test_what_a_clumsy_request_gets(http: httpx.Client, row: Clumsy) -> None:
    content = row.body if isinstance(row.body, bytes) else b"" if row.body is None else json.dumps(row.body).encode()
    headers = ({"Content-Type": row.kind} if row.body is not None and row.kind else {}) | dict(row.headers)
    response = http.request(row.method, row.path, content=content, headers=headers)
    problem = response.json()
    assert (response.status_code, problem["code"]) == (row.status, row.code), problem
    assert row.phrase in problem["detail"], problem
    assert problem.get("field") == row.field, problem
    assert not [word for word in INTERNALS if word in response.text], problem
    if row.status == 405:
        assert response.headers["Allow"]


def test_nothing_was_changed(http: httpx.Client) -> None:
    """By any of them: they come before this test."""
    for name, content in GRAPHS.items():
        page = http.get(f"/v1/graphs/{name}/capacities").json()
        assert (page["version"], page["capacity"]) == (1, content["capacity"])
    assert http.get(NEW).status_code == 404


def test_what_is_at_fault_is_named_as_the_caller_does(http: httpx.Client) -> None:
    """Each member has one meaning: rows of columns, lines of texts, edges by id, vertices by name."""

    def refused(method: str, path: str, body: Any, kind: str = JSON) -> dict[str, Any]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        problem = http.request(method, path, content=content, headers={"Content-Type": kind}).json()
        named = ("rows", "lines", "edges", "vertices", "operation", "parameter", "header")
        return {name: problem[name] for name in named if name in problem}

    batch = {"batch": [ONE, {"edges": ["b-t", "a-t"], "set": [1, 0.5]}]}
    assert refused("PATCH", f"{TOWN}/capacities", batch) == {"rows": [1], "edges": ["a-t"], "operation": 1}
    assert refused("PATCH", f"{TOWN}/capacities", {"edges": ["a-t", "x"], "set": [1, 1]}) == {
        "rows": [1],
        "edges": ["x"],
    }
    assert refused("PATCH", f"{CITY}/capacities", {"tail": [0], "head": [2], "set": [1]}) == {
        "rows": [0],
        "edges": ["b", "e"],
    }
    assert refused("POST", f"{TOWN}/max-flow", {"sinks": ["T", "t"]}) == {"rows": [1], "vertices": ["t"]}
    assert refused("POST", f"{TOWN}/max-flow", {"sources": ["T"]}) == {"rows": [], "vertices": ["T"]}
    capped = {"sources": ["Anna", "Bert"], "supply": [1, 0.5]}
    assert refused("POST", f"{TOWN}/max-flow", capped) == {"rows": [1], "vertices": ["Bert"]}
    assert refused("POST", "/v1/graphs/endless/max-flow", {"sources": ["S"], "sinks": ["T"]})["vertices"] == ["S", "T"]
    assert refused("PUT", NEW, columns(capacity=[1, -1])) == {"rows": [1]}
    assert refused("PUT", NEW, b"tail,head,capacity\n0,1,3\n1,2,-4\n", CSV) == {"rows": [], "lines": [3]}
    assert refused("PUT", NEW, columns(edge_ids=[7, 7])) == {"rows": [0, 1], "edges": [7]}
    repeated = b"edge_ids,tail,head,capacity\na,0,1,3\nb,1,2,4\na,2,3,4\n"
    assert refused("PUT", NEW, repeated, CSV) == {"rows": [], "lines": [2, 4], "edges": ["a"]}
    assert refused("GET", "/v1/jobs?limit=0", b"") == {"rows": [], "parameter": "limit"}
    assert refused("PUT", NEW, b"x", "text/plain") == {"rows": [], "header": "Content-Type"}


def test_what_is_named_twice_is_told_with_its_rows(http: httpx.Client) -> None:
    def refused(method: str, path: str, body: dict[str, Any]) -> tuple[str, list[int], list[str], list[str]]:
        problem = http.request(method, f"{TOWN}{path}", json=body).json()
        assert "twice" in problem["detail"], problem
        return problem["field"], problem["rows"], problem.get("edges", []), problem.get("vertices", [])

    twice = ["s-a", "b-t", "s-a"]
    for body in ({"edges": twice, "set": [1, 2, 3]}, {"edges": twice, "op": "close"}):
        assert refused("PATCH", "/capacities", body) == ("/edges", [0, 2], ["s-a"], [])
    by_ends = {"tail": ["S", "S"], "head": ["Bert", "Bert"], "set": [1, 2]}
    assert refused("PATCH", "/capacities", by_ends) == ("/tail", [0, 1], ["s-b"], [])
    vertices = ["Anna", "Bert", "Bert"]
    inserted = {"op": "delete", "vertices": vertices}
    assert refused("PATCH", "/edges", inserted) == ("/vertices", [1, 2], [], ["Bert"])
    assert refused("PATCH", "/vertices", {"vertices": vertices, "set": [1, 2, 3]}) == (
        "/vertices",
        [1, 2],
        [],
        ["Bert"],
    )
    assert refused("POST", "/max-flow", {"sources": vertices}) == ("/sources", [1, 2], [], ["Bert"])
    assert refused("POST", "/pairs", {"among": vertices}) == ("/among", [1, 2], [], ["Bert"])
    hook = {"url": "https://example.com/", "graphs": ["a", "b", "a"]}
    assert http.put("/v1/webhooks/h", json=hook).json()["rows"] == [0, 2]
    parts = {"k": 2, "vertices": vertices, "vertex_weight": [1, 1, 1]}
    assert refused("POST", "/partition", parts) == ("/vertices", [1, 2], [], ["Bert"])


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("capacities", {"batch": [{"edges": ["sb"], "set": [1]}]}, "/batch/0/edges"),
        ("capacities", {"edges": ["sb"], "set": [1]}, "/edges"),
        ("capacities", {"batch": [ONE, {"edges": ["sb"], "set": [1]}]}, "/batch/1/edges"),
        ("vertices", {"batch": [{"vertices": ["Ann"], "set": [1]}]}, "/batch/0/vertices"),
        ("edges", {"batch": [{"op": "delete", "edges": ["sb"]}]}, "/batch/0/edges"),
    ],
)
def test_a_job_tells_where_its_body_is_wrong_as_the_answer_does(
    http: httpx.Client, path: str, body: dict[str, Any], field: str
) -> None:
    answered = http.patch(f"{TOWN}/{path}", json=body).json()
    location = http.patch(f"{TOWN}/{path}", json=body, headers={"Prefer": "respond-async"}).headers["location"]
    job = http.get(location, headers={"Prefer": "wait=30"}).json()
    listed = next(other for other in http.get("/v1/jobs").json()["jobs"] if other["id"] == job["id"])
    for problem in (job["error"], listed["error"], http.get(f"{location}/result").json()):
        assert (problem["field"], problem.get("operation")) == (field, answered.get("operation"))
    assert answered["field"] == field


def test_a_finished_job_is_not_cancelled(http: httpx.Client) -> None:
    """Its state says so; that is no error."""
    job = http.post(f"{TOWN}/max-flow", headers={"Prefer": "respond-async"}).json()["id"]
    http.get(f"/v1/jobs/{job}", headers={"Prefer": "wait=30"})
    answer = http.delete(f"/v1/jobs/{job}").json()
    assert (answer["status"], answer["cancelling"]) == ("succeeded", False)


def test_what_looks_clumsy_and_is_not(http: httpx.Client) -> None:
    """Numbers as text, an empty graph, an empty batch and a question without a body are what they say."""
    assert http.put(NEW, json=columns(capacity=["3", "4"])).status_code == 201
    assert http.put(NEW, json=columns(tail=[], head=[], capacity=[])).json()["n_edges"] == 0
    assert http.patch(f"{NEW}/capacities", json={"edges": [], "set": []}).json()["applied"] == 0
    assert http.delete(NEW).status_code == 204
    assert http.post(f"{TOWN}/max-flow").json()["value"] == 5
