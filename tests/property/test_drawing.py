"""Networks that get smaller while the least cut of all is looked for, held against all cuts of small ones."""

from typing import Any

import numpy as np
import pytest

from gpu_engine.checks.global_cuts import belong_together, drawn_together
from gpu_engine.control import Control
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.network import Network
from gpu_engine.pairs import global_cut as of_all
from gpu_engine.pairs.drawing import next_round, together
from gpu_engine.pairs.global_cut import global_cut
from gpu_engine.pairs.values import Whole
from gpu_engine.types import INFINITE, INFINITE_RESIDUAL
from tests.cases import cases
from tests.property.test_pair_solver import check_global_cut

SEEDS_A_CASE = 50


def rows_of(network: Network) -> Whole:
    return Whole(network.row_offsets, network.head, network.reverse_arc, network.arc_capacity())


def ring_like(shape: str, n: int, rng: np.random.Generator) -> EdgeList:
    """A ring, one with a hub, or columns of a torus that are bound by much less than their vertices."""
    at = np.arange(n, dtype=np.int32)
    if shape == "torus":
        side = int(n**0.5)
        places = np.arange(side * side, dtype=np.int32).reshape(side, side)
        tail, head = np.tile(places.ravel(), 2), np.concatenate([np.roll(places, 1, axis).ravel() for axis in (0, 1)])
        capacity = np.concatenate([np.full(side * side, 1 << 30), rng.integers(1, 3, side * side)])
        return EdgeList(side * side, tail, head, capacity, True)
    tail, head, capacity = at, np.roll(at, -1), rng.integers(1, 3, n)
    if shape == "fan":
        tail, head = np.append(tail, np.full(n, n, np.int32)), np.append(head, at)
        capacity = np.concatenate([capacity, np.where(at % 2, 1 << 30, capacity)])
    return EdgeList(n + (shape == "fan"), tail.astype(np.int32), head.astype(np.int32), capacity, True)


@pytest.mark.parametrize("shape", ["ring", "fan", "torus"])
def test_a_global_cut_of_unlike_capacities_takes_few_looks(shape: str) -> None:
    """Flows to the vertices go all the way round, or through all of a row."""
    edges, control = ring_like(shape, 16_000, np.random.default_rng(3)), Control()
    least = {"ring": 2, "fan": 3}.get(shape)
    if least is None:  # a ring of columns is cut at two places
        least = int(np.sort(edges.capacity[edges.n_vertices :].reshape(-1, 126).sum(axis=0))[:2].sum())
    network = Network(edges)
    assert global_cut(network, control).value == least
    assert control.slots[Control.ARCS_SCANNED] < 256 * network.n_arcs


@pytest.mark.parametrize("first", range(0, cases(800), SEEDS_A_CASE))
def test_a_global_cut_is_the_least_however_soon_vertices_are_drawn_together(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_all, "STEPS", 1)
    monkeypatch.setattr(of_all, "SIZES", -1)
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        n, more = int(rng.integers(2, 10)), int(rng.integers(0, 9))
        ring = np.arange(n)
        extra = rng.integers(0, n, (2, more))
        tail, head = np.concatenate([ring, extra[0]]), np.concatenate([np.roll(ring, -1), extra[1]])
        capacity = rng.integers(seed % 2, int(rng.choice([3, 9, 1000])), len(tail))
        capacity[rng.random(len(tail)) < rng.choice([0, 0, 0.15])] = INFINITE
        check_global_cut(EdgeList(n, tail.astype(np.int32), head.astype(np.int32), capacity, True), f"seed {seed}")


@pytest.mark.parametrize("seed", range(5))
def test_what_is_drawn_together_is_the_network_with_one_vertex_for_each_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tail, head = rng.integers(0, 40, (2, 150)).astype(np.int32)
    capacity = rng.integers(0, 9, 150)
    capacity[rng.random(150) < 0.03] = INFINITE
    group = np.concatenate([np.arange(12), rng.integers(0, 12, 28)]).astype(np.int32)
    offsets, heads, reverse, carries = together(rows_of(Network(EdgeList(40, tail, head, capacity, True))), group).whole
    between: dict[tuple[int, int], int] = {}
    for t, h, units in zip(group[tail].tolist(), group[head].tolist(), capacity.tolist(), strict=True):
        for ends in ((t, h), (h, t)):
            if t != h and units:
                between[ends] = min(between.get(ends, 0) + min(units, INFINITE_RESIDUAL), INFINITE_RESIDUAL)
    tails = np.repeat(np.arange(12), np.diff(offsets))
    assert dict(zip(zip(tails.tolist(), heads.tolist(), strict=True), carries.tolist(), strict=True)) == between
    assert (heads[reverse] == tails).all()
    assert (reverse[reverse] == np.arange(len(heads))).all()


@pytest.mark.parametrize(
    ("into", "least", "holds"),
    [
        ([0, 0, 2, 3, 4], 5, True),  # 3 of 5 lead to it
        ([0, 0, 2, 3, 4], 6, False),  # alone it is the better cut
        ([0, 1, 1, 3, 4], 3, True),  # 2 of 3
        ([0, 1, 2, 2, 4], 2, False),  # 1 of 5
        ([0, 1, 2, 4, 4], 4, True),  # a link of 4
        ([0, 1, 2, 4, 3], 4, False),  # each to the other
        ([0, 0, 1, 3, 4], 3, False),  # to one that goes as well
        ([0, 1, 2, 0, 4], 1, False),  # to one that no link joins it to
    ],
)
def test_who_belongs_together(into: list[int], least: int, holds: bool) -> None:
    tail, head, capacity = np.array([[0, 1, 2, 3, 0], [1, 2, 3, 4, 4], [3, 2, 1, 4, 9]])
    rows = rows_of(Network(EdgeList(5, tail.astype(np.int32), head.astype(np.int32), capacity, True)))
    named: Any = np.array(into, np.int32)
    assert belong_together(rows.row_offsets, rows.head, rows.capacity, named, least) is holds


def test_rounds_go_on_until_a_ring_is_one_vertex() -> None:
    at = np.arange(1000, dtype=np.int32)
    rows = rows_of(Network(EdgeList(1000, at, np.roll(at, -1), np.full(1000, 5), True)))
    for number in range(40):
        smaller = next_round(rows, 10, number)
        rows = rows if smaller is None else smaller.whole
    left = len(rows.row_offsets) - 1
    assert left <= 2
    offsets, heads, _, carries = drawn_together(*rows[:2], rows.capacity, np.zeros(left, np.int32), 1)
    assert offsets.tolist() == [0, 0]
    assert not len(heads) + len(carries)
