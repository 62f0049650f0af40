"""The Python client against a real service: uvicorn, a worker process and Redis."""

import asyncio
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import headrace
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from headrace import (
    AsyncClient,
    Client,
    Graph,
    Update,
)

#        3        4
#   s ------> a ------> t
#    \                  ^
# 2.5 \         2      /
#      +-----> b -----+
TAIL, HEAD = ["s", "s", "a", "b"], ["a", "b", "t", "t"]
CAPACITY = [3, Decimal("2.5"), 4, 2]
IDS = ["s-a", "s-b", "a-t", "b-t"]


@pytest.fixture
def small(sdk: Client, request: pytest.FixtureRequest) -> Iterator[Graph]:
    name = request.node.name.partition("[")[0]
    graph = sdk.put_graph(name, tail=TAIL, head=HEAD, capacity=CAPACITY, edge_ids=IDS, source="s", sink="t")
    yield graph
    graph.delete()


def test_the_whole_answer(small: Graph) -> None:
    info = small.info
    assert (info.version, info.n_vertices, info.n_edges, info.decimals) == (1, 4, 4, 1)
    assert (info.source, info.sink) == ("s", "t")
    flow = small.max_flow(fields=["value", "cut", "flow"])
    assert flow.value == 5
    assert flow.certificate.valid
    assert flow.certificate.value == flow.certificate.flow_across_cut == 5
    assert flow.cut is not None
    assert set(flow.cut.edges) == {"s-a", "b-t"}
    assert "s" in flow.cut.source_side
    assert "t" in flow.cut.sink_side
    assert flow.flow is not None
    assert dict(zip(flow.flow.edges, flow.flow.amount, strict=True)) == {"s-a": 3, "s-b": 2, "a-t": 3, "b-t": 2}
    assert small.min_cut("s", "t").cut is not None


def test_updates_are_versions(small: Graph) -> None:
    small.max_flow()
    patched = small.patch(edges=["s-a"], set=[Decimal("3.5")])
    assert patched.version == 2
    assert [(state.old_value, state.value) for state in patched.flow_states] == [(5, Decimal("5.5"))]
    assert small.close(["b-t"]).flow_states[0].value == Decimal("3.5")
    assert small.reopen(["b-t"]).flow_states[0].value == Decimal("5.5")
    assert small.patch_endpoints(tail=["a"], head=["t"], add=[-3]).flow_states[0].value == 3
    last = small.apply([Update(edges=["a-t"], scale=3), Update(edges=["s-a"], set=math.inf)], if_version=5)
    assert last.version == 6
    assert last.flow_states[0].value == 5
    page = small.capacities()
    assert page.capacity == (math.inf, Decimal("2.5"), 3, 2)
    assert small.capacities(offset=1, limit=1).edge_ids == ("s-b",)
    assert small.refresh().version == 6
    assert small.max_flow(min_version=6).version == 6


def test_a_change_with_a_key_is_applied_once(small: Graph) -> None:
    """A program that was killed, or has given up a call, cannot know whether an update was applied."""
    first = small.patch(edges=["s-a"], add=1, idempotency_key="order 4711")
    assert small.patch(edges=["s-a"], add=1, idempotency_key="order 4711") == first
    assert small.capacities().capacity[0] == 4
    with pytest.raises(headrace.IdempotencyConflict):
        small.patch(edges=["s-a"], add=2, idempotency_key="order 4711")
    grown = small.insert_edges(["s"], ["t"], [1], edge_ids=["s-t"], idempotency_key="bypass")
    assert small.insert_edges(["s"], ["t"], [1], edge_ids=["s-t"], idempotency_key="bypass") == grown
    back = small.restore(1, idempotency_key="back")
    assert small.restore(1, idempotency_key="back").version == back.version == 4
    assert small.close(["s-a"]).version != small.close(["s-a"]).version, "others have a key for each call"


