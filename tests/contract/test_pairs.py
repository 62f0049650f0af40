"""Many pairs, Gomory-Hu trees and global minimum cuts through all real parts: API, Redis, worker."""

import json
import pathlib
import re
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import networkx as nx
import numpy as np
import pytest
from headrace import Client

from gpu_engine.networks.terminals import Terminals
from tests.contract.asking import post, put
from tests.contract.columns import of_arrow
from tests.graphs import CITY
from tests.oracle import maximum_flow
from tests.random_networks import random_edges

ROOT = Path(__file__).parents[2]
LINES = {"Accept": "application/x-ndjson"}
TRIANGLE = {
    "tail": ["x", "y", "x"],
    "head": ["y", "z", "z"],
    "capacity": [3, 2, 1],
    "edge_ids": ["p", "q", "r"],
    "undirected": True,
}


@pytest.fixture
def city(http: httpx.Client) -> str:
    return put(http, "city", CITY)


@pytest.fixture
def triangle(http: httpx.Client) -> str:
    return put(http, "triangle", TRIANGLE)


def asked(http: httpx.Client, graph: str, question: str, **body: Any) -> dict[str, Any]:
    return post(http, f"{graph}/{question}", **body)


def refused(http: httpx.Client, graph: str, question: str, **body: Any) -> tuple[int, str, Any]:
    response = http.post(f"{graph}/{question}", json=body)
    problem = response.json()
    return response.status_code, problem["code"], problem.get("field")


def grid(side: int, capacity: int = 1) -> dict[str, Any]:
    at = np.arange(side * side).reshape(side, side)
    tail = np.concatenate((at[:, :-1].ravel(), at[:-1].ravel()))
    head = np.concatenate((at[:, 1:].ravel(), at[1:].ravel()))
    return {"tail": tail.tolist(), "head": head.tolist(), "capacity": [capacity] * len(tail), "undirected": True}


def test_pairs_come_row_by_row_in_three_ways(http: httpx.Client, city: str) -> None:
    answer = asked(http, city, "pairs", source=["s", "s"], sink=["u", "v"])
    assert answer["answers"] == [
        {"row": 0, "source": "s", "sink": "u", "value": 4},
        {"row": 1, "source": "s", "sink": "v", "value": 5},
    ]
    assert (answer["graph"], answer["version"], answer["rows"]) == ("city", 1, 2)
    table = asked(http, city, "pairs", sources=["s", "u"], sinks=["v", "t"])["answers"]
    assert [(row["source"], row["sink"], row["value"]) for row in table] == [
        ("s", "v", 5),
        ("s", "t", 6),
        ("u", "v", 2),
        ("u", "t", 4),
    ]
    among = asked(http, city, "pairs", among=["s", "v", "t"])["answers"]
    values = {("s", "v"): 5, ("s", "t"): 6, ("v", "s"): 0, ("v", "t"): 4, ("t", "s"): 0, ("t", "v"): 0}
    assert {(row["source"], row["sink"]): row["value"] for row in among} == values
    assert http.get(city).json()["flow_states"] == 0


def test_undirected_pairs_stand_there_once(http: httpx.Client, triangle: str) -> None:
    among = asked(http, triangle, "pairs", among=["x", "y", "z"])["answers"]
    assert [(row["source"], row["sink"], row["value"]) for row in among] == [
        ("x", "y", 4),
        ("x", "z", 3),
        ("y", "z", 3),
    ]


def test_rows_have_the_fields_that_are_asked_for(http: httpx.Client, city: str) -> None:
    body = {"source": ["s", "s", "s"], "sink": ["t", "s", "v"], "fields": ["cut", "flow", "paths"]}
    row, same, last = asked(http, city, "pairs", **body)["answers"]
    one = asked(http, city, "max-flow", sources=["s"], sinks=["t"], fields=["cut", "flow", "paths"])
    assert [row[name] for name in ("cut", "flow", "paths")] == [one[name] for name in ("cut", "flow", "paths")]
    assert row["certificate"] == {"valid": True, "complete": True, "value": 6, "flow_across_cut": 6}
    assert same["error"]["code"] == "source_is_sink"
    assert last["value"] == 5


