"""Matchings through all real parts: API, Redis, worker, engine."""

from typing import Any

import httpx
import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from tests.contract.asking import post, put


@pytest.fixture
def shift(http: httpx.Client) -> str:
    """A fresh copy each time; everyone can drive the near load, Ann the far one as well.

    ::

        Ann --far--> L2
           \\
            near
              v
        Bob --> L1 <-- Cy
    """
    content = {
        "tail": ["Ann", "Ann", "Bob", "Cy"],
        "head": ["L1", "L2", "L1", "L1"],
        "capacity": [1, 1, 1, 1],
        "edge_ids": ["near", "far", "bob", "cy"],
    }
    return put(http, "shift", content)


def ask(http: httpx.Client, graph: str, **body: Any) -> dict[str, Any]:
    return post(http, f"{graph}/matching", **body)


def patch(http: httpx.Client, graph: str, **body: Any) -> dict[str, Any]:
    response = http.patch(f"{graph}/capacities", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def refusal(http: httpx.Client, graph: str, **body: Any) -> tuple[int, str, list[Any]]:
    response = http.post(f"{graph}/matching", json=body)
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    return response.status_code, problem["code"], problem.get("vertices") or problem.get("edges") or problem["rows"]


def test_a_matching_and_its_proof(http: httpx.Client, shift: str) -> None:
    response = http.post(f"{shift}/matching")
    answer = response.json()
    assert response.headers["etag"].endswith('-1"')
    assert (answer["graph"], answer["version"], answer["size"], answer["mode"]) == ("shift", 1, 2, "cold")
    assert answer["certificate"] == {"valid": True, "complete": True, "value": 2, "flow_across_cut": 2}
    assert dict(zip(answer["matching"]["left"], answer["matching"]["right"], strict=True))["Ann"] == "L2"
    assert "far" in answer["matching"]["edges"]
    assert len(answer["cover"]["left"]) + len(answer["cover"]["right"]) == 2
    assert answer["cover"]["right"] in (["L1"], ["L1", "L2"])
    assert answer["timings_ms"].keys() == {"queue", "solve", "certificate", "fields", "total"}
    assert ask(http, shift)["mode"] == "unchanged"
    assert http.get(shift).json()["flow_states"] == 1


@pytest.mark.parametrize(
    ("fields", "shown"),
    [(["size"], set()), (["matching"], {"matching"}), (["cover", "size"], {"cover"}), ([], set())],
)
def test_fields(http: httpx.Client, shift: str, fields: list[str], shown: set[str]) -> None:
    answer = ask(http, shift, fields=fields)
    assert answer["size"] == 2
    assert answer.keys() & {"matching", "edges", "left", "right", "cover"} == shown


def test_an_update_repairs_it(http: httpx.Client, shift: str) -> None:
    """The answer of a PATCH does not list all left and right vertices each time."""
    ask(http, shift)
    (state,) = patch(http, shift, edges=["far"], op="close")["flow_states"]
    assert (state["kind"], state["old_value"], state["value"], state["mode"]) == ("matching", 2, 1, "warm")
    assert (state["sources"], state["sinks"]) == ([], [])
    answer = ask(http, shift, min_version=2)
    assert (answer["version"], answer["size"], answer["mode"]) == (2, 1, "unchanged")
    assert answer["matching"]["right"] == ["L1"]
    (state,) = patch(http, shift, edges=["far"], op="reopen")["flow_states"]
    assert (state["value"], state["mode"]) == (2, "warm")


def test_a_flow_between_the_same_vertices_is_told_apart(http: httpx.Client, shift: str) -> None:
    ask(http, shift)
    http.post(f"{shift}/max-flow", json={"sources": ["Ann", "Bob"], "sinks": ["L1"]}).raise_for_status()
    flow, matching = patch(http, shift, edges=["near"], set=[2])["flow_states"]
    assert (flow["kind"], flow["sources"], flow["value"]) == ("flow", ["Ann", "Bob"], 3)
    assert (matching["kind"], matching["sources"], matching["value"]) == ("matching", [], 2)


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs_through_random_updates(http: httpx.Client, seed: int) -> None:
    """After each PATCH the same size as SciPy's Hopcroft-Karp finds, and a proof that holds."""
    rng = np.random.default_rng(seed)
    n_left, n_right = rng.integers(2, 60, 2).tolist()
    m = int(rng.integers(2, 3 * (n_left + n_right)))
    left, right = rng.integers(0, n_left, m), n_left + rng.integers(0, n_right, m)
    capacity = rng.choice([0, 1, 1.5, 7], m)
    content = {"tail": left.tolist(), "head": right.tolist(), "capacity": capacity.tolist()}
    if seed % 2:
        turned = rng.random(m) < 0.5
        tail, head = np.where(turned, right, left), np.where(turned, left, right)
        content |= {"tail": tail.tolist(), "head": head.tolist(), "undirected": (rng.random(m) < 0.5).tolist()}
    body = {"left": list(range(n_left))} if seed % 2 else {}
    graph = put(http, f"random-{seed}", content | {"n_vertices": n_left + n_right})
    is_open = np.ones(m, bool)
    for step in range(8):
        at = f"seed {seed} step {step}"
        answer = ask(http, graph, **body)
        usable = is_open & (capacity > 0)
        best = coo_array((np.ones(usable.sum(), np.int8), (left[usable], right[usable] - n_left)), (n_left, n_right))
        size = int((maximum_bipartite_matching(best.tocsr(), perm_type="column") >= 0).sum())
        assert answer["size"] == len(answer["matching"]["edges"]) == answer["certificate"]["value"] == size, at
        check_proof(answer, left, right, usable, at)
        assert answer["mode"] == "cold" or (step and not seed % 2), at
        named = rng.choice(m, min(m, 4), replace=False)
        is_open[named] = rng.random() < 0.4
        patch(http, graph, edges=named.tolist(), op="reopen" if is_open[named[0]] else "close")


def check_proof(answer: dict[str, Any], left: np.ndarray, right: np.ndarray, usable: np.ndarray, at: str) -> None:
    matching = answer["matching"]
    rows = np.array(matching["edges"], int)
    assert usable[rows].all(), at
    assert (left[rows].tolist(), right[rows].tolist()) == (matching["left"], matching["right"]), at
    assert len(set(matching["left"])) == len(set(matching["right"])) == len(rows), at
    cover = answer["cover"]
    assert len(cover["left"]) + len(cover["right"]) == len(rows), at
    assert (np.isin(left, cover["left"]) | np.isin(right, cover["right"]))[usable].all(), at


def test_vertices_on_both_sides_are_named(http: httpx.Client) -> None:
    chain = put(http, "chain", {"tail": ["a", "b", "x"], "head": ["b", "c", "x"], "capacity": [1, 1, 0]})
    assert refusal(http, chain) == (422, "not_bipartite", ["b", "x"])
    assert refusal(http, chain, left=["a", "c"]) == (422, "not_bipartite", ["x"])
    told = http.post(f"{chain}/matching", json={"left": ["a", "c"]}).json()["detail"]
    assert told == "1 vertex has an edge to its own side"
    star = {"tail": [0] * 30, "head": list(range(1, 31)), "capacity": [1] * 30, "undirected": True}
    status, code, rows = refusal(http, put(http, "star", star))
    assert (status, code, len(rows)) == (422, "not_bipartite", 10)


def test_undirected_edges_with_the_left_side_named(http: httpx.Client) -> None:
    """Used both ways, y's edges would carry a third unit, from a by y and c to x.

    ::

        a --- y --- c --- x
             /       \\
        b --'         z
    """
    content = {"tail": list("abccz"), "head": list("yyyxc"), "capacity": [1] * 5, "undirected": True}
    graph = put(http, "undirected", content)
    answer = ask(http, graph, left=["a", "b", "c"])
    assert (answer["size"], answer["mode"]) == (2, "cold")
    assert set(answer["matching"]["left"]) <= set("abc")
    patch(http, graph, edges=[3, 4], op="close")
    answer = ask(http, graph, left=["a", "b", "c"])
    assert (answer["size"], answer["mode"], answer["matching"]["right"]) == (1, "cold", ["y"])
    assert http.get(graph).json()["flow_states"] == 0


def test_less_than_one_is_neither_open_nor_closed(http: httpx.Client) -> None:
    graph = put(http, "narrow", {"tail": [0, 1, 2], "head": [3, 3, 4], "capacity": [0.5, 1.5, 0]})
    assert refusal(http, graph) == (422, "invalid_body", [0])
    patch(http, graph, edges=[0], op="close")
    assert ask(http, graph)["size"] == 1


def test_graphs_without_edges(http: httpx.Client) -> None:
    graph = put(http, "bare", {"n_vertices": 3, "tail": [], "head": [], "capacity": []})
    for body in ({}, {"left": [0]}):
        answer = ask(http, graph, **body)
        assert (answer["size"], answer["cover"]) == (0, {"left": [], "right": []})
        assert answer["matching"] == {"edges": [], "left": [], "right": []}
        assert answer["certificate"]["valid"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"left": ["Nobody"]}, 422, "unknown_vertex"),
        ({"left": [0]}, 422, "unknown_vertex"),
        ({"left": []}, 422, "invalid_body"),
        ({"left": ["Ann", "Bob", "Ann"]}, 422, "invalid_body"),
        ({"fields": ["value"]}, 422, "invalid_body"),
        ({"fields": ["edges"]}, 422, "invalid_body"),
        ({"sources": ["Ann"]}, 422, "invalid_body"),
        ({"time_limit_s": 0}, 422, "invalid_body"),
        ({"min_version": 99}, 409, "version_unavailable"),
    ],
)
def test_refused_questions(http: httpx.Client, shift: str, body: dict[str, Any], status: int, code: str) -> None:
    assert refusal(http, shift, **body)[:2] == (status, code)
    assert refusal(http, "/v1/graphs/nowhere")[:2] == (404, "unknown_graph")


