"""Partitions on a device: after any sequence of changes the limit is kept wherever it can be, all sums equal a count
from nothing, and what one refinement leaves behind is at rest for the next."""

import gc
import threading
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gpu_engine.control import Control
from gpu_engine.errors import Cancelled, OutOfMemory
from gpu_engine.footprint import Footprint, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition.problem import Question
from gpu_engine.partition.resident import ResidentPartition, Way
from gpu_engine.select import missing_device
from tests.random_partitions import (
    changed,
    check,
    partitioned_here,
    through_any_changes,
    with_vertices_that_come_and_go,
    with_weights_of_vertices,
)

__all__ = ["partitioned_here"]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(missing_device()), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

SEEDS, SEEDS_A_CASE = 60, 10


def opened(question: Question, few: int = 8) -> Any:
    """Small graphs have levels as well."""
    from gpu_engine.cuda.partition.resident import CudaResidentPartition

    return CudaResidentPartition(question, few)


def is_at_rest(found: Any) -> bool:
    columns = found._held.scratch.arrays
    zero = ("going", "listed", "total", "bins")
    return bool((columns["target"].get() == -1).all()) and not any(columns[name].get().any() for name in zero)


def grid(side: int) -> Network:
    at = np.arange(side * side, dtype=np.int32).reshape(side, side)
    tail = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    head = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    return Network(EdgeList(side * side, tail, head, np.ones(len(tail), np.int64), undirected=True))


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_A_CASE))
def test_any_sequence_of_changes(first: int) -> None:
    through_any_changes(opened, range(first, first + SEEDS_A_CASE), is_at_rest)


def test_vertices_with_weights() -> None:
    with_weights_of_vertices(opened, range(24))


def test_vertices_that_have_come_and_gone_between_two_answers() -> None:
    with_vertices_that_come_and_go(opened)


@pytest.mark.parametrize("k", [2, 7, 40, 1000])
def test_many_vertices_through_changes(k: int) -> None:
    """As many parts as a question may have; the same changes have the same outcome; it cuts about what the host's does,
    and no more than what it has asked for is on the device."""
    rng, network = np.random.default_rng(k), grid(120)
    question, asked = Question(k, Fraction(3, 100), "one"), [0]

    def room(needed: Footprint) -> None:
        asked[0] = max(asked[0], needed.device)

    both, host = [opened(question, 1024) for _ in range(2)], ResidentPartition(question)
    for step in range(8):
        weight = np.ones(network.n_vertices, np.int64)
        ways = {found.bring(network, weight, Control(), room).way for found in both}
        assert len(ways) == 1
        assert ways <= ({Way.INCREMENTAL, Way.FULL} if step else {Way.FULL})
        assert both[0].part.tolist() == both[1].part.tolist(), f"step {step}"
        check(network, both[0], weight)
        assert both[0].part_weight.max() <= both[0].limit
        assert both[0].footprint.device <= asked[0]
        if k < 1000:
            host.bring(network, weight, Control(), unlimited)
            assert both[0].cut <= 1.3 * host.cut, f"step {step}"
        for _ in range(12):
            network = changed(network.fork(), rng)


def test_a_row_grows_past_its_room_and_past_all_room() -> None:
    """A star that gets more leaves with each change: its row moves, and the list is packed anew."""
    n, rng = 4000, np.random.default_rng(1)
    network = Network(
        EdgeList(n, np.arange(n - 1, dtype=np.int32), np.arange(1, n, dtype=np.int32), np.ones(n - 1, np.int64))
    )
    found = opened(Question(2, Fraction(1, 10)))
    for _ in range(25):
        weight = np.ones(n, np.int64)
        found.bring(network, weight, Control(), unlimited)
        check(network, found, weight)
        more, m = 70, network.n_edges
        ends = np.zeros(more, np.int32), rng.integers(1, n, more).astype(np.int32)
        network = grow(network, Structure(0, None, *ends, np.ones(more, np.bool_))).network.fork()
        network.set_capacity(m + np.arange(more), np.ones(more, np.int64))


def test_a_part_without_a_border_gives_vertices_away() -> None:
    """Two paths that nothing links, each a part: one is too heavy once the vertices of the other weigh nothing."""
    path = np.arange(40, dtype=np.int32)
    tail, head = np.concatenate([path[:19], path[20:39]]), np.concatenate([path[1:20], path[21:]])
    network = Network(EdgeList(40, tail, head, np.ones(38, np.int64)))
    found = opened(Question(2, Fraction(1, 10)))
    found.bring(network, np.ones(40, np.int64), Control(), unlimited)
    assert found.cut == 0
    weight = (path < 20).astype(np.int64)
    assert found.bring(network, weight, Control(), unlimited).way is Way.INCREMENTAL
    check(network, found, weight)
    assert found.part_weight.max() <= found.limit == 11
    assert found.cut <= 5


