"""What the client takes beside plain columns: URLs, certificates, conditions, caps by name, deadlines, NetworkX."""

import dataclasses
import json
import math
import ssl
from decimal import Decimal
from pathlib import Path
from typing import Any

import certifi
import headrace
import httpx
import networkx as nx
import numpy as np
import pytest
from headrace import Client, InvalidInput, Retry
from headrace import _exchange as exchange
from headrace._connecting import trusted
from headrace._exported import Pages
from headrace._results import Capacities, GraphInfo
from headrace._vertices import VertexCapacities

from tests.unit.test_sdk_client import GRAPH, PATCH, Script, ok, problem


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("localhost:8080", "http://localhost:8080"),
        ("127.0.0.1:8080/base", "http://127.0.0.1:8080/base"),
        ("flows.example.org", "http://flows.example.org"),
        ("https://flows.example.org", "https://flows.example.org"),
    ],
)
def test_a_url_without_scheme_is_http(given: str, url: str) -> None:
    assert exchange.full_url(given) == url
    assert exchange.through_proxy(exchange.full_url(given)) == ("example.org" in given)
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        return httpx.Response(200, json={"graphs": []})

    with Client(given, transport=httpx.MockTransport(answer)) as client:
        client.graphs()
    assert seen == [f"{url}/v1/graphs"]


@pytest.mark.parametrize(
    ("variable", "url"),
    [(None, "http://127.0.0.1:8080"), ("", "http://127.0.0.1:8080"), ("flows.example.org", "http://flows.example.org")],
)
def test_the_environment_says_where(monkeypatch: pytest.MonkeyPatch, variable: str | None, url: str) -> None:
    """For a program that names no URL, as at the shell."""
    monkeypatch.delenv("HEADRACE_URL", raising=False)
    if variable is not None:
        monkeypatch.setenv("HEADRACE_URL", variable)
    assert exchange.full_url(None) == url
    assert exchange.full_url("https://named:1") == "https://named:1"
    script = Script(httpx.Response(200, json={"graphs": []}))
    with Client(transport=httpx.MockTransport(script)) as client:
        client.graphs()
    assert str(script.requests[0].url) == f"{url}/v1/graphs"


@pytest.mark.parametrize("given", ["", "http://", "ftp://host", "redis://host:1", "http://host:port"])
def test_what_is_no_url_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput):
        Client(given)


def test_which_certificates_are_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    context = ssl.create_default_context()
    secure, plain = "https://localhost", "http://localhost"
    assert trusted(context, secure) is trusted(context, plain) is context
    assert (trusted(True, secure), trusted(False, secure)) == (True, False)
    nobody = trusted(True, plain)  # without reading the certificates of all authorities
    assert isinstance(nobody, ssl.SSLContext)
    assert (nobody.verify_mode, nobody.cert_store_stats()["x509_ca"]) == (ssl.CERT_REQUIRED, 0)
    (tmp_path / "ca.pem").write_text("no certificate")
    for wrong in (tmp_path / "ca.pem", str(tmp_path / "missing.pem")):
        with pytest.raises(InvalidInput, match="no file of certificates"):
            Client("https://localhost", verify=wrong)
    with Client("https://localhost", verify=False):
        pass
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))  # how the shell commands are told
    assert (trusted(False, secure), trusted(context, secure)) == (False, context)
    with pytest.raises(InvalidInput, match="SSL_CERT_FILE="):
        Client("https://localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with Client("http://localhost"):
        pass  # none are read
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "missing" / "keys"))
    with pytest.raises(InvalidInput, match="SSLKEYLOGFILE="):
        Client("https://localhost", verify=certifi.where())


def test_a_version_of_a_table_is_of_the_load_that_the_handle_knows() -> None:
    """A number of NumPy counts as one of Python does: version 7 of another load is another version."""
    graph = httpx.Response(200, json=GRAPH | {"generation": "9f3c02aa"})
    script = Script(graph, httpx.Response(204), httpx.Response(204))
    with script.client() as client:
        city = client.graph("city")
        city.delete(if_version=np.int64(7))  # type: ignore[arg-type]  # no int to a type checker
        city.delete(if_version="7")
    assert [request.headers.get("If-Match") for request in script.requests[1:]] == ['"9f3c02aa-7"', '"7"']