def test_a_left_vertex_that_is_named_twice_is_told(http: httpx.Client, shift: str) -> None:
    problem = http.post(f"{shift}/matching", json={"left": ["Bob", "Ann", "Bob"]}).json()
    assert problem["detail"] == "'Bob' is named twice"
    assert (problem["rows"], problem["vertices"], problem["field"]) == ([0, 2], ["Bob"], "/left")


def test_it_is_a_job_like_others(http: httpx.Client, shift: str) -> None:
    pending = http.post(f"{shift}/matching", headers={"Prefer": "respond-async"})
    assert pending.status_code == 202
    job = http.get(pending.headers["location"], headers={"Prefer": "wait=20"}).json()
    assert (job["kind"], job["status"], job["result"]["size"]) == ("matching", "succeeded", 2)
    assert "event: done" in http.get(pending.headers["location"] + "/events").text


def test_time_limit_and_cancel(http: httpx.Client) -> None:
    """Half a million edges: more than a millisecond of work, and enough to be cancelled in."""
    rng = np.random.default_rng(5)
    left, right = rng.integers(0, 100_000, 500_000), 100_000 + rng.integers(0, 100_000, 500_000)
    content = {"tail": left.tolist(), "head": right.tolist(), "capacity": [1] * 500_000}
    graph = put(http, "large", content)
    assert refusal(http, graph, time_limit_s=0.001)[:2] == (504, "timeout")
    jobs = [http.post(f"{graph}/matching", headers={"Prefer": "respond-async"}).json()["id"] for _ in range(2)]
    for job in jobs[::-1]:
        http.delete(f"/v1/jobs/{job}")
    ends = [http.get(f"/v1/jobs/{job}", headers={"Prefer": "wait=60"}).json()["status"] for job in jobs]
    assert set(ends) <= {"cancelled", "succeeded"}
    answer = ask(http, graph)
    assert answer["size"] == len(answer["matching"]["edges"])
    check_proof(answer, left, right, np.ones(500_000, bool), "seed 5")