def test_lines(http: httpx.Client, city: str) -> None:
    response = http.post(f"{city}/pairs", json={"source": ["s", "s"], "sink": ["u", "zz"]}, headers=LINES)
    head, first, second, end = map(json.loads, response.text.splitlines())
    assert (head["rows"], first["value"]) == (2, 4)
    assert (second["error"]["code"], second["error"]["rows"], second["error"]["vertices"]) == (
        "unknown_vertex",
        [1],
        ["zz"],
    )
    assert end == {"done": True, "rows": 2}


def test_what_is_wrong_with_a_row_is_its_answer(http: httpx.Client) -> None:
    wide = put(http, "wide", {"tail": [0, 1, 2], "head": [1, 2, 3], "capacity": ["inf", "inf", "2.5"], "decimals": 1})
    rows = asked(http, wide, "pairs", source=[0, 0, 3, 9, 1], sink=[2, 3, 3, 1, 3])["answers"]
    assert [row.get("value") for row in rows] == [None, 2.5, None, None, 2.5]
    codes = ["unbounded", None, "source_is_sink", "unknown_vertex", None]
    assert [row.get("error", {}).get("code") for row in rows] == codes
    assert rows[0]["error"]["vertices"] == [0, 2]  # the ends alone; a question with fields looks for the path
    (row,) = asked(http, wide, "pairs", source=[0], sink=[2], fields=["cut"])["answers"]
    assert row["error"]["vertices"] == [0, 1, 2]


def test_clumsy_questions_are_refused(http: httpx.Client, city: str, triangle: str) -> None:
    for body, field in (
        ({}, "/source"),
        ({"source": ["s"]}, "/sink"),
        ({"source": ["s"], "sink": ["t", "u"]}, "/sink"),
        ({"source": ["s"], "sink": ["t"], "among": ["s"]}, "/source"),
        ({"sources": ["s"]}, "/sinks"),
        ({"among": ["s", "s"]}, "/among"),
        ({"source": ["s"], "sink": ["t"], "fields": ["paths"], "flow": {"acyclic": False}}, "/flow"),
    ):
        assert refused(http, city, "pairs", **body) == (422, "invalid_body", field), body
    assert refused(http, city, "pairs", sources=["zz"], sinks=["t"]) == (422, "unknown_vertex", "/sources")
    assert refused(http, city, "pairs", among=["s", "zz"]) == (422, "unknown_vertex", "/among")
    many = list(range(320))
    big = put(http, "line", {"tail": many, "head": [v + 1 for v in many], "capacity": [1] * 320})
    assert refused(http, big, "pairs", sources=many, sinks=many)[:2] == (413, "too_large")
    assert refused(http, big, "pairs", among=many)[:2] == (413, "too_large")  # both ways
    assert refused(http, big, "pairs", source=[0] * 100_001, sink=[1] * 100_001)[:2] == (413, "too_large")
    for body in ({"source": [], "sink": []}, {"sources": [], "sinks": ["s"]}, {"among": []}, {"among": ["s"]}):
        assert asked(http, city, "pairs", **body)["answers"] == []
    assert refused(http, city, "gomory-hu-tree") == (422, "not_undirected", None)
    assert refused(http, triangle, "gomory-hu-tree", terminals=[]) == (422, "invalid_body", "/terminals")
    assert refused(http, triangle, "gomory-hu-tree", terminals=["x", "x"]) == (422, "invalid_body", "/terminals")
    assert refused(http, triangle, "gomory-hu-tree", terminals=["w"]) == (422, "unknown_vertex", "/terminals")


