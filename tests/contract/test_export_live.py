"""A whole graph out and in again, by every format: what was exported and put is the same graph."""

import asyncio
import base64
import hashlib
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest
from headrace import (
    AlreadyExists,
    AsyncClient,
    Client,
    Graph,
    InvalidInput,
    UnknownGraph,
    Update,
    VersionConflict,
    VersionUnavailable,
)
from typer.testing import CliRunner

from service.cli.main import app

FORMATS = {"npz": "application/x-npz", "arrow": "application/vnd.apache.arrow.stream", "dimacs": "text/x-dimacs"}
DIMACS = {"Content-Type": "text/x-dimacs"}
SUFFIXES = {"npz": ".npz", "arrow": ".arrow", "dimacs": ".max"}

#        3        inf
#   s ------> a ------> t
#    \        ‖ 2.25    ^
#  7  \       ‖    2   /
#      +----> b ------+       c: alone; b-t twice, the second one is closed below; a = b is undirected
EVERYTHING: dict[str, Any] = {
    "tail": ["s", "a", "s", "b", "b", "a"],
    "head": ["a", "t", "b", "t", "t", "b"],
    "capacity": [3, "inf", 7, 2, 1.5, 2.25],
    "undirected": [False, False, False, False, False, True],
    "edge_ids": ["s-a", "a-t", "s-b", "b-t", "ü", "a=b"],
    "vertex_labels": ["s", "a", "b", "t", "c"],
    "source": "s",
    "sink": "t",
}
PLAIN: dict[str, Any] = {
    "tail": [0, 0, 1, 2, 1],
    "head": [1, 2, 3, 3, 2],
    "capacity": [3, 2, 4, 9, 1],
    "source": 0,
    "sink": 3,
}


@pytest.fixture
def http(service_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service_url, trust_env=False, timeout=60) as http:
        yield http


def put(http: httpx.Client, name: str, columns: dict[str, Any]) -> None:
    answer = http.put(f"/v1/graphs/{name}", json=columns)
    assert answer.is_success, answer.text


def everything(http: httpx.Client, sdk: Client) -> Graph:
    """A graph with all that one can have, which has changed since it was loaded."""
    put(http, "all", EVERYTHING)
    graph = sdk.graph("all")
    graph.apply([Update(edges=["s-a"], set=[Decimal("3.75")]), Update(edges=["ü"], op="close")])
    graph.refresh()
    return graph


def assert_same(one: Graph, two: Graph) -> None:
    first, second = one.capacities(), two.capacities()
    for column in ("edge_ids", "tail", "head", "capacity", "closed"):
        assert getattr(first, column) == getattr(second, column), column
    for field in ("n_vertices", "n_edges", "n_arcs", "decimals", "source", "sink"):
        assert getattr(one.refresh(), field) == getattr(two.refresh(), field), field
    first_flow, second_flow = (graph.max_flow(fields=["value", "cut"]) for graph in (one, two))
    assert first_flow.value == second_flow.value
    assert first_flow.cut is not None
    assert second_flow.cut is not None
    assert first_flow.cut.value == second_flow.cut.value
    assert second_flow.certificate.valid


@pytest.mark.parametrize("format", ["npz", "arrow"])
def test_everything_goes_round(http: httpx.Client, sdk: Client, tmp_path: Path, format: str) -> None:
    graph = everything(http, sdk)
    file = tmp_path / f"all{SUFFIXES[format]}"
    assert graph.export(file) == 2
    again = sdk.put_graph(f"again-{format}", file)
    assert_same(graph, again)
    for one in (graph, again):
        one.reopen(["ü"])
    assert_same(graph, again)
    assert again.capacities().closed == (False,) * 6
    assert [path.name for path in tmp_path.iterdir()] == [file.name], "nothing is left beside it"


def test_dimacs_holds_what_it_can(http: httpx.Client, sdk: Client, tmp_path: Path) -> None:
    put(http, "plain", PLAIN)
    graph = sdk.graph("plain")
    graph.patch(edges=[3], set=[1])
    file = tmp_path / "plain.max"
    assert graph.export(file) == 2
    assert_same(graph, sdk.put_graph("plain-again", file))
    whole = everything(http, sdk)
    text = http.get("/v1/graphs/all/export", params={"format": "dimacs"}).text
    lost = [line for line in text.splitlines() if line.startswith("c ")]
    assert len(lost) == 5, "decimals, no limit, undirected, closed, names: each is said"
    file.write_text(text)
    value = sdk.put_graph("all-again", file).max_flow().value
    assert value == whole.max_flow().value * 10**whole.info.decimals, "in units, as the first line says"


