"""Flows with lower bounds, through all real parts: API, Redis, worker, client and shell."""

import io
import json
import pathlib
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from headrace import Client, InvalidInput, NewEdges
from typer.testing import CliRunner

from service.cli.main import app
from tests.contract.asking import post, put, refusal
from tests.graphs import CITY
from tests.shared_services import OFTEN_SAVED, Services

NPZ, ARROW = "application/x-npz", "application/vnd.apache.arrow.stream"
RING = {
    "tail": ["x", "y", "z", "x"],
    "head": ["y", "z", "x", "z"],
    "capacity": [2.5, "inf", 1.25, 4],
    "edge_ids": ["p", "q", "r", "w"],
    "undirected": [False, False, False, True],
}
"""
::

    x -- 2.5 --> y -- no limit --> z -- 1.25 --> x, and w: x - z either way, 4
"""


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent(OFTEN_SAVED) as service:
        yield service.http


@pytest.fixture
def city(http: httpx.Client) -> str:
    return put(http, "city", CITY)


@pytest.fixture
def ring(http: httpx.Client) -> str:
    return put(http, "ring", RING)


def ask(http: httpx.Client, graph: str, **body: Any) -> dict[str, Any]:
    answer = post(http, f"{graph}/circulation", **body)
    assert answer["certificate"] == {"valid": True, "complete": True}
    return answer


def test_no_flow_of_seven_reaches_the_sink(http: httpx.Client, city: str) -> None:
    answer = ask(http, city, sources=["s"], sinks=["t"], min_demand=[7])
    assert (answer["graph"], answer["version"], answer["feasible"], answer["mode"]) == ("city", 1, False, "cold")
    assert answer["proof"] == {
        "vertices": ["t"],
        "must_enter": 7,
        "can_enter": 6,
        "edges": ["d", "e"],
        "capacity": [2, 4],
        "bound_edges": [],
        "lower": [],
    }
    assert "flow" not in answer
    assert ask(http, city, sources=["s"], sinks=["t"], min_demand=[6])["feasible"]


def test_a_flow_keeps_all_bounds(http: httpx.Client, city: str) -> None:
    body = {"sources": ["s"], "sinks": ["t"], "min_demand": [3], "demand": [5], "edges": ["c", "b"], "lower": [2, 1]}
    answer = ask(http, city, **body, fields=["flow"])
    assert answer["feasible"]
    assert "proof" not in answer
    flow = dict(zip(answer["flow"]["edges"], answer["flow"]["amount"], strict=True))
    assert flow["c"] >= 2
    assert flow["b"] >= 1
    (delivered,) = answer["terminals"]["delivered"]
    assert delivered == flow.get("d", 0) + flow["e"]
    assert 3 <= delivered <= 5
    zeros = ask(http, city, edges=["b"], lower=[1], fields=["flow"], flow={"zeros": True})
    assert zeros["flow"]["edges"] == ["a", "b", "c", "d", "e"]
    assert "flow" not in ask(http, city, **body)


def test_what_must_leave_and_cannot(http: httpx.Client, city: str) -> None:
    proof = ask(http, city, sources=["s"], sinks=["t"], min_supply=[5], demand=[4])["proof"]
    assert (proof["must_leave"], proof["can_leave"], proof["edges"]) == (5, 4, [])
    assert proof["vertices"] == ["s", "u", "v", "t"]
    assert "must_enter" not in proof
    proof = ask(http, city, sources=["s"], sinks=["t"], edges=["a"], lower=[4], demand=[3])["proof"]
    assert (proof["vertices"], proof["must_leave"], proof["can_leave"]) == (["u", "v", "t"], 4, 3)
    assert (proof["bound_edges"], proof["edges"]) == (["a"], [])


def test_terminals_of_the_graph_or_none(http: httpx.Client, city: str, ring: str) -> None:
    assert ask(http, city, edges=["a"], lower=[1])["feasible"]  # from s to t
    proof = ask(http, city, sources=[], sinks=[], edges=["a"], lower=[1])["proof"]
    assert (proof["vertices"], proof["edges"], proof["bound_edges"]) == (["s"], [], ["a"])
    assert ask(http, city, sources=["s"], sinks=[], min_supply=[0])["feasible"]
    assert not ask(http, city, sources=["s"], sinks=[], min_supply=[1])["feasible"]
    assert ask(http, ring)["feasible"]


