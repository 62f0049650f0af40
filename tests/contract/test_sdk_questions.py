"""Questions beyond one flow through the client, held against a real service: studies, pairs, limits, scenarios."""

import asyncio
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import headrace
import numpy as np
import pytest
from headrace import (
    AsyncClient,
    CapacityOverflow,
    Client,
    Infeasible,
    InvalidBody,
    InvalidInput,
    Scenario,
    UnknownEdge,
    UnknownVertex,
    Update,
)

#        3        4
#   s ------> a ------> t
#    \                  ^
# 2.5 \         2      /
#      +-----> b -----+
TAIL, HEAD = ["s", "s", "a", "b"], ["a", "b", "t", "t"]


def test_closure_study(sdk: Client) -> None:
    city = sdk.put_graph("studied", tail=["s", "s", "u"], head=["u", "t", "t"], capacity=[4, 1.5, 3], decimals=1)
    study = city.closure_study("s", "t", top=None, progress=False)
    assert (study.graph, study.version, study.value, study.candidates) == ("studied", 1, Decimal("4.5"), 3)
    assert [(one.row, one.edges, one.loss) for one in study] == [(0, [0], 3), (2, [2], 3), (1, [1], Decimal("1.5"))]
    assert study.certificate.valid
    assert all(one.certificate is not None and one.certificate.valid for one in study)
    assert len(study[:2]) == 2
    assert study[0].value == Decimal("1.5")
    together = city.closure_study("s", "t", candidates=[np.array([0, 1]), [2]], top=1)
    assert [one.edges for one in together] == [[0, 1]]
    assert city.closure_study("s", "t", candidates=np.array([1]))[0].loss == Decimal("1.5")
    assert {one.row for one in city.closure_study("s", "t", candidates="cut")} == {0, 1}
    (worst,) = city.closure_study("s", "t", close="vertices")
    assert (worst.vertices, worst.edges, worst.loss) == (["u"], [], 3)
    with pytest.raises(UnknownEdge):
        city.closure_study("s", "t", candidates=[9])


def test_what_if(sdk: Client) -> None:
    city = sdk.put_graph(
        "what-if", tail=["s", "s", "u"], head=["u", "t", "t"], capacity=[4, 1.5, 3], edge_ids=["a", "b", "c"]
    )
    scenarios = [
        Scenario(id="no c", close=["c"]),
        Scenario(updates=[Update(edges=["c"], add=2), Update(tail=["s"], head=["t"], set=[0])]),
        Scenario(supply=[0.5]),
        Scenario(source="u", reopen=["a"]),
        Scenario(id="nothing", close=["z"]),
    ]
    found = city.what_if(scenarios, "s", "t", fields=["cut"], time_limit_s=60)
    assert (found.version, found.value, len(found), found.certificate.valid) == (1, Decimal("4.5"), 5, True)
    assert [row.value for row in found] == [Decimal("1.5"), 4, Decimal("0.5"), 3, None]
    assert [row.change for row in found[:2]] == [-3, Decimal("-0.5")]
    assert found[0].cut is not None
    assert list(found[0].cut.edges) == ["b"]
    assert isinstance(found[4].error, UnknownEdge)
    assert (found[4].id, found[4].error.status, found[4].error.edges) == ("nothing", 422, ["z"])
    assert city.max_flow("s", "t").mode == "unchanged"
    with pytest.raises(UnknownVertex):
        city.what_if([], "nobody", "t", progress=True)


def test_pairs(sdk: Client) -> None:
    ends = {"tail": ["x", "y", "x"], "head": ["y", "z", "z"], "edge_ids": ["p", "q", "r"]}
    small = sdk.put_graph("pairs", **ends, capacity=[3, 1.5, 1], undirected=True)
    found = small.pairs(among=["x", "y", "z"])
    assert (found.version, len(found), found[0].source, found[0].value) == (1, 3, "x", 4)
    assert found.values == {("x", "y"): 4, ("x", "z"): Decimal("2.5"), ("y", "z"): Decimal("2.5")}
    assert len(small.pairs(sources=["x", "y"], sinks=["z"], progress=True)) == 2
    wrong, right = small.pairs(["x", "y"], ["w", "z"], fields=["cut"])
    assert isinstance(wrong.error, UnknownVertex)
    assert right.cut is not None
    assert right.certificate is not None
    assert (set(right.cut.edges), right.certificate.valid) == ({"q", "r"}, True)
    tree = small.gomory_hu_tree()
    assert (sorted(tree.value), len(tree), tree.proven) == ([Decimal("2.5"), 4], 2, True)
    assert tree.min_cut_value("x", "z") == tree.min_cut_value("z", "y") == Decimal("2.5")
    with pytest.raises(KeyError):
        tree.min_cut_value("x", "w")
    assert small.gomory_hu_tree(["x", "z"], groups=True).groups == {"y": "x"}
    cut = small.global_min_cut()
    assert (cut.value, list(cut.edges or ()), cut.pays) == (Decimal("2.5"), ["q", "r"], (Decimal("1.5"), 1))
    assert (list(cut.source_side or ()), sorted(cut.sink_side or ())) == (["z"], ["x", "y"])
    assert small.global_min_cut(fields=["value"]).edges is None
    with pytest.raises(headrace.NotUndirected):
        sdk.put_graph("one-way", tail=[0], head=[1], capacity=[4]).gomory_hu_tree()