def test_dimacs_min_has_the_costs(http: httpx.Client, sdk: Client, tmp_path: Path) -> None:
    put(http, "plain", PLAIN)
    refused = http.get("/v1/graphs/plain/export", params={"format": "dimacs-min"})
    assert (refused.status_code, refused.json()["code"]) == (422, "no_costs")
    problem = "p min 4 5\nn 1 4\nn 4 -4\na 1 2 0 4 2\na 1 3 0 2 2\na 2 3 0 2 1\na 2 4 0 3 3\na 3 4 0 5 1\n"
    (tmp_path / "problem.min").write_text(problem)
    graph = sdk.put_graph("problem", tmp_path / "problem.min")
    assert (graph.info.source, graph.info.sink, graph.info.cost_decimals) == (4, 5, 0)
    cheapest = graph.min_cost_flow()
    assert (cheapest.value, cheapest.cost) == (4, 14)
    assert graph.export(tmp_path / "again.min") == 1
    assert (tmp_path / "again.min").read_text().startswith("p min 6 7\nn 5 4\nn 6 -4\n")
    again = sdk.put_graph("problem", tmp_path / "again.min").min_cost_flow()
    assert (again.value, again.cost) == (4, 14)
    answer = http.get("/v1/graphs/problem/export", params={"format": "dimacs-min"})
    assert answer.headers["content-disposition"] == 'attachment; filename="problem.min"'
    bounded = http.put("/v1/graphs/problem", content=problem.replace("1 2 0 4", "1 2 1 4"), headers=DIMACS)
    assert bounded.status_code == 200
    assert http.get("/v1/graphs/problem/capacities").json()["lower"][0] == 1
    refused = http.put("/v1/graphs/problem", content=problem.replace("1 2 0 4", "1 2 -1 4"), headers=DIMACS)
    assert (refused.status_code, refused.json()["lines"]) == (422, [4])
    assert "lower bound" in refused.json()["detail"]


@pytest.mark.parametrize("format", FORMATS)
def test_the_answer(http: httpx.Client, format: str) -> None:
    put(http, "plain", PLAIN)
    answer = http.get("/v1/graphs/plain/export", params={"format": format})
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == FORMATS[format]
    assert answer.headers["etag"].endswith('-1"')
    assert answer.headers["content-disposition"] == f'attachment; filename="plain{SUFFIXES[format]}"'
    assert int(answer.headers["content-length"]) == len(answer.content)
    digest = base64.b64encode(hashlib.sha256(answer.content).digest()).decode()
    assert answer.headers["repr-digest"] == f"sha-256=:{digest}:"
    put_again = http.put("/v1/graphs/raw", content=answer.content, headers={"Content-Type": FORMATS[format]})
    assert put_again.is_success


def test_refusals(http: httpx.Client, sdk: Client, tmp_path: Path) -> None:
    put(http, "plain", PLAIN)
    path = "/v1/graphs/plain/export"
    for answer, code in (
        (http.get("/v1/graphs/nobody/export"), "unknown_graph"),
        (http.get(path, params={"format": "packed"}), "invalid_request"),
        (http.get(path, params={"format": "csv"}), "invalid_request"),
    ):
        assert answer.json()["code"] == code
    for preferred in ("respond-async", "wait=0", "respond-async, wait=0"):
        problem = http.get(path, headers={"Prefer": preferred}).json()
        assert (problem["code"], problem["header"]) == ("invalid_request", "Prefer")
        assert "from 1 on" in problem["detail"]
    http.put("/v1/graphs/nul", json=PLAIN | {"edge_ids": ["a\0", "b", "c", "d", "e"]}).raise_for_status()
    assert "NUL" in http.get("/v1/graphs/nul/export").json()["detail"]
    assert http.get("/v1/graphs/nul/export", params={"format": "arrow"}).is_success
    before = tmp_path / "plain.npz"
    before.write_text("as it was")
    graph = sdk.graph("plain")
    with pytest.raises(InvalidInput, match="the suffix must be one of"):
        graph.export(tmp_path / "plain.csv")
    http.delete("/v1/graphs/plain")
    with pytest.raises(UnknownGraph):
        graph.export(before)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("plain.npz", "as it was")]


