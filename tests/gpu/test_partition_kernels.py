"""Partitions on a device: after any sequence of changes the limit is kept wherever it can be, all sums equal a count
from nothing, and what one refinement leaves behind is at rest for the next."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gpu_engine.engine import Control
from gpu_engine.errors import Cancelled
from gpu_engine.footprint import Footprint, unlimited
from gpu_engine.networks.edgelist import EdgeList
from gpu_engine.networks.growing import grow
from gpu_engine.networks.network import Network
from gpu_engine.networks.structure import Structure
from gpu_engine.partition import multilevel, process
from gpu_engine.partition.problem import Question
from gpu_engine.partition.resident import ResidentPartition, Way
from gpu_engine.select import missing_device
from tests.random_partitions import changed, check, random_network

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(bool(missing_device()), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

SEEDS, SEEDS_A_CASE, STEPS = 60, 10, 12


@pytest.fixture(autouse=True)
def partitioned_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """METIS runs here."""

    def run(module: str, data: bytes, limit: int, control: Control) -> tuple[bytes, int]:
        return b"OK\n" + process.partitioned(data), 0

    with monkeypatch.context() as patch:
        patch.setattr(multilevel, "run", run)
        yield


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
    ways: set[Way] = set()
    for seed in range(first, first + SEEDS_A_CASE):
        rng = np.random.default_rng(seed)
        network, k = random_network(rng), int(rng.integers(1, 7))
        epsilon = Fraction(int(rng.integers(0, 3)), 20)
        found = opened(Question(k, epsilon, "one" if seed % 2 else "capacity", seed))
        for _ in range(STEPS):
            weight = np.ones(network.n_vertices, np.int64)
            ways.add(found.bring(network, weight, Control(), unlimited).way)
            check(network, found, weight)
            assert found.part_weight.max() <= found.limit, f"seed {seed}"
            assert is_at_rest(found), f"seed {seed}"
            network = changed(network.fork(), rng)
    assert ways >= {Way.FULL, Way.INCREMENTAL}


def test_vertices_with_weights() -> None:
    """The limit is kept if no vertex is heavier than the room beside an equal share; the books are right anyway."""
    for seed in range(24):
        rng = np.random.default_rng(seed)
        network, k = random_network(rng), int(rng.integers(2, 5))
        found = opened(Question(k, Fraction(1, 5), seed=seed))
        for step in range(4):
            weight = rng.integers(0, 1 + 3**step, network.n_vertices)
            found.bring(network, weight, Control(), unlimited)
            check(network, found, weight)
            if int(weight.max()) <= found.limit - int(weight.sum()) // k:
                assert found.part_weight.max() <= found.limit, f"seed {seed}, step {step}"


def test_vertices_that_have_come_and_gone_between_two_answers() -> None:
    rng = np.random.default_rng(5)
    for seed in range(6):
        network = random_network(rng)
        found = opened(Question(3, Fraction(1, 10), seed=seed))
        for way in (Way.FULL, *2 * (Way.UNCHANGED, Way.INCREMENTAL)):
            weight = np.ones(network.n_vertices, np.int64)
            assert found.bring(network, weight, Control(), unlimited).way is way, f"seed {seed}"
            check(network, found, weight)
            n, m, nothing = network.n_vertices, network.n_edges, np.empty(0, np.int32)
            if way is Way.UNCHANGED:  # two come, and are linked
                ends = np.array([0, n], np.int32), np.array([n, n + 1], np.int32)
                network = grow(network, Structure(2, None, *ends, np.zeros(2, np.bool_))).network.fork()
                network.set_capacity(m + np.arange(2), np.array([1, 2]))
            else:  # some come, and are gone again
                network = grow(network, Structure(30, None, nothing, nothing, np.zeros(0, np.bool_))).network.fork()
                network.mark_vertices(np.arange(n, n + 30, dtype=np.int32), nothing)


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
