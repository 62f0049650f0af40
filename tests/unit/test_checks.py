"""The certificate refuses an answer that breaks one condition and no other. No engine has a hand in these answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from gpu_engine.checks import certificate as certificates
from gpu_engine.checks.certificate import Certificate, certify, own_supply, verdict
from gpu_engine.checks.flows import prove_flow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL, BoolArray, UnitArray
from tests.graphs import drawn

CAPACITY = (3, 2, 4)
ENDS = Terminals.of([0], [3])


def path(*, shared: bool = False, undirected: bool = False) -> Network:
    """The source is 0, the sink 3; the cut is between 1 and 2. ``shared``: an edge of no capacity goes from 1 to 0.

    0 --3--> 1 --2--> 2 --4--> 3
    """
    tail, head, capacity = [0, 1, 2], [1, 2, 3], [*CAPACITY]
    if shared:
        tail, head, capacity = [*tail, 1], [*head, 0], [*capacity, 0]
    ends = np.array(tail, np.int32), np.array(head, np.int32)
    network = Network(EdgeList(4, *ends, np.array(capacity), undirected))
    assert network.has_shared_links == shared
    return network


@dataclass
class Claim:
    """What an engine would say of the path: arrays as `certify` takes them."""

    network: Network
    terminals: Terminals
    residual: UnitArray
    excess: UnitArray
    source_side: BoolArray

    @classmethod
    def of(
        cls,
        flow: Sequence[int],
        source_side: Sequence[int] = (0, 1),
        terminals: Terminals = ENDS,
        *,
        shared: bool = False,
        undirected: bool = False,
    ) -> "Claim":
        network = path(shared=shared, undirected=undirected)
        arcs = network.edge_arc[:3]
        residual = network.arc_capacity().astype(np.int64)
        residual[arcs] -= flow
        residual[network.reverse_arc[arcs]] += flow
        side = np.zeros(4, np.bool_)
        side[list(source_side)] = True
        claim = cls(network, terminals, residual, np.zeros(4, np.int64), side)
        claim.balance()
        return claim

    def balance(self) -> None:
        """Make the excesses those of the residuals."""
        self.excess = own_supply(4, self.terminals)
        flow = self.network.arc_capacity() - self.residual
        for v in range(4):
            self.excess[v] -= flow[self.network.row_offsets[v] : self.network.row_offsets[v + 1]].sum()

    def certificate(self, claimed: UnitArray | None = None) -> Certificate:
        return certify(self.network, self.terminals, self.residual, self.excess, self.source_side, claimed)


def test_a_maximum_flow_and_its_cut_are_proven() -> None:
    assert Claim.of([2, 2, 2]).certificate() == Certificate(True, 2, 2)
    held = Claim.of([3, 2, 1])  # one unit stays behind in S, and T lacks one
    held.excess[3] += 0
    assert held.excess.tolist() == [-3, 1, 1, 1]
    assert not held.certificate().valid
    assert Claim.of([3, 2, 3]).excess.tolist() == [-3, 1, -1, 3]
    assert Claim.of([3, 2, 3]).certificate() == Certificate(True, 2, 2)


def too_much(claim: Claim) -> None:
    arc = claim.network.edge_arc[0]
    claim.residual[arc] -= 2
    claim.residual[claim.network.reverse_arc[arc]] += 2
    claim.balance()


def no_sum(claim: Claim) -> None:
    claim.residual[claim.network.reverse_arc[claim.network.edge_arc[0]]] += 1
    claim.balance()


def nothing_against(claim: Claim) -> None:
    """What flows back along a link is cancelled by nothing."""
    claim.residual[claim.network.edge_arc[0]] += 2
    claim.balance()


def out_of_nothing(claim: Claim) -> None:
    claim.excess[1] += 1


def into_nothing(claim: Claim) -> None:
    claim.excess[2] -= 1


def source_of_too_little(claim: Claim) -> None:
    claim.excess[0] += 1


def sink_of_too_much(claim: Claim) -> None:
    claim.excess[3] += 1


def nothing(claim: Claim) -> None:
    """The flow itself is at fault."""


@pytest.mark.parametrize("few", [0, 8])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("flow", "source_side", "spoil", "failure"),
    [
        ((2, 2, 2), (0, 1), too_much, "a residual is negative or"),
        ((2, 2, 2), (0, 1), no_sum, "a residual is negative or"),
        ((2, 2, 2), (0, 1), nothing_against, "a residual is negative or"),
        ((2, 2, 2), (0, 1), out_of_nothing, "the excess does not match the flow: vertex 1"),
        ((2, 2, 2), (0, 1), into_nothing, "the excess does not match the flow: vertex 2"),
        ((2, 2, 2), (0, 1), source_of_too_little, "the excess does not match the flow: vertex 0"),
        ((2, 2, 2), (0, 1), sink_of_too_much, "the excess does not match the flow: vertex 3"),
        ((2, 2, 2), (), nothing, "a free terminal vertex lies on the wrong side of the cut: vertex 0"),
        ((2, 2, 2), (0, 1, 2, 3), nothing, "a free terminal vertex lies on the wrong side of the cut: vertex 3"),
        ((1, 1, 1), (0, 1), nothing, "an arc from the source side to the sink side is not saturated"),
        ((1, 2, 2), (0, 1), nothing, "the source side lacks flow or the sink side holds some back: vertex 1"),
        ((2, 2, 1), (0, 1), nothing, "the source side lacks flow or the sink side holds some back: vertex 2"),
    ],
)
def test_each_condition_alone(
    flow: Sequence[int],
    source_side: Sequence[int],
    spoil: Callable[[Claim], None],
    failure: str,
    shared: bool,
    few: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sink side looks for the cut if no side is too large for it (``few`` is 0), else the source side does."""
    monkeypatch.setattr(certificates, "FEW", few)
    claim = Claim.of(flow, source_side, shared=shared)
    spoil(claim)
    certificate = claim.certificate()
    assert claim.certificate(claim.network.arc_capacity()) == certificate
    assert not certificate.valid
    assert len(certificate.failures) == 1, certificate.failures
    assert certificate.failures[0].startswith(failure)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