def test_a_circulation_in_the_decimals_of_the_graph(http: httpx.Client, ring: str) -> None:
    answer = ask(http, ring, edges=["q"], lower=["2.25"], fields=["flow"])
    flow = dict(zip(answer["flow"]["edges"], answer["flow"]["amount"], strict=True))
    assert flow["q"] == flow["p"] == Decimal("2.25")
    assert flow.get("r", 0) - flow["w"] == Decimal("2.25")
    proof = ask(http, ring, edges=["q"], lower=[2.75])["proof"]
    assert (proof["vertices"], proof["must_enter"], proof["can_enter"]) == (["y"], Decimal("2.75"), Decimal("2.5"))


def test_closed_edges_carry_nothing(http: httpx.Client, city: str) -> None:
    assert ask(http, city, edges=["c"], lower=[1])["feasible"]
    assert http.patch(f"{city}/capacities", json={"edges": ["c"], "op": "close"}).status_code == 200
    answer = ask(http, city, edges=["a", "c"], lower=[1, 1])
    assert answer["version"] == 2
    proof = {"vertices": [], "must_carry": 1, "can_carry": 0, "edges": ["c"], "capacity": [0]}
    assert answer["proof"] == proof | {"bound_edges": ["c"], "lower": [1]}
    assert ask(http, city, edges=["c"], lower=[0])["feasible"]
    assert http.patch(f"{city}/edges", json={"edges": ["c"], "op": "delete"}).status_code == 200
    response = http.post(f"{city}/circulation", json={"edges": ["a", "c"], "lower": [1, 1]})
    assert refusal(response) == (422, "unknown_edge", "/edges")
    assert (response.json()["rows"], response.json()["edges"]) == ([1], ["c"])


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"edges": ["a"]}, 422, "invalid_body", "/lower"),
        ({"lower": [1]}, 422, "invalid_body", "/lower"),
        ({"edges": ["a"], "lower": [1, 2]}, 422, "invalid_body", "/lower"),
        ({"edges": ["a"], "lower": [-1]}, 422, "invalid_body", "/lower"),
        ({"edges": ["a"], "lower": ["inf"]}, 422, "invalid_body", "/lower"),
        ({"edges": ["a"], "lower": [0.5]}, 422, "invalid_body", "/lower"),
        ({"edges": ["a"], "lower": [10**30]}, 422, "capacity_overflow", "/lower"),
        ({"edges": ["a", "b"], "lower": [10**18, 10**18]}, 422, "capacity_overflow", None),
        ({"edges": ["a", "a"], "lower": [1, 1]}, 422, "invalid_body", "/edges"),
        ({"edges": ["a", "zz"], "lower": [1, 1]}, 422, "unknown_edge", "/edges"),
        ({"edges": ["a"] * 2001, "lower": [1] * 2001}, 413, "too_large", "/edges"),
        ({"min_demand": [1]}, 422, "invalid_body", "/min_demand"),
        ({"sinks": ["t"], "min_demand": [1, 2]}, 422, "invalid_body", "/min_demand"),
        ({"sinks": ["t"], "min_demand": ["inf"]}, 422, "invalid_body", "/min_demand"),
        ({"sinks": ["t"], "min_demand": [-1]}, 422, "invalid_body", "/min_demand"),
        ({"sinks": ["t"], "min_demand": [3], "demand": [2]}, 422, "invalid_body", "/min_demand"),
        ({"sources": ["s"], "min_supply": [0.5]}, 422, "invalid_body", "/min_supply"),
        ({"sources": ["q"]}, 422, "unknown_vertex", "/sources"),
        ({"sources": ["s", "s"]}, 422, "invalid_body", "/sources"),
        ({"sources": ["t"], "sinks": ["t"]}, 422, "source_is_sink", None),
        ({"fields": ["cut"]}, 422, "invalid_body", "/fields/0"),
        ({"least": 1}, 422, "invalid_body", "/least"),
        ({"min_version": 9}, 409, "version_unavailable", None),
    ],
)
def test_a_question_that_cannot_be_asked(
    http: httpx.Client, city: str, body: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    assert refusal(http.post(f"{city}/circulation", json=body)) == (status, code, field)


def test_undirected_edges_have_no_lower_bound(http: httpx.Client, ring: str) -> None:
    response = http.post(f"{ring}/circulation", json={"edges": ["p", "w"], "lower": [1, 1]})
    assert refusal(response) == (422, "not_directed", "/edges")
    assert (response.json()["rows"], response.json()["edges"]) == ([1], ["w"])
    assert ask(http, ring, edges=["w"], lower=[0])["feasible"]


def test_what_must_flow_is_rounded_if_that_is_asked_for(http: httpx.Client, city: str) -> None:
    body = {"sources": ["s"], "sinks": ["t"], "min_demand": [6.25]}
    assert ask(http, city, **body, rounding="down")["feasible"]
    assert ask(http, city, **body, rounding="up")["proof"]["must_enter"] == 7


def test_answers_in_columns(http: httpx.Client, city: str, ring: str) -> None:
    body: dict[str, Any] = {"sources": ["s"], "sinks": ["t"], "min_demand": [7]}
    response = http.post(f"{city}/circulation", json=body, headers={"Accept": NPZ})
    with np.load(io.BytesIO(response.content)) as file:
        assert file["proof.capacity"].tolist() == [2, 4]
        assert bytes(file["proof.edges.utf8"]) == b"de"
        assert b'"must_enter":7' in bytes(file["answer"])
    body = {"edges": ["q"], "lower": [1.25], "fields": ["flow"]}
    response = http.post(f"{ring}/circulation", json=body, headers={"Accept": ARROW})
    table = pa.ipc.open_stream(response.content).read_all()
    assert table.column("edges").to_pylist()[:2] == ["p", "q"]
    assert table.column("amount").to_pylist()[:2] == [125, 125]
    strings = http.post(f"{ring}/circulation", json=body, headers={"Accept": "application/json; numbers=string"})
    assert strings.json()["flow"]["amount"][:2] == ["1.25", "1.25"]


def test_a_time_limit_a_job_and_no_state(http: httpx.Client, city: str) -> None:
    body = {"edges": ["a"], "lower": [1], "fields": ["flow"]}
    assert refusal(http.post(f"{city}/circulation", json=body | {"time_limit_s": 1e-9}))[:2] == (504, "timeout")
    asked = http.post(f"{city}/circulation", json=body, headers={"Prefer": "respond-async"})
    assert asked.status_code == 202
    for _ in range(600):
        result = http.get(asked.headers["location"] + "/result")
        if result.status_code == 200 and "feasible" in result.json():
            break
    assert result.json()["feasible"]
    assert http.get(city).json()["flow_states"] == 0


@pytest.mark.usefixtures("beside_examples")
def test_the_program_of_the_page(http: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Its proof holds by hand: nothing but one street leads to the junctions behind it."""
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    (program,) = (block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "roads.circulation" in block)
    names: dict[str, Any] = {"Client": Client, "pathlib": pathlib}
    exec(compile(program.replace("http://127.0.0.1:8080", str(http.base_url)), "api.md", "exec"), names)
    assert capsys.readouterr().out.splitlines() == ["300 True None", "500 False (500, 300, [73273])"]
    inside = np.zeros(56519, np.bool_)
    inside[list(names["plan"].proof.vertices)] = True
    with np.load(Path(__file__).parents[2] / "examples" / "osm-heidelberg.npz") as roads:
        enter = np.flatnonzero(~inside[roads["src"]] & inside[roads["dst"]])
        assert (enter.tolist(), roads["cap"][enter].tolist()) == ([73273], [300])
    assert (inside.sum(), inside[np.arange(5000, 50000, 5000)].sum()) == (48, 1)


def test_minima_go_with_the_vertices_they_are_for(http: httpx.Client, city: str) -> None:
    """Whatever the order in which they are named."""
    body: dict[str, Any] = {"sources": ["v", "s"], "sinks": ["t", "u"], "min_supply": [2, 1], "min_demand": [1, 2]}
    answer = ask(http, city, **body, supply=[2, 1], demand=[1, 2], fields=["flow"])
    assert not answer["feasible"]
    assert (answer["proof"]["must_leave"], answer["proof"]["can_leave"]) == (2, 1)
    assert answer["proof"]["vertices"] == ["v", "t"]
    answer = ask(http, city, **body | {"min_demand": [2, 1]}, supply=[2, 1], demand=[2, 1], fields=["flow"])
    assert answer["terminals"] == {"sources": ["s", "v"], "supplied": [1, 2], "sinks": ["u", "t"], "delivered": [1, 2]}


def test_lower_bounds_that_stay_with_the_graph(http: httpx.Client) -> None:
    lower = [0, 3, 0, 0.5, 0]
    graph = put(http, "bounded", CITY | {"lower": lower})
    asked: dict[str, Any] = {"sources": ["s"], "sinks": ["t"], "fields": ["flow"]}
    found = ask(http, graph, **asked)
    carried = dict(zip(found["flow"]["edges"], found["flow"]["amount"], strict=True))
    assert (carried["b"], carried["d"] >= 0.5) == (3, True)
    assert http.get(f"{graph}/capacities").json()["lower"] == lower
    page = http.get(f"{graph}/capacities", headers={"Accept": NPZ})
    assert np.load(io.BytesIO(page.content))["lower"].tolist() == [0, 30, 0, 5, 0]
    change = {"edges": ["b", "e"], "set": [0, 4]}
    dry = http.patch(f"{graph}/lower", params={"dry_run": "true"}, json=change).json()
    assert (dry["version"], dry["dry_run"], dry["applied"]) == (1, True, 2)
    done = http.patch(f"{graph}/lower", json=change, headers={"If-Match": '"1"', "Idempotency-Key": "k"})
    assert (done.json()["version"], done.json()["applied"], done.json()["flow_states"]) == (2, 2, [])
    again = http.patch(f"{graph}/lower", json=change, headers={"If-Match": '"1"', "Idempotency-Key": "k"})
    assert again.json()["version"] == 2
    for wrong, code in (
        ({"edges": ["b"], "set": ["inf"]}, "invalid_body"),
        ({"edges": ["b"], "set": [-1]}, "invalid_body"),
        ({"edges": ["b"], "op": "close"}, "invalid_body"),
        ({"edges": ["zz"], "set": [1]}, "unknown_edge"),
    ):
        response = http.patch(f"{graph}/lower", json=wrong)
        assert (response.status_code, response.json()["code"]) == (422, code), wrong
    assert "capacities" in http.get(f"{graph}/lower").json()["detail"]
    http.post(f"{graph}:copy", json={"to": "copied"})
    assert http.get("/v1/graphs/copied/capacities").json()["lower"] == [0, 0, 0, 0.5, 4]
    assert not ask(http, "/v1/graphs/copied", sources=["s"], sinks=["t"], demand=[3])["feasible"]
    assert ask(http, "/v1/graphs/copied", sources=["s"], sinks=["t"], demand=[3], edges=[], lower=[])["feasible"]


def test_other_questions_say_that_they_do_not_keep_them(http: httpx.Client) -> None:
    """All that answer a graph whose edges have lower bounds; that of a deleted edge is none."""
    body = CITY | {"lower": [0, 0, 1, 0, 0]}
    graph = put(http, "kept-by-none", body)
    questions: dict[str, dict[str, Any]] = {
        "max-flow": {},
        "min-cut": {},
        "min-cost-flow": {"lower": "ignore"},
        "what-if": {"scenarios": [{"batch": [{"edges": ["e"], "op": "close"}]}]},
        "closure-study": {},
        "pairs": {"source": ["s"], "sink": ["t"]},
        "global-min-cut": {},
        "parametric": {"edges": ["d"], "to": 2},
        "capacity-expansion": {"raise_by": 1, "edges": ["d"], "price": [1]},
    }

    def told(question: str, headers: dict[str, str] | None = None) -> httpx.Response:
        response = http.post(f"{graph}/{question}", json=questions[question], headers=headers)
        assert response.status_code == 200, response.text
        return response

    assert {question: told(question).json().get("lower") for question in questions} == dict.fromkeys(
        questions, "ignored"
    )
    for question in ("what-if", "pairs", "closure-study"):
        header = told(question, {"Accept": "application/x-ndjson"}).text.partition("\n")[0]
        assert json.loads(header)["lower"] == "ignored"
    assert "lower" not in ask(http, graph)
    with Client(str(http.base_url)) as client:
        handle = client.graph("kept-by-none")
        found = handle.max_flow(), handle.pairs(["s"], ["t"]), handle.global_min_cut(), handle.closure_study()
        assert {answer.lower for answer in found} == {"ignored"}
        for words in (["solve"], ["cut"], ["closures"], ["global-cut"], ["expand", "1", "d=1"]):
            command, *more = words
            shown = CliRunner().invoke(app, [command, "kept-by-none", *more, "--url", str(http.base_url)])
            assert "headrace circulation keeps them" in shown.output, shown.output
        handle.delete_edges(["c"])
        assert handle.max_flow().lower is None
    assert not [question for question in ("max-flow", "what-if", "pairs") if "lower" in told(question).json()]


def test_updates_say_that_the_flows_do_not_keep_them(http: httpx.Client) -> None:
    graph, change = put(http, "updated", CITY), {"edges": ["a"], "set": [1]}

    def told(column: str, query: str = "", **more: Any) -> str | None:
        response = http.patch(f"{graph}/{column}{query}", json=change | more)
        assert response.status_code == 200, response.text
        lower: str | None = response.json().get("lower")
        return lower

    http.post(f"{graph}/max-flow", json={})
    assert (told("lower", set=[0]), told("capacities")) == (None, None)
    told("lower")  # tells of no flows, which stay as they are
    assert (told("capacities", "?dry_run=true"), told("capacities")) == ("ignored", "ignored")
    assert told("capacities", "?solve=none") is None
    with Client(str(http.base_url)) as client:
        assert client.graph("updated").patch(edges=["a"], set=[2]).lower == "ignored"
    assert told("lower", set=[0]) is None
    assert told("capacities") is None


def test_a_dry_run_says_what_the_update_would_say_of_them(http: httpx.Client) -> None:
    """An insertion brings the first lower bound, and a deletion takes the last one."""
    graph = put(http, "bounded", CITY)
    http.post(f"{graph}/max-flow", json={})
    first = {"op": "insert", "edge_ids": ["x"], "tail": ["s"], "head": ["t"]}
    first |= {"capacity": [1], "cost": [1], "lower": [1]}
    for change, lower in ((first, "ignored"), ({"op": "delete", "edges": ["x"]}, None)):
        answers = [http.patch(f"{graph}/edges{query}", json=change).json() for query in ("?dry_run=true", "")]
        assert [(len(answer["flow_states"]), answer.get("lower")) for answer in answers] == [(1, lower)] * 2


def test_watches_say_that_their_flows_do_not_keep_them(http: httpx.Client) -> None:
    """When they are made, when they are looked at, and in what they tell."""
    graph = put(http, "watched", CITY)
    made = http.put(f"{graph}/watches/w", json={}).json()
    assert "lower" not in made
    http.patch(f"{graph}/lower", json={"edges": ["a"], "set": [1]}).raise_for_status()
    assert http.put(f"{graph}/watches/other", json={}).json()["lower"] == "ignored"
    with Client(str(http.base_url)) as client:
        handle = client.graph("watched")
        assert {watch.name: watch.lower for watch in handle.watches()} == {"w": "ignored", "other": "ignored"}
        with handle.events(after="0") as events:
            http.patch(f"{graph}/capacities", json={"edges": ["a"], "set": [2]}).raise_for_status()
            changed = next(event for event in events if event.type == "value.changed")
        assert changed.data["lower"] == "ignored"
        http.patch(f"{graph}/lower", json={"edges": ["a"], "set": [0]}).raise_for_status()
        assert {watch.lower for watch in handle.watches()} == {None}
        assert "lower" not in http.get(f"{graph}/watches/w").json()
        handle.unwatch("other")


def test_the_client_sends_and_reads_them(http: httpx.Client) -> None:
    with Client(str(http.base_url)) as client:
        graph = client.put_graph("n", tail=[0, 1], head=[1, 2], capacity=[3, 2.5], lower=[1, 0.0], source=0, sink=2)
        page = graph.capacities()
        assert page.lower is not None
        assert list(page.lower) == [1, 0]
        assert graph.patch(edges=[1], add=[2], column="lower").version == 2
        many = NewEdges(tail=[0] * 200, head=[2] * 200, capacity=1, lower=[Decimal("0.5")] + [0] * 199)
        assert graph.restructure(edges=many).inserted_edges == 200
        after = graph.capacities().lower
        assert after is not None
        assert [*after[:3]] == [1, 2, Decimal("0.5")]
        plan = graph.circulation(0, 2, fields=["flow"])
        assert plan.flow is not None
        flow = dict(zip(plan.flow.edges, plan.flow.amount, strict=True))
        assert (flow[1] >= 2, flow[2] >= Decimal("0.5")) == (True, True)
        with pytest.raises(InvalidInput, match="lower bounds"):
            graph.patch(edges=[1], set=[2], column="lower", solve="none")