def test_many_pairs_on_several_threads_are_those_of_another_solver(http: httpx.Client) -> None:
    edges = random_edges(np.random.default_rng(5), 60)
    columns = {"tail": edges.tail.tolist(), "head": edges.head.tolist(), "undirected": bool(edges.undirected is True)}
    capacity = np.minimum(edges.capacity, 10**6)
    used = int(max(edges.tail.max(), edges.head.max())) + 1
    graph = put(http, "random", {**columns, "capacity": capacity.tolist(), "n_vertices": edges.n_vertices})
    rng = np.random.default_rng(6)
    pairs = np.array([rng.choice(used, 2, replace=False) for _ in range(500)])
    answer = asked(http, graph, "pairs", source=pairs[:, 0].tolist(), sink=pairs[:, 1].tolist())["answers"]
    assert [row["row"] for row in answer] == list(range(500))
    plain = type(edges)(edges.n_vertices, edges.tail, edges.head, capacity, columns["undirected"])
    for row, (source, sink) in list(zip(answer, pairs, strict=True))[::7]:
        assert row["value"] == maximum_flow(plain, capacity, Terminals.of([source], [sink]))


def test_updates_do_not_wait_and_rows_are_of_one_version(http: httpx.Client) -> None:
    graph = put(http, "grid", grid(120, 5))
    rng = np.random.default_rng(1)
    source, sink = (rng.permutation(14_400)[:3000].tolist() for _ in range(2))
    found: list[dict[str, Any]] = []
    asking = threading.Thread(target=lambda: found.append(asked(http, graph, "pairs", source=source, sink=sink)))
    asking.start()
    while not any(job["status"] == "running" for job in http.get("/v1/jobs").json()["jobs"]) and not found:
        time.sleep(0.005)
    patch = http.patch(f"{graph}/capacities", json={"edges": list(range(28_560)), "scale": [2] * 28_560})
    assert patch.status_code == 200, patch.text
    asking.join()
    values = {row["value"] for row in found[0]["answers"] if "value" in row}
    assert values <= ({10, 15, 20} if found[0]["version"] == 1 else {20, 30, 40})


def test_a_cancel_and_a_time_limit_end_it(http: httpx.Client) -> None:
    """The tree takes seconds, so that it is cancelled long before it could end: thin places cut off stretches of the
    ring, and what flows between two of these goes all the way round."""
    n = 12_000
    tail, head = [*range(n), *range(n)], [(i + step) % n for step in (1, 2) for i in range(n)]
    capacity = np.random.default_rng(1).choice([1, 3, 10], 2 * n).tolist()
    ring = {"tail": tail, "head": head, "capacity": capacity, "undirected": True}
    graph, every = put(http, "slow", ring), list(range(n))
    assert refused(http, graph, "gomory-hu-tree", terminals=every, time_limit_s=0.01)[:2] == (504, "timeout")
    assert refused(http, graph, "pairs", among=every[::60], fields=["cut"], time_limit_s=0.01)[:2] == (504, "timeout")
    started = http.post(f"{graph}/gomory-hu-tree", json={"terminals": every}, headers={"Prefer": "wait=0"})
    assert started.status_code == 202
    job = started.headers["location"]
    while http.get(job).json()["status"] == "queued":
        time.sleep(0.01)
    assert http.delete(job).status_code == 200
    while (status := http.get(job).json()["status"]) == "running":
        time.sleep(0.01)
    assert status == "cancelled"
    assert asked(http, graph, "pairs", source=[0], sink=[1])["answers"][0]["value"] > 0


def test_a_tree(http: httpx.Client, triangle: str) -> None:
    answer = asked(http, triangle, "gomory-hu-tree")
    rows = zip(*(answer["tree"][name] for name in ("tail", "head", "value")), strict=True)
    assert {(frozenset((tail, head)), value) for tail, head, value in rows} == {
        (frozenset("xy"), 4),
        (frozenset("yz"), 3),
    } or sorted(answer["tree"]["value"]) == [3, 4]
    assert answer["certificate"] == {"valid": True, "rows": 2}
    some = asked(http, triangle, "gomory-hu-tree", terminals=["x", "z"], fields=["tree", "groups"])
    assert (some["tree"]["tail"], some["tree"]["head"], some["tree"]["value"]) == (["z"], ["x"], [3])
    assert some["groups"] == {"vertices": ["y"], "terminal": ["x"]}
    assert asked(http, triangle, "gomory-hu-tree", terminals=["x"])["tree"]["tail"] == []
    wide = put(http, "joined", {**TRIANGLE, "capacity": ["inf", 2, 1]})
    assert sorted(asked(http, wide, "gomory-hu-tree")["tree"]["value"], key=str) == [3, "inf"]


