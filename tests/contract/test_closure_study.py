"""Closure studies through all real parts: API, Redis, worker."""

import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import httpx
import numpy as np
import pytest

from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.terminals import Terminals
from tests.contract.asking import post, put, refusal
from tests.graphs import CITY
from tests.oracle import maximum_flow
from tests.shared_services import OFTEN_SAVED, Services

LINES = {"Accept": "application/x-ndjson"}
STRING_LINES = {"Accept": "application/x-ndjson; numbers=string"}


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent(OFTEN_SAVED) as service:
        yield service.http


@pytest.fixture
def city(http: httpx.Client) -> str:
    return put(http, "city", CITY)


def ask(http: httpx.Client, graph: str, **body: Any) -> dict[str, Any]:
    return post(http, f"{graph}/closure-study", **body)


def shown(answer: dict[str, Any]) -> list[tuple[int, list[Any], Any, Any]]:
    closed = "vertices" if any("vertices" in row for row in answer["answers"]) else "edges"
    return [(row["row"], row[closed], row["value"], row["loss"]) for row in answer["answers"]]


def test_vertices(http: httpx.Client, city: str) -> None:
    answer = ask(http, city, close="vertices", top=None)
    assert (answer["candidates"], shown(answer)) == (2, [(1, ["v"], 2, 4), (0, ["u"], 3, 3)])
    assert all(row["certificate"]["valid"] and "edges" not in row for row in answer["answers"])
    assert shown(ask(http, city, close="vertices", candidates="cut")) == [(1, ["v"], 2, 4), (0, ["u"], 3, 3)]
    several = ask(http, city, close="vertices", candidates=[["u", "v"], ["t"], []])
    assert shown(several) == [(0, ["u", "v"], 0, 6), (1, ["t"], 0, 6), (2, [], 6, 0)]
    body = {"close": "vertices", "candidates": ["u", "a"]}
    assert refusal(http.post(f"{city}/closure-study", json=body)) == (422, "unknown_vertex", "/candidates")
    assert refusal(http.post(f"{city}/closure-study", json={"close": "roads"}))[:2] == (422, "invalid_body")
    assert http.put("/v1/graphs/limited", json=CITY | {"vertices": ["u"], "vertex_capacity": [2]}).status_code == 201
    assert shown(ask(http, "/v1/graphs/limited", close="vertices")) == [(1, ["v"], 2, 3), (0, ["u"], 3, 2)]


def test_the_worst_are_ranked_and_proven(http: httpx.Client, city: str) -> None:
    answer = ask(http, city, candidates="all", top=3)
    assert (answer["graph"], answer["version"], answer["base"]["value"], answer["candidates"]) == ("city", 1, 6, 5)
    assert shown(answer) == [(4, ["e"], 2, 4), (0, ["a"], 3, 3), (1, ["b"], 4, 2)]
    assert answer["solved"] + answer["skipped"] == 5
    assert answer["skipped_at_most"] <= 2
    for row in answer["answers"]:
        assert row["certificate"]["valid"]
        assert row["certificate"]["value"] == row["certificate"]["flow_across_cut"] == row["value"]
    assert http.get(city).json()["version"] == 1
    assert http.get(f"{city}/capacities").json()["closed"] == [False] * 5


def test_candidates_are_a_cut_edges_or_lists_of_them(http: httpx.Client, city: str) -> None:
    assert shown(ask(http, city, candidates="cut", top=None)) == [(1, ["e"], 2, 4), (0, ["d"], 4, 2)]
    assert shown(ask(http, city, candidates=["d", "a"])) == [(1, ["a"], 3, 3), (0, ["d"], 4, 2)]
    together = ask(http, city, candidates=[["d", "e", "d"], [], ["b"]])
    assert shown(together) == [(0, ["d", "e"], 0, 6), (2, ["b"], 4, 2), (1, [], 6, 0)]
    assert shown(ask(http, city, candidates=[])) == []
    assert shown(ask(http, city, candidates=["a"], supply=[1], sources=["s"])) == [(0, ["a"], 1, 0)]


