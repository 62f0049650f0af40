"""What-if questions and dry runs through all real parts: API, Redis, worker."""

import json
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.contract.asking import post, put, refusal
from tests.graphs import CITY
from tests.shared_services import OFTEN_SAVED, Services

LINES = {"Accept": "application/x-ndjson"}
CLOSED = {"id": "no e", "batch": [{"edges": ["e"], "op": "close"}]}


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent(OFTEN_SAVED) as service:
        yield service.http


@pytest.fixture
def city(http: httpx.Client) -> str:
    return put(http, "city", CITY)


def ask(http: httpx.Client, graph: str, *scenarios: dict[str, Any], **body: Any) -> dict[str, Any]:
    return post(http, f"{graph}/what-if", scenarios=scenarios, **body)


def proof(value: float, *, complete: bool = True) -> dict[str, Any]:
    return {"valid": True, "complete": complete, "value": value, "flow_across_cut": value}


def test_each_scenario_has_its_answer_and_its_proof(http: httpx.Client, city: str) -> None:
    less = {"id": "less", "sources": ["s"], "supply": [5]}
    answer = ask(http, city, CLOSED, less, {"batch": [{"edges": ["d"], "add": [2]}, {"edges": ["e"], "set": ["inf"]}]})
    assert (answer["graph"], answer["version"], answer["rows"]) == ("city", 1, 3)
    assert answer["base"]["value"] == 6
    assert answer["base"]["certificate"] == proof(6)
    rows = answer["answers"]
    assert [(row["row"], row.get("id"), row["value"], row["change"]) for row in rows] == [
        (0, "no e", 2, -4),
        (1, "less", 5, -1),
        (2, None, 7, 1),
    ]
    assert all(row["certificate"]["valid"] and row["certificate"]["value"] == row["value"] for row in rows)
    assert [row["mode"] for row in rows] == ["warm", "warm", "cold"]  # an edge that becomes unlimited is solved anew


def test_a_refusal_says_where_in_the_scenario_it_is(http: httpx.Client, city: str) -> None:
    close, nowhere = {"edges": ["e"], "op": "close"}, {"edges": ["nowhere"], "op": "close"}
    limit, nobody = {"vertices": ["u"], "set": [1]}, {"vertices": ["nobody"], "set": [1]}
    fine = {"edges": ["a"], "set": [0.25]}  # has more decimals than the graph
    wrong: list[tuple[dict[str, Any], tuple[str, int | None]]] = [
        ({"batch": [nowhere]}, ("/batch/0/edges", 0)),
        ({"batch": [close, nowhere]}, ("/batch/1/edges", 1)),
        ({"batch": [fine]}, ("/batch/0/set", 0)),
        ({"vertex_batch": [nobody]}, ("/vertex_batch/0/vertices", 0)),
        ({"vertex_batch": [limit, nobody]}, ("/vertex_batch/1/vertices", 1)),
        ({"batch": [close, close], "vertex_batch": [nobody]}, ("/vertex_batch/0/vertices", 0)),
        ({"sources": ["nobody"]}, ("/sources", None)),
    ]
    for fields in (["value"], ["cut"]):
        rows = ask(http, city, *(scenario for scenario, _ in wrong), fields=fields)["answers"]
        told = [(row["error"]["field"], row["error"].get("operation")) for row in rows]
        assert told == [place for _, place in wrong]


def test_the_graph_and_its_flow_are_as_they_were(http: httpx.Client, city: str) -> None:
    before = http.post(f"{city}/max-flow", json={"fields": ["value", "cut", "flow"]}).json()
    ask(http, city, CLOSED, {"batch": [{"edges": ["nowhere"], "op": "close"}]}, CLOSED, fields=["flow", "cut"])
    after = http.post(f"{city}/max-flow", json={"fields": ["value", "cut", "flow"]}).json()
    assert (after["mode"], after["version"]) == ("unchanged", 1)
    assert [after[field] for field in ("value", "cut", "flow")] == [before[field] for field in ("value", "cut", "flow")]
    info = http.get(city).json()
    assert (info["version"], info["flow_states"]) == (1, 1)
    assert http.get(f"{city}/capacities").json()["closed"] == [False] * 5


