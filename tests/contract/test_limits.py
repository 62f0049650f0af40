"""Bottlenecks, the curve against a factor, and capacity expansion, through all real parts: API, Redis, worker."""

import io
import pathlib
import re
import threading
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from headrace import Client

from tests.contract.asking import post, put, refusal
from tests.graphs import CITY
from tests.shared_services import OFTEN_SAVED, Services

NPZ, ARROW = "application/x-npz", "application/vnd.apache.arrow.stream"
WIDE = {"raise_by": 2, "edges": ["a", "b", "d", "e"], "price": [1, 1, 5, 3]}
PAIR = {
    "tail": ["s", "u", "u", "v"],
    "head": ["u", "v", "v", "t"],
    "capacity": [2.5, 1.25, 1.25, "inf"],
    "edge_ids": ["a", "b", "c", "d"],
}
"""
::

    s -- 2.5 --> u == 1.25 twice ==> v -- no limit --> t
"""


@pytest.fixture(scope="module")
def http(services: Services) -> Iterator[httpx.Client]:
    with services.lent(OFTEN_SAVED) as service:
        yield service.http


@pytest.fixture
def city(http: httpx.Client) -> str:
    return put(http, "city", CITY)


@pytest.fixture
def pair(http: httpx.Client) -> str:
    return put(http, "pair", PAIR)


def ask(http: httpx.Client, path: str, **body: Any) -> dict[str, Any]:
    return post(http, path, **body)