def test_after_a_cancel_it_is_made_from_nothing() -> None:
    network, control = grid(40), Control()
    found = opened(Question(2, Fraction(3, 100)))
    control.cancel()
    with pytest.raises(Cancelled):
        found.bring(network, np.ones(1600, np.int64), control, unlimited)
    control.go_on()
    weight = np.ones(1600, np.int64)
    assert found.bring(network, weight, control, unlimited).way is Way.FULL
    check(network, found, weight)
    assert found.bring(network, weight, control, unlimited).way is Way.UNCHANGED


def into_a_cylinder(network: Network, side: int, seed: int) -> Network:
    """Edges from the first columns of what was a grid at first to the last ones."""
    rng, more = np.random.default_rng(seed), 4 * side
    row, left, right = rng.integers(0, side, more), *rng.integers(0, 4, (2, more))
    ends = (row * side + left).astype(np.int32), (row * side + side - 1 - right).astype(np.int32)
    grown = grow(network, Structure(0, None, *ends, np.ones(more, np.bool_))).network.fork()
    grown.set_capacity(network.n_edges + np.arange(more), np.ones(more, np.int64))
    return grown


@pytest.mark.parametrize("few", [64, 1 << 20])
def test_one_from_nothing_is_compared_some_answers_after_it_began(few: int) -> None:
    """A square divided into a left and a right half becomes a cylinder, which wants other borders. Vertices come and go
    while the other partition is made, which has levels or none."""
    from gpu_engine.cuda.partition.resident import MATURE

    side = 100
    network, column, rng = grid(side), np.arange(side * side) % side, np.random.default_rng(few)
    for seed in range(20):
        found = opened(Question(2, Fraction(3, 100), "one", seed=seed), few)
        found.bring(network, None, Control(), unlimited)
        if np.ptp(column[found.part[: side * side] == 0]) < side - 1:
            break
    began, reports = list[int](), list[Any]()
    for step in range(16):
        if step < 4:
            network = into_a_cylinder(network, side, step)
        network = changed(network.fork(), rng)
        reports.append(found.bring(network, None, Control(), unlimited))
        if found._attempt is not None and found._attempt.age == 0:
            began.append(step)
        check(network, found, np.ones(network.n_vertices, np.int64))
        assert found.part_weight.max() <= found.limit
    assert began
    anew = [step for step, report in enumerate(reports) if report.way is Way.FULL]
    assert anew or few < len(column)
    assert {step - MATURE for step in anew} <= set(began)
    fresh = opened(found.question, few)
    fresh.bring(network, None, Control(), unlimited)
    assert found.cut <= 1.15 * fresh.cut


def test_an_attempt_that_the_host_has_no_room_for_leaves_the_partition_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_engine.cuda.partition import full
    from gpu_engine.partition import upkeep

    network, rng, weight = grid(60), np.random.default_rng(3), np.ones(3600, np.int64)
    found, tried = opened(Question(4, Fraction(3, 100), "capacity"), 64), list[int]()
    found.bring(network, None, Control(), unlimited)

    def divided(*given: Any) -> Any:
        tried.append(1)
        raise OutOfMemory("none left")

    monkeypatch.setattr(full, "divided", divided)
    monkeypatch.setattr(upkeep, "UNTRIED", 0.0)
    for _ in range(12):
        network = network.fork()
        network.set_capacity(rng.choice(network.n_edges, 40, replace=False), rng.integers(0, 3, 40))
        assert found.bring(network, None, Control(), unlimited).way is Way.INCREMENTAL
        check(network, found, weight)
    assert len(tried) > full.SEEDS


def test_a_partition_that_is_dropped_stops_its_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpu_engine.cuda.partition import full
    from gpu_engine.partition import upkeep

    network, stopped, control = grid(40), threading.Semaphore(0), Control()
    found = opened(Question(2, Fraction(3, 100), "capacity"), 64)
    found.bring(network, None, Control(), unlimited)

    def divided(*given: Any) -> Any:
        while not given[-1].cancelled:
            time.sleep(0.001)
        stopped.release()
        raise Cancelled("stopped")

    monkeypatch.setattr(full, "divided", divided)
    monkeypatch.setattr(upkeep, "UNTRIED", 0.0)
    for step in range(2):
        network = network.fork()
        network.set_capacity(np.arange(20), np.full(20, step % 2))
        found.bring(network, None, control, unlimited)
    assert found._attempt is not None
    del found
    gc.collect()
    for _ in range(full.SEEDS):
        assert stopped.acquire(timeout=10)
