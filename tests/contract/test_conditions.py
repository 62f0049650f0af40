"""Who has an answer already is told so by 304 (RFC 9110, section 13): real Redis, worker and uvicorn."""

import asyncio
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import numpy as np
import pytest
from headrace import Client

from service.queue.versions import Seen, Versions
from service.settings import Settings
from service.store.keys import Keys, generation_of
from tests.serving import Service, eventually
from tests.shared_services import Services

G = "/v1/graphs/held"
COLUMNS: dict[str, Any] = {"tail": [0, 0, 1], "head": [1, 2, 2], "capacity": [3, 4, 5], "source": 0, "sink": 2}
FORMS = {
    "": "application/json",
    "npz.": "application/x-npz",
    "arrow.": "application/vnd.apache.arrow.stream",
    "strings.": "application/json; numbers=string",
}
PAGES = [f"{G}/capacities", f"{G}/capacities?offset=1&limit=1", f"{G}/vertices", f"{G}/vertices?all=true"]
PRESENT = [f"{G}/export", f"{G}/export?format=dimacs"]
NAMED = [f"{G}/export?format=arrow&version=1", f"{G}/snapshots/1"]
FILES = [*PRESENT, *NAMED]


@pytest.fixture(scope="module")
def service(services: Services) -> Iterator[Service]:
    with services.lent() as service:
        yield service


@pytest.fixture
def http(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=60) as client:
        assert client.put(G, json=COLUMNS).is_success
        assert client.post(f"{G}/snapshots").is_success
        yield client
        client.delete(G)


def held(http: httpx.Client, path: str, *tags: str, method: str = "GET", **headers: str) -> httpx.Response:
    """Asked by somebody who has these answers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http.request(method, path, headers={"If-None-Match": ", ".join(tags)} | named)


def until_told(http: httpx.Client) -> None:
    """Wait for what the worker tells of the graph's memory a heartbeat after a load, which is another ETag of it."""

    def is_told() -> bool:
        graph = http.get(G).json()
        return bool(graph["measured_at"] > graph["updated_at"])

    eventually(is_told)


def change(http: httpx.Client, tag: str = "*") -> httpx.Response:
    return http.patch(f"{G}/capacities", json={"edges": [0], "set": [9]}, headers={"If-Match": tag})


def jobs(http: httpx.Client) -> Sequence[Any]:
    found: Sequence[Any] = http.get("/v1/jobs").json()["jobs"]
    return found


@pytest.mark.parametrize("path", [G, *PAGES, *FILES])
def test_who_has_the_answer_is_told_so_without_work(http: httpx.Client, path: str) -> None:
    if path == G:
        until_told(http)
    answer = http.get(path)
    tag, before = answer.headers["etag"], jobs(http)
    for tags in ((tag,), (f"W/{tag}",), ('"other"', f"W/{tag}"), ('W/"a,b"', tag), 99 * ('"x"',) + (tag,)):
        again = held(http, path, *tags)
        assert (again.status_code, again.content) == (304, b""), tags
        for name in ("etag", "vary", "cache-control", "content-location"):
            assert again.headers.get(name) == answer.headers.get(name), name
        assert not {"content-type", "content-length", "content-disposition"} & set(again.headers)
    assert path in NAMED or jobs(http) == before, "no worker was asked"
    for other in ('"other"', tag.replace("-1", "-2"), tag.replace('"', '"x', 1)):
        assert held(http, path, other).content == answer.content


@pytest.mark.parametrize("path", [G, *PAGES, *FILES])
def test_any_answer_is_held_where_there_is_one(http: httpx.Client, path: str) -> None:
    assert held(http, path, "*").status_code == 304
    assert held(http, path.replace("held", "nowhere"), "*").json()["code"] == "unknown_graph"


def test_what_cannot_be_answered_is_not_held(http: httpx.Client) -> None:
    """A condition counts only where the answer would be one (RFC 9110, section 13.2.1)."""
    limits = COLUMNS | {"vertices": [1], "vertex_capacity": [2]}
    assert http.put(G, json=limits).is_success
    for path, status in (("export?format=dimacs", 422), ("export?version=7", 409), ("snapshots/7", 409)):
        for tags in ('"00000000-7"', "*"):
            assert held(http, f"{G}/{path}", tags).status_code == status, path
    assert held(http, f"{G}/capacities", "*", Accept="image/png").status_code == 406
    assert held(http, f"{G}/capacities?limit=0", "*").status_code == 400
    tag = http.get(f"{G}/capacities").headers["etag"]
    for path in ("capacities", "vertices", "export"):
        assert held(http, f"{G}/{path}", tag, Prefer="respond-async").status_code == 400
        assert held(http, f"{G}/{path}", tag, Prefer="wait=0").status_code == 400
    until_told(http)
    assert held(http, G, http.get(G).headers["etag"], Prefer="respond-async").status_code == 304


