"""Many pairs, cut trees and global cuts: equal to other solvers' answers, and to all cuts of small networks."""

from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest

from gpu_engine.checks.cut_trees import tree_failures
from gpu_engine.checks.global_cuts import clings
from gpu_engine.checks.pairs import WRONG, Witness, ledger, prove_pair
from gpu_engine.control import Control
from gpu_engine.cpu.reach import MARK
from gpu_engine.errors import Cancelled, InvalidTerminals, SourceIsSink, Unbounded, UnknownVertex
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.networks.terminals import Terminals
from gpu_engine.pairs.cut_tree import CutTree, TreeGrower
from gpu_engine.pairs.global_cut import begin, global_cut
from gpu_engine.pairs.joining import BROKEN, READY, join_some
from gpu_engine.pairs.reduced import reduced
from gpu_engine.pairs.solver import PairSolver
from gpu_engine.pairs.values import Whole
from gpu_engine.types import INFINITE, UnitArray
from tests.cases import cases
from tests.oracle import PLENTY, maximum_flow
from tests.random_networks import random_network

SEEDS_A_CASE = 50


def all_cuts(edges: EdgeList) -> tuple[np.ndarray, UnitArray]:
    """Each set of vertices but none and all, as a row of booleans, and what leaves it."""
    masks = np.arange(1, 2**edges.n_vertices - 1)
    inside = (masks[:, None] >> np.arange(edges.n_vertices) & 1).astype(np.bool_)
    amount = np.minimum(edges.capacity, PLENTY)
    leaves = inside[:, edges.tail] & ~inside[:, edges.head]
    enters = inside[:, edges.head] & ~inside[:, edges.tail] & np.broadcast_to(edges.undirected, edges.n_edges)
    return inside, (leaves | enters) @ amount


@pytest.mark.parametrize("first", range(0, cases(400), SEEDS_A_CASE))
def test_pairs_have_the_values_of_another_solver(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        edges, rng = random_network(seed), np.random.default_rng(seed)
        network = Network(edges)
        drawn = [rng.choice(edges.n_vertices, 2, replace=False) for _ in range(int(rng.integers(1, 9)))]
        sources, sinks = np.array(drawn, np.int32).T
        solver = PairSolver.of(network, np.unique(drawn))
        assert solver.is_proven, f"seed {seed}"
        seat = solver.seat()
        for _ in range(2):  # the first round leaves nothing behind
            values = seat.values(sources, sinks, Control())
            for source, sink, value in zip(sources, sinks, values, strict=True):
                other = maximum_flow(edges, edges.capacity, Terminals.of([source], [sink]))
                assert value == other or (value == INFINITE and other >= PLENTY), f"seed {seed} {source} {sink}"


def test_what_takes_too_long_is_solved_from_zero() -> None:
    edges = generate("genrmf-wide", seed=3, a=6)
    network = Network(edges)
    ends = np.array([[0, edges.n_vertices - 1], [5, 200], [200, 5]], np.int32)
    seat = PairSolver.of(network, np.unique(ends)).seat()
    wanted = [maximum_flow(edges, edges.capacity, Terminals.of([s], [t])) for s, t in ends.tolist()]
    for sizes in (0.001, 0.2, 0.5, 1, 2, 3):
        values = []
        for source, sink in ends.tolist():
            seat.desk.memory[2] = sizes
            values += seat.values(np.array([source], np.int32), np.array([sink], np.int32), Control()).tolist()
            assert (seat.desk.flow.residual == seat.solver.small.capacity).all(), f"{sizes} leave a flow behind"
        assert values == wanted


def test_marks_begin_again_when_their_numbers_are_used_up() -> None:
    tail, head = np.array(list(combinations(range(5), 2))[1:], np.int32).T  # all but that from 0 to 1
    edges = EdgeList(5, tail, head, np.ones(9, np.int64), True)
    ends = np.array([[0, 1], [1, 0]], np.int32)
    seat = PairSolver.of(Network(edges), np.array([0, 1])).seat()
    fresh = seat.values(ends[:, 0].copy(), ends[:, 1].copy(), Control())
    seat.desk.memory[:2] = 2**30 + 1
    seat.desk.reach.node[:, MARK] = 2  # as the first search after them will have it
    seat.desk.mark[:] = 1
    assert (seat.values(ends[:, 0].copy(), ends[:, 1].copy(), Control()) == fresh).all()
    assert (seat.desk.memory[:2] < 100).all()
    assert seat._engine is None, "a search was misled, and its pair solved from zero"


def test_roads_shrink_to_their_junctions() -> None:
    edges = generate("road", seed=1, rows=30, columns=30, terminals=5)
    network = Network(edges)
    small = reduced(network.row_offsets, network.head, network.reverse_arc, network.arc_capacity(), np.array([0, 7]))
    assert len(small.row_offsets) <= network.n_vertices
    tails = network.head[network.reverse_arc[small.chain[small.offsets[:-1]]]]
    assert (np.repeat(np.arange(len(small.row_offsets) - 1), np.diff(small.row_offsets)) == small.number[tails]).all()
    assert (small.reverse_arc[small.reverse_arc] == np.arange(len(small.head))).all()


def test_refusals() -> None:
    network = Network(EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([2, 3]), True))
    with pytest.raises(UnknownVertex):
        PairSolver.of(network, np.array([0, 3]))
    seat = PairSolver.of(network, np.array([0, 2])).seat()
    with pytest.raises(SourceIsSink):
        seat.values(np.array([0], np.int32), np.array([0], np.int32), Control())
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        seat.values(np.array([0], np.int32), np.array([2], np.int32), control)
    assert seat.values(np.array([0], np.int32), np.array([2], np.int32), Control()).tolist() == [2]
    with pytest.raises(InvalidTerminals):
        TreeGrower(network, np.array([0, 0], np.int32))
    with pytest.raises(InvalidTerminals):
        global_cut(Network(EdgeList(1, *np.zeros((3, 0), np.int64), True)), Control())