def test_refusals_have_their_class(sdk: Client, small: Graph) -> None:
    with pytest.raises(headrace.UnknownGraph):
        sdk.graph("nowhere")
    with pytest.raises(headrace.UnknownJob):
        sdk.job("nothing")
    with pytest.raises(headrace.UnknownEdge) as unknown:
        small.patch(edges=["s-a", "x"], set=1)
    assert (unknown.value.edges, unknown.value.rows, unknown.value.field) == (["x"], [1], "/edges")
    with pytest.raises(headrace.VersionConflict):
        small.patch(edges=["s-a"], set=1, if_version=99)
    with pytest.raises(headrace.VersionUnavailable):
        small.max_flow(min_version=99)
    with pytest.raises(headrace.SourceIsSink):
        small.max_flow("s", "s")
    with pytest.raises(headrace.InvalidBody):
        small.patch(edges=["s-a"], set=-1)
    with pytest.raises(headrace.UnknownVertex):
        small.max_flow("s", "nobody")
    with pytest.raises(headrace.InvalidBody):
        sdk.put_graph("bad", tail=[0], head=[1], capacity=[True])
    assert small.refresh().version == 1


def test_a_matching_and_its_repair(sdk: Client) -> None:
    """Ann and Bob both drive the near load, Ann the far one as well."""
    graph = sdk.put_graph(
        "drivers",
        tail=["Ann", "Ann", "Bob"],
        head=["near", "far", "near"],
        capacity=[1] * 3,
        edge_ids=["an", "af", "bn"],
    )
    found = graph.matching()
    assert found.matching is not None
    assert (found.size, found.mode, found.matching.edges) == (2, "cold", ("af", "bn"))
    assert found.pairs == {"Ann": "far", "Bob": "near"}
    assert found.cover is not None
    assert len(found.cover.left) + len(found.cover.right) == 2
    assert found.certificate.valid
    (state,) = graph.close(["af"]).flow_states
    assert (state.kind, state.sources, state.old_value, state.value) == ("matching", (), 2, 1)
    size = graph.matching(fields=["size"], min_version=2, time_limit_s=10)
    assert (size.size, size.version, size.matching, size.pairs, size.cover) == (1, 2, None, {}, None)
    job = graph.matching(wait=False)
    assert job.wait(30).size == sdk.job(job.id).wait().size == 1
    assert graph.matching(["near", "far"], progress=True).pairs.keys() == {"near"}
    with pytest.raises(headrace.NotBipartite) as refused:
        graph.matching(left=np.array(["Ann"]))
    assert set(refused.value.vertices) == {"Bob", "near"}


def test_an_unbounded_flow_names_its_path(sdk: Client) -> None:
    graph = sdk.put_graph("unbounded", tail=[0, 1], head=[1, 2], capacity=[math.inf, math.inf])
    with pytest.raises(headrace.Unbounded) as unbounded:
        graph.max_flow(0, 2)
    assert unbounded.value.vertices == [0, 1, 2]


def test_parallel_edges_are_ambiguous_by_their_ends(sdk: Client) -> None:
    graph = sdk.put_graph("parallel", tail=[0, 0], head=[1, 1], capacity=[1, 2])
    with pytest.raises(headrace.AmbiguousEdge):
        graph.patch_endpoints(tail=[0], head=[1], set=3)
    assert graph.max_flow(0, 1).value == 3


def test_every_kind_of_graph_gives_the_same_value(sdk: Client, tmp_path: Path) -> None:
    tail, head, capacity = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]), np.array([3, 2, 4, 1])
    drawn = nx.DiGraph()
    drawn.add_weighted_edges_from(zip(tail, head, capacity, strict=True), weight="capacity")
    np.savez(tmp_path / "g.npz", tail=tail, head=head, capacity=capacity)
    (tmp_path / "g.max").write_text("p max 4 4\nn 1 s\nn 4 t\na 1 2 3\na 1 3 2\na 2 4 4\na 3 4 1\n")
    (tmp_path / "g.csv").write_text("tail,head,capacity\n0,1,3\n0,2,2\n1,3,4\n2,3,1\n")
    graphs = [
        sdk.put_graph("g", tail=tail, head=head, capacity=capacity),
        sdk.put_graph("g", tail=tail, head=head, capacity=capacity + 0.5),
        sdk.put_graph("g", nx.relabel_nodes(drawn, int)),
        sdk.put_graph("g", sp.coo_array((capacity, (tail, head)), shape=(4, 4))),
        *(sdk.put_graph("g", tmp_path / name, progress=True) for name in ("g.npz", "g.max", "g.csv")),
    ]
    assert [graph.info.n_edges for graph in graphs] == [4] * 7
    for columns in ({"capacity": capacity}, {"capacity": capacity + 0.5}):
        graph = sdk.put_graph("g", tail=tail, head=head, **columns)
        assert graph.max_flow(0, 3).value == (4 if columns["capacity"].dtype.kind == "i" else 5)
    for source in (drawn, tmp_path / "g.max", tmp_path / "g.npz", tmp_path / "g.csv"):
        assert sdk.put_graph("g", source).max_flow(0, 3).value == 4