def test_pairs_awaited(service_url: str) -> None:
    async def ask() -> list[Any]:
        async with AsyncClient(service_url) as client:
            graph = await client.put_graph("awaited", tail=[0, 1], head=[1, 2], capacity=[4, 2], undirected=True)
            pairs, tree, cut = await graph.pairs([0], [2]), await graph.gomory_hu_tree(), await graph.global_min_cut()
            return [pairs[0].value, sorted(tree.value), cut.value]

    assert asyncio.run(ask()) == [2, [2, 4], 2]


LIMITED: dict[str, Any] = {
    "tail": ["s", "s", "u", "u", "v"],
    "head": ["u", "v", "v", "t", "t"],
    "capacity": [4, 3, 2, 2, 4],
    "edge_ids": ["a", "b", "c", "d", "e"],
}


def test_what_limits_a_flow(sdk: Client) -> None:
    city = sdk.put_graph("limited", **LIMITED)
    found = city.bottlenecks("s", "t", up_to=5)
    assert (list(found.edges), list(found.in_every), list(found.gain)) == (["d", "e"], [True, True], [1, 1])
    assert found.up_to is not None
    assert list(found.up_to) == [1, 1]
    capped = city.max_flow(supply={"s": 1.5 * 2}, sink="t", fields=["bottlenecks"], up_to=1).bottlenecks
    assert capped is not None
    assert capped.source_up_to is not None
    assert (list(capped.sources), list(capped.source_up_to), len(capped.edges)) == (["s"], [3], 0)
    endless = sdk.put_graph("endless", tail=[0, 1], head=[1, 2], capacity=[3, math.inf])
    unlimited = endless.bottlenecks(0, 2, up_to=1)
    assert unlimited.up_to is not None
    assert list(unlimited.up_to) == [math.inf]
    assert city.bottlenecks("s", "t").up_to is None
    (row,) = city.what_if([Scenario(close=["e"])], "s", "t", fields=["bottlenecks"])
    assert row.bottlenecks is not None
    assert list(row.bottlenecks.edges) == ["d"]


def test_a_curve(sdk: Client) -> None:
    city = sdk.put_graph("curve", **LIMITED)
    found = city.parametric("s", "t", edges=["d", "e"], to=2)
    assert [(one.start, one.to, one.constant, one.rate) for one in found.segments] == [
        (0, Fraction(7, 6), 0, 6),
        (Fraction(7, 6), 2, 7, 0),
    ]
    assert (found.value, found.complete, found.valid, found.version) == (6, True, True, 1)
    assert (found.at(1), found.at(Fraction(7, 6)), found.at("1/4"), found.at(2)) == (6, 7, Fraction(3, 2), 7)
    with pytest.raises(InvalidInput):
        found.at(2.5)
    job = city.parametric("s", "t", wait=False, edges=["d"], start=Decimal("0.5"), to=1.5, max_segments=3)
    assert job.wait().segments[0].start == Fraction(1, 2)
    scaled = city.parametric(sink="t", supply={"s": 3}, scale="supply", to=3, progress=True)
    assert [one.to for one in scaled.segments] == [2, 3]
    with pytest.raises(InvalidBody):
        city.parametric("s", "t", edges=["d"])
    with pytest.raises(CapacityOverflow):
        city.parametric("s", "t", edges=["d"], to=Fraction(10**30, 10**30 - 1))


def test_what_to_widen(sdk: Client) -> None:
    city = sdk.put_graph("widened", **LIMITED)
    found = city.capacity_expansion(2, "s", "t", edges=["a", "b", "d", "e"], price=[1, 1, 5, 3])
    assert (found.value, found.maximum, found.price, found.certificate.dual_bound) == (8, 6, 7, 7)
    assert (list(found.edges), list(found.add)) == (["b", "e"], [1, 2])
    done = city.patch(edges=list(found.edges), add=list(found.add))
    assert done.flow_states[0].value == 8
    job = city.capacity_expansion(1, "s", "t", wait=False, edges=["a", "d"], price=0.5, max_add=[3, 4])
    assert job.wait().price == 1
    with pytest.raises(Infeasible):
        city.capacity_expansion(1, "s", "t", edges=["c"], price=1)
    with pytest.raises(TypeError, match="needs price="):
        city.capacity_expansion(1, "s", "t", edges=["c"])