def test_a_row_has_the_fields_that_are_asked_for(http: httpx.Client, city: str) -> None:
    row = ask(http, city, CLOSED, fields=["cut", "flow", "paths"])["answers"][0]
    assert row["cut"]["edges"] == ["d"]
    assert row["cut"]["pays"] == [2]
    assert row["flow"] == {"edges": ["a", "d"], "amount": [2, 2], "acyclic": True}
    assert row["terminals"]["delivered"] == [2]
    assert row["paths"]["edges"] == ["a", "d"]


@pytest.mark.parametrize(("fields", "complete"), [(["cut"], False), (["bottlenecks"], False), (["cut", "flow"], True)])
def test_a_row_is_proven_where_it_differs_unless_its_flow_is_shown(
    http: httpx.Client, fields: list[str], complete: bool
) -> None:
    """Of a network that is not as small as the change."""
    http.put("/v1/graphs/grid", json=grid(30)).raise_for_status()
    scenarios = [{"batch": [{"edges": [edge], "op": "close"}]} for edge in (0, 500, 1000)]
    answer = ask(http, "/v1/graphs/grid", *scenarios, fields=fields)
    assert answer["base"]["certificate"]["complete"]
    assert [row["certificate"]["complete"] for row in answer["answers"]] == [complete] * 3
    assert all(row["certificate"]["valid"] for row in answer["answers"])


def test_what_is_wrong_with_a_scenario_is_the_answer_of_its_row(http: httpx.Client, city: str) -> None:
    unlimited = {"batch": [{"edges": ["b", "e"], "set": ["inf", "inf"]}]}
    scenarios = [
        {"id": 7, "batch": [{"edges": ["e", "z"], "op": "close"}]},
        unlimited,
        {"sources": ["nobody"]},
        {"sinks": ["s"]},
        {"supply": [1, 2]},
        {"batch": [{"edges": ["a"], "add": [-5]}]},
        {"batch": [{"edges": ["a"], "set": ["0.5"]}]},
        CLOSED,
    ]
    rows = ask(http, city, *scenarios, sources=["s"])["answers"]
    codes = ["unknown_edge", "unbounded", "unknown_vertex", "source_is_sink", *["invalid_body"] * 3, None]
    assert [row.get("error", {}).get("code") for row in rows] == codes
    assert (rows[0]["id"], rows[0]["error"]["edges"]) == (7, ["z"])
    assert rows[4]["error"]["detail"] == "there is one amount for each of `sources`, not 2 for 1"
    assert rows[-1]["value"] == 2
    assert ask(http, city, scenarios[0], on_missing="skip")["answers"][0]["value"] == 2
    assert ask(http, city, {"batch": [{"edges": ["a"], "set": ["0.5"]}]}, rounding="up")["answers"][0]["value"] == 4


def test_other_terminals_have_their_own_caps(http: httpx.Client, city: str) -> None:
    scenarios = [{}, {"supply": [2]}, {"sources": ["u"]}, {"sources": ["u", "v"], "supply": [1, 1]}, {"sinks": ["v"]}]
    answer = ask(http, city, *scenarios, sources=["s"], sinks=["t"], supply=[5], demand=[4])
    assert answer["base"]["value"] == 4
    assert [row["value"] for row in answer["answers"]] == [4, 2, 4, 2, 5]


def test_lines_say_what_they_are_about_and_that_they_are_all(http: httpx.Client, city: str) -> None:
    response = http.post(f"{city}/what-if", json={"scenarios": [CLOSED, {}]}, headers=LINES)
    assert response.headers["content-type"] == LINES["Accept"]
    etag = f'"{http.get(city).json()["generation"]}-1"'
    assert (response.headers["etag"], response.headers["vary"]) == (etag, "Accept")
    head, *rows, end = [json.loads(line) for line in response.text.splitlines()]
    whole = ask(http, city, CLOSED, {})
    assert (head["version"], head["base"]["value"], end) == (1, 6, {"done": True, "rows": 2})
    assert rows == whole["answers"]
    assert http.post(f"{city}/what-if", json={"scenarios": []}, headers=LINES).text.count("\n") == 2
    other = http.post(f"{city}/what-if", json={"scenarios": []}, headers={"Accept": "application/x-npz"})
    assert refusal(other)[:2] == (406, "not_acceptable")