@pytest.mark.parametrize(
    ("arcs", "units", "side", "holds_sink"),
    [
        ([0, 2], [3, 3], [0, 1], False),  # more than the capacity
        ([0], [2], [0], False),  # does not come on
        ([0, 0, 2, 2], [1, 1, 1, 1], [0], False),  # an arc twice
        ([0, 2], [1, 1], [0], False),  # less than the cut
        ([0, 2], [2, 2], [0, 2], False),  # both ends on one side
        ([0, 2], [2, 2], [1], False),  # neither
        ([0, 2], [2, 2], [0], True),  # the other end
        ([0, 2], [-2, -2], [0], False),
    ],
)
def test_a_false_witness_is_found_out(arcs: list[int], units: list[int], side: list[int], holds_sink: bool) -> None:
    network = Network(EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([2, 3]), False))
    csr = network.row_offsets, network.head, network.reverse_arc, network.arc_capacity()
    books = ledger(3, network.n_arcs)

    def proven(arcs: list[int], units: list[int], side: list[int], holds_sink: bool) -> int:
        columns = np.array(arcs, np.int32), np.array(units, np.int64), len(arcs), np.array(side, np.int32), len(side)
        return int(prove_pair(*csr, 0, 2, Witness(*columns, holds_sink), books))

    assert proven(arcs, units, side, holds_sink) == WRONG
    assert proven([0, 2], [2, 2], [0], False) == 2, "the false one left something behind"
    assert not any(column.any() for column in books)


def test_a_flow_that_ends_at_one_vertex_and_begins_at_another_is_none() -> None:
    network = Network(EdgeList(4, np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([2, 1, 2]), False))
    csr = network.row_offsets, network.head, network.reverse_arc, network.arc_capacity()
    arcs, units = network.edge_arc[[0, 2]], np.array([2, 2])
    leaks = Witness(arcs, units, 2, np.array([0], np.int32), 1, False)
    assert prove_pair(*csr, 0, 3, leaks, ledger(4, network.n_arcs)) == WRONG


def grown(network: Network, terminals: np.ndarray) -> CutTree:
    grower = TreeGrower(network, terminals)
    for _ in grower.grow(grower.seat(), Control()):
        pass
    return grower.finish()