def test_a_job_is_called_as_it_was_asked_for(sdk: Client, small: Graph) -> None:
    """The flow behind a cut is the one that a question for a flow gets, and is kept once."""
    assert small.min_cut().cut is not None
    assert small.max_flow().mode == "unchanged"
    kinds = [job.kind for job in sdk.jobs() if job.graph == small.name]
    assert kinds == ["max-flow", "min-cut", "load"]
    assert [state.kind for state in small.patch(edges=["s-a"], add=1).flow_states] == ["flow"]


def test_floats_are_rounded_on_request(sdk: Client, tmp_path: Path) -> None:
    """One third and the like: by every road, on load, in updates and in caps."""
    drawn = nx.DiGraph()
    drawn.add_edge(0, 1, capacity=1 / 3)
    drawn.add_edge(0, 2, capacity=0.1 + 0.2)
    drawn.add_edge(1, 2, capacity=math.inf)
    matrix = np.array([[0, 1 / 3, 0.1 + 0.2], [0, 0, 1e15], [0, 0, 0]])
    np.savez(tmp_path / "g.npz", tail=[0, 0], head=[1, 2], capacity=[1 / 3, 0.1 + 0.2])
    (tmp_path / "g.csv").write_text(f"tail,head,capacity\n0,1,{1 / 3!r}\n0,2,{0.1 + 0.2!r}\n")
    labelled = nx.relabel_nodes(drawn, str)
    for graph in (drawn, sp.coo_array(matrix), matrix, tmp_path / "g.npz", str(tmp_path / "g.csv"), labelled):
        with pytest.raises(headrace.InvalidBody, match="decimals=6 and rounding=nearest"):
            sdk.put_graph("thirds", graph)
        for rounding, expected in (("nearest", "0.333 0.3"), ("down", "0.333 0.3"), ("up", "0.334 0.301")):
            loaded = sdk.put_graph("thirds", graph, decimals=3, rounding=rounding)
            assert loaded.info.decimals == 3
            assert loaded.capacities().capacity[:2] == tuple(map(Decimal, expected.split()))
    assert loaded.capacities().capacity[2] == math.inf
    with pytest.raises(headrace.InvalidBody, match="rounding=nearest"):
        loaded.patch(edges=[0], set=[2 / 3])
    assert loaded.patch(edges=[0], set=[2 / 3], rounding="nearest").version == 2
    assert loaded.patch(edges=[0], add=[1 / 3], rounding="down").version == 3
    assert loaded.patch(edges=[1], scale=[1 / 3], rounding="up").version == 4
    assert loaded.capacities(limit=2).capacity == (1, Decimal("0.101"))
    with pytest.raises(headrace.InvalidBody, match="rounding=nearest"):
        loaded.max_flow("0", "2", supply={"0": 1 / 3})
    assert loaded.max_flow("0", "2", supply={"0": 1 / 3}, rounding="down").value == Decimal("0.333")
    for wrong in (math.nan, -0.1, -math.inf):
        with pytest.raises(headrace.InvalidBody):
            sdk.put_graph("thirds", tail=[0], head=[1], capacity=[wrong], decimals=0, rounding="nearest")
    with pytest.raises(headrace.CapacityOverflow):
        sdk.put_graph("thirds", tail=[0], head=[1], capacity=[1e15], decimals=6, rounding="nearest")
    with pytest.raises(headrace.InvalidInput, match="needs decimals="):
        sdk.put_graph("thirds", drawn, rounding="nearest")
    loaded.delete()


