"""Cheapest flows through all real parts: API, Redis, worker, OR-tools in its process."""

from decimal import Decimal
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from headrace import Client, HasLowerBounds, InvalidBody, NoCosts

from tests.contract.asking import post, put
from tests.graphs import CITY

ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture
def city(http: httpx.Client) -> str:
    return put(http, "city", CITY)


def ask(http: httpx.Client, graph: str, **body: Any) -> dict[str, Any]:
    return post(http, f"{graph}/min-cost-flow", **body)


def patch(http: httpx.Client, graph: str, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    return http.patch(f"{graph}/costs", json=body, headers=headers)


def refusal(response: httpx.Response) -> tuple[int, str, str, Any]:
    problem = response.json()
    return response.status_code, problem["code"], problem["detail"], problem.get("field")


def test_the_cheapest_maximum_flow_and_its_proof(http: httpx.Client, city: str) -> None:
    response = http.post(f"{city}/min-cost-flow", json={"fields": ["flow", "dual"]})
    answer = response.json()
    assert response.headers["etag"].endswith('-1"')
    assert (answer["value"], answer["maximum"], answer["cost"], answer["mode"]) == (6, 6, 24, "cold")
    proof = {"value": 6, "flow_across_cut": 6, "cost": 24, "dual_bound": 24}
    assert answer["certificate"] == {"valid": True, "complete": True, **proof}
    assert answer["flow"] == {"edges": ["a", "b", "c", "d", "e"], "amount": [4, 2, 2, 2, 4]}
    assert answer["terminals"]["delivered"] == [6]
    potential = dict(zip(answer["dual"]["vertices"], answer["dual"]["potential"], strict=True))
    assert potential == {"s": 0, "u": 1, "v": 3, "t": 5}
    assert answer["dual"]["beyond"] == 5


def test_a_value_that_is_asked_for(http: httpx.Client, city: str) -> None:
    answer = ask(http, city, value=2, fields=["flow"])
    assert (answer["value"], answer["maximum"], answer["cost"]) == (2, 6, 6)
    assert answer["flow"] == {"edges": ["a", "c", "e"], "amount": [2, 2, 2]}
    assert "dual" not in answer
    assert ask(http, city, value="0")["cost"] == 0
    assert ask(http, city, supply=[3], sources=["s"])["value"] == 3


@pytest.mark.parametrize(
    ("body", "status", "code", "told"),
    [
        ({"value": 7}, 422, "infeasible", "a value of 7 is asked for, and the maximum is 6"),
        ({"value": -1}, 422, "invalid_body", "negative"),
        ({"value": "inf"}, 422, "invalid_body", 'not "inf"'),
        ({"value": [1]}, 422, "invalid_body", "is no amount"),
        ({"value": 1.5}, 422, "invalid_body", "more than 0 decimals"),
        ({"sources": ["x"]}, 422, "unknown_vertex", "'x'"),
        ({"fields": ["cut"]}, 422, "invalid_body", "cost"),
        ({"min_version": 9}, 409, "version_unavailable", "version 1"),
    ],
)
def test_refusals(http: httpx.Client, city: str, body: dict[str, Any], status: int, code: str, told: str) -> None:
    refused = refusal(http.post(f"{city}/min-cost-flow", json=body))
    assert refused[:2] == (status, code)
    assert told in refused[2]
    if "value" in body:
        assert refused[3] == "/value"
        assert "row 0" not in refused[2]


def test_a_graph_without_costs_says_how_to_get_some(http: httpx.Client) -> None:
    graph = put(http, "plain", {"tail": [0], "head": [1], "capacity": [3], "source": 0, "sink": 1})
    for response in (http.post(f"{graph}/min-cost-flow"), patch(http, graph, edges=[0], set=[1])):
        status, code, detail, _ = refusal(response)
        assert (status, code) == (422, "no_costs")
        assert "load it with a column `cost`" in detail
    assert "cost" not in http.get(f"{graph}/capacities").json()


def test_lower_bounds_are_not_passed_over_in_silence(http: httpx.Client, city: str) -> None:
    """Refused while an edge that is there has one; who says so gets the flow of the graph without them."""
    right = ask(http, city)
    assert http.patch(f"{city}/lower", json={"edges": ["c"], "set": [1]}).status_code == 200
    response = http.post(f"{city}/min-cost-flow", json={"value": 6})
    assert refusal(response)[:2] == (422, "has_lower_bounds")
    assert (response.json()["edges"], response.json()["field"]) == (["c"], "/lower")
    assert response.json()["detail"].startswith("1 edge has a lower bound")
    assert "--ignore-lower in the shell" in response.json()["detail"]
    ignored = ask(http, city, lower="ignore")
    assert (ignored["value"], ignored["cost"], ignored["version"]) == (right["value"], right["cost"], 2)
    assert refusal(http.post(f"{city}/min-cost-flow", json={"lower": "keep"}))[:2] == (422, "invalid_body")
    with Client(str(http.base_url)) as client:
        with pytest.raises(HasLowerBounds):
            client.graph("city").min_cost_flow()
        assert client.graph("city").min_cost_flow(lower="ignore").cost == right["cost"]
    assert http.patch(f"{city}/edges", json={"op": "delete", "edges": ["c"]}).status_code == 200
    ask(http, city)


def test_cycles_that_pay(http: httpx.Client) -> None:
    """One is used up to its limit, which is over the value; one without any has no cheapest flow."""
    cycle = {"tail": [0, 1, 2], "head": [1, 2, 1], "capacity": [2, "inf", 3], "cost": [1, -4, 1]}
    graph = put(http, "cycle", cycle)
    answer = ask(http, graph, sources=[0], sinks=[1], fields=["flow"])
    assert (answer["value"], answer["cost"]) == (2, 2 - 9)
    assert answer["flow"]["amount"] == [2, 3, 3]
    http.patch(f"{graph}/capacities", json={"edges": [2], "set": ["inf"]})
    status, code, detail, _ = refusal(http.post(f"{graph}/min-cost-flow", json={"sources": [0], "sinks": [1]}))
    assert (status, code) == (422, "unbounded")
    assert "costs less than nothing" in detail


def test_paths_of_the_cheapest_flow(http: httpx.Client, city: str) -> None:
    answer = ask(http, city, fields=["paths"])
    assert answer["paths"] == {
        "source": ["s", "s", "s"],
        "sink": ["t", "t", "t"],
        "amount": [2, 2, 2],
        "offsets": [0, 3, 5, 7],
        "edges": ["a", "c", "e", "a", "d", "b", "e"],
        "of": 3,
        "rest": 0,
    }
    assert answer["cycles"] == {"edges": [], "amount": []}
    assert answer["terminals"]["delivered"] == [6]
    assert "flow" not in answer
    most = ask(http, city, fields=["paths"], paths={"top": 1}, value=5)["paths"]
    assert (most["amount"], most["of"], most["rest"]) == ([2], 3, 3)
    for top in (0, 1_000_001, True, "2"):
        refused = http.post(f"{city}/min-cost-flow", json={"fields": ["paths"], "paths": {"top": top}})
        assert refusal(refused)[:2] == (422, "invalid_body"), top


def test_paths_lead_between_each_pair_of_terminals(http: httpx.Client) -> None:
    """Two depots and two shops, the nearer one is cheaper; the cycle that pays is beside the paths, edge by edge."""
    content = {
        "tail": ["A", "A", "B", "B", "x", "y"],
        "head": ["X", "Y", "X", "Y", "y", "x"],
        "capacity": [9, 9, 9, 9, 2.5, 4],
        "cost": [1, 5, 4, 2, -3, 1],
        "edge_ids": ["AX", "AY", "BX", "BY", "xy", "yx"],
    }
    graph = put(http, "depots", content)
    ends: dict[str, Any] = {"sources": ["A", "B"], "sinks": ["X", "Y"], "supply": [5, 4], "demand": [3, 6]}
    answer = ask(http, graph, **ends, fields=["flow", "paths"])
    paths = answer["paths"]
    found = list(zip(paths["source"], paths["sink"], paths["amount"], paths["edges"], strict=True))
    assert found == [("B", "Y", 4, "BY"), ("A", "X", 3, "AX"), ("A", "Y", 2, "AY")]
    assert answer["cycles"] == {"edges": ["xy", "yx"], "amount": [Decimal("2.5"), Decimal("2.5")]}
    flow = dict(zip(answer["flow"]["edges"], answer["flow"]["amount"], strict=True))
    assert flow == {"AX": 3, "AY": 2, "BY": 4, "xy": Decimal("2.5"), "yx": Decimal("2.5")}
    with Client(str(http.base_url)) as client:
        told = client.graph("depots").min_cost_flow(**_sdk(ends), fields=["paths"], top=2)
    assert told.paths is not None
    assert [(path.source, path.sink, path.amount, tuple(path.edges)) for path in told.paths] == [
        ("B", "Y", 4, ("BY",)),
        ("A", "X", 3, ("AX",)),
    ]
    assert (told.paths.of, told.paths.rest) == (3, 2)
    assert told.cycles is not None
    assert dict(zip(told.cycles.edges, told.cycles.amount, strict=True)) == {"xy": Decimal("2.5"), "yx": Decimal("2.5")}


def _sdk(ends: dict[str, Any]) -> dict[str, Any]:
    return {name.removesuffix("s") if name in ("sources", "sinks") else name: given for name, given in ends.items()}


def test_a_flow_without_bound_has_a_cheapest_one_of_each_value(http: httpx.Client) -> None:
    content = {"tail": [0, 0], "head": [1, 1], "capacity": ["inf", 3], "cost": [5, 2], "source": 0, "sink": 1}
    graph = put(http, "wide", content)
    answer = ask(http, graph, value=10)
    assert (answer["cost"], answer["maximum"], answer["certificate"]["flow_across_cut"]) == (41, None, None)
    assert refusal(http.post(f"{graph}/min-cost-flow"))[1] == "unbounded"


def test_undirected_edges_and_exact_decimals(http: httpx.Client) -> None:
    content = {"tail": [1, 1], "head": [0, 2], "capacity": [0.5, 1], "cost": ["0.01", 2.345], "undirected": True}
    graph = put(http, "both", content)
    answer = ask(http, graph, sources=[0], sinks=[2], fields=["flow"])
    assert (answer["value"], answer["cost"]) == (Decimal("0.5"), Decimal("1.1775"))
    assert answer["flow"]["amount"] == [Decimal("-0.5"), Decimal("0.5")]
    refused = refusal(http.put("/v1/graphs/both", json=content | {"cost": [1, -1]}))
    assert refused[:2] == (422, "invalid_body")
    assert refused[3] == "/cost"


def test_costs_change_and_flows_do_not(http: httpx.Client, city: str) -> None:
    assert http.post(f"{city}/max-flow").json()["mode"] == "cold"
    response = patch(http, city, edges=["d", "a"], set=[5, 1])
    assert response.headers["etag"].endswith('-2"')
    done = response.json()
    assert (done["version"], done["applied"], done["unchanged"], done["flow_states"]) == (2, 1, 1, [])
    kept = http.post(f"{city}/max-flow").json()
    assert (kept["version"], kept["mode"], kept["value"]) == (2, "unchanged", 6)
    assert ask(http, city)["cost"] == 26
    assert patch(http, city, tail=["u"], head=["v"], add=[-3]).status_code == 200
    assert patch(http, city, batch=[{"edges": ["e"], "scale": [2]}, {"edges": ["e"], "add": [1]}]).status_code == 200
    page = http.get(f"{city}/capacities").json()
    assert (page["version"], page["cost"]) == (4, [1, 3, -2, 5, 3])
    assert patch(http, city, edges=["zzz"], set=[1], on_missing="skip").json()["skipped"] == 1


@pytest.mark.parametrize(
    ("body", "code", "told"),
    [
        ({"edges": ["zzz"], "set": [1]}, "unknown_edge", "zzz"),
        ({"edges": ["a"], "set": ["inf"]}, "invalid_body", "a cost is a number"),
        ({"edges": ["a"], "op": "close"}, "invalid_body", "op"),
        ({"edges": ["a"], "set": [1, 2]}, "invalid_body", "2 amounts"),
        ({"edges": ["a", "a"], "set": [1, 2]}, "invalid_body", "twice"),
        ({"edges": ["a"], "set": [0.5]}, "invalid_body", "more than 0 decimals"),
        ({"edges": ["a"], "set": [10**18]}, "cost_overflow", "beyond"),
        ({"edges": ["a"], "scale": [10**30]}, "cost_overflow", "beyond"),
        ({"edges": ["a"]}, "invalid_body", "`scale`"),
    ],
)
def test_a_batch_of_costs_is_refused_whole(
    http: httpx.Client, city: str, body: dict[str, Any], code: str, told: str
) -> None:
    batch = {"batch": [{"edges": ["b"], "set": [9]}, body]}
    for sent in (body, batch):
        status, refused, detail, _ = refusal(patch(http, city, **sent))
        assert (status, refused) == (422, code)
        assert told in detail
    assert http.get(f"{city}/capacities").json()["cost"] == CITY["cost"]
    assert http.get(city).json()["version"] == 1


def test_versions_and_keys_count_for_costs(http: httpx.Client, city: str) -> None:
    assert patch(http, city, {"If-Match": '"7"'}, edges=["a"], set=[2]).status_code == 412
    key = {"Idempotency-Key": "once"}
    first, again = (patch(http, city, key, edges=["a"], add=[1]) for _ in range(2))
    assert first.json()["version"] == again.json()["version"] == 2
    assert patch(http, city, key, edges=["a"], add=[2]).status_code == 409
    assert http.get(f"{city}/capacities").json()["cost"][0] == 2


def test_costs_as_arrow(http: httpx.Client, city: str) -> None:
    page = pa.ipc.open_stream(http.get(f"{city}/capacities", headers={"Accept": ARROW}).content).read_all()
    assert page["cost"].to_pylist() == CITY["cost"]
    table = pa.table({"edge": ["a", "b"], "set": pa.array([25, -5])}).replace_schema_metadata({"decimals": "1"})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body, headers = sink.getvalue().to_pybytes(), {"Content-Type": ARROW}
    refused = refusal(http.patch(f"{city}/costs", content=body, headers=headers))
    assert refused[1] == "invalid_body"
    rounded = http.patch(f"{city}/costs?rounding=nearest", content=body, headers=headers)
    assert rounded.status_code == 200, rounded.text
    assert http.get(f"{city}/capacities").json()["cost"][:2] == [2, 0]


@pytest.mark.parametrize("format", ["npz", "arrow"])
def test_export_copy_and_restore_have_the_costs(http: httpx.Client, city: str, format: str) -> None:
    patch(http, city, edges=["d"], set=[5])
    exported = http.get(f"{city}/export?format={format}")
    again = http.put(
        "/v1/graphs/again", content=exported.content, headers={"Content-Type": exported.headers["content-type"]}
    )
    assert again.status_code in (200, 201)
    assert ask(http, "/v1/graphs/again")["cost"] == 26
    http.delete("/v1/graphs/city-2")
    assert http.post(f"{city}:copy", json={"to": "city-2"}).status_code == 201
    assert ask(http, "/v1/graphs/city-2")["cost"] == 26
    http.patch(f"{city}/capacities", json={"edges": ["a"], "set": [1]})
    back = http.post(f"{city}:restore", json={"version": 1}).json()
    assert (back["version"], back["applied"]) == (4, 2)
    assert ask(http, city)["cost"] == 24


def test_a_job_and_its_time_limit(http: httpx.Client) -> None:
    rng = np.random.default_rng(7)
    n, m = 10_000, 100_000
    tail, head = rng.integers(0, n, (2, m))
    content = {"tail": tail.tolist(), "head": head.tolist(), "capacity": rng.integers(1, 1000, m).tolist()}
    graph = put(http, "large", content | {"cost": rng.integers(0, 10**6, m).tolist(), "source": 0, "sink": n - 1})
    late = http.post(f"{graph}/min-cost-flow", json={"time_limit_s": 0.001})
    assert (late.status_code, late.json()["code"]) == (504, "timeout")
    job = http.post(f"{graph}/min-cost-flow", headers={"Prefer": "respond-async"}).json()
    cancelled = http.delete(job["location"]).json()
    assert cancelled["cancelling"] or cancelled["status"] == "cancelled"
    kept = http.post(f"{graph}/min-cost-flow", headers={"Prefer": "wait=60"}).json()
    assert kept["certificate"]["valid"]


def test_the_client(http: httpx.Client) -> None:
    with Client(str(http.base_url)) as client:
        graph = client.put_graph("sdk", tail=[0, 0], head=[1, 1], capacity=[2, 2], cost=[1.5, 0.25], source=0, sink=1)
        found = graph.min_cost_flow(0, 1, value=3, fields=["flow", "dual"])
        assert (found.value, found.maximum, found.cost) == (3, 4, Decimal("2"))
        assert found.flow is not None
        assert found.flow.amount == (1, 2)
        assert found.dual is not None
        assert found.certificate.dual_bound == found.certificate.cost == found.cost
        assert graph.patch(edges=[1], set=[7], column="cost").version == 2
        assert graph.min_cost_flow(value=3, wait=False).wait().cost == Decimal("10")
        assert graph.capacities().cost == (Decimal("1.5"), 7)
        with pytest.raises(InvalidBody):
            graph.patch(edges=[1], set=[0.001], column="cost")
        plain = client.put_graph("sdk-plain", tail=[0], head=[1], capacity=[2])
        with pytest.raises(NoCosts):
            plain.min_cost_flow(0, 1)