def limits(http: httpx.Client, graph: str, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(http, f"{graph}/max-flow", fields=["bottlenecks"], **body)["bottlenecks"]
    return found


def test_what_limits_the_city(http: httpx.Client, city: str) -> None:
    found = limits(http, city, bottlenecks={"up_to": 10})
    assert found == {
        "edges": ["d", "e"],
        "in_every": [True, True],
        "gain": [1, 1],
        "up_to": [1, 1],
        "sources": [],
        "source_in_every": [],
        "source_gain": [],
        "source_up_to": [],
        "sinks": [],
        "sink_in_every": [],
        "sink_gain": [],
        "sink_up_to": [],
    }
    answer = ask(http, f"{city}/max-flow")
    assert (answer["value"], answer["version"], answer["mode"]) == (6, 1, "unchanged")


def test_one_of_several_cuts_gains_nothing_and_stands_behind(http: httpx.Client, pair: str) -> None:
    ends = {"sources": ["s"], "sinks": ["t"]}
    found = limits(http, pair, **ends, bottlenecks={"up_to": 1})
    assert (found["edges"], found["in_every"], found["gain"]) == (["a", "b", "c"], [False] * 3, [0] * 3)
    assert found["up_to"] == [0, 0, 0]
    found = limits(http, pair, sources=["u"], sinks=["t"], bottlenecks={"up_to": 1})
    assert (found["edges"], found["up_to"]) == (["b", "c"], ["inf"])


def test_those_in_every_cut_come_first(http: httpx.Client) -> None:
    """The first two roads are cut one as well as the other, and the last one in every case."""
    graph = put(http, "mixed", {"tail": [0, 1, 0], "head": [1, 2, 2], "capacity": [2, 2, 3], "source": 0, "sink": 2})
    found = limits(http, graph, bottlenecks={"up_to": 1})
    assert (found["edges"], found["in_every"]) == ([2, 0, 1], [True, False, False])
    assert found["up_to"] == ["inf", 0, 0]
    assert ask(http, f"{graph}/max-flow", fields=["bottlenecks"])["bottlenecks"]["gain"] == [1, 0, 0]


def test_caps_limit_as_edges_do(http: httpx.Client, pair: str) -> None:
    ends = {"sources": ["s"], "sinks": ["t"], "supply": [2], "demand": [2]}
    found = limits(http, pair, **ends)
    assert (found["sources"], found["source_in_every"], found["source_gain"]) == (["s"], [False], [0])
    assert (found["sinks"], found["edges"]) == (["t"], [])
    found = limits(http, pair, **ends | {"supply": [1.5]}, bottlenecks={"up_to": 5})
    assert (found["sources"], found["source_gain"], found["source_up_to"]) == (["s"], [1], [Decimal("0.5")])
    found = limits(http, pair, sources=["v"], sinks=["t"], supply=[1.5], bottlenecks={"up_to": 5})
    assert (found["sources"], found["source_up_to"]) == (["v"], ["inf"])
    found = limits(http, pair, sources=["s"], sinks=["t"], demand=[1], bottlenecks={"up_to": 5})
    assert (found["sinks"], found["sink_up_to"]) == (["t"], [Decimal("1.5")])


def test_bottlenecks_as_npz(http: httpx.Client, pair: str) -> None:
    body = {"sources": ["u"], "sinks": ["t"], "fields": ["bottlenecks"], "bottlenecks": {"up_to": 2}}
    response = http.post(f"{pair}/max-flow", json=body, headers={"Accept": NPZ})
    with np.load(io.BytesIO(response.content)) as file:
        assert file["bottlenecks.in_every"].tolist() == [True, True]
        assert file["bottlenecks.up_to_unlimited"].tolist() == [True, True]
        assert file["bottlenecks.up_to"].tolist() == [0, 0]
        assert file["bottlenecks.sources.utf8"].size == 0


def test_scenarios_have_bottlenecks_too(http: httpx.Client, city: str) -> None:
    scenarios = [{"batch": [{"edges": ["d"], "set": [9]}]}]
    (row,) = ask(http, f"{city}/what-if", scenarios=scenarios, fields=["bottlenecks"])["answers"]
    assert (row["value"], row["bottlenecks"]["edges"]) == (7, ["a", "b"])
    body = {"scenarios": scenarios, "fields": ["bottlenecks"], "bottlenecks": {"up_to": 1}}
    assert refusal(http.post(f"{city}/what-if", json=body)) == (422, "invalid_body", "/bottlenecks/up_to")


def test_the_curve_of_the_city(http: httpx.Client, city: str) -> None:
    answer = ask(http, f"{city}/parametric", edges=["d", "e"], **{"from": 0, "to": 2})
    assert answer["segments"] == {"from": ["0", "7/6"], "to": ["7/6", "2"], "constant": [0, 7], "rate": [6, 0]}
    assert (answer["graph"], answer["version"], answer["value"], answer["complete"]) == ("city", 1, 6, True)
    assert answer["certificate"]["valid"]
    assert answer["certificate"]["flows"] >= 4
    nothing = ask(http, f"{city}/parametric", edges=[], to=2)["segments"]
    assert nothing == {"from": ["0"], "to": ["2"], "constant": [6], "rate": [0]}
    cut_short = ask(http, f"{city}/parametric", edges=["d", "e"], to=2, max_segments=1)
    assert (cut_short["complete"], cut_short["segments"]["to"]) == (False, ["7/6"])


def test_supply_is_scaled(http: httpx.Client, pair: str) -> None:
    body = {"sources": ["s"], "sinks": ["t"], "supply": [1.5], "scale": "supply", "from": "1/3", "to": 3.5}
    answer = ask(http, f"{pair}/parametric", **body)
    assert answer["segments"]["from"] == ["1/3", "5/3"]
    assert answer["segments"]["to"] == ["5/3", "7/2"]
    assert answer["segments"]["constant"] == [0, 2.5]
    assert answer["segments"]["rate"] == [1.5, 0]


def test_what_is_closed_stays_closed_and_what_has_no_limit_has_none(http: httpx.Client, pair: str) -> None:
    assert http.patch(f"{pair}/capacities", json={"edges": ["c"], "op": "close"}).status_code == 200
    body = {"sources": ["s"], "sinks": ["t"], "edges": ["b", "c", "d"], "from": 0, "to": 4}
    answer = ask(http, f"{pair}/parametric", **body)
    assert answer["segments"]["to"] == ["2", "4"]
    assert answer["segments"]["rate"] == [1.25, 0]
    body = {"sources": ["s"], "sinks": ["t"], "raise_by": 1, "edges": ["c"], "price": [1]}
    assert refusal(http.post(f"{pair}/capacity-expansion", json=body)) == (422, "infeasible", "/raise_by")


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({"to": 2}, 422, "invalid_body", "/edges"),
        ({"edges": ["d"], "scale": "supply", "to": 2}, 422, "invalid_body", "/edges"),
        ({"scale": "supply", "to": 2}, 422, "invalid_body", "/supply"),
        ({"edges": ["d"]}, 422, "invalid_body", "/to"),
        ({"edges": ["d"], "to": "inf"}, 422, "invalid_body", "/to"),
        ({"edges": ["d"], "to": "1/0"}, 422, "invalid_body", "/to"),
        ({"edges": ["d"], "to": -1}, 422, "invalid_body", "/to"),
        ({"edges": ["d"], "from": 2, "to": 2}, 422, "invalid_body", "/to"),
        ({"edges": ["d"], "from": "x", "to": 2}, 422, "invalid_body", "/from"),
        ({"edges": ["d"], "to": 2, "max_segments": 0}, 422, "invalid_body", "/max_segments"),
        ({"edges": ["d", "d"], "to": 2}, 422, "invalid_body", "/edges"),
        ({"edges": ["zz"], "to": 2}, 422, "unknown_edge", "/edges"),
        ({"edges": ["d"] * 2001, "to": 2}, 413, "too_large", "/edges"),
        ({"edges": ["d"], "to": 10**30}, 422, "capacity_overflow", None),
        ({"edges": ["d"], "to": 10**60}, 422, "capacity_overflow", None),
        ({"edges": ["d"], "to": "1e60"}, 422, "invalid_body", "/to"),
        ({"edges": ["d"], "to": 2, "sources": ["t"]}, 422, "source_is_sink", None),
    ],
)
def test_a_curve_that_cannot_be_drawn(
    http: httpx.Client, city: str, body: dict[str, Any], status: int, code: str, field: str | None
) -> None:
    found = refusal(http.post(f"{city}/parametric", json=body))
    assert (found[0], found[1]) == (status, code), found
    assert field is None or found[2] == field