def test_conditions_of_loads_and_deletes() -> None:
    script = Script(*(ok() for _ in range(3)), httpx.Response(204), httpx.Response(204), httpx.Response(204))
    columns: dict[str, Any] = {"tail": [0], "head": [1], "capacity": [1 / 3], "decimals": 2, "rounding": "up"}
    with script.client() as client:
        city = client.put_graph("city", **columns)
        client.put_graph("city", **columns, if_version=7)
        client.put_graph("city", **columns, must_be_new=True)
        client.delete_graph("city")
        client.delete_graph("city", if_version=7)
        city.delete(if_version=8)
        with pytest.raises(InvalidInput, match="wants none"):
            client.put_graph("city", **columns, must_be_new=True, if_version=7)
    put, at_7, new, *deletes = script.requests
    assert dict(put.url.params) == {"decimals": "2", "rounding": "up"}
    assert "If-Match" not in put.headers
    assert (at_7.headers["If-Match"], new.headers["If-None-Match"]) == ('"7"', "*")
    assert [request.headers.get("If-Match") for request in deletes] == [None, '"7"', '"8"']
    assert {(request.method, request.url.path) for request in deletes} == {("DELETE", "/v1/graphs/city")}


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({"supply": {"w1": 3000, "w2": 0.5}}, {"sources": ["w1", "w2"], "supply": [3000, 0.5]}),
        ({"source": ["w2", "w1"], "supply": {"w1": 3}}, {"sources": ["w2", "w1"], "supply": ["inf", 3]}),
        ({"source": "w1", "supply": {"w1": math.inf}}, {"sources": ["w1"], "supply": ["inf"]}),
        ({"sink": np.array([4, 5]), "demand": {5: 1}}, {"sinks": [4, 5], "demand": ["inf", 1]}),
        ({"source": [1, 2], "supply": 3}, {"sources": [1, 2], "supply": [3, 3]}),
        ({"source": {"a": 1}.keys(), "supply": [Decimal("1.50")]}, {"sources": ["a"], "supply": [1.5]}),
        ({"source": np.int64(3), "rounding": "down"}, {"sources": [3], "rounding": "down"}),
    ],
)
def test_caps_by_vertex(asked: dict[str, Any], sent: dict[str, Any]) -> None:
    script = Script(ok(), problem(422, "invalid_body"))
    with script.client() as client, pytest.raises(headrace.InvalidBody):
        client.graph("city").max_flow(**asked)
    assert json.loads(script.requests[-1].content) == sent


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"source": ["w1"], "supply": {"w1": 1, "w3": 2}}, "supply names 'w3'"),
        ({"demand": [1]}, "demand needs its terminals"),
        ({"source": ["w1"], "supply": [1, 2]}, "supply has 2 amounts for 1"),
    ],
)
def test_caps_that_fit_no_terminals(asked: dict[str, Any], message: str) -> None:
    script = Script(ok())
    with script.client() as client:
        city = client.graph("city")
        with pytest.raises(InvalidInput, match=message):
            city.max_flow(**asked)
        with pytest.raises(InvalidInput, match="set is one amount or a column of them, not"):
            city.patch(edges=[1], set={1: 2})  # type: ignore[arg-type]  # what a caller must not send
        with pytest.raises(TypeError, match="fixed when it is loaded"):
            city.patch(edges=[1], set=[2], decimals=3)  # type: ignore[call-arg]  # there is no such option


def test_the_deadline_of_a_call_counts_for_more_than_patience() -> None:
    """It is followed as long as the caller says, and no longer."""
    busy = problem(429, "rate_limited", **{"Retry-After": "0.2"})
    for timeout_s, patience_s, asked in ((30.0, 0.1, 3), (0.1, 30.0, 1), (None, 0.1, 1)):
        script = Script(ok(), busy, busy, ok(PATCH))
        with script.client(patience_s=patience_s) as client:
            city = client.graph("city")
            if asked == 3:
                city.close([1], timeout_s=timeout_s)
            else:
                with pytest.raises(headrace.RateLimited) as refused:
                    city.close([1], timeout_s=timeout_s)
                assert refused.value.retry_after_s == 0.2
        assert len(script.requests) == 1 + asked


def test_a_call_waits_for_a_connection_as_long_as_its_caller() -> None:
    step = next(exchange.ask(headrace._calls.graphs(), exchange.Retries(Retry(patience_s=77))))
    assert isinstance(step, exchange.Send)
    with httpx.Client(base_url="http://service") as http:
        timeout = exchange.request_of(http, step, None, 5.0).extensions["timeout"]
    assert 70 < timeout["pool"] <= 77
    assert (timeout["connect"], timeout["read"]) == (5.0, 5.0)


TYPED: dict[str, type[Any]] = {
    "LoadedInfo": headrace.GraphInfo,
    "MaxFlowInfo": headrace.MaxFlowResult,
    "CutInfo": headrace.Cut,
    "FlowInfo": headrace.Flow,
    "CertificateInfo": headrace.Certificate,
    "MatchingInfo": headrace.MatchingResult,
    "MatchedInfo": headrace.Matching,
    "CoverInfo": headrace.Cover,
    "PatchInfo": headrace.PatchResult,
    "FlowStateChange": headrace.FlowState,
    "CapacitiesInfo": headrace.Capacities,
    "EstimateInfo": headrace.Estimate,
    "SnapshotInfo": headrace.Snapshot,
}
"""Schemas of answers, and the results they become."""


