"""That the checker knows capacities of vertices and lower bounds: what is wrong with either is seen."""

import json
import random
import struct
from typing import Any

import pytest
import zstandard

from tests.faults.answers import answer_faults
from tests.faults.circulations import circulation_faults
from tests.faults.entries import Commit, read_entry
from tests.faults.history import Edges, Op, Shape
from tests.faults.limits import UNLIMITED, changed, limited, random_limits
from tests.faults.model import State
from tests.faults.questions import fitting
from tests.faults.structure import Values, back_to, expected, limit, n_applied

EDGES = Edges(5, [0, 0, 0, 1, 2, 1], [4, 4, 1, 2, 4, 4], [1000, 0, 30, 20, 25, 5])
"""s=0 to 1 30, 1 to 2 20, 2 to t=4 25, 1 to t 5, and 1000 from s to t: 1025 in all."""


def state(limits: dict[int, int]) -> State:
    put = Op(0, "put", "g", 0.0)
    return State(0, 1, Values.of(EDGES)._replace(limits=limits), put)


@pytest.mark.parametrize(
    ("limits", "value"), [({}, 1025), ({1: 9}, 1009), ({2: 7, 3: 0}, 1012), ({1: UNLIMITED, 2: 0}, 1005)]
)
def test_the_model_knows_limits(limits: dict[int, int], value: int) -> None:
    about = state(limits)
    assert about.value == value
    cut = [row for row in about.cut if row != 1]
    pays = int(about.effective[cut].sum())
    assert pays <= value
    assert pays == value or limits


def test_a_flow_that_passes_more_is_seen() -> None:
    about = state({1: 9})
    cut = {"edges": [0], "vertices": [1], "vertex_pays": [9]}
    right: dict[str, Any] = {"value": 1009, "cut": cut, "certificate": {"valid": True}}

    def faults(**changes: Any) -> list[str]:
        return answer_faults(Op(0, "max-flow", "g", 0.0, body=right | changes), about)

    assert faults() == []
    assert faults(value=1025)
    assert faults(cut=cut | {"vertex_pays": [8]})
    assert faults(cut={"edges": [0]})


def test_a_batch_and_what_the_log_says_of_it() -> None:
    batch = [{"vertices": [2, 1], "set": [7, "inf"]}, {"vertices": [3, 2], "add": [4, 1]}]
    before = Values.of(EDGES)
    after = limit(before, batch)
    assert (after.limits, limited(after.limits, [{"vertices": [2], "set": ["inf"]}])) == ({2: 8}, {2: UNLIMITED})
    right = expected(before, after, is_structural=False)
    assert (right.limits, n_applied(right)) == ({2: 8}, 1)
    back = back_to(after, before)
    assert (back.limits, changed(after.limits, back.limits)) == ({2: UNLIMITED}, {2: UNLIMITED})
    squeeze = zstandard.ZstdCompressor().compress
    said = json.dumps({"key": "k", "applied": 1}).encode()
    words = [b"XADD", b"log", b"5-0", b"applied", said, b"values", squeeze(b""), b"vertices"]
    assert read_entry([*words, squeeze(struct.pack("<qq", 2, 8))]) == Commit(5, "k", [], [], [], limits={2: 8})
    with pytest.raises(ValueError, match="are not the 1 rows"):
        read_entry([*words, squeeze(struct.pack("<qqqq", 1, 2, 8, 9))])


def test_batches_never_touch_the_ends() -> None:
    rng = random.Random(1)
    for shape, n in ((Shape(is_limited=True), 5), (Shape(n_edges=1000, is_limited=True), 200)):
        for _ in range(200):
            named = {vertex for operation in random_limits(rng, shape) for vertex in operation["vertices"]}
            assert named <= set(range(1, n - 1))


def test_who_is_asked_what() -> None:
    plain, limits = Shape(is_priced=True), Shape(is_limited=True, is_priced=True)
    asked = ("vertices job", "edges job", "circulation", "min-cost-flow keyed", "export dimacs", "costs")
    assert [fitting(kind, limits) for kind in asked] == [
        "vertices job",
        "edges job",
        "max-flow",
        "max-flow keyed",
        "export npz",
        "costs",
    ]
    assert [fitting(kind, plain) for kind in asked[:3]] == ["patch job", "edges job", "circulation"]


FLOW = {"edges": [2, 3, 4], "amount": [10, 10, 10]}


@pytest.mark.parametrize(
    ("lower", "body", "is_right"),
    [
        ([10, 10], {"feasible": True, "flow": FLOW}, True),
        ([10, 10], {"feasible": False}, False),
        ([11, 10], {"feasible": True, "flow": FLOW}, False),
        ([10, 10], {"feasible": True, "flow": FLOW | {"amount": [10, 10, 9]}}, False),
        ([10, 10], {"feasible": True, "flow": FLOW | {"amount": [26, 26, 26]}}, False),
        ([0, 21], {"feasible": False}, True),
        ([26, 0], {"feasible": False}, True),
        ([26, 0], {"feasible": True, "flow": {"edges": [2, 3, 4], "amount": [26, 26, 26]}}, False),
        ([10, 10], {"feasible": True, "flow": FLOW, "certificate": {"valid": False}}, False),
    ],
)
def test_circulations_are_checked(lower: list[int], body: dict[str, Any], is_right: bool) -> None:
    about = state({})
    told = {"certificate": {"valid": True}} | body
    assert (circulation_faults(told, lower, about) == []) is is_right
