"""Amounts as decimal strings, by a real service: each road says what its JSON with numbers says."""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.shared_services import Services

STRINGS, NUMBERS, NPZ = "application/json; numbers=string", "application/json", "application/x-npz"
LARGE = 2**53 + 1
"""The first integer that no binary float is."""

CITY = {
    "tail": ["s", "s", "u", "u", "v"],
    "head": ["u", "v", "v", "t", "t"],
    "capacity": [f"{LARGE}.25", 3, "inf", 2.5, 4],
    "cost": [1, 3, "1.125", 4, 1],
    "edge_ids": ["a", "b", "c", "d", "e"],
    "source": "s",
    "sink": "t",
}
FIELDS = ["value", "cut", "flow", "terminals", "paths"]
CLOSED = {
    "scenarios": [{"id": 7, "batch": [{"edges": ["b"], "op": "close"}]}, {"batch": [{"edges": ["x"], "op": "close"}]}]
}
ROADS: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "max-flow": ("POST", "/max-flow", {"fields": FIELDS}),
    "min-cut": ("POST", "/min-cut", {}),
    "min-cost-flow": ("POST", "/min-cost-flow", {"fields": ["value", "cost", "flow", "terminals", "dual", "paths"]}),
    "circulation": ("POST", "/circulation", {"edges": ["c"], "lower": [1.25], "fields": ["flow"]}),
    "no circulation": (
        "POST",
        "/circulation",
        {"edges": ["e"], "lower": [3.5], "sources": ["s"], "supply": [3.25]},
    ),
    "capacities": ("GET", "/capacities", None),
    "what-if": ("POST", "/what-if", CLOSED | {"fields": ["cut"]}),
    "PATCH": ("PATCH", "/capacities", {"edges": ["a"], "add": ["0.25"]}),
    "dry run": ("PATCH", "/capacities?dry_run=true", {"edges": ["a"], "add": ["0.25"]}),
    "costs": ("PATCH", "/costs", {"edges": ["a"], "set": ["0.25"]}),
    "restore": ("POST", ":restore", {"version": 1}),
}
GRAPHS = "/v1/graphs"
AMOUNTS = frozenset(
    [
        *(
            "value",
            "old_value",
            "flow_across_cut",
            "pays",
            "source_pays",
            "sink_pays",
            "amount",
            "supplied",
            "delivered",
        ),
        *("must_enter", "can_enter", "must_leave", "can_leave", "lower"),
        *("rest", "capacity", "cost", "potential", "beyond", "dual_bound", "maximum", "change"),
    ]
)


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent() as service:
        assert service.http.put(f"{GRAPHS}/city", json=CITY).status_code == 201
        yield service.http


def asked(http: httpx.Client, road: str, accept: str, **headers: str) -> httpx.Response:
    method, path, body = ROADS[road]
    return http.request(method, f"{GRAPHS}/city{path}", json=body, headers={"Accept": accept} | headers)


def same(numbers: Any, strings: Any, name: str = "") -> int:
    """How many amounts there are: each is a string in one answer, and the same number in the other."""
    if isinstance(numbers, dict):
        assert numbers.keys() == strings.keys()
        return sum(same(numbers[key], strings[key], key) for key in numbers if not key.endswith("_ms"))
    if isinstance(numbers, list):
        return sum(same(*pair, name) for pair in zip(numbers, strings, strict=True))
    if name in AMOUNTS and numbers is not None:
        assert isinstance(strings, str), name
        assert strings == "inf" or Decimal(strings) == numbers
        return 1
    assert name in ("version", "counters", "mode", "reason") or strings == numbers, name
    return 0


@pytest.mark.parametrize("road", ROADS)
def test_each_amount_is_a_string_and_all_else_as_it_is(http: httpx.Client, road: str) -> None:
    http.post(f"{GRAPHS}/city/max-flow", json={}).raise_for_status()  # a state for updates to solve again
    plain = asked(http, road, NUMBERS)
    assert (plain.status_code, plain.headers["Content-Type"]) == (200, NUMBERS)
    text = asked(http, road, STRINGS)
    assert (text.status_code, text.headers["Content-Type"]) == (200, STRINGS)
    numbers, strings = json.loads(plain.text, parse_float=Decimal), text.json()
    if road in ("PATCH", "restore"):  # they do not do the same twice
        assert all(isinstance(state["value"], str) for state in strings["flow_states"])
        return
    assert road == "costs" or same(numbers, strings) > 1, "it has amounts"


def test_what_no_float_holds_is_there(http: httpx.Client) -> None:
    wide = {"tail": [0], "head": [1], "capacity": [f"{LARGE}.5"], "source": 0, "sink": 1}
    assert http.put(f"{GRAPHS}/wide", json=wide).is_success
    answer = http.post(f"{GRAPHS}/wide/max-flow", json={"fields": ["flow"]}, headers={"Accept": STRINGS}).json()
    assert (answer["value"], answer["flow"]["amount"]) == (f"{LARGE}.5", [f"{LARGE}.5"])


def watched(http: httpx.Client, accept: str, name: str = "/main") -> Any:
    answer = http.get(f"{GRAPHS}/seen/watches{name}", headers={"Accept": accept})
    assert (answer.status_code, answer.headers["Content-Type"], answer.headers["Vary"]) == (200, accept, "Accept")
    return json.loads(answer.text, parse_float=Decimal)