def test_the_sign_of_the_flow_of_undirected_edges(sdk: Client) -> None:
    graph = sdk.put_graph("sign", tail=[0, 2], head=[1, 1], capacity=[5, 3], undirected=True)
    flow = graph.max_flow(0, 2, fields=["flow"]).flow
    assert flow is not None
    assert dict(zip(flow.edges, flow.amount, strict=True)) == {0: 3, 1: -3}
    sdk.delete_graph("sign")


def test_a_load_replaces_what_its_caller_means(sdk: Client) -> None:
    columns: dict[str, Any] = {"tail": [0], "head": [1], "capacity": [1]}
    first = sdk.put_graph("meant", **columns, must_be_new=True)
    assert not first.info.replaced
    with pytest.raises(headrace.VersionConflict):
        sdk.put_graph("meant", **columns, must_be_new=True)
    first.patch(edges=[0], set=2)
    with pytest.raises(headrace.VersionConflict):
        sdk.put_graph("meant", **columns, if_version=1)
    assert sdk.put_graph("meant", **columns, if_version=2).info.replaced
    with pytest.raises(headrace.VersionConflict):
        sdk.delete_graph("meant", if_version=2)
    sdk.delete_graph("meant", if_version=1)
    with pytest.raises(headrace.UnknownGraph):
        sdk.delete_graph("meant")


def test_a_graph_goes_to_networkx_and_back(sdk: Client, small: Graph) -> None:
    small.close(["s-b"])
    small.patch(edges=["a-t"], set=math.inf)
    drawn = small.to_networkx(page=3)
    assert type(drawn) is nx.DiGraph
    assert nx.maximum_flow_value(drawn, "s", "t") == small.max_flow().value == 3
    back = sdk.put_graph("back", drawn)
    assert back.max_flow("s", "t").value == 3
    drawn = nx.karate_club_graph()
    there = sdk.put_graph("back", drawn, capacity="weight")
    again = there.to_networkx(page=10)
    assert type(again) is nx.Graph
    assert nx.maximum_flow_value(again, 0, 33) == nx.maximum_flow_value(drawn, 0, 33, capacity="weight")
    there.delete()


def test_costs_go_to_networkx_and_back(sdk: Client) -> None:
    drawn = nx.DiGraph()
    drawn.add_edge("s", "a", capacity=4, cost=1)
    drawn.add_edge("s", "b", capacity=2, cost=2)
    drawn.add_edge("a", "t", capacity=3, cost=1)
    drawn.add_edge("b", "t", cost=-1)
    there = sdk.put_graph("costly", drawn, cost="cost", source="s", sink="t", cost_decimals=1)
    assert there.info.cost_decimals == 1
    there.patch(edges=[0], set=[Decimal("1.5")], column="cost")
    again = there.to_networkx(page=2)
    assert {(a, b): data["cost"] for a, b, data in again.edges(data=True)} == {
        ("s", "a"): Decimal("1.5"),
        ("s", "b"): 2,
        ("a", "t"): 1,
        ("b", "t"): -1,
    }
    back = sdk.put_graph("costly", again, cost="cost")
    assert back.min_cost_flow("s", "t").cost == there.min_cost_flow("s", "t").cost == Decimal("9.5")
    back.delete()
    assert not any("cost" in data for _, _, data in sdk.put_graph("free", drawn).to_networkx().edges(data=True))


N_AT_ONCE = 100
SIDE = 160
"""Of a grid: about 100,000 edges."""


def grid(sdk: Client) -> Graph:
    rng = np.random.default_rng(7)
    cells = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    tail = np.concatenate([end.ravel() for pair in pairs for end in pair])
    head = np.concatenate([end.ravel() for pair in pairs for end in pair[::-1]])
    return sdk.put_graph("grid", tail=tail, head=head, capacity=rng.integers(1, 1000, len(tail)))


