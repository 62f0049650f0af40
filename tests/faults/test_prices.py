"""The checker's part in costs: a clean history of them passes, and each kind of harm to them is seen."""

import copy
import json
import random
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import zstandard

from tests.faults.cheapest import cheapest_faults
from tests.faults.entries import Commit, read_entry
from tests.faults.history import LOAD_UNIT, Edges, Look, Op, Shape
from tests.faults.model import State
from tests.faults.questions import KINDS, draw_shapes, fitting, random_edges
from tests.faults.stories import RESTORED, Later, change, page, see
from tests.faults.structure import Values, reprice

COST = [0, 1, 4, -2, 3]
"""As loaded. The mark is the cost of edge 1, and the batch of costs (7) sets it."""


class Priced(Later):
    """As `Later`, and the edges have costs: those of two change (7), and version 2 comes back with its own (8).

    The other edges lead from 0 to 1, from 2 to 1 and from 2 to 3, which is the sink: nothing but the marks can flow.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        for edges in (self.load.edges, self.put.edges, self.copied.edges):
            assert edges is not None
            edges.cost = list(COST)
        self.export.body["cost"] = list(COST)
        self.page.body["cost"] = list(COST)
        batch: list[dict[str, Any]] = [{"edges": [1], "set": [7]}, {"edges": [3, 2], "add": [5, 0]}]
        batch.append({"edges": [3], "scale": [2]})
        self.costs = self._op("costs", {"version": 5, "flow_states": []}, number=7, batch=batch, key="key-7")
        self.load.commits.append(Commit(5, "key-7", [], [], [], "job-7", order=6, cost_rows=[1, 3], costs=[7, 6]))
        self.later = self._op("capacities", page(self.load.edges, 5))
        self.later.body |= {"capacity": [LOAD_UNIT, 20000, 4, 5, 5], "cost": [0, 7, 4, 6, 3]}
        self.cheapest = self._op("min-cost-flow", self.answer_of(LOAD_UNIT + 20000, 7))
        self.some = self._op("min-cost-flow", self.answer_of(LOAD_UNIT + 1, 7, value=True), value=LOAD_UNIT + 1)
        self.back = self._op("restore", RESTORED | {"version": 6}, number=8, key="key-8", target=2, request="r8")
        self.load.commits.append(Commit(6, "key-8", [], [], [], "job-8", order=7, cost_rows=[1, 3], costs=[1, -2]))
        self.committed.requests["job-8"] = "r8"
        self.costs.again = [Look(200, copy.deepcopy(self.costs.body), self.costs.answered_at)]

    def answer_of(self, units: int, price: int, *, value: bool = False) -> dict[str, Any]:
        """Edge 0 is filled first, as it costs nothing, and what is over goes by edge 1."""
        rest, beyond = units - LOAD_UNIT, price
        paths = {"amount": [LOAD_UNIT, rest], "offsets": [0, 1, 2], "edges": [0, 1], "of": 2, "rest": 0}
        return {
            "version": 5,
            "value": units,
            "maximum": LOAD_UNIT + 20000,
            "cost": rest * price,
            "flow": {"edges": [0, 1], "amount": [LOAD_UNIT, rest]},
            "dual": {"vertices": [0, 1, 2, 3], "potential": [0, 4, beyond - 3, beyond], "beyond": beyond},
            "paths": paths,
            "cycles": {"edges": [], "amount": []},
            "certificate": {"valid": True},
        }

    def shift(self, units: int) -> None:
        """Another flow of the value, that costs more."""
        flow = [LOAD_UNIT - units, 20000 + units]
        self.cheapest.body["flow"]["amount"] = flow
        self.cheapest.body["paths"]["amount"] = flow
        self.cheapest.body["cost"] = flow[1] * 7


def set_cost(edges: Edges | None, row: int, cost: int) -> None:
    assert edges is not None
    assert edges.cost is not None
    edges.cost[row] = cost


HARMS: dict[str, tuple[Callable[[Priced], object], str | None]] = {
    "clean": (lambda story: None, None),
    "a load has other costs": (lambda story: set_cost(story.load.edges, 3, 0), "wrong: load 1 of g is not"),
    "a load has no costs": (lambda story: change(story.load.edges, cost=None), "wrong: load 1 of g is not"),
    "a batch of costs is lost": (
        lambda story: (story.load.commits.pop(), story.load.commits.pop()),
        "lost: costs 7",
    ),
    "a batch of costs is half done": (
        lambda story: change(story.load.commits[3], cost_rows=[1], costs=[7]),
        "wrong: version 5 of load 1 is not what was asked for",
    ),
    "a batch of costs has another cost": (
        lambda story: change(story.load.commits[3], costs=[7, 5]),
        "wrong: version 5 of load 1 is not what was asked for",
    ),
    "a batch of costs changes a capacity": (
        lambda story: change(story.load.commits[3], rows=[3], own=[9], closed=[False]),
        "wrong: ",
    ),
    "a batch of costs has another key": (lambda story: change(story.load.commits[3], key="k"), "wrong: batch 7"),
    "a batch of costs solves flows": (
        lambda story: story.costs.body.update(flow_states=[{"kind": "flow", "value": 1}]),
        "wrong: costs 7",
    ),
    "a restore leaves the costs": (
        lambda story: change(story.load.commits[4], cost_rows=[], costs=[]),
        "wrong: version 6",
    ),
    "a restore counts wrongly": (lambda story: story.back.body.update(applied=1), "wrong: restore 8"),
    "a copy has other costs": (lambda story: set_cost(story.copied.edges, 4, 1), "wrong: copy 6"),
    "a file has other costs": (lambda story: story.export.body["cost"].__setitem__(4, 1), "wrong: export"),
    "a file has no costs": (lambda story: story.export.body.pop("cost"), "wrong: export"),
    "a page has old costs": (lambda story: story.later.body.update(cost=list(COST)), "wrong: capacities"),
    "a page has another cost": (lambda story: story.later.body["cost"].__setitem__(4, 1), "wrong: capacities"),
    "a page has no costs": (lambda story: story.later.body.pop("cost"), "wrong: capacities"),
    "a flow is by the costs before": (
        lambda story: change(story.cheapest, body=story.answer_of(LOAD_UNIT + 20000, 1)),
        "wrong: min-cost-flow",
    ),
    "a flow is of another version": (lambda story: story.cheapest.body.update(version=4), "wrong: min-cost-flow"),
    "a flow is older than it may be": (lambda story: change(story.cheapest, min_version=6), "wrong: min-cost-flow"),
    "a flow is of another value": (lambda story: change(story.some, value=LOAD_UNIT), "wrong: min-cost-flow"),
    "a maximum is another": (lambda story: story.some.body.update(maximum=LOAD_UNIT), "wrong: min-cost-flow"),
    "a flow costs more than it is said to": (lambda story: story.some.body.update(cost=6), "wrong: min-cost-flow"),
    "a batch of costs repeated is another": (lambda story: story.costs.again[0].body.update(version=6), "wrong: "),
}


@pytest.mark.parametrize(("harm", "kind"), HARMS.values(), ids=HARMS.keys())
def test_harm_to_costs_is_seen(harm: Callable[[Priced], object], kind: str | None) -> None:
    see(Priced(), harm, kind)


def one_more(body: dict[str, Any]) -> None:
    body["flow"]["amount"][0] += 1


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a flow beyond a capacity": (one_more, "an edge carries more than it can"),
    "a flow that stays on the way": (
        lambda body: body.update(flow={"edges": [0, 1, 2], "amount": [LOAD_UNIT, 20000, 1]}),
        "it is no flow of",
    ),
    "potentials that prove less": (lambda body: body["dual"].update(beyond=6), "each costs"),
    "a gain before the source": (lambda body: body["dual"]["potential"].__setitem__(0, 1), "each costs None"),
    "a gain beyond the sink": (lambda body: body["dual"].update(beyond=8), "each costs None"),
    "a certificate that is not valid": (lambda body: body["certificate"].update(valid=False), "the proof"),
    "a path astray": (lambda body: body["paths"].update(edges=[0, 2]), "path 1 leads astray"),
    "a path that carries more": (lambda body: body["paths"].update(amount=[LOAD_UNIT + 1, 20000]), "the paths"),
    "a path that is not listed": (
        lambda body: body["paths"].update(amount=[LOAD_UNIT], offsets=[0, 1], edges=[0], of=1, rest=20000),
        "the paths and the cycles are not the flow",
    ),
    "a rest that is not left": (lambda body: body["paths"].update(rest=1), "the paths do not carry"),
    "a cycle that is none": (
        lambda body: body.update(cycles={"edges": [1], "amount": [1]}),
        "the paths and the cycles",
    ),
}


@pytest.mark.parametrize(("harm", "told"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_cheapest_flow(harm: Callable[[dict[str, Any]], object], told: str) -> None:
    story = Priced()
    harm(story.cheapest.body)
    state = state_of(story)
    assert cheapest_faults(story.answer_of(LOAD_UNIT + 20000, 7), None, state) == []
    faults = cheapest_faults(story.cheapest.body, None, state)
    assert any(text.startswith(told) or told in text for text in faults), faults


def test_another_flow_of_the_value_costs_more() -> None:
    """The proof is that of the cheapest one, and does not hold for it."""
    story = Priced()
    state = state_of(story, capacity_of_1=10**6)
    story.shift(1)
    story.cheapest.body.update(maximum=state.value)
    faults = cheapest_faults(story.cheapest.body, LOAD_UNIT + 20000, state)
    assert faults == [f"the flow costs {7 * 20001}, each costs {7 * 20000} at least"]


def state_of(story: Priced, capacity_of_1: int = 20000) -> State:
    edges = story.load.edges
    assert edges is not None
    now = replace(edges, capacity=[LOAD_UNIT, capacity_of_1, 4, 5, 5], cost=[0, 7, 4, 6, 3])
    return State(0, 5, Values.of(now), story.put)


def test_a_graph_without_costs_has_no_cheapest_flow() -> None:
    edges = Edges(2, [0], [1], [5])
    plain = State(0, 1, Values.of(edges), Op(0, "put", "g", 0.0))
    assert cheapest_faults({}, None, plain) == ["the graph has no costs"]
    assert reprice(plain.values, [{"edges": [0], "set": [7]}]) == plain.values


def test_an_answer_about_another_load_has_other_edges() -> None:
    """Two loads may have had its version, one of fewer edges."""
    edges = Edges(2, [0, 0], [1, 1], [3 * LOAD_UNIT, 0], cost=[0, 1])
    other = State(1, 5, Values.of(edges), Priced().put)
    answer = Priced().answer_of(LOAD_UNIT + 20000, 7)
    answer["flow"] = {"edges": [0, 1, 9], "amount": [LOAD_UNIT, 20000, 0]}
    assert cheapest_faults(answer, None, other) == [f"the maximum is {3 * LOAD_UNIT}"]


def test_costs_in_the_log_are_read() -> None:
    def packed(row: str, *columns: list[int]) -> bytes:
        numbers = [number for column in columns for number in column]
        return zstandard.ZstdCompressor().compress(
            struct.pack("<" + "".join(f"{len(columns[0])}{kind}" for kind in row), *numbers)
        )

    def entry(applied: int, costs: bytes) -> list[bytes]:
        said = json.dumps({"key": "k", "applied": applied}).encode()
        change = packed("qq?", [1, 2], [30, 40], [1, 0])
        return [b"XADD", b"log", b"5-0", b"applied", said, b"change", change, b"costs", costs]

    costs = packed("qq", [2, 3], [-7, 8])
    assert read_entry(entry(3, costs)) == Commit(
        5, "k", [1, 2], [30, 40], [True, False], cost_rows=[2, 3], costs=[-7, 8]
    )
    with pytest.raises(ValueError, match="are not the 4 rows"):
        read_entry(entry(4, costs))
    with pytest.raises(ValueError, match="no whole number of rows"):
        read_entry(entry(3, zstandard.ZstdCompressor().compress(b"123")))


def test_who_is_asked_what() -> None:
    plain, priced = Shape(), Shape(is_priced=True)
    large = Shape(n_edges=100, is_priced=True)
    assert (fitting("costs if-match", plain), fitting("costs if-match", priced)) == ("patch if-match", "costs if-match")
    assert fitting("min-cost-flow job", plain) == fitting("min-cost-flow job", large) == "max-flow job"
    assert fitting("min-cost-flow limited", large) == "min-cost-flow limited"
    assert fitting("matching keyed", priced) == "max-flow keyed"
    assert all(fitting(kind, shape) in KINDS for kind in KINDS for shape in (plain, priced, large))


def test_most_graphs_have_costs_and_some_have_none() -> None:
    shapes = [shape for seed in range(100) for shape in draw_shapes(random.Random(seed), seed)]
    assert 20 < sum(not shape.is_priced for shape in shapes) < 80
    assert sum(shape.is_large for shape in shapes) == 10
    edges = [random_edges(random.Random(1), 3, shape) for shape in shapes[:8]]
    assert [drawn.cost is None for drawn in edges] == [not shape.is_priced for shape in shapes[:8]]