def test_members_are_suggested_by_the_names_they_have(http: httpx.Client, city: str) -> None:
    detail = http.post(f"{city}/parametric", json={"edges": ["d"], "until": 2}).json()["detail"]
    assert "from" in detail
    assert "first" not in detail


def test_what_to_widen_in_the_city(http: httpx.Client, city: str) -> None:
    answer = ask(http, f"{city}/capacity-expansion", **WIDE)
    assert (answer["value"], answer["maximum"], answer["price"]) == (8, 6, 7)
    assert (answer["edges"], answer["add"]) == (["b", "e"], [1, 2])
    proof = {"value": 8, "flow_across_cut": 6, "cost": 7, "dual_bound": 7}
    assert answer["certificate"] == {"valid": True, "complete": True, **proof}
    done = http.patch(f"{city}/capacities", json={"edges": answer["edges"], "add": answer["add"]}).json()
    assert done["version"] == 2
    assert ask(http, f"{city}/max-flow")["value"] == 8


def test_prices_have_decimals_of_their_own_and_arrays_too(http: httpx.Client, city: str) -> None:
    body = WIDE | {"price": [0.125, 1, 5, 3], "max_add": ["inf", 0, 9, 9]}
    answer = ask(http, f"{city}/capacity-expansion", **body)
    assert (answer["edges"], answer["add"], answer["price"]) == (["a", "d", "e"], [1, 1, 1], Decimal("8.125"))
    response = http.post(f"{city}/capacity-expansion", json=body, headers={"Accept": ARROW})
    table = pa.ipc.open_stream(response.content).read_all()
    assert table.column("edges").to_pylist() == ["a", "d", "e"]
    assert table.column("add").to_pylist() == [1, 1, 1]
    nothing = ask(http, f"{city}/capacity-expansion", **WIDE | {"raise_by": 0})
    assert (nothing["price"], nothing["edges"], nothing["value"]) == (0, [], 6)


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        ({}, 422, "invalid_body", "/raise_by"),
        (WIDE | {"raise_by": -1}, 422, "invalid_body", "/raise_by"),
        (WIDE | {"raise_by": "inf"}, 422, "invalid_body", "/raise_by"),
        (WIDE | {"raise_by": 0.5}, 422, "invalid_body", "/raise_by"),
        (WIDE | {"price": [1]}, 422, "invalid_body", "/price"),
        (WIDE | {"price": [1, 1, 1, "inf"]}, 422, "invalid_body", "/price"),
        (WIDE | {"price": [1, 1, 1, -1]}, 422, "invalid_body", "/price"),
        (WIDE | {"price": [1, 1, 1, "0.0000000001"]}, 422, "invalid_body", "/price"),
        (WIDE | {"price": [1, 1, 1, 10**18]}, 422, "cost_overflow", "/price"),
        (WIDE | {"price": [1, 1, 1, 10**30]}, 422, "cost_overflow", "/price"),
        (WIDE | {"raise_by": 2**59}, 422, "capacity_overflow", "/raise_by"),
        (WIDE | {"max_add": [1]}, 422, "invalid_body", "/max_add"),
        (WIDE | {"max_add": [0, 0, 0, 1]}, 422, "infeasible", "/raise_by"),
        (WIDE | {"edges": ["a", "b", "d", "d"]}, 422, "invalid_body", "/edges"),
        (WIDE | {"edges": ["a", "b", "d", "zz"]}, 422, "unknown_edge", "/edges"),
        ({"raise_by": 1, "edges": ["a"] * 2001, "price": [1] * 2001}, 413, "too_large", "/edges"),
        ({"raise_by": 1, "edges": [], "price": []}, 422, "infeasible", "/raise_by"),
    ],
)
def test_an_expansion_that_cannot_be(
    http: httpx.Client, city: str, body: dict[str, Any], status: int, code: str, field: str
) -> None:
    assert refusal(http.post(f"{city}/capacity-expansion", json=body)) == (status, code, field)


def test_prices_of_too_many_decimals_are_told_by_their_rows(http: httpx.Client, city: str) -> None:
    body = WIDE | {"price": [1, "0.0000000001", 1, "1e-12"]}
    assert http.post(f"{city}/capacity-expansion", json=body).json()["rows"] == [1, 3]