def test_it_agrees_with_brute_force(http: httpx.Client) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(3, 12)), int(rng.integers(3, 40))
        tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
        capacity, undirected = rng.integers(0, 6, m), rng.random(m) < 0.4
        edges = EdgeList(n, tail, head, capacity.astype(np.int64), undirected)
        ends = Terminals.of([0], [1])

        def value(*closed: int, edges: EdgeList = edges, ends: Terminals = ends) -> int:
            under = np.array(edges.capacity)
            under[list(closed)] = 0
            return maximum_flow(edges, under, ends)

        body = {"n_vertices": n, "tail": tail.tolist(), "head": head.tolist(), "capacity": capacity.tolist()}
        response = http.put(f"/v1/graphs/random-{seed}", json=body | {"undirected": undirected.tolist()})
        assert response.status_code == 201, response.text
        graph, base = f"/v1/graphs/random-{seed}", value()
        single = sorted(((row, [row], value(row), base - value(row)) for row in range(m)), key=lambda r: (-r[3], r[0]))
        pairs = [list(pair) for pair in combinations(range(0, m, 3), 2)]
        double = sorted(
            ((row, pair, value(*pair), base - value(*pair)) for row, pair in enumerate(pairs)),
            key=lambda r: (-r[3], r[0]),
        )
        asked = {"sources": [0], "sinks": [1]}
        assert shown(ask(http, graph, **asked, top=None)) == single, seed
        for top in (1, 2, 5):
            assert shown(ask(http, graph, **asked, top=top)) == single[:top], (seed, top)
            assert shown(ask(http, graph, **asked, candidates=pairs, top=top)) == double[:top], (seed, top)

        def without(*gone: int, value: Any = value, tail: Any = tail, head: Any = head) -> int:
            return int(value(*np.flatnonzero(np.isin(tail, gone) | np.isin(head, gone))))

        inner = sorted(
            ((row, [v], without(v), base - without(v)) for row, v in enumerate(range(2, n))),
            key=lambda r: (-r[3], r[0]),
        )
        couples = [list(pair) for pair in combinations(range(n), 2)][:9]
        both = sorted(
            ((row, pair, without(*pair), base - without(*pair)) for row, pair in enumerate(couples)),
            key=lambda r: (-r[3], r[0]),
        )
        of_vertices = asked | {"close": "vertices"}
        for most in (1, 3, None):
            assert shown(ask(http, graph, **of_vertices, top=most)) == inner[:most], (seed, most)
            assert shown(ask(http, graph, **of_vertices, candidates=couples, top=most)) == both[:most], (seed, most)


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_it_agrees_with_brute_force_where_vertices_have_capacities(http: httpx.Client, first: int) -> None:
    """A way round a closed edge is of no use if it leads through a vertex that is full."""
    costly = 0
    for seed in range(first, first + 8):
        rng = np.random.default_rng([1, seed])
        n, m = int(rng.integers(5, 14)), int(rng.integers(12, 50))
        tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
        capacity, undirected = rng.integers(1, 6, m), rng.random(m) < 0.4
        limited = np.flatnonzero(rng.random(n) < 0.5)
        limited = limited[limited > 1]
        limit = rng.integers(1, 8, len(limited))
        # Each vertex is split in two, 2 v where edges come in and 2 v + 1 where they go out.
        inside = np.full(n, 1000)
        inside[limited] = limit
        there, back = np.flatnonzero(tail != head), np.flatnonzero(undirected & (tail != head))
        tails = np.concatenate([2 * np.arange(n), 2 * tail[there] + 1, 2 * head[back] + 1]).astype(np.int32)
        heads = np.concatenate([2 * np.arange(n) + 1, 2 * head[there], 2 * tail[back]]).astype(np.int32)
        split = EdgeList(2 * n, tails, heads, np.zeros(len(tails), np.int64))

        def value(
            *closed: int, s: EdgeList = split, inside: Any = inside, c: Any = capacity, of: Any = (there, back)
        ) -> int:
            under = np.array(c)
            under[list(closed)] = 0
            return maximum_flow(s, np.concatenate([inside, *(under[rows] for rows in of)]), Terminals.of([0], [3]))

        body = {"n_vertices": n, "tail": tail.tolist(), "head": head.tolist(), "capacity": capacity.tolist()}
        body |= {"undirected": undirected.tolist(), "vertices": limited.tolist(), "vertex_capacity": limit.tolist()}
        response = http.put(f"/v1/graphs/split-{seed}", json=body)
        assert response.status_code == 201, response.text
        graph, base = f"/v1/graphs/split-{seed}", value()
        wanted = sorted(((row, [row], value(row), base - value(row)) for row in range(m)), key=lambda r: (-r[3], r[0]))
        asked = {"sources": [0], "sinks": [1]}
        for top in (None, 5):
            assert shown(ask(http, graph, **asked, top=top)) == wanted[:top], (seed, top)
        named = ask(http, graph, **asked, candidates=list(range(m)), top=None)
        assert shown(named) == wanted, seed
        costly += sum(loss > 0 for *_, loss in wanted)
    assert costly > 8