def test_watches_have_strings(http: httpx.Client) -> None:
    """Whoever puts one, asks for one or for all: in the form of that request, which the watch does not keep."""
    assert http.put(f"{GRAPHS}/seen", json=CITY).is_success
    path = f"{GRAPHS}/seen/watches/main"
    made = http.put(path, json={"sinks": ["t"], "demand": ["4.5"]}, headers={"Accept": STRINGS})
    assert (made.status_code, made.headers["Content-Type"], made.json()["value"]) == (201, STRINGS, "4.5")
    again = http.put(path, json={"sinks": ["t"], "demand": ["4.25"]}, headers={"Accept": NUMBERS})
    assert (again.status_code, again.headers["Content-Type"], again.json()["value"]) == (200, NUMBERS, 4.25)
    assert same(watched(http, NUMBERS), watched(http, STRINGS)) == 1
    assert same(watched(http, NUMBERS, ""), watched(http, STRINGS, "")) == 1
    assert "encoding" not in watched(http, STRINGS)
    job = http.put(path, json={}, headers={"Accept": STRINGS, "Prefer": "respond-async"}).json()["id"]
    seen = http.get(f"/v1/jobs/{job}", headers={"Prefer": "wait=30"}).json()
    assert seen["result"]["value"] == "6.5"
    for refused in ("image/png", NPZ, "application/json; numbers=float"):
        for method in ("GET", "PUT"):
            assert http.request(method, path, json={}, headers={"Accept": refused}).status_code == 406
    assert http.put(path, json={"sources": ["t"], "sinks": ["s"]}, headers={"Accept": STRINGS}).json()["value"] == "0"
    http.patch(f"{GRAPHS}/seen/capacities", json={"edges": ["a"], "op": "close"}).raise_for_status()
    assert watched(http, STRINGS)["value"] == "0"
    http.put(path, json={}).raise_for_status()
    unlimited = {"edges": ["a", "d"], "set": ["inf", "inf"]}
    http.patch(f"{GRAPHS}/seen/capacities", json={"edges": ["a"], "op": "reopen"}).raise_for_status()
    http.patch(f"{GRAPHS}/seen/capacities", json=unlimited).raise_for_status()
    assert (watched(http, STRINGS)["value"], watched(http, STRINGS)["error"]) == (None, "unbounded")


def events(http: httpx.Client, accept: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    headers = {"Accept": accept, "Last-Event-ID": "0"}
    with http.stream("GET", f"{GRAPHS}/told-as-strings/events", headers=headers) as stream:
        assert stream.status_code == 200
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: "), parse_float=Decimal))
            if len(found) == count:
                break
    return found


def test_events_have_strings(http: httpx.Client) -> None:
    wide = {
        "tail": [0, 0],
        "head": [1, 1],
        "capacity": [f"{LARGE}.5", 1],
        "source": 0,
        "sink": 1,
        "edge_ids": ["ä", "b"],
    }
    assert http.put(f"{GRAPHS}/told-as-strings", json=wide).is_success
    assert http.put(f"{GRAPHS}/told-as-strings/watches/main", json={}).is_success
    for change in ({"edges": ["b"], "set": [2]}, {"edges": ["b"], "op": "close"}, {"edges": ["b"], "set": ["inf"]}):
        http.patch(f"{GRAPHS}/told-as-strings/capacities", json=change).raise_for_status()
    http.patch(f"{GRAPHS}/told-as-strings/capacities", json={"edges": ["b"], "op": "reopen"}).raise_for_status()
    numbers = events(http, "text/event-stream", 10)
    strings = events(http, "text/event-stream; numbers=string", 10)
    assert events(http, "*/*", 10) == numbers
    assert same(numbers, strings) == 8
    changed = [event for event in strings if "value" in event]
    assert (changed[0]["old_value"], changed[0]["value"]) == (f"{LARGE + 1}.5", f"{LARGE + 2}.5")
    assert (changed[-1]["value"], changed[-1]["error"]) == (None, "unbounded")
    refused = http.get(f"{GRAPHS}/told-as-strings/events", headers={"Accept": NUMBERS})
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")


def test_lines_have_strings_too(http: httpx.Client) -> None:
    lines = asked(http, "what-if", "application/x-ndjson; numbers=string")
    assert lines.headers["Content-Type"] == "application/x-ndjson; numbers=string"
    head, row, wrong, end = map(json.loads, lines.text.splitlines())
    assert isinstance(head["base"]["value"], str)
    assert (row["id"], isinstance(row["change"], str), isinstance(row["cut"]["value"], str)) == (7, True, True)
    assert (wrong["error"]["code"], end) == ("unknown_edge", {"done": True, "rows": 2})


def test_a_job_keeps_the_form_of_its_question(http: httpx.Client) -> None:
    jobs = "/v1/jobs/"
    job = asked(http, "min-cut", STRINGS, Prefer="respond-async")
    assert job.status_code == 202
    seen = http.get(f"{jobs}{job.json()['id']}", headers={"Prefer": "wait=30"}).json()
    assert isinstance(seen["result"]["cut"]["value"], str)
    for accept in (STRINGS, NUMBERS, "*/*"):
        result = http.get(f"{jobs}{job.json()['id']}/result", headers={"Accept": accept})
        assert (result.headers["Content-Type"], result.json()) == (STRINGS, seen["result"])
    plain = asked(http, "min-cut", NUMBERS, Prefer="respond-async").json()["id"]
    http.get(f"{jobs}{plain}", headers={"Prefer": "wait=30"})
    assert http.get(f"{jobs}{plain}/result", headers={"Accept": STRINGS}).status_code == 406


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("accept", ["application/json; numbers=strings", "application/json;numbers=", "text/html"])
def test_what_there_is_not_is_refused_on_every_road(http: httpx.Client, road: str, accept: str) -> None:
    refused = asked(http, road, accept)
    assert (refused.status_code, refused.json()["code"]) == (406, "not_acceptable")
    assert STRINGS in refused.json()["detail"]
