"""Names as they come: negative, numbers as text, nearly equal, invisible.

What a load takes, every route takes and gives back unchanged, and no two names are taken for one.
"""

from typing import Any

import httpx
import pytest

ODD = {
    "negative": [-(2**63), -1, 0, 2**63 - 1],
    "numbers as text": ["1", "01", "1.0", "-1"],
    "composed and not": ["é", "e\u0301", "É", "e"],
    "invisible": ["a", "a\u200b", "\u202ea", " a"],
    "controls": ["", "\u0000", "\n", '"\\'],
    "emoji": ["👩", "👩\u200d👩\u200d👧", "🏳️\u200d🌈", "\U0010ffff"],
    "long": ["é" * 1024, "é" * 1023, "💧" * 1024, "x"],
}
FORMATS = {"npz": "application/x-npz", "arrow": "application/vnd.apache.arrow.stream"}


def body(names: list[Any]) -> dict[str, Any]:
    """A path over all vertices; edges are named as the vertices they come from."""
    return {"tail": names[:3], "head": names[1:], "capacity": [3, 2, 4], "edge_ids": names[:3], "vertex_labels": names}


@pytest.mark.parametrize("names", ODD.values(), ids=ODD)
def test_every_route_takes_them_and_gives_them_back(http: httpx.Client, names: list[Any]) -> None:
    graph = "/v1/graphs/odd"
    assert http.put(graph, json=body(names)).status_code in (200, 201)
    question = {"sources": names[:1], "sinks": names[3:], "fields": ["cut", "flow", "paths", "terminals"]}
    answer = http.post(f"{graph}/max-flow", json=question).json()
    assert (answer["cut"]["edges"], answer["flow"]["edges"]) == (names[1:2], names[:3])
    assert (answer["cut"]["source_side"], answer["cut"]["sink_side"]) == (names[:2], names[2:])
    assert (answer["paths"]["source"], answer["paths"]["sink"], answer["paths"]["edges"]) == (
        names[:1],
        names[3:],
        names[:3],
    )
    changed = http.patch(f"{graph}/capacities", json={"edges": [names[1]], "set": [9]}).json()
    assert [(state["value"], state["sources"]) for state in changed["flow_states"]] == [(3, names[:1])]
    by_ends = {"tail": [names[2]], "head": [names[3]], "set": [1]}
    assert http.patch(f"{graph}/capacities", json=by_ends).json()["flow_states"][0]["value"] == 1
    page = http.get(f"{graph}/capacities").json()
    assert (page["edge_ids"], page["tail"], page["head"]) == (names[:3], names[:3], names[1:])
    assert page["capacity"] == [3, 9, 1]


@pytest.mark.parametrize("names", ODD.values(), ids=ODD)
def test_files_hold_them(http: httpx.Client, names: list[Any]) -> None:
    graph = "/v1/graphs/odd-file"
    assert http.put(graph, json=body(names)).status_code in (200, 201)
    page = http.get(f"{graph}/capacities").json()
    for name, kind in FORMATS.items():
        file = http.get(f"{graph}/export?format={name}")
        if name == "npz" and "\0" in names:
            assert file.json()["code"] == "invalid_body"  # NumPy would drop it
            continue
        assert http.put(graph, content=file.content, headers={"Content-Type": kind}).status_code == 200
        assert http.get(f"{graph}/capacities").json() == page


def test_negative_numbers_name_nothing_where_there_are_no_names(http: httpx.Client) -> None:
    """They do not count from the end."""
    graph = "/v1/graphs/plain"
    assert http.put(graph, json={"tail": [0, 1], "head": [1, 2], "capacity": [1, 1]}).status_code == 201
    assert http.post(f"{graph}/max-flow", json={"sources": [-3], "sinks": [-1]}).json()["code"] == "unknown_vertex"
    assert http.patch(f"{graph}/capacities", json={"edges": [-1], "set": [5]}).json()["code"] == "unknown_edge"
    ends = {"tail": [-2], "head": [-1], "set": [5]}
    assert http.patch(f"{graph}/capacities", json=ends).json()["code"] == "unknown_vertex"
    assert http.post(f"{graph}/matching", json={"left": [-3]}).json()["code"] == "unknown_vertex"


@pytest.mark.parametrize(("there", "asked"), [("Caf\u00e9 1", "Cafe\u0301 1"), ("Cafe\u0301 1", "Caf\u00e9 1")])
def test_a_name_that_is_read_the_same_is_shown_by_its_characters(http: httpx.Client, there: str, asked: str) -> None:
    """Files from macOS have letters and their accents apart: the two names cannot be told from each other by eye."""
    graph = "/v1/graphs/odd-twins"
    names = [f"vertex {place}" for place in range(600)] + [there]
    http.put(graph, json={"tail": names[:-1], "head": names[1:], "capacity": [1] * 600, "edge_ids": names[1:]})
    told = f"; there is {there!a}, which is read the same and is written in other characters than {asked!a}"
    refused = http.post(f"{graph}/max-flow", json={"sources": [asked], "sinks": names[:1]}).json()
    assert refused["detail"] == f"source {asked!r} is no vertex of the graph{told}"
    refused = http.patch(f"{graph}/capacities", json={"edges": [asked], "set": [1]}).json()
    assert refused["detail"] == f"there is no edge {asked!r}{told}"