def test_what_an_engine_says_of_capacities_is_not_believed(shared: bool, undirected: bool) -> None:
    """The residuals are those of a flow through arcs of which one is as large as is said, and not as large as it is."""
    right = Claim.of([2, 2, 2], shared=shared, undirected=undirected)
    assert right.certificate(right.network.arc_capacity()) == Certificate(True, 2, 2)
    for arc in range(right.network.n_arcs):
        claim = Claim.of([2, 2, 2], shared=shared, undirected=undirected)
        claimed = claim.network.arc_capacity()
        claimed[arc] += 1
        claim.residual[arc] += 1
        assert claim.certificate(claimed) == claim.certificate()
        assert any("do not add up" in failure for failure in claim.certificate(claimed).failures)


def test_parallel_edges_are_added_up_whatever_an_engine_says() -> None:
    """Both edges from 0 to 1 have as much as is said of the arc that they share, and so many arcs have a capacity."""
    network = Network(EdgeList(2, np.zeros(2, np.int32), np.ones(2, np.int32), np.array([3, 3])))
    claimed, ends = np.array([3, 1]), Terminals.of([0], [1])
    flow, side = np.array([-3, 3]), np.array([True, False])
    assert not certify(network, ends, np.array([0, 4]), flow, side, claimed).valid
    assert certify(network, ends, np.array([0, 6]), 2 * flow, side, claimed) == Certificate(True, 6, 6)


def test_an_infinite_edge_takes_in_those_beside_it_whatever_an_engine_says() -> None:
    """0 and 1 have an infinite edge and one of 3 units, which adds nothing. An edge of 2 leads from 1 to 2."""
    tail, head = np.array([0, 0, 1], np.int32), np.array([1, 1, 2], np.int32)
    network = Network(EdgeList(3, tail, head, np.array([INFINITE, 3, 2])))
    capacity = network.arc_capacity()
    claimed, residual, arcs = capacity.copy(), capacity.copy(), network.edge_arc[[0, 2]]
    claimed[arcs[0]] += 3
    residual[arcs] -= 2
    residual[network.reverse_arc[arcs]] += 2
    columns = residual, np.array([-2, 0, 2]), np.array([True, True, False])
    assert certify(network, Terminals.of([0], [2]), *columns, claimed) == Certificate(True, 2, 2)
    residual[arcs[0]] += 3
    assert not certify(network, Terminals.of([0], [2]), *columns, claimed).valid