def test_bodies_that_are_refused(http: httpx.Client, city: str) -> None:
    def refused(**body: Any) -> tuple[int, str, Any]:
        return refusal(http.post(f"{city}/what-if", json=body))

    assert refused() == (422, "invalid_body", "/scenarios")
    assert refused(scenarios=[{"batch": [{"edges": ["a"]}]}])[1:] == ("invalid_body", "/scenarios/0/batch/0")
    assert refused(scenarios=[{}, {"sources": ["s"], "supply": [1, 2]}])[1:] == ("invalid_body", "/scenarios/1/supply")
    assert refused(scenarios=[{"supply": [-1]}])[1:] == ("invalid_body", "/scenarios/0/supply")
    assert refused(scenarios=[], question="matching")[1:] == ("invalid_body", "/question")
    assert refused(scenarios=[{}] * 3001) == (413, "too_large", "/scenarios")
    wrong = [{"batch": "none"}] * 3001  # they are counted before any of them is looked at
    assert refused(scenarios=wrong) == (413, "too_large", "/scenarios")
    wrong = [{"batch": [None] * 1500}, {"vertex_batch": [None] * 1501}] * 2  # and so are their operations
    assert refused(scenarios=wrong) == (413, "too_large", "/scenarios")
    many = {"batch": [{"edges": ["a", "b"], "op": "close"}] * 1001}
    assert refused(scenarios=[many])[:2] == (413, "too_large")
    assert refused(scenarios=[{"id": "x" * 1025}])[1:] == ("invalid_body", "/scenarios/0/id")
    assert refused(scenarios=[], sources=["nobody"])[1] == "unknown_vertex"
    assert refusal(http.post("/v1/graphs/nowhere/what-if", json={"scenarios": []}))[1] == "unknown_graph"


def test_a_thousand_scenarios_in_one_body(http: httpx.Client, city: str) -> None:
    scenarios = [{"id": i, "batch": [{"edges": ["ade"[i % 3]], "set": [i % 5]}]} for i in range(1000)]
    rows = ask(http, city, *scenarios)["answers"]
    assert [row["id"] for row in rows] == list(range(1000))
    wanted: dict[tuple[str, int], Any] = {}
    for i in range(15):
        (row,) = ask(http, city, scenarios[i])["answers"]
        wanted["ade"[i % 3], i % 5] = row["value"]
    assert [row["value"] for row in rows] == [wanted["ade"[i % 3], i % 5] for i in range(1000)]


def test_each_row_is_what_a_patched_copy_answers(http: httpx.Client) -> None:
    rng = random.Random(7)
    assert http.put("/v1/graphs/base", json=grid(6)).status_code in (200, 201)
    assert http.patch("/v1/graphs/base/capacities", json={"edges": [3, 8, 21], "op": "close"}).status_code == 200
    scenarios = [random_scenario(rng) for _ in range(25)]
    answer = ask(http, "/v1/graphs/base", *scenarios, fields=["cut"])
    assert answer["version"] == 2
    for row, scenario in zip(answer["answers"], scenarios, strict=True):
        assert http.post("/v1/graphs/base:copy", json={"to": "tried"}).status_code == 201
        terminals = {name: scenario[name] for name in ("sources", "supply") if name in scenario}
        for operation in scenario["batch"]:
            assert http.patch("/v1/graphs/tried/capacities", json=operation).status_code == 200, scenario
        wanted = http.post("/v1/graphs/tried/min-cut", json=terminals).json()
        assert (row["value"], row["cut"]) == (wanted["value"], wanted["cut"]), scenario
        assert row["change"] == wanted["value"] - answer["base"]["value"]
        http.delete("/v1/graphs/tried")
    assert http.get("/v1/graphs/base").json()["version"] == 2


