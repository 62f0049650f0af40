"""A snapshot, and any earlier version that is kept, comes out as a file, and is the same graph when it is put again."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest
from headrace import AsyncClient, Capacities, Client, Graph, VersionUnavailable
from typer.testing import CliRunner

from service.cli.main import app
from tests.contract.test_codes import check_problem

#        3         2.5
#   s ------> a ------> t         a = b is undirected, and closed as it is loaded
#    \        ‖ 1       ^
#  7  +-----> b -------+  inf
CITY: dict[str, Any] = {
    "tail": ["s", "a", "s", "b", "a"],
    "head": ["a", "t", "b", "t", "b"],
    "capacity": [3, 2.5, 7, "inf", 1],
    "closed": [False, False, False, False, True],
    "undirected": [False, False, False, False, True],
    "edge_ids": ["s-a", "a-t", "s-b", "b-t", "ü"],
    "source": "s",
    "sink": "t",
}


History: TypeAlias = tuple[Graph, dict[int, Capacities]]


@pytest.fixture
def client(service_url: str) -> Iterator[Client]:
    with Client(service_url) as client:
        yield client


@pytest.fixture
def http(service_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service_url, trust_env=False, timeout=60) as http:
        yield http


@pytest.fixture
def history(http: httpx.Client, client: Client) -> History:
    """A graph at version 5, with snapshots of versions 3 and 4, and its edges as they were read at each version."""
    http.put("/v1/graphs/city", json=CITY).raise_for_status()
    graph = client.graph("city")
    known = {1: graph.capacities()}
    for version, step in enumerate(
        (
            lambda: graph.patch(edges=["s-a"], set=[9]),
            lambda: graph.patch(edges=["a-t"], set=["inf"]),
            lambda: graph.close(["s-b"]),
            lambda: graph.reopen(["ü"]),
        ),
        2,
    ):
        step()
        known[version] = graph.capacities()
        if version in (3, 4):
            graph.write_snapshot()
    return graph, known


def edges_of(page: Capacities) -> tuple[object, ...]:
    """Everything of a page but its version."""
    return page.edge_ids, page.tail, page.head, page.capacity, page.closed, page.undirected


@pytest.mark.parametrize("format", ["npz", "arrow"])
def test_a_snapshot_is_the_graph_as_it_was(http: httpx.Client, client: Client, history: History, format: str) -> None:
    _, known = history
    listed = http.get("/v1/graphs/city/snapshots").json()["snapshots"]
    assert [snapshot["version"] for snapshot in listed] == [4, 3]
    for version in (4, 3):
        answer = http.get(f"/v1/graphs/city/snapshots/{version}", params={"format": format})
        assert (answer.status_code, answer.headers["etag"].partition("-")[2]) == (200, f'{version}"')
        assert f'filename="city-v{version}.{format}"' in answer.headers["content-disposition"]
        put = http.put(
            "/v1/graphs/again", content=answer.content, headers={"Content-Type": answer.headers["content-type"]}
        )
        assert put.is_success, put.text
        again = client.graph("again")
        assert edges_of(again.capacities()) == edges_of(known[version])
        assert (again.info.source, again.info.sink, again.info.decimals) == ("s", "t", 1)


def test_every_version_that_is_kept(client: Client, history: History, tmp_path: Path) -> None:
    """Those since the older snapshot, and the edges as loaded; what lies between is refused and leaves no file."""
    graph, known = history
    for version in (1, 3, 4, 5):
        file = tmp_path / f"{version}.npz"
        assert graph.export(file, version=version) == version
        assert edges_of(client.put_graph("again", file).capacities()) == edges_of(known[version])
    for version in (2, 6):
        with pytest.raises(VersionUnavailable):
            graph.export(tmp_path / "no.npz", version=version)
    assert not (tmp_path / "no.npz").exists()
    assert graph.refresh().version == 5, "nothing was changed"


def test_an_earlier_version_has_the_costs_that_it_had(client: Client, http: httpx.Client, tmp_path: Path) -> None:
    http.put("/v1/graphs/priced", json=CITY | {"cost": [1, 2.5, -1, 0, 3]}).raise_for_status()
    graph = client.graph("priced")
    graph.patch(edges=["s-a", "ü"], set=[4, 0.5], column="cost")
    graph.patch(edges=["s-a"], set=[9])
    for version, costs in ((1, [1, 2.5, -1, 0, 3]), (2, [4, 2.5, -1, 0, 0.5]), (3, [4, 2.5, -1, 0, 0.5])):
        for suffix in ("npz", "arrow"):
            file = tmp_path / f"{version}.{suffix}"
            graph.export(file, version=version)
            page = client.put_graph("priced-again", file).capacities()
            assert (page.cost, page.capacity[0]) == (costs, 9 if version == 3 else 3)


@pytest.mark.parametrize("suffix", ["npz", "arrow"])
def test_what_came_later_gives_no_ids_to_an_earlier_version(client: Client, tmp_path: Path, suffix: str) -> None:
    """Edges are numbered until one of them is deleted: the file of a version is the same, whatever came since."""
    graph = client.put_graph("grows", tail=[0, 1], head=[1, 2], capacity=[3, 2])
    files = [tmp_path / f"{i}.{suffix}" for i in range(4)]
    graph.export(files[0], version=1)
    (row,) = graph.insert_edges([0], [2], [1]).edges
    graph.delete_edges([row])
    graph.restore(2)
    for file, version in zip(files[1:], (1, 2, 3), strict=True):
        graph.export(file, version=version)
    assert files[1].read_bytes() == files[0].read_bytes()
    assert [*client.put_graph("again", files[2]).insert_edges([2], [0], [1]).edges] == [3]
    client.put_graph("again", files[3]).insert_edges([2], [0], [1], edge_ids=[2])


def test_what_is_no_snapshot_is_refused(http: httpx.Client, history: History) -> None:
    path = "/v1/graphs/city/snapshots"
    missing = http.get(f"{path}/5")
    check_problem(missing, "version_unavailable")
    detail = "there is no snapshot of version 5; there are those of 4, 3. The log may reach it: export?version=5"
    assert missing.json()["detail"] == detail
    http.put("/v1/graphs/new", json=CITY).raise_for_status()
    assert "of version 1; there are none." in http.get("/v1/graphs/new/snapshots/1").json()["detail"]
    check_problem(http.get("/v1/graphs/nobody/snapshots/1"), "unknown_graph")
    for words in ("0", "-1", "latest", "1.5", str(1 << 60)):
        check_problem(http.get(f"{path}/{words}"), "invalid_request")
    check_problem(http.get(f"{path}/3", params={"format": "csv"}), "invalid_request")
    check_problem(http.get("/v1/graphs/city/export", params={"version": "0"}), "invalid_request")
    check_problem(http.delete(f"{path}/3"), "method_not_allowed")


def test_by_hand(service_url: str, history: History, tmp_path: Path) -> None:
    shell, file = CliRunner(env={"HEADRACE_URL": service_url}), tmp_path / "then.npz"
    done = shell.invoke(app, ["export", "city", str(file), "--version", "3"])
    assert (done.exit_code, done.output) == (0, f"city at version 3 is in {file}\n")
    assert json.loads(shell.invoke(app, ["load", "then", str(file), "--json"]).stdout)["n_edges"] == 5
    refused = shell.invoke(app, ["export", "city", str(file), "--version", "2"])
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "version_unavailable: version 2 is not kept any more: what is kept begins at version 3" in refused.stderr
    assert shell.invoke(app, ["export", "city", str(file), "--version", "0"]).exit_code == 2


def test_awaited(service_url: str, history: History, tmp_path: Path) -> None:
    async def work() -> int:
        async with AsyncClient(service_url) as client:
            return await (await client.graph("city")).export(tmp_path / "then.arrow", version=3)

    assert asyncio.run(work()) == 3
