"""What a partition finds changed, held against a plain comparison; and the columns that it keeps as vertices come."""

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from gpu_engine.errors import CapacityOverflow
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.marks import FEW, SHARE, STEPS, Marks
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition.census import Census, Scales
from gpu_engine.partition.columns import lengthened
from gpu_engine.partition.moves import NOWHERE, Books
from gpu_engine.partition.problem import Weights, edge_weights
from gpu_engine.partition.survey import (
    ABSENT,
    changed_items,
    changed_marks,
    changed_vertices,
    changed_weights,
    enter_vertices,
    n_moved,
    touched_vertices,
)
from gpu_engine.types import MAX_TOTAL

NO_ROWS = np.empty(0, np.int64)


def books_of(part: list[int], weight: list[int], k: int) -> Books:
    of_part = np.zeros(k + 1, np.int64)
    for p, w in zip(part, weight, strict=True):
        if p != NOWHERE:
            of_part[p] += w
    zero = np.zeros(1, np.int64)
    return Books(np.array(part, np.int32), np.array(weight, np.int64), of_part, zero, zero.copy())


def test_any_change_of_vertices_is_found_and_entered() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        n, more, k = int(rng.integers(1, 30)), int(rng.integers(0, 5)), 3
        part = rng.integers(-1, k, n).tolist()
        weight = [0 if p == NOWHERE else int(rng.integers(0, 9)) for p in part]
        books = books_of(part, weight, k)
        deleted = rng.random(n + more) < 0.3 if rng.random() < 0.8 else np.empty(0, np.bool_)
        now = rng.integers(0, 9, n + more)
        gone = deleted if len(deleted) else np.zeros(n + more, np.bool_)
        was = np.array([p != NOWHERE for p in part] + more * [False])
        own = np.where(gone, 0, now)
        differs = (was == gone) | (own != np.array(weight + more * [0]))
        changed, total = changed_vertices(books, deleted, now)
        assert changed.tolist() == np.flatnonzero(differs).tolist()
        assert total == int(own.sum())
        books = books._replace(
            part=lengthened(books.part, n + more, NOWHERE), vertex_weight=lengthened(books.vertex_weight, n + more)
        )
        come, n_other = enter_vertices(books, changed, ~gone[changed], now[changed])
        assert come.tolist() == np.flatnonzero(~was & ~gone).tolist()
        assert n_other == len(changed)
        assert books.vertex_weight.tolist() == own.tolist()
        expected = [NOWHERE if gone[v] else part[v] if was[v] else k for v in range(n + more)]
        assert books.part.tolist() == expected
        assert books.part_weight.tolist() == books_of(expected, own.tolist(), k).part_weight.tolist()