def random_scenario(rng: random.Random) -> dict[str, Any]:
    """Some operations on the grid of 36 vertices and 60 edges, and now and then other sources."""
    batch = []
    for _ in range(rng.randint(0, 3)):
        edges = rng.sample(range(60), rng.randint(1, 3))
        batch.append(
            rng.choice(
                [
                    {"edges": edges, "op": rng.choice(["close", "reopen"])},
                    {"edges": edges, "add": [rng.randint(0, 9) for _ in edges]},
                    {"edges": edges, "set": [rng.choice([0, 1, 20]) for _ in edges]},
                    {"edges": edges, "scale": [rng.randint(0, 3) for _ in edges]},
                ]
            )
        )
    if rng.random() < 0.7:
        return {"batch": batch}
    sources = rng.sample(range(1, 30), 2)
    return {"batch": batch, "sources": sources, **rng.choice([{}, {"supply": [rng.randint(0, 9), 3]}])}


def at_its_rows(http: httpx.Client, job: str) -> dict[str, Any]:
    """The job as soon as it says that rows are done."""
    for _ in range(600):
        state: dict[str, Any] = http.get(job).json()
        if state["status"] not in ("queued", "running") or "done" in (state["progress"] or {}):
            return state
        time.sleep(0.05)
    raise AssertionError(f"it says nothing: {state}")


def grid(n: int) -> dict[str, Any]:
    """A square of so many vertices a side, from one corner to the other."""
    cells = [(i, j) for i in range(n) for j in range(n)]
    edges = [(i * n + j, i * n + j + 1) for i, j in cells if j + 1 < n]
    edges += [(i * n + j, (i + 1) * n + j) for i, j in cells if i + 1 < n]
    capacity = [1 + (7 * row) % 11 for row in range(len(edges))]
    tail, head = map(list, zip(*edges, strict=True))
    return {"tail": tail, "head": head, "capacity": capacity, "undirected": True, "source": 0, "sink": n * n - 1}


def test_updates_do_not_wait_and_rows_are_of_one_version(http: httpx.Client) -> None:
    response = http.put("/v1/graphs/grid", json=grid(120))
    assert response.status_code in (200, 201), response.text
    scenarios = [{"batch": [{"edges": [i], "op": "close"}]} for i in range(3000)]
    job = http.post(
        "/v1/graphs/grid/what-if",
        json={"scenarios": scenarios, "fields": ["flow"]},
        headers={"Prefer": "respond-async"},
    ).json()
    base, versions = http.post("/v1/graphs/grid/max-flow").json()["value"], []
    for i in range(3):
        patched = http.patch("/v1/graphs/grid/capacities", json={"edges": [0, 119 * 120], "set": [i + 1, i + 1]})
        versions.append(patched.json()["version"])
        assert patched.json()["flow_states"][0]["value"] <= 2 * (i + 1)
    assert versions == [2, 3, 4]
    state = at_its_rows(http, job["location"])
    assert state["progress"]["phase"] == "rows"
    assert 0 <= state["progress"]["done"] < state["progress"]["of"] == 3000
    assert http.delete(job["location"]).json()["cancelling"] is True
    ended = http.get(job["location"], headers={"Prefer": "wait=30"}).json()
    assert (ended["status"], ended["error"]["code"]) == ("cancelled", "cancelled")
    assert base >= 1


def test_a_replaced_graph_does_not_disturb_the_rows(http: httpx.Client) -> None:
    assert http.put("/v1/graphs/plan", json=grid(30)).status_code in (200, 201)
    value = http.post("/v1/graphs/plan/max-flow").json()["value"]
    scenarios = [{"batch": [{"edges": [5 * i], "op": "close"}]} for i in range(300)]
    body, found = {"scenarios": scenarios, "fields": ["cut"]}, []
    asking = threading.Thread(target=lambda: found.append(http.post("/v1/graphs/plan/what-if", json=body).json()))
    asking.start()
    assert http.put("/v1/graphs/plan", json=CITY).status_code in (200, 201)
    asking.join()
    if "answers" in found[0] and found[0]["base"]["value"] == value:
        assert all(row["value"] <= value and row["certificate"]["valid"] for row in found[0]["answers"])
    assert http.post("/v1/graphs/plan/max-flow").json()["value"] == 6