@pytest.mark.usefixtures("beside_examples")
@pytest.mark.parametrize("heading", ["### Rows as they come", "## Pairs", "## Global minimum cut"])
def test_the_program_of_the_page(http: httpx.Client, heading: str, capsys: pytest.CaptureFixture[str]) -> None:
    section = (ROOT / "docs" / "api.md").read_text().partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    (program,) = re.findall(r"```python\n(.*?)```", section, re.S)
    program = program.replace("http://127.0.0.1:8080", str(http.base_url))
    exec(program, {"Client": Client, "pathlib": pathlib, "np": np})
    printed = capsys.readouterr().out.split()
    assert all(int(word) > 0 for word in printed)


def test_a_tree_in_columns(http: httpx.Client, triangle: str) -> None:
    response = http.post(f"{triangle}/gomory-hu-tree", headers={"Accept": "application/x-npz"})
    assert response.headers["content-type"] == "application/x-npz"
    body = {"fields": ["groups"], "terminals": ["x", "z"]}
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    assert http.post(f"{triangle}/gomory-hu-tree", json=body, headers=headers).status_code == 200
    both = http.post(f"{triangle}/gomory-hu-tree", json=body | {"fields": ["tree", "groups"]}, headers=headers)
    _, columns = of_arrow(both.content)
    assert columns.keys() == {"tail", "head", "value", "unlimited", "vertices", "terminal"}
    assert [name.encode() in both.content for name in ("tree.tree", "groups.groups")] == [False, False]


def test_a_global_cut(http: httpx.Client, triangle: str, city: str) -> None:
    answer = asked(http, triangle, "global-min-cut")
    assert answer["value"] == 3
    cut = {"value": 3, "edges": ["q", "r"], "pays": [2, 1], "source_side": ["z"], "sink_side": ["x", "y"]}
    assert answer["cut"] == cut
    divided = asked(http, city, "global-min-cut", fields=["value"])
    assert (divided["value"], "leads from" in divided["reason"]) == (0, True)  # nothing leaves t
    assert "reason" not in answer
    assert "cut" not in asked(http, city, "global-min-cut", fields=["value"])
    ring = {"tail": [0, 1, 2], "head": [1, 2, 0], "capacity": [5, 3, 4]}
    turned = asked(http, put(http, "ring", ring), "global-min-cut")
    assert (turned["value"], turned["cut"]["edges"], turned["cut"]["pays"]) == (3, [1], [3])
    assert 1 in turned["cut"]["source_side"]
    assert 2 in turned["cut"]["sink_side"]
    big = put(http, "meshed", grid(60, 2))
    assert asked(http, big, "global-min-cut", fields=["value"])["value"] == 4
    drawn = nx.grid_2d_graph(5, 5)
    nx.set_edge_attributes(drawn, 2, "weight")
    assert asked(http, put(http, "small", grid(5, 2)), "global-min-cut")["value"] == nx.stoer_wagner(drawn)[0]


def test_what_has_no_cut(http: httpx.Client) -> None:
    alone = put(http, "alone", {"tail": [0], "head": [0], "capacity": [1]})
    assert refused(http, alone, "global-min-cut")[:2] == (422, "invalid_body")
    joined = put(http, "unlimited", {"tail": [0, 1], "head": [1, 0], "capacity": ["inf", "inf"]})
    assert refused(http, joined, "global-min-cut")[:2] == (422, "unbounded")
