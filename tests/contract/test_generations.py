"""A version belongs to one load of a name: what was read of one is not mistaken for the state of another."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from headrace import Client, Graph, VersionConflict

URL = "/v1/graphs/again"
COLUMNS: dict[str, Any] = {"tail": [0, 0], "head": [1, 1], "capacity": [3, 4]}
CHANGE: dict[str, Any] = {"edges": [0], "set": [9]}


@pytest.fixture
def http(service_url: str) -> Any:
    with httpx.Client(base_url=service_url, timeout=60) as client:
        yield client
        client.delete(URL)


def load(http: httpx.Client, **headers: str) -> httpx.Response:
    return http.put(URL, json=COLUMNS, headers={name.replace("_", "-"): value for name, value in headers.items()})


def plain(answer: httpx.Response) -> str:
    """The ETag without the mark that tells apart the answers of a version."""
    return re.sub(r"[0-9a-f]{12}\.|npz\.", "", answer.headers["etag"])


def change(http: httpx.Client, tag: str, path: str = "/capacities") -> httpx.Response:
    return http.patch(URL + path, json=CHANGE, headers={"If-Match": tag})


def test_an_etag_of_one_load_does_not_fit_another(http: httpx.Client) -> None:
    first = load(http).headers["etag"]
    second = load(http).headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{8}-1"', first)
    assert first != second
    refused = change(http, first)
    assert (refused.status_code, refused.json()["code"]) == (412, "version_conflict")
    assert f"it is at version 1, {second}, of another load than" in refused.json()["detail"]
    assert http.get(URL).json()["version"] == 1
    assert change(http, f"{first}, {second}").headers["etag"] == second.replace("-1", "-2")
    assert change(http, second).json()["detail"].endswith("it is at version 2, " + second.replace("-1", "-2"))
    assert http.post(f"{URL}:restore", json={"version": 1}, headers={"If-Match": first}).status_code == 412
    assert http.delete(URL, headers={"If-Match": first.replace("-1", "-2")}).status_code == 412
    assert load(http, If_Match=first.replace("-1", "-2")).status_code == 412
    assert load(http, If_Match=second.replace("-1", "-2")).status_code == 200


def test_a_bare_version_fits_whatever_load_is_there(http: httpx.Client) -> None:
    load(http)
    load(http)
    assert change(http, '"1"').status_code == 200
    assert change(http, '"1"').status_code == 412
    assert change(http, "*").status_code == 200
    for wrong in ('"9f3c02aa"', '"9f3c02aa-"', '"9F3C02AA-3"', '"9f3c02a-3"', '"9f3c02aa-03"', '"-3"'):
        assert change(http, wrong).status_code == 412


def test_pages_are_of_the_version_that_is_wanted(http: httpx.Client) -> None:
    tag = load(http).headers["etag"]
    url = f"{URL}/capacities"
    first = http.get(url, params={"limit": 1})
    assert (first.headers["etag"], first.json()["next"]) == (tag, 1)
    last = http.get(url, params={"limit": 1, "offset": first.json()["next"]}, headers={"If-Match": tag})
    assert (last.status_code, last.json()["edge_ids"], last.json()["next"]) == (200, [1], None)
    assert http.get(url, params={"offset": 2}).json()["next"] is None
    assert change(http, tag).status_code == 200
    for accept in ("application/json", "application/x-npz"):
        refused = http.get(url, params={"offset": 1}, headers={"If-Match": tag, "Accept": accept})
        assert (refused.status_code, refused.json()["code"]) == (412, "version_conflict")
    assert http.get(url, headers={"If-Match": '"2"'}).status_code == 200
    assert http.get(url, headers={"If-Match": "2"}).status_code == 400


def test_what_a_graph_is_may_be_asked_of_one_version(http: httpx.Client) -> None:
    tag = load(http).headers["etag"]
    for fits in (tag, '"1"', "*", f'"7", {tag}'):
        assert http.get(URL, headers={"If-Match": fits}).status_code == 200
    for other in ('"00000000-1"', '"2"', f"W/{tag}"):
        refused = http.get(URL, headers={"If-Match": other})
        assert (refused.status_code, refused.json()["code"]) == (412, "version_conflict")
    assert http.get(URL, headers={"If-Match": "1"}).status_code == 400


def test_a_file_is_of_the_version_that_is_wanted(http: httpx.Client) -> None:
    """Present or earlier: what counts is the version that the file is of, and the load that it is of."""
    first = load(http).headers["etag"]
    assert change(http, first).status_code == 200
    second = first.replace("-1", "-2")
    assert http.post(f"{URL}/snapshots").is_success
    (snapshot,) = http.get(f"{URL}/snapshots").json()["snapshots"]
    assert snapshot["version"] == 2
    for path, fits, other in (
        ("/export", second, first),
        ("/export?version=1", first, second),
        ("/snapshots/2", second, first),
    ):
        for wanted in (fits, f'"{fits[-2]}"', "*", f"{other}, {fits}"):
            answer = http.get(URL + path, headers={"If-Match": wanted})
            assert (answer.status_code, plain(answer)) == (200, fits), path
        for wanted in (other, '"00000000-1", "00000000-2"', f"W/{fits}"):
            refused = http.get(URL + path, headers={"If-Match": wanted})
            assert (refused.status_code, refused.json()["code"]) == (412, "version_conflict"), path
        assert http.get(URL + path, headers={"If-Match": "2"}).status_code == 400


@pytest.mark.parametrize("page", ["capacities", "vertices"])
def test_a_page_is_never_answered_with_202(http: httpx.Client, page: str) -> None:
    load(http)
    before = http.get("/v1/jobs").json()["jobs"]
    refused = http.get(f"{URL}/{page}", headers={"Prefer": "respond-async"})
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
    assert http.get("/v1/jobs").json()["jobs"] == before
    answered = http.get(f"{URL}/{page}", headers={"Prefer": "wait=300"})
    assert (answered.status_code, answered.headers["vary"]) == (200, "Accept")


def test_all_answers_say_it(http: httpx.Client) -> None:
    loaded = load(http)
    tag, generation = loaded.headers["etag"], loaded.json()["generation"]
    assert tag == f'"{generation}-1"'
    question = {"sources": [0], "sinks": [1]}
    for answer in (
        http.get(URL),
        http.get(f"{URL}/capacities"),
        http.get(f"{URL}/export"),
        http.post(f"{URL}/max-flow", json=question),
        http.post(f"{URL}/max-flow", json=question | {"fields": ["flow"]}, headers={"Accept": "application/x-npz"}),
        http.post(f"{URL}/matching", json={}),
        http.post(f"{URL}/snapshots"),
    ):
        assert (answer.status_code, plain(answer)) == (200, tag)
    keyed = {"Idempotency-Key": "generations-1"}
    answers = [http.patch(f"{URL}/capacities", json=CHANGE, headers=keyed) for _ in range(2)]
    assert {answer.headers["etag"] for answer in answers} == {f'"{generation}-2"'}
    assert answers[0].json()["generation"] == generation
    listed = {graph["name"]: graph for graph in http.get("/v1/graphs").json()["graphs"]}
    assert listed["again"]["generation"] == generation


def test_pages_of_two_loads_are_not_mixed(service_url: str, http: httpx.Client, monkeypatch: Any) -> None:
    """Both loads are at version 1: the version alone does not tell them apart."""
    read = Graph.capacities

    def and_load(graph: Graph, *args: Any, **options: Any) -> Any:
        page = read(graph, *args, **options)
        load(http)
        return page

    with Client(service_url) as client:
        graph = client.put_graph("again", **COLUMNS)
        assert len(graph.to_networkx(page=1).edges) == 2
        monkeypatch.setattr(Graph, "capacities", and_load)
        with pytest.raises(VersionConflict):
            graph.to_networkx(page=1)


def test_a_handle_of_the_client_knows_its_load(service_url: str, http: httpx.Client, tmp_path: Path) -> None:
    with Client(service_url) as client:
        first = client.put_graph("again", **COLUMNS)
        second = client.put_graph("again", **COLUMNS)
        for attempt in (
            lambda: first.patch(edges=[0], set=[1], if_version=1),
            lambda: first.restore(1, if_version=1),
            lambda: first.delete(if_version=1),
            lambda: client.delete_graph("again", if_version=first.info.etag),
            lambda: client.put_graph("again", **COLUMNS, if_version=first.info.etag),
        ):
            with pytest.raises(VersionConflict):
                attempt()
        assert second.patch(edges=[0], set=[1], if_version=1).version == 2
        first.refresh()
        assert first.info.etag == second.refresh().etag
        assert first.patch(edges=[0], set=[1], if_version=2).version == 3
        assert first.export(tmp_path / "again.npz") == 3
        assert client.put_graph("again", **COLUMNS, if_version=f"{second.info.generation}-3").info.replaced