@pytest.mark.parametrize("said", [False, True])
def test_an_edge_without_limit_is_never_full(said: bool) -> None:
    claim = Claim.of([2, 2, 2])
    claim.network.set_capacity(np.array([0]), np.array([INFINITE]))
    claimed = claim.network.arc_capacity() if said else None
    claim.residual[claim.network.edge_arc[0]] = INFINITE_RESIDUAL - 2
    claim.source_side[1] = False
    assert any("not saturated" in failure for failure in claim.certificate(claimed).failures)
    claim.source_side[1] = True
    assert claim.certificate(claimed) == Certificate(True, 2, 2)


def test_caps_are_part_of_the_cut() -> None:
    """The source is used up before the path is, or the sink is full: the cut has no arc of the network."""
    supplied = Claim.of([1, 1, 1], (), Terminals.of([0], [3], supply=[1]))
    assert supplied.certificate() == Certificate(True, 1, 1)
    demanded = Claim.of([1, 1, 1], (0, 1, 2, 3), Terminals.of([0], [3], demand=[1]))
    assert demanded.certificate() == Certificate(True, 1, 1)


@pytest.mark.parametrize(("across", "valid"), [(4, False), (5, True), (6, False)])
def test_the_flow_over_the_cut_is_compared_with_its_capacity(across: int, valid: bool) -> None:
    """Whatever the scan of arcs has said, which on a device is another's."""
    sides = np.array([True]), np.array([False])
    assert verdict(ENDS, *sides, across, 5, [-1] * 5) == Certificate(valid, 5, across)


@pytest.mark.parametrize(
    ("flow", "wrong"),
    [
        ([2, 2, 2], []),
        ([3, 3, 3], ["flow outside its bounds on edge 1"]),
        ([-1, -1, -1], ["flow outside its bounds on edge 0", "flow is not conserved at vertex 0: net 1"]),
        ([2, 1, 1], ["flow is not conserved at vertex 1: net 1"]),
        ([1, 2, 2], ["flow is not conserved at vertex 1: net -1"]),
    ],
)
def test_what_is_wrong_with_a_flow_by_edge(flow: list[int], wrong: list[str]) -> None:
    found = prove_flow(path(), ENDS, np.array(flow))
    assert list(found.failures) == wrong


def test_undirected_edges_carry_flow_both_ways_within_their_capacity() -> None:
    network = Network(drawn(3, [(1, 0, 2), (1, 2, 2), (1, 1, 5)], [True, False, False]))
    terminals = Terminals.of([0], [2])
    assert prove_flow(network, terminals, np.array([-2, 2, 0])).failures == ()
    assert prove_flow(network, terminals, np.array([-3, 3, 0])).failures[0] == "flow outside its bounds on edge 0"
    assert prove_flow(network, terminals, np.array([0, -1, 0])).failures[0] == "flow outside its bounds on edge 1"


def test_what_each_terminal_gives_and_gets() -> None:
    r"""0 and 1 are sources, 3 and 4 sinks; 1 passes on what comes from 0, and 3 passes 2 on to 4.

    0 --2--> 1 --5--> 3 --2--> 4
    """
    network = Network(drawn(5, [(0, 1, 2), (1, 3, 5), (3, 4, 2)]))
    found = prove_flow(network, Terminals.of([0, 1], [3, 4], demand=[3, 2]), np.array([2, 5, 2]))
    assert (found.failures, found.value) == ((), 5)
    assert found.supplied.tolist() == [2, 3]
    assert found.delivered.tolist() == [3, 2]
    turned = prove_flow(network, Terminals.of([3, 4], [0, 1]), np.array([2, 5, 2]))
    assert turned.failures == ("flow is not conserved at vertex 0: net -2",)


def test_caps_bound_a_flow_by_edge() -> None:
    capped = Terminals.of([0], [3], supply=[1], demand=[1])
    assert prove_flow(path(), capped, np.array([1, 1, 1])).failures == ()
    assert prove_flow(path(), capped, np.array([2, 2, 2])).failures == ("flow is not conserved at vertex 0: net -2",)


@pytest.mark.parametrize("opposite", [0, 1])
def test_flow_that_leads_round_is_told_where_it_is_to_be_acyclic(opposite: int) -> None:
    """
    ::

        0 --3--> 1 --2--> 2 --4--> 3      and 2 --1--> 1
    """
    network = Network(drawn(4, [(0, 1, 3), (1, 2, 2), (2, 3, 4), (2, 1, 1)]))
    flow = np.array([1, 1 + opposite, 1, opposite])
    wrong = ("flow leads round in a cycle",) if opposite else ()
    assert prove_flow(network, ENDS, flow, acyclic=True).failures == wrong
    assert prove_flow(network, ENDS, flow).failures == ()
