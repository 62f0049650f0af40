"""Closure studies without a service: what is tried, what is left out, and that nothing is lost by it."""

import numpy as np
import pytest

from gpu_engine.errors import UnknownEdge
from gpu_engine.networks.network import Network
from gpu_engine.networks.updates import CapacityTable
from service.worker.questions.closing import CARRIES_NOTHING, SKIPPED, WARM, Candidates, Ranking
from tests.graphs import diamond


def studied(most: list[int], loss: list[int], base: int, top: int | None, block: int = 2) -> Ranking:
    """A ranking after all candidates that mattered were tried, so many at a time."""
    ranking = Ranking(base, np.array(most, np.int64), top)
    order = ranking.order
    for at in range(0, len(order), block):
        chosen = ranking.mattering(order[at : at + block])
        if not len(chosen):
            break
        value = base - np.array(loss)[chosen]
        ranking.note(chosen, value, np.full(len(chosen), WARM, np.int8), np.zeros(len(chosen), np.bool_))
    return ranking


@pytest.mark.parametrize("top", [1, 2, 3, 5, 50, None])
@pytest.mark.parametrize("block", [1, 2, 7])
def test_the_best_are_those_of_all(top: int | None, block: int) -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        most = rng.integers(0, 5, 30)
        loss = np.minimum(most, rng.integers(0, 5, 30))
        ranking = studied(most.tolist(), loss.tolist(), 9, top, block)
        wanted = sorted(range(30), key=lambda row: (-loss[row], row))[:top]
        assert ranking.ranked.tolist() == wanted, seed
        assert (9 - ranking.value[ranking.ranked]).tolist() == loss[wanted].tolist()
        left = ranking.done == SKIPPED
        assert ranking.skipped == left.sum() + (ranking.done == CARRIES_NOTHING).sum()
        if left.any():
            assert ranking.skipped_at_most == most[left].max() <= loss[wanted].min()


def test_what_cannot_matter_is_left_out() -> None:
    ranking = studied([9, 8, 2, 1, 0], [7, 1, 2, 1, 0], 9, 1, 1)
    assert ranking.done.tolist() == [WARM, WARM, SKIPPED, SKIPPED, CARRIES_NOTHING]
    assert (ranking.skipped, ranking.skipped_at_most) == (3, 2)
    assert studied([9, 8, 2, 1, 0], [7, 1, 2, 1, 0], 9, None).skipped == 1


def test_candidates_are_edges_or_lists_of_them() -> None:
    table = CapacityTable(Network(diamond().edges))
    single, several = Candidates.named(table, [2, 0, 2]), Candidates.named(table, [[1, 0, 1], [], [3]])
    assert [single.edges(i).tolist() for i in range(len(single))] == [[2], [0], [2]]
    assert [several.edges(i).tolist() for i in range(len(several))] == [[0, 1], [], [3]]
    assert len(Candidates.named(table, [])) == 0
    assert len(Candidates.named(table, [[], []])) == 2
    with pytest.raises(UnknownEdge):
        Candidates.named(table, [0, 99])
    changes = several.closing(np.array([2, 1, 0]))
    assert (changes.offsets.tolist(), changes.rows.tolist()) == ([0, 1, 1, 3], [3, 0, 1])
    assert changes.capacity.tolist() == [0, 0, 0]


def test_what_is_carried_bounds_a_closure_however_large_it_is() -> None:
    many = Candidates(np.array([0, 2, 2, 5, 45]), np.array([0, 1, 0, 1, 2, *[3] * 40]))
    network = Network(diamond().edges)
    assert many.carried(network, np.array([3, -4, 1, 0]), 7).tolist() == [7, 0, 7, 0]
    assert many.carried(network, np.array([3, -4, 1, 0]), 100).tolist() == [7, 0, 8, 0]
    most = 2**60
    assert many.carried(network, np.array([0, 5, -1, most]), most).tolist() == [5, 0, 6, most]
