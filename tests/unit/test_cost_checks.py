"""The proof of a cheapest flow: each of its conditions alone is enough to refuse one."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_engine.checks.costs import CostProof, prove_cheapest
from gpu_engine.control import Control
from gpu_engine.errors import Cancelled
from gpu_engine.mincost.potentials import potentials
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE

EDGES = EdgeList(
    n_vertices=4,
    tail=np.array([0, 0, 1, 1, 2], np.int32),
    head=np.array([1, 2, 2, 3, 3], np.int32),
    capacity=np.array([4, 3, 2, 2, 4]),
)
"""s=0 u=1 v=2 t=3, as docs/api.md has it: flow 6 costs 24."""
COST = np.array([1, 3, 1, 4, 1])
FLOW, POTENTIAL = np.array([4, 2, 2, 2, 4]), np.array([0, 1, 3, 5])


def prove(
    flow: object = FLOW,
    potential: object = POTENTIAL,
    beyond: int = 5,
    value: int = 6,
    edges: EdgeList = EDGES,
    ends: Terminals | None = None,
) -> CostProof:
    terminals = ends or Terminals.of([0], [3])
    return prove_cheapest(Network(edges), COST, terminals, np.array(flow), value, np.array(potential), beyond)


def test_a_cheapest_flow_is_proven() -> None:
    proof = prove()
    assert (proof.failures, proof.cost, proof.dual_bound, proof.terminals.value) == ((), 24, 24, 6)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"value": 5}, "6 units arrive, not 5"),
        ({"flow": [4, 2, 1, 2, 4]}, "not conserved"),
        ({"flow": [5, 1, 3, 2, 4]}, "bounds"),
        ({"potential": [0, 1, 4, 5]}, "by way of edge 1"),  # which could carry more, and gains
        ({"potential": [0, 1, 2, 5]}, "by way of edge 1"),  # which carries flow, and loses
        ({"flow": [2, 0, 0, 2, 0], "value": 2}, "by way of edge 2"),  # which is unused, and gains
        ({"potential": [1, 2, 4, 6], "beyond": 6}, "by way of the source 0"),
        ({"beyond": 6}, "by way of the sink 3"),
        ({"beyond": 4}, "by way of the sink 3"),
    ],
)
def test_each_condition_is_needed(wrong: dict[str, object], told: str) -> None:
    proof = prove(**wrong)  # type: ignore[arg-type]  # each as `prove` has it
    assert not proof.valid
    assert any(told in failure for failure in proof.failures), proof.failures


def test_an_unused_edge_that_would_pay() -> None:
    """Two ways from 0 to 1, of which the dear one is taken: the potentials fit all but the other one."""
    edges = EdgeList(2, np.array([0, 0], np.int32), np.array([1, 1], np.int32), np.array([3, 3]))
    proof = prove_cheapest(
        Network(edges), np.array([5, 2]), Terminals.of([0], [1]), np.array([3, 0]), 3, np.array([0, 5]), 5
    )
    assert proof.failures[0] == "the flow could be had for less by way of edge 1"
    assert proof.dual_bound < proof.cost


def test_capped_terminals_have_prices() -> None:
    """A supply that is used up may be worth something: the potential rises from before the source to it."""
    ends = Terminals.of([0], [3], [2], [9])
    proof = prove([2, 0, 2, 0, 2], [3, 4, 5, 6], 6, 2, ends=ends)
    assert (proof.failures, proof.cost, proof.dual_bound) == ((), 6, 6)
    assert not prove([2, 0, 2, 0, 2], [3, 4, 5, 6], 6, 2, ends=Terminals.of([0], [3], [3], [9])).valid


def test_undirected_edges_either_way() -> None:
    edges = EdgeList(2, np.array([1], np.int32), np.array([0], np.int32), np.array([3]), True)

    def proof(flow: int, potential: int) -> CostProof:
        columns = np.array([2]), Terminals.of([0], [1]), np.array([flow]), -flow, np.array([0, potential]), potential
        return prove_cheapest(Network(edges), *columns)

    assert (proof(-2, 2).failures, proof(-2, 2).cost) == ((), 4)
    assert not proof(-2, 3).valid
    assert not proof(-2, 1).valid
    assert proof(-3, 7).valid
    assert proof(0, 2).valid
    assert not proof(0, 3).valid
    assert not proof(0, -3).valid


def test_an_unlimited_edge_never_makes_up_for_a_gain() -> None:
    edges = replace(EDGES, capacity=np.array([INFINITE, 3, 2, 2, 4]))
    proof = prove(potential=[0, 2, 4, 6], beyond=6, edges=edges)
    assert not proof.valid
    assert proof.dual_bound < 0


def test_products_beyond_int64_are_exact() -> None:
    edges = EdgeList(2, np.array([0], np.int32), np.array([1], np.int32), np.array([1 << 59]))
    cost = np.array([1 << 57])
    proof = prove_cheapest(
        Network(edges), cost, Terminals.of([0], [1]), np.array([1 << 59]), 1 << 59, np.array([0, 1 << 57]), 1 << 57
    )
    assert (proof.failures, proof.cost, proof.dual_bound) == ((), 1 << 116, 1 << 116)


@pytest.mark.parametrize("seed", range(40))
def test_potentials(seed: int) -> None:
    """They leave no shortcut; where there are none, the cycle that says so is one, and costs less than nothing."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 30)), int(rng.integers(0, 120))
    tail, head = rng.integers(0, n, (2, m)).astype(np.int32)
    cost = rng.integers(-3 if seed % 2 else 0, 20, m)
    if seed % 4 == 1:  # no cycle, and many costs below zero
        tail, head = np.minimum(tail, head), np.maximum(tail, head)
        cost[tail == head] = 1
        cost -= 12 * (tail != head)
    found, cycle = potentials(n, tail, head, cost, Control())
    if len(cycle):
        steps = list(zip(cycle.tolist(), [*cycle[1:].tolist(), int(cycle[0])], strict=True))
        total = sum(int(cost[(tail == one) & (head == other)].min()) for one, other in steps)
        assert total < 0
    else:
        assert (found[tail] + cost >= found[head]).all()
        assert (found <= 0).all()


def test_potentials_are_cancelled() -> None:
    control = Control()
    control.cancel()
    n = 1 << 14
    chain = np.arange(n - 1, dtype=np.int32)
    with pytest.raises(Cancelled):
        potentials(n, chain, chain + 1, np.ones(n - 1, np.int64), control)