def test_a_time_limit_ends_the_whole_question(http: httpx.Client) -> None:
    assert http.put("/v1/graphs/slow", json=grid(120)).status_code in (200, 201)
    http.post("/v1/graphs/slow/max-flow")
    scenarios = [{"batch": [{"edges": [i], "op": "close"}]} for i in range(1000)]
    body = {"scenarios": scenarios, "fields": ["flow"], "time_limit_s": 0.5}
    assert refusal(http.post("/v1/graphs/slow/what-if", json=body))[:2] == (504, "timeout")


def test_a_dry_run_says_what_the_patch_will_do(http: httpx.Client, city: str) -> None:
    http.post(f"{city}/max-flow")
    http.post(f"{city}/max-flow", json={"sources": ["u"], "sinks": ["t"], "supply": [3]})
    batch = {"batch": [{"edges": ["e"], "op": "close"}, {"edges": ["a", "b"], "set": [1, 3]}]}
    dry = http.patch(f"{city}/capacities", params={"dry_run": "true"}, json=batch, headers={"Idempotency-Key": "k"})
    said, generation = dry.json(), http.get(city).json()["generation"]
    assert (dry.status_code, dry.headers["etag"]) == (200, f'"{generation}-1"')
    assert said["generation"] == generation
    assert (said["dry_run"], said["version"]) == (True, 1)
    assert http.get(f"{city}/capacities").json()["capacity"] == CITY["capacity"]
    assert http.get(city).json()["version"] == 1
    done = http.patch(f"{city}/capacities", json=batch, headers={"Idempotency-Key": "k"}).json()
    assert done["version"] == 2  # the key still stood for nothing
    for answer in (said, done):
        for state in answer["flow_states"]:
            del state["timings_ms"], state["certificate"]["complete"], state["mode"]
    assert said["flow_states"] == done["flow_states"]
    assert [said[name] for name in ("applied", "skipped", "unchanged")] == [2, 0, 1]
    assert "dry_run" not in done


def test_a_dry_run_is_refused_as_the_patch_is(http: httpx.Client, city: str) -> None:
    def refused(body: dict[str, Any], **headers: str) -> tuple[str, int]:
        tried = [
            http.patch(f"{city}/capacities", params=params, json=body, headers=headers)
            for params in ({"dry_run": "1"}, {})
        ]
        assert tried[0].json()["detail"] == tried[1].json()["detail"]
        return tried[0].json()["code"], tried[0].status_code

    assert refused({"edges": ["z"], "op": "close"}) == ("unknown_edge", 422)
    assert refused({"edges": ["a"], "set": [2**60]}) == ("capacity_overflow", 422)
    assert refused({"edges": ["a"], "set": [1]}, **{"If-Match": '"7"'}) == ("version_conflict", 412)
    assert refusal(http.patch(f"{city}/capacities", params={"dry_run": "maybe"}, json={}))[0] == 400


def test_a_dry_run_of_what_leaves_no_bound_keeps_the_flow(http: httpx.Client, city: str) -> None:
    http.post(f"{city}/max-flow")
    unlimited = {"edges": ["b", "e"], "set": ["inf", "inf"]}
    (state,) = http.patch(f"{city}/capacities", params={"dry_run": "true"}, json=unlimited).json()["flow_states"]
    assert (state["mode"], state["value"], state["old_value"]) == ("unbounded", None, 6)
    assert http.post(f"{city}/max-flow").json()["mode"] == "unchanged"


def test_a_dry_run_of_costs(http: httpx.Client, city: str) -> None:
    change = {"edges": ["d", "a"], "set": [5, 1]}
    said = http.patch(f"{city}/costs", params={"dry_run": "true"}, json=change).json()
    assert (said["dry_run"], said["version"], said["applied"], said["unchanged"]) == (True, 1, 1, 1)
    assert http.get(f"{city}/capacities").json()["cost"] == CITY["cost"]
