"""The change feed over real HTTP: watches, events in order, readers that come back, and what outlives what."""

import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from tests.serving import Service, eventually
from tests.shared_services import Services

CITY: dict[str, Any] = {
    "vertex_labels": ["s", "u", "v", "t"],
    "tail": ["s", "s", "u", "u", "v"],
    "head": ["u", "v", "v", "t", "t"],
    "capacity": [4, 3, 2, 2, 4],
    "edge_ids": ["a", "b", "c", "d", "e"],
    "source": "s",
    "sink": "t",
}


class Reader:
    """Collects the events of a stream until it is closed."""

    def __init__(self, http: httpx.Client, path: str, last: str | None) -> None:
        self.events: list[dict[str, Any]] = []
        self._context = http.stream("GET", path, headers={} if last is None else {"Last-Event-ID": last}, timeout=60)
        self._response = self._context.__enter__()
        assert self._response.status_code == 200, self._response.read()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        found: dict[str, Any] = {}
        try:
            for line in self._response.iter_lines():
                name, _, text = line.partition(": ")
                if line:
                    found[name] = json.loads(text) if name == "data" else text
                elif "event" in found:
                    self.events.append(found)
                    found = {}
        except (httpx.TransportError, httpx.StreamError, OSError, RuntimeError):
            return

    def close(self) -> None:
        stream = self._response.extensions["network_stream"]
        stream.get_extra_info("socket").shutdown(2)
        self._thread.join()
        self._context.__exit__(None, None, None)


@contextmanager
def reading(http: httpx.Client, name: str, last: str | None = None) -> Iterator[Reader]:
    reader = Reader(http, f"/v1/graphs/{name}/events", last)
    try:
        yield reader
    finally:
        reader.close()


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["id"] for event in events]


def kept(http: httpx.Client, name: str, count: int, kind: str | None = None) -> list[dict[str, Any]]:
    """All events that are kept, of this kind if there is one, once there are so many."""

    def those() -> list[dict[str, Any]]:
        return [event for event in list(reader.events) if kind in (None, event["event"])]

    with reading(http, name, "0") as reader:
        eventually(lambda: len(those()) >= count)
        return those()


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    with services.lent() as service:
        yield service


@pytest.fixture
def http(service: Service) -> httpx.Client:
    return service.http


def load(http: httpx.Client, name: str, **others: Any) -> str:
    """The generation of a fresh city."""
    answer = http.put(f"/v1/graphs/{name}", json=CITY | others)
    assert answer.status_code in (200, 201), answer.text
    generation: str = answer.json()["generation"]
    return generation


def patch(http: httpx.Client, name: str, query: str = "", **amounts: float | str) -> dict[str, Any]:
    body = {"edges": [*amounts], "set": [*amounts.values()]}
    answer = http.patch(f"/v1/graphs/{name}/capacities{query}", json=body)
    assert answer.status_code == 200, answer.text
    answered: dict[str, Any] = answer.json()
    return answered


def test_what_the_page_says(http: httpx.Client) -> None:
    generation = load(http, "page")
    put = http.put("/v1/graphs/page/watches/main", json={"sources": ["s"], "sinks": ["t"]})
    assert (put.status_code, put.json()["value"], put.json()["version"]) == (201, 6, 1)
    assert http.put("/v1/graphs/page/watches/main", json={"sources": ["s"], "sinks": ["t"]}).status_code == 200
    with reading(http, "page") as reader:
        patch(http, "page", "?solve=none", a=1)
        eventually(lambda: len(reader.events) >= 3)
    assert ids(reader.events) == [f"{generation}-2-{end}" for end in ("version", "main-value", "main-cut")]
    assert [event["event"] for event in reader.events] == ["version", "value.changed", "cut.changed"]
    assert reader.events[1]["data"] == {
        "graph": "page",
        "generation": generation,
        "version": 2,
        "watch": "main",
        "old_value": 6,
        "value": 4,
        "cut_added": ["a", "b"],
        "cut_removed": ["d", "e"],
    }
    shown = http.get("/v1/graphs/page/watches/main").json()
    assert (shown["value"], shown["version"], shown["sources"]) == (4, 2, ["s"])
    assert [one["watch"] for one in http.get("/v1/graphs/page/watches").json()["watches"]] == ["main"]
    assert http.delete("/v1/graphs/page/watches/main").status_code == 204
    assert http.get("/v1/graphs/page/watches/main").json()["code"] == "unknown_watch"
    assert http.delete("/v1/graphs/page/watches/main").json()["code"] == "unknown_watch"


def test_who_comes_back_gets_what_was_missed(http: httpx.Client) -> None:
    """The graph has a name that no other test has: its feed outlives it, and with it what others have left there."""
    generation = load(http, "returning")
    http.put("/v1/graphs/returning/watches/w", json={"on": ["value"]})
    patch(http, "returning", a=1)
    patch(http, "returning", b=0)
    everything = ids(kept(http, "returning", 5))
    assert everything == [
        f"{generation}-{end}" for end in ("1-version", "2-version", "2-w-value", "3-version", "3-w-value")
    ]
    for at, last in enumerate(everything):
        with reading(http, "returning", last) as reader:
            eventually(lambda at=at, reader=reader: len(reader.events) >= len(everything) - at - 1)  # type: ignore[misc]
        assert ids(reader.events) == everything[at + 1 :]
    with reading(http, "returning", "no such event") as reader:
        eventually(lambda: len(reader.events) > len(everything))
    assert reader.events[0]["event"] == "reset"
    assert ids(reader.events[1:]) == everything


def test_nothing_is_told_of_what_has_not_changed(http: httpx.Client) -> None:
    load(http, "calm")
    http.put("/v1/graphs/calm/watches/w")
    patch(http, "calm", c=9)
    patch(http, "calm", c=2)
    assert [event["event"] for event in kept(http, "calm", 3)] == 3 * ["version"]