def test_unlimited_closed_and_decimal_edges(http: httpx.Client) -> None:
    body = {
        "n_vertices": 3,
        "tail": [0, 0, 1, 1, 0],
        "head": [1, 1, 2, 2, 0],
        "capacity": ["inf", 1.5, "1100000000000000.975", 0.25, 3],
        "closed": [False, True, False, False, False],
        "decimals": 3,
    }
    assert http.put("/v1/graphs/odd", json=body).status_code == 201
    response = http.post("/v1/graphs/odd/closure-study", json={"sources": [0], "sinks": [2], "top": None})
    found = json.loads(response.text, parse_float=str, parse_int=str)["answers"]
    assert [(row["row"], row["value"], row["loss"]) for row in found] == [
        ("0", "0", "1100000000000001.225"),
        ("2", "0.25", "1100000000000000.975"),
        ("3", "1100000000000000.975", "0.25"),
        ("1", "1100000000000001.225", "0"),
        ("4", "1100000000000001.225", "0"),
    ]


def test_lines_of_json(http: httpx.Client, city: str) -> None:
    response = http.post(f"{city}/closure-study", json={"top": 2}, headers=LINES)
    assert response.headers["content-type"] == "application/x-ndjson"
    head, *rows, last = map(json.loads, response.text.splitlines())
    assert head["candidates"] == 5
    assert [row["edges"] for row in rows] == [["e"], ["a"]]
    assert last == {"done": True, "rows": 2}


@pytest.mark.parametrize("form", [LINES, STRING_LINES])
@pytest.mark.parametrize("count", [3, 900])
def test_lines_are_read_on_behind_a_row(http: httpx.Client, city: str, count: int, form: dict[str, str]) -> None:
    """Of a short answer, and of one that lies in pieces, whether its amounts are numbers or strings."""
    asked = {
        "scenarios": [{"id": row, "batch": [{"edges": ["abcde"[row % 5]], "op": "close"}]} for row in range(count)]
    }
    started = http.post(f"{city}/what-if", json=asked, headers=form | {"Prefer": "respond-async"})
    result = started.headers["Location"] + "/result"
    whole = http.get(result, headers={"Prefer": "wait=60"}).text.splitlines(keepends=True)
    assert len(whole) == count + 2
    for after in (0, 1, count - 2, count - 1):
        rest = http.get(result, params={"after": after})
        assert rest.text == "".join(whole[after + 2 :])
        assert rest.headers["etag"]
        assert rest.headers["content-type"] == form["Accept"]
    assert http.get(result, params={"after": count}).text == whole[-1], "an answer without its last line was cut"
    assert http.get(result, params={"after": -1}).status_code == 400
    in_json = http.post(f"{city}/what-if", json=asked, headers={"Prefer": "respond-async"})
    refused = http.get(in_json.headers["Location"] + "/result", params={"after": 1}, headers={"Prefer": "wait=60"})
    assert refusal(refused)[:2] == (406, "not_acceptable")