def test_what_has_changed_is_answered(http: httpx.Client) -> None:
    old = {path: http.get(path) for path in (G, *PAGES, *FILES)}
    changed = change(http).headers["etag"]
    for path in (G, *PAGES, *PRESENT):
        new = held(http, path, old[path].headers["etag"])
        assert new.status_code == 200, path
        assert new.headers["etag"][-11:] == changed[-11:]
    for path in NAMED:  # of version 1, as they were
        assert held(http, path, old[path].headers["etag"]).status_code == 304, path
        assert http.get(path).content == old[path].content


def test_another_load_at_the_same_version_is_another_answer(http: httpx.Client) -> None:
    for path in (G, *PAGES, *FILES):
        tag = http.get(path).headers["etag"]
        assert http.delete(G).is_success
        assert http.put(G, json=COLUMNS | {"capacity": [1, 1, 1]}).json()["version"] == 1
        assert http.post(f"{G}/snapshots").is_success
        assert held(http, path, tag).status_code == 200, path
        assert held(http, path, re.sub(r"[0-9a-f]{8}-", "", tag)).status_code == 200


@pytest.mark.parametrize("path", PAGES)
def test_each_form_of_a_page_has_an_etag_of_its_own(http: httpx.Client, path: str) -> None:
    answers = {mark: http.get(path, headers={"Accept": form}) for mark, form in FORMS.items()}
    plain = answers[""].headers["etag"]
    for mark, answer in answers.items():
        assert answer.headers["etag"] == f'"{mark}{plain[1:]}'
        for other, form in FORMS.items():
            again = held(http, path, answer.headers["etag"], Accept=form)
            assert again.status_code == (304 if other == mark else 200)
            assert again.headers["vary"] == "Accept"
        again = http.get(path, headers={"Accept": FORMS[mark], "If-Match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (200, answer.content), "the same bytes at one version"


def test_a_graph_has_another_etag_once_its_figures_are_others(http: httpx.Client) -> None:
    """They change without a version: a flow that is kept, its bytes, the worker."""
    before = http.get(G)
    assert re.fullmatch(r'"[0-9a-f]{12}\.[0-9a-f]{8}-1"', before.headers["etag"])
    assert http.post(f"{G}/max-flow", json={}).is_success
    eventually(lambda: http.get(G).json()["flow_states"] == 1)
    after = held(http, G, before.headers["etag"])
    assert (after.status_code, after.json()["version"], after.json()["flow_states"]) == (200, 1, 1)
    assert after.headers["etag"] != before.headers["etag"]


def test_a_file_of_a_named_version_stays_as_it_is(http: httpx.Client) -> None:
    """Whatever is inserted and deleted since."""
    before = {path: http.get(path) for path in NAMED}
    changes = {"op": "insert", "tail": [0], "head": [1], "capacity": [1]}, {"op": "delete", "edges": [0]}
    for change in changes:
        assert http.patch(f"{G}/edges", json=change).is_success
        for path, old in before.items():
            assert re.fullmatch(r'"[0-9a-f]{12}\.[0-9a-f]{8}-1"', old.headers["etag"])
            assert held(http, path, old.headers["etag"]).status_code == 304, path
            new = http.get(path, headers={"If-Match": old.headers["etag"]})
            assert (new.status_code, new.headers["etag"]) == (200, old.headers["etag"])
            assert new.content == old.content, path


def test_every_etag_is_good_for_if_match(http: httpx.Client) -> None:
    """It stands for the version, whichever answer it was of."""
    flow = http.post(f"{G}/max-flow", json={})
    pages = [http.get(PAGES[0], headers={"Accept": form}) for form in FORMS.values()]
    answers = [http.get(G), *pages, flow, *(http.get(path) for path in FILES)]
    for answer in answers:
        tag = answer.headers["etag"]
        for path in (G, *PAGES, *FILES):
            assert http.get(path, headers={"If-Match": tag}).status_code == 200, tag
            weak = http.get(path, headers={"If-Match": f"W/{tag}"})
            assert weak.status_code == 412, "a strong comparison"
            assert "matches no weak ETag" in weak.json()["detail"]
        tried = http.patch(f"{G}/capacities?dry_run=true", json={"edges": [0], "set": [9]}, headers={"If-Match": tag})
        assert tried.status_code == 200
    assert change(http, pages[1].headers["etag"]).status_code == 200
    for answer in answers:
        assert change(http, answer.headers["etag"]).status_code == 412
    now = http.get(PAGES[0]).headers["etag"].strip('"')
    for wrong in ("NPZ.{}", "npz{}", ".{}", "a.b.{}", "{}.npz", "npz-{}", 17 * "a" + ".{}"):
        assert change(http, f'"{wrong.format(now)}"').status_code == 412, wrong
    assert change(http, f'"{now}"').status_code == 200


def test_if_match_comes_first(http: httpx.Client) -> None:
    until_told(http)
    for path in (G, *PAGES, *FILES):
        tag = http.get(path).headers["etag"]
        assert held(http, path, tag, If_Match=tag).status_code == 304
        assert held(http, path, '"x"', If_Match=tag).status_code == 200
        for method in ("GET", "HEAD"):
            assert held(http, path, tag, If_Match='"00000000-1"', method=method).status_code == 412
            assert held(http, path, tag, If_Match="1", method=method).status_code == 400


@pytest.mark.parametrize("value", ["1", '"1', "", ",", "*, *", '"a" "b"', 'w/"a"', '*, "a"', ", ".join(101 * ['"x"'])])
def test_a_list_out_of_its_form_is_refused(http: httpx.Client, value: str) -> None:
    for path in (G, *PAGES[:1], *FILES):
        refused = held(http, path, value)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request"), path
        assert refused.json()["header"] == "If-None-Match"
        assert held(http, path, value, method="HEAD").status_code == 400


def test_a_list_may_come_in_several_lines(http: httpx.Client) -> None:
    until_told(http)
    lines = [("If-None-Match", '"x"'), ("If-None-Match", http.get(G).headers["etag"])]
    assert http.get(G, headers=lines).status_code == 304


def test_a_change_that_waits_comes_before_the_answer(http: httpx.Client) -> None:
    """What was accepted before a page was asked for is in it."""
    tag = http.get(PAGES[0]).headers["etag"]
    for _ in range(20):
        accepted = http.patch(f"{G}/capacities", json={"edges": [0], "add": [1]}, headers={"Prefer": "respond-async"})
        assert accepted.status_code == 202
        answer = held(http, PAGES[0], tag)
        assert answer.status_code == 200
        assert answer.headers["etag"] != tag
        tag = answer.headers["etag"]


def test_no_version_is_settled_while_a_change_waits(http: httpx.Client, service: Service) -> None:
    assert service.log is not None
    settings = Settings(data_dir=service.log.parent / "data", redis_url=None)
    keys = Keys(settings.redis_prefix)

    async def run() -> list[Seen | None]:
        versions = Versions(settings, keys)
        found = [await versions.settled("nowhere"), await versions.settled("held")]
        await versions._redis.sadd(keys.changing("held"), "another")
        found.append(await versions.settled("held"))
        await versions._redis.srem(keys.changing("held"), "another")
        await versions.close()
        return found

    nowhere, seen, waiting = asyncio.run(run())
    assert nowhere is waiting is None
    assert seen is not None
    assert (seen.version, generation_of(seen.graph_id)) == (1, http.get(G).json()["generation"])


def test_the_result_of_a_job(http: httpx.Client) -> None:
    location = http.post(f"{G}/max-flow", json={}, headers={"Prefer": "respond-async"}).headers["location"]
    result = http.get(f"{location}/result", headers={"Prefer": "wait=30"})
    tag = result.headers["etag"]
    again = held(http, f"{location}/result", tag)
    assert (again.status_code, again.headers["etag"], again.headers["vary"]) == (304, tag, "Accept")
    assert held(http, f"{location}/result", '"x"').content == result.content
    assert held(http, f"{location}/result?after=1", tag).status_code == 406
    failed = http.post(f"{G}/max-flow", json={"sources": [7]}, headers={"Prefer": "respond-async"}).headers["location"]
    assert held(http, f"{failed}/result", "*", Prefer="wait=30").status_code == 422


def test_a_question_is_answered_whatever_its_caller_has(http: httpx.Client) -> None:
    first = http.post(f"{G}/max-flow", json={})
    for method in ("POST", "QUERY"):
        again = http.request(method, f"{G}/max-flow", json={}, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.json()["value"]) == (200, first.json()["value"])


def test_the_client_reads_all_of_it(http: httpx.Client, service: Service, tmp_path: Any) -> None:
    with Client(service.url) as client:
        graph = client.graph("held")
        assert graph.refresh().etag == http.get(G).headers["etag"].strip('"').rpartition(".")[2]
        assert graph.to_networkx().number_of_edges() == 3
        assert graph.export(tmp_path / "held.npz") is not None
        tag = http.get(PAGES[0], headers={"Accept": FORMS["npz."]}).headers["etag"].strip('"')
        assert graph.capacities(if_version=tag).capacity == [3, 4, 5]
        assert graph.patch(edges=[0], set=[1], if_version=tag).version == 2
    with np.load(io.BytesIO(http.get(FILES[0]).content)) as file:
        assert file["capacity"].tolist() == [1, 4, 5]