def test_any_change_of_weights_is_found() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        n, more = int(rng.integers(1, 2000)), int(rng.integers(0, 700))
        before = np.where(rng.random(n) < 0.1, ABSENT, 3)
        gone = np.append(before == ABSENT, np.zeros(more, np.bool_))
        now = np.where(gone, rng.integers(0, 9, n + more), 3)
        some = rng.integers(0, n + more, int(rng.integers(0, 4)))
        gone[some], now[some] = rng.random(len(some)) < 0.5, rng.integers(0, 1 << 40, len(some))
        deleted = gone if gone.any() else np.empty(0, np.bool_)
        changed, total = changed_weights(before, deleted, now)
        own = np.where(gone, ABSENT, now)
        assert changed.tolist() == np.flatnonzero(own != np.append(before, np.full(more, ABSENT))).tolist()
        assert total == int(now[~gone].sum())
    with pytest.raises(CapacityOverflow):
        changed_weights(np.empty(0, np.int64), np.empty(0, np.bool_), np.full(3, MAX_TOTAL // 2, np.int64))


def test_a_sum_that_is_too_large_is_refused() -> None:
    nothing = books_of([], [], 2)
    most = np.full(3, MAX_TOTAL // 2, np.int64)
    with pytest.raises(CapacityOverflow):
        changed_vertices(nothing, np.empty(0, np.bool_), most)
    _, total = changed_vertices(nothing, np.array([True, False, False]), most)
    assert total == 2 * (MAX_TOTAL // 2)


def test_a_column_becomes_longer_in_place_where_there_is_room() -> None:
    column = np.arange(32)
    longer = lengthened(column, 40, -1)
    assert longer.tolist() == [*range(32), *[-1] * 8]
    longest = lengthened(longer, 42)
    assert np.shares_memory(longer, longest)
    assert longest.tolist() == [*range(32), *[-1] * 8, 0, 0]
    assert lengthened(longest, 42) is longest


def test_vertices_are_touched_once_and_counted_if_they_had_a_part() -> None:
    part = np.array([0, 1, NOWHERE, 2], np.int32)
    tail, head, come = (np.array(column, np.int32) for column in ([0, 2], [3, 0], [3]))
    assert sorted(touched_vertices(part, tail, head, come).tolist()) == [0, 3]
    assert n_moved(np.array([0, 0, NOWHERE, NOWHERE], np.int32), part) == 1
    assert n_moved(np.array([2, 1, 0, 2], np.int32), part) == 1  # the third was deleted, which is no move


def test_any_change_of_a_column_is_found() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        n, more = (int(x) for x in rng.integers(0, 3000, 2))
        before = rng.integers(0, 2, n)
        now = np.append(before, rng.integers(0, 2, more))
        some = rng.integers(0, n + more, int(rng.integers(0, 5))) if n + more else np.empty(0, np.int64)
        now[some] = rng.integers(0, 2, len(some))
        expected = np.flatnonzero(now != np.append(before, np.zeros(more, np.int64)))
        assert changed_items(before, now).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="2 items have become 1"):
        changed_items(np.zeros(2, np.int64), np.zeros(1, np.int64))


def marks_of(n: int, gone: NDArray[np.bool_]) -> Marks:
    return Marks(n).changed(np.flatnonzero(gone), NO_ROWS)


def test_any_change_of_unrelated_marks_is_found() -> None:
    """Also from no column to one, and back."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        n, more = (int(x) for x in rng.integers(0, rng.choice([4, 30, 3000]), 2))
        before = rng.random(n) < rng.choice([0, 0.1, 0.9])
        now = np.append(before, rng.random(more) < 0.2)
        some = rng.integers(0, n + more, int(rng.integers(0, 40))) if n + more else NO_ROWS
        now[some] = rng.integers(0, 2, len(some))
        expected = np.flatnonzero(np.append(~before, np.zeros(more, np.bool_)) != ~now)
        assert changed_marks(marks_of(n, before), marks_of(n + more, now)).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="2 items have become 1"):
        changed_marks(Marks(2), Marks(1))


def test_marks_know_what_changed_for_some_steps_back() -> None:
    """Compared with marks of any earlier time, of a branch that went another way, and of another network."""
    rng = np.random.default_rng(7)
    for _ in range(30):
        n = int(rng.integers(1, 3000))
        seen = [Marks(n)]
        for _ in range(60):
            at = seen[int(rng.integers(max(0, len(seen) - 30), len(seen)))] if rng.random() < 0.2 else seen[-1]
            some = np.unique(rng.integers(0, at.n, int(rng.integers(0, 9 if rng.random() < 0.9 else 900))))
            gone, back = some[::2], some[1::2]
            seen.append(at.changed(gone, back).longer(at.n + int(rng.integers(0, 3))))
            before = seen[int(rng.integers(max(0, len(seen) - 30), len(seen)))]
            now = seen[-1]
            if before.n > now.n:
                continue
            there = np.zeros(now.n, np.bool_)
            there[: before.n] = ~before.of(np.arange(before.n))
            expected = np.flatnonzero(there == now.of(np.arange(now.n)))
            assert changed_marks(before, now).tolist() == expected.tolist()
            assert now.n_gone == int(np.count_nonzero(now.column))
            assert len(now.steps) <= STEPS
            assert sum(len(rows) for _, rows in now.steps) <= max(FEW, now.n // SHARE)


def test_what_changed_is_known_without_a_look_at_all_items() -> None:
    at = first = Marks(10).changed(np.array([3]), NO_ROWS)
    for i in range(STEPS):
        at = at.changed(np.array([i % 3]), np.array([4]))
        known = at.touched_since(first)
        assert known is not None
        assert known.tolist() == [*range(min(i + 1, 3)), 4]
    assert at.touched_since(at.longer(12)) is not None
    assert at.changed(np.array([5]), NO_ROWS).touched_since(first) is None
    assert Marks(10).touched_since(Marks(10)) is None
    assert at.changed(NO_ROWS, NO_ROWS) is at


@pytest.mark.parametrize("weights", ["one", "capacity"])
def test_scales_tell_what_edges_weigh_more(weights: Weights) -> None:
    rng = np.random.default_rng(6)
    network = Network(EdgeList(50, *rng.integers(0, 50, (2, 900)).astype(np.int32), rng.integers(0, 9, 900)))
    scales = Scales(weights)
    known = scales.begin(network).astype(np.int64)
    for turn in range(60):
        if turn % 3 == 0:
            gone, back = np.unique(rng.integers(0, network.n_edges, 5)), rng.integers(0, network.n_edges, 5)
            network.set_capacity(gone, np.zeros(len(gone), np.int64))
            network.mark(gone, np.setdiff1d(back, gone))
        if turn % 3 == 1:
            more = int(rng.integers(0, 9))
            ends = rng.integers(0, 50, (2, more)).astype(np.int32)
            network = grow(network, Structure(0, None, *ends, np.zeros(more, np.bool_), None)).network
        live = network.live(np.unique(rng.integers(0, network.n_edges, 20)))
        network.set_capacity(live, rng.integers(0, 9, len(live)))
        own = edge_weights(network, weights).astype(np.int64)
        more_than = own - np.append(known, np.zeros(len(own) - len(known), np.int64))
        found = scales.changed(network)
        assert found.rows.tolist() == np.flatnonzero(more_than).tolist()
        assert found.delta.tolist() == more_than[found.rows].tolist()
        known = own


def test_a_census_tells_who_came_and_who_went() -> None:
    """With weights, without, and from the one to the other."""
    rng = np.random.default_rng(4)
    network = Network(EdgeList(600, *rng.integers(0, 600, (2, 900)).astype(np.int32), np.ones(900, np.int64)))
    census, known = Census(), np.full(600, ABSENT)
    for turn in range(40):
        if turn:
            gone, back = rng.integers(0, 600, (2, 3)).astype(np.int32)
            network.mark_vertices(np.unique(gone), np.setdiff1d(back, gone))
        weight = None if rng.random() < 0.7 else rng.integers(1, 3, 600)
        found = census.changed(network, weight, partial(changed_weights, known, network.deleted_vertices))
        own = np.where(network.there, 1 if weight is None else weight, ABSENT)
        assert found.rows.tolist() == np.flatnonzero(own != known).tolist()
        assert np.where(found.there, found.weight, ABSENT).tolist() == own[found.rows].tolist()
        assert found.total == int(own[network.there].sum())
        known = own