@pytest.mark.parametrize("schema", TYPED)
def test_typed_results_say_all_that_the_service_says(schema: str) -> None:
    """So nobody needs the JSON."""
    document = json.loads((Path(__file__).parents[2] / "docs" / "openapi.json").read_text())
    said = set(document["components"]["schemas"][schema]["properties"])
    assert said <= {field.name for field in dataclasses.fields(TYPED[schema])}


def info(n_vertices: int, n_edges: int) -> GraphInfo:
    known = {**GRAPH, "n_vertices": n_vertices, "n_edges": n_edges, "version": 3}
    return GraphInfo.from_json(known)


def page(
    rows: list[tuple[Any, Any, Any, Any, bool, bool]], version: int = 3, next_offset: int | None = None
) -> Capacities:
    tail, head, ids, capacity, closed, undirected = zip(*rows, strict=True) if rows else ((),) * 6
    return Capacities(version, ids, tail, head, capacity, closed, undirected, next=next_offset)


def drawn(rows: list[Any], n_vertices: int, size: int = 2, vertices: Any = None) -> Any:
    """`rows` may have None for deleted edges, which count in offsets and are in no page."""
    pages = Pages(info(n_vertices, sum(row is not None for row in rows)))
    while (at := pages.next_edge) is not None:
        end = at + size
        there = [row for row in rows[at:end] if row is not None]
        pages.add(page(there, next_offset=end if end < len(rows) else None))
    while pages.next_vertex is not None:
        pages.add_vertices(VertexCapacities(3, vertices or range(n_vertices), [INF] * n_vertices))
    return pages.networkx()


INF = Decimal("Infinity")


def test_networkx_gets_what_it_means() -> None:
    graph = drawn([(0, 1, "a", 3, False, False), (1, 2, "b", INF, False, False), (1, 0, "c", 4, True, False)], 4)
    assert type(graph) is nx.DiGraph
    assert sorted(graph.nodes) == [0, 1, 2, 3]
    assert graph.edges[0, 1] == {"id": "a", "capacity": 3}
    assert graph.edges[1, 2] == {"id": "b"}
    assert graph.edges[1, 0] == {"id": "c", "capacity": 0, "closed": True, "open_capacity": 4}
    assert nx.maximum_flow_value(graph, 0, 2) == 3


def test_networkx_kinds() -> None:
    undirected = [("x", "y", 0, Decimal("1.5"), False, True), ("y", "z", 1, 2, False, True)]
    assert type(drawn(undirected, 3)) is nx.Graph
    assert type(drawn([*undirected, ("y", "x", 2, 1, False, True)], 3)) is nx.MultiGraph
    assert type(drawn([(0, 1, 0, 1, False, False), (0, 1, 1, 1, False, False)], 2)) is nx.MultiDiGraph
    mixed = drawn([("x", "y", 0, 3, False, False), ("z", "y", 1, 2, False, True)], 3)
    assert type(mixed) is nx.DiGraph
    assert mixed.edges["y", "z"] == mixed.edges["z", "y"] == {"id": 1, "capacity": 2, "undirected": True}
    assert nx.maximum_flow_value(mixed, "x", "z") == 2
    assert list(drawn([], 2).nodes) == [0, 1]
    assert list(drawn([], 2, vertices=["a", "b"]).nodes) == ["a", "b"]


def test_networkx_gets_the_vertices_that_are_there() -> None:
    """Of the numbers 0 to 5, 0 was deleted and 5 has no edges; labels may be numbers as well."""
    edges = [(1, 2, 0, 1, False, False), (3, 4, 1, 1, False, False)]
    assert list(drawn(edges, 5, vertices=[1, 2, 3, 4, 5]).nodes) == [1, 2, 3, 4, 5]
    assert list(drawn([(2, 0, 0, 1, False, False)], 3, vertices=[0, 2, 7]).nodes) == [0, 2, 7]


def test_no_edge_is_lost_or_doubled_where_others_were_deleted() -> None:
    edges = [(at, at + 1, at, at, False, False) for at in range(6)]
    for gone in ({0}, {0, 1}, {2, 3}, {1, 4, 5}, {0, 1, 2, 3, 4}):
        graph = drawn([None if at in gone else edge for at, edge in enumerate(edges)], 7)
        assert sorted(data["id"] for _, _, data in graph.edges(data=True)) == [at for at in range(6) if at not in gone]


def test_a_graph_that_changes_between_pages_is_refused() -> None:
    pages = Pages(info(2, 2))
    pages.add(page([(0, 1, 0, 1, False, False)]))
    with pytest.raises(headrace.VersionConflict):
        pages.add(page([(0, 1, 1, 1, False, False)], version=4))