@pytest.mark.parametrize("more", [-1, "inf", 0.5, 2**62])
def test_the_one_amount_to_raise_by_is_refused_without_a_row(http: httpx.Client, city: str, more: object) -> None:
    told = http.post(f"{city}/capacity-expansion", json=WIDE | {"raise_by": more}).json()
    assert (told["field"], told["rows"]) == ("/raise_by", [])
    assert "row 0" not in told["detail"]


def test_a_flow_without_a_bound_has_neither_curve_nor_price(http: httpx.Client, pair: str) -> None:
    ends = {"sources": ["v"], "sinks": ["t"]}
    assert refusal(http.post(f"{pair}/parametric", json=ends | {"edges": ["d"], "to": 2}))[:2] == (422, "unbounded")
    body = ends | {"raise_by": 1, "edges": ["d"], "price": [1]}
    assert refusal(http.post(f"{pair}/capacity-expansion", json=body))[:2] == (422, "unbounded")


def test_a_time_limit_ends_a_curve(http: httpx.Client, city: str) -> None:
    body = {"edges": ["d", "e"], "to": 2, "time_limit_s": 1e-6}
    assert refusal(http.post(f"{city}/parametric", json=body))[:2] == (504, "timeout")
    assert ask(http, f"{city}/parametric", edges=["d"], to=2)["complete"]


def test_a_cancel_ends_the_trials_of_bottlenecks(http: httpx.Client) -> None:
    """A road of so many edges that all of them would take minutes; the graph then answers as before."""
    n = 30_000
    row = list(range(n))
    graph = put(http, "long", {"tail": row, "head": [*row[1:], n], "capacity": [1] * n})
    wide = {"sources": [0], "sinks": [n], "fields": ["bottlenecks"], "bottlenecks": {"up_to": 10_000}}
    answer = ask(http, f"{graph}/max-flow", **wide)["bottlenecks"]
    assert (len(answer["edges"]), set(answer["up_to"])) == (n, {0})
    many = {
        "tail": [0] * 2000 + [1],
        "head": [1] * 2000 + [2],
        "capacity": [1] * 2000 + [5000],
        "source": 0,
        "sink": 2,
    }
    graph = put(http, "wide", many)
    asked = http.post(
        f"{graph}/max-flow", json={k: wide[k] for k in ("fields", "bottlenecks")}, headers={"Prefer": "respond-async"}
    )
    job = asked.headers["location"]
    assert http.delete(job).status_code == 200
    ended = http.get(f"{job}/result", timeout=60)
    assert ended.json().get("code", "cancelled") == "cancelled"
    assert ask(http, f"{graph}/max-flow")["value"] == 2000


def test_updates_go_on_while_a_curve_is_drawn(http: httpx.Client) -> None:
    """All of it is of the version that was asked about."""
    n = 300
    capacity = [units for i in range(n) for units in (i * i, 2 * (n - i))]
    tail = [v for i in range(n) for v in (f"v{i}", "s")]
    graph = put(
        http,
        "many",
        {"tail": tail, "head": [v for i in range(n) for v in ("t", f"v{i}")], "capacity": capacity},
    )
    scaled = list(range(1, 2 * n, 2))[:9]
    answers: list[dict[str, Any]] = []
    body = {"sources": ["s"], "sinks": ["t"], "edges": scaled, "from": 0, "to": 1000}
    asking = threading.Thread(target=lambda: answers.append(ask(http, f"{graph}/parametric", **body)))
    asking.start()
    for _ in range(3):
        assert http.patch(f"{graph}/capacities", json={"edges": [0], "add": [1]}).status_code == 200
    asking.join()
    segments = answers[0]["segments"]
    joined = [Fraction(end) for end in segments["to"][:-1]]
    assert joined == [Fraction(begin) for begin in segments["from"][1:]]
    assert len(joined) >= 8
    assert answers[0]["complete"]


@pytest.mark.usefixtures("beside_examples")
def test_the_programs_of_the_page(http: httpx.Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Those about Heidelberg, and what they print is right."""
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    programs = [block for block in re.findall(r"```python\n(.*?)```", page, re.S) if "roads.bottlenecks" in block]
    assert len(programs) == 2
    with np.load(Path(__file__).parents[2] / "examples" / "osm-heidelberg.npz") as roads:
        assert (int(roads["s"]), int(roads["t"])) == (56517, 56518)
    for program in programs:
        names = {"Client": Client, "pathlib": pathlib}
        exec(compile(program.replace("http://127.0.0.1:8080", str(http.base_url)), "api.md", "exec"), names)
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.split()[:2] == ["226", "0"]
    assert second == "['9/8', '4/3', '3'] 3900"
    assert third.split()[:2] == ["3300", "3400"]
