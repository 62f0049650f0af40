"""An option the client does not know is refused before anything is sent, and the error names the one that was meant."""

import asyncio
import inspect
import json
import re
from typing import Any

import httpx
import numpy as np
import pytest
from headrace import AsyncClient, AsyncGraph, Client, Graph, Grid, HeadraceError, InvalidInput, Scenario, Update

from tests.unit.test_sdk_client import GRAPH

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("patch", {"edges": [0], "set": [1], "if_verson": 3}, "did you mean 'if_version'"),
    ("patch", {"edges": [0], "set": [1], "validate": True}, "on_missing, rounding, if_version, solve, idempotency_key"),
    ("patch", {"edges": [0], "set": [1], "dryrun": True}, "did you mean 'dry_run'"),
    ("patch", {"edges": [0], "sett": [1]}, "did you mean 'set'"),
    ("patch", {"edges": [0], "op": "close"}, "close() and reopen()"),
    ("patch", {"edges": [0], "set": [1], "tail": [0], "head": [1]}, "use patch_endpoints("),
    ("patch", {"edges": [0], "set": [1], "if_match": '"3"'}, "use if_version=7"),
    ("patch_endpoints", {"tail": [0], "head": [1], "set": [1], "timout_s": 3}, "did you mean 'timeout_s'"),
    ("close", {"edges": [0], "on_mising": "skip"}, "did you mean 'on_missing'"),
    ("reopen", {"edges": [0], "idempotence_key": "k"}, "did you mean 'idempotency_key'"),
    ("apply", {"updates": [], "solv": "none"}, "did you mean 'solve'"),
    ("max_flow", {"time_limt_s": 1}, "did you mean 'time_limit_s'"),
    ("max_flow", {"sources": [0], "sinks": [3]}, "use source="),
    ("max_flow", {"source": 0, "sinks": [3]}, "use sink="),
    ("max_flow", {"flow": {"zeros": True}}, "use zeros=True"),
    ("max_flow", {"wait": False, "feilds": ["flow"]}, "did you mean 'fields'"),
    ("min_cut", {"wait": False}, "has no option 'wait': it returns with its answer; stream=True of what_if"),
    ("min_cut", {"minversion": 4}, "did you mean 'min_version'"),
    ("what_if", {"scenarios": [], "sources": [0]}, "use source="),
    ("what_if", {"scenarios": [], "field": ["cut"]}, "did you mean 'fields'"),
    ("closure_study", {"candidate": "cut"}, "did you mean 'candidates'"),
    ("closure_study", {"sources": [0]}, "use source="),
    ("pairs", {"amongst": [0]}, "did you mean 'among'"),
    ("gomory_hu_tree", {"terminal": [0]}, "did you mean 'terminals'"),
    ("global_min_cut", {"field": ["cut"]}, "did you mean 'fields'"),
    ("bottlenecks", {"upto": 3}, "did you mean 'up_to'"),
    ("max_flow", {"bottlenecks": {"up_to": 3}}, "use up_to="),
    ("parametric", {"edges": [0], "from_": 1, "to": 2}, "use start="),
    ("parametric", {"edges": [0], "till": 2}, "has no option 'till'"),
    ("capacity_expansion", {"raise_by": 1, "edges": [0], "prices": [1]}, "did you mean 'price'"),
    ("circulation", {"lowers": {}}, "did you mean 'lower'"),
    ("circulation", {"sinks": [3]}, "use sink="),
    ("partition", {"k": 2, "vertex_weights": {}}, "did you mean 'vertex_weight'"),
    ("matching", {"lefts": [0]}, "did you mean 'left'"),
    ("matching", {"supply": [1]}, "has no option 'supply'"),
]
COLUMNS: list[tuple[dict[str, Any], str]] = [
    ({"edge_id": [1]}, "did you mean 'edge_ids'"),
    ({"labels": ["a", "b"]}, "use vertex_labels="),
    ({"directed": True}, "use undirected=False"),
    ({"sources": [0]}, "use source="),
    ({"decimal": 2}, "did you mean 'decimals'"),
    ({"timeout": 2}, "did you mean 'timeout_s'"),
]
GIVEN = {"tail": [0], "head": [1], "capacity": [3]}


def refuse_requests(request: httpx.Request) -> httpx.Response:
    """Only the graph itself is answered."""
    assert request.method == "GET", "nothing is sent"
    return httpx.Response(200, json=GRAPH)


def client() -> Client:
    return Client("http://service", transport=httpx.MockTransport(refuse_requests))


@pytest.mark.parametrize(("method", "options", "hint"), CASES)
def test_an_unknown_option_names_the_one_that_was_meant(method: str, options: dict[str, Any], hint: str) -> None:
    with client() as service, pytest.raises(TypeError) as refused:
        getattr(service.graph("city"), method)(**options)
    assert hint in str(refused.value)


@pytest.mark.parametrize(("method", "options", "hint"), CASES)
def test_the_asynchronous_client_refuses_the_same(method: str, options: dict[str, Any], hint: str) -> None:
    async def ask() -> None:
        async with AsyncClient("http://service", transport=httpx.MockTransport(refuse_requests)) as service:
            await getattr(await service.graph("city"), method)(**options)

    with pytest.raises(TypeError) as refused:
        asyncio.run(ask())
    assert hint in str(refused.value)