def test_what_must_flow(sdk: Client) -> None:
    city = sdk.put_graph("bounded", **LIMITED)
    found = city.circulation("s", "t", min_demand=[7])
    assert not found.feasible
    assert found.proof is not None
    assert (found.proof.way, found.proof.must, found.proof.can) == ("enter", 7, 6)
    assert (list(found.proof.vertices), list(found.proof.edges)) == (["t"], ["d", "e"])
    assert list(found.proof.capacity) == [2, 4]
    found = city.circulation(min_supply={"s": 2}, demand={"t": 4}, lower={"b": 1, "c": 1}, fields="flow", zeros=True)
    assert found.feasible
    assert found.valid
    assert found.proof is None
    assert found.flow is not None
    flow = dict(zip(found.flow.edges, found.flow.amount, strict=True))
    assert len(flow) == 5
    assert min(flow["b"], flow["c"]) >= 1
    assert 2 <= found.terminals.delivered[0] <= 4  # type: ignore[union-attr]
    assert not city.circulation([], [], edges=["a"], lower=1).feasible
    job = city.circulation("s", ["t"], wait=False, edges=["a", "b"], lower=[4, 3])
    assert not job.wait().feasible
    assert city.circulation("s", "t", min_demand=6.5, rounding="down").feasible
    with pytest.raises(InvalidInput, match="names its edges"):
        city.circulation("s", "t", edges=["a"], lower={"a": 1})
    with pytest.raises(InvalidInput, match="goes with edges="):
        city.circulation("s", "t", lower=[1])
    with pytest.raises(InvalidInput, match="min_demand names 'u'"):
        city.circulation("s", "t", min_demand={"u": 1})
    ring = sdk.put_graph("round", tail=[0], head=[1], capacity=[1], undirected=True)
    with pytest.raises(headrace.NotDirected) as refusal:
        ring.circulation(lower={0: 1})
    assert list(refusal.value.edges) == [0]


def test_limits_awaited(service_url: str) -> None:
    async def ask() -> list[Any]:
        async with AsyncClient(service_url) as client:
            city = await client.put_graph("limits-awaited", **LIMITED)
            limits = await city.bottlenecks("s", "t")
            curve = await city.parametric("s", "t", edges=["d", "e"], to=2)
            job = await city.parametric("s", "t", wait=False, edges=["d", "e"], to=2)
            wider = await city.capacity_expansion(2, "s", "t", edges=["b", "e"], price=[1, 3])
            later = await city.capacity_expansion(2, "s", "t", wait=False, edges=["b", "e"], price=[1, 3])
            again, same = await job.wait(), await later.wait()
            barred = await city.circulation("s", "t", min_demand=[7])
            bounded = await city.circulation("s", "t", wait=False, min_demand=[6])
            assert (barred.feasible, (await bounded.wait()).feasible) == (False, True)
            return [list(limits.edges), curve.segments, again.segments, wider.price, same.price]

    edges, segments, again, price, same = asyncio.run(ask())
    assert (edges, segments, price) == (["d", "e"], again, same)


def test_dry_run(sdk: Client) -> None:
    city = sdk.put_graph("dry", tail=[0], head=[1], capacity=[4])
    city.max_flow(0, 1)
    said = city.patch(edges=[0], set=[9], dry_run=True)
    assert (said.version, said.dry_run, said.applied, said.flow_states[0].value) == (1, True, 1, 9)
    assert city.close([0], dry_run=True).flow_states[0].value == 0
    done = city.patch(edges=[0], set=[9], dry_run=False)
    assert (done.version, done.dry_run) == (2, False)


def test_what_if_awaited(service_url: str) -> None:
    async def ask() -> list[Any]:
        async with AsyncClient(service_url) as client:
            city = await client.put_graph("awaited", tail=[0, 0], head=[1, 1], capacity=[4, 2])
            dry = await city.patch(edges=[0], set=[9], dry_run=True)
            found = await city.what_if([Scenario(close=[row]) for row in (0, 1)], 0, 1)
            study = await city.closure_study(0, 1, candidates="cut", top=1)
            return [dry.dry_run, *(row.value for row in found), study[0].loss]

    assert asyncio.run(ask()) == [True, 2, 4, 4]