def test_its_job_has_figures_and_no_bytes(http: httpx.Client) -> None:
    put(http, "plain", PLAIN)
    content = http.get("/v1/graphs/plain/export").content
    (job, *_) = http.get("/v1/jobs").json()["jobs"]
    result = http.get(f"/v1/jobs/{job['id']}").json()["result"]
    assert (job["kind"], result["version"], result["format"]) == ("export", 1, "npz")
    assert result["bytes"] == len(content)


def test_by_hand(http: httpx.Client, service_url: str, tmp_path: Path) -> None:
    put(http, "plain", PLAIN)
    shell, file = CliRunner(env={"HEADRACE_URL": service_url}), tmp_path / "out.arrow"
    done = shell.invoke(app, ["export", "plain", str(file)])
    assert (done.exit_code, done.output) == (0, f"plain at version 1 is in {file}\n")
    assert json.loads(shell.invoke(app, ["load", "in", str(file), "--json"]).stdout)["n_edges"] == 5
    missing = shell.invoke(app, ["export", "plain", str(tmp_path / "no" / "such.npz")])
    told = f"headrace: {tmp_path / 'no'}: there is no such folder\n"
    assert (missing.exit_code, missing.stdout, missing.stderr) == (1, "", told)


def test_a_long_file_is_the_same(http: httpx.Client, sdk: Client, tmp_path: Path) -> None:
    """Of many pieces: two columns of 300,000 rows, and names of other lengths in each step."""
    n = 300_000
    columns: dict[str, Any] = {
        "tail": list(range(n)),
        "head": list(range(1, n + 1)),
        "capacity": [row % 1000 + 1 for row in range(n)],
        "edge_ids": [f"e{row}" for row in range(n)],
    }
    put(http, "long", columns)
    graph = sdk.graph("long")
    graph.close(["e299999"])
    for suffix in (".npz", ".arrow"):
        file = tmp_path / f"long{suffix}"
        graph.export(file)
        again = sdk.put_graph("long-again", file)
        for offset in (0, 65_500, 262_100, n - 100):
            one, two = (some.capacities(offset=offset, limit=100) for some in (graph, again))
            assert (one.edge_ids, one.tail, one.capacity, one.closed) == (
                two.edge_ids,
                two.tail,
                two.capacity,
                two.closed,
            )
    file = tmp_path / "long.max"
    graph.export(file)
    assert sdk.put_graph("long-again", file).max_flow(0, n - 1).value == 1


def test_a_copy_is_a_graph_of_its_own(http: httpx.Client, sdk: Client) -> None:
    graph = everything(http, sdk)
    copy = graph.copy("copied")
    assert (copy.name, copy.info.version) == ("copied", 1)
    assert_same(graph, copy)
    copy.reopen(["ü"])
    assert graph.capacities().closed[4] is True
    graph.delete()
    assert copy.max_flow().value == Decimal("9.5")
    copy.delete()


def test_a_copy_replaces_nothing(http: httpx.Client, sdk: Client) -> None:
    put(http, "one", PLAIN)
    put(http, "two", EVERYTHING)
    with pytest.raises(AlreadyExists, match="there is a graph 'two'"):
        sdk.graph("one").copy("two")
    assert sdk.graph("two").info.n_edges == 6
    path = "/v1/graphs/one:copy"
    for answer, code in (
        (http.post("/v1/graphs/nobody:copy", json={"to": "three"}), "unknown_graph"),
        (http.post(path, json={"to": "one"}), "already_exists"),
        (http.post(path, json={"to": "a/b"}), "invalid_body"),
        (http.post(path, json={}), "invalid_body"),
        (http.post(path, json={"to": "three", "replace": True}), "invalid_body"),
        (http.post(path, content=b'{"to": "three"}'), "unsupported_media_type"),
    ):
        assert answer.json()["code"] == code
    assert http.get("/v1/graphs/three").status_code == 404


