"""`"cut": {"near": "sinks"}` through all real parts: API, Redis, worker; the client and the shell command."""

import io
import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from headrace import Client, End, Scenario
from typer.testing import CliRunner

from service.cli.main import app
from tests.contract.asking import post
from tests.serving import Service
from tests.shared_services import Services

CHAIN = {"tail": ["s", "u", "v"], "head": ["u", "v", "t"], "capacity": [3, 3, 3], "edge_ids": ["a", "b", "c"]}
"""Each of its edges is a minimum cut."""
ENDS: dict[End, list[str]] = {"sources": ["a"], "sinks": ["c"]}
OPEN: dict[str, Any] = {"sources": ["s"], "sinks": ["t"]}


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    with services.lent() as running:
        running.http.put("/v1/graphs/chain", json=CHAIN | {"source": "s", "sink": "t"}).raise_for_status()
        yield running


@pytest.fixture
def http(service: Service) -> httpx.Client:
    return service.http


def ask(http: httpx.Client, question: str, **body: Any) -> dict[str, Any]:
    return post(http, f"/v1/graphs/chain/{question}", **body)


@pytest.mark.parametrize("question", ["max-flow", "min-cut"])
def test_the_cut_is_the_one_nearest_the_end_that_is_named(http: httpx.Client, question: str) -> None:
    for near, edges in ENDS.items():
        cut = ask(http, question, fields=["cut"], cut={"near": near})["cut"]
        assert (cut["edges"], cut["pays"], cut["value"], cut["unique"]) == (edges, [3], 3, False)
    assert ask(http, question, fields=["cut"])["cut"]["edges"] == ["a"]
    assert ask(http, question, fields=["cut"], cut={})["cut"]["edges"] == ["a"]


def test_caps_are_paid_at_either_end(http: httpx.Client) -> None:
    capped = OPEN | {"supply": [2], "demand": [2], "fields": ["cut"]}
    here = ask(http, "max-flow", **capped)["cut"]
    there = ask(http, "max-flow", **capped, cut={"near": "sinks"})["cut"]
    assert (here["edges"], here["sources"], here["source_pays"], here["sinks"]) == ([], ["s"], [2], [])
    assert (there["edges"], there["sinks"], there["sink_pays"], there["sources"]) == ([], ["t"], [2], [])


def test_in_columns(http: httpx.Client) -> None:
    body = {"cut": {"near": "sinks"}}
    found = http.post("/v1/graphs/chain/min-cut", json=body, headers={"Accept": "application/x-npz"})
    arrays = dict(np.load(io.BytesIO(found.content)))
    said = json.loads(arrays["answer"].tobytes())
    side = np.unpackbits(arrays["cut.source_side"], count=said["cut"]["n_vertices"], bitorder="little")
    assert side.sum() == 3
    assert arrays["cut.edges.utf8"].tobytes() == b"c"


@pytest.mark.parametrize("form", ["application/json", "application/x-npz", "application/vnd.apache.arrow.stream"])
def test_a_cut_without_its_sides(service: Service, form: str) -> None:
    """It says what is paid, and no word of the other vertices."""
    whole, short = (
        service.http.post("/v1/graphs/chain/min-cut", json={"cut": {"sides": sides}}, headers={"Accept": form})
        for sides in (True, False)
    )
    assert short.status_code == 200
    for word in (b"source_side", b"sink_side", b"n_vertices"):
        assert word not in short.content
    assert b"source_side" in whole.content
    with Client(service.url) as client:
        chain = client.graph("chain")
        cut = chain.min_cut(sides=False).cut
        assert cut is not None
        assert ([*cut.edges], [*cut.pays], cut.value, cut.unique) == (["a"], [3], 3, False)
        assert ([*cut.source_side], [*cut.sink_side]) == ([], [])
        closed = chain.what_if([Scenario(close=["b"])], fields=["cut"], sides=False)[0]
        assert closed.cut is not None
        assert ([*closed.cut.edges], [*closed.cut.sink_side]) == ([], [])
        (pair,) = chain.pairs(["s"], ["v"], fields=["cut"], sides=False)
        assert pair.cut is not None
        assert [*pair.cut.edges] == ["a"]


def test_rows_of_what_if_and_pairs_obey_it(http: httpx.Client) -> None:
    option = {"fields": ["cut"], "cut": {"near": "sinks"}}
    closed = {"batch": [{"edges": ["b"], "add": [-1]}]}
    same, less = ask(http, "what-if", scenarios=[{"batch": []}, closed], **option)["answers"]
    assert (same["cut"]["edges"], less["cut"]["edges"]) == (["c"], ["b"])
    (pair,) = ask(http, "pairs", source=["s"], sink=["v"], **option)["answers"]
    assert pair["cut"]["edges"] == ["b"]


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "max-flow", {"cut": {"near": "sink"}}, "/cut/near"),
        ("POST", "max-flow", {"cut": {"side": "mask"}}, "/cut/side"),
        ("POST", "min-cut", {"cut": "sinks"}, "/cut"),
        ("POST", "min-cut", {"cut": {"near": None}}, "/cut/near"),
        ("POST", "what-if", {"scenarios": [{"cut": {"near": "sinks"}}]}, "/scenarios/0/cut"),
        ("POST", "closure-study", {"cut": {"near": "sinks"}}, "/cut"),
        ("POST", "global-min-cut", {"cut": {"near": "sinks"}}, "/cut"),
        ("POST", "matching", {"cut": {"near": "sinks"}}, "/cut"),
        ("PUT", "watches/main", {"cut": {"near": "sinks"}}, "/cut"),
    ],
)
def test_what_does_not_know_it_refuses_it(
    http: httpx.Client, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    response = http.request(method, f"/v1/graphs/chain/{path}", json=body)
    problem = response.json()
    assert (response.status_code, problem["code"], problem.get("field")) == (422, "invalid_body", field)


def test_the_client_and_the_command_have_it(service: Service) -> None:
    with Client(service.url) as client:
        chain = client.graph("chain")
        for near, edges in ENDS.items():
            cut = chain.min_cut("s", "t", near=near).cut
            assert cut is not None
            assert cut.edges == edges
            (pair,) = chain.pairs(source=["s"], sink=["t"], fields=["cut"], near=near)
            assert pair.cut is not None
            assert pair.cut.edges == edges
    for near, edges in ENDS.items():
        for words in (["cut"], ["solve", "--cut"]):
            told = CliRunner().invoke(
                app, [words[0], "chain", *words[1:], "--near", near, "--json", "--url", service.url]
            )
            assert json.loads(told.stdout)["cut"]["edges"] == edges, told.output
    assert CliRunner().invoke(app, ["cut", "chain", "--near", "middle", "--url", service.url]).exit_code == 2
