"""Every question leaves out edges that were deleted, and refuses their names as a PATCH does."""

from itertools import pairwise
from typing import Any

import httpx
import networkx as nx
import pytest

from tests.contract.asking import post, put
from tests.graphs import CITY

DELETE_C = {"op": "delete", "edges": ["c"]}
CLOSE_C = {"edges": ["c"], "op": "close"}
CLOSE_E = {"edges": ["e"], "op": "close"}
TRIANGLE = {
    "tail": ["x", "y", "x"],
    "head": ["y", "z", "z"],
    "capacity": [3, 2, 1],
    "edge_ids": ["p", "q", "r"],
    "vertex_labels": ["x", "y", "z"],
    "undirected": True,
}


@pytest.fixture
def city(http: httpx.Client) -> str:
    """Without c, of which the flow s-t needs nothing then: a 2, b 3, d 2, e 3."""
    graph = put(http, "city", {name: column for name, column in CITY.items() if not name.startswith("cost")})
    restructure(http, graph, DELETE_C)
    return graph


def restructure(http: httpx.Client, graph: str, *batch: dict[str, Any]) -> None:
    response = http.patch(f"{graph}/edges", json={"batch": batch})
    assert response.status_code == 200, response.text


def ask(http: httpx.Client, graph: str, question: str, **body: Any) -> dict[str, Any]:
    return post(http, f"{graph}/{question}", **body)


def as_patched(http: httpx.Client, graph: str, operation: dict[str, Any], **query: str) -> dict[str, Any]:
    """What a PATCH of it is refused with."""
    response = http.patch(f"{graph}/capacities", json={"batch": [operation]}, params={"dry_run": "true"} | query)
    assert response.status_code == 422, response.text
    problem: dict[str, Any] = response.json()
    return problem


@pytest.mark.parametrize("fields", [["value"], ["value", "cut"]])
def test_a_scenario_that_names_one_is_refused_as_the_patch_is(http: httpx.Client, city: str, fields: list[str]) -> None:
    scenarios = [{"batch": [operation]} for operation in (CLOSE_C, {"edges": ["c"], "set": [9]}, CLOSE_E)]
    first, second, last = ask(http, city, "what-if", scenarios=scenarios, fields=fields)["answers"]
    wanted = as_patched(http, city, CLOSE_C)
    assert wanted["code"] == "unknown_edge"
    for row in (first, second):
        error = row["error"]
        assert (error["code"], error["edges"]) == (wanted["code"], wanted["edges"])
        assert "was deleted" in error["detail"]
    assert (last["value"], last["change"]) == (2, -3)


def test_a_scenario_may_skip_one(http: httpx.Client, city: str) -> None:
    both = {"batch": [{"edges": ["c", "e"], "op": "close"}]}
    scenarios = [{"batch": [CLOSE_C]}, both]
    rows = ask(http, city, "what-if", scenarios=scenarios, on_missing="skip")["answers"]
    assert [row["value"] for row in rows] == [5, 2]


def test_one_is_no_candidate_of_a_closure_study(http: httpx.Client, city: str) -> None:
    answer = ask(http, city, "closure-study", candidates="all", top=None)
    assert (answer["base"]["value"], answer["candidates"], answer["solved"] + answer["skipped"]) == (5, 4, 4)
    rows = [(row["row"], row["edges"], row["loss"]) for row in answer["answers"]]
    assert rows == [(1, ["b"], 3), (3, ["e"], 3), (0, ["a"], 2), (2, ["d"], 2)]
    for candidates in (["a", "c"], [["a", "c"]]):
        response = http.post(f"{city}/closure-study", json={"candidates": candidates})
        problem = response.json()
        assert (response.status_code, problem["code"]) == (422, "unknown_edge")
        assert (problem["edges"], problem["field"]) == (["c"], "/candidates")


