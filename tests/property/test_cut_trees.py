"""Trees whose cuts are found in networks around parts of them, and the proof that what was drawn together may be."""

from itertools import pairwise

import numpy as np
import pytest

from gpu_engine.checks.contractions import Around, Slots, contraction_failures
from gpu_engine.checks.series import Steps, series_failures
from gpu_engine.control import Control
from gpu_engine.generators import generate
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.pairs import cut_tree
from gpu_engine.pairs.cut_tree import TreeGrower
from gpu_engine.types import INFINITE
from tests.cases import cases
from tests.property.test_pair_solver import assert_cut_tree, grown
from tests.random_networks import random_network

SEEDS_A_CASE = 50


@pytest.fixture
def drawn_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cut but the last of a network is followed by networks around its parts."""
    monkeypatch.setattr(cut_tree, "SMALL", 2)
    monkeypatch.setattr(cut_tree, "SIZES", 0)


def ladder(rng: np.random.Generator, n: int) -> EdgeList:
    """A ladder or a ring with some edges across, few distinct capacities, some of them unlimited, empty or twice."""
    k = n // 2
    rails = np.concatenate([np.arange(k - 1), k + np.arange(k - 1)])
    tail, head = np.concatenate([rails, np.arange(k)]), np.concatenate([rails + 1, k + np.arange(k)])
    if rng.random() < 0.4:
        across = rng.integers(0, n, (2, int(rng.integers(0, 4))))
        tail, head = np.concatenate([np.arange(n), across[0]]), np.concatenate([np.roll(np.arange(n), -1), across[1]])
    capacity = rng.integers(int(rng.integers(0, 2)), int(rng.choice([2, 4, 30])), len(tail))
    capacity[rng.random(len(tail)) < rng.choice([0, 0.1])] = INFINITE
    name = rng.permutation(n)
    return EdgeList(n, name[tail].astype(np.int32), name[head].astype(np.int32), capacity, True)


@pytest.mark.usefixtures("drawn_together")
@pytest.mark.parametrize("first", range(0, cases(600), SEEDS_A_CASE))
def test_trees_of_networks_around_parts_are_cut_trees(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        rng, edges = np.random.default_rng(seed), random_network(seed, 9)
        if seed % 3 or edges.n_vertices > 10:
            edges = ladder(rng, int(rng.integers(4, 11)))
        edges = EdgeList(edges.n_vertices, edges.tail, edges.head, edges.capacity, True)
        count = edges.n_vertices if seed % 2 else int(rng.integers(1, edges.n_vertices + 1))
        assert_cut_tree(edges, rng.permutation(edges.n_vertices)[:count].astype(np.int32), seed)


@pytest.mark.parametrize("shape", ["ladder", "strip"])
def test_long_and_narrow_networks_take_little_more_than_their_size(shape: str) -> None:
    n, wide = 6000, 2 if shape == "ladder" else 3
    at = np.arange(n, dtype=np.int32).reshape(-1, wide)
    tail, head = (np.concatenate([a.ravel(), b.ravel()]) for a, b in ((at[:-1], at[:, :-1]), (at[1:], at[:, 1:])))
    network, control = Network(EdgeList(n, tail, head, np.full(len(tail), 5), True)), Control()
    grower = TreeGrower(network, np.arange(n, dtype=np.int32))
    for _ in grower.grow(grower.seat(), control):
        pass
    assert control.slots[Control.ARCS_SCANNED] < 400 * (n + network.n_arcs)
    assert np.bincount(grower.finish().value).argmax() in (5 * wide, 15)


@pytest.mark.parametrize("shape", ["squared ring", "Moebius ladder"])
def test_vertices_that_are_cut_off_alone_are_not_cut_one_from_another(shape: str) -> None:
    """Of the units that flow between two neighbours, one goes all the way round."""
    n = 3000
    at = np.arange(n, dtype=np.int32)
    tail = np.concatenate([at, at if shape == "squared ring" else at[: n // 2]])
    head = np.concatenate([np.roll(at, -1), np.roll(at, -2) if shape == "squared ring" else at[n // 2 :]])
    network, control = Network(EdgeList(n, tail, head, np.full(len(tail), 5), True)), Control()
    grower = TreeGrower(network, at)
    for _ in grower.grow(grower.seat(), control):
        pass
    assert control.slots[Control.ARCS_SCANNED] < 100 * (n + network.n_arcs)
    assert (grower.finish().value == 2 * 5 * network.n_edges // n).all()


def test_where_it_stops_it_goes_on() -> None:
    """After a cancel in whatever network, and with the same tree as at one go."""
    edges = generate("grid", seed=1, rows=24, columns=40)
    network = Network(EdgeList(edges.n_vertices, edges.tail, edges.head, edges.capacity, True))
    terminals = np.arange(network.n_vertices, dtype=np.int32)
    at_one_go, grower = grown(network, terminals), TreeGrower(network, terminals)
    seat = grower.seat()
    told = [next(grower.grow(seat, Control()))]
    told += list(grower.grow(seat, Control()))
    tree = grower.finish()
    assert told == sorted(told)
    assert told[-1] == len(tree.tail)
    for column, other in zip(
        (tree.head, tree.value, tree.group), (at_one_go.head, at_one_go.value, at_one_go.group), strict=True
    ):
        assert (column == other).all()


def rings(rng: np.random.Generator, n: int) -> EdgeList:
    """A tree of rings, links and now and then more, some edges of which are unlimited, empty or twice."""
    pairs: list[tuple[int, int]] = []
    made = 1
    while made < n:
        top, more = int(rng.integers(0, made)), int(min(rng.integers(1, 5), n - made))
        way = [top, *range(made, made + more)]
        pairs += [*pairwise(way), *([(way[-1], top)] if more > 1 else [])]
        made += more
    pairs += [tuple(rng.integers(0, n, 2).tolist()) for _ in range(int(rng.choice([0, 0, 1])))]
    tail, head = np.array(pairs).T
    capacity = rng.integers(int(rng.integers(0, 2)), int(rng.choice([2, 4, 30])), len(tail))
    capacity[rng.random(len(tail)) < rng.choice([0, 0.1])] = INFINITE
    name = rng.permutation(n)
    return EdgeList(n, name[tail].astype(np.int32), name[head].astype(np.int32), capacity, True)


@pytest.mark.parametrize("first", range(0, cases(1000), SEEDS_A_CASE))
def test_trees_of_rings_are_taken_apart(first: int) -> None:
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        edges = rings(rng, int(rng.integers(3, 11)))
        count = edges.n_vertices if seed % 4 else int(rng.integers(1, edges.n_vertices + 1))
        assert_cut_tree(edges, rng.permutation(edges.n_vertices)[:count].astype(np.int32), seed)


@pytest.mark.parametrize("shape", ["ring", "tree of rings"])
def test_a_tree_of_rings_asks_for_no_cut(shape: str) -> None:
    n, rng = 60_000, np.random.default_rng(1)
    at = np.arange(n, dtype=np.int32)
    tail, head = at, np.roll(at, -1)
    if shape != "ring":  # squares, each at a corner of one before it
        top = np.array([rng.integers(0, 3 * k + 1) for k in range(n // 3)])
        first = 3 * np.arange(n // 3) + 1
        tail = np.concatenate([top, first, first + 1, first + 2]).astype(np.int32)
        head = np.concatenate([first, first + 1, first + 2, top]).astype(np.int32)
        n = 3 * (n // 3) + 1
    network = Network(EdgeList(n, tail, head, rng.integers(1, 100, len(tail)), True))
    terminals = np.roll(np.arange(n, dtype=np.int32), 17)
    assert len(TreeGrower(network, terminals).kept) == 1
    assert len(grown(network, terminals).tail) == n - 1


def series_parallel(rng: np.random.Generator, n: int) -> EdgeList:
    """Links that were divided, doubled, bridged by a vertex or given a dead end, and a few edges across."""
    pairs: list[tuple[int, int]] = [(0, 1)]
    made = 2
    while made < n:
        i, kind = int(rng.integers(0, len(pairs))), rng.random()
        one, other = pairs[i]
        if kind < 0.15:
            pairs.append(pairs[i])
            continue
        if kind < 0.6:
            pairs[i : i + 1] = [(one, made), (made, other)]
        elif kind < 0.85:
            pairs += [(one, made), (made, other)]
        else:
            pairs.append((one, made))
        made += 1
    pairs += [tuple(rng.integers(0, n, 2).tolist()) for _ in range(int(rng.choice([0, 0, 1, 2, 4])))]
    tail, head = np.array(pairs, np.int32).T
    capacity = rng.integers(int(rng.integers(0, 2)), int(rng.choice([2, 3, 4, 30])), len(tail))
    capacity[rng.random(len(tail)) < rng.choice([0, 0, 0.1])] = INFINITE
    name = rng.permutation(n).astype(np.int32)
    return EdgeList(n, name[tail], name[head], capacity, True)


@pytest.mark.parametrize("first", range(0, cases(2000), SEEDS_A_CASE))
def test_vertices_with_two_neighbours_are_taken_out_and_put_in_again(first: int) -> None:
    taken = 0
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        edges = series_parallel(rng, int(rng.integers(3, 11)))
        count = edges.n_vertices if seed % 2 else int(rng.integers(1, edges.n_vertices + 1))
        terminals = rng.permutation(edges.n_vertices)[:count].astype(np.int32)
        assert_cut_tree(edges, terminals, seed)
        taken += edges.n_vertices - TreeGrower(Network(edges), terminals).network.n_vertices
    assert taken > SEEDS_A_CASE


@pytest.mark.parametrize("shape", ["theta", "necklace", "ladder"])
def test_rings_that_meet_at_two_vertices_ask_for_no_cut(shape: str) -> None:
    n, rng = 30_000, np.random.default_rng(1)
    at = np.arange(n, dtype=np.int32)
    if shape == "ladder":
        tail, head = np.concatenate((at[:-2], at[::2])), np.concatenate((at[2:], at[1::2]))
    else:  # three ways from 0 to n - 1; or beads of two ways of 50 vertices each, one after another in a ring
        long = n // 3 if shape == "theta" else 50
        first = at[at % long == 0]
        tail = np.concatenate((at, first))
        head = np.where(at % long == long - 1, at // long * long if shape == "necklace" else n - 1, at + 1)
        head = np.concatenate((head, (first + long) % n if shape == "necklace" else np.zeros(len(first))))
    units = np.ones(len(tail), np.int64) if shape == "necklace" else rng.integers(1, 100, len(tail))
    network = Network(EdgeList(n, tail.astype(np.int32), head.astype(np.int32), units, True))
    assert len(TreeGrower(network, at).kept) == 1
    assert len(grown(network, at).tail) == n - 1


def test_what_was_taken_out_wrongly_is_seen() -> None:
    """Of 0 -3- 1 -1- 2 -3- 3 -2- 0 the vertices 1 and 2 are taken out: between 0 and 3 there are 2 + 1 units then."""
    network, left = Network(RING), Network(EdgeList(2, np.array([0]), np.array([1]), np.array([3]), True))

    def told(near: int = 0, unit: int = 1, least: int = 2, flow: int = 3, link: int = 3, joined: int = 2) -> str:
        steps = Steps(*np.array([[1, 2], [near, 3], [2, 0]], np.int32), *np.array([[3, 3], [unit, unit]], np.int64))
        stands_for = np.array([0, 1, joined, 3], np.int32)
        rest = left if link == 3 else Network(EdgeList(2, np.array([0]), np.array([1]), np.array([link]), True))
        flows, end = np.array([[0, 3, flow]]), np.array([0, 3], np.int32)
        return "; ".join(series_failures(network, stands_for, steps, rest, end, np.array([least, 2]), flows))

    assert not told()
    assert "taken out" in told(near=2)
    assert "more units" in told(link=4)
    assert "more units" in told(unit=2)
    assert "less was proven" in told(flow=1)
    assert "less was proven" in told(least=5)
    assert "not joined" in told(joined=3)


RING = EdgeList(4, np.array([0, 1, 2, 3]), np.array([1, 2, 3, 0]), np.array([3, 1, 3, 2]), True)
"""0 -3- 1 -1- 2 -3- 3 -2- 0: the cut of the edges of 1 and 2 divides {0, 1} from {2, 3}."""


def told(slot: list[int], up: list[int], flow: list[list[int]], edges: list[tuple[int, int, int, int]]) -> str:
    network = Network(RING)
    whole = network.row_offsets, network.head, network.reverse_arc, network.arc_capacity()
    columns = np.array(edges, np.int32).reshape(-1, 4).T
    around = Around(columns[0], network.edge_arc[columns[1]], columns[2], columns[3])
    slots = Slots(np.array(slot, np.int32), np.array(up, np.int32), np.array(flow))
    return "; ".join(contraction_failures(*whole[1:], slots, around))


def test_what_is_drawn_together_wrongly_is_seen() -> None:
    slot, up, flow = [0, 0, 1, 1], [-1, 0], [[0, 0, 0], [3, 0, 3]]
    own = [(0, 0, 0, 1), (0, 1, 1, -2), (0, 3, -2, 0), (1, 2, 2, 3), (1, 1, -2, 2), (1, 3, 3, -2)]
    assert not told(slot, up, flow, own)
    assert "no tree" in told(slot, [1, 0], flow, own)
    assert "minimum cuts" in told(slot, up, [[0, 0, 0], [3, 0, 2]], own)
    assert "minimum cuts" in told(slot, up, [[0, 0, 0], [3, 2, 3]], own)
    assert "twice" in told(slot, up, flow, [*own, own[1]])
    for wrong in (
        (0, 0, 0, 0),
        (0, 1, 1, 2),
        (0, 2, 0, 1),
        (0, 0, 0, -2),
        (0, 1, 1, -1),
        (1, 0, -1, -2),
        (1, 2, -2, 3),
    ):
        assert "elsewhere" in told(slot, up, flow, [wrong]), wrong