def test_a_flow_without_a_bound_is_told_and_refuses_no_update(http: httpx.Client) -> None:
    load(http, "boundless")
    http.put("/v1/graphs/boundless/watches/w")
    assert patch(http, "boundless", a="inf", d="inf")["version"] == 2
    assert patch(http, "boundless", a=4, d=2)["version"] == 3
    changes = [event["data"] for event in kept(http, "boundless", 2, "value.changed")]
    assert [(c["version"], c["old_value"], c["value"], c.get("error")) for c in changes] == [
        (2, 6, None, "unbounded"),
        (3, None, 6, None),
    ]


def test_a_load_and_a_delete_are_told_and_watches_outlive_them(http: httpx.Client) -> None:
    first = load(http, "phoenix")
    http.put("/v1/graphs/phoenix/watches/w", json={"sources": ["s"], "sinks": ["t"]})
    second = load(http, "phoenix", capacity=[1, 1, 1, 1, 1])
    assert http.delete("/v1/graphs/phoenix").status_code == 204
    with reading(http, "phoenix", f"{second}-1-version") as reader:
        eventually(lambda: any(event["event"] == "graph.deleted" for event in reader.events))
        third = load(http, "phoenix")
        eventually(lambda: ids(reader.events)[-1:] == [f"{third}-1-w-cut"])
    assert len({first, second, third}) == 3
    assert ids(reader.events) == [
        *(f"{second}-1-w-value", f"{second}-1-w-cut", f"{second}-1-deleted"),
        *(f"{third}-1-version", f"{third}-1-w-value", f"{third}-1-w-cut"),
    ]
    assert (reader.events[-2]["data"]["old_value"], reader.events[-2]["data"]["value"]) == (2, 6)
    load(http, "phoenix", vertex_labels=["s", "u", "v", "x"], head=["u", "v", "v", "x", "x"], sink="x")
    assert http.get("/v1/graphs/phoenix/watches/w").json()["error"] == "unknown_vertex"
    assert patch(http, "phoenix", a=1)["version"] == 2


def test_restored_and_copied_graphs(http: httpx.Client) -> None:
    load(http, "old")
    http.put("/v1/graphs/old/watches/w")
    patch(http, "old", a=1)
    assert http.post("/v1/graphs/old:restore", json={"version": 1}).json()["version"] == 3
    changes = [event["data"] for event in kept(http, "old", 7) if event["event"] == "value.changed"]
    assert [(c["version"], c["value"]) for c in changes] == [(2, 4), (3, 6)]
    assert http.post("/v1/graphs/old:copy", json={"to": "young"}).status_code == 201
    assert http.get("/v1/graphs/young/watches").json() == {"watches": []}
    assert [event["event"] for event in kept(http, "young", 1)] == ["version"]


def test_what_is_refused(http: httpx.Client) -> None:
    load(http, "strict")
    url = "/v1/graphs/strict/watches/w"
    assert http.put("/v1/graphs/strict/watches/a.b").status_code in (400, 404)
    assert http.put(url, json={"on": []}).json()["code"] == "invalid_body"
    assert http.put(url, json={"on": ["flow"]}).json()["code"] == "invalid_body"
    assert http.put(url, json={"sources": ["nowhere"]}).json()["code"] == "unknown_vertex"
    assert http.put(url, json={"sources": ["t"]}).json()["code"] == "source_is_sink"
    assert (
        http.put(url, content=b"x" * 70_000, headers={"content-type": "application/json"}).json()["code"] == "too_large"
    )
    assert http.get("/v1/graphs/strict/watches").json() == {"watches": []}
    for n in range(16):
        assert http.put(f"/v1/graphs/strict/watches/w{n}").status_code == 201
    assert http.put(url).json()["code"] == "too_large"
    assert http.put("/v1/graphs/strict/watches/w3").status_code == 200
    for path in ("events", "watches", "watches/w"):
        assert http.get(f"/v1/graphs/none/{path}").json()["code"] == "unknown_graph"
    assert http.put("/v1/graphs/none/watches/w").json()["code"] == "unknown_graph"


def test_watches_do_not_take_the_place_of_questions(http: httpx.Client) -> None:
    load(http, "many", sink=None)
    http.put("/v1/graphs/many/watches/w", json={"sinks": ["t"]})
    for amount in range(1, 21):
        answer = http.post("/v1/graphs/many/max-flow", json={"sinks": ["t"], "demand": [amount]})
        assert answer.status_code == 200
    assert http.get("/v1/graphs/many").json()["flow_states"] == 17
    assert http.post("/v1/graphs/many/max-flow", json={"sinks": ["t"]}).json()["mode"] == "unchanged"


def test_after_a_kill_of_any_process_nothing_is_missing(service: Service) -> None:
    http = service.http
    generation = load(http, "killed")
    http.put("/v1/graphs/killed/watches/w", json={"on": ["value"]})
    version = 1
    for role in ("worker", "redis", "api", "worker"):
        patch(http, "killed", a=1 + version % 3, b=0)
        os.kill(service.children()[role], signal.SIGKILL)
        service.wait_ready()
        version += 1
        assert patch(http, "killed", c=version)["version"] == version + 1
        version += 1
    told = kept(http, "killed", version, "version")
    assert ids(told) == [f"{generation}-{v}-version" for v in range(1, version + 1)]
    values = [event["data"] for event in kept(http, "killed", version) if event["event"] == "value.changed"]
    assert all(before["value"] == after["old_value"] for before, after in itertools.pairwise(values))
    assert http.get("/v1/graphs/killed/watches/w").json()["version"] == version