def test_one_that_was_directed_leaves_the_others_undirected(http: httpx.Client) -> None:
    graph = put(http, "triangle", TRIANGLE)
    arrow = {"op": "insert", "edge_ids": ["d"], "tail": ["x"], "head": ["z"], "capacity": [7], "undirected": False}
    restructure(http, graph, arrow)
    assert http.post(f"{graph}/gomory-hu-tree").json()["code"] == "not_undirected"
    assert len(ask(http, graph, "pairs", among=["x", "y", "z"])["answers"]) == 6
    restructure(http, graph, {"op": "delete", "edges": ["d"]})
    tree = ask(http, graph, "gomory-hu-tree")["tree"]
    assert sorted(tree["value"]) == [3, 4]
    rows = ask(http, graph, "pairs", among=["x", "y", "z"])["answers"]
    assert [(row["source"], row["sink"], row["value"]) for row in rows] == [("x", "y", 4), ("x", "z", 3), ("y", "z", 3)]
    found = ask(http, graph, "global-min-cut")
    assert (found["value"], found["cut"]["edges"]) == (3, ["q", "r"])
    assert found["cut"]["source_side"] == ["z"]


def test_trees_and_pairs_hold_what_was_inserted(http: httpx.Client) -> None:
    graph = put(http, "grown", TRIANGLE)
    more = {"edge_ids": ["u", "v"], "tail": ["z", "w"], "head": ["w", "x"], "capacity": [5, 4], "undirected": True}
    restructure(
        http, graph, {"op": "insert", "vertices": ["w"]}, {"op": "insert"} | more, {"op": "delete", "edges": ["q"]}
    )
    # x-y 3, x-z 1, z-w 5, w-x 4
    values = {("x", "y"): 3, ("x", "z"): 5, ("x", "w"): 5, ("y", "z"): 3, ("y", "w"): 3, ("z", "w"): 6}
    rows = ask(http, graph, "pairs", among=["x", "y", "z", "w"])["answers"]
    assert {(row["source"], row["sink"]): row["value"] for row in rows} == values
    tree = ask(http, graph, "gomory-hu-tree")["tree"]
    drawn = nx.Graph()
    for tail, head, value in zip(tree["tail"], tree["head"], tree["value"], strict=True):
        drawn.add_edge(tail, head, value=value)
    for (one, other), value in values.items():
        way = nx.shortest_path(drawn, one, other)
        assert min(drawn[u][v]["value"] for u, v in pairwise(way)) == value
    found = ask(http, graph, "global-min-cut")
    assert (found["value"], found["cut"]["edges"], found["cut"]["source_side"]) == (3, ["p"], ["y"])


def pairing(tail: list[int], head: list[int]) -> dict[str, Any]:
    return {"tail": tail, "head": head, "capacity": [1] * len(tail), "n_vertices": 5}


def size(http: httpx.Client, graph: str) -> tuple[int, list[int]]:
    answer = ask(http, graph, "matching", fields=["size", "matching", "cover"])
    cover, edges = answer["cover"], answer["matching"]["edges"]
    assert answer["size"] == len(edges) == len(cover["left"]) + len(cover["right"])
    return answer["size"], edges


def test_a_matching_after_one_was_deleted_and_another_inserted_in_its_place(http: httpx.Client) -> None:
    graph = put(http, "paired", pairing([0, 0, 1], [2, 3, 3]))
    assert size(http, graph) == (2, [0, 2])
    for new in (3, 4, 5):  # each takes the place of the one before
        gone = 0 if new == 3 else new - 1
        restructure(http, graph, {"op": "delete", "edges": [gone]})
        assert size(http, graph)[0] == 1
        restructure(http, graph, {"op": "insert", "tail": [0], "head": [2], "capacity": [1]})
        assert size(http, graph) == (2, [2, new])


def restore(http: httpx.Client, graph: str, version: int) -> None:
    response = http.post(f"{graph}:restore", json={"version": version})
    assert response.status_code == 200, response.text


def test_a_matching_after_what_was_deleted_is_there_again(http: httpx.Client) -> None:
    """The sides of the matching in between lack the vertices of the edge."""
    graph = put(http, "revived", pairing([0, 1], [2, 3]))
    restructure(http, graph, {"op": "delete", "edges": [1]})
    assert size(http, graph) == (1, [0])
    restore(http, graph, 1)
    assert size(http, graph) == (2, [0, 1])


def test_what_is_there_again_may_end_a_graphs_having_sides(http: httpx.Client) -> None:
    graph = put(http, "sided", pairing([0, 2], [2, 3]))
    restructure(http, graph, {"op": "delete", "edges": [1]})
    assert size(http, graph) == (1, [0])
    restore(http, graph, 1)
    response = http.post(f"{graph}/matching", json={})
    assert (response.status_code, response.json()["code"]) == (422, "not_bipartite")