@pytest.mark.parametrize(("columns", "hint"), COLUMNS)
def test_an_unknown_column_of_a_graph(columns: dict[str, Any], hint: str) -> None:
    with client() as service, pytest.raises(TypeError) as refused:
        service.put_graph("city", **GIVEN, **columns)
    assert hint in str(refused.value)


def test_every_option_that_is_documented_is_known() -> None:
    """Each reaches the request: the names of the options are those of their types."""
    asked: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=GRAPH) if request.method == "GET" else httpx.Response(418)

    with Client("http://service", transport=httpx.MockTransport(keep)) as service:
        graph: Graph = service.graph("city")
        calls: list[Any] = [
            lambda: graph.max_flow(
                0, 3, supply=1, demand=1, fields=["value"], zeros=True, min_version=1, time_limit_s=1
            ),
            lambda: graph.matching([0], fields=["size"], min_version=1, time_limit_s=1),
            lambda: graph.patch(edges=[0], scale=[1], on_missing="skip", rounding="down", if_version=1, solve="none"),
        ]
        for call in calls:
            with pytest.raises(HeadraceError):
                call()
    sent = [request.content.decode() for request in asked[1:]]
    assert all(word in sent[0] for word in ("supply", "demand", "fields", "zeros", "min_version", "time_limit_s"))
    assert all(word in sent[1] for word in ("left", "fields", "min_version", "time_limit_s"))
    assert all(word in sent[2] for word in ("on_missing", "rounding"))
    assert (asked[3].headers["If-Match"], asked[3].url.params["solve"]) == ('"1"', "none")


def test_how_fields_are_shown_is_sent_by_all_that_have_them() -> None:
    asked: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=GRAPH) if request.method == "GET" else httpx.Response(418)

    with Client("http://service", transport=httpx.MockTransport(keep)) as service:
        graph: Graph = service.graph("city")
        calls: list[Any] = [
            lambda: graph.what_if([], 0, 3, fields=["flow", "paths"], zeros=True, acyclic=False, near="sinks", top=3),
            lambda: graph.pairs([0], [3], fields=["flow", "paths"], zeros=True, acyclic=False, near="sinks", top=3),
            lambda: graph.insert_edges([0], [3], 5, lower=2),
        ]
        for call in calls:
            with pytest.raises(HeadraceError):
                call()
    what_if, pairs, inserted = (json.loads(request.content) for request in asked[1:])
    for sent in (what_if, pairs):
        assert sent["fields"] == ["flow", "paths"]
        assert (sent["flow"], sent["cut"]) == ({"zeros": True, "acyclic": False}, {"near": "sinks"})
        assert sent["paths"] == {"top": 3}
    assert inserted["batch"] == [{"op": "insert", "tail": [0], "head": [3], "capacity": [5], "lower": [2]}]


@pytest.mark.parametrize(
    ("method", "options", "told"),
    [
        ("max_flow", {"wait": False, "timeout_s": 3}, "timeout_s= .* does nothing beside wait=False"),
        ("max_flow", {"wait": False, "progress": True}, "progress= .* does nothing beside wait=False"),
        ("partition", {"k": 2, "wait": False, "timeout_s": 3}, "timeout_s= .* does nothing beside wait=False"),
        (
            "what_if",
            {"scenarios": [], "stream": True, "progress": True},
            "progress= .* beside stream=True",
        ),
        ("pairs", {"among": [0], "stream": True, "progress": True}, "progress= .* beside stream=True"),
        ("closure_study", {"stream": True, "progress": True}, "progress= .* beside stream=True"),
        ("bottlenecks", {"fields": ["flow"]}, "fields= is for max_flow"),
        ("bottlenecks", {"near": "sinks"}, "near= is for max_flow"),
        ("flow_map", {"up_to": 3}, "up_to= is for max_flow"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(method: str, options: dict[str, Any], told: str) -> None:
    with client() as service, pytest.raises(InvalidInput, match=told):
        getattr(service.graph("city"), method)(**options)

    async def ask() -> None:
        async with AsyncClient("http://service", transport=httpx.MockTransport(refuse_requests)) as service:
            await getattr(await service.graph("city"), method)(**options)

    with pytest.raises(InvalidInput, match=told):
        asyncio.run(ask())


@pytest.mark.parametrize(
    ("call", "options", "told"),
    [
        (Client, {"apikey": "k"}, "Client has no option 'apikey': did you mean 'api_key'?"),
        (AsyncClient, {"time_out_s": 1}, "did you mean 'timeout_s'"),
        (Scenario, {"closed": [1]}, "Scenario has no option 'closed': did you mean 'close'?"),
        (Update, {"edge": [1]}, "did you mean 'edges'"),
        (Grid, {"link": 1}, "did you mean 'links'"),
        (Graph.export, {"versoin": 3}, "export() has no option 'versoin': did you mean 'version'?"),
        (AsyncGraph.export, {"versoin": 3}, "did you mean 'version'"),
        (Client.put_webhook, {"urls": "x"}, "did you mean 'url'"),
    ],
)
def test_so_are_options_that_are_parameters(call: Any, options: dict[str, Any], told: str) -> None:
    """Python would name the wrong one alone."""
    with pytest.raises(TypeError, match=re.escape(told)):
        call(
            *([None, "g"] if call.__name__ == "export" else [None] if call.__name__ == "put_webhook" else []), **options
        )


def test_what_python_says_of_the_rest_stays() -> None:
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        Grid(np.ones((2, 2)))  # type: ignore[call-arg]  # as a caller may
    assert str(inspect.signature(Graph.export)).startswith("(self, path: ")