def test_what_is_wrong_is_refused_before_anything_is_solved(http: httpx.Client, city: str) -> None:
    def refused(**body: Any) -> tuple[int, str, Any]:
        return refusal(http.post(f"{city}/closure-study", json=body))

    assert refused(candidates=["a", "nowhere"]) == (422, "unknown_edge", "/candidates")
    assert refused(candidates=[["a"], ["zz"]]) == (422, "unknown_edge", "/candidates")
    for wrong in ("some", 3, [1, "a"], [["a"], "b"], [["a"], [1]], [[["a"]]], [None], {"a": 1}):
        assert refused(candidates=wrong) == (422, "invalid_body", "/candidates"), wrong
    assert refused(top=0)[:2] == (422, "invalid_body")
    assert refused(top=1_000_001)[:2] == (422, "invalid_body")
    assert refused(sources=["nobody"])[1] == "unknown_vertex"
    assert refused(sources=["s"], sinks=["s"])[1] == "source_is_sink"
    assert refused(candidates=["a"] * 3001) == (413, "too_large", "/candidates")
    assert refused(candidates=[["a"] * 2001]) == (413, "too_large", "/candidates")
    assert refused(candidates=["no edge of this name"] * 1001) == (422, "unknown_edge", "/candidates")
    assert refusal(http.post("/v1/graphs/nowhere/closure-study", json={}))[1] == "unknown_graph"
    assert refused(min_version=9)[0] == 409 or refused(min_version=9)[1] == "version_unavailable"


def test_a_study_ends_by_its_time_limit_or_a_cancel(http: httpx.Client) -> None:
    rng = np.random.default_rng(1)
    n, m = 3000, 30_000
    tail, head = rng.integers(0, n, (2, m))
    body = {"n_vertices": n, "tail": tail.tolist(), "head": head.tolist(), "capacity": rng.integers(1, 9, m).tolist()}
    assert http.put("/v1/graphs/large", json=body).status_code == 201
    asked = {"sources": list(range(300)), "sinks": list(range(2700, 3000)), "top": None}
    assert refusal(http.post("/v1/graphs/large/closure-study", json=asked | {"time_limit_s": 0.05}))[1] == "timeout"
    response = http.post("/v1/graphs/large/closure-study", json=asked, headers={"Prefer": "respond-async"})
    assert http.delete(response.headers["Location"]).status_code == 200
    job = http.get(response.headers["Location"], headers={"Prefer": "wait=60"}).json()
    assert job["status"] in ("cancelled", "succeeded")
    found = http.post("/v1/graphs/large/closure-study", json=asked | {"top": 3}).json()
    assert len(found["answers"]) == 3
    assert found["solved"] + found["skipped"] == m


@pytest.mark.parametrize("top", [3, 100])
def test_many_candidates_come_to_the_same_whether_their_flow_is_looked_at_or_not(http: httpx.Client, top: int) -> None:
    """Each row of a grid carries one unit from left to right, and closing an edge costs nothing: so no study of a few
    rows ends before all that carry flow were tried, or looked at."""
    side = 24
    at = np.arange(side * side).reshape(side, side)
    tail, head = np.r_[at[:, :-1].ravel(), at[:-1].ravel()], np.r_[at[:, 1:].ravel(), at[1:].ravel()]
    body = {"tail": tail.tolist(), "head": head.tolist(), "capacity": [5] * len(tail), "undirected": True}
    graph = put(http, f"many-{top}", body)
    ends = {"sources": at[:, 0].tolist(), "sinks": at[:, -1].tolist(), "supply": [1] * side, "demand": [1] * side}
    few, whole = (ask(http, graph, **ends, top=n) for n in (top, None))
    assert few["base"]["value"] == side
    assert whole["solved"] > 400
    assert shown(few) == shown(whole)[:top]