def test_a_copy_that_is_sent_again_is_made_once(http: httpx.Client) -> None:
    put(http, "one", PLAIN)
    answers = [
        http.post("/v1/graphs/one:copy", json={"to": "once"}, headers={"Idempotency-Key": "copy-1"}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    put(http, "two", PLAIN)
    other = http.post("/v1/graphs/two:copy", json={"to": "once"}, headers={"Idempotency-Key": "copy-1"})
    assert other.json()["code"] == "idempotency_conflict"
    job = http.post("/v1/graphs/one:copy", json={"to": "later"}, headers={"Prefer": "respond-async"})
    assert job.status_code == 202
    done = http.get(job.headers["location"], headers={"Prefer": "wait=60"}).json()
    assert (done["status"], done["result"]["name"]) == ("succeeded", "later")


def test_a_copy_outlives_many_long_results(http: httpx.Client, sdk: Client, service_url: str) -> None:
    """What a copy was made of is its own from then on: it is not dropped as results of jobs are."""
    put(http, "one", PLAIN)
    sdk.graph("one").copy("kept")
    for _ in range(3):
        http.get("/v1/graphs/one/export").raise_for_status()
    assert sdk.graph("kept").capacities().capacity == (3, 2, 4, 9, 1)


def test_both_await(http: httpx.Client, service_url: str, tmp_path: Path) -> None:
    put(http, "one", PLAIN)

    async def work() -> None:
        async with AsyncClient(service_url) as client:
            graph = await client.graph("one")
            assert await graph.export(tmp_path / "one.npz") == 1
            copy = await graph.copy("one-more")
            assert (await copy.max_flow()).value == 5
            with pytest.raises(AlreadyExists):
                await graph.copy("one-more")

    asyncio.run(work())
    assert (tmp_path / "one.npz").stat().st_size > 0


def test_a_copy_by_hand(http: httpx.Client, service_url: str) -> None:
    put(http, "one", PLAIN)
    shell = CliRunner(env={"HEADRACE_URL": service_url})
    assert "edges     5\n" in shell.invoke(app, ["copy", "one", "by-hand"]).stdout
    again = shell.invoke(app, ["copy", "one", "by-hand"])
    assert (again.exit_code, again.stdout) == (1, "")
    assert "headrace: already_exists: " in again.stderr


def test_back_to_an_earlier_version(http: httpx.Client, sdk: Client, service_url: str) -> None:
    graph = everything(http, sdk)
    first = graph.max_flow().value
    done = graph.restore(1)
    assert (done.version, done.applied, done.flow_states[0].old_value) == (3, 2, first)
    page = graph.capacities()
    assert (page.capacity[0], page.closed[4]) == (3, False)
    with pytest.raises(VersionConflict):
        graph.restore(2, if_version=2)
    assert graph.restore(2, if_version=3).version == 4
    assert graph.max_flow().value == first
    with pytest.raises(VersionUnavailable, match="the graph has no version 9"):
        graph.restore(9)
    shell = CliRunner(env={"HEADRACE_URL": service_url})
    assert shell.invoke(app, ["restore", "all", "1"]).stdout.startswith("version    5\n")
    for body in ({}, {"version": 0}, {"version": "1"}, {"version": 1, "to": "x"}):
        assert http.post("/v1/graphs/all:restore", json=body).json()["code"] == "invalid_body"
    assert http.post("/v1/graphs/nobody:restore", json={"version": 1}).json()["code"] == "unknown_graph"


@pytest.mark.parametrize("of_copy", [False, True])
def test_the_job_of_a_file_says_what_it_is_and_not_where_it_lay(http: httpx.Client, of_copy: bool) -> None:
    put(http, "told", PLAIN)
    if of_copy:
        http.post("/v1/graphs/told:copy", json={"to": "told-2"}).raise_for_status()
    else:
        http.get("/v1/graphs/told/export").raise_for_status()
    jobs = http.get("/v1/jobs").json()["jobs"]
    path = "/v1/jobs/" + next(job["id"] for job in jobs if (job["kind"], job["graph"]) == ("export", "told"))
    result = http.get(path).json()["result"]
    assert set(result) == {"graph", "version", "format", "bytes"}
    assert result == http.get(f"{path}/result").json() == http.delete(path).json()["result"]
    for name in ("told", "told-2")[: 1 + of_copy]:
        http.delete(f"/v1/graphs/{name}").raise_for_status()