def assert_cut_tree(edges: EdgeList, terminals: np.ndarray, seed: int) -> None:
    tree = grown(Network(edges), terminals)
    inside, paid = all_cuts(edges)
    graph = nx.Graph()
    graph.add_nodes_from(terminals.tolist())
    rows = zip(tree.tail.tolist(), tree.head.tolist(), tree.value.tolist(), strict=True)
    graph.add_weighted_edges_from(rows)
    assert nx.is_tree(graph)
    for u, w in combinations(terminals.tolist(), 2):
        least = int(paid[inside[:, u] != inside[:, w]].min())
        way = nx.shortest_path(graph, u, w)
        found = min(graph[a][b]["weight"] for a, b in pairwise(way))
        assert found == least or (found == INFINITE and least >= PLENTY), f"seed {seed} {u} {w}"
    for tail, head, value in zip(tree.tail, tree.head, tree.value, strict=True):
        if value == INFINITE:
            continue
        cut = graph.copy()
        cut.remove_edge(tail, head)
        side = np.isin(tree.group, list(nx.node_connected_component(cut, tail)))
        assert paid[(inside == side).all(axis=1)] == [value], f"seed {seed} row {tail}-{head}"


@pytest.mark.parametrize("first", range(0, cases(200), SEEDS_A_CASE))
def test_each_row_of_a_tree_is_a_minimum_cut_and_the_tree_holds_all_pairs(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        rng, edges = np.random.default_rng(seed), random_network(seed, 9)
        if edges.n_vertices > 10:
            continue
        edges = EdgeList(edges.n_vertices, edges.tail, edges.head, edges.capacity, True)
        terminals = rng.permutation(edges.n_vertices)[: int(rng.integers(1, edges.n_vertices + 1))].astype(np.int32)
        assert_cut_tree(edges, terminals, seed)


@pytest.mark.parametrize("first", range(0, cases(300), SEEDS_A_CASE))
def test_what_hangs_on_one_vertex_is_taken_out(first: int) -> None:
    """Random trees, some parts of which are gone, some edges parallel, unlimited or empty, and a few more edges."""
    for seed in range(first, first + SEEDS_A_CASE):
        rng, n = np.random.default_rng(seed), 9
        above = np.array([rng.integers(max(0, v - 4), v) for v in range(1, n)])
        twice, extra = rng.integers(0, n - 1, 2), rng.integers(0, n, (2, int(rng.integers(0, 4))))
        tail = np.concatenate([np.arange(1, n), twice + 1, extra[0]])
        head = np.concatenate([above, above[twice], extra[1]])
        capacity = rng.integers(0, 6, len(tail))
        capacity[rng.random(len(tail)) < rng.choice([0, 0.2])] = INFINITE
        name = rng.permutation(n)
        edges = EdgeList(n, name[tail].astype(np.int32), name[head].astype(np.int32), capacity, True)
        count = n if seed % 2 else int(rng.integers(1, n + 1))
        assert_cut_tree(edges, rng.permutation(n)[:count].astype(np.int32), seed)


@pytest.mark.parametrize("shape", ["path", "tree"])
def test_a_tree_of_a_tree_asks_for_no_cut(shape: str) -> None:
    n, rng = 100_000, np.random.default_rng(1)
    at = np.arange(1, n)
    above = at - 1 if shape == "path" else rng.integers(0, at)
    capacity = rng.integers(1, 100, n - 1)
    network = Network(EdgeList(n, at.astype(np.int32), above.astype(np.int32), capacity, True))
    grower = TreeGrower(network, np.roll(np.arange(n, dtype=np.int32), 17))
    assert len(grower.kept) == 1
    tree = grown(network, np.roll(np.arange(n, dtype=np.int32), 17))
    assert (np.bincount(tree.tail, tree.value) + np.bincount(tree.head, tree.value, n))[n - 1] == capacity[-1]
    assert np.sort(tree.value).tolist() == np.sort(capacity).tolist()


def test_a_tree_has_the_values_of_networkx() -> None:
    drawn = nx.gnm_random_graph(40, 120, seed=4)
    for u, w in drawn.edges:
        drawn[u][w]["capacity"] = (7 * u + 3 * w) % 11 + 1
    tail, head = np.array(list(drawn.edges), np.int32).T
    capacity = np.array([drawn[u][w]["capacity"] for u, w in drawn.edges], np.int64)
    tree = grown(Network(EdgeList(40, tail, head, capacity, True)), np.arange(40, dtype=np.int32))
    assert sorted(tree.value) == sorted(weight for _, _, weight in nx.gomory_hu_tree(drawn).edges(data="weight"))


def test_a_false_tree_is_found_out() -> None:
    network = Network(EdgeList(3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([3, 2, 1]), True))
    terminals, every = np.array([0, 1, 2], np.int32), np.arange(3, dtype=np.int32)
    flows = np.array([[1, 0, 4], [2, 1, 3]])

    def wrong(head: list[int], value: list[int], flows: np.ndarray = flows, group: np.ndarray = every) -> bool:
        columns = np.array([1, 2], np.int32), np.array(head, np.int32), np.array(value, np.int64)
        return bool(tree_failures(network, terminals, *columns, group.astype(np.int32), flows))

    assert not wrong([0, 1], [4, 3])
    assert wrong([0, 1], [4, 2])
    assert wrong([0, 0], [5, 3])
    assert wrong([2, 1], [4, 3])
    assert wrong([0, 1], [4, 3], np.array([[1, 0, 3], [2, 1, 3]]))
    assert wrong([0, 1], [4, 3], flows, np.array([0, 2, 1]))


def check_global_cut(edges: EdgeList, at: str) -> None:
    """It is the least of all cuts, of which there are few."""
    inside, paid = all_cuts(edges)
    try:
        found = global_cut(Network(edges), Control())
    except Unbounded:
        assert paid.min() >= PLENTY, at
        return
    assert found.value == paid.min(), at
    assert paid[(inside == found.source_side).all(axis=1)] == [found.value], at


@pytest.mark.parametrize("first", range(0, cases(300), SEEDS_A_CASE))
def test_a_global_cut_is_the_least_of_all_cuts(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        edges = random_network(seed, 10)
        if edges.n_vertices > 11:
            continue
        check_global_cut(edges, f"seed {seed}")


def test_a_global_cut_has_the_value_of_stoer_and_wagner() -> None:
    for seed in range(3):
        drawn = nx.connected_watts_strogatz_graph(60, 6, 0.3, seed=seed)
        for u, w in drawn.edges:
            drawn[u][w]["weight"] = (5 * u + 7 * w) % 13 + 1
        tail, head = np.array(list(drawn.edges), np.int32).T
        capacity = np.array([drawn[u][w]["weight"] for u, w in drawn.edges], np.int64)
        found = global_cut(Network(EdgeList(60, tail, head, capacity, True)), Control())
        assert found.value == nx.stoer_wagner(drawn)[0]


def test_a_global_cut_of_two_clumps_that_each_vertex_hangs_on_firmly() -> None:
    """No vertex alone has the least cut, and arcs to the set alone do not show it."""
    clump = list(combinations(range(8), 2))
    pairs = [*clump, *((u + 8, w + 8) for u, w in clump), (0, 8), (1, 9), (2, 10)]
    tail, head = np.array(pairs, np.int32).T
    told: list[tuple[int, int]] = []
    network = Network(EdgeList(16, tail, head, np.ones(len(pairs), np.int64), True))
    found = global_cut(network, Control(), lambda done, of: told.append((done, of)))
    assert found.value == 3
    assert found.source_side.sum() == 8
    assert len(set(found.source_side[:8])) == 1


def test_a_global_cut_that_leads_to_the_first_vertex() -> None:
    """No vertex alone has it, and from the first vertex there is much."""
    inside = [(u, w) for u in range(4) for w in range(4) if u != w]
    pairs = [*inside, *((u + 4, w + 4) for u, w in inside), (0, 4), (1, 5), (6, 2)]
    tail, head = np.array(pairs, np.int32).T
    capacity = np.array([5] * 24 + [10, 10, 1])
    found = global_cut(Network(EdgeList(8, tail, head, capacity, False)), Control())
    assert found.value == 1
    assert found.source_side.tolist() == [False] * 4 + [True] * 4


@pytest.mark.parametrize("shape", ["ring", "theta", "double ring"])
def test_a_global_cut_of_equal_capacities_asks_for_few_flows(shape: str) -> None:
    """Most vertices have the value of the best cut around them, and half of it leads to their neighbours."""
    n = 20_000
    at = np.arange(n, dtype=np.int32)
    tail, head, capacity = at, np.roll(at, -1), np.full(n, 5)
    if shape != "ring":  # two hubs with chains between them, or a way across
        tail, head = np.append(tail, 3).astype(np.int32), np.append(head, n // 2).astype(np.int32)
        capacity = np.append(capacity, 5 if shape == "theta" else 1)
    network, control = Network(EdgeList(n, tail, head, capacity, True)), Control()
    found = global_cut(network, control)
    assert found.value == 10
    assert control.slots[Control.ARCS_SCANNED] < 4 * network.n_arcs


@pytest.mark.parametrize("first", range(0, cases(800), SEEDS_A_CASE))
def test_a_global_cut_of_near_ties_is_the_least_of_all_cuts(first: int) -> None:
    """Rings, chains of cycles and trees with few distinct capacities, some of them zero or unlimited, some one-way."""
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 10))
        above = np.array([rng.integers(max(0, v - 2), v) for v in range(1, n)])
        extra = rng.integers(0, n, (2, int(rng.integers(0, 6))))
        tail = np.concatenate([np.arange(1, n), [0], extra[0]]).astype(np.int32)
        head = np.concatenate([above if seed % 3 else np.arange(n - 1), [n - 1], extra[1]]).astype(np.int32)
        capacity = rng.integers(int(rng.integers(0, 2)), 4, len(tail))
        capacity[rng.random(len(tail)) < rng.choice([0, 0.15])] = INFINITE
        undirected = True if seed % 2 else rng.random(len(tail)) < 0.7
        edges = EdgeList(n, tail, head, capacity, undirected)
        check_global_cut(edges, f"seed {seed}")


@pytest.mark.parametrize(
    ("joined", "v", "least", "holds"),
    [
        ([0], 1, 5, True),  # 3 to it, and 2 lead on
        ([0], 1, 6, False),  # alone it is the better cut
        ([0], 2, 3, False),  # 1 to it, and 2 lead on
        ([0, 1], 2, 3, True),
        ([0, 1], 1, 5, False),
        ([0], 4, 0, False),  # what leads on has no limit
    ],
)
def test_who_clings(joined: list[int], v: int, least: int, holds: bool) -> None:
    tail, head, capacity = np.array([[0, 0, 1, 2, 0, 4], [1, 2, 2, 3, 4, 3], [3, 1, 2, 0, 9, INFINITE]])
    network = Network(EdgeList(5, tail.astype(np.int32), head.astype(np.int32), capacity, True))
    inside = np.zeros(5, np.bool_)
    inside[joined] = True
    arcs = network.row_offsets, network.head, network.reverse_arc, network.arc_capacity()
    assert clings(*arcs, inside, v, least) is holds


def test_a_vertex_that_is_not_proven_does_not_join() -> None:
    """Whatever the search believes of the arcs to it."""
    network = Network(EdgeList(3, np.array([0, 1, 0]), np.array([1, 2, 2]), np.array([3, 2, 1]), True))
    whole = Whole(network.row_offsets, network.head, network.reverse_arc, network.arc_capacity())
    joining = begin(whole, 3)
    joining.bound[2] = 9
    joining.ready[joining.counts[READY]] = 2
    joining.counts[READY] += 1
    assert join_some(whole, joining, 3, Control().slots) == BROKEN


def test_a_cancel_stops_a_global_cut_and_a_tree() -> None:
    edges = generate("grid", seed=1, rows=60, columns=60)
    network = Network(EdgeList(edges.n_vertices, edges.tail, edges.head, edges.capacity, True))
    control = Control()
    control.cancel()
    with pytest.raises(Cancelled):
        global_cut(network, control)
    terminals = np.arange(network.n_vertices, dtype=np.int32)
    grower = TreeGrower(network, terminals)
    seat = grower.seat()
    with pytest.raises(Cancelled):
        next(grower.grow(seat, control))
    assert len(list(grower.grow(seat, Control()))) < 100
    assert len(grower.finish().tail) == network.n_vertices - 1