def test_a_hundred_questions_at_once_are_all_answered(sdk: Client, service_url: str) -> None:
    """Of one sdk, each for other terminals: none is refused to its caller, by threads or by tasks."""
    graph = grid(sdk)
    assert graph.info.n_edges > 100_000
    ends = [(corner, SIDE * SIDE - 1 - corner) for corner in range(N_AT_ONCE)]
    with ThreadPoolExecutor(N_AT_ONCE) as threads:
        flows = list(threads.map(lambda pair: graph.max_flow(*pair), ends))

    async def session() -> list[headrace.MaxFlowResult]:
        async with AsyncClient(service_url) as other:
            named = await other.graph("grid")
            return await asyncio.gather(*(named.max_flow(sink, source) for source, sink in ends))

    back = asyncio.run(session())
    assert len(flows) == len(back) == N_AT_ONCE
    assert all(flow.certificate.valid and flow.value > 0 for flow in [*flows, *back])
    graph.delete()


def test_jobs(sdk: Client, small: Graph) -> None:
    job = small.max_flow(wait=False)
    assert job.wait(30).value == 5
    assert job.refresh().status == "succeeded"
    with job.events(10) as events:
        assert [event.name for event in events][-1] == "done"
    assert sdk.job(job.id).wait().value == 5
    assert any(info.id == job.id for info in sdk.jobs())
    job.cancel()  # over already: stays as it is
    assert job.refresh().status == "succeeded"
    assert small.max_flow(progress=True).value == 5


def test_snapshots_status_and_estimate(sdk: Client, small: Graph) -> None:
    small.patch(edges=["s-a"], set=1)
    assert small.write_snapshot().version == 2
    assert 2 in [snapshot.version for snapshot in small.snapshots()]
    assert sdk.ready()
    assert sdk.status().workers
    assert sdk.estimate(1000, 5000).host.bytes > 0
    assert small.name in [info.name for info in sdk.graphs()]


def test_the_async_client(service_url: str) -> None:
    async def session() -> None:
        async with AsyncClient(service_url) as client:
            graph = await client.put_graph("async", tail=TAIL, head=HEAD, capacity=CAPACITY)
            flows = await asyncio.gather(*(graph.max_flow("s", "t") for _ in range(8)))
            assert {flow.value for flow in flows} == {5}
            job = await graph.max_flow("s", "t", wait=False)
            assert (await job.wait()).value == 5
            async with job.events(10) as events:
                assert [event.name async for event in events][-1] == "done"
            with pytest.raises(headrace.UnknownEdge):
                await graph.close([99])
            with pytest.raises(headrace.NotBipartite):
                await graph.matching()
            matched = await graph.matching(["a", "b"])
            assert (matched.size, matched.pairs.keys()) == (2, {"a", "b"})
            job_of_matching = await graph.matching(["a", "b"], wait=False, fields=["size"])
            assert (await job_of_matching.wait()).size == 2
            await graph.delete()
            with pytest.raises(headrace.UnknownGraph):
                await graph.refresh()

    asyncio.run(session())


def test_a_connection_refused_is_an_error_of_ours() -> None:
    retry = headrace.Retry(attempts=2, base_s=0.01)
    with Client("http://127.0.0.1:9", retry=retry) as client, pytest.raises(headrace.ConnectionFailed) as refused:
        client.graphs()
    assert "no connection to http://127.0.0.1:9: is it running?" in str(refused.value)


def test_the_paths_of_a_flow(small: Graph) -> None:
    flow = small.max_flow(fields=["flow", "paths"], top=1)
    assert flow.paths is not None
    assert list(flow.paths) == [headrace.Path("s", "t", 3, ("s-a", "a-t"))]
    assert (flow.paths.of, flow.paths.rest) == (2, 2)
    assert flow.flow is not None
    assert flow.flow.acyclic
    raw = small.max_flow(fields=["flow"], acyclic=False).flow
    assert raw is not None
    assert not raw.acyclic
